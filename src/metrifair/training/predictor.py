"""What training leaves: a stack of trained models, and each of them as a predictor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.training.models import Model, member
from metrifair.training.scaling import Scaling

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, eq=False)
class Predictor:
    """One trained model: features in, outputs out."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (1, 1)
    scaling: Scaling  # (1, features)

    @torch.no_grad()
    def output(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs (n,), or (n, outputs), in pieces so that memory stays bounded."""
        pieces = torch.as_tensor(x).split(_ROWS_AT_ONCE)
        outputs = [self.model(self.parameters, self.scaling.apply(piece.unsqueeze(0)))[0, 0] for piece in pieces]
        return torch.cat(outputs).numpy()


class Trained(NamedTuple):
    """A stack of trained models, in double precision on the device they were trained on."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (seeds, strengths)
    scaling: Scaling  # (seeds, features)
    failed: Tensor  # (seeds, strengths): True where training diverged; such parameters are all 0

    def predictor(self, seed: int, strength: int) -> Predictor:
        """The model at these places of the stack, on the CPU."""
        one = member(self.parameters, seed, strength)
        scaling = Scaling(*(part.cpu() for part in self.scaling.of_seed(seed)))
        return Predictor(self.model, {name: value.cpu() for name, value in one.items()}, scaling)
