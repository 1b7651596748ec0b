"""What is lost when groups are hidden: training and audits with predicted probabilities, beside the
true groups.

Half of the rows are test rows. The splits are drawn from seeds that nothing else in this repository
uses.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from experiments.boosting import mean_text
from experiments.comparisons import sampling_floor
from experiments.data import Splits, dataset, load
from experiments.page import Page, TextTable, circumstances, line_chart, side_by_side, write_page
from experiments.results import write_csv
from experiments.runs import Records
from experiments.settings import DATA, Effort, Protocol
from metrifair import FairClassifier, GroupProbabilities, audit, unfairness
from metrifair.estimators import fit_stack
from metrifair.support.parallel import run_parallel

Floats = NDArray[np.float64]

FEW = {"adult": ("workclass", "occupation", "hours-per-week"), "compas": ("age_cat", "sex")}
"""Data set to the features of the second proxy."""
STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
FIRST_SEED = 480
FOLDS = 5
ROWS = 6_000  # of a data set, at most
KNOWN = 0.1  # share of the test rows whose group corrects an audit

TRUE = "true groups"
FEATURES = ("all features", "few features")
WEIGHTED, THRESHOLDED = (
    {own: f"{how} ({own})" for own in FEATURES} for how in ("probabilities", "thresholded")
)
GROUPINGS = (TRUE, *(how[own] for own in FEATURES for how in (WEIGHTED, THRESHOLDED)))
SHOWN, AUDITED = (0.3, 3.0, 30.0), 3.0  # strengths of tables
_CASES = tuple((name, own) for name in FEW for own in FEATURES)
_TRUE_DISTANCE = f"kolmogorov, {TRUE}"

_PROTOCOL = (
    "Protocol: the group (sex on Adult, race on COMPAS) is hidden, and no model has it as a "
    "feature. A proxy predicts "
    "it: boosted trees (60 rounds of 8 leaves). Probabilities of training rows are out of fold (5 "
    "folds). Those of "
    "test rows are from a proxy of all training rows. One proxy uses all features of the model. "
    "The other uses few: "
    "work class, occupation and hours on Adult, age and sex on COMPAS. Half of the rows (of at "
    "most 6,000 that are "
    "drawn) are test rows. Linear models are fitted at strengths from 0 to 30 with true groups, "
    "with probabilities, "
    "and with the more probable group (thresholded). Splits 460 to 467 served to choose the proxy "
    "(trees instead of "
    "logistic regression, by the mean log loss for the group) and the tables. The figures are of "
    "splits 480 to 489."
)
_COLUMNS = (
    "Columns: means over splits, on test rows; in brackets the standard error in units of the last "
    "digit. Differences "
    "are paired by split. Distances are between the true groups, unless a column names another "
    "grouping. *AUC at half "
    "the distance* is read off the line through the means of all strengths, where the Kolmogorov "
    "distance first falls "
    "to half of that without penalty (–: no strength reaches it). *Lost* is the AUC with true "
    "groups less this AUC. "
    "*Error* is the audited distance less the one between the true groups. *Corrected* uses the "
    "known groups of a "
    "random tenth of the test rows. The correlation is between score and group minus probability, "
    "for the model "
    "without penalty."
)
_NOISE = (
    "Sampling noise: two samples of 1,000 and 2,000 rows from one distribution have a mean "
    "Kolmogorov distance of "
    f"{sampling_floor(1_000, 2_000):.3f}. The test rows of either data set are about as many. "
    "Splits of a data set "
    "share rows, so standard errors are those of splits, not of new data sets."
)


@dataclass(frozen=True, eq=False)
class HiddenGroups(Splits):
    """A data set, and which features (without the group) the second proxy uses."""

    few: NDArray[np.bool_]


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1) -> None:
    """Fit all models, and write their figures and the page."""
    folder = out / "hidden-groups"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(name, FIRST_SEED + seed) for name in FEW for seed in effort.seeds]
    work = partial(trial, sets=hidden_groups, strengths=effort.some(STRENGTHS))
    done = list(run_parallel(work, jobs, n_jobs, threads=1))
    for part, name in enumerate(("proxies", "models")):
        write_csv(
            folder / f"{name}.csv",
            [record for trial_records in done for record in trial_records[part]],
        )
    write_page(
        hidden_groups_page(folder, notes=circumstances(effort, processes=n_jobs)),
        folder,
        "hidden-groups",
    )


def hidden_groups(name: str) -> HiddenGroups:
    """A data set of the experiment."""
    splits = load(name, "standard", seeds=1)
    few = np.array([column.startswith(FEW[name]) for column in dataset(name, "standard").X.columns])
    return HiddenGroups(**vars(splits), few=few[~(splits.x == splits.a[:, None]).all(0)])


# --- training and audits
# --------------------------------------------------------------------------------------------


def draw_rows(splits: Splits, seed: int) -> tuple[Any, Any, Any]:
    """Training rows, test rows, and the fold of each training row, stratified by group and
    label.
    """
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(splits.y))[:ROWS]
    half = len(rows) // 2
    train = rows[:half]
    fold = np.empty(half, dtype=np.int64)
    cell = 2 * splits.a[train] + (splits.y[train] > 0)
    for value in np.unique(cell):
        places = np.flatnonzero(cell == value)
        fold[generator.permutation(places)] = np.arange(len(places)) % FOLDS
    return train, rows[half:], fold


def trial(
    job: tuple[str, int], *, sets: Callable[[str], HiddenGroups], strengths: Sequence[float]
) -> tuple[Records, Records]:
    """The figures of the proxies and of all models on one split of a data set."""
    name, split = job
    splits = sets(name)
    train, test, fold = draw_rows(splits, split)
    features, label = splits.without_group, (splits.y > 0).astype(int)
    proxies = {
        inputs: probabilities(features[:, columns], splits.a, (train, test, fold))
        for inputs, columns in zip(
            FEATURES, (np.ones(len(splits.few), dtype=bool), splits.few), strict=True
        )
    }
    training, testing = (
        groupings(splits.a[rows], {inputs: chances[part] for inputs, chances in proxies.items()})
        for part, rows in enumerate((train, test))
    )
    models = []
    for trained_with, groups in training.items():
        for strength, score in _scores(
            features, label, (train, test), groups=groups, strengths=strengths
        ):
            models.append(
                {"data": name, "split": split, "trained_with": trained_with, "strength": strength}
                | _figures(score, label[test], testing)
            )
    [(_, plain)] = _scores(features, label, (train, test), groups=None, strengths=[0.0])
    return [
        {"data": name, "split": split, "features": inputs}
        | _proxy_figures(chances[1], splits.a[test], plain, testing[WEIGHTED[inputs]], split)
        for inputs, chances in proxies.items()
    ], models


def probabilities(
    features: Floats, group: NDArray[np.int64], rows: tuple[Any, Any, Any]
) -> tuple[Floats, Floats]:
    """P(group 1 | features) of training rows, out of fold, and of test rows."""
    train, test, fold = rows

    def predicted(fit: Any, predict: Any) -> Floats:
        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
        chance: Floats = model.fit(features[fit], group[fit]).predict_proba(features[predict])[:, 1]
        return chance

    inside = np.empty(len(train))
    for place in range(FOLDS):
        inside[fold == place] = predicted(train[fold != place], train[fold == place])
    return inside, predicted(train, test)


def groupings(group: NDArray[np.int64], proxies: Mapping[str, Floats]) -> dict[str, Any]:
    """The groups of some rows in every way: true, by probabilities, and as the more probable
    group.
    """
    ways: dict[str, Any] = {TRUE: group}
    for inputs, chance in proxies.items():
        ways[WEIGHTED[inputs]] = GroupProbabilities(
            {"0": 1 - chance, "1": chance}, attribute="group"
        )
        ways[THRESHOLDED[inputs]] = (chance >= 0.5).astype(np.int64)
    return ways


def _scores(
    features: Floats,
    label: NDArray[Any],
    rows: tuple[Any, Any],
    *,
    groups: Any,
    strengths: Sequence[float],
) -> list[tuple[float, Floats]]:
    """Strengths, and the scores of test rows by linear models that are fitted on training rows."""
    train, test = rows
    model = FairClassifier(model="linear", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that comes out constant is one of the results
        models = fit_stack(
            model,
            features[train],
            label[train],
            strengths=strengths,
            seeds=[0],
            sensitive_features=groups,
        )
    return [
        (strength, fitted.predict_proba(features[test])[:, 1])
        for strength, fitted in zip(strengths, models, strict=True)
        if fitted is not None
    ]


def _figures(score: Floats, label: NDArray[Any], groups: Mapping[str, Any]) -> dict[str, float]:
    """Utility, and the distance between the groups by every grouping."""
    distances = {
        f"{metric}, {grouping}": unfairness(None, score, sensitive_features=values, metric=metric)
        for metric in ("kolmogorov", "energy")
        for grouping, values in groups.items()
    }
    utility = {"auc": roc_auc_score(label, score), "accuracy": ((score >= 0.5) == label).mean()}
    return {name: round(float(value), 6) for name, value in (utility | distances).items()}


def _proxy_figures(
    chance: Floats, group: NDArray[np.int64], score: Floats, proxy: GroupProbabilities, seed: int
) -> dict[str, float]:
    """How well the group is predicted, whether the assumption holds for a score, and its
    corrected energy distance.
    """
    sampled = np.random.default_rng(seed).uniform(size=len(group)) < KNOWN
    known: Any = [
        str(code) if is_sampled else None for code, is_sampled in zip(group, sampled, strict=True)
    ]
    checked = GroupProbabilities(proxy.table, attribute="group", known_groups=known)
    record: Any = audit(
        None, score, sensitive_features=checked, metrics=["energy"], random_state=seed
    ).record
    [corrected] = (
        estimate.corrected.value
        for estimate in record.proxy.estimates
        if estimate.figure == "energy"
    )
    figures = {
        "auc": roc_auc_score(group, chance),
        "correlation": np.corrcoef(group - chance, score)[0, 1],
        "corrected_energy": corrected,
    }
    return {name: round(float(value), 6) for name, value in figures.items()}


# --- the page
# -------------------------------------------------------------------------------------------------------


def hidden_groups_page(folder: Path, *, notes: Sequence[str] = ()) -> Page:
    """Tables and charts, made of the records in a folder."""
    proxies, models = (read_records(folder / f"{name}.csv") for name in ("proxies", "models"))
    tables = {
        "What training loses": loss_table(models),
        "Audits of the model without penalty": audit_table(models, strength=0.0),
        "The same, by energy distance": energy_table(models, proxies),
        f"Audits of models trained with probabilities, strength {AUDITED:g}": audit_table(
            models, strength=AUDITED
        ),
        "Whether the assumption holds": proxy_table(proxies),
    } | {
        f"{DATA[name].title}: models of the same strength": strength_table(models, name)
        for name in FEW
    }
    return Page(
        title="Hidden groups: what is lost with probabilities",
        notes=[
            training_answer(models),
            audit_answer(models),
            assumption_answer(models, proxies),
            _PROTOCOL,
            _COLUMNS,
            _NOISE,
            *notes,
        ],
        tables=tables,
        charts={"AUC against the Kolmogorov distance between the true groups": _tradeoff(models)},
    )


def training_answer(models: Records) -> str:
    """What training with probabilities costs."""

    def lost(grouping: str) -> str:
        return _by_data(lambda name: _loss(models, name, grouping)[1])

    def lowest(name: str) -> str:
        line = strength_line(models, data=name, trained_with=WEIGHTED["few features"])
        return _text(_lowest(line)[0])

    return (
        "Training: models are compared at half of the Kolmogorov distance without penalty. "
        "Probabilities from all "
        f"features lose an AUC of {lost(WEIGHTED['all features'])}, compared with the true groups "
        "(negative: a gain). "
        f"The more probable group loses {lost(THRESHOLDED['all features'])}. With probabilities "
        "from few features, "
        f"the lowest distance at any strength is {_by_data(lowest)}."
    )


def audit_answer(models: Records) -> str:
    """How wrong audits of the model without penalty are."""

    def distance(grouping: str) -> str:
        where = {"trained_with": TRUE, "strength": 0.0}
        return _by_data(
            lambda name: _text(figures(models, f"kolmogorov, {grouping}", data=name, **where))
        )

    return (
        "Audits: without penalty, the Kolmogorov distance between the true groups is "
        f"{distance(TRUE)}. An audit with "
        f"probabilities from all features reports {distance(WEIGHTED['all features'])}. With the "
        "more probable group, "
        f"it reports {distance(THRESHOLDED['all features'])}. From few features, probabilities "
        "report "
        f"{distance(WEIGHTED['few features'])}, and the more probable group "
        f"{distance(THRESHOLDED['few features'])}."
    )


def assumption_answer(models: Records, proxies: Records) -> str:
    """When the assumption of the probabilities holds here."""

    def correlation(inputs: str) -> str:
        return _by_data(
            lambda name: _text(figures(proxies, "correlation", data=name, features=inputs))
        )

    def energy(name: str) -> str:
        corrected = figures(proxies, "corrected_energy", data=name, features="few features")
        true = figures(models, f"energy, {TRUE}", data=name, trained_with=TRUE, strength=0.0)
        return f"{_text(corrected)} (true: {_text(true)})"

    return (
        "The assumption: figures with probabilities assume that score and group are independent "
        "given the inputs of "
        "the probabilities. A score is a function of its features. If the proxy uses all of them, "
        "the assumption holds "
        "by construction, and only errors of the estimated probabilities remain. The correlation "
        "of score and group "
        f"minus probability is then {correlation('all features')}. If the proxy uses few features, "
        "the score also "
        "depends on the group through the others. The assumption is wrong: the correlation is "
        f"{correlation('few features')}, audits report too small a distance, and training removes "
        "too little of it. "
        "This is the case of surname and place, unless the other features of the score tell "
        "nothing more about the "
        "group. Known groups reveal it: corrected by those of a tenth of the rows, the energy "
        "distance from few "
        f"features is {_by_data(energy)}. Both proxies were trained on true groups of the same "
        "population. In "
        "practice, such rows are rare, and probabilities from another population can be worse."
    )


def _text(values: Floats, digits: int = 3) -> str:
    return mean_text(values.tolist(), digits)


def _by_data(text: Callable[[str], str]) -> str:
    """A text for every data set, in one phrase."""
    return " and ".join(f"{text(name)} on {DATA[name].title}" for name in FEW)


def read_records(path: Path) -> Records:
    """The records of a file, numbers as numbers."""
    texts = ("data", "features", "trained_with")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: value if name in texts else float(value) for name, value in record.items()}
            for record in csv.DictReader(file)
        ]


def figures(records: Records, name: str, **where: Any) -> Floats:
    """One figure of every split, in the order of the file."""
    return np.array(
        [
            record[name]
            for record in records
            if all(record[key] == value for key, value in where.items())
        ]
    )


def strength_line(models: Records, **where: Any) -> list[tuple[Floats, Floats]]:
    """Kolmogorov distances between the true groups and AUC of every split, one pair for each
    strength.
    """
    return [
        (figures(part, _TRUE_DISTANCE, **where), figures(part, "auc", **where))
        for strength in sorted({record["strength"] for record in models})
        for part in [[record for record in models if record["strength"] == strength]]
    ]


def at_distance(line: Sequence[tuple[Floats, Floats]], limit: float) -> Floats | None:
    """AUC of every split where the line through the means first falls to a distance; None if it
    does not.

    >>> line = [(np.array([0.4]), np.array([0.9])), (np.array([0.2]), np.array([0.8]))]
    >>> at_distance(line, 0.25).round(3).tolist(), at_distance(line, 0.1)
    ([0.825], None)
    """
    for (distance, auc), (smaller, less) in pairwise(line):
        before, after = distance.mean(), smaller.mean()
        if after <= limit < before:
            read: Floats = auc + (less - auc) * (before - limit) / (before - after)
            return read
    return None


def loss_table(models: Records) -> TextTable:
    """AUC at half of the distance without penalty, what is lost, and the lowest distance of all
    strengths.
    """
    lines = [
        ["data", "trained with", "AUC at half the distance", "lost", "lowest distance", "at AUC"]
    ]
    for name in FEW:
        for grouping in GROUPINGS:
            line = strength_line(models, data=name, trained_with=grouping)
            lines.append(
                [
                    DATA[name].title,
                    grouping,
                    *_loss(models, name, grouping),
                    *map(_text, _lowest(line)),
                ]
            )
    return lines


def _loss(models: Records, name: str, grouping: str) -> tuple[str, str]:
    """AUC at half of the distance without penalty, and how much less it is than with true
    groups.
    """
    best, line = (
        strength_line(models, data=name, trained_with=groups) for groups in (TRUE, grouping)
    )
    half = best[0][0].mean() / 2
    best_auc, auc = at_distance(best, half), at_distance(line, half)
    return ("–", "–") if best_auc is None or auc is None else (_text(auc), _text(best_auc - auc))


def _lowest(line: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Distances and AUC of the strength with the lowest mean distance."""
    return min(line, key=lambda pair: float(pair[0].mean()))


