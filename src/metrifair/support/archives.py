"""Zip archives and folders from strangers: all files, within bounds that are checked before
anything is unpacked.
"""

from __future__ import annotations

import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from metrifair.errors import DataError

MOST_ARCHIVE_BYTES = 2**28
"""Bytes of all files together."""
MOST_FILES = 1_000

_LARGEST_RATIO = 200  # of the files to their archive
_ALWAYS_READ = 2**24  # bytes, whatever the ratio
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

ARCHIVE_ERRORS = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    IndexError,
    NotImplementedError,  # a compression or version that Python does not have
    OverflowError,
    RuntimeError,  # encrypted
    ValueError,
)
"""What ``zipfile`` raises for archives that are damaged or forged."""


def check_bounds(sizes: Iterable[int]) -> None:
    """Raise a DataError for too many files, or too many bytes.

    >>> check_bounds([2**20, 2**28])
    Traceback (most recent call last):
    metrifair.errors.DataError: the files have 269,484,032 bytes; at most 268,435,456 are read
    """
    listed = list(sizes)
    if len(listed) > MOST_FILES:
        raise DataError(f"there are {len(listed):,} files; at most {MOST_FILES:,} are read")
    if sum(listed) > MOST_ARCHIVE_BYTES:
        raise DataError(
            f"the files have {sum(listed):,} bytes; at most {MOST_ARCHIVE_BYTES:,} are read"
        )


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their names; links are not followed."""
    names = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    sizes = [file.stat().st_size for file in names]
    check_bounds(sizes)
    content = {}
    for file, size in zip(names, sizes, strict=True):
        with file.open("rb") as stream:
            content[file.relative_to(folder).as_posix()] = stream.read(size)
    return content


def read_archive(path: Path) -> dict[str, bytes]:
    """The files of a zip archive by their names; any of ``ARCHIVE_ERRORS`` if it is damaged."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        check_bounds(entry.file_size for entry in entries)
        _check_ratio(sum(entry.file_size for entry in entries), os.fstat(file.fileno()).st_size)
        if len({entry.filename for entry in entries}) < len(entries):
            raise DataError("the archive contains two files with the same name")
        return {entry.filename: _whole_member(archive, entry) for entry in entries}


def _whole_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    content = read_member(archive, entry, entry.file_size)
    if len(content) != entry.file_size:
        raise DataError(f"{entry.filename!r} does not have the size that the archive declares")
    return content


def _check_ratio(size: int, packed: int) -> None:
    """Raise a DataError for an archive that unpacks to much more than its own bytes."""
    if size > max(_ALWAYS_READ, _LARGEST_RATIO * packed):
        raise DataError(
            f"the archive of {packed:,} bytes would unpack to {size:,}, more than {_LARGEST_RATIO} "
            "times as many"
        )


def read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> bytes:
    """A file of an archive, or its first ``limit + 1`` bytes: the size that an archive declares
    may be a lie.
    """
    if entry.compress_type not in _METHODS:
        raise DataError(
            f"{entry.filename!r} is compressed by method {entry.compress_type}, which is not read"
        )
    with archive.open(entry) as stream:
        return stream.read(limit + 1)
