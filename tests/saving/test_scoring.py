"""Files of linear models, networks and boosters are read and predict without PyTorch and
scikit-learn.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import (
    FairClassifier,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    TableEncoder,
    ThresholdPostprocessor,
    load,
)
from metrifair.errors import ModelFileError
from tests.seams.estimators import TableModel
from tests.seams.saving import read, table_scorer

GENERATOR = np.random.default_rng(0)
ROWS = 240
SEX = GENERATOR.choice(["f", "m"], ROWS)
TABLE = pl.DataFrame(
    {
        "size": [
            None if GENERATOR.random() < 0.1 else GENERATOR.normal(50, 20) for _ in range(ROWS)
        ],
        "town": GENERATOR.choice(["A", "B", "C"], ROWS),
        "new": GENERATOR.random(ROWS) < 0.5,
    }
)
NUMBER = (
    TABLE["size"].fill_null(50.0).to_numpy() + 30 * (SEX == "m") + GENERATOR.normal(0, 10, ROWS)
)
TWO, THREE = (NUMBER > 60).astype(int), np.digitize(NUMBER, [45, 75])
WORDS = np.array(["no", "yes"])[TWO]
FEW_TREES: dict[str, Any] = {"n_estimators": 8, "random_state": 0, "n_jobs": 1}
MODELS: dict[str, tuple[Any, Any, float | None]] = {  # and the label, and a threshold
    "linear": (FairClassifier(1.0, model="linear", random_state=0), WORDS, None),
    "linear, first class positive": (
        FairClassifier(0.0, model="linear", pos_label="no", random_state=0),
        WORDS,
        0.3,
    ),
    "linear, three classes": (FairClassifier(0.5, model="linear", random_state=0), THREE, None),
    "linear, number": (FairRegressor(0.5, model="linear", random_state=0), NUMBER, None),
    "network": (
        FairClassifier(0.5, hidden=(5, 3), epochs=3, random_state=0, model="mlp"),
        TWO,
        0.6,
    ),
    "LightGBM": (FairLGBMClassifier(0.5, **FEW_TREES, verbose=-1), WORDS, None),
    "LightGBM, three classes": (FairLGBMClassifier(0.0, **FEW_TREES, verbose=-1), THREE, None),
    "LightGBM, number": (FairLGBMRegressor(0.5, **FEW_TREES, verbose=-1), NUMBER, None),
    "XGBoost": (FairXGBClassifier(0.5, **FEW_TREES), TWO, 0.4),
    "XGBoost, three classes": (FairXGBClassifier(0.0, **FEW_TREES), THREE, None),
    "XGBoost, number": (FairXGBRegressor(0.5, **FEW_TREES), NUMBER, None),
}


def saved(name: str, folder: Path) -> Path:
    """The file of a fitted model of tables."""
    estimator, y, threshold = MODELS[name]
    encoder = TableEncoder().fit(TABLE)
    estimator.fit(encoder.transform(TABLE), y, sensitive_features=SEX)
    path = folder / "model.metrifair"
    TableModel(encoder, estimator, "y", ("sex",), (), threshold).save(path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_file_predicts_as_the_model_that_is_loaded(name: str, tmp_path: Path) -> None:
    path = saved(name, tmp_path)
    scorer, model = table_scorer(read(path)), load(path)
    assert scorer is not None
    assert (scorer.positive, scorer.target, scorer.threshold) == (
        model.positive,
        model.target,
        model.threshold,
    )
    if model.classes is None:
        np.testing.assert_allclose(scorer.predict(TABLE), model.predict(TABLE), rtol=1e-12)
        return
    assert scorer.classes.tolist() == model.classes.tolist()
    np.testing.assert_allclose(
        scorer.predict_proba(TABLE), model.predict_proba(TABLE), rtol=1e-12, atol=1e-300
    )
    assert (scorer.predict(TABLE) == model.predict(TABLE)).all()


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ({blocked}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from metrifair.__main__ import main
sys.argv = ["metrifair", "predict", {path!r}, {table!r}, "--output", {output!r}]
main()
"""


@pytest.mark.extended
@pytest.mark.parametrize("name", ["linear", "network", "LightGBM", "XGBoost"])
def test_the_command_predicts_where_pytorch_is_not_installed(name: str, tmp_path: Path) -> None:
    path, table, output = saved(name, tmp_path), tmp_path / "rows.csv", tmp_path / "predictions.csv"
    TABLE.write_csv(table)
    trees = name in ("LightGBM", "XGBoost")  # whose libraries import SciPy
    blocked = "'torch', 'sklearn'," if trees else "'torch', 'sklearn', 'scipy', 'pandas',"
    code = WITHOUT.format(blocked=blocked, path=str(path), table=str(table), output=str(output))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model, found = load(path), pl.read_csv(output)
    np.testing.assert_allclose(
        found["probability"], model.predict_proba(TABLE)[:, model.positive], rtol=1e-6
    )
    assert found["prediction"].to_list() == model.predict(TABLE).tolist()


@pytest.mark.parametrize(
    ("name", "lacks", "extra"), [("LightGBM", "lightgbm", "boosting"), ("rule", "torch", "train")]
)
def test_the_command_names_the_extra_that_a_model_needs(
    name: str, lacks: str, extra: str, tmp_path: Path
) -> None:
    path, table = tmp_path / "model.metrifair", tmp_path / "rows.csv"
    TABLE.with_columns(sex=pl.Series(SEX)).write_csv(table)
    if name == "rule":
        encoder = TableEncoder().fit(TABLE)
        rule = ThresholdPostprocessor(
            FairClassifier(0.0, model="linear", random_state=0), random_state=0
        )
        rule.fit(encoder.transform(TABLE), WORDS, sensitive_features=SEX)
        TableModel(encoder, rule, "y", ("sex",)).save(path)
    else:
        saved(name, tmp_path)
    code = WITHOUT.format(
        blocked=f"{lacks!r},", path=str(path), table=str(table), output=str(tmp_path / "out.csv")
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f'pip install "metrifair[{extra}]"' in done.stderr


def test_a_model_that_does_not_take_what_the_encoder_makes_is_refused(tmp_path: Path) -> None:
    content = read(saved("linear", tmp_path))
    content.meta["encoder"]["coders"]["town"]["levels"] = ["A", "B"]
    with pytest.raises(ModelFileError, match="the encoder makes"):
        table_scorer(content)
