"""How a frontier searches: seeds, folds, other values to train at, and where the work runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any

from metrifair.errors import DataError
from metrifair.estimators.settings import check_devices
from metrifair.problem.attributes import Continuous
from metrifair.problem.cells import CONTRASTS, Contrast
from metrifair.support.checks import check_integer, check_known, is_integer


@dataclass(frozen=True)
class SearchOptions:
    """How :func:`metrifair.frontier` searches: how many models it trains, how it validates them, and where it runs.

    Parameters
    ----------
    seeds : int or list of int, default=1
        Number of models for each strength, or their seeds. Seeds change initial weights and batches, not the split.
    folds : int, default=None
        Number of cross-validation folds, for small data. Training uses all rows but the test rows, and ``select``
        compares predictions of models that were trained on the other folds. Training takes that many times longer,
        and limits cannot be certified. None uses the share ``validation`` of the rows.
    test_folds : int, default=None
        Number of test folds, for small data: every row is a test row of models that were trained and chosen without
        it, figures are of all rows, and the models that ``select`` returns are fitted on all rows. Training takes about
        that many times longer. None uses 5 folds where ``test`` is None, the smallest group that is compared would
        have fewer than 200 test rows, and there are at most 20,000 rows in all; otherwise a share of the rows.
    tolerances : list of float, default=None
        Values of ``tolerance``, for the families that have this parameter. None uses 15 values from 0 to 1.
    contrast : {"pairs", "rest", "independence"}, default="pairs"
        Which groups are compared, for estimators without a parameter ``contrast``.
    continuous : "auto", bool or list of str, default=None
        Numeric attributes, such as age. Training lowers the dependence of the scores on them, and figures compare up to
        five bands of their values. None uses the estimator's setting, or "auto".
    n_jobs : int, default=None
        Number of processes that fit estimators of other libraries. None uses the settings of joblib. With a joblib
        backend for clusters (``with joblib.parallel_config("dask"):``), its workers train our estimators too.
    devices : list of str, default=None
        Devices that share the strengths of FairClassifier and FairRegressor, such as ["cuda:0", "cuda:1"]. The models
        do not depend on it. None uses the estimator's device.
    ledger : str or Path, default=None
        File that stores finished models, so that an interrupted run resumes. It needs a ``random_state``.

    Raises
    ------
    DataError
        If a value is not one of these.

    See Also
    --------
    frontier : Takes it as ``search``.

    Examples
    --------
    >>> from metrifair import SearchOptions
    >>> SearchOptions(seeds=3).seed_values
    [0, 1, 2]
    >>> SearchOptions(folds=1)
    Traceback (most recent call last):
    metrifair.errors.DataError: folds must be an integer from 2 upwards, got 1
    """

    seeds: int | Sequence[int] = 1
    folds: int | None = None
    test_folds: int | None = None
    tolerances: Sequence[float] | None = None
    contrast: Contrast = "pairs"
    continuous: Continuous | None = None
    n_jobs: int | None = None
    devices: Sequence[str] | None = None
    ledger: str | Path | None = None

    def __post_init__(self) -> None:
        if not self.seed_values:
            problem = "must be a number from 1 upwards, or a list of seeds from 0 upwards"
            raise DataError(problem, argument="seeds", received=self.seeds)
        if self.folds is not None:
            check_integer("folds", self.folds, least=2)
        if self.test_folds is not None:
            check_integer("test_folds", self.test_folds, least=2)
        if self.tolerances is not None:
            distinct_numbers("tolerances", self.tolerances, least=0.0)
        check_known("contrast", self.contrast, CONTRASTS)
        if self.n_jobs is not None and (not is_integer(self.n_jobs, least=-(2**31)) or self.n_jobs == 0):
            raise DataError("must be None or an integer other than 0", argument="n_jobs", received=self.n_jobs)
        check_devices(self.devices)
        if not isinstance(self.ledger, str | os.PathLike | None):
            raise DataError("must be None or the path of a file", argument="ledger", received=self.ledger)

    @property
    def seed_values(self) -> list[int]:
        """The seeds of the models, each once; none where ``seeds`` cannot be used."""
        given: Any = self.seeds
        if is_integer(given):
            return list(range(int(given)))
        listed: list[Any] = list(given) if isinstance(given, Iterable) else []
        return list(dict.fromkeys(map(int, listed))) if all(is_integer(seed, least=0) for seed in listed) else []


def distinct_numbers(argument: str, given: Any, *, least: float = -inf, otherwise: str = "") -> list[float]:
    """The finite numbers of a list, each once, in order of first appearance.

    A DataError otherwise; ``otherwise`` describes other values that the argument accepts.

    >>> distinct_numbers("strengths", [1, 0, 1])
    [1, 0]
    """
    values: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    if not values or not all(isinstance(value, Real) and least <= float(value) < inf for value in values):
        lowest = f" from {least:g} upwards" if least > -inf else ""
        raise DataError(f"must be {otherwise}a list of finite numbers{lowest}", argument=argument, received=given)
    return list(dict.fromkeys(values))
