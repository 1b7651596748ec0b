"""The format of an evidence folder: its manifest, and the checks of a verification as values."""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from metrifair import __version__
from metrifair.auditing.sources.state_parts import StateScalar
from metrifair.errors import DataError
from metrifair.saving.modelfile import without_repeats
from metrifair.saving.records import Record, in_one_line
from metrifair.support.archives import (
    ARCHIVE_ERRORS,
    check_bounds,
    read_archive,
    read_folder,
)
from metrifair.support.files import error_reason, replace_folder, write_file
from metrifair.support.json_bounds import check_json
from metrifair.support.provenance import Provenance

MANIFEST = "MANIFEST.json"
SIGNATURE = "MANIFEST.json.sig"
AUDIT_FILE = "audit.json"
COUNTS = "counts.state"
GROUPS = "groups.state"
PAGE = "report.html"
PRINT = "report.pdf"
README = "README.txt"

TOLERANCE = 1e-9
"""Largest relative difference between a recomputed figure and the published one: rounding of
other processors.
"""

_SMALLEST = 1e-12  # figures that are 0 but for rounding
# of the files in an archive, so that the same evidence gives the same bytes
_DATE = (1980, 1, 1, 0, 0, 0)

_TABLE = re.compile(r"counts(?:-\d{1,4})?\.state")  # files of counts

AnyRecord = TypeVar("AnyRecord")  # of a record
Files: TypeAlias = Mapping[str, bytes]
"""The content of an evidence folder or archive, by name."""


class Manifest(Record):
    """The files of the evidence, and how it was made."""

    kind: Literal["metrifair evidence"]
    version: Literal[1]
    files: dict[str, str]  # sha256 by name
    parameters: dict[str, Any]  # of the audit, those at their defaults too
    # inputs with their sha256, command, seed, versions, time, the user's statements
    provenance: Provenance
    platform: str
    crosswalks: list[str]
    min_cell: int
    score_digits: int | None  # None: scores are not rounded
    suppressed: dict[str, list[StateScalar]]  # groups that were not released, by column
    # scores of counts, by file
    grid: dict[str, list[tuple[float, float]]] = msgspec.field(default_factory=dict)
    search: Literal["", "counted", "withheld"] = ""  # for groups; "": there is none


CheckOutcome = Literal["agrees", "differs", "unchecked", "withheld"]


@dataclass(frozen=True)
class Check:
    """One check of a verification: its kind, which selects a template in ``wording.evidence``,
    and its facts.
    """

    kind: str
    outcome: CheckOutcome
    facts: Mapping[str, Any] = field(default_factory=dict)


# Forged counts and parameters can fail anywhere. DataError and msgspec's errors are ValueErrors.
ERRORS_OF_FORGED_FILES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def unusable(error: Exception) -> Check:
    """The check of files from which nothing can be computed."""
    problem = in_one_line(str(error) or type(error).__name__)
    return Check("unusable", "differs", {"problem": problem})


def check_derived(
    files: Files,
    derived: Mapping[str, bytes],
    listed: Collection[str],
    check_file: Callable[[str, bytes, bytes], Check],
) -> Iterator[Check]:
    """Every file that follows from others, against its content or as missing."""
    for name, content in derived.items():
        if name in files:
            yield check_file(name, files[name], content)
        # a file that is only listed is missing by its hash already
        elif name not in listed:
            yield Check("missing_file", "differs", {"name": name})


def check_underived(listed: Collection[str], known: Collection[str]) -> Iterator[Check]:
    """The listed files that follow from nothing."""
    for name in sorted({*listed} - {*known}):
        yield Check("underived_file", "differs", {"name": name})


def check_same_text(
    kind: str, name: str, published: bytes, derived: bytes, provenance: Provenance
) -> Check:
    """Whether a text is the derived one; another version may use other words."""
    if published == derived:
        return Check(kind, "agrees", {"name": name})
    version = provenance.versions.get("metrifair", "")
    if version != __version__:
        about = {"name": name, "theirs": version, "ours": __version__}
        return Check("page", "unchecked", about)
    return Check(kind, "differs", {"name": name})


def record_bytes(record: Record) -> bytes:
    """A record, such as a manifest, as a file with every field."""
    content = {
        name: msgspec.to_builtins(getattr(record, name)) for name in record.__struct_fields__
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def decoded(content: bytes, kind: type[AnyRecord]) -> AnyRecord:
    """A record of JSON of bounded size; a ValueError for anything else."""
    check_json(content)
    return msgspec.json.decode(content, type=kind)


def manifest_in(files: Files, kind: type[AnyRecord]) -> AnyRecord:
    """The manifest of an evidence folder, of this kind, or a DataError."""
    if MANIFEST not in files:
        raise DataError(f"there is no {MANIFEST}, so this is not evidence that metrifair wrote")
    try:
        return decoded(files[MANIFEST], kind)
    except ValueError as error:  # of msgspec, of text that is not UTF-8, and of bounds
        raise DataError(
            f"this version of metrifair cannot read {MANIFEST}: {in_one_line(error)}"
        ) from None


def counts_names(number: int) -> list[str]:
    """The names of the files of counts: of all attributes together, or of each attribute.

    >>> counts_names(3)
    ['counts.state', 'counts-2.state', 'counts-3.state']
    """
    return [
        COUNTS,
        *(f"counts-{table}.state" for table in range(2, number + 1)),
    ]


def counts_files(files: Files) -> list[bytes]:
    """The files of counts, in their order; a DataError if one is missing."""
    names = counts_names(sum(_TABLE.fullmatch(name) is not None for name in files))
    if missing := [name for name in names if name not in files]:
        raise DataError(f"there is no {missing[0]}")
    return [files[name] for name in names]


def parse_json(content: bytes) -> Any:
    """Parse JSON of bounded size; a repeated key is an error."""
    check_json(content)
    return json.loads(content, object_pairs_hook=without_repeats)


def file_hashes(files: Files) -> dict[str, str]:
    """The sha256 of each file, the manifest and its signature aside."""
    return {
        name: sha256(files[name]).hexdigest()
        for name in sorted(files)
        if name not in (MANIFEST, SIGNATURE)
    }


def write_files(path: Path, files: Files) -> None:
    """Write the files as a new folder, or as one archive where the path ends in .zip; the whole
    of it or nothing.
    """
    check_bounds(map(len, files.values()))
    if path.suffix.lower() == ".zip":
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            for name in sorted(files):
                packed.writestr(
                    zipfile.ZipInfo(name, _DATE),
                    files[name],
                    zipfile.ZIP_DEFLATED,
                )
        write_file(path, archive.getvalue())
        return
    check_place(path)
    try:
        replace_folder(path.expanduser().resolve(), files)
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error_reason(error)}; name a new folder, or a .zip file"
        ) from None


