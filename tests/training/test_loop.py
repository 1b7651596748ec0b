"""The loop against a plain one, the stack against its members, batches against the whole data
set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from oracles import energy, pair_coefficients
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics import energy_distance
from metrifair.training import Schedule, TrainedStack, train, weighted_moments
from tests.seams.batches import Batch, Samples
from tests.seams.metrics import METRICS
from tests.seams.problem import Comparison
from tests.seams.training import (
    BINARY,
    MULTICLASS,
    Network,
    Objective,
    StackedModule,
    Terms,
    models,
    regression,
)

PAIR = (Comparison((0,), (1,)),)
TRIPLE = (Comparison((0,), (1,)), Comparison((0,), (2,)), Comparison((1,), (2,)))
REST = (Comparison((0,), (1, 2)), Comparison((1,), (0, 2)), Comparison((2,), (0, 1)))


def population(
    n: int = 60, *, groups: int = 2, classes: int = 2, weighted: bool = False, seed: int = 0
) -> Samples:
    """Groups of unequal size whose features and labels differ; the last cell is compared with
    nobody.
    """
    rng = np.random.default_rng(seed)
    shares = {2: (5, 2, 3), 3: (4, 1, 2, 3)}[groups]
    cell = rng.permutation(np.repeat(np.arange(groups + 1), [n * share // 10 for share in shares]))
    x = (
        rng.normal(size=(n, 3)) * [1, 10, 0.1]
        + [0, 50, 1]
        + np.array([0, 2, -1, 0.5])[cell][:, None] * [0.8, 6, 0.05]
    )
    score = (x[:, 0] + (x[:, 1] - 50) / 10 + rng.normal(size=n)) / 2
    y = np.digitize(score, [0.3, 1.0][: classes - 1])
    weight = rng.integers(1, 5, n) * 1.0 if weighted else np.ones(n)
    return Samples(
        *(
            torch.as_tensor(part)
            for part in (x, y.astype(float) if classes == 2 else y, cell, weight)
        )
    )


SHORT = Schedule(
    batch_size=60, epochs=30, learning_rate=0.03, learning_rate_decay=0.98, weight_decay=0.01
)


# --- the whole data set in every step
# ---------------------------------------------------------------------------


@pytest.mark.pairwise
@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
@pytest.mark.parametrize("comparisons", [PAIR, TRIPLE, REST], ids=["pair", "triple", "rest"])
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
def test_full_batches_follow_a_plain_pytorch_loop(
    comparisons: tuple[Comparison, ...], weighted: bool, estimate: str
) -> None:
    """Standardized by NumPy, penalized by the two-sample function, moved by PyTorch's Adam: the
    same to 1e-9.
    """
    data = population(groups=3, weighted=weighted)
    objective = Objective(BINARY, comparisons, estimate=estimate, combine="sum")
    found = train(data, Network(3), objective, strengths=[0.7], seeds=[4], schedule=SHORT)

    x, w = data.x.numpy(), data.weight.numpy()
    mean = np.average(x, axis=0, weights=w)
    z = torch.as_tensor((x - mean) / np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w)))
    start = Network(3).initial(4)
    coefficients = [start[name].clone().requires_grad_() for name in ("weight0", "bias0")]
    optimizer = torch.optim.Adam(coefficients, lr=0.03, weight_decay=0.01)
    for _ in range(SHORT.epochs):
        output = (z @ coefficients[0].T + coefficients[1]).squeeze(1)
        risk = torch.nn.functional.binary_cross_entropy_with_logits(
            output, data.y, data.weight / data.weight.mean()
        )
        penalty = 0.0
        for one in comparisons:
            left, right = (
                torch.isin(data.cell, torch.tensor(side)) for side in (one.left, one.right)
            )
            score = output.sigmoid()
            own = (
                {"u_weights": data.weight[left], "v_weights": data.weight[right]}
                if weighted
                else {}
            )
            penalty = penalty + energy_distance(
                score[left], score[right], unbiased=estimate == "population", **own
            )
        optimizer.zero_grad()
        (risk + 0.7 * penalty).backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.98
    torch.testing.assert_close(
        found.parameters["weight0"][0, 0], coefficients[0].detach(), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(
        found.parameters["bias0"][0, 0], coefficients[1].detach(), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("estimate", ["rows", "batch"])
def test_whole_integer_weights_are_repetitions_for_the_plug_in_penalty(estimate: str) -> None:
    data = population(weighted=True)
    repeated = data.take(torch.arange(len(data)).repeat_interleave(data.weight.long()))
    repeated = repeated.with_weight(torch.ones(len(repeated)).double())
    schedule = replace(SHORT, batch_size=len(repeated))
    objective = Objective(BINARY, PAIR, estimate=estimate)
    by_weight, by_repetition = (
        train(some, Network(3, (4,)), objective, strengths=[1.0], seeds=[0], schedule=schedule)
        for some in (data, repeated)
    )
    for name, value in by_weight.parameters.items():
        torch.testing.assert_close(value, by_repetition.parameters[name], rtol=1e-8, atol=1e-8)


# --- a stack and its members
# ------------------------------------------------------------------------------------

STRENGTHS, SEEDS = (0.0, 0.5, 4.0), (0, 11)


def some_rows(data: Samples, seeds: Sequence[int], drops: Sequence[int]) -> list[Tensor]:
    """For each seed other rows: all but so many of every cell."""
    chosen = []
    for seed, drop in zip(seeds, drops, strict=True):
        generator = torch.Generator().manual_seed(100 + seed)
        order = torch.randperm(len(data), generator=generator)
        kept = [order[data.cell[order] == cell][drop:] for cell in data.cell.unique()]
        chosen.append(torch.cat(kept))
    return chosen


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize(
    "model", [Network(3), Network(3, (8,)), Network(3, (8,), outputs=3)], ids=["linear", "mlp", "3"]
)
@pytest.mark.parametrize(
    ("size", "drops"),
    [(60, None), (20, None), (20, (3, 3)), (60, (3, 3)), (60, (1, 3))],
    ids=[
        "full batch",
        "minibatch",
        "minibatch, own rows",
        "full batch, own rows",
        "full batch, unequal own rows",
    ],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
def test_a_stack_equals_its_members_trained_alone(
    model: Network, size: int, drops: tuple[int, int] | None, weighted: bool
) -> None:
    """Small batches are single precision: 20 steps and 1e-4 leave room for its rounding, not
    for another batch.
    """
    data = population(groups=2, classes=max(2, model.outputs), weighted=weighted)
    rows = None if drops is None else some_rows(data, SEEDS, drops)
    schedule = Schedule(size, epochs=10, learning_rate=0.02)

    def run(
        strengths: Sequence[float], seeds: Sequence[int], rows: list[Tensor] | None
    ) -> TrainedStack:
        objective = Objective(
            MULTICLASS if model.outputs > 1 else BINARY,
            PAIR,
            generator=torch.Generator().manual_seed(5),
        )
        return train(
            data, model, objective, strengths=strengths, seeds=seeds, schedule=schedule, rows=rows
        )

    stack = run(STRENGTHS, SEEDS, rows)
    x = data.x.numpy()
    outputs = []
    for s, seed in enumerate(SEEDS):
        for k, strength in enumerate(STRENGTHS):
            alone = (
                run([strength], [seed], None if rows is None else [rows[s]])
                .predictor(0, 0)
                .output(x)
            )
            outputs.append(stack.predictor(s, k).output(x))
            np.testing.assert_allclose(
                outputs[-1], alone, rtol=0, atol=1e-9 if size == 60 else 1e-4
            )
    for one, other in combinations(outputs, 2):  # and the members are no copies of each other
        assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("size", [60, 20], ids=["full batch", "minibatch"])
def test_the_same_seed_gives_the_same_bits(size: int) -> None:
    data = population()

    def run() -> TrainedStack:
        schedule = Schedule(size, epochs=5, learning_rate=0.02)
        return train(
            data,
            Network(3, (8,)),
            Objective(BINARY, PAIR),
            strengths=[0, 1],
            seeds=[2, 3],
            schedule=schedule,
        )

    first, second = run(), run()
    for name, value in first.parameters.items():
        assert torch.equal(value, second.parameters[name])
        assert not torch.equal(value[0], value[1])


@dataclass(frozen=True)
class Fixed:
    """A linear model that starts at the same weights for every seed."""

    scale: Mapping[int, float]

    def initial(self, seed: int) -> dict[str, Tensor]:
        return {
            name: self.scale.get(seed, 1.0) * value for name, value in Network(3).initial(0).items()
        }

    def __call__(
        self, parameters: Mapping[str, Tensor], x: Tensor, *, training: bool = False
    ) -> Tensor:
        return Network(3)(parameters, x)


def test_seeds_that_start_alike_still_see_other_batches() -> None:
    data, schedule = population(), Schedule(20, epochs=1, learning_rate=0.02)
    found = train(
        data, Fixed({}), Objective(BINARY, PAIR), strengths=[1.0], seeds=[0, 1], schedule=schedule
    )
    assert not torch.equal(found.parameters["weight0"][0], found.parameters["weight0"][1])


# --- small batches estimate the whole
# ---------------------------------------------------------------------------


class Enough(Exception):
    """The first batch has been seen."""


@dataclass(eq=False)
class Recorded:
    """An objective that remembers the terms of its first call, and ends training there."""

    inner: Objective
    first: Terms | None = None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return self.inner.comparisons

    @property
    def least(self) -> int:
        return self.inner.least

    @property
    def fewest(self) -> int:
        return self.inner.fewest

    def __call__(self, output: Tensor, batch: Batch) -> Terms:
        terms = self.inner(output, batch)
        self.first = Terms(terms.risk.detach(), terms.unfairness.detach())
        raise Enough


def first_terms(data: Samples, objective: Objective, *, seeds: int, size: int) -> Terms:
    """Both terms of so many independent first batches, at the same parameters."""
    recorded: Any = Recorded(objective)
    schedule = Schedule(size, epochs=1, learning_rate=1e-3)
    with pytest.raises(Enough):
        train(data, Fixed({}), recorded, strengths=[1.0], seeds=range(seeds), schedule=schedule)
    return Terms(*(term.flatten().double() for term in recorded.first))


def whole_terms(data: Samples, comparisons: Sequence[Comparison], estimate: str) -> Terms:
    """The weighted risk, and what the mean penalty should be, from the definitions.

    The plug-in of the rows. Rows of equal weight are dealt without replacement, and as an estimate
    of the population batches then have the U-statistic as mean.
    """
    w = data.weight.numpy()
    mean = np.average(data.x, axis=0, weights=w)
    z = (data.x.numpy() - mean) / np.sqrt(
        np.average((data.x.numpy() - mean) ** 2, axis=0, weights=w)
    )
    start = Network(3).initial(0)
    output = z @ start["weight0"].numpy()[0] + start["bias0"].item()
    risk = np.average(np.logaddexp(0, output) - data.y.numpy() * output, weights=w)
    score, even = 1 / (1 + np.exp(-output)), bool((w == w[0]).all())
    penalty = 0.0
    for one in comparisons:
        (u, a), (v, b) = (
            (score[inside], w[inside])
            for inside in (np.isin(data.cell, s) for s in (one.left, one.right))
        )
        penalty += energy(u, v, a, b, unbiased=even and estimate == "population")
    return Terms(torch.tensor(risk), torch.tensor(penalty))


def z_score(values: Tensor, expected: Tensor) -> float:
    return float((values.mean() - expected) / (values.std() / math.sqrt(len(values))))


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("comparisons", [PAIR, TRIPLE], ids=["pair", "triple"])
@pytest.mark.parametrize("estimate", ["rows", "population"])
def test_batches_estimate_risk_and_unfairness_without_bias(
    estimate: str, comparisons: tuple[Comparison, ...], weighted: bool
) -> None:
    """3,000 independent batches of 9 out of 60 rows; chance alone exceeds 4.5 once in 10^5."""
    data = population(groups=3, weighted=weighted)
    objective = Objective(BINARY, comparisons, estimate=estimate, combine="sum")
    found = first_terms(data, objective, seeds=3000, size=9)
    expected = whole_terms(data, comparisons, estimate)
    assert abs(z_score(found.risk, expected.risk)) < 4.5
    assert abs(z_score(found.unfairness, expected.unfairness)) < 4.5


@pytest.mark.extended
def test_the_plug_in_penalty_of_batches_is_biased() -> None:
    """The control: what the test above would say of an estimate that is wrong."""
    data = population(groups=3)
    found = first_terms(data, Objective(BINARY, PAIR, estimate="batch"), seeds=3000, size=9)
    assert z_score(found.unfairness, whole_terms(data, PAIR, "population").unfairness) > 20
    assert z_score(found.unfairness, whole_terms(data, PAIR, "rows").unfairness) > 20


@pytest.mark.extended
def test_the_estimate_of_the_population_is_not_that_of_the_rows() -> None:
    """The other control."""
    data = population(groups=3)
    found = first_terms(data, Objective(BINARY, PAIR, estimate="population"), seeds=3000, size=9)
    assert z_score(found.unfairness, whole_terms(data, PAIR, "rows").unfairness) < -8


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("estimate", ["population", "rows"])
def test_each_against_the_rest_is_estimated_on_the_true_mixture(
    estimate: str, weighted: bool
) -> None:
    """A side that mixes cells has strata: the mean is the plug-in of the true mixture of cells.

    Even rows are dealt without replacement within each cell, and the estimate of the population
    leaves out i = j within each: its mean takes all pairs of different rows in a cell, as the
    stratified oracle does.
    """
    data = population(groups=3, weighted=weighted)
    objective = Objective(BINARY, REST, estimate=estimate, combine="sum")
    found = first_terms(data, objective, seeds=3000, size=7)  # 2, 2, 2 and 1: far from the shares
    pairs = not weighted and estimate == "population"
    expected = stratified_rest(data) if pairs else whole_terms(data, REST, estimate).unfairness
    assert abs(z_score(found.unfairness, expected)) < 4.5


def stratified_rest(data: Samples) -> Tensor:
    mean, scale = weighted_moments(data.x, data.weight)
    start = Network(3).initial(0)
    score = torch.sigmoid(
        ((data.x - mean) / scale) @ start["weight0"][0] + start["bias0"].squeeze()
    ).numpy()
    total = 0.0
    for one in REST:
        parts = [
            [score[data.cell.numpy() == cell] for cell in side] for side in (one.left, one.right)
        ]
        coefficients = pair_coefficients(
            *([np.ones(len(part)) for part in side] for side in parts), unbiased=True
        )
        z = np.concatenate([*parts[0], *parts[1]])
        total -= float((coefficients * np.abs(z[:, None] - z[None, :])).sum())
    return torch.tensor(total)


# --- what is refused, and what goes wrong
# -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [60, 20], ids=["full batch", "minibatch"])
@pytest.mark.parametrize("how", ["strength", "seed"])
def test_a_model_that_diverges_is_marked_and_the_others_do_not_notice(size: int, how: str) -> None:
    data = population()
    schedule = Schedule(size, epochs=6, learning_rate=0.02)

    def run(last_strength: float, scale: float) -> TrainedStack:
        objective = Objective(regression(), PAIR)
        strengths = [0.0, 1.0, last_strength]
        return train(
            data, Fixed({9: scale}), objective, strengths=strengths, seeds=[8, 9], schedule=schedule
        )

    disturbed = run(math.inf, 1.0) if how == "strength" else run(2.0, 1e200)
    expected = torch.zeros(2, 3, dtype=torch.bool)
    if how == "strength":
        expected[:, 2] = True
    else:
        expected[1] = True
    calm = run(2.0, 1.0)
    assert torch.equal(disturbed.failed, expected)
    assert not calm.failed.any()
    for name, value in disturbed.parameters.items():
        # to rounding
        torch.testing.assert_close(value[~expected], calm.parameters[name][~expected])
        assert not value[expected].any()  # as the class promises: all 0


@pytest.mark.parametrize("size", [60, 20], ids=["full batch", "minibatch"])
def test_a_step_too_large_marks_all_models_and_leaves_no_nan(size: int) -> None:
    schedule = Schedule(size, epochs=4, learning_rate=1e300)
    found = train(
        population(),
        Network(3, (4,)),
        Objective(regression(), PAIR),
        strengths=[0, 1],
        seeds=[0],
        schedule=schedule,
    )
    assert found.failed.all()
    assert all(value.isfinite().all() for value in found.parameters.values())


@pytest.mark.parametrize(
    ("size", "strength"), [(60, 1e200), (20, 1e30)], ids=["full batch", "minibatch"]
)
def test_a_strength_whose_square_overflows_is_no_silent_success(size: int, strength: float) -> None:
    """Adam divides by the root of an infinite moment: the model would never move, and nobody
    would know.
    """
    schedule = Schedule(size, epochs=4, learning_rate=0.02)
    found = train(
        population(),
        Network(3),
        Objective(regression(), PAIR),
        strengths=[strength],
        seeds=[0],
        schedule=schedule,
    )
    assert found.failed.all()


def test_a_module_with_a_single_number_can_be_trained() -> None:
    class Slope(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = torch.nn.Parameter(torch.tensor(0.0))

        def forward(self, x: Tensor) -> Tensor:
            return self.slope * x[:, 0]

    schedule = Schedule(60, epochs=3, learning_rate=0.02)
    found = train(
        population(),
        StackedModule(Slope()),
        Objective(BINARY, PAIR),
        strengths=[1.0],
        seeds=[0],
        schedule=schedule,
    )
    assert found.parameters["slope"].abs().item() > 0.01


def test_seeds_must_all_hold_every_group() -> None:
    data = population()
    rows = [torch.arange(len(data)), (data.cell != 1).nonzero()[:, 0]]
    with pytest.raises(DataError) as caught:
        train(
            data,
            Network(3),
            Objective(BINARY, PAIR),
            strengths=[1.0],
            seeds=[0, 1],
            schedule=SHORT,
            rows=rows,
        )
    assert str(caught.value) == (
        "some seeds' training rows lack a cell that others have; choose splits that hold every "
        "group"
    )


TOO_FEW = {
    60: "an unbiased distance needs 2 scores of each kind on each side, got 30 and 1; use a larger "
    "batch size, or "
    "the biased distance (estimate='batch' of a penalty, unbiased=False of a function)",
    20: "comparing sex 'f' against 'm', everyone: group 'm' has 1 sample(s) there, and 2 of each "
    "kind are needed; "
    "merge small groups, mark them as missing, or use estimate='rows' or 'batch'",
}


@pytest.mark.parametrize(("size", "message"), TOO_FEW.items(), ids=["full batch", "minibatch"])
def test_a_group_of_one_is_too_few_for_an_unbiased_penalty(size: int, message: str) -> None:
    data = population()
    named = (replace(PAIR[0], attribute="sex", groups=("f", "m")),)
    data = replace(
        data, cell=torch.where(torch.arange(60) < 30, 0, torch.where(torch.arange(60) == 30, 1, 2))
    )
    schedule = replace(SHORT, batch_size=size)
    objective = Objective(BINARY, named, estimate="population")
    with pytest.raises(TooFewSamples) as caught:
        train(data, Network(3), objective, strengths=[1.0], seeds=[0], schedule=schedule)
    assert str(caught.value) == message
    if size == 60:
        assert caught.value.__notes__ == ["comparing sex 'f' against 'm', everyone"]
    for estimate in ("rows", "batch"):
        objective = Objective(BINARY, named, estimate=estimate)
        train(data, Network(3), objective, strengths=[1.0], seeds=[0], schedule=schedule)


def test_batches_that_must_grow_say_so() -> None:
    schedule = Schedule(4, epochs=1, learning_rate=0.01)
    with pytest.warns(UserWarning, match="^batches hold") as caught:
        train(
            population(groups=3),
            Network(3),
            Objective(BINARY, TRIPLE),
            strengths=[1.0],
            seeds=[0],
            schedule=schedule,
        )
    assert [str(one.message) for one in caught] == [
        "batches hold 7 samples instead of 4, so that each has 2 of every group that is compared"
    ]


# --- standard units and predictions
# -----------------------------------------------------------------------------


def test_moments_are_those_of_numpy_and_a_constant_keeps_its_unit() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(3, 2, size=(50, 4)), rng.uniform(0.1, 2, 50)
    x[:, 3] = 0.1 + 0.2  # rounding must not become a spread
    mean, scale = (
        part.numpy() for part in weighted_moments(torch.as_tensor(x), torch.as_tensor(weight))
    )
    expected = np.average(x, axis=0, weights=weight)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(
        scale[:3], np.sqrt(np.average((x - expected) ** 2, axis=0, weights=weight))[:3], rtol=1e-12
    )
    assert scale[3] == 1.0


@pytest.mark.parametrize(
    ("size", "tolerance"), [(60, 1e-9), (20, 1e-3)], ids=["full batch", "minibatch"]
)
def test_the_units_of_the_features_do_not_matter(size: int, tolerance: float) -> None:
    data = population()
    other = replace(
        data, x=data.x * torch.tensor([1e-4, 1e5, -3.0]) + torch.tensor([2e-3, -1e4, 0.0])
    )
    schedule = replace(SHORT, batch_size=size, epochs=10)
    model = Network(3, (4,))

    def run(some: Samples) -> np.ndarray:
        found = train(
            some, model, Objective(BINARY, PAIR), strengths=[1.0], seeds=[0], schedule=schedule
        )
        return found.predictor(0, 0).output(some.x.numpy())

    mirrored = replace(data, x=data.x * torch.tensor([1.0, 1.0, -1.0]))
    np.testing.assert_allclose(run(other), run(mirrored), atol=tolerance)
    assert np.abs(run(other) - run(data)).max() > 10 * tolerance  # the sign of a feature does


@pytest.mark.parametrize("drops", [(2, 2), (1, 3)], ids=["equal", "unequal"])
def test_full_batches_of_own_rows_are_exact_for_every_metric(drops: tuple[int, int]) -> None:
    """Places that are left over must not count, neither in the risk nor in a distance."""
    data = population(weighted=True)
    rows = some_rows(data, SEEDS, drops)

    def run(metric: str, seeds: Sequence[int], rows: list[Tensor]) -> TrainedStack:
        objective = Objective(BINARY, PAIR, metric=metric)
        schedule = Schedule(60, epochs=5, learning_rate=0.02)
        return train(
            data, Network(3), objective, strengths=[2.0], seeds=seeds, schedule=schedule, rows=rows
        )

    for metric in METRICS:
        stack = run(metric, SEEDS, rows)
        for s, seed in enumerate(SEEDS):
            alone = run(metric, [seed], [rows[s]])
            torch.testing.assert_close(
                stack.parameters["weight0"][s],
                alone.parameters["weight0"][0],
                rtol=0,
                atol=1e-9,
                msg=metric,
            )


def test_without_standardizing_features_are_taken_as_they_are() -> None:
    data = population()
    found = train(
        data,
        Fixed({}),
        Objective(BINARY, PAIR),
        strengths=[0.0],
        seeds=[0],
        schedule=SHORT,
        standardize=False,
    )
    one = found.predictor(0, 0)
    weight, bias = one.parameters["weight0"][0, 0, 0].numpy(), one.parameters["bias0"].item()
    np.testing.assert_allclose(
        one.output(data.x.numpy()), data.x.numpy() @ weight + bias, rtol=1e-12
    )


def test_predictions_do_not_depend_on_the_pieces_they_are_made_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = population()
    found = train(
        data, Network(3, (8,)), Objective(BINARY, PAIR), strengths=[1.0], seeds=[0], schedule=SHORT
    )
    one, x = found.predictor(0, 0), data.x.numpy()
    together = one.output(x)
    monkeypatch.setattr(models, "_ROWS_TO_PREDICT", 7)
    np.testing.assert_allclose(one.output(x), together, rtol=1e-12, atol=1e-12)
