"""The report in words: findings, costs, noise."""

import pytest
from frontiers import demo_view

from metrifair.tradeoff.points import Point
from metrifair.wording.frontier import chance_text, glossary, highlights, summary
from metrifair.wording.frontier_view import FrontierView

TWO = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]


def test_the_summary_says_what_the_chosen_model_costs():
    best, chosen = summary(FrontierView(TWO, chosen=TWO[1]))
    assert best == "The most accurate model is right in 90.0% of cases; its unfairness is 0.400."
    assert chosen == (
        "The chosen model (strength 2) is right in 85.0% of cases; its unfairness is 0.100. "
        "Against the most accurate: accuracy 5.0 points lower, unfairness 75% lower."
    )


def test_the_summary_of_a_regression_speaks_of_r_squared():
    first, second = summary(FrontierView(TWO, chosen=TWO[1], accuracy_name="R2"))
    assert first == "The most accurate model reaches an R² of 0.900; its unfairness is 0.400."
    assert second.endswith("Against the most accurate: R² 0.050 lower, unfairness 75% lower.")


def test_the_summary_without_a_choice_or_with_the_best_one_chosen():
    assert summary(FrontierView(TWO))[1].startswith("No model has been chosen yet")
    assert summary(FrontierView(TWO, chosen=TWO[0]))[1] == "It is also the chosen model."


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


@pytest.mark.parametrize(("limit", "verdict"), [(0.1, "keeps"), (0.0999, "misses")])
def test_the_summary_says_what_limit_was_asked_for_and_whether_it_is_kept(limit, verdict):
    *_, last = summary(FrontierView(TWO, chosen=TWO[1], limit=limit))
    assert last == (
        f"The chosen one is the most accurate, up to noise, with an unfairness of at most {limit:g} on validation "
        f"rows; on test rows it {verdict} this limit."
    )


def test_the_summary_says_that_no_model_keeps_the_limit():
    assert summary(FrontierView(TWO, limit=0.05))[-1] == (
        "No model has an unfairness of at most 0.05 on validation rows."
    )


def test_the_note_on_chance_names_the_comparisons_it_is_the_largest_of():
    assert "about 0.199 by chance alone (the largest of 7 comparisons)" in chance_text(0.1993, 7)
    assert "comparisons" not in chance_text(0.1993, 1)
    assert "up to about 0.199" in chance_text(0.1993, 1, unfairness_of="decisions")


def test_the_glossary_explains_what_is_shown_by_the_names_that_are_shown():
    words = dict(glossary(demo_view(labels={"unfairness": "gap"})))
    assert "largest difference between the groups' shares below any score" in words["gap"]
    assert "Unfairness of decisions" in words
    assert "Unfairness of decisions" not in dict(glossary(demo_view(decisions=False)))
