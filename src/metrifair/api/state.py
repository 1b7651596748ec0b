"""``AuditState``: counts of scores that add up, so that each day, site or branch counts its own rows once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from metrifair.api.audit import audit
from metrifair.api.audit_result import Audit
from metrifair.auditing.bins import FINE, MOST_ATOMS, StateCounts, StateGrid
from metrifair.auditing.columns import ColumnLevels, Roles, check_some
from metrifair.auditing.connections import Connected
from metrifair.auditing.counting import FileRows
from metrifair.auditing.decisions import at_or_above, number_or_default
from metrifair.auditing.files import opened
from metrifair.auditing.formats import AS_USUAL, ReadOptions
from metrifair.auditing.records import Favorable
from metrifair.auditing.request import AuditOptions, Criteria, Request, range_ends
from metrifair.auditing.source import AuditedRows, ColumnSource, MemorySource, audit_source
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
from metrifair.errors import DataError, ModelFileError, Remedy
from metrifair.problem.attributes import Continuous
from metrifair.problem.criteria import criterion_named
from metrifair.problem.predictions import predictions_of
from metrifair.problem.problem import Given, problem_of
from metrifair.problem.tables import Table, codes, columns, levels
from metrifair.problem.values import band_names
from metrifair.saving.modelfile import Content, PathLike, read, write
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, is_number, seed_of
from metrifair.support.provenance import call_text
from metrifair.support.signatures import as_in
from metrifair.wording.numbers import listed

if TYPE_CHECKING:
    from metrifair.auditing.tables import TableRows


class AuditState(StateParts):
    """Counts of scores by cell (group, stratum and label) and bin, which are added up and audited later.

    The grid is fixed: at most 2^16 bins of equal width over ``score_range``. Each bin keeps its smallest and largest
    score. Up to 4,096 distinct scores are kept as they are: such a state is as exact as its rows. Counts of rows are
    integers, so merging in any order gives the same state. Sums of weights are rounded.

    Parameters
    ----------
    criteria : str or sequence of str, default=None
        Fairness criteria that ``audit`` uses by default. None selects all that the counts allow.
    score_range : tuple of float, default=(0.0, 1.0)
        Smallest and largest possible score. Other scores raise an error. Only states of equal ranges can be merged.
    threshold : float or "auto", default="auto"
        Scores at or above the threshold count as positive decisions. "auto" is 0.5 for probabilities.
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
        threshold: Threshold = "auto",
        name: str = "",
    ) -> None:
        given = (criteria,) if isinstance(criteria, str) else criteria
        known = None if given is None else tuple(criterion_named(one).name for one in given)
        if threshold != "auto" and not is_number(threshold):
            raise DataError(f"threshold must be a finite number or 'auto', got {threshold!r}")
        if not isinstance(name, str):
            raise DataError(f"name must be text, got {name!r}")
        names = (name,) if name else ()
        super().__init__(
            known,
            range_ends("score_range", score_range),
            threshold if threshold == "auto" else float(threshold),  # type: ignore[arg-type]
            names,
        )

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return 0 if self.counts is None else int(self.counts.rows.sum())

    @property
    def exact(self) -> bool:
        """True while each distinct score is counted by itself."""
        return self.counts is None or self.counts.exact

    def __repr__(self) -> str:
        named = f" of {', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''}" if self.names else ""
        low, high = self.score_range
        return f"AuditState{named}: {self.rows:,} rows in {len(self.cells):,} cells, scores from {low:g} to {high:g}"

    def add(
        self,
        y_true: Table | None,
        y_pred: Table,
        *,
        sensitive_features: Table,
        control_features: Table | None = None,
        sample_weight: Table | None = None,
    ) -> AuditState:
        """Count rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            Outcomes: labels. Pass None if there are none.
        y_pred : array-like of shape (n_samples,)
            Predictions: scores within the score range, or probabilities of two classes, of which the state counts the
            positive one.
        sensitive_features : array-like or table
            The group of each sample. A table holds several attributes. Missing values are missing groups.
        control_features : array-like or table, default=None
            Strata within which groups are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. Samples with weight 0 are ignored.

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
        >>> AuditState(score_range=(0, 10)).add(["no", "yes"], [3, 7], sensitive_features={"sex": ["f", "m"]})
        AuditState: 2 rows in 2 cells, scores from 0 to 10
        """
        self._add_source(MemorySource(y_pred, sensitive_features, y_true, control_features, sample_weight))
        return self

    def _add_source(self, source: MemorySource) -> None:
        """Count rows in memory."""
        y_true, y_pred, sensitive_features = source.y_true, source.y_pred, source.sensitive_features
        control_features = source.control_features
        rows = {"y_pred": y_pred, "y_true": y_true}
        given = Given(y_true, sensitive_features, control_features, source.sample_weight, rows, "y_true")
        problem = problem_of(given, continuous=False, compared=False)
        score, _, precision = predictions_of(y_pred, problem)
        if score.ndim > 1:
            raise DataError(
                f"y_pred must be one score for each row, got {score.shape[1]} columns; count one class at a time"
            )
        groups = columns("sensitive_features", sensitive_features)
        controls = {} if control_features is None else columns("control_features", control_features)
        labels = {} if y_true is None else columns("y_true", y_true)
        keys = {**groups, **controls, **labels}
        if len(keys) < len(groups) + len(controls) + len(labels):
            raise DataError("y_true, sensitive_features and control_features must name different columns")
        names = tuple(groups), tuple(controls), next(iter(labels), None)
        shape = Shape(*names, problem.weight is not None, of_last=len(columns("y_pred", y_pred)) == 2)
        coded = []
        for name, column in keys.items():
            known = levels(name, column)
            coded.append(([plain(value) for value in known], problem.of_kept(codes(name, column, known))))
        left_out = sum(source.left_out.values())
        precision = source.precision or precision
        self._add_coded(shape, coded, score, problem.weight, precision=precision, left_out=left_out)

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
        check_within(scores, self.score_range)
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
        counts = StateCounts.of_rows(StateGrid.between(*self.score_range), scores + 0.0, cell.ravel(), weight)
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
        >>> AuditState().add(None, [0.1], sensitive_features=["a"]).merge(AuditState()).rows
        1
        """
        found = AuditState(self.criteria, score_range=self.score_range, threshold=self.threshold)
        warn_of_the_same([self, *others])
        for one in (self, *others):
            for what in ("score_range", "threshold", "criteria"):
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
        self.shape = shape if self.shape is None else shape.together(self.shape)
        ours = [] if self.counts is None else [(self.cells, self.selected, self.counts)]
        self.cells, self.selected, self.counts = added([*ours, (cells, selected, counts)])

    def without(self, min_group_size: int) -> AuditState:
        """The same without small cells.

        Parameters
        ----------
        min_group_size : int
            Minimum group size. Smaller cells are withheld, and their rows count as left out.

        Returns
        -------
        AuditState
            A new one.

        Examples
        --------
        >>> AuditState().add(None, [0.2, 0.8, 0.4], sensitive_features=list("ffm")).without(2)
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
            The file. An existing file is replaced, in one step.
        min_group_size : int, default=1
            Minimum group size. Smaller cells are withheld, and their rows count as left out.
        """
        write(path, content_of(self.without(min_group_size)))

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
        """The state that a file holds."""
        return cls.of_parts(parts_of(content))

    @classmethod
    def of_parts(cls, parts: StateParts) -> AuditState:
        """The state of these counts."""
        found = cls(parts.criteria, score_range=parts.score_range, threshold=parts.threshold)
        vars(found).update(vars(parts))
        return found

    @classmethod
    def of_rows(cls, rows: AuditedRows) -> AuditState:
        """The counts of the rows of an audit."""
        source, request = rows.source, rows.request
        if isinstance(source, StateRows):
            return cls.of_parts(source.parts)
        if isinstance(source, ColumnSource):
            source = source.in_memory()
        if not isinstance(source, MemorySource):
            raise DataError(
                "the rows of this audit are not in memory",
                remedy="count them with AuditState or metrifair count, or use metrifair evidence, which counts files",
            )
        if request.threshold is None or request.threshold == "median":
            raise DataError(
                "does not apply to counts",
                argument="threshold",
                received=request.threshold,
                remedy=Remedy("threshold", detail=", a number; a standard such as 'll144' uses the median itself"),
            )
        low, high = request.score_range or rows.sample.ends
        state = cls(score_range=(low, high if low < high else low + 1.0), threshold=request.threshold)
        state._add_source(source)
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
        random_state: Any = None,
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
            The result of ``audit``. Brackets are as wide as the bins of the state; with up to 4,096 distinct scores
            they are exact up to rounding.

        Examples
        --------
        >>> state = AuditState().add(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("ffmm"))
        >>> state.audit(random_state=0).worst("wasserstein").value
        0.15
        """
        arguments = dict(locals())
        asked = self.criteria if criteria is None else criteria
        request = Request.of(arguments | {"criteria": asked, "threshold": self.threshold})
        for name, value in (("loss", request.loss), ("cuts", request.cuts), ("score_range", request.score_range)):
            if value is not None:
                remedy = Remedy(name, leave_out=True)
                raise DataError("does not apply to counts", argument=name, received=value, remedy=remedy)
        request = replace(request, score_range=self.score_range)
        seed = seed_of(random_state)
        if self.shape is None or self.counts is None or not self.cells:
            raise DataError("this state holds no rows; add some, or merge it with others")
        check_last(self, request)
        rows = StateRows(self, self.shape, self.counts)
        groups, controls, label = self.shape.groups, self.shape.controls, filter(None, [self.shape.label])
        columns = {"group": list(groups), "control": list(controls), "label": list(label)}
        source = f"counts{f' of {listed(self.names)}' if self.names else ''}"
        facts: dict[str, Any] = {"call": call_text(AuditState.audit, arguments), "columns": columns, "source": source}
        return Audit(*audit_source(rows, request, np.random.default_rng(seed), seed=seed, **facts))


