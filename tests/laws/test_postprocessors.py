"""Laws of every post-processor: a class that is added, or a user's own, is tested by itself."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import metrifair
from metrifair import FairClassifier, FairRegressor
from metrifair.errors import DataError
from metrifair.postprocessing import Calibration, ScorePostprocessor
from tests.expected_errors import Refusals
from tests.seams.postprocessing import Postprocessor

GROUPS = np.array(["f", "m"] * 30)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) + (GROUPS == "m")[:, None]
TARGET = X @ np.array([1.0, -0.5, 2.0]) + 4 * rng.normal(size=60)
BINARY = (np.median(TARGET) < TARGET).astype(int)
NAMED = np.where(BINARY == 1, "yes", "no")


class EqualMeans(ScorePostprocessor):
    """A class of a user's own: groups of equal means."""

    def calibrate(self, rows: Calibration) -> None:
        means = [
            np.average(rows.score[rows.group == code], weights=rows.weight[rows.group == code])
            for code in range(len(self.groups_))
        ]
        shift = np.average(rows.score, weights=rows.weight) - np.array(means)
        self.shift_ = (1 - self.tolerance) * shift

    def adjust(self, scores: Any, groups: Any) -> Any:
        moved = scores + np.append(self.shift_, 0.0)[groups]
        return moved if is_regressor(self) else moved.clip(0, 1)

    def state(self) -> Any:
        return {"shift": self.shift_}

    def restore(self, arrays: Any) -> None:
        self.shift_ = arrays.take("shift", (len(self.groups_),))


