"""The methods that the paper compares with, each over its own grid of strengths, on the paper's
cases.
"""

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
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from experiments.data import Source, Splits
from experiments.mfl import schedule
from experiments.results import ModelResult, results_of
from experiments.runs import Run, run_of
from experiments.settings import PUBLISHED, Case, Effort
from experiments.stacks import FairKDEPath, berk_path, fit_stack
from metrifair import PenaltyOptions
from metrifair.baselines import (
    BerkRegressor,
    FairBatchClassifier,
    FairKDEClassifier,
    LabelBiasClassifier,
    MassagingClassifier,
    ReweighingClassifier,
    SinkhornClassifier,
    XianPostprocessor,
    ZafarClassifier,
)
from metrifair.baselines.berk import PenaltyForm
from metrifair.estimators import FairClassifier
from metrifair.estimators.settings import as_device

Work = Callable[[Case, Splits, Effort], list[ModelResult]]
Index = NDArray[np.int64]  # positions of rows
_Returned = TypeVar("_Returned")


class Baseline(NamedTuple):
    """A method, and the cases it was run on."""

    method: str
    work: Work
    one_by_one: bool = False  # a run for each seed: nothing is gained by training them together
    seedless: bool = False  # nothing is drawn: where all seeds have one split, one will do
    either: bool = False  # both protocols run the same on raw inputs
    unscaled: bool = False  # standardizing changes nothing: only another encoding does
    # on Adult an accelerator needs minutes for one seed, a CPU days; the paper has no entry there
    dear: bool = False


def baseline_runs(
    case: Case,
    methods: Sequence[Baseline],
    source: Source,
    effort: Effort,
    *,
    code: str | None = None,
) -> list[Run]:
    """All methods that apply to a case, each under the case whose results are also those of this
    one.

    ``code`` is the text of what sets the methods up, of all those in this module by default: work
    is done anew when it changes.
    """
    code = code or inspect.getsource(sys.modules[__name__])
    jobs = []
    for method in methods:
        if method.dear and case.name == "adult" and as_device("auto").type != "cuda":
            continue
        served = case
        if method.either and case.input == "raw":
            served = replace(case, protocol=PUBLISHED)
        elif method.unscaled and case.name != "adult":
            served = replace(case, input="raw")
        fixed = method.seedless and source(served.name, served.input).prescribed
        seeds = effort.seeds[:1] if fixed else effort.seeds
        for part in [(seed,) for seed in seeds] if method.one_by_one else [seeds]:
            part_effort = replace(effort, seeds=part)
            run = run_of(
                served,
                method.method,
                partial(_noting_solvers, method.work, served, part_effort),
                source,
                part_effort,
                code=code,
            )
            jobs.append(run._replace(shown={"protocol": case.protocol.name, "input": case.input}))
    return jobs


def _noting_solvers(work: Work, case: Case, effort: Effort, splits: Splits) -> list[ModelResult]:
    """The results, which say whether a solver stopped short; where a method does not note it, in
    any of its fits.
    """
    results, short = _watched(work, case, splits, effort)
    return [
        replace(result, unconverged=float(short)) if isnan(result.unconverged) else result
        for result in results
    ]


