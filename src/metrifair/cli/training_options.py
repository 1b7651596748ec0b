"""Options of `train` and `frontier`: a file, and the roles of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.cli import options
from metrifair.cli.proxies import Proxy, take_probabilities
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from metrifair.estimators.table_model import Costs, ThresholdRule
    from metrifair.problem.memberships import GroupProbabilities
    from metrifair.support.provenance import SourceFile


def _only(column: str | None) -> list[str]:
    """The columns of a role that one column may have."""
    return [] if column is None else [column]


@dataclass(frozen=True)
class TrainingOptions:
    """The training task; the fields are the options of ``train`` and ``frontier``."""

    file: str
    label: str
    group: tuple[str, ...]
    group_probabilities: tuple[str, dict[str, str]] | None
    known_group: str | None
    proxy_labels: Literal["included", "independent"] | None
    continuous: tuple[str, ...]
    cuts: tuple[tuple[str, list[float]], ...]
    control: tuple[str, ...]
    weight: str | None
    cluster: str | None
    criterion: str
    metric: str
    contrast: Literal["pairs", "rest"]
    combine: str
    estimate: str
    model: str
    ignore: tuple[str, ...]
    keep: tuple[str, ...]
    ids: tuple[str, ...]
    use_group: bool
    classification: bool | None
    positive: str | None
    reading: ReadOptions
    seed: int
    title: str | None
    about: tuple[tuple[str, str], ...]
    signed_by: str | None
    purpose: str | None
    data_source: str | None
    period: str | None

    @property
    def statements(self) -> dict[str, str]:
        """The facts about the data."""
        return options.statements(
            self.about,
            signed_by=self.signed_by,
            purpose=self.purpose,
            data_source=self.data_source,
            period=self.period,
        )

    def aim(self) -> dict[str, Any]:
        """The fairness parameters of estimators."""
        from metrifair.metrics.penalty_options import PenaltyOptions

        penalty = PenaltyOptions(
            contrast=self.contrast,
            combine=self.combine,  # type: ignore[arg-type]
            estimate=self.estimate,  # type: ignore[arg-type]
        )
        return {"criterion": self.criterion, "metric": self.metric, "penalty": penalty}

    @cached_property
    def _proxy(self) -> Proxy:
        names = ("group", "group_probabilities", "known_group", "proxy_labels")
        return take_probabilities({name: getattr(self, name) for name in names})

    @property
    def proxy(self) -> GroupProbabilities | None:
        """The columns of probabilities in place of groups; None where groups are known."""
        return self._proxy.arguments.get("group")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the protected attributes."""
        return self.group if self.proxy is None else (self.proxy.attribute,)

    @property
    def roles(self) -> dict[str, Sequence[str]]:
        """The columns of each role."""
        return {
            "label": [self.label],
            "group": self._proxy.columns.get("group", self.group),
            "control": self.control,
            "weight": _only(self.weight),
            "cluster": _only(self.cluster),
            "ignore": self.ignore,
            "keep": self.keep,
            "id": self.ids,
        }

    def table(self) -> tuple[pl.DataFrame, list[SourceFile]]:
        """The columns, and their files; raises an error for an unknown column before heavy
        imports.
        """
        from metrifair.cli.tables import read

        for role in ("group", "weight", "cluster"):
            if self.label in self.roles[role]:
                raise DataError(
                    f"--label and --{role} both name {self.label!r}; they must be two columns"
                )
        for name in self.keep:
            if name in (self.label, *self.ignore):
                raise DataError(
                    f"--keep names {name!r}, which --label or --ignore names too; leave one of "
                    "them out"
                )
        return read(
            self.file,
            self.reading,
            # Ids are copied as they are written: a float stores only 15 of their digits.
            texts=[
                *(self.group if self.known_group is None else [self.known_group]),
                *self.control,
                *self.roles["cluster"],
                *(name for name in self.ids if name != self.label),
            ],
            roles=self.roles,
        )


class Sweep(NamedTuple):
    """The options of a frontier besides the file: which models are trained, and by what they
    are compared.
    """

    strengths: Any = None  # None: the usual ones
    families: Sequence[str] | None = None
    budget: float | None = None
    seeds: int = 1
    folds: int | None = None
    test: float | None = None  # share of the rows that neither train nor compare models
    unfairness_of: Literal["scores", "decisions"] = "scores"
    utility: str = "auto"
    costs: Costs | None = None
    threshold: float | None = None  # of decisions; None: the models decide, unless there is a rule
    rule: ThresholdRule | None = None
    ledger: Path | None = None


class ChoiceOptions(NamedTuple):
    """The choice of a frontier's model, and the files to write."""

    max_unfairness: float | None = None
    without_group: bool = False
    confidence: float | None = None
    best_effort: bool = False
    output: Path | None = None
    held_out: Path | None = None


class SearchEvidence(NamedTuple):
    """The evidence of a search, as options of ``frontier``."""

    evidence: Path | None = None
    reason: str | None = None
    scores: Path | None = None
    min_cell: int = 1
    sign: str | None = None
    again: bool = False


class Reports(NamedTuple):
    """The files with figures that a command writes."""

    html: Path | None
    pdf: Path | None
    json_to: Path | None


REPORTS = options.gather_options("reports", Reports, Reports._fields)
"""Pass the files with figures to a command as ``reports``."""
TRAINING = options.gather_options(
    "options", TrainingOptions, [field.name for field in fields(TrainingOptions)]
)
"""Pass the file and the roles of its columns to a command as ``options``."""
