"""Samples as tensors: where training begins, the rows that comparisons use of them, and batches
of data and streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, compress
from math import ceil
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
        return Samples(
            x=self.x[rows],
            y=self.y[rows],
            cell=self.cell[rows],
            weight=self.weight[rows],
            value=rows_or_none(self.value, rows),
        )

    def to(self, like: Tensor) -> Samples:
        """The same samples on the device of a tensor, with outcomes and weights of its type."""
        y = self.y.to(like.device)
        if y.is_floating_point():
            y = y.to(like)
        value = self.value
        if value is not None:
            value = value.to(like.device)
        return Samples(
            x=self.x.to(like),
            y=y,
            cell=self.cell.to(like.device),
            weight=self.weight.to(like),
            value=value,
        )

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return replace(self, weight=weight)


def join_samples(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ["x", "y", "cell", "weight"]
    if parts[0].value is not None:
        fields.append("value")
    joined = {}
    for field in fields:
        values = [getattr(part, field) for part in parts]
        joined[field] = torch.cat(values)
    return Samples(**joined)


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
    source = None
    if drawn_from is not None:
        source = drawn_from.cpu().numpy()
    on_host = cell.cpu().numpy()
    sides = []
    for side in cells.make_sides(comparisons, on_host, drawn_from=source):
        rows = torch.as_tensor(side.rows, device=cell.device)
        fraction = side.fraction
        if fraction is not None:
            fraction = torch.as_tensor(fraction, device=cell.device)
        moved = replace(
            side,
            rows=rows,
            weights=rows_or_none(weight, rows),
            fraction=fraction,
        )
        sides.append(moved)
    return tuple(sides)


def plug_in_sides(comparisons: Sequence[Comparison], samples: Samples) -> tuple[Sides, ...]:
    """The rows of each comparison with their weights, for distances of all samples; of equal
    weights, without them.
    """
    weight = uneven(samples.weight)
    return tensor_sides(comparisons, samples.cell, weight)


def uneven(weight: Tensor) -> Tensor | None:
    """The weights; None if all are equal.

    >>> uneven(torch.tensor([1.0, 2.0])), uneven(torch.tensor([2.0, 2.0]))
    (tensor([1., 2.]), None)
    """
    equal = weight == weight[0]
    if equal.all():
        return None
    return weight


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
    weight = None
    if entries.weight is not None:
        weight = uneven(torch.as_tensor(entries.weight))
    cell = torch.as_tensor(entries.cell)
    sides = tensor_sides(comparisons, cell, weight)
    row = torch.as_tensor(problem.row_of_entry)
    by_row = [replace(side, rows=row[side.rows]) for side in sides]
    return tuple(by_row)


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides with these rows; ``weight`` is one number per sample."""
    rows = torch.cat([left, right])
    return Sides(
        rows=rows,
        left=(len(left),),
        right=(len(right),),
        weights=rows_or_none(weight, rows),
    )


