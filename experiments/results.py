"""What every trained model reached: measured on test rows, kept as csv, summed up as an area."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score

from experiments.data import Splits
from experiments.settings import Case
from metrifair.metrics import kolmogorov_distance
from metrifair.support.files import replace_file
from metrifair.tradeoff.points import Point, area

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModelResult:
    """What one model reached on the test rows of one seed.

    A gap is the difference of the groups' rates of positive labels (equal opportunity: among those
    with label 1). What a method does not have is nan: labels in regression, scores of a method that
    returns labels only.
    """

    experiment: str
    protocol: str
    input: str
    data: str
    method: str
    strength: float
    seed: int
    accuracy: float  # share of right labels, or R2
    label_gap: float
    kolmogorov: float  # of the scores
    # of the labels, among everyone: differs from label_gap under equal opportunity only
    parity_gap: float = nan
    seconds: float = nan  # of one fit; in a stack, its share
    failed: bool = False  # training diverged: the figures mean nothing
    training: float = nan  # Kolmogorov distance of the scores of training rows; nan: not noted
    # 1 where a solver stopped short, in this fit or in its stack; nan: not noted
    unconverged: float = nan
    # on an attribute that is a number: energy_dependence; nan: there is none
    dependence: float = nan
    # Kolmogorov distance below and above the cut of the number that tells most
    worst_cut: float = nan

    def gap(self, on: str) -> float:
        """The figure named by ``on``: labels, scores, parity, dependence or worst cut; else
        that of the scores.
        """
        numbers = {"dependence": self.dependence, "worst cut": self.worst_cut}
        value = (
            {"labels": self.label_gap, "scores": self.kolmogorov, "parity": self.parity_gap}
            | numbers
        )[on]
        return self.kolmogorov if isnan(value) else value


# --- measured
# ---------------------------------------------------------------------------------------------------


def measured(
    score: Floats, y: Floats, a: NDArray[np.int64], *, classify: bool, among_positives: bool = False
) -> dict[str, Floats]:
    """Figures of the scores (models, n) of several models, each (models,); a score of at least 0.5
    is a positive label.

    >>> score = np.array([[0.2, 0.8, 0.6, 0.9]])
    >>> found = measured(score, np.array([0.0, 1, 1, 1]), np.array([0, 0, 1, 1]), classify=True)
    >>> {name: float(values[0]) for name, values in found.items()}
    {'accuracy': 1.0, 'label_gap': 0.5, 'kolmogorov': 0.5, 'parity_gap': 0.5}
    """

    def gap(values: Floats, kept: NDArray[np.bool_]) -> Floats:
        sides = [torch.as_tensor(values[:, kept & (a == code)]) for code in (0, 1)]
        return np.asarray(kolmogorov_distance(*sides))

    everyone = np.ones(len(y), dtype=bool)
    compared = y == 1 if among_positives else everyone
    if not classify:
        accuracy = r2_score(np.tile(y, (len(score), 1)).T, score.T, multioutput="raw_values")
        missing = np.full(len(score), nan)
        return {
            "accuracy": accuracy,
            "label_gap": missing,
            "kolmogorov": gap(score, compared),
            "parity_gap": missing,
        }
    # of labels, the distance is the difference of their rates
    label = (score >= 0.5).astype(np.float64)
    return {
        "accuracy": (label == y).mean(1),
        "label_gap": gap(label, compared),
        "kolmogorov": gap(score, compared),
        "parity_gap": gap(label, everyone),
    }


def results_of(
    case: Case,
    splits: Splits,
    method: str,
    seed: int,
    *,
    strengths: Sequence[float],
    scores: Sequence[ArrayLike | None],
    seconds: float,
) -> list[ModelResult]:
    """The results of scores (strengths, n) on a seed's test rows; None stands for a model that
    diverged.
    """
    test = splits.test[seed]
    known = np.array([score for score in scores if score is not None], dtype=np.float64).reshape(
        -1, len(test)
    )
    among_positives = case.criterion.labels == "positive"
    figures = measured(
        known,
        splits.y[test],
        splits.a[test],
        classify=case.classify,
        among_positives=among_positives,
    )
    found, place = [], 0
    for strength, score in zip(strengths, scores, strict=True):
        failed = score is None
        found.append(
            ModelResult(
                experiment=case.experiment,
                protocol=case.protocol.name,
                input=case.input,
                data=case.name,
                method=method,
                strength=strength,
                seed=seed,
                **{
                    name: nan if failed else float(values[place])
                    for name, values in figures.items()
                },
                seconds=seconds,
                failed=failed,
            )
        )
        place += not failed
    return found


def trapezoid(
    unfairness: Sequence[float], accuracy: Sequence[float], *, anchor_last: bool = False
) -> float:
    """The published area: through all points in order of unfairness, from (lowest, 0) to (1,
    highest accuracy).

    A dominated point lowers it. Negative R2 counts as 0. The published regression sorted the anchor
    among the points by an unstable sort; ``anchor_last`` puts it behind all that tie with it, the
    worst that can happen.

    >>> trapezoid([0.5, 0.0], [0.9, 0.5])      # 0.5 x 0.7 + 0.5 x 0.9
    0.8
    """
    u, r = np.asarray(unfairness, dtype=np.float64), np.maximum(accuracy, 0.0)
    order = np.argsort(u, kind="stable")
    u, r = u[order], r[order]
    place = int((u == u[0]).sum()) if anchor_last else 0
    u, r = np.insert(u, place, u[0]), np.insert(r, place, 0.0)
    return float(np.trapezoid([*r, r.max()], [*u, 1.0]))


def dominated_area(results: Iterable[ModelResult], *, on: str, constant: float = 0.0) -> float:
    """The share of the unit box that the results dominate, beside a constant model of this
    accuracy.
    """
    points = [
        Point(one.strength, one.seed, one.accuracy, one.gap(on), failed=one.failed)
        for one in results
    ]
    return area([*points, Point(inf, 0, constant, 0.0)])


# --- kept
# -------------------------------------------------------------------------------------------------------

_KINDS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "float": float,
    "int": int,
    "bool": lambda text: text == "True",
}
_COLUMNS = {field.name: _KINDS[str(field.type)] for field in fields(ModelResult)}


def csv_text(records: Sequence[Mapping[str, object]]) -> str:
    """Records that all have the same fields as csv with a heading, numbers in full precision."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def write_csv(path: Path, results: Iterable[ModelResult | Mapping[str, object]]) -> None:
    """Write results, or other records, in one step; packed if the name ends in .gz, with six
    digits.
    """
    records = [asdict(one) if isinstance(one, ModelResult) else one for one in results]
    if path.suffix == ".gz":
        short = ("accuracy", "label_gap", "kolmogorov", "parity_gap", "seconds")
        records = [
            {**one, **{name: float(f"{one[name]:.6g}") for name in short}} for one in records
        ]
    content = csv_text(records).encode()
    replace_file(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def from_record(record: Mapping[str, object]) -> ModelResult:
    """A result from its fields as texts or values; those that older files lack keep their
    defaults.
    """
    return ModelResult(
        **{name: kind(str(record[name])) for name, kind in _COLUMNS.items() if name in record}
    )


def read_csv(paths: Sequence[Path]) -> list[ModelResult]:
    """The results in several files, packed ones among them; of a model that is in several, the
    last.
    """
    found: dict[tuple[object, ...], ModelResult] = {}
    for path in paths:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        for one in map(from_record, csv.DictReader(io.StringIO(text))):
            found[
                one.experiment,
                one.protocol,
                one.input,
                one.data,
                one.method,
                one.strength,
                one.seed,
            ] = one
    return list(found.values())
