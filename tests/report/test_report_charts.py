"""Groups' score distributions: the widest gap and thinning."""

import math
from statistics import NormalDist

import pytest
from frontiers import curves_of

from metrifair.errors import DataError
from tests.seams.figures import Curves
from tests.seams.report import check_curve, thin_curves, widest_gap


def test_the_widest_gap_is_over_all_pairs_of_groups():
    curves = Curves([0, 1, 2], {}, {"a": [0.1, 0.5, 1], "b": [0.2, 0.6, 1], "c": [0.0, 0.9, 1]})
    gap = widest_gap(curves)
    assert (gap.score, gap.lower, gap.upper, gap.size) == (1, "a", "c", pytest.approx(0.4))


def test_the_widest_gap_of_shifted_normals_lies_in_the_middle():
    gap = widest_gap(curves_of(0.0, ("a", "b"), size=1001))
    assert gap.score == pytest.approx(0.52, abs=0.001)
    assert gap.size == pytest.approx(2 * NormalDist().cdf(0.08 / 0.17) - 1)
    assert gap.upper == "a"


def test_fewer_than_two_groups_have_no_gap():
    assert widest_gap(curves_of(0.0, ("a",))) is None


def test_shares_that_are_not_numbers_are_passed_over():
    curves = Curves([0, 1, 2], {}, {"a": [math.nan, 0.5, 1], "b": [0.2, 0.6, 1]})
    assert widest_gap(curves).score == 1
    assert widest_gap(Curves([0, 1], {}, {"a": [math.nan] * 2, "b": [0, 1]})) is None


def test_the_gap_of_equal_groups_names_two_of_them():
    gap = widest_gap(Curves([0, 1], {}, {"a": [0, 1], "b": [0, 1]}))
    assert (gap.size, {gap.lower, gap.upper}) == (0, {"a", "b"})


def test_thinning_keeps_both_ends_and_the_widest_gap():
    curves = curves_of(0.3, ("a", "b", "c"), size=2000)
    few = thin_curves(curves, 60)
    assert 60 <= len(few.grid) <= 61
    assert (few.grid[0], few.grid[-1]) == (0, 1)
    assert widest_gap(few) == widest_gap(curves)
    assert few.density["b"][0] == curves.density["b"][0]
    assert thin_curves(curves, 2000) is curves


@pytest.mark.parametrize("grid", [[0.0], [], [1.0, 0.0], [0.0, 0.0]])
def test_a_grid_must_ascend(grid, refused):
    with refused(DataError):
        check_curve(Curves(grid, {}, {}), "at strength 2.0")


def test_curves_must_be_as_long_as_their_grid(refused):
    with refused(DataError):
        check_curve(Curves([0, 1], {"a": [1]}, {}), "at strength 1")
