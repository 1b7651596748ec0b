"""Work that is done once, and again where its sources are others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import metrifair
from experiments import fresh_splits, runs
from experiments.results import ModelResult


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of two files, whose sources are read anew for every work."""
    folder = tmp_path / "metrifair"
    (folder / "report").mkdir(parents=True)
    (folder / "report" / "page.py").write_text("GREEN = 1")
    (folder / "__init__.py").write_text("VERSION = 1")
    monkeypatch.setattr(metrifair, "__file__", str(folder / "__init__.py"))
    yield folder
    runs.sources.cache_clear()


@pytest.mark.parametrize(
    ("changed", "anew"),
    [
        ({"__init__.py": "VERSION = 1"}, False),
        ({"__init__.py": "VERSION = 2"}, True),
        ({"metric.py": ""}, True),
        ({"report/page.py": "GREEN = 2"}, False),  # shows figures, and computes none
        ({"code": "other"}, True),
    ],
)
def test_other_sources_do_their_own_work(
    changed: dict[str, str], anew: bool, library: Path, tmp_path: Path
) -> None:
    """Of the library, or of the experiment; put back, they find what they have done."""

    def value(code: str) -> int:
        runs.sources.cache_clear()
        kept = runs.remembered(
            tmp_path / "ledger.db", "some work", lambda: [{"value": next(done)}], code=code
        )
        return int(kept["records"][0]["value"])

    done = count()
    assert value("own") == value("own") == 0
    for name in changed.keys() - {"code"}:
        (library / name).write_text(changed[name])
    assert value(changed.get("code", "own")) == int(anew)
    (library / "metric.py").unlink(missing_ok=True)
    (library / "__init__.py").write_text("VERSION = 1")
    assert value("own") == 0


def _result(name: str, process: int) -> ModelResult:
    figures = {"accuracy": 1.0, "label_gap": 0.0, "kolmogorov": 0.0, "parity_gap": 0.0}
    return ModelResult(
        "regression", "published", "raw", name, "mfl-nn", 1.0, process, **figures, seconds=0.0
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_largest_run_is_begun_first_and_one_result_serves_all_of_its_name(
    n_jobs: int, tmp_path: Path
) -> None:
    def worked(name: str) -> list[ModelResult]:
        with (tmp_path / "begun").open("a") as file:
            file.write(f"{name}\n")
        return [_result(name, os.getpid())]

    names = {"small": 1, "large": 100, "middle": 10}
    listed = [runs.Run(name, partial(worked, name), size) for name, size in names.items()]
    listed.append(listed[0]._replace(shown={"protocol": "corrected"}))
    done = list(runs.finished(listed, tmp_path / "ledger.db", n_jobs=n_jobs))
    results = runs.all_results(done)
    assert [(one.data, one.protocol) for one in results] == [
        ("small", "published"),
        ("large", "published"),
        ("middle", "published"),
        ("small", "corrected"),
    ]
    assert (os.getpid() in {one.seed for one in results}) == (n_jobs == 1)
    begun = (tmp_path / "begun").read_text().split()
    assert sorted(begun) == sorted(names)
    if n_jobs == 1:  # else the processes may be ready at different times
        assert begun == ["large", "middle", "small"]
    again = runs.all_results(runs.finished(listed, tmp_path / "ledger.db"))
    assert str(again) == str(results)  # nan, where a figure is not known, differs from itself
    assert (tmp_path / "begun").read_text().split() == begun


def test_figures_of_fresh_splits_are_kept_by_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, jobs = count(), [{"split": 400}, {"split": 401}]

    def found(*wanted: dict[str, int]) -> list[int]:
        kept = fresh_splits.once(tmp_path / "kept.jsonl", wanted, lambda split: next(done))
        assert [one["split"] for one in kept] == [one["split"] for one in wanted]
        return [one["found"] for one in kept]

    assert found(*jobs[1:]) == [0]
    assert found(*jobs) == [1, 0]
    monkeypatch.setattr(fresh_splits, "sources", lambda: "others")
    assert found(*jobs) == [2, 3]
    monkeypatch.undo()
    assert found(*jobs) == [1, 0]
