"""The Python and the commands that the studio shows, run in empty folders: both make the same
model and figures.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import polars as pl
import pytest
import yaml
from numpy.typing import NDArray
from sklearn.base import is_regressor

from metrifair import ReadOptions, load, read_file
from metrifair.evidence import verify
from tests.seams.studio import (
    TableFile,
    choice_commands,
    choice_python,
    columns_command,
    evidence_command,
    evidence_python,
    not_features,
)
from tests.studio.driver import write_loans

LOANS: dict[str, Any] = {
    "missing": ["N/A"],
    "score": "score",
    "label": "repaid",
    "positive": "yes",
    "group": ["sex"],
    "weight": "",
    "id": "number",
    "ignore": ["decision"],
    "criterion": "statistical_parity",
    "utility": "auto",
    "families": "auto,linear",
    "max_unfairness": "0.2",
}
CASES: dict[str, dict[str, Any]] = {
    "text": {},
    "codes": {"label": "repaid_01", "positive": "1", "weight": "weight", "group": ["sex", "code"]},
    "number": {
        "label": "income",
        "positive": "",
        "max_unfairness": "0.6",
        "families": "auto,linear,network",
    },
    "only_numbers": {"ignore": ["decision", "town", "income"]},
    "first_label": {"positive": "no", "criterion": "equal_opportunity", "utility": "auc"},
}
SLOW = [pytest.param(case, marks=pytest.mark.slow) for case in CASES if case != "text"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The loans, with labels as numbers, codes, weights and a complete column."""
    path = tmp_path_factory.mktemp("data") / "loans.csv"
    table = pl.read_csv(write_loans(path), infer_schema=False).head(900)
    rng = np.random.default_rng(1)
    table.with_columns(
        pl.when(pl.col("repaid") == "yes")
        .then(pl.lit("1"))
        .otherwise(pl.lit("0"))
        .alias("repaid_01"),
        pl.Series("code", rng.integers(1, 3, len(table)).astype(str)),
        pl.Series("weight", rng.integers(1, 4, len(table)).astype(str)),
        pl.Series(
            "debt",
            (rng.normal(size=len(table)) + (table["repaid"] == "yes").to_numpy())
            .round(3)
            .astype(str),
        ),
    ).write_csv(path)
    return path


def pasted(line: str, folder: Path) -> None:
    """Run a command as if it were pasted into a terminal."""
    program, *arguments = shlex.split(line)
    assert program == "metrifair"
    subprocess.run(
        [sys.executable, "-m", "metrifair", *arguments], cwd=folder, check=True, capture_output=True
    )


def run_python(text: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def columns_of(table: TableFile, folder: Path) -> list[dict[str, Any]]:
    pasted(columns_command(table, {"missing": ["N/A"]}).text, folder)
    found: list[dict[str, Any]] = json.loads((folder / "columns.json").read_text())["columns"]
    return found


def folders(tmp_path: Path, *names: str) -> list[Path]:
    made = [tmp_path / name for name in names]
    for folder in made:
        folder.mkdir()
    return made


def values(figures: dict[str, Any]) -> list[Any]:
    return [
        ((one["metric"], one["groups"], one["within"]), one["value"]) for one in figures["findings"]
    ]


def predictions(model: Path, features: pl.DataFrame) -> NDArray[Any]:
    """Numbers, or probabilities of the last label."""
    loaded: Any = load(model)
    if is_regressor(getattr(loaded, "estimator", loaded)):
        return np.asarray(loaded.predict(features))
    return np.asarray(loaded.predict_proba(features)[:, -1])


@pytest.mark.parametrize("case", ["text", *SLOW])
def test_python_and_commands_make_the_same_model_and_figures(
    case: str, data: Path, tmp_path: Path
) -> None:
    by_commands, by_python, elsewhere = folders(tmp_path, "commands", "python", "elsewhere")
    table, choices = TableFile(data, str(data)), LOANS | CASES[case]
    others = {"repaid", "repaid_01"} - {choices["label"]}  # the label in other words
    choices["ignore"] = [*choices["ignore"], *others]
    score = "probability" if choices["positive"] else "prediction"
    for command in choice_commands(table, choices, Path("models.ledger"), score=score)[:2]:
        pasted(command.text, by_commands)
    script = choice_python(table, choices, columns_of(table, elsewhere), score=score)
    run_python(f"{script}audit.to_json('held-out.json')\n", by_python)
    expected, found = (
        json.loads((folder / "held-out.json").read_text()) for folder in (by_commands, by_python)
    )
    assert [name for name, _ in values(found)] == [name for name, _ in values(expected)]
    features = read_file(data, reading=ReadOptions(missing=["N/A"])).drop(not_features(choices))
    predicted = [
        predictions(folder / "model.metrifair", features) for folder in (by_commands, by_python)
    ]
    # The audit is of models of the folds, so the card lists the figures of the frontier only.
    card = (by_python / "card.md").read_text()
    assert "## An audit of other scores" in card
    (result,) = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"]
    assert result["dataset"]["split"] != "audited rows"
    np.testing.assert_allclose(*predicted, rtol=1e-9)
    assert [value for _, value in values(found)] == pytest.approx(
        [value for _, value in values(expected)], rel=1e-9
    )


def test_python_and_command_write_the_same_evidence(data: Path, tmp_path: Path) -> None:
    by_command, by_python = folders(tmp_path, "command", "python")
    table, choices = (
        TableFile(data, str(data)),
        LOANS | {"group": ["code"], "criterion": "", "min_cell": "20"},
    )
    pasted(f"{evidence_command(table, choices).text} --no-pdf", by_command)
    run_python(
        evidence_python(table, choices).replace("min_cell=20", "min_cell=20, pdf=False"), by_python
    )
    parts = []
    for folder in (by_command, by_python):
        assert verify(folder / "evidence.zip", data=data).agrees
        with ZipFile(folder / "evidence.zip") as files:
            parts.append({name: files.read(name) for name in files.namelist()})
    assert parts[0].keys() == parts[1].keys()
    tables = [name for name in parts[0] if name.endswith(".csv")]
    assert tables
    assert [parts[0][name] for name in tables] == [parts[1][name] for name in tables]
    (audit,) = (name for name in parts[0] if name.endswith("audit.json"))
    assert values(json.loads(parts[0][audit])) == values(json.loads(parts[1][audit]))
