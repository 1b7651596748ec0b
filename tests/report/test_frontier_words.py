"""The report in words: findings, costs, noise."""

from dataclasses import replace

import pytest
from frontiers import demo_view

from tests.seams.figures import UTILITIES, Interval
from tests.seams.tradeoff import Change, Goal, Point
from tests.seams.wording import (
    FrontierView,
    chance_text,
    compared_note,
    glossary,
    headline,
    shown_note,
    summary,
    verdict,
)
from tests.seams.wording import frontier_highlights as highlights

TWO = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]


CHANGE = Change(
    TWO[0], -0.05, -0.3, {"utility": Interval(-0.06, -0.04), "unfairness": Interval(-0.4, 0.01)}
)


def test_the_headline_says_what_the_chosen_model_reaches_and_costs():
    reached = "Chosen: strength 2. Expected on new data: accuracy 0.850, unfairness 0.100."
    view = FrontierView(TWO, chosen=TWO[1], change=CHANGE, goal=Goal(0.1))
    assert headline(view) == (
        reached,
        (
            "Compared with no penalty: accuracy 0.050 lower (0.040 to 0.060), unfairness 0.300 lower "
            "(−0.010 to 0.400)."
        ),
        "Within the limit of 0.1.",
    )
    assert headline(FrontierView(TWO, chosen=TWO[1])) == (reached,)


def test_the_figures_of_the_headline_have_their_intervals():
    intervals = {"auc": Interval(0.798, 0.86), "unfairness": Interval(0.101, 0.17)}
    chosen = replace(TWO[1], unfairness=0.135, more={"auc": 0.829}, intervals=intervals)
    view = FrontierView([TWO[0], chosen], chosen=chosen, utility=UTILITIES["auc"])
    assert headline(view)[0] == (
        "Chosen: strength 2. Expected on new data: AUC 0.829 (0.798 to 0.860), unfairness 0.135 "
        "(0.101 to 0.170)."
    )
    assert "On 500 test rows: AUC 0.829 (0.798" in headline(replace(view, test_rows=500))[0]


NOISE = replace(
    TWO[1], unfairness=0.0, intervals={"unfairness": Interval(0.0, 0.062)}, is_noise=True
)


def test_an_unfairness_that_could_be_0_is_reported_as_below_its_bound():
    view = FrontierView([TWO[0], NOISE], chosen=NOISE, change=CHANGE, goal=Goal(0.1))
    first, cost, kept = headline(view)
    assert first.endswith("unfairness below 0.062 (not distinguishable from 0 with these rows).")
    assert cost.endswith("unfairness −0.010 to 0.400 lower.")
    assert kept == "Within the limit of 0.1."
    assert not any("0.000" in sentence for sentence in summary(view))
    (tile,) = [found for found in highlights(view) if "hosen" in found.heading]
    assert tile.sentence == kept
    unchosen = FrontierView([NOISE])
    assert headline(unchosen)[0].endswith("; its unfairness is below 0.062.")


def test_a_constant_predictor_is_named_in_the_first_line():
    constant = replace(TWO[1], marks={"accuracy": "constant"})
    view = FrontierView([TWO[0], constant], chosen=constant, goal=Goal(0.2))
    assert headline(view)[0].startswith("Chosen: strength 2, a constant predictor. Expected on")
    for mark in ("", "not_significantly_better"):
        other = replace(TWO[1], marks={"accuracy": mark} if mark else {})
        assert "constant" not in headline(replace(view, chosen=other))[0]


@pytest.mark.parametrize(
    ("goal", "condition"),
    [
        (Goal(0.05), "No model has an unfairness of at most 0.05."),
        (
            Goal(0.05, confidence=0.9, needs_group=False),
            (
                "No model that predicts without the group has an unfairness of at most 0.05 with a "
                "confidence of 0.9."
            ),
        ),
        (Goal(min_accuracy=0.95), "No model has an accuracy of at least 0.95."),
    ],
)
def test_a_best_effort_is_named_in_the_first_line(goal, condition):
    view = FrontierView(TWO, chosen=TWO[1], goal=goal, is_best_effort=True)
    assert headline(view) == (
        (
            f"{condition} The least unfair one is chosen: strength 2. Expected on new data: accuracy "
            "0.850, unfairness 0.100."
        ),
    )


