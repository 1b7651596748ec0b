"""Fair XGBoost on a Dask cluster of two real processes, against one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from metrifair import FairLGBMClassifier, FairXGBClassifier, FairXGBRegressor, load, unfairness
from metrifair.errors import DataError
from tests.expected_errors import Refusals

pytestmark = pytest.mark.extended

array = pytest.importorskip(
    "dask.array", reason="dask is not installed: nothing was tried on a cluster"
)
distributed = pytest.importorskip(
    "distributed", reason="dask is not installed: nothing was tried on a cluster"
)
frames = pytest.importorskip(
    "dask.dataframe", reason="dask is not installed: nothing was tried on a cluster"
)

RNG = np.random.default_rng(0)
N = 4_000
A = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 4)) + 0.6 * A[:, None]
Y = (X.sum(1) + RNG.normal(size=N) > 1.2).astype(int)
T = X.sum(1) + RNG.normal(size=N)
SETTINGS = {
    "n_estimators": 30,
    "learning_rate": 0.2,
    "n_jobs": 1,
    "random_state": 0,
    "expected_groups": False,
}


def spread(*tables: Any) -> tuple[Any, ...]:
    """Four partitions of each."""
    return tuple(array.from_array(one, chunks=(1_000, -1)[: one.ndim]) for one in tables)


def figures(model: Any, y: Any = Y, x: Any = X) -> tuple[float, float]:
    score = model.predict_proba(x)[:, 1] if hasattr(model, "predict_proba") else model.predict(x)
    right = (
        np.mean((score > 0.5) == y)
        if hasattr(model, "predict_proba")
        else np.corrcoef(score, y)[0, 1]
    )
    return unfairness(y, score, sensitive_features=A, criterion="statistical_parity"), float(right)


def test_two_workers_train_what_one_process_trains(tmp_path: Path, refused: Refusals) -> None:
    cluster = pytest.importorskip("cluster")
    plain = figures(FairXGBClassifier(0.0, **SETTINGS).fit(X, Y))
    with cluster.two_workers(FairXGBClassifier.__module__, "xgboost.dask"):
        x, y, a, t = spread(X, Y, A, T)
        both = FairXGBClassifier(5.0, **SETTINGS).fit(x, y, sensitive_features=a)
        alone = FairXGBClassifier(5.0, **SETTINGS).fit(X, Y, sensitive_features=A)
        assert figures(both) == pytest.approx(figures(alone), abs=0.03)
        assert figures(both)[0] < plain[0] / 3
        score = both.predict_proba(x)
        np.testing.assert_array_equal(score.compute(), both.predict_proba(X))
        np.testing.assert_array_equal(both.predict(x).compute(), both.predict(X))
        both.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(X), both.predict(X))
        without = FairXGBClassifier(0.0, **SETTINGS).fit(x, y)
        assert figures(without) == pytest.approx(plain, abs=0.03)
        # Data frames with text, weights, an early stop, and a row of a group of its own.
        table = pd.DataFrame(X, columns=list("abcd")).assign(
            y=Y, sex=np.where(A == 1, "m", "f"), weight=np.where(A == 1, 1.0, 2.0)
        )
        table.loc[0, "sex"] = "x"
        spread_table = frames.from_pandas(table, npartitions=3)
        features = spread_table[list("abcd")]
        with pytest.warns(UserWarning, match="'x'"):
            stopped = FairXGBClassifier(
                5.0, **{**SETTINGS, "n_estimators": 200}, early_stopping_rounds=3
            ).fit(
                features,
                spread_table["y"],
                sensitive_features=spread_table["sex"],
                sample_weight=spread_table["weight"],
                eval_set=[(features, spread_table["y"])],
                eval_sensitive_features=[spread_table["sex"]],
            )
        assert stopped.left_out_
        judged = stopped.evals_result_["validation_0"]["penalized_risk"]
        assert len(judged) <= 200
        assert int(np.argmin(judged)) == stopped.best_iteration
        assert figures(stopped, x=table[list("abcd")])[0] < plain[0] / 2
        numbers = FairXGBRegressor(20.0, **SETTINGS).fit(x, t, sensitive_features=a)
        reference = FairXGBRegressor(20.0, **SETTINGS).fit(X, T, sensitive_features=A)
        assert figures(numbers, T) == pytest.approx(figures(reference, T), abs=0.05)
        for wrong, message in (
            (
                {"sensitive_features": A},
                "sensitive_features must be a Dask collection, as X is, got a ndarray",
            ),
            (
                {"sensitive_features": a.rechunk(2_000)},
                "sensitive_features has 2 partitions, and X 4; repartition one",
            ),
            ({}, "sensitive_features is missing"),
            (
                {"sensitive_features": a, "xgb_model": both},
                "xgb_model is not supported for Dask collections",
            ),
        ):
            with pytest.raises(DataError, match=message):
                FairXGBClassifier(5.0, **SETTINGS).fit(x, y, **wrong)
        with refused(DataError):
            FairXGBClassifier(5.0, **SETTINGS).fit(x, y + 1, sensitive_features=a)


def test_a_partition_whose_weights_are_all_0_is_left_out(refused: Refusals) -> None:
    weight = np.repeat([0.0, 1.0, 1.0, 1.0], 1_000)
    x, y, a, w = spread(X, Y, A, weight)
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ):
        model = FairXGBClassifier(5.0, **SETTINGS).fit(
            x,
            y,
            sensitive_features=a,
            sample_weight=w,
            eval_set=[(x, y)],
            eval_sensitive_features=[a],
            sample_weight_eval_set=[w],
        )
        without = FairXGBClassifier(5.0, **SETTINGS).fit(
            x[1_000:], y[1_000:], sensitive_features=a[1_000:]
        )
        with refused(DataError):
            FairXGBClassifier(5.0, **SETTINGS).fit(x, y, sensitive_features=a, sample_weight=0 * w)
    assert figures(model) == pytest.approx(figures(without), abs=0.02)
    judged = model.evals_result_["validation_0"]["penalized_risk"]
    assert np.isfinite(judged).all()


def test_expected_groups_are_refused(refused: Refusals) -> None:
    x, y, a = spread(X, Y, A)
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ):
        for model in (FairXGBClassifier(5.0), FairXGBRegressor(5.0)):
            with refused(DataError):
                model.fit(x, y, sensitive_features=a)


def test_without_a_cluster_the_error_says_so(refused: Refusals) -> None:
    x, y, a = spread(X, Y, A)
    with refused(DataError):
        FairXGBClassifier(5.0).fit(x, y, sensitive_features=a)


def test_lightgbm_names_xgboost(refused: Refusals) -> None:
    x, y, a = spread(X, Y, A)
    with refused(DataError):
        FairLGBMClassifier(5.0).fit(x, y, sensitive_features=a)


@pytest.mark.slow
def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "dask_cluster.py"
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    plain, *_ = map(
        float, re.findall(r"unfairness \[([\d.]+), ([\d.]+), ([\d.]+)\]", done.stdout)[0]
    )
    spread_out = float(re.findall(r"rows spread: unfairness ([\d.]+)", done.stdout)[0])
    assert "3 models" in done.stdout
    assert spread_out < 0.8 * plain


def test_a_worker_that_is_killed_is_named_without_a_trace_of_c() -> None:
    """In a process of its own: XGBoost's tracker goes on waiting for the worker, in a thread."""
    command = [sys.executable, "-m", "tests.boosting.killed_worker"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=root, timeout=300, check=False
    )
    assert "both errors are as they should be" in done.stdout, done.stderr[-2_000:]