def strength_table(models: Records, name: str) -> TextTable:
    """Figures by true groups at a few strengths, and paired differences from training with true
    groups.
    """
    columns = ("auc", "accuracy", _TRUE_DISTANCE, "energy, true groups")
    plain = [
        figures(models, column, data=name, trained_with=TRUE, strength=0.0) for column in columns
    ]
    lines = [
        [
            "strength",
            "trained with",
            "AUC",
            "accuracy",
            "Kolmogorov",
            "energy",
            "AUC lost",
            "Kolmogorov added",
        ],
        ["0", "no penalty", *_row_texts(plain), "", ""],
    ]
    for strength in SHOWN:
        best = [
            figures(models, column, data=name, trained_with=TRUE, strength=strength)
            for column in columns
        ]
        for grouping in GROUPINGS:
            row = [
                figures(models, column, data=name, trained_with=grouping, strength=strength)
                for column in columns
            ]
            change = (
                ["", ""] if grouping == TRUE else [_text(best[0] - row[0]), _text(row[2] - best[2])]
            )
            lines.append([f"{strength:g}", grouping, *_row_texts(row), *change])
    return lines


def _row_texts(values: Sequence[Floats]) -> list[str]:
    """AUC, accuracy and Kolmogorov distance, and with one digit more the energy distance."""
    return [_text(column, digits) for column, digits in zip(values, (3, 3, 3, 4), strict=True)]


