"""An attribute that is a number: trained on as it is, cut into groups, or with the kernel
penalties of others.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.baselines import Baseline, baseline_runs
from experiments.boosting import mean_text
from experiments.data import Source, Splits, load
from experiments.page import Page, TextTable, circumstances, tradeoff_chart, write_page
from experiments.results import ModelResult, results_of, write_csv
from experiments.runs import Run, all_results, finished
from experiments.settings import DATA, Case, Effort, Input, Protocol
from metrifair import datasets
from metrifair.batches.samples import Batch, Samples
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.estimators.settings import model_for, schedule_for
from metrifair.metrics import energy_dependence, kolmogorov_distance
from metrifair.problem.bands import candidate_cuts, quantile_cuts
from metrifair.problem.problem import Inputs, make_problem
from metrifair.training import train
from metrifair.training.objective import BINARY, Objective, regression

# the column that is the number; of Communities the share is in none
AGE = {"adult": "age", "drug": "Age"}
SETS = ("communities", "communities-regression", "adult", "drug")
STRENGTHS = (0.0, *(float(f"{10 ** (step / 3 - 1):.2g}") for step in range(16)))  # up to 10,000
NUMBER, HSIC, PARITY = "the number", "HSIC", "generalized parity"
BINS = {"2 groups": 2, "4 groups": 4, "10 groups": 10}
METHODS = (NUMBER, *BINS, HSIC, PARITY)
SHARES = (0.5, 0.2, 0.1)  # of the dependence without penalty
_BATCH = 256
_ADULT_SEEDS = 3  # its split is prescribed: seeds are of weights and batches only
_MOST_PAIRED = 1_024  # rows that a kernel penalty looks at, at once
_EITHER = Protocol("both", "prediction", floored=False, inputs=("raw",))

_ABOUT = (
    "The paper cuts the share of Black residents (Communities and Crime) at its median; here the "
    "number itself is the "
    "attribute, and so is age on Adult and Drug (whose six age bands are numbers in the source). "
    "Not in the paper: "
    "there are no printed values, and both protocols mean the same."
)
_TRAINED = (
    "All methods train the same network (FairClassifier, FairRegressor: their defaults but for "
    "batches of 256) on the "
    "same splits and inputs, which are the paper's (age is a feature; of Communities' share only "
    "the two groups are, "
    "in classification). What differs is the penalty. The number: energy_dependence, estimated "
    "without bias. 2, 4, 10 "
    "groups: the energy distance between quantile groups of the number (2: at the median, on "
    "Communities as in the "
    "paper). HSIC: Gaussian kernels with the median of all distances in the batch as bandwidth, "
    "the biased estimate of "
    "each batch. Generalized parity (Jiang and others, 2022): mean absolute difference between the "
    "score's mean and "
    "its mean near each person's number, by a Gaussian kernel (Silverman's bandwidth) in the batch."
)
_JUDGED = (
    "Judged on test rows, means over seeds: dependence is energy_dependence of scores and number; "
    "worst cut the "
    "largest Kolmogorov distance between people up to a cut of the number and above it, over up to "
    "100 cuts that leave "
    "5 % on either side; two groups the Kolmogorov distance of those below and above the median. "
    "Accuracies are read "
    "off the line through the means of all strengths; in brackets the standard error in units of "
    "the last digit."
)


@dataclass(frozen=True, eq=False)
class NumberSplits(Splits):
    """The data with the number; groups are those below and above its median."""

    number: NDArray[np.float64]


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Write the points, their figures and their page: one page, whatever the protocol."""
    results = all_results(finished(runs(effort), out / "ledger.db", n_jobs=n_jobs))
    write_csv(out / "continuous.csv", results)
    write_page(
        continuous_page(results, notes=circumstances(effort, processes=n_jobs)), out, "continuous"
    )


