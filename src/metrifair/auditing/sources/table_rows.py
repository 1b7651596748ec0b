"""The rows of a table, counted by its database or data frame engine: only counts leave it.

Any frame that narwhals supports, lazy or eager: polars, pandas, DuckDB, Dask, Spark, and all
databases of Ibis. Files are scanned by polars (``file_rows``). The first query returns the cells
and the range of the scores, the second one counts by cell and bin. Further queries cut only bins
with a large share of the rows. The number of a bin is an expression that every engine supports: the
largest integer below (score - base) x a power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import product
from math import frexp
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.bins import (
    BinCounter,
    BinnedScores,
    Bins,
    Entries,
    Scale,
    bins_for,
)
from metrifair.auditing.measure.selection import at_or_above
from metrifair.auditing.request import MOST_LEVELS
from metrifair.auditing.sources.cells import MOST_CELLS, CellTable, ColumnCells
from metrifair.auditing.sources.column_levels import ColumnLevels, levels_for
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import (
    check_range,
    check_values,
    numbers,
    score_precision,
)
from metrifair.auditing.sources.connections import DatabaseTable, run_query
from metrifair.auditing.sources.file_formats import missing_codes, polars
from metrifair.auditing.sources.file_tables import check_columns, check_types
from metrifair.auditing.sources.used_rows import used_codes
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import look_like_decisions, value_counts
from metrifair.problem.spelling import MISSING_WORDS
from metrifair.problem.values import canonical
from metrifair.support.arrays import Floats, Integers

if TYPE_CHECKING:
    import polars as pl

_LISTED = 11  # values: a message shows ten, and that there are more
_MOST_BINS = 2**15  # engines group by few keys faster than by many
# share of the rows: a bin with a larger share hides too much of a distribution, and is cut
_HEAVY = 2**-12
_HEAVY_PASSES = 4
_MOST_CUT = 1024  # bins in one pass
_MOST_RANGES = 512  # of scores in one query
# rows without a weight, of weight 0, and of another one
_UNWEIGHED = -1
_WEIGHTLESS = 0
_COUNTED = 1
_LARGEST_POWER = 1000  # of two, that numbers bins
_LARGEST_NUMBER = 62  # of a bin, as a power of two
_MOST_DIGITS = 38  # of a decimal in data frames
_MOST_VALUES = 2**21  # sample of a number to compute its cuts


def _without_missing(
    schema: Mapping[str, Any], missing: str | Sequence[str], column: str
) -> nw.Expr:
    """A column, with null for missing values."""
    words, values = missing_codes(missing)
    cells = nw.col(column)
    kind = schema[column]
    if kind.is_numeric():
        if values:
            return nw.when(~cells.cast(nw.Float64).is_in(values)).then(cells)
        return cells
    if not words or kind == nw.Boolean:
        return cells
    text = cells
    if kind != nw.String:
        text = cells.cast(nw.String)
    return nw.when(~text.str.strip_chars().str.to_lowercase().is_in(words)).then(cells)


def _scores(
    roles: Roles,
    schema: Mapping[str, Any],
    present: Callable[[str], nw.Expr],
    column: str,
) -> nw.Expr:
    """A column of scores as numbers; of decisions, 1 where the decision is the favorable one, 0
    for any other.
    """
    favorable = roles.favorable_decision
    if favorable is None:
        return present(column).cast(nw.Float64)
    if schema[column] == nw.String:
        return (
            (present(column).str.strip_chars() == str(favorable).strip())
            .cast(nw.Int64)
            .cast(nw.Float64)
        )
    value = canonical(favorable)
    if not isinstance(value, int | float):  # of no number or boolean
        raise DataError(
            f"is no value of the column {column!r}, which contains {schema[column]}",
            argument="favorable_decision",
            received=favorable,
        )
    same = present(column) == (bool(value) if schema[column] == nw.Boolean else value)
    return same.cast(nw.Int64).cast(nw.Float64)


def _with_floats(source: DatabaseTable, roles: Roles, scores: Sequence[str]) -> Any:
    """The table, with floating-point numbers for decimals of an Ibis table that are too long
    for data frames.
    """
    table = nw.to_native(source.table, pass_through=True)
    if not nw.dependencies.is_ibis_table(table):
        return source.table
    schema = run_query(source.name, table.schema, source.secrets)
    long = [
        name
        for name, kind in schema.items()
        if kind.is_decimal() and (kind.precision or 0) > _MOST_DIGITS
    ]
    if names := [name for name in roles.keys if name in long]:
        raise DataError(
            f"the column {names[0]!r} of {source.name} contains decimals of more than "
            f"{_MOST_DIGITS} digits",
            remedy="cast it to text in a query or a view",
        )
    used = {*scores, roles.weight, *roles.probabilities}
    return table.cast({name: "float64" for name in long if name in used}).drop(*(set(long) - used))


def _value_counts(
    name: str, frame: Any, column: str, secrets: Sequence[str]
) -> list[tuple[object, int]]:
    """The most frequent values of a column with their counts."""
    counts = (
        frame.lazy().select(value=nw.col(column)).drop_nulls().group_by("value").agg(rows=nw.len())
    )
    ordered = counts.sort("rows", "value", descending=[True, False]).head(_LISTED)
    counted: list[tuple[object, int]] = run_query(name, lambda: ordered.collect().rows(), secrets)
    return counted


def _if_decisions(counts: Sequence[tuple[object, int]]) -> list[Remedy]:
    """The remedy for a column that looks like decisions; none for any other, such as dates."""
    if not look_like_decisions([value for value, _ in counts]):
        return []
    return [
        Remedy(
            "favorable_decision",
            detail=f" if these values are decisions: {value_counts(counts)}",
        )
    ]


def _check_numbers(
    name: str,
    frame: Any,
    schema: Mapping[str, Any],
    roles: Roles,
    *,
    scores: Sequence[str],
    secrets: Sequence[str],
) -> None:
    """Raise a DataError if a column that must contain numbers contains other values."""
    numeric = [("weight", roles.weight), *product(["group"], roles.cuts)]
    if roles.favorable_decision is None:
        numeric = [*product(["score"], scores), *numeric]
    for role, column in numeric:
        kind = nw.Float64() if column is None else schema[column]
        if kind.is_numeric() or kind == nw.Boolean:
            continue
        remedies: list[Remedy | str] = ["cast it in a query or a view"]
        if role == "score":
            remedies = [
                *_if_decisions(_value_counts(name, frame, str(column), secrets)),
                *remedies,
            ]
        raise DataError(
            f"the {role} column {column!r} of {name} contains {kind}, not numbers",
            remedy=remedies,
        )


@dataclass
class TableRows(ColumnCells):
    """The usable rows of a table, as cells and bins, which the table's engine counts."""

    name: str
    frame: nw.LazyFrame[Any]  # whose columns are key_0, key_1, ..., score and weight
    roles: Roles
    max_groups: int = MOST_LEVELS
    levels: list[ColumnLevels] = field(default_factory=list)
    cells: list[tuple[int, ...]] = field(default_factory=list)  # codes of the key columns
    ends: tuple[float, float] = (0.0, 0.0)
    used: int = 0  # number of counted rows
    beyond: bool = False  # whether other rows have scores outside the range of the counted ones
    secrets: tuple[str, ...] = ()  # that no message may show
    # types of the columns of scores, which count as float64
    kinds: Mapping[str, Any] = field(default_factory=dict)
    # scores of other models, which all_rows() also returns: beside_0, beside_1, ...
    beside: tuple[str, ...] = ()
    is_text: bool = False  # whether keys were read as text, whatever they are
    # after the survey: the cell of each combination of keys; of rows that do not count, beyond the
    # last
    cell_of_keys: Any = None

    @classmethod
    def of(
        cls,
        source: DatabaseTable,
        roles: Roles,
        *,
        max_groups: int = MOST_LEVELS,
        beside: tuple[str, ...] = (),
        missing: str | Sequence[str] = (),
    ) -> TableRows:
        """The rows of any frame that narwhals supports; a DataError for other types and unknown
        columns.
        """
        name = source.name
        secrets = source.secrets
        try:
            frame = nw.from_native(_with_floats(source, roles, (roles.score, *beside)))
        except TypeError:
            raise DataError(
                "table must be a data frame, or a table of DuckDB, Ibis, Dask or Spark, got "
                f"{type(source.table).__name__}; for a file use audit_file"
            ) from None
        scores = roles.score, *beside
        check_columns(
            name,
            run_query(name, lambda: frame.columns, secrets),
            roles.by_role | {"score": scores},
        )
        # Other columns may have unsupported types.
        frame = frame.select(list(dict.fromkeys((*roles.columns, *beside))))
        schema = run_query(name, frame.collect_schema, secrets)
        check_types(name, schema, roles.by_role | {"score": scores})
        _check_numbers(name, frame, schema, roles, scores=scores, secrets=secrets)
        present = partial(_without_missing, schema, missing)
        score = partial(_scores, roles, schema, present)
        columns = [present(column).alias(f"key_{at}") for at, column in enumerate(roles.keys)]
        if frame.implementation.is_polars():  # keys are joined to cells in the engine
            texts = {at for at, column in enumerate(roles.keys) if _is_name(schema[column])}
            columns = [
                key.cast(nw.String) if at in texts else key for at, key in enumerate(columns)
            ]
        columns.append(score(roles.score).alias("score"))
        if roles.weight is not None:
            columns.append(present(roles.weight).cast(nw.Float64).alias("weight"))
        columns += [
            present(column).alias(f"of_group_{at}") for at, column in enumerate(roles.probabilities)
        ]
        columns += [
            present(column).alias(f"further_{at}") for at, column in enumerate(roles.further)
        ]
        kinds = {"score": schema[roles.score]} | {
            f"beside_{at}": schema[column] for at, column in enumerate(beside)
        }
        columns += [score(column).alias(f"beside_{at}") for at, column in enumerate(beside)]
        polars()  # the library of the results
        # polars counts faster than the others, with equal results
        if isinstance(frame, nw.DataFrame):
            frame = run_query(name, partial(frame.lazy, "polars"))
        return cls(
            name,
            frame.select(*columns),
            roles,
            max_groups,
            secrets=secrets,
            kinds=kinds,
            beside=beside,
        )

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, max_groups=self.max_groups)
        for level in self.levels:
            if level.cuts is not None:
                self._cut(level, level.cuts)

    def _cut(self, level: ColumnLevels, cuts: Floats) -> None:
        """Replace numbers by the upper end of their band; those above the last cut by a larger
        number.
        """
        key = f"key_{self.levels.index(level)}"
        if self.frame.collect_schema()[key] == nw.String:
            self.frame = self._with_numbers(level.name, key)
        beyond = float(cuts[-1]) + max(1.0, abs(float(cuts[-1])))
        band = first_upto(
            nw.col(key),
            cuts,
            [nw.lit(largest) for largest in (*cuts.tolist(), beyond)],
        )
        self.frame = self.frame.with_columns(nw.when(self._is_present(key)).then(band).alias(key))

    def _with_numbers(self, name: str, key: str) -> nw.LazyFrame[Any]:  # noqa: ARG002  (files name it in errors)
        """The frame with numbers for the text of a key."""
        text = nw.col(key).str.strip_chars()
        is_missing = text.str.to_lowercase().is_in(MISSING_WORDS)
        return self.frame.with_columns(nw.when(~is_missing).then(text).cast(nw.Float64).alias(key))

    @cached_property
    def rows(self) -> int:
        """Number of rows, usable or not."""
        return int(self.run(self.frame.select(nw.len().alias("rows")))["rows"][0])

    @property
    def _amounts(self) -> list[str]:
        """The columns of numbers of each row: the score, and the weight if rows have one."""
        if self.weighted:
            return ["score", "weight"]
        return ["score"]

    def all_rows(self) -> pl.DataFrame:
        """All rows under the names of their columns, from counts of equal rows, in any order."""
        other_scores = [f"beside_{place}" for place in range(len(self.beside))]
        of_groups = [f"of_group_{place}" for place in range(len(self.roles.probabilities))]
        further = [f"further_{place}" for place in range(len(self.roles.further))]
        kinds = [*self._keys, *self._amounts, *of_groups, *further, *other_scores]
        distinct = self.run(
            self.frame.group_by(kinds, drop_null_keys=False).agg(nw.len().alias("rows"))
        )
        distinct = distinct.sort(kinds)
        every = distinct[np.repeat(np.arange(len(distinct)), distinct["rows"].to_numpy())]
        columns = *self.roles.columns, *self.beside
        columns_by_name = {
            name: polars().col(kind) for name, kind in zip(columns, kinds, strict=True)
        }
        for (key, kind), name in zip(
            self.kinds.items(), (self.roles.score, *self.beside), strict=True
        ):
            check_range(name, kind, (distinct[key].min(), distinct[key].max()))
            if kind == nw.Float32:  # they were cast to float64, to be counted
                columns_by_name[name] = columns_by_name[name].cast(polars().Float32)
        return every.select(**columns_by_name)

    def sum_to_one(self, rounding: float) -> bool:
        """Whether the scores of all models, where none is missing, can be probabilities of one
        model's classes.

        As ``are_probabilities`` for rows; rows prove nothing if the first score is constant.
        """
        kinds = [
            "score",
            *(f"beside_{place}" for place in range(len(self.beside))),
        ]
        frame = self._complete_rows(kinds).with_columns(
            total=sum(map(nw.col, kinds[1:]), nw.col("score"))
        )
        ends = [nw.col(kind).min() for kind in kinds]
        ends += [
            nw.col("score").max().alias("high"),
            nw.col("total").min(),
            nw.col("total").max().alias("high_total"),
        ]
        bounds = self.run(frame.select(*ends)).row(0)
        if None in bounds:
            return False
        *lows, high, low_total, high_total = bounds
        return bool(
            high > lows[0]
            and min(lows) >= -rounding
            and max(1 - low_total, high_total - 1) <= rounding
        )

    def cut_number(self, level: ColumnLevels) -> None:
        """Query the values of a numeric column, and let the engine cut it."""
        key = f"key_{self.levels.index(level)}"
        counts = self.run(self.frame.group_by(key).agg(nw.len().alias("rows")).head(_MOST_VALUES))
        values = numbers("group", level.name, counts[key])
        rows = counts["rows"].to_numpy()
        finite = np.isfinite(values)
        values = values[finite]
        rows = rows[finite].astype(np.float64)
        ends = float(values.min()), float(values.max())
        self._cut(
            level,
            level.cut_into_levels(values, rows, rows=int(rows.sum()), ends=ends),
        )

    def survey_once(self, threshold: float) -> CellTable:
        """Query the cells, their counts, and the range of the scores."""
        score = nw.col("score")
        frame = self.frame.with_columns(score=nw.when(self._is_present("score")).then(score))
        above = at_or_above(score, threshold, score_precision([self.kinds["score"]]))
        # PostgreSQL casts no booleans, and sums literals such as 1.0 to decimals.
        selected = nw.when(above).then(1).otherwise(0).cast(nw.Float64)
        by = list[str]()
        sums = {
            "rows": nw.len(),
            "scored": score.count(),
            "low": score.min(),
            "high": score.max(),
        }
        if self.weighted:  # rows of weight 0 are usable, but are not counted
            weight = nw.col("weight")
            weighed = nw.when(weight != 0).then(_COUNTED).otherwise(_WEIGHTLESS)
            frame = frame.with_columns(
                counts=nw.when(self._is_present("weight")).then(weighed).otherwise(_UNWEIGHED)
            )
            frame = frame.with_columns(
                weight=nw.when((nw.col("counts") >= 0) & ~score.is_null()).then(weight)
            )
            selected = selected * weight
            by.append("counts")
            sums |= {
                "weight": weight.sum(),
                "least": weight.min(),
                "largest": weight.max(),
            }
        frame = frame.with_columns(chosen=selected)
        sums["chosen"] = nw.col("chosen").sum()
        grouped = frame.group_by([*self._keys, *by], drop_null_keys=False)
        query = grouped.agg(*(expression.alias(name) for name, expression in sums.items()))
        # Too many combinations are not fetched.
        cells = self.run(query.head(4 * MOST_CELLS))
        codes = [
            level.codes(cells[name]) for level, name in zip(self.levels, self._keys, strict=True)
        ]
        return self._surveyed(cells, codes)

    def _surveyed(self, cells: pl.DataFrame, codes: list[NDArray[Any]]) -> CellTable:
        """The cells among the combinations of keys, and what their rows add up to."""
        library = polars()
        labeled = used_codes(self.roles, codes)
        counts = cells["counts"].to_numpy() if self.weighted else np.full(len(cells), _COUNTED)
        weighed = counts != _UNWEIGHED
        scored = cells["scored"].to_numpy()
        left_out = {
            "missing_score": cells["rows"].sum() - scored.sum(),
            "missing_weight": scored[~weighed].sum(),
            "missing_label": scored[weighed & ~labeled].sum(),
        }
        usable = labeled & weighed & (scored > 0)
        self._check_ends(cells.filter(library.Series(usable)))
        used = usable & (counts == _COUNTED)
        # Values of one level, such as 0.0 and -0.0, are one cell.
        distinct, cell = np.unique(
            np.array([code[used] for code in codes]).T,
            axis=0,
            return_inverse=True,
        )
        self.check_few(len(distinct))
        self.cells = [tuple(cell_codes) for cell_codes in distinct.tolist()]
        place = np.full(len(cells), len(distinct))
        place[used] = cell.ravel()
        self.cell_of_keys = (
            cells.select(self._keys)
            .with_columns(cell=library.Series(place))
            .group_by(self._keys)
            .min()
        )
        unused = cells.filter(library.Series(~used))
        cells = cells.filter(library.Series(used))
        totals = [
            np.bincount(cell.ravel(), cells[name].to_numpy(), len(distinct)).astype(np.float64)
            for name in (
                "scored",
                "weight" if self.weighted else "scored",
                "chosen",
            )
        ]
        self.used = int(totals[0].sum())
        if len(cells):
            self.ends = (
                float(cells["low"].to_numpy().min()),
                float(cells["high"].to_numpy().max()),
            )
            # Scores of rows that do not count may be outside the range.
            self.beyond = bool(
                ((unused["low"] < self.ends[0]) | (unused["high"] > self.ends[1])).any()
            )
        reasons = {why: int(rows) for why, rows in left_out.items() if rows}
        return self.cell_table(self.name, totals, self.ends, reasons, is_text=self.is_text)

    def _check_ends(self, cells: pl.DataFrame) -> None:
        """Raise a DataError for scores and weights of usable rows that cannot be audited."""
        if not len(cells):
            return
        scores = (
            float(cells["low"].to_numpy().min()),
            float(cells["high"].to_numpy().max()),
        )
        weights = None
        if self.weighted:
            weights = (
                float(cells["least"].to_numpy().min()),
                float(cells["largest"].to_numpy().max()),
            )
        check_range(self.roles.score, self.kinds["score"], scores)
        check_values(self.roles, scores, weights)

    @property
    def counting(self) -> nw.LazyFrame[Any]:
        """The usable rows with a positive weight, after the survey; a group or label may be
        missing.
        """
        frame = self._complete_rows(self._amounts)
        if self.weighted:
            frame = frame.filter(nw.col("weight") != 0)
        if self.beyond:
            frame = frame.filter(
                (nw.col("score") >= self.ends[0]) & (nw.col("score") <= self.ends[1])
            )
        return frame

    def count(self) -> BinnedScores:
        """Query counts by cell and bin."""
        return BinnedScores(self.count_bins())

    @property
    def scale(self) -> Scale:
        """The scale of the positions."""
        return Scale.between(*self.ends)

    def count_bins(self) -> Bins:
        """All rows in bins of equal width; bins with a large share of the rows are cut until
        none has.
        """
        low, high = self.ends
        max_bins = min(_MOST_BINS, bins_for(len(self.cells)))
        power = _power(
            max_bins,
            np.array([high - low]),
            np.array([self.used]),
            high - low,
            cells=len(self.cells),
        )
        bins = self._bins(self.counting, low, power)
        for _ in range(_HEAVY_PASSES):
            heavy = ~bins.single & (bins.rows > _HEAVY * self.used)
            finer = self._cut_bins(bins, np.flatnonzero(heavy), max_bins)
            if finer is None:
                break
            bins = finer
        return bins

    def _cut_bins(self, bins: Bins, heavy: Integers, max_bins: int) -> Bins | None:
        """The bins, the heaviest in about ``max_bins`` finer ones of equal width; None if none
        is wide enough.
        """
        if not len(heavy):
            return None
        heavy = np.sort(heavy[np.argsort(-bins.rows[heavy], kind="stable")[:_MOST_CUT]])
        lowest = float(bins.low[heavy[0]])
        width = bins.high[heavy] - bins.low[heavy]
        power = _power(
            max_bins,
            width,
            bins.rows[heavy],
            float(bins.high[heavy[-1]]) - lowest,
            cells=len(self.cells),
        )
        cut = heavy[np.ldexp(width, power) >= 0.5]
        if not len(cut):
            return None
        some = np.array_split(cut, -(-len(cut) // _MOST_RANGES))
        parts = [
            self._bins(self._rows_in(bins, places), lowest, power, bins.high[places])
            for places in some
        ]
        for places, part in zip(some, parts, strict=True):
            if part.rows.sum() != bins.rows[places].sum():
                raise self.changed()
        return bins.replaced(cut, parts)

    def _bins(
        self,
        frame: nw.LazyFrame[Any],
        base: float,
        power: int,
        tops: Floats | None = None,
    ) -> Bins:
        """The rows of a frame in numbered bins; separately for each stretch that ends at one of
        ``tops``.
        """
        scaled = (nw.col("score") - base) * float(np.ldexp(1.0, power))
        # Cut off before it is cast: casting rounds in some engines.
        position = nw.col("score") * self.scale.inverse - self.scale.low * self.scale.inverse
        if self.weighted:
            position = position * nw.col("weight")
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), position=position)
        by = ["number"]
        if tops is not None:
            stretches = [nw.lit(place) for place in range(len(tops))]
            frame = frame.with_columns(stretch=first_upto(nw.col("score"), tops, stretches))
            by = ["stretch", "number"]
        score = nw.col("score")
        sums = {
            "rows": nw.len(),
            "low": score.min(),
            "high": score.max(),
            "moment": nw.col("position").sum(),
        }
        sums |= {"total": nw.col("weight").sum()} if self.weighted else {}
        counts, cell = self.sums_by_cell(frame, by, sums)
        keys = [counts[name].to_numpy().astype(np.int64) for name in by]
        distinct, number = np.unique(
            keys[0] if len(by) == 1 else np.array(keys),
            axis=-1,
            return_inverse=True,
        )
        rows, low, high, moment, *weight = (counts[name].to_numpy() for name in sums)
        counter = BinCounter(distinct.shape[-1], len(self.cells), weighted=self.weighted)
        entries = Entries(rows.astype(np.int64), low + 0.0, high + 0.0, moment, *weight)
        counter.add(number.ravel(), cell, entries)
        return counter.bins(self.scale)

    def _rows_in(self, bins: Bins, places: Integers) -> nw.LazyFrame[Any]:
        """The rows in some bins, given their places in ascending order.

        Neighboring bins are one stretch.
        """
        ends = np.diff(places) > 1
        low = bins.low[places[np.append(True, ends)]]
        high = bins.high[places[np.append(ends, True)]]
        score = nw.col("score")
        # First from end to end: most rows are in other bins.
        between = self.counting.filter((score >= float(low[0])) & (score <= float(high[-1])))
        return between.filter(first_upto(score, high, [score >= float(bound) for bound in low]))

    def sums_by_cell(
        self, frame: nw.LazyFrame[Any], by: list[str], sums: dict[str, nw.Expr]
    ) -> tuple[pl.DataFrame, Integers]:
        """Sums by cell and these columns, and the cell of each row of the result."""
        named = [expression.alias(name) for name, expression in sums.items()]
        if frame.implementation.is_polars():
            counts = self._sums_by_place(frame, by, named)
        else:
            counts = self.run(frame.group_by([*self._keys, *by], drop_null_keys=False).agg(*named))
            kinds: Any = {name: self.cell_of_keys.schema[name] for name in self._keys}
            counts = counts.cast(kinds).join(
                self.cell_of_keys, self._keys, "left", nulls_equal=True
            )
        if counts["cell"].null_count():
            raise self.changed()
        counts = counts.filter(polars().col("cell") < len(self.cells))
        return counts, counts["cell"].to_numpy()

    def _sums_by_place(
        self, frame: nw.LazyFrame[Any], by: list[str], named: list[nw.Expr]
    ) -> pl.DataFrame:
        """Sums by cell and these columns.

        Polars groups by one integer faster than by several columns.
        """
        native = frame.to_native().join(
            self.cell_of_keys.lazy(), self._keys, "left", nulls_equal=True
        )
        if "number" not in by:
            return self.run(nw.from_native(native).group_by("cell", *by).agg(*named))
        size = len(self.cells) + 1
        place = (nw.col("number") * size + nw.col("cell")).alias("number")
        grouped = nw.from_native(native).with_columns(place).group_by(by)
        counts = self.run(grouped.agg(*named))
        place = polars().col("number")
        return counts.with_columns(cell=place % size, number=place // size)

    def changed(self) -> DataError:
        """The error for a table whose second count differs from its first."""
        return DataError(
            f"{self.name} changed while it was counted; audit a copy or a snapshot of it"
        )

    @property
    def _keys(self) -> list[str]:
        return [f"key_{place}" for place in range(len(self.roles.keys))]

    def _is_present(self, name: str) -> nw.Expr:
        """Whether a number is neither null nor NaN."""
        present = ~nw.col(name).is_null()
        if self._supports_nan and self.frame.collect_schema()[name].is_float():
            return present & ~nw.col(name).is_nan()
        return present

    def _complete_rows(self, names: Sequence[str]) -> nw.LazyFrame[Any]:
        """The rows in which none of these columns is missing."""
        return reduce(
            lambda frame, name: frame.filter(self._is_present(name)),
            names,
            self.frame,
        )

    @cached_property
    def _supports_nan(self) -> bool:
        """False for databases such as SQLite, which have no NaN and reject tests for it."""
        if not self.frame.implementation.is_ibis():
            return True
        try:
            self.frame.filter(nw.col("score").is_nan()).head(1).collect()
        except Exception as error:
            return "IsNan" not in str(error)
        return True

    def run(self, query: nw.LazyFrame[Any]) -> pl.DataFrame:
        """The result of a query; keys other than numbers and booleans as text, as in files."""

        def collect() -> Any:
            if query.implementation.is_polars():
                return query.to_native().collect(engine="streaming")
            return query.collect("polars").to_native()

        result: pl.DataFrame = run_query(self.name, collect, self.secrets)
        texts = [
            name
            for name, kind in result.schema.items()
            if name.startswith("key_") and _is_name(kind)
        ]
        return result.cast(dict.fromkeys(texts, polars().String))


def _is_name(kind: Any) -> bool:
    """Whether values of a type of polars or narwhals are names: neither numbers nor booleans."""
    return not (kind.is_numeric() or str(kind) == "Boolean")


def first_upto(value: nw.Expr, high: Floats, leaves: Sequence[nw.Expr]) -> nw.Expr:
    """The leaf of the first stretch that ends at the value or above it.

    A tree of conditions: an engine evaluates few of them for each row, and no expression is deeply
    nested.
    """
    middle = len(leaves) // 2
    if middle == 0:
        return leaves[0]
    upper, lower = (
        first_upto(value, high[part], leaves[part]) for part in (slice(middle, None), slice(middle))
    )
    return nw.when(value > float(high[middle - 1])).then(upper).otherwise(lower)


def _power(max_bins: int, width: Floats, rows: Integers, span: float, *, cells: int) -> int:
    """The largest power of two that cuts bins of these widths into at most ``max_bins`` bins with
    rows.

    All bins are in a stretch of length ``span``, and combinations of bin and cell are numbered in
    64 bits.
    """
    largest = min(
        _LARGEST_POWER,
        _LARGEST_NUMBER - (cells + 1).bit_length() - frexp(span)[1],
    )
    low = -_LARGEST_POWER - 100
    high = largest
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(np.ldexp(width, middle), rows).sum() <= max_bins:
            low = middle
        else:
            high = middle - 1
    return low
