"""Refutation of linear alternatives through its public name: real data, sentences, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from metrifair import FairClassifier, datasets
from metrifair.errors import DataError
from metrifair.evidence import refute_linear
from tests.expected_errors import Refusals
from tests.raw_data import require_raw_data


def people(seed: int = 0, rows: int = 800):
    generator = np.random.default_rng(seed)
    sex = np.where(generator.random(rows) < 0.4, "f", "m")
    X = generator.standard_normal((rows, 3)) + np.outer(sex == "m", [1.0, 0.5, 0.0])
    y = (X @ [1.0, -0.5, 0.3] + generator.logistic(size=rows) > 0.3).astype(int)
    return X, y, sex


def test_the_answer_names_limits_bound_and_population() -> None:
    X, y, sex = people()
    plain = refute_linear(X, y, sensitive_features=sex, max_risk=0.0, max_gap=10.0)
    assert plain.refuted
    assert plain.least_gap == np.inf
    lowest = plain.risk_without_limit
    result = refute_linear(X, y, sensitive_features=sex, max_risk=lowest + 1e-3, max_gap=0.0)
    assert result.refuted
    assert result.least_risk > lowest + 1e-3
    assert result.least_gap > 0
    assert "No linear model with these 3 features has a log loss of at most" in str(result)
    open_question = refute_linear(X, y, sensitive_features=sex, max_risk=0.69, max_gap=0.5)
    assert not open_question.refuted
    assert str(open_question).startswith("Not refuted: ")


def test_too_few_rows_refute_nothing_in_the_population() -> None:
    X, y, sex = people(rows=60)
    result = refute_linear(X, y, sensitive_features=sex, max_risk=0.55, max_gap=0.0)
    assert result.least_risk_in_population < result.least_risk
    if result.refuted:
        assert not result.refuted_in_population
        assert "too few" in result.summary


@pytest.mark.parametrize("strength", [0.0, 1.0, 10.0])
def test_our_own_linear_models_keep_the_bound(strength: float) -> None:
    X, y, sex = people(1)
    model = FairClassifier(strength, model="linear").fit(X, y, sensitive_features=sex)
    outputs = model.decision_function(X)
    its_gap = abs(outputs[sex == "f"].mean() - outputs[sex == "m"].mean())
    its_risk = np.logaddexp(0, -np.where(y == 1, 1, -1) * outputs).mean()
    result = refute_linear(X, y, sensitive_features=sex, max_risk=1.0, max_gap=float(its_gap))
    assert its_risk >= result.least_risk - 1e-12


def test_repeated_rows_are_weights_and_several_attributes_take_the_highest_bound() -> None:
    X, y, sex = people(2)
    town = np.where(np.arange(len(y)) % 2, "a", "b")
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    asked = {"max_risk": 0.6, "max_gap": 0.05}
    weighted = refute_linear(X, y, sensitive_features=sex, sample_weight=weight, **asked)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = refute_linear(X[rows], y[rows], sensitive_features=sex[rows], **asked)
    assert weighted.least_risk == pytest.approx(repeated.least_risk, rel=1e-9)
    both = refute_linear(X, y, sensitive_features={"sex": sex, "town": town}, **asked)
    each = [refute_linear(X, y, sensitive_features=each, **asked) for each in (sex, town)]
    assert both.least_risk == pytest.approx(max(one.least_risk for one in each), rel=1e-9)
    assert "sex" in both.comparison


@pytest.mark.extended
@pytest.mark.parametrize("name", ["adult", "compas", "communities"])
def test_it_refutes_on_real_data(name: str) -> None:
    """Parity of mean outputs at 1 % more risk than without a limit: no linear model has both."""
    data = datasets.load(name, data_home=require_raw_data())
    asked = {"sensitive_features": data.sensitive_features, "max_gap": 0.01}
    free = refute_linear(data.X, data.y, max_risk=1.0, **asked).risk_without_limit
    result = refute_linear(data.X, data.y, max_risk=1.002 * free, **asked)
    assert result.refuted


def test_bad_input_is_named(refused: Refusals) -> None:
    X, y, sex = people()
    asked = {"sensitive_features": sex, "max_risk": 0.5, "max_gap": 0.1}
    with pytest.raises(DataError, match="max_gap"):
        refute_linear(X, y, **asked | {"max_gap": -1})
    with refused(DataError):
        refute_linear(X, np.arange(len(y)) % 3, **asked)
    with pytest.raises(DataError, match="confidence"):
        refute_linear(X, y, confidence=1.5, **asked)
    with pytest.raises(DataError, match="sensitive_features"):
        refute_linear(X, y, **asked | {"sensitive_features": None})
