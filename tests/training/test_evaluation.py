"""Schedules that grow and cool down, the constant where it is lower, and the best weights on
rows kept aside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair import PenaltyOptions, load
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.metrics import energy_distance
from metrifair.training import Schedule, train
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.batches import Samples
from tests.seams.problem import Comparison
from tests.seams.training import (
    BINARY,
    MULTICLASS,
    Network,
    Objective,
    RowsObjective,
    constant_output,
    regression,
)

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

PAIR = (Comparison((0,), (1,)),)
RNG = np.random.default_rng(0)
N = 300
GROUP = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 4)) + 0.7 * GROUP[:, None]
Y = (X.sum(1) + 2 * RNG.normal(size=N) > 2.5).astype(int)
WEIGHT = RNG.integers(1, 4, size=N)
LEVEL = np.digitize(X.sum(1) + RNG.normal(size=N), [0.5, 3.0])


def samples(y: Any = Y, weight: Any = None) -> Samples:
    target = y.astype(np.float64) if y is not LEVEL else y
    counts = np.ones(N) if weight is None else weight.astype(np.float64)
    return Samples(*(torch.as_tensor(part) for part in (X, target, GROUP, counts)))


# --- the schedule
# -----------------------------------------------------------------------------------------------


def test_strength_grows_by_equal_factors_to_its_own_and_the_rate_falls_to_nothing() -> None:
    schedule, asked = (
        Schedule(1, 1, 1.0, growth=0.5, cooldown=0.25),
        torch.tensor([0.0, 3.0, 99.0]).double(),
    )
    start, half, *later = schedule.strengths_at([0.0, 0.25, 0.5, 0.9], asked).tolist()
    assert start == [0.0, 0.0, 0.0]
    assert half == pytest.approx([0.0, 1.0, 9.0])  # the root of 1 + strength
    assert later == [asked.tolist()] * 2
    assert [schedule.rate_at(time) for time in (0.0, 0.75, 0.875, 1.0)] == [1.0, 1.0, 0.5, 0.0]


def test_dividing_by_the_strength_changes_nothing_but_the_size_of_gradients() -> None:
    """Adam does not see it; so a growth that is over at once ends where no growth does, weight
    decay and all.
    """
    plain = Schedule(N, epochs=40, learning_rate=0.05, weight_decay=0.3)
    ends = [
        train(
            samples(),
            Network(4),
            Objective(BINARY, PAIR),
            strengths=[0.0, 4.0],
            seeds=[1],
            schedule=schedule,
        )
        for schedule in (plain, replace(plain, growth=1e-9))
    ]
    for name, value in ends[0].parameters.items():
        torch.testing.assert_close(ends[1].parameters[name], value, rtol=1e-4, atol=1e-5)


# --- the constant
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "y"), [(BINARY, Y), (MULTICLASS, LEVEL), (regression(), X[:, 0])])
@pytest.mark.parametrize("hidden", [(), (6,)])
def test_a_strength_without_end_ends_exactly_at_the_best_constant(
    task: Any, y: Any, hidden: tuple[int, ...]
) -> None:
    data, outputs = samples(y, WEIGHT), 3 if task.vector else 1
    schedule = Schedule(
        N, epochs=10, learning_rate=0.05, growth=0.5, cooldown=0.5, from_constant=True
    )
    found = train(
        data,
        Network(4, hidden, outputs),
        Objective(task, PAIR),
        strengths=[0.0, 1e9],
        seeds=[0],
        schedule=schedule,
    )
    best = constant_output(task, data.y, data.weight, outputs, added=0.0)
    said = torch.as_tensor(found.predictor(0, 1).output(X)).reshape(N, outputs)
    torch.testing.assert_close(said, best.expand(N, outputs), rtol=0, atol=1e-8)
    assert float(torch.as_tensor(found.predictor(0, 0).output(X)).std()) > 0.01


def test_the_objective_of_rows_is_risk_and_plug_in_distance_of_each_seed_s_rows() -> None:
    data, rows = samples(weight=WEIGHT), [torch.arange(0, 200), torch.arange(60, 300)]
    said = torch.randn(2, 3, N, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    strengths = torch.tensor([0.0, 1.0, 5.0]).double()
    every = RowsObjective.from_rows(data, rows, Objective(BINARY, PAIR), like=data.x)
    found = every(lambda seed, some, own: said[seed, some][:, own], strengths)
    for seed, own in enumerate(rows):
        one, weight = data.take(own), data.weight[own]
        for place, strength in enumerate(strengths):
            output = said[seed, place, own]
            sides = [output.sigmoid()[one.cell == group] for group in (0, 1)]
            weights = [weight[one.cell == group] for group in (0, 1)]
            distance = energy_distance(*sides, u_weights=weights[0], v_weights=weights[1])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                output, one.y, weight, reduction="sum"
            )
            expected = loss / weight.sum() + strength * distance
            assert float(found[seed, place]) == pytest.approx(float(expected), rel=1e-9)


# --- early stopping
# ---------------------------------------------------------------------------------------------


EARLY: dict[str, Any] = {
    "model": "mlp",
    "early_stopping": 0.3,
    "epochs": 120,
    "learning_rate": 0.05,
    "batch_size": 50,
}


@pytest.mark.extended
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_each_model_of_a_stack_keeps_its_own_best_weights(kind: Any) -> None:
    y = Y if kind is FairClassifier else X.sum(1)
    strengths, seeds = [0.5, 20.0], [3, 4]
    stack = fit_stack(
        kind(**with_penalty(**EARLY)),
        X,
        y,
        strengths=strengths,
        seeds=seeds,
        sensitive_features=GROUP,
    )
    places = [(strength, seed) for seed in seeds for strength in strengths]
    for model, (strength, seed) in zip(stack, places, strict=True):
        assert model is not None
        alone = kind(strength, random_state=seed, **with_penalty(**EARLY)).fit(
            X, y, sensitive_features=GROUP
        )
        assert alone.n_iter_ == model.n_iter_
        np.testing.assert_allclose(alone.predict(X), model.predict(X), rtol=1e-4, atol=1e-4)
    assert {model.n_iter_ for model in stack if model is not None} - {120}  # some were stopped


@pytest.mark.extended
def test_stopping_early_saves_a_network_from_knowing_rows_by_heart() -> None:
    rng = np.random.default_rng(99)
    wide = np.concatenate([X, rng.normal(size=(N, 40))], 1)
    fresh = rng.normal(size=(4000, 44))
    fresh[:, :4] += 0.7 * rng.integers(2, size=(4000, 1))
    truth = (fresh[:, :4].sum(1) + 2 * rng.normal(size=4000) > 2.5).astype(int)
    risks = []
    for early in (False, 0.25):
        model = FairClassifier(
            0.0, epochs=600, learning_rate=0.02, early_stopping=early, random_state=0, model="mlp"
        ).fit(wide, Y)
        chance = model.predict_proba(fresh)[np.arange(4000), truth]
        risks.append(-np.log(np.maximum(chance, 1e-12)).mean())
    assert risks[1] < 0.7 * risks[0]


def test_a_solver_has_no_steps_to_stop(refused: Refusals) -> None:
    with refused(DataError):
        FairClassifier(
            1.0, model="linear", penalty=PenaltyOptions(solver="lbfgs"), early_stopping=True
        ).fit(X, Y, sensitive_features=GROUP)
    found = FairClassifier(0.0, model="linear", early_stopping=True, random_state=0).fit(X, Y)
    # of the rows that it was trained on
    assert float(found.moments_.weight) == pytest.approx(0.9 * N, abs=4)


# --- weights of classes
# -----------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("y", [Y, LEVEL], ids=["two", "three"])
@pytest.mark.parametrize("given", ["balanced", {0: 3.0}], ids=["balanced", "dict"])
def test_without_a_penalty_class_weights_are_sample_weights(model: str, y: Any, given: Any) -> None:
    counts = np.bincount(y)
    each = (
        len(y) / counts if given == "balanced" else np.where(np.arange(len(counts)) == 0, 3.0, 1.0)
    )[y]
    # the scale knows weights too
    settings: dict[str, Any] = {"model": model, "standardize": False, "random_state": 0}
    ours = FairClassifier(0.0, class_weight=given, **with_penalty(**settings)).fit(X, y)
    theirs = FairClassifier(0.0, **with_penalty(**settings)).fit(X, y, sample_weight=each)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-6)
    assert not np.allclose(
        ours.predict_proba(X),
        FairClassifier(0.0, **with_penalty(**settings)).fit(X, y).predict_proba(X),
    )


def test_class_weights_leave_the_unfairness_as_it_is() -> None:
    """Two classes of equal weight on average: the objective is the weighted loss + strength x
    distance of all rows.
    """
    objective = Objective(BINARY, PAIR, estimate="batch", class_weight=(0.5, 2.0))
    data, output = (
        samples(),
        torch.randn(N, dtype=torch.float64, generator=torch.Generator().manual_seed(1)),
    )
    every = RowsObjective.from_rows(data, [torch.arange(N)], objective, like=data.x)
    plain = RowsObjective.from_rows(
        data, [torch.arange(N)], replace(objective, class_weight=()), like=data.x
    )

    def at(rows: RowsObjective, strength: float) -> Tensor:
        return rows(lambda *_: output.unsqueeze(0), torch.tensor([strength]).double())[0, 0]

    assert float(at(every, 7.0) - at(every, 0.0)) == pytest.approx(
        float(at(plain, 7.0) - at(plain, 0.0)), rel=1e-12
    )
    loss = BINARY.loss(output, data.y) * torch.tensor([0.5, 2.0]).double()[data.y.long()]
    assert float(at(every, 0.0)) == pytest.approx(float(loss.mean()), rel=1e-12)


def test_weights_of_rows_and_of_classes_together_are_repetitions() -> None:
    weighted = FairClassifier(1.0, class_weight="balanced", random_state=0, epochs=30, model="mlp")
    weighted.fit(X, Y, sensitive_features=GROUP, sample_weight=WEIGHT)
    rows = np.repeat(np.arange(N), WEIGHT)
    repeated = FairClassifier(1.0, class_weight="balanced", random_state=0, epochs=30, model="mlp")
    repeated.fit(X[rows], Y[rows], sensitive_features=GROUP[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6, atol=1e-7
    )


def test_a_stream_takes_a_dict_as_it_is_and_a_file_keeps_it(
    tmp_path: Any, refused: Refusals
) -> None:
    model = FairClassifier(1.0, class_weight={1: 5.0}, random_state=0, model="linear")
    other = FairClassifier(1.0, random_state=0, model="linear")
    for part in np.array_split(np.arange(N), 4):
        for one in (model, other):
            one.partial_fit(
                X[part], Y[part], sensitive_features=GROUP[part], classes=[0, 1], groups=[0, 1]
            )
    assert model.predict_proba(X)[:, 1].mean() > other.predict_proba(X)[:, 1].mean() + 0.1
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.class_weight == {1: 5.0}
    for one in (other, again):
        one.partial_fit(X, Y, sensitive_features=GROUP)
    assert again.predict_proba(X)[:, 1].mean() > other.predict_proba(X)[:, 1].mean() + 0.1
    with refused(DataError):
        FairClassifier(class_weight="balanced", model="mlp").partial_fit(
            X, Y, sensitive_features=GROUP
        )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("even", "class_weight must be None, 'balanced' or a dict"),
        ({2: 1.0}, "class_weight names 2, which is not a class of y"),
        ({0: -1.0}, "class_weight must contain numbers from 0 upwards"),
        ({0: 0.0, 1: 0.0}, "class_weight must contain numbers from 0 upwards, and one above 0"),
    ],
)
def test_class_weights_that_cannot_be_are_refused(given: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        FairClassifier(0.0, class_weight=given, model="mlp").fit(X, Y)
