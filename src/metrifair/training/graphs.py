"""Steps of a stack on CUDA: recorded as graphs, then replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from metrifair.training.fused import fused_step
from metrifair.training.stack import Epoch, Stack, Step

Steps: TypeAlias = Callable[[Epoch, Tensor, Tensor], None]
"""The steps on the batches of an epoch, or of a part of it, each at its strengths and learning
rate.
"""

# steps in one graph, at most: starting a graph takes the host as long for one step as for many
_RECORDED = 32


def record_steps(stack: Stack, like: Epoch) -> Steps:
    """A function that runs the steps of epochs with the shape of this one."""
    total = like.rows.shape[1]
    size = like.rows.shape[2]
    at_once = min(total, _RECORDED)
    lengths = {at_once, total % at_once} - {0}
    replays = {}
    for length in lengths:
        replays[length] = _record(stack, size, length)
    under_way: list[torch.cuda.Event] = []

    def run(batches: Epoch, strengths: Tensor, rates: Tensor) -> None:
        if len(under_way) > 1:  # at most this epoch and the next one wait on the device
            under_way.pop(0).synchronize()
        for start in range(0, total, at_once):
            end = min(total, start + at_once)
            steps = slice(start, end)
            part = batches.part(steps)
            replay = replays[end - start]
            replay(part, strengths[steps], rates[steps])
        stream = torch.cuda.current_stream()
        under_way.append(stream.record_event())

    return run


def _record(stack: Stack, size: int, steps: int) -> Steps:
    """Several steps as one CUDA graph: recorded once, then replayed on new rows."""
    step = fused_step(stack, size) or stack.step
    seeds = len(stack.failed)
    weights = stack.x.new_ones(steps, seeds, size)
    rows = torch.zeros_like(weights, dtype=torch.long)
    strengths = stack.strength.repeat(steps, 1)
    rates = stack.adam.learning_rate.repeat(steps)
    saved = stack.adam.snapshot()
    _warm_up(step, rows[0], weights[0])
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(stack.objective.generator)
    # other threads may train on other devices
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for place in range(steps):
            stack.strength = strengths[place]
            stack.adam.learning_rate = rates[place]
            step(rows[place], weights[place])
        stack.give_up()
    stack.adam.restore(saved)
    recording = graph, step  # the graph uses the step's memory
    last = weights

    def replay(batches: Epoch, strength: Tensor, rate: Tensor) -> None:
        nonlocal last
        steps_first = batches.rows.transpose(0, 1)
        rows.copy_(steps_first)
        if batches.weight is not last:  # most often all epochs share one
            last = batches.weight
            of_each_step = last.expand(batches.rows.shape)
            weights.copy_(of_each_step.transpose(0, 1))
        strengths.copy_(strength)
        rates.copy_(rate)
        recording[0].replay()

    return replay


def _warm_up(step: Step, rows: Tensor, weight: Tensor) -> None:
    """A few steps on a stream of their own: libraries set themselves up during the first calls,
    which may not be recorded.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(rows, weight)
    torch.cuda.current_stream().wait_stream(stream)
