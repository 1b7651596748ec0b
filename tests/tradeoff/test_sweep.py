"""Values x seeds -> judged models: one by one or stacked, interrupted or not, the same."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import msgspec
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_sweep import table_of
from searching import arguments
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer

from metrifair import FairClassifier, FairRegressor, Frontier
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.frontier_parts import outcomes_of
from tests.one_split import frontier
from tests.seams.figures import Interval
from tests.seams.tradeoff import Job, Outcome, Point, RowsToTrain, content_text, sweep

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=160)
X = RNG.normal(size=(160, 3)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=160) > 1.5).astype(int)
T = X[:, 0] - X[:, 1] + RNG.normal(size=160)
OURS = FairClassifier(epochs=10, hidden=(4,), model="mlp")


class OneByOne(FairClassifier):
    """Not one of ours to the sweep, which fits it value by value."""


class Penalized(ClassifierMixin, BaseEstimator):
    """Logistic regression that takes groups and has nothing called strength."""

    def __init__(self, C: float = 1.0, random_state: Any = None) -> None:
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Penalized:
        assert len(sensitive_features) == len(X)
        self.model_ = LogisticRegression(C=self.C).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)


FOLDS = 2


def front(estimator: Any = OURS, x: Any = X, y: Any = Y, groups: Any = A, **more: Any) -> Frontier:
    return frontier(
        estimator,
        x,
        y,
        sensitive_features=groups,
        **arguments(**{"strengths": [0.0, 1.0], "folds": FOLDS, **more}),
    )


def alike(first: Outcome, second: Outcome, *, rel: float = 1e-9) -> None:
    """Equal figures, to rounding."""
    assert first.job == second.job
    one, other = first.point, second.point
    assert (one.accuracy, one.unfairness) == pytest.approx(
        (other.accuracy, other.unfairness), rel=rel
    )
    assert dict(one.more) == pytest.approx(dict(other.more), rel=1e-6)


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Every training of our own estimators, counted outside the ledger."""
    done: list[tuple[float, int]] = []
    real = sweep.fit_stack

    def counted(*args: Any, **named: Any) -> Any:
        models = real(*args, **named)
        done.extend((value, seed) for seed in named["seeds"] for value in named["strengths"])
        return models

    monkeypatch.setattr(sweep, "fit_stack", counted)
    return done


# --- a stack is its members
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "y"), [(FairClassifier, Y), (FairRegressor, T)], ids=["classes", "numbers"]
)
def test_a_stack_reaches_what_separate_fits_reach(kind: type[Any], y: Any) -> None:
    one_by_one = type(kind.__name__, (kind,), {})
    settings = {"model": "mlp", "epochs": 15, "hidden": (4,)}
    stacked, separate = (
        front(made(**settings), y=y, strengths=[0.0, 0.3, 3.0], seeds=[0, 4])
        for made in (kind, one_by_one)
    )
    assert len(outcomes_of(stacked)) == 6
    assert None not in (*stacked.models, *separate.models)
    for first, second in zip(outcomes_of(stacked), outcomes_of(separate), strict=True):
        alike(first, second)
        assert type(first.model) is kind
        assert type(second.model) is one_by_one
        assert (first.model.strength, first.model.random_state) == first.job[:2]


def test_outcomes_come_seed_by_seed_in_the_order_of_the_values() -> None:
    found = front(strengths=[2.0, 0.0, 1.0], seeds=[7, 3])
    assert [one.job[:2] for one in outcomes_of(found)] == [
        (v, s) for s in (7, 3) for v in (2.0, 0.0, 1.0)
    ]
    assert [(p.strength, p.seed) for p in found.points] == [
        one.job[:2] for one in outcomes_of(found)
    ]


def test_a_ledger_does_not_change_the_figures(tmp_path: Path) -> None:
    """Without one all seeds train at once, with one seed by seed."""
    for first, second in zip(
        outcomes_of(front(seeds=3)),
        outcomes_of(front(seeds=3, ledger=tmp_path / "runs.db")),
        strict=True,
    ):
        alike(first, second)