def test_a_best_effort_for_a_limit_that_cannot_be_verified_says_so():
    view = FrontierView(TWO, chosen=TWO[1], goal=Goal(0.05), is_best_effort=True, noise=0.0742)
    assert headline(view)[0].startswith(
        "A limit of 0.05 cannot be verified with these rows: equal groups can differ by 0.074 by "
        "chance. Chosen as a best effort: strength 2. Expected on new data"
    )


def test_the_headline_of_a_regression_speaks_of_r_squared():
    view = FrontierView(TWO, chosen=TWO[1], accuracy_name="R2", change=CHANGE)
    first, cost = headline(view)
    assert first == "Chosen: strength 2. Expected on new data: R² 0.850, unfairness 0.100."
    assert cost.startswith("Compared with no penalty: R² 0.050 lower")


def test_the_headline_without_a_choice_or_without_a_penalty():
    first, second = headline(FrontierView(TWO))
    assert first == "The most accurate model is right in 90.0% of cases; its unfairness is 0.400."
    assert second.startswith("No model has been chosen yet")
    view = FrontierView(TWO, chosen=TWO[0], change=replace(CHANGE, utility=0.0))
    assert len(headline(view)) == 1


def test_the_chosen_figures_replace_those_by_which_it_was_compared():
    chosen = replace(TWO[1], accuracy=0.83, unfairness=0.13)
    view = FrontierView(TWO, chosen=chosen, change=CHANGE)
    assert "accuracy 0.830, unfairness 0.130" in headline(view)[0]
    assert [found.point for found in highlights(view)] == [TWO[0], chosen]
    assert view.rows[1].figures["unfairness"].value == 0.13
    assert "0.850" not in " ".join(summary(view))
    assert compared_note(view) in shown_note(view, 2)
    assert compared_note(FrontierView(TWO)) == compared_note(FrontierView(TWO[:1], chosen=TWO[0]))


def test_a_family_names_the_chosen_model():
    points = [replace(TWO[0], family="linear"), replace(TWO[1], family="moved")]
    parameters = {"linear": "strength", "moved": "tolerance"}
    view = FrontierView(points, chosen=points[1], parameters=parameters)
    assert headline(view)[0].startswith("Chosen: moved, tolerance 2. Expected on new data")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"goal": Goal(0.1)}, "Within the limit of 0.1."),
        (
            {"goal": Goal(0.1, confidence=0.9)},
            "Within the limit of 0.1 with a confidence of 0.9.",
        ),
        (
            {"goal": Goal(0.1), "test_rows": 500},
            "Within the limit of 0.1 on the test rows.",
        ),
        (
            {"goal": Goal(0.0999)},
            (
                "It was within the unfairness limit of 0.0999 when models were compared, but is "
                "expected to exceed it: choose with a confidence of 0.9, or a lower limit, to keep it "
                "more surely."
            ),
        ),
        (
            {"goal": Goal(0.0999), "test_rows": 500},
            (
                "It exceeds the unfairness limit of 0.0999 on the test rows: choose with a confidence "
                "of 0.9, or a lower limit, to keep it more surely."
            ),
        ),
        (
            {"goal": Goal(min_accuracy=0.8)},
            "It is the least unfair model with an accuracy of at least 0.8, up to noise.",
        ),
        ({"goal": Goal(0.05), "is_best_effort": True}, ""),
        ({"goal": None}, ""),
    ],
)
def test_the_verdict_says_whether_the_limit_is_kept(changes, said):
    assert verdict(FrontierView(TWO, chosen=TWO[1], **changes)) == said


