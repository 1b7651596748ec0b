"""One model, one number: whatever shows the chosen model shows the same figures."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.figure import Figure

from metrifair import FairClassifier, Frontier, frontier, load, to_card
from metrifair.errors import MetrifairWarning
from tests.frontier_parts import outcomes_of
from tests.seams.report import page_content
from tests.seams.tradeoff import Job, Outcome, Point, TradeOff
from tests.seams.wording import figure_text, headline, interval_text, row_columns

RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=500)
X = RNG.normal(size=(500, 3)) + SEX[:, None]
Y = (X.sum(1) + RNG.normal(size=500) > 1.5).astype(int)
SHARES = {"expected on new rows": None, "on test rows": 0.3}


@pytest.fixture(scope="module", params=SHARES)
def front(request: pytest.FixtureRequest) -> Frontier:
    """Three strengths, of which the limit excludes the one without a penalty."""
    found = frontier(
        FairClassifier(model="linear"),
        X,
        Y,
        sensitive_features={"sex": SEX},
        strengths=[0, 1, 3],
        folds=3,
        test=SHARES[request.param],
        random_state=0,
    )
    found.select(max_unfairness=0.5)
    return found


def chosen_of(front: Frontier) -> Point:
    assert front.chosen is not None
    return front.chosen


def shown(front: Frontier, name: str) -> str:
    """A figure of the chosen model with its interval, as people read it."""
    chosen = chosen_of(front)
    return f"{figure_text(chosen.figure(name))} ({interval_text(chosen.intervals[name])})"


def chosen_row(front: Frontier) -> dict[str, Any]:
    """The row of the chosen model in the frame."""
    (row,) = (row for row in front.to_frame("pandas").to_dict("records") if row["chosen"])
    return cast("dict[str, Any]", row)


def test_the_chosen_figures_are_not_those_by_which_it_was_compared(front: Frontier) -> None:
    chosen = chosen_of(front)
    (compared,) = (point for point in front.points if point.job == chosen.job)
    assert chosen.strength > 0
    assert chosen.figure("auc") != compared.figure("auc")


def test_texts_have_the_figures_of_the_chosen_model(front: Frontier) -> None:
    sentence = f"AUC {shown(front, 'auc')}, unfairness {shown(front, 'unfairness')}."
    assert sentence in front.summary.splitlines()[0]
    assert repr(front).endswith(front.summary.splitlines()[0])
    assert headline(front.view())[0] == front.summary.splitlines()[0]


def test_page_and_picture_have_the_figures_of_the_chosen_model(front: Frontier) -> None:
    chosen = chosen_of(front)
    view = front.view()
    content: dict[str, Any] = page_content(view)
    row = content["rows"][content["start"]]
    place = {
        "x": pytest.approx(chosen.unfairness, rel=1e-5),
        "y": pytest.approx(chosen.figure("auc"), rel=1e-5),
    }
    assert content["frontier"]["chosen"] == place
    assert {"x": row["x"], "y": row["y"]} == place
    texts = {figure["name"]: f"{figure['text']} ({figure['bounds']})" for figure in row["figures"]}
    assert texts["AUC"] == shown(front, "auc")
    assert texts["Unfairness"] == shown(front, "unfairness")
    (tile,) = (one for one in content["highlights"] if "hosen" in one["heading"])
    assert [text for _, text in tile["figures"][:2]] == [
        figure_text(chosen.figure("auc")),
        figure_text(chosen.unfairness),
    ]
    axes = front.plot(ax=Figure().subplots()).ax_
    (marks,) = (part for part in axes.collections if part.get_label() == "Chosen model")
    assert np.asarray(marks.get_offsets()).tolist() == [[chosen.unfairness, chosen.figure("auc")]]


def test_frame_and_card_have_the_figures_of_the_chosen_model(front: Frontier) -> None:
    chosen = chosen_of(front)
    row = chosen_row(front)
    assert row["auc"] == chosen.figure("auc")
    assert row["unfairness"] == chosen.unfairness
    assert row["unfairness_high"] == chosen.intervals["unfairness"].high
    (outcome,) = (one for one in outcomes_of(front) if one.job == chosen.job)
    card = to_card(outcome.model, frontier=front)
    assert f"| AUC | {shown(front, 'auc')} |" in card
    assert f"| Unfairness | {shown(front, 'unfairness')} |" in card


def test_a_file_keeps_the_number_and_where_it_is_from(front: Frontier, tmp_path: Path) -> None:
    front.save(tmp_path / "front")
    again = cast("Frontier", load(tmp_path / "front"))
    assert again.summary == front.summary
    assert repr(again) == repr(front)
    assert chosen_row(again) == chosen_row(front)


def test_other_models_keep_the_figures_by_which_they_were_compared(front: Frontier) -> None:
    chosen = chosen_of(front)
    frame = front.to_frame("pandas")
    for point, value in zip(front.points, frame["unfairness"], strict=True):
        assert (value == point.unfairness) is (point.job != chosen.job)


def test_the_first_line_says_where_the_figures_are_from(front: Frontier) -> None:
    where = "On 150 test rows: " if "On 150" in repr(front) else "Expected on new data: "
    assert f"Chosen: strength {chosen_of(front).strength:g}. {where}" in repr(front)
    assert ("The choice did not see the 150 test rows." in front.summary) is ("150" in where)


@pytest.mark.filterwarnings("ignore:The chosen model is not significantly better")
def test_a_best_effort_is_named_in_the_first_line(front: Frontier) -> None:
    effort = Frontier(copy(front._trade_off))
    effort.select(max_unfairness=0.001, best_effort=True)
    first = effort.summary.splitlines()[0]
    assert effort.record.is_best_effort
    assert first.startswith("A limit of 0.001 cannot be verified with these rows")
    assert "Chosen as a best effort: strength" in first


@pytest.mark.parametrize("utility", ["auc", "accuracy"])
@pytest.mark.filterwarnings("ignore:.*models are constant")
def test_a_constant_predictor_is_named_in_the_first_line(utility: str) -> None:
    """The models of the folds predict different constants, which are compared within folds."""
    front = frontier(
        FairClassifier(model="linear"),
        X,
        Y,
        sensitive_features={"sex": SEX},
        strengths=[1e6],
        folds=3,
        utility=utility,
        random_state=0,
    )
    with pytest.warns(MetrifairWarning, match="The chosen model decides the same for everyone"):
        front.select(max_unfairness=0.5)
    assert front.summary.startswith("Chosen: strength 1e6, a constant predictor. Expected on new")
    assert "a constant predictor" in repr(front)


def test_a_frontier_without_a_choice_has_the_best_model_in_its_first_line() -> None:
    points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.0, 1.0, failed=True)]
    outcomes = [Outcome(Job(point.strength, 0), point) for point in points]
    bare = Frontier(TradeOff(outcomes))
    assert repr(bare) == (
        "Frontier of 2 models (1 failed). The most accurate model is right in 90.0% of cases; its "
        "unfairness is 0.400."
    )


def test_the_table_shows_the_figure_that_the_choice_compared_with_the_limit(tmp_path: Path) -> None:
    """The best model of all that keep the limit with allowance is chosen, and rows show why."""
    front = frontier(
        FairClassifier(),
        X,
        Y,
        sensitive_features=SEX,
        strengths=[0, 0.5, 1, 2, 5, 10],
        random_state=0,
    )
    limit = 0.25
    assert not any("allowance" in column.heading for column in row_columns(front.view()))
    model = front.select(max_unfairness=limit, confidence=0.9)
    front.save(tmp_path / "front")
    for shown in (front, load(tmp_path / "front")):
        view = shown.view()
        needed = {row.strength: row.figures["with_allowance"].value for row in view.rows}
        assert needed[model.strength] <= limit
        others = [row for row in view.rows if not row.is_chosen]
        assert all(needed[row.strength] >= row.figures["unfairness"].value for row in others)
        rivals = [row for row in view.rows if row.strength < model.strength]
        assert rivals
        assert all(needed[row.strength] > limit for row in rivals)
        assert "Unfairness with allowance" in [column.heading for column in row_columns(view)]
        shown.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert "Unfairness with allowance" in page
        assert "The limit applies to the unfairness plus an allowance for chance." in page
    front.select(max_unfairness=1)  # which restricts nothing
    assert not front.view().gaps_with_allowance
