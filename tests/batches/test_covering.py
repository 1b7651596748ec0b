"""Covering batches: one rule however the stream is cut, and estimates whose means are exactly
right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import islice, pairwise
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from experiments.theory import covering_bias
from metrifair.batches import Coverage, covering, whole
from metrifair.batches import cut as cut_one
from metrifair.criteria import EQUALIZED_ODDS, STATISTICAL_PARITY, Criterion
from metrifair.errors import DataError, TooFewSamples
from tests.seams.batches import Batch, Samples, join_samples, overshoot_weights
from tests.seams.metrics import between, training_metric
from tests.seams.problem import Attribute, Comparison, Dependence, Sides, compile_cells
from tests.seams.training import BINARY

reproducible = settings(deadline=None, derandomize=True, database=None)

PAIR = (Comparison((0,), (1,), "sex", "everyone", ("f", "m")),)
COMPARISONS = {
    "two groups": PAIR,
    "three groups": (Comparison((0,), (1,)), Comparison((0,), (2,)), Comparison((1,), (2,))),
    "each against the rest": (
        Comparison((0,), (1, 2)),
        Comparison((1,), (0, 2)),
        Comparison((2,), (0, 1)),
    ),
    "overlapping": (Comparison((0, 1), (2, 3)), Comparison((0, 2), (1,))),
}


def cut(waiting, rule):
    """All complete batches, and the samples that go on waiting."""
    batches, start = [], 0
    while (batch := cut_one(waiting, rule, start)) is not None:
        start += len(batch.samples)
        batches.append(batch)
    return batches, waiting.take(slice(start, None))


def stream_of(cells: Sequence[int]) -> Samples:
    rows = torch.arange(len(cells), dtype=torch.float64)
    return Samples(
        rows[:, None], rows, torch.tensor(cells, dtype=torch.long), torch.ones(len(cells)).double()
    )


# The rule, written down once more: one sample at a time, with counts.


def expected_batches(cells: Sequence[int], rule: Coverage) -> Iterator[tuple[int, int, list[int]]]:
    """Start, end and covered prefix of each comparison, of every batch."""
    start, seen, covered = 0, [], {}
    for end, cell in enumerate(cells, 1):
        seen.append(cell)
        for j, one in enumerate(rule.comparisons):
            counts = [sum(c in side for c in seen) for side in (one.left, one.right)]
            if len(seen) >= rule.size and min(counts) >= rule.least:
                covered.setdefault(j, len(seen))
        if len(covered) == len(rule.comparisons):
            yield start, end, [covered[j] for j in range(len(covered))]
            start, seen, covered = end, [], {}


def expected_weights(cells: Sequence[int], rule: Coverage) -> list[float]:
    n = len(cells)
    if n == rule.size:
        return [1.0] * n
    sides = [side for one in rule.comparisons for side in (one.left, one.right)]
    scarce = [side for side in sides if sum(cell in side for cell in cells) == rule.least]
    critical = [any(cell in side for side in scarce) for cell in cells]
    return [n / (n - 1) * (1 - 1 / sum(critical) if one else 1) for one in critical]


def rows_of(sides: Sides, n: int) -> list[list[int]]:
    """The rows of the left and of the right side."""
    return [rows.tolist() for rows in torch.arange(n)[sides.rows].split(sides.counts)]


def described(
    batches: Sequence[Batch],
) -> list[tuple[list[float], list[float], list[list[list[int]]]]]:
    return [
        (
            batch.samples.x[:, 0].tolist(),
            batch.samples.weight.tolist(),
            [rows_of(sides, len(batch.samples)) for sides in batch.sides],
        )
        for batch in batches
    ]


streams = st.lists(st.integers(0, 4), max_size=80)  # cell 4 is in no comparison
rules = st.builds(
    Coverage, st.sampled_from(list(COMPARISONS.values())), st.integers(1, 9), st.integers(1, 3)
)


@reproducible
@given(streams, rules)
def test_batches_follow_the_rule(cells: list[int], rule: Coverage) -> None:
    batches, left = cut(stream_of(cells), rule)
    found = expected_batches(cells, rule)
    end = 0
    for batch, (start, end, covered) in zip(batches, found, strict=True):
        own = cells[start:end]
        assert batch.samples.x[:, 0].tolist() == list(range(start, end))
        np.testing.assert_allclose(batch.samples.weight, expected_weights(own, rule), rtol=1e-12)
        assert batch.samples.weight.mean().item() == pytest.approx(1, abs=1e-12)
        for one, sides, prefix in zip(rule.comparisons, batch.sides, covered, strict=True):
            assert rows_of(sides, len(own)) == [
                [i for i in range(prefix) if own[i] in side] for side in (one.left, one.right)
            ]
            assert min(sides.counts) >= rule.least
    assert left.x[:, 0].tolist() == list(range(end, len(cells)))


@reproducible
@given(streams, rules, st.lists(st.integers(0, 80), max_size=10))
def test_the_pieces_in_which_samples_arrive_do_not_matter(
    cells: list[int], rule: Coverage, places: list[int]
) -> None:
    stream = stream_of(cells)
    edges = [0, *sorted(min(place, len(cells)) for place in places), len(cells)]
    # empty ones among them
    pieces = [stream.take(slice(start, end)) for start, end in pairwise(edges)]
    one_by_one = [stream.take(slice(i, i + 1)) for i in range(len(cells))]
    expected = described(cut(stream, rule)[0])
    assert described(list(covering(pieces, rule))) == expected
    assert described(list(covering(one_by_one, rule))) == expected


@reproducible
@given(streams, rules)
def test_weights_of_the_stream_multiply_those_of_the_rule(cells: list[int], rule: Coverage) -> None:
    stream = stream_of(cells)
    heavy = stream.with_weight(1 + stream.x[:, 0])
    for plain, batch in zip(cut(stream, rule)[0], cut(heavy, rule)[0], strict=True):
        own = 1 + batch.samples.x[:, 0]
        assert torch.equal(batch.samples.weight, plain.samples.weight * own)
        for even, sides in zip(plain.sides, batch.sides, strict=True):
            assert torch.equal(even.rows, sides.rows)
            assert even.weights is None
            # what a sample counts, not what the rule adds
            assert torch.equal(sides.weights, own[sides.rows])


@reproducible
@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 9), st.booleans())
def test_a_dependence_has_the_rows_of_its_cells_with_their_weights(
    cells: list[int], size: int, heavy: bool
) -> None:
    stream = stream_of(cells)
    stream = stream.with_weight(1 + stream.x[:, 0]) if heavy else stream
    rule = Coverage((Dependence((0, 1), attribute="age"),), size, 2)
    for batch in cut(stream, rule)[0]:
        (sides,) = batch.sides
        assert sides.dependence == rule.comparisons[0]
        assert sides.rows.tolist() == [
            row for row, cell in enumerate(batch.samples.cell.tolist()) if cell < 2
        ]
        own = 1 + batch.samples.x[:, 0]
        assert torch.equal(sides.weights, own[sides.rows]) if heavy else sides.weights is None


@pytest.mark.parametrize("places", [[], [3], [2, 5]])
def test_parts_of_a_stream_make_up_the_whole(places: list[int]) -> None:
    stream = stream_of([0, 1, 2, 0, 1, 2, 3])
    parts = [stream.take(slice(first, last)) for first, last in pairwise([0, *places, len(stream)])]
    assert described([Batch(join_samples(parts), ())]) == described([Batch(stream, ())])


# Two groups: everything in closed form.


def counts_law(p: float, size: int, least: int) -> Iterator[tuple[int, int, float]]:
    """Samples of group 0 and of group 1 in a batch, and the probability: all but 1e-13 of it."""
    q = 1 - p
    if size >= 2 * least:
        for n in range(least, size - least + 1):
            yield n, size - n, math.comb(size, n) * p**n * q ** (size - n)
    longest = 60 + int(math.log(1e-18) / math.log(max(p, q)))
    for total in range(max(size + 1, 2 * least), longest):
        ways, other = math.comb(total - 1, least - 1), total - least
        yield least, other, ways * p**least * q**other
        yield other, least, ways * q**least * p**other


def weight_of_group_0(zeros: int, ones: int, rule: Coverage) -> float:
    member = torch.arange(zeros + ones) < zeros
    return float(overshoot_weights(torch.stack([member, ~member], 1).numpy(), rule)[0])


def delta(total: int, n: int, size: int) -> float:
    """The paper's correction, as it stands there."""
    if total == size:
        return 1.0
    return (n == 2) * total / (2 * (total - 1)) + (n == total - 2) * total / (total - 1)


