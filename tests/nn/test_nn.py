"""The penalty and the batches in a loop of one's own: the same numbers as everywhere else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from metrifair import nn, unfairness
from metrifair.batches import Coverage, covering, whole
from metrifair.criteria import criterion_named
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.metrics import (
    energy_distance,
    mmd_squared,
    sliced_energy_distance,
    total_variation,
    wasserstein_distance,
)
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from metrifair.nn import covering as covering_batches
from tests.expected_errors import Refusals
from tests.seams.batches import Samples
from tests.seams.problem import Attribute, compile_cells, problem
from tests.seams.training import Objective, regression

N = 60
GENERATOR = torch.Generator().manual_seed(0)
GROUPS = torch.arange(N) % 3
SEX = torch.arange(N) // 3 % 2
LABELS = torch.randint(2, (N,), generator=GENERATOR)
SCORES = torch.randn(N, generator=GENERATOR, dtype=torch.float64) + 0.3 * GROUPS
WEIGHTS = torch.rand(N, generator=GENERATOR, dtype=torch.float64) + 0.5


def by_hand(distance: Any, groups: Tensor, among: Tensor | None = None, **options: Any) -> Tensor:
    """The sum of a two-sample function over all pairs of groups."""
    among = torch.ones(N, dtype=torch.bool) if among is None else among
    parts = [SCORES[among & (groups == g)] for g in range(int(groups.max()) + 1)]
    return torch.stack([distance(u, v, **options) for u, v in combinations(parts, 2)]).sum()


# --- the penalty
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["population", "batch"])
def test_the_penalty_is_the_mean_over_pairs_of_groups_or_their_sum(estimate: Any) -> None:
    expected = by_hand(energy_distance, GROUPS, unbiased=estimate == "population")
    for combine, pairs in (("sum", 1), ("mean", 3)):
        found = UnfairnessPenalty(estimate=estimate, combine=combine, random_state=0)(
            SCORES, GROUPS
        )
        torch.testing.assert_close(found, expected / pairs)
        assert found.ndim == 0


@pytest.mark.parametrize("contrast", ["pairs", "rest"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_value_and_slopes_of_several_groups_are_those_of_all_pairs(
    contrast: Any, offset: float
) -> None:
    """In single precision too, and far from 0, where the sum of coefficients times scores would
    lose most digits.
    """
    scores = (SCORES + offset).float()
    exact = scores.double().requires_grad_()

    def among(u: Tensor, v: Tensor) -> Tensor:
        fewer = 1 if u is v else 0
        return (u[:, None] - v).abs().sum() / (len(u) * (len(v) - fewer))

    sides = list(combinations([exact[g == GROUPS] for g in range(3)], 2))
    if contrast == "rest":
        sides = [(exact[g == GROUPS], exact[g != GROUPS]) for g in range(3)]
    expected = sum(2 * among(u, v) - among(u, u) - among(v, v) for u, v in sides) / len(sides)
    expected.backward()
    leaf = scores.clone().requires_grad_()
    found = UnfairnessPenalty(contrast=contrast, random_state=0)(leaf, GROUPS)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(leaf.grad.double(), exact.grad, rtol=1e-5, atol=1e-8)


def test_comparisons_far_from_each_other_keep_their_digits() -> None:
    """In single precision: each comparison subtracts a score of its own."""
    labels = torch.arange(N) // 3 % 2
    scores = torch.where(labels == 1, 1e5 + SCORES, 0.01 * SCORES).float()
    found = UnfairnessPenalty("equalized_odds", random_state=0)(scores, GROUPS, labels)
    exact = UnfairnessPenalty("equalized_odds", random_state=0)(scores.double(), GROUPS, labels)
    assert found.item() == pytest.approx(exact.item(), rel=1e-5)


def test_weights_in_half_precision_count() -> None:
    weights = torch.where(SCORES > 0.5, 4.0, 1.0)
    found, expected = (
        UnfairnessPenalty()(SCORES, SEX, weights=kind) for kind in (weights.bfloat16(), weights)
    )
    assert found.item() == expected.item() != UnfairnessPenalty()(SCORES, SEX).item()


def largest_gap(u: Tensor, v: Tensor) -> Tensor:
    """A metric of the user's own."""
    return u.amax(-1) - v.amax(-1)


