"""Every snippet of docs/beyond-one-machine.md runs as it stands; those with a prompt are
doctests.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import duckdb
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from click.testing import CliRunner

from metrifair import FairXGBClassifier, load
from metrifair.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "beyond-one-machine.md").read_text()
BLOCKS = [
    (kind, text)
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
]


def python(word: str) -> str:
    (found,) = [
        text for kind, text in BLOCKS if kind == "python" and ">>>" not in text and word in text
    ]
    return found


def test_every_snippet_is_run_here_or_as_a_doctest() -> None:
    plain = [text for kind, text in BLOCKS if kind == "python" and ">>>" not in text]
    assert sorted(plain) == sorted(map(python, ("torchrun", "parallel_config", "read_parquet")))


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 60)
    columns = {
        "p": rng.random(60).round(2),
        "sex": sex,
        "y": rng.integers(0, 2, 60),
        "year": [2025, 2026] * 30,
    }
    pl.DataFrame(columns).write_csv("monday.csv")
    with duckdb.connect("scores.db") as connection:
        connection.execute("CREATE TABLE scores AS SELECT * FROM read_csv('monday.csv')")
    lines = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]
    commands = [
        line for line in lines if line.startswith("metrifair ") and "postgres://" not in line
    ]
    assert len(commands) == 5
    for command in commands:
        words = [
            str(name)
            for word in shlex.split(command)[1:]
            for name in (sorted(Path().glob(word)) or [word])
        ]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (command, done.output)
    assert {"report.html", "monday.state"} <= {path.name for path in tmp_path.iterdir()}


def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + a[:, None]
    return {"X": X, "y": (X.sum(1) + rng.normal(size=400) > 1.5).astype(int), "a": a}


@pytest.mark.slow
def test_the_training_loop_runs(tmp_path: Path) -> None:
    given = {name: torch.as_tensor(value) for name, value in data().items()}
    names: dict[str, Any] = {
        "X": given["X"].float(), "y": given["y"].float(), "groups": given["a"], "rank": 0, "world_size": 1,
        "strength": 1.0, "model": torch.nn.Linear(3, 1),
        "DistributedDataParallel": torch.nn.parallel.DistributedDataParallel,
        "binary_cross_entropy_with_logits": torch.nn.functional.binary_cross_entropy_with_logits,
    }  # fmt: skip
    torch.distributed.init_process_group(
        "gloo", f"file://{tmp_path / 'meeting'}", rank=0, world_size=1
    )
    try:
        exec(python("torchrun").replace("batch_size=1024", "batch_size=64"), names)
        names["loss"].backward()
        assert all(one.grad is not None for one in names["model"].parameters())
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_snippets_on_dask_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = pytest.importorskip("cluster")
    distributed = pytest.importorskip("dask.distributed")
    monkeypatch.chdir(tmp_path)
    given = data()
    Path("applications").mkdir()
    table = pd.DataFrame(given["X"], columns=["income", "debt", "years"])
    table = table.assign(repaid=given["y"], sex=np.where(given["a"] == 1, "m", "f"))
    for place, part in enumerate(np.array_split(np.arange(400), 2)):
        table.iloc[part].to_parquet(f"applications/{place}.parquet")
    with cluster.two_workers(FairXGBClassifier.__module__, "xgboost.dask") as client:
        monkeypatch.setattr(distributed, "Client", lambda *where: client)
        names: dict[str, Any] = dict(given)
        exec(
            python("parallel_config")
            .replace("seeds=10, ", "")
            .replace("search=search", "strengths=[0, 1], search=search"),
            names,
        )
        assert len(names["front"].points) == 2
        assert Path("runs.db").exists()
        exec(python("read_parquet").replace("300", "20"), names)
        assert names["probabilities"].compute().shape == (400, 2)
    assert joblib.parallel.get_active_backend()[1] in (None, 1)
    np.testing.assert_allclose(
        load("model.mf").predict_proba(table[["income", "debt", "years"]]).sum(1), 1.0, atol=1e-6
    )
