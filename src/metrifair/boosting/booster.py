"""Base class of the fair boosters."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from metrifair.boosting.dask import is_dask
from metrifair.boosting.objective import Descent, PenalizedRisk
from metrifair.boosting.problem import (
    BoostingProblem,
    GroupSample,
    boosting_problem,
    evaluation_rows,
    evaluation_sets,
    is_penalized,
)
from metrifair.errors import DataError
from metrifair.estimators.fair import FairClassifier
from metrifair.metrics.penalty_options import HasPenaltyOptions, PenaltyOptions, penalty_options
from metrifair.metrics.registry import MetricLike, warn_without_estimate
from metrifair.problem.attributes import Continuous
from metrifair.problem.criteria import Criterion
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.problem import Inputs
from metrifair.problem.tables import Table, as_features, as_labels, take_rows
from metrifair.saving.saved import Saved
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import make_seed
from metrifair.support.reuse import reused
from metrifair.support.signatures import as_in

# of the trees that predict the group
GROUP_ROUNDS = 40
GROUP_RATE = 0.15
GROUP_LEAVES = 8
GROUP_BINS = 63
GROUP_BIN_ROWS = 2_000  # that place the bins


@dataclass(frozen=True, eq=False)
class FitPlan:
    """A penalized fit: the problem, the objective by round, and the arguments of the booster's
    own ``fit``.
    """

    problem: BoostingProblem
    descent: Descent
    evaluations: tuple[PenalizedRisk, ...]
    arguments: dict[str, Any]

    def metric(self) -> Callable[[Any], float]:
        """The penalized risk of outputs for each evaluation set in turn, in the order of the
        boosters' calls.
        """
        turns = cycle(self.evaluations)
        return lambda output: self.descent.report(next(turns), output)


@as_in(FairClassifier)
class FairBooster(HasPenaltyOptions, Saved):
    """Parameters and ``fit`` of every fair booster; the class beside it in the bases is the
    booster's own.

    Parameters
    ----------
    criterion, metric : as in FairClassifier
    intersectional : as in FairClassifier
    continuous : "auto", bool or list of str, default="auto"
        Numeric attributes, such as age: the named columns, all, or none. The penalty of a numeric
        attribute is ``energy_dependence``. ``"auto"`` selects numeric columns with more than 20
        different values and warns. With 131,072 rows or more, a classifier bins numbers into at
        most 256 levels.
    penalty : as in FairClassifier
    expected_groups : bool, default=True
        Weight the penalty of each row by predicted group probabilities instead of its own group.
        Trees that were fitted to other rows predict them. The booster then cannot memorize groups,
        and test rows are as fair as training rows. If labels depend on the group beyond the
        features, part of the own group is added back. ``GroupProbabilities`` replace these
        predictions.
    """

    if TYPE_CHECKING:  # the parameters and methods of the booster

        def __getattr__(self, name: str) -> Any: ...

    _eval_weights: ClassVar[str]  # the booster's argument for weights of evaluation sets
    _plan: FitPlan | None = None  # while a penalized fit runs
    _ignores_groups = True  # at prediction, where they are accepted

    def __init__(
        self,
        strength: float = 1.0,
        *,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        intersectional: bool = False,
        continuous: Continuous = "auto",
        penalty: PenaltyOptions | None = None,
        pos_label: object = None,
        expected_groups: bool = True,
        **booster: Any,
    ) -> None:
        super().__init__(**booster)
        self.strength = strength
        self.criterion = criterion
        self.metric = metric
        self.intersectional = intersectional
        self.continuous = continuous
        self.penalty = penalty
        self.pos_label = pos_label
        self.expected_groups = expected_groups

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | GroupProbabilities | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Sequence[tuple[Table, Table]] | None = None,
        eval_sensitive_features: Sequence[Table | GroupProbabilities] | None = None,
        eval_control_features: Sequence[Table] | None = None,
        **booster: Any,
    ) -> Self:
        """Boost from scratch. With strength 0 the call is the plain booster's.

        XGBoost also takes Dask collections, with one and the same partitions, and then trains on
        the cluster; the result is an ordinary fitted booster. Pass ``expected_groups=False`` then,
        as the penalty uses the observed groups. See docs/beyond-one-machine.md.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the booster takes them.
        y : array-like of shape (n_samples,)
            Labels, or a regression target.
        sensitive_features : array-like, table or GroupProbabilities, default=None
            The group of each sample. A table holds several attributes. Samples with a missing group
            are used for the risk only. If groups are not in the data, pass their probabilities as
            ``GroupProbabilities``.
        control_features : array-like or table, default=None
            Strata within which groups are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample.
        eval_set : list of (X, y), default=None
            Evaluation sets; early stopping uses their ``penalized_risk``.
        eval_sensitive_features, eval_control_features : list, default=None
            Groups (or their probabilities) and strata, one entry for each set of ``eval_set``.
        **booster
            Further arguments of the booster, for its ``fit``.

        Returns
        -------
        self : object
            The fitted booster.
        """
        self._check_names()
        if isinstance(eval_set, tuple):
            eval_set = [eval_set]
        if not is_dask(X):
            X = as_features(X)
        inputs = Inputs(y, sensitive_features, control_features, sample_weight, rows={"X": X})
        lists = {
            "eval_sensitive_features": eval_sensitive_features,
            "eval_control_features": eval_control_features,
            self._eval_weights: booster.get(self._eval_weights),
        }
        self.left_out_: tuple[str, ...] = ()
        if is_dask(X):
            self._fit_on_cluster(inputs, eval_set or (), lists, booster)
            return self
        booster |= {"sample_weight": sample_weight}
        if eval_set is not None:
            eval_set = [(as_features(rows), labels) for rows, labels in eval_set]
            booster |= {"eval_set": eval_set}
        outcome = as_labels(y)
        fit = partial(super().fit, X, outcome)  # type: ignore[misc]
        self._check_labels(outcome)
        with _booster_messages(self):
            if not is_penalized(self):
                fit(**booster)
                return self
            evaluated = () if eval_set is None else evaluation_sets(eval_set, **lists)
            self._plan = self._penalized(inputs, evaluated, booster)
            try:
                self._fit_booster(fit, self._plan)
            finally:
                del self._plan
        return self

    def _penalized(
        self, inputs: Inputs, eval_inputs: Sequence[Inputs], arguments: dict[str, Any]
    ) -> FitPlan:
        """The objectives of training rows, with expected groups if requested, and of evaluation
        sets.
        """
        warn_without_estimate(self.metric, penalty_options(self).estimate, default="rows")
        problem = boosting_problem(self, inputs)
        self.left_out_ = problem.trainable.left_out
        rounds, learning_rate = self._pace()
        shares = None
        if self.expected_groups:
            seed = np.random.RandomState(make_seed(getattr(self, "random_state", None) or 0))
            shares = problem.shares(
                partial(self._reused_chances, inputs.rows["X"], arguments), seed
            )
        risk_weight = self._risk_weight(problem)
        objective = problem.make_objective(problem.training, risk_weight, shares)
        descent = Descent(
            objective, float(self.strength), rounds=rounds, learning_rate=learning_rate
        )
        evaluations = tuple(
            problem.make_objective(evaluation_rows(problem, rows)) for rows in eval_inputs
        )
        return FitPlan(problem, descent, evaluations, arguments)

    def _reused_chances(
        self, X: Any, arguments: dict[str, Any], sample: GroupSample, predicted: Integers
    ) -> Floats:
        """The probabilities of groups, which the boosters of all strengths share."""
        parameters = {
            name: value for name, value in self.get_params().items() if name not in OWN_PARAMETERS
        }

        def compute() -> Floats:
            if sample.kind.max() == 0:
                return np.ones((len(predicted), 1))
            model = self._group_model(len(sample.rows))
            learned = take_rows(X, sample.rows)
            columns = self._column_arguments(arguments)
            model.fit(learned, sample.kind, sample_weight=sample.weight, **columns)
            return np.asarray(model.predict_proba(take_rows(X, predicted)))

        return reused(compute, type(self), X, arguments, sample, predicted, parameters)

    def _fit_on_cluster(
        self,
        inputs: Inputs,  # noqa: ARG002
        eval_set: Any,  # noqa: ARG002
        lists: Any,  # noqa: ARG002
        arguments: dict[str, Any],  # noqa: ARG002
    ) -> None:
        remedy = "use FairXGBClassifier or FairXGBRegressor, or pass X.compute()"
        raise DataError(
            "X is a Dask collection, and LightGBM cannot sum counts over workers", remedy=remedy
        )

    def _check_parameters(self) -> None:
        """Raise a DataError that names the first parameter out of its range."""
        is_penalized(self)

    def _check_labels(self, y: Any) -> None:
        """Raise a DataError if the booster does not accept these labels."""

    @abstractmethod
    def _risk_weight(self, problem: BoostingProblem) -> Floats | None:
        """A factor for the loss of each training row, besides its sample weight."""

    @abstractmethod
    def _check_names(self) -> None:
        """Raise a DataError for a parameter name that the booster would ignore."""

    @abstractmethod
    def _group_model(self, rows: int) -> Any:
        """The plain booster that predicts groups, to be trained on so many rows."""

    def _column_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """The arguments of ``fit`` that describe columns."""
        return {}

    @abstractmethod
    def _pace(self) -> tuple[int, float]:
        """The maximum number of rounds, and the learning rate."""

    @abstractmethod
    def _fit_booster(self, fit: Callable[..., Any], plan: FitPlan) -> None:
        """Call the booster's ``fit`` with the plan's objective, and complete it for prediction."""
        raise NotImplementedError


OWN_PARAMETERS = frozenset(signature(FairBooster.__init__).parameters) - {"self", "booster"}
"""Parameters of FairBooster; all others go to the booster."""


@contextmanager
def _booster_messages(booster: Any) -> Iterator[None]:
    """Replace the booster's error for text columns by one that explains how to encode them.

    LightGBM 4.7 prefers eval_X and eval_y, but does not translate labels in these: its warning is
    not shown.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
            yield
    except ValueError as error:
        name = type(booster).__name__
        message = " ".join(str(error).split())
        if "dtypes" not in message:
            raise
        raise DataError(
            "X must contain numbers, booleans or categories; convert text with "
            "astype('category'), or encode "
            f"it first with make_pipeline(TableEncoder(), {name}()). {message}"
        ) from error
