"""The automatic choice beside the best family in hindsight: a split runs, and the table is made
of choices.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.hindsight import LIMITS, Chosen, choices, hindsight_page
from metrifair import FairClassifier, FairRegressor
from tests.seams.tradeoff import Portfolio


@pytest.mark.parametrize("name", ["mortgage", "student-math"])
def test_each_limit_has_the_choice_of_all_families_and_of_each(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = FairClassifier, FairRegressor
    monkeypatch.setattr(
        Portfolio,
        "families",
        lambda own: {each: own._ours(*kinds, model="linear") for each in "ab"},
    )
    found = choices((name, 460), rows=300, strengths=[0, 10])
    assert [(one.limit, one.among) for one in found] == [
        (limit, own) for limit in LIMITS for own in ("auto", "a", "b")
    ]
    assert all(
        one.family in ({"a", "b"} if one.among == "auto" else {one.among}) | {""} for one in found
    )
    assert all(0 <= one.excess <= one.gap <= 1 for one in found)
    assert (
        len({one[4:] for one in found if one.limit == LIMITS[-1] and one.among != "auto"}) == 2
    )  # equal but for names
    assert len({one[5:] for one in found if one.limit == LIMITS[-1]}) == 1


def test_the_best_family_is_the_best_of_those_that_keep_the_limit(tmp_path: Path) -> None:
    """By hand: b is the best by utility but misses the limit on average, so that c is compared
    with.
    """
    utilities = {"auto": (0.80, 0.82), "a": (0.70, 0.70), "b": (0.90, 0.90), "c": (0.79, 0.85)}
    gaps = {"auto": (0.1, 0.12), "a": (0.0, 0.0), "b": (0.05, 0.17), "c": (0.09, 0.1)}
    found = [
        Chosen(
            "people",
            460 + split,
            limit,
            among,
            "a" if split else "",
            own[split],
            gaps[among][split],
            gaps[among][split],
        )
        for limit in LIMITS
        for among, own in utilities.items()
        for split in (0, 1)
    ]
    (tmp_path / "points.json").write_text(json.dumps(found))
    (table,) = hindsight_page(tmp_path / "points.json").tables.values()
    assert table[1] == [
        "people",
        "0.1",
        "0.810 / 0.110",
        "a 1, constant 1",
        "c",
        "0.820 / 0.095",
        "-1.0 ± 2.0 missed",
    ]
    # at 0.15, b is within the limit too
    assert table[2][4:] == ["b", "0.900 / 0.110", "-9.0 ± 1.0"]
