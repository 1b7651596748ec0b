"""Measuring, and the table that a benchmark prints."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import torch


class Claim(NamedTuple):
    """One claim and what was measured for it."""

    claim: str
    measured: str
    target: str
    met: bool


QUICK = "METRIFAIR_BENCH_QUICK"
"""Set in the environment, benchmarks run on tiny data: a test sees whether they run, and
figures mean nothing.
"""


def shrunk(size: int, least: int = 200) -> int:
    """The size, or a thousandth of it in a quick run."""
    return max(least, size // 1_000) if os.environ.get(QUICK) else size


def seconds(work: Callable[[], Any], *, repeat: int = 7, at_least: float = 0.2) -> float:
    """Median time of one call, after one call to warm up; many calls are made where one is
    short.
    """
    work()
    repeat, at_least = (1, 0.0) if os.environ.get(QUICK) else (repeat, at_least)
    times: list[float] = []
    while len(times) < repeat or (sum(times) < at_least and len(times) < 2000):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def alternating(
    first: Callable[[], Any], second: Callable[[], Any], *, rounds: int = 5
) -> tuple[float, float]:
    """Median times of two pieces of work measured in turns, so that a busy moment hits both."""
    pairs = [
        (seconds(first, repeat=5, at_least=0.05), seconds(second, repeat=5, at_least=0.05))
        for _ in range(rounds)
    ]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def peak_memory_above(baseline: Callable[[], Any], work: Callable[[], Any]) -> int:
    """Bytes by which ``work`` raises the peak of a fresh process over that of ``baseline``."""
    return _peak(work) - _peak(baseline)


def _peak(work: Callable[[], Any]) -> int:
    receive, send = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        torch.set_num_threads(1)
        work()
        send.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    return int(receive.recv())


printed: list[Claim] = []


def print_table(title: str, rows: list[Claim]) -> None:
    """Rows as a table, misses marked; they are kept in ``printed``."""
    printed.extend(rows)
    print(f"\n{title}\n{'-' * len(title)}")
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    for row in rows:
        cells = "  ".join(text.ljust(width) for text, width in zip(row[:3], widths, strict=True))
        print(f"{cells}  {'' if row.met else 'MISSED'}".rstrip())
