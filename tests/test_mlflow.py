"""MLflow: what is logged to a real store is what was found; models come back as they were, and
run no code.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

import metrifair.mlflow
from metrifair import (
    Audit,
    AuditOptions,
    DataError,
    FairClassifier,
    FairLGBMClassifier,
    TableEncoder,
    audit,
    frontier,
    load,
)
from metrifair.errors import MissingExtra, ModelFileError
from tests.seams.estimators import TableModel

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of its own when it is imported
        import mlflow
        import mlflow.pyfunc
        import sqlalchemy  # noqa: F401  (of its store in a database)
except ImportError:
    mlflow = None

installed = pytest.mark.skipif(
    mlflow is None, reason="mlflow-skinny and sqlalchemy are not installed (extra mlflow)"
)
slow = [pytest.mark.slow, installed, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + SEX[:, None]
Y = np.where(X.sum(1) + RNG.normal(size=300) > 1, "yes", "no")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """A tracking store in a database, with artifacts beside it; its client."""
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("fair", (tmp_path / "artifacts").as_uri())
    )
    yield mlflow.MlflowClient()
    while mlflow.active_run():
        mlflow.end_run()


@pytest.fixture(scope="module")
def model() -> FairClassifier:
    return FairClassifier(2.0, model="linear", random_state=0).fit(X, Y, sensitive_features=SEX)


def audit_of(model: Any, name: str = "sex") -> Audit:
    options = AuditOptions(resamples=40, permutations=20)
    scores = model.predict_proba(X)[:, 1]
    found = audit(Y, scores, sensitive_features={name: SEX}, random_state=7, options=options)
    provenance = found.provenance.described("Who is hired", {"rows of": "2026"})
    return replace(found, record=replace(found.record, provenance=provenance))


class Test:
    """All that needs MLflow."""

    pytestmark = slow

    def test_an_audit_is_logged_as_it_was_found(
        self, store: Any, model: FairClassifier, tmp_path: Path
    ) -> None:
        found = audit_of(model)
        with mlflow.start_run():
            run_id = metrifair.mlflow.log_audit(found)
        data = store.get_run(run_id).data
        one = found.worst("kolmogorov", "statistical_parity")
        assert one.joint_interval is not None
        key = "audit/kolmogorov.statistical_parity.sex"
        assert (data.metrics[key], data.metrics[f"{key}.low"], data.metrics[f"{key}.high"]) == (
            one.value,
            one.joint_interval.low,
            one.joint_interval.high,
        )
        assert data.metrics["audit/selection_ratio.sex"] == found.decisions[0].selection_ratio
        assert (
            data.metrics["audit/auc_difference.sex"] == found.record.by_group[0].gaps["auc"].value
        )
        assert data.params["audit/seed"] == "7"
        assert data.params["audit/pos_label"] == "yes"
        assert data.tags["audit/title"] == "Who is hired"
        assert data.tags["audit/rows_of"] == "2026"
        assert data.tags["audit/Versions"].startswith("metrifair ")
        kept = Path(
            mlflow.artifacts.download_artifacts(run_id=run_id, dst_path=str(tmp_path / "kept"))
        )
        assert json.loads((kept / "audit.json").read_text()) == json.loads(found.to_json())
        assert "Who is hired" in (kept / "audit.html").read_text()

    def test_any_names_can_be_logged_and_a_run_holds_several_audits(
        self, store: Any, model: FairClassifier
    ) -> None:
        with mlflow.start_run() as run:
            metrifair.mlflow.log_audit(audit_of(model, "a/../b (größe) % $"), name="before: <all>")
            metrifair.mlflow.log_audit(audit_of(model), name="after")
            metrifair.mlflow.log_audit(audit_of(model), name="after", step=1)
        data = store.get_run(run.info.run_id).data
        assert "before_all/kolmogorov.statistical_parity.a_.._b_größe" in data.metrics
        history = store.get_metric_history(
            run.info.run_id, "after/kolmogorov.statistical_parity.sex"
        )
        assert [one.step for one in history] == [0, 1]

    def test_a_run_is_started_where_there_is_none(self, store: Any, model: FairClassifier) -> None:
        run_id = metrifair.mlflow.log_audit(audit_of(model))
        active = mlflow.active_run()
        assert active is not None
        assert active.info.run_id == run_id

    def test_a_frontier_is_logged_model_by_model(self, store: Any, tmp_path: Path) -> None:
        front = frontier(
            FairClassifier(model="linear"),
            X,
            Y,
            sensitive_features=SEX,
            strengths=[0.0, 1.0, 5.0],
            random_state=0,
        )
        front.select(max_unfairness=1.0, confidence=0.8)
        with mlflow.start_run():
            run_id = metrifair.mlflow.log_frontier(front)
        chosen = front.chosen
        assert chosen is not None
        shown = [chosen if point.job == chosen.job else point for point in front.points]
        assert chosen not in front.points
        for name in ("unfairness", "accuracy"):
            history = store.get_metric_history(run_id, f"frontier/{name}")
            assert [one.value for one in history] == [getattr(point, name) for point in shown]
        data = store.get_run(run_id).data
        for name in ("unfairness", "auc"):
            interval = chosen.intervals[name]
            assert data.metrics[f"frontier/chosen.{name}"] == chosen.figure(name)
            assert data.metrics[f"frontier/chosen.{name}.low"] == interval.low
            assert data.metrics[f"frontier/chosen.{name}.high"] == interval.high
        assert data.params["frontier/confidence"] == "0.8"
        assert "frontier/best_effort" not in data.params
        assert data.metrics["frontier/area"] == front.area
        assert data.tags["frontier/Versions"].startswith("metrifair ")
        assert float(data.params["frontier/chosen_strength"]) == chosen.strength
        kept = Path(
            mlflow.artifacts.download_artifacts(run_id=run_id, dst_path=str(tmp_path / "kept"))
        )
        assert load(kept / "frontier.metrifair").points == front.points
        assert "<!doctype html>" in (kept / "frontier.html").read_text()

    def test_a_logged_model_predicts_to_the_last_bit(
        self, store: Any, model: FairClassifier
    ) -> None:
        with mlflow.start_run():
            logged = metrifair.mlflow.log_model(
                model, "hired", pyfunc_predict_fn="predict_proba", registered_model_name="hiring"
            )
        again = metrifair.mlflow.load_model(logged.model_uri)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()
        generic = mlflow.pyfunc.load_model("models:/hiring/1")
        assert (generic.predict(X) == model.predict_proba(X)).all()
        assert type(metrifair.mlflow.load_model("models:/hiring/1")) is FairClassifier

    def test_the_folder_has_both_flavors_and_nothing_that_runs(
        self, tmp_path: Path, model: FairClassifier
    ) -> None:
        metrifair.mlflow.save_model(model, tmp_path / "model")
        assert {one.name for one in (tmp_path / "model").iterdir()} == {
            "MLmodel", "model.metrifair", "python_env.yaml", "requirements.txt"
        }  # fmt: skip
        told = yaml.safe_load((tmp_path / "model" / "MLmodel").read_text())["flavors"]
        assert told["metrifair"]["data"] == "model.metrifair"
        assert told["python_function"]["loader_module"] == "metrifair.mlflow"
        assert load(tmp_path / "model" / "model.metrifair").strength == 2.0
        env = yaml.safe_load((tmp_path / "model" / "python_env.yaml").read_text())
        assert env["dependencies"] == ["-r requirements.txt"]

    def test_tables_and_boosters_are_served_too(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"size": X[:, 0], "town": np.where(X[:, 1] > 0, "A", "B")})
        encoder = TableEncoder().fit(table)
        fair = FairClassifier(1.0, model="linear", random_state=0)
        whole = TableModel(
            encoder, fair.fit(encoder.transform(table), Y, sensitive_features=SEX), "hired"
        )
        metrifair.mlflow.save_model(whole, tmp_path / "table")
        assert (
            mlflow.pyfunc.load_model(str(tmp_path / "table")).predict(table) == whole.predict(table)
        ).all()
        joined = Pipeline([("encode", encoder), ("model", fair)]).fit(
            table, Y, model__sensitive_features=SEX
        )
        metrifair.mlflow.save_model(joined, tmp_path / "pipeline")
        assert (
            mlflow.pyfunc.load_model(str(tmp_path / "pipeline")).predict(table)
            == joined.predict(table)
        ).all()
        trees = FairLGBMClassifier(1.0, n_estimators=3, verbose=-1).fit(
            X, Y, sensitive_features=SEX
        )
        metrifair.mlflow.save_model(trees, tmp_path / "trees")
        assert (
            mlflow.pyfunc.load_model(str(tmp_path / "trees")).predict(X) == trees.predict(X)
        ).all()
        assert "metrifair[boosting]==" in (tmp_path / "trees" / "requirements.txt").read_text()

    def test_what_cannot_be_used_is_refused(self, tmp_path: Path, model: FairClassifier) -> None:
        (tmp_path / "there").mkdir()
        with pytest.raises(DataError, match="exists already; name a new folder"):
            metrifair.mlflow.save_model(model, tmp_path / "there")
        with pytest.raises(DataError, match="a DummyClassifier cannot be saved"):
            metrifair.mlflow.save_model(DummyClassifier().fit(X, Y), tmp_path / "new")
        assert not (tmp_path / "new").exists()
        with pytest.raises(DataError, match="pyfunc_predict_fn must be one of"):
            metrifair.mlflow.save_model(model, tmp_path / "new", pyfunc_predict_fn="transform")  # type: ignore[arg-type]
        metrifair.mlflow.save_model(model, tmp_path / "model")
        path = tmp_path / "model" / "MLmodel"
        text = path.read_text()
        path.write_text(text.replace("data: model.metrifair", "data: ../../elsewhere.metrifair"))
        # never outside its folder
        with pytest.raises(ModelFileError, match=r"model/elsewhere\.metrifair"):
            metrifair.mlflow.load_model(str(tmp_path / "model"))
        path.write_text(text.replace("\n  metrifair:", "\n  other:"))
        with pytest.raises(ModelFileError, match="contains no model of the flavor 'metrifair'"):
            metrifair.mlflow.load_model(str(tmp_path / "model"))

    def test_the_examples_run(self, tmp_path: Path) -> None:
        code = "import doctest, metrifair.mlflow as own; print(doctest.testmod(own, optionflags=doctest.ELLIPSIS))"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        told = re.fullmatch(r"TestResults\(failed=0, attempted=(\d+)\)\n", done.stdout)
        assert told, done.stdout
        assert int(told.group(1)) > 20
        assert list(tmp_path.iterdir()) == []  # they leave nothing behind


def test_without_the_extra_the_error_names_it(
    model: FairClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mlflow", "mlflow.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingExtra, match=r'logging to MLflow needs mlflow: pip install "metrifair\[mlflow\]"'
    ):
        metrifair.mlflow.log_audit(audit_of(model))
    with pytest.raises(MissingExtra, match=r'pip install "metrifair\[mlflow\]"'):
        metrifair.mlflow.save_model(model, "nowhere")


def test_only_audits_and_frontiers_are_logged() -> None:
    with pytest.raises(DataError, match="audit must be an Audit, got dict"):
        metrifair.mlflow.log_audit({})  # type: ignore[arg-type]
    with pytest.raises(DataError, match="frontier must be a Frontier, got list"):
        metrifair.mlflow.log_frontier([])  # type: ignore[arg-type]
