"""Every experiment in its quick form, end to end; killed and resumed; arrays on another machine."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from experiments import NAMES, remote, reproduce, runs
from experiments.online import KINDS, REGRESSION_KINDS
from experiments.printed import METHODS as METHOD_NAMES
from experiments.results import ModelResult, read_csv
from experiments.settings import DATA
from metrifair.errors import DataError

COMPARED = ("regression", "classification", "equal-opportunity", "preprocessing", "postprocessing")
METHODS = {
    "regression": {"mfl-nn", "mfl-linear", "berk-individual", "berk-group"},
    "classification": {"mfl-nn", "mfl-linear", "fair-kde", "sinkhorn", "zafar"},
    "equal-opportunity": {"mfl-nn", "mfl-linear", "fair-kde", "sinkhorn", "zafar"},
    "preprocessing": {"mfl-nn", "label-bias", "fairbatch", "massaging", "reweighing"},
    "postprocessing": {"mfl-nn", "xian"},
}


# Mean accuracy (or R2) and Kolmogorov distance over the seeds and strengths of a sketch: by
# experiment, input and data set, the methods in order. They are far from what whole runs reach, but
# no part of a run can change without them.
MEANS: dict[str, dict[tuple[str, str], dict[str, tuple[float, float]]]] = {
    "regression": {
        ("raw", "communities-regression"): {
            "mfl-linear": (-0.135, 0.073), "mfl-nn": (0.010, 0.131),
            "berk-individual": (0.211, 0.426), "berk-group": (0.416, 0.275),
        },
        ("standard", "student-portuguese"): {
            "mfl-linear": (0.803, 0.142), "mfl-nn": (0.304, 0.156),
            "berk-individual": (0.452, 0.187), "berk-group": (0.853, 0.194),
        },
    },
    "classification": {
        ("raw", "drug"): {
            "mfl-linear": (0.586, 0.129), "mfl-nn": (0.764, 0.128), "zafar": (0.693, 0.173),
            "fair-kde": (0.762, 0.117), "sinkhorn": (0.780, 0.093),
        },
        ("raw", "communities"): {
            "mfl-linear": (0.631, 0.420), "mfl-nn": (0.646, 0.242), "zafar": (0.799, 0.348),
            "fair-kde": (0.646, 0.294), "sinkhorn": (0.624, 0.323),
        },
        ("raw", "adult"): {"mfl-linear": (0.632, 0.099), "mfl-nn": (0.440, 0.149), "zafar": (0.806, 0.212)},
    },
    "equal-opportunity": {
        ("raw", "communities"): {
            "mfl-linear": (0.568, 0.451), "mfl-nn": (0.656, 0.167), "zafar": (0.799, 0.264),
            "fair-kde": (0.646, 0.271), "sinkhorn": (0.610, 0.178),
        },
        ("raw", "compas"): {"mfl-linear": (0.509, 0.357), "mfl-nn": (0.502, 0.325), "sinkhorn": (0.536, 0.253)},
    },
    "preprocessing": {
        ("raw", "drug"): {"label-bias": (0.773, 0.130), "fairbatch": (0.774, 0.126), "massaging": (0.775, 0.129)},
        ("raw", "communities"): {
            "mfl-nn": (0.646, 0.242), "label-bias": (0.645, 0.347), "fairbatch": (0.645, 0.357),
            "massaging": (0.645, 0.242), "reweighing": (0.645, 0.244),
        },
    },
    "postprocessing": {
        ("raw", "communities"): {"mfl-nn": (0.645, 0.212), "xian": (0.645, 0.000)},
        ("standard", "communities"): {"mfl-nn": (0.646, 0.229), "xian": (0.749, 0.163)},
        ("standard", "adult"): {"mfl-nn": (0.763, 0.213), "xian": (0.767, 0.041)},
    },
    "boosting": {
        ("raw", "compas"): {"network": (0.637, 0.195), "LightGBM": (0.654, 0.190), "XGBoost": (0.639, 0.182)},
        ("raw", "student-math"): {"network": (0.643, 0.169), "LightGBM": (0.810, 0.193), "XGBoost": (0.824, 0.195)},
    },
}  # fmt: skip


def check_means(name: str, results: list[ModelResult]) -> None:
    for (inputs, data), methods in MEANS[name].items():
        for method, (accuracy, kolmogorov) in methods.items():
            own = [
                one
                for one in results
                if (one.input, one.data, one.method) == (inputs, data, method)
            ]
            assert fmean(one.accuracy for one in own) == pytest.approx(accuracy, abs=0.03), (
                data,
                method,
            )
            assert fmean(one.kolmogorov for one in own) == pytest.approx(kolmogorov, abs=0.03), (
                data,
                method,
            )


def plain_area(results: list[ModelResult], *, published: bool) -> float:
    """The area of one seed's models, by a sum over a fine grid or along the lines between all
    points.
    """
    gaps = [
        one.kolmogorov if published is False or isnan(one.label_gap) else one.label_gap
        for one in results
    ]
    heights = [max(one.accuracy, 0.0) for one in results]
    if not published:
        grid = (np.arange(20_000) + 0.5) / 20_000
        best = np.array(
            [
                max((h for h, gap in zip(heights, gaps, strict=True) if gap <= t), default=0.0)
                for t in grid
            ]
        )
        return float(best.mean())
    points = sorted(zip(gaps, range(len(gaps)), heights, strict=True))
    line = [(points[0][0], 0.0), *((gap, height) for gap, _, height in points), (1.0, max(heights))]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(line))


def check_areas(text: str, protocol: str, results: list[ModelResult]) -> None:
    """Of one data set: what the table says is what the points have."""
    heading, _, *lines = (
        [part.strip() for part in x.strip("|").split("|")]
        for x in text.splitlines()
        if x[:1] == "|"
    )
    column = heading.index("ours" if protocol == "published" else "area, scores")
    title = {one.data: DATA[one.data].title for one in results}
    data = "communities-regression" if "communities-regression" in title else "communities"
    for method in ("mfl-nn", "berk-group" if data == "communities-regression" else "mfl-linear"):
        own = [one for one in results if (one.input, one.data, one.method) == ("raw", data, method)]
        if not own:
            continue
        areas = [
            plain_area([one for one in own if one.seed == seed], published=protocol == "published")
            for seed in (0, 1)
        ]
        (line,) = [
            line
            for line in lines
            if line[0] == "CC"
            and METHOD_NAMES[method] in line
            and line[1] in (METHOD_NAMES[method], "raw")
        ]
        assert float(line[column].split()[0]) == pytest.approx(fmean(areas), abs=6e-4)


def check_streams(name: str, records: list[dict[str, str]]) -> None:
    if name == "online-regression":
        before = {
            (size, kind): fmean(float(one["objective"]) for one in part)
            for size in ("4", "50")
            for kind in REGRESSION_KINDS
            for part in [
                [r for r in records if (r["size"], r["kind"], r["seen"]) == (size, kind, "200")]
            ]
        }
        unbiased, covering, fixed = REGRESSION_KINDS
        # batches of 50 cover at once: fixed or not, they are the same
        assert before["50", fixed] == pytest.approx(before["50", covering], rel=1e-6)
        assert before["50", unbiased] == pytest.approx(before["50", fixed], rel=0.05)
        assert before["4", unbiased] < 0.5 * before["50", unbiased]  # twelve times the steps
        ends = Counter((one["size"], one["kind"]) for one in records if one["seen"] == "400")
        # all, at the very end
        assert ends == {(size, kind): 2 for size in ("4", "50") for kind in REGRESSION_KINDS}
        return
    found = Counter((one["size"], one["kind"]) for one in records)
    assert found == {(size, kind): 2 for size in ("16", "512") for kind in KINDS}
    by = {(one["size"], one["kind"], one["replication"]): one for one in records}
    for kind, accuracy, kolmogorov in (
        ("no penalty", 0.784, 0.161),
        ("biased", 0.771, 0.154),
        ("unbiased", 0.778, 0.123),
    ):
        own = [by["16", kind, at] for at in ("0", "1")]
        assert fmean(float(one["accuracy"]) for one in own) == pytest.approx(accuracy, abs=0.03)
        assert fmean(float(one["kolmogorov"]) for one in own) == pytest.approx(kolmogorov, abs=0.03)


@pytest.fixture(scope="module")
def sketch(raw_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The folder of an experiment in its quick form, which is run when it is first asked for."""

    @cache
    def folder(name: str, protocol: str) -> Path:
        out = tmp_path_factory.mktemp(f"{name}-{protocol}")
        reproduce(name, protocol=protocol, seeds=2, quick=True, out=out)
        return out

    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_from_data_to_page(name: str, sketch: Callable[[str, str], Path]) -> None:
    protocol = (
        "published"
        if name in ("classification", "equal-opportunity", "preprocessing")
        else "corrected"
    )
    out = sketch(name, protocol)
    # which no protocol changes
    title = name if name in ("boosting", "continuous") else f"{name}-{protocol}"
    with (out / f"{title}.csv").open() as file:
        records = list(csv.DictReader(file))
    assert records
    assert not any(
        "nan" in (record.get("accuracy", ""), record.get("objective", "")) for record in records
    )
    page = (out / f"{title}.html").read_text()
    assert "default-src 'none'; script-src 'sha256-" in page
    assert 'src="http' not in page
    assert "<svg" in (out / f"{title}-1.svg").read_text()
    text = (out / f"{title}.md").read_text()
    assert f"({title}-1.svg)" in text
    if name in MEANS:
        results = read_csv([out / f"{title}.csv"])
        check_means(name, results)
    if name.startswith("online"):
        check_streams(name, records)
    if name == "convergence":
        norms = {
            (unbiased, steps): fmean(
                float(one["norm"])
                for one in records
                if (one["unbiased"], one["steps"]) == (unbiased, steps)
            )
            for unbiased in ("True", "False")
            for steps in ("16", "128")
        }
        assert norms["True", "128"] == pytest.approx(0.690, abs=0.01)  # as docs/results have it
        assert norms["False", "128"] == pytest.approx(2.042, abs=0.02)
    if name == "theory":
        first = [
            one for one in records if one["figure"] == "example 1" and one["what"] == "best fair"
        ]
        assert [float(one["value"]) for one in first] == pytest.approx(
            [(1 - float(one["x"]) ** 2) / 12 for one in first]
        )
    if name in COMPARED:
        check_areas(text, protocol, results)
        assert {record["method"].removesuffix("-decay") for record in records} == METHODS[name]
        assert {record["seed"] for record in records} == {"0", "1"}
        ours = Counter(
            (one["input"], one["data"], one["seed"]) for one in records if one["method"] == "mfl-nn"
        )
        assert set(ours.values()) == {4}  # strengths of a sketch
        assert "MFL: the paper's method" in text
        assert text.splitlines()[2].startswith("**A sketch")
        assert 'class="alarm">A sketch' in page
        assert not any("**" in line for line in text.splitlines() if line.startswith("|"))


