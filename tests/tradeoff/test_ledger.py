"""Finished work on disk: all or none of it, apart from other runs, and still there after kill
-9.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_sweep import FOLDS, JOBS, key
from sklearn.linear_model import LogisticRegression

from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.figures import Predictions
from tests.seams.saving import Content, to_bytes
from tests.seams.tradeoff import (
    Entry,
    FoldLedger,
    FoldResult,
    Job,
    Ledger,
    TrainingFit,
    content_text,
    fingerprint,
)
from tests.seams.tradeoff import ledger as ledger_module

TESTS = Path(__file__).parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_what_is_added_is_found_again_bit_by_bit(path: Path) -> None:
    entries = {
        "a": Entry(
            {"third": 1 / 3, "tiny": 5e-324, "none": None, "list": [1, 2.0]}, bytes(range(256))
        ),
        "b": Entry({"big": 1.7976931348623157e308, "name": 'é "quoted"'}),
    }
    Ledger(path, "run").add(entries)
    assert Ledger(path, "run").finished() == entries


def test_a_new_ledger_is_empty(path: Path) -> None:
    assert Ledger(path, "run").finished() == {}


def test_runs_in_one_file_never_mix(path: Path) -> None:
    first, second = Ledger(path, "first"), Ledger(path, "second")
    first.add({"job": Entry({"figure": 1})})
    assert second.finished() == {}
    second.add({"job": Entry({"figure": 2})})
    assert first.finished() == {"job": Entry({"figure": 1})}


def test_a_job_that_is_done_twice_counts_once(path: Path) -> None:
    ledger = Ledger(path, "run")
    for figure in (1, 2):
        ledger.add({"job": Entry({"figure": figure})})
    assert ledger.finished() == {"job": Entry({"figure": 2})}


def test_entries_are_added_all_or_none(path: Path) -> None:
    ledger = Ledger(path, "run")
    with pytest.raises(DataError):
        ledger.add({"good": Entry({}), "bad": Entry({}, {"no": "bytes"})})
    assert ledger.finished() == {}


def test_entries_are_added_in_one_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, said = Ledger(path, "run"), []
    connect = ledger._connect

    def traced() -> sqlite3.Connection:
        connection = connect()
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr(ledger, "_connect", traced)
    ledger.add({str(k): Entry({}) for k in range(5)})
    assert [
        Counter(line.split()[0] for line in said)[word] for word in ("BEGIN", "INSERT", "COMMIT")
    ] == [1, 5, 1]


def test_the_ledger_is_written_ahead(path: Path) -> None:
    Ledger(path, "run")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_reading_goes_on_while_another_writes(path: Path) -> None:
    ledger = Ledger(path, "run")
    ledger.add({"done": Entry({})})
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO finished VALUES ('run', 'half', '{}', NULL)")
        assert list(ledger.finished()) == ["done"]


WRITERS = (
    f"from {Ledger.__module__} import Entry, Ledger\n"
    """
import os, sys
path, writers = sys.argv[1], []
wait, begin = os.pipe()
for name in range(4):
    writers.append(os.fork())
    if not writers[-1]:
        os.close(begin)
        os.read(wait, 1)  # until the last process that could write has closed the pipe
        for k in range(15):
            Ledger(path, "run").add({f"{name} {k} {part}": Entry({"k": k}, b"x" * 5000) for part in "ab"})
        os._exit(0)