def dependence_at(dependence: Dependence, rows: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows among which scores should not depend on the attribute."""
    return Sides(
        rows=rows,
        left=(len(rows),),
        right=(),
        weights=rows_or_none(weight, rows),
        dependence=dependence,
    )


def rows_by_cell(cell: Tensor, count: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    on_host = cell.cpu().numpy()
    by_cell = cells.rows_by_cell(on_host, count)
    return [torch.as_tensor(rows, device=cell.device) for rows in by_cell]


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
        expected = shares * self.size
        per_cell = expected / counts.clamp_min(1)
        return per_cell.repeat_interleave(counts, -1)

    def sides(
        self, comparison: Comparison, shares: Tensor, drawn_from: Tensor | None = None
    ) -> Sides:
        """The rows of a comparison, with weights if a side mixes several cells of these shares.

        ``drawn_from`` is the number of rows of each cell (..., cells) that a batch is drawn from,
        without replacement.
        """
        left = self._present(comparison.left)
        right = self._present(comparison.right)
        cells = left + right
        counts = [self.counts[cell] for cell in cells]
        tensor_counts = torch.tensor(counts, device=shares.device)
        dependence = None
        is_mixed = len(cells) > 2
        if isinstance(comparison, Dependence):
            dependence = comparison
            is_mixed = len(cells) > 1
        weights = None
        if is_mixed:
            cell_shares = shares[..., cells]
            per_row = cell_shares / tensor_counts
            weights = per_row.repeat_interleave(tensor_counts, -1)
        fraction = None
        if drawn_from is not None:
            available = drawn_from[..., cells]
            fraction = tensor_counts / available.double()
        split = len(left)
        return Sides(
            rows=self._rows(cells, shares.device),
            left=tuple(counts[:split]),
            right=tuple(counts[split:]),
            weights=weights,
            fraction=fraction,
            dependence=dependence,
        )

    def _present(self, cells: Iterable[int]) -> list[int]:
        """The cells that a batch has samples of."""
        return [cell for cell in cells if self.counts[cell]]

    def _rows(self, cells: Sequence[int], device: torch.device) -> Tensor | slice:
        """The places of cells in a batch, one cell after the other; a slice if they are adjacent."""
        bounds = list(accumulate(self.counts, initial=0))
        places = [torch.arange(bounds[cell], bounds[cell + 1]) for cell in cells]
        rows = torch.cat(places)
        is_next = rows.diff() == 1
        if is_next.all():
            first = int(rows[0])
            end = first + len(rows)
            return slice(first, end)
        return rows.to(device)


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
    if fewest is None:
        fewest = least
    for comparison in comparisons:
        _check_sides(comparison, sizes, comparison.needs(fewest))
    total = sum(sizes)
    size = min(size, total)
    floors = _least_counts(sizes, comparisons, least)
    counts = []
    ahead = []  # of the proportional share
    for cell_size, floor in zip(sizes, floors, strict=True):
        proportional = size * cell_size / total
        rounded = size * cell_size // total
        count = max(floor, rounded)
        counts.append(count)
        ahead.append(count - proportional)
    while sum(counts) < size:
        behind = min(ahead)
        cell = ahead.index(behind)
        counts[cell] += 1
        ahead[cell] += 1
    most = max(size, sum(floors))
    while sum(counts) > most:
        spare = [cell for cell, floor in enumerate(floors) if counts[cell] > floor]
        cell = max(spare, key=ahead.__getitem__)
        counts[cell] -= 1
        ahead[cell] -= 1
    return Layout(tuple(counts))


def _least_counts(sizes: Sequence[int], comparisons: Sequence[Comparison], least: int) -> list[int]:
    """The least count of each cell in a batch."""
    needed = [1] * len(sizes)
    for comparison in comparisons:
        samples = comparison.needs(least)
        for cell in comparison.left + comparison.right:
            needed[cell] = max(needed[cell], samples)
    return list(map(min, sizes, needed))


def _check_sides(comparison: Comparison, sizes: Sequence[int], least: int) -> None:
    for place, side in enumerate(comparison.sides):
        present = [sizes[cell] for cell in side if sizes[cell]]
        if present and min(present) >= least:
            continue
        group = comparison.groups[place]
        count = "no"
        if present:
            count = " + ".join(map(str, present))
        raise TooFewSamples(
            f"comparing {comparison}: group {group!r} has {count} sample(s) there, and {least} "
            "of each kind are needed; merge small groups, mark them as missing, or use "
            "estimate='rows' or 'batch'"
        )


def sampling_odds(weight: Tensor) -> Tensor:
    """The odds of drawing each sample: its weight, or 1 if all weights are 0 (and so are the
    loss weights).
    """
    if (weight > 0).any():
        return weight
    return torch.ones_like(weight)


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
        self._odds: ByCell | None = None
        if odds is not None:
            self._odds = [list(compress(seed, plan.counts)) for seed in odds]
        table: list[Tensor] = []
        starts_by_rows: dict[int, list[int]] = {}  # rows are often the same for all seeds
        cell_starts = []
        self._lengths = []
        batch_places = []
        cards = 0
        rows_so_far = 0
        for seed in rows:
            present = list(compress(seed, plan.counts))
            deck = list(map(len, present))
            if id(seed) not in starts_by_rows:
                bounds = list(accumulate(deck, initial=rows_so_far))
                rows_so_far = bounds.pop()
                starts_by_rows[id(seed)] = bounds
                table += present
            cell_starts.append(starts_by_rows[id(seed)])
            if odds is not None:
                deck = [steps * count for count in counts]
            lengths, places = _shuffles(deck, counts, steps)
            self._lengths.append(lengths)
            batch_places.append(places + cards)
            cards += sum(lengths)
        kind = torch.int64
        if max(cards, rows_so_far) < 2**31:
            kind = torch.int32
        self._table = torch.cat(table).to(self.device)
        # (seeds, steps, size): of a batch's cards in all shuffles
        places = torch.stack(batch_places)
        self._places = places.to(self.device, kind)
        # (seeds, 1, size): where their cell starts
        by_cell = torch.tensor(cell_starts).unsqueeze(1)
        first = by_cell.repeat_interleave(torch.tensor(counts), -1)
        self._first = first.to(self.device, kind)

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        lengths = self._all_lengths()
        cards = torch.empty(sum(lengths), dtype=torch.int32)
        # all at once: a slice for each would take as long as its shuffling
        shuffles = iter(cards.split(lengths))
        seeds = range(len(self._lengths))
        for seed, generator in zip(seeds, generators, strict=True):
            for place, length in enumerate(self._lengths[seed]):
                shuffle = next(shuffles)
                if self._odds is None:
                    torch.randperm(length, generator=generator, out=shuffle)
                    continue
                odds = self._odds[seed][place]
                drawn = torch.multinomial(odds, length, replacement=True, generator=generator)
                shuffle.copy_(drawn)
        return self._look_up(cards)

    def _all_lengths(self) -> list[int]:
        """The number of cards of each shuffle of all seeds."""
        return list(chain(*self._lengths))

    def _look_up(self, cards: Tensor) -> Tensor:
        """The rows (..., seeds, steps, size) of the cards (..., cards) of all shuffles."""
        *passes, _ = cards.shape
        places = self._places
        on_device = cards.to(self.device)
        flat = on_device.index_select(-1, places.view(-1))
        chosen = flat.view(*passes, *places.shape)
        chosen = chosen + self._first
        rows = self._table.index_select(0, chosen.view(-1))
        return rows.view(chosen.shape)


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
        rows_of_pass = steps * plan.size
        fitting = max(1, _AT_ONCE // rows_of_pass)
        passes = min(fitting, _MOST_PASSES)
        lengths = torch.tensor(self._all_lengths())
        decks = torch.arange(len(lengths))
        deck = decks.repeat_interleave(lengths)  # of each card
        pass_number = torch.arange(passes).unsqueeze(1)
        if self._odds is not None:
            odds_by_deck = list(chain(*self._odds))
            key_ends = [_key_ends(odds, number) for number, odds in enumerate(odds_by_deck)]
            self._ends = torch.cat(key_ends).to(self.device)
            # keys point to odds, not to cards
            sizes = list(map(len, odds_by_deck))
            lengths = torch.tensor(sizes)
            pass_number = torch.zeros_like(pass_number)  # odds are those of every pass
        ends = torch.cumsum(lengths, 0)
        starts = ends - lengths
        of_shuffle = pass_number * len(starts) + deck
        of_card = pass_number * len(deck) + starts[deck]
        smallest = of_shuffle * _KEYS
        self._smallest_keys = smallest.to(self.device)
        self._starts = of_card.to(self.device)

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        if not self._waiting:
            self._waiting = list(self._draw(generators))
        return self._waiting.pop(0)

    def _draw(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of several passes (passes, seeds, steps, size)."""
        if not self._generators:
            for generator in generators:
                on_device = torch.Generator(self.device)
                on_device.manual_seed(generator.initial_seed())
                self._generators.append(on_device)
        by_seed = []
        for lengths, generator in zip(self._lengths, self._generators, strict=True):
            shape = len(self._starts), sum(lengths)
            drawn = torch.randint(_KEYS, shape, generator=generator, device=self.device)
            by_seed.append(drawn)
        keys = torch.cat(by_seed, 1)
        keys += self._smallest_keys
        if self._odds is None:
            order = keys.view(-1).argsort()
            places = order.view(keys.shape)
        else:
            places = torch.searchsorted(self._ends, keys, right=True)
        return self._look_up(places - self._starts)


def _key_ends(odds: Tensor, deck: int) -> Tensor:
    """The end of each sample's part of the keys of a deck, in proportion to its odds."""
    precise = odds.double()
    total = precise.sum()
    shares = precise.cumsum(0) / total
    ends = (shares * _KEYS).round()
    return deck * _KEYS + ends.long()


def make_passes(
    rows: ByCell,
    plan: Layout,
    steps: int,
    *,
    odds: ByCell | None = None,
    device: torch.device | str = "cpu",
) -> StratifiedPasses:
    """Passes whose rows are on the device, shuffled there if it is an accelerator."""
    kind = StratifiedPasses
    if torch.device(device).type == "cuda":
        kind = DevicePasses
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
        batches = deck // count  # of one shuffle
        shuffle = batch // batches
        within = batch % batches
        first = sum(lengths) + shuffle * deck + within * count
        cards = torch.arange(count)
        places.append(first.unsqueeze(1) + cards)
        shuffles = ceil(steps / batches)
        lengths += [deck] * shuffles
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
    cell = samples.cell
    sides = tensor_sides(comparisons, cell, drawn_from=cell)
    return Batch(samples, sides)


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
        last = -1
        for comparison in self.comparisons:
            last = max(last, *comparison.left, *comparison.right)
        cells = last + 2
        shape = cells, 2, len(self.comparisons)
        member = np.zeros(shape, dtype=np.bool_)
        for place, comparison in enumerate(self.comparisons):
            left = list(comparison.left)
            right = list(comparison.sides[-1])
            member[left, 0, place] = True
            member[right, 1, place] = True
        return member

    @cached_property
    def needs(self) -> Integers:
        """The fewest samples of either side, for each comparison."""
        needs = [comparison.needs(self.least) for comparison in self.comparisons]
        return np.array(needs, dtype=np.int64)

    @cached_property
    def at_once(self) -> Integers:
        """The length of each comparison's covered prefix, if the first ``size`` samples contain
        enough.
        """
        return np.full_like(self.needs, self.size)

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
        last = len(self._sides) - 1  # which is in none
        row = np.minimum(cell, last)
        return np.asarray(self._sides[row])

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
    member = rule.member(cell[:window])
    covered = _covered(member, rule)
    while covered is None:
        if window >= len(cell):
            return None
        window *= 4
        member = rule.member(cell[:window])
        covered = _covered(member, rule)
    length = int(covered.max(initial=rule.size))
    end = start + length
    batch = waiting.take(slice(start, end))
    weight = batch.weight
    on_host = weight.numpy()
    equal = on_host == on_host[0]
    side_weight = None if equal.all() else weight
    sides = []
    ends = covered.tolist()
    for place, comparison in enumerate(rule.comparisons):
        inside = member[: ends[place], :, place]
        left, right = _side_rows(inside)
        if isinstance(comparison, Dependence):
            sides.append(dependence_at(comparison, left, side_weight))
        else:
            sides.append(sides_at(left, right, side_weight))
    if length > rule.size:
        by_side = member[:length].reshape(length, -1)
        factor = torch.from_numpy(overshoot_weights(by_side, rule))
        factor = factor.to(weight.dtype)
        batch = batch.with_weight(weight * factor)
    return Batch(batch, tuple(sides))


def _side_rows(member: Booleans) -> list[Tensor]:
    """The rows of the left and of the right side, for membership (n, 2)."""
    rows = [side.nonzero()[0] for side in member.T]
    return list(map(torch.from_numpy, rows))


def _covered(member: Booleans, rule: Coverage) -> Integers | None:
    """The length of each comparison's covered prefix; None if these samples (n, 2, comparisons)
    are too few.
    """
    if len(member) == rule.size:
        counts = member.sum(0)
        if (counts >= rule.needs).all():
            return rule.at_once
    seen = np.cumsum(member, 0)
    enough = seen >= rule.needs  # from some sample on
    if not enough[-1].all():
        check_patience(len(member), member, rule)
        return None
    first_enough = enough.argmax(0)
    last = first_enough.max(0)
    covered: Integers = np.maximum(last + 1, rule.size)
    length = int(covered.max(initial=rule.size))
    check_patience(length, member[:length], rule)
    return covered


def check_patience(length: int, member: Booleans, rule: Coverage) -> None:
    """Raise TooFewSamples, with the missing groups, if a batch (n, 2, comparisons) has grown
    too long.
    """
    if length <= rule.patience:
        return
    seen = member[: rule.patience].sum(0)
    short = []
    for place, comparison in enumerate(rule.comparisons):
        for side, _ in enumerate(comparison.sides):
            count = int(seen[side, place])
            if count < rule.needs[place]:
                group = f"{comparison.attribute} {comparison.groups[side]!r}"
                short.append(f"{group}, {comparison.within} ({count} seen)")
    distinct = dict.fromkeys(short)
    missing = "; ".join(distinct)
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
    counts = member.sum(0)
    needs = np.tile(rule.needs, 2)
    just_enough = counts == needs
    critical = member[:, just_enough].any(1)
    last_ones = critical.sum()
    weight[critical] = 1 - 1 / last_ones
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
        if waiting is None:
            waiting = chunk
        else:
            waiting = join_samples([waiting, chunk])
        start = 0
        batch = cut(waiting, rule)
        while batch is not None:
            yield batch
            start += len(batch.samples)
            batch = cut(waiting, rule, start)
        waiting = waiting.take(slice(start, None))