LAWS = [(p, size, least) for p in (0.5, 0.2, 0.1) for size in (1, 2, 3, 4, 8) for least in (1, 2)]


@pytest.mark.parametrize(("p", "size", "least"), LAWS)
def test_the_weighted_share_of_a_group_has_exactly_its_probability_as_mean(
    p: float, size: int, least: int
) -> None:
    rule = Coverage(PAIR, size, least)
    law = list(counts_law(p, size, least))
    assert math.fsum(chance for *_, chance in law) == pytest.approx(1, abs=1e-12)
    shares = ((c, weight_of_group_0(n, m, rule) * n / (n + m)) for n, m, c in law)
    assert math.fsum(chance * share for chance, share in shares) == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize(("p", "size", "least"), LAWS)
def test_the_cross_check_needs_no_weights(p: float, size: int, least: int) -> None:
    """Wait for one more of each, drop the last sample if the batch overshot: plain means are
    unbiased.
    """
    wait = least + 1
    terms = []
    for n, m, chance in counts_law(p, size, wait):
        if n + m == size:
            terms.append(chance * n / size)
            continue
        # the last sample was of the side that holds exactly `wait`; where both do, of either
        kept = [n - 1] * (n == wait) + [n] * (m == wait)
        terms += [chance / len(kept) * zeros / (n + m - 1) for zeros in kept]
    assert math.fsum(terms) == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize(
    ("p", "size", "value"),
    [
        (0.2, 4, 0.357070),
        (0.2, 8, 0.174542),
        (0.1, 4, 0.577718),
        (0.1, 8, 0.413666),
        (0.5, 4, 0.0),
        (0.5, 8, 0.0),
    ],
)
def test_without_weights_the_share_has_the_bias_of_the_paper(
    p: float, size: int, value: float
) -> None:
    law = counts_law(p, size, least=2)
    share = math.fsum(chance * n / (n + m) for n, m, chance in law)
    assert covering_bias(p, size) == pytest.approx(value, abs=3e-6)  # printed to six digits
    assert share == pytest.approx(p * (1 + covering_bias(p, size)), abs=1e-10)
    smaller = math.fsum(chance * n / (n + m) for n, m, chance in counts_law(p, 2, least=2))
    # below 4 the size makes no difference
    assert smaller == pytest.approx(p * (1 + covering_bias(p, 4)), abs=1e-10)


