"""The penalty under ``torch.compile``: one operation that the compiler does not look into.

Which rows belong to whom is looked up with NumPy, and batches differ in how many there are: traced, every batch would
break the graph. As one operation, value and slopes are computed as always, and the graph around them is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import torch
from torch import Tensor

Penalty: TypeAlias = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]

_beside = ThreadPoolExecutor(1, "metrifair-penalty")
_numbers = count(1)
_known: WeakValueDictionary[int, Any] = WeakValueDictionary()


def number_of(module: torch.nn.Module) -> int:
    """A number by which the operation finds the module, as long as it is alive."""
    number = next(_numbers)
    _known[number] = module
    return number


@torch.library.custom_op("metrifair::penalty", mutates_args=())
def value_and_slopes(
    number: int, scores: Tensor, groups: Tensor, targets: Tensor | None, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The penalty of a batch, and its derivative by each score."""
    module: Penalty = _known[number]

    def found() -> tuple[Tensor, Tensor]:
        own = scores.detach().requires_grad_()
        value = module(own, groups, targets, weights)
        (slopes,) = torch.autograd.grad(value, own)
        return value.detach().clone(), slopes.clone()

    return _beside.submit(found).result()  # within an operation this thread has no autograd


@value_and_slopes.register_fake
def _(number: int, scores: Tensor, *others: Tensor | None) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    return scores.new_empty(()), torch.empty_like(scores)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ARG001
    ctx.save_for_backward(output[1])


def _back(ctx: Any, of_value: Tensor, of_slopes: Tensor) -> tuple[None, Tensor, None, None, None]:  # noqa: ARG001
    (slopes,) = ctx.saved_tensors
    return None, of_value * slopes, None, None, None


value_and_slopes.register_autograd(_back, setup_context=_keep)
