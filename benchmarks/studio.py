"""The studio with a file of a million rows: how long a person waits for the preview and for the
page of the audit.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import Claim, print_table, shrunk
from metrifair.studio.commands import TableFile
from metrifair.studio.session import Session

ROWS = 1_000_000
ROLES = {"score": "score", "label": "repaid", "positive": "yes", "group": ["sex"]}
AUDIT = {
    "group": ["sex"],
    "threshold": "",
    "criterion": "",
    "standard": "",
    "intersectional": False,
}


def write_loans(path: Path, rows: int) -> None:
    """A csv file with an id, numbers, text, scores and labels."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=rows)
    income = rng.normal(30 + 6 * sex, 8, rows).round(1)
    columns = {
        "number": np.arange(rows),
        "income": income,
        "age": rng.integers(18, 90, rows),
        "town": rng.choice(["north", "south", "east", "west"], rows),
        "sex": np.where(sex, "men", "women"),
        "score": 1 / (1 + np.exp((32 - income) / 8 + rng.normal(0, 0.1, rows))),
        "repaid": np.where(income + rng.normal(0, 8, rows) > 32, "yes", "no"),
    }
    pl.DataFrame(columns).write_csv(path)


async def waiting_time(session: Session, start: Callable[[], None]) -> tuple[float, float]:
    """Seconds until a step is finished, and the processor time of its processes."""
    began, before = time.perf_counter(), _processor_seconds()
    start()
    while session.running is not None:
        await asyncio.sleep(0.01)
    assert session.failed == {}, session.failed
    return time.perf_counter() - began, _processor_seconds() - before


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def measured(folder: Path, file: Path) -> list[tuple[str, float, tuple[float, float]]]:
    """Each step with the most seconds that it may take, and what it took."""
    session = Session(folder, folder / "models.ledger", TableFile(file, file.name))
    preview = await waiting_time(session, lambda: session.inspect(session.table, {}))
    session.confirm(ROLES)
    page = await waiting_time(session, lambda: session.start("audit", AUDIT))
    return [("preview", 2.0, preview), ("page of the audit", 5.0, page)]


def main() -> None:
    rows, claims = shrunk(ROWS), []
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "loans.csv")
        write_loans(file, rows)
        for step, most, (waited, used) in asyncio.run(measured(Path(made), file)):
            shown = f"{waited:.1f} s, {used:.1f} s of processor time"
            claims.append(
                Claim(f"{step}, {rows:,} rows of csv", shown, f"<= {most:g} s", waited <= most)
            )
    print_table("The studio, from a click to the result", claims)


if __name__ == "__main__":
    main()
