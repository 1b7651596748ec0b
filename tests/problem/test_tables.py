"""Tables of every make into codes: what is the same, what is missing, what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.problem import (
    Attribute,
    CodedColumn,
    columns,
    group_codes,
    is_missing,
    same_length,
    separate_strata,
    stratum_codes,
)

reproducible = settings(deadline=None, derandomize=True, database=None)

NAN = float("nan")
DAY = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]


def object_array(values: list) -> np.ndarray:
    return np.array(values, dtype=object)


# The same three samples, groups 1, 0 and 1, in every make of column that users hold.
MAKERS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": object_array,
    "one-column array": lambda values: np.array(values)[:, None],
    "list of rows": lambda values: [[value] for value in values],
    "pandas series": pd.Series,
    "pandas frame": lambda values: pd.DataFrame({"sensitive_features": values}),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "polars series": pl.Series,
    "polars frame": lambda values: pl.DataFrame({"sensitive_features": values}),
    "dictionary": lambda values: {"sensitive_features": values},
}
KINDS = {
    "strings": ["m", "f", "m"],
    "integers": [7, 3, 7],
    "floats": [0.5, -1.0, 0.5],
    "booleans": [True, False, True],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maker", MAKERS)
def test_the_make_of_a_column_does_not_matter(maker: str, kind: str) -> None:
    values = KINDS[kind]
    found = group_codes(MAKERS[maker](values))
    assert found.codes.tolist() == [[1], [0], [1]]
    assert found.codes.dtype == np.int64
    assert found.attributes == (Attribute("sensitive_features", tuple(sorted(set(values)))),)


def test_tensors_and_dates_are_columns_too() -> None:
    assert group_codes(torch.tensor([7, 3, 7])).attributes[0].groups == (3, 7)
    for column in (DAY, np.array(DAY, dtype="datetime64[D]"), pl.Series(DAY), pd.Series(DAY)):
        assert group_codes(column).codes.ravel().tolist() == [0, 1]


MISSING = {
    "None in a list": ["m", None, "f"],
    "NaN in a list": ["m", NAN, "f"],
    "NA in a list": ["m", pd.NA, "f"],
    "NaT in a list": ["m", pd.NaT, "f"],
    "None in objects": object_array(["m", None, "f"]),
    "NaN in an array": np.array([2.0, NAN, 1.0]),
    "NaT in an array": np.array(["2021-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]"),
    "None among integers": [2, None, 1],
    "None among booleans": [True, None, False],
    "decimals": [Decimal(2), Decimal("nan"), Decimal(1)],
    "pandas": pd.Series(["m", None, "f"]),
    "pandas objects": pd.Series(["m", None, "f"], dtype=object),
    "pandas category": pd.Series(["m", None, "f"], dtype="category"),
    "pandas nullable integers": pd.Series([2, pd.NA, 1], dtype="Int64"),
    "pandas nullable booleans": pd.Series([True, pd.NA, False], dtype="boolean"),
    "pandas dates": pd.Series(pd.to_datetime(["2021-01-01", None, "2020-01-01"])),
    "pandas floats": pd.Series([2.0, NAN, 1.0]),
    "polars strings": pl.Series(["m", None, "f"]),
    "polars integers": pl.Series([2, None, 1]),
    "polars booleans": pl.Series([True, None, False]),
    "polars dates": pl.Series([DAY[1], None, DAY[0]]),
    "polars category": pl.Series(["m", None, "f"], dtype=pl.Categorical),
    "polars NaN": pl.Series([2.0, NAN, 1.0]),
}


@pytest.mark.parametrize("case", MISSING)
def test_missing_values_are_no_group(case: str) -> None:
    found = group_codes(MISSING[case])
    assert found.codes.ravel().tolist() == [1, -1, 0]
    assert len(found.attributes[0].groups) == 2


@pytest.mark.parametrize("kind", ["integers", "floats", "booleans"])
def test_numpy_scalars_are_values_like_others(kind: str) -> None:
    scalars = list(np.array(KINDS[kind]))
    for column in (
        scalars,
        object_array(scalars),
        pd.Series(scalars, dtype=object),
        {"group": scalars},
    ):
        assert not is_missing(next(iter(columns("group", column).values()))).any()
        assert group_codes(column).codes.ravel().tolist() == [1, 0, 1]


@reproducible
@given(
    st.lists(
        st.none() | st.sampled_from(["", "a", "b", "ü", "None", "nan"]), min_size=1, max_size=30
    )
)
def test_codes_lead_back_to_the_values(values: list[str | None]) -> None:
    for column in (
        values,
        pd.Series(values, dtype=object),
        pl.Series("g", values, dtype=pl.String),
    ):
        found = group_codes(column)
        groups = found.attributes[0].groups
        assert [None if code < 0 else groups[code] for code in found.codes[:, 0]] == values
        assert list(groups) == sorted(set(values) - {None})


SEVERAL = {
    "pandas": pd.DataFrame({"sex": ["f", "m", "m"], "old": [1, 0, 1]}),
    "polars": pl.DataFrame({"sex": ["f", "m", "m"], "old": [1, 0, 1]}),
    "dictionary": {"sex": ["f", "m", "m"], "old": np.array([1, 0, 1])},
    "dictionary of series": {
        "sex": pl.Series("a", ["f", "m", "m"]),
        "old": pd.Series([1, 0, 1], name="b"),
    },
}


@pytest.mark.parametrize("case", SEVERAL)
def test_a_table_has_one_attribute_for_each_column(case: str) -> None:
    found = group_codes(SEVERAL[case])
    assert found.attributes == (Attribute("sex", ("f", "m")), Attribute("old", (0, 1)))
    assert found.codes.tolist() == [[0, 1], [1, 0], [1, 1]]


def test_columns_without_a_name_are_numbered() -> None:
    assert list(columns("group", np.zeros((2, 3)))) == ["group 0", "group 1", "group 2"]
    assert list(columns("group", np.zeros((2, 1)))) == ["group"]
    assert list(columns("group", pd.Series([1], name="sex"))) == ["sex"]
    assert list(columns("group", pd.Series([1], name=0))) == ["0"]


def test_frames_whose_columns_are_numbers_are_read_by_column() -> None:
    found = columns("group", pd.DataFrame([[1, 7], [2, 8]]))
    assert {name: column.tolist() for name, column in found.items()} == {"0": [1, 2], "1": [7, 8]}


def test_intersectional_groups_cross_the_columns_and_miss_where_any_part_does() -> None:
    table = {"sex": ["f", "m", None, "m", "f"], "old": [1, 0, 1, None, 0]}
    found = group_codes(table, intersectional=True)
    (attribute,) = found.attributes
    assert (attribute.name, attribute.groups) == ("sex x old", ("f x 0", "f x 1", "m x 0"))
    assert (attribute.columns, attribute.values) == (("sex", "old"), (("f", 0), ("f", 1), ("m", 0)))
    assert found.codes.ravel().tolist() == [1, 2, -1, -1, 0]
    alone = group_codes({"sex": table["sex"]}, intersectional=True)
    assert alone.attributes == (Attribute("sex", ("f", "m")),)


def test_declared_attributes_fix_the_codes() -> None:
    declared = (Attribute("sex", ("m", "x", "f")), Attribute("old", (1, 0)))
    found = group_codes(SEVERAL["pandas"], attributes=declared)
    assert found.codes.tolist() == [[2, 0], [0, 1], [0, 0]]
    assert found.attributes == declared
    number = (Attribute("old", (0.0, 1.0)),)  # as a column with missing values was read before
    assert group_codes([1, 0, True], attributes=number).codes.ravel().tolist() == [1, 0, 1]


STRATA = [
    (
        ["n", "s", None, "n"],
        ["control_features=n", "control_features=s"],
        [[1, 0], [0, 1], [0, 0], [1, 0]],
    ),
    ([2, 1, 2, 2], ["control_features=1", "control_features=2"], [[0, 1], [1, 0], [0, 1], [0, 1]]),
    (np.array([0.5, NAN]), ["control_features=0.5"], [[1], [0]]),
    (
        np.array([True, False, True]),
        ["control_features=False", "control_features=True"],
        [[0, 1], [1, 0], [0, 1]],
    ),
    (
        [True, False, None],
        ["control_features=False", "control_features=True"],
        [[0, 1], [1, 0], [0, 0]],
    ),
    (pl.Series("old", [False, True]), ["old=False", "old=True"], [[1, 0], [0, 1]]),
    (
        pd.DataFrame({"old": [True, True, False], "poor": [True, False, False]}),
        ["old=False,poor=False", "old=True,poor=False", "old=True,poor=True"],
        [[0, 0, 1], [0, 1, 0], [1, 0, 0]],
    ),
    (
        np.array([[True, True], [False, True]]),
        [
            "control_features 0=False,control_features 1=True",
            "control_features 0=True,control_features 1=True",
        ],
        [[0, 1], [1, 0]],
    ),
    ({"a": ["x", "y", None], "b": [1, 2, 1]}, ["a=x,b=1", "a=y,b=2"], [[1, 0], [0, 1], [0, 0]]),
    ({"a": [True, False], "b": ["x", "y"]}, ["a=False,b=y", "a=True,b=x"], [[0, 1], [1, 0]]),
]


@pytest.mark.parametrize(("given", "names", "membership"), STRATA)
def test_strata_are_values(given: object, names: list[str], membership: list[list[int]]) -> None:
    found, strata = stratum_codes(given)
    outside = np.zeros((1, len(names)), dtype=bool)  # stratum -1 belongs to no set
    assert strata.names == tuple(names)
    assert np.vstack([strata.member, outside])[found].astype(int).tolist() == membership
    again, same = stratum_codes(given, strata)
    assert same is strata
    assert np.array_equal(again, found)


def test_declared_strata_fix_the_codes() -> None:
    strata = separate_strata(["in the south", "in the west", "in the north"], ["s", "w", "n"])
    assert stratum_codes(["n", "s", None], strata)[0].tolist() == [2, 0, -1]


MIXED = "mixes values that cannot be ordered ({}); make them one type"
MESSAGES = [
    (lambda: group_codes(["a", 1, None]), f"sensitive_features {MIXED.format('int, str')}"),
    (lambda: group_codes(pd.Series(["a", 1.5], name="sex")), f"sex {MIXED.format('float, str')}"),
    (
        lambda: CodedColumn("y", object_array([1, DAY[0], True])).levels(),
        f"y {MIXED.format('bool, date, int')}",
    ),
    (lambda: stratum_codes(["a", 1]), f"control_features {MIXED.format('int, str')}"),
    (lambda: group_codes([[1, 2], [3]]), f"sensitive_features {MIXED.format('list')}"),
    (
        lambda: group_codes(["m", "d", "f"], attributes=[Attribute("sex", ("f", "m"))]),
        "sex contains 'd', which is none of ['f', 'm']",
    ),
    (
        lambda: group_codes([1, 2], attributes=[Attribute("sex", ("1", "2"))]),
        (
            "sex contains 1, which is none of ['1', '2'], the groups that the first rows had or "
            "that were declared; "
            "declare all of them (groups=), or say from the first rows on that it is a number "
            "(continuous)"
        ),
    ),
    (lambda: CodedColumn("y", np.array([3.5])).places(()), "y contains 3.5, which is none of []"),
    (
        lambda: stratum_codes(["n", "e"], separate_strata(["in the north"], ["n"])),
        "control_features contains 'e', which is none of ['n']",
    ),
    (
        lambda: group_codes(SEVERAL["polars"], attributes=[Attribute("sex", ("f", "m"))]),
        "sensitive_features has 2 column(s), 1 were declared before",
    ),
    (
        lambda: group_codes(None),
        "sensitive_features must be a column or a table of columns, got an array of shape ()",
    ),
    (
        lambda: group_codes("male"),
        (
            "sensitive_features must contain the values of each row, not the name of a column, got "
            "'male'; pass the "
            "column, such as table['male']"
        ),
    ),
    (
        lambda: columns("group", np.zeros((2, 0))),
        "group must be a column or a table of columns, got an array of shape (2, 0)",
    ),
    (
        lambda: columns("group", np.zeros((2, 3, 4))),
        "group must be a column or a table of columns, got an array of shape (2, 3, 4)",
    ),
    (
        lambda: same_length(y=[1], weight=None, groups=np.zeros((2, 3))),
        "arguments must have the same length, got y 1, groups 2",
    ),
]


@pytest.mark.parametrize(("act", "message"), MESSAGES)
def test_what_cannot_be_read_says_why(act: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        act()  # type: ignore[operator]
    assert str(caught.value) == message


@given(st.lists(st.tuples(*[st.text(alphabet='ax "', max_size=6)] * 2), min_size=2, max_size=8))
@settings(reproducible, max_examples=200)
def test_joint_groups_are_as_many_as_their_parts(pairs: list[tuple[str, str]]) -> None:
    pairs += [
        ("a x b", "c"),
        ("a", "b x c"),
        ("a x", "b"),
        ("a", "x b"),
        ("x", "x"),
        ('"a x b"', "c"),
    ]
    (first, second) = zip(*pairs, strict=True)
    found = group_codes({"u": list(first), "v": list(second)}, intersectional=True)
    assert len(found.attributes[0].groups) == len(set(pairs))
    alone = [
        group_codes({"u": [u], "v": [v]}, intersectional=True).attributes[0].groups[0]
        for u, v in pairs
    ]
    # names depend on no other rows
    assert alone == [found.attributes[0].groups[code] for code in found.codes[:, 0]]


def test_a_name_of_two_columns_is_refused(refused: Refusals) -> None:
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with refused(DataError):
        group_codes(twice)
    with refused(DataError):
        group_codes(pl.LazyFrame({"a": [1, 2]}))


def test_lengths_that_agree_are_returned() -> None:
    assert same_length(y=[1, 2], weight=None, table=pd.DataFrame({"a": [1, 2]})) == 2


def test_a_dictionary_holds_one_column_for_each_name() -> None:
    with pytest.raises(DataError):
        columns("group", {"sex": np.array([[1, 2], [3, 4]])})


WHOLE = st.sampled_from(["int8", "uint8", "int16", "int64", "uint64"]).flatmap(
    lambda kind: st.lists(
        st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max)) | st.integers(0, 3),
        max_size=300,
    ).map(lambda values: np.array(values, dtype=kind))
)


@settings(max_examples=150, deadline=None)
@given(WHOLE | st.integers(-9, 2**62).map(lambda low: low + np.arange(7) % 3))
@example(np.array([2**64 - 1, 2**64 - 3] * 2, dtype="uint64"))
@example(np.array([-100, 100] * 150, dtype="int8"))
def test_whole_numbers_are_counted_as_they_would_be_sorted(column: np.ndarray) -> None:
    coded = CodedColumn("group", column)
    found = coded.levels()
    assert found == tuple(sorted(set(column.tolist())))
    assert all(type(level) is int for level in found)
    code = coded.places(found)
    assert [found[place] for place in code] == column.tolist()
