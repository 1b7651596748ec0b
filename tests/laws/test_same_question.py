"""Same question, same number: every entry point asks one record which label is positive, what two
columns are, which values match, what is missing and which rows count; so all of them say the same.

The reference is written down here a second time, from plain arrays: codes, masks and weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from click.testing import CliRunner
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from metrifair import audit, audit_file, frontier, unfairness
from metrifair.cli import main
from metrifair.criteria import EQUAL_OPPORTUNITY, EQUALIZED_ODDS, PREDICTIVE_EQUALITY, Criterion
from metrifair.nn import UnfairnessPenalty
from tests.flat_options import flat
from tests.frontier_parts import source_of
from tests.seams.figures import squared_distances
from tests.seams.tradeoff import lines

GENERATOR = np.random.default_rng(7)
N = 600
SEX = GENERATOR.integers(2, size=N)
AREA = GENERATOR.integers(3, size=N)
POSITIVE = GENERATOR.random(N) < 0.35 + 0.25 * SEX
SCORE = np.round(1 / (1 + np.exp(-GENERATOR.normal(0.8 * POSITIVE - 0.3 * SEX + 0.2 * AREA))), 2)
TARGET = np.round(GENERATOR.normal(2.0 * SEX, 1.5), 2)
WEIGHT = GENERATOR.integers(0, 4, size=N).astype(float)
STRATUM = GENERATOR.integers(2, size=N)
UNKNOWN = GENERATOR.random(N) < 0.1
CUTS = (0.0, 2.0)


@dataclass(frozen=True, eq=False)
class Case:
    """One question, in plain arrays, and as a user hands it over."""

    groups: dict[str, np.ndarray]  # codes, -1 unknown
    inside: list[np.ndarray]  # sets of the criterion, as masks
    given: dict[str, Any]  # sensitive_features, y_true, control_features, sample_weight, pos_label
    criterion: str | Criterion = "statistical_parity"
    y_pred: np.ndarray = field(default_factory=lambda: SCORE)
    score: np.ndarray = field(default_factory=lambda: SCORE)  # what is compared
    weight: np.ndarray | None = None

    def distance(self, u: np.ndarray, v: np.ndarray, metric: str) -> float:
        weight = np.ones(N) if self.weight is None else self.weight
        grid = np.unique(self.score[u | v])

        def cdf(mask: np.ndarray) -> np.ndarray:
            below = self.score[mask][:, None] <= grid
            return (weight[mask][:, None] * below).sum(0) / weight[mask].sum()

        apart = cdf(u) - cdf(v)
        if metric == "kolmogorov":
            return float(np.abs(apart).max())
        # energy: twice the squared L2 distance
        return float(2 * (apart[:-1] ** 2 * np.diff(grid)).sum())

    @property
    def sides(self) -> list[tuple[np.ndarray, np.ndarray]]:
        counted = np.ones(N, bool) if self.weight is None else self.weight > 0
        return [
            ((codes == a) & part & counted, (codes == b) & part & counted)
            for codes in self.groups.values()
            for a, b in combinations(range(codes.max() + 1), 2)
            for part in self.inside
        ]

    def compared(self, metric: str) -> list[float]:
        return [self.distance(*both, metric) for both in self.sides]


EVERYONE = [np.ones(N, bool)]
TEXT = np.where(POSITIVE, "approved", "refused")  # the positive label comes first in the alphabet
SEX_TABLE = {"sensitive_features": np.where(SEX == 0, "f", "m")}


def labeled(y: np.ndarray, criterion: str, inside: list[np.ndarray], **more: Any) -> Case:
    given = {**SEX_TABLE, "y_true": y, **more}
    return Case({"sex": SEX}, inside, given, criterion)


CASES = {
    "scores": Case({"sex": SEX}, EVERYONE, SEX_TABLE),
    "two columns": Case(
        {"sex": SEX},
        EVERYONE,
        {**SEX_TABLE, "y_true": POSITIVE.astype(int)},
        y_pred=np.stack([1 - SCORE, SCORE], 1),
    ),
    "two columns, the first is positive": Case(
        {"sex": SEX},
        [POSITIVE],
        {**SEX_TABLE, "y_true": TEXT, "pos_label": "approved"},
        "equal_opportunity",
        y_pred=np.stack([SCORE, 1 - SCORE], 1),
    ),
    "labels 0 and 1": labeled(POSITIVE.astype(int), "equal_opportunity", [POSITIVE]),
    "labels -1 and 1": labeled(np.where(POSITIVE, 1, -1), "equal_opportunity", [POSITIVE]),
    "booleans": labeled(POSITIVE, "predictive_equality", [~POSITIVE]),
    "labels as text": labeled(
        np.where(POSITIVE, "yes", "no"), "equalized_odds", [~POSITIVE, POSITIVE]
    ),
    "the first label is positive": labeled(
        TEXT, "equal_opportunity", [POSITIVE], pos_label="approved"
    ),
    "and its negative": labeled(TEXT, "predictive_equality", [~POSITIVE], pos_label="approved"),
    "weights": Case({"sex": SEX}, EVERYONE, {**SEX_TABLE, "sample_weight": WEIGHT}, weight=WEIGHT),
    "several attributes": Case(
        {"sex": SEX, "area": AREA},
        EVERYONE,
        {"sensitive_features": {"sex": np.where(SEX == 0, "f", "m"), "area": AREA}},
    ),
    "intersectional": Case(
        {"both": 3 * SEX + AREA},
        EVERYONE,
        {
            "sensitive_features": {"sex": np.where(SEX == 0, "f", "m"), "area": AREA},
            "intersectional": True,
        },
    ),
    "strata": Case(
        {"sex": SEX},
        [STRATUM == 0, STRATUM == 1],
        {**SEX_TABLE, "control_features": STRATUM.astype(float)},
    ),
    "unknown groups": Case(
        {"sex": np.where(UNKNOWN, -1, SEX)},
        EVERYONE,
        {
            "sensitive_features": np.where(UNKNOWN, None, np.where(SEX == 0, "f", "m")).astype(
                object
            )
        },
    ),
    "groups 1 and 2": Case({"sex": SEX}, EVERYONE, {"sensitive_features": SEX + 1}),
    "the highest bin": Case(
        {"sex": SEX},
        [CUTS[1] <= TARGET],
        {**SEX_TABLE, "y_true": TARGET},
        replace(EQUAL_OPPORTUNITY, bins=CUTS),
        y_pred=TARGET * 0.5 + SCORE,
        score=TARGET * 0.5 + SCORE,
    ),
    "all but the highest bin": Case(
        {"sex": SEX},
        [CUTS[1] > TARGET],
        {**SEX_TABLE, "y_true": TARGET},
        replace(PREDICTIVE_EQUALITY, bins=CUTS),
        y_pred=TARGET * 0.5 + SCORE,
        score=TARGET * 0.5 + SCORE,
    ),
    "every bin": Case(
        {"sex": SEX},
        [CUTS[0] > TARGET, (CUTS[0] <= TARGET) & (CUTS[1] > TARGET), CUTS[1] <= TARGET],
        {**SEX_TABLE, "y_true": TARGET},
        replace(EQUALIZED_ODDS, bins=CUTS),
        y_pred=TARGET * 0.5 + SCORE,
        score=TARGET * 0.5 + SCORE,
    ),
}
METRICS = ("kolmogorov", "energy")
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_metric = pytest.mark.parametrize("metric", METRICS)


@every_case
@every_metric
def test_unfairness(case: Case, metric: str) -> None:
    given = dict(case.given)
    asked = {"criterion": case.criterion, "metric": metric}
    y = given.pop("y_true", None)
    expected = case.compared(metric)
    assert unfairness(y, case.y_pred, **given, **asked) == pytest.approx(max(expected), abs=1e-12)
    assert unfairness(y, case.y_pred, **given, **asked, reduce="sum") == pytest.approx(
        sum(expected), abs=1e-12
    )


@every_case
@every_metric
def test_audit(case: Case, metric: str) -> None:
    given = dict(case.given)
    found = audit(
        given.pop("y_true", None),
        case.y_pred,
        criteria=case.criterion,
        metrics=metric,
        random_state=0,
        **flat(resamples=0, permutations=0, **given),
    )
    values = [finding.value for finding in found.findings]
    assert sorted(values) == pytest.approx(sorted(case.compared(metric)), abs=1e-12)


@every_case
@every_metric
@pytest.mark.parametrize("held", [10_000, 10], ids=["in memory", "streamed"])
def test_audit_file(case: Case, metric: str, held: int, tmp_path: Path) -> None:
    given = dict(case.given)
    groups = given.pop("sensitive_features")
    groups = groups if isinstance(groups, dict) else {"sex": groups}
    table = {
        **{name: np.asarray(column).tolist() for name, column in groups.items()},
        "score": case.score.tolist(),
    }
    names = {"y_true": "label", "control_features": "control", "sample_weight": "weight"}
    roles = {role: role for name, role in names.items() if name in given}
    table |= {
        role: np.asarray(given.pop(name)).tolist() for name, role in names.items() if name in given
    }
    path = tmp_path / "scores.parquet"
    pl.DataFrame(table, strict=False).write_parquet(path)
    found = audit_file(
        path,
        score="score",
        group=list(groups),
        criteria=case.criterion,
        metrics=metric,
        random_state=0,
        **flat(resamples=0, permutations=0, in_memory_rows=held, **roles, **given),
    )
    values = sorted(finding.value for finding in found.findings)
    assert values == pytest.approx(sorted(case.compared(metric)), abs=1e-12 if held > N else 1e-5)


class Told(BaseEstimator):
    """A model that has its predictions in its features, and notes which rows it was asked for."""

    def __init__(
        self,
        criterion: Any = "statistical_parity",
        pos_label: Any = None,
        intersectional: bool = False,
    ) -> None:
        self.criterion, self.pos_label, self.intersectional = criterion, pos_label, intersectional

    def rows(self, X: np.ndarray) -> np.ndarray:
        self.asked = X[:, 0].astype(int)
        return X


class ToldClassifier(ClassifierMixin, Told):
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.rows(X)[:, 1:]

    def predict(self, X: np.ndarray) -> np.ndarray:
        probability = self.rows(X)[:, 1:]
        positive = 0 if self.pos_label == self.classes_[0] else 1
        return self.classes_[np.where(probability[:, positive] >= 0.5, positive, 1 - positive)]


class ToldRegressor(RegressorMixin, Told):
    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.rows(X)[:, 1]


@every_case
def test_points_of_a_frontier(case: Case) -> None:
    given = dict(case.given)
    y = given.pop("y_true", POSITIVE.astype(int))
    regression = y is TARGET
    told = {name: given.pop(name) for name in ("pos_label", "intersectional") if name in given}
    model = (ToldRegressor if regression else ToldClassifier)(case.criterion, **told)
    model.classes_ = np.unique(y)
    columns = [case.score]
    if not regression:
        first = told.get("pos_label") == model.classes_[0]
        columns = [case.score, 1 - case.score] if first else [1 - case.score, case.score]
    X = np.column_stack([np.arange(N), *columns])
    front = frontier([model], X, y, random_state=0, **given)
    tested = np.zeros(N, bool)
    tested[model.asked] = True
    own = replace(case, inside=[part & tested for part in case.inside])
    # A headline is of groups with enough rows, unless no two have so many.
    enough = [min((side & tested).sum() for side in both) >= 30 for both in case.sides]
    values = [
        value
        for value, large in zip(own.compared("kolmogorov"), enough, strict=True)
        if large or not any(enough)
    ]
    source = source_of(front)
    compared = lines(source.predictions[source.jobs[0]], source.part, "scores")
    once = np.ones((1, len(source.rows)))
    squares = [squared_distances(line, source.sides, once).pooled.max() for line in compared]
    assert np.sqrt(max(squares)) == pytest.approx(max(values), abs=1e-12)
    # its point is without the part that chance explains
    assert front.points[0].unfairness <= max(values) + 1e-12


def as_codes(values: Any) -> torch.Tensor:
    found, codes = np.unique(np.asarray(values).astype(str), return_inverse=True)
    return torch.as_tensor(np.where(np.isin(found, ["None", "nan"])[codes], -1, codes))


@every_case
@every_metric
def test_penalty(case: Case, metric: str) -> None:
    if "control_features" in case.given or case.given.get("intersectional"):
        pytest.skip("a penalty has neither strata nor crossings of its own")
    groups = case.given["sensitive_features"]
    columns = list(groups.values()) if isinstance(groups, dict) else [groups]
    numbers = [
        column if np.asarray(column).dtype.kind == "i" else as_codes(column).numpy()
        for column in columns
    ]
    y, options = case.given.get("y_true"), {}
    if y is not None and np.asarray(y).dtype.kind == "U":
        options = {"pos_label": 0} if "pos_label" in case.given else {}
        y = as_codes(y).numpy()
    penalty = UnfairnessPenalty(
        case.criterion, metric, estimate="batch", combine="sum", random_state=0, **options
    )
    weights = None if case.weight is None else torch.as_tensor(case.weight)
    found = penalty(torch.as_tensor(case.y_pred), torch.as_tensor(np.stack(numbers, 1)), y, weights)
    assert found.item() == pytest.approx(sum(case.compared(metric)), abs=1e-9)


@pytest.mark.parametrize("positive", ["approved", "refused"])
def test_the_four_fifths_ratio_is_of_the_positive_label(positive: str, tmp_path: Path) -> None:
    """As `audit` says, so do a frontier's points and `metrifair train`."""
    score = SCORE if positive == "approved" else 1 - SCORE
    decided = score >= 0.5
    rates = [decided[code == SEX].mean() for code in (0, 1)]
    audited = audit(
        TEXT,
        score,
        pos_label=positive,
        random_state=0,
        **flat(resamples=0, permutations=0, **SEX_TABLE),
    )
    assert audited.decisions[0].selection_ratio == pytest.approx(min(rates) / max(rates))
    model = ToldClassifier(pos_label=positive)
    model.classes_ = np.unique(TEXT)
    probabilities = [score, 1 - score] if positive == "approved" else [1 - score, score]
    X = np.column_stack([np.arange(N), *probabilities])
    front = frontier([model], X, TEXT, random_state=0, **SEX_TABLE)
    rows = model.asked
    own = [decided[rows][SEX[rows] == code].mean() for code in (0, 1)]
    assert front.points[0].more["four_fifths"] == pytest.approx(min(own) / max(own))


