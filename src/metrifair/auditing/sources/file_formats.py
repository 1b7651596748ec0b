"""Reading options of a file: its format and encoding, and how numbers and dates are written in it.

Cells are rewritten once, where they are read: numbers with a point, dates as 2026-01-31. Later code
ignores how they were written.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrifair.errors import DataError, Remedy
from metrifair.problem.spelling import CODE, COMMA, MISSING_WORDS
from metrifair.support.checks import check_known, check_switches, require
from metrifair.support.files import error_reason

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
FORMATS = ("csv", "tsv", "parquet", "arrow", "ndjson", "excel")
TEXT = ("csv", "tsv", "ndjson")
_POINT = r"^\s*[+-]?\d+\.\d+\s*$"
# a date that begins with one of the two
DAY_OR_MONTH = r"^\s*\d{1,2}[./-]\d{1,2}[./-]\d{4}([T ]|\s*$)"
_DAY_FIRST = (
    r"^\s*(0?[1-9]|[12]\d|3[01])[./-](0?[1-9]|1[0-2])[./-](\d{4})(?:[T ]+(\d{2}:\d{2}.*?))?\s*$"
)
_BOOLEAN_TEXTS = {"True": "1", "False": "0"}  # booleans as decisions
_OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods")


def polars() -> Any:
    """The library that reads files."""
    return require("polars", extra="cli", purpose="auditing files")


def present_text(column: pl.Series) -> pl.Series:
    """Text without spaces at its ends; words for missing values are missing.

    >>> import polars as pl
    >>> present_text(pl.Series([" a", "N/A", ""])).to_list()
    ['a', None, None]
    """
    text = column.str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING_WORDS), None)


def as_numbers(text: pl.Series) -> pl.Series | None:
    """Text as numbers, words for missing values as missing ones; None if a value is other text, or
    a code such as 02139.

    >>> import polars as pl
    >>> as_numbers(pl.Series(["1", " 2.5", "NaN"])).to_list()
    [1.0, 2.5, None]
    >>> as_numbers(pl.Series(["1", "1,5"])), as_numbers(pl.Series(["1", "02139"]))
    (None, None)
    """
    numbers = text.cast(polars().Float64, strict=False)
    odd = numbers.is_null() & text.is_not_null()
    present = text
    if odd.any() or numbers.is_nan().any():  # spaces, words for missing values, or other text
        odd_text = text.filter(odd)
        # the first value decides as a rule, and takes less than all of them
        if not _are_plain(odd_text.head(1)) or not _are_plain(odd_text.unique()):
            return None
        present = present_text(text)
        numbers = present.cast(polars().Float64, strict=False)
    if present.str.contains(CODE).any():
        return None
    return numbers


def _are_plain(values: pl.Series) -> bool:
    """Whether all values are numbers or words for missing values."""
    present = present_text(values)
    return present.cast(polars().Float64, strict=False).null_count() == present.null_count()


def are_numbers(column: pl.Series) -> bool:
    """Whether a column contains numbers, or text that reads as numbers."""
    if column.dtype == polars().String:
        return as_numbers(column) is not None
    return column.dtype.is_numeric()


def missing_codes(
    missing: str | Sequence[str],
) -> tuple[list[str], list[float]]:
    """Codes for a missing value: in text, in lower case and in every number format; and among
    numbers.

    >>> missing_codes(["N/A", "-9"])
    (['n/a', '-9', '-9.0'], [-9.0])
    """
    codes = [missing] if isinstance(missing, str) else list(missing)
    if not all(isinstance(word, str) for word in codes):
        raise DataError(
            "must be a code for a missing value, such as 'N/A' or '-9'",
            argument="missing",
            received=missing,
        )
    words = dict.fromkeys(word.strip().lower() for word in codes)
    values = list[float]()
    for word in list(words):
        with suppress(ValueError):
            if isfinite(value := float(word)):
                values.append(value)
                words |= dict.fromkeys(
                    [
                        str(value),
                        *([str(int(value))] if value.is_integer() else []),
                    ]
                )
    return list(words), values


def cell_replacements(replace: Mapping[str, object] | None) -> dict[str, str]:
    """Replacements of text, as both are written in cells.

    >>> cell_replacements({" yes ": True, "no": 0})
    {'yes': '1', 'no': '0'}
    """
    pairs = []
    if isinstance(replace, Mapping):
        pairs = list(replace.items())
    texts = [
        new if isinstance(new, str) else _BOOLEAN_TEXTS.get(str(new), str(new)) for _, new in pairs
    ]
    if replace is not None and not (
        pairs
        and all(
            isinstance(cell, str) and cell.strip() for cell in [*texts, *(old for old, _ in pairs)]
        )
    ):
        raise DataError(
            "must map text to its replacement",
            argument="replace",
            received=replace,
            remedy=Remedy("missing", detail=" for missing values"),
        )
    replacements: dict[str, str] = {}
    for (old, new), text in zip(pairs, texts, strict=True):
        if text.lower() in ("none", "nan", "nat", "<na>") and not isinstance(new, str):
            raise DataError(
                f"must not read {old!r} as {new!r}",
                argument="replace",
                remedy=Remedy("missing", old, " instead"),
            )
        if old.strip() in replacements:
            raise DataError(
                f"names {old.strip()!r} twice",
                argument="replace",
                remedy="name it once",
            )
        replacements[old.strip()] = text
    return replacements


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read.

    Parameters
    ----------
    format : {"csv", "tsv", "parquet", "arrow", "ndjson", "excel"}, default=None
        File format. By default the ending of the name; standard input is csv.
    separator : str, default=None
        Column separator of a text file. By default "," in csv (";" where ``decimal`` is a comma)
        and a tab in tsv.
    decimal : {".", ","}, default="."
        Decimal sign of numbers in text.
    encoding : str, default=None
        Encoding of a text file, such as "cp1252" or "utf-16"; by default UTF-8.
    header : bool, default=True
        Whether the first row of a csv, tsv or Excel file names the columns. Otherwise the names are
        "1", "2", ...
    day_first : bool, default=False
        Whether dates in text begin with the day, such as 31.12.2026 or 31/12/2026.
    sheet : str, default=None
        Sheet of an Excel file with several sheets.
    missing : str or sequence of str, default=()
        Missing values, besides empty cells, in all columns, in any case: such as "N/A" or "-9". In
        scores, weights and labels "NA", "N/A", "NaN", "null", "none" and "?" are always missing; in
        groups they are names.
    replace : dict of str to object, default=None
        Replacements of text, in all text columns, such as ``{"Approved": 1, "Declined": 0}``.

    Examples
    --------
    >>> ReadOptions(decimal=",", encoding="cp1252").decimal
    ','
    """

    format: str | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str | None = None
    header: bool = True
    day_first: bool = False
    sheet: str | None = None
    missing: str | Sequence[str] = ()
    replace: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        absent, _ = missing_codes(self.missing)
        if repeated := next(
            (word for word in cell_replacements(self.replace) if word.lower() in absent),
            None,
        ):
            raise DataError(
                f"both name {repeated!r}",
                argument=("replace", "missing"),
                remedy="name it in one of them",
            )
        if self.format is not None:
            check_known("format", self.format, FORMATS)
        check_known("decimal", self.decimal, (".", ","))
        check_switches(header=self.header, day_first=self.day_first)
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, TypeError):
                raise DataError(
                    "must be one that Python supports, such as 'cp1252', 'latin-1' or 'utf-16'",
                    argument="encoding",
                    received=self.encoding,
                ) from None

    @property
    def changed(self) -> dict[str, Any]:
        """The options that are not at their defaults."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @property
    def changes_cells(self) -> bool:
        """Whether cells are rewritten: missing values, replacements, or other ways to write
        numbers and dates.
        """
        return bool(self.missing or self.replace or self.day_first or self.decimal != ".")


def is_utf8(options: ReadOptions) -> bool:
    """Whether text is UTF-8 and needs no conversion."""
    return options.encoding is None or codecs.lookup(options.encoding).name == "utf-8"


def check_kind(options: ReadOptions, name: str, kind: str) -> None:
    """Raise a DataError for options that a file of this kind does not have."""
    options_by_kind = (
        (
            "header",
            not options.header,
            ("csv", "tsv", "excel"),
            "always names its columns",
        ),
        ("encoding", not is_utf8(options), TEXT, "has no encoding"),
        ("sheet", options.sheet is not None, ("excel",), "has no sheets"),
    )
    for argument, passed, kinds, why in options_by_kind:
        if passed and kind not in kinds:
            raise DataError(
                f"{name} is {kind}, which {why}",
                remedy=Remedy(argument, leave_out=True),
            )


def separator_for(options: ReadOptions, kind: str) -> str:
    """The separator of columns; a tab may be written as in a shell."""
    usual = "\t"
    if kind != "tsv":
        usual = ","
        if options.decimal == ",":
            usual = ";"
    separator = {None: usual, "\\t": "\t"}.get(options.separator, options.separator)
    if separator is None or len(separator.encode()) != 1 or separator in '"\r\n':
        raise DataError(
            "must be one character, such as ';' or '|'",
            argument="separator",
            received=options.separator,
        )
    return separator


def canonical_cells(options: ReadOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """The table with numbers, dates, missing values and replacements in one canonical format."""
    pl = polars()
    (words, values) = missing_codes(options.missing)
    if words:
        texts = pl.selectors.by_dtype(pl.String, pl.Categorical, pl.Enum)
        frame = frame.with_columns(
            *(
                pl.when(
                    ~pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase().is_in(words)
                ).then(name)
                for name in frame.select(texts).columns
            ),
            *(
                pl.when(~pl.col(name).cast(pl.Float64).is_in(values)).then(name)
                for name in frame.select(pl.selectors.numeric()).columns
            ),
        )
    if options.decimal == "." and not options.day_first and not options.replace:
        return frame
    texts = (pl.String,)
    if options.replace:
        texts = (pl.String, pl.Categorical, pl.Enum)
    for column in frame:
        if options.replace and (
            column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype.is_temporal()
        ):
            _check_untouched(options, column)
    return frame.with_columns(
        [
            _canonical_column(options, column.cast(pl.String))
            for column in frame
            if column.dtype in texts
        ]
    )


def _check_untouched(options: ReadOptions, column: pl.Series) -> None:
    """Raise a DataError if a column that is not text contains a value to replace: csv would
    replace it.
    """
    words, values = missing_codes(list(cell_replacements(options.replace)))
    is_number = column.dtype.is_numeric()
    pl = polars()
    matches = column.filter(
        column.cast(pl.Float64).is_in(values) if is_number else column.cast(pl.String).is_in(words)
    )
    if len(matches):
        raise DataError(
            f"is for text, and names {matches[0]!r}, which the column {column.name!r} contains as "
            f"{column.dtype}",
            argument="replace",
            remedy="change it where the file is written, or write the file as csv",
        )


def _canonical_column(options: ReadOptions, column: pl.Series) -> pl.Series:
    pl = polars()
    cells = pl.col(column.name)
    if options.replace:
        new = cell_replacements(options.replace)
        column = column.str.strip_chars().replace_strict(
            new, default=column, return_dtype=pl.String
        )
    table = column.to_frame()
    if options.decimal == ",":
        commas = column.str.contains(COMMA)
        points = column.str.contains(_POINT)
        if commas.any() and points.any():
            raise DataError(
                f"the column {column.name!r} contains {column.filter(commas)[0]!r} and "
                f"{column.filter(points)[0]!r}: "
                "numbers with a comma and with a point; write all of them in one way"
            )
        table = table.with_columns(
            pl.when(cells.str.contains(COMMA)).then(cells.str.replace(",", ".")).otherwise(cells)
        )
    if options.day_first:
        day, month, year, time = (cells.str.extract(_DAY_FIRST, place) for place in (1, 2, 3, 4))
        date = pl.concat_str([year, month.str.zfill(2), day.str.zfill(2)], separator="-")
        date_time = (
            pl.when(time.is_null()).then(date).otherwise(pl.concat_str([date, time], separator=" "))
        )
        table = table.with_columns(
            pl.when(day.is_not_null()).then(date_time).otherwise(cells).alias(column.name)
        )
    return table.to_series()


AS_USUAL = ReadOptions()


def file_format(name: str) -> str:
    """The format of a file, by the ending of its name."""
    suffixes = Path(name).suffixes
    suffix = ""
    if suffixes:
        suffix = suffixes[-1].lower()
    if (
        suffix in (".gz", ".zst")
        and len(suffixes) > 1
        and SUFFIXES.get(suffixes[-2].lower()) in TEXT
    ):
        suffix = suffixes[-2].lower()
    if suffix in _OTHER_SPREADSHEETS:
        raise DataError(
            f"{name} is a spreadsheet of another kind; save it as .xlsx, or its sheet as csv"
        )
    if suffix == ".state":
        raise DataError(
            f"{name} is an audit state; use `metrifair merge`, or AuditState.load and audit"
        )
    if suffix not in SUFFIXES:
        raise DataError(
            f"{name} has {'no ending' if not suffix else f'the unknown ending {suffix!r}'}",
            remedy=Remedy("format", detail=f", one of {', '.join(map(repr, FORMATS))}"),
        )
    return SUFFIXES[suffix]


def write_utf8(file: str, name: str, encoding: str, copy: Path) -> None:
    """Write a text file in UTF-8, a piece at a time."""
    if file.endswith(".zst"):
        raise DataError(f"{name} is compressed, and not in UTF-8; decompress it first")
    try:
        with (
            gzip.open(file) if file.endswith(".gz") else Path(file).open("rb") as stored,
            io.TextIOWrapper(stored, encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as target,
        ):
            while piece := text.read(2**20):
                target.write(piece)
    except UnicodeError:
        remedy = Remedy("encoding", detail=", the one in which the file was saved")
        raise DataError(f"{name} is not {encoding} text", remedy=remedy) from None
    # the latter two: a compressed file that was cut short or damaged
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name} cannot be read: {error_reason(error)}") from None


def excel_sheet(file: str, name: str, options: ReadOptions) -> pl.DataFrame:
    """The sheet of a workbook, all cells as text: a column of numbers may contain some of them
    as text.
    """
    library = require("fastexcel", extra="cli", purpose="reading Excel files")
    reader = polars()
    try:
        sheets = library.read_excel(file).sheet_names
        if options.sheet is None and len(sheets) > 1:
            remedy = Remedy("sheet", detail=f", one of {', '.join(map(repr, sheets))}")
            raise DataError(f"{name} has several sheets", remedy=remedy)
        if options.sheet is not None:
            check_known("sheet", options.sheet, sheets)
        frame: pl.DataFrame = reader.read_excel(
            file,
            sheet_name=options.sheet or sheets[0],
            has_header=options.header,
            read_options={"dtypes": "string"},
            raise_if_empty=False,
        )
    except library.FastExcelError as error:
        raise DataError(
            f"{name} cannot be read as an Excel file: {str(error).splitlines()[0][:200]}"
        ) from None
    # Excel has no dates without a time.
    days = [
        column.name
        for column in frame
        if column.null_count() < len(column)
        and column.str.contains(r"^\d{4}-\d{2}-\d{2} 00:00:00$").all()
    ]
    return frame.with_columns(reader.col(days).str.head(10))
