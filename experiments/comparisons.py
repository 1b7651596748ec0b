"""The experiments that compare methods on the paper's data: what they run, and what is made of
the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan, log, pi, sqrt
from pathlib import Path

from experiments.baselines import BASELINES, baseline_runs
from experiments.data import Source, source
from experiments.mfl import SHOWN_IN, mfl_runs
from experiments.page import SKETCH, Page, circumstances, tradeoff_chart, write_page
from experiments.printed import LABELS_ONLY, METHODS, printed
from experiments.results import ModelResult, write_csv
from experiments.runs import Run, all_results, finished
from experiments.settings import CLASSIFICATION, DATA, Effort, Protocol, cases
from experiments.tables import Curve, close, corrected_table, curves, published_table

EXPERIMENTS = (
    "regression",
    "classification",
    "equal-opportunity",
    "preprocessing",
    "postprocessing",
)

_TITLES = {
    "regression": "Regression under statistical parity",
    "classification": "Classification under statistical parity",
    "equal-opportunity": "Classification under equal opportunity",
    "preprocessing": "Pre-processing methods against our network",
    "postprocessing": "Post-processing against our network",
}
_SETTINGS = {
    "published": (
        "Protocol: published. Penalty on the outputs (logits) of classifiers; batches of "
        "floor(share x size) rows of "
        "each group, equally weighted, leftovers dropped; unscaled inputs; labels at 0.5; "
        "trapezoid through all points "
        "with its anchors; mean over seeds ± standard error. Regression: the published sort may "
        "place the anchor "
        "behind points that tie with it, both cases are shown."
    ),
    "corrected": (
        "Protocol: corrected. Penalty on predictions; stratified batches with exact weights; exact "
        "dominated area of "
        "the unfairness of scores (Kolmogorov distance) and of labels; mean over seeds ± standard "
        "error. Input raw: "
        "unscaled, the paper's batches, epochs and learning rates. Input standard: standardized, "
        "Adult one-hot, "
        "trained as our estimators train by default (docs/defaults.md). Constant allowed: every "
        "method is given the "
        "constant model, which is fair and which a large strength may or may not reach."
    ),
}
_WORDS = (
    "MFL: the paper's method (ours), as a linear model or as a network (NN). CC: Communities and "
    "Crime. s per fit: "
    "seconds that one model took. Dashed line in a figure: the sampling floor, the mean distance "
    "of two samples, as "
    "large as the test groups, of one distribution; to its left only models near a constant can be "
    "expected."
)
_RIDGE = (
    "Zafar has no ridge, as published, but for one of 10 (scaled columns, sum of losses) on "
    "one-hot Adult: there rare "
    "columns hold one label only, and without it their few rows meet any bound, at no loss and no "
    "gain in fairness."
)
_BY_LABEL = (
    "Here batches hold floor(share x size) rows of each group and label, where the published ones "
    "were drawn by "
    "group only: the number of positives in a batch must not change from step to step."
)
_DEPARTURES = {
    ("classification", "corrected"): [_RIDGE],
    ("equal-opportunity", "corrected"): [_RIDGE],
    ("equal-opportunity", "published"): [_BY_LABEL],
}


def run(name: str, protocol: Protocol, effort: Effort, out: Path, *, n_jobs: int) -> None:
    """Write the points of all methods, their table, figures and page."""
    done = finished(runs(name, protocol, source(effort), effort), out / "ledger.db", n_jobs=n_jobs)
    results = all_results(done)
    title = f"{name}-{protocol.name}"
    write_csv(out / f"{title}.csv", results)
    notes = circumstances(effort, processes=n_jobs)
    write_page(comparison_page(name, protocol.name, results, notes=notes), out, title)


def runs(experiment: str, protocol: Protocol, arrays: Source, effort: Effort) -> list[Run]:
    """Our method, then the others, on all cases."""
    jobs = mfl_runs(experiment, protocol, arrays, effort)
    for case in cases(experiment, protocol, effort):
        jobs += baseline_runs(case, BASELINES[experiment], arrays, effort)
    return jobs


def completed(results: Iterable[ModelResult]) -> list[ModelResult]:
    """The results, and copies of those that serve another protocol or input as well and were
    not run for it.
    """
    originals = list(results)
    flags = {result.method: result for methods in BASELINES.values() for result in methods}

    def place(result: ModelResult) -> tuple[object, ...]:
        return (
            result.experiment,
            result.protocol,
            result.input,
            result.data,
            result.method,
            result.seed,
        )

    present = {place(result) for result in originals}
    extended = list(originals)
    for result in originals:
        method = flags.get(result.method)
        if method is None or result.input != "raw":
            continue
        copies = (
            [replace(result, protocol="corrected")]
            if method.either and result.protocol == "published"
            else []
        )
        if method.unscaled and result.protocol == "corrected" and result.data != "adult":
            copies.append(replace(result, input="standard"))
        extended += [copy for copy in copies if place(copy) not in present]
    return extended


def comparison_page(
    experiment: str, protocol: str, results: Iterable[ModelResult], *, notes: Sequence[str] = ()
) -> Page:
    """Table and figures of the results of one experiment and protocol."""
    wanted = (experiment, SHOWN_IN.get(experiment))
    all_curves = [
        curve
        for curve in curves(
            result
            for result in results
            if result.protocol == protocol and result.experiment in wanted
        )
        if curve.experiment == experiment
        or (curve.method == "mfl-nn" and curve.data in CLASSIFICATION)
    ]
    charts = {}
    for inputs in dict.fromkeys(curve.input for curve in all_curves):
        for on in ("scores",) if experiment == "regression" else ("labels", "scores"):
            hidden = ("-decay", *LABELS_ONLY) if on == "scores" else ("-decay",)
            shown = [
                curve
                for curve in all_curves
                if curve.input == inputs and not curve.method.endswith(hidden)
            ]
            caption = f"Mean over seeds, input {inputs}, unfairness of {on}"
            points, floors = (
                [result for curve in shown for result in curve.results],
                _floors(experiment),
            )
            charts[caption] = tradeoff_chart(
                points, on=on, floors=floors if on == "scores" else None
            )
    sketch = SKETCH in notes  # which has no winners
    table = (
        published_table(all_curves)
        if protocol == "published"
        else corrected_table(all_curves, marked=not sketch)
    )
    return Page(
        title=f"{_TITLES[experiment]} ({protocol})",
        notes=[
            _SETTINGS[protocol],
            _WORDS,
            *_DEPARTURES.get((experiment, protocol), []),
            _seeds(all_curves),
            *_solvers(all_curves),
            *notes,
            *_summary(all_curves),
        ],
        tables={"Areas": table},
        charts=charts,
    )


def _seeds(all_curves: Sequence[Curve]) -> str:
    """How many seeds each method ran; fewer than others where a fit is deterministic or dear."""
    counts = {
        METHODS[curve.method]: len(curve.seeds)
        for curve in sorted(all_curves, key=lambda curve: len(curve.seeds))
    }
    most = max(counts.values())
    fewer = [
        f"{name} {min(len(c.seeds) for c in all_curves if METHODS[c.method] == name)}"
        for name in counts
    ]
    fewer = [text for text in fewer if not text.endswith(f" {most}")]
    return f"Seeds: {most}" + (f"; at least once fewer: {', '.join(fewer)}." if fewer else ".")


def _solvers(all_curves: Sequence[Curve]) -> list[str]:
    """For how many models of each method a solver stopped short of its tolerance, where that
    was noted.
    """
    short: dict[str, list[float]] = {}
    for curve in all_curves:
        noted = [result.unconverged for result in curve.results if not isnan(result.unconverged)]
        short.setdefault(METHODS[curve.method], []).extend(noted)
    texts = [
        f"{name}: {sum(flags):.0f} of {len(flags)} models"
        for name, flags in short.items()
        if any(flags)
    ]
    if not texts:
        return []
    return [
        (
            "A solver stopped short of its tolerance, in the fit or in one of its stack. "
            f"{'; '.join(texts)}."
        )
    ]


def _floors(experiment: str) -> dict[str, float]:
    """Sampling floor of the Kolmogorov distance on each data set's test rows."""
    sizes = {
        name: data.test_positives if experiment == "equal-opportunity" else data.test_groups
        for name, data in DATA.items()
    }
    return {name: sampling_floor(*size) for name, size in sizes.items() if size is not None}


def _summary(all_curves: Sequence[Curve]) -> list[str]:
    """How many cells of our method are close to the printed ones."""
    ours = [
        curve
        for curve in all_curves
        if curve.protocol == "published" and curve.method in ("mfl-linear", "mfl-nn")
    ]
    pairs = [(curve, printed(curve.experiment, curve.data, curve.method)) for curve in ours]
    with_target = [(curve, target) for curve, target in pairs if target is not None]
    if not with_target:
        return []
    near = sum(close(curve.as_printed().value, target) for curve, target in with_target)
    return [
        (
            f"Our method is close (two printed standard errors, at least 0.01) in {near} of "
            f"{len(with_target)} cells."
        )
    ]


def sampling_floor(left: int, right: int) -> float:
    """Mean Kolmogorov distance of two samples of one distribution, by the limit law of Kolmogorov
    and Smirnov.

    Below it a test set cannot tell groups apart, whatever the model.

    >>> round(sampling_floor(41, 431), 3)
    0.142
    """
    mean = sqrt(pi / 2) * log(2)  # of the limit of sqrt(nm / (n + m)) x distance
    return mean * sqrt((left + right) / (left * right))