def test_a_limit_within_the_interval_is_kept_with_a_reservation():
    wide = replace(TWO[1], intervals={"unfairness": Interval(0.05, 0.15)})
    view = FrontierView(TWO, chosen=wide, goal=Goal(0.12))
    assert verdict(view) == ("Within the limit of 0.12; the true value may be above it.")
    assert verdict(replace(view, goal=Goal(0.15))) == "Within the limit of 0.15."


def test_a_headline_is_a_few_sentences_whatever_was_chosen():
    """Over what can be chosen: nothing, the best, another, by a limit that is kept or not."""
    views = [
        FrontierView(TWO, chosen=chosen, goal=limit and Goal(limit), change=change)
        for chosen in (None, *TWO)
        for limit in (None, 0.05, 0.5)
        for change in (None, CHANGE)
    ]
    for view in views:
        lines = headline(view)
        assert 1 <= len(lines) <= 3
        assert all(line.endswith(".") for line in lines)
        assert summary(view)[: len(lines)] == lines
        assert len(set(summary(view))) == len(summary(view))


def test_the_summary_counts_failures():
    assert (
        summary(demo_view())[-1]
        == "2 of 50 models failed; the table lists them, the plot leaves them out."
    )
    assert summary(demo_view(count=2, failed=2))[0].startswith(
        "None of the 4 trained models can be shown"
    )


def test_a_choice_worse_than_the_best_in_both_is_not_praised():
    worse = Point(3, 0, 0.7, 0.6)
    (chosen,) = (
        found
        for found in highlights(FrontierView([*TWO, worse], chosen=worse))
        if found.heading == "Chosen"
    )
    assert chosen.sentence == "Accuracy 20.0 points lower, unfairness 50% higher."


def test_a_perfectly_fair_best_model_divides_by_nothing():
    fair, other = Point(0, 0, 0.9, 0.0), Point(1, 0, 0.8, 0.2)
    found = {h.heading: h.sentence for h in highlights(FrontierView([fair, other], chosen=other))}
    assert found["Chosen"] == "Accuracy 10.0 points lower, unfairness 0.200 higher."
    assert list(found) == ["Most accurate, least unfair", "Chosen"]


def test_one_model_is_shown_once():
    (only,) = highlights(demo_view(count=1, seeds=1, failed=0))
    assert (only.heading, only.sentence) == (
        "Most accurate, chosen, least unfair",
        "The only model.",
    )
    assert highlights(demo_view(count=1, failed=1)) == ()


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (Goal(0.15), "No model has an unfairness of at most 0.15."),
        (
            Goal(0.15, confidence=0.9),
            "No model has an unfairness of at most 0.15 with a confidence of 0.9.",
        ),
        (
            Goal(0.05),
            (
                "A limit of 0.05 cannot be verified with these rows: equal groups can differ by 0.116 "
                "by chance."
            ),
        ),
        (Goal(0.5, needs_group=True), "No model of this frontier needs the group."),
    ],
)
def test_the_headline_says_that_no_model_meets_the_goal(goal, said):
    view = FrontierView(TWO, unmet=goal, noise=0.1164)
    assert headline(view)[1] == said
    earlier = headline(replace(view, chosen=TWO[1]))
    assert earlier[-1] == f"{said} The earlier choice remains."


def test_the_note_on_chance_names_the_comparisons_it_is_the_largest_of():
    assert "below 0.199 can be chance (the largest of 7 comparisons)." in chance_text(0.1993, 7)
    assert "comparisons" not in chance_text(0.1993, 1)


def test_the_glossary_explains_what_is_shown_by_the_names_that_are_shown():
    words = dict(glossary(demo_view(labels={"unfairness": "gap"})))
    assert (
        "largest difference between the groups' shares at or above a score, over all scores"
        in words["gap"]
    )
    assert "Unfairness of decisions" in words
    assert "Unfairness of decisions" not in dict(glossary(demo_view(decisions=False)))
