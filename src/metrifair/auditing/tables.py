"""The rows of a table, counted by its database or data frame engine: only counts leave it.

Any frame that narwhals supports, lazy or eager: polars, pandas, DuckDB, Dask, Spark, and all databases of Ibis. The
first query returns the cells and the range of the scores, the second one counts by cell and bin. Further queries refine
the bins that matter. The number of a bin is an expression that every engine supports: the largest
integer below (score - base) x a power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import product
from math import frexp
from typing import TYPE_CHECKING, Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np

from metrifair.auditing.bins import BinnedScores, Bins, Counter, Entries, Scale, Steps, bins_for, join_bins, make_steps
from metrifair.auditing.columns import (
    ColumnLevels,
    Roles,
    check_range,
    check_values,
    levels_for,
    numbers,
    score_precision,
    used_codes,
)
from metrifair.auditing.connections import DatabaseTable, run_query
from metrifair.auditing.decisions import at_or_above
from metrifair.auditing.files import check_columns
from metrifair.auditing.formats import missing_codes, polars
from metrifair.auditing.request import MOST_LEVELS
from metrifair.auditing.sample import UNUSABLE
from metrifair.auditing.source import MOST_CELLS, CellTable, ColumnCells
from metrifair.errors import DataError, Remedy
from metrifair.problem.predictions import value_counts
from metrifair.problem.values import canonical
from metrifair.support.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    import polars as pl

_LISTED = 11  # values: a message shows ten, and that there are more
_MOST_BINS = 2**14  # engines group by few keys faster than by many, and few bins have to be refined
_MANY_ROWS = 2**24  # tables with more rows have twice as many bins: those to refine then contain fewer rows
_MOST_RANGES = 512  # ranges of scores in one query
_MOST_CUT = 1024  # bins that are cut at a time
_HEAVY = 2**-10  # share of the rows: a bin with a larger share hides too much of a distribution, and is cut at once
_HEAVY_PASSES = 4
_LARGEST_POWER = 1000  # of two, that numbers bins
_LARGEST_NUMBER = 62  # of a bin, as a power of two
_MOST_VALUES = 2**21  # sample of a number to compute its cuts


def _without_missing(schema: Mapping[str, Any], missing: str | Sequence[str], column: str) -> nw.Expr:
    """A column, with null for missing values."""
    (words, values), cells, kind = missing_codes(missing), nw.col(column), schema[column]
    if kind.is_numeric():
        return nw.when(~cells.cast(nw.Float64).is_in(values)).then(cells) if values else cells
    if not words or kind == nw.Boolean:
        return cells
    text = cells if kind == nw.String else cells.cast(nw.String)
    return nw.when(~text.str.strip_chars().str.to_lowercase().is_in(words)).then(cells)


def _scores(roles: Roles, schema: Mapping[str, Any], present: Callable[[str], nw.Expr], column: str) -> nw.Expr:
    """A column of scores as numbers; of decisions, 1 where the decision is the favorable one, 0 for any other."""
    favorable = roles.favorable_decision
    if favorable is None:
        return present(column).cast(nw.Float64)
    if schema[column] == nw.String:
        return (present(column).str.strip_chars() == str(favorable).strip()).cast(nw.Int64).cast(nw.Float64)
    value = canonical(favorable)
    if not isinstance(value, int | float):  # of no number or boolean
        raise DataError(
            f"is no value of the column {column!r}, which contains {schema[column]}",
            argument="favorable_decision",
            received=favorable,
        )
    same = present(column) == (bool(value) if schema[column] == nw.Boolean else value)
    return same.cast(nw.Int64).cast(nw.Float64)


def _value_counts(name: str, frame: Any, column: str, secrets: Sequence[str]) -> str:
    """The most frequent values of a column with their counts."""
    counts = frame.lazy().select(value=nw.col(column)).drop_nulls().group_by("value").agg(rows=nw.len())
    ordered = counts.sort("rows", "value", descending=[True, False]).head(_LISTED)
    return value_counts(run_query(name, lambda: ordered.collect().rows(), secrets))


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
    kinds: Mapping[str, Any] = field(default_factory=dict)  # types of the columns of scores, which count as float64
    beside: tuple[str, ...] = ()  # scores of other models, which all_rows() also returns: beside_0, beside_1, ...
    most_in_memory: ClassVar[int] = 2**22  # engines select few rows faster than they count many rows again

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
        """The rows of any frame that narwhals supports; a DataError for other types and unknown columns."""
        name, secrets = source.name, source.secrets
        try:
            frame = nw.from_native(source.table)
        except TypeError:
            raise DataError(
                "table must be a data frame, or a table of DuckDB, Ibis, Dask or Spark, got "
                f"{type(source.table).__name__}; for a file use audit_file"
            ) from None
        scores = roles.score, *beside
        check_columns(name, run_query(name, lambda: frame.columns, secrets), roles.by_role | {"score": scores})
        # Other columns may have unsupported types.
        frame = frame.select(list(dict.fromkeys((*roles.columns, *beside))))
        schema = run_query(name, frame.collect_schema, secrets)
        numeric = *product(["score"], scores), ("weight", roles.weight), *product(["group"], roles.cuts)
        for role, column in numeric:
            kind = nw.Float64() if column is None else schema[column]
            if role == "score" and roles.favorable_decision is not None:
                continue
            if not (kind.is_numeric() or kind == nw.Boolean):
                remedies: list[Remedy | str] = ["cast it in a query or a view"]
                if role == "score":
                    values = _value_counts(name, frame, str(column), secrets)
                    remedies.insert(0, Remedy("favorable_decision", detail=f" if these values are decisions: {values}"))
                raise DataError(f"the {role} column {column!r} of {name} contains {kind}, not numbers", remedy=remedies)
        present = partial(_without_missing, schema, missing)
        score = partial(_scores, roles, schema, present)
        columns = [present(column).alias(f"key_{at}") for at, column in enumerate(roles.keys)]
        columns.append(score(roles.score).alias("score"))
        if roles.weight is not None:
            columns.append(present(roles.weight).cast(nw.Float64).alias("weight"))
        columns += [present(column).alias(f"of_group_{at}") for at, column in enumerate(roles.probabilities)]
        kinds = {"score": schema[roles.score]} | {f"beside_{at}": schema[column] for at, column in enumerate(beside)}
        columns += [score(column).alias(f"beside_{at}") for at, column in enumerate(beside)]
        polars()  # the library of the results
        if isinstance(frame, nw.DataFrame):  # polars counts faster than the others, with equal results
            frame = run_query(name, partial(frame.lazy, "polars"))
        return cls(name, frame.select(*columns), roles, max_groups, secrets=secrets, kinds=kinds, beside=beside)

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, max_groups=self.max_groups)
        for level in self.levels:
            if level.cuts is not None:
                self._cut(level, level.cuts)

    def _cut(self, level: ColumnLevels, cuts: Floats) -> None:
        """Replace numbers by the upper end of their band; those above the last cut by a larger number."""
        key = f"key_{self.levels.index(level)}"
        is_number = ~nw.col(key).is_null()
        if self.frame.collect_schema()[key].is_float() and self._supports_nan:
            is_number &= ~nw.col(key).is_nan()
        beyond = float(cuts[-1]) + max(1.0, abs(float(cuts[-1])))
        band = first_upto(nw.col(key), cuts, [nw.lit(largest) for largest in (*cuts.tolist(), beyond)])
        self.frame = self.frame.with_columns(nw.when(is_number).then(band).alias(key))

    @cached_property
    def rows(self) -> int:
        """Number of rows, usable or not."""
        return int(self.run(self.frame.select(nw.len().alias("rows")))["rows"][0])

    def all_rows(self) -> pl.DataFrame:
        """All rows under the names of their columns, from counts of equal rows, in any order."""
        other_scores = [f"beside_{place}" for place in range(len(self.beside))]
        of_groups = [f"of_group_{place}" for place in range(len(self.roles.probabilities))]
        kinds = [*self._keys, "score", *(["weight"] if self.weighted else []), *of_groups, *other_scores]
        distinct = self.run(self.frame.group_by(kinds, drop_null_keys=False).agg(nw.len().alias("rows")))
        distinct = distinct.sort(kinds)
        every = distinct[np.repeat(np.arange(len(distinct)), distinct["rows"].to_numpy())]
        columns = *self.roles.columns, *self.beside
        columns_by_name = {name: polars().col(kind) for name, kind in zip(columns, kinds, strict=True)}
        for (key, kind), name in zip(self.kinds.items(), (self.roles.score, *self.beside), strict=True):
            check_range(name, kind, (distinct[key].min(), distinct[key].max()))
            if kind == nw.Float32:  # they were cast to float64, to be counted
                columns_by_name[name] = columns_by_name[name].cast(polars().Float32)
        return every.select(**columns_by_name)

    def sum_to_one(self, rounding: float) -> bool:
        """Whether the scores of all models, where none is missing, can be probabilities of one model's classes.

        As ``are_probabilities`` for rows; rows prove nothing if the first score is constant.
        """
        kinds = ["score", *(f"beside_{place}" for place in range(len(self.beside)))]
        frame = self._complete_rows(kinds).with_columns(total=sum(map(nw.col, kinds[1:]), nw.col("score")))
        ends = [nw.col(kind).min() for kind in kinds]
        ends += [nw.col("score").max().alias("high"), nw.col("total").min(), nw.col("total").max().alias("high_total")]
        bounds = self.run(frame.select(*ends)).row(0)
        if None in bounds:
            return False
        *lows, high, low_total, high_total = bounds
        return bool(high > lows[0] and min(lows) >= -rounding and max(1 - low_total, high_total - 1) <= rounding)

    def cut_number(self, level: ColumnLevels) -> None:
        """Query the values of a numeric column, and let the engine cut it."""
        key = f"key_{self.levels.index(level)}"
        counts = self.run(self.frame.group_by(key).agg(nw.len().alias("rows")).head(_MOST_VALUES))
        values, rows = numbers("group", level.name, counts[key]), counts["rows"].to_numpy()
        finite = np.isfinite(values)
        values, rows = values[finite], rows[finite].astype(np.float64)
        ends = float(values.min()), float(values.max())
        self._cut(level, level.cut_into_levels(values, rows, rows=int(rows.sum()), ends=ends))

    def survey_once(self, threshold: float) -> CellTable:
        """Query the cells, their counts, and the range of the scores."""
        above = at_or_above(nw.col("score"), threshold, score_precision([self.kinds["score"]]))
        # PostgreSQL casts no booleans, and sums literals such as 1.0 to decimals.
        selected = nw.when(above).then(1).otherwise(0).cast(nw.Float64)
        by, ends = list[str](), {"low": nw.col("score").min(), "high": nw.col("score").max()}
        sums = {"rows": nw.len(), "chosen": nw.col("chosen").sum(), **ends}
        frame = self._usable.with_columns(chosen=selected)
        if self.weighted:  # rows of weight 0 are usable, but are not counted
            weight = nw.col("weight")
            frame = self._usable.with_columns(chosen=selected * weight, counts=weight != 0)
            by.append("counts")
            sums |= {"weight": weight.sum(), "least": weight.min(), "largest": weight.max()}
        # Too many combinations are not fetched.
        cells, codes, used = self._sums_by_key(frame, by, sums, 4 * MOST_CELLS)
        left_out = self.rows - int(cells["rows"].to_numpy()[used].sum())
        if used.any():
            low, high, *weights = (cells[name].to_numpy()[used] for name in ("low", "high", *list(sums)[5:]))
            extremes = (float(weights[0].min()), float(weights[1].max())) if weights else None
            check_range(self.roles.score, self.kinds["score"], (float(low.min()), float(high.max())))
            check_values(self.roles, (float(low.min()), float(high.max())), extremes)
        if self.weighted:
            used &= cells["counts"].to_numpy().astype(np.bool_)
        unused = cells.filter(polars().Series(~used))
        cells, codes = cells.filter(polars().Series(used)), [code[used] for code in codes]
        # Values of one level, such as 0.0 and -0.0, are one cell.
        distinct, cell = np.unique(np.array(codes).T, axis=0, return_inverse=True)
        self.check_few(len(distinct))
        self.cells = [tuple(cell_codes) for cell_codes in distinct.tolist()]
        totals = [
            np.bincount(cell.ravel(), cells[name].to_numpy(), len(distinct)).astype(np.float64)
            for name in ("rows", "weight" if self.weighted else "rows", "chosen")
        ]
        self.used = int(totals[0].sum())
        if len(cells):
            self.ends = float(cells["low"].to_numpy().min()), float(cells["high"].to_numpy().max())
            # Scores of rows that do not count may be outside the range.
            self.beyond = bool(((unused["low"] < self.ends[0]) | (unused["high"] > self.ends[1])).any())
        return self.cell_table(self.name, totals, self.ends, {UNUSABLE: left_out})

    @property
    def counting(self) -> nw.LazyFrame[Any]:
        """The usable rows with a positive weight, after the survey; a group or label may be missing."""
        frame = self._usable.filter(nw.col("weight") != 0) if self.weighted else self._usable
        if self.beyond:
            frame = frame.filter((nw.col("score") >= self.ends[0]) & (nw.col("score") <= self.ends[1]))
        return frame

    def count(self) -> BinnedScores:
        """Query counts by cell and bin; the same bins can be refined later."""
        return BinnedScores(self.count_bins(), self.scale, self)

    @property
    def max_bins(self) -> int:
        """The maximum number of bins."""
        return min(_MOST_BINS << (self.used > _MANY_ROWS), bins_for(len(self.cells)))

    @property
    def scale(self) -> Scale:
        """The scale of the positions."""
        return Scale.between(*self.ends)

    def count_bins(self) -> Bins:
        """All rows in bins of equal width; bins with a large share of the rows are cut until none has."""
        low, high = self.ends
        width, rows = np.array([high - low]), np.array([self.used])
        bins = self._bins(self.counting, low, _power(self.max_bins, width, rows, high - low))
        for _ in range(_HEAVY_PASSES):
            heavy = ~bins.single & (bins.rows > _HEAVY * bins.rows.sum())
            if not heavy.any():
                break
            bins = join_bins(bins[~heavy], self.recount(bins[heavy], self.max_bins))
        return bins

    def recount(self, parents: Bins, max_bins: int) -> Bins:
        """The rows of some bins in at most about ``max_bins`` finer ones of equal width; narrow bins do not change."""
        heaviest = np.argsort(-parents.rows * ~parents.single, kind="stable")[: min(_MOST_CUT, max(1, max_bins // 2))]
        heavy = np.sort(heaviest)
        lowest = float(parents.low[heavy[0]])
        width = parents.high[heavy] - parents.low[heavy]
        power = _power(max_bins, width, parents.rows[heavy], float(parents.high[heavy[-1]]) - lowest)
        cut = np.zeros(len(parents), np.bool_)
        cut[heavy[np.ldexp(width, power) >= 0.5]] = True
        if not cut.any():
            return parents
        some = np.array_split(np.flatnonzero(cut), -(-int(cut.sum()) // _MOST_RANGES))
        parts = [self._bins(self._rows_in(parents[part]), lowest, power, parents[part]) for part in some]
        return reduce(join_bins, parts, parents[~cut])

    def steps(self, parents: Bins) -> Steps:
        """The rows of some bins, counted at each of their distinct scores."""
        results = [
            self.sums_by_cell(self._rows_in(parents[some]), ["score"], self._sums(moments=False))
            for some in np.array_split(np.arange(len(parents)), -(-len(parents) // _MOST_RANGES))
        ]
        scores, amount = (
            np.concatenate([table[name].to_numpy() for table, _ in results])
            for name in ("score", "total" if self.weighted else "rows")
        )
        rows = sum(int(table["rows"].sum()) for table, _ in results)
        if rows != int(parents.rows.sum()):
            raise self.changed()
        cell = np.concatenate([cells for _, cells in results])
        return make_steps(scores + 0.0, cell, amount, parents, self.scale)

    def _bins(self, frame: nw.LazyFrame[Any], base: float, power: int, parents: Bins | None = None) -> Bins:
        """The rows of a frame in numbered bins; with parents, separately for each parent."""
        scaled = (nw.col("score") - base) * float(np.ldexp(1.0, power))
        # Cut off before it is cast: casting rounds in some engines.
        position = nw.col("score") * self.scale.inverse - self.scale.low * self.scale.inverse
        position = position * nw.col("weight") if self.weighted else position
        frame = frame.with_columns(number=scaled.floor().cast(nw.Int64), position=position)
        by = ["number"]
        if parents is not None:
            leaves = [nw.lit(place) for place in range(len(parents))]
            frame = frame.with_columns(parent=first_upto(nw.col("score"), parents.high, leaves))
            by.append("parent")
        counts, cell = self.sums_by_cell(frame, by, self._sums(moments=True))
        keys = np.array([counts[name].to_numpy().astype(np.int64) for name in reversed(by)])
        distinct, number = np.unique(keys, axis=1, return_inverse=True)
        number = number.ravel()
        rows, low, high, moment, *weight = (counts[name].to_numpy() for name in self._sums(moments=True))
        counter = Counter(distinct.shape[1], len(self.cells), weighted=self.weighted)
        counter.add_entries(number, cell, Entries(rows.astype(np.int64), low + 0.0, high + 0.0, moment, *weight))
        if parents is None:
            return counter.bins(self.scale)
        parent: Integers = distinct[0]
        if not np.array_equal(np.bincount(parent[number], rows, len(parents)), parents.rows):
            raise self.changed()
        return counter.bins(self.scale, parents, parent)

    def _sums(self, *, moments: bool) -> dict[str, nw.Expr]:
        expressions = {"rows": nw.len()}
        if moments:
            score = nw.col("score")
            expressions |= {"low": score.min(), "high": score.max(), "moment": nw.col("position").sum()}
        return expressions | ({"total": nw.col("weight").sum()} if self.weighted else {})

    def _rows_in(self, parents: Bins) -> nw.LazyFrame[Any]:
        """The rows in some bins. Neighboring bins are one stretch."""
        ends = ~_is_next(parents, self.scale)
        low, high = parents.low[np.append(True, ends)], parents.high[np.append(ends, True)]
        score = nw.col("score")
        # First from end to end: most rows need no refinement.
        between = self.counting.filter((score >= float(low[0])) & (score <= float(high[-1])))
        return between.filter(first_upto(score, high, [score >= float(bound) for bound in low]))

    def sums_by_cell(
        self, frame: nw.LazyFrame[Any], by: list[str], sums: dict[str, nw.Expr]
    ) -> tuple[pl.DataFrame, Integers]:
        """Sums by cell and these columns, and the cell of each row of the result."""
        counts, codes, has_label = self._sums_by_key(frame, by, sums)
        counts, codes = counts.filter(polars().Series(has_label)), [code[has_label] for code in codes]
        sizes = [len(level.values) + 1 for level in self.levels]
        number = np.ravel_multi_index([np.asarray(code, np.int64) for code in codes], sizes)
        cells = np.ravel_multi_index(tuple(np.array(self.cells).T), sizes)  # ascending, as the cells are
        place = np.searchsorted(cells, number)
        if (cells.take(place, mode="clip") != number).any():
            raise self.changed()
        return counts, place

    def _sums_by_key(
        self, frame: nw.LazyFrame[Any], by: list[str], sums: dict[str, nw.Expr], limit: int | None = None
    ) -> tuple[pl.DataFrame, list[Any], Booleans]:
        """Sums by keys and these columns, the codes of the keys, and which rows of the result have a label."""
        grouped = frame.group_by([*self._keys, *by], drop_null_keys=False)
        query = grouped.agg(*(expression.alias(name) for name, expression in sums.items()))
        groups = self.run(query if limit is None else query.head(limit))
        codes = [level.codes(groups[name]) for level, name in zip(self.levels, self._keys, strict=True)]
        return groups, codes, used_codes(self.roles, codes)

    def changed(self) -> DataError:
        """The error for a table whose second count differs from its first."""
        return DataError(f"{self.name} changed while it was counted; audit a copy or a snapshot of it")

    @property
    def _keys(self) -> list[str]:
        return [f"key_{place}" for place in range(len(self.roles.keys))]

    @property
    def _usable(self) -> nw.LazyFrame[Any]:
        """The rows with a score and a weight; labels and groups are checked by cell."""
        return self._complete_rows(["score", *(["weight"] if self.weighted else [])])

    def _complete_rows(self, names: Sequence[str]) -> nw.LazyFrame[Any]:
        """The rows in which none of these columns is missing."""
        frame = self.frame
        for name in names:
            frame = frame.filter(~nw.col(name).is_null())
            frame = frame.filter(~nw.col(name).is_nan()) if self._supports_nan else frame
        return frame

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
        library = polars()

        def collect() -> Any:
            if query.implementation.is_polars():
                return query.to_native().collect(engine="streaming")
            return query.collect("polars").to_native()

        result: pl.DataFrame = run_query(self.name, collect, self.secrets)
        kinds = {name: kind for name, kind in result.schema.items() if name.startswith("key_")}
        texts = [name for name, kind in kinds.items() if not (kind.is_numeric() or kind == library.Boolean)]
        return result.cast(dict.fromkeys(texts, library.String))


def first_upto(value: nw.Expr, high: Floats, leaves: Sequence[nw.Expr]) -> nw.Expr:
    """The leaf of the first stretch that ends at the value or above it.

    A tree of conditions: an engine evaluates few of them for each row, and no expression is deeply nested.
    """
    middle = len(leaves) // 2
    if middle == 0:
        return leaves[0]
    upper, lower = (first_upto(value, high[part], leaves[part]) for part in (slice(middle, None), slice(middle)))
    return nw.when(value > float(high[middle - 1])).then(upper).otherwise(lower)


def _is_next(parents: Bins, scale: Scale) -> Booleans:
    """Whether there is no row between a bin and the next one: (bins - 1,)."""
    if not parents.weighted:
        upto = parents.before[:-1] + parents.counts[:-1]
        return np.asarray((upto == parents.before[1:]).all(1))
    between: Floats = scale.positions(parents.low[1:]) - scale.positions(parents.high[:-1])
    return np.equal(between, parents.gap[:-1])


def _power(max_bins: int, width: Floats, rows: Integers, span: float) -> int:
    """The largest power of two that cuts bins of these widths into at most ``max_bins`` bins with rows.

    All bins are in a stretch of length ``span``, and their numbers must be integers of 64 bits.
    """
    largest = min(_LARGEST_POWER, _LARGEST_NUMBER - frexp(span)[1])
    low, high = -_LARGEST_POWER - 100, largest
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(np.ldexp(width, middle), rows).sum() <= max_bins:
            low = middle
        else:
            high = middle - 1
    return low
