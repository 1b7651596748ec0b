"""Encoder and estimator as one model: raw tables in, one file, nothing in it taken on trust."""

from __future__ import annotations

import copy
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from forging import described, lies
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import FairClassifier, FairRegressor, TableEncoder, load
from metrifair.errors import DataError, ModelFileError
from tests.expected_errors import Refusals
from tests.seams.estimators import TableModel
from tests.seams.saving import from_bytes

N = 80
GENERATOR = np.random.default_rng(1)
TABLE = pl.DataFrame(
    {
        "income": [
            None if k % 9 == 0 else float(value)
            for k, value in enumerate(GENERATOR.lognormal(size=N))
        ],
        "town": np.array(["north", "south", "east"])[GENERATOR.integers(3, size=N)],
        "sex": np.array(["f", "m"])[GENERATOR.integers(2, size=N)],
    }
)
SCORE = TABLE["income"].fill_null(1).to_numpy() + (TABLE["sex"] == "m").to_numpy()
LABELS: dict[str, Any] = {
    "two classes": np.where(SCORE > 1.5, "yes", "no"),
    "three classes": np.array(["low", "middle", "top"])[np.digitize(SCORE, [1, 2])],
    "a number": SCORE,
}


def fitted(kind: str = "two classes", **options: Any) -> TableModel:
    encoder = TableEncoder().fit(TABLE)
    estimator = (FairRegressor if kind == "a number" else FairClassifier)(
        epochs=3, model="mlp", random_state=0, **options
    )
    estimator.fit(encoder.transform(TABLE), LABELS[kind], sensitive_features=TABLE["sex"])
    return TableModel(encoder, estimator, "outcome", ("sex",), ("number",))


@pytest.mark.parametrize("kind", LABELS)
def test_a_saved_model_predicts_the_same_to_the_last_bit(
    tmp_path: Path, kind: str, refused: Refusals
) -> None:
    model = fitted(kind)
    model.save(tmp_path / "model.metrifair")
    again = load(tmp_path / "model.metrifair")
    assert isinstance(again, TableModel)
    assert (again.target, again.sensitive, again.ids) == ("outcome", ("sex",), ("number",))
    later = (
        TABLE.with_columns(town=pl.lit("west"), income=pl.lit(None, pl.Float64))
        .head(5)
        .vstack(TABLE.head(5))
    )
    np.testing.assert_array_equal(again.predict(later), model.predict(later))
    if kind == "a number":
        assert again.classes is None
        with refused(DataError):
            again.predict_proba(later)
    else:
        np.testing.assert_array_equal(again.predict_proba(later), model.predict_proba(later))
        assert again.classes.tolist() == sorted(set(LABELS[kind]))


def test_what_the_model_does_not_know_is_refused_by_name(refused: Refusals) -> None:
    model = fitted()
    with refused(DataError):
        model.predict(TABLE.drop("town"))
    with refused(DataError):
        model.predict(TABLE.with_columns(income=pl.lit("much")))


def test_parts_that_do_not_fit_together_are_refused(refused: Refusals) -> None:
    model = fitted()
    with refused(DataError):
        TableModel(TableEncoder().fit(TABLE.drop_nulls()), model.estimator)
    with refused(DataError):
        TableModel(model.encoder, FairClassifier())


@pytest.mark.parametrize("pos_label", ["no", "yes"])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_the_threshold_decides_and_is_kept_in_the_file(
    tmp_path: Path, pos_label: str, threshold: float
) -> None:
    plain = fitted(pos_label=pos_label)
    assert plain.classes is not None
    probability = plain.predict_proba(TABLE)[:, plain.positive]
    assert plain.classes[plain.positive] == pos_label
    assert ((plain.predict(TABLE) == pos_label) == (probability >= 0.5)).all()
    model = replace(plain, threshold=threshold)
    assert ((model.predict(TABLE) == pos_label) == (probability >= threshold)).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.threshold == threshold
    np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))


def test_a_threshold_is_chosen_on_rows_and_leaves_the_model_as_it_is() -> None:
    model, y = fitted(), LABELS["two classes"]
    best = model.choose_threshold(TABLE, y)
    assert model.threshold is None
    assert (best.predict(TABLE) == y).mean() >= (model.predict(TABLE) == y).mean()
    # a wrong yes costs most
    dear = model.choose_threshold(TABLE, y, rule="cost", costs=[[0, 100], [1, 0]])
    assert ((dear.predict(TABLE) == "yes") & (y == "no")).sum() == 0
    fair = model.choose_threshold(TABLE, y, rule="parity", sensitive_features=TABLE["sex"])
    assert 0 < fair.threshold < 1
    weight = np.where(y == "yes", 1.0, 0.0)  # rows of weight 0 are as if they were not there
    assert (
        model.choose_threshold(TABLE, y, sample_weight=weight).threshold
        <= model.predict_proba(TABLE)[:, 1].min()
    )
    with pytest.raises(DataError, match="sensitive_features is missing"):
        model.choose_threshold(TABLE, y, rule="parity")


