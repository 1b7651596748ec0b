"""LightGBM on few rows: its threads would wait for each other longer than they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

lightgbm = pytest.importorskip("lightgbm")

from metrifair import FairLGBMClassifier  # noqa: E402

GENERATOR = np.random.default_rng(0)
A = GENERATOR.integers(2, size=12_000)
X = GENERATOR.normal(size=(12_000, 2)) + A[:, None]
Y = (X.sum(1) > 1).astype(int)


@pytest.mark.parametrize(
    ("rows", "given", "threads"),
    [
        (400, {}, {1}),
        (12_000, {}, {lightgbm.LGBMModel()._process_n_jobs(None)}),
        (400, {"n_jobs": 2}, {2}),
        (400, {"num_threads": 2}, {2}),
    ],
)
def test_few_rows_take_one_thread_unless_stated(
    monkeypatch: pytest.MonkeyPatch, rows: int, given: dict[str, int], threads: set[int]
) -> None:
    """Threads of the penalized booster, as LightGBM's own training takes them."""
    taken: list[int] = []
    train = lightgbm.sklearn.train

    def spied(params: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        if callable(params["objective"]):
            taken.append(params["num_threads"])
        return train({**params, "num_threads": 1}, *arguments, **options)

    monkeypatch.setattr(lightgbm.sklearn, "train", spied)
    model = FairLGBMClassifier(1.0, n_estimators=2, expected_groups=False, verbose=-1, **given)
    model.fit(X[:rows], Y[:rows], sensitive_features=A[:rows])
    assert set(taken) == threads