def runs(effort: Effort) -> list[Run]:
    """All methods on all data sets, one run for each seed."""
    code, jobs, arrays = inspect.getsource(sys.modules[__name__]), [], _source(effort)
    for name in ("communities-regression",) if effort.quick else SETS:
        case = Case("continuous", _EITHER, "raw", name, DATA[name])
        case_effort = (
            replace(effort, seeds=effort.seeds[:_ADULT_SEEDS]) if name == "adult" else effort
        )
        names = (NUMBER, "4 groups", HSIC, PARITY) if effort.quick else METHODS
        methods = [
            Baseline(method, partial(_train, method=method), one_by_one=True) for method in names
        ]
        jobs += baseline_runs(case, methods, arrays, case_effort, code=code)
    return jobs


def _source(effort: Effort) -> Source:
    @cache
    def splits(name: str, inputs: Input) -> Splits:
        loaded = load(name, inputs, seeds=len(effort.seeds))
        data: Any = datasets.load(DATA[name].source, **DATA[name].options)
        number = np.asarray(data.number if name not in AGE else data.X[AGE[name]], dtype=np.float64)
        above = (number > np.median(number)).astype(np.int64) if name in AGE else loaded.a
        rows = slice(0, 400 if effort.quick else None)
        return NumberSplits(
            loaded.x, loaded.y, above, loaded.train[:, rows], loaded.test[:, rows], number
        )

    return splits


# --- training
# ---------------------------------------------------------------------------------------------------


def _train(case: Case, splits: Splits, effort: Effort, *, method: str) -> list[ModelResult]:
    """All strengths at once, seed by seed."""
    if not isinstance(splits, NumberSplits):
        raise TypeError("the experiment needs the number")
    strengths, results = effort.some(STRENGTHS), []
    for seed in effort.seeds:
        start, rows, test = time.perf_counter(), splits.train[seed], splits.test[seed]
        kind = FairClassifier if case.classify else FairRegressor
        epochs: int | Literal["auto"] = 5 if effort.quick else "auto"
        model = kind(
            model="mlp",
            batch_size=_BATCH,
            epochs=epochs,
            continuous=method == NUMBER,
            random_state=seed,
            device="cpu",
        )
        x, y, number = splits.x[rows], splits.y[rows], splits.number[rows]
        scores: list[Any]
        if method in (HSIC, PARITY):
            penalty: Literal["hsic", "parity"] = "hsic" if method == HSIC else "parity"
            scores = kernel_scores(
                model,
                x,
                y,
                number,
                unseen=splits.x[test],
                strengths=strengths,
                seed=seed,
                penalty=penalty,
            )
        else:
            group = (
                number
                if method == NUMBER
                else np.searchsorted(quantile_cuts(number, None, BINS[method]), number)
            )
            if method == "2 groups":
                group = splits.a[rows]
            models = fit_stack(
                model, x, y, strengths=strengths, seeds=[seed], sensitive_features=group
            )
            scores = [
                fitted
                and (
                    fitted.predict_proba(splits.x[test])[:, 1]
                    if case.classify
                    else fitted.predict(splits.x[test])
                )
                for fitted in models
            ]
        seconds = (time.perf_counter() - start) / len(strengths)
        tested = results_of(
            case, splits, method, seed, strengths=strengths, scores=scores, seconds=seconds
        )
        results += [
            result
            if result.failed
            else _with_dependence(result, np.asarray(score), splits.number[test])
            for result, score in zip(tested, scores, strict=True)
        ]
    return results


def _with_dependence(
    result: ModelResult, score: NDArray[np.float64], number: NDArray[np.float64]
) -> ModelResult:
    worst = max(
        kolmogorov_distance(score[number <= cut], score[number > cut])
        for cut in candidate_cuts(number)
    )
    return replace(result, dependence=energy_dependence(score, number), worst_cut=float(worst))


