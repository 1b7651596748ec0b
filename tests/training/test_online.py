"""Learning from a stream: unbiased, in constant memory, and the same however the stream is cut."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import proven
from torch import Tensor

from experiments.populations import OnlineRegression, reference_slopes
from metrifair import PenaltyOptions
from metrifair.batches import Coverage
from metrifair.criteria import EQUALIZED_ODDS, STATISTICAL_PARITY
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.metrics import energy_distance
from metrifair.training import weighted_moments
from tests.seams.batches import PATIENCE, Samples
from tests.seams.problem import Attribute, Comparison, compile_cells
from tests.seams.training import (
    BINARY,
    Learner,
    Moments,
    Network,
    Objective,
    StackedModule,
    regression,
)

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

PAIR = (Comparison((0,), (1,)),)
DECLARE = (
    ", the groups that the first rows had or that were declared; declare all of them (groups=), or "
    "say from the first "
    "rows on that it is a number (continuous)"
)


def stream(
    n: int, *, groups: int = 2, classes: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(groups, size=n)
    X = rng.normal(size=(n, 3)) * [1, 5, 0.1] + a[:, None]
    return X, np.digitize(X[:, 0] + rng.normal(size=n), [0.5, 1.5][: classes - 1]), a


def state(estimator: FairClassifier | FairRegressor) -> list[Tensor]:
    """Everything that the next step depends on."""
    learner = estimator.learner_
    waiting = learner.waiting
    return [
        *learner.adam.snapshot(),
        *map(torch.as_tensor, learner.moments or ()),
        *(getattr(waiting, name) for name in ("x", "y", "cell", "weight")),
        learner.objective.generator.get_state(),
    ]


def assert_same_bits(one: Sequence[Tensor], other: Sequence[Tensor]) -> None:
    for left, right in zip(one, other, strict=True):
        assert torch.equal(left, right)


# --- what the paper shows
# ---------------------------------------------------------------------------------------


def online_objective(*, unbiased: bool, replication: int, samples: int) -> float:
    """MSE + 2 x energy on fresh data of the last regime, after the paper's stream: batch 4,
    network 10-20-1.
    """
    population = OnlineRegression(slopes=reference_slopes())
    X, y, a = population.sample(samples, seed=replication)
    model = FairRegressor(
        2.0,
        hidden=(20,),
        batch_size=4,
        learning_rate=1e-2,
        penalty=PenaltyOptions(estimate="population" if unbiased else "batch", standardize=False),
        random_state=replication,
        model="mlp",
    )
    for rows in np.array_split(np.arange(samples), samples // 500):
        model.partial_fit(X[rows], y[rows], sensitive_features=a[rows])
    test = population.test_set(1000, regime=(samples - 1) // population.period, seed=replication)
    predicted = model.predict(test.X)
    apart = energy_distance(predicted[test.a == 0], predicted[test.a == 1], unbiased=True)
    return float(((predicted - test.y) ** 2).mean() + 2 * apart)


def test_batches_of_four_learn_when_unbiased_and_do_not_when_biased() -> None:
    """One replication, first regime: 0.53 against 1.09 (all others: at most 0.67 against at
    least 1.09).
    """
    unbiased, biased = (
        online_objective(unbiased=which, replication=0, samples=2000) for which in (True, False)
    )
    assert unbiased < 0.75 * biased


@pytest.mark.slow
def test_the_paper_s_stream_with_a_change_of_regime() -> None:
    """Five replications of 4,000 samples, as in the paper's figure: 0.38 against 0.86 on
    average.
    """
    unbiased, biased = (
        [online_objective(unbiased=which, replication=k, samples=4000) for k in range(5)]
        for which in (True, False)
    )
    assert max(unbiased) < min(biased)
    assert np.mean(unbiased) < 0.6 * np.mean(biased)


# --- unbiased gradients
# -----------------------------------------------------------------------------------------

POPULATION = 40
CRITERIA = {
    "three groups": compile_cells(STATISTICAL_PARITY, [Attribute("group", (0, 1, 2))]),
    "equalized odds": compile_cells(EQUALIZED_ODDS, [Attribute("group", (0, 1))], classes=(0, 1)),
    "each against the rest": compile_cells(
        STATISTICAL_PARITY, [Attribute("group", (0, 1, 2))], contrast="rest"
    ),
    "two attributes": compile_cells(
        STATISTICAL_PARITY, [Attribute("sex", (0, 1)), Attribute("race", (0, 1))]
    ),
}


def gradients(name: str, *, unbiased: bool, batches: int) -> tuple[Tensor, Tensor]:
    """Gradients of so many independent batches as the learner computes them, and that of the
    population.

    The stream draws rows of a population of 40, so that the truth is a finite sum.
    """
    cells, rng = CRITERIA[name], np.random.default_rng(3)
    rare = [{3: [18, 19, 3], 2: [34, 6]}[groups - 1] for groups in cells.table.shape[2:]]
    codes = np.stack(
        [rng.permutation(np.repeat(np.arange(len(sizes)), sizes)) for sizes in rare], 1
    )
    y = rng.integers(2, size=POPULATION)
    # the rare group lies far out: waiting for it must not show
    far = 3.0 * np.array([0, -1, 1])[codes[:, [0, -1]]]
    x = rng.normal(size=(POPULATION, 2)) + far + 0.5 * y[:, None]
    cell = cells.of(codes, labels=y)
    everyone = Samples(
        torch.as_tensor(x),
        torch.as_tensor(y * 1.0),
        torch.as_tensor(cell),
        torch.ones(POPULATION).double(),
    )
    objective = Objective(
        BINARY,
        cells.comparisons,
        cells.criterion,
        estimate="population" if unbiased else "batch",
        combine="sum",
    )
    least = 2 if unbiased else 1
    learner = Learner(
        Network(2),
        objective,
        Coverage(cells.comparisons, size=4, least=least),
        strength=3.0,
        seed=1,
        standardize=False,
    )
    found: list[Tensor] = []

    def remember() -> bool:
        found.append(learner.adam.gradient.clone())
        learner.adam.gradient.zero_()
        return True

    learner.adam.step_if_finite = remember  # type: ignore[method-assign]
    while len(found) < batches:
        learner.learn(everyone.take(torch.as_tensor(rng.integers(POPULATION, size=400))))

    parameters = [
        value.detach().clone().requires_grad_() for value in learner.adam.parameters.values()
    ]
    output = everyone.x @ parameters[0][0, 0, 0] + parameters[1].squeeze()
    truth = torch.nn.functional.binary_cross_entropy_with_logits(output, everyone.y)
    for one in cells.comparisons:
        left, right = (
            torch.isin(everyone.cell, torch.tensor(side)) for side in (one.left, one.right)
        )
        truth = truth + 3 * energy_distance(output.sigmoid()[left], output.sigmoid()[right])
    truth.backward()
    return torch.stack(found), torch.cat([value.grad.flatten() for value in parameters])


def largest_z(found: Tensor, truth: Tensor) -> float:
    return float(((found.mean(0) - truth) / (found.std(0) / math.sqrt(len(found)))).abs().max())


@pytest.mark.parametrize(
    "name",
    [
        "equalized odds",
        "each against the rest",
        pytest.param("three groups", marks=pytest.mark.slow),
        pytest.param("two attributes", marks=pytest.mark.slow),
    ],
)
def test_gradients_of_a_stream_are_unbiased(name: str) -> None:
    """1,000 batches; each of three coordinates exceeds 4.5 standard errors by chance once in 10^5.

    The batches themselves have tests of their own, for all four.
    """
    assert largest_z(*gradients(name, unbiased=True, batches=1000)) < 4.5


def test_gradients_of_the_plug_in_penalty_are_biased() -> None:
    """The control: the test above would see it."""
    assert largest_z(*gradients("three groups", unbiased=False, batches=1000)) > 6


# --- chunks, pickles, memory
# ------------------------------------------------------------------------------------

LENGTH = 70
ESTIMATORS = {
    "classifier": (FairClassifier, {"model": "mlp", "hidden": (4,)}, 2),
    "three classes": (FairClassifier, {"model": "linear", "criterion": "equalized_odds"}, 3),
    "regressor": (
        FairRegressor,
        {"model": "linear", "penalty": PenaltyOptions(estimate="batch")},
        2,
    ),
}


def learnt(
    name: str, cuts: Sequence[int], *, pickled: bool = False
) -> FairClassifier | FairRegressor:
    """Trained on one stream, cut at these places; some groups are missing, some rows have no
    weight.
    """
    kind, options, classes = ESTIMATORS[name]
    X, y, a = stream(LENGTH, classes=classes)
    groups: list[Any] = [None if k % 7 == 3 else str(group) for k, group in enumerate(a)]
    weight = np.where(np.arange(LENGTH) % 5 == 4, 0.0, 1.0 + np.arange(LENGTH) % 3)
    first: dict[str, Any] = {"groups": ["0", "1"]} | (
        {"classes": range(classes)} if kind is FairClassifier else {}
    )
    model = kind(1.0, batch_size=8, random_state=0, **options)
    edges = [0, *sorted(cuts), LENGTH]
    for start, stop in pairwise(edges):
        rows = slice(start, stop)
        model.partial_fit(
            X[rows], y[rows], sensitive_features=groups[rows], sample_weight=weight[rows], **first
        )
        first = {}
        model = pickle.loads(pickle.dumps(model)) if pickled else model
    return model


@pytest.mark.extended
@pytest.mark.parametrize("name", ESTIMATORS)
@proven
@given(cuts=st.sets(st.integers(1, LENGTH - 1).filter(lambda k: k % 5 != 4), max_size=12))
def test_how_the_stream_is_cut_leaves_no_trace(name: str, cuts: set[int]) -> None:
    """Rows of weight zero come with a neighbor: a chunk of nothing else is refused."""
    assert_same_bits(state(learnt(name, sorted(cuts))), state(learnt(name, [])))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_stream_can_be_fed_one_sample_at_a_time(name: str) -> None:
    ones = [k for k in range(1, LENGTH) if k % 5 != 4]
    assert_same_bits(state(learnt(name, ones)), state(learnt(name, [])))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pickle_in_the_middle_of_the_stream_goes_on_bit_by_bit(name: str) -> None:
    cuts = [9, 25, 26, 51]
    assert_same_bits(state(learnt(name, cuts, pickled=True)), state(learnt(name, cuts)))


def test_a_chunk_without_any_weight_is_refused_and_changes_nothing() -> None:
    model = learnt("classifier", [])
    before = state(model)
    X, y, a = stream(5)
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):  # scikit-learn's message, or ours
        model.partial_fit(X, y, sensitive_features=[str(g) for g in a], sample_weight=np.zeros(5))
    assert_same_bits(state(model), before)


def test_only_the_open_batch_is_kept() -> None:
    """Whatever came, in whatever chunks: fewer samples than a batch wait, and a pickle holds
    those alone.
    """
    model = FairClassifier(1.0, batch_size=32, random_state=0, model="mlp")
    sizes = []
    for length in (33, 50, 5_000, 40):
        X, y, a = stream(length)
        model.partial_fit(X, y, sensitive_features=a)
        assert len(model.learner_.waiting) < 32
        sizes.append(len(pickle.dumps(model)))
    # 32 rows of 3 features, label, cell and weight
    assert max(sizes) < min(sizes) + 32 * 6 * 8 + 1000


def test_waiting_samples_hold_no_memory_of_the_chunk_they_came_in() -> None:
    learner = learner_of_pairs()
    learner.learn(samples_of(*stream(1001)))
    assert len(learner.waiting) == 1
    assert learner.waiting.x.untyped_storage().nbytes() <= 8 * 3


# --- the learner itself
# -----------------------------------------------------------------------------------------


def samples_of(X: np.ndarray, y: np.ndarray, a: np.ndarray) -> Samples:
    return Samples(
        *(torch.as_tensor(part) for part in (X, y * 1.0, np.arange(len(a)) % 2, np.ones(len(a))))
    )


def learner_of_pairs(**options: Any) -> Learner:
    return Learner(
        Network(3), Objective(BINARY, PAIR), Coverage(PAIR, size=4), strength=1.0, **options
    )


def test_features_are_measured_in_units_of_all_samples_so_far() -> None:
    X, y, a = stream(203)
    weight = np.random.default_rng(2).uniform(0.5, 2, 203)
    learner = learner_of_pairs()
    assert learner.learn(samples_of(X, y, a).with_weight(torch.as_tensor(weight))) == 50
    scaling, mean = learner.predictor(3).scaling, np.average(X[:200], axis=0, weights=weight[:200])
    np.testing.assert_allclose(scaling.mean[0], mean, rtol=1e-10)
    variance = np.average((X[:200] - mean) ** 2, axis=0, weights=weight[:200])
    np.testing.assert_allclose(scaling.scale[0], np.sqrt(variance), rtol=1e-10)


@proven
@given(cut=st.integers(2, 28), constant=st.booleans())
def test_moments_of_two_parts_are_moments_of_the_whole(cut: int, constant: bool) -> None:
    rng = np.random.default_rng(cut)
    x, w = torch.as_tensor(rng.normal(3, 2, (30, 2))), torch.as_tensor(rng.uniform(0.1, 2, 30))
    if constant:
        x[:, 1] = 0.1 + 0.2
    before = Samples(x[:cut], torch.zeros(cut), torch.zeros(cut, dtype=torch.long), w[:cut])
    both = Moments.from_samples(before).with_samples(x[cut:].numpy(), w[cut:].numpy())
    expected = weighted_moments(x, w)
    torch.testing.assert_close(both.scaling.mean[0], expected[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(both.scaling.scale[0], expected[1], rtol=1e-10, atol=1e-10)


def explosive(X: np.ndarray) -> np.ndarray:
    """One row so far out that its square overflows."""
    X = X.copy()
    X[5] = 1e200
    return X


@pytest.mark.parametrize("standardize", [True, False])
def test_a_step_that_diverges_leaves_the_learner_as_it_was(standardize: bool) -> None:
    learner = learner_of_pairs(standardize=standardize)
    learner.objective = Objective(regression(), PAIR)
    learner.learn(samples_of(*stream(40)))
    before = [*learner.adam.snapshot(), *map(torch.as_tensor, learner.moments or ())]
    X, y, a = stream(8, seed=1)
    with pytest.raises(DataError) as caught:
        learner.learn(samples_of(explosive(X)[4:], y[4:], a[4:]))
    assert str(caught.value) == (
        "learning diverged at strength 1.0; this batch was left out. Lower the learning rate, or "
        "check the scale of X"
    )
    assert_same_bits(
        [*learner.adam.snapshot(), *map(torch.as_tensor, learner.moments or ())], before
    )


def test_after_a_bad_batch_the_stream_goes_on_as_if_it_had_not_come() -> None:
    X, y, a = stream(40)
    calm, shaken = learner_of_pairs(standardize=False), learner_of_pairs(standardize=False)
    for learner in (calm, shaken):
        learner.objective = Objective(regression(), PAIR)
    calm.learn(
        samples_of(
            np.delete(X, range(4, 8), 0), np.delete(y, range(4, 8)), np.delete(a, range(4, 8))
        )
    )
    with pytest.raises(DataError, match="learning diverged"):
        # the batches behind the bad one are still to be learnt from
        shaken.learn(samples_of(explosive(X), y, a))
    shaken.learn(samples_of(X[:0], y[:0], a[:0]))
    assert_same_bits(calm.adam.snapshot(), shaken.adam.snapshot())


# --- the estimators on a stream
# ---------------------------------------------------------------------------------


def test_classes_and_groups_are_declared_at_the_first_call() -> None:
    X, y, a = stream(60)
    first = (y == 0) & (a == 0)
    model = FairClassifier(1.0, batch_size=8, random_state=0, model="mlp")
    model.partial_fit(
        X[first], y[first], sensitive_features=a[first], classes=[1, 0], groups=[0, 1]
    )
    assert model.classes_.tolist() == [0, 1]
    with pytest.warns(MetrifairWarning, match="^the model is not trained yet"):
        assert model.predict_proba(X).shape == (60, 2)
    model.partial_fit(X[~first], y[~first], sensitive_features=a[~first])
    assert model.scheme_.attributes == (Attribute("sensitive_features", (0, 1)),)


def test_several_attributes_are_declared_by_name() -> None:
    X, y, a = stream(60)
    table = {"sex": a, "old": (X[:, 1] > 0).astype(int)}
    model = FairClassifier(1.0, batch_size=8, random_state=0, model="mlp")
    model.partial_fit(X, y, sensitive_features=table, groups={"old": [0, 1], "sex": [0, 1, 2]})
    assert model.scheme_.attributes == (Attribute("sex", (0, 1, 2)), Attribute("old", (0, 1)))


WRONG_FIRST = {
    "a class": ({"classes": [1, 2]}, "y contains 0, which is none of [1, 2]"),
    "one class": ({"classes": [0]}, "y contains 1, which is none of [0]"),
    "a group": (
        {"groups": [0, 2]},
        f"sensitive_features contains 1, which is none of [0, 2]{DECLARE}",
    ),
    "one group": ({"groups": [0]}, f"sensitive_features contains 1, which is none of [0]{DECLARE}"),
    "a name": (
        {"groups": {"sex": [0, 1]}},
        "groups must name the attributes ['sensitive_features'], got ['sex']",
    ),
}


@pytest.mark.parametrize(("options", "message"), WRONG_FIRST.values(), ids=WRONG_FIRST)
def test_a_wrong_first_call_is_refused_and_can_be_made_again(
    options: dict[str, Any], message: str
) -> None:
    X, y, a = stream(60)
    model = FairClassifier(1.0, random_state=0, batch_size=8, model="mlp")
    with pytest.raises(DataError) as caught:
        model.partial_fit(X, y, sensitive_features=a, **options)
    assert str(caught.value) == message
    model.partial_fit(X, y, sensitive_features=a)
    fresh = FairClassifier(1.0, random_state=0, batch_size=8, model="mlp").partial_fit(
        X, y, sensitive_features=a
    )
    assert_same_bits(state(model), state(fresh))


def test_one_list_of_groups_does_for_one_attribute_only() -> None:
    X, y, a = stream(60)
    with pytest.raises(DataError) as caught:
        FairClassifier(1.0, model="mlp").partial_fit(
            X, y, sensitive_features=np.stack([a, a], 1), groups=[0, 1]
        )
    assert str(caught.value) == (
        "groups must map each of ['sensitive_features 0', 'sensitive_features 1'] to its groups, "
        "got a single list"
    )


LATER = {
    "a new group": (
        {"sensitive_features": [7] * 4},
        f"sensitive_features contains 7, which is none of [0, 1]{DECLARE}",
    ),
    "no groups": (
        {"sensitive_features": None},
        ("sensitive_features is missing: fit received it; pass one value per row"),
    ),
    "another attribute": (
        {"sensitive_features": [[0, 1]] * 4},
        "sensitive_features has 2 column(s), 1 were declared before",
    ),
    "a new class": ({"y": [0, 1, 5, 1]}, "y contains 5, which is none of [0, 1]"),
    "too few groups": (
        {"sensitive_features": [0, 1]},
        "arguments must have the same length, got X 4, y 4, sensitive_features 2",
    ),
    "another width": (
        {"X": np.zeros((4, 2))},
        "X has 2 features, but FairClassifier is expecting 3 features as input",
    ),
}


@pytest.mark.parametrize(("change", "message"), LATER.values(), ids=LATER)
def test_later_samples_must_be_like_the_first(change: dict[str, Any], message: str) -> None:
    X, y, a = stream(60)
    model = FairClassifier(1.0, batch_size=8, random_state=0, model="mlp").partial_fit(
        X, y, sensitive_features=a
    )
    before = state(model)
    given = {"X": X[:4], "y": y[:4], "sensitive_features": a[:4]} | change
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model.partial_fit(**given)
    assert str(caught.value).rstrip(".") == message
    assert_same_bits(state(model), before)


def test_a_stream_that_never_shows_a_group_is_given_up() -> None:
    X, y, a = stream(PATIENCE * 4 + 1)
    model = FairClassifier(1.0, batch_size=4, random_state=0, model="mlp")
    with pytest.raises(TooFewSamples) as caught:
        model.partial_fit(X, y, sensitive_features=np.where(a == 1, 0, 0), groups=["f", 0])
    assert str(caught.value) == (
        "400 samples of the stream have fewer than 2 of: sensitive_features 'f', everyone (0 "
        "seen); use a larger "
        "batch size, or leave out the rare group. These samples were left out, and learning can go "
        "on with the next "
        "ones. Batch size and groups are fixed once a model has begun; begin a new one to change "
        "them (a group is left "
        "out where sensitive_features marks it as missing and groups does not name it)"
    )
    assert len(model.learner_.waiting) == 1


@pytest.mark.parametrize("cuts", [[600], [50, 60, 600], [7, 441, 500], [440, 441]], ids=str)
def test_after_a_group_was_missed_the_stream_goes_on_without_those_samples(cuts: list[int]) -> None:
    """Ten batches of four, 400 samples of one group alone, then both again: bits as if the 400
    had not come.
    """
    X, y, a = stream(620)
    a[:440] = [*[0, 0, 1, 1] * 10, *[0] * 400]

    def learnt(rows: np.ndarray, cuts: list[int]) -> tuple[FairClassifier, int]:
        model, errors = FairClassifier(1.0, batch_size=4, random_state=0, model="mlp"), 0
        for chunk in np.split(rows, cuts):
            try:
                model.partial_fit(
                    X[chunk], y[chunk], sensitive_features=a[chunk], groups=[0, 1], classes=[0, 1]
                )
            except TooFewSamples:
                errors += 1
            assert_same_bits(
                [*model.predictor_.parameters.values()], [*model.learner_.adam.parameters.values()]
            )
        return model, errors

    found, errors = learnt(np.arange(620), cuts)
    expected, _ = learnt(np.r_[0:40, 440:620], [])
    assert errors == 1
    assert_same_bits(state(found), state(expected))


def test_a_continuous_target_is_no_list_of_classes() -> None:
    X, y, a = stream(60)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        FairClassifier(model="mlp").partial_fit(X, X[:, 0], sensitive_features=a)
    # unless they are named
    FairClassifier(model="mlp").partial_fit(X, y / 2, sensitive_features=a, classes=[0.0, 0.5])


def test_samples_of_unknown_group_count_for_the_risk_only() -> None:
    """With every second group removed, the penalty sees the known ones alone, and the loss sees
    all.
    """
    X, y, a = stream(400)
    known = np.where(np.arange(400) % 2, None, a.astype(object))

    def weights(labels: np.ndarray) -> Tensor:
        model = FairClassifier(3.0, model="linear", batch_size=16, random_state=0)
        return model.partial_fit(
            X, labels, sensitive_features=known, classes=[0, 1]
        ).learner_.adam.vector

    flipped = np.where(np.arange(400) % 2, 1 - y, y)
    assert not torch.equal(weights(y), weights(flipped))
    batch_rows = (
        FairClassifier(3.0, batch_size=16, model="mlp")
        .partial_fit(X, y, sensitive_features=known)
        .learner_
    )
    assert batch_rows.rule.comparisons[0].left + batch_rows.rule.comparisons[0].right == (0, 1)
    assert set(batch_rows.waiting.cell.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_learning_goes_on_where_fit_ended(kind: type[FairClassifier | FairRegressor]) -> None:
    X, y, a = stream(300)
    more = stream(64, seed=1)
    model = kind(1.0, epochs=100, learning_rate=0.02, random_state=0, model="mlp", hidden=(4,)).fit(
        X, y, sensitive_features=a
    )
    fitted, scaling = model.predict(X), model.predictor_.scaling
    gentle = pickle.loads(pickle.dumps(model)).set_params(learning_rate=1e-12)
    gentle.partial_fit(more[0], more[1], sensitive_features=more[2])
    # the parameters are those of fit, the units those of all 364 samples
    for name, value in model.predictor_.parameters.items():
        torch.testing.assert_close(gentle.predictor_.parameters[name], value, rtol=0, atol=1e-9)
    everything = np.concatenate([X, more[0]])
    np.testing.assert_allclose(gentle.predictor_.scaling.mean[0], everything.mean(0), rtol=1e-9)
    np.testing.assert_allclose(gentle.predictor_.scaling.scale[0], everything.std(0), rtol=1e-9)
    assert not torch.equal(gentle.predictor_.scaling.mean, scaling.mean)
    # and a fit afterwards starts anew
    model.partial_fit(more[0], more[1], sensitive_features=more[2])
    assert np.abs(model.predict(X) - fitted).max() > 0 or kind is FairClassifier
    np.testing.assert_array_equal(model.fit(X, y, sensitive_features=a).predict(X), fitted)
    assert not hasattr(model, "learner_")


def test_a_regressor_takes_a_stream_s_target_as_it_is() -> None:
    X, y, _ = stream(200)
    model = FairRegressor(0.0, model="linear", learning_rate=0.3, batch_size=8, random_state=0)
    for _ in range(5):
        model.partial_fit(X, 10.0 + 0 * y)
    assert model.target_scaling_ == (0.0, 1.0)
    np.testing.assert_allclose(model.predict(X), 10, rtol=0.1)


# --- the beginning
# ----------------------------------------------------------------------------------------------

# features whose outputs would be certain of everything, were they taken as they are
FAR = np.array([1e4, -3e3, 0.5])


@pytest.mark.parametrize(("classes", "share"), [(2, 0.8), (3, 0.5)])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_before_the_first_update_predictions_are_near_the_base_rate_and_come_with_a_warning(
    model: str, classes: int, share: float
) -> None:
    X, y, a = stream(20, classes=classes)
    y[: int(share * 20)] = classes - 1  # of 20, and half a sample of every class more
    found = FairClassifier(model=model, random_state=0)
    found.partial_fit(FAR * X, y, sensitive_features=a, classes=range(classes), groups=[0, 1])
    assert found.n_updates_ == 0
    with pytest.warns(
        MetrifairWarning, match=r"^the model is not trained yet: its samples do not cover a batch "
    ):
        probability = found.predict_proba(FAR * X)
    expected = (np.bincount(y, minlength=classes) + 0.5) / (20 + classes / 2)
    np.testing.assert_allclose(probability.mean(0), expected, atol=0.06)
    assert np.ptp(probability, axis=0).max() < 0.35


def test_a_regressor_begins_at_the_mean_of_what_it_has_seen() -> None:
    X, y, a = stream(20)
    found = FairRegressor(random_state=0, model="mlp").partial_fit(
        FAR * X, 500.0 + y, sensitive_features=a
    )
    with pytest.warns(MetrifairWarning, match="^the model is not trained yet"):
        np.testing.assert_allclose(found.predict(FAR * X), 500 + y.mean(), atol=1)


def test_updates_are_counted_and_the_first_starts_from_its_own_batch() -> None:
    """However many samples came with it: the start depends on the batch, not on the chunk."""
    X, y, a = stream(200)
    found = FairClassifier(random_state=0, learning_rate=1e-9, model="mlp").partial_fit(
        X, y, sensitive_features=a
    )
    assert found.n_updates_ == 6  # 32 at least in every batch
    first = FairClassifier(random_state=0, learning_rate=1e-9, model="mlp").partial_fit(
        X[:40], y[:40], sensitive_features=a[:40]
    )
    assert first.n_updates_ == 1
    bias = [float(model.predictor_.parameters["bias1"].squeeze()) for model in (found, first)]
    assert bias[0] == pytest.approx(bias[1], abs=1e-6)
    share = (y[:32].sum() + 0.5) / 33
    assert bias[0] == pytest.approx(np.log(share / (1 - share)), abs=1e-6)
    assert not found.fit(X, y, sensitive_features=a).__dict__.keys() & {"n_updates_", "learner_"}
    assert found.partial_fit(X, y, sensitive_features=a).n_updates_ == 6


def test_a_module_of_one_s_own_starts_as_it_is() -> None:
    X, y, a = stream(20)
    module = torch.nn.Linear(3, 1)
    found = FairClassifier(model=module, random_state=0).partial_fit(X, y, sensitive_features=a)
    drawn = StackedModule(module).initial(0)
    assert torch.equal(
        found.predictor_.parameters["bias"].flatten(), drawn["bias"].double().flatten()
    )