def _watched(
    work: Callable[..., _Returned], *arguments: Any, **named: Any
) -> tuple[_Returned, bool]:
    """What some work returns, and whether a solver stopped short on the way.

    Only strengths above 1 pass in silence: the published settings ask for them. All other warnings
    go on.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.filterwarnings("ignore", "strength .* is above 1")
        result = work(*arguments, **named)
    short = [warning for warning in caught if issubclass(warning.category, ConvergenceWarning)]
    for warning in caught:
        if warning not in short:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return result, bool(short)


def _variant(case: Case) -> Any:
    return "reference" if case.published else "method"


def _by_seed(
    case: Case,
    splits: Splits,
    effort: Effort,
    *,
    method: str,
    strengths: Sequence[float],
    scores: Callable[[Index, Index], Sequence[ArrayLike]],
) -> list[ModelResult]:
    """Results of a method that makes ``scores(train, test)`` of all strengths for the rows of
    one seed.
    """
    results = []
    for seed in effort.seeds:
        start = time.perf_counter()
        seed_scores = scores(splits.train[seed], splits.test[seed])
        seconds = (time.perf_counter() - start) / len(strengths)
        results += results_of(
            case, splits, method, seed, strengths=strengths, scores=seed_scores, seconds=seconds
        )
    return results


def _berk(case: Case, splits: Splits, effort: Effort, *, penalty: PenaltyForm) -> list[ModelResult]:
    strengths = effort.strengths(1e-2, 1e5, 50)
    model = BerkRegressor(penalty=penalty, variant=_variant(case))

    def scores(train: Index, test: Index) -> list[ArrayLike]:
        models = berk_path(model, splits.x[train], splits.y[train], splits.a[train], strengths)
        return [fitted.predict(splits.x[test]) for fitted in models]

    return _by_seed(
        case, splits, effort, method=f"berk-{penalty}", strengths=strengths, scores=scores
    )


# Rare one-hot columns hold one label only: without a ridge their few rows meet any bound, at scores
# beyond 40,000 and no loss. This is the least power of ten at which no score of the whole grid is
# beyond 200, where the fit would warn.
_ONE_HOT_RIDGE = 10.0


def _zafar(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
    """The covariance of group and score, also where equal opportunity is measured: so the
    published runs.
    """
    strengths = effort.strengths(1e-5, 1e1, 25)
    ridge = _ONE_HOT_RIDGE if case.name == "adult" and case.standardize else 0.0
    x = splits.without_group
    short: list[bool] = []  # of every fit

    def scores(train: Index, test: Index) -> list[ArrayLike]:
        models = [
            ZafarClassifier(gamma=gamma, ridge=ridge, variant=_variant(case)) for gamma in strengths
        ]
        training = (x[train], splits.y[train])
        short.extend(
            _watched(model.fit, *training, sensitive_features=splits.a[train])[1]
            for model in models
        )
        return [model.predict_proba(x[test])[:, 1] for model in models]

    results = _by_seed(case, splits, effort, method="zafar", strengths=strengths, scores=scores)
    return [
        replace(result, unconverged=float(stopped))
        for result, stopped in zip(results, short, strict=True)
    ]


def _network(case: Case, splits: Splits) -> dict[str, Any]:
    """Parameters of the paper's base network: ours without a penalty."""
    plan = schedule(case, splits.train.shape[1])
    return {
        "hidden": (case.data.hidden,),
        "batch_size": plan.batch_size,
        "epochs": plan.epochs,
        "learning_rate": plan.learning_rate,
        "standardize": case.standardize,
    }


def _plain_network(standardize: bool, **network: Any) -> FairClassifier:
    """The base network as an estimator."""
    options = PenaltyOptions(standardize=standardize)
    return FairClassifier(0.0, model="mlp", penalty=options, **network)


def _stack(
    case: Case,
    splits: Splits,
    effort: Effort,
    *,
    method: str,
    model: Any,
    strengths: Sequence[float] = (),
) -> list[ModelResult]:
    """A method at all seeds, and at all strengths where it has any."""
    start = time.perf_counter()
    grid = {"strengths": strengths} if strengths else {}
    rows = [splits.train[seed] for seed in effort.seeds]
    labels = splits.y.astype(np.int64)
    models = fit_stack(model, splits.x, labels, splits.a, seeds=effort.seeds, rows=rows, **grid)
    seconds = (time.perf_counter() - start) / len(models)
    results: list[ModelResult] = []
    each = len(models) // len(effort.seeds)
    for at, seed in enumerate(effort.seeds):
        x = splits.x[splits.test[seed]]
        scores = [
            None if fitted is None else fitted.predict_proba(x)[:, 1]
            for fitted in models[at * each : (at + 1) * each]
        ]
        results += results_of(
            case, splits, method, seed, strengths=strengths or [0.0], scores=scores, seconds=seconds
        )
    return results


class _Descent(NamedTuple):
    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0


_CHO = {"compas": _Descent(2048, 500, 5e-4), "adult": _Descent(2048, 500, 1e-1)}
# the text has batches of 2,048, more than these data sets hold
_CHO_OTHERS = _Descent(128, 500, 2e-4)
_CHO_ADULT_TEXT = _Descent(512, 200, 1e-1, 0.98)


