"""How a frontier searches: options are checked when they are made, and seeds decide what a run
repeats.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import signature
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from metrifair import DataError, FairClassifier, SearchOptions
from tests.expected_errors import Refusals
from tests.one_split import frontier

RNG = np.random.default_rng(0)
A = RNG.integers(0, 2, 600)
X = RNG.normal(size=(600, 2)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=600) > 1).astype(int)
FITTED = LogisticRegression().fit(X, Y)

# Values that mean something, and values that do not, of every option.
OPTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "seeds": (
        [1, 3, [4, 2], (7,), np.arange(2)],
        [0, -1, True, 2.5, "2", [], [0.5], [True], [-1], None],
    ),
    "budget": ([None, 1, 0.5, np.float64(60)], [0, -1, True, "60", inf, nan]),
    "families": ([None, ["linear"], ("stack", "network")], [[], "linear", [1], {"linear": 1}]),
    "needs_group": ([True, False], [1, None, "yes"]),
    "tolerances": (
        [None, [0], (0.5, 1.0), np.array([0.1])],
        [[], 0.5, "auto", [nan], [inf], [-0.1], ["0.5"]],
    ),
    "metric": (["energy", "kolmogorov"], []),  # the estimator decides
    "contrast": (["pairs", "rest"], ["pair", None, 1]),
    "continuous": ([None, "auto", True, False, ["age"]], []),  # the columns decide
    "n_jobs": ([None, 1, -1, np.int64(2)], [0, 1.0, "2"]),
    "devices": ([None, ["cpu"], ["cpu", "cpu"]], [[], "cpu", ["quantum"], 3]),
    "ledger": ([None, "runs.db", Path("runs.db")], [3, ["runs.db"], True]),
}


def test_every_option_is_in_the_table_and_has_a_default() -> None:
    assert [field.name for field in fields(SearchOptions)] == list(OPTIONS)
    assert all(field.default is not MISSING for field in fields(SearchOptions))


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_means_nothing_is_refused_by_its_name(name: str) -> None:
    good, bad = OPTIONS[name]
    for value in good:
        assert getattr(SearchOptions(**{name: value}), name) is value
    for value in bad:
        with pytest.raises(DataError, match=rf"^(device in )?{name} must |^device must be"):
            SearchOptions(**{name: value})


def test_seeds_are_counted_or_listed_each_once() -> None:
    assert SearchOptions(seeds=3).seed_values == [0, 1, 2]
    assert SearchOptions(seeds=[5, 1, 5]).seed_values == [5, 1]


def test_a_frontier_has_few_parameters() -> None:
    assert len(signature(frontier).parameters) <= 16
    assert not {field.name for field in fields(SearchOptions)} & set(signature(frontier).parameters)


def test_repeated_strengths_are_trained_once_in_their_order() -> None:
    fair = FairClassifier(model="linear")
    front = frontier(
        fair, X, Y, sensitive_features=A, strengths=[1, 0, 1.0, np.float64(0)], random_state=0
    )
    assert [point.strength for point in front.points] == [1, 0]


def test_without_a_seed_splits_differ_and_the_recorded_seed_repeats_one() -> None:
    runs = [frontier([FITTED], X, Y, sensitive_features=A) for _ in range(3)]
    assert (
        len({run.record.provenance.seed for run in runs})
        == len({run.points[0].accuracy for run in runs})
        == 3
    )
    again = frontier(
        [FITTED], X, Y, sensitive_features=A, random_state=runs[0].record.provenance.seed
    )
    assert again.points == runs[0].points
    drawn = [
        frontier([FITTED], X, Y, sensitive_features=A, random_state=np.random.default_rng(5))
        for _ in range(2)
    ]
    assert drawn[0].points == drawn[1].points
    assert drawn[0].record.provenance.seed == drawn[1].record.provenance.seed


def test_the_call_shows_the_search_without_folders(tmp_path: Path) -> None:
    search = SearchOptions(seeds=2, ledger=tmp_path / "runs.db")
    fair = FairClassifier(model="linear")
    front = frontier(fair, X, Y, sensitive_features=A, strengths=[0], random_state=1, search=search)
    assert front.record.provenance.call == (
        "frontier(FairClassifier(), ..., ..., sensitive_features=..., strengths=[0], "
        "test=0.25, search=SearchOptions(seeds=2, ledger='runs.db'))"
    )
    assert front.record.provenance.seed == 1


def test_title_and_metadata_belong_to_the_page(tmp_path: Path) -> None:
    front = frontier([FITTED], X, Y, sensitive_features=A, random_state=0)
    front.to_html(tmp_path / "page.html", title="Loans of May", about={"source": "branch ledger"})
    page = (tmp_path / "page.html").read_text()
    assert "Loans of May" in page
    assert "branch ledger" in page
    assert (front.record.provenance.title, front.record.provenance.about) == ("", {})
    with pytest.raises(DataError, match=r"^about must be"):
        front.to_html(tmp_path / "page.html", about=["branch ledger"])


@pytest.mark.parametrize(
    "estimator",
    [
        "text",
        None,
        3,
        FairClassifier,
        ["text"],
        {"linear": "text"},
        [FITTED, "text"],
        [FairClassifier(model="mlp"), FairClassifier],
    ],
    ids=str,
)
def test_what_is_no_estimator_is_refused_with_what_may_be_one(
    estimator: Any, refused: Refusals
) -> None:
    with refused(DataError):
        frontier(estimator, X, Y, sensitive_features=A)
