"""A messy file of loans, and a studio with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.studio.driver import Studio

pytest.importorskip("uvicorn", reason="uvicorn is in the extra studio")


@pytest.fixture(scope="session")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loans as they come: gaps, ids, markup and formulas as text, scores and decisions of a model."""
    rng = np.random.default_rng(0)
    n = 1_600
    sex, town = rng.integers(2, size=n), rng.integers(4, size=n)
    income = rng.normal(30 + 6 * sex, 8, n).round(1)
    score = 1 / (1 + np.exp((32 - income) / 8))
    repaid = income + rng.normal(0, 8, n) > 32
    lines = ["number,income,town,sex,score,decision,repaid"]
    for row in range(n):
        told = [
            f"P{row:04}",
            "" if row % 13 == 0 else str(income[row]),
            ["north", "south", "=east", "<b>west</b>"][town[row]],
            "N/A" if row % 97 == 0 else ["women", "men"][sex[row]],
            f"{score[row]:.4f}",
            "Approved" if score[row] > 0.5 else "Declined",
            "yes" if repaid[row] else "no",
        ]
        lines.append(",".join(told))
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def studio(loans: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with the loans, for all tests of a module."""
    folder = tmp_path_factory.mktemp("studio")
    running = Studio(str(loans), cwd=folder, kept=folder / "kept")
    yield running
    said = running.stop()
    assert "Traceback" not in said
    assert [path.name for path in folder.iterdir() if path.name.startswith("metrifair-studio")] == []
