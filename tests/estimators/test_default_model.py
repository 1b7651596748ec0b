"""The model that an estimator has by default: a linear one, whatever the units of the features."""

from __future__ import annotations

import numpy as np
import pytest

from metrifair import DataError, FairClassifier, FairRegressor

RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=(300, 3)) * [1.0, 1e4, 1e-3]
A = RANDOM.integers(0, 2, 300)
Y = (X @ [1.0, 1e-4, 1e3] + A > 0.5).astype(int)


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_it_is_linear_and_takes_features_in_any_unit(kind: type) -> None:
    model = kind().fit(X, Y, sensitive_features=A)
    assert model.coef_.shape[-1] == 3
    other = kind().fit(X * [1e5, 1.0, 1.0], Y, sensitive_features=A)
    np.testing.assert_allclose(other.coef_ * [1e5, 1.0, 1.0], model.coef_, rtol=1e-3)


@pytest.mark.parametrize("units", [[64, 32], [16]])
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_units_of_hidden_layers_need_a_network(kind: type, units: list[int]) -> None:
    with pytest.raises(DataError) as caught:
        kind(hidden=units).fit(X, Y, sensitive_features=A)
    expected = f"hidden describes the layers of a network, and the model is linear, got {units}"
    assert str(caught.value).startswith(expected)
    assert "model='mlp'" in str(caught.value)
    network = kind(model="mlp", hidden=(4,), epochs=2).fit(X, Y, sensitive_features=A)
    assert not hasattr(network, "coef_")
    assert kind(hidden=()).fit(X, Y, sensitive_features=A).coef_.shape[-1] == 3