@pytest.mark.parametrize(
    ("metric", "distance"),
    [("mmd", mmd_squared), ("wasserstein", wasserstein_distance), (largest_gap, largest_gap)],
    ids=["mmd", "wasserstein", "callable"],
)
def test_other_metrics(metric: Any, distance: Any) -> None:
    found = UnfairnessPenalty(metric=metric, estimate="batch", combine="sum", random_state=0)(
        SCORES, GROUPS
    )
    torch.testing.assert_close(found, by_hand(distance, GROUPS))


def test_total_variation_is_that_of_ten_bins() -> None:
    value = UnfairnessPenalty(metric="total_variation", random_state=0)(SCORES, SEX)
    torch.testing.assert_close(value, total_variation(SCORES[SEX == 0], SCORES[SEX == 1], bins=10))
    assert (
        value
        < unfairness(None, SCORES, sensitive_features=SEX, metric="total_variation")
        == pytest.approx(1)
    )


@pytest.mark.parametrize(
    ("criterion", "sets"),
    [
        ("statistical_parity", [LABELS >= 0]),
        ("equal_opportunity", [LABELS == 1]),
        ("predictive_equality", [LABELS == 0]),
        ("equalized_odds", [LABELS == 0, LABELS == 1]),
        ("risk_parity", [LABELS >= 0]),
    ],
)
def test_criteria_choose_the_samples(criterion: str, sets: list[Tensor]) -> None:
    expected = sum(by_hand(energy_distance, SEX, among, unbiased=True) for among in sets)
    for labels in (LABELS, LABELS.double()):
        torch.testing.assert_close(
            UnfairnessPenalty(criterion, random_state=0)(SCORES, SEX, labels), expected
        )