@pytest.mark.parametrize(
    ("kind", "threshold", "message"),
    [
        ("two classes", 1.5, "threshold must be a probability, from 0 to 1, got 1.5"),
        ("two classes", float("nan"), "threshold must be a probability"),
        ("three classes", 0.5, "threshold=0.5 needs a model of two classes"),
        ("a number", 0.5, "threshold=0.5 needs a model of two classes"),
    ],
)
def test_a_threshold_that_means_nothing_is_refused(
    kind: str, threshold: float, message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        replace(fitted(kind), threshold=threshold)


def test_a_path_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot write"):
        fitted().save(tmp_path / "no" / "folder" / "model")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("model") / "model.metrifair"
    fitted().save(path)
    return from_bytes(path.read_bytes())


def loaded(path: Path, meta: Any, arrays: Any) -> Any:
    path.write_bytes(described(meta, arrays, "table model"))
    return load(path)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("encoder", "coders", "income", "spread"),
            -1.0,
            "column 'income': Expected `float` >= 0.0 - at `$.spread`",
        ),
        (
            ("encoder", "coders", "income", "median"),
            "high",
            "column 'income': Expected `float`, got `str` - at `$.median`",
        ),
        (
            ("encoder", "coders", "income", "kind"),
            "text",
            "column 'income': Invalid enum value 'text' - at `$.kind`",
        ),
        (("encoder", "coders", "town", "levels"), ["a", "a", "b"], "names a level twice"),
        (
            ("encoder", "coders", "town", "levels"),
            ["a"],
            "the encoder makes 5 columns, and the estimator takes 7",
        ),
        (("encoder", "coders", "town"), {}, "column 'town': Object missing required field `kind`"),
        (("encoder", "names"), ["income", "town"], "describes other columns than it names"),
        (
            ("encoder", "parameters", "max_levels"),
            0,
            "Expected `int` >= 1 - at `$.encoder.parameters.max_levels`",
        ),
        (
            ("estimator", "meta", "kind"),
            "Oracle",
            "it contains a model of the kind 'Oracle', which this version cannot read",
        ),
        (("estimator", "kind"), "oracle", "Invalid enum value 'oracle' - at `$.estimator.kind`"),
        (
            ("estimator", "kind"),
            "frontier",
            "Invalid enum value 'frontier' - at `$.estimator.kind`",
        ),
        (("target",), 7, "Expected `str`, got `int` - at `$.target`"),
        (("threshold",), 1.5, "Expected `float` <= 1.0 - at `$.threshold`"),
        (("threshold",), "half", "Expected `float | null`, got `str` - at `$.threshold`"),
        (("ids",), "number", "Expected `array`, got `str` - at `$.ids`"),
    ],
)
def test_a_file_that_lies_is_refused(
    tmp_path: Path, content: Any, place: Any, value: Any, message: str
) -> None:
    meta = copy.deepcopy(content.meta)
    node = meta
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    with pytest.raises(ModelFileError, match="cannot read") as caught:
        loaded(tmp_path / "model", meta, content.arrays)
    assert message in str(caught.value)


def test_a_number_of_columns_is_believed_only_where_they_are_described(
    tmp_path: Path, content: Any, refused: Refusals
) -> None:
    meta = copy.deepcopy(content.meta)
    meta["encoder"] |= {"names": None, "count": 10**7}
    tracemalloc.start()
    with refused(ModelFileError):
        loaded(tmp_path / "model", meta, content.arrays)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_a_model_within_a_model_is_refused(tmp_path: Path, content: Any) -> None:
    meta = content.meta | {"estimator": {"kind": "table model", "meta": content.meta}}
    with pytest.raises(ModelFileError, match="Invalid enum value 'table model'"):
        loaded(
            tmp_path / "model",
            meta,
            {f"estimator/{name}": array for name, array in content.arrays.items()},
        )


def test_arrays_of_nothing_are_refused(tmp_path: Path, content: Any, refused: Refusals) -> None:
    with refused(ModelFileError):
        loaded(tmp_path / "model", content.meta, content.arrays | {"more": np.zeros(1)})


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_lie_is_refused_or_gives_a_model_that_predicts(
    tmp_path_factory: pytest.TempPathFactory, content: Any, data: st.DataObject
) -> None:
    meta = data.draw(lies(content.meta))
    path = tmp_path_factory.getbasetemp() / "lie.metrifair"
    try:
        model = loaded(path, meta, content.arrays)
    except ModelFileError:
        return
    assert len(model.predict({name: [None] for name in model.encoder.coders_})) == 1