@pytest.mark.parametrize("size", range(1, 10))
def test_weights_are_the_papers_for_two_groups_except_where_its_indicators_overlap(
    size: int,
) -> None:
    rule = Coverage(PAIR, size, least=2)
    for zeros, ones, _ in counts_law(0.5, size, least=2):
        overlap = size < 4 and zeros == ones == 2
        paper = delta(zeros + ones, zeros, size)
        assert weight_of_group_0(zeros, ones, rule) == pytest.approx(
            1.0 if overlap else paper, rel=1e-12
        )
        assert paper == pytest.approx(2.0) or not overlap


@pytest.mark.parametrize(("size", "exact"), [(2, False), (3, False), (4, True), (8, True)])
def test_the_papers_weights_overcount_below_four(size: int, exact: bool) -> None:
    mean = math.fsum(
        c * delta(n + m, n, size) * n / (n + m) for n, m, c in counts_law(0.2, size, least=2)
    )
    assert (mean == pytest.approx(0.2, abs=1e-12)) is exact
    assert mean - 0.2 > (-1e-12 if exact else 0.01)


# Any groups: seeded streams from a population of which everything is known.


class Population:
    """Finitely many kinds of people: chances, inputs, labels, cells; and by brute force what
    batches estimate.
    """

    def __init__(
        self, criterion: Criterion, kinds: list[tuple[float, float, list[int]]], contrast: str
    ) -> None:
        """``kinds``: the share, where its inputs lie, and label, group, group of a second
        attribute ...
        """
        shares, places, codes = zip(*kinds, strict=True)
        labels, groups = np.array(codes)[:, 0], np.array(codes)[:, 1:]
        attributes = [
            Attribute(f"attribute {k}", tuple(range(last + 1)))
            for k, last in enumerate(groups.max(0))
        ]
        cells = compile_cells(criterion, attributes, classes=(0, 1), contrast=contrast)
        self.comparisons = cells.comparisons
        # three inputs for each kind, no two of them equal
        jitter = 0.01 * torch.arange(len(kinds)).double()[:, None]
        self.x = (
            torch.tensor(places).double()[:, None] + torch.tensor([-0.4, 0.0, 0.7]) + jitter
        ).flatten()
        self.y = torch.as_tensor(labels).double().repeat_interleave(3)
        self.cell = torch.as_tensor(cells.of(groups, labels=labels)).repeat_interleave(3)
        self.chance = torch.tensor(shares).double().repeat_interleave(3) / (3 * sum(shares))

    def stream(self, seed: int, chunk: int = 128) -> Iterator[Samples]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            rows = torch.multinomial(self.chance, chunk, replacement=True, generator=generator)
            yield Samples(
                self.x[rows, None], self.y[rows], self.cell[rows], torch.ones(chunk).double()
            )

    def truth(self, theta: Tensor) -> Tensor:
        """What batches estimate: risk, penalty of each comparison, gradient of their sum."""
        output = theta * self.x
        score = torch.sigmoid(output)
        apart = (score[:, None] - score).abs()
        risk = (self.chance * BINARY.loss(output, self.y)).sum()
        penalties = []
        for one in self.comparisons:
            inside = [
                torch.isin(self.cell, torch.tensor(side)) * self.chance
                for side in (one.left, one.right)
            ]
            gap = inside[0] / inside[0].sum() - inside[1] / inside[1].sum()
            penalties.append(-gap @ apart @ gap)
        return with_gradient(risk, torch.stack(penalties), theta)


