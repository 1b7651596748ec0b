"""Other libraries' methods on arrays, each with one parameter that trades accuracy for fairness.

This module imports nothing of ours. A method fits its models on the training rows of :class:`Rows`
and yields what each says of the other rows. ``experiments/duel_protocol.toml`` names the methods,
their base models and their parameters.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Features in units of the training rows, labels, groups, and which rows are for training."""

    x: Floats
    y: NDArray[np.int64]
    a: NDArray[np.int64]
    train: NDArray[np.bool_]


class Said(NamedTuple):
    """What a model says of the rows that it was not trained on."""

    strength: float  # the value of the method's parameter
    score: Floats  # the probability of the positive label
    decision: Floats


class Settings(NamedTuple):
    """The base model, by name, and what the protocol says of strengths, of the blend and of
    training.
    """

    base: str
    strengths: dict[str, Any]
    blend: dict[str, Any]
    # of training a penalized network; None: as many as our own training takes
    steps: int | None = None

    def model(self) -> Any:
        """The base model of a method that wraps one."""
        logistic = LogisticRegression(max_iter=1_000)
        if self.base != "blend":
            return logistic
        from lightgbm import LGBMClassifier  # noqa: PLC0415

        trees = LGBMClassifier(  # as in our own blend; deterministic in one thread
            num_leaves=self.blend["leaves"],
            n_estimators=self.blend["rounds"],
            learning_rate=self.blend["learning_rate"],
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            random_state=0,
            verbose=-1,
        )
        return VotingClassifier([("logistic", logistic), ("trees", trees)], voting="soft")

    def fitted(self, rows: Rows) -> Any:
        """The base model of the training rows."""
        return self.model().fit(rows.x[rows.train], rows.y[rows.train])


Method = Callable[[Rows, Settings], Iterator[Said]]


def reduction(rows: Rows, settings: Settings) -> Iterator[Said]:
    """fairlearn's exponentiated gradient."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415

    for bound in settings.strengths["bounds"]:
        model = ExponentiatedGradient(settings.model(), DemographicParity(difference_bound=bound))
        model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
        unseen = rows.x[~rows.train]
        yield Said(bound, model._pmf_predict(unseen)[:, 1], model.predict(unseen, random_state=0))


def grid(rows: Rows, settings: Settings) -> Iterator[Said]:
    """fairlearn's grid search: each of its models is one point."""
    from fairlearn.reductions import DemographicParity, GridSearch  # noqa: PLC0415

    model = GridSearch(settings.model(), DemographicParity(), grid_size=settings.strengths["grid"])
    model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
    for place, one in enumerate(model.predictors_):
        score = one.predict_proba(rows.x[~rows.train])[:, -1]
        yield Said(float(place), score, one.predict(rows.x[~rows.train]))


def thresholds(rows: Rows, settings: Settings) -> Iterator[Said]:
    """fairlearn's threshold optimizer, which needs the group."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415

    model = ThresholdOptimizer(
        estimator=settings.fitted(rows),
        constraints="demographic_parity",
        prefit=True,
        predict_method="predict_proba",
    )
    model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
    unseen, groups = rows.x[~rows.train], rows.a[~rows.train]
    probability = model._pmf_predict(unseen, sensitive_features=groups)[:, 1]
    yield Said(0.0, probability, model.predict(unseen, sensitive_features=groups, random_state=0))


def relaxed(rows: Rows, settings: Settings) -> Iterator[Said]:
    """error-parity's relaxed thresholds, which need the group."""
    from error_parity import RelaxedThresholdOptimizer  # noqa: PLC0415

    _solve_without_ecos()
    base = settings.fitted(rows)
    for tolerance in settings.strengths["tolerances"]:
        model = RelaxedThresholdOptimizer(
            predictor=lambda x: base.predict_proba(x)[:, 1],
            constraint="demographic_parity",
            tolerance=tolerance,
            seed=0,
        )
        model.fit(X=rows.x[rows.train], y=rows.y[rows.train], group=rows.a[rows.train])
        decision = np.asarray(model(rows.x[~rows.train], group=rows.a[~rows.train]), dtype=float)
        yield Said(tolerance, decision, decision)


