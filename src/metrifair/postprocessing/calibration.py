"""The data of post-processors: scores of held-out rows, and the rows' groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import ClassifierTags, RegressorTags, assert_all_finite, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from metrifair.errors import DataError, ModelFileError, Remedy, TooFewSamples
from metrifair.estimators import FairClassifier
from metrifair.postprocessing.group_model import Correction, GroupModel, fit_group_model
from metrifair.postprocessing.postprocessor import (
    Postprocessor,
    TrainingRows,
    assign_folds,
    check_class_count,
    check_learner,
    overfits,
    with_ties,
)
from metrifair.problem.memberships import GroupProbabilities, RowProbabilities
from metrifair.problem.missing_groups import warn_of_groups, warn_of_missing_at_prediction
from metrifair.problem.problem import (
    Inputs,
    Problem,
    Scheme,
    problem_with_probabilities,
    problem_with_scheme,
    warn_of_labels,
    warn_of_positive_label,
)
from metrifair.problem.tables import UNKNOWN, Table, take_rows, unmasked
from metrifair.saving.records import Arrays
from metrifair.saving.saved import Saved
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import check_integer, check_number, check_switches, make_seed

# by which probabilities may exceed their range
_BEYOND_RANGE = 1e-9


class Calibration(NamedTuple):
    """Rows with known groups, and scores of a model that was trained without them.

    ``ScorePostprocessor.learn`` and ``ScorePostprocessor.calibrate`` receive it.

    Parameters
    ----------
    problem : Problem
        The rows as ``fit`` read them. ``problem.is_positive`` is whether each row has the positive
        label, or None.
    score : ndarray of shape (n_rows,)
        The probability of the positive class, or the prediction of a regressor.
    group : ndarray of shape (n_rows,)
        The group of each row, by its position in ``groups_``.
    weight : ndarray of shape (n_rows,)
        The weight of each row; 1 without ``sample_weight``.
    cells : ndarray of shape (n_rows, n_cells) or None
        With ``needs_group=False``: the predicted probability of each group, or of each group with
        each label.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair.postprocessing import ScorePostprocessor
    >>> from sklearn.linear_model import LinearRegression
    >>> class Counting(ScorePostprocessor):
    ...     def calibrate(self, rows):
    ...         print(np.bincount(rows.group, rows.weight))
    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> _ = Counting(LinearRegression(), folds=1).fit(y[:, None], y, sensitive_features=list("abbb"))
    [1. 3.]
    """

    problem: Problem
    score: Floats
    group: Integers
    weight: Floats
    cells: Floats | None

    def memberships(self) -> tuple[Integers, Integers, Floats]:
        """Row, group and weight of each membership of a group.

        There is one for each row. With ``GroupProbabilities``, there is one for each row and group
        of positive probability, and the weight is multiplied by it.

        Returns
        -------
        tuple of three ndarrays
            Positions of rows, positions of groups, and weights.
        """
        members = self.problem.entries.members
        if members is None:
            rows = np.arange(len(self.group))
            return rows, self.group, self.weight
        weight = self.weight[members.row] * members.share
        return members.row, members.group, weight


class IntersectedGroups(NamedTuple):
    """The intersections of all attributes' groups in the training rows: each is a group.

    Parity of all intersections is parity of every attribute. A correction of one attribute after
    the other would be exact for the last one only.
    """

    scheme: Scheme
    seen: Integers  # (groups, attributes): codes, in ascending order

    @classmethod
    def from_rows(cls, problem: Problem, sets: Mapping[str, Booleans]) -> IntersectedGroups:
        """Intersections with rows in each of the sets; others count as not seen.

        A group without rows is an error.
        """
        if problem.probabilities is not None:
            return cls._from_probabilities(problem, problem.probabilities, sets)
        is_known = problem.groups != UNKNOWN
        has_groups = is_known.all(1)
        known = problem.groups[has_groups]
        seen = np.unique(known, axis=0)
        attributes = problem.scheme.attributes
        for name, member in sets.items():
            groups_inside = problem.groups[has_groups & member]
            inside = {tuple(codes) for codes in groups_inside.tolist()}
            has_rows = np.array([tuple(codes) in inside for codes in seen.tolist()])
            if not has_rows.all() and len(attributes) == 1:
                without = seen[~has_rows]
                first_without = int(without[0, 0])
                group = attributes[0].groups[first_without]
                raise TooFewSamples(
                    f"group {group!r} has no row with {name}, on which the criterion conditions"
                )
            seen = seen[has_rows]
        if len(seen) < 2:
            raise TooFewSamples(
                f"sensitive_features: rows of {len(seen)} group(s) can be compared; two are needed"
            )
        return cls(problem.scheme, seen)

    @classmethod
    def _from_probabilities(
        cls,
        problem: Problem,
        probabilities: RowProbabilities,
        sets: Mapping[str, Booleans],
    ) -> IntersectedGroups:
        """All groups; a group of which less than one row is expected in a set is an error."""
        for name, member in sets.items():
            inside = probabilities.values[member]
            expected = np.nansum(inside, axis=0)
            fewest = expected.min()
            if fewest < 1:
                group = probabilities.groups[expected.argmin()]
                raise TooFewSamples(
                    f"group {group!r} of {probabilities.name} has {fewest:.2g} expected rows with "
                    f"{name}; merge it with another group"
                )
        codes = np.arange(len(probabilities.groups))
        return cls(problem.scheme, codes[:, None])

    def codes(self, groups: Integers) -> Integers:
        """The intersection of each row; unknown where an attribute is missing or the intersection
        was not seen.

        >>> from metrifair.problem.problem import Inputs, make_problem
        >>> problem = make_problem(Inputs(sensitive_features={"sex": ["f", "m", "f"], "old": [0, 0, 1]}))
        >>> IntersectedGroups.from_rows(problem, {}).codes(np.array([[1, 0], [0, 1], [1, 1], [0, -1]]))
        array([ 2,  1, -1, -1])
        """
        radix = [len(attribute.groups) + 1 for attribute in self.scheme.attributes]

        def numbered(table: Integers) -> Integers:
            digits = table % radix  # an unknown group is the last digit
            numbers: Integers = np.ravel_multi_index(tuple(digits.T), radix)
            return numbers

        seen = numbered(self.seen)
        numbers = numbered(groups)
        last = len(seen) - 1
        place = np.searchsorted(seen, numbers)
        place = place.clip(max=last)
        is_seen = seen[place] == numbers
        return np.where(is_seen, place, UNKNOWN)

    @property
    def names(self) -> tuple[object, ...]:
        """The names of the groups; for several attributes, a tuple with one value of each."""
        attributes = self.scheme.attributes
        codes_of_attributes = self.seen.T.tolist()
        columns = [
            [attribute.groups[code] for code in codes]
            for attribute, codes in zip(attributes, codes_of_attributes, strict=True)
        ]
        if len(columns) == 1:
            return tuple(columns[0])
        return tuple(zip(*columns, strict=True))


@dataclass(kw_only=True, eq=False, repr=False)
class ScorePostprocessor(Saved, Postprocessor):
    """Base class of post-processors: define ``calibrate`` and ``adjust`` to write your own.

    ``fit`` fits the estimator, scores held-out rows and calls ``learn`` once and ``calibrate`` for
    each tolerance. ``predict`` scores new rows, calls ``adjust`` (``adjust_blind`` with
    ``needs_group=False``), and returns labels of a classifier. Parameters of your own: decorate the
    class with ``@dataclass(kw_only=True, eq=False, repr=False)`` and annotate them.

    Parameters
    ----------
    estimator : classifier or regressor, default=None
        Estimator to use: a classifier of two classes or a regressor. None is a linear model,
        ``FairClassifier(0)``.
    tolerance : float, default=0.0
        Allowed unfairness, from 0 to 1, as the class defines it.
    needs_group : bool, default=True
        Whether prediction needs the group. If False, ``adjust_blind`` receives predicted
        probabilities of the groups.
    group_model : classifier, default=None
        Classifier that predicts the group, for ``needs_group=False``. It is calibrated on held-out
        rows. None is a logistic regression.
    randomized : bool, default=False
        Whether predictions are randomized. ``generator_`` draws.
    prefit : bool, default=False
        Whether the estimator is already fitted, preferably on other rows. Clones share it.
    folds : int, default=5
        Number of cross-validation folds that score held-out rows; the estimator itself is fitted on
        all rows. 1 uses the scores of the training rows.
    random_state : int, NumPy generator or None, default=None
        Seed of the default model, the folds and the draws.

    Attributes
    ----------
    decides : bool
        Of the class: whether ``adjust`` returns probabilities of the positive decision, and there
        is no ``predict_proba``. By default it returns scores.
    needs_labels : bool
        Of the class: whether ``fit`` needs ``y`` with ``prefit=True`` too.
    base_ : classifier or regressor
        The fitted estimator.
    groups_ : tuple
        The groups that ``fit`` saw; of several attributes, their combinations.
    classes_ : ndarray
        The classes, of a classifier.
    group_model_ : GroupModel
        With ``needs_group=False``: the fitted group model, and its calibration.
    generator_ : RandomState
        Draws of ``randomized`` predictions.

    See Also
    --------
    BarycenterPostprocessor : Scores with the same distribution in all groups.
    ThresholdPostprocessor : Decisions with similar rates in all groups.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair.postprocessing import ScorePostprocessor
    >>> from sklearn.linear_model import LinearRegression
    >>> class EqualMeans(ScorePostprocessor):
    ...     def calibrate(self, rows):
    ...         means = np.bincount(rows.group, rows.weight * rows.score) / np.bincount(rows.group, rows.weight)
    ...         self.shift_ = (1 - self.tolerance) * (np.average(rows.score, weights=rows.weight) - means)
    ...
    ...     def adjust(self, scores, groups):
    ...         return scores + np.append(self.shift_, 0)[groups]  # -1, a missing group, is the last
    >>> y, a = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), list("ffffmmmm")
    >>> model = EqualMeans(LinearRegression(), folds=1).fit(y[:, None], y, sensitive_features=a)
    >>> model.predict(y[:, None], sensitive_features=a).round(6)
    array([3., 4., 5., 6., 3., 4., 5., 6.])
    """

    estimator: Any = field(default=None, kw_only=False)
    tolerance: float = 0.0
    needs_group: bool = True
    group_model: Any = None
    randomized: bool = False
    prefit: bool = False
    folds: int = 5
    random_state: Any = None

    decides: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    score = Postprocessor.score  # not scikit-learn's, which predicts without groups

    def learn(self, rows: Calibration) -> None:
        """Compute what is the same for all tolerances; by default nothing.

        Parameters
        ----------
        rows : Calibration
            Rows with known groups, and their held-out scores.
        """

    def calibrate(self, rows: Calibration) -> None:
        """Compute what depends on the tolerance; by default nothing.

        Parameters
        ----------
        rows : Calibration
            Rows with known groups, and their held-out scores.
        """

    def adjust(self, scores: Floats, groups: Integers) -> Floats:
        """The final scores of new rows, or, if the class ``decides``, probabilities.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores of the estimator: the probability of the positive class, of a classifier.
        groups : ndarray of shape (n_samples,)
            Group of each sample, by its position in ``groups_``. A missing group, or an
            intersection that ``fit`` did not see, is -1.

        Returns
        -------
        ndarray of shape (n_samples,)
            One finite number for each row, from 0 to 1 for a classifier.
        """
        raise NotImplementedError(f"{type(self).__name__} must define adjust")

    def adjust_blind(self, scores: Floats, probabilities: Floats) -> Floats:
        """The final scores of new rows without their groups; a class that lacks it refuses
        ``needs_group=False``.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            As in ``adjust``.
        probabilities : ndarray of shape (n_samples, n_cells)
            The predicted probability of each group, in the order of ``groups_``.

        Returns
        -------
        ndarray of shape (n_samples,)
            As in ``adjust``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define adjust_blind")

    def state(self) -> dict[str, Floats]:
        """The fitted arrays that ``save`` writes; a class that lacks it cannot be saved.

        Returns
        -------
        dict of ndarrays
            Everything that ``learn`` and ``calibrate`` computed, by name, in double precision.
        """
        raise DataError(
            f"{type(self).__name__} cannot be saved, since it defines no state and restore",
            remedy="define both",
        )

    def restore(self, arrays: Arrays) -> None:
        """Set the fitted attributes from the arrays of ``state``, when ``load`` reads a file.

        Check values, and raise a ModelFileError if they are not those of a model: files may be
        damaged.

        Parameters
        ----------
        arrays : Arrays
            Arrays of the file. ``arrays.take(name, shape)`` returns one, or raises a
            ModelFileError; None in the shape is any length.
        """

    def fit(
        self,
        X: Table,
        y: Table | None = None,
        *,
        sensitive_features: Table | GroupProbabilities,
        sample_weight: Table | None = None,
        clusters: Table | None = None,
    ) -> Self:
        """Fit the estimator, unless it is fitted already, and then the post-processing of its
        scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,), default=None
            Labels, or a regression target. A prefit estimator needs them for decisions, but not for
            scores.
        sensitive_features : array-like of shape (n_samples,), table, dict of columns or GroupProbabilities
            The group of each sample. Several columns are intersected. Samples with a missing group
            are used for the estimator only. If groups are not in the data and
            ``needs_group=False``, pass their probabilities as ``GroupProbabilities``: the group
            model is then fitted to them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample, for the estimator too.
        clusters : array-like of shape (n_samples,), default=None
            The cluster of each row, such as a person. ``folds`` do not divide clusters.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        arguments = Inputs(
            y, sensitive_features, sample_weight=sample_weight, rows={"X": X}, clusters=clusters
        )
        self.calibrate(self._learn(X, arguments))
        return self

    def predict(self, X: Table, *, sensitive_features: Table | None = None) -> NDArray[Any]:
        """The label or decision of each row, or the prediction of a regressor.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        sensitive_features : array-like of shape (n_samples,), table or dict of columns, default=None
            The group of each sample: groups of the training rows. Needed unless
            ``needs_group=False``. Samples with a missing group are predicted by the rule for all
            groups together, and raise a warning.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, or predictions.
        """
        score = self._adjusted(X, sensitive_features)
        if is_regressor(self):
            return score
        if self.decides and self.randomized:
            # Draws are from [0, 1): a row with probability 0 is never accepted.
            draws = self.generator_.uniform(size=len(score))
            accepted = score > draws
        else:
            accepted = score >= 0.5
        negative = 1 - self.positive_
        code = np.where(accepted, self.positive_, negative)
        return self.classes_[code]

    @available_if(lambda self: not (self.decides or is_regressor(self)))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table, *, sensitive_features: Table | None = None) -> Floats:
        """The scores of a classifier, as probabilities of the classes.

        Parameters
        ----------
        X, sensitive_features : array-like or table
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        score = self._adjusted(X, sensitive_features)
        other = 1 - score
        columns = [score, other]
        if self.positive_:
            columns.reverse()
        return np.stack(columns, axis=1)

    def _adjusted(self, X: Table, sensitive_features: Table | None) -> Floats:
        """What ``adjust`` returns for these rows, checked."""
        check_is_fitted(self, "base_")
        self._check_parameters()
        if self.needs_group != self._used_group:
            raise DataError(
                f"needs_group was {self._used_group} when {type(self).__name__} was fitted; fit it "
                "again"
            )
        if self.needs_group:
            # before scores: groups that cannot be read are an error of their own
            groups = self._codes(X, sensitive_features)
        plain = self._scores(self.base_, X, sensitive_features)
        if self.needs_group:
            score = self.adjust(plain, groups)
        else:
            chances = self.group_model_.chances(X)
            score = self.adjust_blind(plain, chances)
        self._check_adjusted(score, len(plain))
        return score

    def _check_adjusted(self, score: Floats, count: int) -> None:
        """Raise a DataError unless these are scores or probabilities of all rows."""
        name = f"{type(self).__name__}.adjust"
        is_column = np.shape(score) == (count,)
        if not is_column or not np.isfinite(score).all():
            raise DataError(
                f"{name} must return one finite number for each of {count} rows, got an array of "
                f"shape {np.shape(score)}"
            )
        if is_regressor(self) or not count:
            return
        low = np.min(score)
        high = np.max(score)
        if low < -_BEYOND_RANGE or high > 1 + _BEYOND_RANGE:
            raise DataError(
                f"{name} must return probabilities from 0 to 1 for a classifier, got values from "
                f"{low:.4g} to {high:.4g}"
            )

    def fit_path(
        self,
        X: Table,
        y: Table | None = None,
        *,
        sensitive_features: Table | GroupProbabilities,
        sample_weight: Table | None = None,
        clusters: Table | None = None,
        tolerances: Sequence[float],
    ) -> list[Self]:
        """A fitted post-processor for each tolerance; they equal single fits, and share the fitted
        estimator.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight, clusters : array-like or table
            As in ``fit``.
        tolerances : sequence of float
            Values of ``tolerance``.

        Returns
        -------
        list of estimators
            One for each tolerance, in their order.
        """
        if isinstance(tolerances, (str, bytes)) or not np.iterable(tolerances):
            raise DataError(
                f"tolerances must be a sequence of numbers from 0 to 1, got {tolerances!r}"
            )
        values = list(tolerances)
        for tolerance in values:
            check_number("tolerances", tolerance, low=0, high=1)
        first = clone(self)
        arguments = Inputs(
            y, sensitive_features, sample_weight=sample_weight, rows={"X": X}, clusters=clusters
        )
        rows = first._learn(X, arguments)
        state = first.generator_.get_state()
        fitted = []
        for tolerance in values:
            model = copy(first).set_params(tolerance=tolerance)
            model.generator_ = np.random.RandomState()
            model.generator_.set_state(state)
            model.calibrate(rows)
            fitted.append(model)
        return fitted

    def _file_arrays(self) -> dict[str, Floats]:
        """The arrays of the file, except for those of the wrapped models."""
        arrays = self.state()
        if not self.needs_group:
            slope, bias = self.group_model_.correction
            arrays |= {"slope": np.array([slope]), "bias": bias}
        return arrays

    def _restore(self, scheme: Scheme, seen: Integers, guess: Any, arrays: Arrays) -> None:
        """Restore the groups of the training rows and the arrays of ``_file_arrays``."""
        sizes = [len(attribute.groups) for attribute in scheme.attributes]
        if (
            len(seen) < 2
            or (seen < 0).any()
            or (seen >= sizes).any()
            or len(np.unique(seen, axis=0)) < len(seen)
        ):
            raise ModelFileError(
                "the file does not describe a model: its groups are not those of its attributes"
            )
        seen = np.unique(seen, axis=0)
        self.crossed_ = IntersectedGroups(scheme, seen)
        self.groups_ = self.crossed_.names
        self._used_group = guess is None
        if guess is not None:
            count = len(seen) * self._cells_per_group
            bias = arrays.take("bias", (count,))
            slope = arrays.number("slope")
            # a cell may have had no row
            cells = set(np.asarray(guess.classes_).tolist())
            if not cells <= set(range(len(bias))):
                raise ModelFileError(
                    "the file does not describe a model: its guess is not of its groups"
                )
            self.group_model_ = GroupModel(guess, Correction(slope, bias))
        self.restore(arrays)

    def _check_parameters(self) -> None:
        check_number("tolerance", self.tolerance, low=0, high=1)
        check_switches(randomized=self.randomized, needs_group=self.needs_group, prefit=self.prefit)
        check_integer("folds", self.folds, least=1)
        if self.group_model is not None:
            check_learner(self.group_model, "classifier", name="group_model")
        blind = type(self).adjust_blind is not ScorePostprocessor.adjust_blind
        if not (self.needs_group or blind):
            raise DataError(
                f"{type(self).__name__} needs the group to predict",
                argument="needs_group",
                received=False,
                remedy=Remedy("needs_group", True),
            )

    def __sklearn_clone__(self) -> Self:
        """A clone shares a fitted estimator: a copy of its parameters alone could not predict."""
        copied: Self = super().__sklearn_clone__()
        if self.prefit is True:
            copied.estimator = self.estimator
        return copied

    def _learn(self, X: Table, arguments: Inputs) -> Calibration:
        """Fit base and group model, store groups and classes, and score held-out rows."""
        self._check_parameters()
        problem, training = self._read(X, arguments)
        sets = self._sets(problem)
        self.crossed_ = IntersectedGroups.from_rows(problem, sets)
        self.groups_ = self.crossed_.names
        self.positive_ = problem.scheme.positive
        seed = make_seed(self.random_state)
        self.generator_ = np.random.RandomState(seed)
        self._used_group = self.needs_group
        group = self.crossed_.codes(problem.groups)
        weight = problem.row_weights
        count = len(problem)
        labels = np.zeros(count, dtype=np.int64)
        if problem.scheme.classes and problem.labels is not None:
            labels = np.asarray(problem.labels)
        folds = assign_folds(self.folds, labels, group, seed, problem.clusters)
        if self.prefit:
            self.base_ = self.estimator
            score = self._scores(self.base_, training.X, training.groups)
        else:
            all_rows = np.arange(count)
            self.base_ = training.fit(self._template(), all_rows)
            score = self._calibration_scores(training, folds, weight)
        has_group = group != UNKNOWN
        with_group = np.flatnonzero(has_group)
        rows = Calibration(
            problem.take(with_group),
            score=score[with_group],
            group=group[with_group],
            weight=weight[with_group],
            cells=None,
        )
        if not self.needs_group:
            folds = folds[with_group]
            cells = self._fit_group_model(training, rows, with_group, folds)
            rows = rows._replace(cells=cells)
        self.learn(rows)
        return rows

    def _calibration_scores(
        self, training: TrainingRows, folds: Integers, weight: Floats
    ) -> Floats:
        """Scores of the training rows, distributed as ``base_`` will score new rows."""
        in_sample = self._scores(self.base_, training.X, training.groups)
        if folds.max() == 0:
            return in_sample
        held_out = self._out_of_fold_scores(training, folds)
        if is_regressor(self):
            truth = training.y
        else:
            positive = self.classes_[self.positive_]
            truth = training.y == positive
        truth = np.asarray(truth, dtype=np.float64)
        if overfits(in_sample, held_out, truth, weight):
            return held_out
        return with_ties(in_sample, held_out)

    def _fit_group_model(
        self, source: TrainingRows, rows: Calibration, known: Integers, folds: Integers
    ) -> Floats:
        """Fit the model that predicts groups of new rows, and return the probabilities of the
        cells of these rows.
        """
        row, group, weight = rows.memberships()
        cell = group
        if self._labels:
            is_positive = np.asarray(rows.problem.is_positive)
            cell = 2 * group + is_positive[row]
        folds = folds[row]
        clusters = rows.problem.clusters
        if folds.max():
            self._check_cells_of_folds(cell, folds, rows.group)
        row_weight = None
        if source.weight is not None or rows.problem.probabilities is not None:
            row_weight = weight
        if clusters is not None:
            clusters = clusters[row]
        X = take_rows(source.X, known[row])
        features = TrainingRows(X, cell, None, row_weight, clusters)
        template = self.group_model
        # our logistic regression, which can be saved; some columns determine groups
        if template is None:
            seed = make_seed(self.random_state)
            template = FairClassifier(0.0, model="linear", weight_decay=1e-6, random_state=seed)
        elif rows.problem.probabilities is not None and not has_fit_parameter(
            template, "sample_weight"
        ):
            raise DataError(
                "must accept sample_weight in fit to learn from probabilities",
                argument="group_model",
                received=template,
            )
        count = len(self.groups_) * self._cells_per_group
        self.group_model_, cells = fit_group_model(
            features, template, cells=count, weight=weight, folds=folds
        )
        # memberships of a row have the same features
        is_new_row = np.diff(row) > 0
        first = np.append(True, is_new_row)
        return np.asarray(cells[first])

    def _check_cells_of_folds(self, cell: Integers, folds: Integers, group: Integers) -> None:
        """Raise TooFewSamples if the rows outside a fold have one cell only."""
        for fold in range(int(folds.max()) + 1):
            cells_outside = np.unique(cell[folds != fold])
            if len(cells_outside) < 2:
                counts = np.bincount(group)
                smallest = self.groups_[counts.argmin()]
                raise TooFewSamples(
                    f"group {smallest!r} has {counts.min()} row(s), too few to predict groups in "
                    "each of the folds; pass folds=1, or needs_group=True"
                )

    @property
    def _labels(self) -> tuple[int, ...]:
        """Labels on which the criterion conditions, 1 for the positive one; none: it compares
        all rows.
        """
        return ()

    @property
    def _cells_per_group(self) -> int:
        """Cells that the group model distinguishes: groups, or each group with either label."""
        return 2 if self._labels else 1

    def _sets(self, problem: Problem) -> dict[str, Booleans]:
        """The rows within which groups are compared, by a name for messages."""
        if not self._labels:
            return {"any label": np.ones(len(problem), dtype=np.bool_)}
        positive = np.asarray(problem.is_positive)
        return {
            f"the {('negative', 'positive')[label]} label": positive == label
            for label in self._labels
        }

    def _read(self, X: Table, arguments: Inputs) -> tuple[Problem, TrainingRows]:
        """The arguments of ``fit``, checked, without rows of weight 0."""
        y = arguments.y
        self._check_wrapped(X, y, needs_labels=self.needs_labels)
        numeric = is_regressor(self)
        target = None
        if y is not None:
            target = self._target_column(X, y)
            assert_all_finite(target, input_name="y")
            if not numeric:
                check_classification_targets(target)
        if self.needs_group and isinstance(arguments.sensitive_features, GroupProbabilities):
            raise DataError(
                "predicts with the group of each row, and sensitive_features are probabilities",
                argument="needs_group",
                received=True,
                remedy=Remedy("needs_group", False),
            )
        classes = None
        if self.prefit and not numeric:
            classes = np.unique(self.estimator.classes_).tolist()
        problem = problem_with_probabilities(
            arguments,
            criterion=getattr(self, "criterion", "statistical_parity"),
            pos_label=getattr(self, "pos_label", None),
            target="numbers" if numeric else "labels",
            classes=classes,
        )
        warn_of_labels(problem)
        warn_of_positive_label(problem, getattr(self, "pos_label", None))
        warn_of_groups(problem)
        if not numeric:
            self.classes_ = np.asarray(problem.scheme.classes)
            check_class_count(
                self.classes_.tolist(), two=True, remedy="; XianPostprocessor takes more"
            )
        rows = problem.passed_rows
        X = unmasked(X, as_numbers=True)
        (X,) = indexable(X)
        y = None
        if target is not None:
            y = target[rows]
        X = take_rows(X, rows)
        groups = take_rows(arguments.sensitive_features, rows)
        training = TrainingRows(X, y, groups, problem.weight, problem.clusters)
        return problem, training

    def _scores(self, base: Any, X: Table, sensitive_features: Table | None) -> Floats:
        """Probabilities of the positive class, or predictions."""
        scores = super()._scores(base, X, sensitive_features)
        if is_regressor(self):
            return scores
        # A model's columns have the order of its classes.
        classes = getattr(base, "classes_", self.classes_)
        columns = np.asarray(classes).tolist()
        positive = self.classes_.tolist()[self.positive_]
        return scores[:, columns.index(positive)]

    def _codes(self, X: Table, sensitive_features: Table | None) -> Integers:
        """The intersection of each new row; a value that was not in ``fit`` is an error."""
        inputs = Inputs(sensitive_features=sensitive_features, rows={"X": X})
        problem = problem_with_scheme(inputs, self.crossed_.scheme)
        warn_of_missing_at_prediction(problem)
        return self.crossed_.codes(problem.groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        numeric = (
            not self.decides
            and isinstance(self.estimator, BaseEstimator)
            and is_regressor(self.estimator)
        )
        if numeric:
            tags.estimator_type = "regressor"
            tags.classifier_tags = None
            tags.regressor_tags = RegressorTags()
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
            tags.regressor_tags = None
        tags.target_tags.required = True
        if not self.needs_group:
            guess = self.group_model
            tags.input_tags.sparse &= (
                isinstance(guess, BaseEstimator) and get_tags(guess).input_tags.sparse
            )
        tags.non_deterministic = self.randomized is True
        return tags
