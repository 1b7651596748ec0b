"""Sweeps where joblib is set up to work: on a cluster of real processes, of which one is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from killed_sweep import table_of
from searching import arguments
from sklearn.base import clone

from metrifair import FairClassifier, Frontier
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.frontier_parts import outcomes_of
from tests.one_split import frontier
from tests.seams.support import run_parallel

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=200)
X = RNG.normal(size=(200, 3)) + A[:, None]
Y = (X.sum(1) + RNG.normal(size=200) > 1.5).astype(int)
OURS = FairClassifier(epochs=10, hidden=(4,), model="mlp")
FOLDS = 5  # those of a frontier by default
VALUES = [0.0, 0.1, 0.3, 1.0, 3.0]


class Logged(FairClassifier):
    """Not one of ours to the sweep, which fits it value by value; each fit says so in a file,
    and may take a moment.
    """

    def __init__(self, log: str = "", pause: float = 0.0, **more: Any) -> None:
        super().__init__(**more)
        self.log = log
        self.pause = pause

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["log", "pause", *FairClassifier._get_param_names()])

    def fit(self, *given: Any, **named: Any) -> Logged:
        super().fit(*given, **named)
        note(self.log, f"{self.strength} {self.random_state}")
        time.sleep(self.pause)
        return self


def note(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()} {text}\n".encode())
    os.close(file)


def front(estimator: Any, **more: Any) -> Frontier:
    return frontier(
        estimator,
        X,
        Y,
        sensitive_features=A,
        **arguments(**{"strengths": VALUES, "seeds": 2, **more}),
    )


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.extended
def test_a_frontier_on_a_cluster_is_the_one_from_here_also_when_a_worker_is_killed(
    tmp_path: Path,
) -> None:
    cluster = pytest.importorskip("cluster")
    log, ledger = tmp_path / "log", tmp_path / "runs.db"
    estimator = Logged(str(log), pause=0.15, model="mlp", epochs=10, hidden=(4,))
    with cluster.two_workers(__name__) as client:
        workers = set(client.run(os.getpid).values())

        def kill_one() -> None:
            while len(lines(log)) < 3:
                time.sleep(0.01)
            victim = int(lines(log)[-1].split()[0])
            note(str(log), f"killed {len(noted(ledger))}")
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        with joblib.parallel_config("dask"):
            lossy = front(estimator, ledger=ledger)
            killer.join(30)
            stacked = front(OURS)
        # one was killed indeed, and started anew
        assert len(set(client.run(os.getpid).values()) - workers) == 1
    done = [line.split() for line in lines(log)]
    (before,) = [int(number) for _, word, number in done if word == "killed"]
    trained = Counter((strength, seed) for _, strength, seed in done if strength != "killed")
    assert {pid for pid, *_ in done if pid != str(os.getpid())} >= {str(pid) for pid in workers}
    assert len(trained) == len(outcomes_of(lossy)) == 10
    assert before < FOLDS * 10
    # what the lost one was at, and what it had not handed over yet
    assert sum(trained.values()) <= FOLDS * 10 + len(workers)
    assert max(trained.values()) <= FOLDS + 1
    alone = front(clone(estimator).set_params(pause=0.0))
    assert table_of(outcomes_of(lossy)) == table_of(outcomes_of(alone))
    assert [model.predict_proba(X).tolist() for model in lossy.models] == [
        model.predict_proba(X).tolist() for model in alone.models
    ]
    assert len(noted(ledger)) == FOLDS * 10
    here = front(OURS)
    for one, other in zip(outcomes_of(stacked), outcomes_of(here), strict=True):
        assert one.job == other.job
        assert one.point.unfairness == pytest.approx(other.point.unfairness, abs=1e-9)
    for model, other in zip(stacked.models, here.models, strict=True):
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-9)


def noted(ledger: Path) -> list[str]:
    if not ledger.exists():
        return []
    with sqlite3.connect(ledger, timeout=60) as database:
        try:
            return [job for (job,) in database.execute("SELECT job FROM finished")]
        except sqlite3.OperationalError:  # it is being made
            return []


class Big:
    """Work that holds a lot, and counts how often it travels."""

    def __init__(self, log: str) -> None:
        self.log, self.data = log, np.arange(400_000.0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        note(self.log, "unpacked")

    def __call__(self, place: int) -> tuple[int, float]:
        time.sleep(0.05)
        if place == -1:
            os.kill(os.getpid(), signal.SIGKILL)
        self.data[place] += 1  # which torch asks for: it must not be read-only
        return os.getpid(), float(self.data[place])


@pytest.mark.slow
def test_joblib_s_own_processes_get_the_work_once_and_may_be_lost(tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = list(run_parallel(Big(str(log)), range(12), 2))
    assert [int(value) - 1 for _, value in found] == list(range(12))
    assert Counter(line.split()[0] for line in lines(log)) == Counter(
        {str(pid): 1 for pid, _ in found}
    )
    results = run_parallel(Big(str(tmp_path / "other")), range(12), 2)
    first, _ = next(results)
    os.kill(first, signal.SIGKILL)
    assert [int(value) - 1 for _, value in results] == list(range(1, 12))


@pytest.mark.slow
def test_work_that_kills_every_process_is_given_up(tmp_path: Path) -> None:
    results = run_parallel(Big(str(tmp_path / "log")), [0, -1], 2)
    with pytest.raises(joblib.externals.loky.process_executor.TerminatedWorkerError):
        list(results)


@pytest.mark.slow
def test_a_frontier_on_ray_is_the_one_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: nothing was tried on it")
    registered = pytest.importorskip("ray.util.joblib")
    registered.register_ray()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # workers look for this module too
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with joblib.parallel_config("ray", n_jobs=2):
            found = front(
                Logged(str(tmp_path / "log"), model="mlp", epochs=10, hidden=(4,)),
                ledger=tmp_path / "runs.db",
            )
        assert table_of(outcomes_of(found)) == table_of(
            outcomes_of(front(Logged(str(tmp_path / "here"), model="mlp", epochs=10, hidden=(4,))))
        )
        assert str(os.getpid()) not in {line.split()[0] for line in lines(tmp_path / "log")}
        assert len(noted(tmp_path / "runs.db")) == FOLDS * 10
    finally:
        ray.shutdown()


# --- devices
# ----------------------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("devices", [["cpu"], ["cpu", "cpu"], ["cpu"] * 7], ids=len)
@pytest.mark.parametrize("batch_size", [200, 20])
def test_devices_share_the_strengths_and_the_models_are_the_same(
    devices: list[str], batch_size: int
) -> None:
    estimator = FairClassifier(epochs=5, hidden=(4,), batch_size=batch_size, model="mlp")
    one, shared = front(estimator), front(estimator, devices=devices)
    assert [tuple(outcome.job) for outcome in outcomes_of(shared)] == [
        tuple(outcome.job) for outcome in outcomes_of(one)
    ]
    for first, second in zip(one.models, shared.models, strict=True):
        assert second.get_params() == first.get_params()
        atol = 1e-9 if batch_size == 200 else 1e-5  # batches are computed in single precision
        np.testing.assert_allclose(second.predict_proba(X), first.predict_proba(X), atol=atol)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([], "devices must be a list of at least one device"),
        ("cuda:0", "devices must be a list of at least one device"),
        (["cpu", "gpu"], "device must be 'auto', 'cpu' or 'cuda', got 'gpu'"),
    ],
)
def test_devices_that_there_are_not_are_refused(devices: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        front(OURS, devices=devices)


def test_devices_are_for_stacks(tmp_path: Path, refused: Refusals) -> None:
    with refused(DataError):
        front(Logged(str(tmp_path / "log")), devices=["cpu", "cpu"])
