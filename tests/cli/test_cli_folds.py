"""`train` with folds: figures and held-out predictions of all rows, and a model of all rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result

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


def test_train_evaluates_every_row_and_keeps_a_model_of_all(
    call: Callable[..., Result], csv: Path, tmp_path: Path
) -> None:
    figures, written, model = (tmp_path / name for name in ("a.json", "b.csv", "c.metrifair"))
    outputs = ("--json", figures, "--held-out", written, "--output", model)
    done = call("train", csv, *ASKED, "--folds", 3, *outputs)
    assert done.exit_code == 0, done.output
    assert f"3-fold cross-validation of {N} rows." in done.output
    found, held_out = json.loads(figures.read_text()), pl.read_csv(written)
    assert found["folds"] == 3
    assert len(held_out) == N
    (point,) = found["points"]
    right = (held_out["prediction"] == held_out["hired"]).mean()
    assert point["accuracy"] == pytest.approx(right)
    own = load(model).predict_proba(pl.read_csv(csv))[:, 1]
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
    assert "chosen by scores out of fold, for each fold without it" in done.output
    table, found = pl.read_csv(held_out), json.loads(figures.read_text())
    assert load(model).threshold == found["threshold"]
    selected = table.filter(prediction="yes")["probability"]
    others = table.filter(prediction="no")["probability"]
    assert selected.min() > 0.5  # a wrong yes is dear
    # Each fold has its own threshold: the decisions are not those of one.
    assert others.max() < 1
    wrong = table.filter(pl.col("prediction") != pl.col("hired"))["prediction"]
    cost = ((wrong == "yes").sum() * 8 + (wrong == "no").sum()) / N
    (point,) = found["points"]
    assert point["more"]["expected_cost"] == pytest.approx(cost)


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
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
