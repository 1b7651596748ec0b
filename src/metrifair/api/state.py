"""``AuditState``: counts of scores that add up, so that each day, site or branch counts its own
rows once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from metrifair.api.audit import audit
from metrifair.api.audit_result import Audit
from metrifair.auditing.audit_record import audit_counts
from metrifair.auditing.records import Favorable
from metrifair.auditing.request import AuditOptions, Criteria, Request, range_ends
from metrifair.auditing.sources.memory import MemorySource
from metrifair.auditing.sources.state_file import read_parts, state_content
from metrifair.auditing.sources.state_parts import (
    StateParts,
    StateThreshold,
    warn_of_different_labels,
    warn_of_equal_states,
)
from metrifair.auditing.sources.state_rows import add_counts, add_rows
from metrifair.errors import DataError, ModelFileError, Remedy
from metrifair.problem.attributes import Continuous
from metrifair.problem.criteria import criterion_named
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.tables import Table
from metrifair.saving.modelfile import Content, PathLike, read, write
from metrifair.support.checks import check_integer, is_number, make_seed
from metrifair.support.provenance import call_text
from metrifair.support.signatures import as_in
from metrifair.wording.numbers import count_text, listed


class AuditState(StateParts):
    """Counts of scores by cell (group, stratum and label) and bin, which are added up and audited
    later.

    The grid is fixed: at most 2^16 bins of equal width over ``score_range``. Each bin keeps its
    smallest and largest score. Up to 4,096 distinct scores are kept as they are: such a state is as
    exact as its rows. Counts of rows are integers, so merging in any order gives the same state.
    Sums of weights and probabilities are rounded.

    Parameters
    ----------
    criteria : str or sequence of str, default=None
        Fairness criteria that ``audit`` uses by default. None selects all that the counts allow.
    score_range : tuple of float, default=(0.0, 1.0)
        Smallest and largest possible score. Other scores raise an error. Only states of equal
        ranges can be merged.
    threshold : float or "auto", default="auto"
        Scores at or above the threshold count as positive decisions. "auto" is 0.5 for
        probabilities.
    name : str, default=""
        Name, such as a day or a site. A merged state keeps the names of its parts.

    Examples
    --------
    >>> monday, tuesday = AuditState(name="Monday"), AuditState(name="Tuesday")
    >>> monday.add(None, [0.2, 0.8], sensitive_features=["f", "f"]).rows
    2
    >>> both = monday.merge(tuesday.add(None, [0.4, 0.9], sensitive_features=["m", "m"]))
    >>> both.names, both.audit(random_state=0).worst().value
    (('Monday', 'Tuesday'), 0.5)
    """

    def __init__(
        self,
        criteria: str | Sequence[str] | None = None,
        *,
        score_range: tuple[float, float] = (0.0, 1.0),
        threshold: StateThreshold = "auto",
        name: str = "",
    ) -> None:
        several = criteria
        if isinstance(criteria, str):
            several = (criteria,)
        criterion_names = None
        if several is not None:
            criterion_names = tuple(criterion_named(criterion).name for criterion in several)
        if threshold != "auto" and not is_number(threshold):
            raise DataError(f"threshold must be a finite number or 'auto', got {threshold!r}")
        if not isinstance(name, str):
            raise DataError(f"name must be text, got {name!r}")
        names = (name,) if name else ()
        super().__init__(
            criterion_names,
            range_ends("score_range", score_range),
            threshold if threshold == "auto" else float(threshold),  # type: ignore[arg-type]
            names,
        )

    @property
    def exact(self) -> bool:
        """True while each distinct score is counted by itself."""
        return self.counts is None or self.counts.exact

    def __repr__(self) -> str:
        origin = ""
        if self.names:
            origin = f" of {', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''}"
        low, high = self.score_range
        counts = f"{count_text(self.rows, 'row')} in {count_text(len(self.cells), 'cell')}"
        return f"AuditState{origin}: {counts}, scores from {low:g} to {high:g}"

    def add(
        self,
        y_true: Table | None,
        y_pred: Table,
        *,
        sensitive_features: Table | GroupProbabilities,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
        clusters: Table | None = None,
    ) -> AuditState:
        """Count rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            Outcomes: labels. Pass None if there are none.
        y_pred : array-like of shape (n_samples,)
            Predictions: scores within the score range, or probabilities of two classes, of which
            the state counts the positive one.
        sensitive_features : array-like or table
            The group of each sample. A table contains several attributes. Missing values are
            missing groups. If groups are not in the data: their probabilities, as
            ``GroupProbabilities``.
        control_features : array-like or table, default=None
            Strata within which groups are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. Samples with weight 0 are ignored.
        clusters : array-like of shape (n_samples,), default=None
            The cluster of each row, such as a person. Counts contain no clusters: passing them
            raises an error.

        Returns
        -------
        AuditState
            Itself.

        Raises
        ------
        DataError
            If rows cannot be used as they are, or have other columns than those that were counted
            before.

        Examples
        --------
        >>> AuditState(score_range=(0, 10)).add(["no", "yes"], [3, 7], sensitive_features={"sex": ["f", "m"]})
        AuditState: 2 rows in 2 cells, scores from 0 to 10
        """
        if clusters is not None:
            raise DataError(
                "a state contains counts of scores, from which intervals of rows in clusters "
                "cannot be computed",
                remedy="pass the rows and clusters to audit",
            )
        add_rows(
            self, MemorySource(y_pred, sensitive_features, y_true, control_features, sample_weight)
        )
        return self

    def merge(self, *others: AuditState) -> AuditState:
        """A state that counts the rows of this one and of others.

        Parameters
        ----------
        *others : AuditState
            States of the same range, threshold, criteria and columns.

        Returns
        -------
        AuditState
            A new one; these are left as they are.

        Raises
        ------
        DataError
            If they cannot be added up; the message says what differs.

        Examples
        --------
        >>> AuditState().add(None, [0.1], sensitive_features=["a"]).merge(AuditState()).rows
        1
        """
        merged = AuditState(self.criteria, score_range=self.score_range, threshold=self.threshold)
        warn_of_equal_states([self, *others])
        warn_of_different_labels([self, *others])
        for state in (self, *others):
            for setting in ("score_range", "threshold", "criteria"):
                value = getattr(self, setting)
                other_value = getattr(state, setting)
                if value != other_value:
                    raise DataError(
                        f"must be equal in states that are merged, got {value} and {other_value}",
                        argument=setting,
                        remedy="count the rows of both with one value",
                    )
            if state.shape is not None and state.counts is not None:
                add_counts(merged, state.shape, state.cells, state.selected, state.counts)
            merged.left_out += state.left_out
            merged.withheld += state.withheld
            merged.names = tuple(sorted({*merged.names, *state.names}))
        return merged

    def without(self, min_group_size: int) -> AuditState:
        """The same without small cells.

        Parameters
        ----------
        min_group_size : int
            Minimum group size. Smaller cells are withheld, and their rows count as left out. With
            group probabilities, only 1 is possible: the probabilities of the other groups would
            show those of the withheld group.

        Returns
        -------
        AuditState
            A new one.

        Examples
        --------
        >>> AuditState().add(None, [0.2, 0.8, 0.4], sensitive_features=list("ffm")).without(2)
        AuditState: 2 rows in 1 cell, scores from 0 to 1
        """
        check_integer("min_group_size", min_group_size, least=1)
        state = self.merge()
        if state.counts is None:
            return state
        if min_group_size > 1 and state.shape is not None and state.shape.proxy is not None:
            raise DataError(
                "cannot withhold a group that has probabilities: those of the other groups add up "
                "to 1 with it",
                argument="min_group_size",
                received=min_group_size,
                remedy=Remedy("min_group_size", leave_out=True),
            )
        size = np.bincount(state.counts.cell, state.counts.rows, len(state.cells))
        is_large = size >= min_group_size
        withheld = int(size[~is_large].sum())
        state.left_out = state.left_out + withheld
        state.withheld = state.withheld + withheld
        state.cells = list(compress(state.cells, is_large))
        state.selected = state.selected[is_large]
        state.counts = state.counts.renumbered(np.where(is_large, np.cumsum(is_large) - 1, -1))
        return state

    def save(self, path: PathLike, *, min_group_size: int = 1) -> None:
        """Write the counts to a file, which ``AuditState.load`` and ``metrifair.load`` read without
        running any code.

        Parameters
        ----------
        path : str or os.PathLike
            The file. An existing file is replaced, in one step.
        min_group_size : int, default=1
            Minimum group size. Smaller cells are withheld, and their rows count as left out.
        """
        write(path, state_content(self.without(min_group_size)))

    @classmethod
    def load(cls, path: PathLike) -> AuditState:
        """The state that ``save`` wrote.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        AuditState
            The saved state; a ModelFileError for any other file.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     state = AuditState(name="Monday").add(None, [0.2, 0.8], sensitive_features=["f", "m"])
        ...     state.save(pathlib.Path(folder, "day.state"))
        ...     AuditState.load(pathlib.Path(folder, "day.state"))
        AuditState of Monday: 2 rows in 2 cells, scores from 0 to 1
        """
        content = read(path)
        try:
            return cls.of_content(content)
        except ModelFileError as error:
            raise ModelFileError(f"cannot read {os.fspath(path)!r}: {error}") from error

    @classmethod
    def of_content(cls, content: Content) -> AuditState:
        """The state in a file."""
        parts = read_parts(content)
        state = cls(parts.criteria, score_range=parts.score_range, threshold=parts.threshold)
        vars(state).update(vars(parts))
        return state

    @as_in(audit)
    def audit(
        self,
        *,
        criteria: Criteria = None,
        metrics: Sequence[str] | str | None = None,
        pos_label: object = None,
        favorable: Favorable = "high",
        intersectional: bool = False,
        continuous: Continuous | None = None,
        confidence: float | None = None,
        random_state: Any = 0,
        options: AuditOptions | None = None,
    ) -> Audit:
        """Audit all rows that were counted. Every distance has a bracket.

        Parameters
        ----------
        criteria : str, Criterion or sequence of them, default=None
            Fairness criteria; by default those of the state, or all that the counts allow.
        metrics, pos_label, favorable, intersectional, continuous, confidence : as in audit
        random_state, options : as in audit

        Returns
        -------
        Audit
            The result of ``audit``. Brackets are as wide as the bins of the state; with up to 4,096
            distinct scores they are exact up to rounding.

        Examples
        --------
        >>> state = AuditState().add(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("ffmm"))
        >>> state.audit(random_state=0).worst("wasserstein").value
        0.15
        """
        request = Request.of(
            options,
            continuous=continuous,
            confidence=confidence,
            criteria=self.criteria if criteria is None else criteria,
            metrics=metrics,
            threshold=self.threshold,
            pos_label=pos_label,
            favorable=favorable,
            intersectional=intersectional,
        )
        for name, value in (
            ("loss", request.loss),
            ("cuts", request.cuts),
            ("score_range", request.score_range),
        ):
            if value is not None:
                remedy = Remedy(name, leave_out=True)
                raise DataError(
                    "does not apply to counts", argument=name, received=value, remedy=remedy
                )
        call = call_text(
            AuditState.audit,
            self,
            criteria=criteria,
            metrics=metrics,
            pos_label=pos_label,
            favorable=favorable,
            intersectional=intersectional,
            continuous=continuous,
            confidence=confidence,
            options=options,
        )
        source = "counts"
        if self.names:
            source = f"counts of {listed(self.names)}"
        seed = make_seed(random_state)
        return Audit(*audit_counts(self, request, seed, call=call, source=source))
