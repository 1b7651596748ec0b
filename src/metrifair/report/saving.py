"""A finished file takes its name at once: whoever reads the path sees the old content or the new, never half."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from metrifair.errors import DataError


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
    # Not tempfile: its files are for the owner alone, and a report is there to be shared.
    temporary = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
        os.replace(temporary, target)  # noqa: PTH105
    except FileNotFoundError as error:
        raise DataError(
            f"cannot write {target}: the folder {target.parent} does not exist; create it, or name another path"
        ) from error
    except OSError as error:
        raise DataError(f"cannot write {target}: {error.strerror or error}; name a path that can be written") from error
    finally:
        _remove(temporary)
    return target


def _remove(temporary: Path) -> None:
    """Remove what an unsuccessful write left; a folder that forbids it has already been complained about."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError:
        return
