"""The penalty of a batch on an accelerator: one sort for all comparisons, and no wait for the
device.

Energy distances are sums over scores, with coefficients that depend on ranks only. With c the
signed weight of a row in a comparison and D_k(i) the number of rows of cell k below score i less
that above it, the derivative by score i is - 2 sum_k F_ck D_k(i), where the matrix F of cells
contains all comparisons. Counts of cells stay on the device, and so do wrong values and missing
groups: they are collected in ``Tables.alarm``, which the host reads later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple, TypeGuard
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.cells import Comparison
from metrifair.support.arrays import Floats, Integers

_MOST_ROWS = 2**22  # counts of more would not be exact in single precision
_MOST_NUMBERS = 2**26  # rows x cells, and comparisons x cells x cells
_CALLS_UNREAD = 64  # the alarm is copied to the host after so many batches
_CALLS_PLAIN = 10  # batches of one shape before their arithmetic is recorded
_MOST_RECORDED = 2**20  # rows x cells: beyond, the device is busy for longer than the host
_MOST_SHAPES = 4  # that are recorded; each holds memory of the device
_MOST_COUNTED = 64  # shapes that are counted; more are of batches drawn at random


def is_accelerator(device: torch.device) -> bool:
    """Whether waiting for the device costs more than the penalty."""
    return device.type != "cpu"


def is_code(values: object, scores: Tensor) -> TypeGuard[Tensor]:
    """Whether values are integers on the device of the scores."""
    return (
        isinstance(values, Tensor)
        and not values.is_floating_point()
        and values.device == scores.device
        and values.shape[:1] == scores.shape[:1]
    )


class Tables(NamedTuple):
    """The constants of a penalty, on one device. Blocks are the compared cells, the cell of values
    that are not known, and the cell of rows without comparison.
    """

    codes: Tensor  # block by label and groups, flat
    numbers: Tensor  # (blocks - 1, 1): 0, 1, 2 ...
    sides: Tensor  # (2, comparisons, blocks): share of a block in its side; 1 if they are counted
    weight: Tensor  # (comparisons, 1): - 2 x the weight of each
    drawn_from: Tensor  # (blocks,): rows of the data set; infinite for fresh rows
    alarm: Tensor  # (1 + comparisons,): whether there were unknown values; too few rows


class DrawnBlocks(NamedTuple):
    """What a sampler draws from: the weight and the number of rows of each cell."""

    mass: Floats
    rows: Floats


class Recorded:
    """The arithmetic of batches of one shape as a CUDA graph: one launch instead of about fifty,
    which take the host longer than the device.
    """

    def __init__(self, penalty: DevicePenalty, scores: Tensor, columns: Sequence[Tensor]) -> None:
        # The buffers change outside inference mode too, where they may be made.
        with torch.inference_mode(False):
            self.scores = scores.clone(memory_format=torch.contiguous_format)
            self.columns = [column.clone() for column in columns]
        tables = penalty.tables_on(scores.device)
        self.graph = torch.cuda.CUDAGraph()
        # Other threads, such as those that load data, go on allocating memory meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.result = penalty.coefficients(self.scores, self.columns, tables)

    def replay(self, scores: Tensor, columns: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The derivative by each score, and a score from the middle, of another batch."""
        self.scores.copy_(scores)
        for own, column in zip(self.columns, columns, strict=True):
            own.copy_(column)
        self.graph.replay()
        coefficients, center = self.result
        return coefficients.clone(), center.clone()  # the next batch overwrites them


