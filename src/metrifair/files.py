"""A finished file takes its name at once: whoever reads the path sees the old content or the new, never half."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path

from metrifair.errors import DataError


def replace_file(target: Path, data: bytes) -> None:
    """Write the file in one step, and let the disk keep it before this returns; an OSError leaves the old file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "some.file"), b"abc")
    ...     [file.name for file in Path(folder).iterdir()]
    ['some.file']
    """
    if target.exists() and not (target.is_file() or target.is_dir()):  # else a file would take a device's place
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    # In the same folder: renaming is then atomic. Not tempfile: its files are for the owner alone.
    draft = target.with_name(f".metrifair-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    with contextlib.suppress(OSError):  # some systems cannot open a folder; the file is whole all the same
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


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
    metrifair.errors.DataError: cannot write no/such/report.html: the folder no/such does not exist; ...
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path must be the path of a file, got {path!r}")
    target = Path(path).expanduser()
    if not target.name:
        raise DataError(f"path must be the path of a file, got {os.fspath(path)!r}; add a name such as report.html")
    try:
        replace_file(target, content)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not target.parent.is_dir():
            raise DataError(
                f"cannot write {target}: the folder {target.parent} does not exist; create it, or name another path"
            ) from error
        # Some folders are there and take no file, such as /proc; the system then says "no such file".
        why = "this folder takes no files" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise DataError(f"cannot write {target}: {why}; name a path that can be written") from error
    return target