@pytest.mark.parametrize(
    "name", ["statistical_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
)
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
def test_the_penalty_is_that_of_the_objective_and_of_the_audit(name: str, contrast: Any) -> None:
    criterion = criterion_named(name)
    cells = compile_cells(
        criterion, [Attribute("group", (0, 1, 2))], classes=(0, 1), contrast=contrast
    )
    cell = torch.as_tensor(cells.of(GROUPS[:, None].numpy(), labels=LABELS.numpy()))
    data = Samples(torch.zeros(N, 0), SCORES, cell, torch.ones(N))
    for estimate, combine in product(("population", "batch"), ("mean", "sum")):
        objective = Objective(
            regression(), cells.comparisons, criterion, estimate=estimate, combine=combine
        )
        penalty = UnfairnessPenalty(
            name, estimate=estimate, contrast=contrast, combine=combine, random_state=0
        )
        found = penalty(SCORES, GROUPS, LABELS)
        torch.testing.assert_close(
            found, objective.unfairness(SCORES, whole(data, cells.comparisons))
        )
    audited = unfairness(
        LABELS.numpy(),
        SCORES.numpy(),
        sensitive_features=GROUPS.numpy(),
        criterion=name,
        metric="energy",
        reduce="sum",
        contrast=contrast,
    )
    assert found.item() == pytest.approx(audited, abs=1e-12)


def test_weights_are_those_of_the_two_samples() -> None:
    found = UnfairnessPenalty(random_state=0)(SCORES, SEX, weights=WEIGHTS)
    u, v, a, b = (part[s == SEX] for part in (SCORES, WEIGHTS) for s in (0, 1))
    torch.testing.assert_close(
        found, energy_distance(u, v, unbiased=True, u_weights=a, v_weights=b)
    )


def test_unknown_groups_do_not_count() -> None:
    hidden = torch.where(torch.arange(N) % 5 == 0, -1, SEX)
    seen = hidden >= 0
    scores = SCORES.clone().requires_grad_()
    found = UnfairnessPenalty(random_state=0)(scores, hidden)
    torch.testing.assert_close(found, UnfairnessPenalty(random_state=0)(SCORES[seen], SEX[seen]))
    found.backward()
    assert not scores.grad[~seen].any()
    assert scores.grad[seen].any()


def test_several_attributes_add_up() -> None:
    both = torch.stack([GROUPS, SEX], 1)
    expected = UnfairnessPenalty(random_state=0)(SCORES, GROUPS) + UnfairnessPenalty(
        random_state=0
    )(SCORES, SEX)
    torch.testing.assert_close(UnfairnessPenalty(random_state=0)(SCORES, both), expected)
    torch.testing.assert_close(
        UnfairnessPenalty(n_groups=[3, 2], random_state=0)(SCORES, both), expected
    )


def test_the_gradient_is_that_of_the_two_sample_function() -> None:
    ours, theirs = (SCORES.clone().requires_grad_() for _ in range(2))
    UnfairnessPenalty(random_state=0)(ours, SEX).backward()
    energy_distance(theirs[SEX == 0], theirs[SEX == 1], unbiased=True).backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert ours.grad.any()


def test_vector_scores_are_sliced_anew_at_every_call_and_reproducibly() -> None:
    generator = torch.Generator().manual_seed(99)
    vectors = torch.randn(N, 3, generator=generator, dtype=torch.float64) + SEX[:, None]
    u, v = vectors[SEX == 0], vectors[SEX == 1]
    first, second = UnfairnessPenalty(random_state=7), UnfairnessPenalty(random_state=7)
    values = [first(vectors, SEX).item() for _ in range(2)]
    assert values == [second(vectors, SEX).item() for _ in range(2)]
    assert values[0] != values[1]
    mean = np.mean([first(vectors, SEX).item() for _ in range(300)])
    assert mean == pytest.approx(energy_distance(u, v, unbiased=True, vector=True).item(), rel=0.02)
    many = UnfairnessPenalty(slices=5000, random_state=0, estimate="batch")(vectors, SEX).item()
    assert many == pytest.approx(
        sliced_energy_distance(u, v, slices=5000, random_state=0).item(), rel=0.05
    )


def test_vectors_of_one_number_are_numbers() -> None:
    torch.testing.assert_close(
        UnfairnessPenalty(random_state=0)(SCORES[:, None], SEX),
        UnfairnessPenalty(random_state=0)(SCORES, SEX),
    )


def test_a_copied_penalty_goes_on_alike() -> None:
    vectors = torch.stack([SCORES, SCORES.square()], 1)
    penalty = UnfairnessPenalty(random_state=0)
    penalty(vectors, SEX)
    for other in (copy.deepcopy(penalty), pickle.loads(pickle.dumps(penalty))):
        assert other(vectors, SEX).item() == copy.deepcopy(penalty)(vectors, SEX).item()


@pytest.mark.parametrize(
    ("scores", "groups", "count", "message"),
    [
        (SCORES[SEX == 0], SEX[SEX == 0], 0, "30 and 0 samples on its sides"),
        (SCORES[[0, 1, 2, 3]], torch.tensor([0, 0, 0, 1]), 1, "got 3 and 1"),
    ],
)
def test_a_batch_that_lacks_a_group_is_an_error_that_names_it(
    scores: Tensor, groups: Tensor, count: int, message: str
) -> None:
    with pytest.raises(TooFewSamples) as caught:
        UnfairnessPenalty(random_state=0)(scores, groups)
    told = f"the batch has {count} sample(s) of group '1' (comparing group '0' against '1', everyone): "
    assert str(caught.value).startswith(told)
    assert message in str(caught.value)
    assert "StratifiedBatchSampler" in str(caught.value)


def test_comparisons_are_worked_out_anew_only_for_new_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    monkeypatch.setattr(
        problem,
        "compile_cells",
        lambda *args, **options: made.append(args) or compile_cells(*args, **options),
    )
    penalty = UnfairnessPenalty(random_state=0)
    for _ in range(3):
        penalty(SCORES, SEX)
    assert len(made) == 1
    for _ in range(3):
        penalty(SCORES, GROUPS)  # of which there are three
    assert len(made) == 2


@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
@pytest.mark.parametrize("strata", ["statistical_parity", "equalized_odds"])
def test_batches_that_are_laid_out_like_the_last_one_or_not_have_their_own_penalty(
    criterion: str, strata: str
) -> None:
    sampler = StratifiedBatchSampler(
        GROUPS, LABELS, batch_size=30, criterion=strata, random_state=0
    )
    penalty = UnfairnessPenalty(criterion, sampler=sampler)
    batches = [torch.tensor(rows) for rows in [*sampler, *sampler]]
    order = torch.randperm(len(batches[0]), generator=torch.Generator().manual_seed(1))
    for rows in (
        batches[0],
        batches[1],
        batches[1][order],
        batches[2],
        batches[2],
        batches[3][order],
    ):
        fresh = UnfairnessPenalty(criterion, sampler=sampler)
        given = SCORES[rows], GROUPS[rows], LABELS[rows]
        assert penalty(*given).item() == fresh(*given).item()
    rows = batches[0]
    penalty(SCORES[rows], GROUPS[rows], LABELS[rows])
    with pytest.raises(DataError, match="scores 29"):
        penalty(SCORES[rows][1:], GROUPS[rows], LABELS[rows])


def test_groups_once_seen_are_missed_later(refused: Refusals) -> None:
    penalty = UnfairnessPenalty(random_state=0)
    penalty(SCORES, GROUPS)
    with refused(TooFewSamples):
        penalty(SCORES, SEX)
    with refused(TooFewSamples):
        UnfairnessPenalty(n_groups=3, random_state=0)(SCORES, SEX)
    with refused(TooFewSamples):
        UnfairnessPenalty("equalized_odds", n_classes=3, random_state=0)(SCORES, SEX, LABELS)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({}, {"groups": SEX[:5]}, "arguments must have the same length, got scores 60, groups 5"),
        (
            {},
            {"groups": SEX, "targets": LABELS[:5], "weights": WEIGHTS[:4]},
            "arguments must have the same length, got scores 60, weights 4, groups 60, targets 5",
        ),
        ({"n_groups": 2}, {"groups": GROUPS}, "group contains 2, which is none of [0, 1]"),
        (
            {"criterion": "equalized_odds"},
            {"groups": SEX},
            "equalized_odds compares groups within labels; pass the true labels",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    options: dict[str, Any], rows: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        UnfairnessPenalty(**options)(SCORES, **rows)
    assert str(caught.value) == message


def test_a_sampler_for_another_criterion_is_named() -> None:
    sampler = StratifiedBatchSampler(SEX, batch_size=10, random_state=0)
    with pytest.raises(DataError) as caught:
        UnfairnessPenalty("equal_opportunity", sampler=sampler)
    assert str(caught.value) == (
        "sampler was made for statistical_parity and has no targets, but equal_opportunity "
        "compares groups within "
        "labels; pass targets and criterion='equal_opportunity' to the sampler"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "enrgy"}, "metric must be .* did you mean 'energy'"),
        ({"metric": "ks"}, "metric must be one of"),
        ({"metric": None}, "metric must be one of"),
        ({"criterion": "parity"}, "criterion"),
        ({"contrast": "all"}, "contrast must be one of 'pairs', 'rest'"),
        ({"estimate": "no"}, "estimate must be one of 'rows', 'population', 'batch', got 'no'"),
        ({"combine": "max"}, "combine must be one of 'mean', 'sum', got 'max'"),
        (
            {"estimate": "rows"},
            (
                "estimate='rows' needs to know how many rows of each group there are; pass "
                "sampler=, the "
                "StratifiedBatchSampler that the batches come from, or use estimate='population'"
            ),
        ),
    ],
)
def test_a_wrong_choice_is_told_before_the_first_batch(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        UnfairnessPenalty(**options)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (SCORES.numpy(), "scores must be a tensor, .* got ndarray"),
        (SCORES.tolist(), "scores must be a tensor, .* got list"),
        (GROUPS, "scores must be floating-point numbers, .* got torch.int64"),
        (SCORES[0], r"scores must be \(n,\), .* shape \(\)"),
        (SCORES[:, None, None], r"scores must be \(n,\), .* shape \(60, 1, 1\)"),
        (SCORES * torch.nan, "scores must be finite, got nan"),
        (SCORES.index_fill(0, torch.tensor([7]), torch.inf), "scores must be finite, got inf"),
    ],
)
def test_scores_that_have_no_distance_are_refused(scores: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        UnfairnessPenalty(random_state=0)(scores, GROUPS)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            WEIGHTS.index_fill(0, torch.tensor([7]), -100.0),
            "weights must be finite and not negative",
        ),
        (
            WEIGHTS.index_fill(0, torch.tensor([7]), torch.nan),
            "weights must be finite and not negative",
        ),
        ([np.inf] * N, "weights must be finite and not negative"),
        (torch.zeros(N), "weights is zero for every sample; at least one must count"),
        (
            torch.stack([WEIGHTS, WEIGHTS], 1),
            "weights must have one entry for each row, got the shape (60, 2)",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["energy", "kolmogorov"])
