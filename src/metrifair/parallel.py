"""Work spread over processes, which end when the one that started them is killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar

import joblib

Result = TypeVar("Result")


def spread(
    tasks: Iterable[Callable[[], Result]], n_jobs: int | None, *, in_order: bool = True, **options: object
) -> Iterator[Result]:
    """Results of tasks, done by ``n_jobs`` processes (None: as joblib is set up), in order or as they are finished.

    ``options`` are joblib's. One process is this one, and nothing is done before its result is asked for.

    >>> from functools import partial
    >>> list(spread([partial(pow, 2, k) for k in range(4)], 1))
    [1, 2, 4, 8]
    """
    pool = joblib.Parallel(n_jobs, return_as="generator" if in_order else "generator_unordered", **options)
    parent = os.getpid()
    found: Iterator[Result] = pool(joblib.delayed(_done)(task, parent) for task in tasks)
    return found


def _done(task: Callable[[], Result], parent: int) -> Result:
    if os.getppid() == parent:  # a worker of another kind, on another machine perhaps, is nobody's child here
        _end_with(parent)
    return task()


@cache  # one watch for each process
def _end_with(parent: int) -> None:
    """Joblib's workers would finish their task for nobody, and wait for ever for the next one."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
