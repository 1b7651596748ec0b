"""``frontier("auto", ...)``: which families, in which order, within which budget; and the
family that is chosen.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

import metrifair
from metrifair import DataError, Frontier, SearchOptions, frontier, load
from metrifair.cli import main
from tests.seams.tradeoff import AUTO_FAMILIES, STRENGTHS, Portfolio, needs_group
from tests.seams.tradeoff import frontier as frontiers

RNG = np.random.default_rng(0)
A = RNG.integers(0, 2, 400)
X = RNG.normal(size=(400, 2)) + np.c_[A, 0 * A]
Y = (X.sum(1) + RNG.logistic(size=400) > 0.5).astype(int)
FEW = Portfolio(rows=1_000, classes=2)
QUICK: dict[str, Any] = {
    "sensitive_features": A,
    "strengths": [0, 1],
    "random_state": 3,
    "test": 0.25,
}
LINEAR = metrifair.FairClassifier, metrifair.FairRegressor
LINES = SearchOptions(families=["linear", "blind_barycenter"], tolerances=[0, 1])

pytestmark = [
    pytest.mark.filterwarnings("ignore:(the model predicts the same|.*models are constant)"),
    pytest.mark.filterwarnings("ignore:columns? .* separates? the classes"),
]


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (
            {},
            [
                "linear",
                "small_trees",
                "blind_barycenter",
                "stack",
                "network",
                "stack_with_features",
            ],
        ),
        (
            {"rows": 30_000},
            [
                "linear",
                "large_trees",
                "blind_barycenter",
                "stack",
                "network",
                "stack_with_features",
            ],
        ),
        ({"classes": 3}, ["linear", "small_trees", "stack", "network", "stack_with_features"]),
        (
            {"classes": 0},
            [
                "linear",
                "small_trees",
                "blind_barycenter",
                "stack",
                "network",
                "stack_with_features",
            ],
        ),
        ({"numeric_groups": True}, ["linear", "small_trees", "network"]),
        ({"aim": {"criterion": "risk_parity"}}, ["linear", "small_trees", "network"]),
        (
            {"aim": {"criterion": "equal_opportunity"}},
            ["linear", "small_trees", "stack", "network", "stack_with_features"],
        ),
        ({"strata": True}, ["linear", "small_trees", "stack", "network", "stack_with_features"]),
    ],
)
def test_families_suit_the_data(changed: dict[str, Any], names: list[str]) -> None:
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    families = replace(FEW, **changed).families()
    assert list(families) == names
    assert not any(map(needs_group, families.values()))
    assert {is_regressor(one) for one in families.values()} == {changed.get("classes") == 0}
    more = replace(FEW, **changed, needs_group=True).families()
    assert [name for name in more if name in names] == names
    assert all(needs_group(more[name]) for name in set(more) - set(names))


def test_group_aware_families_are_tried_early_where_they_may_be() -> None:
    assert list(replace(FEW, needs_group=True).families())[1:3] == ["barycenter", "thresholds"]


def test_without_lightgbm_no_trees_have_the_penalty_and_a_note_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrifair.stacking, "find_spec", lambda _: None)
    assert list(FEW.families())[:3] == ["linear", "blind_barycenter", "stack"]
    assert "stack" not in replace(FEW, saved=True).families()
    front = frontier("auto", X, Y, **QUICK, search=LINES)
    assert "LightGBM is not installed" in front.summary


@pytest.mark.extended
def test_naming_the_families_repeats_the_result(tmp_path: Path) -> None:
    first = frontier("auto", X, Y, **QUICK, search=LINES)
    again = frontier(
        "auto", X, Y, **QUICK, search=replace(LINES, families=list(first.record.parameters))
    )
    assert list(first.record.parameters) == ["linear", "blind_barycenter"]
    assert first.points == again.points
    first.save(tmp_path / "front")
    kept = load(tmp_path / "front")
    assert isinstance(kept, Frontier)
    assert kept.record.parameters == first.record.parameters
    assert "Families tried, in this order: linear; blind_barycenter." in kept.summary


@pytest.mark.extended
@pytest.mark.parametrize(
    ("test", "budget", "tried"), [(0.25, 1, ["a", "b"]), (None, 35, ["a", "b", "c"])]
)
def test_no_family_is_started_after_the_budget(
    test: float | None, budget: float, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that a family takes 10 seconds of; what was trained is the same as without a
    budget.

    The first two families are trained whatever the budget is.
    """
    ticks = iter(range(0, 1_000, 10))
    monkeypatch.setattr(frontiers, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(
        Portfolio,
        "families",
        lambda self: {name: self._ours(*LINEAR, model="linear") for name in "abcd"},
    )
    asked = QUICK | {"test": test}
    front = frontier("auto", X, Y, **asked, search=SearchOptions(budget=budget))
    assert list(front.record.parameters) == tried
    assert (
        f"Not started within {budget} seconds: {'; '.join('abcd'[len(tried) :])}." in front.summary
    )
    whole = frontier("auto", X, Y, **asked, search=SearchOptions(families=tried))
    assert whole.points == front.points
    assert {point.family for point in front.points} == set(tried)


def test_tables_with_text_and_missing_values_are_encoded() -> None:
    table = pl.DataFrame(
        {"size": [*X[:-1, 0].tolist(), None], "town": np.where(X[:, 1] > 0, "A", "B").tolist()}
    )
    front = frontier("auto", table, Y, **QUICK, search=SearchOptions(families=["linear"]))
    assert isinstance(front.select(max_unfairness=1), Pipeline)


def test_a_number_is_regressed() -> None:
    front = frontier("auto", X, X.sum(1), **QUICK, search=SearchOptions(families=["linear"]))
    assert front.record.accuracy_name == "R2"


@pytest.mark.parametrize(
    ("utility", "name"), [("auto", "accuracy"), ("r2", "R2"), ("mean_absolute_error", "R2")]
)
def test_a_utility_of_numbers_makes_few_integers_a_target(utility: str, name: str) -> None:
    grades = np.digitize(X.sum(1), [-1, 0, 1])
    front = frontier(
        "auto", X, grades, **QUICK, utility=utility, search=SearchOptions(families=["linear"])
    )
    assert front.record.accuracy_name == name
    assert {is_regressor(model) for model in front.models} == {name == "R2"}


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("parameter", {"parameter": "strength"}),
        ("devices", {"search": SearchOptions(devices=["cpu"])}),
        ("families", {"search": SearchOptions(families=["oracle"])}),
    ],
)
def test_what_auto_does_not_take_is_refused(argument: str, given: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=argument):
        frontier("auto", X, Y, **(QUICK | given))


