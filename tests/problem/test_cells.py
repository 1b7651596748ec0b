"""Cells and comparisons against brute force: who is on which side, and who is told apart from
whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.criteria import (
    CONDITIONAL_STATISTICAL_PARITY,
    CRITERIA,
    EQUAL_OPPORTUNITY,
    EQUALIZED_ODDS,
    PREDICTIVE_EQUALITY,
    RISK_PARITY,
    STATISTICAL_PARITY,
    Criterion,
)
from metrifair.errors import DataError
from tests.seams.problem import (
    Attribute,
    compile_cells,
    group_codes,
    membership_codes,
    overlapping_strata,
    separate_strata,
    stratum_codes,
)

reproducible = settings(deadline=None, derandomize=True, database=None)

SEX, RACE = Attribute("sex", ("f", "m")), Attribute("race", ("a", "b", "c"))
COLUMN = np.array([[0], [1], [0], [1], [-1]])


def two_overlapping(y: np.ndarray) -> np.ndarray:
    return np.stack([y >= 1, y <= 1, y == 7], 1)


OVERLAPPING = Criterion("overlapping", sets=two_overlapping, set_names=("high", "low", "empty"))
BINNED = replace(EQUALIZED_ODDS, bins=(0.5, 1.5))
CHOICES = [
    STATISTICAL_PARITY,
    EQUAL_OPPORTUNITY,
    PREDICTIVE_EQUALITY,
    EQUALIZED_ODDS,
    RISK_PARITY,
    BINNED,
    replace(EQUAL_OPPORTUNITY, bins=(0.5, 1.5)),
    OVERLAPPING,
]


@dataclass
class Case:
    """A compiled criterion with data, and by brute force the sides (comparisons, 2, n) that it
    should have.
    """

    cells: Any
    groups: np.ndarray
    labels: np.ndarray
    strata: np.ndarray | None
    sides: np.ndarray
    names: list[tuple[str, str]]

    @property
    def cell(self) -> np.ndarray:
        return self.cells.of(self.groups, labels=self.labels, strata=self.strata)


def label_sets(
    criterion: Criterion, labels: np.ndarray, classes: int, positive: int
) -> list[np.ndarray]:
    if criterion.sets is not None:
        return list(criterion.sets(labels).T)
    if criterion.labels is None:
        return [np.ones(len(labels), dtype=bool)]
    if criterion.bins is not None:
        positive = len(criterion.bins)  # the highest values
        edges = [-np.inf, *criterion.bins, np.inf]
        each = [(low <= labels) & (labels < high) for low, high in pairwise(edges)]
    else:
        each = [labels == label for label in range(classes)]
    return {"every": each, "positive": [each[positive]], "negative": [~each[positive]]}[
        criterion.labels
    ]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 25))
    attributes = [
        Attribute(f"attribute {k}", tuple(range(count)))
        for k, count in enumerate(draw(st.lists(st.integers(2, 4), min_size=1, max_size=2)))
    ]
    groups = np.array(
        [
            [draw(st.integers(-1, len(attribute.groups) - 1)) for attribute in attributes]
            for _ in range(n)
        ],
    )
    criterion, classes = draw(st.sampled_from(CHOICES)), draw(st.integers(2, 3))
    positive = draw(st.integers(0, classes - 1))
    labels = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    kind = draw(st.sampled_from(["none", "column", "masks"]))
    strata: Any | None = None
    stratum: np.ndarray | None = None
    within = [np.ones(n, dtype=bool)]
    if kind == "column":
        count = draw(st.integers(1, 3))
        strata = separate_strata([f"stratum {k}" for k in range(count)])
        stratum = np.array(draw(st.lists(st.integers(-1, count - 1), min_size=n, max_size=n)))
        within = [stratum == k for k in range(count)]
    if kind == "masks":
        masks = np.array(
            draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=n, max_size=n))
        )
        strata, stratum, within = (
            overlapping_strata(["one", "two"]),
            membership_codes(masks),
            list(masks.T),
        )
    contrast = draw(st.sampled_from(["pairs", "rest"]))
    cells = compile_cells(
        criterion,
        attributes,
        classes=range(classes),
        positive=positive,
        strata=strata,
        contrast=contrast,
    )
    sides, names = [], []
    for k, attribute in enumerate(attributes):
        for chosen in label_sets(criterion, labels, classes, positive):
            for inside in within:
                own, count = groups[:, k], len(attribute.groups)
                if contrast == "pairs" or count == 2:
                    opponents = [((own == g), (own == h)) for g, h in combinations(range(count), 2)]
                    names += [
                        (attribute.name, f"{g} {h}") for g, h in combinations(range(count), 2)
                    ]
                else:
                    opponents = [((own == g), (own >= 0) & (own != g)) for g in range(count)]
                    names += [(attribute.name, f"{g} the rest") for g in range(count)]
                sides += [
                    [left & chosen & inside, right & chosen & inside] for left, right in opponents
                ]
    return Case(cells, groups, labels, stratum, np.array(sides), names)


def sides_of(cells: Any, cell: np.ndarray) -> np.ndarray:
    return np.array(
        [[np.isin(cell, one.left), np.isin(cell, one.right)] for one in cells.comparisons]
    )


@reproducible
@given(cases())
def test_a_side_is_exactly_the_samples_of_that_group_in_that_set(case: Case) -> None:
    assert np.array_equal(sides_of(case.cells, case.cell), case.sides)
    assert [(one.attribute, " ".join(one.groups)) for one in case.cells.comparisons] == case.names


@pytest.mark.extended
@reproducible
@given(cases())
def test_cells_are_what_no_comparison_tells_apart(case: Case) -> None:
    cells = case.cells
    assert np.array_equal(np.unique(cells.table), np.arange(cells.count))
    signatures = sides_of(cells, np.arange(cells.count)).reshape(-1, cells.count).T
    # some comparison tells any two cells apart
    assert len(np.unique(signatures, axis=0)) == cells.count
    cell, seen = case.cell, case.sides.reshape(-1, len(case.groups)).T
    for i, j in combinations(range(len(cell)), 2):
        assert (cell[i] == cell[j]) == np.array_equal(seen[i], seen[j])


@reproducible
@given(cases())
def test_sides_share_no_cell_and_unknown_groups_are_in_no_comparison(case: Case) -> None:
    for one, sides in zip(case.cells.comparisons, sides_of(case.cells, case.cell), strict=True):
        assert not set(one.left) & set(one.right)
        unknown = case.groups[:, int(one.attribute[-1])] < 0
        assert not sides[:, unknown].any()
        if case.strata is not None:
            assert not sides[:, case.strata < 0].any()


@reproducible
@given(cases())
def test_the_cell_of_a_sample_does_not_depend_on_the_others(case: Case) -> None:
    strata = case.strata
    alone = [
        case.cells.of(
            case.groups[[i]],
            labels=case.labels[[i]],
            strata=None if strata is None else strata[[i]],
        )[0]
        for i in range(len(case.groups))
    ]
    assert np.array_equal(alone, case.cell)


@pytest.mark.parametrize(
    ("criterion", "options", "within"),
    [
        (STATISTICAL_PARITY, {}, ["everyone"]),
        (RISK_PARITY, {}, ["everyone"]),
        (EQUAL_OPPORTUNITY, {}, ["label=yes"]),
        (EQUAL_OPPORTUNITY, {"positive": 0}, ["label=no"]),
        (EQUAL_OPPORTUNITY, {"classes": "xyz", "positive": 2}, ["label=z"]),
        (PREDICTIVE_EQUALITY, {}, ["label=no"]),
        (PREDICTIVE_EQUALITY, {"classes": "xyz"}, ["label≠y"]),
        (EQUALIZED_ODDS, {}, ["label=no", "label=yes"]),
        (EQUALIZED_ODDS, {"classes": "xyz"}, ["label=x", "label=y", "label=z"]),
        (BINNED, {"classes": ()}, ["label<0.5", "0.5≤label<1.5", "label≥1.5"]),
        (replace(BINNED, bins=(3.0,), labels="positive"), {"classes": ()}, ["label≥3"]),
        (replace(BINNED, bins=(3.0,), labels="negative"), {"classes": ()}, ["label<3"]),
        (OVERLAPPING, {}, ["high", "low", "empty"]),
        (
            CONDITIONAL_STATISTICAL_PARITY,
            {"strata": separate_strata(["north", "south"])},
            ["north", "south"],
        ),
        (STATISTICAL_PARITY, {"strata": overlapping_strata(["old", "poor"])}, ["old", "poor"]),
        (EQUAL_OPPORTUNITY, {"strata": separate_strata(["north"])}, ["label=yes,north"]),
    ],
)
def test_comparisons_say_where_they_compare(
    criterion: Criterion, options: dict, within: list[str]
) -> None:
    cells = compile_cells(criterion, [SEX], **{"classes": ("no", "yes"), **options})
    assert [str(one) for one in cells.comparisons] == [
        f"sex 'f' against 'm', {where}" for where in within
    ]


@pytest.mark.parametrize(
    ("criterion", "options", "conditions"),
    [
        (STATISTICAL_PARITY, {}, [()]),
        (EQUAL_OPPORTUNITY, {"classes": (0, 1)}, [(("label", 1),)]),
        (PREDICTIVE_EQUALITY, {"classes": "xyz"}, [(("label", ("x", "z")),)]),
        (
            BINNED,
            {"classes": ()},
            [(("label", "<0.5"),), (("label", "[0.5,1.5)"),), (("label", "≥1.5"),)],
        ),
        (replace(BINNED, labels="negative"), {"classes": ()}, [(("label", "<1.5"),)]),
        (
            STATISTICAL_PARITY,
            {"strata": overlapping_strata(["old", "poor"])},
            [(("old", True),), (("poor", True),)],
        ),
        (
            EQUAL_OPPORTUNITY,
            {
                "classes": (0, 1),
                "strata": stratum_codes({"region": ["n", "n"], "level": [2, 3]})[1],
            },
            [
                (("label", 1), ("region", "n"), ("level", 2)),
                (("label", 1), ("region", "n"), ("level", 3)),
            ],
        ),
    ],
)
def test_comparisons_hold_the_values_of_their_sets(
    criterion: Criterion, options: dict, conditions: list
) -> None:
    cells = compile_cells(criterion, [SEX], **{"classes": ("no", "yes"), **options})
    assert [one.conditions for one in cells.comparisons] == conditions


def test_comparisons_hold_the_values_of_their_groups() -> None:
    (crossed,) = group_codes(
        {"sex": ["f", "m"], "old": [True, False]}, intersectional=True
    ).attributes
    old = Attribute("old", (False, True))
    (pair,), (joint,) = (
        compile_cells(STATISTICAL_PARITY, [one]).comparisons for one in (old, crossed)
    )
    assert (pair.groups, pair.values) == (("False", "True"), (False, True))
    assert (joint.groups, joint.values) == (("f x True", "m x False"), (("f", True), ("m", False)))
    rest = compile_cells(STATISTICAL_PARITY, [RACE], contrast="rest").comparisons
    assert [one.values for one in rest] == [("a", None), ("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("contrast", "expected"),
    [
        (
            "pairs",
            [
                "sex 'f' against 'm'",
                "race 'a' against 'b'",
                "race 'a' against 'c'",
                "race 'b' against 'c'",
            ],
        ),
        (
            "rest",
            [
                "sex 'f' against 'm'",
                "race 'a' against 'the rest'",
                "race 'b' against 'the rest'",
                "race 'c' against 'the rest'",
            ],
        ),
    ],
)
def test_contrasts_of_two_attributes(contrast: str, expected: list[str]) -> None:
    cells = compile_cells(STATISTICAL_PARITY, [SEX, RACE], contrast=contrast)
    assert [str(one) for one in cells.comparisons] == [f"{name}, everyone" for name in expected]
    assert cells.count == 3 * 4  # every combination, unknown ones among them


def test_cells_that_nobody_compares_are_one_and_the_last() -> None:
    cells = compile_cells(EQUAL_OPPORTUNITY, [SEX], classes=("no", "yes"))
    assert cells.of(COLUMN, labels=np.array([0, 0, 1, 1, 1])).tolist() == [2, 2, 0, 1, 2]
    assert cells.count == 3


def test_targets_at_the_edge_of_a_bin_belong_to_the_upper_one() -> None:
    cells = compile_cells(BINNED, [SEX])
    found = cells.of(np.zeros((5, 1), dtype=int), labels=np.array([0.4, 0.5, 1.0, 1.5, 9.0]))
    assert [[one.within for one in cells.comparisons if cell in one.left] for cell in found] == [
        ["label<0.5"],
        ["0.5≤label<1.5"],
        ["0.5≤label<1.5"],
        ["label≥1.5"],
        ["label≥1.5"],
    ]


@reproducible
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=20))
def test_the_number_of_a_combination_of_sets_stands_for_it(rows: list[list[bool]]) -> None:
    membership = np.array(rows)
    assert np.array_equal(
        overlapping_strata(list("abcd")).member[membership_codes(membership)], membership
    )


def wrong_sets(shape: Sequence[int], dtype: type) -> Criterion:
    return Criterion("mine", sets=lambda y: np.zeros(shape, dtype=dtype), set_names=("one", "two"))


LABELS = np.array([0, 0, 1, 1, 1])
MESSAGES = [
    (
        lambda: compile_cells(STATISTICAL_PARITY, [SEX], contrast="all"),
        "contrast must be one of 'pairs', 'rest', got 'all'",
    ),
    (
        lambda: compile_cells(CONDITIONAL_STATISTICAL_PARITY, [SEX]),
        "conditional_statistical_parity needs control_features; pass the stratum of each row",
    ),
    (
        lambda: compile_cells(EQUALIZED_ODDS, [SEX]),
        (
            "equalized_odds compares groups within labels, and there are 0 classes; for a "
            "regression target cut it "
            "with bins, as in dataclasses.replace(EQUALIZED_ODDS, bins=(...))"
        ),
    ),
    (
        lambda: compile_cells(STATISTICAL_PARITY, [SEX, Attribute("race", ("a",))]),
        "race has 1 group(s): ['a']; fairness between groups needs at least two",
    ),
    (
        lambda: overlapping_strata([str(k) for k in range(13)]),
        "at most 12 overlapping sets are supported, got 13",
    ),
    (
        lambda: compile_cells(
            STATISTICAL_PARITY, [Attribute(str(k), tuple(range(20))) for k in range(5)]
        ),
        (
            "the attributes, the sets and their groups make more than 2,000,000 combinations "
            "(attributes: 5, "
            "sets: 1); use fewer attributes, coarser groups or fewer strata"
        ),
    ),
    (
        lambda: compile_cells(EQUALIZED_ODDS, [SEX], classes=(0, 1)).of(COLUMN),
        "equalized_odds compares groups within labels; pass the true labels",
    ),
    (
        lambda: compile_cells(wrong_sets((5, 2), int), [SEX]).of(COLUMN, labels=LABELS),
        (
            "the sets of mine must be booleans of shape (5, 2), one column for each of its "
            "set_names, got int64 of "
            "shape (5, 2)"
        ),
    ),
    (
        lambda: compile_cells(wrong_sets((5,), bool), [SEX]).of(COLUMN, labels=LABELS),
        (
            "the sets of mine must be booleans of shape (5, 2), one column for each of its "
            "set_names, got bool of "
            "shape (5,)"
        ),
    ),
]


@pytest.mark.parametrize(("act", "message"), MESSAGES)
def test_what_cannot_be_compiled_says_why(act: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        act()  # type: ignore[operator]
    assert str(caught.value) == message


NEW_DATA = [
    pytest.param(
        EQUALIZED_ODDS,
        [0, 1, -1, 0, 1],
        None,
        id="missing label (code -1): taken for the last class",
    ),
    pytest.param(BINNED, [0, 1, np.nan, 0, 1], None, id="missing target: falls into the last bin"),
    pytest.param(
        EQUALIZED_ODDS,
        [0, 1, 0, 1, 1],
        ["north", "south"],
        id="strata left out: everyone is in the first",
    ),
]


@pytest.mark.parametrize(("criterion", "labels", "strata"), NEW_DATA)
def test_a_sample_of_which_something_is_unknown_is_refused_or_not_compared(
    criterion: Criterion, labels: list[float], strata: list[str] | None
) -> None:
    cells = compile_cells(
        criterion, [SEX], classes=(0, 1), strata=strata and separate_strata(strata)
    )
    try:
        found = cells.of(COLUMN, labels=np.array(labels))
    except DataError:
        return
    assert not sides_of(cells, found)[..., 2].any()


@pytest.mark.parametrize("bins", [(3.0, 1.0), ()])
def test_bins_that_cut_nothing_are_refused(bins: tuple[float, ...]) -> None:
    with pytest.raises(DataError):
        compile_cells(replace(BINNED, bins=bins), [SEX])


def test_all_criteria_compile_with_strata() -> None:
    for criterion in CRITERIA.values():
        cells = compile_cells(
            criterion, [SEX], classes=(0, 1), strata=separate_strata(["north", "south"])
        )
        assert len(cells.comparisons) == 2 * (2 if criterion is EQUALIZED_ODDS else 1)
