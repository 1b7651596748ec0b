"""What a model's output means: its loss per sample, and the link that makes it a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from metrifair.checks import check_known

_SMALLEST_PROBABILITY = 1e-12  # so that a prediction of 0 or 1 has a finite output


@dataclass(frozen=True)
class Task:
    """Loss and link; both act along the sample axis and keep leading (model) axes."""

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]  # (output, y) -> loss per sample (..., n), never averaged
    prediction: Callable[[Tensor], Tensor]  # output -> what a person receives
    log_prediction: Callable[[Tensor], Tensor]
    output: Callable[[Tensor], Tensor]  # prediction -> output
    vector: bool = False  # outputs and predictions are (..., n, classes)


def _log_loss(output: Tensor, y: Tensor) -> Tensor:
    # softplus(-output) if y = 1, softplus(output) if y = 0: one stable function for both.
    return functional.softplus(output) - y * output


def _softmax_loss(output: Tensor, y: Tensor) -> Tensor:
    chosen = y.long().expand(output.shape[:-1]).unsqueeze(-1)
    return -functional.log_softmax(output, -1).gather(-1, chosen).squeeze(-1)


def _softmax(output: Tensor) -> Tensor:
    return functional.softmax(output, -1)


def _log_softmax(output: Tensor) -> Tensor:
    return functional.log_softmax(output, -1)


def _logit(prediction: Tensor) -> Tensor:
    return torch.logit(prediction, eps=max(_SMALLEST_PROBABILITY, torch.finfo(prediction.dtype).eps))


def _log_clipped(prediction: Tensor) -> Tensor:
    return prediction.clamp_min(_SMALLEST_PROBABILITY).log()


def _same(values: Tensor) -> Tensor:
    return values


def _squared_error(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square()


def _absolute_error(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).abs()


def _huber(output: Tensor, y: Tensor) -> Tensor:
    """Quadratic within 1 of the target (which estimators standardise), linear beyond."""
    error = (output - y).abs()
    return torch.where(error <= 1, error.square() / 2, error - 0.5)


BINARY = Task("binary", _log_loss, torch.sigmoid, functional.logsigmoid, _logit)
MULTICLASS = Task(
    "multiclass",
    _softmax_loss,
    _softmax,
    _log_softmax,
    _log_clipped,
    vector=True,
)
REGRESSION_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
    "huber": _huber,
}


def regression(loss: str = "squared_error") -> Task:
    """A regression task with one of the three losses.

    >>> regression("huber").loss(torch.tensor([0.5, 3.0]), torch.zeros(2))
    tensor([0.1250, 2.5000])
    """
    check_known("loss", loss, REGRESSION_LOSSES)
    return Task("regression", REGRESSION_LOSSES[loss], _same, _log_clipped, _same)
