"""A number agrees with its noun and its verb, also the number 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import metrifair
from metrifair import AuditOptions, DataError, audit
from metrifair.errors import MetrifairWarning
from tests.expected_errors import Refusals
from tests.seams.support import Provenance, SourceFile
from tests.seams.wording import provenance_lines

SOURCE = Path(metrifair.__file__).parent
# after a number that may be 1
OTHERS = re.compile(r" (more|further|other) [a-z]+s\b")
RNG = np.random.default_rng(0)


def counted_others(text: str) -> Iterator[str]:
    """What follows a number in the texts of a module, if it names several other things."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for part, after in zip(node.values, node.values[1:], strict=False):
            is_count = isinstance(part, ast.FormattedValue) and isinstance(after, ast.Constant)
            if is_count and OTHERS.match(str(after.value)):
                yield str(after.value)


def test_the_number_of_others_is_written_by_one_function() -> None:
    """ "and 1 more rows": what is left of a list is often one."""
    assert list(counted_others('text = f"and {count - 3:,} more rows"')) == [" more rows"]
    texts = {
        str(path.relative_to(SOURCE)): found
        for path in SOURCE.rglob("*.py")
        if (found := list(counted_others(path.read_text())))
    }
    assert texts == {}


def test_two_numeric_attributes_are_taken_as_numbers() -> None:
    age, debt = RNG.normal(size=(2, 300))
    for columns, expected in (
        ({"age": age}, "'age' (300 different values) is taken as a number"),
        ({"age": age, "debt": debt}, "and 'debt' (300 different values) are taken as numbers"),
    ):
        with pytest.warns(MetrifairWarning, match=re.escape(expected)):
            audit(
                None,
                RNG.random(300),
                sensitive_features=columns,
                options=AuditOptions(permutations=0, resamples=0),
            )


def test_one_gap_is_no_plural() -> None:
    text = audit(
        None,
        RNG.normal(size=200),
        sensitive_features=np.arange(200) % 2,
        metrics="wasserstein",
        options=AuditOptions(permutations=9, resamples=0),
    ).summary
    assert "9 permutations are too few to test 1 gap; 20 are needed." in text


def test_one_other_file_is_no_plural() -> None:
    for count, expected in ((11, "1 more file"), (12, "2 more files")):
        files = tuple(SourceFile(f"{place}.csv", 10, "0" * 64) for place in range(count))
        assert any(expected in text for _, text in provenance_lines(Provenance(files=files)))


def test_a_bad_value_is_shown_with_the_number_of_its_kind(refused: Refusals) -> None:
    scores = np.array([0.1, "abc", 0.3, "def"] * 10, dtype=object)
    with refused(DataError):
        audit(None, scores, sensitive_features=np.arange(40) % 2)
