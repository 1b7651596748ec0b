"""A fitted encoder and a fitted estimator as one model: raw tables in, predictions out, one file;
and the threshold of its decisions: the best by accuracy or by costs, or the fairest among those
that decide as well.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError
from metrifair.figures.intervals import FEW
from metrifair.figures.selection_rates import enough_rows
from metrifair.figures.utility import (
    UTILITIES,
    Predictions,
    Utility,
    UtilityEstimate,
    expected_cost,
)
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.problem import Inputs, Problem, make_problem
from metrifair.problem.tables import Table
from metrifair.saving.modelfile import Content, add_prefix, strip_prefix
from metrifair.saving.models import encoder_record, inner_record, make_content, read_encoder
from metrifair.saving.records import TableModelRecord, file_errors
from metrifair.saving.saved import Saved
from metrifair.saving.scoring import TABLE_MODEL, TableScorer, table_model_record
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.checks import check_known, is_number


@dataclass(frozen=True, eq=False)
class TableModel(TableScorer, Saved):
    """An estimator that takes raw tables: text, dates and missing values too.

    Parameters
    ----------
    encoder : TableEncoder
        A fitted encoder.
    estimator : FairClassifier, FairRegressor, a fair booster or a post-processor
        Fitted on the encoder's output. One that needs groups takes them from the columns of
        ``sensitive``.
    target : str, default="y"
        Name of the column that is predicted.
    sensitive : tuple of str, optional
        Names of the columns with the groups.
    ids : tuple of str, optional
        Names of the columns that identify rows.
    threshold : float, default=None
        Of two classes, the probability of the positive one from which on ``predict`` decides for
        it; None: the estimator's own rule.
    training_files : tuple of str, default=()
        SHA-256 hashes of the files with the training rows, in hexadecimal digits.

    Raises
    ------
    DataError
        If the estimator is not fitted, or takes another number of columns than the encoder makes,
        or the threshold is not a probability, or there are not two classes to decide between.

    Examples
    --------
    >>> from metrifair import FairRegressor, TableEncoder
    >>> table = {"size": [30.0, 50.0, 80.0, 90.0], "town": ["A", "B", "A", "B"]}
    >>> encoder = TableEncoder(min_frequency=1).fit(table)
    >>> line = FairRegressor(0.0, model="linear", random_state=0)
    >>> model = TableModel(encoder, line.fit(encoder.transform(table), [3.0, 5.0, 8.0, 9.0]), target="rent")
    >>> model.predict({"town": ["B"], "size": [60.0]}).round(1)
    array([6.])
    """

    def __post_init__(self) -> None:
        if not isinstance(self.encoder, TableEncoder):
            raise DataError(
                "the encoder must be a TableEncoder, and comes first, got "
                f"{reprlib.repr(self.encoder)}"
            )
        check_is_fitted(self.encoder, "coders_")
        if not hasattr(self.estimator, "n_features_in_"):
            raise DataError(
                f"the estimator must be a fitted one, got {reprlib.repr(self.estimator)}"
            )
        encoded = len(self.encoder.get_feature_names_out())
        features = self.estimator.n_features_in_
        if encoded != features:
            problem = f"the encoder makes {encoded} columns, and the estimator takes {features}"
            raise DataError(problem, remedy="fit them together")
        if self.threshold is None:
            return
        if not is_number(self.threshold) or not 0 <= self.threshold <= 1:
            raise DataError(f"threshold must be a probability, from 0 to 1, got {self.threshold!r}")
        if self.classes is None or len(self.classes) != 2:
            raise DataError(f"threshold={self.threshold!r} needs a model of two classes")

    def choose_threshold(
        self,
        table: Table,
        y: Table,
        *,
        rule: ThresholdRule = "accuracy",
        costs: Costs | None = None,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
    ) -> TableModel:
        """The same model with the threshold that is best on these rows, which it should not have
        been trained on.

        Parameters
        ----------
        table : data frame or dict of columns
            Rows with the columns that the encoder was fitted with.
        y : array-like of shape (n_samples,)
            Their labels.
        rule : {"accuracy", "cost", "parity"}, default="accuracy"
            "accuracy": most right decisions. "cost": least mean cost. "parity": the least gap
            between the groups' decision rates (those that the estimator's criterion compares),
            among the thresholds whose balanced accuracy is within noise of the best one's.
        costs : array-like of shape (2, 2), default=None
            For "cost": ``costs[label][decision]``, by the classes in ascending order.
        sensitive_features, control_features, sample_weight : array-like, default=None
            Groups (for "parity"), strata and weights, as in ``fit``.

        Returns
        -------
        TableModel
            With another ``threshold``; this one stays as it is.

        Raises
        ------
        DataError
            If there are not two classes, or the rule lacks its costs or groups.

        Examples
        --------
        >>> from metrifair import FairClassifier, TableEncoder
        >>> table, y = {"size": [1.0, 2.0, 3.0, 4.0]}, ["no", "yes", "no", "yes"]
        >>> encoder = TableEncoder().fit(table)
        >>> line = FairClassifier(0.0, model="linear", random_state=0).fit(encoder.transform(table), y)
        >>> model = TableModel(encoder, line)
        >>> eager = model.choose_threshold(table, y, rule="cost", costs=[[0, 0.1], [1, 0]])
        >>> eager.threshold <= 0.5, eager.predict(table).tolist()[-1]
        (True, 'yes')
        """
        if self.classes is None:
            raise DataError(
                f"the model predicts the number {self.target!r}, which needs no threshold; use "
                "predict"
            )
        criterion = "statistical_parity"
        if sensitive_features is not None:
            criterion = self.estimator.criterion
        problem = make_problem(
            Inputs(y, sensitive_features, control_features, sample_weight, rows={"table": table}),
            criterion=criterion,
            contrast=getattr(self.estimator, "contrast", "pairs"),
            intersectional=getattr(self.estimator, "intersectional", False),
            continuous=getattr(self.estimator, "continuous", False),
            pos_label=self.classes.tolist()[self.positive],
            target="labels",
            classes=self.classes.tolist(),
            compared=rule == "parity",
        )
        score = problem.kept_rows(self.predict_proba(table)[:, self.positive])
        problem = in_bands(problem, BANDS, least=FEW)
        return replace(
            self, threshold=choose_threshold(score, problem, rule=rule, costs=costs).threshold
        )

    def _content(self) -> Content:
        inner = make_content(self.estimator)
        record = TableModelRecord(
            encoder=encoder_record(self.encoder),
            estimator=inner_record(inner),
            target=self.target,
            sensitive=list(self.sensitive),
            ids=list(self.ids),
            threshold=None if self.threshold is None else float(self.threshold),
            training_files=list(self.training_files),
        )
        return Content(TABLE_MODEL, record.as_json(), add_prefix("estimator/", inner.arrays))


def read_table_model(content: Content, read_estimator: Callable[[Content], Any]) -> TableModel:
    """The model that ``TableModel.save`` wrote; ``read_estimator`` makes the estimator from its
    content.
    """
    record = table_model_record(content)
    kind = record.estimator.kind
    meta = record.estimator.meta
    estimator = read_estimator(Content(kind, meta, strip_prefix("estimator/", content.arrays)))
    with file_errors("the file does not describe a model", DataError):
        encoder = read_encoder(record.encoder)
        columns = (tuple(record.sensitive), tuple(record.ids))
        files = tuple(record.training_files)
        return TableModel(encoder, estimator, record.target, *columns, record.threshold, files)


ThresholdRule: TypeAlias = Literal["accuracy", "cost", "parity"]
Costs: TypeAlias = Sequence[Sequence[float]]

RULES: tuple[ThresholdRule, ...] = ("accuracy", "cost", "parity")
USUAL_THRESHOLD = 0.5  # the default threshold
_NOISE = 1.96  # standard errors of a difference that chance explains
_MOST_THRESHOLDS = 1_000
_FEWEST_THRESHOLDS = 50
_WORK = 20_000_000  # decisions, about


class ChosenThreshold(NamedTuple):
    """A threshold, and figures of its decisions on the rows that it was chosen on."""

    threshold: float
    utility: Utility  # by which it was chosen
    value: float
    # largest difference of decision rates that the criterion compares; None: not computed
    gap: float | None


def choose_threshold(
    score: Floats, problem: Problem, *, rule: ThresholdRule = "accuracy", costs: Costs | None = None
) -> ChosenThreshold:
    """The threshold on the probability of the positive class, chosen on rows whose outcomes are
    known.

    "accuracy": most right decisions. "cost": least mean cost, with ``costs[label][decision]`` by
    the classes in ascending order. "parity": the least gap between the decision rates that the
    criterion compares, among the thresholds whose balanced accuracy is within noise of the best
    one's (the 95 % interval of the difference, whose rows are paired, contains 0). Plain accuracy
    does not suit parity: where nearly all labels are positive, a constant positive decision is as
    accurate as any other, and has no gap. Among equals the threshold nearest to 0.5 is chosen.

    >>> from metrifair.problem.problem import Inputs, make_problem
    >>> rows = make_problem(Inputs(["no", "no", "yes", "yes"], sensitive_features=["f", "m", "f", "m"]))
    >>> score = np.array([0.1, 0.2, 0.3, 0.9])
    >>> choose_threshold(score, rows).threshold
    0.25
    >>> choose_threshold(score, rows, rule="cost", costs=[[0, 9], [1, 0]]).threshold        # a wrong yes costs most
    0.25
    """
    classes = problem.scheme.classes
    positive = problem.scheme.positive
    check_known("the rule of a threshold", rule, RULES)
    if len(classes) != 2:
        kind = f"{len(classes)} classes" if classes else "a number"
        raise DataError(
            f"a threshold decides between two classes, and {kind} is predicted here; leave it out"
        )
    if (costs is None) == (rule == "cost"):
        raise DataError(
            f"costs are for the rule 'cost', which needs them; got the rule {rule!r} and costs "
            f"{costs!r}"
        )
    utility = (
        expected_cost(costs, classes) if costs is not None else UTILITIES[UTILITY_OF_RULE[rule]]
    )
    thresholds = _candidates(score)
    decisions = score >= thresholds[:, None]
    estimates = [
        _estimate(utility, score, np.where(row, positive, 1 - positive), problem)
        for row in decisions
    ]
    quality = np.array([utility.quality(estimate.value) for estimate in estimates])
    best = int(quality.argmax())
    gaps = np.zeros(len(thresholds))
    equal = quality >= quality[best] - 1e-12
    if rule == "parity":
        gaps = decision_gaps(decisions, problem)
        equal = np.array(
            [_within_noise(estimate, estimates[best], problem) for estimate in estimates]
        )
    places = np.flatnonzero(equal)
    order = np.lexsort(
        (np.abs(thresholds - USUAL_THRESHOLD)[places], -quality[places], gaps[places])
    )
    place = int(places[order[0]])
    gap = float(gaps[place]) if rule == "parity" else None
    return ChosenThreshold(float(thresholds[place]), utility, estimates[place].value, gap)


UTILITY_OF_RULE = {"accuracy": "accuracy", "parity": "balanced_accuracy"}
"""What each rule makes best, except for costs."""


def _candidates(score: Floats) -> Floats:
    """Thresholds in ascending order: between scores, evenly over the rows where these are many;
    none, all and 0.5.
    """
    count = int(np.clip(_WORK // max(1, len(score)), _FEWEST_THRESHOLDS, _MOST_THRESHOLDS))
    distinct = np.unique(score)
    if len(distinct) > count:
        distinct = np.unique(np.quantile(score, np.linspace(0, 1, count), method="nearest"))
    return np.unique([0.0, USUAL_THRESHOLD, 1.0, *(distinct[:-1] / 2 + distinct[1:] / 2)])


def _estimate(
    utility: Utility, score: Floats, decision: NDArray[Any], problem: Problem
) -> UtilityEstimate:
    estimate = utility.of(Predictions(score, decision, "probability"), problem)
    if estimate is None:
        raise DataError(
            f"{utility.name} cannot be computed on these rows, on which the threshold is chosen"
        )
    return estimate


def _within_noise(estimate: UtilityEstimate, best: UtilityEstimate, problem: Problem) -> bool:
    """Whether the difference of two utilities of the same rows is not significant."""
    difference = abs(estimate.value - best.value)
    if estimate.influence is None or best.influence is None:
        return difference <= 1e-12
    error = UtilityEstimate(difference, estimate.influence - best.influence).error(problem) or 0.0
    return difference <= _NOISE * error + 1e-12


def decision_gaps(decisions: Booleans, problem: Problem) -> Floats:
    """The largest difference of rates between the sides of a comparison, for each row of decisions
    (k, n): (k,).

    The rates are those of positive decisions; under risk parity, of wrong decisions.
    """
    if problem.scheme.criterion.score == "loss":
        decisions = decisions != problem.is_positive
    weight = problem.row_weights
    cell = problem.cell
    largest = np.zeros(len(decisions))
    size = int(cell.max()) + 1
    rows = np.bincount(cell, weight, minlength=size)
    positive = np.stack([np.bincount(cell, weight * row, minlength=size) for row in decisions])
    counts = np.bincount(cell, minlength=size)
    sides = {
        key: [[at for at in side if at < size] for side in (key.left, key.right)]
        for key in problem.comparisons
    }
    for key in enough_rows(
        {key: min(counts[side].sum() for side in cells) for key, cells in sides.items()}
    ):
        rates = (positive[:, side].sum(1) / rows[side].sum() for side in sides[key])
        largest = np.maximum(largest, np.abs(next(rates) - next(rates)))
    return largest
