"""Samples as tensors: where training begins, the rows that comparisons use of them, and batches
of data and streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, compress, islice
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem import cells
from metrifair.problem.cells import Comparison, Dependence, Sides
from metrifair.problem.problem import Problem
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import rows_or_none


@dataclass(frozen=True, eq=False)
class Samples:
    """Observations: a data set, a split, a batch or a single one alike.

    >>> some = Samples(torch.zeros(3, 2), torch.ones(3), torch.tensor([0, 1, 1]), torch.ones(3))
    >>> len(some), some.take(torch.tensor([2, 0])).cell
    (3, tensor([1, 0]))
    """

    x: Tensor  # (n, features)
    y: Tensor  # (n,): label codes or regression targets
    cell: Tensor  # (n,) integers: no comparison distinguishes samples of one cell
    weight: Tensor  # (n,): weight of the sample's loss in the mean
    # (n, attributes): numbers, or codes of names; None: only groups are compared
    value: Tensor | None = None

    def __len__(self) -> int:
        return self.cell.shape[0]  # torch's own len takes ten times as long

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        value = rows_or_none(self.value, rows)
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows], value)

    def to(self, like: Tensor) -> Samples:
        """The same samples on the device of a tensor, with outcomes and weights of its type."""
        y = self.y.to(like.device, like.dtype if self.y.is_floating_point() else None)
        value = None if self.value is None else self.value.to(like.device)
        return Samples(self.x.to(like), y, self.cell.to(like.device), self.weight.to(like), value)

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return replace(self, weight=weight)


def join_samples(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ["x", "y", "cell", "weight"] + (["value"] if parts[0].value is not None else [])
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples for one step, and for each comparison the rows that it may use."""

    samples: Samples
    sides: tuple[Sides, ...]  # one for each comparison


def tensor_sides(
    comparisons: Sequence[Comparison],
    cell: Tensor,
    weight: Tensor | None = None,
    *,
    drawn_from: Tensor | None = None,
) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells, as ``problem.cells.make_sides``
    finds them.
    """
    source = None if drawn_from is None else drawn_from.cpu().numpy()
    sides = []
    for side in cells.make_sides(comparisons, cell.cpu().numpy(), drawn_from=source):
        rows = torch.from_numpy(side.rows).to(cell.device)
        fraction = (
            None if side.fraction is None else torch.from_numpy(side.fraction).to(cell.device)
        )
        sides.append(
            replace(side, rows=rows, weights=rows_or_none(weight, rows), fraction=fraction)
        )
    return tuple(sides)


def plug_in_sides(comparisons: Sequence[Comparison], samples: Samples) -> tuple[Sides, ...]:
    """The rows of each comparison with their weights, for distances of all samples; of equal
    weights, without them.
    """
    return tensor_sides(comparisons, samples.cell, uneven(samples.weight))


def uneven(weight: Tensor) -> Tensor | None:
    """The weights; None if all are equal.

    >>> uneven(torch.tensor([1.0, 2.0])), uneven(torch.tensor([2.0, 2.0]))
    (tensor([1., 2.]), None)
    """
    return None if bool((weight == weight[0]).all()) else weight


def sides_by_row(comparisons: Sequence[Comparison], problem: Problem) -> tuple[Sides, ...]:
    """The rows of a problem in each comparison, with their weights; of equal weights, without
    them.

    If groups have probabilities, a row is in a comparison once for each of its ``entries``.

    >>> from metrifair.problem.problem import Inputs, problem_with_probabilities
    >>> from metrifair.problem.memberships import GroupProbabilities
    >>> sex = GroupProbabilities({"f": [0.25, 1.0], "m": [0.75, 0.0]}, attribute="sex")
    >>> problem = problem_with_probabilities(Inputs(sensitive_features=sex))
    >>> (sides,) = sides_by_row(problem.comparisons, problem)
    >>> sides.rows, sides.weights, sides.counts
    (tensor([0, 1, 0]), tensor([0.2500, 1.0000, 0.7500], dtype=torch.float64), (2, 1))
    """
    entries = problem.entries
    weight = np.ones(len(entries)) if entries.weight is None else entries.weight
    sides = tensor_sides(
        comparisons, torch.as_tensor(entries.cell), uneven(torch.as_tensor(weight))
    )
    row = torch.as_tensor(problem.row_of_entry)
    return tuple(replace(side, rows=row[side.rows]) for side in sides)


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides with these rows; ``weight`` is one number per sample."""
    rows = torch.cat([left, right])
    return Sides(rows, (len(left),), (len(right),), rows_or_none(weight, rows))