class DevicePenalty:
    """The energy distance between groups, over all comparisons, with known groups and labels.

    >>> table = np.array([-1, 2, 0, 1, -1])  # cells of the groups -2 to 2; 0 and 1 are known
    >>> penalty = DevicePenalty((Comparison((0,), (1,)),), [1.0], table, unbiased=False)
    >>> tables = penalty.tables_on(torch.device("cpu"))
    >>> penalty(torch.tensor([0.0, 1.0, 1.0, 3.0]), [torch.tensor([0, 0, 1, 1])], tables)
    tensor(1.5000)
    """

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        weights: Sequence[float],
        table: Integers,
        *,
        unbiased: bool,
        drawn: DrawnBlocks | None = None,
    ) -> None:
        self.comparisons = tuple(comparisons)
        self.unbiased = unbiased
        self.counted = drawn is None
        self.least = 1
        if unbiased:
            self.least = 2
        self.shape = table.shape
        self.cells = sorted({cell for one in comparisons for cell in (*one.left, *one.right)})
        count = len(self.cells)
        self.unknown = count
        not_compared = count + 1
        self.blocks = count + 2
        last_cell = max(int(table.max()), *self.cells)
        block_of_cell = np.full(last_cell + 1, not_compared)
        block_of_cell[self.cells] = np.arange(count)
        codes = block_of_cell[np.maximum(table, 0)]
        codes[table < 0] = self.unknown
        # without a sampler, each row counts 1
        mass = np.ones(last_cell + 1)
        drawn_from = np.full(self.blocks, np.inf)
        if drawn is not None:
            mass = drawn.mass
            drawn_from[:count] = drawn.rows[self.cells]
        sides = np.zeros((2, len(comparisons), self.blocks))
        for place, comparison in enumerate(comparisons):
            left = list(comparison.left)
            right = list(comparison.right)
            sides[0, place, block_of_cell[left]] = mass[left]
            sides[1, place, block_of_cell[right]] = mass[right]
        if drawn is not None:
            sides /= sides.sum(-1, keepdims=True)
        weight = torch.tensor(list(weights), dtype=torch.float64)
        self._host = Tables(
            torch.as_tensor(codes.ravel()),
            torch.arange(not_compared)[:, None],
            torch.as_tensor(sides),
            -2 * weight[:, None],
            torch.as_tensor(drawn_from),
            torch.zeros(1 + len(comparisons), dtype=torch.bool),
        )
        self.tables: Tables | None = None  # on the device of the last batch
        self._unread = 0  # batches since the alarm was copied to the host
        self._copy: tuple[Tensor, torch.cuda.Event | None] | None = None
        self._recorded: dict[tuple[object, ...], Recorded] = {}  # by shape
        self._calls: Counter[tuple[object, ...]] = Counter()  # of shapes that are not recorded yet
        self._register()

    def _register(self) -> None:
        """Take a number by which a compiled step finds this penalty, as long as it exists."""
        self._number = next(_numbers)
        _penalties[self._number] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Register the copy as another penalty."""
        self.__dict__.update(state)
        self._register()

    def __getstate__(self) -> dict[str, object]:
        """Leave out what belongs to a device."""
        of_device: dict[str, object] = {
            "tables": None,
            "_copy": None,
            "_unread": 0,
            "_recorded": {},
            "_calls": Counter(),
        }
        return self.__dict__ | of_device

    def fits(self, rows: int) -> bool:
        """Whether so many rows, with all cells, are computed at once."""
        blocks = self.blocks
        form = len(self.comparisons) * blocks * blocks
        if max(rows * blocks, form) > _MOST_NUMBERS:
            return False
        return 0 < rows <= _MOST_ROWS

    def is_on(self, device: torch.device) -> bool:
        """Whether the constants are on this device."""
        return self.tables is not None and self.tables.codes.device == device

    def tables_on(self, device: torch.device) -> Tables:
        """The constants on a device; they are sent once."""
        if self.tables is None or not self.is_on(device):
            # The alarm changes outside inference mode too, where it may be made.
            with torch.inference_mode(False):
                self.tables = Tables(*(part.to(device, copy=True) for part in self._host))
            self._recorded.clear()  # they read the constants of another device
        return self.tables

    def __call__(self, scores: Tensor, columns: Sequence[Tensor], tables: Tables) -> Tensor:
        """The penalty of scores (n,) with these codes: of labels, if they are used, and groups."""
        coefficients: Tensor
        center: Tensor
        if torch.compiler.is_compiling():
            coefficients, center = coefficients_of_batch(
                self._number, scores.detach(), list(columns)
            )
        else:
            with torch.no_grad():
                coefficients, center = self.replayed(scores.detach(), columns, tables)
        value: Tensor = (coefficients * (scores - center)).sum()
        if self.unbiased:
            return value
        return value.clamp_min(0.0)

    def replayed(
        self, scores: Tensor, columns: Sequence[Tensor], tables: Tables
    ) -> tuple[Tensor, Tensor]:
        """The derivative by each score, and a score from the middle; as a CUDA graph if there have
        been enough batches of this shape.
        """
        recorded = self._recording(scores, columns)
        if recorded is None:
            return self.coefficients(scores, columns, tables)
        return recorded.replay(scores, columns)

    def _recording(self, scores: Tensor, columns: Sequence[Tensor]) -> Recorded | None:
        """The recorded arithmetic of such batches; None where there is none, and in steps that are
        recorded as a whole.
        """
        if not scores.is_cuda:
            return None
        if len(scores) * self.blocks > _MOST_RECORDED:
            return None
        if torch.cuda.is_current_stream_capturing():
            return None
        stream = torch.cuda.current_stream(scores.device).cuda_stream
        dtypes = [column.dtype for column in columns]
        shape = (stream, len(scores), scores.dtype, *dtypes)
        recorded = self._recorded.get(shape)
        if recorded is not None or len(self._recorded) == _MOST_SHAPES:
            return recorded
        self._calls[shape] += 1
        if self._calls[shape] > _CALLS_PLAIN:
            recorded = Recorded(self, scores, columns)
            self._recorded[shape] = recorded
        elif len(self._calls) > _MOST_COUNTED:
            self._calls.clear()
        return recorded

    def coefficients(
        self, scores: Tensor, columns: Sequence[Tensor], tables: Tables
    ) -> tuple[Tensor, Tensor]:
        """The derivative by each score, and a score from the middle."""
        points, order = scores.sort()
        block = self._blocks(columns, tables).index_select(0, order)
        first = torch.searchsorted(points, points)
        through = torch.searchsorted(points, points, right=True)
        # One scan over all cells: a device takes longer for a scan of each row.
        inside = functional.pad((block == tables.numbers).float(), (1, 0))
        cumulative = inside.view(-1).cumsum(0).view(inside.shape)
        counts = (cumulative[:, -1] - cumulative[:, 0]).double()
        below_less_above = cumulative.index_select(1, first) + cumulative.index_select(1, through)
        below_less_above = below_less_above - (cumulative[:, :1] + cumulative[:, -1:])
        form = self._form(counts, tables)[:-1].index_select(1, block)
        slopes = (form * below_less_above).sum(0)
        coefficients = torch.zeros_like(scores).scatter(0, order, slopes.to(scores.dtype))
        return coefficients, points[len(points) // 2]

    def _blocks(self, columns: Sequence[Tensor], tables: Tables) -> Tensor:
        """The block of each row."""
        place: Tensor | None = None
        for column, length in zip(columns, self.shape, strict=True):
            # Both ends of the table are values that are not known.
            code = (column.long() + 2).clamp(0, length - 1)
            if place is None:
                place = code
            else:
                place = place * length + code
        assert place is not None
        return tables.codes.index_select(0, place)

    def _form(self, counts: Tensor, tables: Tables) -> Tensor:
        """The matrix of all comparisons, (blocks, blocks), from the rows of each block but the
        last; wrong batches are noted in the alarm.
        """
        rows = functional.pad(counts, (0, 1))
        if self.counted:
            share, within, enough = self._counted(rows, tables)
        else:
            share, within, enough = self._drawn(rows, tables)
        alarm = torch.cat([counts[self.unknown :] > 0, ~enough])
        tables.alarm.logical_or_(alarm)
        weight = tables.weight * enough[:, None]
        signed = share[0] - share[1]
        form = signed.T @ (weight * signed)
        if not self.unbiased:
            return form
        if self.counted:
            by_side = (share * weight * within).flatten(0, 1)
            return form + by_side.T @ share.flatten(0, 1)
        among_equals = (weight * signed.square()).sum(0) * within
        return form + torch.diag(among_equals)

    def _counted(self, rows: Tensor, tables: Tables) -> tuple[Tensor, Tensor, Tensor]:
        """The weight of a row of each block in each side, q / (1 - q) of each side, and whether
        comparisons have enough rows: all rows of a side are alike.
        """
        size = (tables.sides * rows).sum(-1, keepdim=True)
        enough = (size >= self.least).all(0)[:, 0]
        share = tables.sides / size.clamp_min(1)
        within = 1 / (size - 1).clamp_min(1)
        return share, within, enough

    def _drawn(self, rows: Tensor, tables: Tables) -> tuple[Tensor, Tensor, Tensor]:
        """The same where blocks are drawn by a sampler, with (1 - f) q / (1 - q) of each block."""
        fraction = rows / tables.drawn_from
        few = rows < torch.where(fraction < 1, self.least, 1)
        lacking = ((tables.sides > 0) & few).any(-1).any(0)
        within = (1 - fraction).clamp_min(0) / (rows - 1).clamp_min(1)
        share = tables.sides / rows.clamp_min(1)
        return share, within, ~lacking

    def read_alarm(self) -> None:
        """Raise the error of an earlier batch, if the device has reported one.

        The device is not waited for: the alarm is copied after some batches, and read when the copy
        is complete.
        """
        if self.tables is None or (
            self.tables.alarm.is_cuda and torch.cuda.is_current_stream_capturing()
        ):
            return
        if self._copy is not None:
            alarm, event = self._copy
            if event is None or event.query():
                self._copy = None
                self._raise_for(alarm)
        self._unread += 1
        if self._copy is None and self._unread >= _CALLS_UNREAD:
            self._unread = 0
            self._copy = self._start_copy(self.tables.alarm)

    def _start_copy(self, alarm: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        if not alarm.is_cuda:
            return alarm.cpu().clone(), None
        on_host = torch.empty(alarm.shape, dtype=alarm.dtype, pin_memory=True)
        on_host.copy_(alarm, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return on_host, event

    def check(self) -> None:
        """Raise the error of an earlier batch; this waits for the device."""
        self._copy = None
        self._unread = 0
        if self.tables is not None:
            self._raise_for(self.tables.alarm.cpu())

    def _raise_for(self, alarm: Tensor) -> None:
        """Raise the error that the alarm notes, and reset it."""
        unknown, *lacking = alarm.tolist()
        if not unknown and not any(lacking):
            return
        if self.tables is not None:
            self.tables.alarm.zero_()
        if unknown:
            raise DataError(
                "groups or targets of an earlier batch contain values that were not declared; "
                "these rows were left out of the penalty"
            )
        comparison = self.comparisons[lacking.index(True)]
        raise TooFewSamples(
            f"comparing {comparison}: an earlier batch had fewer than {self.least} sample(s) of a "
            "group, and a penalty of 0 there; the batches of StratifiedBatchSampler contain "
            "enough of every group"
        )


_numbers = count()
_penalties: WeakValueDictionary[int, DevicePenalty] = WeakValueDictionary()


@torch.library.custom_op("metrifair::coefficients", mutates_args=())
def coefficients_of_batch(
    number: int, scores: Tensor, columns: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """What a compiled step needs of a penalty: the compiler makes neither fewer nor faster kernels
    of it than the graph that is replayed here.
    """
    penalty = _penalties[number]
    return penalty.replayed(scores, columns, penalty.tables_on(scores.device))


@coefficients_of_batch.register_fake
def _(
    number: int,  # noqa: ARG001
    scores: Tensor,
    columns: Sequence[Tensor],  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(scores), scores.new_empty(())
