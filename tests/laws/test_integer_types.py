"""Integers of every type are the same groups, labels, scores and weights: no arithmetic wraps in
the type of the user.

The first batch of a penalty compiles its groups, and later ones look them up: both are checked, in
every type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from metrifair import DataError, FairClassifier, audit, unfairness
from metrifair.metrics import energy_distance, kolmogorov_distance
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, covering
from tests.expected_errors import Refusals
from tests.flat_options import flat

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "NumPy": lambda values: values,
    "torch": lambda values: torch.from_numpy(values.copy()),
}
RANDOM = np.random.default_rng(4)
N = 64
SCORE = torch.from_numpy(RANDOM.random(N))
PLACE = RANDOM.integers(3, size=N)
LABEL = RANDOM.integers(2, size=N)


def fits(values: np.ndarray, kind: str) -> bool:
    limits = np.iinfo(kind)
    return bool(limits.min <= values.min() and values.max() <= limits.max)


def penalties(
    groups: list[np.ndarray], kind: str, container: str, labels: np.ndarray | None = None
) -> list[float]:
    """The penalties of consecutive batches, of which the first compiles the groups."""
    convert = CONTAINERS[container]
    criterion = "statistical_parity" if labels is None else "equalized_odds"
    penalty = UnfairnessPenalty(criterion, estimate="batch", random_state=0)
    targets = None if labels is None else convert(labels.astype(kind))
    return [penalty(SCORE, convert(batch.astype(kind)), targets).item() for batch in groups]


def expected(batch: np.ndarray) -> float:
    """The mean energy distance over pairs of groups, by its definition; negative groups are
    missing.
    """

    def mean(left: np.ndarray, right: np.ndarray) -> float:
        return float(np.abs(left[:, None] - right[None, :]).mean())

    scores = SCORE.numpy()
    parts = [scores[batch == group] for group in np.unique(batch[batch >= 0])]
    pairs = [(left, right) for place, left in enumerate(parts) for right in parts[place + 1 :]]
    distances = [2 * mean(u, v) - mean(u, u) - mean(v, v) for u, v in pairs]
    return sum(distances) / len(distances)


GROUPS = {
    "small": np.array([0, 1, 2]),
    "with a missing group": np.array([-1, 0, 1]),
    "the largest of 8 bits with a sign": np.array([0, 1, 127]),
    "the largest of 8 bits": np.array([0, 1, 255]),
    "one below it": np.array([0, 1, 254]),
    "the largest of 16 bits": np.array([0, 1, 65_535]),
    "the largest of 32 bits": np.array([0, 1, 2**32 - 1]),
    "the largest of all": np.array([0, 1, 2**63 - 1]),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("groups", GROUPS)
def test_the_penalty_is_the_same_in_every_type(groups: str, kind: str, container: str) -> None:
    named = GROUPS[groups]
    if not fits(named, kind):
        pytest.skip("the type does not contain these groups")
    known = named[named >= 0]
    batches = [known[PLACE % len(known)], named[PLACE], known[(PLACE + 1) % len(known)]]
    found = penalties(batches, kind, container)
    assert found == pytest.approx([expected(batch) for batch in batches], rel=1e-9)
    assert found == penalties(batches, "int64", "NumPy")


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", TYPES)
def test_a_group_that_appears_later_is_no_missing_group(kind: str, container: str) -> None:
    """In the type uint8, the group 255 was missing after the first batch: 255 + 2 is 1."""
    largest = min(np.iinfo(kind).max, 2**63 - 1)
    two = np.array([0, 1])[PLACE % 2]
    batches = [two, np.array([0, 1, largest], dtype=np.int64)[PLACE]]
    found = penalties(batches, kind, container)
    assert found == pytest.approx([expected(batch) for batch in batches], rel=1e-9)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", [*TYPES, "bool"])
def test_groups_and_labels_of_two_values_are_the_same_in_every_type(
    kind: str, container: str
) -> None:
    batches = [PLACE % 2, (PLACE + LABEL) % 2]
    assert penalties(batches, kind, container, LABEL) == penalties(batches, "int64", "NumPy", LABEL)


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_integer_beyond_int64_is_refused(container: str, refused: Refusals) -> None:
    groups = CONTAINERS[container](np.array([0, 1, 2**64 - 1], dtype=np.uint64)[PLACE])
    later = UnfairnessPenalty()
    later(SCORE, torch.from_numpy(PLACE % 2))
    for penalty in (UnfairnessPenalty(), later):
        with refused(DataError):
            penalty(SCORE, groups)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("group", [-2, -127])
def test_other_negative_groups_are_refused_in_every_type(group: int, container: str) -> None:
    for kind in ("int8", "int16", "int32", "int64"):
        groups = np.array([0, 1, group], dtype=kind)[PLACE]
        penalty = UnfairnessPenalty()
        penalty(SCORE, torch.from_numpy(PLACE % 2))
        with pytest.raises(DataError, match="integers from 0 upwards"):
            penalty(SCORE, CONTAINERS[container](groups))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", [*TYPES, "bool"])
def test_samplers_draw_the_same_batches(kind: str, container: str) -> None:
    largest = 1 if kind == "bool" else min(np.iinfo(kind).max, 2**63 - 1)
    groups = np.array([0, largest], dtype=np.int64)[PLACE % 2]
    batches = []
    for values, labels in ((groups, LABEL), (groups.astype(kind), LABEL.astype(kind))):
        convert = CONTAINERS[container]
        arguments: dict[str, Any] = {
            "criterion": "equalized_odds",
            "batch_size": 16,
            "random_state": 0,
        }
        sampler = StratifiedBatchSampler(convert(values), convert(labels), **arguments)
        batches.append([list(batch) for batch in sampler])
        penalty = UnfairnessPenalty("equalized_odds", sampler=sampler, random_state=0)
        rows = batches[-1][0]
        penalty(SCORE[rows], convert(values[rows]), convert(labels[rows]))
    assert batches[0] == batches[1]


@pytest.mark.parametrize("kind", [*TYPES, "bool"])
def test_streams_wait_for_the_same_samples(kind: str) -> None:
    values = (PLACE % 2).astype(kind)
    stream = [
        (SCORE[row : row + 1], torch.tensor(LABEL[row]), group) for row, group in enumerate(values)
    ]
    usual = [(x, y, int(group)) for x, y, group in stream]
    sizes = [
        [
            len(batch.group)
            for batch in covering(iter(rows), batch_size=8, criterion="equalized_odds")
        ]
        for rows in (stream, usual)
    ]
    assert len(sizes[0]) > 1
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", [*TYPES, "bool"])
def test_scores_weights_and_columns_are_the_same_in_every_type(kind: str) -> None:
    """Integer scores: differences of unsigned ones would wrap, and sums of short ones too."""
    high = 1 if kind == "bool" else 127
    score, weight = RANDOM.integers(0, high + 1, N), RANDOM.integers(0, high + 1, N)
    group, label, stratum = PLACE % 2, LABEL, (PLACE + LABEL) % 2
    quick = flat(resamples=0, permutations=0, random_state=0)
    results = []
    for spell in (np.dtype(np.int64), np.dtype(kind)):
        columns = [values.astype(spell) for values in (score, weight, group, label, stratum)]
        scores, weights, groups, labels, strata = columns
        named = {"sensitive_features": groups, "control_features": strata, "sample_weight": weights}
        audited = audit(
            labels, scores, metrics=["kolmogorov", "energy", "wasserstein"], **named, **quick
        )
        distances = [finding.value for finding in audited.findings]
        distances += [
            unfairness(labels, scores, metric=metric, **named)
            for metric in ("energy", "cramer", "mmd")
        ]
        distances += [
            distance(scores[:30], scores[30:])
            for distance in (energy_distance, kolmogorov_distance)
        ]
        model = FairClassifier(0.0, model="linear", random_state=0)
        model.fit(np.column_stack([scores, SCORE]), labels, **named)
        results.append([*distances, *model.coef_.ravel()])
    assert results[0] == results[1]