def test_weights_that_weigh_nothing_are_refused(weights: Any, message: str, metric: str) -> None:
    with pytest.raises(DataError) as caught:
        UnfairnessPenalty(metric=metric, random_state=0)(SCORES, SEX, weights=weights)
    assert str(caught.value) == message


@pytest.mark.parametrize("estimate", ["population", "batch"])
def test_a_group_without_weight_is_missing(estimate: Any, refused: Refusals) -> None:
    with refused(TooFewSamples):
        UnfairnessPenalty(estimate=estimate, random_state=0)(SCORES, SEX, weights=SEX)
    penalty = UnfairnessPenalty(metric="kolmogorov", n_groups=3, random_state=0)
    with pytest.raises(TooFewSamples, match="against '2', everyone"):
        penalty(SCORES, GROUPS, weights=(GROUPS < 2).double())


def test_targets_and_weights_may_be_a_table_with_one_column(refused: Refusals) -> None:
    penalty = UnfairnessPenalty("equal_opportunity", random_state=0)
    expected = penalty(SCORES, SEX, LABELS, WEIGHTS)
    for kind in (lambda column: column[:, None], lambda column: column[:, None].tolist()):
        assert penalty(SCORES, SEX, kind(LABELS), kind(WEIGHTS)) == expected
    flat, table = (
        StratifiedBatchSampler(
            SEX, labels, batch_size=20, criterion="equal_opportunity", random_state=0
        )
        for labels in (LABELS, LABELS[:, None])
    )
    assert list(flat) == list(table)
    with_sampler = UnfairnessPenalty("equal_opportunity", sampler=table)
    for rows in flat:
        assert with_sampler(SCORES[rows], SEX[rows], LABELS[rows, None]) == penalty(
            SCORES[rows], SEX[rows], LABELS[rows]
        )
    with refused(DataError):
        penalty(SCORES, SEX, torch.stack([LABELS, LABELS], 1))


