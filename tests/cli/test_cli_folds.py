"""`train` with folds: figures and held-out predictions of all rows, and a model of all rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from scipy.stats import ks_2samp

from metrifair import load
from tests.cli.conftest import N

ASKED = (
    "--label",
    "hired",
    "--group",
    "sex",
    "--model",
    "linear",
    "--ignore",
    "number",
    "--ignore",
    "wage",
    "--ignore",
    "code",
)


def gap_in(held_out: pl.DataFrame) -> float:
    women = held_out["sex"].to_numpy() == "women"
    score = held_out["probability"].to_numpy()
    return float(ks_2samp(score[women], score[~women]).statistic)


@pytest.mark.extended
def test_train_evaluates_every_row_and_keeps_a_model_of_all(
    call: Callable[..., Result], csv: Path, tmp_path: Path
) -> None:
    files = {
        name: tmp_path / f"{name}{end}"
        for name, end in (("a", ".json"), ("b", ".csv"), ("c", ".metrifair"))
    }
    outputs = ("--json", files["a"], "--held-out", files["b"], "--output", files["c"])
    done = call("train", csv, *ASKED, "--folds", 3, *outputs)
    assert done.exit_code == 0, done.output
    assert (
        f"Trained on all {N} rows with strength 1. Figures are of all rows: models that were "
        "trained without each of 3 folds score its rows." in done.output
    )
    figures, held_out = json.loads(files["a"].read_text()), pl.read_csv(files["b"])
    assert figures["folds"] == 3
    assert figures["rows"]["test"] == len(held_out) == N
    assert figures["unfairness"] == pytest.approx(gap_in(held_out), abs=1e-9)
    right = (held_out["prediction"] == held_out["hired"]).mean()
    assert figures["accuracy"] == pytest.approx(right)
    own = load(files["c"]).predict_proba(pl.read_csv(csv))[:, 1]
    # the model has seen these rows
    assert np.abs(own - held_out["probability"].to_numpy()).max() > 1e-4


@pytest.mark.extended
def test_a_threshold_is_chosen_without_each_fold(
    call: Callable[..., Result], csv: Path, tmp_path: Path
) -> None:
    """The decisions of a fold are those at the best threshold of the other folds."""
    figures, held_out, model = (tmp_path / name for name in ("f.json", "h.csv", "m.metrifair"))
    outputs = ("--json", figures, "--held-out", held_out, "--output", model)
    costs = ("--choose-threshold", "cost", "--cost", "0,8;1,0")
    done = call("train", csv, *ASKED, "--folds", 3, *costs, *outputs)
    assert done.exit_code == 0, done.output
    assert "The threshold of a fold is chosen without it." in done.output
    assert f"chosen on all {N} rows by scores out of fold" in done.output
    table, found = pl.read_csv(held_out), json.loads(figures.read_text())
    assert load(model).threshold == found["threshold"]
    selected = table.filter(prediction="yes")["probability"]
    others = table.filter(prediction="no")["probability"]
    assert selected.min() > 0.5  # a wrong yes is dear
    # Each fold has its own threshold: the decisions are not those of one.
    assert others.max() < 1
    wrong = table.filter(pl.col("prediction") != pl.col("hired"))["prediction"]
    cost = ((wrong == "yes").sum() * 8 + (wrong == "no").sum()) / N
    assert found["more"]["expected_cost"] == pytest.approx(cost)


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        ("train", ("--folds", 3, "--test", "0.3"), "--test and --folds exclude each other"),
        ("train", ("--folds", 1), "'--folds': 1 is not in the range x>=2"),
        ("frontier", ("--folds", 1), "'--folds': 1 is not in the range x>=2"),
    ],
)
def test_what_does_not_go_together_is_refused(
    call: Callable[..., Result], csv: Path, command: str, more: tuple[object, ...], words: str
) -> None:
    done = call(command, csv, *ASKED, *more)
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.extended
def test_folds_are_the_default_of_small_files(
    call: Callable[..., Result], csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metrifair.tradeoff.split._ENOUGH", 200)
    done = call("train", csv, *ASKED)
    assert "each of 5 folds" in done.output
    assert "each of 5 folds" not in call("train", csv, *ASKED, "--test", "0.25").output
