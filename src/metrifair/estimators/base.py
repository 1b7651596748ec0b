"""What the fair estimators have in common for their users: fit and save."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from metrifair.estimators.estimator import fit
from metrifair.estimators.fitting import Problem
from metrifair.problem.tables import Table
from metrifair.saving.keeping import save
from metrifair.saving.modelfile import PathLike

Floats = NDArray[np.float64]


class FairEstimator(BaseEstimator):
    """An estimator with the parameters of ``fitting.Settings``."""

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train from scratch.

        ``sensitive_features`` is a column, or a table of several attributes; missing values in it mean that the group
        is not known: such samples count for the risk only. ``control_features`` are strata within which the
        criterion is asked for.
        """
        fit(self, self._prepared(X, y, sensitive_features, control_features, sample_weight))
        return self

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file, which ``metrifair.load`` reads without running any code.

        The file holds parameters, weights, names of classes, groups and features, what metadata scikit-learn is asked
        to route, and the state of ``partial_fit``. It cannot hold functions (a metric, score or sets of your own: a
        DataError), and of a ``torch.nn.Module`` holds the weights only. A ``random_state`` that is a generator is saved
        as None. A crash leaves the old file.
        """
        save(self, path)

    @abstractmethod
    def _prepared(
        self,
        X: Table,
        y: Table,
        sensitive_features: Table | None,
        control_features: Table | None,
        sample_weight: ArrayLike | None,
    ) -> Problem:
        """The problem that ``fit`` solves; notes what the target's values stand for."""
