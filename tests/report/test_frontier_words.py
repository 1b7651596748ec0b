"""The report in words: findings, costs, noise."""

from dataclasses import replace

from frontiers import demo_view

from tests.seams.figures import Interval
from tests.seams.tradeoff import Change, Goal, Point
from tests.seams.wording import (
    FrontierView,
    compared_note,
    glossary,
    headline,
    shown_note,
    summary,
)
from tests.seams.wording import frontier_highlights as highlights

TWO = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]


CHANGE = Change(
    TWO[0], -0.05, -0.3, {"utility": Interval(-0.06, -0.04), "unfairness": Interval(-0.4, 0.01)}
)


NOISE = replace(
    TWO[1], unfairness=0.0, intervals={"unfairness": Interval(0.0, 0.062)}, is_noise=True
)


def test_an_unfairness_that_could_be_0_is_reported_as_below_its_bound():
    view = FrontierView([TWO[0], NOISE], chosen=NOISE, change=CHANGE, goal=Goal(0.1))
    first, cost, kept = headline(view)
    assert "unfairness below 0.062" in first
    assert "−0.010 to 0.400" in cost
    assert not any("0.000" in sentence for sentence in summary(view))
    (tile,) = [found for found in highlights(view) if "hosen" in found.heading]
    assert tile.sentence == kept
    unchosen = FrontierView([NOISE])
    assert "below 0.062" in headline(unchosen)[0]


def test_a_constant_predictor_is_named_in_the_first_line():
    constant = replace(TWO[1], marks={"accuracy": "constant"})
    view = FrontierView([TWO[0], constant], chosen=constant, goal=Goal(0.2))
    assert "a constant predictor" in headline(view)[0]
    for mark in ("", "not_significantly_better"):
        other = replace(TWO[1], marks={"accuracy": mark} if mark else {})
        assert "constant" not in headline(replace(view, chosen=other))[0]


def test_the_chosen_figures_replace_those_by_which_it_was_compared():
    chosen = replace(TWO[1], accuracy=0.83, unfairness=0.13)
    view = FrontierView(TWO, chosen=chosen, change=CHANGE)
    assert "accuracy 0.830, unfairness 0.130" in headline(view)[0]
    assert [found.point for found in highlights(view)] == [TWO[0], chosen]
    assert view.rows[1].figures["unfairness"].value == 0.13
    assert "0.850" not in " ".join(summary(view))
    assert compared_note(view) in shown_note(view, 2)
    assert compared_note(FrontierView(TWO)) == compared_note(FrontierView(TWO[:1], chosen=TWO[0]))


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


def test_a_perfectly_fair_best_model_divides_by_nothing():
    fair, other = Point(0, 0, 0.9, 0.0), Point(1, 0, 0.8, 0.2)
    found = {h.heading: h.sentence for h in highlights(FrontierView([fair, other], chosen=other))}
    assert "unfairness 0.200 higher" in found["Chosen"]
    assert list(found) == ["Most accurate, least unfair", "Chosen"]


def test_one_model_is_shown_once():
    (only,) = highlights(demo_view(count=1, seeds=1, failed=0))
    assert only.point == demo_view(count=1, seeds=1, failed=0).points[0]
    assert highlights(demo_view(count=1, failed=1)) == ()


def test_the_glossary_explains_what_is_shown_by_the_names_that_are_shown():
    words = dict(glossary(demo_view(labels={"unfairness": "gap"})))
    assert "shares at or above a score" in words["gap"]
    assert "Unfairness of decisions" in words
    assert "Unfairness of decisions" not in dict(glossary(demo_view(decisions=False)))
