"""The report in words: findings, costs, noise."""

from dataclasses import replace

import pytest
from frontiers import demo_view

from metrifair.figures.intervals import Interval
from metrifair.tradeoff.points import Change, Point
from metrifair.wording.frontier import chance_text, glossary, headline, highlights, summary
from metrifair.wording.frontier_view import FrontierView

TWO = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]


CHANGE = Change(TWO[0], -0.05, -0.3, {"utility": Interval(-0.06, -0.04), "unfairness": Interval(-0.4, 0.01)})


def test_the_headline_says_what_the_chosen_model_reaches_and_changes():
    reached = "Chosen: strength 2, with accuracy 0.850 and unfairness 0.100 on test rows"
    first, second = headline(FrontierView(TWO, chosen=TWO[1], change=CHANGE, limit=0.1))
    assert first == (
        f"{reached}; compared with no penalty, accuracy is 0.050 lower (0.040 to 0.060) and unfairness 0.300 lower "
        "(−0.010 to 0.400)."
    )
    assert second == "It keeps the unfairness limit of 0.1 on test rows."
    assert headline(FrontierView(TWO, chosen=TWO[1])) == (
        f"{reached}.",
        "Of 2 models it suits best on validation rows.",
    )


def test_the_headline_of_a_regression_speaks_of_r_squared():
    first, _ = headline(FrontierView(TWO, chosen=TWO[1], accuracy_name="R2", change=CHANGE))
    reached = "Chosen: strength 2, with R² 0.850 and unfairness 0.100 on test rows"
    assert first.startswith(f"{reached}; compared with no penalty, R² is 0.050")


def test_the_headline_without_a_choice_or_with_the_best_one_chosen():
    first, second = headline(FrontierView(TWO))
    assert first == "The most accurate model is right in 90.0% of cases; its unfairness is 0.400."
    assert second.startswith("No model has been chosen yet")
    assert "compared" not in headline(FrontierView(TWO, chosen=TWO[0], change=replace(CHANGE, utility=0.0)))[0]


def test_with_test_folds_the_headline_tells_the_model_from_the_choice():
    """The model has its row's figures; the choice those of models that were chosen without each fold."""
    choice = replace(TWO[1], accuracy=0.7, unfairness=0.2)
    view = FrontierView(TWO, chosen=choice, limit=0.15, change=CHANGE, fold_choices=(("", 1.0), ("", 2.0)))
    first, second, third = headline(view)
    assert first == (
        "Chosen: strength 2, with accuracy 0.850 and unfairness 0.100 in cross-validation, by which it was chosen."
    )
    assert second.startswith(
        "Repeated without each test fold, the choice has accuracy 0.700 and unfairness 0.200 on test rows; compared "
    )
    assert third.startswith("The choice misses the unfairness limit of 0.15 on test rows (0.200)")


@pytest.mark.parametrize("chosen", [None, TWO[1]])
def test_the_headline_says_that_a_limit_is_below_what_chance_shows(chosen: Point | None):
    views = [FrontierView(TWO, chosen=chosen, limit=limit, floor=0.1164) for limit in (0.1, 0.12)]
    below, above = map(headline, views)
    assert below[-1].startswith("The limit of 0.1 is below 0.116, the unfairness that groups with equal distributions")
    with_confidence = headline(replace(views[0], limit_confidence=0.88))
    assert with_confidence[-1].endswith("can miss it too. The confidence accounts for chance.") is (chosen is not None)
    assert len(above) == len(below) - 1


def test_a_headline_is_a_few_sentences_whatever_was_chosen():
    """Over what can be chosen: nothing, the best, another, by a limit that is kept or missed, with test folds."""
    views = [
        FrontierView(TWO, chosen=chosen, limit=limit, change=change, fold_choices=folds)
        for chosen in (None, *TWO)
        for limit in (None, 0.05, 0.5)
        for change in (None, CHANGE)
        for folds in ((), (("", 1.0), ("", 2.0)))
    ]
    for view in views:
        lines = headline(view)
        assert len(lines) == 2 + (view.choice is not None and bool(view.fold_choices))
        assert all(line.endswith(".") and ". " not in line for line in lines)
        assert summary(view)[: len(lines)] == lines
        assert len(set(summary(view))) == len(summary(view))


def test_choices_in_test_folds_name_the_family_and_its_parameter():
    one = FrontierView(TWO, chosen=TWO[0], fold_choices=[("", 1.0), ("", 2.0)])
    assert "without each test fold: strength 1, 2." in " ".join(summary(one))
    points = [replace(TWO[0], family="linear"), replace(TWO[1], family="moved")]
    parameters = {"linear": "strength", "moved": "tolerance"}
    several = FrontierView(
        points, chosen=points[0], parameters=parameters, fold_choices=[("linear", 1.0), ("moved", 0.05)]
    )
    assert "without each test fold: linear, strength 1; moved, tolerance 0.05." in " ".join(summary(several))


def test_the_summary_counts_failures():
    assert summary(demo_view())[-1] == "2 of 50 models failed; the table lists them, the plot leaves them out."
    assert summary(demo_view(count=2, failed=2))[0].startswith("None of the 4 trained models can be shown")


def test_a_choice_worse_than_the_best_in_both_is_not_praised():
    worse = Point(3, 0, 0.7, 0.6)
    (chosen,) = (found for found in highlights(FrontierView([*TWO, worse], chosen=worse)) if found.heading == "Chosen")
    assert chosen.sentence == "Accuracy 20.0 points lower, unfairness 50% higher."


def test_a_perfectly_fair_best_model_divides_by_nothing():
    fair, other = Point(0, 0, 0.9, 0.0), Point(1, 0, 0.8, 0.2)
    found = {h.heading: h.sentence for h in highlights(FrontierView([fair, other], chosen=other))}
    assert found["Chosen"] == "Accuracy 10.0 points lower, unfairness 0.200 higher."
    assert list(found) == ["Most accurate, least unfair", "Chosen"]


def test_one_model_is_shown_once():
    (only,) = highlights(demo_view(count=1, seeds=1, failed=0))
    assert (only.heading, only.sentence) == ("Most accurate, chosen, least unfair", "The only model.")
    assert highlights(demo_view(count=1, failed=1)) == ()


def test_the_headline_says_whether_the_limit_is_kept():
    verdicts = [headline(FrontierView(TWO, chosen=TWO[1], limit=limit))[1] for limit in (0.1, 0.0999)]
    assert verdicts[0] == "It keeps the unfairness limit of 0.1 on test rows."
    assert verdicts[1].startswith("It misses the unfairness limit of 0.0999 on test rows (0.100): choose with a")


def test_the_headline_says_that_no_model_keeps_the_limit():
    said = headline(FrontierView(TWO, limit=0.05))[1]
    assert said == "No model has an unfairness of at most 0.05 on validation rows."


def test_the_note_on_chance_names_the_comparisons_it_is_the_largest_of():
    assert "about 0.199 by chance alone (the largest of 7 comparisons)" in chance_text(0.1993, 7)
    assert "comparisons" not in chance_text(0.1993, 1)
    assert "up to about 0.199" in chance_text(0.1993, 1, unfairness_of="decisions")


def test_the_glossary_explains_what_is_shown_by_the_names_that_are_shown():
    words = dict(glossary(demo_view(labels={"unfairness": "gap"})))
    assert "largest difference between the groups' shares below any score" in words["gap"]
    assert "Unfairness of decisions" in words
    assert "Unfairness of decisions" not in dict(glossary(demo_view(decisions=False)))
