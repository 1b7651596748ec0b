"""`metrifair export`: what train writes, as a graph that says what predict says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import polars as pl
import pytest
from refusals import refusal
from sklearn.pipeline import make_pipeline

from metrifair import AuditState, FairRegressor, TableEncoder, load, save

pytestmark = pytest.mark.extended


def test_a_trained_model_says_in_onnx_what_predict_says(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    model, graph, said = (tmp_path / name for name in ("m", "m.onnx", "p.csv"))
    options = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--ignore",
        "wage",
        "--model",
        "linear",
        "--id",
        "number",
    )
    assert (
        call("train", csv, *options, "--choose-threshold", "accuracy", "--output", model).exit_code
        == 0
    )
    assert load(model).threshold is not None
    done = call("export", model, "--output", graph)
    assert done.exit_code == 0, done.output
    assert done.output.startswith(
        f"ONNX graph: {graph}. Inputs, each of shape (n, 1): 'income' double, 'town' string, "
        "'code' string, 'member'"
    )
    assert call("predict", model, csv, "--output", said).exit_code == 0
    table, expected = pl.read_csv(csv, schema_overrides={"code": pl.String}), pl.read_csv(said)
    inputs = {
        "income": table["income"].to_numpy().astype(float),
        "town": table["town"].fill_null("").to_numpy().astype(object),
        "code": table["code"].to_numpy().astype(object),
        "member": table["member"].cast(pl.Float64).to_numpy(),
    }
    columns = {name: column[:, None] for name, column in inputs.items()}
    label, probabilities = onnxruntime.InferenceSession(graph).run(None, columns)
    assert label.tolist() == expected["prediction"].to_list()
    np.testing.assert_allclose(probabilities[:, 1], expected["probability"].to_numpy(), atol=1e-9)


def test_pipelines_and_plain_models_are_exported_and_other_files_refused(
    tmp_path: Path, call: Any
) -> None:
    table, path, graph = {"size": [1.0, 2.0, 4.0]}, tmp_path / "m", tmp_path / "m.onnx"
    save(
        make_pipeline(TableEncoder(), FairRegressor(0.0, model="linear")).fit(
            table, [1.0, 2.0, 4.0]
        ),
        path,
    )
    assert (
        call("export", path, "--output", graph).output
        == f"ONNX graph: {graph}. Inputs, each of shape (n, 1): 'size' double\n"
    )
    found = onnxruntime.InferenceSession(graph).run(None, {"size": np.array([[3.0]])})[0]
    np.testing.assert_allclose(found, load(path).predict({"size": [3.0]}), atol=1e-9)
    rows, said = tmp_path / "rows.csv", tmp_path / "said.csv"
    pl.DataFrame({"size": [3.0]}).write_csv(rows)
    assert call("predict", path, rows, "--output", said).exit_code == 0
    np.testing.assert_allclose(pl.read_csv(said)["prediction"].to_numpy(), found, atol=1e-9)
    FairRegressor(0.0, model="linear").fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 4.0]).save(path)
    assert (
        "Input: 'X' double, of shape (n, number of features)"
        in call("export", path, "--output", graph).output
    )
    AuditState(score_range=(0, 1)).add(
        None, [0.1, 0.2, 0.7, 0.9], sensitive_features=["a", "b", "a", "b"]
    ).save(path)
    said = refusal(call("export", path, "--output", graph))
    expected = f"{str(path)!r} contains a AuditState, which cannot be exported; pass a model, such as metrifair train writes"  # noqa: E501
    assert said == expected
    assert "must end in .onnx" in refusal(call("export", path, "--output", tmp_path / "m.txt"))