def audit_table(models: Records, *, strength: float) -> TextTable:
    """Kolmogorov distances by true groups, probabilities and the more probable group; errors
    are paired.
    """
    lines = [["data", "proxy", TRUE, "probabilities", "error", "thresholded", "error"]]
    for name, inputs in _CASES:
        where = {"data": name, "trained_with": WEIGHTED[inputs], "strength": strength}
        true, *others = (
            figures(models, f"kolmogorov, {grouping}", **where)
            for grouping in (TRUE, WEIGHTED[inputs], THRESHOLDED[inputs])
        )
        texts = [_text(part) for other in others for part in (other, other - true)]
        lines.append([DATA[name].title, inputs, _text(true), *texts])
    return lines


def energy_table(models: Records, proxies: Records) -> TextTable:
    """Energy distances of the model without penalty, among them those corrected by known groups."""
    lines = [["data", "proxy", TRUE, "probabilities", "corrected by known groups", "thresholded"]]
    for name, inputs in _CASES:
        where = {"data": name, "trained_with": TRUE, "strength": 0.0}
        true, weighted, thresholded = (
            figures(models, f"energy, {grouping}", **where)
            for grouping in (TRUE, WEIGHTED[inputs], THRESHOLDED[inputs])
        )
        corrected = figures(proxies, "corrected_energy", data=name, features=inputs)
        lines.append(
            [DATA[name].title, inputs, *map(_text, (true, weighted, corrected, thresholded))]
        )
    return lines


def proxy_table(proxies: Records) -> TextTable:
    """How well the group is predicted, and how its errors depend on the score."""
    lines = [["data", "proxy", "AUC of the group", "correlation of error and score"]]
    for name, inputs in _CASES:
        columns = (
            figures(proxies, column, data=name, features=inputs)
            for column in ("auc", "correlation")
        )
        lines.append([DATA[name].title, inputs, *map(_text, columns)])
    return lines


def _tradeoff(models: Records) -> Any:
    """One panel per data set, one line per grouping that models are trained with."""
    panels = []
    for name in FEW:
        records = [
            {"trained with": grouping, "distance": distance.mean(), "AUC": auc.mean()}
            for grouping in GROUPINGS
            for distance, auc in strength_line(models, data=name, trained_with=grouping)
        ]
        panels.append(
            line_chart(records, x="distance", y="AUC", color="trained with", title=DATA[name].title)
        )
    return side_by_side(panels, legend=True)
