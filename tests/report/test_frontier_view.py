"""What a report shows, as numbers: rows, Pareto line, axes, texts of figures."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from frontiers import demo_view, point_of, strengths_of

from metrifair.errors import DataError
from tests.seams.figures import UTILITIES, Interval
from tests.seams.report import axis, front_line, frontier_axes
from tests.seams.tradeoff import Goal, Point, area, pareto
from tests.seams.wording import FrontierView, figure_lines, figure_text, strength_texts

NO_BETTER = "not significantly better than a constant predictor"


def test_there_is_one_row_per_strength_in_ascending_order():
    view = demo_view()
    shuffled = replace(
        view, points=sorted(view.points, key=lambda point: (point.seed, -point.strength))
    )
    assert [row.strength for row in shuffled.rows] == list(strengths_of(25))
    assert shuffled.rows[0].text == "0"


def test_a_row_holds_the_mean_and_the_range_over_the_seeds():
    points = [
        Point(1, seed, accuracy, gap)
        for seed, (accuracy, gap) in enumerate([(0.8, 0.2), (0.9, 0.4), (0.7, 0.3)])
    ]
    (row,) = FrontierView(points).rows
    assert row.figures["accuracy"].value == pytest.approx(0.8)
    assert row.figures["unfairness"].value == pytest.approx(0.3)
    assert row.figures["accuracy"].bounds == Interval(0.7, 0.9)
    assert row.figures["accuracy"].over_seeds


def test_a_single_model_keeps_its_own_interval():
    (row,) = FrontierView([point_of(0.5, 0)]).rows
    assert row.figures["accuracy"].bounds == point_of(0.5, 0).intervals["accuracy"]
    assert not row.figures["accuracy"].over_seeds


def test_failed_seeds_do_not_enter_the_mean():
    view = FrontierView([Point(1, 0, 0.8, 0.2), Point(1, 1, 0.0, 0.0, failed=True)])
    (row,) = view.rows
    assert row.figures["accuracy"].value == 0.8
    assert row.state == "1 of 2 failed"
    assert view.usable == (view.points[0],)


def test_of_several_seeds_the_chosen_one_stands_for_its_row():
    points = [Point(1, seed, 0.8 + 0.1 * seed, 0.2) for seed in range(3)]
    chosen = Point(1, 1, 0.87, 0.25, intervals={"accuracy": Interval(0.85, 0.9)})
    (row,) = FrontierView(points, chosen=chosen).rows
    assert (row.figures["accuracy"].value, row.figures["unfairness"].value) == (0.87, 0.25)
    assert row.figures["accuracy"].bounds == Interval(0.85, 0.9)
    assert not row.figures["accuracy"].over_seeds
    assert row.is_chosen
    assert len(row.points) == 3


def noise_point(strength, upper):
    """A model whose unfairness cannot be distinguished from 0."""
    return Point(
        strength, 0, 0.8, 0.0, intervals={"unfairness": Interval(0.0, upper)}, is_noise=True
    )


def test_an_unfairness_that_could_be_0_is_below_the_end_of_its_interval():
    view = FrontierView([Point(0, 0, 0.9, 0.4), noise_point(1, 0.0624)])
    assert view.rows[1].figures["unfairness"].text == "below 0.062"
    assert view.rows[1].figures["unfairness"].bounds_text == ""
    assert view.rows[1].figures["accuracy"].text == "0.800"
    assert dict(figure_lines(view, view.points[1]))["Unfairness"] == "below 0.062"
    assert view.text(view.points[0], "unfairness") == "0.400"


def test_the_mean_of_seeds_is_below_a_bound_only_if_all_are():
    noise = [replace(noise_point(1, 0.05 + 0.02 * seed), seed=seed) for seed in range(2)]
    (row,) = FrontierView(noise).rows
    assert row.figures["unfairness"].text == "below 0.070"
    (row,) = FrontierView([*noise, Point(1, 2, 0.8, 0.3)]).rows
    assert row.figures["unfairness"].text == "0.100"


def test_noise_without_an_interval_is_below_the_noise_of_these_rows():
    bare = replace(noise_point(1, 0.0), intervals={})
    view = FrontierView([bare], noise=0.08)
    assert view.text(bare, "unfairness") == "below 0.080"
    assert view.text(bare, "accuracy") == "0.800"


def test_points_without_figures_are_treated_like_failed_ones():
    view = FrontierView(
        [Point(0, 0, 0.8, 0.2), Point(1, 0, math.nan, 0.1), Point(2, 0, 0.9, math.inf)]
    )
    assert [row.state for row in view.rows] == ["ok", "failed", "failed"]
    assert [point.strength for point in view.front] == [0]


def test_the_front_is_that_of_the_points_on_the_chosen_unfairness():
    swapped = [Point(0, 0, 0.9, 0.4, 0.1), Point(1, 0, 0.8, 0.1, 0.4)]
    assert [point.strength for point in FrontierView(swapped).front] == [1, 0]
    assert [point.strength for point in FrontierView(swapped, unfairness_of="decisions").front] == [
        0
    ]
    assert FrontierView(swapped, unfairness_of="decisions").gap_key == "decision_unfairness"


def test_regression_has_no_decisions_even_if_asked():
    view = demo_view(decisions=False, unfairness_of="decisions", accuracy_name="R2")
    assert view.gap_key == "unfairness"
    assert view.keys == ("accuracy", "unfairness")
    assert view.label("accuracy") == "R²"


def test_the_area_under_the_step_line_is_the_area_of_the_points():
    view = demo_view()
    corners = front_line(view)
    under = sum((b[0] - a[0]) * a[1] for a, b in pairwise(corners))
    beyond = (1 - corners[-1][0]) * corners[-1][1]
    assert under + beyond == pytest.approx(area(view.points))
    assert all(b[0] >= a[0] and b[1] >= a[1] for a, b in pairwise(corners))


def test_the_step_line_passes_through_every_pareto_point():
    view = demo_view()
    assert {(point.unfairness, point.accuracy) for point in pareto(view.points)} <= set(
        front_line(view)
    )


def test_the_axes_hold_all_points_and_the_chosen_one():
    view = demo_view()
    view = replace(view, chosen=replace(view.points[0], accuracy=0.5, unfairness=0.6))
    x, y = frontier_axes(view)
    assert x.low == 0
    assert x.high > 0.6
    assert frontier_axes(replace(view, goal=Goal(0.9)))[0].high > 0.9
    assert y.low < 0.5
    assert all(
        x.low <= p.unfairness <= x.high and y.low <= p.accuracy <= y.high for p in view.usable
    )


@pytest.mark.parametrize("values", [[0.5], [0.0], [1.0], [-50.0, 0.9], [0.861, 0.8612], [0.0, 1e6]])
def test_an_axis_has_width_and_ticks_inside_with_distinct_texts(values):
    found = axis(values)
    assert found.low < min(values) <= max(values) <= found.high
    assert 2 <= len(found.ticks) <= 8
    assert all(found.low <= at <= found.high for at, _ in found.ticks)
    assert len({text for _, text in found.ticks}) == len(found.ticks)


def test_ticks_say_what_they_mark():
    assert axis([0.9, 0.95], top=1).ticks[1:3] == ((0.91, "0.91"), (0.92, "0.92"))
    assert axis([-4.0, 4.0]).ticks[0] == (-4.0, "−4")


def test_no_text_is_ever_nan():
    assert [figure_text(value) for value in (None, math.nan, math.inf, -math.inf)] == ["–"] * 4
    view = FrontierView(
        [
            Point(
                0,
                0,
                0.9,
                0.4,
                more={"auc": math.nan},
                intervals={"accuracy": Interval(math.nan, 1)},
            )
        ]
    )
    assert dict(figure_lines(view, view.points[0]))["AUC"] == "–"
    assert dict(figure_lines(view, view.points[0]))["Accuracy"] == "0.900"


def test_figures_of_a_point_come_with_their_intervals():
    point = Point(0.25, 7, 0.9, 0.4, 0.3, {"auc": 0.95}, {"accuracy": Interval(0.88, 0.92)})
    lines = dict(figure_lines(FrontierView([point], labels={"auc": "area"}), point))
    assert lines == {
        "Strength": "0.25",
        "Seed": "7",
        "Accuracy": "0.900 (0.880 to 0.920)",
        "Unfairness": "0.400",
        "Unfairness of decisions": "0.300",
        "area": "0.950",
    }


def test_close_strengths_get_texts_that_differ():
    assert strength_texts([1.00001, 1.00002]) == ("1.00001", "1.00002")
    assert strength_texts([0.1 + 0.2, 0.3]) == ("0.30000000000000004", "0.3")
    assert strength_texts([1e9, 123456.0]) == ("1e9", "123456")


def test_groups_are_those_named_and_then_those_that_have_curves():
    view = demo_view(groups=("b", "a"))
    assert view.group_names == ("b", "a")
    assert replace(view, groups=("z", "a")).group_names == ("z", "a", "b")


def test_a_view_says_what_is_wrong_with_it(refused):
    with refused(DataError):
        FrontierView([])
    with refused(DataError):
        FrontierView([Point(0, 0, 1, 0)], unfairness_of="score")
    with refused(DataError):
        FrontierView([Point(0, 0, 1, 0)], accuracy_name="auc")


# ---- axes
# -------------------------------------------------------------------------------------------------------


def test_axes_hold_the_constant_model_and_all_error_bars():
    points = [
        Point(
            0,
            0,
            0.9,
            0.4,
            intervals={"accuracy": Interval(0.85, 0.95), "unfairness": Interval(0.2, 0.6)},
        ),
        Point(
            1,
            0,
            0.88,
            0.2,
            intervals={"accuracy": Interval(0.82, 0.93), "unfairness": Interval(0.1, 0.3)},
        ),
    ]
    x, y = frontier_axes(FrontierView(points, constant=Point(0, 0, 0.7, 0.0)))
    assert y.low <= 0.7 < 0.95 <= y.high
    assert x.low == 0 < 0.6 <= x.high


def test_accuracies_that_differ_by_less_than_their_error_do_not_fill_the_axis():
    points = [Point(k, 0, 0.9 + 0.001 * k, 0.1 * k, errors={"accuracy": 0.02}) for k in range(4)]
    _, y = frontier_axes(FrontierView(points))
    assert 0.05 * (y.high - y.low) > 0.003
    _, bare = frontier_axes(FrontierView([replace(point, errors={}) for point in points]))
    assert bare.high - bare.low < 0.3 * (y.high - y.low)


def test_a_loss_falls_along_its_axis_and_leads_its_pareto_line():
    points = [
        Point(0, 0, 0.9, 0.4, more={"log_loss": 0.3}),
        Point(1, 0, 0.95, 0.1, more={"log_loss": 0.5}),
    ]
    view = FrontierView(points, utility=UTILITIES["log_loss"])
    _, y = frontier_axes(view)
    assert y.low > 0.5 > 0.3 > y.high
    assert [point.strength for point in view.front] == [1, 0]
    assert [point.strength for point in FrontierView(points).front] == [1]
    assert view.keys[:2] == ("log_loss", "accuracy")


def test_a_row_of_several_seeds_says_how_many_are_marked():
    points = [
        Point(1, seed, 0.9, 0.1, marks={"accuracy": "not_significantly_better"} if seed else {})
        for seed in range(3)
    ]
    assert FrontierView(points).rows[0].mark == f"2 of 3: {NO_BETTER}"
    assert FrontierView(points[1:]).rows[0].mark == NO_BETTER
    assert FrontierView(points, utility=UTILITIES["auc"]).rows[0].mark == ""
    alike = [replace(point, marks={"accuracy": "constant"}) for point in points]
    assert FrontierView(alike).rows[0].mark == "decides the same for everyone"
