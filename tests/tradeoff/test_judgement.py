"""What rows kept apart tell of one model: figures by group against plain NumPy, the constant,
training rows beside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from metrifair import AuditOptions, audit
from metrifair.problem.criteria import EQUAL_OPPORTUNITY, STATISTICAL_PARITY
from metrifair.tradeoff.evaluate import Evaluation, evaluate_predictions, predict
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.split import HeldOut, data_set, with_common_comparisons

RNG = np.random.default_rng(4)
N = 400
SEX, AREA = (
    np.array(["f", "m"])[RNG.integers(2, size=N)],
    np.array(["a", "b", "c"])[RNG.integers(3, size=N)],
)
X = RNG.normal(size=(N, 2)) + (SEX == "m")[:, None]
SCORE = 1 / (1 + np.exp(-X[:, 0]))
LABEL = np.where(RNG.random(N) < SCORE, "yes", "no")
ROWS = np.arange(N)


class Told:
    """A classifier that says the score of each row; rows are known by their first feature."""

    def __init__(self, score: Any, threshold: float = 0.5) -> None:
        self.score = dict(zip(X[:, 0], score, strict=True))
        self.threshold = threshold

    def predict_proba(self, features: Any) -> Any:
        score = np.array([self.score[key] for key in features[:, 0]])
        return np.stack([1 - score, score], axis=1)

    def predict(self, features: Any) -> Any:
        return np.where(self.predict_proba(features)[:, 1] >= self.threshold, "yes", "no")


class Number(Told):
    def predict(self, features: Any) -> Any:
        return self.predict_proba(features)[:, 1]


def parts(
    y: Any, groups: Any, *, regression: bool = False, weight: Any = None
) -> tuple[HeldOut, HeldOut]:
    data = data_set(
        X,
        y,
        groups,
        None,
        regression=regression,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
        sample_weight=weight,
    )
    return data.held_out(ROWS[200:]), data.held_out(ROWS[:200])


def evaluate_model(
    model: Any, held_out: HeldOut, training: HeldOut, *, strength: float, seed: int
) -> Evaluation:
    seen = predict(model, held_out), predict(model, training)
    return evaluate_predictions(*seen, held_out, training, job=Job(strength, seed))


def with_few(rows: int) -> Any:
    """Three towns, of which "c" has so many of the rows kept apart, and three times as many
    others.
    """
    town = np.where(np.arange(N) % 2, "a", "b")
    town[200 : 200 + rows] = town[: 3 * rows] = "c"
    return town


def test_groups_of_few_rows_are_in_no_headline_and_in_the_table() -> None:
    """An audit of the same rows says so too: it is the largest of its findings that have enough
    rows.
    """
    town = with_few(4)
    score = np.where(town == "c", 0.999 - 0.001 * SCORE, SCORE)
    part = with_common_comparisons(*parts(LABEL, {"town": town}))
    found = evaluate_model(Told(score), *part, strength=1.0, seed=0)
    audited = audit(
        None,
        score[200:],
        sensitive_features={"town": town[200:]},
        metrics=["kolmogorov"],
        options=AuditOptions(resamples=0),
    )
    apart = {one.enough: one.value for one in sorted(audited.findings, key=lambda one: one.value)}
    assert found.point.unfairness == pytest.approx(apart[True])
    assert found.with_small is not None
    assert found.with_small["unfairness"] == pytest.approx(apart[False])
    assert found.with_small["chance"] > 2 * found.chance
    assert (found.comparisons, [one.rows for one in found.groups][-1]) == (1, 4)
    rates = [(score[200:] >= 0.5)[town[200:] == name].mean() for name in "ab"]
    assert found.point.more["four_fifths"] == pytest.approx(min(rates) / max(rates))
    assert found.point.intervals["unfairness"].high < 0.7
    assert not found.point.overfit


def test_the_four_fifths_ratio_has_groups_with_few_of_the_labels_that_are_compared() -> None:
    """It is about everyone: 40 rows are enough, however few of them have y = 1."""
    town = np.array(["a", "b", "a", "b", "c"])[ROWS % 5]
    label = np.where(np.where(town == "c", ROWS % 25 == 4, ROWS % 7 > 0), "yes", "no")
    score = np.where(town == "c", 0.7 * SCORE, SCORE)
    data = data_set(
        X, label, town, None, regression=False, criterion=EQUAL_OPPORTUNITY, contrast="pairs"
    )
    part = with_common_comparisons(data.held_out(ROWS[200:]), data.held_out(ROWS[:200]))
    found = evaluate_model(Told(score), *part, strength=1.0, seed=0)
    assert (found.comparisons, len(part[0].all_comparisons)) == (1, 3)
    rates = [(score[200:] >= 0.5)[town[200:] == name].mean() for name in "abc"]
    assert found.point.more["four_fifths"] == pytest.approx(min(rates) / max(rates))
    assert rates.index(min(rates)) == 2


def test_parts_are_judged_by_the_comparisons_with_enough_rows_in_all_of_them() -> None:
    held_out, training = parts(LABEL, {"town": with_few(10)})
    assert (len(held_out.comparisons), len(training.comparisons)) == (1, 3)
    assert [len(part.comparisons) for part in with_common_comparisons(held_out, training)] == [1, 1]
    everyone = [str(one) for one in held_out.all_comparisons]
    town = np.array(["a", "b", "c"] * N)[:N]
    small = data_set(
        X, LABEL, town, None, regression=False, criterion=STATISTICAL_PARITY, contrast="pairs"
    )
    few = with_common_comparisons(small.held_out(ROWS[:60]), small.held_out(ROWS[60:]))
    assert [[str(one) for one in part.comparisons] for part in few] == [
        [name.replace("town", "sensitive_features") for name in everyone]
    ] * 2


@pytest.mark.parametrize(
    "weight", [None, RNG.integers(1, 5, N).astype(float)], ids=["equal", "weighted"]
)
def test_figures_of_two_classes_are_those_of_each_group(weight: Any) -> None:
    found = evaluate_model(
        Told(SCORE), *parts(LABEL, {"sex": SEX, "area": AREA}, weight=weight), strength=1.0, seed=0
    )
    assert [one.group for one in found.groups] == [
        "sex: f",
        "sex: m",
        "area: a",
        "area: b",
        "area: c",
    ]
    for one, own in zip(
        found.groups, [SEX == "f", SEX == "m", *(name == AREA for name in "abc")], strict=True
    ):
        rows = ROWS[(ROWS >= 200) & own]
        w = None if weight is None else weight[rows]
        positive, score = LABEL[rows] == "yes", SCORE[rows]
        assert one.rows == len(rows)
        assert one.figures == pytest.approx(
            {
                "base_rate": np.average(positive, weights=w),
                "mean_score": np.average(score, weights=w),
                "decision_rate": np.average(score >= 0.5, weights=w),
                "accuracy": np.average((score >= 0.5) == positive, weights=w),
                "auc": roc_auc_score(positive, score, sample_weight=w),
            }
        )


def test_figures_of_numbers_are_means_and_r2() -> None:
    rng = np.random.default_rng(99)
    y = SCORE + rng.normal(0, 0.1, N)
    found = evaluate_model(
        Number(SCORE), *parts(y, {"sex": SEX}, regression=True), strength=1.0, seed=0
    )
    for one, name in zip(found.groups, ("f", "m"), strict=True):
        rows = ROWS[(ROWS >= 200) & (name == SEX)]
        assert one.figures == pytest.approx(
            {
                "mean_outcome": y[rows].mean(),
                "mean_prediction": SCORE[rows].mean(),
                "r2": r2_score(y[rows], SCORE[rows]),
            }
        )
    assert found.constant.accuracy == pytest.approx(r2_score(y[200:], np.full(200, y[:200].mean())))


def test_a_group_of_one_label_has_no_auc_and_one_without_rows_no_figures() -> None:
    area = AREA.copy()
    area[200:][(area[200:] == "c")] = "b"
    label = np.where((area == "a") & (ROWS >= 200), "yes", LABEL)
    found = evaluate_model(
        Told(SCORE), *parts(label, {"sex": SEX, "area": area}), strength=1.0, seed=0
    )
    by_name = {one.group: one for one in found.groups}
    assert by_name["area: a"].figures["auc"] is None
    assert by_name["area: a"].figures["base_rate"] == 1.0
    assert (by_name["area: c"].rows, by_name["area: c"].figures) == (
        0,
        {"accuracy": None, "auc": None},
    )


def test_the_constant_is_that_of_the_training_rows() -> None:
    label = LABEL.copy()
    label[:200], label[200:] = (
        np.where(ROWS[:200] % 5, "no", "yes"),
        np.where(ROWS[200:] % 4, "yes", "no"),
    )
    found = evaluate_model(Told(SCORE), *parts(label, {"sex": SEX}), strength=1.0, seed=0)
    assert found.constant_value == "no"
    assert found.constant.accuracy == 0.25
    assert found.constant.unfairness == 0.0


def test_a_model_that_decides_alike_is_marked_and_one_that_tells_people_apart_is_not() -> None:
    held_out, training = parts(LABEL, {"sex": SEX})
    alike = evaluate_model(Told(SCORE, threshold=0.0), held_out, training, strength=1.0, seed=0)
    assert alike.point.marks["accuracy"] == "constant"
    assert "auc" not in alike.point.marks
    constant = evaluate_model(Told(np.full(N, 0.7)), held_out, training, strength=1.0, seed=0)
    assert {"accuracy", "auc"} <= set(constant.point.marks)
    assert evaluate_model(Told(SCORE), held_out, training, strength=1.0, seed=0).point.marks == {}


def test_fairness_of_training_rows_alone_is_called_overfit() -> None:
    """Equal scores on the rows that taught the model, the groups apart on others: the planted
    fault.
    """
    rng = np.random.default_rng(99)
    apart = 1 / (1 + np.exp(-(rng.normal(size=N) + 2.0 * (SEX == "m"))))
    fair = np.where(ROWS < 200, rng.random(N), apart)
    held_out, training = parts(LABEL, {"sex": SEX})
    found = evaluate_model(Told(fair), held_out, training, strength=1.0, seed=0)
    assert found.point.overfit
    assert found.point.unfairness > found.training.unfairness + found.chance
    assert not evaluate_model(Told(apart), held_out, training, strength=1.0, seed=0).point.overfit
