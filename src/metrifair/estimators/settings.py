"""From a table, labels and groups to what training takes: the part that all estimators share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.metrics.dependence import with_scale
from metrifair.metrics.penalty_options import PenaltyOptions, penalty_options
from metrifair.metrics.registry import MetricLike, facts_for, least_samples
from metrifair.problem.attributes import Continuous
from metrifair.problem.cells import Comparison, Dependence
from metrifair.problem.criteria import Criterion
from metrifair.problem.missing_groups import warn_of_groups
from metrifair.problem.problem import Problem, Scheme, warn_of_labels, warn_of_positive_label
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known, check_switches, is_integer, is_number
from metrifair.support.user_warnings import warn_user
from metrifair.training import Schedule
from metrifair.training.models import Model, Network, StackedModule
from metrifair.training.objective import Objective, Task

ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

LEARNING_RATE = 5e-3  # of Adam, where that is left to us
_GROWTH = 0.5  # share of the steps, the first ones, in which the strength grows
_COOLDOWN = 0.5  # share of the steps, the last ones, in which the learning rate falls
_MOST_NUMBERS = 10**8  # in X, that a solver goes through again and again
_MOST_PAIRED_ROWS = 2_000  # where a metric looks at all pairs of them
_FEWEST_ROWS = 2  # rows that have a distribution; one alone would draw everybody to itself
# of vector scores; the same for all members of a stack, so that each equals a fit of its own
_PROJECTIONS_SEED = 0
_USUAL_UNITS = (16,)  # of the hidden layers of a network


@dataclass(eq=False, repr=False)
class Aim(Protocol):
    """The fairness parameters of every fair estimator."""

    strength: float = 1.0
    _: KW_ONLY
    criterion: str | Criterion = "statistical_parity"
    metric: MetricLike = "energy"
    intersectional: bool = False
    continuous: Continuous = "auto"
    penalty: PenaltyOptions | None = None


@dataclass(eq=False, repr=False)
class Settings(Aim):
    """The parameters of every fair estimator; ``FairClassifier`` explains them."""

    _: KW_ONLY
    model: str | torch.nn.Module = "linear"
    hidden: Sequence[int] | None = None
    batch_size: int | Literal["auto"] = "auto"
    epochs: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    weight_decay: float = 0.0
    early_stopping: bool | float = False
    device: str = "auto"
    random_state: Any = None
    verbose: bool = False


_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "strength": ("a finite number from 0 upwards", lambda value: is_number(value) and value >= 0),
    "learning_rate": (
        "'auto' or a positive number",
        lambda value: (
            (isinstance(value, str) and value == "auto") or (is_number(value) and value > 0)
        ),
    ),
    "weight_decay": ("a number from 0 upwards", lambda value: is_number(value) and value >= 0),
    "early_stopping": (
        "True, False, or the share of rows to judge by, between 0 and 1",
        lambda value: isinstance(value, (bool, np.bool_)) or (is_number(value) and 0 < value < 1),
    ),
    "epochs": (
        "'auto' or an integer from 1 upwards",
        lambda value: value == "auto" or is_integer(value),
    ),
    "batch_size": (
        "'auto' or an integer from 1 upwards",
        lambda value: value == "auto" or is_integer(value),
    ),
    "hidden": (
        "a list of integers from 1 upwards",
        lambda value: (
            value is None
            or (
                isinstance(value, (list, tuple, np.ndarray))
                and all(is_integer(units) for units in value)
            )
        ),
    ),
    # scikit-learn has numbers
    "verbose": ("True or False", lambda value: isinstance(value, (bool, int, np.integer))),
}


def check_settings(settings: Settings) -> None:
    """Raise a DataError that names the first parameter out of its range."""
    for name in _RANGES:
        check_range(name, getattr(settings, name))
    check_switches(intersectional=settings.intersectional)
    if isinstance(settings.model, str) and settings.model == "linear":
        _check_no_units(settings.hidden)
    options = penalty_options(settings)
    options.check()
    if options.solver != "lbfgs":
        return
    if not _is_linear(settings):
        raise DataError(
            "solver='lbfgs' fits linear models; set model='linear', or solver='sgd' for a network"
        )
    if settings.early_stopping:
        raise DataError(
            "solver='lbfgs' takes no steps that could be stopped early; set early_stopping=False, "
            "or 'sgd'"
        )
    if options.estimate == "population":
        raise DataError(
            "solver='lbfgs' lowers the distance between the rows; leave estimate='rows', or set "
            "solver='sgd'"
        )


def check_range(name: str, value: object) -> None:
    """Raise a DataError where the value of a parameter is out of its range."""
    expected, allows = _RANGES[name]
    if not allows(value):
        raise DataError(f"{name} must be {expected}, got {value!r}")


class Trainable(NamedTuple):
    """The comparisons that training makes, and the groups that are left out of them, with their
    rows.
    """

    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...] = ()
    # the same comparisons, with cells of too few rows or none too
    complete: tuple[Comparison, ...] = ()


_EQUAL = " (all values are equal)"
_NAMED = 10  # small groups in a message; ids by mistake would be many


def trainable(aim: Aim, problem: Problem) -> Trainable:
    """The comparisons of a problem with enough rows; a warning, or an error, names the others.

    A side needs two rows. Where the population is estimated from batches, a side of several cells
    loses cells with one row, because one row shows nothing about the variation within its cell.
    """
    warn_of_labels(problem)
    warn_of_positive_label(problem, getattr(aim, "pos_label", None))
    warn_of_groups(problem)
    options = penalty_options(aim)
    of_population = options.estimate == "population"
    if problem.probabilities is not None and of_population:
        wrong = "'population' needs the group of each row, and these are probabilities"
        raise DataError(wrong, argument="estimate", remedy=Remedy("estimate", "rows"))
    sizes = problem.cell_sizes
    of_cell = least_samples(aim.metric, options.estimate) if of_population else 1
    small: dict[str, None] = {}
    candidates = [
        _large_enough(comparison, problem, sizes, of_cell, small)
        for comparison in problem.comparisons
    ]
    comparisons = [comparison for comparison in candidates if comparison is not None]
    complete = [
        comparison
        for comparison, candidate in zip(problem.comparisons, candidates, strict=True)
        if candidate is not None
    ]
    names = "; ".join(list(small)[:_NAMED]) + (
        f"; and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
    )
    if small and (options.small_groups == "error" or not comparisons):
        equal = all(name.endswith(_EQUAL) for name in small)
        advice = "merge small groups, mark them as missing"
        if equal:
            advice = "leave out attributes with one value"
        if comparisons:
            advice = f"{advice}, or leave them out of the penalty with small_groups='leave_out'"
        raise TooFewSamples(f"too small to train on: {names}; {advice}")
    if small:
        warn_user(
            f"left out of the penalty, as too small to train on: {names}; their rows still count "
            "for the risk. Merge "
            "small groups to include them"
        )
    return Trainable(tuple(comparisons), tuple(small), tuple(complete))


def _side_name(comparison: Comparison, group: str) -> str:
    """The rows of one side, as messages name them."""
    name = comparison.attribute
    if not isinstance(comparison, Dependence):
        name = f"{name} {group!r}"
    if comparison.within != "everyone":
        name = f"{name}, {comparison.within}"
    return name


def _large_enough(
    comparison: Comparison,
    problem: Problem,
    sizes: Floats | Integers,
    of_cell: int,
    small: dict[str, None],
) -> Comparison | None:
    """The comparison of cells with enough rows, None where too few are left; the others are
    added to ``small``.
    """
    sides = []
    dependent = isinstance(comparison, Dependence)
    for cells, group in zip(comparison.sides, comparison.groups, strict=False):
        every = np.array(cells, dtype=np.int64)
        enough = every[sizes[every] >= comparison.needs(of_cell)]
        rows, used = (round(float(sizes[part].sum()), 1) for part in (every, enough))
        sides.append(tuple(enough.tolist()) if used >= _FEWEST_ROWS else ())
        name = _side_name(comparison, group)
        if used < _FEWEST_ROWS:
            unit = "row" if rows == 1 else "rows"
            small[f"{name} ({rows:g} {unit})"] = None
        elif used < rows:
            few = "fewer than four of their kind" if dependent else "each alone of its kind"
            small[f"{rows - used:g} of {rows:g} rows of {name}, {few}"] = None
    if not all(sides):
        return None
    if not isinstance(comparison, Dependence):
        return replace(comparison, left=sides[0], right=sides[1])
    values = problem.attribute_values
    inside = np.isin(problem.cell, sides[0])
    weight = None if problem.weight is None else torch.as_tensor(problem.weight[inside])
    if values is not None:
        column = torch.as_tensor(values[inside, comparison.column])
        comparison = with_scale(replace(comparison, left=sides[0]), column, weight)
    if comparison.scale is None:
        small[f"{comparison}{_EQUAL}"] = None
        return None
    return comparison


def objective_for(
    aim: Aim,
    scheme: Scheme,
    task: Task,
    comparisons: Sequence[Comparison] | None = None,
    *,
    class_weight: tuple[float, ...] = (),
) -> Objective:
    """The objective, with all comparisons of the scheme or only these."""
    options = penalty_options(aim)
    return Objective(
        task,
        scheme.comparisons if comparisons is None else tuple(comparisons),
        criterion_for(scheme),
        aim.metric,
        estimate=options.estimate,
        combine=options.combine,
        penalize=options.penalize,
        generator=torch.Generator().manual_seed(_PROJECTIONS_SEED),
        class_weight=class_weight,
    )


def class_weights(weight: ClassWeight, classes: Sequence[Any], counts: Floats) -> tuple[float, ...]:
    """The weight of each class in the loss, as in scikit-learn, scaled so that the mean over the
    rows is 1.

    Parameters
    ----------
    weight : "balanced", dict or None
        Equal total weight of all classes; or a weight for each class, 1 if it is not named. None:
        no weights.
    classes : sequence
        The classes in order.
    counts : ndarray
        Number of rows of each class, or their weight.

    Returns
    -------
    tuple of float
        One number for each class; empty for None.

    Examples
    --------
    >>> class_weights("balanced", ["no", "yes"], np.array([30.0, 10.0]))
    (0.6666666666666666, 2.0)
    >>> class_weights({"yes": 3}, ["no", "yes"], np.array([30.0, 10.0]))
    (0.6666666666666666, 2.0)
    """
    if weight is None:
        return ()
    if isinstance(weight, str) and weight == "balanced":
        weights = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
    elif isinstance(weight, Mapping):
        unknown = [key for key in weight if key not in classes]
        if unknown:
            raise DataError(
                f"class_weight names {unknown[0]!r}, which is not a class of y: {list(classes)}"
            )
        if not all(is_number(value) and value >= 0 for value in weight.values()) or not any(
            weight.values()
        ):
            raise DataError(
                "class_weight must contain numbers from 0 upwards, and one above 0, got "
                f"{dict(weight)}"
            )
        weights = np.array([float(weight.get(label, 1.0)) for label in classes])
    else:
        raise DataError(
            f"class_weight must be None, 'balanced' or a dict from class to weight, got {weight!r}"
        )
    mean = float(weights @ counts) / float(counts.sum())
    if not mean > 0:
        raise DataError(f"class_weight leaves no row of y with weight: {weight!r}")
    return tuple((weights / mean).tolist())


def criterion_for(scheme: Scheme) -> Criterion:
    """The criterion for models that return the log-odds of the last of two classes.

    A user's score is a function of the positive class's probability, and of 1 where that is the
    label.
    """
    score = scheme.criterion.score
    if not callable(score) or len(scheme.classes) != 2 or scheme.positive == 1:
        return scheme.criterion
    return replace(scheme.criterion, score=lambda prediction, y: score(1 - prediction, 1 - y))


def model_for(settings: Settings, features: int, outputs: int) -> Model:
    """The network that ``model`` and ``hidden`` describe."""
    if isinstance(settings.model, torch.nn.Module):
        # the user's module keeps its mode and buffers
        return StackedModule(copy.deepcopy(settings.model), outputs)
    check_known("model", settings.model, ("linear", "mlp"), otherwise="a torch.nn.Module")
    return Network(features, _units(settings), outputs)


def schedule_for(settings: Settings, samples: int) -> Schedule:
    """Default batch size and epochs for this number of samples; docs/results/defaults.md explains
    them.

    Up to 1,000 samples every step takes them all; beyond, batches of 256 to 2,048. A linear model
    makes about 1,000 steps; a network, which may overfit, 60 passes, but not fewer than 150 steps
    nor many more than 1,000. The strength grows over the first half of them; the learning rate
    falls to 0 over the last half.
    """
    size = settings.batch_size
    if size == "auto":
        size = samples if samples <= 1_000 else int(np.clip(samples // 8, 256, 2_048))
    per_epoch = max(1, samples // size)
    steps = 1_000 if _is_linear(settings) else int(np.clip(60 * per_epoch, 150, 1_000))
    epochs = max(3, -(-steps // per_epoch)) if settings.epochs == "auto" else settings.epochs
    rate = LEARNING_RATE if settings.learning_rate == "auto" else settings.learning_rate
    plain = Schedule(size, epochs, rate, 1.0, settings.weight_decay, from_constant=True)
    decay = penalty_options(settings).learning_rate_decay
    if decay != "auto":
        return replace(plain, learning_rate_decay=decay)
    return replace(plain, growth=_GROWTH, cooldown=_COOLDOWN)


def _check_no_units(hidden: Sequence[int] | None) -> None:
    """Raise a DataError if a linear model has been given units of hidden layers."""
    if hidden is not None and len(hidden):
        raise DataError(
            "describes the layers of a network, and the model is linear",
            argument="hidden",
            received=[int(units) for units in hidden],
            remedy=Remedy("model", "mlp"),
        )


def _units(settings: Settings) -> tuple[int, ...]:
    """The units of the hidden layers; none of a linear model."""
    if settings.model != "mlp":
        return ()
    if settings.hidden is None:
        return _USUAL_UNITS
    return tuple(settings.hidden)


def _is_linear(settings: Settings) -> bool:
    """Whether the model is linear: a network without hidden layers is."""
    return isinstance(settings.model, str) and not _units(settings)


def is_solved(settings: Settings, rows: int, features: int) -> bool:
    """Whether the solver for linear models fits a model, not gradient steps; see
    docs/results/defaults.md.

    By default it does if the loss is smooth, the metric's gradient informative, the distance of the
    rows estimated, no option of gradient steps set, and the data not too large.
    """
    options = penalty_options(settings)
    if options.solver != "auto" or not _is_linear(settings):
        return options.solver == "lbfgs"
    of_steps = [
        settings.epochs,
        settings.batch_size,
        settings.learning_rate,
        options.learning_rate_decay,
    ]
    if (
        any(value != "auto" for value in of_steps)
        or settings.early_stopping
        or options.estimate == "population"
    ):
        return False
    kinks_everywhere = getattr(settings, "loss", None) == "absolute_error"
    metric = facts_for(settings.metric)
    if kinks_everywhere or metric.gradient != "exact":
        return False
    return rows * features <= _MOST_NUMBERS and (rows <= _MOST_PAIRED_ROWS or not metric.by_pairs)


def as_device(device: str) -> torch.device:
    """The device of that name; ``"auto"`` is a CUDA device where there is one."""
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if has_cuda else "cpu")
    try:
        result = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise DataError(f"device must be 'auto', 'cpu' or 'cuda', got {device!r}") from error
    if result.type == "cuda" and not has_cuda:
        raise DataError(
            f"device={device!r} needs CUDA, which this machine or this torch does not have; use "
            "'auto'"
        )
    return result


def check_devices(devices: Sequence[str] | None) -> None:
    """Raise a DataError unless each is a device that this machine has."""
    if devices is None:
        return
    if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
        raise DataError(
            "devices must be a list of at least one device, such as ['cuda:0', 'cuda:1'], got "
            f"{devices!r}"
        )
    for device in devices:
        as_device(device)


def check_class_labels(model: object, y: NDArray[Any]) -> None:
    """Raise a DataError for a continuous target, which belongs to a regressor; the error names it.

    >>> from metrifair import FairClassifier
    >>> check_class_labels(FairClassifier(), np.array([0.25, 1.5, 7.0]))
    Traceback (most recent call last):
    metrifair.errors.DataError: Unknown label type: continuous. FairClassifier predicts classes, and \
y contains numbers such as 0.25; use FairRegressor, or number the classes from 0 if they are classes
    """
    try:
        check_classification_targets(y)
    except ValueError as error:
        values = np.asarray(y)
        if "type: continuous." not in str(error) or values.dtype.kind != "f":
            raise
        classifier = _class_name(model)
        regressor = classifier.replace("Classifier", "Regressor")
        fractional = [*values[values != np.round(values)], *values]  # the first may be none
        raise DataError(
            f"Unknown label type: continuous. {classifier} predicts classes, and y contains "
            f"numbers such as {fractional[0]:.4g}",
            remedy=f"use {regressor}, or number the classes from 0 if they are classes",
        ) from error


def check_floats_as_labels(model: object, y: Any) -> None:
    """The same for labels as they are passed, of which only floats can be continuous. Missing and
    infinite ones have errors of their own.
    """
    labels = np.asarray(y)
    if labels.dtype.kind == "f" and np.isfinite(labels).all():
        check_class_labels(model, labels)


def _class_name(model: object) -> str:
    """The name of a model's class in metrifair, from which the user's own may be derived."""
    classes = type(model).__mro__
    return next(kind.__name__ for kind in classes if kind.__module__.startswith("metrifair."))
