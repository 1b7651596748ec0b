"""What the duel found, in a file.

Other methods' entries depend on none of our code. They are computed once and kept, so that a later run needs to train
our models alone.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import peers
from metrifair import DataError
from metrifair.support.files import write_file

OURS = "ours"
OURS_BLIND = "ours, without the group"
CONSTANT = "constant"
_DEPENDS_ON = ("contests", "methods", "strengths", "blend", "packages")  # parts of the protocol


class Entry(NamedTuple):
    """What a method's chosen model reaches on the test rows of one split, in one contest."""

    data: str
    split: int
    method: str
    contest: int
    utility: float
    gap: float  # as it is
    excess: float  # the gap without what chance adds to it
    # utility, then gap, on resamples of the test rows; empty: the splits have test rows of their own
    resampled: Sequence[Sequence[float]] = ()


class DuelRecord(NamedTuple):
    """The entries of all methods, and where they come from."""

    entries: list[Entry]
    faults: dict[str, str]  # by method and data set: why entries are missing
    test_ratio: dict[str, float]  # by data set: test rows of a split for each training row
    others: str  # fingerprint of the other methods' code and settings
    computed: list[str]  # where, when, and which entries

    @classmethod
    def read(cls, path: Path) -> DuelRecord:
        """The record in a file."""
        content = json.loads(path.read_bytes())
        content["entries"] = [Entry(*one) for one in content["entries"]]
        return cls(**content)

    def write(self, path: Path) -> None:
        """Write the record, a line for each entry."""
        content = self._asdict()
        lines = ",\n".join(json.dumps(one) for one in content.pop("entries"))
        head = json.dumps(content, indent=1).removesuffix("\n}")
        write_file(path, f'{head},\n "entries": [\n{lines}\n]}}\n'.encode())

    def with_others_of(self, earlier: DuelRecord) -> DuelRecord:
        """The same record, with other methods' entries of an earlier one where it has none.

        The earlier record must have the same code, settings and rows for the other methods.
        """
        if earlier.others != self.others:
            raise DataError(
                "recorded entries are of other code, packages or settings of the other methods"
            )
        _check_same_rows(self.entries, earlier.entries)
        known = {(*_split_of(one), one.method) for one in self.entries}
        splits = {_split_of(one) for one in self.entries}
        added = [
            one
            for one in earlier.entries
            if is_of_others(one) and _split_of(one) in splits
            if (*_split_of(one), one.method) not in known
        ]
        faults_of_others = {
            name: fault for name, fault in earlier.faults.items() if not name.startswith(OURS)
        }
        of_others = [text for text in earlier.computed if not text.endswith(f"({OURS}).")]
        return self._replace(
            entries=[*self.entries, *added],
            faults=faults_of_others | self.faults,
            computed=[*self.computed, *of_others],
        )

    def whole_splits(self, protocol: Mapping[str, Any]) -> set[tuple[str, int]]:
        """The splits of data sets that all methods have entries of, or a fault instead."""
        by_split: dict[tuple[str, int], set[tuple[str, int]]] = {}
        for one in self.entries:
            by_split.setdefault(_split_of(one), set()).add((one.method, one.contest))
        contests = range(len(protocol["contests"]))
        return {
            (data, split)
            for (data, split), done in by_split.items()
            if all(
                (method, contest) in done or fault_name(method, data) in self.faults
                for method in (OURS, OURS_BLIND, *protocol["methods"])
                for contest in contests
            )
        }


def fault_name(method: str, data: str) -> str:
    """What failed, as faults name it.

    >>> fault_name("equipy, blend", "drug")
    'equipy, blend on drug'
    """
    return f"{method} on {data}"


def is_of_others(entry: Entry) -> bool:
    """Whether an entry is of another library's method.

    >>> is_of_others(Entry("drug", 0, "ours: linear", 0, 0.8, 0.1, 0.1))
    False
    """
    return entry.method != CONSTANT and not entry.method.startswith(OURS)


def fingerprint_of_others(protocol: Mapping[str, Any]) -> str:
    """What changes when the code or the settings of the other methods change."""
    code = _without_comments(Path(peers.__file__).read_text(encoding="utf-8"))
    settings = {name: protocol[name] for name in _DEPENDS_ON}
    settings["folds"] = protocol["data"]["folds"]
    settings["large"] = protocol["data"]["large"]
    text = json.dumps(settings, sort_keys=True) + code
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_comments(source: str) -> str:
    """Python code without its comments and docstrings, however its lines were broken.

    >>> _without_comments("x = (1,  # one\\n 2)")
    'x = (1, 2)'
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def _split_of(entry: Entry) -> tuple[str, int]:
    return entry.data, entry.split


def _check_same_rows(own: Iterable[Entry], recorded: Iterable[Entry]) -> None:
    """The constant's utility is a property of the rows alone: it must be the same."""
    constants = {
        (*_split_of(one), one.contest): one.utility for one in own if one.method == CONSTANT
    }
    for one in recorded:
        here = constants.get((*_split_of(one), one.contest), one.utility)
        if one.method == CONSTANT and abs(here - one.utility) > 1e-12:
            raise DataError(
                f"recorded entries of {one.data}, split {one.split}, are of other rows: "
                f"the constant has utility {one.utility}, here {here}"
            )