@pytest.mark.parametrize(
    ("backend", "jobs"), [("threading", 2), pytest.param("loky", 2, marks=pytest.mark.slow)]
)
def test_other_estimators_are_fitted_value_by_value_on_any_number_of_processes(
    backend: str, jobs: int
) -> None:
    alone = front(Penalized(), parameter="C", strengths=[0.001, 0.1, 10.0], seeds=2, n_jobs=1)
    with joblib.parallel_config(backend):
        spread = front(
            Penalized(), parameter="C", strengths=[0.001, 0.1, 10.0], seeds=2, n_jobs=jobs
        )
    assert table_of(outcomes_of(alone)) == table_of(outcomes_of(spread))
    assert [(model.C, model.random_state) for model in spread.models] == [
        one.job[:2] for one in outcomes_of(spread)
    ]
    assert len({point.more["log_loss"] for point in alone.points}) == 3


def test_an_estimator_without_the_parameter_is_refused() -> None:
    with pytest.raises(DataError) as refusal:
        front(Penalized())
    assert str(refusal.value) == (
        "Penalized has no parameter 'strength' that trades accuracy for fairness; pass "
        "FairClassifier(), or wrap it, "
        "as in BarycenterPostprocessor(Penalized()), or name another parameter with parameter=..."
    )


def test_an_argument_that_fit_does_not_take_is_named_before_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        Penalized, "__sklearn_clone__", lambda _: pytest.fail("work was begun"), raising=False
    )
    with pytest.raises(DataError) as refusal:
        front(Penalized(), parameter="C", sample_weight=np.ones(160))
    assert (
        str(refusal.value)
        == "Penalized.fit takes no sample_weight; leave it out, or use another method"
    )
    with pytest.raises(DataError, match=r"LogisticRegression\.fit takes no sensitive_features"):
        front(LogisticRegression(), parameter="C", strengths=[1.0])


class Lenient(Penalized):
    """Takes whatever it is given."""

    def fit(self, X: Any, y: Any, **more: Any) -> Penalized:
        assert set(more) == {"sensitive_features", "sample_weight"}
        return super().fit(X, y, sensitive_features=more["sensitive_features"])


def test_a_fit_that_takes_any_argument_is_given_all() -> None:
    assert (
        len(front(Lenient(), parameter="C", strengths=[1.0], sample_weight=np.ones(160)).models)
        == 1
    )


def test_whole_numbers_stay_whole() -> None:
    """Some parameters, such as epochs or a tree's depth, must be integers."""
    assert [model.epochs for model in front(parameter="epochs", strengths=[2, 3]).models] == [2, 3]


# --- failures
# ---------------------------------------------------------------------------------------------------

LOST = {"accuracy": 0.0, "unfairness": 1.0, "failed": True}


def check_lost(found: Frontier, place: int) -> None:
    lost = outcomes_of(found)[place]
    assert lost.model is lost.curves is None
    assert {name: getattr(lost.point, name) for name in LOST} == LOST
    assert (lost.point.strength, lost.point.seed) == lost.job[:2]
    others = [one for k, one in enumerate(outcomes_of(found)) if k != place]
    assert not any(one.point.failed for one in others)
    models = found.models
    assert [model is None for model in models] == [k == place for k in range(len(models))]
    assert lost.point not in found.pareto


@pytest.mark.parametrize("ledger", [False, True], ids=["", "ledger"])
def test_a_strength_that_diverges_is_a_failed_point_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ledger: bool
) -> None:
    real = sweep.fit_stack

    def diverging(*args: Any, **named: Any) -> Any:
        models = real(*args, **named)
        return [None if model.strength == 1.0 else model for model in models]

    monkeypatch.setattr(sweep, "fit_stack", diverging)
    more = {"ledger": tmp_path / "runs.db"} if ledger else {}
    for _ in range(1 + ledger):
        check_lost(front(strengths=[0.0, 1.0, 2.0], **more), 1)
    assert "1 failed" in repr(front(strengths=[0.0, 1.0, 2.0], **more))


def test_training_that_really_diverges_is_a_failed_point(refused: Refusals) -> None:
    found = front(FairClassifier(epochs=5, learning_rate=1e200, hidden=(4,), model="mlp"))
    assert all(point.failed for point in found.points)
    assert (found.area, found.pareto) == (0.0, ())
    assert "2 failed" in repr(found)
    with refused(DataError):
        found.select(max_unfairness=1.0)


def test_a_value_at_which_a_single_fit_diverges_is_a_failed_point() -> None:
    """What a stack says by None, a fit of its own says by an error."""
    check_lost(front(parameter="learning_rate", strengths=[1e-3, 1e200, 1e-2]), 1)


