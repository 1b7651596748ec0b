"""A model that is logged to MLflow names the packages of all its parts: with these alone, it is
read and predicts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import metrifair
import metrifair.mlflow
from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairXGBClassifier,
    TableEncoder,
    ThresholdPostprocessor,
    save,
)
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor
from tests.seams.estimators import TableModel

pytest.importorskip("lightgbm", reason="lightgbm is in the extra boosting")
pytest.importorskip("xgboost", reason="xgboost is in the extra boosting")
# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=240)
X = RNG.normal(size=(240, 2)) + SEX[:, None]
Y = (X.sum(1) + RNG.normal(size=240) > 1).astype(int)
LINEAR = FairClassifier(0.0, model="linear", random_state=0)
LGBM = FairLGBMClassifier(0.0, n_estimators=3, verbose=-1, random_state=0)
XGB = FairXGBClassifier(0.0, n_estimators=3, random_state=0)
BOTH = ("lightgbm", "xgboost")


def on_table(estimator: Any) -> Any:
    encoder = TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
    rows = encoder.transform({"a": X[:, 0], "b": X[:, 1]})
    return TableModel(encoder, clone(estimator).fit(rows, Y, sensitive_features=SEX), "hired")


def in_pipeline(estimator: Any) -> Any:
    return Pipeline([("none", "passthrough"), ("model", clone(estimator))]).fit(
        X, Y, model__sensitive_features=SEX
    )


def fitted(estimator: Any) -> Any:
    return clone(estimator).fit(X, Y, sensitive_features=SEX)


def stack(outcome: list[Any], group: list[Any]) -> Any:
    stacked = FairStackingClassifier(
        0.5, outcome_models=outcome, group_models=group, folds=2, random_state=0
    )
    return fitted(stacked)


def stack_of_numbers() -> Any:
    trees = FairLGBMRegressor(0.0, n_estimators=3, verbose=-1)
    stacked = FairStackingRegressor(
        0.5, outcome_models=[trees], group_models=[LINEAR], folds=2, random_state=0
    )
    return stacked.fit(X, X.sum(1), sensitive_features=SEX)


def blind(base: Any, group_model: Any) -> Any:
    return fitted(
        BarycenterPostprocessor(base, folds=1, needs_group=False, group_model=group_model)
    )


KINDS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "linear": (lambda: fitted(LINEAR), ()),
    "network": (lambda: fitted(FairClassifier(0.0, epochs=2, random_state=0, model="mlp")), ()),
    "numbers": (
        lambda: FairRegressor(0.0, model="linear").fit(X, X.sum(1), sensitive_features=SEX),
        (),
    ),
    "LightGBM": (lambda: fitted(LGBM), ("lightgbm",)),
    "XGBoost": (lambda: fitted(XGB), ("xgboost",)),
    "table": (lambda: on_table(LINEAR), ()),
    "table of trees": (lambda: on_table(LGBM), ("lightgbm",)),
    "pipeline": (lambda: in_pipeline(LINEAR), ()),
    "pipeline of trees": (lambda: in_pipeline(XGB), ("xgboost",)),
    "post-processor": (lambda: fitted(BarycenterPostprocessor(LINEAR, folds=1)), ()),
    "post-processor of trees": (
        lambda: fitted(ThresholdPostprocessor(LGBM, folds=1)),
        ("lightgbm",),
    ),
    "group model of trees": (lambda: blind(LINEAR, XGB), ("xgboost",)),
    "both libraries": (lambda: blind(LGBM, XGB), BOTH),
    "stack": (lambda: stack([LINEAR], [LINEAR]), ()),
    "stack of trees": (lambda: stack([LINEAR, LGBM], [LINEAR]), ("lightgbm",)),
    "stack with groups by trees": (lambda: stack([LINEAR], [XGB]), ("xgboost",)),
    "stack of numbers": (stack_of_numbers, ("lightgbm",)),
    "stack in a table": (
        lambda: on_table(
            FairStackingClassifier(
                0.5, outcome_models=[LGBM], group_models=[LINEAR], folds=2, random_state=0
            )
        ),
        ("lightgbm",),
    ),
    "post-processor of a stack": (
        lambda: fitted(
            BarycenterPostprocessor(
                FairStackingClassifier(0.5, outcome_models=[XGB], group_models=[LINEAR], folds=2),
                folds=1,
            )
        ),
        ("xgboost",),
    ),
}
PACKAGES = {"lightgbm": "lightgbm==", "xgboost": "xgboost-cpu=="}

# Load files and predict in a process in which the libraries of trees that are not required cannot
# be imported.
SERVER = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
import metrifair
table, rows = {"a": [0.5, -1.0], "b": [0.25, 2.0]}, [[0.5, 0.25], [-1.0, 2.0]]
for path, is_table, groups in json.loads(sys.argv[2]):
    model = metrifair.load(path)
    options = {"sensitive_features": [0, 1]} if groups else {}
    print(len(model.predict(table if is_table else rows, **options)))
"""


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: make() for name, (make, _) in KINDS.items()}


def requirements(model: Any, folder: Path) -> list[str]:
    file = folder / "model.metrifair"
    save(model, file)
    return metrifair.mlflow._requirements(file)


@pytest.mark.parametrize("name", KINDS)
def test_the_requirements_name_the_libraries_of_all_parts(
    name: str, models: dict[str, Any], tmp_path: Path
) -> None:
    first, *others = requirements(models[name], tmp_path)
    needed = KINDS[name][1]
    assert first == f"metrifair[{'boosting' if needed else 'train'}]=={metrifair.__version__}"
    named = {
        library
        for library, package in PACKAGES.items()
        if any(line.startswith(package) for line in others)
    }
    assert named == set(needed)


@pytest.mark.slow(rotate=False)
def test_the_required_libraries_are_enough(models: dict[str, Any], tmp_path: Path) -> None:
    """Models with the same requirements share a process."""
    by_libraries: dict[tuple[str, ...], list[tuple[str, bool, bool]]] = {}
    for number, model in enumerate(models.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = " ".join(requirements(model, folder))
        libraries = tuple(library for library in BOTH if library in text)
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        needs_group = bool(getattr(last, "needs_group", False))
        entry = (str(folder / "model.metrifair"), isinstance(model, TableModel), needs_group)
        by_libraries.setdefault(libraries, []).append(entry)
    assert set(by_libraries) == {(), ("lightgbm",), ("xgboost",), BOTH}
    for libraries, entries in by_libraries.items():
        hidden = [library for library in BOTH if library not in libraries]
        arguments = [json.dumps(hidden), json.dumps(entries)]
        done = subprocess.run(
            [sys.executable, "-c", SERVER, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["2"] * len(entries)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow warns of its own when it is imported
def test_a_logged_stack_of_trees_names_lightgbm(models: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("mlflow.models", reason="MLflow is in the extra mlflow")
    metrifair.mlflow.save_model(models["stack of trees"], tmp_path / "stack")
    lines = (tmp_path / "stack" / "requirements.txt").read_text().splitlines()
    assert lines[0] == f"metrifair[boosting]=={metrifair.__version__}"
    assert any(line.startswith("lightgbm==") for line in lines)
    # it calls the loader
    assert any(line.startswith(("mlflow==", "mlflow-skinny==")) for line in lines)