def subclasses(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def post_processors() -> list[type]:
    """All classes that can be constructed, of all modules of the package, and this file's."""
    for room in ("postprocessing", "baselines"):
        folder = Path(metrifair.__file__).parent / room
        for module in pkgutil.iter_modules([str(folder)]):
            import_module(f"metrifair.{room}.{module.name}")
    families = (ScorePostprocessor, "PublishedPostprocessor")
    return sorted(
        (
            kind
            for kind in set(subclasses(Postprocessor))
            if kind.__name__ not in families
            and kind is not ScorePostprocessor
            and kind.__module__.startswith(("metrifair.", __name__))
        ),
        key=lambda kind: kind.__name__,
    )


KINDS = post_processors()
SCORE_KINDS = [kind for kind in KINDS if issubclass(kind, ScorePostprocessor)]


def of_class(kind: type, base: Any, **parameters: Any) -> Any:
    """A post-processor of the base; None if the class takes no base of that kind."""
    model: Any = kind(base, **parameters)
    y = TARGET if is_regressor(base) else BINARY
    try:
        return clone(model).fit(X, y, sensitive_features=GROUPS)
    except DataError as error:
        if "must be a scikit-learn" not in str(error):
            raise
        return None


def test_every_class_is_among_them() -> None:
    names = {kind.__name__ for kind in KINDS}
    assert {"BarycenterPostprocessor", "ThresholdPostprocessor", "EqualMeans"} <= names
    assert {"ChzhenPostprocessor", "XianPostprocessor"} <= names


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [BINARY, NAMED, BINARY == 1], ids=["0/1", "text", "boolean"])
def test_a_wrapped_classifier_predicts_labels(kind: type, labels: Any) -> None:
    if of_class(kind, LogisticRegression()) is None:
        assert of_class(kind, LinearRegression()) is not None
        return
    model: Any = kind(LogisticRegression(), random_state=0)
    predicted = model.fit(X, labels, sensitive_features=GROUPS).predict(
        X, sensitive_features=GROUPS
    )
    assert predicted.dtype == np.asarray(labels).dtype
    assert set(predicted.tolist()) == set(np.unique(labels).tolist())
    if hasattr(model, "predict_proba"):
        chances = model.predict_proba(X, sensitive_features=GROUPS)
        np.testing.assert_allclose(chances.sum(1), 1)
        assert ((chances >= 0) & (chances <= 1)).all()
        later = chances[:, 1] > 0.5
        assert (predicted[later] == model.classes_[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrapped_regressor_predicts_numbers(kind: type) -> None:
    model = of_class(kind, LinearRegression())
    if model is None:
        assert of_class(kind, LogisticRegression()) is not None
        return
    assert len(np.unique(model.predict(X, sensitive_features=GROUPS))) > 2
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("kind", SCORE_KINDS)
@pytest.mark.parametrize("numeric", [False, True])
def test_a_saved_model_predicts_the_same(kind: type, numeric: bool, tmp_path: Path) -> None:
    base: Any = FairRegressor if numeric else FairClassifier
    model = of_class(kind, base(0.0, model="linear"), random_state=0)
    if model is None:
        assert numeric
        return
    model.save(tmp_path / "model")
    again = metrifair.load(tmp_path / "model")
    assert type(again) is kind
    assert (
        again.predict(X, sensitive_features=GROUPS) == model.predict(X, sensitive_features=GROUPS)
    ).all()


@pytest.mark.parametrize("kind", SCORE_KINDS)
def test_a_path_of_tolerances_is_single_fits(kind: type) -> None:
    base = LogisticRegression()
    path = kind(base, random_state=0).fit_path(  # type: ignore[attr-defined]
        X, BINARY, sensitive_features=GROUPS, tolerances=[0.0, 0.3]
    )
    for model, tolerance in zip(path, (0.0, 0.3), strict=True):
        single = of_class(kind, base, tolerance=tolerance, random_state=0)
        first = model.predict(X, sensitive_features=GROUPS)
        second = single.predict(X, sensitive_features=GROUPS)
        assert (first == second).all()


@pytest.mark.parametrize("kind", SCORE_KINDS)
def test_a_class_predicts_without_groups_or_refuses(kind: type) -> None:
    model: Any = kind(LogisticRegression(), needs_group=False, random_state=0)
    if inspect.getattr_static(kind, "adjust_blind") is ScorePostprocessor.adjust_blind:
        with pytest.raises(DataError, match="needs_group"):
            model.fit(X, NAMED, sensitive_features=GROUPS)
        return
    predicted = model.fit(X, NAMED, sensitive_features=GROUPS).predict(X)
    assert set(predicted.tolist()) <= {"no", "yes"}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda scores: 3 * scores, "probabilities from 0 to 1"),
        (lambda scores: scores[:-1], "one finite number"),
        (lambda scores: scores * np.nan, "one finite number"),
        (lambda scores: np.stack([scores, scores], 1), "one finite number"),
    ],
)
def test_wrong_scores_of_a_class_are_refused(returned: Any, message: str) -> None:
    class Wrong(ScorePostprocessor):
        def adjust(self, scores: Any, groups: Any) -> Any:
            return returned(scores)

    model = Wrong(LogisticRegression()).fit(X, NAMED, sensitive_features=GROUPS)
    for predict in (model.predict, model.predict_proba):
        with pytest.raises(DataError, match=message):
            predict(X, sensitive_features=GROUPS)


def test_a_class_without_state_is_not_saved(tmp_path: Path, refused: Refusals) -> None:
    class Plain(ScorePostprocessor):
        def adjust(self, scores: Any, groups: Any) -> Any:
            return scores

    model = Plain(FairClassifier(0.0, model="linear")).fit(X, NAMED, sensitive_features=GROUPS)
    with refused(DataError):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_equal_means_are_equal() -> None:
    model = EqualMeans(LinearRegression(), folds=1).fit(X, TARGET, sensitive_features=GROUPS)
    predicted = model.predict(X, sensitive_features=GROUPS)
    assert np.isclose(predicted[GROUPS == "f"].mean(), predicted[GROUPS == "m"].mean())
    plain = LinearRegression().fit(X, TARGET).predict(X)
    assert abs(plain[GROUPS == "f"].mean() - plain[GROUPS == "m"].mean()) > 0.5
