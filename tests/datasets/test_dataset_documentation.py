"""Every public name of the data sets has numpydoc's sections: parameters described, what comes
back, examples.
"""

from __future__ import annotations

import pytest

from metrifair import datasets

pytestmark = pytest.mark.extended  # numpydoc is in the extra dev

validate = pytest.importorskip("numpydoc.validate").validate

# missing docstring, parameters that are undocumented, unknown, in another order or without a
# description, no Returns or no description of it, no summary, no example
WANTED = {"GL08", "PR01", "PR02", "PR03", "PR07", "RT01", "RT03", "SS01", "EX01"}
NAMES = [f"metrifair.datasets.{name}" for name in datasets.__all__]


@pytest.mark.parametrize("name", NAMES)
def test_the_sections_are_there(name: str) -> None:
    assert [text for code, text in validate(name)["errors"] if code in WANTED] == []