# criterion, contrast, size, kinds: rare ones lie far out and have large losses, so that bias shows
Scenario: TypeAlias = tuple[Criterion, str, int, list[tuple[float, float, list[int]]]]
SCENARIOS: dict[str, Scenario] = {
    "two groups": (
        STATISTICAL_PARITY,
        "pairs",
        4,
        [(0.5, -1.0, [0, 0]), (0.35, 0.5, [1, 0]), (0.15, 3.0, [0, 1])],
    ),
    "three groups": (
        STATISTICAL_PARITY,
        "pairs",
        5,
        [(0.4, -1.0, [0, 0]), (0.2, 0.5, [1, 0]), (0.25, 1.0, [1, 1]), (0.15, 3.0, [0, 2])],
    ),
    "equalized odds": (
        EQUALIZED_ODDS,
        "pairs",
        4,
        [
            *[(0.3, -1.0, [0, 0]), (0.2, 1.0, [1, 0]), (0.1, -0.5, [0, 1])],
            *[(0.2, 1.5, [1, 1]), (0.08, 3.0, [0, 2]), (0.12, -2.0, [1, 2])],
        ],
    ),
    "two attributes": (
        STATISTICAL_PARITY,
        "pairs",
        4,
        [
            (0.45, 0.0, [0, 0, 0]),
            (0.42, 2.0, [1, 0, 1]),
            (0.1, 2.5, [0, 1, 0]),
            (0.03, 0.2, [0, 1, 1]),
        ],
    ),
    "each against the rest": (
        STATISTICAL_PARITY,
        "rest",
        4,
        [(0.5, -1.0, [0, 0]), (0.4, -0.5, [0, 1]), (0.1, 4.0, [0, 2])],
    ),
}
SIDES_OF_SEVERAL_CELLS = {"two attributes", "each against the rest"}
THETA = 0.7


