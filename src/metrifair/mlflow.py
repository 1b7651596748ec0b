"""MLflow: audits and frontiers among the figures of a run, and models as a flavor whose files run
no code.

Write ``import metrifair.mlflow`` and ``metrifair.mlflow.log_audit(...)``; ``mlflow`` then still is
MLflow itself.
"""

from __future__ import annotations

import platform
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import torch

from metrifair import __version__
from metrifair.api.audit_result import Audit
from metrifair.api.frontier import Frontier
from metrifair.api.loading import load, save
from metrifair.auditing.ranking import sort_findings
from metrifair.errors import DataError, ModelFileError
from metrifair.saving.modelfile import UNKNOWN_VERSION, PathLike, installed_version, read
from metrifair.saving.models import tree_libraries
from metrifair.support.checks import check_known, require
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.points import Point
from metrifair.wording.provenance import provenance_lines

__all__ = ["load_model", "log_audit", "log_frontier", "log_model", "save_model"]


def __dir__() -> list[str]:
    return __all__


FLAVOR = "metrifair"
_FILE = "model.metrifair"
_REQUIREMENTS = "requirements.txt"
_PYTHON = "python_env.yaml"
# limits of MLflow: characters of a name, metrics at once
_LONGEST = 200
_BATCH = 1_000
_Steps: TypeAlias = Mapping[int, Mapping[str, float]]  # metrics by step
# Packages that contain a library. Plain xgboost has no requirement of its own: the extra contains
# xgboost-cpu.
_PACKAGES = {
    "lightgbm": ("lightgbm",),
    "xgboost": ("xgboost-cpu",),
    "mlflow": ("mlflow", "mlflow-skinny"),
}
_METHODS = ("predict", "predict_proba", "decision_function")


def log_audit(audit: Audit, *, name: str = "audit", step: int = 0) -> str:
    """Log an audit to the active run of MLflow, or to a new one.

    Metrics are, by metric, criterion and attribute: the most significant distance with its joint
    bounds (``audit/kolmogorov.statistical_parity.sex``, and the same with ``.low`` and ``.high``),
    the smallest ratio and the largest difference of selection rates, and the largest differences
    between groups in AUC, accuracy and other figures. Parameters record the audited data, tags its
    source. The page and the JSON are artifacts.

    Parameters
    ----------
    audit : Audit
        Audit to report.
    name : str, default="audit"
        Name: the first part of all names, so that a run can contain several audits.
    step : int, default=0
        Number of the audit, if the same model is audited repeatedly.

    Returns
    -------
    str
        The id of the run.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.

    Examples
    --------
    >>> import tempfile, mlflow
    >>> import metrifair.mlflow
    >>> from metrifair import audit
    >>> scores, sex = [0.2, 0.8, 0.4, 0.9] * 20, ["f", "f", "m", "m"] * 20
    >>> found = audit(None, scores, sensitive_features={"sex": sex}, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    ...     experiment = mlflow.create_experiment("fair", f"file://{folder}/artifacts")
    ...     with mlflow.start_run(experiment_id=experiment):
    ...         run_id = metrifair.mlflow.log_audit(found)
    ...     mlflow.get_run(run_id).data.metrics["audit/kolmogorov.statistical_parity.sex"]
    0.5
    """
    if not isinstance(audit, Audit):
        raise DataError(f"audit must be an Audit, got {type(audit).__name__}")
    record = audit.record
    origin = audit.provenance
    metrics: dict[str, float] = {"rows": record.rows}
    for one in sort_findings(record.findings):
        key = _key(one.metric, one.criterion, one.attribute)
        if one.assessed and key not in metrics:
            metrics[key] = one.value
            if one.joint_interval is not None:
                metrics |= {
                    f"{key}.low": one.joint_interval.low,
                    f"{key}.high": one.joint_interval.high,
                }
    for rates in record.decisions:
        _keep(metrics, _key("selection_ratio", rates.attribute), rates.selection_ratio, min)
        _keep(
            metrics, _key("selection_difference", rates.attribute), rates.selection_difference, max
        )
    for table in record.by_group:
        for figure, gap in table.gaps.items():
            _keep(metrics, _key(f"{figure}_difference", table.attribute), gap.value, max)
    params = {
        "rows": record.rows,
        "left_out": record.left_out,
        "confidence": record.confidence,
        "pos_label": record.settings.pos_label,
        "favorable": record.settings.favorable,
        "seed": origin.seed,
    }
    with tempfile.TemporaryDirectory() as folder:
        audit.to_html(Path(folder, f"{_key(name)}.html"))
        audit.to_json(Path(folder, f"{_key(name)}.json"))
        return _log(name, {step: metrics}, params, _origin(origin), folder)


