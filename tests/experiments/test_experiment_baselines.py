"""Solvers that stop short: noted in the results, counted on the page; and the ridge that keeps
Zafar from it.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_experiment_results import result

from experiments import baselines
from experiments.comparisons import comparison_page
from experiments.data import Splits
from experiments.results import ModelResult, from_record, read_csv, write_csv
from experiments.settings import CORRECTED, Effort, cases

PACKED = Path(__file__).resolve().parents[2] / "docs" / "results" / "raw"
QUICK = Effort.of(1, quick=True)


def case_of(name: str, inputs: str) -> Any:
    (found,) = [
        case
        for case in cases("classification", CORRECTED, QUICK)
        if (case.name, case.input) == (name, inputs)
    ]
    return found


def noted(work: Any) -> list[ModelResult]:
    one = baselines.Baseline("zafar", lambda *_: work())
    (run,) = baselines.baseline_runs(case_of("drug", "raw"), [one], lambda *_: splits(), QUICK)
    return run.work()


def warned(text: str, category: type[Warning]) -> list[ModelResult]:
    warnings.warn(text, category, stacklevel=2)
    return [result(1.0, 0.5, 0.5), result(2.0, 0.5, 0.5, unconverged=0.0)]


def test_results_say_whether_a_solver_stopped_short_unless_the_method_knows_better() -> None:
    assert [one.unconverged for one in noted(lambda: warned("stopped", ConvergenceWarning))] == [
        1.0,
        0.0,
    ]
    assert [one.unconverged for one in noted(lambda: [result(1.0, 0.5, 0.5)])] == [0.0]


def test_only_strengths_above_1_pass_in_silence() -> None:
    assert (
        noted(lambda: warned("strength 100 is above 1: the cross-entropy", UserWarning))[
            0
        ].unconverged
        == 0.0
    )
    with pytest.warns(UserWarning, match="the targets are far apart"):
        noted(lambda: warned("the targets are far apart", UserWarning))


def splits() -> Splits:
    """A rare column, whose one row has label 0: moved far enough it meets any bound, at no loss."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 600)
    x = np.c_[rng.normal(size=(600, 2)) + a[:, None], np.zeros(600), a]
    y = (x[:, 0] + rng.normal(size=600) > 0.5).astype(float)
    x[np.flatnonzero((a == 1) & (y == 0))[0], 2] = 1
    rows = np.arange(600)[None]
    return Splits(x, y, a, rows[:, :500], rows[:, 500:])


def test_zafar_has_a_ridge_on_one_hot_adult_only() -> None:
    """Without it the bound is met by one row far away, and the others stay as unfair as they
    were.
    """
    plain, ridged = (
        baselines._zafar(case_of(name, "standard"), splits(), QUICK) for name in ("compas", "adult")
    )
    assert [one.unconverged for one in plain][1:] == [1.0] * 3
    assert [one.unconverged for one in ridged] == [0.0] * 4
    assert plain[-1].label_gap > plain[0].label_gap - 0.05
    assert ridged[-1].label_gap < ridged[0].label_gap - 0.2


def test_results_from_before_this_was_noted_can_be_read(tmp_path: Path) -> None:
    old = {
        name: value
        for name, value in asdict(result(1.0, 0.5, 0.5)).items()
        if name != "unconverged"
    }
    assert isnan(from_record(old).unconverged)
    write_csv(tmp_path / "points.csv", [result(1.0, 0.5, 0.5, unconverged=1.0)])
    assert [one.unconverged for one in read_csv([tmp_path / "points.csv"])] == [1.0]
    kept = read_csv(sorted(PACKED.glob("*.csv.gz")))
    assert len(kept) > 20_000


def test_the_page_counts_them() -> None:
    rows = [
        result(1.0, 0.8, 0.5, method="sinkhorn", unconverged=1.0),
        result(2.0, 0.7, 0.4, method="sinkhorn", unconverged=0.0),
        result(3.0, 0.6, 0.3, method="sinkhorn", unconverged=nan),
        result(1.0, 0.8, 0.5, method="zafar", unconverged=0.0),
        result(1.0, 0.8, 0.5),
    ]
    text = "A solver stopped short of its tolerance, in the fit or in one of its stack. "
    for known, sentence in ((rows, text + "Oneto (Sinkhorn): 1 of 2 models."), (rows[1:], "")):
        page = comparison_page("classification", "published", known).markdown(
            "classification-published"
        )
        assert sentence in page
        assert ("solver" in page) == bool(sentence)
