"""Rows of one cluster, such as those of one person, are never on both sides of a split, however
rows are split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import metrifair
from metrifair import BarycenterPostprocessor, FairClassifier, SearchOptions, ThresholdPostprocessor
from metrifair.errors import DataError, TooFewSamples
from metrifair.stacking import FairStackingClassifier
from tests.expected_errors import Refusals
from tests.seams.estimators import estimator as training
from tests.seams.tradeoff import data_set, make_folds

RNG = np.random.default_rng(7)
PERSON = RNG.permutation(np.repeat(np.arange(170), RNG.integers(1, 6, size=170)))
N = len(PERSON)
A = (RNG.integers(2, size=PERSON.max() + 1))[PERSON]
Y = (RNG.random(N) < 0.3 + 0.2 * A).astype(int)
X = np.column_stack([np.arange(N), RNG.normal(size=N) + A + Y])
WEIGHT = np.where(np.arange(N) % 9 == 0, 0.0, 1.0)
CLUSTERS: dict[str, Any] = {
    "integers": PERSON,
    "texts": np.array([f"p{one}" for one in PERSON], dtype=object),
    "some missing": np.array([None if one < 5 else f"p{one}" for one in PERSON], dtype=object),
}


def data(clusters: Any, weight: Any = None) -> Any:
    named: dict[str, Any] = {
        "regression": False,
        "criterion": "statistical_parity",
        "contrast": "pairs",
    }
    return data_set(X, Y, A, None, sample_weight=weight, clusters=clusters, **named)


def of_folds(rows: Any, seed: int) -> list[tuple[Any, ...]]:
    everything = np.arange(len(rows.problem))
    folds = make_folds(rows, everything, 5, seed, "folds")
    return [(rows.rows[np.setdiff1d(everything, fold)], rows.rows[fold]) for fold in folds]


def of_share(rows: Any, share: float, seed: int) -> tuple[Any, ...]:
    parts = rows.divide(np.arange(len(rows.problem)), share, seed)
    return tuple(rows.rows[part] for part in parts)


WAYS: dict[str, Callable[[Any, int], list[tuple[Any, ...]]]] = {
    "training, test": lambda rows, seed: [of_share(rows, 0.25, seed)],
    "uneven shares": lambda rows, seed: [of_share(rows, 0.35, seed)],
    "folds": of_folds,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("way", WAYS)
def test_no_cluster_is_on_both_sides_of_any_split(way: str, kind: str, seed: int) -> None:
    named = CLUSTERS[kind]
    for weight in (None, WEIGHT):
        sides = WAYS[way](data(named, weight), seed)
        assert len(sides) >= 1
        for parts in sides:
            people = [{str(named[row]) for row in part if named[row] is not None} for part in parts]
            assert all(people)
            assert sum(map(len, people)) == len(set().union(*people))
            assert all(set(Y[part]) == {0, 1} for part in parts)


@pytest.mark.parametrize("way", WAYS)
def test_without_clusters_persons_are_on_both_sides(way: str) -> None:
    parts = WAYS[way](data(None), 0)[0]
    assert set(PERSON[parts[0]]) & set(PERSON[parts[-1]])


def divided(clusters: Any, seed: int = 0) -> tuple[Any, Any]:
    """The rows to train on, and a quarter to test on."""
    return data(clusters).divide(np.arange(N), 0.25, seed)


@pytest.mark.parametrize("seed", range(5))
def test_parts_have_their_shares_and_the_same_mix(seed: int) -> None:
    split = divided(PERSON, seed)
    for part, share in zip(split, (0.75, 0.25), strict=True):
        assert abs(len(part) / N - share) < 0.05
        assert abs(Y[part].mean() - Y.mean()) < 0.1
        assert abs(A[part].mean() - A.mean()) < 0.1
    assert sorted(np.concatenate(split)) == list(range(N))
    assert not np.array_equal(split[1], divided(PERSON, seed + 1)[1])


def test_clusters_that_cannot_be_split_are_refused(refused: Refusals) -> None:
    with refused(TooFewSamples):
        divided(np.zeros(N))
    few = np.where(Y == 1, np.arange(N) % 3, 10 + np.arange(N))
    with refused(TooFewSamples):
        make_folds(data(few), np.arange(N), 5, 0, "folds")
    with refused(DataError):
        data(PERSON[:-1])
    with refused(DataError):
        data(np.column_stack([PERSON, PERSON]))


class Seen(ClassifierMixin, BaseEstimator):
    """Notes the numbers of the rows that it was fitted on, in their first column, and of those
    that it scores.
    """

    scored: ClassVar[list[tuple[frozenset[int], frozenset[int]]]] = []

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def fit(self, X: Any, y: Any) -> Seen:
        self.classes_, self.rows_ = (
            np.unique(y),
            frozenset(np.asarray(X)[:, 0].astype(int).tolist()),
        )
        self.share_ = np.mean(y == self.classes_[-1])
        return self

    def predict_proba(self, X: Any) -> Any:
        self.scored.append((self.rows_, frozenset(np.asarray(X)[:, 0].astype(int).tolist())))
        score = np.clip(self.share_ + 0.001 * (np.asarray(X)[:, 1] - 1), 0.01, 0.99)
        if len(self.classes_) == 1:
            return np.ones((len(score), 1))
        return np.stack(
            [1 - score, *[score / (len(self.classes_) - 1)] * (len(self.classes_) - 1)], axis=1
        )

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(1)]


class SeenWithGroups(Seen):
    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Seen:
        return super().fit(X, y)


INSIDE: dict[str, Callable[[], Any]] = {
    "barycenter": lambda: BarycenterPostprocessor(Seen(), random_state=0),
    "thresholds": lambda: ThresholdPostprocessor(Seen(), random_state=0),
    "blind barycenter": lambda: BarycenterPostprocessor(
        LogisticRegression(), needs_group=False, group_model=Seen(), random_state=0
    ),
    "blind thresholds": lambda: ThresholdPostprocessor(
        LogisticRegression(), needs_group=False, group_model=Seen(), random_state=0
    ),
    "a pipeline": lambda: BarycenterPostprocessor(
        Pipeline([("same", StandardScaler(with_mean=False, with_std=False)), ("model", Seen())]),
        random_state=0,
    ),
    "labels of a stack": lambda: FairStackingClassifier(
        1.0,
        outcome_models=[Seen()],
        group_models=[LogisticRegression()],
        folds=5,
        epochs=1,
        random_state=0,
    ),
    "groups of a stack": lambda: FairStackingClassifier(
        1.0,
        outcome_models=[LogisticRegression()],
        group_models=[Seen()],
        folds=5,
        epochs=1,
        random_state=0,
    ),
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("clusters", [PERSON, None], ids=["clusters", "rows"])
def test_models_within_a_model_score_other_persons(inside: str, clusters: Any) -> None:
    Seen.scored.clear()
    INSIDE[inside]().fit(X, Y, sensitive_features=A, clusters=clusters)
    unseen = [(fitted, scored) for fitted, scored in Seen.scored if not fitted & scored]
    assert len(unseen) == 5
    both = [set(PERSON[sorted(fitted)]) & set(PERSON[sorted(scored)]) for fitted, scored in unseen]
    assert not any(both) if clusters is not None else all(both)


@pytest.mark.parametrize("options", [{}, {"folds": 3}, {"folds": 3, "test": 0.25}], ids="+".join)
def test_every_model_of_a_frontier_is_evaluated_on_other_persons(options: dict[str, Any]) -> None:
    Seen.scored.clear()
    front = metrifair.frontier(
        SeenWithGroups(),
        X,
        Y,
        sensitive_features=A,
        clusters=CLUSTERS["texts"],
        strengths=[0, 1],
        random_state=0,
        **options,
    )
    for fitted, scored in Seen.scored:
        persons = set(PERSON[sorted(fitted)])
        outside = scored - fitted
        assert not persons & set(PERSON[sorted(outside)])
    assert any(scored - fitted for fitted, scored in Seen.scored)
    assert next(note for note in front.record.notes if note.kind == "clusters").facts == {
        "clusters": len(set(PERSON)),
        "rows": N,
    }
    assert "clusters=..." in front.record.provenance.call
    assert "p1" not in front.record.provenance.call


def test_a_frontier_hands_clusters_to_models_that_split_rows_themselves() -> None:
    Seen.scored.clear()
    search = SearchOptions(tolerances=[0.0, 1.0])
    given: dict[str, Any] = {
        "sensitive_features": A,
        "clusters": PERSON,
        "random_state": 0,
        "test": 0.25,
        "search": search,
    }
    metrifair.frontier([BarycenterPostprocessor(Seen())], X, Y, **given)
    inner = [
        (fitted, scored)
        for fitted, scored in Seen.scored
        if not fitted & scored and len(fitted) > len(scored)
    ]
    assert inner
    assert not any(
        set(PERSON[sorted(fitted)]) & set(PERSON[sorted(scored)]) for fitted, scored in inner
    )


@pytest.mark.parametrize("clusters", [PERSON, None], ids=["clusters", "rows"])
def test_early_stopping_holds_out_whole_clusters(
    clusters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[set[int], set[int]]] = []
    whole = training.train

    def noted(*given: Any, rows: Any, validation: Any, **named: Any) -> Any:
        pairs = zip(rows, validation, strict=True)
        drawn.extend((set(PERSON[own.numpy()]), set(PERSON[aside.numpy()])) for own, aside in pairs)
        return whole(*given, rows=rows, validation=validation, **named)

    monkeypatch.setattr(training, "train", noted)
    model = FairClassifier(1.0, early_stopping=0.2, epochs=3, random_state=0, model="mlp")
    model.fit(X[:, 1:], Y, sensitive_features=A, clusters=clusters)
    (own, aside), shared = drawn[0], drawn[0][0] & drawn[0][1]
    assert bool(shared) == (clusters is None)
    assert own
    assert aside


def test_clusters_of_one_row_each_are_the_rows() -> None:
    split = divided(np.arange(N))
    assert [len(part) for part in split] == pytest.approx([3 * N / 4, N / 4], abs=2)


def test_models_that_need_folds_refuse_a_single_cluster() -> None:
    """They would learn from predictions for rows that the models have seen."""
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(80, 2)), rng.integers(2, size=80), rng.integers(2, size=80)
    for model in (
        FairStackingClassifier(random_state=0),
        BarycenterPostprocessor(FairClassifier(0.0, model="linear"), random_state=0),
    ):
        with pytest.raises(TooFewSamples, match="clusters contain all rows"):
            model.fit(X, y, sensitive_features=group, clusters=np.zeros(80))
