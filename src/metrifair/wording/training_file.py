"""Sentences of the notes on the columns of a training file, and on warnings of its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from shlex import quote

from metrifair.auditing.records import Note
from metrifair.encoding.coders import Strays
from metrifair.problem.attributes import NumberFacts, numbers_warning
from metrifair.wording.notes import note_text


def _determined_label(column: str, label: str, rows: int) -> str:
    return (
        f"Column {column!r} alone determines the label {label!r} in all {rows:,} rows; where it is "
        "written down only after the outcome, leave it out with "
        f"--ignore {quote(column)}."
    )


def _stray_cells(column: str, cells: int, known: int, example: str) -> str:
    """As the encoder warns of it."""
    return f"{Strays(cells, known, example).note(column)}, or leave it out with --ignore."


def _dates_as_text(column: str, example: str) -> str:
    return (
        f"column {column!r} contains dates such as {example!r}, and is read as text: use "
        "--day-first where the day comes first, or write them as 2026-12-31."
    )


def _dates(column: str) -> str:
    return (
        f"Column {column!r} contains dates. `metrifair export` cannot write a model with dates; "
        f"leave the column out with --ignore {quote(column)} if you need ONNX."
    )


def _predictions(columns: Sequence[str]) -> str:
    ignored = " ".join(f"--ignore {quote(name)}" for name in columns)
    return (
        f"The features include {', '.join(map(repr, columns))}. If these are scores or decisions "
        f"of another model, leave them out with {ignored}."
    )


def _names_alike(attribute: str, groups: Sequence[str]) -> str:
    """As audits say it."""
    return note_text(Note("names_alike", {"attribute": attribute, "groups": groups}))


def _numbers(columns: Mapping[str, int], integers: Sequence[str], shares: Sequence[str]) -> str:
    """As Python warns of it, with the options of the command line."""
    problem = numbers_warning(NumberFacts(columns, integers, shares)).problem
    named = " ".join(f"--continuous {quote(name)}" for name in columns)
    return (
        f"{problem}; use {named} if the values are numbers, or --continuous none if every value is "
        "a group, or --cuts for groups."
    )


def _warning(message: str) -> str:
    """The words of a Python warning, which any estimator may raise."""
    return message


TRAINING_FILE_NOTES: Mapping[str, Callable[..., str]] = {
    "determined_label": _determined_label,
    "stray_cells": _stray_cells,
    "dates_as_text": _dates_as_text,
    "dates": _dates,
    "predictions": _predictions,
    "names_alike": _names_alike,
    "numbers": _numbers,
    "training_warning": _warning,
    "not_converged": _warning,
}
