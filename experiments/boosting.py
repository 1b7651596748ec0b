"""Boosted trees against the network, with the same penalty, splits and measures; and another library's reduction."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.boostingpage import FINE, NETWORK, REDUCTION, STRENGTHS, report
from experiments.grid import Store, loaded, shortened
from experiments.jobs import Job, all_rows, finished
from experiments.judging import judged
from experiments.material import Material
from experiments.pagenotes import circumstances
from experiments.rows import Row, write_rows
from experiments.settings import DATA, Effort, Protocol
from metrifair.checks import require
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.tradeoff.ledger import fingerprint

BOUNDS = (0.1, 0.05, 0.02)  # of the reduction: the demographic parity it is asked for
SETS = ("adult", "compas", "drug", "communities", "communities-regression", "student-math", "student-portuguese")
TREES = ("LightGBM", "XGBoost")
_MODELS = 15  # that the reduction trains for each bound


class Pace(NamedTuple):
    """How boosters are trained, and what their names say of it."""

    rounds: int
    learning_rate: float
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.rounds} rounds, learning rate {self.learning_rate:g}"


USUAL, SLOWER, _QUICK = Pace(100, 0.1), Pace(200, 0.05, ", slower"), Pace(20, 0.1)


@dataclass(frozen=True)
class Piece:
    """Work that is noted as a whole: one method on one split, at several strengths."""

    data: str
    method: str
    seed: int
    strengths: tuple[float, ...]  # of the reduction, its bounds
    pace: Pace


class Trained(NamedTuple):
    """What a model says of the test rows."""

    strength: float
    score: NDArray[Any]
    decided: NDArray[Any]  # of a regressor, the scores
    seconds: float


def run(protocol: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:  # noqa: ARG001  (the same for both)
    """Write the points, their figure and their page: one page, whatever the protocol."""
    modules = [require(name, extra="boosting", purpose="the experiment") for name in ("lightgbm", "xgboost")]
    store = loaded(len(effort.seeds))
    wanted = jobs(shortened(store) if effort.quick else store, effort)
    rows = all_rows(finished(wanted, out / "ledger.db", n_jobs=n_jobs))
    write_rows(out / "boosting.csv", rows)
    settings = (
        f"Boosters: {_QUICK if effort.quick else USUAL}; slower: {SLOWER}. Reduction: {_MODELS} models for each bound. "
        f"{', '.join(f'{module.__name__} {module.__version__}' for module in modules)}."
    )
    report(rows, out, notes=[settings, *circumstances(effort, processes=n_jobs)])


def jobs(store: Store, effort: Effort) -> list[Job]:
    """All methods on all data sets, one split per seed; where a split is prescribed there is one seed."""
    found = []
    for name in ("compas", "student-math") if effort.quick else SETS:
        material = store(name, "raw")
        fixed = bool((material.train == material.train[0]).all())
        for seed in effort.seeds[:1] if fixed else effort.seeds:
            for piece in pieces(name, seed, quick=effort.quick):
                key = fingerprint([material.fingerprint([seed]), repr(piece), _code()])
                title = f"boosting {name} {piece.method}{piece.pace.suffix} seed {seed} {key[:16]}"
                found.append(Job(title, partial(work, piece, material), size=len(material.x)))
    return found


def pieces(name: str, seed: int, *, quick: bool) -> list[Piece]:
    """What is trained on one split; Adult's boosters at more strengths and at two paces, and the reduction."""
    strengths, pace = ((0.0, 1.0, 10.0), _QUICK) if quick else (STRENGTHS, USUAL)
    found = [Piece(name, NETWORK, seed, strengths, pace)]
    if name != "adult":
        return found + [Piece(name, method, seed, strengths, pace) for method in TREES]
    finer = tuple(sorted((*STRENGTHS, *FINE)))
    found += [Piece(name, method, seed, finer, own) for own in (USUAL, SLOWER) for method in TREES]
    if find_spec("fairlearn") is not None:  # needed for nothing else: without it the comparison is left out
        found.append(Piece(name, REDUCTION, seed, BOUNDS, USUAL))
    return found


def _code() -> str:
    return inspect.getsource(sys.modules[__name__])


