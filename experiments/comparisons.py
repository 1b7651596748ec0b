"""The experiments that compare methods on the paper's data: what they run, and what is made of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

from experiments import baselines
from experiments.figures import SKETCH, tradeoff_chart, write_report
from experiments.grid import COMPARED, Store, cells, mfl_jobs
from experiments.jobs import Job
from experiments.judging import sampling_floor
from experiments.printed import LABELS_ONLY, METHODS, printed
from experiments.rows import Row
from experiments.settings import CLASSIFICATION, DATA, Effort, Protocol
from experiments.tables import Curve, Table, as_printed, close, corrected_table, curves, published_table

EXPERIMENTS = ("regression", "classification", "equal-opportunity", "preprocessing", "postprocessing")

_TITLES = {
    "regression": "Regression under statistical parity",
    "classification": "Classification under statistical parity",
    "equal-opportunity": "Classification under equal opportunity",
    "preprocessing": "Pre-processing methods against our network",
    "postprocessing": "Post-processing against our network",
}
_SETTINGS = {
    "published": (
        "Protocol: published. Penalty on the outputs (logits) of classifiers; batches of floor(share x size) rows of "
        "each group, equally weighted, leftovers dropped; unscaled inputs; labels at 0.5; trapezoid through all points "
        "with its anchors; mean over seeds ± standard error. Regression: the published sort may place the anchor "
        "behind points that tie with it, both cases are shown."
    ),
    "corrected": (
        "Protocol: corrected. Penalty on predictions; stratified batches with exact weights; exact dominated area of "
        "the unfairness of scores (Kolmogorov distance) and of labels; mean over seeds ± standard error. Input raw: "
        "unscaled, the paper's batches, epochs and learning rates. Input standard: standardised, Adult one-hot, "
        "trained as our estimators train by default (docs/defaults.md). Constant allowed: every method is given the "
        "constant model, which is fair and which a large strength may or may not reach."
    ),
}
_WORDS = (
    "MFL: the paper's method (ours), as a linear model or as a network (NN). CC: Communities and Crime. s per fit: "
    "seconds that one model took. Dashed line in a figure: the sampling floor, the mean distance of two samples, as "
    "large as the test groups, of one distribution; to its left only models near a constant can be expected."
)
_RIDGE = (
    "Zafar has no ridge, as published, but for one of 10 (scaled columns, sum of losses) on one-hot Adult: there rare "
    "columns hold one label only, and without it their few rows meet any bound, at no loss and no gain in fairness."
)
_BY_LABEL = (
    "Here batches hold floor(share x size) rows of each group and label, where the published ones were drawn by "
    "group only: the number of positives in a batch must not change from step to step."
)
_DEPARTURES = {
    ("classification", "corrected"): [_RIDGE],
    ("equal-opportunity", "corrected"): [_RIDGE],
    ("equal-opportunity", "published"): [_BY_LABEL],
}


def jobs(experiment: str, protocol: Protocol, store: Store, effort: Effort) -> list[Job]:
    """Our method, then the others, on all cells."""
    found = mfl_jobs(experiment, protocol, store, effort)
    methods = baselines.BASELINES[experiment]
    for cell in cells(experiment, protocol, effort):
        found += baselines.jobs(cell, methods, store, effort)
    return found


def completed(rows: Iterable[Row]) -> list[Row]:
    """The rows, and copies of those that serve another protocol or input as well and were not run for it."""
    known = list(rows)
    flags = {one.method: one for methods in baselines.BASELINES.values() for one in methods}
    present = {_place(row) for row in known}
    found = list(known)
    for row in known:
        one = flags.get(row.method)
        if one is None or row.input != "raw":
            continue
        copies = [replace(row, protocol="corrected")] if one.either and row.protocol == "published" else []
        if one.unscaled and row.protocol == "corrected" and row.data != "adult":
            copies.append(replace(row, input="standard"))
        found += [copy for copy in copies if _place(copy) not in present]
    return found


def _place(row: Row) -> tuple[object, ...]:
    return row.experiment, row.protocol, row.input, row.data, row.method, row.seed


def report(
    experiment: str,
    protocol: str,
    rows: Iterable[Row],
    folder: Path,
    *,
    notes: Sequence[str] = (),
    page: bool = True,
) -> None:
    """Table, figures and, where wanted, a page of the rows of one experiment and protocol."""
    wanted = (experiment, COMPARED.get(experiment))
    found = [
        curve
        for curve in curves(row for row in rows if row.protocol == protocol and row.experiment in wanted)
        if curve.experiment == experiment or (curve.method == "mfl-nn" and curve.data in CLASSIFICATION)
    ]
    charts = {}
    for inputs in dict.fromkeys(curve.input for curve in found):
        for on in ("scores",) if experiment == "regression" else ("labels", "scores"):
            hidden = LABELS_ONLY if on == "scores" else ()
            own = [one for one in found if one.input == inputs and not one.method.endswith(("-decay", *hidden))]
            caption = f"Mean over seeds, input {inputs}, unfairness of {on}"
            charts[caption] = tradeoff_chart(own, on=on, floors=_floors(experiment), title=caption)
    write_report(
        folder,
        f"{experiment}-{protocol}",
        title=f"{_TITLES[experiment]} ({protocol})",
        notes=[
            _SETTINGS[protocol],
            _WORDS,
            *_DEPARTURES.get((experiment, protocol), []),
            _seeds(found),
            *_solvers(found),
            *notes,
            *_summary(found),
        ],
        tables={"Areas": _table(protocol, found, sketch=SKETCH in notes)},
        charts=charts,
        page=page,
    )


def _table(protocol: str, found: Sequence[Curve], *, sketch: bool) -> Table:
    """A sketch has no winners."""
    return published_table(found) if protocol == "published" else corrected_table(found, marked=not sketch)


def _seeds(found: Sequence[Curve]) -> str:
    """How many seeds each method ran; fewer than others where a fit is deterministic or dear."""
    counts = {METHODS[curve.method]: len(curve.seeds) for curve in sorted(found, key=lambda curve: len(curve.seeds))}
    most = max(counts.values())
    fewer = [f"{name} {min(len(c.seeds) for c in found if METHODS[c.method] == name)}" for name in counts]
    fewer = [text for text in fewer if not text.endswith(f" {most}")]
    return f"Seeds: {most}" + (f"; at least once fewer: {', '.join(fewer)}." if fewer else ".")


def _solvers(found: Sequence[Curve]) -> list[str]:
    """For how many models of each method a solver stopped short of its tolerance, where that was noted."""
    short: dict[str, list[float]] = {}
    for curve in found:
        noted = [row.unconverged for row in curve.rows if not isnan(row.unconverged)]
        short.setdefault(METHODS[curve.method], []).extend(noted)
    texts = [f"{name}: {sum(flags):.0f} of {len(flags)} models" for name, flags in short.items() if any(flags)]
    if not texts:
        return []
    return [f"A solver stopped short of its tolerance, in the fit or in one of its stack. {'; '.join(texts)}."]


def _floors(experiment: str) -> dict[str, float]:
    """Sampling floor of the Kolmogorov distance on each data set's test rows."""
    sizes = {
        name: data.test_positives if experiment == "equal-opportunity" else data.test_groups
        for name, data in DATA.items()
    }
    return {name: sampling_floor(*size) for name, size in sizes.items() if size is not None}


def _summary(found: Sequence[Curve]) -> list[str]:
    """How many cells of our method are close to the printed ones."""
    ours = [curve for curve in found if curve.protocol == "published" and curve.method in ("mfl-linear", "mfl-nn")]
    pairs = [(curve, printed(curve.experiment, curve.data, curve.method)) for curve in ours]
    known = [(curve, target) for curve, target in pairs if target is not None]
    if not known:
        return []
    near = sum(close(as_printed(curve).value, target) for curve, target in known)
    return [f"Our method is close (two printed standard errors, at least 0.01) in {near} of {len(known)} cells."]
