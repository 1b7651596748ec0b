"""The records of audits, comparisons and series of audits: plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from metrifair.auditing.search_records import SearchRecord
from metrifair.figures.curves import Curves
from metrifair.figures.intervals import FEW, Interval
from metrifair.figures.selection_rates import MIN_GROUP_SHARE, GroupRates
from metrifair.problem.cells import Contrast
from metrifair.problem.memberships import Assumption
from metrifair.problem.values import Value
from metrifair.support.provenance import Provenance


@dataclass(frozen=True)
class WitnessCurve:
    """The utility that shows a gap, on a grid of scores, and its mean in either group."""

    grid: Sequence[float]
    utility: Sequence[float]
    expected: tuple[float, float]


@dataclass(frozen=True)
class ClusterFacts:
    """The clusters of the rows of an audit, such as persons with several rows each."""

    column: str  # their name
    count: int  # clusters


REST_NAME = "rest"
"""The name of all groups but one. Its group value is None."""

TestedBy = Literal["bonferroni", "joint_bounds", ""]
"""How significance was tested: by Bonferroni-adjusted p-values, or by whether the joint
interval excludes 0.
"""

Conditions: TypeAlias = tuple[tuple[str, Value], ...]
"""The set of samples behind a figure, as (name, value) pairs: ``(("y", 1), ("region",
"north"))``; empty: everyone.
"""


@dataclass(frozen=True)
class Divided:
    """The second end of a distance by group probabilities: divided by their R2, or by its square
    for squares.

    It is right if score and probabilities are independent given the group. The weighted distance is
    right if score and group are independent given the inputs of the probabilities. Without a value,
    R2 is too small to divide by it.
    """

    # Of the first group against the rest; of a pair among several groups, the factor of their
    # unmixed difference
    r2: float
    value: float | None = None
    interval: Interval | None = None
    joint_interval: Interval | None = None


class ComparedGroups(Protocol):
    """Two groups that are compared."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The rows of either group."""

    @property
    def clusters(self) -> tuple[int, int] | None:
        """The clusters of either group; None: rows are independent."""


def independent_sizes(compared: ComparedGroups) -> tuple[int, int]:
    """The independent observations of either group, which the minimum group size counts: clusters
    or rows.
    """
    if compared.clusters is None:
        return compared.sizes
    return compared.clusters


@dataclass(frozen=True)
class Finding:
    """The distance between the scores of two groups, by one metric, within one set of samples.

    Unknown values are None: an unbiased value of a metric that has none, a certificate of weighted
    samples.
    """

    attribute: str
    criterion: str
    within: str  # the set: "everyone", "label=1", a stratum
    groups: tuple[str, str]
    sizes: tuple[int, int]  # samples of either group in the set
    metric: str
    value: float  # of the two empirical distributions
    bracket: Interval | None = None  # proven bounds of that value, if a file is larger than memory
    unbiased: float | None = None
    interval: Interval | None = None  # by bootstrap
    certified: float | None = None  # upper bound by the DKW inequality, for this finding alone
    certified_jointly: float | None = None  # the same, for all findings of the audit at once
    # Of "the groups have one distribution": by permutation, or by bootstrap where groups have
    # probabilities
    p_value: float | None = None
    witness: WitnessCurve | None = field(default=None, repr=False)
    # number of cuts of a numeric attribute, of which this is the worst
    cuts: int = 0
    enough: bool = True  # False: a group is below the minimum group size
    joint_interval: Interval | None = None  # simultaneous with those of all findings by the metric
    # multiplicity-adjusted; False: not distinguishable from noise; None: no test
    significant: bool | None = None
    tested_by: TestedBy = ""
    group_values: tuple[Value, ...] = ()  # canonical values behind ``groups``; None: the rest
    conditions: Conditions = ()  # what ``within`` names
    at: float | None = None  # the score of the largest gap between the distribution functions
    shares: tuple[float, float] | None = None  # of either group, at or below that score
    means: tuple[float, float] | None = None  # mean score of either group
    span: float = 0.0  # largest less smallest score of both groups
    decided: bool = False  # the scores are decisions, 0 or 1
    cut: float | None = None  # of a numeric attribute: one group is up to it, the other above
    correlation: float | None = None  # distance correlation of scores and attribute
    # if the gap is not significant: one that these rows detect with a power of 80 %
    detectable: float | None = None
    unknown_name: bool = False  # True: the name of a group says that it is not known
    # of groups with probabilities; None: groups are known, or a confusion matrix is
    divided: Divided | None = None
    # clusters of either group in the set; None: rows are independent
    clusters: tuple[int, int] | None = None

    @property
    def assessed(self) -> bool:
        """Whether the finding can be a headline: both groups have enough rows, and names of
        groups that are known.
        """
        return self.enough and not self.unknown_name

    @property
    def certain(self) -> bool:
        """Whether the gap is established: the joint interval excludes 0; without one, its test
        is significant.
        """
        excludes_0 = self.significant
        if self.joint_interval is not None:
            excludes_0 = self.joint_interval.low > 0
        return self.assessed and bool(excludes_0)


