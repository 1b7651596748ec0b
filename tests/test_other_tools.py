"""The programs of docs/other-tools.md run as they stand, where the other tool is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "other-tools.md").read_text(encoding="utf-8")
PROGRAMS = dict(
    re.findall(r"^## (\w+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
)


def said_by(name: str, folder: Path) -> list[str]:
    """What the program under a heading prints."""
    if importlib.util.find_spec(name.lower()) is None:
        pytest.skip(f"{name.lower()} is not installed: its program was not run")
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAMS[name]],
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT / "src")),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def test_the_page_has_a_program_for_each_tool() -> None:
    assert PROGRAMS.keys() == {"skorch", "Lightning", "Optuna", "MLflow"}
    for program in PROGRAMS.values():
        compile(program, "other-tools.md", "exec")
    # tests/nn/test_distributed.py runs it
    assert (ROOT / "examples" / "accelerate_ddp.py").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["skorch", "Lightning"])
def test_the_penalty_lowers_the_unfairness_of_a_network(name: str, tmp_path: Path) -> None:
    without, fair = map(float, said_by(name, tmp_path))
    assert without > 0.3
    assert fair < without


@pytest.mark.slow
def test_optuna_finds_a_trade_off(tmp_path: Path) -> None:
    found = [
        tuple(map(float, re.findall(r"[-\d.e]+", line))) for line in said_by("Optuna", tmp_path)
    ]
    assert len(found) > 1
    ordered = sorted(found, key=lambda one: one[1])
    # fairer ones are less accurate
    assert [one[0] for one in ordered] == sorted(one[0] for one in found)
    assert ordered[0][2] > ordered[-1][2]  # and of larger strength


@pytest.mark.slow
def test_mlflow_keeps_and_serves(tmp_path: Path) -> None:
    distance, model, *served = said_by("MLflow", tmp_path)
    assert 0 < float(distance) < 0.5
    assert model.startswith("FairClassifier(")
    assert len(re.findall(r"0\.\d+", "".join(served))) == 4
