"""On real data, whatever limit is asked for: no chosen model is worse than a constant without
being marked.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from metrifair import FairClassifier, FairLGBMClassifier, FairLGBMRegressor, FairRegressor, datasets
from metrifair.errors import DataError, MissingExtra
from tests.frontier_parts import source_of
from tests.one_split import frontier
from tests.raw_data import FOLDER, require_raw_data

STRENGTHS = [0.0, 0.1, 1.0, 10.0, 100.0]
MOST_ROWS = 4_000


def check_choices(name: str, family: str) -> None:
    """Every limit that some model keeps, by several utilities; the constant is measured anew,
    by hand.
    """
    if name != "mortgage":
        require_raw_data()
    try:
        data = datasets.load(name, data_home=FOLDER if FOLDER.is_dir() else None)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    classes = data.task == "classification"
    if family == "boosting":
        pytest.importorskip("lightgbm")
        kind: Any = FairLGBMClassifier if classes else FairLGBMRegressor
        made = kind(n_estimators=30, n_jobs=1, verbosity=-1)
    else:
        made = (FairClassifier if classes else FairRegressor)(epochs=40)
    kept = np.random.default_rng(0).permutation(len(data.y))[:MOST_ROWS]
    X, y, groups = (np.asarray(part)[kept] for part in (data.X, data.y, data.sensitive_features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of training, as that it has not converged
        front = frontier(made, X, y, sensitive_features=groups, strengths=STRENGTHS, random_state=0)
    label = source_of(front).part.labels
    if classes:
        constant = {"accuracy": float((label == np.bincount(label).argmax()).mean()), "auc": 0.5}
    else:
        squares = (label - label.mean()) ** 2
        constant = {
            "r2": 1 - float(squares.mean() / label.var()),
            "mean_squared_error": -float(squares.mean()),
        }
    assert front.constant is not None
    for utility, reached in constant.items():
        sign = -1 if utility == "mean_squared_error" else 1
        value = front.constant.figure(utility)
        assert value is not None
        assert sign * value == pytest.approx(reached)
        gaps = {point.unfairness for point in front.points}
        for limit in sorted(gap for gap in gaps if gap >= front.record.noise):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                front.select(max_unfairness=limit, utility=utility)
            assert front.chosen is not None
            own, marks = front.chosen.figure(utility), front.chosen.marks
            assert own is not None
            key = "accuracy" if utility == "r2" else utility
            assert sign * own > reached or (key in marks and told), (utility, limit)
    with pytest.raises(DataError, match="to be verified with these"):
        front.select(max_unfairness=0.0)


@pytest.mark.extended
@pytest.mark.parametrize("family", ["networks", "boosting"])
@pytest.mark.parametrize("name", ["mortgage", "student-math"])
def test_no_chosen_model_is_worse_than_a_constant_in_silence(name: str, family: str) -> None:
    check_choices(name, family)


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize("family", ["networks", "boosting"])
@pytest.mark.parametrize("name", datasets.names())
def test_nor_on_any_other_data(name: str, family: str) -> None:
    check_choices(name, family)