os.close(begin)
assert [os.waitpid(writer, 0)[1] for writer in writers] == [0, 0, 0, 0]
"""
)


@pytest.mark.extended
def test_several_processes_share_a_ledger(path: Path) -> None:
    """All begin at the same moment with a file that is not there yet."""
    done = subprocess.run(
        [sys.executable, "-c", WRITERS, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(Ledger(path, "run").finished()) == {
        f"{name} {k} {part}" for name in range(4) for k in range(15) for part in "ab"
    }


@pytest.mark.parametrize("kind", [lambda c: LogisticRegression(C=c), lambda c: deque([1, c])])
def test_objects_share_a_text_if_their_content_is_equal(kind: Callable[[float], Any]) -> None:
    assert content_text(kind(2.0)) == content_text(kind(2.0))
    assert content_text(kind(2.0)) != content_text(kind(3.0))


@pytest.mark.parametrize(
    "content", [b"no ledger at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_file_that_is_no_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError) as refusal:
        Ledger(path, "run").finished()
    assert str(refusal.value) == (
        f"{path} cannot be used as a ledger (file is not a database); name a new or an older ledger"
    )
    assert path.read_bytes() == content


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "runs.db"
    with pytest.raises(DataError) as refusal:
        Ledger(path, "run")
    assert str(refusal.value) == (
        f"{path} cannot be used as a ledger (unable to open database file); name a new or an older "
        "ledger"
    )


@pytest.mark.parametrize(
    ("record", "content"),
    [
        ("[]", None),
        ("7", None),
        ("{", None),
        ("[" * 100_000, None),
        (b"\xff", None),
        (3.5, None),
        ("{}", "text"),
        (r'{"\ud800": 1}', None),
    ],
)
def test_rows_that_no_ledger_writes_are_refused(
    path: Path, record: object, content: object
) -> None:
    ledger = Ledger(path, "run")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "INSERT INTO finished VALUES (?, 'job', ?, ?)", (ledger.run, record, content)
        )
    with pytest.raises(
        DataError, match=r"cannot be used as a ledger \(.*\); name a new or an older ledger$"
    ):
        ledger.finished()


JOB = Job(1.0, 0)
FIT = {"failed": False, "kind": "probability", "fit": [0.0] * 5, "needs_group": False}


def stored(path: Path, record: Any, arrays: dict[str, Any] | None) -> FoldLedger:
    """A ledger of fold predictions with this entry."""
    content = None if arrays is None else to_bytes(Content("predictions", {}, arrays))
    Ledger(path, "run").add({JOB.name: Entry(record, content)})
    return FoldLedger(path, "run", rows=2, classes=2)


def test_predictions_of_folds_come_back_bit_by_bit(path: Path) -> None:
    score = np.array([0.1, 1 / 3, 5e-324])
    given = Predictions(score, np.array([0, 1, 1]), "probability")
    result = FoldResult(JOB, given, TrainingFit(0.1, 0.2, 1 / 3, 0.01, 0.02), needs_group=True)
    failed = FoldResult(Job(2.0, 0), None, None)
    FoldLedger(path, "run", rows=3, classes=2).add([result, failed])
    found = FoldLedger(path, "run", rows=3, classes=2).results([JOB, failed.job, Job(3.0, 0)])
    assert set(found) == {JOB, failed.job}
    assert found[failed.job] == failed
    again = found[JOB]
    assert (again.fit, again.needs_group) == (result.fit, True)
    assert again.predictions is not None
    assert again.predictions.score.tobytes() == score.tobytes()
    assert again.predictions.decision.tolist() == [0, 1, 1]
    assert again.predictions.decision.dtype == np.int64


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"failed": False},
        FIT | {"fit": [0.0] * 4},
        FIT | {"fit": "12345x"},
        {name: value for name, value in FIT.items() if name != "kind"},
    ],
)
def test_a_record_that_is_not_one_of_a_sweep_is_refused(path: Path, record: Any) -> None:
    ledger = stored(path, record, {"score": np.zeros(2), "decision": np.zeros(2)})
    with pytest.raises(
        DataError, match=r"^the ledger has a record that is not from a sweep .*; name a new ledger"
    ):
        ledger.results([JOB])


@pytest.mark.parametrize("arrays", [None, {}, {"score": np.zeros(2)}])
def test_predictions_that_are_incomplete_are_refused(
    path: Path, arrays: Any, refused: Refusals
) -> None:
    with refused(DataError):
        stored(path, FIT, arrays).results([JOB])


@pytest.mark.parametrize(
    ("score", "decision", "kind"),
    [
        (np.zeros(3), np.zeros(3), "probability"),
        (np.zeros((2, 2)), np.zeros(2), "probability"),
        (np.zeros(2), np.zeros(3), "probability"),
        (np.array([0.0, np.nan]), np.zeros(2), "probability"),
        (np.zeros(2), np.array([0.0, 2.0]), "probability"),
        (np.zeros(2), np.array([0.0, -1.0]), "probability"),
        (np.zeros(2), np.zeros(2), "number"),
        (np.zeros(2), np.zeros(2), "anything"),
    ],
)
def test_predictions_that_cannot_be_of_a_fold_are_refused(
    path: Path, score: np.ndarray, decision: np.ndarray, kind: str, refused: Refusals
) -> None:
    ledger = stored(path, FIT | {"kind": kind}, {"score": score, "decision": decision})
    with refused(DataError):
        ledger.results([JOB])


def test_an_upgrade_of_the_library_begins_a_run_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger(path, "run").add({"job": Entry({"figure": 1})})
    monkeypatch.setattr(ledger_module, "__version__", "99.0")
    assert Ledger(path, "run").finished() == {}
    assert Ledger(path, "run").run == "run by metrifair 99.0"


def _scribbled(path: Path) -> None:
    """Every page but the first is noise."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + np.random.default_rng(0).bytes(len(content) - 4096))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:6000])


