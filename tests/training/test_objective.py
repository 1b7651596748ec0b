"""Both terms of the objective against direct formulas, for every task, score and metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special, stats
from stratified_pass import stratified
from torch import Tensor

from metrifair.batches import whole
from metrifair.criteria import EQUALIZED_ODDS, RISK_PARITY, STATISTICAL_PARITY, Criterion
from metrifair.errors import DataError, TooFewSamples
from tests.expected_errors import Refusals
from tests.seams.batches import Batch, Samples, tensor_sides
from tests.seams.metrics import METRICS
from tests.seams.problem import (
    REGRESSION_LOSSES,
    Attribute,
    Comparison,
    Dependence,
    compile_cells,
    separate_strata,
)
from tests.seams.training import BINARY, MULTICLASS, Objective, constant_output, regression

RANDOM = np.random.default_rng(11)
N, CLASSES, MODELS = 30, 3, 4
CELL = torch.as_tensor(np.arange(N) % 4)
COMPARISONS = (
    Comparison((0,), (1,)),
    Comparison((0, 2), (1, 3)),
    Comparison((2,), (1,), "race", "y=1", ("a", "b")),
)
WEIGHT = torch.as_tensor(RANDOM.uniform(0.5, 1.5, N))
OUTPUT = {
    "binary": torch.as_tensor(RANDOM.normal(size=(MODELS, N))) + 0.4 * CELL,
    "multiclass": torch.as_tensor(RANDOM.normal(size=(MODELS, N, CLASSES))) + 0.4 * CELL[:, None],
}
OUTPUT["multiclass"][..., 0] -= 0.8 * CELL  # or the shift would cancel in the softmax
OUTPUT["regression"] = OUTPUT["binary"]
Y = {
    "binary": torch.as_tensor(RANDOM.integers(0, 2, N)).double(),
    "multiclass": torch.as_tensor(RANDOM.integers(0, CLASSES, N)),
    "regression": torch.as_tensor(RANDOM.normal(size=N)),
}
TASKS = {
    "binary": BINARY,
    "multiclass": MULTICLASS,
    **{loss: regression(loss) for loss in REGRESSION_LOSSES},
}


def batch_for(task: Any) -> Batch:
    return whole(Samples(torch.zeros(N, 0), Y[task.name], CELL, WEIGHT), COMPARISONS)


def losses(name: str, output: np.ndarray, y: np.ndarray) -> np.ndarray:
    error = output - y if output.ndim == y.ndim else None
    return {
        "binary": lambda: -np.log(special.expit(np.where(y == 1, output, -output))),
        "multiclass": lambda: (
            -np.log(special.softmax(output, -1)[np.arange(len(y)), y.astype(int)])
        ),
        "squared_error": lambda: error**2,
        "absolute_error": lambda: np.abs(error),
        "huber": lambda: special.huber(1.0, error),
    }[name]()


def predictions(name: str, output: np.ndarray) -> np.ndarray:
    link = {"binary": special.expit, "multiclass": lambda z: special.softmax(z, -1)}
    return link.get(name, np.asarray)(output)


def sides(score: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (score[np.isin(CELL, one.left)], score[np.isin(CELL, one.right)]) for one in COMPARISONS
    ]


def energy(u: np.ndarray, v: np.ndarray, *, unbiased: bool) -> float:
    """By its definition, over pairs; points of R^d along the last axis."""
    u, v = (side.reshape(len(side), -1) for side in (u, v))

    def mean(first: np.ndarray, second: np.ndarray, pairs: int) -> float:
        return np.linalg.norm(first[:, None] - second, axis=-1).sum() / pairs

    n, m = len(u), len(v)
    fewer = 1 if unbiased else 0
    return 2 * mean(u, v, n * m) - mean(u, u, n * (n - fewer)) - mean(v, v, m * (m - fewer))


def summed(score: np.ndarray, distance: Callable[[np.ndarray, np.ndarray], float]) -> float:
    return sum(distance(u, v) for u, v in sides(score))


@pytest.mark.parametrize("name", TASKS)
def test_risk_is_the_weighted_mean_loss(name: str) -> None:
    task = TASKS[name]
    risk = Objective(task, COMPARISONS)(OUTPUT[task.name], batch_for(task)).risk
    expected = [
        (WEIGHT.numpy() * losses(name, one, Y[task.name].numpy())).mean()
        for one in OUTPUT[task.name].numpy()
    ]
    np.testing.assert_allclose(risk, expected, rtol=1e-12)


SCORES: dict[str, tuple[dict[str, object], Callable[[str, np.ndarray, np.ndarray], np.ndarray]]] = {
    "prediction": ({}, lambda name, z, y: predictions(name, z)),
    "penalize output": ({"penalize": "output"}, lambda name, z, y: z),
    "output": ({"criterion": Criterion("outputs", score="output")}, lambda name, z, y: z),
    "equalized odds": ({"criterion": EQUALIZED_ODDS}, lambda name, z, y: predictions(name, z)),
    "risk parity": ({"criterion": RISK_PARITY}, losses),
    "log prediction": (
        {"criterion": Criterion("logs", score="log_prediction")},
        lambda name, z, y: np.log(np.maximum(predictions(name, z), 1e-12)),
    ),
    "callable": (
        {"criterion": Criterion("mine", score=lambda prediction, y: (prediction - y).square())},
        lambda name, z, y: (predictions(name, z) - y) ** 2,
    ),
}
SCALAR_SCORES = [
    (name, score)
    for name, task in TASKS.items()
    for score in SCORES
    if not task.vector or score == "risk parity"  # others are vectors there
]


@pytest.mark.parametrize("name", TASKS)
def test_outputs_predictions_and_their_logarithms_belong_together(name: str) -> None:
    task = TASKS[name]
    prediction = task.prediction(OUTPUT[task.name]).abs()  # logarithms need positive numbers
    np.testing.assert_allclose(task.prediction(task.output(prediction)), prediction, rtol=1e-12)
    if task.name != "regression":
        np.testing.assert_allclose(
            task.log_prediction(OUTPUT[task.name]).exp(), prediction, rtol=1e-12
        )


@pytest.mark.parametrize("added", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", ["binary", "multiclass", "squared_error"])
def test_no_other_constant_has_less_risk_on_the_rows_and_those_added(
    name: str, added: float
) -> None:
    """A part of a row of each class is added; weights count by their ratios alone."""
    task, outputs = TASKS[name], CLASSES if name == "multiclass" else 1
    y, weight = Y[task.name], WEIGHT / WEIGHT.mean()
    if task.name != "regression":
        classes = torch.arange(max(2, outputs)).to(y.dtype)
        y, weight = torch.cat([y, classes]), torch.cat([weight, torch.full((len(classes),), added)])

    def risk(output: Tensor) -> Tensor:
        of_all = output.expand(len(y), outputs)
        return (weight * task.loss(of_all if task.vector else of_all[:, 0], y)).sum()

    found = constant_output(task, Y[task.name], 7 * WEIGHT, outputs, added=added).requires_grad_()
    assert found.shape == (outputs,)
    (slope,) = torch.autograd.grad(risk(found), found)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)  # the risk is convex
    if task.vector:
        assert found.sum().item() == pytest.approx(0.0, abs=1e-12)


def test_half_a_row_of_each_class_is_added_unless_told() -> None:
    for task, outputs in ((BINARY, 1), (MULTICLASS, CLASSES)):
        given = task, Y[task.name], WEIGHT, outputs
        assert torch.equal(constant_output(*given), constant_output(*given, added=0.5))


@pytest.mark.parametrize("metric", METRICS)
def test_a_population_needs_as_many_rows_as_a_batch_and_training_rows_need_one(metric: str) -> None:
    needed = {
        estimate: (objective.least, objective.fewest)
        for estimate in ("rows", "population", "batch")
        for objective in [Objective(BINARY, COMPARISONS, metric=metric, estimate=estimate)]
    }
    pairs = 2 if METRICS[metric].unbiased else 1
    assert needed == {"rows": (pairs, 1), "population": (pairs, pairs), "batch": (1, 1)}


@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
@pytest.mark.parametrize(("name", "score"), SCALAR_SCORES)
def test_unfairness_is_the_sum_of_energies_of_the_scores(
    name: str, score: str, estimate: str
) -> None:
    """A batch of all rows: their plug-in value, but for the estimate of the population."""
    task, (options, formula) = TASKS[name], SCORES[score]
    output = OUTPUT[task.name][0]
    objective = Objective(task, COMPARISONS, estimate=estimate, combine="sum", **options)
    found = objective(output, batch_for(task)).unfairness
    expected = formula(name, output.numpy(), Y[task.name].numpy())
    of_population = estimate == "population"
    assert found.item() == pytest.approx(
        summed(expected, lambda u, v: energy(u, v, unbiased=of_population)), rel=1e-10
    )


def test_a_score_of_your_own_receives_predictions_and_labels() -> None:
    criterion = replace(
        STATISTICAL_PARITY, name="mine", score=lambda prediction, y: prediction - 3 * y
    )
    objective = Objective(BINARY, COMPARISONS, criterion, combine="sum")
    output = OUTPUT["binary"][0]
    expected = special.expit(output.numpy()) - 3 * Y["binary"].numpy()
    found = objective(output, batch_for(BINARY)).unfairness
    assert found.item() == pytest.approx(
        summed(expected, lambda u, v: energy(u, v, unbiased=False)), rel=1e-10
    )


DISTANCES = {
    "kolmogorov": lambda u, v: stats.ks_2samp(u, v, method="asymp").statistic,
    "wasserstein": stats.wasserstein_distance,
    "cramer": lambda u, v: stats.energy_distance(u, v) ** 2 / 2,
    "lp": lambda u, v: stats.energy_distance(u, v) / math.sqrt(2),
}


@pytest.mark.parametrize("metric", DISTANCES)
def test_other_metrics_are_those_of_scipy(metric: str) -> None:
    output = OUTPUT["binary"][0]
    found = Objective(BINARY, COMPARISONS, metric=metric, combine="sum")(
        output, batch_for(BINARY)
    ).unfairness
    assert found.item() == pytest.approx(
        summed(special.expit(output.numpy()), DISTANCES[metric]), rel=1e-10
    )


@pytest.mark.parametrize("metric", DISTANCES)
def test_metrics_of_numbers_go_class_by_class(metric: str) -> None:
    output = OUTPUT["multiclass"][0]
    found = Objective(MULTICLASS, COMPARISONS, metric=metric, combine="sum")(
        output, batch_for(MULTICLASS)
    ).unfairness
    shares = special.softmax(output.numpy(), -1)
    expected = sum(summed(shares[:, k], DISTANCES[metric]) for k in range(CLASSES))
    assert found.item() == pytest.approx(expected, rel=1e-10)


def test_a_function_of_two_samples_is_a_metric() -> None:
    output = OUTPUT["binary"]
    objective = Objective(
        BINARY, COMPARISONS, metric=lambda u, v: (u.mean(-1) - v.mean(-1)).abs(), combine="sum"
    )
    expected = [
        summed(one, lambda u, v: abs(u.mean() - v.mean())) for one in special.expit(output.numpy())
    ]
    np.testing.assert_allclose(objective(output, batch_for(BINARY)).unfairness, expected)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize(
    ("penalize", "slices"),
    [pytest.param("prediction", 1, marks=pytest.mark.extended), ("output", 3)],
)
def test_sliced_energies_of_class_probabilities_average_to_the_energy_of_vectors(
    penalize: str, slices: int, unbiased: bool
) -> None:
    output = OUTPUT["multiclass"][0]
    objective = Objective(
        MULTICLASS,
        COMPARISONS,
        estimate="population" if unbiased else "rows",
        combine="sum",
        penalize=penalize,
        slices=slices,
        generator=torch.Generator().manual_seed(8),
    )
    batch = batch_for(MULTICLASS)
    found = torch.stack([objective.unfairness(output, batch) for _ in range(800)])
    score = output.numpy() if penalize == "output" else special.softmax(output.numpy(), -1)
    expected = summed(score, lambda u, v: energy(u, v, unbiased=unbiased))
    error = found.std() / len(found) ** 0.5
    assert abs(found.mean() - expected) < 4 * error
    assert error < 0.03 * expected  # so that a wrong scale would show


def test_many_slices_are_close_to_the_energy_of_vectors() -> None:
    output = OUTPUT["multiclass"][0]
    found = Objective(MULTICLASS, COMPARISONS, estimate="population", combine="sum", slices=20_000)(
        output, batch_for(MULTICLASS)
    ).unfairness
    expected = summed(special.softmax(output.numpy(), -1), lambda u, v: energy(u, v, unbiased=True))
    assert found.item() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("slices", "calls", "rel"), [(20_000, 1, 0.03), (2, 2_000, 0.05)])
def test_sliced_dependence_is_the_distance_covariance_of_vectors(
    slices: int, calls: int, rel: float
) -> None:
    """By its definition: the mean product of doubly centered Euclidean distances."""
    output, number = (
        OUTPUT["multiclass"][0],
        1.0 * CELL + torch.as_tensor(np.random.default_rng(5).normal(size=N)),
    )
    dependence = Dependence((0, 1, 2, 3), attribute="age", scale=1.0)
    objective = Objective(
        MULTICLASS,
        (dependence,),
        estimate="batch",
        combine="sum",
        slices=slices,
        generator=torch.Generator().manual_seed(3),
    )
    batch = whole(
        Samples(torch.zeros(N, 0), Y["multiclass"], CELL, WEIGHT, number[:, None]), (dependence,)
    )
    found = np.mean([objective.unfairness(output, batch).item() for _ in range(calls)])

    def centered(points: np.ndarray) -> np.ndarray:
        apart = np.linalg.norm(points[:, None] - points, axis=-1)
        return apart - apart.mean(0) - apart.mean(1)[:, None] + apart.mean()

    score = special.softmax(output.numpy(), -1)
    expected = (centered(score) * centered(number.numpy()[:, None])).mean()
    assert found == pytest.approx(expected, rel=rel)


RHO = [lambda z: z.square(), lambda z: torch.sqrt(z.clamp_min(0) + 0.1), lambda z: 3 * z]


@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize("metric", ["energy", "wasserstein"])
def test_rho_acts_on_each_comparison_before_the_sum(
    rho: Callable[[Tensor], Tensor], metric: str
) -> None:
    output = OUTPUT["binary"]
    batch = batch_for(BINARY)
    whole_sum = Objective(BINARY, COMPARISONS, metric=metric, combine="sum", rho=rho)(
        output, batch
    ).unfairness
    one_by_one = [
        rho(
            Objective(BINARY, (one,), metric=metric)(output, whole(batch.samples, [one])).unfairness
        )
        for one in COMPARISONS
    ]
    torch.testing.assert_close(whole_sum, torch.stack(one_by_one).sum(0))


def test_rho_acts_on_each_class_too() -> None:
    output = OUTPUT["multiclass"][0]
    objective = Objective(
        MULTICLASS, COMPARISONS, metric="wasserstein", combine="sum", rho=torch.square
    )
    shares = special.softmax(output.numpy(), -1)
    expected = sum(
        summed(shares[:, k], lambda u, v: stats.wasserstein_distance(u, v) ** 2)
        for k in range(CLASSES)
    )
    assert objective(output, batch_for(MULTICLASS)).unfairness.item() == pytest.approx(
        expected, rel=1e-10
    )


def apart(
    groups: int,
    criterion: Criterion,
    *,
    attributes: int = 1,
    strata: int = 1,
    combine: str = "mean",
) -> float:
    """The penalty of groups that are equally far from each other, MMD 2, in every set: score
    100 x group.
    """
    named = [Attribute(f"attribute {a}", tuple(range(groups))) for a in range(attributes)]
    within = separate_strata([f"stratum {k}" for k in range(strata)]) if strata > 1 else None
    cells = compile_cells(criterion, named, classes=(0, 1), strata=within)
    group, y, stratum = (
        part.ravel() for part in np.meshgrid(np.arange(groups), [0, 1], np.arange(strata))
    )
    cell = cells.of(
        np.stack([group] * attributes, 1), labels=y, strata=stratum if strata > 1 else None
    )
    samples = Samples(
        torch.zeros(len(y), 0), torch.zeros(len(y)), torch.as_tensor(cell), torch.ones(len(y))
    )
    objective = Objective(regression(), cells.comparisons, criterion, metric="mmd", combine=combine)
    return objective.unfairness(
        torch.as_tensor(100.0 * group), whole(samples, cells.comparisons)
    ).item()


@pytest.mark.parametrize("groups", [2, 3, 8])
@pytest.mark.parametrize("strata", [1, 4])
def test_the_mean_of_equal_comparisons_is_one_of_them(groups: int, strata: int) -> None:
    """So that a strength means the same for two groups and for eight, in one stratum and in
    four.
    """
    comparisons = strata * math.comb(groups, 2)
    assert apart(groups, STATISTICAL_PARITY, strata=strata) == pytest.approx(2.0, abs=1e-12)
    summed_up = apart(groups, STATISTICAL_PARITY, strata=strata, combine="sum")
    assert summed_up == pytest.approx(2.0 * comparisons, abs=1e-9)


@pytest.mark.parametrize("groups", [2, 8])
def test_labels_and_attributes_are_summed_even_so(groups: int) -> None:
    assert apart(groups, EQUALIZED_ODDS) == pytest.approx(4.0, abs=1e-12)
    assert apart(groups, EQUALIZED_ODDS, strata=3) == pytest.approx(4.0, abs=1e-12)
    assert apart(groups, STATISTICAL_PARITY, attributes=2) == pytest.approx(4.0, abs=1e-12)


def test_two_groups_are_the_same_either_way() -> None:
    output = OUTPUT["binary"]
    mean, total = (
        Objective(BINARY, COMPARISONS[:1], combine=combine)(
            output, whole(batch_for(BINARY).samples, COMPARISONS[:1])
        )
        for combine in ("mean", "sum")
    )
    assert torch.equal(mean.unfairness, total.unfairness)


def test_rho_acts_before_the_mean() -> None:
    output, batch = OUTPUT["binary"], batch_for(BINARY)
    mean, total = (
        Objective(BINARY, COMPARISONS[:2], combine=combine, rho=torch.square).unfairness(
            output, whole(batch.samples, COMPARISONS[:2])
        )
        for combine in ("mean", "sum")
    )
    torch.testing.assert_close(2 * mean, total)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", TASKS)
def test_many_models_at_once_are_each_on_its_own(name: str, metric: str) -> None:
    task = TASKS[name]
    output, batch = OUTPUT[task.name], batch_for(task)

    def terms(given: Tensor) -> tuple[Tensor, Tensor]:
        return Objective(
            task, COMPARISONS, metric=metric, generator=torch.Generator().manual_seed(3)
        )(given, batch)

    together = terms(output)
    grid = terms(output.unflatten(0, (2, MODELS // 2)))
    for k, (risk, unfairness) in enumerate(zip(*together, strict=True)):
        alone = terms(output[k])
        torch.testing.assert_close(risk, alone.risk)
        torch.testing.assert_close(unfairness, alone.unfairness)
        torch.testing.assert_close(grid.unfairness[k // 2, k % 2], alone.unfairness)
    assert grid.risk.shape == grid.unfairness.shape == (2, MODELS // 2)


@pytest.mark.parametrize("metric", ["energy", "wasserstein", "cramer", "lp", "mmd"])
@pytest.mark.parametrize("name", TASKS)
def test_the_gradient_is_that_of_the_value(name: str, metric: str) -> None:
    task = TASKS[name]
    batch = batch_for(task)
    output = OUTPUT[task.name][0].clone().requires_grad_()

    def both(given: Tensor) -> Tensor:
        objective = Objective(
            task, COMPARISONS, metric=metric, generator=torch.Generator().manual_seed(3)
        )
        terms = objective(given, batch)
        return terms.risk + 2 * terms.unfairness

    assert torch.autograd.gradcheck(both, (output,), eps=1e-7, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("metric", ["energy", "wasserstein", "cramer", "lp", "mmd"])
def test_gradients_reach_every_compared_sample_and_no_other(metric: str) -> None:
    output = OUTPUT["binary"][0].clone().requires_grad_()
    unfairness = Objective(BINARY, COMPARISONS[:1], metric=metric).unfairness(
        output, whole(batch_for(BINARY).samples, COMPARISONS[:1])
    )
    (slope,) = torch.autograd.grad(unfairness, output)
    assert (slope[CELL >= 2] == 0).all()
    assert slope[CELL < 2].count_nonzero() > 0.8 * (CELL < 2).sum()


def test_stratified_sides_bring_their_shares() -> None:
    """A side of two cells in a batch that holds too many of one: the objective undoes it."""
    rng = np.random.default_rng(99)
    cell = torch.tensor([0] * 12 + [1] * 4 + [2] * 8)
    x = torch.as_tensor(rng.normal(size=24)) + 3 * (cell == 1)
    data = Samples(x[:, None], torch.zeros(24).double(), cell, torch.ones(24).double())
    comparisons = (Comparison((0, 1), (2,)),)
    (batch,) = stratified(data, comparisons, size=24, generator=torch.Generator())
    found = Objective(regression(), comparisons, estimate="batch")(batch.samples.x[:, 0], batch)
    expected = energy(x[cell < 2].numpy(), x[cell == 2].numpy(), unbiased=False)
    assert found.unfairness.item() == pytest.approx(expected, rel=1e-10)
    assert found.risk.item() == pytest.approx(x.square().mean().item())


@pytest.mark.parametrize("name", TASKS)
def test_without_comparisons_nothing_is_unfair(name: str) -> None:
    task = TASKS[name]
    samples = batch_for(task).samples
    output = OUTPUT[task.name].clone().requires_grad_()
    terms = Objective(task, ())(output, whole(samples, ()))
    assert terms.unfairness == 0
    (terms.risk + 5 * terms.unfairness).sum().backward()
    assert output.grad.count_nonzero() > 0


@pytest.mark.parametrize(
    "criterion", [RISK_PARITY, replace(RISK_PARITY, name="mine", score=lambda p, y: p)]
)
def test_compare_with_another_score_is_refused(criterion: Criterion, refused: Refusals) -> None:
    with refused(DataError):
        Objective(BINARY, COMPARISONS, criterion, penalize="output")(
            OUTPUT["binary"], batch_for(BINARY)
        )


def test_the_comparison_that_has_too_few_samples_is_named() -> None:
    rows = (CELL != 1) | (torch.arange(N) == 1)  # one sample of cell 1 is left
    samples = batch_for(BINARY).samples.take(rows.nonzero()[:, 0])
    with pytest.raises(TooFewSamples) as caught:
        Objective(BINARY, COMPARISONS[2:], estimate="population")(
            OUTPUT["binary"][:, rows], whole(samples, COMPARISONS[2:])
        )
    assert caught.value.__notes__ == ["comparing race 'a' against 'b', y=1"]


def test_an_unknown_metric_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DataError) as caught:
        Objective(BINARY, COMPARISONS, metric="kolmogoroff")(OUTPUT["binary"], batch_for(BINARY))
    assert str(caught.value) == (
        "metric must be one of 'energy', 'kolmogorov', 'wasserstein', 'cramer', 'lp', 'mmd', "
        "'total_variation' or a "
        "function, got 'kolmogoroff'; did you mean 'kolmogorov'?"
    )


def test_statistical_parity_and_energy_are_the_defaults() -> None:
    objective = Objective(BINARY, COMPARISONS)
    assert (objective.criterion, objective.metric, objective.estimate) == (
        STATISTICAL_PARITY,
        "energy",
        "rows",
    )
    assert (objective.combine, objective.penalize, objective.rho) == ("mean", "prediction", None)


COUNTED = {"binary": BINARY, "regression": regression()}


@pytest.mark.pairwise
@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
@pytest.mark.parametrize("penalize", ["prediction", "output"])
@pytest.mark.parametrize("name", COUNTED)
def test_slopes_by_counting_are_those_of_autograd(name: str, penalize: str, estimate: str) -> None:
    cell = torch.tensor([0] * 12 + [1] * 4 + [2] * 8)
    y = Y[name][:24]
    data = Samples(torch.zeros(24, 0), y, cell, WEIGHT[:24] / WEIGHT[:24])
    comparisons = (Comparison((0,), (1,)), Comparison((1,), (2,)), Comparison((0,), (2,), "other"))
    objective = Objective(COUNTED[name], comparisons, estimate=estimate, penalize=penalize)
    (batch,) = stratified(data, comparisons, size=14, generator=torch.Generator())
    output = OUTPUT[name][0, : len(batch.samples)].clone().requires_grad_()
    terms = objective(output[None], batch)  # of many models at once, nothing is counted
    (expected,) = torch.autograd.grad((terms.risk + 3 * terms.unfairness).sum(), output)
    found = objective.slopes(output.detach().numpy(), batch, 3.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    alone = objective(output, batch)
    torch.testing.assert_close(torch.stack(alone), torch.cat(terms), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("class_weight", [(), (0.5, 3.0)])
@pytest.mark.parametrize("estimate", ["rows", "batch"])
def test_slopes_of_dependences_are_those_of_autograd(
    estimate: str, class_weight: tuple[float, ...]
) -> None:
    number = torch.as_tensor(np.random.default_rng(5).normal(size=(N, 2)))
    parts = (
        Dependence((0, 1), attribute="age"),
        Dependence((2, 3), attribute="age"),
        Dependence((0, 3), column=1),
    )
    objective = Objective(BINARY, parts, estimate=estimate, class_weight=class_weight)
    assert min(objective.weights) != 1
    batch = whole(Samples(torch.zeros(N, 0), Y["binary"], CELL, WEIGHT, number), parts)
    output = OUTPUT["binary"][0].clone().requires_grad_()
    terms = objective(output, batch)
    (expected,) = torch.autograd.grad(terms.risk + 3 * terms.unfairness, output)
    np.testing.assert_allclose(
        objective.slopes(output.detach().numpy(), batch, 3.0), expected, rtol=1e-9, atol=1e-13
    )
    y, loss = Y["binary"].numpy(), losses("binary", output.detach().numpy(), Y["binary"].numpy())
    weight = WEIGHT.numpy() * (np.array(class_weight)[y.astype(int)] if class_weight else 1.0)
    assert terms.risk.item() == pytest.approx((weight * loss).mean())


def test_slopes_are_counted_for_the_usual_objective_only() -> None:
    batch, output = batch_for(BINARY), OUTPUT["binary"][0].numpy()
    assert Objective(BINARY, COMPARISONS).slopes(output, batch, 1.0) is not None
    others: list[Objective] = [
        Objective(BINARY, COMPARISONS, metric="mmd"),
        Objective(BINARY, COMPARISONS, RISK_PARITY),
        Objective(BINARY, COMPARISONS, rho=torch.square),
        Objective(MULTICLASS, COMPARISONS),
        Objective(regression("huber"), COMPARISONS),
    ]
    assert [objective.slopes(output, batch, 1.0) for objective in others] == [None] * 5
    weighted = Batch(batch.samples, tensor_sides(COMPARISONS, CELL, WEIGHT))
    assert Objective(BINARY, COMPARISONS).slopes(output, weighted, 1.0) is None


@pytest.mark.parametrize("task", [BINARY, MULTICLASS], ids=["binary", "multiclass"])
@pytest.mark.parametrize("metric", [*METRICS, "number"])
def test_weights_of_each_seed_are_those_of_its_models(task: Any, metric: str) -> None:
    """Two seeds of two models: as many as there are seeds, so that weights of the wrong axis
    would fit too.
    """
    one = (
        Dependence((0, 1, 2, 3), attribute="age", scale=1.0)
        if metric == "number"
        else COMPARISONS[0]
    )
    output = OUTPUT[task.name].reshape(2, 2, *OUTPUT[task.name].shape[1:])
    weight = torch.as_tensor(np.random.default_rng(2).uniform(0.1, 3.0, (2, 1, N)))
    value = torch.as_tensor(np.random.default_rng(3).normal(size=(2, 1, N, 1)))

    def unfairness(some: slice) -> Tensor:
        objective = Objective(
            task, (one,), metric="energy" if metric == "number" else metric, estimate="batch"
        )
        samples = Samples(torch.zeros(N, 0), Y[task.name], CELL, weight[some], value[some])
        (side,) = tensor_sides((one,), CELL)
        objective.generator.manual_seed(0)  # the same projections
        return objective.unfairness(
            output[some], Batch(samples, (replace(side, weights=weight[some][..., side.rows]),))
        )

    together, alone = (
        unfairness(slice(0, 2)),
        torch.cat([unfairness(slice(0, 1)), unfairness(slice(1, 2))]),
    )
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-12)
    assert float((together[0] - together[1]).abs().max()) > 1e-6