@dataclass(frozen=True)
class Measure:
    """A figure with an interval, and proven bounds of its value where rows were only counted."""

    value: float
    interval: Interval | None = None
    bracket: Interval | None = None


@dataclass(frozen=True)
class DividedRates:
    """Selection rates that are right if score and probabilities are independent given the group,
    and their ratios.

    With two groups, their difference is the weighted one divided by R2. Of more groups, the
    weighted rates are mixtures of these rates.
    """

    r2: Mapping[str, float]  # of the probability of each group, within the stratum
    rates: Mapping[str, Measure]  # by group; with intervals if there are two groups
    ratios: Mapping[str, Measure]  # to the rate of the reference
    selection_difference: float
    selection_ratio: float | None  # the smallest of the groups with enough rows
    selection_ratio_interval: Interval | None = None


SelectedBy = Literal["threshold", "median", "decisions"]


Favorable = Literal["high", "low"]


@dataclass(frozen=True)
class Decisions:
    """Decisions at a threshold, by the groups of one attribute within one stratum."""

    attribute: str
    within: str
    threshold: float
    rates: Sequence[GroupRates]
    # Differences and the smallest ratio are those of groups with enough rows; of all groups if
    # fewer than two have. Groups whose name says that they are not known are in none.
    # Largest less smallest selection rate; None: fewer than two groups are known
    selection_difference: float | None
    # the smallest ratio to the reference (of four fifths); None if there is none
    selection_ratio: float | None
    selection_ratio_interval: Interval | None = None
    true_positive_difference: float | None = None
    false_positive_difference: float | None = None
    accuracy_difference: float | None = None
    reference: str | None = None  # the reference group of the ratios; None: there is no ratio
    # rows with a missing group, or by a standard one of unknown name: in no ratio
    unknown: GroupRates | None = None
    selected_by: SelectedBy = "threshold"
    favorable: Favorable = "high"  # whether high or low scores are selected
    # the value that is selected; None: scores, or decisions of 0 and 1
    favorable_decision: Value = None
    standard: str = ""  # of the audit
    conditions: Conditions = ()
    divided: DividedRates | None = None  # None: groups are known, or R2 is too small


@dataclass(frozen=True)
class Distribution:
    """Score distributions of the groups of one attribute within one set, ready to be drawn."""

    attribute: str
    within: str
    curves: Curves


