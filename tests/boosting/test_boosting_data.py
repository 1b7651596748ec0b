"""On real data: more strength means less unfairness, up to the largest; and what Adult was
promised to reach.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from experiments import boosting, runs
from experiments.page import tradeoff_chart
from experiments.results import read_csv
from experiments.settings import CORRECTED, PUBLISHED, Effort
from metrifair import (
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    datasets,
    unfairness,
)
from metrifair.errors import MissingExtra
from tests.raw_data import FOLDER, require_raw_data

pytestmark = pytest.mark.extended

SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "adult": ("adult", {}),
    "compas": ("compas", {}),
    "communities": ("communities", {}),
    "communities regression": ("communities", {"task": "regression"}),
}
LGBM: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "random_state": 0}
XGB: dict[str, Any] = {"n_jobs": 1, "learning_rate": 0.1, "random_state": 0}
KINDS = {
    ("lgbm", False): (FairLGBMClassifier, LGBM),
    ("lgbm", True): (FairLGBMRegressor, LGBM),
    ("xgb", False): (FairXGBClassifier, XGB),
    ("xgb", True): (FairXGBRegressor, XGB),
}


class Figures(NamedTuple):
    """Of one model: in training the energy distance, on test data the score and the Kolmogorov
    distance.
    """

    trained: float
    score: float
    unfairness: float


@cache
def data_of(title: str) -> Any:
    folder = require_raw_data()
    try:
        return datasets.load(SETS[title][0], data_home=folder, **SETS[title][1])
    except MissingExtra as missing:
        pytest.skip(str(missing))


def figures(
    title: str, booster: str, strength: float, *, most: int | None = None, **settings: Any
) -> Figures:
    data = data_of(title)
    X, y, a = (np.asarray(part) for part in (data.X, data.y, data.group_codes))
    train, test = data.split(0)
    train = train[:most]
    regression = data.task == "regression"
    kind, own = KINDS[booster, regression]
    model = kind(strength, **{**own, **settings}).fit(
        X[train], y[train], sensitive_features=a[train]
    )
    spread = y[train].std() if regression else 1.0

    def gap(rows: Any, metric: str) -> float:
        score = (
            model.predict(X[rows]) / spread if regression else model.predict_proba(X[rows])[:, 1]
        )
        return unfairness(None, score, sensitive_features=a[rows], metric=metric)

    return Figures(gap(train, "energy"), model.score(X[test], y[test]), gap(test, "kolmogorov"))


@pytest.mark.pairwise
@pytest.mark.parametrize("booster", ["lgbm", "xgb"])
@pytest.mark.parametrize("title", ["compas", "communities regression"])
def test_more_strength_means_less_unfairness(title: str, booster: str) -> None:
    found = [
        figures(title, booster, s, most=2_000, n_estimators=40).trained
        for s in (0.0, 0.3, 3.0, 30.0)
    ]
    assert all(b < 0.7 * a for a, b in pairwise(found))


STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0)


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize("booster", ["lgbm", "xgb"])
@pytest.mark.parametrize("learning_rate", [0.05, 0.1])
@pytest.mark.parametrize("title", SETS)
def test_unfairness_falls_along_all_strengths(
    title: str, booster: str, learning_rate: float
) -> None:
    """Within what two samples of one distribution differ by: three times its standard deviation
    on test rows.
    """
    pace = {
        "learning_rate": learning_rate,
        "n_estimators": round(10 / learning_rate),
    }  # as far by small steps as by large
    found = [figures(title, booster, s, **pace) for s in STRENGTHS]
    data = data_of(title)
    groups = np.asarray(data.group_codes)[data.split(0)[1]]
    noise = 0.26 * np.sqrt(1 / (groups == 0).sum() + 1 / (groups == 1).sum())
    for place, now in enumerate(found):
        assert now.unfairness <= min(before.unfairness for before in found[: place + 1]) + 3 * noise
    assert found[-1].unfairness < 0.5 * found[0].unfairness
    assert all(one.trained >= 0 for one in found)
    assert found[-1].trained < 0.01 * found[0].trained


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize("booster", ["lgbm", "xgb"])
def test_adult_reaches_what_was_promised(booster: str) -> None:
    slow = {"learning_rate": 0.05, "n_estimators": 200}
    found = [figures("adult", booster, strength, **slow) for strength in (3.5, 4.0, 5.0, 10.0)]
    assert max(one.score for one in found if one.unfairness <= 0.04) >= 0.855
    assert max(one.score for one in found if one.unfairness <= 0.025) >= 0.845


def test_the_committed_points_meet_the_targets_that_the_docs_name() -> None:
    """Every point of the table of targets in the boosting notes is one of boosting.csv, and no
    point is left out.
    """
    docs = Path(__file__).resolve().parents[2] / "docs"
    with (docs / "results" / "boosting" / "boosting.csv").open() as file:
        adult = [row for row in csv.DictReader(file) if row["data"] == "adult"]
    text = (docs / "results" / "boosting-notes.md").read_text()
    methods = [
        library + pace
        for pace in ("", ", slower", ", longer")
        for library in ("LightGBM", "XGBoost")
    ]
    for method in [*methods, *(f"{method}, blind" for method in methods)]:
        cells = []
        for accuracy, gap in ((0.855, 0.04), (0.845, 0.025)):
            meeting = [
                f"{float(row['accuracy']):.4f} / {float(row['kolmogorov']):.4f} "
                f"({float(row['strength']):,g})"
                for row in adult
                if row["method"] == method
                and float(row["accuracy"]) >= accuracy
                and float(row["kolmogorov"]) <= gap
            ]
            cells.append(", ".join(meeting) or "none")
        assert f"| {method} | {cells[0]} | {cells[1]} |" in text


SKETCH = Effort.of(2, quick=True)
SWEEPS = 2 * 2 * 4  # data sets, seeds, methods


def points_of(folder: Path) -> list[Any]:
    """The points without their times, and without what is not measured here."""
    none = dict.fromkeys(
        ("seconds", "parity_gap", "label_gap", "unconverged", "dependence", "worst_cut"), 0.0
    )
    rows = read_csv([folder / "boosting.csv"])
    return [replace(row, training=np.nan_to_num(row.training), **none) for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the experiment, run without interruption."""
    data_of("compas")
    folder = tmp_path_factory.mktemp("boosting")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METRIFAIR_DATA", str(FOLDER))
        boosting.run(CORRECTED, SKETCH, folder)
    return folder


