"""Crosswalks: which figures answer which item of a public scheme, one file of data each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metrifair.support.checks import check_known

_FOLDER = Path(__file__).with_name("crosswalks")


class Crosswalk(NamedTuple):
    """The items of a scheme, with the figure that answers each and its place in the evidence."""

    title: str
    document: str  # the scheme itself: document and section
    version: str
    status: str  # whether it is in force, a draft, voluntary
    source: str  # where its items were read
    limits: str  # what of the document was not read, and which items are secondhand
    date: str  # when the source was read
    note: str
    items: Sequence[Mapping[str, str]]  # item, figure, place

    @property
    def sources(self) -> list[str]:
        """What the items rest on, as sentences."""
        return [
            f"Document: {self.document}.",
            f"Version: {self.version}. Status: {self.status}.",
            f"Read on {self.date}: {self.source}.",
            self.limits,
            self.note,
        ]


def crosswalk_names() -> list[str]:
    """The schemes for which there is a crosswalk.

    >>> crosswalk_names()
    ['dpia', 'eu-ai-act', 'iso-12791', 'll144', 'naic', 'nist-ai-rmf', 'nj-13-16', 'pren-18283', 'sr-26-2']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def crosswalk_named(name: str) -> Crosswalk:
    """The crosswalk to a scheme; a DataError for an unknown one."""
    check_known("crosswalks", name, crosswalk_names())
    return Crosswalk(**tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8")))
