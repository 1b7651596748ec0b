"""The choices of the page as commands of metrifair."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Choices: TypeAlias = Mapping[str, Any]
"""The choices that the page sends: text, numbers, flags and lists of text by name."""

READING = ("separator", "decimal", "encoding", "sheet", "missing", "replace", "day_first")


@dataclass(frozen=True)
class TableFile:
    """A file to read: its path, and its name in commands."""

    path: Path
    name: str


@dataclass(frozen=True)
class Command:
    """Words of a command without ``metrifair``. Files are tables or paths; ``text`` shows their
    names.

    ``is_optional`` marks a command whose refusal is a note: the results of the others remain valid.
    """

    words: tuple[str | TableFile | Path, ...]
    is_optional: bool = False

    @property
    def arguments(self) -> list[str]:
        """The words as arguments of a process."""
        return [str(word.path) if isinstance(word, TableFile) else str(word) for word in self.words]

    @property
    def text(self) -> str:
        """The command for a terminal.

        >>> Command(("columns", TableFile(Path("/tmp/x/a b.csv"), "a b.csv"), "--json", Path("/tmp/columns.json"))).text
        "metrifair columns 'a b.csv' --json columns.json"
        """
        return shlex.join(["metrifair", *map(_shown, self.words)])


def _shown(word: str | TableFile | Path) -> str:
    return word if isinstance(word, str) else word.name


def _options(choices: Choices, names: Iterable[str]) -> Iterator[str]:
    """Options of the same names. A value is part of its word, so that no value can be taken for an
    option.

    >>> list(_options({"group": ["sex", "--x"], "label": "", "day_first": True}, ["group", "label", "day_first"]))
    ['--group=sex', '--group=--x', '--day-first']
    """
    for name in names:
        value = choices.get(name)
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif isinstance(value, list):
            yield from (f"{option}={item}" for item in value)
        elif value not in (None, "", False):
            yield f"{option}={value}"


def columns_command(table: TableFile, reading: Choices) -> Command:
    """List the columns of a file."""
    return Command(("columns", table, *_options(reading, READING), "--json=columns.json"))


AUDIT = (
    "score",
    "group",
    "label",
    "positive",
    "weight",
    "threshold",
    "favorable_decision",
    "criterion",
)
SEARCH = ("find_groups", "among")
NAMED = "credit"  # the standard with a reference group for each column


def _searched(choices: Choices) -> tuple[str, ...]:
    """The options of a search for groups; none without its outcome."""
    return SEARCH if choices.get("find_groups") else ()


def _rates(choices: Choices) -> tuple[str, ...]:
    """The options of a standard; the one that compares with a group that is named has references."""
    return ("standard", "reference") if choices.get("standard") == NAMED else ("standard",)


def audit_command(table: TableFile, choices: Choices, *outputs: str) -> Command:
    """Audit a file; ``outputs`` are options that name files."""
    standard = (*_rates(choices), "details") if choices.get("standard") else ()
    options = _options(
        {**choices, "details": True},
        (*AUDIT, "intersectional", *_searched(choices), *standard, *READING),
    )
    return Command(("audit", table, *options, *outputs))


def evidence_command(table: TableFile, choices: Choices) -> Command:
    """Write the audit of a file as evidence that others can verify."""
    rates = _rates(choices)
    names = (*AUDIT, "intersectional", *_searched(choices), *rates, "min_cell", *READING)
    options = _options(choices, names)
    return Command(("evidence", table, *options, "--out=evidence.zip"))


def comparison_commands(before: TableFile, after: TableFile, choices: Choices) -> list[Command]:
    """Audit two files, and compare the second with the first."""
    # a comparison has no tables of a standard, and no search
    alone = {**choices, "standard": "", "find_groups": ""}
    return [
        audit_command(before, alone, "--json=before.json"),
        audit_command(after, alone, "--json=after.json"),
        Command(
            ("compare", "before.json", "after.json", "--html=changes.html", "--json=changes.json")
        ),
    ]


TRAIN = ("label", "positive", "group", "weight", "id", "ignore", "criterion", "utility")


def frontier_command(table: TableFile, choices: Choices, ledger: Path, *outputs: str) -> Command:
    """Train families of models; the ledger stores finished models."""
    options = _options(
        {**choices, "ignore": _ignored(choices)}, (*TRAIN, "families", "budget", *READING)
    )
    return Command(("frontier", table, *options, "--ledger", ledger, *outputs))


def _ignored(choices: Choices) -> list[str]:
    """Columns that are no features, besides those with a role."""
    return sorted({*choices.get("ignore", ()), choices.get("score", "")} - {choices["label"], ""})


def not_features(choices: Choices) -> list[str]:
    """All columns that are not features.

    >>> not_features({"label": "repaid", "group": ["sex"], "id": "", "ignore": ["decision"], "score": "score"})
    ['repaid', 'sex', 'decision', 'score']
    """
    roles = [
        choices["label"],
        *choices["group"],
        choices.get("weight"),
        choices.get("id"),
        *_ignored(choices),
    ]
    return list(dict.fromkeys(name for name in roles if name))


def training_command(table: TableFile, choices: Choices, ledger: Path) -> Command:
    """Train families of models and show the trade-off."""
    return frontier_command(table, choices, ledger, "--html=frontier.html", "--json=frontier.json")


def choice_commands(
    table: TableFile, choices: Choices, ledger: Path, *, score: str
) -> list[Command]:
    """Choose a model by its limit, audit predictions by models without the rows, and write its
    card and its graph.
    """
    outputs = (
        "--html=frontier.html",
        "--json=frontier.json",
        "--output=model.metrifair",
        "--held-out=held-out.csv",
    )
    limit = f"--max-unfairness={choices['max_unfairness']}"
    audited = {name: choices.get(name) for name in ("group", "label", "positive", "weight")} | {
        "score": score
    }
    held_out = TableFile(Path("held-out.csv"), "held-out.csv")
    return [
        frontier_command(table, choices, ledger, limit, *outputs),
        audit_command(held_out, audited, "--html=held-out.html", "--json=held-out.json"),
        Command(("card", "model.metrifair", "--audit=held-out.json", "--output=card.md")),
        Command(("export", "model.metrifair", "--output=model.onnx"), is_optional=True),
    ]
