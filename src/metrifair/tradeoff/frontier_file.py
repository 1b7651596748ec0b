"""The file of a frontier: figures and models of all outcomes; reading runs no code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from numpy.typing import NDArray

from metrifair.figures.utility import UTILITIES, Utility
from metrifair.saving.estimators import KIND
from metrifair.saving.modelfile import Content, PathLike, add_prefix, strip_prefix, write
from metrifair.saving.models import make_content
from metrifair.saving.records import Count, Positive, Record, Scalar, read_record
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.ledger import Figures
from metrifair.tradeoff.points import Change, FrontierNote, Job, Outcome, Point
from metrifair.tradeoff.result import TradeOff

FRONTIER = "frontier"  # the kind of the file
T = TypeVar("T", bound=TradeOff)


class OutcomeRecord(Figures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model and its figures; ``model`` is the content of its own file."""

    value: float
    seed: Count
    model: dict[str, Any] | None
    kind: str = KIND  # of that file


class UtilityRecord(Record):
    """The utility of a frontier's file; the code has its measure."""

    name: str
    larger_is_better: bool

    def utility(self) -> Utility:
        """The utility of that name, or one with figures only."""
        return UTILITIES.get(self.name) or Utility(self.name, self.larger_is_better)


class FrontierRecord(Record):
    """The content of a frontier's file, except for its models' arrays."""

    unfairness_of: Literal["scores", "decisions"]
    accuracy_name: Literal["accuracy", "R2"]
    groups: tuple[str, ...]
    sizes: dict[str, Count]
    notes: tuple[FrontierNote, ...]
    comparisons: Positive
    parameter: str
    floor: float | None
    validation_floor: float | None
    all_small: bool
    constant: Point | None
    constant_value: Scalar | None
    tried: Positive | None
    parameters: dict[str, str]
    provenance: Provenance
    test_folds: Count
    outcomes: list[OutcomeRecord]
    utility: UtilityRecord
    chosen: Point | None
    limit: float | None
    chosen_by: UtilityRecord | None
    certified: bool
    change: Change | None
    fold_choices: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        reference = None if self.change is None else self.change.reference
        for point in filter(None, (self.constant, self.chosen, reference)):
            point.check()


_CHOICE = ("chosen", "limit", "certified", "change", "fold_choices")
_CHANGED = ("outcomes", "utility", "chosen_by", *_CHOICE)  # by writing, or by a choice
_SAME = [name for name in FrontierRecord.__struct_fields__ if name not in _CHANGED]


def _utility_record(utility: Utility) -> UtilityRecord:
    return UtilityRecord(name=utility.name, larger_is_better=utility.larger_is_better)


def write_frontier(path: PathLike, front: TradeOff) -> None:
    """Write figures and models to one file."""
    arrays: dict[str, NDArray[Any]] = {}
    outcomes = []
    for place, outcome in enumerate(front.outcomes):
        kind, model = KIND, None
        if outcome.model is not None:
            kind, model, model_arrays = make_content(outcome.model)
            arrays |= add_prefix(f"{place}/", model_arrays)
        figures = outcome.validation, outcome.test, outcome.curves, outcome.training
        value, seed = outcome.job.value, outcome.job.seed
        outcomes.append(OutcomeRecord(*figures, value=value, seed=seed, model=model, kind=kind))
    record = FrontierRecord(
        outcomes=outcomes,
        utility=_utility_record(front.utility),
        chosen_by=None if front.chosen_by is None else _utility_record(front.chosen_by),
        **{name: getattr(front, name) for name in (*_CHOICE, *_SAME)},
    )
    write(path, Content(FRONTIER, record.as_json(), arrays))


def read_frontier(content: Content, kind: Callable[..., T], model_in: Callable[[Content], Any]) -> T:
    """The frontier that ``write_frontier`` wrote, of this class; ``model_in`` makes each model from its content."""
    record = read_record(FrontierRecord, content.meta, "a frontier")
    outcomes = []
    for place, outcome in enumerate(record.outcomes):
        arrays = strip_prefix(f"{place}/", content.arrays)
        model = None if outcome.model is None else model_in(Content(outcome.kind, outcome.model, arrays))
        job = Job(outcome.value, outcome.seed, outcome.test.family)
        outcomes.append(Outcome(job, outcome.validation, outcome.test, outcome.curves, model, outcome.training))
    same = {name: getattr(record, name) for name in _SAME}
    front = kind(outcomes=outcomes, utility=record.utility.utility(), **same)
    for name in _CHOICE:
        setattr(front, name, getattr(record, name))
    front.chosen_by = None if record.chosen_by is None else record.chosen_by.utility()
    return front
