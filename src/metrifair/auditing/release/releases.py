"""The ledger of evidence: which rows were released with which parameters, in a file beside the
evidence.

Two releases of the same rows with other parameters can show more than either. The ledger stores
hashes of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from metrifair.auditing.audit_record import AuditedRows
from metrifair.auditing.sources.state_parts import StateParts
from metrifair.errors import DataError, Remedy
from metrifair.saving.records import Record, in_one_line
from metrifair.support.arrays import Floats
from metrifair.support.files import error_reason, write_file
from metrifair.support.json_bounds import check_json

LEDGER = "metrifair-releases.json"
_LARGEST = 2**24  # bytes


class ReleaseEntry(Record):
    """A release of rows: hashes that identify the rows, and the parameters that decide what is
    shown of them.
    """

    rows: list[str]
    name: str  # of the folder or archive, without its path
    time: str
    parameters: dict[str, Any]


class ReleaseLedger(Record):
    """All releases into one folder."""

    kind: Literal["metrifair releases"] = "metrifair releases"
    version: Literal[1] = 1
    releases: list[ReleaseEntry] = msgspec.field(default_factory=list)


def row_hashes(audited: AuditedRows, parts: StateParts, files: Sequence[str]) -> list[str]:
    """Hashes that identify the rows of an audit: of the files they were read from, and of all
    scores in order.

    Neither depends on the groups, on the threshold or on other parameters.
    """
    scores = audited.sample.scores.single
    if scores is not None:
        return sorted({*files, scores_hash(scores)})
    if parts.counts is not None:
        order = np.lexsort([parts.counts.high, parts.counts.low])
        rows = parts.counts.rows[order]
        low = parts.counts.low[order]
        if parts.counts.exact:
            low = np.repeat(low, rows)
            rows = np.ones(len(low), np.int64)
        content = rows.tobytes() + low.tobytes()
    else:
        content = b""
    return sorted({*files, sha256(content).hexdigest()})


def scores_hash(scores: Floats) -> str:
    """The hash of all scores of some rows, whatever their order."""
    values = np.sort(scores.astype(np.float64) + 0.0)
    content = np.ones(len(values), np.int64).tobytes() + values.tobytes()
    return sha256(content).hexdigest()


def record_release(path: Path, entry: ReleaseEntry, *, again: bool) -> None:
    """Add a release to the ledger beside its path; a DataError if the rows were released with
    other parameters, and never with these.
    """
    place = path.expanduser().resolve().parent / LEDGER
    ledger = _read(place)
    same_rows = [earlier for earlier in ledger.releases if set(earlier.rows) & set(entry.rows)]
    other = [earlier for earlier in same_rows if earlier.parameters != entry.parameters]
    is_repeated = any(
        earlier.parameters == entry.parameters and set(entry.rows) <= set(earlier.rows)
        for earlier in same_rows
    )
    if other and not again and not is_repeated:
        differing = _different_names(other[-1].parameters, entry.parameters)
        raise DataError(
            f"the same rows were released as {other[-1].name!r} with other parameters "
            f"({', '.join(differing)}). "
            f"Two such releases can show more than either; {LEDGER} lists them",
            remedy=[
                "release them with the same parameters",
                Remedy("again", True, " after weighing what both show"),
            ],
        )
    if any(earlier.parameters == entry.parameters for earlier in same_rows):
        return
    content = msgspec.structs.replace(ledger, releases=[*ledger.releases, entry])
    place.parent.mkdir(parents=True, exist_ok=True)
    described = {
        name: msgspec.to_builtins(getattr(content, name)) for name in content.__struct_fields__
    }
    write_file(
        place,
        msgspec.json.format(msgspec.json.encode(described), indent=1) + b"\n",
    )


def _different_names(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> list[str]:
    return sorted(
        name for name in earlier.keys() | later.keys() if earlier.get(name) != later.get(name)
    )


def _read(place: Path) -> ReleaseLedger:
    """The ledger at this place, or an empty one; a DataError if it cannot be read."""
    if not place.exists():
        return ReleaseLedger()
    try:
        with place.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise DataError(f"it has more than {_LARGEST:,} bytes")
        check_json(content)
        return msgspec.json.decode(content, type=ReleaseLedger)
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read {place}, the list of earlier releases: "
            f"{in_one_line(error_reason(error))}",
            remedy="restore it from a copy, or write to another folder",
        ) from None
