"""`FairClassifierCV` and `FairRegressorCV`: a fair model within a limit, chosen by `frontier`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from metrifair.api.frontier import Frontier, requested_frontier
from metrifair.api.loading import save
from metrifair.errors import DataError, Remedy
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.estimators.scoring import ScoredWithGroups
from metrifair.estimators.settings import check_floats_as_labels
from metrifair.figures.utility import UtilityLike
from metrifair.metrics.registry import MetricLike
from metrifair.problem.criteria import Criterion
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.tables import Table
from metrifair.saving.modelfile import PathLike
from metrifair.support.checks import groups_if_accepted
from metrifair.tradeoff.frontier import FrontierRequest
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.sweep import SearchOptions, search_options


def _has(method: str) -> Any:
    """Whether the chosen model has a method; before ``fit``, what any family may have."""

    def check(self: _CrossValidated) -> bool:
        return not hasattr(self, "estimator_") or hasattr(self.estimator_, method)

    return check


@dataclass(kw_only=True, eq=False, repr=False)
class _CrossValidated(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor share: ``frontier("auto")``, then ``select``."""

    _plain: ClassVar[type[FairClassifier | FairRegressor]]
    _default_utility: ClassVar[str]

    max_unfairness: float
    confidence: float | None = None
    utility: UtilityLike = "auto"
    families: Literal["auto"] | Sequence[str] = "auto"
    criterion: str | Criterion = "statistical_parity"
    metric: MetricLike = "energy"
    needs_group: bool | None = False
    unfairness_of: Literal["scores", "decisions"] = "scores"
    folds: int | None = None
    best_effort: bool = False
    search: SearchOptions | None = None
    random_state: Any = None

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | GroupProbabilities | None = None,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
        clusters: Table | None = None,
    ) -> Self:
        """Compare all configurations by cross-validation, choose one, and train it on all rows.

        Parameters
        ----------
        X : table of shape (n, features)
            Features: an array or a data frame. Text, dates and missing values are encoded.
        y : array of shape (n,)
            Labels, or a regression target.
        sensitive_features : array of shape (n,), table or GroupProbabilities, default=None
            The group of each sample. None is possible with ``max_unfairness=1`` only, which limits
            nothing: a linear model is trained without a penalty.
        control_features : array of shape (n,) or table, default=None
            Strata within which groups are compared.
        sample_weight : array of shape (n,), default=None
            Weight of each sample.
        clusters : array of shape (n,), default=None
            The cluster of each row, such as a person, which no fold divides.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If no model meets the limit, or if these rows are too few to verify it.

        Examples
        --------
        >>> import numpy as np
        >>> from metrifair import FairClassifierCV
        >>> generator = np.random.default_rng(0)
        >>> sex = generator.integers(2, size=600)
        >>> X = generator.normal(size=(600, 3)) + sex[:, None]
        >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
        >>> model = FairClassifierCV(max_unfairness=0.3, families=["linear"], random_state=0)
        >>> model.fit(X, y, sensitive_features=sex).unfairness_ < 0.33
        True
        """
        # Before anything is trained, a goal that nothing can meet is refused; here, and by the
        # request's limit.
        self._check(y)
        Goal(
            max_unfairness=self.max_unfairness,
            needs_group=self.needs_group,
            confidence=self.confidence,
            best_effort=self.best_effort,
        )
        search = self._search
        if sensitive_features is None:
            weight: Any = sample_weight
            self.estimator_ = self._without_groups().fit(X, y, sample_weight=weight)
            self.frontier_ = None
        else:
            request = FrontierRequest(
                "auto",
                X,
                y,
                sensitive_features=sensitive_features,
                control_features=control_features,
                sample_weight=sample_weight,
                clusters=clusters,
                folds=self.folds,
                unfairness_of=self.unfairness_of,
                utility=self._utility,
                criterion=self.criterion,
                pos_label=getattr(self, "pos_label", None),  # a regressor has none
                random_state=self.random_state,
                search=search,
                limit=None if self.best_effort else self.max_unfairness,
            )
            self.frontier_ = requested_frontier(request, search)
            self.estimator_ = self.frontier_.select(
                max_unfairness=self.max_unfairness,
                needs_group=self.needs_group,
                confidence=self.confidence,
                best_effort=self.best_effort,
            )
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def _check(self, y: Table) -> None:
        """Raise an error for no limit, families that are no list, and numbers where labels are
        predicted.
        """
        if self.max_unfairness is None:
            raise DataError(
                "must be a number from 0 to 1",
                argument="max_unfairness",
                received=None,
                remedy=Remedy("max_unfairness", detail=", the largest gap that you accept"),
            )
        is_auto = isinstance(self.families, str) and self.families == "auto"
        is_list = isinstance(self.families, Sequence) and not isinstance(self.families, str)
        if not is_auto and not is_list:
            raise DataError(
                'must be "auto" or a list of names such as ["linear"]',
                argument="families",
                received=self.families,
                remedy=Remedy("families", leave_out=True, detail=" to compare all families"),
            )
        if self._plain is FairClassifier:
            check_floats_as_labels(self, y)

    def _without_groups(self) -> FairClassifier | FairRegressor:
        if self.max_unfairness < 1:
            raise DataError(
                "must be given to keep a limit of unfairness", argument="sensitive_features"
            )
        plain = self._plain(0.0, model="linear")
        if hasattr(self, "pos_label"):  # a regressor has none
            plain.set_params(pos_label=self.pos_label)
        return plain

    @property
    def _utility(self) -> UtilityLike:
        """The measure of quality; a regressor never treats few integers as labels."""
        is_default = isinstance(self.utility, str) and self.utility == "auto"
        return self._default_utility if is_default else self.utility

    @property
    def _search(self) -> SearchOptions:
        families = None if isinstance(self.families, str) else list(self.families)
        return replace(
            search_options(self.search),
            families=families,
            needs_group=self.needs_group is not False,
            metric=self.metric,
        )

    @property
    def unfairness_(self) -> float:
        """The unfairness that is expected on new rows."""
        value: float = self._chosen_frontier().chosen.gap(self.unfairness_of)
        return value

    @property
    def utility_(self) -> float:
        """The utility that is expected on new rows."""
        front = self._chosen_frontier()
        value: float = front.chosen.figure(front._trade_off.chosen_by.name)
        return value

    def _chosen_frontier(self) -> Any:
        check_is_fitted(self, "estimator_")
        front: Frontier | None = self.frontier_
        if front is None:
            raise AttributeError("the model was fitted without sensitive_features")
        return front

    def predict(self, X: Table, *, sensitive_features: Table | None = None) -> NDArray[Any]:
        """Predict labels, or numbers.

        Parameters
        ----------
        X : table of shape (n, features)
            Features, as in ``fit``.
        sensitive_features : array of shape (n,) or table, default=None
            The group of each sample, if the chosen model needs it (``needs_group=None`` or True).

        Returns
        -------
        ndarray of shape (n,)
            A label or a number for each row.
        """
        check_is_fitted(self, "estimator_")
        return self._predicted(self.estimator_.predict, X, sensitive_features)

    @staticmethod
    def _predicted(method: Any, X: Table, sensitive_features: Table | None) -> NDArray[Any]:
        groups = groups_if_accepted(method, sensitive_features)
        if sensitive_features is None:
            groups = {}
        result: NDArray[Any] = method(X, **groups)
        return result

    def save(self, path: PathLike) -> None:
        """Write the chosen model to a file, which ``metrifair.load`` reads without running code.

        Parameters
        ----------
        path : str or os.PathLike
            The file. An existing file is replaced, in one step.
        """
        check_is_fitted(self, "estimator_")
        save(self.estimator_, path)

    @available_if(_has("to_onnx"))  # type: ignore[untyped-decorator]
    def to_onnx(self, path: PathLike) -> None:
        """Write the chosen model as an ONNX graph.

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        """
        check_is_fitted(self, "estimator_")
        self.estimator_.to_onnx(path)


