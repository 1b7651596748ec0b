"""Lines that the pages of several experiments share."""

from __future__ import annotations

from experiments.device import where
from experiments.figures import SKETCH
from experiments.settings import Effort


def circumstances(effort: Effort, *, processes: int = 1) -> list[str]:
    """That it is a sketch, where it is one; and the machine.

    >>> circumstances(Effort.of(1, quick=True))[0] == SKETCH
    True
    """
    return [*([SKETCH] if effort.quick else []), f"Computed on: {where(processes)}."]