def test_families_are_names_of_auto_only() -> None:
    with pytest.raises(DataError, match="families"):
        frontier(
            metrifair.FairClassifier(model="mlp"),
            X,
            Y,
            **QUICK,
            search=SearchOptions(families=["linear"]),
        )


def test_errors_help_and_docs_list_the_same_families() -> None:
    docstring = metrifair.FairClassifierCV.__doc__ or ""
    documented = re.findall(r'"(\w+)"', docstring.split("some of")[1].split("criterion :")[0])
    assert documented == list(AUTO_FAMILIES)
    shown = " ".join(CliRunner().invoke(main, ["frontier", "--help"]).output.split())
    assert f"those that are named, of {', '.join(AUTO_FAMILIES)}." in shown
    listed = f"families must be one of {', '.join(map(repr, AUTO_FAMILIES))}, got 'baricenter'"
    with pytest.raises(DataError, match=f"^{re.escape(listed)}; did you mean 'barycenter'"):
        frontier("auto", X, Y, **QUICK, search=SearchOptions(families=["baricenter"]))


def test_a_family_that_does_not_suit_the_data_says_so() -> None:
    said = "families names 'barycenter', which does not suit this task and these rows; 'linear',"
    with pytest.raises(DataError, match=f"^{said}") as caught:
        frontier("auto", X, Y, **QUICK, search=SearchOptions(families=["barycenter"]))
    assert str(caught.value).endswith("or allow models that need the group (needs_group)")