@pytest.mark.parametrize(
    "kind", [list, tuple, np.asarray, pl.Series, lambda rows: pd.Series(rows, index=range(5, 65))]
)
def test_group_numbers_may_come_in_any_container(kind: Any) -> None:
    groups, labels, weights = (kind(part.tolist()) for part in (SEX, LABELS, WEIGHTS))
    found = UnfairnessPenalty("equal_opportunity", random_state=0)(SCORES, groups, labels, weights)
    assert found == UnfairnessPenalty("equal_opportunity", random_state=0)(
        SCORES, SEX, LABELS, WEIGHTS
    )
    ours, theirs = (
        StratifiedBatchSampler(part, batch_size=10, random_state=0) for part in (groups, SEX)
    )
    assert list(ours) == list(theirs)


@pytest.mark.parametrize("text", [["a", "b"] * 30, np.array(["a", "b"] * 30), [None, "b"] * 30])
def test_groups_and_targets_that_are_text_are_refused_by_name(text: Any, refused: Refusals) -> None:
    with refused(DataError):
        UnfairnessPenalty(random_state=0)(SCORES, text)
    with pytest.raises(DataError, match="targets must be numbers"):
        UnfairnessPenalty("equal_opportunity", random_state=0)(SCORES, SEX, text)
    with pytest.raises(DataError, match="groups must be numbers"):
        StratifiedBatchSampler(text, batch_size=10, random_state=0)
    with pytest.raises(DataError, match="targets must be numbers"):
        StratifiedBatchSampler(SEX, text, batch_size=10, random_state=0)
    with pytest.raises(DataError, match="group must be numbers"):
        next(covering_batches([(torch.zeros(1), 0.0, text[1])], batch_size=1))


