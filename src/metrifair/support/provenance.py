"""Where results come from: files with their hashes, columns, the call, the seed, versions and the
time.

It accompanies results, and does not affect whether two results are equal. Folders, passwords and
rows are never part of it; names of files and columns are.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from hashlib import file_digest
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from metrifair import __version__
from metrifair.errors import DataError
from metrifair.support.files import write_file
from metrifair.support.json_bounds import check_json

_LIBRARIES = ("torch", "numpy")  # where they have been imported
_ROWS = (
    "states",
    "y_pred",
    "sensitive_features",
    "y_true",
    "control_features",
    "sample_weight",
    "clusters",
    "table",
    "X",
    "y",
)
_BESIDE = ("self", "title", "about", "random_state")  # recorded elsewhere
_LONGEST = 200  # characters of one argument
_LARGEST_ORIGIN = 2**20  # bytes of a file with the origin of scores
_PLACES = ("path", "ledger", "before", "after")  # named without their folders


CUTS = "cuts"
"""Among the options of reading: where numbers were cut into groups, by column."""
STATEMENTS = ("signed by", "purpose", "data", "period")
"""What every report should state and only its author knows: the fields of ``about`` that come first
and have options of commands.
"""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read, by its name without folders."""

    name: str
    size: int | None  # bytes; None: withheld, because it could give the number of rows
    sha256: str


ScoredRows: TypeAlias = Literal["held_out", "training_file", "other_file", "file"]
"""The rows that a model scored: held out from training; of its training file; of another file;
of any file.
"""


@dataclass(frozen=True)
class ScoreOrigin:
    """The model that computed the scores in a file, and the rows that it scored.

    ``metrifair train``, ``frontier`` and ``predict`` write it beside each file of predictions.
    """

    file: str  # sha256 of the file with the scores
    columns: Sequence[str]  # with scores or decisions of the model
    model: str | None  # fingerprint; None: of each fold, a model that was trained without it
    rows: ScoredRows
    sources: Sequence[SourceFile] = ()  # the files with the rows
    refit: str | None = None  # fingerprint of the model of all rows, where folds scored them


@dataclass(frozen=True)
class Provenance:
    """The origin of a result, with which an auditor can repeat it."""

    title: str = ""
    about: Mapping[str, str] = field(default_factory=dict)  # the user's statements about the data
    source: str = ""  # the input, if it is not files
    files: Sequence[SourceFile] = ()
    rows_read: int | None = None
    # rows, by a code of ``wording.provenance``
    left_out: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by role
    # how the files were read, if not by default; the ``CUTS`` of groups too
    reading: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    time: str = ""  # UTC
    # None: no model of ours is known to have computed the scores
    score_origin: ScoreOrigin | None = None

    def described(self, title: str | None, about: Mapping[str, str] | None) -> Provenance:
        """The same with a title and metadata; None leaves either as it is."""
        metadata = _checked_metadata(title, about)
        given = {"title": title, "about": about}
        changed = {name: metadata[name] for name, value in given.items() if value is not None}
        return replace(self, **changed)

    @property
    def short_hash(self) -> str:
        """The first digits of the hash of the first file, for the head of each printed page;
        empty without files.
        """
        if self.files:
            return f"{self.files[0].name} sha256 {self.files[0].sha256[:16]}"
        return ""


def _checked_metadata(title: str | None, about: Mapping[str, str] | None) -> dict[str, Any]:
    """The user's title and statements about the data, as fields of a Provenance; a DataError unless
    it is text.

    The ``STATEMENTS`` come first, whatever the case of their keys.

    >>> _checked_metadata("Hiring", {"date": "2026-09", "Purpose": "yearly review"})
    {'title': 'Hiring', 'about': {'purpose': 'yearly review', 'date': '2026-09'}}
    """
    if title is not None and not isinstance(title, str):
        raise DataError(f"title must be text, got {title!r}")
    if about is None:
        about = {}
    if not isinstance(about, Mapping) or not all(
        isinstance(part, str) for item in about.items() for part in item
    ):
        raise DataError(
            f"about must be a dict of text by text, such as {{'source': 'payroll'}}, got {about!r}"
        )
    named = {_statement_name(key): text for key, text in about.items()}
    first = {name: named[name] for name in STATEMENTS if name in named}
    return {"title": title or "", "about": first | named}


def _statement_name(key: str) -> str:
    """The key of a statement as ``STATEMENTS`` has it; any other key as it is.

    >>> _statement_name(" Signed by"), _statement_name("Source")
    ('signed by', 'Source')
    """
    name = key.strip().lower()
    if name in STATEMENTS:
        return name
    return key


def source_files(
    paths: Iterable[str | os.PathLike[str]], name: str | None = None
) -> list[SourceFile]:
    """Files with their sizes and hashes; ``name`` is the original name of a copy."""
    hashed = []
    for path in map(Path, paths):
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            hashed.append(SourceFile(name or path.name, os.fstat(file.fileno()).st_size, digest))
    return hashed


def origin_path(path: str | os.PathLike[str]) -> Path:
    """The path of the file with the ``ScoreOrigin`` of a file of predictions."""
    return Path(f"{os.fspath(path)}.origin.json")


