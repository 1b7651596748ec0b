"""Several families on one frontier: parameters, who needs the group, the choice, certificates,
files and ledgers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from searching import arguments
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairRegressor,
    Frontier,
    SearchOptions,
    TableEncoder,
    ThresholdPostprocessor,
    load,
)
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.one_split import frontier
from tests.seams.report import page_content
from tests.seams.tradeoff import Goal, pareto, sweep

RNG = np.random.default_rng(0)
A = RNG.integers(0, 2, 800)
X = RNG.normal(size=(800, 3)) + np.outer(A, [1.5, 0.5, 0.0])
Y = (X.sum(1) + RNG.normal(size=800) > 1).astype(int)
LINEAR, PLAIN = FairClassifier(model="linear"), FairClassifier(0.0, model="linear")
FAMILIES: dict[str, Any] = {
    "linear": LINEAR,
    "moved": BarycenterPostprocessor(PLAIN, folds=2),
    "cut": ThresholdPostprocessor(PLAIN, folds=2, needs_group=False),
}


def made(families: Any = FAMILIES, **options: Any) -> Frontier:
    given = {"strengths": [0.0, 1.0, 10.0], "tolerances": [0.0, 0.5, 1.0]} | options
    return frontier(families, X, Y, sensitive_features=A, **arguments(**given))


@pytest.fixture(scope="module")
def front() -> Frontier:
    return made()


def test_every_model_is_named_by_family_and_by_what_it_needs(front: Frontier) -> None:
    assert [(p.family, p.strength, p.needs_group) for p in front.points] == [
        *(("linear", value, False) for value in (0.0, 1.0, 10.0)),
        *(("moved", value, True) for value in (0.0, 0.5, 1.0)),
        *(("cut", value, False) for value in (0.0, 0.5, 1.0)),
    ]
    assert [type(model).__name__ for model in front.models] == [
        *["FairClassifier"] * 3,
        *["BarycenterPostprocessor"] * 3,
        *["ThresholdPostprocessor"] * 3,
    ]
    assert front.pareto == pareto(front.points, quality=lambda point: point.more["auc"])
    table = front.to_frame("pandas")
    assert table["family"].tolist() == [point.family for point in front.points]
    assert set(table["parameter"]) == {"strength", "tolerance"}
    assert table["needs_group"].tolist() == [point.needs_group for point in front.points]


def test_families_reach_what_they_reach_alone(front: Frontier) -> None:
    alone = frontier(
        FAMILIES["moved"], X, Y, sensitive_features=A, strengths=[0.0, 0.5, 1.0], random_state=0
    )
    assert alone.record.parameter == "tolerance"
    assert not alone.record.parameters
    for own, other in zip(alone.points, front.points[3:6], strict=True):
        assert (own.accuracy, own.unfairness) == (other.accuracy, other.unfairness)
    # The group makes the model's own unfairness vanish; the tolerance 1 is the model itself.
    fair, _, itself = front.points[3:6]
    assert fair.unfairness < 0.15 < 0.3 < itself.unfairness
    assert itself.accuracy == front.points[0].accuracy


def test_a_list_of_estimators_is_families_under_their_classes_names() -> None:
    moved = BarycenterPostprocessor(LINEAR, folds=1)
    found = made([LINEAR, moved, moved], strengths=[0.0], tolerances=[0.0])
    assert list(found.record.parameters) == [
        "FairClassifier (linear)",
        "BarycenterPostprocessor of FairClassifier (linear)",
        "BarycenterPostprocessor of FairClassifier (linear) #2",
    ]


def test_the_choice_may_leave_out_models_that_need_the_group(
    front: Frontier, refused: Refusals
) -> None:
    anything, free = (
        (front.select(max_unfairness=0.2), front.chosen),
        (
            front.select(max_unfairness=0.2, needs_group=False),
            front.chosen,
        ),
    )
    assert (anything[1].family, anything[1].needs_group) == ("moved", True)
    assert not free[1].needs_group
    assert free[0] in front.models
    front.select(max_unfairness=0.9, needs_group=True)
    assert front.chosen.family == "moved"
    rows = front.held_out("pandas")
    assert rows["probability"].between(0, 1).all()
    with refused(DataError):
        front.select(max_unfairness=0.2, needs_group="no")
    only = made({"moved": FAMILIES["moved"]})
    with refused(DataError):
        only.select(max_unfairness=1.0, needs_group=False)


def test_a_file_keeps_families(front: Frontier, tmp_path: Path) -> None:
    front.select(max_unfairness=0.2, needs_group=False)
    front.save(tmp_path / "front")
    again = load(tmp_path / "front")
    assert again.points == front.points
    assert again.record.parameters == front.record.parameters
    assert again.chosen == front.chosen
    np.testing.assert_array_equal(
        again.models[3].predict(X, sensitive_features=A),
        front.models[3].predict(X, sensitive_features=A),
    )
    again.select(max_unfairness=0.9, needs_group=True)
    assert again.chosen.family == "moved"


@pytest.mark.extended
def test_a_ledger_keeps_what_each_family_has_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(ledger=tmp_path / "ledger", seeds=2)

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(BarycenterPostprocessor, "fit_path", refused)
    monkeypatch.setattr(sweep, "fit_stack", refused)
    again = made(ledger=tmp_path / "ledger", seeds=2)
    assert again.points == first.points
    with pytest.raises(AssertionError, match="trained again"):
        made(ledger=tmp_path / "ledger", seeds=2, tolerances=[0.25])


def test_the_page_has_a_row_for_each_value_of_each_family_and_a_line_without_groups(
    front: Frontier,
) -> None:
    front.select(max_unfairness=0.2, needs_group=False)
    view = front.view()
    content = page_content(view)
    assert [row["text"] for row in content["rows"]][3:5] == [
        "moved, tolerance 0",
        "moved, tolerance 0.5",
    ]
    assert [row["needsGroup"] for row in content["rows"]] == [False] * 3 + [True] * 3 + [False] * 3
    assert content["rows"][content["start"]]["text"].startswith(front.chosen.family)
    free = pareto([point for point in front.points if not point.needs_group])
    without = [point for point in content["frontier"]["points"] if point["frontWithout"]]
    assert len(without) == len(free)
    assert all(not content["rows"][point["row"]]["needsGroup"] for point in without)
    assert content["frontier"]["lineWithout"] != content["frontier"]["line"]
    assert len(view.curves) == 9


def test_what_cannot_be_one_frontier(refused: Refusals) -> None:
    rng = np.random.default_rng(99)
    with refused(DataError):
        made([LINEAR, LogisticRegression()])
    with refused(DataError):
        made([LINEAR, FairRegressor(model="mlp")])
    with refused(DataError):
        made({})
    with refused(DataError):
        made(tolerances=[])
    with pytest.raises(DataError, match="takes no control_features"):
        made({"moved": FAMILIES["moved"]}, control_features=rng.integers(0, 2, 800))


def test_a_pipeline_is_swept_by_its_last_step_and_chosen_whole(tmp_path: Path) -> None:
    scaled = make_pipeline(StandardScaler(), LINEAR)
    kept = arguments(
        sensitive_features=A, strengths=[0.0, 3.0], test=None, ledger=tmp_path / "ledger"
    )
    front = frontier(scaled, X, Y, **kept)
    kept_plain = {key: value for key, value in kept.items() if key != "search"}
    plain = frontier(LINEAR, X, Y, **kept_plain)
    assert front.record.parameter == "strength"
    np.testing.assert_allclose(
        [p.unfairness for p in front.points], [p.unfairness for p in plain.points], atol=1e-3
    )
    model = front.select(max_unfairness=1.0)
    assert [name for name, _ in model.steps] == ["standardscaler", "fairclassifier"]
    by_hand = make_pipeline(
        StandardScaler(), FairClassifier(model[-1].strength, model="linear", random_state=0)
    )
    by_hand.fit(X, Y, fairclassifier__sensitive_features=A)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), atol=1e-6)
    # finished, though not kept
    again = frontier(scaled, X, Y, parameter="fairclassifier__strength", **kept)
    assert again.points == front.points


def test_the_last_step_of_a_pipeline_is_asked_what_unfairness_is_and_who_needs_the_group(
    tmp_path: Path,
) -> None:
    encoded = make_pipeline(
        TableEncoder(), FairClassifier(model="linear", criterion="equal_opportunity")
    )
    table = {"a": X[:, 0], "b": X[:, 1], "town": np.where(X[:, 2] > 0, "Bern", "Chur")}
    front = frontier(
        encoded, pd.DataFrame(table), Y, sensitive_features=A, strengths=[0.0], random_state=0
    )
    bare = frontier(
        encoded[-1],
        encoded[0].fit_transform(table),
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
    )
    assert front.points[0].unfairness == pytest.approx(bare.points[0].unfairness, abs=1e-2)
    front.save(tmp_path / "front")
    assert load(tmp_path / "front").models[0].predict(table).shape == (800,)
    moved = make_pipeline(StandardScaler(), FAMILIES["moved"])
    front = frontier(
        [moved, encoded[-1]],
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0],
        random_state=0,
        search=SearchOptions(tolerances=[0.0, 1.0]),
    )
    assert [point.needs_group for point in front.points] == [True, True, False]
    wrapped = BarycenterPostprocessor(
        make_pipeline(StandardScaler(), FairClassifier(1.0, model="linear")), folds=2
    )
    assert wrapped.fit(X, Y, sensitive_features=A).predict(X, sensitive_features=A).shape == (800,)


def test_tolerances_are_those_of_the_only_family_too() -> None:
    assert [point.strength for point in made(FAMILIES["moved"], strengths=None).points] == [
        0.0,
        0.5,
        1.0,
    ]


def test_one_parameter_is_named_by_text(refused: Refusals) -> None:
    with refused(DataError):
        made(parameter={"linear": "strength"})


OF_NO_FAMILY: dict[str, Any] = {"linear": LINEAR, "cut": FAMILIES["cut"]}
UNFAIR_WITH_GROUPS: dict[str, Any] = {"linear": LINEAR, "moved": FAMILIES["moved"]}
GROUP_GOALS: dict[str, tuple[dict[str, Any], str]] = {
    "no such model": (OF_NO_FAMILY, "No model of this frontier needs the group."),
    "only unfair ones": (
        UNFAIR_WITH_GROUPS,
        "No model that needs the group has an unfairness of at most 0.4 with a confidence of 0.8.",
    ),
}


@pytest.mark.parametrize("case", GROUP_GOALS)
def test_a_failing_choice_keeps_what_was_asked_and_the_earlier_choice(
    case: str, tmp_path: Path, refused: Refusals
) -> None:
    """A model without the group is within the limit: no sentence may say that none is."""
    families, said = GROUP_GOALS[case]
    front = made(families, tolerances=[1.0], strengths=[0.0, 10.0])
    assert min(point.unfairness for point in front.points) < 0.3
    asked: dict[str, Any] = {"max_unfairness": 0.4, "confidence": 0.8, "needs_group": True}
    goal = Goal(**asked)

    def texts() -> list[str]:
        page = tmp_path / "page.html"
        front.to_html(page)
        return [" ".join(text.split()) for text in (front.summary, page.read_text())]

    with refused(DataError):
        front.select(**asked)
    assert (front.record.unmet, front.chosen) == (goal, None)
    assert all(said in text for text in texts())
    model = front.select(max_unfairness=0.9)
    earlier = front.chosen
    assert front.record.unmet is None
    assert not any(said in text for text in texts())
    with refused(DataError):
        front.select(**asked)
    assert (front.record.unmet, front.chosen) == (goal, earlier)
    assert front.record.goal == Goal(max_unfairness=0.9)
    for text in texts():
        assert f"{said} The earlier choice remains." in text
        assert "No model has an unfairness of at most" not in text
    kept = front.held_out("pandas")
    assert front.select(max_unfairness=0.9) is model
    assert front.held_out("pandas").equals(kept)
