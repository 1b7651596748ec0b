"""The whole trade-off: who sees which rows, which strengths are tried, which model is chosen,
and what is proven.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from metrifair import FairClassifier, Frontier, SearchOptions
from metrifair.criteria import criterion_named
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from tests.expected_errors import Refusals
from tests.frontier_parts import outcomes_of
from tests.one_split import frontier
from tests.seams.figures import Curves, Interval, dkw_radius
from tests.seams.tradeoff import (
    FrontierRecord,
    Job,
    Outcome,
    Point,
    TradeOff,
    data_set,
    make_point,
    predict,
    score_curves,
)
from tests.seams.tradeoff import (
    frontier as sweeping,
)
from tests.seams.wording import frontier_note_text as note_text

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
N = 200
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.5).astype(int)
T = X[:, 0] - X[:, 1] + RNG.normal(size=N)
PARITY = criterion_named("statistical_parity")


class Numbered(ClassifierMixin, BaseEstimator):
    """Remembers the rows it is shown, whose numbers stand in the first column."""

    fitted: ClassVar[list[tuple[float, tuple[int, ...]]]] = []
    judged: ClassVar[list[tuple[int, ...]]] = []

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None
    ) -> Numbered:
        rows = X[:, 0].astype(int)
        assert (y == Y[rows]).all()
        assert (sensitive_features == A[rows]).all()
        assert sample_weight is None or (sample_weight == rows).all()
        self.fitted.append((self.strength, tuple(rows)))
        return self

    def predict(self, X: Any) -> Any:
        self.judged.append(tuple(X[:, 0].astype(int)))
        return (X[:, 1] > 0.5).astype(int)


# --- who sees which rows
# ----------------------------------------------------------------------------------------


def test_seeds_change_models_and_not_the_split() -> None:
    front = frontier(
        FairClassifier(epochs=5, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(seeds=[1, 2]),
    )
    again = frontier(
        FairClassifier(epochs=5, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(seeds=[2]),
    )
    assert front.points[0].more["log_loss"] != front.points[1].more["log_loss"]
    assert again.points[0].more["log_loss"] == pytest.approx(front.points[1].more["log_loss"])
    assert [model.random_state for model in front.models] == [1, 2]


@pytest.mark.parametrize("table", ["pandas", "polars", "lists"])
def test_any_kind_of_table_gives_the_same_points(table: str) -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    x, y, groups = {
        "pandas": (frame.set_index(np.arange(N) + 1000), pd.Series(Y), pd.Series(A)),
        "polars": (
            pl.DataFrame({name: X[:, k] for k, name in enumerate("abc")}),
            pl.Series(Y),
            pl.Series(A),
        ),
        "lists": (X.tolist(), Y.tolist(), A.tolist()),
    }[table]
    made = FairClassifier(epochs=3, model="mlp")
    found = frontier(made, x, y, sensitive_features=groups, strengths=[0, 1], random_state=0)
    assert (
        found.points
        == frontier(made, X, Y, sensitive_features=A, strengths=[0, 1], random_state=0).points
    )


def test_groups_can_be_a_dictionary_of_attributes() -> None:
    """As for FairClassifier.fit."""
    made = FairClassifier(epochs=3, model="mlp")
    found = frontier(made, X, Y, sensitive_features={"sex": A}, strengths=[1.0], random_state=0)
    assert (
        found.points
        == frontier(made, X, Y, sensitive_features=A, strengths=[1.0], random_state=0).points
    )


@pytest.mark.parametrize("name", ["X", "sample_weight"])
@pytest.mark.parametrize("rows", [N - 60, N + 60])
def test_a_table_of_another_length_is_refused(name: str, rows: int) -> None:
    given: dict[str, Any] = {"X": X, "sample_weight": np.ones(N)}
    given[name] = np.resize(given[name], (rows, *given[name].shape[1:]))
    with pytest.raises(DataError, match=f"the same length.*{name} {rows}"):
        frontier(
            FairClassifier(epochs=2, model="mlp"),
            y=Y,
            sensitive_features=A,
            strengths=[0],
            random_state=0,
            **given,
        )


# --- models that are fitted already
# -----------------------------------------------------------------------------


def test_no_models_at_all_are_refused() -> None:
    with pytest.raises(DataError):
        frontier([], X, Y, sensitive_features=A, random_state=0)


# --- strengths
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strengths", [[-5, 0], ["x", 0], [float("nan")], [float("inf")], [], "all"]
)
def test_strengths_that_are_none_are_refused(strengths: Any, refused: Refusals) -> None:
    with refused(DataError):
        frontier(
            FairClassifier(model="mlp"),
            X,
            Y,
            sensitive_features=A,
            strengths=strengths,
            random_state=0,
        )


def test_strengths_may_be_an_array() -> None:
    front = frontier(
        FairClassifier(epochs=2, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=np.array([0, 1]),
        random_state=0,
    )
    assert [point.strength for point in front.points] == [0.0, 1.0]


# --- the same question, the same number
# --------------------------------------------------------------------------


# --- weights
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "several", "numbers"])
def test_a_row_of_weight_two_counts_like_two_rows(kind: str) -> None:
    """In every figure of a model; what is proven does not hold for weighted samples, so there
    is no interval.
    """
    y: Any = {"classes": Y, "several": np.digitize(X.sum(1), [0.5, 2.5]), "numbers": T}[kind]
    model = (LinearRegression() if kind == "numbers" else LogisticRegression(max_iter=500)).fit(
        X, y
    )
    weight = 1 + np.random.default_rng(0).integers(3, size=N)
    rows = np.repeat(np.arange(N), weight)
    options: dict[str, Any] = {
        "regression": kind == "numbers",
        "criterion": PARITY,
        "contrast": "pairs",
    }
    weighted = data_set(X, y, A, None, sample_weight=weight, **options).held_out(np.arange(N))
    repeated = data_set(X[rows], y[rows], A[rows], None, **options).held_out(np.arange(len(rows)))
    one, other = (
        make_point(predict(model, part), part, strength=0.0, seed=0)
        for part in (weighted, repeated)
    )
    for name in ("accuracy", "unfairness", "decision_unfairness"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))
    assert dict(one.more) == pytest.approx(dict(other.more))
    assert (bool(one.intervals), bool(other.intervals)) == (False, True)
    first, second = (score_curves(predict(model, part), part) for part in (weighted, repeated))
    for group in ("0", "1"):
        assert first.cumulative[group] == pytest.approx(second.cumulative[group], abs=1e-4)


# few rows and epochs: no better than a constant


def test_equal_weights_are_none_and_rows_without_weight_are_not_there() -> None:
    model = LogisticRegression().fit(X, Y)
    plain = frontier([model], X, Y, sensitive_features=A, random_state=0)
    assert (
        frontier(
            [model], X, Y, sensitive_features=A, sample_weight=np.full(N, 2.0), random_state=0
        ).points
        == plain.points
    )
    more = (
        np.concatenate([X, 100 * np.ones((30, 3))]),
        np.append(Y, np.zeros(30, int)),
        np.append(A, np.zeros(30, int)),
    )
    weight = np.append(np.ones(N), np.zeros(30))
    without = frontier(
        [model], *more[:2], sensitive_features=more[2], sample_weight=weight, random_state=0
    )
    assert without.points == plain.points


# --- groups that are too small
# -----------------------------------------------------------------------------------


def test_rows_that_lack_a_group_are_refused_before_anything_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(TooFewSamples, match="the held-out data have"):
        frontier(
            FairClassifier(model="mlp"), X, Y, sensitive_features=np.arange(N) == 0, random_state=0
        )


# --- choosing
# ---------------------------------------------------------------------------------------------------


def made(
    *figures: tuple[float, float], unfairness_of: str = "scores", n: int = 2000, **more: Any
) -> Frontier:
    """Models called 0, 1, ...

    with these (unfairness, accuracy) on validation data, and quite others on test data.
    """
    radius = 2 * dkw_radius(n)
    outcomes = []
    for k, (gap, accuracy) in enumerate(figures):
        interval = Interval(max(0.0, gap - radius), min(1.0, gap + radius))
        validation = Point(k, 0, accuracy, gap, 1 - gap, intervals={"unfairness": interval})
        outcomes.append(
            Outcome(
                Job(k, 0), validation, Point(k, 0, 1 - accuracy, 1 - gap, gap), None, f"model {k}"
            )
        )
    sizes = {"a": n, "b": n}
    record = FrontierRecord(unfairness_of=unfairness_of, groups=("a", "b"), sizes=sizes, **more)
    return Frontier(TradeOff(outcomes, record))


SOME = ((0.5, 0.90), (0.3, 0.88), (0.2, 0.874), (0.1, 0.80), (0.25, 0.70))


# few rows and epochs: no better than a constant


# --- what is proven
# ---------------------------------------------------------------------------------------------


# --- what the rows cannot tell
# ----------------------------------------------------------------------------------


class Echo:
    """Scores a row by its first column."""

    def predict_proba(self, X: Any) -> Any:
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1)

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0.5).astype(int)


def held_out(
    score: Any, groups: dict[str, Any], y: Any = None, criterion: str = "statistical_parity"
) -> Any:
    labels = np.arange(len(score)) % 2 if y is None else y
    named = criterion_named(criterion)
    data = data_set(
        score[:, None], labels, groups, None, regression=False, criterion=named, contrast="pairs"
    )
    return data.held_out(np.arange(len(score)))


def test_the_curves_are_those_of_the_attribute_that_the_unfairness_is_about() -> None:
    rng = np.random.default_rng(2)
    sex, region = rng.integers(2, size=200), rng.integers(3, size=200)
    part = held_out(
        (0.3 * rng.random(200) + 0.3 * region).clip(0, 1), {"sex": sex, "region": region}
    )
    said = predict(Echo(), part)
    curves, point = score_curves(said, part), make_point(said, part, strength=0.0, seed=0)
    assert list(curves.cumulative) == ["region: 0", "region: 1", "region: 2"]
    shares = np.array(list(curves.cumulative.values()))
    assert (shares.max(0) - shares.min(0)).max() == pytest.approx(point.unfairness, abs=1e-7)


def test_a_frontier_says_once_where_models_predict_the_same_for_everyone() -> None:
    line, given = FairClassifier(model="linear"), {"sensitive_features": A}
    front = frontier(
        line,
        X,
        Y,
        strengths=[0.0, 0.01, 300.0, 1e5],
        random_state=0,
        **given,
        search=SearchOptions(seeds=2),
    )
    (note,) = [note for note in front.record.notes if note.kind == "constant_models"]
    assert note.facts == {
        "family": "",
        "strengths": [0.0, 0.01, 300.0, 1e5],
        "constant": [300.0, 1e5],
    }
    assert note_text(note).startswith("From strength 300 on, models are constant. ")
    assert not front.models[1].predictor_.is_constant
    with pytest.warns(MetrifairWarning, match="At strength 300, models are constant"):
        frontier(line, X, Y, strengths=[0.0, 300.0], random_state=0, **given)
    assert (
        "models are constant"
        not in frontier(line, X, Y, strengths=[0.0], random_state=0, **given).summary
    )


# --- keeping
# ----------------------------------------------------------------------------------------------------


# few rows and epochs: no better than a constant


# --- showing
# ----------------------------------------------------------------------------------------------------


def test_a_view_shows_one_seeds_distributions_for_each_strength() -> None:
    front = frontier(
        FairClassifier(epochs=3, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        unfairness_of="decisions",
        random_state=0,
        search=SearchOptions(seeds=2),
    )
    view = front.view("Who is hired")
    assert (view.title, view.unfairness_of, view.accuracy_name, view.chosen) == (
        "Who is hired",
        "decisions",
        "accuracy",
        None,
    )
    assert tuple(view.points) == front.points
    assert dict(view.curves) == {
        outcome.job.value: outcome.curves for outcome in outcomes_of(front)[:2]
    }
    assert all(isinstance(curves, Curves) for curves in view.curves.values())


def test_a_parameter_of_another_name_is_called_by_it() -> None:
    assert made(*SOME, parameter="C").view().label("strength") == "C"
    assert made(*SOME).view().label("strength") == "Strength"


def test_pages_and_pictures_are_written(tmp_path: Path) -> None:
    front = frontier(
        FairClassifier(epochs=3, model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
        random_state=0,
    )
    front.to_html(tmp_path / "page.html", title="Who is hired")
    front.plot(ax=Figure().subplots()).figure_.savefig(tmp_path / "front.png")
    assert "Who is hired" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


# --- training rows and others
# -----------------------------------------------------------------------------------


class Memory(ClassifierMixin, BaseEstimator):
    """Fair on rows that it knows, whose scores it makes equal by rank, and unfair on others."""

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Memory:
        self.classes_ = np.unique(y)
        ranks = np.empty(len(X))
        for group in (0, 1):
            own = np.flatnonzero(np.asarray(sensitive_features) == group)
            ranks[own[np.argsort(X[own, 0])]] = (np.arange(len(own)) + 0.5) / len(own)
        self.known_ = dict(zip(map(tuple, X.tolist()), ranks.tolist(), strict=True))
        return self

    def predict_proba(self, X: Any) -> Any:
        usual = 1 / (1 + np.exp(-2 * X[:, 0]))
        score = np.array(
            [self.known_.get(tuple(row), own) for row, own in zip(X.tolist(), usual, strict=True)]
        )
        if self.strength == 0:
            score = usual
        return np.stack([1 - score, score], axis=1)

    def predict(self, X: Any) -> Any:
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(int)]


def test_tables_come_in_the_library_of_the_data_and_notebooks_show_a_frame() -> None:
    X = pd.DataFrame({"x": np.linspace(-1, 1, 400)})
    y = (X["x"] > 0).astype(int)
    for given, library in ((X, pd.DataFrame), (X.to_numpy(), pl.DataFrame)):
        labels = y if library is pd.DataFrame else y.to_numpy()
        front = frontier(
            [LogisticRegression().fit(given, labels)],
            given,
            labels,
            sensitive_features=np.arange(400) % 2,
            random_state=0,
        )
        assert isinstance(front.to_frame(), library)
    shown = front._repr_html_()
    assert shown.startswith('<iframe srcdoc="<!doctype html>')
    assert len(shown) < 600_000


def test_whether_ages_are_a_number_is_decided_once_by_all_rows() -> None:
    """22 ages are a number and 20 would be groups: the rows to train on lack some of them."""
    rng = np.random.default_rng(3)
    age = np.concatenate([np.arange(22), rng.integers(0, 12, 278)]).astype(float)
    features = rng.normal(size=(300, 2)) + age[:, None] / 12
    label = (features.sum(1) + rng.normal(size=300) > 1).astype(int)
    with pytest.warns(MetrifairWarning, match="is taken as a number") as told:
        front = frontier(
            FairClassifier(model="linear"),
            features,
            label,
            sensitive_features={"age": age},
            strengths=[0.1],
            random_state=0,
        )
    assert sum("is taken as a number" in str(one.message) for one in told) == 1
    model = front.select(max_unfairness=1.0)
    assert model.continuous == ["age"]
    assert front.record.provenance.call.startswith("frontier(FairClassifier()")


def test_a_frontier_counts_rows_without_a_group() -> None:
    groups = np.array(["a", "b", None], dtype=object)[np.arange(len(Y)) % 3]
    front = frontier(
        [LogisticRegression().fit(X, Y)], X, Y, sensitive_features={"sex": groups}, random_state=0
    )
    (facts,) = (note.facts for note in front.record.notes if note.kind == "missing_groups")
    assert facts == {"attribute": "sex", "rows": len(Y) // 3, "of": len(Y)}