@pytest.mark.parametrize("positive", ["approved", "refused"])
def test_train_predict_and_audit_speak_of_one_label(positive: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"x": SCORE, "z": TARGET, "sex": np.where(SEX == 0, "f", "m"), "outcome": TEXT}
    )
    frame.write_csv(tmp_path / "people.csv")
    asked = ["--label", "outcome", "--group", "sex", "--positive", positive, "--model", "linear"]
    people, model, figures, predicted = (
        str(tmp_path / name) for name in ("people.csv", "m", "f.json", "p.csv")
    )
    for command in (
        ["train", people, *asked, "--output", model, "--json", figures],
        ["predict", model, people, "--output", predicted],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    table = pl.read_csv(predicted)
    probability = table[
        next(name for name in table.columns if name.startswith("probability"))
    ].to_numpy()
    # The probability is that of the label that was called positive.
    assert probability[positive == TEXT].mean() > probability[positive != TEXT].mean()
    quick = {"resamples": 0, "permutations": 0, "random_state": 0}
    audited = audit(TEXT, probability, pos_label=positive, **flat(**SEX_TABLE, **quick))
    # of models that were trained without the rows
    (point,) = json.loads(Path(figures).read_text())["points"]
    reported = point["more"]["four_fifths"]
    assert reported == pytest.approx(audited.decisions[0].selection_ratio, abs=0.25)


def test_demographic_parity_is_statistical_parity_everywhere(tmp_path: Path) -> None:
    """The name that other libraries use is one more name of the same question, asked once where
    both are given.
    """
    quick = {"resamples": 0, "permutations": 0, "random_state": 0}
    names = ("statistical_parity", "demographic_parity")
    pl.DataFrame({"p": SCORE, "sex": SEX, "y": TEXT}).write_csv(tmp_path / "scores.csv")
    columns = {"score": "p", "group": "sex", "label": "y"}
    own, other = (
        (
            unfairness(TEXT, SCORE, **SEX_TABLE, criterion=name),
            audit(TEXT, SCORE, criteria=name, **flat(**SEX_TABLE, **quick)).findings,
            audit_file(tmp_path / "scores.csv", criteria=name, **flat(**columns, **quick)).findings,
            UnfairnessPenalty(name, random_state=0)(
                torch.as_tensor(SCORE), torch.as_tensor(SEX)
            ).item(),
        )
        for name in names
    )
    assert own == other
    assert (
        len(
            audit(
                None, SCORE, criteria=names, metrics="energy", **flat(**SEX_TABLE, **quick)
            ).findings
        )
        == 1
    )
    arguments = [f"--{option}={column}" for option, column in columns.items()]
    shown = [
        CliRunner(env={"SOURCE_DATE_EPOCH": "0"}).invoke(
            main,
            ["audit", str(tmp_path / "scores.csv"), *arguments, "--criterion", name, "--json", "-"],
        )
        for name in names
    ]
    assert shown[0].exit_code == 0, shown[0].output
    own_page, other_page = (json.loads(one.stdout) for one in shown)
    calls = [page["provenance"].pop("call") for page in (own_page, other_page)]
    assert calls[1] == calls[0].replace(*names)
    assert own_page == other_page