def work(piece: Piece, material: Material) -> list[Row]:
    """The rows of all models of a piece."""
    kinds = {NETWORK: _network, REDUCTION: _reduction}
    return [_judged(piece, material, one) for one in kinds.get(piece.method, _boosted)(piece, material)]


def _judged(piece: Piece, material: Material, one: Trained) -> Row:
    test = material.test[piece.seed]
    both = torch.as_tensor(np.stack([one.score, one.decided]), dtype=torch.float64)
    figures = judged(both, material.y[test], material.a[test], classify=not _regression(piece))
    return Row(
        "boosting",
        "both",
        "raw",
        piece.data,
        piece.method + piece.pace.suffix,
        one.strength,
        piece.seed,
        accuracy=float(figures.accuracy[1]),
        label_gap=float(figures.label_gap[1]),
        kolmogorov=float(figures.kolmogorov[0]),
        seconds=one.seconds,
    )


def _regression(piece: Piece) -> bool:
    return DATA[piece.data].task == "regression"


def _training(piece: Piece, material: Material) -> list[NDArray[Any]]:
    train = material.train[piece.seed]
    return [part[train] for part in (material.x, material.y, material.a)]


def _said(piece: Piece, material: Material, strength: float, model: Any, seconds: float) -> Trained:
    X = material.x[material.test[piece.seed]]
    decided = model.predict(X)
    return Trained(strength, decided if _regression(piece) else model.predict_proba(X)[:, 1], decided, seconds)


def _network(piece: Piece, material: Material) -> Iterator[Trained]:
    kind = FairRegressor if _regression(piece) else FairClassifier
    X, y, a = _training(piece, material)
    start = time.perf_counter()
    models = fit_stack(kind(), X, y, strengths=piece.strengths, seeds=[piece.seed], sensitive_features=a)
    seconds = (time.perf_counter() - start) / len(piece.strengths)
    for strength, model in zip(piece.strengths, models, strict=True):
        if model is not None:  # one that diverged has no row
            yield _said(piece, material, strength, model, seconds)


def _boosted(piece: Piece, material: Material) -> Iterator[Trained]:
    from metrifair.boosting.lightgbm import FairLGBMClassifier, FairLGBMRegressor  # noqa: PLC0415  (an extra)
    from metrifair.boosting.xgboost import FairXGBClassifier, FairXGBRegressor  # noqa: PLC0415

    kinds: dict[tuple[str, bool], Any] = {
        ("LightGBM", False): partial(FairLGBMClassifier, verbose=-1),
        ("LightGBM", True): partial(FairLGBMRegressor, verbose=-1),
        ("XGBoost", False): FairXGBClassifier,
        ("XGBoost", True): FairXGBRegressor,
    }
    X, y, a = _training(piece, material)
    for strength in piece.strengths:
        model = kinds[piece.method, _regression(piece)](strength, random_state=piece.seed, **_settings(piece.pace))
        start = time.perf_counter()
        model.fit(X, y, sensitive_features=a)
        yield _said(piece, material, strength, model, time.perf_counter() - start)


def _settings(pace: Pace) -> dict[str, Any]:
    """One thread: sums of several threads, and with them the points, would depend on the machine."""
    return {"n_estimators": pace.rounds, "learning_rate": pace.learning_rate, "n_jobs": 1}


def _reduction(piece: Piece, material: Material) -> Iterator[Trained]:
    """Exponentiated gradient, which reweights a plain booster again and again."""
    reductions: Any = require("fairlearn.reductions", extra="dev", purpose="the comparison")
    lightgbm: Any = require("lightgbm", extra="boosting", purpose="the comparison")
    X, y, a = _training(piece, material)
    unseen = material.x[material.test[piece.seed]]
    for bound in piece.strengths:
        plain = lightgbm.LGBMClassifier(**_settings(piece.pace), verbose=-1)
        parity = reductions.DemographicParity(difference_bound=bound)
        model = reductions.ExponentiatedGradient(plain, parity, max_iter=_MODELS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions between fairlearn and pandas
            start = time.perf_counter()
            model.fit(X, y, sensitive_features=a)
            seconds = time.perf_counter() - start
            chance = model._pmf_predict(unseen)[:, 1]  # its decisions are drawn with these
            yield Trained(bound, chance, model.predict(unseen, random_state=0), seconds)
