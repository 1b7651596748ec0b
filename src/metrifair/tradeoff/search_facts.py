"""What evidence of a search states besides its counts: configurations, comparisons, the rule of
choice, standard errors and the figures that are expected of the choice.
"""

from __future__ import annotations

from typing import Literal

from metrifair.figures.count_bounds import CountedUtility, ScoreKind
from metrifair.saving.records import Amount, Count, Positive, Record

MOST_CONFIGURATIONS = 900
JsonScalar = bool | int | float | str | None


class GoalFacts(Record):
    """What was asked of the choice; the fields are those of ``Goal``."""

    max_unfairness: float | None
    min_accuracy: float | None
    needs_group: bool | None
    confidence: float | None
    best_effort: bool


class ConfigurationFacts(Record):
    """A configuration: a family of models at one strength, and what only the search knows of it."""

    number: Positive  # that of its files of counts
    family: str
    parameter: str
    value: float
    seed: Count
    needs_group: bool
    # why it cannot be chosen; empty for all others
    excluded: Literal["", "failed", "needs_group", "no_utility", "unlike_folds"]
    simplicity: Count = 0  # rank, 0 for the simplest
    tier: Count = 0
    scores: ScoreKind = "many"
    # standard errors: of the unfairness, of its square, and of the utility
    unfairness_error: Amount = 0.0
    square_error: Amount = 0.0
    utility_error: Amount = 0.0


class ComparisonFacts(Record):
    """A comparison: the values of groups, stratum and label of the rows on both sides."""

    table: Count  # of the counts
    attribute: str
    within: str
    groups: tuple[str, str]
    left: list[list[JsonScalar]]
    right: list[list[JsonScalar]]


class ExpectedFacts(Record):
    """The figures that are expected of the chosen model on new rows, with 95 % intervals."""

    unfairness: float
    unfairness_low: float
    unfairness_high: float
    utility: float
    utility_low: float
    utility_high: float


class ModelFacts(Record):
    """The file of the delivered model."""

    name: str
    sha256: str


class SearchFacts(Record):
    """All that a folder states of a search and its counts cannot show."""

    kind: Literal["metrifair search"]
    version: Literal[1]
    reason: str
    goal: GoalFacts | None  # None: the least unfair configuration
    met: bool  # whether some configuration meets the goal
    utility: CountedUtility
    larger_is_better: bool
    unfairness_of: Literal["scores", "decisions"]
    criterion: str
    contrast: Literal["pairs", "rest"]
    positive: JsonScalar
    columns: list[str]  # of the counts: attributes, fold, stratum and label
    attributes: Positive
    joint: bool  # whether all attributes are counted together
    folds: Count
    seed: Count
    configurations: list[ConfigurationFacts]
    comparisons: list[ComparisonFacts]
    allowance: Amount  # in the square of the gap, for choosing the best of many
    # of the difference in quality of every two configurations that did not fail
    errors_of_differences: list[list[Amount]]
    chosen: Positive
    expected: ExpectedFacts
    delivered_scores: ScoreKind
    model: ModelFacts | None

    @property
    def tables(self) -> int:
        """The number of tables of counts of each configuration."""
        if self.joint:
            return 1
        return self.attributes

    @property
    def chosen_configuration(self) -> ConfigurationFacts:
        """The chosen configuration; a ValueError if there is none of this number."""
        for item in self.configurations:
            if item.number == self.chosen:
                return item
        raise ValueError("the chosen configuration is not listed")

    @property
    def usable(self) -> list[ConfigurationFacts]:
        """The configurations with counts."""
        return [item for item in self.configurations if item.excluded != "failed"]


class BoundedFigure(Record):
    """A figure of the counts, with the bounds of that of the original scores."""

    value: float
    low: float
    high: float


class ConfigurationFigures(Record):
    """What the counts say of a configuration."""

    number: Positive
    unfairness: BoundedFigure
    utility: BoundedFigure
    accuracy: BoundedFigure | None  # None: not of these scores
    on_front: bool
    possible: bool  # whether the rule may choose it, given these bounds


class DeliveredFigures(Record):
    """What the counts say of the model of all rows, on the rows that trained it."""

    unfairness: BoundedFigure
    utility: BoundedFigure
    accuracy: BoundedFigure | None


class SearchFigures(Record):
    """All figures that are computed from the counts."""

    kind: Literal["metrifair search figures"]
    version: Literal[1]
    rows: Count
    withheld: Count  # at most; rounded up
    noise: Amount  # a gap of the counted rows below it is not distinguishable from 0
    configurations: list[ConfigurationFigures]
    delivered: DeliveredFigures
