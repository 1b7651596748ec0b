"""The format of an evidence folder: its manifest, and the checks of a verification as values."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from metrifair.auditing.state_file import Scalar
from metrifair.errors import DataError
from metrifair.saving.modelfile import without_repeats
from metrifair.saving.records import Record
from metrifair.support.files import error_reason, write_file
from metrifair.support.provenance import Provenance

MANIFEST, SIGNATURE = "MANIFEST.json", "MANIFEST.json.sig"
AUDIT, COUNTS, PAGE, PRINT, README = "audit.json", "counts.state", "report.html", "report.pdf", "README.txt"

TOLERANCE = 1e-9
"""Largest relative difference between a recomputed figure and the published one: rounding of other processors."""

_SMALLEST = 1e-12  # figures that are 0 but for rounding
_MOST_BYTES = 2**31  # of all files together
_DATE = (1980, 1, 1, 0, 0, 0)  # of the files in an archive, so that the same evidence gives the same bytes

Files: TypeAlias = Mapping[str, bytes]
"""The content of an evidence folder or archive, by name."""


class Manifest(Record):
    """The files of the evidence, and how it was made."""

    kind: Literal["metrifair evidence"]
    version: Literal[1]
    files: dict[str, str]  # sha256 by name
    parameters: dict[str, Any]  # of the audit, those at their defaults too
    provenance: Provenance  # inputs with their sha256, command, seed, versions, time, the user's statements
    platform: str
    crosswalks: list[str]
    min_cell: int
    score_digits: int | None  # None: scores are not rounded
    suppressed: dict[str, list[Scalar]]  # groups and strata that were not released, by column


Outcome = Literal["agrees", "differs", "unchecked", "withheld"]


@dataclass(frozen=True)
class Check:
    """One check of a verification: its kind, which selects a template in ``wording.evidence``, and its facts."""

    kind: str
    outcome: Outcome
    facts: Mapping[str, Any] = field(default_factory=dict)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as a file, with every field."""
    content = {name: msgspec.to_builtins(getattr(manifest, name)) for name in manifest.__struct_fields__}
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def manifest_in(files: Files) -> Manifest:
    """The manifest of an evidence folder, or a DataError."""
    if MANIFEST not in files:
        raise DataError(f"there is no {MANIFEST}, so this is not evidence that metrifair wrote")
    try:
        return msgspec.json.decode(files[MANIFEST], type=Manifest)
    except msgspec.DecodeError as error:
        raise DataError(f"this version of metrifair cannot read {MANIFEST}: {error}") from None


def parse_json(content: bytes) -> Any:
    """Parse JSON; a repeated key is an error."""
    return json.loads(content, object_pairs_hook=without_repeats)


def file_hashes(files: Files) -> dict[str, str]:
    """The sha256 of each file, the manifest and its signature aside."""
    return {name: sha256(files[name]).hexdigest() for name in sorted(files) if name not in (MANIFEST, SIGNATURE)}


def write_files(path: Path, files: Files) -> None:
    """Write the files as a new folder, or as one archive where the path ends in .zip."""
    if path.suffix.lower() == ".zip":
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            for name in sorted(files):
                packed.writestr(zipfile.ZipInfo(name, _DATE), files[name], zipfile.ZIP_DEFLATED)
        write_file(path, archive.getvalue())
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise DataError(f"{path} contains files, which would mix with the evidence; name a new folder")
        for folder in {(path / name).parent for name in files}:
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error_reason(error)}; name a new folder, or a .zip file") from None
    for name, content in files.items():
        write_file(path / name, content)


def read_files(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a folder or an archive; a DataError if they cannot be read."""
    place = Path(path)
    try:
        if place.is_dir():
            names = [file for file in place.rglob("*") if file.is_file()]
            _check_size(sum(file.stat().st_size for file in names))
            return {file.relative_to(place).as_posix(): file.read_bytes() for file in names}
        with zipfile.ZipFile(place) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check_size(sum(entry.file_size for entry in entries))
            if len({entry.filename for entry in entries}) < len(entries):
                raise DataError(f"{place} contains two files with the same name")
            return {entry.filename: archive.read(entry) for entry in entries}
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DataError(f"cannot read {place}: {error_reason(error)}; name a folder or .zip file of evidence") from None


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise DataError(f"the files have {size:,} bytes; evidence may have at most {_MOST_BYTES:,}")


def different_values(published: Any, recomputed: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which two JSON values differ by more than rounding, with both values; None: a missing value.

    >>> list(different_values({"a": [1.0, 2.0], "b": "x"}, {"a": [1.0, 2.1], "b": "x"}))
    [('a[1]', 2.0, 2.1)]
    """
    if isinstance(published, dict) and isinstance(recomputed, dict):
        for name in published.keys() | recomputed.keys():
            inside = f"{at}.{name}" if at else name
            if name in published and name in recomputed:
                yield from different_values(published[name], recomputed[name], inside)
            else:
                yield inside, published.get(name), recomputed.get(name)
    elif isinstance(published, list) and isinstance(recomputed, list) and len(published) == len(recomputed):
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
        keys, lacking = list(range(len(left))), []
        places = [f"{at}[{place}]" for place in keys]
    else:
        return left, right, []
    pairs = [in_common(left[key], right[key], place) for key, place in zip(keys, places, strict=True)]
    left_values, right_values = ([pair[side] for pair in pairs] for side in (0, 1))
    lacking = [*(place for *_, inside in pairs for place in inside), *lacking]
    if isinstance(left, list):
        return left_values, right_values, lacking
    return dict(zip(keys, left_values, strict=True)), dict(zip(keys, right_values, strict=True)), lacking


def _is_equal(left: Any, right: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right)]
    if all(numbers):
        return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=_SMALLEST)
    return type(left) is type(right) and bool(left == right)


def count_figures(content: Any) -> int:
    """Count the numbers in a JSON value.

    >>> count_figures({"a": [1, 2.5, None], "b": "3", "c": True})
    2
    """
    if isinstance(content, dict | list):
        inside: Sequence[Any] = list(content.values()) if isinstance(content, dict) else content
        return sum(map(count_figures, inside))
    return int(isinstance(content, int | float) and not isinstance(content, bool))
