"""What an output means in training: loss and link as functions of tensors, and the score that a criterion compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from metrifair.errors import DataError
from metrifair.problem.criteria import SCORES, Criterion, Penalize
from metrifair.problem.losses import REGRESSION_LOSSES, SMALLEST_PROBABILITY
from metrifair.support.checks import check_known


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


def _logit(prediction: Tensor) -> Tensor:
    return torch.logit(prediction, eps=max(SMALLEST_PROBABILITY, torch.finfo(prediction.dtype).eps))


def _log_clipped(prediction: Tensor) -> Tensor:
    return prediction.clamp_min(SMALLEST_PROBABILITY).log()


def _same(values: Tensor) -> Tensor:
    return values


BINARY = Task("binary", _log_loss, torch.sigmoid, functional.logsigmoid, _logit)
MULTICLASS = Task(
    "multiclass",
    _softmax_loss,
    partial(functional.softmax, dim=-1),
    partial(functional.log_softmax, dim=-1),
    _log_clipped,
    vector=True,
)


def regression(loss: str = "squared_error") -> Task:
    """A regression task with one of the three losses.

    >>> regression("huber").loss(torch.tensor([0.5, 3.0]), torch.zeros(2))
    tensor([0.1250, 2.5000])
    """
    check_known("loss", loss, REGRESSION_LOSSES)
    return Task("regression", REGRESSION_LOSSES[loss], _same, _log_clipped, _same)


def constant_output(task: Task, y: Tensor, weight: Tensor, outputs: int, *, added: float = 0.5) -> Tensor:
    """The output that a model which knows nothing else gives for these samples, (outputs,): base rates, or the mean.

    Half a sample of every class is added, or another part of one, so that no class is certain or impossible.

    >>> constant_output(BINARY, torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.ones(4), 1).sigmoid()     # 3.5 of 5
    tensor([0.7000])
    """
    share = weight / weight.mean()
    if task.name == "regression":
        return (share * y).mean().unsqueeze(0)
    counts = torch.zeros(max(2, outputs), dtype=share.dtype).index_add_(0, y.long(), share) + added
    logs = (counts / counts.sum()).log()
    return logs - logs.mean() if outputs > 1 else (logs[1] - logs[0]).unsqueeze(0)


def scores(criterion: Criterion, task: Task, output: Tensor, y: Tensor, *, penalize: Penalize = "prediction") -> Tensor:
    """What the criterion compares, from what the model returns: (..., n), or (..., n, classes)."""
    check_known("penalize", penalize, ("prediction", "output"))
    if not callable(criterion.score):
        check_known("score", criterion.score, SCORES)
    if criterion.score != "prediction" and penalize != "prediction":
        raise DataError(
            f"penalize={penalize!r} applies where the score is the prediction; {criterion.name} compares "
            f"{criterion.score if isinstance(criterion.score, str) else 'a score of its own'}: leave penalize as it is"
        )
    if callable(criterion.score):
        return criterion.score(task.prediction(output), y)
    if criterion.score == "loss":
        return task.loss(output, y)
    if criterion.score == "log_prediction":
        return task.log_prediction(output)
    return output if "output" in (criterion.score, penalize) else task.prediction(output)
