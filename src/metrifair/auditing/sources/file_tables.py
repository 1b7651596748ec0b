"""Files, patterns of files and standard input as tables that are read in batches; every problem is
one DataError.

Text (csv, tsv, ndjson) is read as text: the first values of a column do not determine its type.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrifair.auditing.sources.file_formats import (
    AS_USUAL,
    TEXT,
    ReadOptions,
    canonical_cells,
    cell_replacements,
    check_kind,
    excel_sheet,
    file_format,
    is_utf8,
    polars,
    separator_for,
    write_utf8,
)
from metrifair.errors import DataError, MetrifairWarning, Remedy
from metrifair.support.user_warnings import warn_user

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

_LISTED = 20
# rows that polars reads at once, and rows that are worked on at once
_STRETCH = 2**19
_BATCH = 2**17
# How text of other encodings begins; UTF-32 begins as UTF-16 does.
_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise an error of polars about a file as a DataError of one sentence."""
    errors = polars().exceptions
    try:
        yield
    except (errors.PolarsError, OSError, UnicodeDecodeError) as error:
        message = str(error)
        if "utf-8" in message.lower():
            remedy = Remedy(
                "encoding",
                "cp1252",
                " (Windows), or the encoding in which the file was saved",
            )
            raise DataError(f"{name} is not UTF-8 text", remedy=remedy) from None
        if "empty CSV" in message:
            raise DataError(f"{name} is empty") from None
        if "more fields than" in message:
            raise DataError(
                f"{name} has a row with more fields than its header",
                remedy=[
                    Remedy("separator", ";", " if semicolons separate its columns"),
                    "check its quotes",
                ],
            ) from None
        first = message.strip().split("\n")[0][:200]
        raise DataError(f"{name} cannot be read: {first or type(error).__name__}") from None


def check_columns(
    name: str,
    columns: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    *,
    is_text: bool = False,
) -> None:
    """Raise a DataError that lists the columns of the file or table if a column with a role is
    missing.
    """
    for role, column in ((role, column) for role, names in roles.items() for column in names):
        if column not in columns:
            parts = [part.strip() for part in column.split(",")]
            remedy = _column_remedy(column, columns, is_text=is_text)
            if len(parts) > 1 and all(part in columns for part in parts):
                remedy = Remedy(role, parts)
            raise DataError(
                f"{name} has no column {column!r} (given as {role})",
                remedy=remedy,
            )


def check_types(name: str, schema: Mapping[str, Any], roles: Mapping[str, Sequence[str]]) -> None:
    """Raise a DataError if a column with a role contains durations or bytes, by its type in
    polars or narwhals.
    """
    from metrifair.problem.tables import check_type  # noqa: PLC0415 (imports NumPy)

    for role, columns in roles.items():
        for column in columns:
            check_type(f"the {role} column {column!r} of {name}", schema.get(column))


def _column_remedy(column: str, columns: Sequence[str], *, is_text: bool) -> Remedy | str:
    similar = next(
        (name for name in columns if name.strip().lower() == column.strip().lower()),
        None,
    )
    if similar is not None:
        return f"did you mean {similar!r}?"
    names = ", ".join(map(repr, columns[:_LISTED])) + (", ..." if len(columns) > _LISTED else "")
    if len(columns) > 1:
        return f"its columns are {names}"
    separator = next((mark for mark in (";", "\t", "|", ",") if mark in columns[0]), None)
    if not is_text or separator is None:
        return f"its only column is {names}"
    return Remedy(
        "separator",
        separator,
        f" if that separates its columns: its only column is {names}",
    )