def test_a_sampler_of_batches_in_place_of_one_of_rows_is_noticed() -> None:
    loader = DataLoader(
        TensorDataset(SCORES, SEX),
        sampler=StratifiedBatchSampler(SEX, batch_size=10, random_state=0),
    )
    scores, groups = next(iter(loader))
    with pytest.raises(DataError, match="batch_sampler=, not as sampler="):
        UnfairnessPenalty(random_state=0)(scores, groups)


def test_only_what_is_public_is_shown() -> None:
    classes = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty"]
    assert dir(nn) == [*classes, "covering", "global_mean"]


# --- stratified batches
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 12, 25])
@pytest.mark.parametrize("criterion", ["statistical_parity", "equalized_odds"])
def test_every_batch_holds_every_group_and_weighs_it_by_its_share(
    size: int, criterion: str
) -> None:
    """The weights of a cell's rows in a batch sum to exactly its share: the mean is unbiased
    whatever the counts.
    """
    rare = torch.where(torch.arange(N) < 10, 1, 0)
    cell = rare if criterion == "statistical_parity" else 2 * rare + LABELS
    small = criterion == "equalized_odds" and size < 8
    with pytest.warns(UserWarning, match="batches have 8 rows") if small else nullcontext():
        sampler = StratifiedBatchSampler(
            rare, LABELS, batch_size=size, criterion=criterion, random_state=0
        )
    batches = list(sampler)
    assert len(batches) == len(sampler) == N // len(batches[0])
    for rows in batches:
        assert len(rows) == max(size, 2 * len(cell.unique()))
        assert len(set(rows)) == len(rows)
        for one in cell.unique():
            inside = cell[rows] == one
            assert inside.sum() >= 2
            share = (cell == one).double().mean().item()
            assert sampler.weights[rows][inside].sum().item() / len(rows) == pytest.approx(
                share, rel=1e-6
            )


def test_the_mean_over_all_weighted_batches_is_the_mean_of_the_data() -> None:
    """One epoch of batches that use up every row: their weighted means average to the plain
    mean, exactly.
    """
    generator = torch.Generator().manual_seed(99)
    groups = torch.tensor([0] * 12 + [1] * 6)
    loss = torch.randn(18, generator=generator, dtype=torch.float64)
    sampler = StratifiedBatchSampler(groups, batch_size=6, random_state=0)
    means = [(sampler.weights[rows] * loss[rows]).mean() for rows in sampler]
    assert len(means) == 3
    assert torch.stack(means).mean().item() == pytest.approx(loss.mean().item(), rel=1e-6)


