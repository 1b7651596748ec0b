"""Content of a published file from its address, saved in a folder only when it is whole and right."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from metrifair.datasets.rawfile import RawFile
from metrifair.errors import DataError
from metrifair.progress import Progress, megabytes

ATTEMPTS = 3
TIMEOUT = 30.0  # seconds without a byte
ARCHIVE_LIMIT = 64 << 20  # bytes; the largest published archive has less than one tenth of it
_BLOCK = 1 << 16


class _DownloadError(Exception):
    """Why no content came; `download` adds file, address and folder."""


class _CutOffError(_DownloadError):
    """The connection ended too early: what came is kept, and the rest is worth asking for."""


def download(raw: RawFile, folder: Path) -> bytes:
    """Uncompressed content of the file from its published address, saved as ``folder / raw.name``.

    The bytes go to a temporary file of a name of its own in the same folder, which takes the final name only after
    the sha256 was right. So an interrupted download leaves nothing, and two processes may download at once. A
    connection that breaks off is taken up again where it ended, if the server can, ``ATTEMPTS`` times in all.

    Raises
    ------
    DataError
        If the address cannot be reached, sends something else, or the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = Path(folder, "published.txt")
    ...     _ = source.write_bytes(b"abc")
    ...     download(RawFile("three.txt", 3, digest, source.as_uri()), Path(folder, "cache"))
    b'abc'
    """
    temporary = folder / f".{raw.name}.{uuid.uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("x+b") as stream:
            _fetch(raw, stream)
            content = _content(raw, stream)
            _check(raw, content)
            if raw.member:
                stream.seek(0)
                stream.truncate()
                stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(folder / raw.name)
    except _DownloadError as error:
        raise DataError(
            f"{raw.name} was not found and could not be downloaded from {raw.address}: {error}; fetch it by hand and "
            f"put {raw.name} into {folder}, or name the folder that has it by data_home= or METRIFAIR_DATA"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot save {raw.name} from {raw.address} in {folder}: {error.strerror or error}; "
            "name a folder that can be written by data_home=, or one that has the file by METRIFAIR_DATA"
        ) from error
    finally:
        _remove(temporary)
    return content


def _remove(temporary: Path) -> None:
    """Remove what an unsuccessful download left; a folder that forbids it has already been complained about."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError:
        return


def _fetch(raw: RawFile, stream: BinaryIO) -> None:
    """Write what the address sends, in as many attempts as allowed."""
    if not raw.url.startswith(("https://", "http://", "file://")):
        raise _DownloadError("only https, http and file addresses are understood")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _receive(raw, stream)
        except _CutOffError as error:
            if attempt == ATTEMPTS:
                raise _DownloadError(f"{error}, {ATTEMPTS} times") from error
        else:
            return


def _receive(raw: RawFile, stream: BinaryIO) -> None:
    """Append to the stream what it still lacks, or start it again where the server cannot continue."""
    start = stream.tell()
    limit = ARCHIVE_LIMIT if raw.member else raw.size
    headers = {"User-Agent": "metrifair"} | ({"Range": f"bytes={start}-"} if start else {})
    with _response(urllib.request.Request(raw.url, headers=headers)) as response:
        if start and not (response.headers.get("Content-Range") or "").startswith(f"bytes {start}-"):
            start = 0
            stream.seek(0)
            stream.truncate()
        length = response.headers.get("Content-Length") or ""
        total = start + int(length) if length.isdigit() else None
        with Progress(raw.name, total, text=megabytes) as progress:
            for block in _blocks(response):
                if stream.tell() + len(block) > limit:
                    raise _DownloadError(f"it sends more than {limit} bytes, so it is not what was published")
                stream.write(block)
                progress.show(stream.tell())
    if total is not None and stream.tell() < total:
        raise _CutOffError(f"the connection broke off after {stream.tell()} of {total} bytes")


@contextmanager
def _response(request: urllib.request.Request) -> Iterator[http.client.HTTPResponse]:
    """The answer to a request; only what goes wrong before the first byte is an error here."""
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        raise _DownloadError(f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _DownloadError(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _CutOffError(f"the connection broke off before an answer ({_reason(error)})") from error
    with response:
        yield response


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Blocks of the body until it ends or breaks; errors of the network are told apart from those of the disk here."""
    while True:
        try:
            block = response.read1(_BLOCK) if hasattr(response, "read1") else response.read(_BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise _CutOffError(f"the connection broke off ({_reason(error)})") from error
        if not block:
            return
        yield block


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _content(raw: RawFile, stream: BinaryIO) -> bytes:
    """The file out of what was downloaded: all of it, or the member of the archive, never more than its size."""
    stream.seek(0)
    if not raw.member:
        return stream.read()
    archive = stream
    try:
        for depth, name in enumerate(raw.member, start=1):
            limit = raw.size if depth == len(raw.member) else ARCHIVE_LIMIT
            archive = io.BytesIO(_member(archive, name, limit))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # RuntimeError: encrypted
        raise _DownloadError(f"what came is not a whole zip archive ({error})") from error
    return archive.getvalue() if isinstance(archive, io.BytesIO) else archive.read()


def _member(archive: BinaryIO, name: str, limit: int) -> bytes:
    """Content of the archive's member of this name, in whatever folder of the archive."""
    with zipfile.ZipFile(archive) as opened:
        found = [info for info in opened.infolist() if info.filename.rsplit("/", 1)[-1] == name]
        if not found:
            held = ", ".join(sorted(opened.namelist())[:10]) or "nothing"
            raise _DownloadError(f"the archive has no {name}, it holds {held}")
        with opened.open(found[0]) as stream:
            content = stream.read(limit + 1)  # the size an archive declares may be a lie
    if len(content) > limit:
        raise _DownloadError(f"{name} in the archive has more than {limit} bytes, so it is not what was published")
    return content


def _check(raw: RawFile, content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != raw.sha256:
        raise _DownloadError(
            f"what came is not the published file, expected {raw.size} bytes with sha256 {raw.sha256}, "
            f"got {len(content)} bytes with sha256 {digest}"
        )
