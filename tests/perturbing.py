"""A plugin of pytest that changes one field of a record wherever it is made: a test that checks the
field must fail. ``METRIFAIR_CHANGED=Finding.value pytest -p perturbing tests/...``.

A record that is made from another one is changed again; therefore, a field that is true or false
becomes one and the same value, that of ``METRIFAIR_CHANGED_TO``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from tests.seams.auditing import records, search_records
from tests.seams.figures import Curves, GroupRates
from tests.seams.tradeoff import Point

VARIABLE = "METRIFAIR_CHANGED"
ANSWER = "METRIFAIR_CHANGED_TO"
ANSWERS = ("True", "False")

RECORDS = {
    kind.__name__: kind
    for kind in (
        records.Finding,
        records.Divided,
        records.DividedRates,
        records.WitnessCurve,
        records.Decisions,
        records.AlongNumber,
        records.Measure,
        records.ReliabilityBin,
        records.GroupFigures,
        records.ByGroup,
        records.ProxyEstimate,
        records.ProxyRecord,
        records.Difference,
        records.Look,
        records.Baseline,
        search_records.SearchRecord,
        search_records.WorseGroup,
        search_records.ParentGroup,
        search_records.GapLimit,
        GroupRates,
        Curves,
        Point,
    )
}


def changed(value: Any) -> Any:
    """Another value of the same type; None, which says that nothing is known, stays."""
    if isinstance(value, bool | np.bool_):
        return os.environ.get(ANSWER, "True") == "True"
    if isinstance(value, int | np.integer):
        return value + 1
    if isinstance(value, float | np.ndarray):
        return 1.5 * value + 0.05
    if isinstance(value, str):
        return f"{value}, changed"
    if isinstance(value, Mapping):
        return {key: changed(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(changed, value))
    if isinstance(value, tuple | list):
        return type(value)(map(changed, value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: changed(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **parts)
    if isinstance(value, Sequence):
        return [changed(part) for part in value]
    return value


def change(statistic: str) -> None:
    """Change this field of every record from now on."""
    kind, name = statistic.split(".")
    record = RECORDS[kind]
    plain = record.__init__

    def with_change(self: Any, *args: Any, **named: Any) -> None:
        plain(self, *args, **named)
        object.__setattr__(self, name, changed(getattr(self, name)))

    record.__init__ = with_change


def pytest_configure() -> None:
    if VARIABLE in os.environ:
        change(os.environ[VARIABLE])
