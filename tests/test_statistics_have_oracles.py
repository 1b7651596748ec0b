"""Every statistic that a record holds is checked by a test against an oracle which shares no code
with it.

Such a test carries ``@pytest.mark.oracle("Record.field")``. A new field of a record fails here
until a test has its mark, or until it stands among the names. The slow test changes each field, and
its oracle must fail then.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from perturbing import ANSWER, ANSWERS, RECORDS, VARIABLE

TESTS = Path(__file__).parent

NAMES = {
    "Finding": "attribute criterion within groups metric tested_by group_values conditions decided",
    "Decisions": (
        "attribute within threshold rates unknown selected_by favorable favorable_decision "
        "standard conditions"
    ),
    "AlongNumber": "attribute within bands",
    "GroupFigures": "group group_value",
    "ByGroup": "attribute within groups conditions",
    "ProxyEstimate": "figure groups",
    "ProxyRecord": "attribute assumption source estimates corrected_by strata",
    "Difference": "model attribute criterion within groups metric group_values conditions",
    "Look": "look attribute criterion within groups metric group_values conditions baseline exact",
    "Baseline": "attribute criterion within groups metric looks group_values conditions",
    "SearchRecord": ("outcome higher_is_worse columns protected settings is_exact weighted"),
    "WorseGroup": "conditions",
    "ParentGroup": "conditions",
    "GroupRates": "group",
    "Point": "strength seed failed family needs_group",
}
"""Fields that name a figure or say where it comes from."""


OUT_OF_RECORDS = {
    "booster levels",
    "counts of a state",
    "counts of an engine",
    "decisions of files and tables",
    "decisions of a state",
    "correlation of two audits",
    "barycenter",
    "thresholds",
    "linear models",
    "metrics",
    "exact test of unchanged scores",
    "sign flips",
}
"""Computed values that no record holds."""

BELOW_RECORDS = {
    "Point.marks",
    "Point.more",
    "ReliabilityBin.interval",
    "WitnessCurve.utility",
}
"""Their oracles check the function that computes them, and would not see a change of the field.

Nothing is added here: write a test that reads the field of a record instead.
"""


@cache
def oracles() -> dict[str, list[str]]:
    """The tests with the mark of each statistic: by hand, by another library, by a closed form, by
    enumeration, or by a seeded simulation.
    """
    tests = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if "mark.oracle" not in text:
            continue
        for node in ast.parse(text).body:
            for statistic in marked(node):
                tests[statistic].append(f"{path.relative_to(TESTS.parent)}::{node.name}")
    return dict(tests)


def marked(node: ast.stmt) -> Iterator[str]:
    """The statistics of a test's marks."""
    if not isinstance(node, ast.FunctionDef):
        return
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.oracle":
            yield from map(ast.literal_eval, mark.args)


def fields_of(kind: str) -> set[str]:
    return {field.name for field in fields(RECORDS[kind])}


@pytest.mark.parametrize("kind", RECORDS)
def test_every_statistic_has_an_oracle(kind: str) -> None:
    named = set(NAMES.get(kind, "").split())
    known = {name.split(".")[1] for name in oracles() if name.startswith(f"{kind}.")}
    assert fields_of(kind) - known - named == set(), "statistics without an oracle: mark its test"
    assert named - fields_of(kind) == set(), "names of fields that there are not"
    assert known & named == set()


def test_every_mark_is_that_of_a_statistic() -> None:
    statistics = {f"{kind}.{name}" for kind in RECORDS for name in fields_of(kind)}
    assert oracles().keys() - statistics == OUT_OF_RECORDS
    assert statistics >= BELOW_RECORDS


def run_with(statistic: str, answer: str) -> subprocess.CompletedProcess[str]:
    """The oracles of a statistic, with its field changed."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-x", "-p", "perturbing", "-p", "no:cacheprovider"),
            *oracles()[statistic],
        ],
        cwd=TESTS.parent,
        env=os.environ | {VARIABLE: statistic, ANSWER: answer},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("statistic", sorted(oracles().keys() - OUT_OF_RECORDS - BELOW_RECORDS))
def test_its_oracle_fails_if_it_is_changed(statistic: str) -> None:
    for answer in ANSWERS:
        done = run_with(statistic, answer)
        if done.returncode:
            break
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed" in done.stdout, done.stdout
