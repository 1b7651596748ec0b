"""Atomic writes: a reader of the path sees the old content or the new, never half."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from metrifair.errors import DataError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMULA = r"^[=+\-@\t\r]"
"""The beginning of a cell that a spreadsheet would run as a formula."""

_ABANDONED = 86_400.0  # seconds after which a draft counts as abandoned, if there are no locks


def replace_file(target: Path, data: bytes) -> None:
    """Write the file in one step, and let the disk keep it before this returns; an OSError leaves
    the old file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "some.file"), b"abc")
    ...     [file.name for file in Path(folder).iterdir()]
    ['some.file']
    """
    # else a file would take a device's place
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    prefix = _draft_prefix(target)
    _remove_abandoned(target.parent, prefix)
    file, draft = _new_draft(target.parent, prefix)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, draft)
            if fcntl is None:
                file.close()  # Windows renames no file that is open
            # before the lock is released: otherwise another writer could remove it as abandoned
            draft.replace(target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    _sync_folder(target.parent)


def replace_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder that appears with all its files or not at all; an OSError leaves the old one.

    Files are named by their paths in the folder. A folder that already has files is replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     replace_folder(Path(parent, "new"), {"a.txt": b"abc", "more/b.txt": b""})
    ...     sorted(path.name for path in Path(parent).rglob("*"))
    ['a.txt', 'b.txt', 'more', 'new']
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = _draft_prefix(target)
    for abandoned in target.parent.glob(f"{prefix}*.folder"):
        if _is_abandoned(abandoned):
            shutil.rmtree(abandoned, ignore_errors=True)
    draft = target.parent / f"{prefix}{secrets.token_hex(8)}.folder"
    draft.mkdir()
    try:
        with _locked_folder(draft):
            for name, content in files.items():
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                with (draft / name).open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            for folder in {(draft / name).parent for name in files} | {draft}:
                _sync_folder(folder)
            if target.is_dir() and any(target.iterdir()):
                old = target.parent / f"{prefix}{secrets.token_hex(8)}.folder"
                target.rename(old)
                draft.rename(target)
                shutil.rmtree(old, ignore_errors=True)
            else:
                if fcntl is None and target.is_dir():
                    target.rmdir()  # Windows renames nothing onto a folder
                draft.rename(target)
        _sync_folder(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder while its writer lives, where the system can do so."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_abandoned(folder: Path) -> bool:
    """Whether the writer of a draft has ended."""
    try:
        if time.time() - folder.stat().st_mtime > _ABANDONED:
            return True
        if fcntl is None:
            return False
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _sync_folder(folder: Path) -> None:
    """Let the disk keep the names in a folder; some systems cannot open one, and its files are
    whole all the same.
    """
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _draft_prefix(target: Path) -> str:
    """The beginning of the names of a path's drafts, which stand beside it."""
    return f".metrifair-{sha256(target.name.encode()).hexdigest()[:16]}-"


def _new_draft(folder: Path, prefix: str) -> tuple[BinaryIO, Path]:
    """A new draft, locked, so that it differs from one whose writer was killed."""
    while True:
        # In the same folder: renaming is then atomic. Not tempfile: its files are for the owner
        # alone.
        draft = folder / f"{prefix}{secrets.token_hex(8)}.tmp"
        file = draft.open("xb")
        if _lock(file) and os.fstat(file.fileno()).st_nlink:
            return file, draft
        file.close()  # between these two lines, another writer removed it as abandoned


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove drafts of the same file whose writers have ended: the system releases the lock of
    a process that ends.
    """
    for draft in folder.glob(f"{prefix}*.tmp"):
        with contextlib.suppress(OSError), draft.open("r+b") as file:
            if fcntl:
                abandoned = _lock(file)
            else:
                abandoned = time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED
            if abandoned:
                draft.unlink()


def _lock(file: BinaryIO) -> bool:
    """Lock the file; return whether that succeeded, which it always does without locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return os.fstat(file.fileno()).st_size == 0
    return True


def file_path(path: object) -> Path:
    """The path of a file to write; a DataError for anything that is none.

    >>> file_path("report.html").name
    'report.html'
    >>> file_path(None)
    Traceback (most recent call last):
    metrifair.errors.DataError: path must be the path of a file, got None
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path must be the path of a file, got {path!r}")
    target = Path(path)
    if not target.name:
        raise DataError(
            f"path must be the path of a file, got {os.fspath(path)!r}; add a name such as "
            "report.html"
        )
    return target


def write_file(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the content under the path that a user named, in one step, and return the path.

    Raises
    ------
    DataError
        If nothing can be written there; an older file is then left as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder, "report.html"), b"abc").read_bytes()
    b'abc'
    >>> write_file("no/such/report.html", b"abc")
    Traceback (most recent call last):
    metrifair.errors.DataError: cannot write no/such/report.html: the folder no/such does not
    exist; ...
    """
    target = file_path(path)
    try:
        target = target.expanduser()
        replace_file(target.resolve(), content)  # the target of a link, not the link
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, no such user
        if isinstance(error, FileNotFoundError) and not target.parent.is_dir():
            raise DataError(
                f"cannot write {target}: the folder {target.parent} does not exist; create it, or "
                "name another path"
            ) from error
        # Some folders exist and accept no file, such as /proc; the error is then "no such file".
        if isinstance(error, FileNotFoundError):
            why = "this folder takes no files"
        else:
            why = error_reason(error)
        raise DataError(f"cannot write {target}: {why}; name a path that can be written") from error
    return target


def error_reason(error: Exception) -> str:
    """The system's error message, without the path."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def csv_bytes(columns: Mapping[str, Sequence[object]]) -> bytes:
    r"""Columns as a csv file, the same with any library of tables; None is an empty cell, and no
    text is a formula.

    >>> csv_bytes({"group": ["=1+1", "m"], "rate": [0.5, None]})
    b"group,rate\n'=1+1,0.5\nm,\n"
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        rows.writerow(
            f"'{cell}" if isinstance(cell, str) and re.match(FORMULA, cell) else cell
            for cell in row
        )
    return text.getvalue().encode()


def write_json(content: Mapping[str, object], path: str | os.PathLike[str] | None = None) -> str:
    """The content as strict JSON text, without NaN; also written to ``path``."""
    text = json.dumps(content, allow_nan=False, indent=1)
    if path is not None:
        write_file(path, text.encode())
    return text
