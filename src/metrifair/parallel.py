"""Work spread over processes, which end when the one that started them is killed; work that is kept on one thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import joblib
from threadpoolctl import ThreadpoolController

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


@contextmanager
def one_thread() -> Iterator[None]:
    """Within this, what the calling thread asks of torch runs on that thread alone; other threads are not touched.

    Threads that wait for each other many times a second wait much longer on a busy machine. torch.set_num_threads would
    also reach threads that are started meanwhile; OpenMP's own setting belongs to the thread that sets it. torch must
    be loaded, and have read its settings in this thread (torch.get_num_threads does that): it would undo this later.

    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with one_thread():
    ...     print(torch.get_num_threads())
    1
    >>> torch.get_num_threads() == before
    True
    """
    with _openmp().limit(limits=1):
        yield


@cache  # looking for libraries takes some 50 ms
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
