"""Attributes with more combinations of groups than a table has room for: nothing is crossed, so
all are compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metrifair
from metrifair import AuditOptions, FairClassifier, FairRegressor, audit, frontier, unfairness
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.problem import (
    Inputs,
    cells,
    make_problem,
    needs_combinations,
    problem_with_scheme,
)
from tests.seams.problem import (
    problem as problem_module,
)
from tests.seams.saving import records


def many_groups(
    rows: int = 1500, attributes: int = 4, groups: int = 40
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Scores, and attributes that are not crossed."""
    generator = np.random.default_rng(5)
    people = {
        f"attribute {number}": generator.integers(groups, size=rows).astype(str)
        for number in range(attributes)
    }
    return generator.random(rows), people


@pytest.mark.parametrize("metric", ["kolmogorov", "energy"])
def test_unfairness_is_the_largest_of_the_attributes(metric: str) -> None:
    score, people = many_groups()
    alone = [
        unfairness(None, score, sensitive_features={name: people[name]}, metric=metric)
        for name in people
    ]
    assert unfairness(None, score, sensitive_features=people, metric=metric) == max(alone)


def test_an_audit_and_unfairness_have_one_answer() -> None:
    score, people = many_groups()
    options = AuditOptions(resamples=0, permutations=0, contrast="rest")
    found = audit(None, score, sensitive_features=people, random_state=0, options=options)
    expected = unfairness(None, score, sensitive_features=people, contrast="rest")
    assert found.worst("kolmogorov").value == pytest.approx(expected, abs=1e-12)


def test_sides_are_the_rows_of_the_groups() -> None:
    score, people = many_groups(rows=300)
    people["attribute 0"] = np.where(
        np.arange(300) % 7 == 0, None, people["attribute 0"].astype(object)
    )
    label = (score > 0.5).astype(int)
    problem = make_problem(Inputs(label, people), criterion="equal_opportunity")
    assert needs_combinations(problem.scheme.attributes)
    for comparison in problem.comparisons[::97]:
        for side, group in zip((comparison.left, comparison.right), comparison.groups, strict=True):
            expected = (people[comparison.attribute] == group) & (label == 1)
            assert np.array_equal(np.isin(problem.cell, side), expected)
    some = problem.take(np.arange(50))
    assert np.array_equal(some.cell, problem.cell[:50])


def test_cuts_of_several_numbers_are_compared() -> None:
    generator = np.random.default_rng(6)
    numbers = {name: generator.random(400) for name in "abcd"}
    score = generator.random(400)
    together = unfairness(None, score, sensitive_features=numbers, continuous=True)
    alone = [
        unfairness(None, score, sensitive_features={name: numbers[name]}, continuous=True)
        for name in numbers
    ]
    assert together == max(alone)


def test_new_combinations_of_later_rows_are_an_error_and_no_other_cell(refused: Refusals) -> None:
    _, people = many_groups(rows=200)
    first = make_problem(
        Inputs(sensitive_features={name: values[:100] for name, values in people.items()})
    )
    groups = [attribute.groups for attribute in first.scheme.attributes]
    rows = np.array([first.groups[0], first.groups[1]])
    rows[1, 0] = (rows[0, 0] + 1) % len(groups[0])
    table = {
        f"attribute {at}": np.array([groups[at][code] for code in rows[:, at]]) for at in range(4)
    }
    later = problem_with_scheme(Inputs(sensitive_features=table), first.scheme)
    with refused(DataError):
        _ = later.cell


def rows_to_train(rows: int = 240) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    x = generator.normal(size=(rows, 2))
    people = {"a": generator.integers(2, size=rows), "b": generator.integers(3, size=rows)}
    return {
        "X": x,
        "y": (x[:, 0] + 0.5 * people["a"] > 0).astype(int),
        "sensitive_features": people,
    }


def by_occurrence(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, three combinations of groups or more are too many for a table of all of
    them.
    """
    monkeypatch.setattr(cells, "needs_combinations", lambda attributes: True)
    for module in (problem_module, records):
        monkeypatch.setattr(module, "needs_combinations", lambda attributes: True)


@pytest.mark.parametrize(
    "model",
    [
        FairClassifier(strength=2, random_state=0, model="mlp"),
        FairClassifier(model="mlp", strength=2, random_state=0, epochs=3, batch_size=64),
        FairClassifier(strength=2, random_state=0, criterion="equal_opportunity", model="mlp"),
        FairRegressor(strength=2, random_state=0, model="mlp"),
    ],
    ids=["linear", "mlp", "by label", "regression"],
)
def test_models_do_not_depend_on_how_cells_are_numbered(
    model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = rows_to_train()
    expected = model.fit(**data).predict(data["X"])
    by_occurrence(monkeypatch)
    fitted = model.fit(**data)
    assert fitted.scheme_.combinations is not None
    assert np.array_equal(fitted.predict(data["X"]), expected)
    metrifair.save(fitted, tmp_path / "model.metrifair")
    assert np.array_equal(metrifair.load(tmp_path / "model.metrifair").predict(data["X"]), expected)


def test_frontiers_do_not_depend_on_how_cells_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows_to_train(200)
    options: dict[str, Any] = {**data, "strengths": [0, 10], "test": 0.3, "random_state": 0}
    expected = frontier(FairClassifier(model="mlp"), **options).to_frame("polars")
    by_occurrence(monkeypatch)
    assert frontier(FairClassifier(model="mlp"), **options).to_frame("polars").equals(expected)


@pytest.mark.slow
def test_a_model_is_trained_towards_all_groups_of_all_attributes() -> None:
    _, people = many_groups(rows=2000)
    generator = np.random.default_rng(8)
    x = generator.normal(size=(2000, 2))
    y = (x[:, 0] + generator.normal(size=2000) > 0).astype(int)
    # each combination is a cell of its own
    with pytest.warns(UserWarning, match="batches hold 2000 samples"):
        model = FairClassifier(strength=1, random_state=0, model="mlp").fit(
            x, y, sensitive_features=people
        )
    assert len(model.scheme_.comparisons) == 4 * 40 * 39 / 2