def test_epochs_differ_and_can_be_repeated() -> None:
    first, second = (StratifiedBatchSampler(SEX, batch_size=10, random_state=3) for _ in range(2))
    epochs = [list(first) for _ in range(3)]
    assert epochs == [list(second) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert list(StratifiedBatchSampler(SEX, batch_size=10, random_state=4)) != epochs[0]
    assert all(isinstance(row, int) for batch in epochs[0] for row in batch)


def test_several_attributes_and_unknown_groups_are_sampled() -> None:
    both = torch.stack([GROUPS, torch.where(torch.arange(N) % 10 == 0, -1, SEX)], 1)
    sampler = StratifiedBatchSampler(both, batch_size=20, random_state=0)
    penalty = UnfairnessPenalty(n_groups=(3, 2), random_state=0)
    for rows in sampler:
        assert penalty(SCORES[rows], both[rows]).isfinite()
        assert (both[rows][:, 1] == -1).any()


def test_a_data_loader_takes_the_sampler() -> None:
    generator = torch.Generator().manual_seed(99)
    images = torch.randn(N, 1, 4, 4, generator=generator)
    sampler = StratifiedBatchSampler(SEX, batch_size=10, random_state=1)
    data = TensorDataset(images, LABELS, SEX, sampler.weights)
    expected = list(StratifiedBatchSampler(SEX, batch_size=10, random_state=1))
    loader = DataLoader(data, batch_sampler=sampler)
    assert len(loader) == len(expected) == 6
    for (x, y, group, weight), rows in zip(loader, expected, strict=True):
        assert torch.equal(x, images[rows])
        assert torch.equal(y, LABELS[rows])
        assert torch.equal(group, SEX[rows])
        assert torch.equal(weight, sampler.weights[rows])
        assert UnfairnessPenalty(random_state=0)(SCORES[rows], group).isfinite()


def test_a_group_too_small_for_batches_is_refused() -> None:
    with pytest.raises(TooFewSamples) as caught:
        StratifiedBatchSampler([0, 0, 0, 1], batch_size=4, random_state=0)
    assert str(caught.value) == (
        "comparing group '0' against '1', everyone: group '1' has 1 sample(s) there, and 2 of each "
        "kind are needed; "
        "merge small groups, mark them as missing, or use estimate='rows' or 'batch'"
    )
    for estimate in ("rows", "batch"):
        assert (
            len(
                StratifiedBatchSampler(
                    [0, 0, 0, 1], batch_size=4, estimate=estimate, random_state=0
                )
            )
            == 1
        )


def test_an_estimate_that_a_metric_does_not_have_is_told() -> None:
    sampler = StratifiedBatchSampler(SEX, batch_size=10, random_state=0)
    with pytest.warns(
        MetrifairWarning,
        match=r"^estimate='rows' has no effect: kolmogorov can only be measured within",
    ):
        UnfairnessPenalty(metric="kolmogorov", estimate="rows", sampler=sampler)
    UnfairnessPenalty(metric="kolmogorov", random_state=0)  # nothing was asked for


# --- batches of a stream
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["statistical_parity", "equalized_odds"])
@pytest.mark.parametrize("shape", [(2,), (3, 4, 4)], ids=["features", "images"])
def test_covering_batches_are_those_of_the_library(criterion: str, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(2)
    n = 200
    x, y = torch.randn(n, *shape, generator=generator), torch.randint(2, (n,), generator=generator)
    group = (
        torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), n, replacement=True, generator=generator)
        - 1
    )
    # 0 often, 1 rarely, some unknown
    group = torch.where(group == 1, 1, torch.where(group == -1, 0, -1))
    found = list(
        covering_batches(zip(x, y, group.tolist(), strict=True), batch_size=6, criterion=criterion)
    )

    cells = compile_cells(criterion_named(criterion), [Attribute("group", (0, 1))], classes=(0, 1))
    cell = torch.as_tensor(cells.of(group[:, None].numpy(), labels=y.numpy()))
    samples = Samples(torch.arange(n)[:, None], y, cell, torch.ones(n))
    expected = list(covering([samples], Coverage(cells.comparisons, size=6)))
    assert len(found) == len(expected) > 2
    assert any(len(batch.y) > 6 for batch in found)
    for ours, theirs in zip(found, expected, strict=True):
        rows = theirs.samples.x[:, 0]
        assert torch.equal(ours.x, x[rows])
        assert torch.equal(ours.y, y[rows])
        assert torch.equal(ours.group, group[rows])
        torch.testing.assert_close(ours.weight.double(), theirs.samples.weight.double())
        UnfairnessPenalty(criterion, n_groups=2, random_state=0)(
            ours.x.flatten(1)[:, 0], ours.group, ours.y
        )


def test_covering_reads_no_further_than_it_must() -> None:
    taken = []

    def endless() -> Iterator[tuple[Tensor, float, int]]:
        for k in range(10**9):
            taken.append(k)
            yield torch.zeros(1), 0.0, k % 2

    batches = covering_batches(endless(), batch_size=5)
    assert len(next(batches).y) == 5
    assert len(taken) == 5
    assert len(next(batches).y) == 5
    assert len(taken) == 10


