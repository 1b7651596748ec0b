"""Every experiment in its quick form, end to end; killed and resumed; arrays on another machine."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments import NAMES, device, jobs, reproduce
from experiments.report import main as report_main
from experiments.rows import Row, read_rows
from metrifair.errors import DataError

COMPARED = ("regression", "classification", "equal-opportunity", "preprocessing", "postprocessing")
METHODS = {
    "regression": {"mfl-nn", "mfl-linear", "berk-individual", "berk-group"},
    "classification": {"mfl-nn", "mfl-linear", "fair-kde", "sinkhorn", "zafar"},
    "equal-opportunity": {"mfl-nn", "mfl-linear", "fair-kde", "sinkhorn", "zafar"},
    "preprocessing": {"mfl-nn", "label-bias", "fairbatch", "massaging", "reweighing"},
    "postprocessing": {"mfl-nn", "xian"},
}
pytest.importorskip("altair", reason="figures need the extra report")
pytest.importorskip("vl_convert", reason="figures need the extra report")


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_from_data_to_page(name: str, tmp_path: Path, raw_data: Path) -> None:
    protocol = "published" if name in ("classification", "equal-opportunity", "preprocessing") else "corrected"
    reproduce(name, protocol=protocol, seeds=2, quick=True, out=tmp_path)
    title = name if name == "boosting" else f"{name}-{protocol}"  # which no protocol changes
    with (tmp_path / f"{title}.csv").open() as file:
        records = list(csv.DictReader(file))
    assert records
    assert not any("nan" in (record.get("accuracy", ""), record.get("objective", "")) for record in records)
    page = (tmp_path / f"{title}.html").read_text()
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert 'src="http' not in page
    assert (tmp_path / f"{title}-1.svg").read_text().startswith("<svg")
    text = (tmp_path / f"{title}.md").read_text()
    assert f"({title}-1.svg)" in text
    if name in COMPARED:
        assert {record["method"].removesuffix("-decay") for record in records} == METHODS[name]
        assert {record["seed"] for record in records} == {"0", "1"}
        ours = Counter((one["input"], one["data"], one["seed"]) for one in records if one["method"] == "mfl-nn")
        assert set(ours.values()) == {4}  # strengths of a sketch
        assert "MFL: the paper's method" in text
        assert text.splitlines()[2].startswith("**A sketch")
        assert 'class="banner">A sketch' in page
        assert not any("**" in line for line in text.splitlines() if line.startswith("|"))


def test_finished_work_is_not_done_again(tmp_path: Path, raw_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce("regression", protocol="published", seeds=2, quick=True, out=tmp_path)
    first = (tmp_path / "regression-published.csv").read_bytes()

    def refuse(*_: object) -> Any:
        raise AssertionError("this was done before")

    monkeypatch.setattr(jobs, "_records", refuse)
    reproduce("regression", protocol="published", seeds=2, quick=True, out=tmp_path)
    assert (tmp_path / "regression-published.csv").read_bytes() == first
    with pytest.raises(AssertionError, match="done before"):  # other seeds are other work
        reproduce("regression", protocol="published", seeds=1, quick=True, out=tmp_path)


def finished_jobs(ledger: Path) -> int:
    if not ledger.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM finished").fetchone()[0])
    except sqlite3.Error:
        return 0


def children(process: int) -> list[int]:
    """Processes that another one has started, where the system tells."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(one) for one in path.read_text().split()]


