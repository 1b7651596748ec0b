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

from collections.abc import Callable
from inspect import signature
from typing import Any

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
_PROGRAMS = 528  # enough to keep all multiprocessors busy
_ANY = (  # arguments whose values no kernel is compiled for
    *(
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
    ),
    "parts",
)


def _kernel(function: Any) -> Any:
    """The function as a kernel.

    Compiling takes seconds, so that one kernel serves data of nearly every shape.
    """
    if triton is None:
        return function
    return triton.jit(
        do_not_specialize=[name for name in signature(function).parameters if name in _ANY]
    )(function)


@_kernel
def _split(value):
    """A number as the sum of two TF32 numbers, the second one except for its last bits."""
    high = ((value.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return high, value - high


@_kernel
def _gather(
    x, y, chosen, mean, scale, values, label, n, features, width, seeds, seed_units, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Labels of the rows, (seeds, n), and their features in the seed's units, 0 beyond the last, as
    both products read them: (seeds, n, width) and (seeds, width, n), of each the leading bits and
    the rest.
    """
    seed = tl.program_id(2)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = tl.load(chosen + seed * n + at, mask=at < n, other=0)
    tl.store(label + seed * n + at, tl.load(y + row), mask=(at < n) & (tl.program_id(1) == 0))
    valid = column < features
    value = tl.load(
        x + row[:, None] * features + column[None, :],
        mask=(at < n)[:, None] & valid[None, :],
        other=0.0,
    )
    center = tl.load(mean + seed * seed_units + column, mask=valid, other=0.0)
    spread = tl.load(scale + seed * seed_units + column, mask=valid, other=1.0)
    value = tl.where(valid[None, :], (value - center[None, :]) / spread[None, :], 0.0)
    high, low = _split(value)
    inside = (at < n)[:, None] & (column < width)[None, :]
    where = values + (seed * n + at)[:, None] * width + column[None, :]
    size = seeds * n * width
    tl.store(where, high, mask=inside)
    tl.store(where + size, low, mask=inside)
    where = values + 2 * size + (seed * width + column)[:, None] * n + at[None, :]
    tl.store(where, tl.trans(high), mask=tl.trans(inside))
    tl.store(where + size, tl.trans(low), mask=tl.trans(inside))


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
def _forward(
    values, y, weight, strength, w0, b0, w1, b1, hidden, output, slope, n, features, width, models, seeds,
    UNITS: tl.constexpr, PADDED: tl.constexpr, TOGETHER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    IS_BINARY: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """Hidden units (seeds, models, units, n), outputs (seeds, models, n) and the slope of the
    loss by these.
    """
    tile = tl.program_id(0)
    seed = tl.program_id(2)
    at = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, TOGETHER * PADDED)
    model = tile * TOGETHER + place // PADDED
    unit = place % PADDED
    valid = (model < models) & (unit < UNITS)
    hidden_unit = (seed * models + model) * UNITS + unit
    total = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    for start in range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        where = values + (seed * n + at)[None, :] * width + column[:, None]
        high = tl.load(where, mask=(at < n)[None, :], other=0.0)
        low = tl.load(where + seeds * n * width, mask=(at < n)[None, :], other=0.0)
        inside = valid[:, None] & (column < features)[None, :]
        weights = tl.load(
            w0 + hidden_unit[:, None] * features + column[None, :], mask=inside, other=0.0
        )
        total = _product(weights, high, low, total)
    total += tl.load(b0 + hidden_unit, mask=valid, other=0.0)[:, None]
    if hidden is not None:
        total = tl.maximum(total, 0.0)
        tl.store(
            hidden + hidden_unit[:, None] * n + at[None, :],
            total,
            mask=valid[:, None] & (at < n)[None, :],
        )
        total *= tl.load(w1 + hidden_unit, mask=valid, other=0.0)[:, None]

    model = tile * TOGETHER + tl.arange(0, TOGETHER)
    valid = model < models
    result = tl.sum(tl.reshape(total, (TOGETHER, PADDED, ROWS)), 1)
    if hidden is not None:
        result += tl.load(b1 + seed * models + model, mask=valid, other=0.0)[:, None]
    label = tl.load(y + seed * n + at, mask=at < n, other=0.0)[None, :]
    loss_weight = tl.load(weight + seed * n + at, mask=at < n, other=0.0)[None, :] / n
    loss_slope = (
        loss_weight * (tl.sigmoid(result) - label)
        if IS_BINARY
        else 2 * loss_weight * (result - label)
    )
    if SCALED:
        loss_slope /= 1 + tl.load(strength + model, mask=valid, other=0.0)[:, None]
    where = (seed * models + model)[:, None] * n + at[None, :]
    inside = valid[:, None] & (at < n)[None, :]
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
def _compare(
    output, slope, rows, strength, share, within, across, size, left, n, models,
    BLOCK: tl.constexpr, OF_PREDICTIONS: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """Add strength x the slope of the energy distance between the first ``left`` of some rows
    and the others.
    """
    program = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    row = tl.load(rows + place, mask=place < size, other=0)
    score = tl.load(output + program * n + row, mask=place < size, other=0.0)
    score = tl.sigmoid(score) if OF_PREDICTIONS else score + 0.0  # -0 becomes 0
    score = tl.where(place < size, score, float("inf"))
    word = _as_ordered(score.to(tl.int32, bitcast=True)).to(tl.int64) << 32 | place.to(tl.int64)
    word = tl.sort(word)
    ordered = (word >> 32).to(tl.int32)
    origin = (word & 0xFFFFFFFF).to(tl.int32)

    is_left = (origin < left).to(tl.int32)
    through = tl.cumsum(is_left, 0)
    two = 2 * BLOCK  # a place and a count in one integer
    first = tl.associative_scan((ordered, place * two + through - is_left), 0, _as_before)[1]
    last = tl.associative_scan((ordered, place * two + through), 0, _as_before, reverse=True)[1]
    twice_left = first % two + last % two
    twice_all = first // two + last // two + 1
    a = twice_left - left
    b = twice_all - twice_left - (size - left)
    seed = program // models
    of_left = tl.load(within + 2 * seed)
    of_right = tl.load(within + 2 * seed + 1)
    added = tl.where(is_left == 1, across * b - of_left * a, across * a - of_right * b)
    if OF_PREDICTIONS:
        score = _as_ordered(ordered).to(tl.float32, bitcast=True)
        added *= score * (1 - score)
    factor = tl.load(strength + program % models)
    added *= share * (factor / (1 + factor) if SCALED else factor)
    where = slope + program * n + tl.load(rows + origin, mask=place < size, other=0)
    tl.store(where, tl.load(where, mask=place < size, other=0.0) + added, mask=place < size)


@_kernel
def _backward(
    values, hidden, slope, w1, gradient, length, n, features, width, models, seeds, rows_of_part,
    UNITS: tl.constexpr, PADDED: tl.constexpr, TOGETHER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Gradients by all parameters, from a part of the rows: (parts, length)."""
    across = tl.cdiv(features, COLUMNS)
    tile = tl.program_id(0) // across
    block = tl.program_id(0) % across
    part = tl.program_id(1)
    seed = tl.program_id(2)
    place = tl.arange(0, TOGETHER * PADDED)
    model = tile * TOGETHER + place // PADDED
    unit = place % PADDED
    valid = (model < models) & (unit < UNITS)
    hidden_unit = (seed * models + model) * UNITS + unit
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    of_w0 = tl.zeros((TOGETHER * PADDED, COLUMNS), tl.float32)
    # sums over rows come last: each would be a barrier
    of_b0 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    of_w1 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    of_b1 = tl.zeros((TOGETHER * PADDED, ROWS), tl.float32)
    end = tl.minimum(n, (part + 1) * rows_of_part)
    for start in range(part * rows_of_part, end, ROWS):
        at = start + tl.arange(0, ROWS)
        inside = valid[:, None] & (at < end)[None, :]
        output_slope = tl.load(
            slope + (seed * models + model)[:, None] * n + at[None, :], mask=inside, other=0.0
        )
        hidden_slope = output_slope
        if hidden is not None:
            activation = tl.load(
                hidden + hidden_unit[:, None] * n + at[None, :], mask=inside, other=0.0
            )
            last_weight = tl.load(w1 + hidden_unit, mask=valid, other=0.0)
            hidden_slope = tl.where(activation > 0, output_slope * last_weight[:, None], 0.0)
            of_w1 += output_slope * activation
            of_b1 += output_slope
        inside = (at < end)[:, None] & (column < width)[None, :]
        where = values + 2 * seeds * n * width + (seed * width + column)[None, :] * n + at[:, None]
        high = tl.load(where, mask=inside, other=0.0)
        low = tl.load(where + seeds * n * width, mask=inside, other=0.0)
        of_w0 = _product(hidden_slope, high, low, of_w0)
        of_b0 += hidden_slope
    # parameters follow each other as in the stack's vector: w0, b0, w1, b1
    gradient += part * length
    inside = valid[:, None] & (column < features)[None, :]
    tl.store(gradient + hidden_unit[:, None] * features + column[None, :], of_w0, mask=inside)
    count = seeds * models * UNITS
    gradient += count * features
    tl.store(gradient + hidden_unit, tl.sum(of_b0, 1), mask=valid & (block == 0))
    if hidden is not None:
        tl.store(gradient + count + hidden_unit, tl.sum(of_w1, 1), mask=valid & (block == 0))
        of_model = gradient + 2 * count + seed * models + model
        tl.store(of_model, tl.sum(of_b1, 1), mask=valid & (block == 0) & (unit == 0))


@_kernel
def _adam(
    vector, gradient, moments, powers, rate, decay, length, parts,
    KEEP_FIRST: tl.constexpr, KEEP_SECOND: tl.constexpr, TINY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
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
    corrected_rate = (tl.load(rate) / (1 - tl.load(powers))).to(tl.float32)
    spread = tl.sqrt_rn(second / (1 - tl.load(powers + 1)).to(tl.float32)) + TINY
    tl.store(moments + place, first, mask=inside)
    tl.store(moments + length + place, second, mask=inside)
    tl.store(vector + place, value - corrected_rate * first / spread, mask=inside)


def fused_step(stack: Stack, size: int) -> Step | None:
    """The step on batches of ``size`` rows, or None if these kernels do not support the stack."""
    if triton is None or not _is_supported(stack, size):
        return None
    adam = stack.adam
    objective = stack.objective
    mean, scale = stack.scaling
    w0, b0, *last = (value.detach() for value in adam.parameters.values())
    w1, b1 = last or (None, None)
    seeds, models, units, features = w0.shape
    width = _STEP * triton.cdiv(features, _STEP)
    values = w0.new_empty(4, seeds, size, width)
    hidden = w0.new_empty(seeds, models, units, size) if last else None
    outputs, slopes = w0.new_empty(2, seeds, models, size)
    labels = stack.y.to(w0.dtype)
    y = w0.new_empty(seeds, size)
    seed_units = features if len(mean) > 1 else 0
    compare = _comparisons(stack, outputs, slopes)
    padded = triton.next_power_of_2(units)
    columns = min(2 * _TILE, triton.next_power_of_2(width))
    tile_models = max(1, _TILE // padded)
    tiles = triton.cdiv(models, tile_models)
    across = triton.cdiv(features, columns)
    part_rows = _STEP * triton.cdiv(size, _STEP * triton.cdiv(_PROGRAMS, tiles * across * seeds))
    parts = triton.cdiv(size, part_rows)
    gradient = adam.vector.new_empty(parts, len(adam.vector))
    tile = {"UNITS": units, "PADDED": padded, "TOGETHER": tile_models}
    is_binary = objective.task.name == BINARY.name

    def step(chosen: Tensor, weight: Tensor) -> None:
        _gather[triton.cdiv(size, _ROWS), triton.cdiv(width, _ROWS), seeds](
            stack.x, labels, chosen, mean, scale, values, y, size, features, width, seeds, seed_units, ROWS=_ROWS,
            COLUMNS=_ROWS,
        )  # fmt: skip
        weight = objective.loss_weight(Samples(chosen, y, chosen, weight))
        _forward[tiles, triton.cdiv(size, _TILE), seeds](
            values, y, weight, stack.strength, w0, b0, w1, b1, hidden, outputs, slopes, size, features, width, models,
            seeds, **tile, ROWS=_TILE, COLUMNS=_STEP, IS_BINARY=is_binary, SCALED=stack.scaled,
        )  # fmt: skip
        compare()
        _backward[tiles * across, parts, seeds](
            values, hidden, slopes, w1, gradient, len(adam.vector), size, features, width, models, seeds, part_rows,
            **tile, ROWS=_STEP, COLUMNS=columns,
        )  # fmt: skip
        adam.powers.mul_(adam.betas)
        _adam[(triton.cdiv(len(adam.vector), 256),)](
            adam.vector, gradient, adam.moments, adam.powers, adam.learning_rate, adam.weight_decay, len(adam.vector),
            parts, KEEP_FIRST=BETAS[0], KEEP_SECOND=BETAS[1], TINY=EPSILON, BLOCK=256,
        )  # fmt: skip

    return step


def _is_supported(stack: Stack, size: int) -> bool:
    model = stack.model
    return (
        type(stack.objective) is Objective  # subclasses have other terms
        and isinstance(model, Network)
        and len(model.hidden) <= 1
        and max(model.widths[1:]) <= _MOST_UNITS
        and model.outputs == 1
        and stack.x.dtype == torch.float32
        and stack.objective.is_counted(stack.sides)
        and all(side.dependence is None and sum(side.counts) <= _MOST_ROWS for side in stack.sides)
        and not stack.weight_decay
        and stack.failed.numel() * max(model.widths[1:]) * max(size, model.features) <= _LARGEST
        and 4 * len(stack.failed) * size * (model.features + _STEP) <= _LARGEST
    )


def _comparisons(stack: Stack, outputs: Tensor, slopes: Tensor) -> Callable[[], None]:
    """A function that adds strength x the slopes of all comparisons to those of the outputs."""
    objective = stack.objective
    seeds, models, size = outputs.shape
    of_predictions = objective.task.name == BINARY.name and objective.penalize == "prediction"
    comparisons = [
        (
            side,
            share,
            torch.arange(size, device=outputs.device)[side.rows],
            _pair_weights(stack, side),
        )
        for side, share in zip(stack.sides, objective.weights, strict=bool(stack.sides))
    ]

    def compare() -> None:
        for side, share, rows, within in comparisons:
            block = max(16, triton.next_power_of_2(len(rows)))
            _compare[(seeds * models,)](
                outputs, slopes, rows, stack.strength, share, within, 2 / (side.counts[0] * side.counts[1]),
                len(rows), side.counts[0], size, models, BLOCK=block, OF_PREDICTIONS=of_predictions,
                SCALED=stack.scaled, num_warps=min(32, max(2, block // 64)),
            )  # fmt: skip

    return compare


def _pair_weights(stack: Stack, side: Sides) -> Tensor:
    """The weight of pairs within one side in the slope by a score of it: (seeds, 2)."""
    counts = torch.tensor(side.counts, dtype=torch.float64, device=stack.x.device)
    fraction = torch.zeros_like(counts)
    if stack.objective.estimate == "batch":
        fraction = torch.ones_like(counts)
    elif stack.objective.estimate == "rows" and side.fraction is not None:
        fraction = side.fraction.to(counts)
    weights = 2 * (counts - fraction) / (counts**2 * (counts - 1).clamp_min(1))
    return weights.reshape(-1, 2).expand(len(stack.failed), -1).to(stack.x.dtype).contiguous()
