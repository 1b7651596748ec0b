"""``AuditState``: counts of scores that add up, so that each day, site or branch counts its own rows once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, Unpack

import numpy as np

from metrifair.api.audit import audit
from metrifair.api.audit_result import Audit
from metrifair.auditing.decisions import at_or_above, number_or_default
from metrifair.auditing.out_of_core.bins import StateCounts, StateGrid
from metrifair.auditing.request import CountedOptions, Request, range_ends
from metrifair.auditing.source import BinnedSource, audit_source
from metrifair.auditing.state_file import (
    Shape,
    StateParts,
    StateRows,
    Threshold,
    Value,
    added,
    check_few,
    check_last,
    check_within,
    content_of,
    parts_of,
    plain,
    warn_of_the_same,
)
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.criteria import criterion_named
from metrifair.problem.predictions import predictions_of
from metrifair.problem.problem import Given, problem_of
from metrifair.problem.tables import Table, codes, columns, levels
from metrifair.saving.modelfile import Content, PathLike, read, write
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, is_number, seed_of
from metrifair.support.signatures import as_in
from metrifair.wording.numbers import listed


class AuditState:
    """Counts of scores by cell (group, stratum and label) and bin, which are added up and audited later.

    The grid is fixed: at most 2^16 bins of equal width over ``range``. Each bin keeps its smallest and largest score,
    and up to 4,096 distinct scores are kept as they are: such a state is as exact as its rows. Counts of rows are
    integers: merging is the same to the last bit in any order. Sums of weights are rounded.

    Parameters
    ----------
    criteria : str or sequence of str, default=None
        What ``audit`` compares unless told otherwise; by default what was counted allows.
    range : tuple of float, default=(0.0, 1.0)
        Lowest and highest score that can occur; others are refused. States of one range can be merged.
    threshold : float or "auto", default="auto"
        Scores from here on are decisions for; "auto" is 0.5 for probabilities, as in ``audit``.
    name : str, default=""
        Of what is counted, such as a day or a site; a merged state keeps the names of its parts.

    Examples
    --------
    >>> monday, tuesday = AuditState(name="Monday"), AuditState(name="Tuesday")
    >>> monday.add([0.2, 0.8], ["f", "f"]).rows
    2
    >>> both = monday.merge(tuesday.add([0.4, 0.9], ["m", "m"]))
    >>> both.names, both.audit(random_state=0).worst().value
    (('Monday', 'Tuesday'), 0.5)
    """

    def __init__(
        self,
        criteria: str | Sequence[str] | None = None,
        *,
        range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
        threshold: Threshold = "auto",
        name: str = "",
    ) -> None:
        given = (criteria,) if isinstance(criteria, str) else criteria
        self.criteria = None if given is None else tuple(criterion_named(one).name for one in given)
        self.range = range_ends("range", range)
        if threshold != "auto" and not is_number(threshold):
            raise DataError(f"threshold must be a finite number or 'auto', got {threshold!r}")
        self.threshold: Threshold = threshold if threshold == "auto" else float(threshold)  # type: ignore[arg-type]
        if not isinstance(name, str):
            raise DataError(f"name must be text, got {name!r}")
        self.names: tuple[str, ...] = (name,) if name else ()
        self.left_out = 0  # rows, withheld ones too
        self.withheld = 0  # rows of small cells
        self.shape: Shape | None = None  # None: nothing was counted yet
        self.cells: list[tuple[Value, ...]] = []  # values of groups, controls and label, in ascending order
        self.selected: Floats = np.zeros(0)  # rows, or weight, of each cell from the threshold on
        self.counts: StateCounts | None = None

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return 0 if self.counts is None else int(self.counts.rows.sum())

    @property
    def _parts(self) -> StateParts:
        parts = self.criteria, self.range, self.threshold, self.names, self.left_out, self.withheld
        return StateParts(*parts, self.shape, self.cells, self.selected, self.counts)

    @property
    def exact(self) -> bool:
        """True while each distinct score is counted by itself."""
        return self.counts is None or self.counts.exact

    def __repr__(self) -> str:
        named = f" of {', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''}" if self.names else ""
        low, high = self.range
        return f"AuditState{named}: {self.rows:,} rows in {len(self.cells):,} cells, scores from {low:g} to {high:g}"

    def add(
        self,
        y_pred: Table,
        sensitive_features: Table,
        y_true: Table | None = None,
        *,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
    ) -> AuditState:
        """Count rows.

        Parameters
        ----------
        y_pred : array-like of shape (n_samples,)
            Scores within the range; or probabilities of two classes, of which the positive one's counts.
        sensitive_features : array-like or table
            The group of each sample; a table holds several attributes. Missing values are unknown groups.
        y_true : array-like of shape (n_samples,), default=None
            Labels.
        control_features : array-like or table, default=None
            Strata.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a sample of weight 0 is as if it were not there.

        Returns
        -------
        AuditState
            Itself.

        Raises
        ------
        DataError
            Where rows cannot be used as they are, or have other columns than those that were counted before.

        Examples
        --------
        >>> AuditState(range=(0, 10)).add([3, 7], {"sex": ["f", "m"]}, ["no", "yes"])
        AuditState: 2 rows in 2 cells, scores from 0 to 10
        """
        rows = {"y_pred": y_pred, "y_true": y_true}
        given = Given(y_true, sensitive_features, control_features, sample_weight, rows, "y_true")
        problem = problem_of(given, continuous=False, compared=False)
        score, _, precision = predictions_of(y_pred, problem)
        if score.ndim > 1:
            raise DataError(
                f"y_pred must be one score for each row, got {score.shape[1]} columns; count one class at a time"
            )
        groups = columns("sensitive_features", sensitive_features)
        controls = {} if control_features is None else columns("control_features", control_features)
        keys = {**groups, **controls}
        if len(keys) < len(groups) + len(controls):
            raise DataError("sensitive_features and control_features must name different columns")
        if y_true is not None:
            (keys["y_true"],) = columns("y_true", y_true).values()
        names = tuple(groups), tuple(controls), None if y_true is None else "y_true"
        shape = Shape(*names, problem.weight is not None, of_last=len(columns("y_pred", y_pred)) == 2)
        coded = []
        for name, column in keys.items():
            known = levels(name, column)
            coded.append(([plain(value) for value in known], problem.of_kept(codes(name, column, known))))
        self._add_coded(shape, coded, score, problem.weight, precision=precision)
        return self

    def _add_coded(
        self,
        shape: Shape,
        coded: Sequence[tuple[Sequence[Value], Integers]],
        scores: Floats,
        weight: Floats | None,
        *,
        precision: np.dtype[Any],
        left_out: int = 0,
    ) -> None:
        """Count rows whose groups, controls and labels are levels and codes (-1: missing); some could not be used."""
        check_within(scores, self.range)
        if len(scores) == 0:
            self.left_out += left_out
            return
        distinct, cell = np.unique(np.array([code for _, code in coded]).T, axis=0, return_inverse=True)
        check_few(len(distinct))
        cells = [
            tuple(None if code < 0 else values[code] for (values, _), code in zip(coded, row, strict=True))
            for row in distinct.tolist()
        ]
        chosen = at_or_above(scores, number_or_default(self.threshold), precision) * (1.0 if weight is None else weight)
        counts = StateCounts.of_rows(StateGrid.between(*self.range), scores + 0.0, cell.ravel(), weight)
        self._take(shape, cells, np.bincount(cell.ravel(), chosen, len(cells)).astype(np.float64), counts)
        self.left_out += left_out

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
            Where they cannot be added up; the message says what differs.

        Examples
        --------
        >>> AuditState().add([0.1], ["a"]).merge(AuditState().add([0.2], ["b"]), AuditState()).rows
        2
        """
        found = AuditState(self.criteria, range=self.range, threshold=self.threshold)
        warn_of_the_same([one._parts for one in (self, *others)])
        for one in (self, *others):
            for what in ("range", "threshold", "criteria"):
                ours, theirs = getattr(self, what), getattr(one, what)
                if ours != theirs:
                    raise DataError(
                        f"must be equal in states that are merged, got {ours} and {theirs}",
                        argument=what,
                        remedy="count the rows of both with one value",
                    )
            if one.shape is not None and one.counts is not None:
                found._take(one.shape, one.cells, one.selected, one.counts)
            found.left_out += one.left_out
            found.withheld += one.withheld
            found.names = tuple(sorted({*found.names, *one.names}))
        return found

    def _take(self, shape: Shape, cells: Sequence[tuple[Value, ...]], selected: Floats, counts: StateCounts) -> None:
        if self.shape is not None and shape != self.shape:
            raise DataError(
                f"counts of different columns do not add up: {self.shape}; and {shape}; count the same ones in both"
            )
        ours = [] if self.counts is None else [(self.cells, self.selected, self.counts)]
        self.cells, self.selected, self.counts = added([*ours, (cells, selected, counts)])
        self.shape = shape if self.shape is None else shape.together(self.shape)

    def without(self, min_group_size: int) -> AuditState:
        """The same without small cells.

        Parameters
        ----------
        min_group_size : int
            Cells of fewer rows are withheld; their rows count as left out.

        Returns
        -------
        AuditState
            A new one.

        Examples
        --------
        >>> AuditState().add([0.2, 0.8, 0.4], list("ffm")).without(2)
        AuditState: 2 rows in 1 cells, scores from 0 to 1
        """
        check_integer("min_group_size", min_group_size, least=1)
        found = self.merge()
        if found.counts is None:
            return found
        size = np.bincount(found.counts.cell, found.counts.rows, len(found.cells))
        kept = size >= min_group_size
        withheld = int(size[~kept].sum())
        found.left_out, found.withheld = found.left_out + withheld, found.withheld + withheld
        found.cells, found.selected = list(compress(found.cells, kept)), found.selected[kept]
        found.counts = found.counts.renumbered(np.where(kept, np.cumsum(kept) - 1, -1))
        return found

    def save(self, path: PathLike, *, min_group_size: int = 1) -> None:
        """Write the counts to a file, which ``AuditState.load`` and ``metrifair.load`` read without running any code.

        Parameters
        ----------
        path : str or os.PathLike
            The file; one that is there is replaced, in one step.
        min_group_size : int, default=1
            Cells of fewer rows are withheld; their rows count as left out.
        """
        write(path, content_of(self.without(min_group_size)._parts))

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
            What was saved; a ModelFileError for any other file.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     AuditState(name="Monday").add([0.2, 0.8], ["f", "m"]).save(pathlib.Path(folder, "day.state"))
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
        """The state that a file holds."""
        parts = parts_of(content)
        found = cls(parts.criteria, range=parts.range, threshold=parts.threshold)
        found.names, found.left_out, found.withheld, found.shape, found.cells, found.selected, found.counts = parts[3:]
        return found

    @as_in(audit)
    def audit(self, **options: Unpack[CountedOptions]) -> Audit:
        """The audit of all rows that were counted; every distance comes with a proven bracket.

        Parameters
        ----------
        criteria : str, Criterion or sequence of them, default=None
            What is compared; by default the state's, or what was counted allows.
        metrics, confidence, random_state, contrast, intersectional, continuous, pos_label : as in audit
        resamples, permutations, max_groups, min_group_size, vc_dimension : as in audit
        standard, reference, favorable, min_group_share, title, about : as in audit

        Returns
        -------
        Audit
            As that of ``audit_file`` for a file too large to hold. There are no rows to look at more closely, so
            brackets, that of the Kolmogorov distance too, are as wide as the bins leave them; unless the state is
            exact, an end of its bin stands for the median.

        Examples
        --------
        >>> AuditState().add([0.2, 0.8, 0.4, 0.9], list("ffmm")).audit(random_state=0).worst("wasserstein").value
        0.15
        """
        own = {"threshold": self.threshold, "score_range": self.range, "loss": None, "cuts": None}
        request = Request.of(AuditState.audit, options, **own)
        if request.criteria is None:
            request = replace(request, criteria=self.criteria)
        seed = seed_of(request.random_state)
        if self.shape is None or self.counts is None or not self.cells:
            raise DataError("this state holds no rows; add some, or merge it with others")
        check_last(self._parts, request)
        rows = StateRows(self._parts, self.shape, self.counts)
        found = audit_source(BinnedSource(rows), request, np.random.default_rng(seed))
        groups, controls, label = self.shape.groups, self.shape.controls, filter(None, [self.shape.label])
        columns = {"group": list(groups), "control": list(controls), "label": list(label)}
        source = f"counts{f' of {listed(self.names)}' if self.names else ''}"
        found = found.with_provenance(AuditState.audit, options, seed=seed, columns=columns, source=source)
        return Audit(found.record)