def check_place(path: Path) -> None:
    """Raise a DataError if evidence at this place would mix with other files, or replace them."""
    if path.suffix.lower() == ".zip":
        return
    try:
        present = []
        if path.is_dir():
            present = sorted(path.iterdir())
        if (path.exists() and not path.is_dir()) or (present and not _is_half(path)):
            raise DataError(
                f"{path} contains files, which would mix with the evidence; name a new folder"
            )
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error_reason(error)}; name a new folder, or a .zip file"
        ) from None


def _is_half(folder: Path) -> bool:
    """Whether a folder is evidence whose writing was interrupted: an earlier version wrote the
    manifest last.
    """
    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()]
    known = re.compile(
        rf"{_TABLE.pattern}|tables/[\w.-]+\.csv|(?:tables/)?\.metrifair-\w+-\w+\.tmp"
    )
    return all(name in (AUDIT_FILE, PAGE, PRINT, README) or known.fullmatch(name) for name in names)


def read_files(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a folder or an archive; a DataError if they cannot be read."""
    place = Path(path)
    try:
        if place.is_dir():
            return read_folder(place)
        return read_archive(place)
    except ARCHIVE_ERRORS as error:
        why = in_one_line(error_reason(error))
        raise DataError(
            f"cannot read {place}: {why}; name a folder or .zip file of evidence"
        ) from None


def different_values(
    published: Any, recomputed: Any, at: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The places at which two JSON values differ by more than rounding, with both values; None: a
    missing value.

    >>> list(different_values({"a": [1.0, 2.0], "b": "x"}, {"a": [1.0, 2.1], "b": "x"}))
    [('a[1]', 2.0, 2.1)]
    """
    if isinstance(published, dict) and isinstance(recomputed, dict):
        for name in published.keys() | recomputed.keys():
            inside = name
            if at:
                inside = f"{at}.{name}"
            if name in published and name in recomputed:
                yield from different_values(published[name], recomputed[name], inside)
            else:
                yield inside, published.get(name), recomputed.get(name)
    elif (
        isinstance(published, list)
        and isinstance(recomputed, list)
        and len(published) == len(recomputed)
    ):
        for number, pair in enumerate(zip(published, recomputed, strict=True)):
            yield from different_values(*pair, f"{at}[{number}]")
    elif not _is_equal(published, recomputed):
        yield at, published, recomputed


def in_common(left: Any, right: Any, at: str = "") -> tuple[Any, Any, list[str]]:
    """Two JSON values without the fields that only one of them has, and the places of these fields.

    >>> in_common({"a": [{"b": 1, "new": 2}]}, {"a": [{"b": 1}], "old": 3})
    ({'a': [{'b': 1}]}, {'a': [{'b': 1}]}, ['a[0].new', 'old'])
    """
    if isinstance(left, dict) and isinstance(right, dict):
        keys: list[Any] = [name for name in left if name in right]
        places = [f"{at}.{name}" if at else name for name in keys]
        lacking = sorted(f"{at}.{name}" if at else name for name in left.keys() ^ right.keys())
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        keys = list(range(len(left)))
        lacking = []
        places = [f"{at}[{place}]" for place in keys]
    else:
        return left, right, []
    pairs = [
        in_common(left[key], right[key], place) for key, place in zip(keys, places, strict=True)
    ]
    left_values, right_values = ([pair[side] for pair in pairs] for side in (0, 1))
    lacking = [*(place for *_, inside in pairs for place in inside), *lacking]
    if isinstance(left, list):
        return left_values, right_values, lacking
    return (
        dict(zip(keys, left_values, strict=True)),
        dict(zip(keys, right_values, strict=True)),
        lacking,
    )


def _is_equal(left: Any, right: Any) -> bool:
    numbers = [
        isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right)
    ]
    if all(numbers):
        return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=_SMALLEST)
    return type(left) is type(right) and bool(left == right)


def count_figures(content: Any) -> int:
    """Count the numbers in a JSON value.

    >>> count_figures({"a": [1, 2.5, None], "b": "3", "c": True})
    2
    """
    if isinstance(content, dict | list):
        inside = content.values() if isinstance(content, dict) else content
        return sum(map(count_figures, inside))
    return int(isinstance(content, int | float) and not isinstance(content, bool))
