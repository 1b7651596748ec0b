"""Rows that bear labels must belong together; rows that bear none are taken as they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from metrifair import AuditOptions, FairClassifier, FairLGBMClassifier, audit, unfairness
from metrifair.baselines import ReweighingClassifier, XianPostprocessor
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.one_split import frontier
from tests.seams.problem import renumbered, same_rows

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

_N = 40
_LABELS = np.random.default_rng(0).permutation(_N) + 100
_X = pd.DataFrame(np.random.default_rng(1).normal(size=(_N, 2)), index=_LABELS, columns=["u", "v"])
_Y = pd.Series(np.arange(_N) % 2, index=_LABELS)
_A = pd.Series(np.where(np.arange(_N) % 4 < 2, "a", "b"), index=_LABELS)

TAKERS: dict[str, Any] = {
    "unfairness": lambda y, a: unfairness(y, _X["u"], sensitive_features=a),
    "audit": lambda y, a: audit(
        y, _X["u"], sensitive_features=a, options=AuditOptions(resamples=0, permutations=0)
    ),
    "fit": lambda y, a: FairClassifier(epochs=1, random_state=0, model="mlp").fit(
        _X, y, sensitive_features=a
    ),
    "partial_fit": lambda y, a: FairClassifier(model="mlp").partial_fit(
        _X, y, sensitive_features=a
    ),
    "frontier": lambda y, a: frontier(
        FairClassifier(epochs=1, random_state=0, model="mlp"),
        _X,
        y,
        sensitive_features=a,
        strengths=[0, 1],
        random_state=0,
    ),
    "booster": lambda y, a: FairLGBMClassifier(n_estimators=1, verbose=-1).fit(
        _X, y, sensitive_features=a
    ),
    "baseline": lambda y, a: ReweighingClassifier().fit(_X, y, sensitive_features=a),
    "post-processor": lambda y, a: XianPostprocessor().fit(_X, y, sensitive_features=a),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_rows_in_another_order_are_refused_by_all(taker: str, refused: Refusals) -> None:
    with refused(DataError):
        TAKERS[taker](_Y, _A.sort_index())
    with refused(DataError):
        TAKERS[taker](_Y.set_axis(_LABELS + 1000), _A)


FIGURES: dict[str, Any] = {
    "unfairness": lambda found: found,
    "audit": lambda found: [one.value for one in found.findings],
    "fit": lambda model: model.predict_proba(_X).tolist(),
    "frontier": lambda front: [(point.unfairness, point.accuracy) for point in front.points],
}


@pytest.mark.parametrize("taker", FIGURES)
def test_arrays_and_numbered_rows_are_taken_by_position(taker: str) -> None:
    """Not by the labels of the table beside them, in whose order they would be other rows."""

    def figures(y: Any, a: Any) -> Any:
        return FIGURES[taker](TAKERS[taker](y, a))

    labeled = figures(_Y, _A)
    assert figures(_Y.to_numpy(), _A.tolist()) == labeled
    assert figures(_Y.reset_index(drop=True), pl.Series(_A.to_numpy())) == labeled
    in_order = np.argsort(_LABELS)
    assert figures(_Y.to_numpy()[in_order], _A.to_numpy()[in_order]) != labeled


def test_every_two_tables_are_compared(refused: Refusals) -> None:
    frame, other = pd.DataFrame({"u": [1, 2]}), pd.Series([1, 2], index=["a", "b"])
    same_rows(X=frame, y=other, weight=None)
    with refused(DataError):
        same_rows(X=frame, y=other, weight=other[::-1])
    with refused(DataError):
        same_rows(X=frame, groups={"sex": frame["u"], "age": frame["u"][::-1]})
    pairs = pd.MultiIndex.from_tuples([(1, 2), (3, 4)])
    with refused(DataError):
        same_rows(y=other, weight=pd.Series([1, 2], index=pairs))


def test_lengths_are_looked_at_before_all_else(refused: Refusals) -> None:
    with refused(DataError):
        unfairness(None, [0.1] * 5, sensitive_features=[["a"] * 5, ["b"] * 5])
    with refused(DataError):
        unfairness(None, [0.1] * 5, sensitive_features=["a"])


def test_renumbered_rows_have_no_labels_of_their_own() -> None:
    assert renumbered(_Y).index.tolist() == list(range(_N))
    array = np.arange(3)
    assert renumbered(array) is array
