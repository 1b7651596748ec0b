"""What a model's output means: its loss per sample, and the link that makes it a prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor
from torch.nn import functional

from metrifair.checks import check_known

_ROUNDINGS = 16.0  # of the last digit, that a loss may be off
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


def tied(losses: Tensor, loss: str, size: float) -> Tensor:
    """Losses (n,), where those that only rounding tells apart are equal; ``size`` is that of the largest number given.

    A prediction of 0.3 for the label 1 is as wrong as one of 0.7 for the label 0, but 1 - 0.7 is not 0.3 to the last
    digit, and its logarithm magnifies the difference. Comparing distributions asks which losses are equal.

    >>> tied(torch.tensor([0.5, 2.0, 0.5 + 1e-16], dtype=torch.float64), "absolute_error", 2.0)
    tensor([0.5000, 2.0000, 0.5000], dtype=torch.float64)
    """
    distinct, place = losses.unique(return_inverse=True)
    slope = {"log_loss": distinct.exp(), "squared_error": 2 * distinct.sqrt()}.get(loss, torch.ones_like(distinct))
    off = slope * size + (-log(_SMALLEST_PROBABILITY) if loss == "log_loss" else distinct)
    apart = distinct.diff() > _ROUNDINGS * torch.finfo(losses.dtype).eps * off[1:]
    first = torch.cat([torch.ones(1, dtype=torch.bool), apart])
    merged: Tensor = distinct[first][first.cumsum(0) - 1]
    return merged[place]