def with_gradient(risk: Tensor, penalties: Tensor, theta: Tensor) -> Tensor:
    (slope,) = torch.autograd.grad(penalties.sum(), theta)
    return torch.cat([risk.detach()[None], penalties.detach(), slope[None]])


def estimates(batch: Batch) -> Tensor:
    theta = torch.tensor(THETA, dtype=torch.float64, requires_grad=True)
    output = theta * batch.samples.x[:, 0]
    risk = (batch.samples.weight * BINARY.loss(output, batch.samples.y)).mean()
    energy = training_metric("energy", estimate="population")
    return with_gradient(
        risk, between(energy, torch.sigmoid(output), batch.sides, reduce="all"), theta
    )


def z_values(found: list[Tensor], truth: Tensor) -> Tensor:
    values = torch.stack(found)
    return (values.mean(0) - truth) / (values.std(0) / len(values) ** 0.5)


def as_is(batch: Batch, population: Population, size: int) -> Batch:
    return batch


def plain(batch: Batch, population: Population, size: int) -> Batch:
    """The control: no weights, and every comparison on the whole batch."""
    return whole(
        batch.samples.with_weight(torch.ones_like(batch.samples.weight)), population.comparisons
    )


def without_last(batch: Batch, population: Population, size: int) -> Batch:
    return plain(
        Batch(batch.samples.take(slice(0, max(len(batch.samples) - 1, size))), ()), population, size
    )


RULES = {"ours": (2, as_is), "plain": (2, plain), "cross-check": (3, without_last)}


@cache
def drawn(scenario: str, least: int, count: int) -> tuple[Population, list[Batch]]:
    criterion, contrast, size, kinds = SCENARIOS[scenario]
    population = Population(criterion, kinds, contrast)
    batches = covering(population.stream(seed=1), Coverage(population.comparisons, size, least))
    return population, list(islice(batches, count))


@cache
def simulated(scenario: str, rule: str, count: int) -> Tensor:
    """z of risk, penalties and gradient over so many batches."""
    least, treat = RULES[rule]
    population, batches = drawn(scenario, least, count)
    found = [estimates(treat(batch, population, SCENARIOS[scenario][2])) for batch in batches]
    theta = torch.tensor(THETA, dtype=torch.float64, requires_grad=True)
    return z_values(found, population.truth(theta))


# The bias that is looked for in a control is found at more than 6 standard errors.
LENGTHS = [
    *((scenario, 600) for scenario in SCENARIOS if scenario != "equalized odds"),
    pytest.param("equalized odds", 1200, marks=pytest.mark.extended),
    *(pytest.param(scenario, 20_000, marks=pytest.mark.slow) for scenario in SCENARIOS),
]


@pytest.mark.parametrize(("scenario", "count"), LENGTHS)
def test_risk_penalty_and_gradient_are_unbiased(scenario: str, count: int) -> None:
    assert simulated(scenario, "ours", count).abs().max() < 4


@pytest.mark.parametrize(("scenario", "count"), LENGTHS)
def test_the_same_test_finds_the_bias_of_plain_means(scenario: str, count: int) -> None:
    """Power: without weights and prefixes the estimates are far off, wherever they should be."""
    risk, *penalties_and_slope = simulated(scenario, "plain", count).abs()
    assert risk > 6
    if scenario in SIDES_OF_SEVERAL_CELLS:
        assert max(penalties_and_slope[:-1]) > 6
    else:  # a side of one cell stays a sample of its group however long one waits
        assert max(penalties_and_slope) < 4


@pytest.mark.parametrize(
    ("scenario", "count"), [("two attributes", 600), *LENGTHS[len(SCENARIOS) :]]
)
def test_waiting_for_one_more_and_dropping_the_last_is_unbiased_too(
    scenario: str, count: int
) -> None:
    assert simulated(scenario, "cross-check", count).abs().max() < 4


# Streams that never cover.


