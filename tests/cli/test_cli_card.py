"""`metrifair card`: a model's file, an audit and a frontier as one description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from metrifair import AuditOptions, FairClassifier, audit, load
from tests.one_split import frontier

RNG = np.random.default_rng(1)
SEX = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + SEX[:, None]
Y = (X.sum(1) + RNG.normal(size=300) > 1).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A frontier, the model that was chosen from it, and its audit, each in a file."""
    found = tmp_path_factory.mktemp("card")
    front = frontier(FairClassifier(model="linear"), X, Y, sensitive_features={"sex": SEX}, strengths=[0.0, 2.0])
    model = front.select(max_unfairness=1.0)
    model.save(found / "a.metrifair")
    front.save(found / "front.metrifair")
    scores = model.predict_proba(X)[:, 1]
    audit(Y, scores, sensitive_features={"sex": SEX}, options=AuditOptions(resamples=20, permutations=10)).to_json(
        found / "a.json"
    )
    return found


def test_a_card_is_written_or_printed(call: Any, folder: Path) -> None:
    parts = [
        "--audit",
        folder / "a.json",
        "--frontier",
        folder / "front.metrifair",
        "--license",
        "mit",
        "--title",
        "Loans",
    ]
    printed = call("card", folder / "a.metrifair", *parts)
    assert printed.exit_code == 0, printed.output
    head = yaml.safe_load(printed.output.split("---\n")[1])
    assert (head["license"], head["model-index"][0]["name"]) == ("mit", "Loans")
    strength = load(folder / "a.metrifair").strength
    assert f"with strength {strength:g} and seed 0" in printed.output  # found by its content
    said = call("card", folder / "a.metrifair", *parts, "--output", folder / "README.md")
    assert said.output == f"Model card: {folder / 'README.md'}\n"
    assert (folder / "README.md").read_text() == printed.output


def test_files_of_another_kind_are_refused(call: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.metrifair").write_bytes((folder / "a.metrifair").read_bytes())
    done = call("card", folder / "a.metrifair", "--frontier", tmp_path / "b.metrifair")
    assert done.exit_code == 2
    assert "holds a FairClassifier, not a frontier; pass what Frontier.save wrote" in done.output
    done = call("card", folder / "front.metrifair")
    assert done.exit_code == 2
    assert "model must be a fitted model, got Frontier" in done.output
