"""Massaging (Kamiran and Calders, 2012): labels changed where they are least sure, until both groups have one rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from metrifair.checks import check_known, seed_of
from metrifair.errors import DataError
from metrifair.methods.inputs import Floats, Integers, Rows, TwoClasses, classification_rows
from metrifair.methods.learners import Delegating, fit_learners
from metrifair.methods.networks import fitted_copy, own_rows, subset
from metrifair.problem.tables import Table


class Changes(NamedTuple):
    """Rows whose label is changed: to positive in the deprived group, to negative in the favoured one."""

    promoted: Integers
    demoted: Integers


def massaged(y: Integers, deprived: ArrayLike, score: Floats, *, rounding: str = "nearest") -> Changes:
    """The rows to change so that the rate of positive labels is the same inside and outside the deprived group.

    As many are promoted (by decreasing score) as demoted (by increasing score); of equal scores the earlier row goes
    first. ``rounding``: ``"nearest"`` leaves the smallest difference, ``"ceiling"`` none to the deprived group's harm.

    >>> y, deprived = np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0]), np.array([1] * 4 + [0] * 6)
    >>> massaged(y, deprived, np.array([0.9, 0.1, 0.4, 0.2, 0.9, 0.8, 0.6, 0.7, 0.3, 0.2]))
    Changes(promoted=array([2]), demoted=array([6]))
    """
    check_known("rounding", rounding, ("nearest", "ceiling"))
    inside = np.asarray(deprived, dtype=bool)
    n, of_deprived = len(y), int(inside.sum())
    excess = of_deprived * int(y[~inside].sum()) - (n - of_deprived) * int(y[inside].sum())
    pairs = max(0, -(-excess // n) if rounding == "ceiling" else (2 * excess + n) // (2 * n))
    candidates = np.flatnonzero(inside & (y == 0)), np.flatnonzero(~inside & (y == 1))
    promoted = candidates[0][np.argsort(-score[candidates[0]], kind="stable")[:pairs]]
    demoted = candidates[1][np.argsort(score[candidates[1]], kind="stable")[:pairs]]
    return Changes(promoted, demoted)


class MassagingClassifier(TwoClasses, Delegating):
    """Any classifier, trained on labels of which some were changed so that both groups have the same positive rate.

    A ranker scores the rows; the deprived group's likeliest negatives become positive and as many of the favoured
    group's unlikeliest positives negative. That is a property of the training labels: the classifier may still tell
    groups apart by the features. Predicting needs no groups.

    Parameters
    ----------
    estimator : a scikit-learn classifier; None is a network, ``FairClassifier(strength=0)``.
    ranker : a classifier with ``predict_proba``, or ``"estimator"`` for the base learner; None is Gaussian naive Bayes.
    deprived : the group with too few positive labels; None takes the one with the lower rate.
    rounding : number of changes: ``"nearest"`` whole number, or ``"ceiling"``, which leaves no discrimination.
    random_state : seed of the learners, where they have none of their own.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[0.9], [0.1], [0.4], [0.2], [0.9], [0.8], [0.6], [0.7], [0.3], [0.2]]
    >>> y, a = [1, 0, 0, 0, 1, 1, 1, 1, 0, 0], ["d"] * 4 + ["f"] * 6
    >>> MassagingClassifier(LogisticRegression()).fit(X, y, sensitive_features=a).changes_
    Changes(promoted=array([2]), demoted=array([6]))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        ranker: Any = None,
        deprived: object = None,
        rounding: Literal["nearest", "ceiling"] = "nearest",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.ranker = ranker
        self.deprived = deprived
        self.rounding = rounding
        self.random_state = random_state

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Change labels and train; the labels passed stay as they are."""
        rows = classification_rows(self, X, y, sensitive_features)
        everyone = [np.arange(len(rows))]
        ((self.estimator_, self.changes_),) = _fitted(self, rows, [seed_of(self.random_state)], everyone)
        return self


def fit_stack(
    estimator: MassagingClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[MassagingClassifier]:
    """Fitted copies for every seed, networks trained at once; ``rows`` are the training rows of each seed."""
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features)
    fitted = _fitted(template, table, seeds, own_rows(len(table), seeds, rows))
    return [
        fitted_copy(template, {"random_state": seed}, {"estimator_": learner, "changes_": changes})
        for seed, (learner, changes) in zip(seeds, fitted, strict=True)
    ]


def _fitted(
    estimator: MassagingClassifier, table: Rows, seeds: Sequence[int], own: Sequence[Integers]
) -> list[tuple[Any, Changes]]:
    even = [np.ones(len(part)) for part in own]
    ranker = GaussianNB() if estimator.ranker is None else estimator.ranker
    if isinstance(ranker, str):
        check_known("ranker", ranker, ("estimator",), otherwise="a classifier")
        ranker = estimator.estimator
    if ranker is not None and not hasattr(ranker, "predict_proba"):
        raise DataError(f"ranker must have predict_proba, which {ranker!r} lacks; pass another one, or None")
    rankers = fit_learners(ranker, table, seeds=seeds, rows=own, weights=even, name="ranker")
    changes = [_changes(estimator, subset(table, part), one) for part, one in zip(own, rankers, strict=True)]
    # Every row exists twice, with its label and with the other one; changed rows are taken from the second half.
    both = replace(
        table,
        x=np.concatenate([table.x, table.x]),
        y=np.concatenate([table.y, 1 - table.y]),
        group=np.tile(table.group, 2),
        weight=np.tile(table.weight, 2),
    )
    chosen = []
    for part, change in zip(own, changes, strict=True):
        flipped = np.isin(np.arange(len(part)), np.concatenate(change))
        chosen.append(np.where(flipped, part + len(table), part))
    learners = fit_learners(estimator.estimator, both, seeds=seeds, rows=chosen, weights=even)
    return list(zip(learners, changes, strict=True))


def _changes(estimator: MassagingClassifier, rows: Rows, ranker: Any) -> Changes:
    rates = [float(rows.y[rows.group == code].mean()) for code in (0, 1)]
    code = int(np.argmin(rates))
    if estimator.deprived is not None:
        if estimator.deprived not in rows.groups:
            raise DataError(f"deprived must be one of the groups {list(rows.groups)}, got {estimator.deprived!r}")
        code = rows.groups.index(estimator.deprived)
        if rates[code] >= rates[1 - code]:
            warnings.warn(
                f"group {estimator.deprived!r} is not deprived: its positive rate is {rates[code]:.3f}, that of the "
                f"other {rates[1 - code]:.3f}; no label is changed",
                stacklevel=4,
            )
    score = ranker.predict_proba(rows.x)[:, 1]
    return massaged(rows.y, rows.group == code, score, rounding=estimator.rounding)