def _another_table(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE finished (something TEXT)")


def _no_json(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE finished SET record = '{\"half'")


@pytest.mark.parametrize("damage", [_scribbled, _cut, _another_table, _no_json])
def test_a_damaged_ledger_is_refused(path: Path, damage: Callable[[Path], None]) -> None:
    Ledger(path, "run").add({str(k): Entry({"k": k}, b"content" * 1000) for k in range(10)})
    damage(path)
    with pytest.raises(DataError, match="cannot be used as a ledger"):
        Ledger(path, "run").finished()


# --- names of content
# -------------------------------------------------------------------------------------------


def test_equal_content_has_one_name_however_it_lies_in_memory() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert fingerprint([array, "a"]) == fingerprint([np.asfortranarray(array), "a"])
    assert fingerprint([array[:, 1]]) == fingerprint([array[:, 1].copy()])


def test_different_content_has_different_names() -> None:
    contents: list[list[Any]] = [
        [],
        [""],
        ["", ""],
        ["ab"],
        ["a", "b"],
        ["b", "a"],
        ["é"],
        ["text 1:a"],
        [np.zeros(2)],
        [np.zeros(3)],
        [np.zeros((2, 1))],
        [np.zeros((1, 2))],
        [np.zeros(1), np.zeros(1)],
        [np.zeros(2, np.float32)],
        [np.zeros(2, np.int64)],
        [np.zeros(2, np.int32)],
        [np.zeros(16, np.bool_)],
        [np.array([0.0, 5e-324])],
        [np.array(["a", "b"])],
        [np.array(["a", "b"], dtype=object)],
        [np.array(["ab", ""], dtype=object)],
        [np.array(["a", None], dtype=object)],
        [np.array(["a", "None"], dtype=object)],
        [np.array([1, 2], dtype=object)],
        [np.array([1.0, 2.0], dtype=object)],
        [np.array([1, 2])],
    ]
    assert len({fingerprint(parts) for parts in contents}) == len(contents)


def test_long_columns_of_objects_are_named_by_all_they_hold() -> None:
    column = np.array(["x"] * 5000, dtype=object)
    other = column.copy()
    other[2500] = "y"
    assert fingerprint([column]) != fingerprint([other])


# --- kill -9
# ----------------------------------------------------------------------------------------------------


class Nursery:
    """Runs sweeps in processes of their own, and kills them when told to."""

    def __init__(self, errors: Path) -> None:
        self.errors = errors
        paths = [str(TESTS.parents[1]), os.environ.get("PYTHONPATH", "")]
        seen = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}  # the seams of tests
        threads = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        with errors.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(TESTS / "killed_sweep.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=os.environ | seen | threads,
            )

    def run(
        self,
        folder: Path,
        *,
        kind: str = "Noting",
        way: str = "stacks",
        delay: float | None = None,
        copies: int = 1,
    ) -> list[int]:
        """Exit codes of so many runs on the ledger in that folder; -9 if killed after the delay."""
        names = {name: str(folder / name) for name in ("ledger", "log", "table")}
        task = json.dumps({**names, "kind": kind, "way": way, "delay": delay, "copies": copies})
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        codes = json.loads(self.process.stdout.readline() or "null")
        assert codes is not None, self.errors.read_text()
        assert set(codes) <= {0, -9}, self.errors.read_text()
        return codes


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    found = Nursery(tmp_path_factory.mktemp("nursery") / "errors")
    yield found
    found.process.stdin.close()
    found.process.wait(timeout=300)
    found.process.stdout.close()


def rows_of(folder: Path) -> dict[str, tuple[str, bytes | None]]:
    """What is committed, read from a copy: the ledger itself is left as the killed process left
    it.
    """
    with tempfile.TemporaryDirectory() as copy:
        for file in folder.glob("ledger*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, copy)
        if not Path(copy, "ledger").exists():
            return {}
        with closing(sqlite3.connect(Path(copy, "ledger"))) as database:
            if not database.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'finished'"
            ).fetchall():
                return {}
            return {
                key(run, job): row
                for run, job, *row in database.execute(
                    "SELECT run, job, record, content FROM finished"
                )
            }


def events_of(folder: Path, event: str) -> list[str]:
    lines = (folder / "log").read_text().splitlines() if (folder / "log").exists() else []
    return [line.removeprefix(f"{event} ") for line in lines if line.startswith(f"{event} ")]


def survived(
    nursery: Nursery, folder: Path, rng: np.random.Generator, longest: float, **task: Any
) -> int:
    """One ledger run, killed at random moments until it ends; the number of kills.

    A training may be repeated only if its ledger transaction had not committed when the process
    died: what is committed stays as it is and is not trained again, and what was noted (after its
    transaction) is committed.
    """
    kills, per_training = 0, 3 if task["way"] == "stacks" else 1
    while True:
        before, trained_before = rows_of(folder), len(events_of(folder, "trained"))
        (code,) = nursery.run(folder, delay=rng.uniform(0, longest), **task)
        after, trained = rows_of(folder), events_of(folder, "trained")
        again = set(trained[trained_before:]) & set(before)
        assert not again, f"finished, and run again: {sorted(again)}"
        lost = {job for job, row in before.items() if after.get(job) != row}
        assert not lost, f"finished, and lost or changed: {sorted(lost)}"
        unnoted = set(events_of(folder, "noted")) - set(after)
        assert not unnoted, f"noted, and not in the ledger: {sorted(unnoted)}"
        wasted = len(trained) - len(after)
        assert wasted <= (kills + 1) * per_training, (
            f"{wasted} trainings wasted by {kills + 1} kills"
        )
        if code == 0:
            assert_complete(after)
            return kills
        kills += 1


def assert_complete(finished: Iterable[str]) -> None:
    """Every job is there once for each fold."""
    times = Counter(name.split(" ", 1)[1] for name in finished)
    assert times == dict.fromkeys(JOBS, FOLDS)


def killed(
    nursery: Nursery, folder: Path, *, way: str, kills: int, kind: str = "Noting", seed: int = 0
) -> dict[str, int]:
    """Ledger runs, one after the other, until so many kills are survived; figures of what happened.

    Kills come within the time of a whole run: in half of it some machines have not trained the
    first models yet, and would begin for ever.
    """
    rng = np.random.default_rng(seed)
    tables, seconds = [], []
    for whole in (folder / "whole", folder / "whole again"):
        whole.mkdir()
        begin = time.perf_counter()
        assert nursery.run(whole, way=way) == [0]
        seconds.append(time.perf_counter() - begin)
        tables.append((whole / "table").read_bytes())
        assert_complete(events_of(whole, "trained"))
    expected, again = tables
    assert expected == again
    assert expected.count(b"\n") == len(JOBS) - 1
    total, runs, trainings = 0, 0, 0
    while total < kills:
        own = folder / f"run {runs}"
        own.mkdir()
        total += survived(nursery, own, rng, min(seconds), kind=kind, way=way)
        assert (own / "table").read_bytes() == expected, (
            "another table than that of a run which was not killed"
        )
        trainings += len(events_of(own, "trained"))
        runs += 1
    return {"kills": total, "runs": runs, "trainings": trainings, "jobs": runs * len(JOBS) * FOLDS}


@pytest.mark.parametrize("way", ["stacks", "one by one"])
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow(rotate=False))])
def test_a_killed_run_goes_on_where_it_stopped(
    nursery: Nursery, tmp_path: Path, way: str, kills: int
) -> None:
    found = killed(nursery, tmp_path, way=way, kills=kills)
    print(way, found)
    assert found["kills"] >= kills


@pytest.mark.parametrize("kind", ["Forgetful", "Early", "Late"])
def test_a_broken_ledger_does_not_survive_being_killed(
    nursery: Nursery, tmp_path: Path, kind: str
) -> None:
    with pytest.raises(AssertionError, match=r"finished, and|noted, and not|another table"):
        killed(nursery, tmp_path, way="stacks", kind=kind, kills=30)


@pytest.mark.extended
def test_two_runs_at_once_on_one_ledger_agree(nursery: Nursery, tmp_path: Path) -> None:
    for name in ("alone", "together"):
        (tmp_path / name).mkdir()
    assert nursery.run(tmp_path / "alone") == [0]
    assert nursery.run(tmp_path / "together", copies=2) == [0, 0]
    assert (tmp_path / "together" / "table").read_bytes() == (
        tmp_path / "alone" / "table"
    ).read_bytes()
    assert_complete(rows_of(tmp_path / "together"))
    assert max(Counter(events_of(tmp_path / "together", "trained")).values()) <= 2