def dependence_at(dependence: Dependence, rows: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows among which scores should not depend on the attribute."""
    return Sides(rows, (len(rows),), (), rows_or_none(weight, rows), dependence=dependence)


def rows_by_cell(cell: Tensor, count: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    return [
        torch.from_numpy(rows).to(cell.device)
        for rows in cells.rows_by_cell(cell.cpu().numpy(), count)
    ]


ByCell: TypeAlias = Sequence[Sequence[Tensor]]  # of each seed, something of the rows of each cell
_KEYS = 2**40  # random keys by which a device shuffles: two of a million rows are rarely equal
# rows of one seed, and their passes, that a device shuffles at once
_AT_ONCE = 2**16
_MOST_PASSES = 64


class Layout(NamedTuple):
    """A batch laid out by cell: the number of samples of each, one cell after the other."""

    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Samples in a batch."""
        return sum(self.counts)

    def weights(self, shares: Tensor) -> Tensor:
        """Loss weights (..., size) that undo the rounding of the counts, for cells of these
        shares (..., cells).
        """
        counts = torch.tensor(self.counts, device=shares.device)
        per_cell = shares * self.size / counts.clamp_min(1)
        return per_cell.repeat_interleave(counts, -1)

    def sides(
        self, comparison: Comparison, shares: Tensor, drawn_from: Tensor | None = None
    ) -> Sides:
        """The rows of a comparison, with weights if a side mixes several cells of these shares.

        ``drawn_from`` is the number of rows of each cell (..., cells) that a batch is drawn from,
        without replacement.
        """
        starts = [*accumulate(self.counts, initial=0)]
        left, right = (
            [cell for cell in side if self.counts[cell]]
            for side in (comparison.left, comparison.right)
        )
        cells = left + right
        blocks = [tuple(self.counts[cell] for cell in side) for side in (left, right)]
        dependence = comparison if isinstance(comparison, Dependence) else None
        rows = torch.cat(
            [torch.arange(starts[cell], starts[cell] + self.counts[cell]) for cell in cells]
        )
        weights = None
        counts = torch.tensor([self.counts[cell] for cell in cells], device=shares.device)
        if len(cells) > (2 if dependence is None else 1):
            weights = (shares[..., cells] / counts).repeat_interleave(counts, -1)
        first = int(rows[0])
        last = int(rows[-1])
        adjacent = last - first + 1 == len(rows) and bool((rows.diff() == 1).all())
        fraction = None if drawn_from is None else counts / drawn_from[..., cells].double()
        chosen = slice(first, last + 1) if adjacent else rows.to(shares.device)
        return Sides(chosen, blocks[0], blocks[1], weights, fraction, dependence)


def layout(
    sizes: Sequence[int],
    comparisons: Sequence[Comparison],
    *,
    size: int,
    least: int = 2,
    fewest: int | None = None,
) -> Layout:
    """Cell counts of a batch: as close to proportional as integers allow, never too few to compare.

    Every cell with samples has at least one in the batch, a compared cell ``least``, or all of its
    samples: the batch grows beyond ``size`` if necessary. A compared cell with fewer than
    ``fewest`` (default: ``least``) is an error.

    >>> layout((90, 6, 4), (Comparison((1,), (2,)),), size=20).counts
    (16, 2, 2)
    """
    if size < 1:
        raise DataError(f"the batch size must be at least 1, got {size}")
    for comparison in comparisons:
        _check_sides(comparison, sizes, comparison.needs(least if fewest is None else fewest))
    total = sum(sizes)
    size = min(size, total)
    needed = dict.fromkeys(range(len(sizes)), 1)
    for comparison in comparisons:
        needed |= {
            cell: max(needed[cell], comparison.needs(least))
            for cell in (*comparison.left, *comparison.right)
        }
    floors = [min(n, needed[cell]) for cell, n in enumerate(sizes)]
    counts = [max(floor, size * n // total) for n, floor in zip(sizes, floors, strict=True)]
    ahead = [count - size * n / total for n, count in zip(sizes, counts, strict=True)]
    while sum(counts) < size:
        cell = ahead.index(min(ahead))
        counts[cell] += 1
        ahead[cell] += 1
    while sum(counts) > max(size, sum(floors)):
        spare = [
            excess if count > floor else -inf
            for excess, count, floor in zip(ahead, counts, floors, strict=True)
        ]
        cell = spare.index(max(spare))
        counts[cell] -= 1
        ahead[cell] -= 1
    return Layout(tuple(counts))


def _check_sides(comparison: Comparison, sizes: Sequence[int], least: int) -> None:
    for side, group in zip(comparison.sides, comparison.groups, strict=False):
        present = [sizes[cell] for cell in side if sizes[cell]]
        if not present or min(present) < least:
            count = " + ".join(map(str, present)) or "no"
            raise TooFewSamples(
                f"comparing {comparison}: group {group!r} has {count} sample(s) there, and {least} "
                "of each kind are "
                "needed; merge small groups, mark them as missing, or use estimate='rows' or "
                "'batch'"
            )


def sampling_odds(weight: Tensor) -> Tensor:
    """The odds of drawing each sample: its weight, or 1 if all weights are 0 (and so are the
    loss weights).
    """
    return weight if bool((weight > 0).any()) else torch.ones_like(weight)


class StratifiedPasses:
    """Passes of stratified batches over the rows of several seeds: each cell has its own shuffled
    deck of rows.

    The rows of a cell are drawn without replacement. If fewer remain than a batch needs, they are
    dropped and the cell is shuffled again. With ``odds`` (one weight per row of each seed's cells),
    rows are drawn independently of each other, in proportion to them. Shuffling runs on the host;
    rows are looked up on the device.

    >>> rows = [torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5])]
    >>> StratifiedPasses([rows], Layout((2, 1)), steps=2)([torch.Generator().manual_seed(0)])  # (seeds, steps, size)
    tensor([[[0, 1, 4],
             [3, 2, 5]]])
    """

    def __init__(
        self,
        rows: ByCell,
        plan: Layout,
        steps: int,
        *,
        odds: ByCell | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        counts = [count for count in plan.counts if count]
        self._odds = None if odds is None else [[*compress(seed, plan.counts)] for seed in odds]
        # often the same for all seeds
        cell_rows = {id(seed): [*compress(seed, plan.counts)] for seed in rows}
        starts = accumulate(map(len, chain(*cell_rows.values())), initial=0)
        first = {seed: list(islice(starts, len(counts))) for seed in cell_rows}
        decks = [
            list(map(len, cell_rows[id(seed)])) if odds is None else [steps * n for n in counts]
            for seed in rows
        ]
        self._lengths, batch_places = zip(
            *[_shuffles(deck, counts, steps) for deck in decks], strict=True
        )
        begins = torch.tensor([*accumulate(map(sum, self._lengths), initial=0)])
        places = torch.stack(batch_places) + begins[:-1].view(-1, 1, 1)
        cell_starts = torch.tensor([first[id(seed)] for seed in rows]).repeat_interleave(
            torch.tensor(counts), 1
        )
        self._table = torch.cat([*chain(*cell_rows.values())]).to(self.device)
        kind = torch.int32 if max(int(begins[-1]), len(self._table)) < 2**31 else torch.int64
        # (seeds, steps, size): of a batch's cards in all shuffles
        self._places = places.to(self.device, kind)
        # (seeds, 1, size): where their cell starts
        self._first = cell_starts.unsqueeze(1).to(self.device, kind)

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        lengths = [*chain(*self._lengths)]
        cards = torch.empty(sum(lengths), dtype=torch.int32)
        # all at once: a slice for each would take as long as its shuffling
        shuffles = iter(cards.split(lengths))
        for seed, generator in zip(range(len(self._lengths)), generators, strict=True):
            for place, length in enumerate(self._lengths[seed]):
                if self._odds is None:
                    torch.randperm(length, generator=generator, out=next(shuffles))
                else:
                    odds = self._odds[seed][place]
                    next(shuffles).copy_(
                        torch.multinomial(odds, length, replacement=True, generator=generator)
                    )
        return self._look_up(cards)

    def _look_up(self, cards: Tensor) -> Tensor:
        """The rows (..., seeds, steps, size) of the cards (..., cards) of all shuffles."""
        chosen = cards.to(self.device).index_select(-1, self._places.view(-1))
        chosen = chosen.view(*cards.shape[:-1], *self._places.shape) + self._first
        return self._table.index_select(0, chosen.view(-1)).view(chosen.shape)


class DevicePasses(StratifiedPasses):
    """The same passes, shuffled on a device: the host would take longer than the device takes to
    train.

    All shuffles of several passes are one sort of random keys. Draws differ from those of the host.

    >>> rows = [torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5])]
    >>> DevicePasses([rows], Layout((2, 1)), steps=2)([torch.Generator().manual_seed(0)]).shape  # (seeds, steps, size)
    torch.Size([1, 2, 3])
    """

    def __init__(
        self,
        rows: ByCell,
        plan: Layout,
        steps: int,
        *,
        odds: ByCell | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(rows, plan, steps, odds=odds, device=device)
        self._generators: list[torch.Generator] = []  # of each seed, on the device
        self._waiting: list[Tensor] = []  # passes that have been drawn
        passes = min(max(1, _AT_ONCE // (steps * plan.size)), _MOST_PASSES)
        lengths = torch.tensor([*chain(*self._lengths)])
        deck = torch.arange(len(lengths)).repeat_interleave(lengths)  # of each card
        pass_number = torch.arange(passes).unsqueeze(1)
        if self._odds is not None:
            odds_by_deck = [*chain(*self._odds)]
            ends = [
                (odds.double().cumsum(0) / odds.double().sum() * _KEYS).round().long()
                for odds in odds_by_deck
            ]
            self._ends = torch.cat([number * _KEYS + end for number, end in enumerate(ends)]).to(
                self.device
            )
            # keys point to odds, not to cards
            lengths = torch.tensor([len(odds) for odds in odds_by_deck])
            pass_number = torch.zeros_like(pass_number)  # odds are those of every pass
        starts = torch.cumsum(lengths, 0) - lengths
        self._smallest_keys = ((pass_number * len(starts) + deck) * _KEYS).to(self.device)
        self._starts = (pass_number * len(deck) + starts[deck]).to(self.device)

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        if not self._waiting:
            self._waiting = [*self._draw(generators)]
        return self._waiting.pop(0)

    def _draw(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of several passes (passes, seeds, steps, size)."""
        self._generators = self._generators or [
            torch.Generator(self.device).manual_seed(generator.initial_seed())
            for generator in generators
        ]
        keys = torch.cat(
            [
                torch.randint(
                    _KEYS,
                    (len(self._starts), sum(lengths)),
                    generator=generator,
                    device=self.device,
                )
                for lengths, generator in zip(self._lengths, self._generators, strict=True)
            ],
            1,
        )
        keys += self._smallest_keys
        if self._odds is None:
            places = keys.view(-1).argsort().view(keys.shape)
        else:
            places = torch.searchsorted(self._ends, keys, right=True)
        return self._look_up(places - self._starts)


def make_passes(
    rows: ByCell,
    plan: Layout,
    steps: int,
    *,
    odds: ByCell | None = None,
    device: torch.device | str = "cpu",
) -> StratifiedPasses:
    """Passes whose rows are on the device, shuffled there if it is an accelerator."""
    kind = DevicePasses if torch.device(device).type == "cuda" else StratifiedPasses
    return kind(rows, plan, steps, odds=odds, device=device)


def _shuffles(decks: Sequence[int], counts: Sequence[int], steps: int) -> tuple[list[int], Tensor]:
    """The number of cards of each shuffle, and the places of each batch's cards (steps, size) in
    all shuffles.

    >>> _shuffles([5, 2], [2, 1], 3)  # 5 cards, 2 a batch, and again from the third batch on; 2 cards, one a batch
    ([5, 5, 2, 2], tensor([[ 0,  1, 10],
            [ 2,  3, 11],
            [ 5,  6, 12]]))
    """
    lengths: list[int] = []
    places = []
    batch = torch.arange(steps)
    for deck, count in zip(decks, counts, strict=True):
        first = sum(lengths) + batch // (deck // count) * deck + batch % (deck // count) * count
        places.append(first.unsqueeze(1) + torch.arange(count))
        lengths += [deck] * -(-steps // (deck // count))
    return lengths, torch.cat(places, 1)


def whole(samples: Samples, comparisons: Sequence[Comparison]) -> Batch:
    """All samples as one batch.

    Parameters
    ----------
    samples : Samples
        The data set.
    comparisons : sequence of Comparison
        The comparisons.

    Returns
    -------
    Batch
        The samples, and their rows on the sides of every comparison.

    Examples
    --------
    >>> data = Samples(torch.zeros(3, 1), torch.zeros(3), torch.tensor([0, 1, 0]), torch.ones(3))
    >>> whole(data, [Comparison((0,), (1,))]).sides[0].rows          # those of cell 0, then those of cell 1
    tensor([0, 2, 1])
    """
    return Batch(samples, tensor_sides(comparisons, samples.cell, drawn_from=samples.cell))


PATIENCE = 100  # a batch of a stream may grow to this many times the requested size


@dataclass(frozen=True)
class Coverage:
    """When a batch is complete: ``size`` samples, and ``least`` on each side of each comparison.

    Parameters
    ----------
    comparisons : tuple of Comparison
        The comparisons.
    size : int
        Minimum number of samples of a batch.
    least : int, default=2
        Minimum number of samples of either side of every comparison: 2 for unbiased distances, 1
        for others. A dependence has one side, and needs 4 samples for unbiased
        values.

    Raises
    ------
    DataError
        If size or least is below 1.

    Examples
    --------
    >>> Coverage((Comparison((0,), (1,)),), size=32).patience        # a batch that grows longer is an error
    3200
    """

    comparisons: tuple[Comparison, ...]
    size: int
    least: int = 2

    def __post_init__(self) -> None:
        if self.size < 1 or self.least < 1:
            raise DataError(
                f"size and least must be at least 1, got size={self.size} and least={self.least}"
            )

    @cached_property
    def _sides(self) -> Booleans:
        """Whether each cell is on the left and on the right of each comparison, (cells, 2,
        comparisons).
        """
        cells = 2 + max(
            (max(comparison.left + comparison.right) for comparison in self.comparisons), default=-1
        )
        member = np.zeros((cells, 2, len(self.comparisons)), dtype=np.bool_)
        for j, comparison in enumerate(self.comparisons):
            member[list(comparison.left), 0, j] = member[list(comparison.sides[-1]), 1, j] = True
        return member

    @cached_property
    def needs(self) -> Integers:
        """The fewest samples of either side, for each comparison."""
        return np.array(
            [comparison.needs(self.least) for comparison in self.comparisons], dtype=np.int64
        )

    @cached_property
    def at_once(self) -> Integers:
        """The length of each comparison's covered prefix, if the first ``size`` samples contain
        enough.
        """
        return np.full(len(self.needs), self.size)

    def member(self, cell: Integers) -> Booleans:
        """Whether samples are on the left (0) or right (1) of a comparison.

        Parameters
        ----------
        cell : ndarray of shape (n,)
            The cell of each sample.

        Returns
        -------
        ndarray of shape (n, 2, comparisons)
            True where it does.
        """
        # the last one is in none
        return np.asarray(self._sides[np.minimum(cell, len(self._sides) - 1)])

    @property
    def patience(self) -> int:
        """Samples that a batch may grow to."""
        return PATIENCE * self.size


def cut(waiting: Samples, rule: Coverage, start: int = 0) -> Batch | None:
    """The batch at the front of the waiting samples; None if it is not complete.

    The result depends on the samples alone, not on the pieces in which they arrived.

    Parameters
    ----------
    waiting : Samples
        The samples of a stream that are in no batch yet, in their order.
    rule : Coverage
        Rule that decides when a batch is complete.
    start : int, default=0
        Number of samples that are already in batches.

    Returns
    -------
    Batch or None
        The batch, whose loss weights make up for its length.

    Raises
    ------
    TooFewSamples
        If ``rule.patience`` samples do not contain enough of some side.

    Examples
    --------
    >>> rule = Coverage((Comparison((0,), (1,)),), size=2, least=1)
    >>> waiting = Samples(torch.zeros(4, 1), torch.zeros(4), torch.tensor([0, 0, 1, 0]), torch.ones(4))
    >>> cut(waiting, rule).samples.cell                      # the third sample is the first of cell 1
    tensor([0, 0, 1])
    >>> cut(waiting, rule, start=3) is None
    True
    """
    cell = waiting.cell.numpy()[start:]
    if len(cell) < rule.size:
        return None
    window = rule.size  # the front first: most batches end there, and a chunk may be long
    while (covered := _covered(member := rule.member(cell[:window]), rule)) is None:
        if window >= len(cell):
            return None
        window *= 4
    length = int(covered.max(initial=rule.size))
    batch = waiting.take(slice(start, start + length))
    weights = batch.weight.numpy()
    uneven = None if (weights == weights[0]).all() else batch.weight
    sides = []
    for j, (comparison, end) in enumerate(zip(rule.comparisons, covered.tolist(), strict=True)):
        left, right = (torch.from_numpy(member[:end, side, j].nonzero()[0]) for side in (0, 1))
        if isinstance(comparison, Dependence):
            sides.append(dependence_at(comparison, left, uneven))
        else:
            sides.append(sides_at(left, right, uneven))
    if length > rule.size:
        weight = torch.from_numpy(overshoot_weights(member[:length].reshape(length, -1), rule))
        batch = batch.with_weight(batch.weight * weight.to(batch.weight.dtype))
    return Batch(batch, tuple(sides))


def _covered(member: Booleans, rule: Coverage) -> Integers | None:
    """The length of each comparison's covered prefix; None if these samples (n, 2, comparisons)
    are too few.
    """
    if (member.sum(0) >= rule.needs).all() and len(member) == rule.size:
        return rule.at_once
    enough = np.cumsum(member, 0) >= rule.needs  # from some sample on
    if not enough[-1].all():
        check_patience(len(member), member, rule)
        return None
    covered: Integers = np.maximum(enough.argmax(0).max(0) + 1, rule.size)
    length = int(covered.max(initial=rule.size))
    check_patience(length, member[:length], rule)
    return covered


def check_patience(length: int, member: Booleans, rule: Coverage) -> None:
    """Raise TooFewSamples, with the missing groups, if a batch (n, 2, comparisons) has grown
    too long.
    """
    if length <= rule.patience:
        return
    counts = member[: rule.patience].sum(0)
    short = [
        f"{comparison.attribute} {comparison.groups[side]!r}, {comparison.within} ({count} seen)"
        for j, comparison in enumerate(rule.comparisons)
        for side in range(len(comparison.sides))
        if (count := int(counts[side, j])) < rule.needs[j]
    ]
    missing = "; ".join(dict.fromkeys(short))
    raise TooFewSamples(
        f"{rule.patience} samples of the stream have fewer than {rule.least} of: {missing}; "
        "use a larger batch size, or leave out the rare group"
    )


def overshoot_weights(member: Booleans, rule: Coverage) -> Floats:
    """Loss weights that make the mean over a covering batch an unbiased estimate of the risk, (n,).

    ``member`` is (n, sides). A batch longer than ``size`` ends with the first sample that completes
    it. The mean of all samples but the last is unbiased; these weights average it over the K
    samples that could have been last: those in a side with exactly ``least`` samples.

    >>> rule = Coverage((Comparison((0,), (1,)),), size=4, least=2)
    >>> overshoot_weights(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=bool).T, rule)
    array([1.25 , 1.25 , 1.25 , 0.625, 0.625])
    """
    n = len(member)
    weight = np.ones(n)
    if n == rule.size:
        return weight
    critical = member[:, member.sum(0) == np.tile(rule.needs, 2)].any(1)
    weight[critical] = 1 - 1 / critical.sum()
    return weight * (n / (n - 1))


def covering(stream: Iterable[Samples], rule: Coverage) -> Iterator[Batch]:
    """Covering batches of a stream of samples or chunks; samples left at its end make no batch.

    Parameters
    ----------
    stream : iterable of Samples
        Stream of samples: single samples, or chunks of any length.
    rule : Coverage
        Rule that decides when a batch is complete.

    Yields
    ------
    Batch
        As many samples as it takes, with loss weights that keep the mean loss unbiased.

    Raises
    ------
    TooFewSamples
        If ``rule.patience`` samples do not contain enough of some side.

    Examples
    --------
    >>> rule = Coverage((Comparison((0,), (1,)),), size=2, least=1)
    >>> chunk = Samples(torch.zeros(5, 1), torch.zeros(5), torch.tensor([0, 1, 0, 0, 1]), torch.ones(5))
    >>> [len(batch.samples) for batch in covering([chunk], rule)]
    [2, 3]
    """
    waiting: Samples | None = None
    for chunk in stream:
        waiting = chunk if waiting is None else join_samples([waiting, chunk])
        start = 0
        while (batch := cut(waiting, rule, start)) is not None:
            start += len(batch.samples)
            yield batch
        waiting = waiting.take(slice(start, None))