def _fair_kde(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
    settings = _network(case, splits)
    if not case.standardize:
        descent = _CHO.get(case.name, _CHO_OTHERS)
        descent = _CHO_ADULT_TEXT if case.name == "adult" and not case.published else descent
        settings |= descent._replace(epochs=effort.epochs(descent.epochs))._asdict()
    kind = FairKDEPath if case.published else FairKDEClassifier
    model = kind(criterion=case.criterion.name, variant=_variant(case), **settings)
    strengths = effort.strengths(1e-5, 1e2, 25)
    # the share of the penalty, whose odds against the risk are then those of our strengths
    if not case.published:
        strengths = [strength / (1 + strength) for strength in strengths]
    return _stack(case, splits, effort, method="fair-kde", model=model, strengths=strengths)


# of each transport problem, which starts from the last step's solution
_SINKHORN_SWEEPS, _QUICK_SWEEPS = 100, 5


def _sinkhorn(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
    # Transport plans may take half of what the accelerator has free, where there is one.
    memory = torch.cuda.mem_get_info()[0] / 2 if as_device("auto").type == "cuda" else 4 * 2**30
    model = SinkhornClassifier(
        criterion=case.criterion.name,
        hidden=(case.data.hidden,),
        epochs=effort.epochs(500),
        standardize=case.standardize,
        variant=_variant(case),
        max_iterations=_QUICK_SWEEPS if effort.quick else _SINKHORN_SWEEPS,
        tol=1e-5,
        precision="single",
        memory_limit=memory,
    )
    # whose split is the same for all seeds; its costs are 18,686 x 18,686
    large = case.name == "adult"
    strengths = effort.strengths(1e-5, 1e2, 9 if large else 25)
    # Minutes for each seed on unscaled inputs and under parity; on the positives of standardized
    # ones less than one.
    seeds = (
        1
        if not case.standardize
        else 2
        if case.experiment == "classification"
        else len(effort.seeds)
    )
    effort = replace(effort, seeds=effort.seeds[:seeds]) if large else effort
    return _stack(case, splits, effort, method="sinkhorn", model=model, strengths=strengths)


def _without_a_strength(method: str, model: Callable[..., Any]) -> Baseline:
    """A method that is ``model`` of the base network's parameters, and has no strength."""

    def work(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
        return _stack(case, splits, effort, method=method, model=model(**_network(case, splits)))

    return Baseline(method, work, either=True)


def _xian(case: Case, splits: Splits, effort: Effort) -> list[ModelResult]:
    """The base network's labels changed afterwards, by the scores of its training rows; it returns
    labels only.

    The strength is the tolerated gap as a share of the network's own on its training rows.
    """
    plain = LabelBiasClassifier(_plain_network(**_network(case, splits)), rounds=0)
    rows = [splits.train[seed] for seed in effort.seeds]
    networks = iter(
        fit_stack(
            plain, splits.x, splits.y.astype(np.int64), splits.a, seeds=effort.seeds, rows=rows
        )
    )
    shares = [0.0, *effort.strengths(1e-3, 1.0, 24)]

    def scores(train: Index, test: Index) -> list[ArrayLike]:
        (x, a), network = (splits.x[train], splits.a[train]), next(networks)
        accepted = network.predict(x)
        gap = abs(accepted[a == 0].mean() - accepted[a == 1].mean())
        models = [XianPostprocessor(network, alpha=share * gap, prefit=True) for share in shares]
        fitted = [model.fit(x, sensitive_features=a) for model in models]
        return [
            model.predict(splits.x[test], sensitive_features=splits.a[test]) for model in fitted
        ]

    return _by_seed(case, splits, effort, method="xian", strengths=shares, scores=scores)


_AGAINST_CLASSIFIERS = (
    Baseline("zafar", _zafar, one_by_one=True, seedless=True, unscaled=True),
    Baseline("fair-kde", _fair_kde),
    Baseline("sinkhorn", _sinkhorn, either=True, dear=True),
)
BASELINES: dict[str, tuple[Baseline, ...]] = {
    "regression": (
        Baseline("berk-individual", partial(_berk, penalty="individual"), unscaled=True),
        Baseline("berk-group", partial(_berk, penalty="group"), unscaled=True),
    ),
    "classification": _AGAINST_CLASSIFIERS,
    "equal-opportunity": _AGAINST_CLASSIFIERS,
    "preprocessing": (
        _without_a_strength(
            "label-bias", lambda **network: LabelBiasClassifier(_plain_network(**network))
        ),
        _without_a_strength("fairbatch", FairBatchClassifier),
        _without_a_strength(
            "massaging", lambda **network: MassagingClassifier(_plain_network(**network))
        ),
        _without_a_strength(
            "reweighing", lambda **network: ReweighingClassifier(_plain_network(**network))
        ),
    ),
    "postprocessing": (Baseline("xian", _xian, either=True),),
}
