"""Crosswalks: which figures answer which item of a public scheme, one file of data each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metrifair.support.checks import check_known
from metrifair.wording.sources import Source

_FOLDER = Path(__file__).with_name("crosswalks")


class Crosswalk(NamedTuple):
    """The items of a scheme, with the figure that answers each and its place in the evidence."""

    title: str
    source: Source
    note: str
    items: Sequence[Mapping[str, str]]  # item, figure, place

    @property
    def sources(self) -> list[str]:
        """What the items rest on, as sentences."""
        return [*self.source.sentences, self.note]


def crosswalk_names() -> list[str]:
    """The schemes for which there is a crosswalk.

    >>> crosswalk_names()
    ['dpia', 'eu-ai-act', 'iso-12791', 'll144', 'naic', 'nist-ai-rmf', 'nj-13-16', 'pren-18283', 'sr-26-2']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def crosswalk_named(name: str) -> Crosswalk:
    """The crosswalk to a scheme; a DataError for an unknown one."""
    check_known("crosswalks", name, crosswalk_names())
    import tomllib  # noqa: PLC0415  # no help text needs it

    written = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    source = Source(**{field: written.pop(field) for field in Source._fields})
    return Crosswalk(source=source, **written)
