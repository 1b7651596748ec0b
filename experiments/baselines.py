"""The methods that the paper compares with, each over its own grid of strengths, on the paper's cells."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isnan
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from experiments.grid import Store, job
from experiments.jobs import Job
from experiments.material import Material
from experiments.mfl import NETWORK, Cell, schedule
from experiments.rows import Row
from experiments.settings import PUBLISHED, Effort
from metrifair.estimators import FairClassifier
from metrifair.estimators.settings import device_of
from metrifair.methods import berk, fairbatch, fairkde, labelbias, massaging, reweighing, sinkhorn
from metrifair.methods.network import fit_stack
from metrifair.methods.xian import XianPostprocessor
from metrifair.methods.zafar import ZafarClassifier

Work = Callable[[Cell, Material, Effort], list[Row]]
_Result = TypeVar("_Result")
_CODE = inspect.getsource(sys.modules[__name__])  # the settings of all methods: a job is done anew when they change


class Baseline(NamedTuple):
    """A method, and the cells it was run on."""

    method: str
    work: Work
    applies: Callable[[Cell], bool] = lambda _: True
    one_by_one: bool = False  # a job for each seed: nothing is gained by training them together
    seedless: bool = False  # nothing is drawn: where all seeds have one split, one will do
    either: bool = False  # both protocols run the same on raw inputs
    unscaled: bool = False  # standardising changes nothing: only another encoding does


def jobs(cell: Cell, methods: Sequence[Baseline], store: Store, effort: Effort) -> list[Job]:
    """All methods that apply to a cell."""
    found = []
    for one in methods:
        if not one.applies(cell):
            continue
        run = _serving(one, cell)
        for part in _parts(one, store(run.name, run.input), effort):
            own = job(run, one.method, partial(_noting_solvers, one.work, run, part), store, part, code=_CODE)
            found.append(own._replace(shown={"protocol": cell.protocol.name, "input": cell.input}))
    return found


def _serving(one: Baseline, cell: Cell) -> Cell:
    """The cell whose results are also those of this one; mostly itself."""
    if one.either and cell.input == "raw":
        return replace(cell, protocol=PUBLISHED)
    if one.unscaled and cell.name != "adult":
        return replace(cell, input="raw")
    return cell


def _parts(one: Baseline, material: Material, effort: Effort) -> list[Effort]:
    seeds = effort.seeds
    if one.seedless and (material.train == material.train[0]).all():
        seeds = seeds[:1]
    return [replace(effort, seeds=(seed,)) for seed in seeds] if one.one_by_one else [replace(effort, seeds=seeds)]


def _noting_solvers(work: Work, cell: Cell, effort: Effort, material: Material) -> list[Row]:
    """The rows, which say whether a solver stopped short; methods that train a stack do so for all of it."""
    rows, short = _watched(work, cell, material, effort)
    return [replace(row, unconverged=float(short)) if isnan(row.unconverged) else row for row in rows]


def _watched(work: Callable[..., _Result], *given: Any, **named: Any) -> tuple[_Result, bool]:
    """What some work returns, and whether a solver stopped short on the way.

    Only strengths above 1 pass in silence: the published settings ask for them. All other warnings go on.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("ignore", "strength .* is above 1")
        result = work(*given, **named)
    for one in caught:
        if not issubclass(one.category, ConvergenceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return result, any(issubclass(one.category, ConvergenceWarning) for one in caught)


def _judged(
    cell: Cell, method: str, material: Material, seed: int, *, strengths: Sequence[float], scores: Any, seconds: float
) -> list[Row]:
    """Rows of scores (strengths, n); None stands for a model that diverged."""
    nothing = np.zeros(material.test.shape[1])
    failed = [score is None for score in scores]
    known = [nothing if score is None else score for score in scores]
    score = torch.as_tensor(np.stack(known), dtype=torch.float64)
    return cell.rows(method, seed, strengths, score, material, seconds=seconds, failed=failed)


def _berk(penalty: berk.Penalty) -> Work:
    def work(cell: Cell, material: Material, effort: Effort) -> list[Row]:
        strengths = effort.strengths(1e-2, 1e5, 50)
        model = berk.BerkRegressor(penalty=penalty, variant=_variant(cell))
        rows = []
        for seed in effort.seeds:
            start = time.perf_counter()
            train = material.train[seed]
            models = berk.fit_path(
                model, material.x[train], material.y[train], strengths, sensitive_features=material.a[train]
            )
            seconds = (time.perf_counter() - start) / len(strengths)
            scores = [one.predict(material.x[material.test[seed]]) for one in models]
            rows += _judged(
                cell, f"berk-{penalty}", material, seed, strengths=strengths, scores=scores, seconds=seconds
            )
        return rows

    return work


# Rare one-hot columns hold one label only: without a ridge their few rows meet any bound, at scores beyond 40,000 and
# no loss. This is the least power of ten at which no score of the whole grid is beyond 200, where the fit would warn.
_ONE_HOT_RIDGE = 10.0


def _zafar(cell: Cell, material: Material, effort: Effort) -> list[Row]:
    """The covariance of group and score, also where equal opportunity is measured: so the published runs."""
    strengths = effort.strengths(1e-5, 1e1, 25)
    ridge = _ONE_HOT_RIDGE if cell.name == "adult" and cell.standardize else 0.0
    x, rows = material.without_group, []
    for seed in effort.seeds:
        train, test = material.train[seed], material.test[seed]
        start = time.perf_counter()
        models = [ZafarClassifier(gamma=gamma, ridge=ridge, variant=_variant(cell)) for gamma in strengths]
        known = x[train], material.y[train]
        fits = [_watched(model.fit, *known, sensitive_features=material.a[train]) for model in models]
        seconds = (time.perf_counter() - start) / len(strengths)
        scores = [one.predict_proba(x[test])[:, 1] for one, _ in fits]
        judged = _judged(cell, "zafar", material, seed, strengths=strengths, scores=scores, seconds=seconds)
        rows += [replace(row, unconverged=float(short)) for row, (_, short) in zip(judged, fits, strict=True)]
    return rows


def _variant(cell: Cell) -> Any:
    return "reference" if cell.protocol.name == "published" else "method"


def _network(cell: Cell, material: Material) -> dict[str, Any]:
    """Parameters of the paper's base network: ours without a penalty."""
    plan = schedule(cell, NETWORK, material.train.shape[1])
    return {
        "hidden": (cell.data.hidden,),
        "batch_size": plan.batch_size,
        "epochs": plan.epochs,
        "learning_rate": plan.learning_rate,
        "standardize": cell.standardize,
    }


class _Descent(NamedTuple):
    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0


_CHO = {"compas": _Descent(2048, 500, 5e-4), "adult": _Descent(2048, 500, 1e-1)}
_CHO_OTHERS = _Descent(128, 500, 2e-4)  # the text has batches of 2,048, more than these data sets hold
_CHO_ADULT_TEXT = _Descent(512, 200, 1e-1, 0.98)


def _fair_kde(cell: Cell, material: Material, effort: Effort) -> list[Row]:
    published = cell.protocol.name == "published"
    settings = _network(cell, material)
    if not cell.standardize:
        own = _CHO.get(cell.name, _CHO_OTHERS)
        own = _CHO_ADULT_TEXT if cell.name == "adult" and not published else own
        settings |= own._replace(epochs=effort.epochs(own.epochs))._asdict()
    model = fairkde.FairKDEClassifier(
        criterion=cell.criterion.name, variant=_variant(cell), warm_start_path=published, **settings
    )
    strengths = effort.strengths(1e-5, 1e2, 25)
    if not published:  # the share of the penalty, whose odds against the risk are then those of our strengths
        strengths = [strength / (1 + strength) for strength in strengths]
    return _stack(cell, material, effort, method="fair-kde", model=model, strengths=strengths)


_SINKHORN_SWEEPS, _QUICK_SWEEPS = 100, 5  # of each transport problem, which starts from the last step's solution


def _transport_memory() -> float:
    """Bytes for transport plans: half of what the accelerator has free, where there is one."""
    return torch.cuda.mem_get_info()[0] / 2 if device_of("auto").type == "cuda" else 4 * 2**30


def _sinkhorn(cell: Cell, material: Material, effort: Effort) -> list[Row]:
    model = sinkhorn.SinkhornClassifier(
        criterion=cell.criterion.name,
        hidden=(cell.data.hidden,),
        epochs=effort.epochs(500),
        standardize=cell.standardize,
        variant=_variant(cell),
        max_iterations=_QUICK_SWEEPS if effort.quick else _SINKHORN_SWEEPS,
        tolerance=1e-5,
        precision="single",
        memory_limit=_transport_memory(),
    )
    large = cell.name == "adult"  # whose split is the same for all seeds; its costs are 18,686 x 18,686
    strengths = effort.strengths(1e-5, 1e2, 9 if large else 25)
    effort = replace(effort, seeds=effort.seeds[:1]) if large else effort
    return _stack(cell, material, effort, method="sinkhorn", model=model, strengths=strengths)


def _stack(
    cell: Cell,
    material: Material,
    effort: Effort,
    *,
    method: str,
    model: Any,
    strengths: Sequence[float] = (),
) -> list[Row]:
    """A method that trains all its seeds, and strengths where it has any, at once."""
    start = time.perf_counter()
    grid = {"strengths": strengths} if strengths else {}
    own = [material.train[seed] for seed in effort.seeds]
    labels = material.y.astype(np.int64)
    models = fit_stack(model, material.x, labels, material.a, seeds=effort.seeds, rows=own, **grid)
    seconds = (time.perf_counter() - start) / len(models)
    rows: list[Row] = []
    each = len(models) // len(effort.seeds)
    for at, seed in enumerate(effort.seeds):
        x = material.x[material.test[seed]]
        scores = [None if one is None else one.predict_proba(x)[:, 1] for one in models[at * each : (at + 1) * each]]
        rows += _judged(cell, method, material, seed, strengths=strengths or [0.0], scores=scores, seconds=seconds)
    return rows


def _around_the_network(method: str, kind: Callable[..., Any]) -> Work:
    """A method without a knob that changes labels or weights of the base network's training rows."""

    def work(cell: Cell, material: Material, effort: Effort) -> list[Row]:
        model = kind(FairClassifier(0.0, **_network(cell, material)))
        return _stack(cell, material, effort, method=method, model=model)

    return work


_label_bias = _around_the_network("label-bias", labelbias.LabelBiasClassifier)
_massaging = _around_the_network("massaging", massaging.MassagingClassifier)
_reweighing = _around_the_network("reweighing", reweighing.ReweighingClassifier)


def _fairbatch(cell: Cell, material: Material, effort: Effort) -> list[Row]:
    model = fairbatch.FairBatchClassifier(**_network(cell, material))
    return _stack(cell, material, effort, method="fairbatch", model=model)


def _xian(cell: Cell, material: Material, effort: Effort) -> list[Row]:
    """The base network's labels changed afterwards, by the scores of its training rows; it returns labels only.

    The strength is the tolerated gap as a share of the network's own on its training rows.
    """

    plain = labelbias.LabelBiasClassifier(FairClassifier(0.0, **_network(cell, material)), rounds=0)
    own = [material.train[seed] for seed in effort.seeds]
    labels = material.y.astype(np.int64)
    networks = fit_stack(plain, material.x, labels, material.a, seeds=effort.seeds, rows=own)
    shares = [0.0, *effort.strengths(1e-3, 1.0, 24)]
    rows = []
    for seed, network in zip(effort.seeds, networks, strict=True):
        (x, a), (new, group) = (
            (material.x[part], material.a[part]) for part in (material.train[seed], material.test[seed])
        )
        accepted = network.predict(x)
        gap = abs(accepted[a == 0].mean() - accepted[a == 1].mean())
        start = time.perf_counter()
        scores = [
            XianPostprocessor(network, alpha=share * gap, prefit=True)
            .fit(x, sensitive_features=a)
            .predict(new, sensitive_features=group)
            for share in shares
        ]
        seconds = (time.perf_counter() - start) / len(shares)
        rows += _judged(cell, "xian", material, seed, strengths=shares, scores=scores, seconds=seconds)
    return rows


def _transports(cell: Cell) -> bool:
    """Everywhere; on Adult an accelerator needs minutes for one seed, a CPU days: the paper leaves the place empty."""
    return cell.name != "adult" or device_of("auto").type == "cuda"


BASELINES: dict[str, tuple[Baseline, ...]] = {
    "regression": (
        Baseline("berk-individual", _berk("individual"), unscaled=True),
        Baseline("berk-group", _berk("group"), unscaled=True),
    ),
    "classification": (
        Baseline("zafar", _zafar, one_by_one=True, seedless=True, unscaled=True),
        Baseline("fair-kde", _fair_kde),
        Baseline("sinkhorn", _sinkhorn, _transports, either=True),
    ),
    "preprocessing": (
        Baseline("label-bias", _label_bias, either=True),
        Baseline("fairbatch", _fairbatch, either=True),
        Baseline("massaging", _massaging, either=True),
        Baseline("reweighing", _reweighing, either=True),
    ),
    "postprocessing": (Baseline("xian", _xian, either=True),),
}
BASELINES["equal-opportunity"] = BASELINES["classification"]