def count_file(state: AuditState, path: str | os.PathLike[str], roles: Roles, options: ReadOptions = AS_USUAL) -> None:
    """Add the rows of a file of any size to a state, in one pass; rows that miss something are left out and counted."""
    with opened(path, options) as source:
        source.check(roles.by_role)
        shape = Shape.of(roles, is_text=source.is_text)
        rows, before, precision = FileRows(source, roles), state.rows, source.precision(roles.score)
        for used in rows.batches():
            codes_of = [code.astype(np.int64) - 1 for code in used.codes]
            coded = list(zip(map(_values, rows.levels), codes_of, strict=True))
            left_out = used.left_out.total()
            state._add_coded(shape, coded, used.scores, used.weight, precision=precision, left_out=left_out)
        check_some(source.name, roles, state.rows - before)


def count_table(state: AuditState, place: Connected, roles: Roles, *, missing: str | Sequence[str] = ()) -> None:
    """Add the rows of a table to a state, counted by the engine that has them: what a file of these rows would add."""
    from metrifair.auditing.tables import TableRows  # noqa: PLC0415 (files need no narwhals)

    rows = TableRows.of(place, roles, missing=missing)
    cells = rows.survey(number_or_default(state.threshold))
    check_within(np.array(cells.ends), state.score_range)
    grid = StateGrid.between(*state.score_range)
    for level in rows.levels:
        if level.cuts is not None and level.name not in roles.cuts:
            raise DataError(
                f"the column {level.name!r} has more values than a state holds",
                remedy=Remedy("cuts", {level.name: ...}, ", the ends of the bands in which it is counted"),
            )
    values = [[None, *_values(level)] for level in rows.levels]
    named = [tuple(own[code] for own, code in zip(values, codes, strict=True)) for codes in rows.cells]
    state._take(Shape.of(roles), named, cells.selected, _counts(rows, grid))
    state.left_out += sum(cells.left_out.values())


