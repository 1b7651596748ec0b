"""Parallel work in processes, on this or other machines, as joblib is configured; our processes
end with this one.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_LOST = 3  # times that a pool may break before one more task is done


def run_parallel(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None,
    *,
    in_order: bool = True,
    threads: int | None = None,
    **options: object,
) -> Iterator[Result]:
    """``work(item)`` of every item, in order or as they are finished, on the backend of joblib.

    That is ``n_jobs`` processes of this machine (None: as joblib is set up; 1: this one, and
    nothing is done before its result is requested), each on so many ``threads``, unless another
    backend is active (Dask, Ray), which then decides how many. ``work``, with all its data, is sent
    once to each process. A lost process loses only its current task. ``options`` are joblib's.

    >>> list(run_parallel(lambda power: 2**power, range(4), 1))
    [1, 2, 4, 8]
    """
    backend, configured = get_active_backend()
    if threads and isinstance(backend, joblib.parallel.BACKENDS["loky"]):
        with joblib.parallel_config("loky", inner_max_num_threads=threads):
            backend, _ = get_active_backend()
    jobs = configured if n_jobs is None else n_jobs
    returned = "generator_unordered"
    if in_order:
        returned = "generator"
    if not backend.supports_return_generator:  # Ray's; its results then come in portions
        returned = "list"
    pool = partial(joblib.Parallel, jobs, backend, return_as=returned, **options)
    with joblib.parallel_config(backend):
        workers = joblib.effective_n_jobs(jobs)
    alone = workers == 1 or getattr(backend, "uses_threads", False)
    return _results(pool, work, dict(enumerate(items)), 0 if alone else workers, backend)


def is_elsewhere() -> bool:
    """Whether the active backend works in other processes than those that joblib would start by
    itself.
    """
    backend, _ = get_active_backend()
    return not (
        getattr(backend, "uses_threads", False)
        or isinstance(backend, joblib.parallel.BACKENDS["loky"])
    )


def _results(
    pool: Callable[[], Any],
    work: Callable[[Any], Any],
    remaining: dict[int, Any],
    workers: int,
    backend: Any,
) -> Iterator[Any]:
    """All results; ``workers`` is 0 if they are threads of this process."""
    shared = _packed(work, backend) if workers else ("", work)
    parent = os.getpid()
    lost = 0
    while remaining:
        parallel = pool()  # a pool that lost processes would mix up their results
        one_pool = nullcontext() if parallel.return_generator else parallel
        with one_pool:  # for all portions
            try:
                while remaining:
                    portion = dict(
                        islice(
                            remaining.items(),
                            None if parallel.return_generator else max(1, workers),
                        )
                    )
                    for place, result in parallel(
                        joblib.delayed(_run_task)(*shared, *task, parent)
                        for task in portion.items()
                    ):
                        del remaining[place]
                        lost = 0
                        yield result
            except BrokenProcessPool:  # joblib's own processes: all of them are restarted
                lost += 1
                if lost == _MOST_LOST:
                    raise


def _packed(work: Callable[[Any], Any], backend: Any) -> tuple[str, Any]:
    """The work under a name, in a form that travels once, however many tasks there are."""
    packed = pickle.dumps(joblib.wrap_non_picklable_objects(work))
    name = hashlib.sha256(packed).hexdigest()
    content = np.frombuffer(packed, dtype=np.uint8)
    if type(backend).__name__ == "DaskDistributedBackend":
        # To all workers: what joblib itself would send to one is lost with that one.
        return name, backend.client.scatter(content, broadcast=True)
    if type(backend).__module__.split(".")[0] == "ray":
        return name, importlib.import_module("ray").put(content)
    return name, content  # joblib maps it into the memory of its processes


def _run_task(name: str, shared: Any, place: int, item: Any, parent: int) -> tuple[int, Any]:
    # a worker of another kind, on another machine perhaps, has no parent here
    if os.getppid() == parent:
        _end_with(parent)
    return place, (_unpack(name, shared) if name else shared)(item)


_unpacked_here: dict[str, Any] = {}


def _unpack(name: str, content: Any) -> Any:
    """The work, unpacked once in each process, which keeps the last one only."""
    work = _unpacked_here.get(name)
    if work is None:
        if type(content).__module__.split(".")[0] == "ray":
            content = importlib.import_module("ray").get(content)
        work = pickle.loads(content)  # packed by this program itself
        _unpacked_here.clear()
        _unpacked_here[name] = work
    return work


@cache  # one watch for each process
def _end_with(parent: int) -> None:
    """Exit when the parent has ended; joblib's workers would finish their task, and wait for
    ever for the next one.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
