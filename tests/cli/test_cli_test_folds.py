"""`train` and `frontier` with test folds: figures and held-out predictions of all rows, and a model of all rows."""

from __future__ import annotations

import json
import re
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
    files = {name: tmp_path / f"{name}{end}" for name, end in (("a", ".json"), ("b", ".csv"), ("c", ".metrifair"))}
    outputs = ("--json", files["a"], "--held-out", files["b"], "--output", files["c"])
    done = call("train", csv, *ASKED, "--test-folds", 3, *outputs)
    assert done.exit_code == 0, done.output
    assert f"Trained on all {N} rows with strength 1. Figures are of all rows, in 3 folds" in done.output
    figures, held_out = json.loads(files["a"].read_text()), pl.read_csv(files["b"])
    assert figures["test_folds"] == 3
    assert figures["rows"]["test"] == len(held_out) == N
    assert figures["unfairness"] == pytest.approx(gap_in(held_out), abs=1e-9)
    right = (held_out["prediction"] == held_out["hired"]).mean()
    assert figures["accuracy"] == pytest.approx(right)
    own = load(files["c"]).predict_proba(pl.read_csv(csv))[:, 1]
    assert np.abs(own - held_out["probability"].to_numpy()).max() > 1e-4  # the model has seen these rows


@pytest.mark.extended
def test_a_threshold_is_chosen_without_each_fold(call: Callable[..., Result], csv: Path, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    done = call("train", csv, *ASKED, "--test-folds", 3, "--choose-threshold", "accuracy", "--json", path)
    assert done.exit_code == 0, done.output
    assert "models that train and choose its threshold without a fold evaluate it." in done.output
    assert 0 < json.loads(path.read_text())["threshold"] < 1


@pytest.mark.extended
def test_frontier_chooses_without_each_fold(call: Callable[..., Result], csv: Path, tmp_path: Path) -> None:
    figures, held_out, model = (tmp_path / name for name in ("f.json", "h.csv", "m.metrifair"))
    page = tmp_path / "page.html"
    outputs = ("--json", figures, "--held-out", held_out, "--output", model, "--html", page)
    strengths = ("--strengths", "0,1", "--max-unfairness", "0.9")
    done = call("frontier", csv, *ASKED, *strengths, "--test-folds", 3, *outputs)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Learned 'hired'")
    assert "Chosen: strength " in done.output
    assert f"The saved model was trained on all {N} rows" in done.output
    found, table = json.loads(figures.read_text()), pl.read_csv(held_out)
    assert len(table) == N
    assert found["chosen"]["unfairness"] == pytest.approx(gap_in(table), abs=1e-9)
    load(model).predict(pl.read_csv(csv))
    assert len(found["fold_choices"]) == 3
    (own,) = [point for point in found["points"] if point["strength"] == found["chosen"]["strength"]]
    shown = f"accuracy {own['accuracy']:.3f}"
    assert f"{shown} (" in done.output.split("Chosen: strength ")[1].split("in cross-validation")[0]
    (content,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    (tile,) = [tile for tile in json.loads(content)["highlights"] if "chosen" in tile["heading"].lower()]
    assert [text for _, text in tile["figures"][:2]] == [f"{own[key]:.3f}" for key in ("accuracy", "unfairness")]


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        ("train", ("--test-folds", 3, "--test", "0.3"), "--test and --test-folds exclude each other"),
        ("train", ("--test-folds", 1), "'--test-folds': 1 is not in the range x>=2"),
        (
            "frontier",
            ("--test-folds", 3, "--certified", "--max-unfairness", "0.9"),
            "--certified needs one split; leave --test-folds out",
        ),
        ("frontier", ("--test-folds", 3, "--strengths", "auto"), "cannot be combined with"),
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
    monkeypatch.setattr("metrifair.tradeoff.frontier._ENOUGH", 200)
    done = call("train", csv, *ASKED)
    assert "in 5 folds" in done.output
    assert "in 5 folds" not in call("train", csv, *ASKED, "--test", "0.25").output