def kernel_scores(
    model: FairClassifier | FairRegressor,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    number: NDArray[np.float64],
    *,
    unseen: NDArray[np.float64],
    strengths: Sequence[float],
    seed: int,
    penalty: Literal["hsic", "parity"],
) -> list[NDArray[np.float64] | None]:
    """Predictions for unseen rows of the network that ``model`` describes, trained with a
    kernel penalty instead.
    """
    classify = isinstance(model, FairClassifier)
    # FairRegressor scales its target
    center, spread = (0.0, 1.0) if classify else (float(y.mean()), float(y.std()))
    y = y if classify else (y - center) / spread
    problem = make_problem(
        Inputs(y, {"number": number}), continuous=True, target="labels" if classify else "numbers"
    )
    arrays = (
        x,
        problem.targets().astype(np.float64),
        problem.cell,
        np.ones(len(x)),
        problem.attribute_values,
    )
    data = Samples(*(torch.as_tensor(array) for array in arrays))
    objective = KernelPenalty(
        BINARY if classify else regression(), problem.comparisons, estimate="batch", kind=penalty
    )
    stack = train(
        data,
        model_for(model, x.shape[1], 1),
        objective,
        strengths=strengths,
        seeds=[seed],
        schedule=schedule_for(model, len(x)),
        device="cpu",
    )
    outputs = [
        None if bool(stack.failed[0, k]) else stack.predictor(0, k).output(unseen)
        for k in range(len(strengths))
    ]
    return [
        output
        if output is None
        else 1 / (1 + np.exp(-output))
        if classify
        else output * spread + center
        for output in outputs
    ]