def test_a_loop_of_one_s_own_becomes_fair() -> None:
    """The recipe of the documentation: stratified batches, loss weights, penalty."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 3, generator=generator)
    group = torch.arange(300) % 3 // 2
    x[:, 0] += 1.5 * group
    y = (x.sum(1) + torch.randn(300, generator=generator) > 0.5).float()

    def trained(strength: float) -> float:
        torch.manual_seed(0)
        model, penalty = torch.nn.Linear(3, 1), UnfairnessPenalty(random_state=0)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        sampler = StratifiedBatchSampler(group, batch_size=60, random_state=0)
        for rows in [rows for _ in range(15) for rows in sampler]:
            output = model(x[rows]).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                output, y[rows], sampler.weights[rows]
            )
            optimizer.zero_grad()
            (loss + strength * penalty(output.sigmoid(), group[rows])).backward()
            optimizer.step()
        return UnfairnessPenalty(estimate="batch", random_state=0)(
            model(x).squeeze(1).sigmoid(), group
        ).item()

    assert trained(5.0) < 0.1 * trained(0.0)


# --- batches that cannot be read
# --------------------------------------------------------------------------------

TWO_COLUMNS = torch.stack([SEX, SEX], 1)


@pytest.mark.parametrize(
    ("options", "groups", "labels", "message"),
    [
        ({}, SEX - 2, LABELS, "from 0 upwards, or -1 where not known, got -2"),
        ({"continuous": False}, SEX + 0.5, LABELS, "groups must be integers, got 0.5"),
        ({}, torch.where(SEX == 0, torch.nan, 1.0), LABELS, r"0 sample\(s\) of group '0'"),
        ({}, SEX, LABELS * 0.5, "targets must be integers, got 0.5"),
        ({"n_classes": 2}, SEX, LABELS * 2, r"targets contains 2, which is none of \[0, 1\]"),
        ({"n_groups": 2}, TWO_COLUMNS, LABELS, "1 column.* got 2"),
        ({"n_groups": [2, 2]}, SEX, LABELS, "2 column.* got 1"),
        ({}, SEX[:0], LABELS[:0], "0 and 0 samples"),
    ],
)
def test_a_batch_that_cannot_be_read_is_refused(
    options: Any, groups: Tensor, labels: Tensor, message: str
) -> None:
    """A number below -1 would otherwise count from the end, and a fraction be cut off."""
    with pytest.raises(DataError, match=message):
        UnfairnessPenalty("equal_opportunity", **options)(SCORES[: len(groups)], groups, labels)


def test_later_batches_have_the_attributes_of_the_first() -> None:
    penalty = UnfairnessPenalty(random_state=0)
    penalty(SCORES, SEX)
    with pytest.raises(DataError, match=r"1 column.* got 2"):
        penalty(SCORES, TWO_COLUMNS)


def test_targets_in_bins_are_no_labels() -> None:
    criterion = replace(criterion_named("equal_opportunity"), bins=(10.0,))
    target = 20.0 * LABELS + 0.5
    for options in ({}, {"n_groups": np.int64(2), "n_classes": 2}):
        found = UnfairnessPenalty(criterion, **options)(SCORES, SEX, target)
        torch.testing.assert_close(
            found, UnfairnessPenalty("equal_opportunity", random_state=0)(SCORES, SEX, LABELS)
        )
    sampler = StratifiedBatchSampler(
        SEX, target, batch_size=20, criterion=criterion, random_state=0
    )
    assert len(sampler) == 3


def test_the_sampler_refuses_groups_and_targets_of_two_lengths(refused: Refusals) -> None:
    with refused(DataError):
        StratifiedBatchSampler(SEX, LABELS[:5], batch_size=10, random_state=0)


@pytest.mark.parametrize("groups", [[], [0, 0, -2, 1]])
def test_the_sampler_refuses_groups_that_it_cannot_read(groups: list[int]) -> None:
    with pytest.raises(DataError, match="group"):
        StratifiedBatchSampler(groups, batch_size=2, random_state=0)


def test_a_penalty_says_what_it_is() -> None:
    words = "metric='energy', estimate='population', contrast='rest', combine='mean'"
    told = f"UnfairnessPenalty('equal_opportunity', {words})"
    assert repr(UnfairnessPenalty("equal_opportunity", contrast="rest", random_state=0)) == told
    assert repr(UnfairnessPenalty(continuous=True, random_state=0)).endswith(
        "combine='mean', continuous=True)"
    )
    sampler = StratifiedBatchSampler([0, 0, 0, 1, 1, 1], batch_size=4, random_state=0)
    assert repr(sampler) == "StratifiedBatchSampler(1 batches of 4 rows of 2 strata, epoch=0)"
    assert repr(sampler) in repr(UnfairnessPenalty(sampler=sampler))


def test_groups_in_a_dict_are_refused_in_few_words(refused: Refusals) -> None:
    with refused(DataError):
        UnfairnessPenalty(random_state=0)(
            torch.rand(4), {"sex": torch.arange(4) % 2, "age": torch.arange(4.0)}
        )  # type: ignore[arg-type]
