"""Predictions: one score for each sample, or the probabilities of several classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError, Remedy
from metrifair.problem.attributes import remedies_for_numbers
from metrifair.problem.criteria import SCORES, Criterion, ScoreFunction
from metrifair.problem.losses import REGRESSION_LOSSES, log_clipped, log_losses, logits, tied
from metrifair.problem.problem import Problem, Scheme
from metrifair.problem.spelling import MISSING_WORDS
from metrifair.problem.tables import (
    CodedColumn,
    ColumnArray,
    Table,
    as_array,
    can_be_number,
    columns,
    frame_names,
    one_column,
)
from metrifair.problem.values import Value, canonical, is_missing_value, letters, place_among
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known, require, shortlist

FLOAT64: np.dtype[Any] = np.dtype(np.float64)
_LISTED = 10  # values that an error lists
_LEAST_SCORES = 5  # different numbers of groups that look like scores
ROUNDING = 0.02  # by which printed probabilities of a row may miss 1


class PredictedScores(NamedTuple):
    """The predictions of some rows, as numbers."""

    # (n,): one score for each row; (n, classes): probabilities of three classes or more
    values: Floats
    classes: tuple[object, ...] = ()  # of the columns of probabilities
    precision: np.dtype[Any] = FLOAT64  # in which scores are compared with a threshold


def read_predictions(
    y_pred: Table, problem: Problem, *, pos_label: object = None
) -> PredictedScores:
    """Scores, or probabilities of three classes or more, of the rows of the problem.

    Two columns are the probabilities of two classes: the score is that of the positive one. Columns
    that have names are matched to the classes by name, others by position in ascending order of the
    classes. Columns whose rows do not sum to 1 are an error: they may be scores of several models.
    """
    parts = _score_columns(y_pred, problem)
    precision = np.result_type(*(_precision(part, y_pred) for part in parts))
    values: Floats = problem.kept_rows(np.stack(parts, -1).astype(np.float64))
    if len(values) == 0:
        raise DataError("y_pred contains no predictions; pass at least one per group")
    if not np.isfinite(values).all():
        raise DataError("y_pred contains NaN or infinite values; remove or replace them")
    if not isfinite(float(values.max()) - float(values.min())):
        raise DataError("y_pred spans more than floating-point numbers can; scale the scores down")
    if values.shape[1] == 1:
        return PredictedScores(values[:, 0], precision=precision)
    classes, places = _class_columns(y_pred, values, problem, pos_label)
    if values.shape[1] > 2:
        return PredictedScores(values[:, places], classes, precision)
    positive = places[_positive_class(classes, problem, pos_label)]
    return PredictedScores(np.ascontiguousarray(values[:, positive]), precision=precision)


def _positive_class(classes: Sequence[object], problem: Problem, pos_label: object) -> int:
    """Of two classes that the labels do not show, the last one is positive."""
    if len(problem.scheme.classes) == 2:
        return problem.scheme.positive
    place = None
    if pos_label is not None:
        place = place_among(pos_label, classes)
    if place is None:
        return 1
    return place


def _precision(column: ColumnArray, y_pred: Table) -> np.dtype[Any]:
    """The precision of the input: float64, unless scores are shorter floats."""
    if isinstance(y_pred, list | tuple) and y_pred and isinstance(y_pred[0], np.floating):
        return np.result_type(*{type(value) for value in y_pred})
    if column.dtype.kind == "f":
        return column.dtype
    return FLOAT64


def favorable_decisions(y_pred: Table, favorable: object) -> Floats:
    """1 where the decision is the favorable one, 0 for any other.

    >>> favorable_decisions(["Approved", "Declined", "Approved"], "Approved")
    array([1., 0., 1.])
    """
    decisions = np.asarray(one_column("y_pred", y_pred), dtype=object)
    values = sorted({value for value in decisions if not is_missing_value(value)}, key=str)
    place = place_among(favorable, values)
    if place is None:
        raise DataError(
            "is no value of y_pred",
            argument="favorable_decision",
            received=favorable,
            remedy=f"its values are {value_counts(Counter(map(str, decisions)).items())}",
        )
    check_one_spelling(favorable, values)
    missing = sum(map(is_missing_value, decisions))
    if missing:
        raise DataError(
            f"has no decision in {missing:,} of {len(decisions):,} rows",
            argument="y_pred",
            remedy="leave these rows out",
        )
    return np.array([float(value == values[place]) for value in decisions])


def check_one_spelling(favorable: object, decisions: Sequence[object]) -> None:
    """Raise a DataError if a decision differs from the favorable one only by case or spaces."""
    if not isinstance(favorable, str):
        return
    spellings = [
        value
        for value in decisions
        if isinstance(value, str) and letters(value) == letters(favorable)
    ]
    variants = [value for value in spellings if value.strip() != favorable.strip()]
    if variants:
        raise DataError(
            f"{favorable!r} and {shortlist([repr(value) for value in variants], _LISTED)} differ "
            "only in spelling",
            argument="favorable_decision",
            remedy="use one spelling for the favorable decision, and another word for any other",
        )


def value_counts(counts: Iterable[tuple[object, int]]) -> str:
    """Values with their counts, the most frequent first; equal counts keep their order.

    >>> value_counts(Counter(["no", "yes", "no"]).items())
    "'no' (2), 'yes' (1)"
    """
    ordered = sorted(counts, key=lambda pair: -pair[1])
    return shortlist([f"{value!r} ({count:,})" for value, count in ordered], _LISTED)


def check_not_swapped(outcomes: NDArray[Any] | None, prediction: Floats) -> None:
    """Raise a DataError if outcomes look like scores, and predictions are labels: all 0 or 1.

    >>> check_not_swapped(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.9, 0.4]))
    >>> check_not_swapped(np.array([0.2, 0.9, 0.4]), np.array([0.0, 1.0, 1.0]))
    Traceback (most recent call last):
    metrifair.errors.DataError: y_true and y_pred look swapped: the first contains shares such as
    0.2, and the second only 0 and 1; exchange them, or audit the decisions without labels
    """
    if outcomes is None or not _look_like_scores(outcomes) or not _are_codes(prediction):
        return
    raise DataError(
        f"look swapped: the first contains shares such as {_first_fraction(outcomes):g}, and the "
        "second only 0 and 1",
        argument=("y_true", "y_pred"),
        remedy="exchange them, or audit the decisions without labels",
    )


def check_groups_not_swapped(problem: Problem, prediction: Floats) -> None:
    """Raise a DataError if the groups look like scores, and predictions are groups: all 0 or 1.

    The caller states that nobody said what the values of the groups are.
    """
    values = _group_numbers(problem)
    if not _look_like_scores(values) or not _are_codes(prediction):
        return
    name = problem.scheme.attributes[0].name
    raise DataError(
        "look swapped: the first contains only 0 and 1, and the second shares such as "
        f"{_first_fraction(values):g}",
        argument=("y_pred", "sensitive_features"),
        remedy=["exchange them", *remedies_for_numbers([name])],
    )


def _are_codes(prediction: Floats) -> bool:
    """Whether predictions are 0 and 1, and both occur."""
    return prediction.ndim == 1 and set(np.unique(prediction)) == {0.0, 1.0}


def _first_fraction(values: NDArray[Any]) -> float:
    return float(values[values % 1 != 0][0])


def numbers_or_none(name: str, table: Table | None) -> NDArray[Any] | None:
    """A column as numbers; None if there is none, or it contains anything else."""
    if table is None:
        return None
    try:
        return as_array(name, one_column(name, table))
    except DataError:
        return None


def _look_like_scores(values: NDArray[Any]) -> bool:
    """Whether values are three or more different numbers from 0 to 1, some of them between."""
    if values.dtype.kind != "f" or not len(values):
        return False
    within = bool(((values >= 0) & (values <= 1)).all())
    return within and bool((values % 1 != 0).any()) and len(np.unique(values)) > 2


def _group_numbers(problem: Problem) -> NDArray[Any]:
    """The values of the only attribute as numbers, none if they are names or few.

    Four different numbers may be codes of groups.
    """
    if len(problem.scheme.attributes) != 1:
        return np.zeros(0)
    if problem.numbers is not None:
        return np.asarray(problem.numbers[problem.groups[:, 0] >= 0, 0])
    groups = problem.scheme.attributes[0].groups
    if len(groups) < _LEAST_SCORES or not all(isinstance(group, float) for group in groups):
        return np.zeros(0)
    return np.array(groups, dtype=np.float64)


def _score_columns(y_pred: Table, problem: Problem) -> list[ColumnArray]:
    """The columns of predictions; a DataError if they are several models or no numbers."""
    if isinstance(y_pred, Mapping):
        raise DataError(
            "must be the predictions of one model, not a dict",
            argument="y_pred",
            remedy="pass an array or a data frame",
        )
    parts = list(columns("y_pred", y_pred).values())
    if not parts:
        raise DataError("y_pred has no columns; pass a prediction for each row")
    for column in parts:
        _check_numbers(column, problem)
    return [as_array("y_pred", column) for column in parts]


def _check_numbers(column: ColumnArray, problem: Problem) -> None:
    """Raise a DataError for text among predictions: decisions, numbers as text, or some wrong
    values.
    """
    if column.dtype.kind not in "OU":
        return
    texts = {row: str(value) for row, value in enumerate(column.tolist()) if isinstance(value, str)}
    if not texts:
        return
    counts = Counter(map(str, column))
    if _look_like_scores(_group_numbers(problem)):
        first = next(iter(texts.values()))
        raise DataError(
            f"look swapped: the first contains text such as {first!r}, and the second numbers from "
            "0 to 1",
            argument=("y_pred", "sensitive_features"),
            remedy="exchange them",
        )
    present = [value for value in column.tolist() if not is_missing_value(value)]
    if len(texts) == len(present) and look_like_decisions(list(set(texts.values()))):
        raise DataError(
            f"must contain numbers; its values are {value_counts(counts.items())}",
            argument="y_pred",
            remedy=[
                "write the favorable decision as 1 and others as 0",
                Remedy("favorable_decision", detail=" to audit"),
            ],
        )
    wrong = {row: value for row, value in texts.items() if not can_be_number(value)}
    if not wrong:
        row, value = next(iter(texts.items()))
        raise DataError(
            f"must contain numbers, got the text {value!r} in row {row}",
            argument="y_pred",
            remedy="convert the text to numbers",
        )
    row, value = next(iter(wrong.items()))
    others = ""
    if len(wrong) > 1:
        others = f" (the first of {len(wrong):,} such rows)"
    raise DataError(
        f"must contain numbers, got {value!r} in row {row}{others}",
        argument="y_pred",
        remedy="correct these values, or leave the rows out",
    )


def look_like_decisions(values: Sequence[object]) -> bool:
    """Whether the distinct values of a column are few words, such as approved and denied: no
    numbers, and no dates.

    >>> look_like_decisions(["approved", "denied"]), look_like_decisions(["0.5", "abc"])
    (True, False)
    >>> look_like_decisions(["2026-01-31"]), look_like_decisions(["yes", "no", "?"])
    (False, True)
    """
    known = [
        value
        for value in values
        if not (isinstance(value, str) and value.strip().lower() in MISSING_WORDS)
    ]
    return 0 < len(known) <= _LISTED and all(map(_is_word, known))


def _is_word(value: object) -> bool:
    """Whether a value is text with a letter, and begins with no digit, as dates and many codes
    do.
    """
    if not isinstance(value, str) or can_be_number(value):
        return False
    text = value.strip()
    return any(map(str.isalpha, text)) and not text[0].isdigit()


def check_outputs(outputs: NDArray[Any]) -> None:
    """Raise a DataError if a model has no finite output for a row, (n,) or (n, outputs)."""
    if np.isnan(outputs).any():
        row = int(np.isnan(outputs).reshape(len(outputs), -1).any(1).argmax())
        raise DataError(
            f"row {row} of X has no finite prediction: its features are too far from the training "
            "rows",
            remedy="check the units of X, or leave the row out",
        )


def _column_names(y_pred: Table) -> list[object] | None:
    """The names that a user gave to the columns; None if a library numbered them."""
    names = frame_names("y_pred", y_pred)
    if names is None:
        return None
    numbered = list(range(len(names))), [f"column_{place}" for place in range(len(names))]
    if names in numbered:
        return None
    return names


def _class_columns(
    y_pred: Table, values: Floats, problem: Problem, pos_label: object
) -> tuple[tuple[object, ...], list[int]]:
    """The classes in ascending order and the column of each; a DataError unless that is clear."""
    classes = problem.scheme.classes
    count = values.shape[1]
    names = _column_names(y_pred)
    if not are_probabilities(values, rounding=ROUNDING):
        raise DataError(
            f"y_pred has {count} columns whose rows do not sum to 1, so they are not the "
            f"probabilities of {count} "
            "classes; pass one column of scores, or a dict of several models: {'a': ..., 'b': ...}"
        )
    if len(classes) > count:
        raise DataError(
            f"y_pred must have one column for each label, got {count} columns for the labels "
            f"{list(classes)}; pass the "
            "probabilities of all classes, or of one as a single column"
        )
    if names is None:
        if count == 2 and len(classes) == 1 and pos_label is not None:
            raise DataError(
                f"cannot be matched to a column, as the only outcome is {classes[0]!r}",
                argument="pos_label",
                received=pos_label,
                remedy="pass its probability as a single column",
            )
        return classes if len(classes) == count else tuple(range(count)), list(range(count))
    strange = [label for label in classes if place_among(label, names) is None]
    if strange:
        raise DataError(
            f"the columns of y_pred are named {', '.join(map(repr, names))}, and the labels are "
            f"{list(classes)}: no "
            f"column has the name of the label {strange[0]!r}; name the columns after the labels, "
            "or pass an array "
            "with one column for each label in ascending order"
        )
    if len(classes) == count:
        return classes, [place_among(label, names) or 0 for label in classes]
    order = sorted(range(count), key=lambda place: _rank(canonical(names[place])))
    return tuple(names[place] for place in order), order


def _rank(value: Value) -> tuple[bool, Any]:
    """Numbers before text, each in ascending order."""
    return isinstance(value, str), value if isinstance(value, str | int | float) else str(value)


def are_probabilities(columns: Floats, *, rounding: float) -> bool:
    """True if columns can be the probabilities of classes: none negative, and each row sums to 1,
    up to rounding.

    >>> [are_probabilities(np.array([row]), rounding=1e-3) for row in ([0.3, 0.7], [2.0, -1.0])]
    [True, False]
    """
    return bool(columns.min() >= -rounding and np.abs(columns.sum(1) - 1).max() <= rounding)


def criterion_scores(
    criterion: Criterion, prediction: Floats, problem: Problem, *, loss: str | None = None
) -> Floats:
    """The scores that the criterion compares: (n,), or (n, classes).

    ``loss`` is the one that risk parity compares: ``"log_loss"``, ``"squared_error"``,
    ``"absolute_error"``, ``"huber"``.
    """
    if loss is None and criterion.score == "loss":
        raise DataError(
            f"{criterion.name} compares losses",
            remedy=Remedy(
                "loss",
                detail=": 'log_loss' for probabilities, or 'squared_error', 'absolute_error', "
                "'huber'",
            ),
        )
    if problem.labels is None and (criterion.score == "loss" or callable(criterion.score)):
        raise DataError(f"{criterion.name} needs the true labels", remedy=Remedy("y_true"))
    if loss not in (None, "log_loss"):
        check_known("loss", loss, REGRESSION_LOSSES)
    if callable(criterion.score):
        return _call_score(criterion.score, prediction, problem.targets())
    check_known("score", criterion.score, SCORES)
    if criterion.score == "loss":
        return _losses(prediction, problem, loss or "")
    if criterion.score == "log_prediction":
        return log_clipped(prediction)
    if criterion.score == "output" and loss == "log_loss":
        return logits(prediction)
    return prediction


def _losses(prediction: Floats, problem: Problem, loss: str) -> Floats:
    classes = problem.scheme.classes
    target = problem.targets()
    count = 2 if prediction.ndim == 1 else prediction.shape[1]
    if loss == "log_loss" and len(classes) != count:
        raise DataError(
            f"log_loss needs one probability for each label, got {count} for the labels "
            f"{list(classes)}"
        )
    losses = (log_losses if loss == "log_loss" else REGRESSION_LOSSES[loss])(prediction, target)
    return tied(
        losses, loss, max(1.0, float(np.abs(prediction).max()), float(np.abs(target).max()))
    )


def _call_score(score: ScoreFunction, prediction: Floats, target: NDArray[Any]) -> Floats:
    """The scores of a user's function, which takes arrays, or tensors alone."""
    try:
        scores = score(prediction, target)
    except (AttributeError, TypeError):
        tensor = require(
            "torch", extra="train", purpose="a score that takes no NumPy arrays"
        ).as_tensor
        scores = score(tensor(prediction), tensor(target))
    return np.asarray(scores, dtype=np.float64)