def _values(level: ColumnLevels) -> list[Value]:
    return [plain(value) for value in (level.values if level.cuts is None else band_names(level.cuts))]


def _counts(rows: TableRows, grid: StateGrid) -> StateCounts:
    """Entries by distinct score, or by bin of the state's grid where there are many."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (as above)

    frame, sums = rows.counting, {"rows": nw.len()}
    scaled = (nw.col("score") * grid.scale.inverse - grid.scale.low * grid.scale.inverse) * float(2.0**grid.power)
    few = len(rows.answer(frame.select("score").unique().head(MOST_ATOMS + 1))) <= MOST_ATOMS
    if rows.weighted:
        sums["total"] = nw.col("weight").sum()
    if few:
        found, cell = rows.by_cell(frame, ["score"], sums)
        low = high = found["score"].to_numpy() + 0.0
        number, within = grid.places(low)
        within = within * found["rows"].to_numpy()
    else:
        fine = ((scaled - scaled.floor()) * float(2**FINE) + 0.5).floor()
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), fine=fine.cast(nw.Int64))
        sums |= {"low": nw.col("score").min(), "high": nw.col("score").max(), "within": nw.col("fine").sum()}
        if rows.weighted:
            frame = frame.with_columns(moment=scaled * nw.col("weight"))
            sums["moment"] = nw.col("moment").sum()
        found, cell = rows.by_cell(frame, ["number"], sums)
        low, high = (found[name].to_numpy() + 0.0 for name in ("low", "high"))
        number, within = (found[name].to_numpy().astype(np.int64) for name in ("number", "within"))
    weight = moment = np.zeros(0)
    if rows.weighted:
        weight = found["total"].to_numpy().astype(np.float64)
        moment = weight * grid.scale.positions(low) if few else np.ldexp(found["moment"].to_numpy(), -grid.power)
    counted: Integers = found["rows"].to_numpy().astype(np.int64)
    return StateCounts(cell, number, low, high, counted, within.astype(np.int64), weight, moment, few).grouped()