# --- what is finished is not done again
# -------------------------------------------------------------------------


def test_a_finished_run_trains_nothing_and_says_the_same(
    tmp_path: Path, trainings: list[Any]
) -> None:
    first = front(seeds=2, ledger=tmp_path / "runs.db")
    assert len(trainings) == 4 * FOLDS
    second = front(seeds=2, ledger=tmp_path / "runs.db")
    assert len(trainings) == 4 * FOLDS
    assert table_of(outcomes_of(first)) == table_of(outcomes_of(second))
    assert first.points == second.points
    assert [one.curves for one in outcomes_of(first)] == [one.curves for one in outcomes_of(second)]


@pytest.mark.parametrize(
    ("kind", "y"), [(FairClassifier, Y), (FairRegressor, T)], ids=["classes", "numbers"]
)
def test_models_from_a_ledger_predict_bit_equally(tmp_path: Path, kind: type[Any], y: Any) -> None:
    made = kind(epochs=10)
    frame = pd.DataFrame(X, columns=list("abc"))
    first, second = (front(made, x=frame, y=y, ledger=tmp_path / "runs.db") for _ in range(2))
    for one, again in zip(first.models, second.models, strict=True):
        assert again is not one
        assert again.get_params() == one.get_params()
        np.testing.assert_array_equal(again.predict(frame), one.predict(frame))
        if kind is FairClassifier:
            np.testing.assert_array_equal(again.predict_proba(frame), one.predict_proba(frame))


def test_models_of_the_users_own_module_come_back_from_a_ledger(tmp_path: Path) -> None:
    made = FairClassifier(epochs=5, model=torch.nn.Sequential(torch.nn.Linear(3, 1)))
    first, second = (front(made, ledger=tmp_path / "runs.db") for _ in range(2))
    np.testing.assert_array_equal(
        first.models[1].predict_proba(X), second.models[1].predict_proba(X)
    )


def test_a_metric_of_the_users_own_does_not_stop_a_ledger(
    tmp_path: Path, trainings: list[Any]
) -> None:
    """A model file contains no code; the figures can be kept all the same."""
    made = FairClassifier(epochs=5, metric=_difference, model="mlp")
    first, second = (front(made, ledger=tmp_path / "runs.db") for _ in range(2))
    assert first.points == second.points
    assert len(trainings) == 2 * FOLDS


def _difference(u: Any, v: Any) -> Any:
    return (u.mean(-1) - v.mean(-1)).square()


def test_only_missing_seeds_and_strengths_are_trained(tmp_path: Path, trainings: list[Any]) -> None:
    path = tmp_path / "runs.db"
    front(strengths=[0.0, 1.0], seeds=2, ledger=path)
    trainings.clear()
    found = front(strengths=[0.0, 0.5, 1, np.float64(2)], seeds=3, ledger=path)
    assert sorted(trainings) == sorted(
        [(0.5, 0), (2.0, 0), (0.5, 1), (2.0, 1), *((v, 2) for v in (0.0, 0.5, 1.0, 2.0))] * FOLDS
    )
    assert len(found.points) == 12
    for first, second in zip(
        outcomes_of(found),
        outcomes_of(front(strengths=[0.0, 0.5, 1.0, 2.0], seeds=3)),
        strict=True,
    ):
        alike(first, second)


def test_an_interrupted_run_keeps_the_stacks_that_were_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainings: list[Any]
) -> None:
    counted = sweep.fit_stack

    def stopping(*args: Any, **named: Any) -> Any:
        if named["seeds"] == [2]:
            raise KeyboardInterrupt
        return counted(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "fit_stack", stopping)
        with pytest.raises(KeyboardInterrupt):
            front(seeds=4, ledger=tmp_path / "runs.db")
    assert sorted({seed for _, seed in trainings}) == [0, 1]
    trainings.clear()
    front(seeds=4, ledger=tmp_path / "runs.db")
    # of the first fold, seeds 0 and 1 are there
    assert sorted(Counter(seed for _, seed in trainings).items()) == [
        (0, 2 * (FOLDS - 1)),
        (1, 2 * (FOLDS - 1)),
        (2, 2 * FOLDS),
        (3, 2 * FOLDS),
    ]


