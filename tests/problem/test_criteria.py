"""Criteria as values, and the score that each of them compares."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair.criteria import (
    CONDITIONAL_STATISTICAL_PARITY,
    CRITERIA,
    EQUAL_OPPORTUNITY,
    EQUALIZED_ODDS,
    OTHER_NAMES,
    PREDICTIVE_EQUALITY,
    RISK_PARITY,
    STATISTICAL_PARITY,
    Criterion,
    criterion_named,
)
from metrifair.errors import DataError
from tests.seams.training import BINARY, MULTICLASS, regression, scores

# name, value, score, labels, strata, whether the sets depend on the label: method.md, section 2
TABLE = [
    ("statistical_parity", STATISTICAL_PARITY, "prediction", None, False, False),
    ("equal_opportunity", EQUAL_OPPORTUNITY, "prediction", "positive", False, True),
    ("predictive_equality", PREDICTIVE_EQUALITY, "prediction", "negative", False, True),
    ("equalized_odds", EQUALIZED_ODDS, "prediction", "every", False, True),
    ("risk_parity", RISK_PARITY, "loss", None, False, False),
    (
        "conditional_statistical_parity",
        CONDITIONAL_STATISTICAL_PARITY,
        "prediction",
        None,
        True,
        False,
    ),
]


def membership(y: np.ndarray) -> np.ndarray:
    return np.stack([y > 0, y < 2], 1)


def shifted(prediction: Tensor, y: Tensor) -> Tensor:
    return prediction - y


CUSTOM = [
    Criterion("residual", score=shifted),
    Criterion("overlapping", sets=membership, set_names=("y > 0", "y < 2")),
    replace(EQUALIZED_ODDS, bins=(1.0, 2.5)),
]


def test_the_six_criteria_of_the_table_are_there_and_no_other() -> None:
    assert list(CRITERIA) == [row[0] for row in TABLE]


@pytest.mark.parametrize(("name", "criterion", "score", "labels", "strata", "needs_labels"), TABLE)
def test_each_criterion_is_its_row_of_the_table(
    name: str,
    criterion: Criterion,
    score: str,
    labels: str | None,
    strata: bool,
    needs_labels: bool,
) -> None:
    assert criterion == Criterion(name, score=score, labels=labels, strata=strata)
    assert CRITERIA[name] is criterion
    assert criterion.needs_labels is needs_labels


@pytest.mark.parametrize("criterion", [row[1] for row in TABLE] + CUSTOM, ids=lambda one: one.name)
def test_a_criterion_is_a_value(criterion: Criterion) -> None:
    again = pickle.loads(pickle.dumps(criterion))
    assert again == criterion
    assert hash(again) == hash(criterion)
    assert {criterion: "found"}[again] == "found"
    assert criterion.name in repr(criterion)
    with pytest.raises(AttributeError):
        criterion.name = "another"  # type: ignore[misc]


@pytest.mark.parametrize(
    "criterion", [row[1] for row in TABLE] + CUSTOM[2:], ids=lambda one: one.name
)
def test_a_criterion_prints_as_what_makes_it(criterion: Criterion) -> None:
    assert eval(repr(criterion)) == criterion


def test_criteria_differ_where_a_field_differs() -> None:
    different = {
        *CRITERIA.values(),
        *CUSTOM,
        replace(EQUALIZED_ODDS, bins=(1.0,)),
        replace(STATISTICAL_PARITY, name=""),
    }
    assert len(different) == len(CRITERIA) + len(CUSTOM) + 2


def test_sets_of_the_label_need_labels() -> None:
    assert [one.needs_labels for one in CUSTOM] == [False, True, True]


@pytest.mark.parametrize("name", list(CRITERIA))
def test_a_criterion_is_found_by_name_and_is_itself(name: str) -> None:
    assert criterion_named(name) is CRITERIA[name]
    assert criterion_named(CRITERIA[name]) is CRITERIA[name]


def test_the_names_of_other_texts_are_taken() -> None:
    assert criterion_named("demographic_parity") is STATISTICAL_PARITY
    assert {other: criterion_named(other).name for other in OTHER_NAMES} == OTHER_NAMES
    assert not set(OTHER_NAMES) & set(CRITERIA)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("equalised_odds", "; did you mean 'equalized_odds'?"),
        (
            "parity",
            (
                "; did you mean 'statistical_parity' or 'risk_parity' or "
                "'conditional_statistical_parity'?"
            ),
        ),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(given: str, hint: str) -> None:
    with pytest.raises(DataError) as caught:
        criterion_named(given)
    assert str(caught.value) == (
        "criterion must be one of 'statistical_parity', 'equal_opportunity', "
        "'predictive_equality', 'equalized_odds', "
        f"'risk_parity', 'conditional_statistical_parity' or a Criterion, got {given!r}{hint}"
    )


# two models, three samples
OUTPUT = torch.tensor([[-2.0, 0.0, 1.5], [0.3, -0.1, 4.0]], dtype=torch.float64)
Y = torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)
PROBABILITY = 1 / (1 + (-OUTPUT).exp())
# two samples, three classes
VECTORS = torch.tensor([[1.0, 0.0, -1.0], [0.2, 2.0, 0.1]], dtype=torch.float64)
SHARES = VECTORS.exp() / VECTORS.exp().sum(-1, keepdim=True)
CLASSES = torch.tensor([2, 1])

SCORES = [
    ("prediction", BINARY, OUTPUT, Y, PROBABILITY),
    ("output", BINARY, OUTPUT, Y, OUTPUT),
    ("log_prediction", BINARY, OUTPUT, Y, PROBABILITY.log()),
    ("loss", BINARY, OUTPUT, Y, -(Y * PROBABILITY.log() + (1 - Y) * (1 - PROBABILITY).log())),
    (shifted, BINARY, OUTPUT, Y, PROBABILITY - Y),
    ("prediction", regression(), OUTPUT, Y, OUTPUT),
    ("output", regression(), OUTPUT, Y, OUTPUT),
    ("log_prediction", regression(), OUTPUT.abs() + 1, Y, (OUTPUT.abs() + 1).log()),
    ("loss", regression(), OUTPUT, Y, (OUTPUT - Y) ** 2),
    (shifted, regression(), OUTPUT, Y, OUTPUT - Y),
    ("prediction", MULTICLASS, VECTORS, CLASSES, SHARES),
    ("output", MULTICLASS, VECTORS, CLASSES, VECTORS),
    ("log_prediction", MULTICLASS, VECTORS, CLASSES, SHARES.log()),
    ("loss", MULTICLASS, VECTORS, CLASSES, -SHARES[[0, 1], [2, 1]].log()),
]


@pytest.mark.parametrize(("score", "task", "output", "y", "expected"), SCORES)
def test_scores_are_the_formulas(
    score: str, task: Any, output: Tensor, y: Tensor, expected: Tensor
) -> None:
    torch.testing.assert_close(scores(Criterion("any", score=score), task, output, y), expected)


@pytest.mark.parametrize(
    "criterion", [STATISTICAL_PARITY, EQUALIZED_ODDS, CONDITIONAL_STATISTICAL_PARITY]
)
@pytest.mark.parametrize(
    ("task", "output"), [(BINARY, OUTPUT), (MULTICLASS, VECTORS), (regression(), OUTPUT)]
)
def test_compare_output_takes_the_output_in_place_of_the_prediction(
    criterion: Criterion, task: Any, output: Tensor
) -> None:
    assert torch.equal(scores(criterion, task, output, Y, penalize="output"), output)


@pytest.mark.parametrize(
    ("criterion", "what"),
    [
        (RISK_PARITY, "risk_parity compares loss"),
        (Criterion("mine", score=shifted), "mine compares a custom score"),
        (Criterion("logs", score="log_prediction"), "logs compares log_prediction"),
    ],
)
def test_compare_is_refused_where_the_score_is_not_the_prediction(
    criterion: Criterion, what: str
) -> None:
    with pytest.raises(DataError) as caught:
        scores(criterion, BINARY, OUTPUT, Y, penalize="output")
    assert str(caught.value) == (
        f"penalize='output' applies where the score is the prediction; {what}: leave penalize as "
        "it is"
    )


@pytest.mark.parametrize(("score", "penalize"), [("logit", "prediction"), ("prediction", "logit")])
def test_unknown_names_of_scores_are_refused(score: str, penalize: str) -> None:
    with pytest.raises(DataError, match="logit"):
        scores(Criterion("any", score=score), BINARY, OUTPUT, Y, penalize=penalize)
