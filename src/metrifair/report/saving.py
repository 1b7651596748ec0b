"""Reports and pictures written in one step, with an error that says what is wrong with the path."""

from __future__ import annotations

import os
from pathlib import Path

from metrifair.errors import DataError
from metrifair.files import replace_file


def save(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the content under this path, in one step, and return the path.

    Raises
    ------
    DataError
        If the folder is missing or nothing can be written there; an older file is then left as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Path(folder, "report.html"), b"abc").read_bytes()
    b'abc'
    >>> save("no/such/folder/report.html", b"abc")
    Traceback (most recent call last):
    metrifair.errors.DataError: cannot write no/such/folder/report.html: the folder no/such/folder does not exist; ...
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path must be the path of a file, got {path!r}")
    target = Path(path).expanduser()
    if not target.name:
        raise DataError(f"path must be the path of a file, got {os.fspath(path)!r}; add a name such as report.html")
    try:
        replace_file(target, content)
    except OSError as error:
        if not target.parent.exists():  # /proc, too, says that there is no such file
            raise DataError(
                f"cannot write {target}: the folder {target.parent} does not exist; create it, or name another path"
            ) from error
        if isinstance(error, FileNotFoundError):
            raise DataError(
                f"cannot write {target}: no file can be put into the folder {target.parent}; name another path"
            ) from error
        raise DataError(f"cannot write {target}: {error.strerror or error}; name a path that can be written") from error
    return target
