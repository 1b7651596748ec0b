"""A Dask cluster of two processes on this machine, and what its libraries warn of that is not
ours to mend.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any
from unittest.mock import patch

import pytest

dask = pytest.importorskip("dask", reason="dask is not installed: nothing was tried on a cluster")
distributed = pytest.importorskip(
    "distributed", reason="distributed is not installed: nothing was tried on a cluster"
)


@contextmanager
def two_workers(*modules: str) -> Iterator[Any]:
    """A client of two workers of one thread each; ``modules`` are loaded once, by what they are
    forked from.
    """
    forkserver.set_forkserver_preload(list(modules))
    forkserver.ensure_running()  # before Dask does it, which would load nothing but itself
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.logging.distributed": "error",
    }
    with (
        # where Dask leaves what it set for its workers, the seed of hashes among it
        patch.dict(os.environ),
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