def log_frontier(frontier: Frontier, *, name: str = "frontier") -> str:
    """Log a frontier to the active run of MLflow, or to a new one.

    Every model is a step of the metrics (``frontier/strength``, ``frontier/unfairness``,
    ``frontier/accuracy`` ...), so that MLflow draws the trade-off. The figures of the chosen model,
    with the ends of their intervals, are metrics too (``frontier/chosen.unfairness``,
    ``frontier/chosen.unfairness.high`` ...). Parameters are those of the choice. The page is an
    artifact, as is the file that :func:`metrifair.load` reads, if all models can be saved.

    Parameters
    ----------
    frontier : Frontier
        Frontier to report.
    name : str, default="frontier"
        Name: the first part of all names.

    Returns
    -------
    str
        The id of the run.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.

    Examples
    --------
    >>> import tempfile, mlflow
    >>> import metrifair.mlflow
    >>> from metrifair import FairClassifier, frontier
    >>> rows = range(80)
    >>> X, y, sex = [[k % 7, k % 3] for k in rows], [k % 2 for k in rows], [k // 2 % 2 for k in rows]
    >>> front = frontier(FairClassifier(model="linear"), X, y, sensitive_features=sex, strengths=[0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    ...     experiment = mlflow.create_experiment("fair", f"file://{folder}/artifacts")
    ...     with mlflow.start_run(experiment_id=experiment):
    ...         run_id = metrifair.mlflow.log_frontier(front)
    ...     history = mlflow.MlflowClient().get_metric_history(run_id, "frontier/strength")
    >>> [metric.value for metric in history]
    [0.0, 1.0]
    """
    if not isinstance(frontier, Frontier):
        raise DataError(f"frontier must be a Frontier, got {type(frontier).__name__}")
    steps: dict[int, dict[str, float]] = {}
    for step, point in enumerate(frontier.view().shown):
        if not point.failed:
            figures = _point_figures(point)
            steps[step] = {"strength": point.strength, "seed": point.seed, **figures}
    record = frontier.record
    chosen = record.chosen
    of_choice = {} if chosen is None else _chosen_figures(chosen)
    steps[0] = {**steps.get(0, {}), "area": frontier.area, **of_choice}
    params: dict[str, object] = {
        "parameter": record.parameter,
        "models": len(frontier.points),
        "utility": frontier.utility.name,
        "max_unfairness": record.limit,
        "confidence": None if record.goal is None else record.goal.confidence,
        "best_effort": record.is_best_effort or None,
    }
    if chosen is not None:
        params["chosen_strength"] = chosen.strength
        params["chosen_seed"] = chosen.seed
        params["chosen_family"] = chosen.family or None
    with tempfile.TemporaryDirectory() as folder:
        frontier.to_html(Path(folder, f"{_key(name)}.html"))
        with suppress(DataError):  # a model that cannot be saved; its figures are logged
            frontier.save(Path(folder, f"{_key(name)}.metrifair"))
        return _log(name, steps, params, _origin(record.provenance), folder)


def _point_figures(point: Point) -> dict[str, float]:
    """The figures of a point by the names that MLflow takes."""
    values = {name: point.figure(name) for name in point.figures}
    return {_key(name): value for name, value in values.items() if value is not None}


def _chosen_figures(chosen: Point) -> dict[str, float]:
    """The figures of the chosen model, with the ends of their intervals."""
    figures = {f"chosen.{name}": value for name, value in _point_figures(chosen).items()}
    for name, interval in chosen.intervals.items():
        figures[_key("chosen", name, "low")] = interval.low
        figures[_key("chosen", name, "high")] = interval.high
    return figures