def test_other_estimators_are_noted_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[float] = []
    real = Penalized.fit

    def counted(self: Any, *args: Any, **named: Any) -> Any:
        if self.C == 10 and not fits.count(10):
            fits.append(10)
            raise KeyboardInterrupt
        fits.append(self.C)
        return real(self, *args, **named)

    monkeypatch.setattr(Penalized, "fit", counted)
    run = {"parameter": "C", "strengths": [0.1, 1.0, 10.0, 100.0], "ledger": tmp_path / "runs.db"}
    with pytest.raises(KeyboardInterrupt):
        front(Penalized(), **run)
    front(Penalized(), **run)
    assert fits == [0.1, 1.0, 10, 10.0, 100.0, *[0.1, 1.0, 10.0, 100.0] * (FOLDS - 1)]


# --- other data or settings make another run
# --------------------------------------------------------------------

FRAME = pd.DataFrame(X, columns=list("abc"))
WEIGHT, STRATA = np.ones(160), np.arange(160) % 2


def _moved(values: Any) -> Any:
    changed = np.array(values, copy=True)
    changed.flat[37] += 1 if changed.dtype.kind == "i" else 1e-12
    return changed


@pytest.mark.extended
@pytest.mark.parametrize(
    "changed",
    [
        {"x": FRAME + np.eye(160, 3) * 1e-12},
        {"x": FRAME.astype(np.float32)},
        {"x": FRAME.rename(columns={"a": "A"})},
        {"x": FRAME[["b", "a", "c"]]},
        {"y": np.where(np.arange(160) == 5, 1 - Y, Y)},
        {"y": Y.astype(bool)},
        {"groups": pd.Series(np.where(np.arange(160) == 5, 1 - A, A), name="sex")},
        {"groups": pd.Series(A, name="gender")},
        {"groups": pd.Series(A.astype(str), name="sex")},
        {"sample_weight": _moved(WEIGHT)},
        {"sample_weight": None},
        {"control_features": 1 - STRATA},
        {"control_features": None},
        {"random_state": 1},
        {"test": 0.3},
        {"criterion": "equal_opportunity", "control_features": None},
        {"estimator": FairClassifier(epochs=4, hidden=(3,), model="mlp")},
        {"estimator": FairClassifier(epochs=3, hidden=(2,), model="mlp")},
        {"estimator": FairClassifier(epochs=3, hidden=(3,), metric="cramer", model="mlp")},
        {"estimator": FairClassifier(epochs=3, hidden=(3,), learning_rate=0.004, model="mlp")},
    ],
    ids="-".join,
)
@pytest.mark.filterwarnings("ignore:.*models are constant")  # after three epochs
def test_any_other_input_is_another_run(
    tmp_path: Path, trainings: list[Any], changed: dict[str, Any]
) -> None:
    base = {
        "estimator": FairClassifier(epochs=3, hidden=(3,), model="mlp"),
        "x": FRAME,
        "groups": pd.Series(A, name="sex"),
        "sample_weight": WEIGHT,
        "control_features": STRATA,
        "strengths": [1.0],
        "ledger": tmp_path / "runs.db",
    }
    front(**base)
    front(**(base | changed))
    assert len(trainings) == 2 * FOLDS
    front(**base)
    assert len(trainings) == 2 * FOLDS


def share_of_ones(y: Any, decided: Any) -> float:
    return float(np.mean(decided))


def share_of_zeros(y: Any, decided: Any) -> float:
    return 1.0 - float(np.mean(decided))


def test_two_scorers_never_share_a_run(tmp_path: Path) -> None:
    """``make_scorer(lambda ...)`` prints the same for any function: the second run had the
    figures of the first.
    """
    run = {
        "estimator": Penalized(),
        "parameter": "C",
        "strengths": [1.0],
        "ledger": tmp_path / "runs.db",
    }
    first, second = (
        front(**run, utility=make_scorer(one)) for one in (share_of_ones, share_of_zeros)
    )
    ones, zeros = first.points[0].more["share_of_ones"], second.points[0].more["share_of_zeros"]
    assert ones == pytest.approx(1 - zeros)


def test_functions_of_one_name_and_other_code_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = sys.modules[__name__]
    before = content_text(share_of_ones)
    assert content_text(share_of_ones) == before
    other = share_of_zeros
    monkeypatch.setattr(other, "__name__", "share_of_ones")
    monkeypatch.setattr(other, "__qualname__", "share_of_ones")
    monkeypatch.setattr(module, "share_of_ones", other)
    assert content_text(other) != before