def works(process: int) -> bool:
    """Whether it is there; one that has ended and nobody has asked after is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_and_resumed_gives_the_same_table(n_jobs: int, tmp_path: Path, raw_data: Path) -> None:
    code = (
        "from pathlib import Path; import sys; from experiments import reproduce; "
        "reproduce('regression', protocol='published', seeds=2, quick=True, out=Path(sys.argv[1]), "
        f"n_jobs={n_jobs})"
    )
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    environment = os.environ | {"METRIFAIR_DATA": str(raw_data)}
    process = subprocess.Popen([sys.executable, "-c", code, str(killed)], env=environment)
    while finished_jobs(killed / "ledger.db") < 3 and process.poll() is None:
        time.sleep(0.002)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert (len(workers) >= 2) == (n_jobs == 2)
    while any(map(works, workers)):  # none goes on working for nobody
        time.sleep(0.1)
    before = finished_jobs(killed / "ledger.db")
    assert 3 <= before < 12
    assert not (killed / "regression-published.csv").exists()
    for folder in (killed, whole):
        reproduce("regression", protocol="published", seeds=2, quick=True, out=folder)
    tables = [
        [
            {key: value for key, value in record.items() if key != "seconds"}
            for record in csv.DictReader((folder / "regression-published.csv").read_text().splitlines())
        ]
        for folder in (killed, whole)
    ]
    assert tables[0] == tables[1]


def test_another_machine_needs_only_the_arrays(tmp_path: Path, raw_data: Path) -> None:
    """The same points as here, and the tables can be made from them alone."""
    device.main(["prepare", "--seeds", "2", str(tmp_path / "arrays.npz")])
    there = tmp_path / "there"
    device.main(["run", "--quick", "--methods", "mfl,berk", str(tmp_path / "arrays.npz"), str(there), "regression"])
    reproduce("regression", protocol="corrected", seeds=2, quick=True, out=tmp_path / "here")

    def figures(path: Path) -> dict[tuple[object, ...], float]:
        rows = [row for row in read_rows([path]) if row.protocol == "corrected"]
        return {(row.input, row.data, row.method, row.strength, row.seed): row.kolmogorov for row in rows}

    assert figures(there / "points.csv") == figures(tmp_path / "here" / "regression-corrected.csv")
    packed = tmp_path / "packed.csv.gz"
    report_main(["--pack", str(packed), str(tmp_path / "docs"), str(there / "points.csv")])
    assert figures(packed) == pytest.approx(figures(there / "points.csv"), abs=1e-5)
    assert "Computed on" in (tmp_path / "docs" / "regression-published.md").read_text()
    assert "0.357 ± 0.008" in (tmp_path / "docs" / "regression-published.md").read_text()


NO_CHILD = """
import os, threading
from functools import partial
from metrifair import parallel
assert parallel._done(partial(pow, 2, 3), parent={parent}) == 8
print([thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()])
"""


@pytest.mark.parametrize(("parent", "watches"), [("os.getppid()", "[True]"), ("os.getpid()", "[]"), ("2**30", "[]")])
def test_only_a_child_ends_with_its_parent(parent: str, watches: str) -> None:
    """A worker that another service has started, as joblib can be set up, is no child: it must live on."""
    code = NO_CHILD.format(parent=parent)
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == watches


def _row(name: str, process: int) -> Row:
    figures = {"accuracy": 1.0, "label_gap": 0.0, "kolmogorov": 0.0, "parity_gap": 0.0}
    return Row("regression", "published", "raw", name, "mfl-nn", 1.0, process, **figures, seconds=0.0, failed=False)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_largest_job_is_begun_first_and_one_result_serves_all_of_its_name(n_jobs: int, tmp_path: Path) -> None:
    def worked(name: str) -> list[Row]:
        with (tmp_path / "begun").open("a") as file:
            file.write(f"{name}\n")
        return [_row(name, os.getpid())]

    names = {"small": 1, "large": 100, "middle": 10}
    listed = [jobs.Job(name, partial(worked, name), size) for name, size in names.items()]
    listed.append(listed[0]._replace(shown={"protocol": "corrected"}))
    done = list(jobs.finished(listed, tmp_path / "ledger.db", n_jobs=n_jobs))
    rows = jobs.all_rows(done)
    assert [(row.data, row.protocol) for row in rows] == [
        ("small", "published"),
        ("large", "published"),
        ("middle", "published"),
        ("small", "corrected"),
    ]
    assert (os.getpid() in {row.seed for row in rows}) == (n_jobs == 1)
    begun = (tmp_path / "begun").read_text().split()
    assert sorted(begun) == sorted(names)
    if n_jobs == 1:  # else the processes may be ready at different times
        assert begun == ["large", "middle", "small"]
    again = jobs.all_rows(jobs.finished(listed, tmp_path / "ledger.db"))
    assert str(again) == str(rows)  # nan, where a figure is not known, differs from itself
    assert (tmp_path / "begun").read_text().split() == begun


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "clasification"}, "did you mean 'classification'"),
        ({"name": "theory", "protocol": "publishd"}, "did you mean 'published'"),
        ({"name": "theory", "seeds": 0}, "seeds must be a whole number"),
        ({"name": "theory", "n_jobs": -1}, "n_jobs must be a whole number"),
    ],
)
def test_wrong_names_are_told(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        reproduce(**given, out=tmp_path)
