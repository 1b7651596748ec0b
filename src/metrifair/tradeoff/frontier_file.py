"""A frontier <-> arrays + JSON: its figures as one typed record, its models as in files of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from metrifair.errors import ModelFileError
from metrifair.results import Curves, Point
from metrifair.saving.modelfile import Content, PathLike, prefixed, under, write
from metrifair.tradeoff.ledger import Figures
from metrifair.tradeoff.sweep import Job, Outcome, model_of, parts_of

if TYPE_CHECKING:
    from metrifair.tradeoff.result import Frontier

FRONTIER = "frontier"  # the kind of the file


class OutcomeRecord(Figures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model and what it reaches; ``model`` is what its own file would hold."""

    value: float
    seed: int
    model: dict[str, Any] | None


class FrontierRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a file holds of a frontier, but for its models' arrays."""

    on: Literal["scores", "decisions"]
    accuracy_name: str
    groups: tuple[str, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...]
    comparisons: int
    parameter: str
    floor: float | None
    small: str
    outcomes: list[OutcomeRecord]
    chosen: Point | None
    limit: float | None


_OWN = [name for name in FrontierRecord.__struct_fields__ if name not in ("outcomes", "chosen", "limit")]


def write_frontier(path: PathLike, front: Frontier) -> None:
    """Write figures and models to one file."""
    arrays: dict[str, NDArray[Any]] = {}
    outcomes = []
    for place, outcome in enumerate(front.outcomes):
        kept = None
        if outcome.model is not None:
            kept, own = parts_of(outcome.model)
            arrays |= prefixed(f"{place}/", own)
        figures = outcome.validation, outcome.test, outcome.curves
        outcomes.append(OutcomeRecord(*figures, value=outcome.job.value, seed=outcome.job.seed, model=kept))
    own_fields = {name: getattr(front, name) for name in _OWN}
    record = FrontierRecord(outcomes=outcomes, chosen=front.chosen, limit=front.limit, **own_fields)
    write(path, Content(FRONTIER, msgspec.to_builtins(record, enc_hook=np.generic.item), arrays))


def frontier_from(content: Content, made: Callable[..., Frontier], module: torch.nn.Module | None = None) -> Frontier:
    """The frontier that ``write_frontier`` wrote, by its class; anything else is a ModelFileError."""
    try:
        record = msgspec.convert(content.meta, FrontierRecord)
    except msgspec.ValidationError as error:
        raise ModelFileError(f"the file does not describe a frontier: {error}") from error
    for one in record.outcomes:
        _check_curves(one.curves)
    outcomes = []
    for place, one in enumerate(record.outcomes):
        model = None if one.model is None else model_of(one.model, under(f"{place}/", content.arrays), module)
        outcomes.append(Outcome(Job(one.value, one.seed), one.validation, one.test, one.curves, model))
    front = made(outcomes, **{name: getattr(record, name) for name in _OWN})
    front.chosen, front.limit = record.chosen, record.limit
    return front


def _check_curves(curves: Curves | None) -> None:
    """Raise a ModelFileError unless every group has a density and a distribution function on the whole grid."""
    if curves is None:
        return
    lengths = {len(one) for by_group in (curves.density, curves.cumulative) for one in by_group.values()}
    if curves.density.keys() != curves.cumulative.keys() or not lengths <= {len(curves.grid)}:
        raise ModelFileError("the file does not describe a frontier: its curves do not stand on their grid")