@dataclass(frozen=True)
class Note:
    """A caveat: its kind, which selects a template in ``wording.notes``, and the facts that the
    template needs.
    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)  # plain values, as in JSON


@dataclass(frozen=True)
class AlongNumber:
    """Scores and decisions by bands of a numeric attribute, within one set."""

    attribute: str
    within: str
    bands: Sequence[str]  # their names, ascending
    at: Sequence[float]  # the mean of the number in each
    sizes: Sequence[int]  # rows
    quantiles: Mapping[str, Sequence[float]]  # of the scores, by share
    selection_rates: Sequence[float] = ()  # empty: no decisions
    cut: float | None = None  # of the largest gap


@dataclass(frozen=True)
class ReliabilityBin:
    """Samples with similar scores: their mean score and their rate of positives."""

    score: float
    rate: float
    interval: Interval | None
    size: float  # samples, or the sum of their weights in the unit that the user passed


FIGURES_OF_GROUPS: tuple[str, ...] = (
    "base_rate",
    "auc",
    "accuracy",
    "log_loss",
    "calibration_error",
)
"""The figures by group of every audit: fields of ``GroupFigures``."""


@dataclass(frozen=True)
class GroupFigures:
    """Predictive figures of the scores of one group; None if scores are not probabilities, or
    one label is missing.
    """

    group: str
    size: int
    base_rate: Measure  # the share of the label that high scores are of
    auc: Measure | None = None
    accuracy: Measure | None = None
    log_loss: Measure | None = None
    calibration_error: Measure | None = None  # expected, of 10 bins of equal width
    roc: Sequence[tuple[float, float]] = ()  # false and true positive rates
    reliability: Sequence[ReliabilityBin] = ()
    group_value: Value = None
    clusters: int | None = None  # None: rows are independent

    @property
    def independent_size(self) -> int:
        """The independent observations, which the minimum group size counts: clusters or rows."""
        if self.clusters is None:
            return self.size
        return self.clusters


@dataclass(frozen=True)
class ByGroup:
    """Figures of the groups of one attribute within one stratum, and the gaps between them."""

    attribute: str
    within: str
    groups: Sequence[GroupFigures]
    # largest less smallest, by the name of the figure
    gaps: Mapping[str, Measure] = field(default_factory=dict)
    conditions: Conditions = ()


CorrectionMethod = Literal["known_groups", "confusion"]
"""The source of a correction: known groups of some rows, or error rates of observed groups."""


@dataclass(frozen=True)
class ProxyEstimate:
    """A figure weighted by probabilities of groups, beside its correction and its bounds
    without the assumption.
    """

    figure: Literal["selection_rate", "selection_ratio", "energy"]
    groups: tuple[str, ...]  # the group, or the two compared groups; a ratio is to the second
    weighted: Measure
    corrected: Measure | None = None  # by known groups, or for errors of observed ones
    divided: Measure | None = None  # the second end; None: it is not known, or R2 is too small
    bounds: Interval | None = None  # without the assumption
    bounds_interval: Interval | None = None  # confidence interval of both bounds

    @property
    def is_contradicted(self) -> bool:
        """Whether the corrected figure differs from the weighted one beyond its interval."""
        if self.corrected is None or self.corrected.interval is None:
            return False
        interval = self.corrected.interval
        return not interval.low <= self.weighted.value <= interval.high


@dataclass(frozen=True)
class ProxyRecord:
    """The assumption of an audit by group probabilities, its estimates and their checks."""

    attribute: str
    assumption: Assumption
    source: str | None = None  # of the probabilities
    estimates: Sequence[ProxyEstimate] = ()  # of all rows, not by stratum
    corrected_by: CorrectionMethod | None = None
    known: int = 0  # rows whose group is known
    cells: int = 0  # largest number of cells behind the bounds of a figure
    reliability: Mapping[str, Sequence[ReliabilityBin]] = field(
        default_factory=dict
    )  # by group, where groups are known
    # whether groups are compared within strata, which the probabilities must condition on
    strata: bool = False
    # of each group's probability, among all rows
    r2: Mapping[str, float] = field(default_factory=dict)

    @property
    def checked(self) -> bool:
        """Whether known groups, cells or a confusion matrix decide for the weighted figures, so
        that no bracket is shown. Known groups that contradict them leave the bracket.
        """
        if self.assumption == "observed":
            return True
        if any(estimate.is_contradicted for estimate in self.estimates):
            return False
        return self.corrected_by is not None or self.cells > 0


@dataclass(frozen=True)
class GroupMeasures:
    """Measures of one group by the names of their metrics; None if a metric is undefined for
    the group.
    """

    group: str
    size: int  # rows
    measures: Mapping[str, Measure | None]
    # True: its name says that the group is not known, so it is in no difference or ratio
    unknown_name: bool = False


@dataclass(frozen=True)
class MeasuresByGroup:
    """Measures of the groups of one attribute within one set, and how they differ."""

    attribute: str
    within: str
    groups: Sequence[GroupMeasures]
    # largest value less the smallest; None: fewer than two values
    differences: Mapping[str, float | None]
    # smallest value divided by the largest; None: negative values, or only zeros
    ratios: Mapping[str, float | None]
    missing: int | None = None  # rows with a missing group; None: not counted
    conditions: Conditions = ()
    # of the rows of all groups together; empty: not computed
    overall: Mapping[str, Measure | None] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditSettings:
    """The settings of an audit that change its figures: two audits compare only if these agree."""

    threshold: float | str | None = None  # as passed: a number, "auto", "median" or None
    selected_by: SelectedBy | None = None  # None: no decisions
    # group value by attribute; empty: the highest rate
    reference: Mapping[str, Value] = field(default_factory=dict)
    min_group_size: int = FEW  # minimum group size
    # groups with a smaller share of the rows have no impact ratio
    min_group_share: float = MIN_GROUP_SHARE
    known_names: Sequence[str] = ()  # of real groups, although they say that a group is not known
    favorable: Favorable = "high"
    favorable_decision: Value = None  # None: scores, or decisions of 0 and 1
    pos_label: Value = None  # None: no classes
    criteria: Sequence[str] = ()
    metrics: Sequence[str] = ()
    contrast: Contrast = "pairs"
    intersectional: bool = False
    standard: str | None = None
    loss: str | None = None


@dataclass(frozen=True)
class AuditRecord:
    """The result of an audit."""

    rows: int  # samples used
    left_out: int  # samples without a score, label, weight or group
    score_range: tuple[float, float]
    confidence: float
    findings: Sequence[Finding]
    decisions: Sequence[Decisions] = ()
    distributions: Sequence[Distribution] = ()
    along: Sequence[AlongNumber] = ()
    notes: Sequence[Note] = ()
    permutations: int = 0  # behind the p-values
    by_group: Sequence[ByGroup] = ()
    proxy: ProxyRecord | None = None  # None: groups are known
    settings: AuditSettings = field(default_factory=AuditSettings)
    clusters: ClusterFacts | None = None  # None: rows are independent
    group_search: SearchRecord | None = None  # None: no groups were searched
    # Two audits with the same results are equal, whenever they were made.
    provenance: Provenance = field(default_factory=Provenance, compare=False)


Verdict = Literal["better", "worse", "not_distinguishable", "not_tested"]
"""How a figure has changed; "not_distinguishable": by no more than sampling noise."""


@dataclass(frozen=True)
class Difference:
    """The difference between a figure of one audit and the same figure of another, the baseline."""

    model: str  # the audit that is compared with the baseline
    attribute: str
    criterion: str  # or "decisions", "by_group"
    within: str
    groups: Sequence[str]
    metric: str
    before: float  # in the baseline
    after: float
    difference: float  # after less before
    interval: Interval | None = None
    # simultaneous with those of all differences (Bonferroni)
    joint_interval: Interval | None = None
    p_value: float | None = None  # of equal figures, not adjusted
    p_adjusted: float | None = None  # adjusted for all differences (Bonferroni)
    verdict: Verdict = "not_tested"  # by whether the joint interval excludes 0
    group_values: tuple[Value, ...] = ()
    conditions: Conditions = ()


Pairing = Literal["rows", "independent", "unknown", "clusters"]
"""The same rows, in memory; different rows; the same rows, not in memory; or different rows of
clusters.

