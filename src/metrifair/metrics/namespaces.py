"""Choose the array library that measures: NumPy for arrays, torch for tensors, which carry
gradients.

The formulas of this package are written once, against a namespace ``xp = namespace_for(scores)``.
Operators, indexing and the methods that both libraries spell alike (``sum``, ``mean``, ``cumsum``,
``swapaxes``) need no namespace. NumPy's operations are in ``numpy_namespace``, torch's in
``torch_namespace``, the only file here that imports torch.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.metrics import numpy_namespace

Array: TypeAlias = Any
"""A NumPy array or a torch tensor."""


def is_tensor(value: object) -> bool:
    """True for a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def namespace_for(*arrays: Array) -> Any:
    """The operations for these arrays: torch's, on its device, for the first tensor among them,
    else NumPy's.

    >>> namespace_for(np.zeros(2)).device
    'cpu'
    """
    for array in arrays:
        if is_tensor(array):
            return _on_device(array.device)
    return numpy_namespace


@cache
def _on_device(device: Any) -> Any:
    from metrifair.metrics.torch_namespace import TorchNamespace  # noqa: PLC0415 (arrays need no torch)

    return TorchNamespace(device)


def host_values(array: Array) -> NDArray[Any]:
    """The values as a NumPy array, from any device, without gradients."""
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def no_warnings() -> np.errstate:
    """A context in which NumPy overflows silently, as torch does: results are checked
    afterwards.
    """
    return np.errstate(
        over="ignore",
        invalid="ignore",
        divide="ignore",
        under="ignore",
    )
