"""A frontier <-> arrays + JSON: its figures as one typed record, its models as in files of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from metrifair.errors import ModelFileError
from metrifair.results import Curves, Point
from metrifair.saving.estimators import KIND
from metrifair.saving.modelfile import Content, PathLike, prefixed, under, write
from metrifair.saving.models import content_of
from metrifair.saving.schema import Count, Positive, Record, record_of
from metrifair.tradeoff.ledger import Figures
from metrifair.tradeoff.sweep import Job, Outcome

if TYPE_CHECKING:
    from metrifair.tradeoff.result import Frontier

FRONTIER = "frontier"  # the kind of the file


class OutcomeRecord(Figures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model and what it reaches; ``model`` is what its own file would hold."""

    value: float
    seed: Count
    model: dict[str, Any] | None


class FrontierRecord(Record):
    """All that a file holds of a frontier, but for its models' arrays."""

    on: Literal["scores", "decisions"]
    accuracy_name: Literal["accuracy", "R2"]
    groups: tuple[str, ...]
    sizes: dict[str, Count]
    notes: tuple[str, ...]
    comparisons: Positive
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
            _, kept, own = content_of(outcome.model)
            arrays |= prefixed(f"{place}/", own)
        figures = outcome.validation, outcome.test, outcome.curves
        outcomes.append(OutcomeRecord(*figures, value=outcome.job.value, seed=outcome.job.seed, model=kept))
    own_fields = {name: getattr(front, name) for name in _OWN}
    record = FrontierRecord(outcomes=outcomes, chosen=front.chosen, limit=front.limit, **own_fields)
    write(path, Content(FRONTIER, record.as_json(), arrays))


def frontier_from(content: Content, made: Callable[..., Frontier], model_of: Callable[[Content], Any]) -> Frontier:
    """The frontier that ``write_frontier`` wrote, by its class; ``model_of`` makes each model of its own content."""
    record = record_of(FrontierRecord, content.meta, "a frontier")
    for one in record.outcomes:
        _check_curves(one.curves)
    outcomes = []
    for place, one in enumerate(record.outcomes):
        arrays = under(f"{place}/", content.arrays)
        model = None if one.model is None else model_of(Content(KIND, one.model, arrays))
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
