"""The step of a stack of linear models or networks with one hidden layer as five Triton kernels:
most frontiers on CUDA use it.

torch's own step is some 90 small kernels, most of which wait for memory. Here one tile of rows and
models stays in registers from the features to the slopes. A linear model has one unit, which is its
output:

1. ``_gather`` copies the rows of the batch and standardizes them for each seed.
2. ``_forward`` multiplies a tile of rows with the first layer of several models at once. From the
   hidden units, which are stored for the backward pass, it computes the outputs and the slope of
   the loss by each.
3. ``_compare``, once for each comparison, has one program per model: it sorts the scores, counts on
   both sides of each how many are below, and adds strength times the slope of the energy distance.
   A score and its row are sorted as one 64-bit word. Counts are integers; equal scores count half,
   in any order, as they do on the CPU: a scan from the left finds the start of a run of equal
   scores, one from the right its end.
4. ``_backward`` computes the slopes of hidden units from those of outputs and multiplies them with
   the same rows. If rows are split, each part writes its own gradients: sums have one order, and a
   step repeats to the last bit.
5. ``_adam`` adds up the parts and updates the parameters.

Products are taken three times in TF32 (the leading bits, and both mixed terms), as precise as
single precision. Less frequent cases use ``Stack.step``: other metrics and losses, sides of several
cells, deeper networks, double precision; ``fused_step`` returns None there, and where Triton is
missing, which comes with torch's CUDA builds.
"""

# ruff: noqa: PLR0917 (kernels are called by position)

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrifair.batches.samples import Samples
from metrifair.problem.cells import Sides
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective
from metrifair.training.stack import BETAS, EPSILON, Stack, Step

try:
    import triton
    import triton.language as tl
except ImportError:  # as on machines without CUDA
    triton = None

_MOST_ROWS = 2**14  # sorted by one program
_MOST_UNITS = 64
_LARGEST = 2**31 - 1  # place in an array
# hidden units, of one model or several; rows; terms of the sums of one product
_TILE = 64
_ROWS = 32
_STEP = 16
_PARAMETERS = 256  # updated by one program
_PROGRAMS = 528  # enough to keep all multiprocessors busy
_ANY = (  # arguments whose values no kernel is compiled for
    "chosen",
    "weight",
    "strength",
    "rate",
    "features",
    "models",
    "seeds",
    "seed_units",
    "size",
    "left",
    "length",
    "parts",
)


def _kernel(function: Any) -> Any:
    """The function as a kernel.

    Compiling takes seconds, so that one kernel serves data of nearly every shape.
    """
    if triton is None:
        return function
    unspecialized = [name for name in signature(function).parameters if name in _ANY]
    return triton.jit(do_not_specialize=unspecialized)(function)


@_kernel
def _split(value):
    """A number as the sum of two TF32 numbers, the second one except for its last bits."""
    bits = value.to(tl.int32, bitcast=True)
    rounded = (bits + 0x1000) & -0x2000
    high = rounded.to(tl.float32, bitcast=True)
    return high, value - high