@dataclass(kw_only=True, eq=False, repr=False)
class FairClassifierCV(ScoredWithGroups, ClassifierMixin, _CrossValidated):  # type: ignore[misc]
    """The best classifier whose unfairness is expected to stay within a limit.

    It is ``frontier("auto", ...)`` followed by ``select``: families of models at several penalty
    strengths are compared by cross-validation, the best within the limit is chosen, and trained on
    all rows.

    Parameters
    ----------
    max_unfairness : float
        Unfairness limit, from 0 to 1: the largest difference between the groups' shares at or above
        a score, over all scores.
    confidence : float, default=None
        Confidence level: that the model keeps the limit on new rows, approximately. None: its
        estimated unfairness, plus an allowance for choosing among many models, is within the
        limit. The allowance takes at most half of the room that the fairest model leaves below it.
    utility : "auto", str, table of costs or scorer, default="auto"
        Measure of quality, as in :func:`metrifair.frontier`. "auto" is the AUC for scores, the
        accuracy for decisions.
    families : "auto" or list of str, default="auto"
        Names of the families that "auto" tries: "auto", or some of "linear", "barycenter",
        "thresholds", "small_trees", "large_trees", "blind_barycenter", "stack", "network",
        "stack_with_features".
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion, as in :class:`FairClassifier`.
    metric : str or callable, default="energy"
        Distance between distributions that training penalizes, as in :class:`FairClassifier`.
    needs_group : bool or None, default=False
        Whether prediction needs the group. False: ``predict(X)`` needs none. None: models that need
        it compete. True: only those.
    unfairness_of : {"scores", "decisions"}, default="scores"
        What unfairness compares across groups: score distributions, or decisions.
    folds : int, default=None
        Number of cross-validation folds. None: 5, or 3 beyond 20,000 rows.
    best_effort : bool, default=False
        Whether to return the least unfair model if no model meets the limit.
    search : SearchOptions, default=None
        Options of the search, such as a budget in seconds or a ledger.
    random_state : int, NumPy generator or None, default=None
        Seed of the folds.
    pos_label : object, default=None
        The positive label. By default the last class.

    Attributes
    ----------
    estimator_ : estimator
        The chosen model, trained on all rows.
    frontier_ : Frontier or None
        All configurations with their figures; None without ``sensitive_features``.
    unfairness_ : float
        The unfairness that is expected on new rows.
    utility_ : float
        The utility that is expected on new rows.
    classes_ : ndarray
        The classes, in ascending order.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.

    See Also
    --------
    metrifair.frontier : The whole trade-off.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair import FairClassifierCV
    >>> generator = np.random.default_rng(0)
    >>> sex = generator.integers(2, size=600)
    >>> X = generator.normal(size=(600, 3)) + sex[:, None]
    >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
    >>> model = FairClassifierCV(max_unfairness=0.3, families=["linear"], random_state=0)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> model.predict(X).shape, model.estimator_.strength > 0
    ((600,), True)
    """

    _plain = FairClassifier
    _default_utility = "auto"

    pos_label: object = None

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table, *, sensitive_features: Table | None = None) -> NDArray[Any]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : table of shape (n, features)
            Features, as in ``fit``.
        sensitive_features : array of shape (n,) or table, default=None
            The group of each sample, if the chosen model needs it.

        Returns
        -------
        ndarray of shape (n, classes)
            Probabilities, by the classes in ascending order.
        """
        check_is_fitted(self, "estimator_")
        return self._predicted(self.estimator_.predict_proba, X, sensitive_features)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(
        self, X: Table, *, sensitive_features: Table | None = None
    ) -> NDArray[Any]:
        """The margin of each row: log-odds, for the models of metrifair.

        Parameters
        ----------
        X : table of shape (n, features)
            Features, as in ``fit``.
        sensitive_features : array of shape (n,) or table, default=None
            The group of each sample, if the chosen model needs it.

        Returns
        -------
        ndarray of shape (n,) or (n, classes)
            Margins.
        """
        check_is_fitted(self, "estimator_")
        return self._predicted(self.estimator_.decision_function, X, sensitive_features)


@dataclass(kw_only=True, eq=False, repr=False)
class FairRegressorCV(ScoredWithGroups, RegressorMixin, _CrossValidated):  # type: ignore[misc]
    """The best regressor whose unfairness is expected to stay within a limit.

    It is ``frontier("auto", ...)`` followed by ``select``, as :class:`FairClassifierCV`.

    Parameters
    ----------
    max_unfairness : float
        Unfairness limit, from 0 to 1: the largest difference between the groups' shares at or above
        a prediction, over all predictions.
    confidence : float, default=None
        As in :class:`FairClassifierCV`.
    utility : "auto", str or scorer, default="auto"
        Measure of quality. "auto" is R2.
    families : "auto" or list of str, default="auto"
        As in :class:`FairClassifierCV`.
    criterion : str or Criterion, default="statistical_parity"
        As in :class:`FairClassifierCV`.
    metric : str or callable, default="energy"
        As in :class:`FairClassifierCV`.
    needs_group : bool or None, default=False
        As in :class:`FairClassifierCV`.
    unfairness_of : {"scores", "decisions"}, default="scores"
        What unfairness compares across groups. Numbers are compared in both cases.
    folds : int, default=None
        As in :class:`FairClassifierCV`.
    best_effort : bool, default=False
        As in :class:`FairClassifierCV`.
    search : SearchOptions, default=None
        As in :class:`FairClassifierCV`.
    random_state : int, NumPy generator or None, default=None
        As in :class:`FairClassifierCV`.

    Attributes
    ----------
    estimator_, frontier_, unfairness_, utility_, n_features_in_, feature_names_in_
        As in :class:`FairClassifierCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair import FairRegressorCV
    >>> generator = np.random.default_rng(0)
    >>> sex = generator.integers(2, size=600)
    >>> X = generator.normal(size=(600, 3)) + sex[:, None]
    >>> y = X.sum(1) + generator.normal(size=600)
    >>> model = FairRegressorCV(max_unfairness=0.3, families=["linear"], random_state=0)
    >>> model.fit(X, y, sensitive_features=sex).predict(X).shape
    (600,)
    """

    _plain = FairRegressor
    _default_utility = "r2"
