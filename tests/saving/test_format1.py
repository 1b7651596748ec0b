"""Files of format 1, written by metrifair 0.1.0.dev0, are read as what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from metrifair import load

pytestmark = pytest.mark.filterwarnings("ignore:(the model predicts|Models predict) the same")  # trained for a moment

FILES = Path(__file__).parent / "format1"
KNOWN = json.loads((FILES / "expected.json").read_text())
X = np.array(KNOWN["X"])
FRAME = pd.DataFrame({"größe": X[:, 0], "c": pd.Categorical(KNOWN["c"], categories=["u", "v"])})
ROWS: dict[str, Any] = {
    "classifier": X,
    "stream": X,
    "lightgbm": FRAME,
    "xgboost": FRAME,
    "table": {name: KNOWN[name] for name in ("income", "town", "member")},
    "frontier": X,
}


@pytest.mark.parametrize("name", ROWS)
def test_a_file_of_format_1_predicts_as_it_did(name: str, tmp_path: Path) -> None:
    model = load(FILES / f"{name}.model")
    one = model.models[1] if name == "frontier" else model
    predicted = one.predict(ROWS[name]) if name in ("stream", "xgboost") else one.predict_proba(ROWS[name])
    expected = [float.fromhex(value) for value in KNOWN["predictions"][name]]
    np.testing.assert_allclose(np.asarray(predicted, dtype=np.float64).ravel(), expected, rtol=1e-9)
    model.save(tmp_path / "again")
    again = load(tmp_path / "again")
    twice = again.models[1] if name == "frontier" else again
    assert (twice.predict(ROWS[name]) == one.predict(ROWS[name])).all()


def test_a_stream_of_format_1_goes_on() -> None:
    model = load(FILES / "stream.model")
    model.partial_fit(X, X.sum(1), sensitive_features=np.array(["f", "m"] * 10))
    assert np.isfinite(model.predict(X)).all()


def test_a_fit_of_format_1_is_learnt_on() -> None:
    model = load(FILES / "classifier.model")
    labels, strata = np.array(["no", "yes"] * 10), np.array(["north", "south"] * 10)
    model.partial_fit(X, labels, sensitive_features=np.array(["f", "m", "m", "f"] * 5), control_features=strata)
    assert set(model.predict(X)) <= {"no", "yes"}
