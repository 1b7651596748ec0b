"""Names of a million characters: refused in words by every entry point, before any row repeats
them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metrifair import DataError, FairClassifier, audit, unfairness
from tests.expected_errors import Refusals

LONGEST_NAME = 10_000

_SCRIPT = """
import sys, warnings
from pathlib import Path
import numpy as np, polars as pl
from metrifair import AuditOptions, AuditState, DataError, audit, audit_file, audit_table, unfairness

rows, path = 600, Path(sys.argv[2])
long = "x" * 1_000_000
names = [long if row % 100 == 0 else "ab"[row % 2] for row in range(rows)]
other = ["cd"[row % 2] for row in range(rows)]
score = np.linspace(0, 1, rows)
table = pl.DataFrame({"p": score, "g": names, "h": other})
fast = {"resamples": 0, "permutations": 0}
memory, beyond = AuditOptions(**fast), AuditOptions(**fast, in_memory_rows=0)
people = {"g": names, "h": other}
state = AuditState(score_range=(0, 1))
table.write_csv(path)
calls = {
    "audit": lambda: audit(None, score, sensitive_features=names, options=memory),
    "crossed": lambda: audit(None, score, sensitive_features=people, intersectional=True, options=memory),
    "strata": lambda: audit(None, score, sensitive_features=other, control_features=names, options=memory),
    "file": lambda: audit_file(path, score="p", group="g", options=memory),
    "file by strata": lambda: audit_file(path, score="p", group="h", control="g", options=memory),
    "file beyond memory": lambda: audit_file(path, score="p", group="g", options=beyond),
    "table": lambda: audit_table(table, score="p", group="g", options=memory),
    "table beyond memory": lambda: audit_table(table, score="p", group="g", options=beyond),
    "state": lambda: state.add(None, score, sensitive_features=names),
    "unfairness": lambda: unfairness(None, score, sensitive_features=names),
    "crossed unfairness": lambda: unfairness(None, score, sensitive_features=people, intersectional=True),
}


def peak():
    # ru_maxrss would include the process that started this one
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])


before = peak()
try:
    calls[sys.argv[1]]()
except DataError as error:
    assert "1,000,000 characters" in str(error) and len(str(error)) < 1_000, str(error)[:200]
else:
    raise AssertionError("not refused")
used = (peak() - before) / 1024
assert used < 300, f"{used:.0f} MB"
"""
ENTRIES = [
    *(
        "audit",
        "crossed",
        "strata",
        "file",
        "file by strata",
        "file beyond memory",
        "table",
        "table beyond memory",
    ),
    *("state", "unfairness", "crossed unfairness"),
]


@pytest.mark.parametrize(
    "entry",
    [
        entry
        if entry in ("file", "file by strata")
        else pytest.param(entry, marks=pytest.mark.extended)
        for entry in ENTRIES
    ],
)
def test_a_name_of_a_million_characters_is_refused_in_little_memory(
    entry: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _SCRIPT, entry, str(tmp_path / "people.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("kind", [list, np.array])
def test_audits_training_and_unfairness_have_one_limit(kind: type, refused: Refusals) -> None:
    score = np.linspace(0, 1, 60)
    for length, accepted in ((LONGEST_NAME, True), (LONGEST_NAME + 1, False)):
        names = kind(["x" * length, "a"] * 30)
        calls = (
            lambda names=names: audit(None, score, sensitive_features=names),
            lambda names=names: unfairness(None, score, sensitive_features=names),
            lambda names=names: FairClassifier(model="mlp").fit(
                score[:, None], score > 0.5, sensitive_features=names
            ),
        )
        for call in calls[:2] if accepted else calls:
            if accepted:
                call()
                continue
            with refused(DataError):
                call()