def test_a_family_of_auto_without_auto_is_named_by_the_command() -> None:
    asked = ["frontier", "rows.csv", "--label", "y", "--group", "g", "--families", "linear,stack"]
    done = CliRunner().invoke(main, asked)
    assert "'--families': 'stack' is a family of auto; use auto,stack" in done.stderr


def test_the_positive_label_is_that_of_the_user() -> None:
    """Names in another order and the positive label by name: the same rows, models and figures."""
    search = SearchOptions(families=["linear"])
    options: dict[str, Any] = QUICK | {
        "criterion": "equal_opportunity",
        "utility": "auc",
        "search": search,
    }
    last = frontier("auto", X, np.where(Y == 1, "repaid", "owed"), **options)
    named = frontier("auto", X, np.where(Y == 1, "repaid", "unpaid"), pos_label="repaid", **options)
    unnamed = frontier("auto", X, np.where(Y == 1, "repaid", "unpaid"), **options)
    gaps = [[point.unfairness for point in front.points] for front in (last, named, unnamed)]
    assert gaps[1] == pytest.approx(gaps[0], abs=1e-6)
    assert gaps[2] != pytest.approx(gaps[0], abs=1e-2)
    assumed = [
        any(note.kind == "positive_label" for note in front.record.notes)
        for front in (unnamed, named)
    ]
    assert assumed == [True, False]


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (metrifair.FairClassifier(model="mlp"), Y),
        ("auto", np.random.default_rng(0).normal(size=len(Y))),
    ],
)
def test_a_positive_label_of_estimators_or_numbers_is_refused(estimator: Any, y: Any) -> None:
    with pytest.raises(DataError, match="pos_label"):
        frontier(estimator, X, y, pos_label=1, **QUICK)


def test_the_work_that_is_promised_decides_and_not_the_clock() -> None:
    """Linear models always run, and one family that needs the group if models may."""
    few, usual, wide = (
        Portfolio(rows=rows, classes=2, columns=columns, training_rows=rows * 4 // 5, **aware)
        for rows, columns, aware in (
            (300, 5, {}),
            (5_000, 20, {}),
            (2_000, 500, {"needs_group": True}),
        )
    )
    names = [list(one.chosen((), SearchOptions())[0]) for one in (few, usual, wide)]
    assert all(one[0] == "linear" for one in names)
    assert "small_trees" not in names[0]
    assert {"linear", "blind_barycenter"} <= set(names[0])
    assert names[2] == ["linear", "barycenter"]
    for one, tried in zip((few, usual), names[:2], strict=True):
        assert sum(map(one.promised, tried)) <= one.budget
    if find_spec("lightgbm"):
        assert "small_trees" in names[1]
    everything, search = few.chosen((), SearchOptions(budget=1.0))
    assert list(everything) == list(few.families())
    assert search.budget == 1.0
    assert few.promised("small_trees") < usual.promised("small_trees")


def test_what_was_not_tried_is_named() -> None:
    wide = np.random.default_rng(0).normal(size=(400, 60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Portfolio, "budget", 0.0)
        front = frontier("auto", wide, Y, **QUICK)
    assert list(front.record.parameters) == ["linear"]
    assert "Not tried, to save time: " in front.summary


def test_auto_has_15_strengths_of_which_4_are_where_the_curve_bends() -> None:
    search = SearchOptions(families=["linear"])
    front = frontier("auto", X, Y, **QUICK | {"strengths": None}, search=search)
    values = [point.strength for point in front.points]
    assert len(set(values)) == 15
    assert set(STRENGTHS) < set(values)
