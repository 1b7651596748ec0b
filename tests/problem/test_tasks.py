"""Losses and links against their formulas, and where they must stay finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import special
from sklearn.metrics import log_loss
from torch import Tensor

from metrifair.criteria import Criterion
from metrifair.errors import DataError
from tests.seams.problem import (
    REGRESSION_LOSSES,
    Inputs,
    criterion_scores,
    log_losses,
    logits,
    make_problem,
)
from tests.seams.training import BINARY, MULTICLASS, regression

RANDOM = np.random.default_rng(5)
OUTPUT = torch.as_tensor(RANDOM.normal(scale=2, size=(3, 40)))  # three models
VECTORS = torch.as_tensor(RANDOM.normal(scale=2, size=(3, 40, 4)))
LABEL = torch.as_tensor(RANDOM.integers(0, 2, 40))
CLASS = torch.as_tensor(RANDOM.integers(0, 4, 40))
TARGET = torch.as_tensor(RANDOM.normal(size=40))
TASKS = [BINARY, MULTICLASS, *(regression(loss) for loss in REGRESSION_LOSSES)]


def outputs(task: Any) -> Tensor:
    return VECTORS if task.vector else OUTPUT


def targets(task: Any) -> Tensor:
    return {"binary": LABEL, "multiclass": CLASS}.get(task.name, TARGET)


@pytest.mark.parametrize("model", range(3))
def test_classification_losses_average_to_those_of_scikit_learn(model: int) -> None:
    binary, several = BINARY.loss(OUTPUT, LABEL)[model], MULTICLASS.loss(VECTORS, CLASS)[model]
    assert binary.mean().item() == pytest.approx(
        log_loss(LABEL, special.expit(OUTPUT[model].numpy()))
    )
    shares = special.softmax(VECTORS[model].numpy(), -1)
    assert several.mean().item() == pytest.approx(log_loss(CLASS, shares, labels=range(4)))


def test_regression_losses_are_the_formulas() -> None:
    error = (OUTPUT - TARGET).numpy()
    expected = {
        "squared_error": error**2,
        "absolute_error": np.abs(error),
        "huber": special.huber(1.0, error),
    }
    assert list(REGRESSION_LOSSES) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(regression(name).loss(OUTPUT, TARGET), values)
        np.testing.assert_array_equal(
            REGRESSION_LOSSES[name](OUTPUT.numpy(), TARGET.numpy()), values
        )


def test_losses_of_probabilities_are_those_of_the_outputs_behind_them() -> None:
    output, vectors = OUTPUT[0].numpy(), VECTORS[0].numpy()
    binary = log_losses(special.expit(output), LABEL.numpy())
    np.testing.assert_allclose(binary, BINARY.loss(OUTPUT[0], LABEL), rtol=1e-12)
    several = log_losses(special.softmax(vectors, -1), CLASS.numpy())
    np.testing.assert_allclose(several, MULTICLASS.loss(VECTORS[0], CLASS), rtol=1e-12)
    np.testing.assert_allclose(logits(special.expit(output)), output, rtol=1e-12)
    np.testing.assert_allclose(
        logits(special.softmax(vectors, -1)), special.log_softmax(vectors, -1), rtol=1e-12
    )


def test_losses_of_certain_predictions_are_finite() -> None:
    certain, wrong = np.array([0.0, 1.0]), np.array([1, 0])
    worst = -np.log(1e-12)
    np.testing.assert_allclose(log_losses(certain, wrong), worst, rtol=1e-3)  # 1 - 1e-12 is rounded
    np.testing.assert_allclose(log_losses(np.stack([1 - certain, certain], 1), wrong), worst)
    assert (log_losses(certain, 1 - wrong) == 0).all()


@pytest.mark.parametrize(
    "score", [lambda p, y: abs(p - y), lambda p, y: (p - y).abs(), lambda p, y: torch.abs(p - y)]
)
def test_a_score_of_ones_own_takes_arrays_or_tensors_alone(
    score: Callable[[Any, Any], Any],
) -> None:
    problem = make_problem(Inputs([0, 1, 1], sensitive_features=["f", "m", "f"]))
    found = criterion_scores(
        Criterion("residual", score=score), np.array([0.25, 0.5, 1.0]), problem
    )
    assert found.tolist() == [0.25, 0.5, 0.0]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_losses_keep_sample_and_model_axes(task: Any) -> None:
    loss = task.loss(outputs(task), targets(task))
    assert loss.shape == (3, 40)
    torch.testing.assert_close(loss[1], task.loss(outputs(task)[1], targets(task)))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_prediction_and_output_undo_each_other(task: Any) -> None:
    prediction = task.prediction(outputs(task))
    torch.testing.assert_close(task.prediction(task.output(prediction)), prediction)


def test_links_are_the_formulas() -> None:
    np.testing.assert_allclose(BINARY.prediction(OUTPUT), special.expit(OUTPUT.numpy()))
    np.testing.assert_allclose(BINARY.log_prediction(OUTPUT), special.log_expit(OUTPUT.numpy()))
    np.testing.assert_allclose(MULTICLASS.prediction(VECTORS), special.softmax(VECTORS.numpy(), -1))
    np.testing.assert_allclose(
        MULTICLASS.log_prediction(VECTORS), special.log_softmax(VECTORS.numpy(), -1)
    )
    assert torch.equal(regression().prediction(OUTPUT), OUTPUT)
    torch.testing.assert_close(regression().log_prediction(OUTPUT.exp()), OUTPUT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_outputs_have_finite_losses_and_gradients(dtype: torch.dtype) -> None:
    output = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4], dtype=dtype, requires_grad=True)
    for label in (0, 1):
        loss = BINARY.loss(output, torch.full((5,), label))
        (slope,) = torch.autograd.grad(loss.sum(), output)
        assert loss.isfinite().all()
        torch.testing.assert_close(slope, torch.sigmoid(output.detach()) - label)
    wide = torch.stack([output, -output], -1)
    assert MULTICLASS.loss(wide, torch.zeros(5)).isfinite().all()
    assert BINARY.log_prediction(output).isfinite().all()


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float32,
    ],
)
def test_predictions_of_zero_and_one_have_finite_outputs(dtype: torch.dtype) -> None:
    certain = torch.tensor([0.0, 1.0], dtype=dtype)
    output = BINARY.output(certain)
    assert output.isfinite().all()
    assert output[0] < 0 < output[1]
    assert MULTICLASS.output(certain).isfinite().all()
    assert regression().log_prediction(torch.tensor([0.0, -1.0], dtype=dtype)).isfinite().all()


def test_huber_joins_its_two_parts_smoothly() -> None:
    output = torch.tensor([1 - 1e-9, 1.0, 1 + 1e-9], dtype=torch.float64, requires_grad=True)
    loss = regression("huber").loss(output, torch.zeros(3, dtype=torch.float64))
    (slope,) = torch.autograd.grad(loss.sum(), output)
    torch.testing.assert_close(loss, torch.full_like(loss, 0.5))
    torch.testing.assert_close(slope, torch.ones_like(slope))


def test_an_unknown_loss_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DataError) as caught:
        regression("squared")
    assert str(caught.value) == (
        "loss must be one of 'squared_error', 'absolute_error', 'huber', got 'squared'; did you "
        "mean 'squared_error'?"
    )