PATIENCE = 100
IMPATIENT = [
    (
        [0] * 201,
        Coverage(PAIR, 2),
        (
            "200 samples of the stream have fewer than 2 of: sex 'm', everyone (0 seen); use a "
            "larger batch size, or "
            "leave out the rare group"
        ),
    ),
    (
        [0, 0, 0, 1, *[2] * 100],  # three are enough
        Coverage((Comparison((0,), (1,), "race", "y=1", ("a", "b")),), 1, least=3),
        (
            "100 samples of the stream have fewer than 3 of: race 'b', y=1 (1 seen); use a larger "
            "batch size, or leave "
            "out the rare group"
        ),
    ),
    (
        [0, 4, 4, *[2] * 100],
        Coverage(
            (Comparison((0,), (1,), "race", "y=1", ("a", "b")), Comparison((0,), (3,))), 1, least=3
        ),
        (
            "100 samples of the stream have fewer than 3 of: race 'a', y=1 (1 seen); race 'b', y=1 "
            "(0 seen); "
            "group 'left', everyone (1 seen); group 'right', everyone (0 seen); use a larger batch "
            "size, or leave out "
            "the rare group"
        ),
    ),
]


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("cells", "rule", "message"), IMPATIENT)
def test_a_stream_that_never_covers_is_refused_with_what_is_missing(
    cells: list[int], rule: Coverage, message: str, chunk: int
) -> None:
    stream = stream_of(cells)
    pieces = (stream.take(slice(start, start + chunk)) for start in range(0, len(cells), chunk))
    with pytest.raises(TooFewSamples) as caught:
        list(covering(pieces, rule))
    assert str(caught.value) == message


@pytest.mark.parametrize("chunk", [1, 1000])
def test_patience_ends_at_a_hundred_times_the_size(chunk: int) -> None:
    rule = Coverage(PAIR, size=1, least=1)
    for late, refused in ((PATIENCE - 1, False), (PATIENCE, True)):
        stream = stream_of([0] * late + [1, 1, 1])
        pieces = (
            stream.take(slice(start, start + chunk)) for start in range(0, len(stream), chunk)
        )
        if refused:
            with pytest.raises(TooFewSamples):
                next(covering(pieces, rule))
        else:
            assert len(next(covering(pieces, rule)).samples) == PATIENCE


@pytest.mark.parametrize(
    "chunk",
    [1, 1000],
)
def test_batches_before_the_stream_dries_up_are_delivered(chunk: int) -> None:
    stream = stream_of([0, 1] * 2 + [0] * 401)
    pieces = (stream.take(slice(start, start + chunk)) for start in range(0, len(stream), chunk))
    batches = covering(pieces, Coverage(PAIR, size=4))
    assert len(next(batches).samples) == 4
    with pytest.raises(TooFewSamples):
        next(batches)


def test_without_comparisons_batches_have_the_size_asked_for() -> None:
    batches, left = cut(stream_of([0] * 7), Coverage((), size=3))
    assert [len(batch.samples) for batch in batches] == [3, 3]
    assert [batch.sides for batch in batches] == [(), ()]
    assert len(left) == 1


@pytest.mark.parametrize(("size", "least"), [(0, 2), (4, 0), (-1, -1)])
def test_sizes_below_one_are_refused(size: int, least: int) -> None:
    with pytest.raises(DataError) as caught:
        Coverage(PAIR, size, least)
    assert (
        str(caught.value) == f"size and least must be at least 1, got size={size} and least={least}"
    )


@pytest.mark.parametrize(
    ("share", "size"), [(0.02, 6), (1e-4, 4), (1e-3, 5000), (0.98, 6), (0.9, 200)]
)
def test_the_bias_of_a_rare_group_keeps_its_digits(share: float, size: int) -> None:
    """Against the series in fifty digits."""
    with localcontext(prec=50):
        p, q = Decimal(share), 1 - Decimal(share)
        own, other = (-(1 - x).ln() - sum(x**n / n for n in range(1, size + 1)) for x in (q, p))
        exact = q ** (size - 1) - q * p ** (size - 2) - 2 * p / q**2 * own + 2 * q**2 / p**3 * other
    assert covering_bias(share, size) == pytest.approx(float(exact), rel=1e-10)