def save_model(
    model: Any,
    path: PathLike,
    *,
    mlflow_model: Any = None,
    pyfunc_predict_fn: Literal["predict", "predict_proba", "decision_function"] = "predict",
    signature: Any = None,
) -> None:
    """Write a fitted model as a folder that MLflow loads, as ``metrifair`` or as
    ``python_function``.

    The model itself is a metrifair file: reading it runs no code.

    Parameters
    ----------
    model : estimator
        Fitted model that :func:`metrifair.save` takes: a fair estimator or booster, a
        post-processor, a ``TableModel``, a pipeline.
    path : str or os.PathLike
        The folder, which must not exist yet.
    mlflow_model : mlflow.models.Model, default=None
        MLflow's record of the model, which ``log_model`` passes.
    pyfunc_predict_fn : {"predict", "predict_proba", "decision_function"}, default="predict"
        The method that ``predict`` of the generic ``python_function`` calls.
    signature : mlflow.models.ModelSignature, default=None
        Signature of inputs and outputs, as ``mlflow.models.infer_signature`` returns it.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.
    DataError
        If the model cannot be saved, lacks that method, or the folder exists.

    Examples
    --------
    >>> import tempfile, mlflow
    >>> from metrifair import FairRegressor
    >>> from metrifair.mlflow import load_model, save_model
    >>> model = FairRegressor(0.0, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/line")
    ...     again, generic = load_model(f"{folder}/line"), mlflow.pyfunc.load_model(f"{folder}/line")
    >>> again
    FairRegressor(random_state=0, strength=0.0)
    >>> bool((generic.predict([[1.5]]) == model.predict([[1.5]])).all())
    True
    """
    models: Any = require("mlflow.models", extra="mlflow", purpose="a model for MLflow")
    pyfunc: Any = require("mlflow.pyfunc", extra="mlflow", purpose="a model for MLflow")
    check_known("pyfunc_predict_fn", pyfunc_predict_fn, _METHODS)
    if not hasattr(model, pyfunc_predict_fn):
        raise DataError(
            f"pyfunc_predict_fn={pyfunc_predict_fn!r} is no method of this {type(model).__name__}"
        )
    folder = Path(path)
    if folder.exists():
        raise DataError(f"path {str(folder)!r} exists already; name a new folder")
    folder.mkdir(parents=True)
    try:
        save(model, folder / _FILE)
    except DataError:
        folder.rmdir()
        raise
    (folder / _REQUIREMENTS).write_text(
        "".join(f"{line}\n" for line in _requirements(folder / _FILE))
    )
    (folder / _PYTHON).write_text(
        f"python: {platform.python_version()}\ndependencies:\n- -r {_REQUIREMENTS}\n"
    )
    described = models.Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        described.signature = signature
    described.add_flavor(
        FLAVOR, data=_FILE, metrifair_version=__version__, pyfunc_predict_fn=pyfunc_predict_fn
    )
    pyfunc.add_to_model(described, loader_module=__name__, python_env=_PYTHON)
    described.save(str(folder / "MLmodel"))


def _requirements(file: Path) -> list[str]:
    """The packages that read the model in a file and predict with it, by the parts of the model.

    Trees are read by their own library, in the version that is installed. MLflow calls the loader.
    """
    libraries = tree_libraries(read(file))
    packages = [
        name for library in (*libraries, "mlflow") for name in _installed(_PACKAGES[library])
    ]
    return [f"metrifair[{'boosting' if libraries else 'train'}]=={__version__}", *packages]


def _installed(names: Sequence[str]) -> list[str]:
    """The requirement of the first package that is installed; empty if none is."""
    versions = {name: installed_version(name) for name in names}
    return [
        f"{name}=={version}" for name, version in versions.items() if version != UNKNOWN_VERSION
    ][:1]


def log_model(
    model: Any,
    name: str = "model",
    *,
    registered_model_name: str | None = None,
    pyfunc_predict_fn: Literal["predict", "predict_proba", "decision_function"] = "predict",
    signature: Any = None,
) -> Any:
    """Log a fitted model to MLflow, in the active run if there is one.

    Parameters
    ----------
    model : estimator
        As in :func:`save_model`.
    name : str, default="model"
        Name of the model in the run.
    registered_model_name : str, default=None
        A name in the registry, of which it becomes a new version.
    pyfunc_predict_fn : {"predict", "predict_proba", "decision_function"}, default="predict"
        The method that ``predict`` of the generic ``python_function`` calls.
    signature : mlflow.models.ModelSignature, default=None
        Signature of inputs and outputs.

    Returns
    -------
    mlflow.models.model.ModelInfo
        With ``model_uri``, from which :func:`load_model` reads it.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.
    DataError
        If the model cannot be saved.

    Examples
    --------
    >>> import tempfile, mlflow
    >>> from metrifair import FairRegressor
    >>> from metrifair.mlflow import load_model, log_model
    >>> model = FairRegressor(0.0, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    ...     experiment = mlflow.create_experiment("rents", f"file://{folder}/artifacts")
    ...     with mlflow.start_run(experiment_id=experiment):
    ...         logged = log_model(model, "rent")
    ...     load_model(logged.model_uri)
    FairRegressor(random_state=0, strength=0.0)
    """
    models: Any = require("mlflow.models", extra="mlflow", purpose="a model for MLflow")
    # of save_model
    arguments = {"model": model, "pyfunc_predict_fn": pyfunc_predict_fn, "signature": signature}
    flavor = sys.modules[__name__]
    return models.Model.log(
        None, flavor, registered_model_name=registered_model_name, name=name, **arguments
    )