def test_the_experiment_writes_points_tables_and_figure(whole: Path) -> None:
    rows = read_csv([whole / "boosting.csv"])
    assert Counter((row.data, row.method, row.seed) for row in rows) == {
        (data, method, seed): 3  # strengths
        for data, own in (
            ("compas", "LightGBM, blind, own groups"),
            ("student-math", "LightGBM, own groups"),
        )
        for method in ("network", "LightGBM", "XGBoost", own)
        for seed in (0, 1)
    }
    assert all(row.seconds > 0 for row in rows)
    text = (whole / "boosting.md").read_text()
    for line in (
        "both protocols mean the same",
        "Seeds: 2.",
        "A sketch",
        "| compas | LightGBM |",
        "(boosting-1.svg)",
    ):
        assert line in text
    assert "<svg" in (whole / "boosting-1.svg").read_text()
    assert len(boosting.means_table(rows)) == 1 + 2 * 4
    titles = [axes.get_title() for axes in tradeoff_chart(rows, on="scores").axes]
    assert titles == ["COMPAS", "Student Math"]


def test_interrupted_work_is_done_once_and_serves_both_protocols(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    timed, most = runs._timed, 5

    def interrupted(name: str, work: Any) -> Any:
        if len(done) == most:
            raise KeyboardInterrupt
        done.append(name)
        return timed(name, work)

    monkeypatch.setenv("METRIFAIR_DATA", str(FOLDER))
    monkeypatch.setattr(runs, "_timed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        boosting.run(CORRECTED, SKETCH, tmp_path)
    assert not (tmp_path / "boosting.csv").exists()
    most = SWEEPS
    boosting.run(PUBLISHED, SKETCH, tmp_path)
    assert len(done) == len(set(done)) == SWEEPS
    assert points_of(tmp_path) == points_of(whole)
