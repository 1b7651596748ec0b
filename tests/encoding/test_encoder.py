"""Raw tables as numbers: what each kind of column becomes, from any library, and what is
refused by name.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import metrifair
from metrifair import FairClassifier, TableEncoder
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.cli import read
from tests.seams.saving import EncoderRecord, encoder_record, read_encoder, read_record

N = 60
GENERATOR = np.random.default_rng(0)
AGE = GENERATOR.normal(40, 10, N).round(1)
COLOR = np.array(["red", "blue", "green"])[GENERATOR.integers(3, size=N)]
ROWS = {
    "age": [None if k % 7 == 0 else float(age) for k, age in enumerate(AGE)],
    "kids": GENERATOR.integers(0, 4, N).tolist(),
    "color": [None if k % 11 == 0 else str(color) for k, color in enumerate(COLOR)],
    "member": (GENERATOR.random(N) < 0.5).tolist(),
    "since": [
        dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in GENERATOR.integers(0, 900, N)
    ],
}
FORMS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "lists by name": lambda rows: rows,
    "pandas": pd.DataFrame,
    "pandas with types": lambda rows: (
        pd.DataFrame(rows)
        .convert_dtypes()
        .astype({"color": "category"})
        .assign(since=pd.to_datetime(rows["since"]))
    ),
    "polars": pl.DataFrame,
    "polars with types": lambda rows: pl.DataFrame(
        rows, schema_overrides={"color": pl.Categorical, "since": pl.Datetime, "kids": pl.UInt8}
    ),
    "an array of objects": lambda rows: np.array(
        list(zip(*rows.values(), strict=True)), dtype=object
    ),
    "a list of rows": lambda rows: [list(row) for row in zip(*rows.values(), strict=True)],
}


def changed(**columns: list[Any]) -> dict[str, list[Any]]:
    return {name: list(values) for name, values in (ROWS | columns).items()}


# --- what columns become
# ----------------------------------------------------------------------------------------


def test_each_kind_of_column_becomes_what_the_class_says() -> None:
    encoder = TableEncoder(min_frequency=5).fit(pl.DataFrame(ROWS))
    names = [
        "age", "age is missing", "kids", "color = blue", "color = green", "color = red", "color is missing",
        "member = False", "member = True", "since",
    ]  # fmt: skip
    assert list(encoder.get_feature_names_out()) == names
    found = dict(zip(names, encoder.transform(pl.DataFrame(ROWS)).T, strict=True))
    gone = np.array([value is None for value in ROWS["age"]])
    filled = np.where(gone, np.median(AGE[~gone]), AGE)
    np.testing.assert_allclose(found["age"], (filled - filled.mean()) / filled.std(), rtol=1e-12)
    np.testing.assert_array_equal(found["age is missing"], gone)
    days = np.array([(day - dt.date(1970, 1, 1)).days for day in ROWS["since"]])
    np.testing.assert_allclose(found["since"], (days - days.mean()) / days.std(), rtol=1e-9)
    for level in ("blue", "green", "red"):
        np.testing.assert_array_equal(
            found[f"color = {level}"], [color == level for color in ROWS["color"]]
        )
    np.testing.assert_array_equal(
        found["color is missing"], [color is None for color in ROWS["color"]]
    )
    np.testing.assert_array_equal(found["member = True"], ROWS["member"])


@pytest.mark.parametrize("fitted_on", FORMS)
@pytest.mark.parametrize("applied_to", FORMS)
def test_every_form_of_a_table_gives_the_same_numbers(fitted_on: str, applied_to: str) -> None:
    wanted = TableEncoder(min_frequency=5).fit_transform(pl.DataFrame(ROWS))
    encoder = TableEncoder(min_frequency=5).fit(FORMS[fitted_on](ROWS))
    np.testing.assert_allclose(
        encoder.transform(FORMS[applied_to](ROWS)), wanted, rtol=1e-12, atol=1e-12
    )


def test_columns_are_found_by_name_and_others_are_ignored() -> None:
    encoder = TableEncoder().fit(ROWS)
    shuffled = {name: ROWS[name] for name in reversed(ROWS)} | {"new": ["?"] * N}
    np.testing.assert_array_equal(
        encoder.transform(pl.DataFrame(shuffled)), encoder.transform(ROWS)
    )


def test_rare_levels_share_a_column_where_unseen_ones_go_too() -> None:
    encoder = TableEncoder(min_frequency=3).fit({"c": ["a"] * 5 + ["b"] * 3 + ["c", "c", "d"]})
    assert list(encoder.get_feature_names_out()) == ["c = a", "c = b", "c is other"]
    np.testing.assert_array_equal(
        encoder.transform({"c": ["a", "b", "c", "new", None]}),
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]],
    )


def test_a_level_without_a_column_is_zero_in_all() -> None:
    encoder = TableEncoder(min_frequency=1).fit({"c": ["a", "b"]})
    np.testing.assert_array_equal(encoder.transform({"c": ["new", None]}), np.zeros((2, 2)))


def test_only_the_most_frequent_levels_get_columns() -> None:
    levels = [f"level {k:03}" for k in range(80) for _ in range(k + 1)]
    names = TableEncoder(min_frequency=1, max_levels=7).fit({"c": levels}).get_feature_names_out()
    assert list(names) == [f"c = level {k:03}" for k in range(73, 80)] + ["c is other"]


def test_values_that_go_missing_later_only_become_the_median() -> None:
    encoder = TableEncoder().fit({"x": [1.0, 2.0, 6.0]})
    assert list(encoder.get_feature_names_out()) == ["x"]
    np.testing.assert_array_equal(encoder.transform({"x": [None]}), encoder.transform({"x": [2.0]}))


def test_a_number_that_never_changes_leaves_only_its_flag() -> None:
    encoder = TableEncoder().fit({"x": [7.0, None, 7.0]})
    assert list(encoder.get_feature_names_out()) == ["x is missing"]
    np.testing.assert_array_equal(encoder.transform({"x": [7.0, None, 1e9]}), [[0.0], [1.0], [0.0]])


def test_a_category_is_a_name_even_where_it_is_a_number() -> None:
    codes = pd.DataFrame({"zip": pd.Series([10, 20] * 10).astype("category")})
    encoder = TableEncoder().fit(codes)
    assert list(encoder.get_feature_names_out()) == ["zip = 10", "zip = 20"]
    # pandas makes floats of these
    with_gap = pd.DataFrame({"zip": pd.Series([20, None, 10]).astype("category")})
    np.testing.assert_array_equal(encoder.transform(with_gap), [[0, 1], [0, 0], [1, 0]])


def test_numbers_of_any_library_are_numbers() -> None:
    wanted = TableEncoder().fit_transform({"x": [1.5, 2.5, None]})
    for values in ([Decimal("1.5"), Decimal("2.5"), None], [np.float32(1.5), 2.5, float("nan")]):
        np.testing.assert_allclose(TableEncoder().fit_transform({"x": values}), wanted)


def test_times_are_taken_to_greenwich() -> None:
    zone = dt.timezone(dt.timedelta(hours=6))
    there = {
        "t": [dt.datetime(2020, 1, 1, 6, tzinfo=zone), dt.datetime(2020, 1, 2, 18, tzinfo=zone)]
    }
    here = {"t": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 12)]}
    encoder = TableEncoder().fit(here)
    np.testing.assert_array_equal(encoder.transform(there), encoder.transform(here))
    assert encoder.coders_["t"].median == (dt.date(2020, 1, 1) - dt.date(1970, 1, 1)).days + 0.75


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([3] * 30, "contains one value only"),
        (["a"] * 30, "contains one value only"),
        ([None] * 30, "contains missing values only"),
        (list(range(100, 130)), "numbers the rows"),
        (list(range(29, -1, -1)), "numbers the rows"),
        (list(range(1000, 1300, 10)), "numbers the rows"),
        # every fourth row was kept apart
        ([k for k in range(1, 41) if k % 4][:30], "numbers the rows"),
        (
            [f"name {k}" for k in range(30)],
            "contains a different value in every row, none of them 10 times",
        ),
        (
            [f"town {k // 3}" for k in range(30)],
            "contains 10 different values, none of them 10 times",
        ),
    ],
)
def test_columns_that_tell_nothing_are_left_out_and_the_reason_is_kept(
    values: list[Any], reason: str
) -> None:
    encoder = TableEncoder().fit({"odd": values, "x": [0.5, 1.0, 1.5] * 10})
    assert encoder.dropped_ == {"odd": reason}
    assert list(encoder.get_feature_names_out()) == ["x"]
    assert encoder.transform({"x": [1.0]}).shape == (1, 1)  # what was left out need not be there
    with pytest.raises(DataError) as caught:
        TableEncoder().fit({"odd": values})
    assert str(caught.value) == f"no column of X can be learned from: 'odd' {reason}"


@pytest.mark.parametrize(
    "values", [list(range(10)), [*range(29), 61], [*range(29), 28], [*range(19)]]
)
def test_whole_numbers_that_do_not_count_the_rows_are_kept(values: list[Any]) -> None:
    assert TableEncoder().fit({"x": values}).dropped_ == {}


def test_names_stay_unique() -> None:
    rows = {"x": [1.0, None, 3.0], "x is missing": [1.0, 2.0, 4.0], "c": ["a", "is other", "a"]}
    names = TableEncoder(min_frequency=1).fit(rows).get_feature_names_out()
    assert len(set(names)) == len(names) == 5


# --- refusals
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"age": ["old"] * N},
            "column 'age' contained numbers at fit, and contains text now: 'old'; pass numbers",
        ),
        (
            {"color": list(range(N))},
            "column 'color' contained text at fit, and contains numbers now: 0; pass text",
        ),
        (
            {"kids": [True] * N},
            "column 'kids' contained numbers at fit, and contains booleans now: True; pass numbers",
        ),
        (
            {"since": ["2020-01-01"] * N},
            (
                "column 'since' contained dates at fit, and contains text now: '2020-01-01'; pass "
                "dates"
            ),
        ),
        (
            {"age": [1e200] * N},
            "column 'age' contains 1e+200, which is too large; leave the row out, or scale it",
        ),
        (
            {"age": [float("-inf")] * N},
            "column 'age' contains -inf, which is too large; leave the row out, or scale it",
        ),
        (
            {"color": [1, "a"] * (N // 2)},
            "column 'color' mixes values of several types (int, str); make them one type",
        ),
        (
            {"color": [[1]] * N},
            "column 'color' contains values of type list; use numbers, text, booleans or dates",
        ),
        (
            {"since": [dt.timedelta(days=1)] * N},
            (
                "since must be numbers, text, booleans or dates, got durations such as "
                "datetime.timedelta(days=1); turn them into numbers, such as of days"
            ),
        ),
    ],
)
def test_a_column_of_another_kind_is_refused_by_name(
    change: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        TableEncoder().fit(ROWS).transform(pd.DataFrame(changed(**change), dtype=object))
    assert str(caught.value) == message


def test_a_column_that_is_missing_is_refused_by_name(refused: Refusals) -> None:
    encoder = TableEncoder().fit(ROWS)
    with pytest.raises(DataError) as caught:
        encoder.transform(pl.DataFrame(ROWS).drop("color"))
    assert str(caught.value) == "the table lacks the column 'color', which was there at fit; add it"
    with refused(DataError):
        encoder.transform(pl.DataFrame(ROWS).drop("age", "member"))


def test_a_column_with_all_values_missing_is_of_any_kind() -> None:
    gone = TableEncoder(min_frequency=5).fit(ROWS).transform({name: [None] for name in ROWS})
    assert np.isfinite(gone).all()


@pytest.mark.parametrize("parameter", ["min_frequency", "max_levels"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10", None])
def test_parameters_that_count_nothing_are_refused(parameter: str, value: Any) -> None:
    with pytest.raises(DataError) as caught:
        TableEncoder(**{parameter: value}).fit(ROWS)
    assert str(caught.value) == f"{parameter} must be an integer from 1 upwards, got {value!r}"


def test_a_value_too_far_from_those_at_fit_is_refused(refused: Refusals) -> None:
    encoder = TableEncoder().fit({"tiny": [0.0, 1e-200, 2e-200], "x": [1.0, 2.0, 4.0]})
    with refused(DataError):
        encoder.transform({"tiny": [0.0, 1e150], "x": [1.0, 2.0]})
    assert np.isfinite(encoder.transform({"tiny": [1e-100], "x": [1e140]})).all()


def test_a_name_of_two_columns_is_refused_by_name(refused: Refusals) -> None:
    with refused(DataError):
        TableEncoder().fit(pd.DataFrame([[1, 2], [3, 4], [5, 7]], columns=["a", "a"]))


def test_what_is_no_table_is_refused(refused: Refusals) -> None:
    with refused(DataError):
        TableEncoder().fit(pl.LazyFrame(ROWS))
    with refused(DataError):
        TableEncoder().fit({"x": [1.0]})
    with pytest.raises(NotFittedError):
        TableEncoder().transform(ROWS)


# --- laws
# -------------------------------------------------------------------------------------------------------

cells = {
    "number": st.one_of(st.none(), st.floats(-1e100, 1e100), st.integers(-(10**6), 10**6)),
    "name": st.one_of(
        st.none(), st.sampled_from(["a", "b", "=1+1", "<b>", ""]), st.text(max_size=3)
    ),
    "truth": st.one_of(st.none(), st.booleans()),
    "day": st.one_of(st.none(), st.dates(dt.date(1800, 1, 1), dt.date(2200, 1, 1))),
}
tables = st.lists(st.tuples(*cells.values()), min_size=2, max_size=30).map(
    lambda rows: {
        name: list(column) for name, column in zip(cells, zip(*rows, strict=True), strict=True)
    }
)


@settings(max_examples=60, deadline=None)
@given(table=tables, later=tables, least=st.integers(1, 3))
def test_whatever_was_learned_later_tables_become_finite_numbers_and_files_change_nothing(
    table: dict[str, list[Any]], later: dict[str, list[Any]], least: int
) -> None:
    table = {"sure": [0.0, 1.0] * len(later["name"]), **table}
    table = {
        name: (column * len(table["sure"]))[: len(table["sure"])] for name, column in table.items()
    }
    later = {"sure": [None] * len(later["name"]), **later}
    encoder = TableEncoder(min_frequency=least).fit(table)
    for rows in (table, later):
        found = encoder.transform(rows)
        assert found.shape == (len(rows["number"]), len(encoder.get_feature_names_out()))
        assert np.isfinite(found).all()
    again = read_encoder(
        read_record(
            EncoderRecord,
            json.loads(json.dumps(encoder_record(encoder).as_json(), allow_nan=False)),
        )
    )
    np.testing.assert_array_equal(again.transform(later), found)
    assert list(again.get_feature_names_out()) == list(encoder.get_feature_names_out())
    one_by_one = [
        encoder.transform({name: [column[row]] for name, column in later.items()})
        for row in range(len(found))
    ]
    np.testing.assert_array_equal(np.concatenate(one_by_one), found)


@parametrize_with_checks(
    [TableEncoder(), TableEncoder(min_frequency=1)],
    expected_failed_checks=lambda _: {
        "check_dataframe_column_names_consistency": "columns are found by name, in any order; an "
        "array goes by place"
    },
)
def test_scikit_learn_check(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


def test_in_a_pipeline_raw_tables_are_enough() -> None:
    target = [(age or 40) > 40 for age in ROWS["age"]]
    model = make_pipeline(
        TableEncoder(), FairClassifier(0.1, epochs=200, random_state=0, model="mlp")
    )
    model.fit(pl.DataFrame(ROWS), target, fairclassifier__sensitive_features=ROWS["member"])
    assert model.score(pl.DataFrame(ROWS), target) > 0.7
    assert clone(model)[0].get_params() == {"min_frequency": 10, "max_levels": 50}


def test_output_can_be_a_data_frame() -> None:
    found = TableEncoder().set_output(transform="pandas").fit_transform(pd.DataFrame(ROWS))
    assert list(found.columns)[:2] == ["age", "age is missing"]


def test_the_encoder_is_a_public_name() -> None:
    assert metrifair.TableEncoder is TableEncoder


STRAY = ["7.5"] * 38 + ["8", "1,234"]


def test_text_that_is_nearly_numbers_is_encoded_with_a_warning_that_shows_why() -> None:
    with pytest.warns(
        UserWarning, match=r"column 'pay' is taken for text, .* 1 of its 40 values, such as '1,234'"
    ):
        encoder = TableEncoder().fit({"pay": STRAY, "age": [20, 30] * 20})
    assert list(encoder.get_feature_names_out()) == ["pay = 7.5", "pay is other", "age"]
    with pytest.warns(
        UserWarning, match=r"column 'SpO2' is taken for text, .* 40 of its 40 values, such as '95%'"
    ):
        TableEncoder().fit({"SpO2": ["95%", "97.5 %"] * 20, "age": [20, 30] * 20})


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["02139"] * 39 + ["n/a"], id="codes"),
        pytest.param(["90210"] * 39 + ["02139"], id="codes, few of which begin with a zero"),
        pytest.param(["7"] * 37 + ["many"] * 3, id="a word that is no exception"),
        pytest.param(["7"] * 20 + ["8"] * 20, id="numbers as text"),
        pytest.param(["a"] * 20 + ["b"] * 20, id="words"),
    ],
)
def test_other_text_is_encoded_without_a_word(values: list[str]) -> None:
    TableEncoder().fit({"code": values})  # warnings are errors here


def test_a_category_may_look_like_a_number() -> None:
    TableEncoder().fit(pd.DataFrame({"pay": pd.Categorical(STRAY)}))


COMMAS = {  # texts of a column, and whether they are numbers with a decimal comma
    "numbers": (["3,5", "4", "0,25", None], True),
    "beside missing words": (["3,5", "NA", "2,5", ""], True),
    "all different": ([f"{number},5" for number in range(60)], True),
    "with an exponent": (["-1,5e3", "2,5"], True),
    "thousands": (["1,234", "7,000", "12"], False),
    "mostly whole": (["1", "2", "3", "4,5"], False),
    "a word among them": (["3,5", "2,5", "many"], False),
    "addresses": (["Bern, 3", "Chur, 4"], False),
}


@pytest.mark.parametrize("case", COMMAS)
def test_the_encoder_and_the_command_line_agree_on_decimal_commas(
    case: str, tmp_path: Path
) -> None:
    """Numbers that a comma makes text are refused everywhere, never taken for names; as
    categories they are names.
    """
    values, refused = COMMAS[case]
    table = pl.DataFrame({"x": values * 2, "row": [str(row % 2) for row in range(2 * len(values))]})
    table.write_csv(tmp_path / "table.csv")
    for fit in (
        TableEncoder(min_frequency=1).fit,
        lambda _: read(str(tmp_path / "table.csv"), texts=[], roles={}),
    ):
        if refused:
            with pytest.raises(DataError, match=r"column 'x'.*comma, such as"):
                fit(table)
        else:
            fit(table)
    TableEncoder(min_frequency=1).fit(table.cast({"x": pl.Categorical}))