def class_scores(
    values: ColumnArray, scheme: Scheme, *, classes: ColumnArray | None = None
) -> Floats:
    """Scores by class of a model's output: (n,) of the positive of two classes, else (n, classes).

    ``values`` are probabilities or margins, one column for each class, or one margin of the second
    of two classes. ``classes`` are the model's ``classes_``, in the order of its columns; None:
    those of the scheme, ascending.

    >>> from metrifair.problem.problem import Inputs, make_problem
    >>> scheme = make_problem(Inputs(["no", "yes"], sensitive_features=["f", "m"])).scheme
    >>> class_scores(np.array([[0.8, 0.2]]), scheme, classes=np.array(["yes", "no"]))
    array([0.8])
    """
    output = np.asarray(values, dtype=np.float64)
    labels = scheme.classes
    count = 2 if output.ndim == 1 else output.shape[1]
    if count != max(2, len(labels)):
        raise DataError(
            f"the model has {count} classes, and y contains the {len(labels)} classes "
            f"{list(labels)}; use rows of "
            "all its classes"
        )
    by_name = len(labels) > 1 and classes is not None
    place = np.arange(count)
    if by_name:
        place = CodedColumn("classes_ of the model", np.asarray(classes)).places(labels)
    if output.ndim == 1:
        if place[1] == scheme.positive:
            return output
        return -output
    if len(labels) < 2:
        return output[:, 1]
    ordered = output[:, np.argsort(place)]
    if len(labels) == 2:
        return np.ascontiguousarray(ordered[:, scheme.positive])
    return ordered
