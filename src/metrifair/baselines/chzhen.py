"""Predictions of a regressor moved to the barycenter of the groups' distributions (Chzhen et
al., 2020).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from metrifair.baselines.baseline import PublishedPostprocessor
from metrifair.errors import TooFewSamples
from metrifair.postprocessing.rates import EmpiricalDistribution, barycenter
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_number, check_switches


@dataclass(kw_only=True, eq=False, repr=False)
class ChzhenPostprocessor(RegressorMixin, PublishedPostprocessor):
    """Post-processing of a regressor: predictions with the same distribution in all groups.

    A prediction is replaced by the mean, over groups weighted by size, of the predictions of the
    same rank. This is the best predictor with statistical parity in squared error. Prediction needs
    the groups.

    Parameters
    ----------
    estimator : regressor, default=None
        Estimator to use: a regressor. None is a linear model, ``FairRegressor(0)``.
    tolerance : float, default=0.0
        Allowed unfairness, from 0 (statistical parity) to 1 (the estimator's predictions). Values
        between extend the published method: the Wasserstein distance between groups is proportional
        to the tolerance.
    sigma : float, default=0.0
        Size of the random noise that breaks ties: predictions are ranked after adding a draw
        between -sigma and sigma. The draw is a function of the seed and the row's features. So the
        prediction of a row does not depend on the other rows of a call, and rows with equal
        features get equal predictions. Averaging over the draw instead would leave ties, and with
        them a distance between the groups.
    split : bool, default=False
        Rank with one half of each group's rows and take values from the other, for guarantees
        without assumptions.
    prefit : bool, default=False
        Whether the estimator is already fitted. ``fit`` then needs no targets.
    folds : int, default=1
        Number of cross-validation folds that predict held-out rows. 1 uses the estimator's
        predictions of its training rows.
    random_state : int, NumPy generator or None, default=None
        Seed of the default model, the folds, the halves and the draws.

    Attributes
    ----------
    base_ : regressor
        The fitted estimator.
    groups_ : tuple
        The groups that ``fit`` saw, of which new rows are to be.
    ranked_, valued_ : list of ndarray
        Sorted predictions of each group that ranks are looked up in, and that values are taken
        from.
    shares_ : ndarray of shape (n_groups,)
        Shares of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> y, a = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0, 6.0]), np.repeat([0, 1], 4)
    >>> model = ChzhenPostprocessor(LinearRegression()).fit(y[:, None], y, sensitive_features=a)
    >>> model.predict(y[:, None], sensitive_features=a).round(6)
    array([2., 3., 4., 5., 2., 3., 4., 5.])
    """

    estimator: Any = field(default=None, kw_only=False)
    tolerance: float = 0.0
    sigma: float = 0.0
    split: bool = False
    prefit: bool = False
    folds: int = 1
    random_state: Any = None

    score = PublishedPostprocessor.score  # scikit-learn's mixin predicts without groups

    def _check_parameters(self) -> None:
        check_number("tolerance", self.tolerance, low=0, high=1)
        check_number("sigma", self.sigma, low=0)
        check_switches(split=self.split)

    def _learn(self, X: Table, scores: Floats, group: Integers) -> None:
        """Sort the predictions of each group, for ranks and for values."""
        seed = self.generator_.randint(2**31 - 1)
        self.jitter_seed_ = int(seed)
        values = self._jittered(X, scores)
        members = []
        for code in range(len(self.groups_)):
            part = values[group == code]
            members.append(self.generator_.permutation(part))
        first = members
        second = members
        if self.split:
            if min(map(len, members)) < 2:
                raise TooFewSamples("split=True needs two rows of each group to calibrate on")
            first = []
            second = []
            for part in members:
                half = len(part) // 2
                first.append(part[:half])
                second.append(part[half:])
        self.ranked_ = list(map(np.sort, first))
        self.valued_ = list(map(np.sort, second))
        self.shares_ = np.bincount(group) / len(group)

    def _jittered(self, X: Table, scores: Floats) -> Floats:
        if not self.sigma:
            return scores
        draws = row_draws(X, self.jitter_seed_)
        return scores + self.sigma * draws

    def predict(self, X: Table, *, sensitive_features: Table) -> Floats:
        """Predictions, on the scale of y, which depend on the group of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample: one of the groups of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        group = self._groups(X, sensitive_features)
        plain = self._scores(self.base_, X, sensitive_features)
        jittered = self._jittered(X, plain)
        fair = np.empty(len(plain))
        valued = list(map(EmpiricalDistribution.of, self.valued_))
        for code, ranked in enumerate(self.ranked_):
            members = group == code
            distribution = EmpiricalDistribution.of(ranked)
            _, upto = distribution.ranks(jittered[members])
            fair[members] = barycenter(upto, upto, valued, self.shares_)
        kept = self.tolerance * plain
        return kept + (1 - self.tolerance) * fair


def row_draws(X: Table, seed: int) -> Floats:
    """A number in [-1, 1) for each row: a hash of the seed and the row's features, independent of
    other rows.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> bool((row_draws(rows[::-1], 0) == row_draws(rows, 0)[::-1]).all())
    True
    """
    if hasattr(X, "toarray"):  # sparse
        table = X.toarray()
    else:
        table = np.asarray(X)
    try:
        # the type of a list's numbers may depend on the other rows
        table = table.astype(np.float64)
    except (TypeError, ValueError):
        table = table.astype(object)  # names of categories
    draws = []
    for row in table.tolist():
        content = f"{seed} {row}".encode()
        digest = blake2b(content, digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        draws.append(number / 2**63 - 1)
    return np.array(draws)