def _solve_without_ecos() -> None:
    """Let cvxpy solve error-parity's programs by Clarabel, which it ships in the place of ECOS."""
    cvxpy: Any = import_module("cvxpy")
    whole = cvxpy.Problem.solve
    if "ECOS" in cvxpy.installed_solvers() or whole.__name__ == "by_clarabel":
        return

    def by_clarabel(problem: Any, *, solver: str, abstol: float, feastol: float) -> Any:  # noqa: ARG001
        return whole(problem, solver=cvxpy.CLARABEL, tol_gap_abs=abstol, tol_feas=feastol)

    cvxpy.Problem.solve = by_clarabel


def oxonfair(rows: Rows, settings: Settings) -> Iterator[Said]:
    """OxonFair's thresholds of the groups, which need the group."""
    from oxonfair import DataDict, FairPredictor, group_metrics  # noqa: PLC0415

    known, unseen = (
        DataDict(rows.y[part], rows.x[part], rows.a[part]) for part in (rows.train, ~rows.train)
    )
    model = FairPredictor(settings.fitted(rows), known)
    for tolerance in settings.strengths["tolerances"]:
        model.fit(group_metrics.accuracy, group_metrics.demographic_parity, tolerance)
        decision = np.asarray(model.predict(unseen), dtype=float)
        yield Said(tolerance, decision, decision)


def barycenter(rows: Rows, settings: Settings) -> Iterator[Said]:
    """equipy's Wasserstein barycenter, which needs the group."""
    _provide_imports()
    from equipy.fairness import FairWasserstein  # noqa: PLC0415

    score, groups = settings.fitted(rows).predict_proba(rows.x)[:, 1], rows.a[:, None]
    for share in settings.strengths["shares"]:
        model = FairWasserstein()
        model.fit(score[rows.train], groups[rows.train])
        moved = np.asarray(
            model.transform(score[~rows.train], groups[~rows.train], epsilon=share)
        ).ravel()
        yield Said(share, moved, (moved >= 0.5).astype(float))


class _StepFunction:
    """The empirical distribution function, as statsmodels' ECDF."""

    def __init__(self, values: Any) -> None:
        self.values = np.sort(np.asarray(values))

    def __call__(self, at: Any) -> Any:
        return np.searchsorted(self.values, at, side="right") / len(self.values)


def _provide_imports() -> None:
    """Let equipy be imported without seaborn, which draws, and statsmodels, of which it uses
    one function.
    """
    names = (
        "seaborn",
        "statsmodels",
        "statsmodels.distributions",
        "statsmodels.distributions.empirical_distribution",
    )
    absent = {name for name in names[:2] if name not in sys.modules and find_spec(name) is None}
    for name in names:
        if name.partition(".")[0] in absent:
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].ECDF = _StepFunction  # type: ignore[attr-defined]