def test_finished_work_is_not_done_again(
    sketch: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sketch("regression", "published"), tmp_path, dirs_exist_ok=True)
    first = (tmp_path / "regression-published.csv").read_bytes()

    def refuse(*_: object) -> Any:
        raise AssertionError("this was done before")

    monkeypatch.setattr(runs, "_timed", refuse)
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
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_killed_and_resumed_gives_the_same_table(
    n_jobs: int, tmp_path: Path, raw_data: Path, sketch: Callable[[str, str], Path]
) -> None:
    code = (
        "from pathlib import Path; import sys; from experiments import reproduce; "
        "reproduce('regression', protocol='published', seeds=2, quick=True, out=Path(sys.argv[1]), "
        f"n_jobs={n_jobs})"
    )
    killed, whole = tmp_path / "killed", sketch("regression", "published")
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
    reproduce("regression", protocol="published", seeds=2, quick=True, out=killed)
    tables = [
        [
            {key: value for key, value in record.items() if key != "seconds"}
            for record in csv.DictReader(
                (folder / "regression-published.csv").read_text().splitlines()
            )
        ]
        for folder in (killed, whole)
    ]
    assert tables[0] == tables[1]


def test_another_machine_needs_only_the_arrays(
    tmp_path: Path, sketch: Callable[[str, str], Path]
) -> None:
    """The same points as here, and the tables can be made from them alone."""
    remote.main(["prepare", "--seeds", "2", str(tmp_path / "arrays.npz")])
    there = tmp_path / "there"
    remote.main(
        [
            "run",
            "--quick",
            "--methods",
            "mfl,berk",
            str(tmp_path / "arrays.npz"),
            str(there),
            "regression",
        ]
    )
    here = sketch("regression", "corrected")

    def figures(path: Path) -> dict[tuple[object, ...], float]:
        results = [one for one in read_csv([path]) if one.protocol == "corrected"]
        return {
            (one.input, one.data, one.method, one.strength, one.seed): one.kolmogorov
            for one in results
        }

    assert figures(there / "points.csv") == figures(here / "regression-corrected.csv")
    packed = tmp_path / "packed.csv.gz"
    remote.main(
        ["report", "--pack", str(packed), str(tmp_path / "docs"), str(there / "points.csv")]
    )
    assert figures(packed) == pytest.approx(figures(there / "points.csv"), abs=1e-5)
    assert "Computed on" in (tmp_path / "docs" / "regression-published.md").read_text()
    assert "0.357 ± 0.008" in (tmp_path / "docs" / "regression-published.md").read_text()


NO_CHILD = """
import os, threading
from functools import partial
from metrifair.support import parallel
assert parallel._run_task("", partial(pow, 2), 5, 3, parent={parent}) == (5, 8)
print([thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()])
"""


@pytest.mark.parametrize(
    ("parent", "watches"), [("os.getppid()", "[True]"), ("os.getpid()", "[]"), ("2**30", "[]")]
)
def test_only_a_child_ends_with_its_parent(parent: str, watches: str) -> None:
    """A worker that another service has started, as joblib can be set up, is no child: it must
    live on.
    """
    code = NO_CHILD.format(parent=parent)
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert outcome.stdout.strip() == watches


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "clasification"}, "did you mean 'classification'"),
        ({"name": "theory", "protocol": "publishd"}, "did you mean 'published'"),
        ({"name": "theory", "seeds": 0}, "seeds must be an integer"),
        ({"name": "theory", "n_jobs": -1}, "n_jobs must be an integer"),
    ],
)
def test_wrong_names_are_told(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        reproduce(**given, out=tmp_path)
