"""What predictions stand for: one score for each sample, or the probabilities of several classes."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import narwhals.stable.v2 as nw
import numpy as np
import torch
from torch import Tensor

from metrifair.errors import DataError, Remedy
from metrifair.problem.criteria import BINARY, MULTICLASS, Criterion, Task, regression, scores, tied
from metrifair.problem.problem import Floats, Problem, Scheme
from metrifair.problem.tables import Column, Table, array_of, codes, columns, same_rows, wrapped

ROUNDING = 0.02  # by which printed probabilities of a row may miss 1


def predictions_of(y_pred: Table, problem: Problem, *, pos_label: object = None) -> Floats:
    """Predictions (n,), or probabilities (n, classes) of three classes or more, of the rows of the problem.

    Two columns are the probabilities of two classes: the score is that of the positive one. Columns whose rows do not
    sum to 1 are an error: they may be scores of several models.
    """
    parts = [array_of("y_pred", column) for column in columns("y_pred", y_pred).values()]
    if not parts:
        raise DataError("y_pred has no columns; pass a prediction for each row")
    given: Floats = problem.of_kept(np.stack(parts, -1).astype(np.float64))
    if len(given) == 0:
        raise DataError("y_pred holds no predictions; pass at least one per group")
    if not np.isfinite(given).all():
        raise DataError("y_pred holds NaN or infinite values; remove or replace them")
    if not isfinite(float(given.max()) - float(given.min())):
        raise DataError("y_pred spans more than floating-point numbers can; scale the scores down")
    if given.shape[1] == 1:
        return given[:, 0]
    _check_classes(given, problem, pos_label)
    if given.shape[1] > 2:
        return given
    scheme = problem.scheme
    # One label alone does not tell which column is its own; the last one is that of the positive class.
    return np.ascontiguousarray(given[:, scheme.positive if len(scheme.classes) == 2 else 1])


def models_of(y_pred: Table) -> dict[str, Table] | None:
    """The predictions of several models by name; None where all columns are of one.

    Named columns, of a dict or a data frame, are several models unless they are the probabilities of classes.

    >>> models_of({"old": [0.2, 0.7], "new": [0.3, 0.4]})
    {'old': [0.2, 0.7], 'new': [0.3, 0.4]}
    >>> models_of({"no": [0.2, 0.7], "yes": [0.8, 0.3]}), models_of([[0.2, 0.8]])
    (None, None)
    """
    if isinstance(y_pred, Mapping):
        if any(np.ndim(part) > 1 for part in y_pred.values()):  # class probabilities, of each model
            return {str(name): part for name, part in y_pred.items()}
        given = {str(name): part for name, part in y_pred.items()}
    else:
        native = wrapped("y_pred", y_pred)
        if not isinstance(native, nw.DataFrame):
            return None
        given = {str(name): native.get_column(name).to_native() for name in native.columns}
    if len(given) < 2:
        return None
    same_rows(**given)
    parts = [np.asarray(array_of(f"y_pred {name!r}", column), np.float64) for name, column in given.items()]
    return None if are_probabilities(np.stack(parts, -1), rounding=ROUNDING) else given


def are_probabilities(columns: Floats, *, rounding: float) -> bool:
    """True where columns can be the probabilities of classes: none negative, and each row sums to 1, up to rounding.

    >>> [are_probabilities(np.array([row]), rounding=1e-3) for row in ([0.3, 0.7], [2.0, -1.0])]
    [True, False]
    """
    return bool(columns.min() >= -rounding and np.abs(columns.sum(1) - 1).max() <= rounding)


def _check_classes(given: Floats, problem: Problem, pos_label: object) -> None:
    """Raise a DataError unless it is clear whose probability each column is."""
    classes, count = problem.scheme.classes, given.shape[1]
    if not are_probabilities(given, rounding=ROUNDING):
        raise DataError(
            f"y_pred has {count} columns whose rows do not sum to 1, so they are not the probabilities of {count} "
            "classes; pass one column of scores, or the scores of several models by name: {'a': ..., 'b': ...}"
        )
    if len(classes) > count:
        raise DataError(
            f"y_pred must have one column for each label, got {count} columns for the labels {list(classes)}; pass the "
            "probabilities of all classes, or of one as a single column"
        )
    if count == 2 and len(classes) == 1 and pos_label is not None:
        raise DataError(
            f"cannot be matched to a column, as the only outcome is {classes[0]!r}",
            argument="pos_label",
            received=pos_label,
            remedy="pass its probability as a single column",
        )


def scores_of(criterion: Criterion, prediction: Floats, problem: Problem, *, loss: str | None = None) -> Tensor:
    """What the criterion compares: (n,), or (n, classes).

    ``loss`` is the one that risk parity compares: ``"log_loss"``, ``"squared_error"``, ``"absolute_error"``,
    ``"huber"``.
    """
    if loss is None and criterion.score == "loss":
        raise DataError(
            f"{criterion.name} compares losses",
            remedy=Remedy(
                "loss", detail=": 'log_loss' for probabilities, or 'squared_error', 'absolute_error', 'huber'"
            ),
        )
    if problem.labels is None and (criterion.score == "loss" or callable(criterion.score)):
        raise DataError(f"{criterion.name} looks at the true labels", remedy=Remedy("y_true"))
    given = torch.as_tensor(prediction)
    if loss != "log_loss":
        task: Task = regression(loss or "squared_error")
    else:
        task = MULTICLASS if given.ndim == 2 else BINARY
        classes = problem.scheme.classes
        counted = 2 if given.ndim == 1 else given.shape[1]
        if criterion.score == "loss" and len(classes) != counted:
            raise DataError(
                f"log_loss needs one probability for each label, got {counted} for the labels {list(classes)}"
            )
    target = problem.targets()
    found = scores(criterion, task, task.output(given), target)
    if criterion.score != "loss":
        return found
    return tied(found, loss or "", max(1.0, float(given.abs().max()), float(target.abs().max())))


def class_scores(values: Column, scheme: Scheme, *, classes: Column | None = None) -> Floats:
    """Scores by class of a model's output: (n,) of the positive of two classes, else (n, classes).

    ``values`` are probabilities or margins, one column for each class, or one margin of the second of two classes.
    ``classes`` are the model's ``classes_``, in the order of its columns; None: those of the scheme, ascending.

    >>> from metrifair.problem.problem import Given, problem_of
    >>> scheme = problem_of(Given(["no", "yes"], sensitive_features=["f", "m"])).scheme
    >>> class_scores(np.array([[0.8, 0.2]]), scheme, classes=np.array(["yes", "no"]))
    array([0.8])
    """
    output, known = np.asarray(values, dtype=np.float64), scheme.classes
    count = 2 if output.ndim == 1 else output.shape[1]
    if count != max(2, len(known)):
        raise DataError(
            f"the model knows {count} classes, and y holds the {len(known)} classes {list(known)}; judge it on rows of "
            "all its classes"
        )
    named = len(known) > 1 and classes is not None
    place = codes("classes_ of the model", np.asarray(classes), known) if named else np.arange(count)
    if output.ndim == 1:
        return output if place[1] == scheme.positive else -output
    if len(known) < 2:
        return output[:, 1]
    ordered = output[:, np.argsort(place)]
    return np.ascontiguousarray(ordered[:, scheme.positive]) if len(known) == 2 else ordered
