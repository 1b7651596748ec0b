"""Base class of the fair estimators: check input, train, learn from a stream, predict, save."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.batches.samples import Samples
from metrifair.errors import DataError, Diverged, MetrifairWarning
from metrifair.estimators.settings import (
    LEARNING_RATE,
    Settings,
    Trainable,
    as_device,
    check_class_labels,
    check_settings,
    is_solved,
    model_for,
    objective_for,
    schedule_for,
    trainable,
)
from metrifair.metrics.penalty_options import HasPenaltyOptions, penalty_options
from metrifair.metrics.registry import warn_without_estimate
from metrifair.problem.attributes import group_codes
from metrifair.problem.clusters import cluster_share
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.missing_groups import warn_of_groups
from metrifair.problem.problem import (
    Declared,
    Inputs,
    Problem,
    make_problem,
    problem_with_probabilities,
    problem_with_scheme,
    warn_of_positive_label,
)
from metrifair.problem.tables import (
    Table,
    as_features,
    as_labels,
    frame_names,
    is_missing,
    not_numbers,
)
from metrifair.saving.saved import Saved
from metrifair.support.arrays import Floats
from metrifair.support.checks import make_seed
from metrifair.support.reuse import reused
from metrifair.support.user_warnings import warn_user
from metrifair.training import Predictor, TrainedStack, train
from metrifair.training.models import Model, Moments, Network, StackedModule, stack_parameters
from metrifair.training.objective import Task
from metrifair.training.online import Learner
from metrifair.training.solver import MOST_ITERATIONS, Minimum, solve_linear
from metrifair.training.stack import Schedule

Estimator = TypeVar("Estimator", bound="FairEstimator")

_VALIDATION_SHARE = 0.1  # of the rows, where training is stopped early
_STARTS = 8  # of a module; one alone may return log-odds between 0 and 1 by chance
STREAM_BATCH = 32  # default minimum batch size of a stream


@dataclass(frozen=True, eq=False)
class FitData:
    """Features and outcomes of checked rows, in the form that the loss needs."""

    x: Floats
    problem: Problem
    task: Task
    targets: NDArray[Any]
    class_weight: tuple[float, ...] = ()  # of the loss; empty: equal weights
    names: tuple[str, ...] = ()  # of the features, for messages

    @property
    def outputs(self) -> int:
        """The number of outputs for each sample."""
        return len(self.problem.scheme.classes) if self.task.vector else 1

    def samples(self) -> Samples:
        """Samples with their cells; where groups have probabilities, one for each entry."""
        entries = self.problem.entries
        x = self.x
        targets = self.targets
        if entries.members is not None:
            x = x[entries.members.row]
            targets = targets[entries.members.row]
        weight = np.ones(len(entries)) if entries.weight is None else entries.weight
        values = entries.attribute_values
        return Samples(
            _tensor(x),
            _tensor(targets),
            _tensor(entries.cell),
            _tensor(weight),
            None if values is None else _tensor(values),
        )


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.as_tensor(np.require(array, requirements=["C", "W"]))


@dataclass(eq=False, repr=False)
class FairEstimator(Settings, HasPenaltyOptions, Saved, BaseEstimator):
    """Common base of the fair estimators: ``fit``, ``partial_fit``, ``module`` and saving."""

    _ignores_groups = True  # at prediction, where they are accepted

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | GroupProbabilities | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        clusters: Table | None = None,
    ) -> Self:
        """Train from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers. ``TableEncoder`` encodes text and dates.
        y : array-like of shape (n_samples,)
            Labels, or a regression target.
        sensitive_features : array-like, table or GroupProbabilities, default=None
            The group of each sample. A table holds several attributes. Samples with a missing group
            are used for the risk only. If groups are not in the data, pass their probabilities as
            ``GroupProbabilities``. Not needed for strength 0.
        control_features : array-like or table, default=None
            Strata within which groups are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. Samples of weight 0 are ignored.
        clusters : array-like of shape (n_samples,), default=None
            The cluster of each row, such as a person. ``early_stopping`` holds out whole clusters.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        for name in ("learner_", "n_updates_", "predictor_", "scheme_"):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model of other data behind
        warn_without_estimate(self.metric, penalty_options(self).estimate, default="rows")
        data = self._training_data(
            X, y, sensitive_features, control_features, sample_weight, clusters=clusters
        )
        (fitted,) = self._fits(
            data, strengths=[self.strength], seeds=[make_seed(self.random_state)]
        )
        if fitted is None:
            rate = LEARNING_RATE if self.learning_rate == "auto" else self.learning_rate
            raise Diverged(
                f"training diverged at strength {self.strength}; lower learning_rate "
                f"(now {rate}), "
                "or check the scale of X and y"
            )
        self.__dict__.update(fitted)
        if self.strength and data.x.shape[1] and self.predictor_.is_constant:
            longer = (
                "" if self.epochs == "auto" else f", or train for more than {self.epochs} epochs"
            )
            warn_user(
                f"the model predicts the same for everyone: at strength {self.strength:g} training "
                "found no model "
                f"with a lower objective on these rows. Lower the strength{longer}"
            )
        return self

    def partial_fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        groups: Declared | None = None,
    ) -> Self:
        """Learn from the next samples of a stream.

        Samples wait until their batch is covered: ``batch_size`` samples (``"auto"``: 32), and two
        of every group that is compared. How the stream is cut into chunks does not matter. Where
        100 times the batch size goes by without the samples that a batch waits for, a TooFewSamples
        error names them. These samples are then left out, and further calls continue. Batch size
        and groups are those of the first call; a new model can have others. The target of a
        regression is not scaled: its scale is unknown when the stream begins. A stream has no fixed
        rows: ``estimate="rows"`` means ``"population"`` here. Until the first batch is covered
        (``n_updates_`` is 0) predictions are close to the base rate, or mean, of the samples so
        far, and raise a warning.

        Parameters
        ----------
        X, y, sensitive_features, control_features, sample_weight : array-like
            As in ``fit``.
        classes : array-like, default=None
            All classes, for classifiers. Needed at the first call if its samples may not include
            all of them.
        groups : list, or dict of lists by attribute, default=None
            All groups. Needed at the first call if its samples may not include all of them.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "scheme_"):
            _check_first(self, sensitive_features, groups)
        columns = sensitive_features, control_features, sample_weight
        data = self._training_data(X, y, *columns, classes=classes, groups=groups, stream=True)
        self.scheme_ = data.problem.scheme
        if not hasattr(self, "learner_"):
            self.learner_ = _learner(self, data)
            warn_of_positive_label(data.problem, getattr(self, "pos_label", None))
        if not self.learner_.has_warned:
            self.learner_.has_warned = warn_of_groups(data.problem)
        try:
            self.learner_.learn(data.samples())
        finally:  # an error discards its samples; the model of the samples before them is stored
            self.predictor_ = self.learner_.predictor(data.x.shape[1])
            self.moments_ = self.learner_.moments
            self.n_updates_ = self.learner_.updates
        return self

    def module(self) -> torch.nn.Sequential:
        """The fitted model as a plain ``torch.nn.Module``, of layers of torch alone.

        It maps features (n, n_features), in their own units, to (n, 1): the log-odds of the last of
        two classes, as ``decision_function`` returns them, or predictions on the scale of y; or to
        (n, n_classes), the inputs of ``torch.softmax`` for probabilities. The scaling of the
        features is part of the first layer. It is a copy, in evaluation mode and double precision
        (``.float()`` for single), and can be trained on, scripted or exported. A module of your own
        is placed between layers that scale.

        Returns
        -------
        torch.nn.Sequential
            The layers.

        Examples
        --------
        >>> import torch
        >>> from metrifair import FairClassifier
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [0, 0, 1, 1]
        >>> model = FairClassifier(0.0, model="mlp", hidden=(4,), random_state=0).fit(X, y)
        >>> module = model.module()
        >>> [type(layer).__name__ for layer in module]
        ['Linear', 'ReLU', 'Linear']
        >>> probability = module(torch.tensor(X, dtype=torch.float64)).sigmoid()
        >>> bool((probability[:, 0].detach().numpy().round(9) == model.predict_proba(X)[:, 1].round(9)).all())
        True
        """
        check_is_fitted(self, "predictor_")
        module: torch.nn.Sequential = self.predictor_.as_module(
            *getattr(self, "target_scaling_", (0.0, 1.0))
        )
        return module

    def _check_parameters(self) -> None:
        check_settings(self)

    @abstractmethod
    def _task_and_targets(self, problem: Problem, *, stream: bool) -> tuple[Task, NDArray[Any]]:
        """The loss and its targets; the estimator stores their meaning."""

    def _training_data(
        self,
        X: Table,
        y: Table,
        sensitive_features: Table | GroupProbabilities | None = None,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
        *,
        clusters: Table | None = None,
        strengths: Sequence[float] | None = None,
        classes: ArrayLike | None = None,
        groups: Declared | None = None,
        stream: bool = False,
    ) -> FitData:
        """The validated input; the first call fixes the meaning of the values."""
        check_settings(self)
        first = not hasattr(self, "scheme_")
        penalized = any([self.strength] if strengths is None else strengths)
        numeric = bool(is_regressor(self))
        outcome = as_labels(y)
        _check_labels(np.asarray(outcome), numeric=numeric)
        with _explain_bad_features(self, X):
            features = as_features(X)
            x, target = validate_data(
                self, features, outcome, dtype=np.float64, y_numeric=numeric, reset=first
            )
        if first and not numeric and classes is None:
            check_class_labels(self, target)
        if first and penalized and sensitive_features is None:
            missing = f"strength={self.strength} requires groups"
            raise DataError(
                missing, remedy="pass sensitive_features, one value per sample, or set strength=0"
            )
        rows = {"X": X, "y": y}
        inputs = Inputs(
            target, sensitive_features, control_features, sample_weight, rows, clusters=clusters
        )
        if first:
            problem = self._first_problem(
                inputs, classes, groups, compared=penalized, stream=stream
            )
        else:
            problem = problem_with_scheme(inputs, self.scheme_)
        task, targets = self._task_and_targets(problem, stream=stream)
        weights = self._class_weight(problem, stream=stream)
        names = getattr(
            self, "feature_names_in_", [f"column {place} of X" for place in range(x.shape[1])]
        )
        return FitData(
            problem.kept_rows(x), problem, task, targets, weights, tuple(map(str, names))
        )

    def _first_problem(
        self,
        inputs: Inputs,
        classes: ArrayLike | None,
        groups: Declared | None,
        *,
        compared: bool,
        stream: bool,
    ) -> Problem:
        """The record of the first rows, which fixes the meaning of the values."""
        numeric = bool(is_regressor(self))
        names = ("criterion", "intersectional", "continuous")
        make = make_problem if stream else problem_with_probabilities
        distinct = None
        if classes is not None:
            distinct = np.unique(np.asarray(classes)).tolist()
        problem = make(
            inputs,
            **{name: getattr(self, name) for name in names},
            contrast=penalty_options(self).contrast,
            pos_label=getattr(self, "pos_label", None),
            target="numbers" if numeric else "labels",
            classes=distinct,
            groups=groups,
            compared=compared,
        )
        if not numeric:
            kind = np.asarray(inputs.y).dtype if classes is None else None
            self.classes_ = np.asarray(problem.scheme.classes, dtype=kind)
        return problem

    def _fits(
        self, data: FitData, *, strengths: Sequence[float], seeds: Sequence[int]
    ) -> list[dict[str, Any] | None]:
        """Fitted attributes for every seed and, within it, every strength; None where training
        diverged.
        """
        return train_models(self, data, strengths=strengths, seeds=seeds)

    def _class_weight(self, problem: Problem, *, stream: bool) -> tuple[float, ...]:  # noqa: ARG002
        """The weight of each class in the loss; empty for equal weights."""
        return ()


def train_models(
    estimator: FairEstimator, data: FitData, *, strengths: Sequence[float], seeds: Sequence[int]
) -> list[dict[str, Any] | None]:
    """Fitted attributes for every seed and, within it, every strength, trained at once; None
    where it diverged.
    """
    scheme = data.problem.scheme
    samples = data.samples()
    model = model_for(estimator, data.x.shape[1], data.outputs)
    schedule = schedule_for(estimator, len(data.problem))
    if data.problem.probabilities is not None:
        schedule = _schedule_of_entries(schedule, len(data.problem), len(samples))
    places: Sequence[int] = range(len(seeds))
    compared = trainable(estimator, data.problem) if any(strengths) else Trainable(())
    objective = objective_for(
        estimator, scheme, data.task, compared.comparisons, class_weight=data.class_weight
    )
    if isinstance(model, Network) and is_solved(estimator, *data.x.shape):
        models, ends, separating = solve_linear(
            samples,
            model,
            objective,
            strengths=strengths,
            weight_decay=estimator.weight_decay,
            standardize=penalty_options(estimator).standardize,
        )
        _warn_of_solutions(strengths, ends, [data.names[place] for place in separating])
        # one model for all seeds
        places = [0] * len(seeds)
        seed_rows = [samples] * len(seeds)
    else:
        parts = _parts_by_seed(estimator, data, seeds)
        by_probabilities = data.problem.probabilities is not None
        models = train(
            samples,
            model,
            objective,
            strengths=strengths,
            seeds=seeds,
            schedule=schedule,
            rows=[rows for rows, _ in parts] or None,
            validation=[aside for _, aside in parts] or None,
            validated="batch" if by_probabilities else "population",
            standardize=penalty_options(estimator).standardize,
            device=as_device(estimator.device),
            verbose=estimator.verbose,
        )
        seed_rows = [samples.take(rows) for rows, _ in parts] or [samples] * len(seeds)
        _warn_of_probabilities(models, model, data)
    moments = {
        id(rows): Moments.from_samples(rows) if penalty_options(estimator).standardize else None
        for rows in seed_rows
    }
    return [
        None
        if bool(models.failed[place, k])
        else {
            "scheme_": scheme,
            "left_out_": compared.left_out,
            "moments_": moments[id(rows)],
            "predictor_": models.predictor(place, k),
            "n_iter_": int(models.epochs[place, k]),
        }
        for place, rows in zip(places, seed_rows, strict=True)
        for k in range(len(strengths))
    ]


def _schedule_of_entries(schedule: Schedule, rows: int, entries: int) -> Schedule:
    """The same schedule for rows whose groups have probabilities: batches contain entries of rows,
    and an epoch has as many as for rows of known groups.
    """
    if schedule.batch_size >= rows:
        return replace(schedule, batch_size=entries)
    return replace(schedule, steps=rows // schedule.batch_size)


def _parts_by_seed(
    estimator: FairEstimator, data: FitData, seeds: Sequence[int]
) -> list[tuple[Tensor, Tensor]]:
    """Training and validation samples of each seed; none without early stopping.

    All entries of a row are in the same part.
    """
    share = (
        _VALIDATION_SHARE if estimator.early_stopping is True else float(estimator.early_stopping)
    )
    if not share:
        return []
    row = torch.as_tensor(data.problem.row_of_entry)
    parts = []
    for seed in seeds:
        aside = _rows_aside(data, share, seed)[row]
        parts.append((torch.nonzero(~aside)[:, 0], torch.nonzero(aside)[:, 0]))
    return parts


def _rows_aside(data: FitData, share: float, seed: int) -> Tensor:
    """Whether each row is for validation: this share of each cell (and class), two of each if it
    has six.

    Clusters are not divided.
    """
    problem = data.problem
    kind = _tensor(problem.cell)
    if problem.scheme.classes:
        label = _tensor(data.targets).long()
        kind = kind * (1 + int(label.max())) + label
    if problem.clusters is not None:
        return torch.as_tensor(cluster_share(share, problem.clusters, kind.numpy(), seed))
    generator = torch.Generator().manual_seed(seed)
    aside = torch.zeros(len(problem), dtype=torch.bool)
    for value in kind.unique():
        rows = torch.nonzero(kind == value)[:, 0]
        count = max(round(share * len(rows)), min(2, len(rows) // 3))
        aside[rows[torch.randperm(len(rows), generator=generator)[:count]]] = True
    return aside


def _warn_of_solutions(
    strengths: Sequence[float], ends: Sequence[Minimum], separating: Sequence[str]
) -> None:
    """Warn of strengths at which the solver has not converged, and of features that separate
    the labels.
    """
    unfinished = [
        f"{strength:g}" for strength, end in zip(strengths, ends, strict=True) if not end.converged
    ]
    if unfinished:
        warn_user(
            f"the solver had not converged after {MOST_ITERATIONS} iterations at strength "
            f"{', '.join(unfinished)}; "
            "scale X (PenaltyOptions(standardize=True)), or add some weight_decay",
            ConvergenceWarning,
        )
    if separating:
        more = f" and {len(separating) - 5} others" if len(separating) > 5 else ""
        verb = "separate" if len(separating) > 1 else "separates"
        warn_user(
            f"{', '.join(separating[:5])}{more} {verb} the classes, so that weights have no "
            "optimum; set weight_decay=1e-5",
            ConvergenceWarning,
        )


def _warn_of_probabilities(models: TrainedStack, model: Model, data: FitData) -> None:
    """Warn if a user's module returns numbers between 0 and 1 for all rows, trained or not, as
    Sigmoid does.
    """
    if (
        not isinstance(model, StackedModule)
        or data.task.name == "regression"
        or bool(models.failed[0, 0])
    ):
        return
    predictor = models.predictor(0, 0)
    starts = [stack_parameters([model.initial(seed)], copies=1) for seed in range(_STARTS)]
    if all(torch.equal(value, starts[1][name]) for name, value in starts[0].items()):
        return  # its layers do not start anew, so that they show nothing
    untrained = (replace(predictor, parameters=start) for start in starts)
    outputs = (candidate.output(data.x) for candidate in chain([predictor], untrained))
    if all(bool(((output >= 0) & (output <= 1)).all()) for output in outputs):
        warning = MetrifairWarning(
            "returns numbers between 0 and 1 for all rows, which are used as log-odds and not as "
            "probabilities",
            argument="model",
            remedy="remove its last layer if that is Sigmoid or Softmax",
        )
        # once in a search
        reused(lambda: warn_user(warning), _warn_of_probabilities)


def fit_stack(
    estimator: Estimator,
    X: Table,
    y: Table,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    **tables: Table | None,
) -> list[Estimator | None]:
    """Fitted copies of the estimator for every seed and, within it, every strength; None where
    training diverged.

    They equal ``fit`` with that strength and ``random_state``, but are trained all at once.
    ``tables`` are groups, strata, weights and clusters, as in ``fit``.
    """
    template = clone(estimator)
    data = template._training_data(X, y, strengths=strengths, **tables)
    fits = template._fits(data, strengths=strengths, seeds=seeds)
    models: list[Estimator | None] = []
    for (seed, strength), fitted in zip(product(seeds, strengths), fits, strict=True):
        if fitted is None:
            models.append(None)
            continue
        model = clone(template).set_params(strength=strength, random_state=seed)
        model.__dict__.update(
            {name: value for name, value in vars(template).items() if name.endswith("_")} | fitted
        )
        models.append(model)
    return models


def model_output(estimator: Any, X: Table) -> Floats:
    """The output of the fitted model for each row, before any link."""
    check_is_fitted(estimator, "predictor_")
    if getattr(estimator, "n_updates_", None) == 0:
        warn_user(
            "the model is not trained yet: its samples do not cover a batch with all groups. "
            "Predictions are close to "
            "their base rate, or mean. Continue with partial_fit"
        )
    with _explain_bad_features(estimator, X):
        x = validate_data(estimator, as_features(X), dtype=np.float64, reset=False)
    predictor: Predictor = estimator.predictor_
    # torch warns of read-only memory
    return predictor.output(np.require(x, requirements=["C", "W"]))


def linear_parts(estimator: Any, name: str) -> tuple[Floats, Floats]:
    """Weights (outputs, features) and intercepts (outputs,) of a fitted linear model, in the
    units of X.
    """
    check_is_fitted(estimator, "predictor_")
    predictor: Predictor = estimator.predictor_
    parts = predictor.linear_parts()
    if parts is None:
        raise AttributeError(f"only linear models have {name}; fit with model='linear'")
    return parts


def _check_labels(y: NDArray[Any], *, numeric: bool) -> None:
    """Raise a DataError where labels are missing, or the target of a regression is text."""
    if y.ndim and y.dtype.kind == "O" and is_missing(y).any():
        raise DataError("y contains missing values; leave these rows out, or fill them in")
    text = None
    if y.dtype.kind in "USO":
        text = next((value for value in y.flat if isinstance(value, str)), None)
    if text is not None and numeric:
        raise DataError(
            f"y must contain numbers, got text such as {str(text)!r}; FairClassifier predicts "
            "classes"
        )


def _check_first(estimator: Any, sensitive_features: Table | None, groups: Declared | None) -> None:
    """Raise a DataError if a stream begins with one group, and no other groups are named."""
    if groups is not None or sensitive_features is None:
        return
    settings = {"intersectional": estimator.intersectional, "continuous": estimator.continuous}
    for attribute in group_codes(sensitive_features, **settings).attributes:
        if len(attribute.groups) < 2 and not attribute.is_number:
            problem = f"the stream begins with the group {list(attribute.groups)} of {attribute.name} only"
            raise DataError(
                problem, remedy="pass groups=, a list of all groups, to the first partial_fit"
            )


def _learner(estimator: Any, data: FitData) -> Learner:
    """A new learner, or one that continues from ``fit``, or from a stream that was saved."""
    scheme = data.problem.scheme
    seed = make_seed(estimator.random_state)
    objective = objective_for(estimator, scheme, data.task, class_weight=data.class_weight)
    if penalty_options(estimator).estimate == "rows":  # a stream has no fixed rows
        objective = replace(objective, estimate="population")
    rule = Coverage(
        scheme.comparisons,
        size=STREAM_BATCH if estimator.batch_size == "auto" else estimator.batch_size,
        least=objective.least,
    )
    updates = getattr(estimator, "n_updates_", None)
    # A stream without a step begins anew: its model was only the base rate.
    fitted: Predictor | None = None if updates == 0 else getattr(estimator, "predictor_", None)
    learner = Learner(
        model_for(estimator, data.x.shape[1], data.outputs),
        objective,
        rule,
        strength=estimator.strength,
        seed=seed,
        learning_rate=schedule_for(estimator, 1).learning_rate,
        weight_decay=estimator.weight_decay,
        standardize=penalty_options(estimator).standardize,
        start=None if fitted is None else fitted.parameters,
    )
    if fitted is not None:
        learner.moments = estimator.moments_
    learner.updates = updates or 0
    return learner


@contextmanager
def _explain_bad_features(estimator: Any, X: Table) -> Iterator[None]:
    """Raise an error with a remedy if features are missing or not numbers."""
    is_frame = frame_names("X", X) is not None
    try:
        yield
    except ValueError as error:
        name = type(estimator).__name__
        problem = not_numbers(X) if is_frame else ""
        if str(error).startswith("Input X contains NaN"):
            problem = problem or "missing values (NaN)"
        if not problem:
            raise
        raise DataError(
            f"X contains {problem}; encode it first with make_pipeline(TableEncoder(), {name}()), "
            "fitted with "
            f"{name.lower()}__sensitive_features=..., or train on the file with 'metrifair train'"
        ) from error
