"""Train, choose and download; an interruption loses nothing."""

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
from tests.studio.test_studio_steps import TRAINING, figures

pytestmark = pytest.mark.slow  # every step starts a process that imports torch


def test_a_kill_loses_no_finished_model_and_the_shown_commands_compute_the_same(
    loans: Path, tmp_path: Path
) -> None:
    roles, training = (
        ROLES | {"ignore": ["decision"]},
        TRAINING | {"families": "auto,linear,network"},
    )
    first = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    first.idle()
    first.run("inspect", missing=["N/A"])
    first.run("roles", **roles)
    first.ask("POST", "/run/train", json.dumps(training))
    state = first.wait(lambda state: len(models(tmp_path)) >= 3)
    assert state["running"] == "train"
    first.stop(signal.SIGKILL)

    second = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    second.idle()
    second.run("inspect", missing=["N/A"])
    second.run("roles", **roles)
    before = models(tmp_path)
    assert len(before) >= 3
    state = second.run("train", **training)
    assert state["failed"] == {}
    assert [name for name, seconds in state["progress"]["families"] if seconds is not None] == [
        "linear",
        "network",
    ]
    assert before < models(tmp_path)  # those of the first studio are among them, as they were
    state = second.run("choose", max_unfairness="0.2")
    assert state["failed"] == {}
    done = state["done"]["choose"]
    assert {"model.metrifair", "model.onnx", "card.md", "held-out.csv", "held-out.html"} <= set(
        done["files"]
    )
    downloads = {
        name: second.ask("GET", f"/download/choose/{name}?download")[2] for name in done["files"]
    }
    assert b"repaid" in downloads["card.md"]
    assert_same_elsewhere(done, downloads, tmp_path)
    second.stop(signal.SIGTERM)
    assert [
        path.name for path in tmp_path.iterdir() if path.name.startswith("metrifair-studio")
    ] == []  # nor of the kill
    assert second.process.returncode == 0


def models(place: Path) -> set[tuple[Any, ...]]:
    """The finished models of the studio's ledger in a folder, with all that it keeps of them."""
    ledger = place / "kept" / "metrifair" / "studio" / "models.ledger"
    if not ledger.exists():
        return set()
    with closing(sqlite3.connect(ledger)) as database:
        tables = database.execute(
            "SELECT name FROM sqlite_master WHERE name = 'finished'"
        ).fetchall()
        return set(database.execute("SELECT * FROM finished").fetchall()) if tables else set()


def assert_same_elsewhere(done: dict[str, Any], downloads: dict[str, bytes], folder: Path) -> None:
    """The shown commands and Python, in empty folders and without the studio's ledger, compute
    the same figures.
    """
    by_commands, by_python = folder / "commands", folder / "python"
    by_commands.mkdir()
    by_python.mkdir()
    for command in done["commands"]:
        arguments = command.removeprefix("metrifair ")
        subprocess.run(
            f"{sys.executable} -m metrifair {arguments}", shell=True, cwd=by_commands, check=True
        )
    script = f"{done['python']}audit.to_json('held-out.json')\n"
    subprocess.run([sys.executable, "-c", script], cwd=by_python, check=True)
    shown = figures(downloads["held-out.json"])
    for made in (by_commands, by_python):
        again = figures((made / "held-out.json").read_text())
        assert [one["value"] for one in again["findings"]] == pytest.approx(
            [one["value"] for one in shown["findings"]]
        )
        assert (made / "model.metrifair").stat().st_size > 1_000


def test_families_are_shown_as_they_finish_and_are_the_result_of_a_canceled_training(
    loans: Path, tmp_path: Path
) -> None:
    studio = Studio(str(loans), cwd=tmp_path, kept=tmp_path / "kept")
    studio.idle()
    studio.run("roles", **ROLES)
    state = studio.run("train", **TRAINING | {"minutes": "0.01"})
    assert state["failed"]["train"].startswith("No family was finished in time.")
    studio.ask("POST", "/run/train", json.dumps(TRAINING | {"families": "auto,linear,network"}))
    first = studio.wait(lambda state: state["progress"]["families"])
    assert first["running"] == "train"
    assert first["progress"] == {"families": [["linear", None]], "total": 2}
    studio.wait(lambda state: state["progress"]["families"][0][1] is not None)
    state = studio.run("cancel")
    assert state["failed"] == {}
    done = state["done"]["train"]
    assert done["notes"] == ["Canceled. The result has the families that were finished: linear."]
    assert "--families=auto,linear " in done["commands"][0]
    found = json.loads(studio.ask("GET", "/download/train/frontier.json")[2])
    assert {point["family"] for point in found["points"]} <= {"linear", ""}
    studio.ask("POST", "/run/train", json.dumps(TRAINING | {"families": "auto,network"}))
    studio.wait(lambda state: state["running"] == "train")
    state = studio.run("cancel")
    assert state["failed"]["train"] == "Canceled. Finished models are stored."
    assert studio.run("audit", group=["sex"])["failed"] == {
        "train": "Canceled. Finished models are stored."
    }
    studio.stop()