def write_score_origin(path: str | os.PathLike[str], **facts: Any) -> None:
    """Write the origin of a file of predictions beside it; ``facts`` are fields of
    ``ScoreOrigin``.
    """
    (file,) = source_files([path])
    origin = ScoreOrigin(file=file.sha256, **facts)
    write_file(origin_path(path), msgspec.json.format(msgspec.json.encode(origin)) + b"\n")


def read_score_origin(
    path: str | os.PathLike[str], files: Sequence[SourceFile]
) -> ScoreOrigin | None:
    """The origin of the scores in a file; None if nothing is known, or the file was changed
    since.
    """
    beside = origin_path(path)
    if len(files) != 1 or not beside.is_file() or beside.stat().st_size > _LARGEST_ORIGIN:
        return None
    try:
        content = beside.read_bytes()
        check_json(content)
        origin = msgspec.json.decode(content, type=ScoreOrigin)
    except (OSError, ValueError):
        return None
    if origin.file == files[0].sha256:
        return origin
    return None


def with_files(origins: Iterable[Provenance], paths: Iterable[str]) -> list[Provenance]:
    """The provenance of audits, with the files of counts, which record none; JSON has its own."""
    return [
        origin
        if origin.files or path.endswith(".json")
        else replace(origin, files=source_files([path]))
        for origin, path in zip(origins, paths, strict=True)
    ]


def distinct_files(origins: Iterable[Provenance]) -> list[SourceFile]:
    """All files that were read, each once."""
    return list(dict.fromkeys(file for origin in origins for file in origin.files))


def names_of_files(paths: Iterable[str | os.PathLike[str]], taken: Iterable[str] = ()) -> list[str]:
    """Names of audits in files: without folders and endings, and numbered if the name is ``taken``.

    >>> names_of_files(["may/all.json", "june/all.json", "july.state"])
    ['all', 'all 2', 'july']
    """
    return distinct_names([Path(path).stem for path in paths], taken)


def distinct_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, numbered from 2 where a name is ``taken`` or occurs before.

    >>> distinct_names(["look 2", "look 3", "look 3"], taken=["look 2"])
    ['look 2 2', 'look 3', 'look 3 2']
    """
    wanted = list(names)
    distinct = []
    used = {*taken}
    for name in wanted:
        numbered = (f"{name} {number}" for number in count(2))
        free = name
        if name in used:
            free = next(new for new in numbered if new not in used and new not in wanted)
        distinct.append(free)
        used.add(free)
    return distinct


def made_now() -> dict[str, Any]:
    """The versions that run, and the time in UTC; ``SOURCE_DATE_EPOCH`` fixes it, as it does
    for builds.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    versions = {"metrifair": __version__, "Python": sys.version.split()[0]} | {
        name: str(sys.modules[name].__version__) for name in _LIBRARIES if name in sys.modules
    }
    return {"versions": versions, "time": now.strftime("%Y-%m-%d %H:%M:%S UTC")}


def call_text(function: Callable[..., Any], /, *given: object, **named: object) -> str:
    """A call as one would type it, without rows and folders; arguments at their defaults are
    omitted.

    >>> def audit_file(path, *, score, group=None, weights=(), sample_weight=None): ...
    >>> call_text(audit_file, "my/scores.csv", score="p", group=["a"], weights=(), sample_weight=[1, 2])
    "audit_file('scores.csv', score='p', group=['a'], sample_weight=...)"
    """
    signature = inspect.signature(function)
    parts = []
    for name, value in signature.bind_partial(*given, **named).arguments.items():
        parameter = signature.parameters[name]
        if name in _BESIDE:
            continue
        if _is_default(value, parameter.default):
            continue
        text = _argument_text(name, value)
        parts.append(
            text if parameter.kind is parameter.POSITIONAL_OR_KEYWORD else f"{name}={text}"
        )
    return f"{function.__qualname__.rpartition('<locals>.')[2]}({', '.join(parts)})"


_PLAIN = (str, int, float, tuple, list, dict, type(None))


def _is_default(value: object, default: object) -> bool:
    return value is default or (
        type(value) is type(default) and isinstance(value, _PLAIN) and value == default
    )


def _argument_text(name: str, value: object) -> str:
    """The value of an argument as text; of anything but plain values, records and estimators,
    its name or its type.
    """
    if name in _ROWS and not isinstance(value, str):  # a string names a column
        return "..."
    if name in _PLACES and isinstance(value, str | os.PathLike):
        value = Path(value).name
    if isinstance(value, _PLAIN) or hasattr(value, "get_params"):
        text = " ".join(repr(value).split())
    # a record of options
    elif is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "name"):
        options = (
            (part.name, getattr(value, part.name), part.default)
            for part in fields(value)
            if part.init
        )
        listed = [
            f"{key}={_argument_text(key, item)}"
            for key, item, default in options
            if not _is_default(item, default)
        ]
        text = f"{type(value).__name__}({', '.join(listed)})"
    else:
        text = repr(getattr(value, "name", f"<{type(value).__name__}>"))
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}..."