@dataclass(frozen=True, eq=False)
class KernelPenalty(Objective):
    """What others lower for a number, from all pairs of a batch: its biased HSIC, or
    generalized parity.
    """

    kind: Literal["hsic", "parity"] = "hsic"

    def unfairness(self, output: Tensor, batch: Batch) -> Tensor:
        """Of the scores (..., n) of the batch; of very many rows, of some of them."""
        some = slice(None, None, -(-output.shape[-1] // _MOST_PAIRED))
        score, values = self.task.prediction(output)[..., some], batch.samples.value
        if values is None:
            raise TypeError("the samples have no numbers")
        number = values[..., some, 0].to(score.dtype)
        return hsic(score, number) if self.kind == "hsic" else generalized_parity(score, number)


def hsic(score: Tensor, number: Tensor) -> Tensor:
    """Biased, with Gaussian kernels whose bandwidths are the medians of all distances.

    >>> hsic(torch.tensor([0.1, 0.9, 0.1, 0.9]), torch.tensor([1.0, 1.0, 2.0, 2.0])).item()
    0.0
    """
    kernels = []
    for values in (score, number):
        far = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs()
        width = far.detach().flatten(-2).median(-1).values.clamp_min(1e-3)[..., None, None]
        kernel = (-0.5 * (far / width) ** 2).exp()
        kernels.append(kernel - kernel.mean(-1, keepdim=True))
    first, second = kernels
    return (first * (second - second.mean(-2, keepdim=True))).mean((-2, -1))


def generalized_parity(score: Tensor, number: Tensor) -> Tensor:
    """The mean over people of the difference between the score's mean near their number, and its
    mean.

    >>> generalized_parity(torch.tensor([0.2, 0.2, 0.8, 0.8]), torch.tensor([0.0, 0.0, 100.0, 100.0])).item() > 0.2
    True
    """
    count = number.shape[-1]
    width = 1.06 * number.std(-1, keepdim=True).unsqueeze(-1) * count**-0.2
    near = (-0.5 * ((number.unsqueeze(-1) - number.unsqueeze(-2)) / width) ** 2).exp()
    near = near / near.sum(-1, keepdim=True)
    local: Tensor = (near @ score.unsqueeze(-1)).squeeze(-1)
    return (local - score.mean(-1, keepdim=True)).abs().mean(-1)


# --- the page
# ---------------------------------------------------------------------------------------------------


def continuous_page(results: Sequence[ModelResult], *, notes: Sequence[str] = ()) -> Page:
    """Tables and figures; a model that diverged is in none."""
    results = [result for result in results if not result.failed]
    seeds = {
        result.data: max(other.seed for other in results if other.data == result.data) + 1
        for result in results
    }
    seeds_text = "Seeds: " + ", ".join(f"{name} {count}" for name, count in seeds.items())
    seeds_text += ". Each splits the rows anew, but on Adult, whose split is prescribed, where it changes weights and batches."  # noqa: E501
    tables = {
        "Accuracy (or R²) where the dependence is a share of that without penalty": best_table(
            results, "dependence"
        ),
        "The same, by the worst cut": best_table(results, "worst cut"),
        "The same, by the two groups": best_table(results, "scores"),
        "How the dependence falls along the strengths, trained on the number": fall_table(results),
    }
    charts = {
        f"Accuracy against {words}": tradeoff_chart(results, on=on)
        for on, words in (
            ("dependence", "dependence on the number"),
            ("worst cut", "the worst cut"),
        )
    }
    return Page(
        "Attributes that are numbers",
        [_ABOUT, _TRAINED, *notes, seeds_text, _JUDGED],
        tables,
        charts,
    )


def fall_table(results: Sequence[ModelResult]) -> TextTable:
    """The dependence of test rows by strength and data set, trained on the number itself: means
    over seeds.

    >>> one = ModelResult("continuous", "both", "raw", "adult", NUMBER, 0.0, 0, 0.9, 0.1, 0.4, dependence=0.25)
    >>> fall_table([one, replace(one, strength=1.0, dependence=0.0625)])
    [['strength', 'adult'], ['0', '0.2500'], ['1', '0.0625']]
    """
    of_number = [result for result in results if result.method == NUMBER]
    names, strengths = (
        dict.fromkeys(result.data for result in of_number),
        sorted({result.strength for result in of_number}),
    )
    dependences: dict[tuple[str, float], list[float]] = {}
    for result in of_number:
        dependences.setdefault((result.data, result.strength), []).append(result.dependence)
    lines = [
        [
            f"{strength:g}",
            *(
                f"{fmean(dependences[name, strength]):.4f}"
                if (name, strength) in dependences
                else "–"
                for name in names
            ),
        ]
        for strength in strengths
    ]
    return [["strength", *names], *lines]


def best_table(results: Sequence[ModelResult], on: str) -> TextTable:
    """By data set and method: what is reached at shares of the unpenalized unfairness, and how low
    it gets.

    Read off the line through the means of all strengths, where it is highest at or below the share.

    >>> one = ModelResult("continuous", "both", "raw", "adult", "HSIC", 0.0, 0, 0.9, 0.1, 0.4)
    >>> two = replace(one, strength=1.0, accuracy=0.8, kolmogorov=0.1)
    >>> best_table([one, two], "scores")[1]
    ['adult', 'HSIC', '0.900 / 0.400', '0.833', '–', '–', '0.100']
    """
    lines = []
    for name, method in dict.fromkeys((result.data, result.method) for result in results):
        group = sorted(
            (result for result in results if (result.data, result.method) == (name, method)),
            key=lambda result: result.strength,
        )
        by_strength = [list(part) for _, part in groupby(group, key=lambda result: result.strength)]
        gaps = [fmean(result.gap(on) for result in part) for part in by_strength]
        accuracies = [np.array([result.accuracy for result in part]) for part in by_strength]
        texts = []
        for limit in (share * gaps[0] for share in SHARES):
            within_limit = [
                value for value, gap in zip(accuracies, gaps, strict=True) if gap <= limit
            ]
            for (gap, value), (other, lower) in pairwise(zip(gaps, accuracies, strict=True)):
                if min(gap, other) <= limit < max(gap, other) and len(value) == len(lower):
                    within_limit.append(value + (lower - value) * (limit - gap) / (other - gap))
            best = max(within_limit, key=lambda value: float(value.mean()), default=None)
            texts.append("–" if best is None else mean_text(best.tolist()))
        plain = mean_text(accuracies[0].tolist())
        lines.append([name, method, f"{plain} / {gaps[0]:.3f}", *texts, f"{min(gaps):.3f}"])
    return [
        [
            "data",
            "trained on",
            "no penalty",
            *(f"at {share:g} of it" for share in SHARES),
            "lowest",
        ],
        *lines,
    ]
