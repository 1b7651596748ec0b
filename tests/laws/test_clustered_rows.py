"""Clusters mean the same at every entry point: their names are arbitrary, and rows of one person
are no new information.

Every person has five nearly equal rows. Figures do not depend on how the column of persons is
spelled, and intervals are wider than those of independent rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

from metrifair import (
    Audit,
    AuditOptions,
    FairClassifier,
    FairClassifierCV,
    FairRegressorCV,
    audit,
    audit_file,
    audit_table,
    compare,
    frontier,
    monitor,
)
from metrifair.cli import main

RANDOM = np.random.default_rng(8)
PERSONS = 80
EACH = 5
N = PERSONS * EACH
ORDER = RANDOM.permutation(N)
PERSON = np.repeat(np.arange(PERSONS), EACH)[ORDER]
GROUP = (RANDOM.random(PERSONS) < 0.5).astype(int)[PERSON]
SKILL = (RANDOM.normal(size=PERSONS) + 0.8 * (np.arange(PERSONS) % 2))[PERSON]
LABEL = (SKILL + GROUP + RANDOM.normal(size=PERSONS)[PERSON] > 0.9).astype(int)
SCORE = np.round(1 / (1 + np.exp(-SKILL - 0.5 * GROUP)) + RANDOM.uniform(0, 0.01, N), 3)
SCORE = np.minimum(SCORE, 1.0)
OTHER = np.round(0.6 * SCORE + 0.4 * RANDOM.random(PERSONS)[PERSON], 3)
FEATURES = np.column_stack([SKILL, GROUP + RANDOM.normal(size=PERSONS)[PERSON]])
OPTIONS = AuditOptions(resamples=200, permutations=0, min_group_size=5)
NAMED: dict[str, Any] = {"metrics": "kolmogorov", "random_state": 0, "options": OPTIONS}

SPELLINGS: dict[str, Callable[[np.ndarray], Any]] = {
    "integers": lambda persons: persons,
    "other integers": lambda persons: 10**12 - 7 * persons,
    "a list": lambda persons: persons.tolist(),
    "floating-point numbers": lambda persons: persons / 4,
    "text of integers": lambda persons: persons.astype(str),
    "words": lambda persons: np.array([f"person {number}" for number in persons]),
    "words as objects": lambda persons: np.array([f"p-{one}" for one in persons], dtype=object),
    "a column of pandas": lambda persons: pd.Series(persons, index=np.arange(N)[::-1]),
    "categories of pandas": lambda persons: pd.Series(persons.astype(str), dtype="category"),
    "a column of polars": lambda persons: pl.Series(persons.astype(str)),
    "categories of polars": lambda persons: pl.Series(persons.astype(str), dtype=pl.Categorical),
}


class Result(NamedTuple):
    """Figures, and the widths of their intervals."""

    figures: list[Any]
    widths: list[float]


Entry = Callable[[Any, Path], Result]
"""The result for a column of clusters; None: rows are independent."""


def result_of(items: Sequence[Any], figure: str) -> Result:
    """That of records with intervals."""
    intervals = [item.interval for item in items if item.interval is not None]
    assert intervals
    figures = [getattr(item, figure) for item in items] + [astuple(one) for one in intervals]
    return Result(figures, [one.high - one.low for one in intervals])


def given(clusters: Any) -> dict[str, Any]:
    return {} if clusters is None else {"clusters": clusters}


def audited(clusters: Any, score: Any = SCORE) -> Audit:
    named = {} if clusters is None else {"clusters": {"person": clusters}}
    return audit(LABEL, score, sensitive_features={"sex": GROUP}, **named, **NAMED)


def by_audit(clusters: Any, folder: Path) -> Result:
    return result_of(audited(clusters).findings, "value")


def table(clusters: Any) -> pl.DataFrame:
    """The rows as a table; the order of its columns does not matter."""
    rows = pl.DataFrame({"score": SCORE, "label": LABEL, "sex": GROUP})
    if clusters is None:
        return rows
    native = clusters if isinstance(clusters, pl.Series) else pl.Series(list(clusters))
    return rows.with_columns(native.alias("person"))


def roles(clusters: Any) -> dict[str, Any]:
    columns = {"score": "score", "label": "label", "group": "sex"}
    return columns if clusters is None else {**columns, "clusters": "person"}


def by_file(ending: str) -> Entry:
    def entry(clusters: Any, folder: Path) -> Result:
        rows = table(clusters)
        path = folder / f"rows.{ending}"
        rows.write_csv(path) if ending == "csv" else rows.write_parquet(path)
        return result_of(audit_file(path, **roles(clusters), **NAMED).findings, "value")

    return entry


def by_table(clusters: Any, folder: Path) -> Result:
    found = audit_table(table(clusters).lazy(), **roles(clusters), **NAMED)
    return result_of(found.findings, "value")


def by_database(clusters: Any, folder: Path) -> Result:
    rows = table(clusters)  # noqa: F841 (DuckDB finds it by its name)
    found = audit_table(duckdb.sql("select * from rows"), **roles(clusters), **NAMED)
    return result_of(found.findings, "value")


def by_compare(clusters: Any, folder: Path) -> Result:
    return result_of(compare(audited(clusters), audited(clusters, OTHER)).differences, "difference")


def by_monitor(clusters: Any, folder: Path) -> Result:
    series = monitor([audited(clusters), audited(clusters, OTHER)], random_state=0)
    return result_of(series.record.series, "value")


def called(arguments: Sequence[object], page: Path) -> dict[str, Any]:
    """The JSON of a command."""
    done = CliRunner().invoke(main, [*map(str, arguments), "--json", str(page)])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(page.read_text())
    return found


def by_audit_command(clusters: Any, folder: Path) -> Result:
    rows = folder / "rows.csv"
    table(clusters).write_csv(rows)
    options = ["--score", "score", "--label", "label", "--group", "sex", "--seed", 0]
    options += ["--metric", "kolmogorov", "--min-group-size", 5]
    options += [] if clusters is None else ["--cluster", "person"]
    findings = called(["audit", rows, *options], folder / "page.json")["findings"]
    intervals = [finding["interval"] for finding in findings]
    figures = [finding["value"] for finding in findings] + intervals
    return Result(figures, [one["high"] - one["low"] for one in intervals])


def by_frontier(clusters: Any, folder: Path) -> Result:
    front = frontier(
        FairClassifier(model="linear"),
        FEATURES,
        LABEL,
        sensitive_features=GROUP,
        **given(clusters),
        strengths=[0.0, 0.1],
        folds=2,
        random_state=0,
    )
    return of_points(front.points)


def of_points(points: Sequence[Any]) -> Result:
    """Figures of models, and the widths of the intervals of their unfairness and accuracy."""
    names = ("unfairness", "accuracy")
    intervals = [point.intervals[name] for point in points for name in names]
    figures: list[Any] = [getattr(point, name) for point in points for name in names]
    figures += [astuple(one) for one in intervals]
    return Result(figures, [one.high - one.low for one in intervals])


def by_search(search: type[Any], target: Any) -> Entry:
    def entry(clusters: Any, folder: Path) -> Result:
        model = search(max_unfairness=1, families=["linear"], folds=2, random_state=0)
        model.fit(FEATURES, target, sensitive_features=GROUP, **given(clusters))
        return of_points(model.frontier_.points)

    return entry


def by_training_command(command: str) -> Entry:
    def entry(clusters: Any, folder: Path) -> Result:
        rows = folder / "rows.csv"
        features = {f"x{place}": column.round(6) for place, column in enumerate(FEATURES.T)}
        table(clusters).drop("score").with_columns(**features).write_csv(rows)
        options = ["--label", "label", "--group", "sex", "--model", "linear", "--folds", 2]
        options += ["--seed", 0]
        options += ["--strengths", "0,0.1"] if command == "frontier" else ["--strength", 0.1]
        options += [] if clusters is None else ["--cluster", "person"]
        points = called([command, rows, *options], folder / "page.json")["points"]
        names = ("unfairness", "accuracy")
        intervals = [point["intervals"][name] for point in points for name in names]
        figures = [point[name] for point in points for name in names] + intervals
        return Result(figures, [one["high"] - one["low"] for one in intervals])

    return entry


ENTRIES: dict[str, Entry] = {
    "audit": by_audit,
    "csv": by_file("csv"),
    "Parquet": by_file("parquet"),
    "table": by_table,
    "database": by_database,
    "compare": by_compare,
    "monitor": by_monitor,
    "metrifair audit": by_audit_command,
}
TRAINING: dict[str, Entry] = {
    "frontier": by_frontier,
    "metrifair train": by_training_command("train"),
    "metrifair frontier": by_training_command("frontier"),
}
SEARCHES: dict[str, Entry] = {
    "FairClassifierCV": by_search(FairClassifierCV, LABEL),
    "FairRegressorCV": by_search(FairRegressorCV, SCORE),
}


def check(entry: Entry, spellings: Sequence[str], folder: Path) -> None:
    """Equal figures in every spelling, and wider intervals than without clusters."""
    expected = entry(PERSON, folder)
    for spelling in spellings:
        found = entry(SPELLINGS[spelling](PERSON), folder)
        assert found.figures == expected.figures, spelling
    independent = entry(None, folder)
    assert np.mean(expected.widths) > 1.3 * np.mean(independent.widths)


@pytest.mark.parametrize("entry", ENTRIES)
def test_audits_of_clusters_in_any_spelling_have_the_same_wider_intervals(
    entry: str, tmp_path: Path
) -> None:
    check(ENTRIES[entry], list(SPELLINGS), tmp_path)


@pytest.mark.parametrize("entry", TRAINING)
def test_models_of_clusters_in_any_spelling_have_the_same_wider_intervals(
    entry: str, tmp_path: Path
) -> None:
    check(TRAINING[entry], ["floating-point numbers", "words", "a column of pandas"], tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("entry", SEARCHES)
def test_searches_of_clusters_in_any_spelling_have_the_same_wider_intervals(
    entry: str, tmp_path: Path
) -> None:
    check(SEARCHES[entry], ["words"], tmp_path)