@dataclass(frozen=True)
class FileTable:
    """Files of one format with the same columns."""

    name: str
    frames: tuple[pl.LazyFrame, ...]
    columns: tuple[str, ...]
    # to which columns are cast that are no numbers, or differ between files
    kinds: Mapping[str, Any]
    is_text: bool
    repeated: frozenset[str] = frozenset()  # ambiguous names: several columns have them
    options: ReadOptions = AS_USUAL
    paths: tuple[str, ...] = ()  # on the disk
    is_copy: bool = False  # of standard input or a pipe
    # texts to replace, and whether a cell so far contains them
    replaced: dict[str, bool] = field(default_factory=dict)

    def check(self, roles: Mapping[str, Sequence[str]]) -> None:
        """Raise a DataError that lists the columns if one with a role is missing or ambiguous."""
        check_columns(self.name, self.columns, roles, is_text=self.is_text)
        for frame in self.frames:
            check_types(self.name, frame.collect_schema(), roles)
        for column in (name for names in roles.values() for name in names):
            if column in self.repeated:
                raise self.ambiguous(column)

    def ambiguous(self, column: str) -> DataError:
        """The error for a name that several columns have."""
        return DataError(f"{self.name} has several columns {column!r}; rename all of them but one")

    def batches(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """These columns of all rows, a batch at a time."""
        for frame in self.frames:
            with reading(self.name):
                # In the order of the file: an expression here would make polars keep twice as many
                # rows in memory.
                selected = frame.select(self._in_order(names))
                parts: Iterable[pl.DataFrame] = _stretches(selected)
                if self.is_text:
                    parts = selected.collect_batches(engine="streaming")
                for part in parts:
                    yield from map(self._uniform, part.iter_slices(_BATCH))

    def head(self, names: Sequence[str], count: int) -> pl.DataFrame:
        """These columns of the first rows."""
        with reading(self.name):
            parts: list[pl.DataFrame] = []
            for frame in self.frames:
                remaining = count - sum(map(len, parts))
                if parts and remaining <= 0:
                    break
                first = frame.select(self._in_order(names)).head(remaining)
                parts.append(self._uniform(first.collect(engine="streaming")))
            rows: pl.DataFrame = polars().concat(parts, how="vertical_relaxed")
        return rows

    def scan(self, names: Sequence[str]) -> pl.LazyFrame:
        """These columns of all rows, which polars reads a part at a time."""
        library = polars()
        parts = []
        for frame in self.frames:
            part = frame.select(self._in_order(names))
            empty = part.collect_schema().to_frame()
            uniform = self._uniform(empty)
            if uniform.schema != empty.schema or self.options.changes_cells:
                part = part.map_batches(self._uniform, schema=uniform.schema, streamable=True)
            parts.append(part)
        together: pl.LazyFrame = library.concat(parts, how="vertical")
        return together

    def _in_order(self, names: Sequence[str]) -> list[str]:
        return [name for name in self.columns if name in names]

    def _uniform(self, batch: pl.DataFrame) -> pl.DataFrame:
        """A batch with the same types as those of all files, and canonical cells."""
        from metrifair.problem.tables import check_exact  # noqa: PLC0415 (imports NumPy)

        kinds: Any = {
            name: self.kinds[name]
            for name, kind in batch.schema.items()
            if kind != self.kinds[name]
        }
        for name, kind in kinds.items():
            # a DataError for integers that would be rounded
            if kind.is_float() and batch.schema[name].is_integer():
                check_exact(f"the column {name!r}", batch[name].to_numpy())
        return self._canonical(batch.cast(kinds) if kinds else batch)

    def table(self) -> pl.DataFrame:
        """All columns of all rows; only text is converted."""
        with reading(self.name):
            rows: pl.DataFrame = polars().concat(
                [part.collect() for part in self.frames], how="diagonal_relaxed"
            )
        return self._canonical(rows)

    def _canonical(self, batch: pl.DataFrame) -> pl.DataFrame:
        pl = polars()
        if unseen := [
            old for old in cell_replacements(self.options.replace) if not self.replaced.get(old)
        ]:
            texts = pl.selectors.by_dtype(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
            cells = batch.select(texts.str.strip_chars())  # once, not for each of the words
            self.replaced.update(
                {old: any((column == old).any() for column in cells) for old in unseen}
            )
        return canonical_cells(self.options, batch)

    def precision(self, column: str) -> np.dtype[Any]:
        """The precision of the numbers in a column."""
        from metrifair.auditing.sources.column_values import score_precision  # noqa: PLC0415  # imports torch

        return score_precision(frame.collect_schema()[column] for frame in self.frames)

    def rows(self) -> int | None:
        """Number of rows, if the files state it; None for text, which would have to be read."""
        if self.is_text:
            return None
        with reading(self.name):
            return sum(map(_rows, self.frames))


def _rows(frame: pl.LazyFrame) -> int:
    return int(frame.select(polars().len()).collect(engine="streaming").item())


def _stretches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """All rows of a file in slices; the batches of polars would read far ahead."""
    for start in range(0, _rows(frame), _STRETCH):
        yield frame.slice(start, _STRETCH).collect(engine="streaming")


@contextmanager
def open_files(
    path: str | os.PathLike[str], options: ReadOptions = AS_USUAL
) -> Iterator[FileTable]:
    """The file, the files of a pattern, or "-": standard input, csv unless the options differ.

    Standard input and pipes cannot be read twice: they are first written to a temporary file. So is
    text that is not UTF-8.
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(
            f"path must be the path of a file, got a {type(path).__name__}; name several files by "
            "a pattern such as "
            "'scores-*.csv', or count each (metrifair count) and add the counts up (metrifair "
            "merge)"
        )
    pattern = os.fspath(path)
    file = Path(pattern)
    is_stream = pattern == "-" or file.is_fifo() or file.is_char_device() or file.is_socket()
    name = pattern
    if pattern == "-":
        name = "standard input"
    # Temporary copies live as long as the table: an audit may count its rows again.
    with ExitStack() as stack:
        folder = None
        if is_stream:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metrifair-")))
        if folder is None:
            paths = _expand(pattern)
            files = {paths[0]: pattern} if len(paths) == 1 else {path: path for path in paths}
        else:
            options = replace(
                options,
                format=options.format or ("csv" if pattern == "-" else file_format(pattern)),
            )
            copy = folder / "input"
            with (
                copy.open("wb") as target,
                nullcontext(sys.stdin.buffer) if pattern == "-" else file.open("rb") as stream,
            ):
                shutil.copyfileobj(stream, target, 2**20)
            files = {str(copy): name}
        source = replace(_file_table(name, files, options, stack), is_copy=is_stream)
        weakref.finalize(source, stack.pop_all().close)
        yield source
        if unseen := [old for old, occurs in source.replaced.items() if not occurs]:
            warn_user(
                MetrifairWarning(
                    f"names {', '.join(map(repr, unseen))}, which no cell of the columns that were "
                    "read contains",
                    argument="replace",
                    remedy="look for another spelling",
                )
            )


def _expand(pattern: str) -> list[str]:
    """The files that a path or pattern names, in order."""
    if Path(pattern).is_dir():
        raise DataError(
            f"{pattern} is a folder; name its files with a pattern such as "
            f"'{Path(pattern, '*.parquet')}'"
        )
    files = matching_files(pattern)
    if not files and glob.has_magic(pattern):
        raise DataError(f"no file matches the pattern {pattern!r}")
    if not files:
        raise DataError(f"there is no file {pattern}")
    return files


def matching_files(pattern: str) -> list[str]:
    """The files of that name, or else those that match it as a pattern, in order; none is no
    error.
    """
    if Path(pattern).is_file():
        return [pattern]
    return sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())  # noqa: PTH207


def _file_table(
    name: str, files: Mapping[str, str], options: ReadOptions, stack: ExitStack
) -> FileTable:
    """The table of the files, which are passed with their names in messages; copies are deleted
    with the stack.
    """
    kinds = {options.format or file_format(file) for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"{name} matches files of several formats: {', '.join(sorted(kinds))}; name one of them"
        )
    kind = kinds.pop()
    check_kind(options, name, kind)
    for file, label in files.items():
        _check_readable(file, label, is_text=kind in TEXT and is_utf8(options))
    paths = tuple(files)  # provenance names these, not copies
    if not is_utf8(options):
        files = _in_utf8(files, options, stack)
    frames = [_scan(file, label, kind, options) for file, label in files.items()]
    schemas = [frame.collect_schema() for frame in frames]
    columns = [tuple(schema.names()) for schema in schemas]
    for file, names in zip(files.values(), columns, strict=True):
        if set(names) != set(columns[0]):
            extra = min(set(names) ^ set(columns[0]))
            first = next(iter(files.values()))
            raise DataError(
                f"{file} and {first} have different columns: only one of them has {extra!r}"
            )
    common = {column: _common_kind([schema[column] for schema in schemas]) for column in columns[0]}
    repeated = frozenset(
        column for file in files for column in _repeated_names(file, kind, options)
    )
    is_text = kind in (*TEXT, "excel")
    return FileTable(
        name,
        tuple(frames),
        columns[0],
        common,
        is_text,
        repeated,
        options,
        paths,
    )


def _common_kind(kinds: Sequence[pl.DataType]) -> Any:
    """The type of a column of all files: of numbers one that has room for all, booleans, else
    text.
    """
    library = polars()
    if all(kind == library.Boolean for kind in kinds):
        return library.Boolean()
    if not all(kind.is_numeric() for kind in kinds):
        return library.String()
    empty = [library.DataFrame(schema={"": kind}) for kind in kinds]
    return library.concat(empty, how="vertical_relaxed").dtypes[0]


def _in_utf8(files: Mapping[str, str], options: ReadOptions, stack: ExitStack) -> dict[str, str]:
    """Copies of text files that polars can read."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metrifair-")))
    copies = {str(folder / f"{place}.txt"): label for place, label in enumerate(files.values())}
    for file, copy in zip(files, copies, strict=True):
        write_utf8(file, files[file], str(options.encoding), Path(copy))
    return copies