@_kernel
def _gather(
    x,
    y,
    chosen,
    mean,
    scale,
    values,
    label,
    n,
    features,
    width,
    seeds,
    seed_units,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Labels of the rows, (seeds, n), and their features in the seed's units, 0 beyond the last, as
    both products read them: (seeds, n, width) and (seeds, width, n), of each the leading bits and
    the rest.
    """
    seed = tl.program_id(2)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    in_batch = at < n
    batch_row = seed * n + at
    row = tl.load(chosen + batch_row, mask=in_batch, other=0)
    row_label = tl.load(y + row)
    first_columns = tl.program_id(1) == 0
    tl.store(label + batch_row, row_label, mask=in_batch & first_columns)

    is_feature = column < features
    where = x + row[:, None] * features + column[None, :]
    inside = in_batch[:, None] & is_feature[None, :]
    value = tl.load(where, mask=inside, other=0.0)
    unit = seed * seed_units + column
    center = tl.load(mean + unit, mask=is_feature, other=0.0)
    spread = tl.load(scale + unit, mask=is_feature, other=1.0)
    standardized = (value - center[None, :]) / spread[None, :]
    value = tl.where(is_feature[None, :], standardized, 0.0)
    high, low = _split(value)

    size = seeds * n * width
    is_padded = column < width
    inside = in_batch[:, None] & is_padded[None, :]
    by_row = values + batch_row[:, None] * width + column[None, :]
    tl.store(by_row, high, mask=inside)
    tl.store(by_row + size, low, mask=inside)
    inside = tl.trans(inside)
    batch_column = seed * width + column
    by_column = values + 2 * size + batch_column[:, None] * n + at[None, :]
    tl.store(by_column, tl.trans(high), mask=inside)
    tl.store(by_column + size, tl.trans(low), mask=inside)


@_kernel
def _product(left, right_high, right_low, total):
    """total + left @ right in single precision: three products in TF32, without that of the
    last bits of both.
    """
    high, low = _split(left)
    total = tl.dot(low, right_high, total, input_precision="tf32")
    total = tl.dot(high, right_low, total, input_precision="tf32")
    return tl.dot(high, right_high, total, input_precision="tf32")


@_kernel
def _tile_units(
    tile, seed, models, UNITS: tl.constexpr, PADDED: tl.constexpr, TOGETHER: tl.constexpr
):
    """Of each row of a tile: the model, the unit, the unit's place in the stack, and whether
    there is one.
    """
    place = tl.arange(0, TOGETHER * PADDED)
    model = tile * TOGETHER + place // PADDED
    unit = place % PADDED
    hidden_unit = (seed * models + model) * UNITS + unit
    valid = (model < models) & (unit < UNITS)
    return model, unit, hidden_unit, valid


@_kernel
def _first_layer(
    values,
    w0,
    b0,
    seed,
    at,
    hidden_unit,
    valid,
    n,
    features,
    width,
    seeds,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The first layer of these units for these rows: (units, rows)."""
    in_batch = (at < n)[None, :]
    batch_row = seed * n + at
    size = seeds * n * width
    total = tl.zeros((SIZE, ROWS), tl.float32)
    for start in range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        where = values + batch_row[None, :] * width + column[:, None]
        high = tl.load(where, mask=in_batch, other=0.0)
        low = tl.load(where + size, mask=in_batch, other=0.0)
        is_feature = column < features
        inside = valid[:, None] & is_feature[None, :]
        where = w0 + hidden_unit[:, None] * features + column[None, :]
        weights = tl.load(where, mask=inside, other=0.0)
        total = _product(weights, high, low, total)
    bias = tl.load(b0 + hidden_unit, mask=valid, other=0.0)
    total += bias[:, None]
    return total


@_kernel
def _loss_slope(output, label, loss_weight, IS_BINARY: tl.constexpr):
    """The slope of the weighted loss by the output."""
    if IS_BINARY:
        slope = loss_weight * (tl.sigmoid(output) - label)
    else:
        slope = 2 * loss_weight * (output - label)
    return slope


@_kernel
def _forward(
    values,
    y,
    weight,
    strength,
    w0,
    b0,
    w1,
    b1,
    hidden,
    output,
    slope,
    n,
    features,
    width,
    models,
    seeds,
    UNITS: tl.constexpr,
    PADDED: tl.constexpr,
    TOGETHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    IS_BINARY: tl.constexpr,
    SCALED: tl.constexpr,
):
    """Hidden units (seeds, models, units, n), outputs (seeds, models, n) and the slope of the
    loss by these.
    """
    tile = tl.program_id(0)
    seed = tl.program_id(2)
    at = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    in_batch = at < n
    _, _, hidden_unit, valid = _tile_units(tile, seed, models, UNITS, PADDED, TOGETHER)
    total = _first_layer(
        values,
        w0,
        b0,
        seed,
        at,
        hidden_unit,
        valid,
        n,
        features,
        width,
        seeds,
        TOGETHER * PADDED,
        ROWS,
        COLUMNS,
    )
    if hidden is not None:
        total = tl.maximum(total, 0.0)
        where = hidden + hidden_unit[:, None] * n + at[None, :]
        inside = valid[:, None] & in_batch[None, :]
        tl.store(where, total, mask=inside)
        last_weight = tl.load(w1 + hidden_unit, mask=valid, other=0.0)
        total *= last_weight[:, None]

    model = tile * TOGETHER + tl.arange(0, TOGETHER)
    output_unit = seed * models + model
    valid = model < models
    by_model = tl.reshape(total, (TOGETHER, PADDED, ROWS))
    result = tl.sum(by_model, 1)
    if hidden is not None:
        last_bias = tl.load(b1 + output_unit, mask=valid, other=0.0)
        result += last_bias[:, None]
    batch_row = seed * n + at
    label = tl.load(y + batch_row, mask=in_batch, other=0.0)
    loss_weight = tl.load(weight + batch_row, mask=in_batch, other=0.0) / n
    loss_slope = _loss_slope(result, label[None, :], loss_weight[None, :], IS_BINARY)
    if SCALED:
        of_model = tl.load(strength + model, mask=valid, other=0.0)
        loss_slope /= 1 + of_model[:, None]
    where = output_unit[:, None] * n + at[None, :]
    inside = valid[:, None] & in_batch[None, :]
    tl.store(output + where, result, mask=inside)
    tl.store(slope + where, loss_slope, mask=inside)


@_kernel
def _as_before(score, value, next_score, next_value):
    """In a scan: the value at the first of a run of equal scores."""
    return next_score, tl.where(score == next_score, value, next_value)


@_kernel
def _as_ordered(bits):
    """Bits of floats as integers in the same order, and back."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@_kernel
def _sort_scores(score, place):
    """Scores in increasing order, as ordered integers, and the place that each comes from.

    Both are sorted as one word of 64 bits.
    """
    bits = score.to(tl.int32, bitcast=True)
    key = _as_ordered(bits).to(tl.int64) << 32
    word = tl.sort(key | place.to(tl.int64))
    ordered = (word >> 32).to(tl.int32)
    origin = (word & 0xFFFFFFFF).to(tl.int32)
    return ordered, origin


@_kernel
def _count_below(ordered, is_left, place, BLOCK: tl.constexpr):
    """Twice the scores of the left side below each score, and twice those of both sides; equal
    ones count half.
    """
    two = 2 * BLOCK  # a place and a count in one integer
    through = tl.cumsum(is_left, 0)
    before = place * two + through - is_left
    after = place * two + through
    _, first = tl.associative_scan((ordered, before), 0, _as_before)
    _, last = tl.associative_scan((ordered, after), 0, _as_before, reverse=True)
    twice_left = first % two + last % two
    twice_all = first // two + last // two + 1
    return twice_left, twice_all


@_kernel
def _compare(
    output,
    slope,
    rows,
    strength,
    share,
    within,
    across,
    size,
    left,
    n,
    models,
    BLOCK: tl.constexpr,
    OF_PREDICTIONS: tl.constexpr,
    SCALED: tl.constexpr,
):
    """Add strength x the slope of the energy distance between the first ``left`` of some rows
    and the others.
    """
    program = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    inside = place < size
    row = tl.load(rows + place, mask=inside, other=0)
    score = tl.load(output + program * n + row, mask=inside, other=0.0)
    if OF_PREDICTIONS:
        score = tl.sigmoid(score)
    else:
        score += 0.0  # -0 becomes 0
    score = tl.where(inside, score, float("inf"))
    ordered, origin = _sort_scores(score, place)

    is_left = (origin < left).to(tl.int32)
    twice_left, twice_all = _count_below(ordered, is_left, place, BLOCK)
    a = twice_left - left
    b = twice_all - twice_left - (size - left)
    seed = program // models
    of_left = tl.load(within + 2 * seed)
    of_right = tl.load(within + 2 * seed + 1)
    left_slope = across * b - of_left * a
    right_slope = across * a - of_right * b
    added = tl.where(is_left == 1, left_slope, right_slope)
    if OF_PREDICTIONS:
        score = _as_ordered(ordered).to(tl.float32, bitcast=True)
        added *= score * (1 - score)
    factor = tl.load(strength + program % models)
    if SCALED:
        factor = factor / (1 + factor)
    added *= share * factor
    row = tl.load(rows + origin, mask=inside, other=0)
    where = slope + program * n + row
    total = tl.load(where, mask=inside, other=0.0) + added
    tl.store(where, total, mask=inside)


@_kernel
def _backward(
    values,
    hidden,
    slope,
    w1,
    gradient,
    length,
    n,
    features,
    width,
    models,
    seeds,
    rows_of_part,
    UNITS: tl.constexpr,
    PADDED: tl.constexpr,
    TOGETHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Gradients by all parameters, from a part of the rows: (parts, length)."""
    across = tl.cdiv(features, COLUMNS)
    tile = tl.program_id(0) // across
    block = tl.program_id(0) % across
    part = tl.program_id(1)
    seed = tl.program_id(2)
    model, unit, hidden_unit, valid = _tile_units(tile, seed, models, UNITS, PADDED, TOGETHER)
    output_unit = seed * models + model
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    batch_column = seed * width + column
    is_padded = column < width
    size = seeds * n * width
    of_w0 = tl.zeros((TOGETHER * PADDED, COLUMNS), tl.float32)
    # sums over rows come last: each would be a barrier
    of_b0 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    of_w1 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    of_b1 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    end = tl.minimum(n, (part + 1) * rows_of_part)
    for start in range(part * rows_of_part, end, ROWS):
        at = start + tl.arange(0, ROWS)
        in_part = at < end
        inside = valid[:, None] & in_part[None, :]
        where = slope + output_unit[:, None] * n + at[None, :]
        output_slope = tl.load(where, mask=inside, other=0.0)
        hidden_slope = output_slope
        if hidden is not None:
            where = hidden + hidden_unit[:, None] * n + at[None, :]
            activation = tl.load(where, mask=inside, other=0.0)
            last_weight = tl.load(w1 + hidden_unit, mask=valid, other=0.0)
            active_slope = output_slope * last_weight[:, None]
            hidden_slope = tl.where(activation > 0, active_slope, 0.0)
            of_w1 += output_slope * activation
            of_b1 += output_slope
        inside = in_part[:, None] & is_padded[None, :]
        where = values + 2 * size + batch_column[None, :] * n + at[:, None]
        high = tl.load(where, mask=inside, other=0.0)
        low = tl.load(where + size, mask=inside, other=0.0)
        of_w0 = _product(hidden_slope, high, low, of_w0)
        of_b0 += hidden_slope
    # parameters follow each other as in the stack's vector: w0, b0, w1, b1
    gradient += part * length
    # the mask before the address: the other way round the H200's compiler takes up to 250
    # registers instead of 138, and fewer programs run at once
    is_feature = column < features
    inside = valid[:, None] & is_feature[None, :]
    where = gradient + hidden_unit[:, None] * features + column[None, :]
    tl.store(where, of_w0, mask=inside)
    count = seeds * models * UNITS
    gradient += count * features
    once = valid & (block == 0)
    tl.store(gradient + hidden_unit, tl.sum(of_b0, 1), mask=once)
    if hidden is not None:
        tl.store(gradient + count + hidden_unit, tl.sum(of_w1, 1), mask=once)
        where = gradient + 2 * count + output_unit
        tl.store(where, tl.sum(of_b1, 1), mask=once & (unit == 0))


@_kernel
def _adam(
    vector,
    gradient,
    moments,
    powers,
    rate,
    decay,
    length,
    parts,
    KEEP_FIRST: tl.constexpr,
    KEEP_SECOND: tl.constexpr,
    TINY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One step down the sum of the gradients' parts."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < length
    value = tl.load(vector + place, mask=inside, other=0.0)
    total = decay * value
    for part in range(parts):
        total += tl.load(gradient + part * length + place, mask=inside, other=0.0)
    first = tl.load(moments + place, mask=inside, other=0.0)
    first += (1 - KEEP_FIRST) * (total - first)
    second = tl.load(moments + length + place, mask=inside, other=0.0)
    second = KEEP_SECOND * second + (1 - KEEP_SECOND) * total * total
    of_first = 1 - tl.load(powers)
    of_second = 1 - tl.load(powers + 1)
    corrected_rate = (tl.load(rate) / of_first).to(tl.float32)
    variance = second / of_second.to(tl.float32)
    spread = tl.sqrt_rn(variance) + TINY
    moved = value - corrected_rate * first / spread
    tl.store(moments + place, first, mask=inside)
    tl.store(moments + length + place, second, mask=inside)
    tl.store(vector + place, moved, mask=inside)


def fused_step(stack: Stack, size: int) -> Step | None:
    """The step on batches of ``size`` rows, or None if these kernels do not support the stack."""
    if triton is None or not _is_supported(stack, size):
        return None
    return _FusedStep(stack, size)


def _is_supported(stack: Stack, size: int) -> bool:
    model = stack.model
    objective = stack.objective
    if not isinstance(model, Network) or len(model.hidden) > 1 or model.outputs > 1:
        return False
    if type(objective) is not Objective:  # subclasses have other terms
        return False
    if not objective.is_counted(stack.sides):
        return False
    if stack.x.dtype != torch.float32 or stack.weight_decay:
        return False
    for side in stack.sides:
        if side.dependence is not None or sum(side.counts) > _MOST_ROWS:
            return False
    units = max(model.widths[1:])
    models = stack.failed.numel()
    hidden_places = models * units * max(size, model.features)
    width = model.features + _STEP
    value_places = 4 * len(stack.failed) * size * width
    return units <= _MOST_UNITS and max(hidden_places, value_places) <= _LARGEST


class _FusedStep:
    """A step: the arrays that its kernels share, and their launches."""

    def __init__(self, stack: Stack, size: int) -> None:
        self.stack = stack
        self.size = size
        w0, b0, *last = (value.detach() for value in stack.adam.parameters.values())
        self.w0 = w0
        self.b0 = b0
        self.w1: Tensor | None = None
        self.b1: Tensor | None = None
        self.hidden: Tensor | None = None
        self.seeds, self.models, units, self.features = w0.shape
        if last:
            self.w1, self.b1 = last
            self.hidden = w0.new_empty(self.seeds, self.models, units, size)
        self.width = _STEP * triton.cdiv(self.features, _STEP)
        self.values = w0.new_empty(4, self.seeds, size, self.width)
        self.outputs, self.slopes = w0.new_empty(2, self.seeds, self.models, size)
        self.all_labels = stack.y.to(w0.dtype)
        self.labels = w0.new_empty(self.seeds, size)
        self.comparisons = _comparisons(stack, size)
        padded = triton.next_power_of_2(units)
        together = max(1, _TILE // padded)
        self.tile = {"UNITS": units, "PADDED": padded, "TOGETHER": together}
        self.tiles = triton.cdiv(self.models, together)
        columns = triton.next_power_of_2(self.width)
        self.columns = min(2 * _TILE, columns)
        self.column_tiles = triton.cdiv(self.features, self.columns)
        programs = self.tiles * self.column_tiles * self.seeds
        parts = triton.cdiv(_PROGRAMS, programs)
        self.part_rows = _STEP * triton.cdiv(size, _STEP * parts)
        self.parts = triton.cdiv(size, self.part_rows)
        self.gradient = w0.new_empty(self.parts, len(stack.adam.vector))

    def __call__(self, chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size) with these loss weights."""
        self._gather(chosen)
        samples = Samples(chosen, self.labels, chosen, weight)
        self._forward(self.stack.objective.loss_weight(samples))
        for compared in self.comparisons:
            self._compare(compared)
        self._backward()
        self._update()

    def _gather(self, chosen: Tensor) -> None:
        mean, scale = self.stack.scaling
        seed_units = self.features if len(mean) > 1 else 0
        row_tiles = triton.cdiv(self.size, _ROWS)
        column_tiles = triton.cdiv(self.width, _ROWS)
        _gather[row_tiles, column_tiles, self.seeds](
            self.stack.x,
            self.all_labels,
            chosen,
            mean,
            scale,
            self.values,
            self.labels,
            self.size,
            self.features,
            self.width,
            self.seeds,
            seed_units,
            ROWS=_ROWS,
            COLUMNS=_ROWS,
        )

    def _forward(self, loss_weight: Tensor) -> None:
        stack = self.stack
        row_tiles = triton.cdiv(self.size, _TILE)
        _forward[self.tiles, row_tiles, self.seeds](
            self.values,
            self.labels,
            loss_weight,
            stack.strength,
            self.w0,
            self.b0,
            self.w1,
            self.b1,
            self.hidden,
            self.outputs,
            self.slopes,
            self.size,
            self.features,
            self.width,
            self.models,
            self.seeds,
            **self.tile,
            ROWS=_TILE,
            COLUMNS=_STEP,
            IS_BINARY=stack.objective.task.name == BINARY.name,
            SCALED=stack.scaled,
        )

    def _compare(self, compared: _Compared) -> None:
        stack = self.stack
        objective = stack.objective
        is_binary = objective.task.name == BINARY.name
        size = len(compared.rows)
        block = max(16, triton.next_power_of_2(size))
        warps = max(2, block // 64)
        _compare[(self.seeds * self.models,)](
            self.outputs,
            self.slopes,
            compared.rows,
            stack.strength,
            compared.share,
            compared.within,
            compared.across,
            size,
            compared.left,
            self.size,
            self.models,
            BLOCK=block,
            OF_PREDICTIONS=is_binary and objective.penalize == "prediction",
            SCALED=stack.scaled,
            num_warps=min(32, warps),
        )

    def _backward(self) -> None:
        _backward[self.tiles * self.column_tiles, self.parts, self.seeds](
            self.values,
            self.hidden,
            self.slopes,
            self.w1,
            self.gradient,
            self.gradient.shape[1],
            self.size,
            self.features,
            self.width,
            self.models,
            self.seeds,
            self.part_rows,
            **self.tile,
            ROWS=_STEP,
            COLUMNS=self.columns,
        )

    def _update(self) -> None:
        adam = self.stack.adam
        length = len(adam.vector)
        adam.powers.mul_(adam.betas)
        _adam[(triton.cdiv(length, _PARAMETERS),)](
            adam.vector,
            self.gradient,
            adam.moments,
            adam.powers,
            adam.learning_rate,
            adam.weight_decay,
            length,
            self.parts,
            KEEP_FIRST=BETAS[0],
            KEEP_SECOND=BETAS[1],
            TINY=EPSILON,
            BLOCK=_PARAMETERS,
        )


class _Compared(NamedTuple):
    """A comparison: its rows, the left ones first, and the weights of their pairs in the slope."""

    rows: Tensor
    left: int
    share: float  # of the comparison in the unfairness
    within: Tensor  # (seeds, 2): of pairs within the left and the right side
    across: float


def _comparisons(stack: Stack, size: int) -> list[_Compared]:
    """The comparisons of a batch of ``size`` rows."""
    places = torch.arange(size, device=stack.x.device)
    compared = []
    shares = stack.objective.weights
    for side, share in zip(stack.sides, shares, strict=bool(stack.sides)):
        left, right = side.counts
        one = _Compared(
            rows=places[side.rows],
            left=left,
            share=share,
            within=_pair_weights(stack, side),
            across=2 / (left * right),
        )
        compared.append(one)
    return compared


def _pair_weights(stack: Stack, side: Sides) -> Tensor:
    """The weight of pairs within one side in the slope by a score of it: (seeds, 2)."""
    estimate = stack.objective.estimate
    counts = torch.tensor(side.counts, dtype=torch.float64, device=stack.x.device)
    fraction = torch.zeros_like(counts)
    if estimate == "batch":
        fraction = torch.ones_like(counts)
    elif estimate == "rows" and side.fraction is not None:
        fraction = side.fraction.to(counts)
    ordered_pairs = counts**2 * (counts - 1).clamp_min(1)
    weights = 2 * (counts - fraction) / ordered_pairs
    seeds = len(stack.failed)
    by_seed = weights.reshape(-1, 2).expand(seeds, -1)
    return by_seed.to(stack.x.dtype).contiguous()