Clusters may be the same in both audits. In the last two cases, intervals are valid for any
correlation.
"""


@dataclass(frozen=True)
class DifferenceRecord:
    """The result of a comparison of audits."""

    names: Sequence[str]  # of the audits; the first one is the baseline
    rows: Sequence[int]  # of each audit
    pairing: Pairing
    confidence: float
    differences: Sequence[Difference]
    unmatched: int = 0  # figures that only one of two audits has
    can_pair: bool = False  # the rows of two audits are in memory, but not paired
    # of each audit: that of each group's probability; empty: groups are known
    r2: Sequence[Mapping[str, float]] = ()
    provenance: Sequence[Provenance] = field(default=(), compare=False)  # of each audit
    origin: Provenance = field(default_factory=Provenance, compare=False)  # of the comparison


@dataclass(frozen=True)
class Look:
    """A distance at one look of a series, and its difference from the baseline."""

    look: str  # of a baseline: the last of its looks
    attribute: str
    criterion: str
    within: str
    groups: Sequence[str]
    metric: str
    sizes: tuple[int, int]
    value: float
    # simultaneous over all looks, however many follow, and all distances
    interval: Interval | None = None
    difference: float = 0.0  # from the baseline
    # Of no change since the baseline, not adjusted; where ``exact``, the larger of those of the
    # distance and the scores
    p_value: float | None = None
    level: float | None = None  # a p-value of at most so much is an alarm; None: the baseline
    alarm: Verdict = "not_tested"
    group_values: tuple[Value, ...] = ()
    conditions: Conditions = ()
    baseline: int = 0  # the place of its baseline in the record
    exact: bool = False  # the probability of an alarm is exactly bounded if no scores change


@dataclass(frozen=True)
class Baseline:
    """The looks with which a distance is compared: the first ones, pooled until both groups
    reach the minimum size.
    """

    attribute: str
    criterion: str
    within: str
    groups: Sequence[str]
    metric: str
    looks: Sequence[str]
    sizes: tuple[int, int]  # of the pooled groups
    enough: bool  # False: the groups are still too small, so that no look is tested
    # later looks at which a group is below the minimum size, or missing
    untested: Sequence[str] = ()
    # the name of a group says that it is not known, so that no look is tested
    unknown_name: bool = False
    group_values: tuple[Value, ...] = ()
    conditions: Conditions = ()


@dataclass(frozen=True)
class SeriesRecord:
    """The result of a series of audits, look by look."""

    looks: Sequence[str]
    rows: Sequence[int]
    confidence: float
    min_group_size: int  # rows, or clusters, of a group that is tested
    series: Sequence[Look]
    baselines: Sequence[Baseline]  # one for each distance, in the order of their first looks
    # of each look: that of each group's probability; empty: groups are known
    r2: Sequence[Mapping[str, float]] = ()
    clustered: bool = False  # rows form clusters, which may be the same at several looks
    provenance: Sequence[Provenance] = field(default=(), compare=False)  # of each look
    origin: Provenance = field(default_factory=Provenance, compare=False)  # of the series


DECISIONS = "decisions"
"""The placeholder for a criterion, for ratios of selection rates."""
BY_GROUP = "by_group"
"""The placeholder for a criterion, for figures of one group."""

Names: TypeAlias = tuple[str, str, str, tuple[str, ...], str]
"""The key of a figure in an audit: attribute, criterion, set, groups and metric."""


class ComparedFigure(NamedTuple):
    """A figure of an audit that other audits may have as well."""

    attribute: str
    criterion: str
    within: str
    groups: tuple[str, ...]
    metric: str
    value: float
    interval: Interval | None
    larger_is_better: bool = False
    group_values: tuple[Value, ...] = ()
    conditions: Conditions = ()
    sizes: tuple[int, int] = (0, 0)  # rows of both groups of a distance
    unknown_name: bool = False  # True: the name of a group says that it is not known
    clusters: tuple[int, int] | None = None  # of both groups; None: rows are independent

    @property
    def names(self) -> Names:
        """The key of the figure in its audit."""
        return (
            self.attribute,
            self.criterion,
            self.within,
            self.groups,
            self.metric,
        )


@dataclass(frozen=True)
class GridError:
    """By how much figures of scores on a grid may differ from those of the original scores, by
    attribute and group.
    """

    # share of rows with an unknown decision; of groups that have any
    rates: dict[str, dict[str, float]]
    # of a distribution function: the largest share of a cell in one interval
    distances: dict[str, dict[str, float]]
    # groups: half of their rows or more
    unresolved: dict[str, list[bool | int | float | str | None]]
