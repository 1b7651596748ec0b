"""Train, choose and take away; an interruption loses nothing."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.studio.driver import ROLES, Studio
from tests.studio.test_studio_steps import figures

pytestmark = pytest.mark.slow  # every round starts a process that imports torch
TRAINING = {"criterion": "statistical_parity", "utility": "auto", "minutes": "20", "families": ["linear"]}


def test_a_kill_loses_no_finished_model_and_the_shown_commands_compute_the_same(loans: Path, tmp_path: Path) -> None:
    roles = ROLES | {"ignore": ["decision"]}
    first = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    first.idle()
    first.run("look", missing=["N/A"])
    first.run("roles", **roles)
    first.ask("POST", "/run/train", json.dumps(TRAINING))
    state = first.wait(lambda state: len([one for one in state["rounds"] if one["seconds"] is not None]) >= 1)
    assert state["running"] == "train"
    assert first.state()["rounds"] == state["rounds"] or first.state()["done"]["train"]  # a reload shows the same
    first.stop(signal.SIGKILL)

    second = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    second.idle()
    second.run("look", missing=["N/A"])
    second.run("roles", **roles)
    before = models(second.state()["ledger"])
    assert before >= 3
    state = second.run("train", **TRAINING)
    assert state["failed"] == {}
    assert len(state["rounds"]) == 3
    assert models(state["ledger"]) == 25  # all usual strengths, those of the first studio among them
    state = second.run("choose", max_unfairness="0.2")
    assert state["failed"] == {}
    done = state["done"]["choose"]
    assert {"model.metrifair", "model.onnx", "card.md", "held-out.csv", "held-out.html"} <= set(done["files"])
    taken = {name: second.ask("GET", f"/take/choose/{name}?download")[2] for name in done["files"]}
    assert b"repaid" in taken["card.md"]
    assert_same_elsewhere(done, taken, tmp_path)
    second.stop(signal.SIGTERM)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("metrifair-studio")] != []  # of the kill
    assert second.process.returncode == 0


def models(ledger: str) -> int:
    """How many finished models a ledger has."""
    with closing(sqlite3.connect(ledger)) as database:
        (count,) = database.execute("SELECT count(*) FROM finished").fetchone()
    return int(count)


def assert_same_elsewhere(done: dict[str, Any], taken: dict[str, bytes], folder: Path) -> None:
    """The shown commands, in an empty folder and without the studio's ledger, compute the figures of the files."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for command in done["commands"]:
        arguments = command.removeprefix("metrifair ")
        subprocess.run(f"{sys.executable} -m metrifair {arguments}", shell=True, cwd=elsewhere, check=True)
    again = figures((elsewhere / "held-out.json").read_text())
    shown = figures(taken["held-out.json"])
    assert [one["value"] for one in again["findings"]] == pytest.approx([one["value"] for one in shown["findings"]])


def test_training_ends_at_its_budget_and_can_be_canceled(loans: Path, tmp_path: Path) -> None:
    studio = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    studio.idle()
    studio.run("roles", **ROLES)
    state = studio.run("train", **TRAINING | {"minutes": "0.01"})
    assert state["failed"]["train"].startswith("No round of training finished in time.")
    studio.ask("POST", "/run/train", json.dumps(TRAINING))
    studio.wait(lambda state: state["running"] == "train")
    state = studio.run("cancel")
    assert state["failed"]["train"] == "Canceled. Finished models are stored."
    assert studio.run("audit", group=["sex"])["failed"] == {"train": "Canceled. Finished models are stored."}
    studio.stop()
