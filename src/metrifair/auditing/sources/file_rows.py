"""The rows of a file of any size, as a table that polars scans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from metrifair.auditing.request import MOST_LEVELS
from metrifair.auditing.sources.cells import CellTable
from metrifair.auditing.sources.column_levels import (
    ColumnLevels,
    ManyNumbers,
    levels_for,
)
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import numbers, scores_in
from metrifair.auditing.sources.file_formats import polars
from metrifair.auditing.sources.file_tables import FileTable, reading
from metrifair.auditing.sources.table_rows import TableRows

if TYPE_CHECKING:
    import polars as pl

# that show whether a column has too many values, before all of them are collected
_FIRST_ROWS = 2**17
_MOST_SAMPLED = 2**17  # values of a number


@dataclass
class FileRows(TableRows):
    """The usable rows of a file, as cells and bins, which polars counts."""

    source: FileTable = field(kw_only=True)

    @classmethod
    def of_file(cls, source: FileTable, roles: Roles, max_groups: int = MOST_LEVELS) -> FileRows:
        """The rows of a file."""
        with reading(source.name):
            columns = source.scan(roles.columns)
            kind = columns.collect_schema()[roles.score]
            frame = _with_roles(roles, columns)
        return cls(
            source.name,
            nw.from_native(frame),
            roles,
            max_groups,
            kinds={"score": kind},
            is_text=source.is_text,
            source=source,
        )

    def survey(self, threshold: float) -> CellTable:
        """Read the file once.

        A number with too many values in the first rows is cut before all are collected.
        """
        first = self.source.head(self.roles.keys, _FIRST_ROWS)
        trial = levels_for(self.roles, max_groups=self.max_groups)
        for level, first_level in zip(self.levels, trial, strict=True):
            try:
                first_level.codes(first[level.name])
            except ManyNumbers:
                self.cut_number(level)
        return super().survey(threshold)

    def cut_number(self, level: ColumnLevels) -> None:
        """Cut a number at quantiles of a sample of its values: a file may have more values than
        memory.
        """
        key = f"key_{self.levels.index(level)}"
        self.frame = self._with_numbers(level.name, key)
        number = nw.col(key)
        values = self.frame.filter(self._is_present(key) & number.is_finite()).select(key)
        rows, low, high = self.run(
            values.select(nw.len(), number.min().alias("low"), number.max().alias("high"))
        ).row(0)
        every = -(-rows // _MOST_SAMPLED)
        sample = self.run(nw.from_native(values.to_native().gather_every(every)))[key].to_numpy()
        self._cut(
            level,
            level.cut_into_levels(sample, None, rows=rows, ends=(low, high)),
        )

    def _with_numbers(self, name: str, key: str) -> nw.LazyFrame[Any]:
        """The frame with numbers in a key; a DataError shows the first value that is none."""
        native = self.frame.to_native()
        return nw.from_native(_mapped(native, {key: lambda column: numbers("group", name, column)}))

    def run(self, query: nw.LazyFrame[Any]) -> pl.DataFrame:
        """The result of a query."""
        with reading(self.name):
            result: pl.DataFrame = query.to_native().collect(engine="streaming")
        return result


def _with_roles(roles: Roles, columns: pl.LazyFrame) -> pl.LazyFrame:
    """The columns under the names of their roles, as ``TableRows`` has them."""
    library = polars()
    schema = columns.collect_schema()
    convert: dict[str, Callable[[pl.Series], Any]] = {}
    selected = [library.col(name).alias(f"key_{at}") for at, name in enumerate(roles.keys)]
    for at, name in enumerate(roles.keys):
        if name in roles.cuts:
            convert[f"key_{at}"] = partial(numbers, "group", name)
    amounts = {"score": roles.score}
    if roles.weight is not None:
        amounts["weight"] = roles.weight
    for role, name in amounts.items():
        selected.append(library.col(name).alias(role))
        if role == "score" and roles.favorable_decision is not None:
            convert[role] = partial(scores_in, roles)
        elif not schema[name].is_float():
            convert[role] = partial(numbers, role, name)
    frame = _mapped(columns.select(selected), convert)
    return frame.with_columns(library.col(*amounts).cast(library.Float64))


def _mapped(frame: pl.LazyFrame, convert: dict[str, Callable[[pl.Series], Any]]) -> pl.LazyFrame:
    """The frame with some columns converted to numbers, a batch at a time."""
    if not convert:
        return frame
    library = polars()

    def converted(batch: pl.DataFrame) -> pl.DataFrame:
        return batch.with_columns(
            library.Series(name, function(batch[name])) for name, function in convert.items()
        )

    schema = dict(frame.collect_schema()) | dict.fromkeys(convert, library.Float64())
    return frame.map_batches(converted, schema=schema, streamable=True)