def load_model(model_uri: str, *, module: torch.nn.Module | None = None) -> Any:
    """The model that ``save_model`` or ``log_model`` wrote, as it was; no code from its file is
    run.

    Parameters
    ----------
    model_uri : str
        A folder, ``models:/...`` or ``runs:/...``.
    module : torch.nn.Module, default=None
        Module of the saved model, as in :func:`metrifair.load`.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    MissingExtra
        If MLflow is not installed.
    ModelFileError
        If there is another kind of model, or the file is damaged or hostile.

    Examples
    --------
    >>> import tempfile
    >>> from metrifair import FairRegressor
    >>> from metrifair.mlflow import load_model, save_model
    >>> model = FairRegressor(0.0, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/line")
    ...     load_model(f"{folder}/line").n_features_in_
    1
    """
    artifacts: Any = require("mlflow.artifacts", extra="mlflow", purpose="a model of MLflow")
    if Path(model_uri).is_dir():
        folder = Path(model_uri)
    else:
        folder = Path(artifacts.download_artifacts(model_uri))
    return _model_in(folder, module)[0]


def _model_in(folder: Path, module: torch.nn.Module | None = None) -> tuple[Any, Mapping[str, Any]]:
    """The model in a folder of MLflow, and its metadata."""
    models: Any = require("mlflow.models", extra="mlflow", purpose="a model of MLflow")
    flavor = models.Model.load(str(folder)).flavors.get(FLAVOR)
    if not isinstance(flavor, Mapping) or not isinstance(flavor.get("data"), str):
        raise ModelFileError(f"{str(folder)!r} contains no model of the flavor {FLAVOR!r}")
    return load(folder / Path(flavor["data"]).name, module=module), flavor


def _load_pyfunc(path: str) -> SimpleNamespace:
    """The hook that MLflow calls for ``mlflow.pyfunc.load_model``; returns an object with
    ``predict``.
    """
    model, flavor = _model_in(Path(path))
    check_known("pyfunc_predict_fn", flavor.get("pyfunc_predict_fn"), _METHODS)
    return SimpleNamespace(predict=getattr(model, flavor["pyfunc_predict_fn"]))


def _key(*parts: str) -> str:
    """Parts of a name in the characters that MLflow takes.

    >>> _key("kolmogorov", "sex (f/m)")
    'kolmogorov.sex_f_m'
    """
    return ".".join(re.sub(r"[^\w.-]+", "_", part).strip("_.")[:_LONGEST] or "_" for part in parts)


def _origin(provenance: Provenance) -> dict[str, str]:
    return {
        "title": provenance.title,
        **{_key(name): text for name, text in provenance_lines(provenance)},
    }


def _keep(metrics: dict[str, float], key: str, value: float | None, worse: Any) -> None:
    """Of several strata the worst figure is logged."""
    if value is not None:
        metrics[key] = worse(metrics[key], value) if key in metrics else value


def _log(
    name: str, steps: _Steps, params: Mapping[str, object], tags: Mapping[str, str], folder: str
) -> str:
    """Log everything at once under one name, in the active run or a new one; return the run's
    id.
    """
    mlflow: Any = require("mlflow", extra="mlflow", purpose="logging to MLflow")
    entities: Any = require("mlflow.entities", extra="mlflow", purpose="logging to MLflow")
    run = mlflow.active_run() or mlflow.start_run()
    client = mlflow.MlflowClient()
    run_id = str(run.info.run_id)
    now = int(1000 * time.time())
    first = _key(name)
    metrics = [
        entities.Metric(f"{first}/{key}", float(value), now, step)
        for step, figures in steps.items()
        for key, value in figures.items()
    ]
    entries = [
        entities.Param(f"{first}/{key}", str(value))
        for key, value in params.items()
        if value is not None
    ]
    run_tags = [entities.RunTag(f"{first}/{key}", value) for key, value in tags.items() if value]
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics[start : start + _BATCH])
    client.log_batch(run_id, params=entries, tags=run_tags[:100])
    client.log_artifacts(run_id, folder)
    return run_id
