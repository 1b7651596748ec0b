"""Groups as text mean the same in every library of data frames, which codes them by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import DataError
from tests.expected_errors import Refusals
from tests.seams.problem import group_codes

Table = dict[str, list[Any]]

LIBRARIES: dict[str, Callable[[Table], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda table: pd.DataFrame(table, dtype=object),
    "pandas, string": lambda table: pd.DataFrame(table).astype("string"),
    "pandas, categories": lambda table: pd.DataFrame(table).astype("category"),
    "polars": lambda table: pl.DataFrame(table, schema=dict.fromkeys(table, pl.String)),
    "pyarrow": lambda table: pa.table(
        {name: pa.array(own, pa.string()) for name, own in table.items()}
    ),
}
texts = st.one_of(st.none(), st.sampled_from(["f", "m", "x x y", "", "ä", "1", "1.0", "nan"]))
tables = st.lists(st.tuples(texts, texts), min_size=1, max_size=30).map(
    lambda rows: {"one": [row[0] for row in rows], "two": [row[1] for row in rows]}
)


def expected_groups(column: list[Any]) -> list[int]:
    """The place of each text among those that are there, in order; -1 for None."""
    known = sorted({value for value in column if value is not None})
    return [-1 if value is None else known.index(value) for value in column]


@pytest.mark.parametrize("library", LIBRARIES)
@given(table=tables)
@settings(max_examples=40)
def test_text_is_coded_alike_in_every_library(library: str, table: Table) -> None:
    found = group_codes(LIBRARIES[library](table))
    for place, column in enumerate(table.values()):
        assert found.codes[:, place].tolist() == expected_groups(column)
        known = sorted({value for value in column if value is not None})
        assert list(found.attributes[place].groups) == known


@pytest.mark.parametrize("library", LIBRARIES)
@given(table=tables)
@settings(max_examples=40)
def test_rows_are_crossed_alike_in_every_library(library: str, table: Table) -> None:
    """Two rows have one group if and only if they agree in both columns."""
    pairs = list(zip(table["one"], table["two"], strict=True))
    found = group_codes(LIBRARIES[library](table), intersectional=True)
    (attribute,) = found.attributes
    parts = [None if code < 0 else attribute.parts[code] for code in found.codes[:, 0].tolist()]
    assert parts == [None if None in pair else pair for pair in pairs]


def test_other_values_among_texts_are_errors_as_before(refused: Refusals) -> None:
    """pandas looks at the first rows only when it calls a column text."""
    mixed = pd.DataFrame({"who": [*["a", "b"] * 100, 3]}, dtype=object)
    with refused(DataError):
        group_codes(mixed)
    lists = pd.DataFrame({"who": [*["a", "b"] * 100, ["c"]]}, dtype=object)
    with pytest.raises(DataError, match="who mixes values"):
        group_codes(lists)