def test_another_contrast_is_another_run(tmp_path: Path) -> None:
    """Three groups, an estimator without a contrast of its own: the pairs' figures are not
    those of the rest.
    """
    groups = np.arange(160) % 3
    run = {"parameter": "C", "strengths": [1.0], "groups": groups}
    kept = [
        front(Penalized(), **run, contrast=contrast, ledger=tmp_path / "runs.db")
        for contrast in ("pairs", "rest")
    ]
    fresh = [front(Penalized(), **run, contrast=contrast) for contrast in ("pairs", "rest")]
    assert [one.points for one in kept] == [one.points for one in fresh]


class Remembering(Penalized):
    def __init__(self, C: float = 1.0, prior: Any = None) -> None:
        super().__init__(C)
        self.prior = prior

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Any:
        super().fit(X, y, sensitive_features=sensitive_features)
        self.model_.intercept_ = self.model_.intercept_ + self.prior.sum()
        return self


def test_a_long_parameter_is_named_in_full(tmp_path: Path) -> None:
    """NumPy prints 2,000 numbers as six."""
    priors = [np.zeros(2000), np.zeros(2000)]
    priors[1][1000] = 1.0
    run = {"parameter": "C", "strengths": [1.0], "ledger": tmp_path / "runs.db"}
    first, second = (front(Remembering(prior=prior), **run) for prior in priors)
    assert first.points != second.points


@pytest.mark.parametrize("changed", [{"verbose": True}, {"random_state": 5}, {"strength": 9.0}])
def test_what_cannot_change_a_job_is_no_other_run(
    tmp_path: Path, trainings: list[Any], changed: dict[str, Any]
) -> None:
    front(ledger=tmp_path / "runs.db")
    front(
        FairClassifier(model="mlp", epochs=10, hidden=(4,), **changed), ledger=tmp_path / "runs.db"
    )
    assert len(trainings) == 2 * FOLDS


def _materials() -> Iterator[RowsToTrain]:
    parts = {
        "X": X,
        "y": Y,
        "sensitive_features": A,
        "control_features": None,
        "sample_weight": None,
        "rows": np.arange(100),
    }
    yield RowsToTrain(**parts)
    for name, value in (
        ("X", _moved(X)),
        ("y", _moved(Y)),
        ("sensitive_features", _moved(A)),
        ("control_features", A),
        ("sample_weight", A),
        ("rows", np.arange(99)),
        ("rows", np.arange(1, 101)),
    ):
        yield RowsToTrain(**(parts | {name: value}))


def test_every_input_is_in_the_name_of_the_material() -> None:
    names = [
        material.fingerprint(*more)
        for material in _materials()
        for more in ((), ("epochs=3",), ("epochs=4",))
    ]
    assert len(set(names)) == len(names)


def test_fit_gets_the_rows_of_the_material_and_only_what_is_given() -> None:
    rows = np.array([4, 9, 17])
    found = RowsToTrain(FRAME, Y, A, None, None, rows).arguments()
    assert list(found) == ["X", "y", "sensitive_features"]
    # rows that belong together have equal labels
    assert found["X"].equals(FRAME.iloc[rows].reset_index(drop=True))
    assert found["y"].tolist() == Y[rows].tolist()


# --- records
# ----------------------------------------------------------------------------------------------------

numbers = st.floats(-10, 10)
figures = st.dictionaries(st.text(max_size=5), numbers, max_size=3)
whole_points = st.builds(
    Point,
    strength=numbers,
    seed=st.integers(0, 9),
    accuracy=numbers,
    unfairness=numbers,
    decision_unfairness=st.none() | numbers,
    more=figures,
    intervals=st.dictionaries(
        st.text(max_size=5), st.builds(Interval, numbers, numbers), max_size=3
    ),
    failed=st.booleans(),
)


@settings(max_examples=50, deadline=None)
@given(whole_points)
def test_a_point_survives_json(point: Point) -> None:
    assert msgspec.convert(json.loads(json.dumps(asdict(point))), Point) == point


def test_jobs_are_named_by_all_digits() -> None:
    assert Job(0.1 + 0.2, 3).name == "0.30000000000000004 seed 3"