def _scan(file: str, name: str, kind: str, options: ReadOptions) -> pl.LazyFrame:
    library = polars()
    if kind == "excel":
        frame: pl.LazyFrame = excel_sheet(file, name, options).lazy()
        names = frame.collect_schema().names()
    else:
        text = {
            "infer_schema": False,
            "glob": False,
            "has_header": options.header,
        }
        scan = {
            "csv": partial(library.scan_csv, separator=separator_for(options, kind), **text),
            "tsv": partial(library.scan_csv, separator=separator_for(options, kind), **text),
            "parquet": partial(library.scan_parquet, glob=False),
            "arrow": library.scan_ipc,
            "ndjson": library.scan_ndjson,
        }[kind]
        # polars always reads these as patterns
        place = file
        if kind in ("arrow", "ndjson"):
            place = glob.escape(file)
        with reading(name):
            frame = scan(place)
            names = frame.collect_schema().names()
            if kind == "ndjson":
                frame = library.scan_ndjson(
                    place, schema_overrides=dict.fromkeys(names, library.String)
                )
    if not names:
        raise DataError(f"{name} has no columns")
    if options.header:
        return frame
    return frame.rename({old: str(new) for new, old in enumerate(names, 1)})


def _repeated_names(file: str, kind: str, options: ReadOptions) -> list[str]:
    """Names that several columns of a csv or tsv file have; polars would rename all but the
    first.
    """
    if kind not in ("csv", "tsv") or not options.header:
        return []
    with reading(file):
        first = polars().read_csv(
            file,
            has_header=False,
            n_rows=1,
            infer_schema=False,
            separator=separator_for(options, kind),
            glob=False,
        )
    return [
        name
        for name, count in Counter(first.row(0) if len(first) else ()).items()
        if count > 1 and name
    ]


def _check_readable(file: str, name: str, *, is_text: bool) -> None:
    """Raise a DataError unless the file can be opened, is not empty, and, with ``is_text``, is
    text.
    """
    try:
        with Path(file).open("rb") as stream:
            start = stream.read(4096)
    except PermissionError:
        raise DataError(f"{name} cannot be read: no permission") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}") from None
    if not start:
        raise DataError(f"{name} is empty")
    encoding = next(
        (encoding for mark, encoding in _MARKS.items() if start.startswith(mark)),
        None,
    )
    if encoding is not None and is_text:
        raise DataError(
            f"{name} is {encoding.upper()} text",
            remedy=Remedy("encoding", encoding),
        )
    compressed = file.endswith((".gz", ".zst"))
    if is_text and not compressed and b"\0" in start:
        raise DataError(
            f"{name} is not text",
            remedy=Remedy("format", detail=" if it is a table of another kind"),
        )
