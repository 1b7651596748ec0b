"""People in small files, and the command line called on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from metrifair.cli import main

N = 240


def texts_of(figures: Any) -> list[str]:
    """The sentences of the notes in the JSON of a frontier."""
    return [note["text"] for note in figures["notes"]]


@pytest.fixture(scope="session")
def people() -> pl.DataFrame:
    """Raw columns as they come: numbers with gaps, names, codes, dates as text, an id."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=N)
    income = rng.normal(30 + 8 * sex, 6, N).round(1)
    town = np.array(["north", "south", "=east", "<b>west</b>"])[rng.integers(4, size=N)]
    hired = income + rng.normal(0, 4, N) > 34
    return pl.DataFrame(
        {
            "number": [f"P{k:04}" for k in range(N)],
            "income": [None if k % 13 == 0 else float(value) for k, value in enumerate(income)],
            "town": town,
            "code": [f"0{k % 4}" for k in range(N)],
            "member": rng.random(N) < 0.5,
            "sex": np.where(sex == 1, "men", "women"),
            "hired": np.where(hired, "yes", "no"),
            "wage": (income * 100 + rng.normal(0, 50, N)).round(2),
        }
    )


@pytest.fixture
def csv(people: pl.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    people.write_csv(path)
    return path


@pytest.fixture
def call() -> Callable[..., Result]:
    """The command line in this process."""

    def run(*arguments: object, **options: Any) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], **options)

    return run


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line in a process of its own, in a folder of its own."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "metrifair", *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            **options,
        )

    return run