def fairret_norm(rows: Rows, settings: Settings) -> Iterator[Said]:
    """fairret's norm of the gaps between positive rates, as a penalty.

    fairret takes one model at a time. All models' values are computed together here, and compared
    with fairret's once.
    """
    from fairret.loss import NormLoss  # noqa: PLC0415
    from fairret.statistic import PositiveRate  # noqa: PLC0415

    norm = NormLoss(PositiveRate())
    compared: list[torch.Tensor] = []

    def gaps(outputs: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        groups, probabilities = torch.eye(2)[a], torch.sigmoid(outputs)
        rates = probabilities @ groups / groups.sum(0)
        values = (rates / probabilities.mean(1, keepdim=True) - 1).abs().sum(1)
        if not compared:
            compared.extend(norm(output.unsqueeze(-1), groups) for output in outputs)
            torch.testing.assert_close(values, torch.stack(compared))
        return values

    yield from _penalized(rows, settings, gaps)


def diff_dp(rows: Rows, settings: Settings) -> Iterator[Said]:
    """FFB's DiffDP: the gap between the groups' mean predictions."""

    def gap(outputs: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        probabilities = torch.sigmoid(outputs)
        return (probabilities[:, a == 0].mean(1) - probabilities[:, a == 1].mean(1)).abs()

    yield from _penalized(rows, settings, gap)


def hsic(rows: Rows, settings: Settings) -> Iterator[Said]:
    """FFB's HSIC of predictions and groups: Gaussian kernels exp(-d^2), biased, over (m - 1)^2."""

    def kernel(values: torch.Tensor) -> torch.Tensor:
        return torch.exp(-((values.unsqueeze(-1) - values.unsqueeze(-2)) ** 2))

    def dependence(outputs: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        of_groups = kernel(a.to(outputs))
        centered = (
            of_groups - of_groups.mean(0) - of_groups.mean(1, keepdim=True) + of_groups.mean()
        )
        return (kernel(torch.sigmoid(outputs)) * centered).sum((1, 2)) / (len(a) - 1) ** 2

    # It compares all pairs of rows, so that batches are small.
    yield from _penalized(
        rows, settings, dependence, factor=settings.strengths["hsic_factor"], largest=512
    )


METHODS: dict[str, Method] = {
    one.__name__: one
    for one in (
        reduction,
        grid,
        thresholds,
        relaxed,
        oxonfair,
        barycenter,
        fairret_norm,
        diff_dp,
        hsic,
    )
}


def _with_blend(rows: Rows, settings: Settings) -> Floats:
    """The features, and the log-odds of the blend; those of training rows are out of fold."""
    own, found = rows.train, np.empty(len(rows.y))
    blend = settings.model()
    found[own] = cross_val_predict(blend, rows.x[own], rows.y[own], cv=5, method="predict_proba")[
        :, 1
    ]
    found[~own] = clone(blend).fit(rows.x[own], rows.y[own]).predict_proba(rows.x[~own])[:, 1]
    found = np.clip(found, 1e-6, 1 - 1e-6)
    return np.column_stack([rows.x, np.log(found / (1 - found))])


def _penalized(
    rows: Rows,
    settings: Settings,
    penalty: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    factor: float = 1.0,
    largest: int = 2_048,
) -> Iterator[Said]:
    """A PyTorch loop with as many steps, as large batches and as fast an Adam as our own training
    has.

    The models of all strengths begin alike and see the same batches, so that they are trained
    together.
    """
    linear = settings.base == "linear"
    x = torch.as_tensor(_with_blend(rows, settings) if settings.base == "blend" else rows.x).float()
    y, a, own = (
        torch.as_tensor(rows.y).float(),
        torch.as_tensor(rows.a),
        torch.as_tensor(np.flatnonzero(rows.train)),
    )
    size = min(largest, len(own) if len(own) <= 1_000 else int(np.clip(len(own) // 8, 256, 2_048)))
    per_epoch = max(1, len(own) // size)
    steps = settings.steps or (1_000 if linear else int(np.clip(60 * per_epoch, 150, 1_000)))
    strengths = torch.tensor(settings.strengths["penalties"])
    penalized = strengths > 0
    torch.manual_seed(0)
    hidden = [] if linear else [torch.nn.Linear(x.shape[1], 16), torch.nn.ReLU()]
    model = torch.nn.Sequential(*hidden, torch.nn.Linear(16 if hidden else x.shape[1], 1))
    parameters = {
        name: value.detach().repeat(len(strengths), *[1] * value.ndim).requires_grad_()
        for name, value in model.named_parameters()
    }
    outputs = torch.vmap(
        lambda own, x: functional_call(model, own, x).squeeze(-1), in_dims=(0, None)
    )
    adam = torch.optim.Adam(parameters.values(), lr=0.005)
    fall = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 2 * (1 - step / steps)))
    batches: list[torch.Tensor] = []
    for _ in range(steps):
        batches = batches or list(torch.randperm(len(own))[: per_epoch * size].split(size))
        part = own[batches.pop()]
        output = outputs(parameters, x[part])
        loss = cross_entropy(output, y[part].expand_as(output), reduction="none").mean(1).sum()
        loss = loss + factor * strengths[penalized] @ penalty(output[penalized], a[part])
        adam.zero_grad()
        loss.backward()
        adam.step()
        fall.step()
    with torch.no_grad():
        scores = (
            torch.sigmoid(outputs(parameters, x[~torch.as_tensor(rows.train)])).double().numpy()
        )
    for strength, score in zip(settings.strengths["penalties"], scores, strict=True):
        yield Said(strength, score, (score >= 0.5).astype(float))
