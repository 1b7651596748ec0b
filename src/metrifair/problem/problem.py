"""The one way in: labels, groups, strata and weights of users become one checked record.

Every entry point decides here which label is positive, how values match, what is missing, and which
rows count. The module ``predictions`` decides the meaning of prediction columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import isfinite, lgamma, log
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError, MetrifairWarning, Remedy, TooFewSamples
from metrifair.problem.attributes import (
    Continuous,
    Groups,
    group_codes,
    number_facts,
    numbers_among,
    numbers_warning,
    stratum_codes,
)
from metrifair.problem.cells import (
    Attribute,
    Cells,
    Comparison,
    Contrast,
    Dependence,
    Sides,
    compile_cells,
    make_sides,
    needs_combinations,
)
from metrifair.problem.clusters import cluster_codes
from metrifair.problem.criteria import LABEL, Criterion, Strata, criterion_named
from metrifair.problem.memberships import (
    GroupProbabilities,
    Memberships,
    RowProbabilities,
    row_probabilities,
)
from metrifair.problem.tables import (
    MOST_CLASSES,
    UNKNOWN,
    CodedColumn,
    CodedColumns,
    ColumnArray,
    Table,
    as_array,
    categories,
    coded_columns,
    columns,
    is_missing,
    one_column,
    only_column,
    same_rows,
)
from metrifair.problem.values import place_among
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes
from metrifair.support.checks import check_switches, is_number, rows_or_none
from metrifair.support.user_warnings import warn_user

COUNTS_AS_POSITIVE = "counts as positive"
Declared: TypeAlias = Mapping[str, Sequence[object]] | Sequence[object]
"""Groups by attribute, or the groups of the only one."""
TargetKind: TypeAlias = Literal["labels", "numbers", "either"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The user's input, unchanged.

    ``rows`` are further tables whose rows belong to these (features, predictions), by the names of
    their arguments; ``label`` and ``prefix`` are for messages: the name of the outcome's argument,
    and the prefix of other arguments.
    """

    y: Table | None = None
    sensitive_features: Table | GroupProbabilities | None = None
    control_features: Table | None = None
    sample_weight: Table | None = None
    rows: Mapping[str, Table | None] = field(default_factory=dict)
    label: str = "y"
    prefix: str = ""
    clusters: Table | None = None

    @cached_property
    def group_columns(self) -> dict[str, CodedColumn] | None:
        """The columns of groups, which are coded once; None if there are none."""
        if self.sensitive_features is None:
            return None
        return coded_columns("sensitive_features", self.sensitive_features)


@dataclass(frozen=True, eq=False)
class Scheme:
    """The meaning of values: fixed by the first rows and kept for all later ones."""

    criterion: Criterion
    classes: tuple[object, ...] = ()  # of the outcome, ascending; none where it is a number
    positive: int = -1  # the class that is the good outcome, by its place
    attributes: tuple[Attribute, ...] = ()
    intersectional: bool = False
    strata: Strata | None = None
    contrast: Contrast = "pairs"
    outcome: str = LABEL  # the name of its column, as the user wrote it
    # distinct group codes of rows, where there are too many possible ones
    combinations: Integers | None = None

    @cached_property
    def cells(self) -> Cells | None:
        """The cells and their comparisons; None if nothing is compared."""
        if not self.attributes:
            return None
        return compile_cells(
            self.criterion,
            self.attributes,
            classes=self.classes,
            positive=self.positive,
            strata=self.strata,
            contrast=self.contrast,
            outcome=self.outcome,
            combinations=self.combinations if needs_combinations(self.attributes) else None,
        )

    def for_groups(self, groups: Integers) -> Scheme:
        """The same meaning, with cells for rows of these group codes (n, attributes)."""
        if not needs_combinations(self.attributes):
            return self
        # comes last, as in a table of all combinations
        missing = [attribute.codes for attribute in self.attributes]
        distinct = np.unique(np.where(groups < 0, missing, groups), axis=0)
        return replace(self, combinations=np.where(distinct == missing, UNKNOWN, distinct))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons."""
        if self.cells:
            return self.cells.comparisons
        return ()


@dataclass(frozen=True, eq=False)
class Problem:
    """Validated rows, and the meaning of their values. Rows without weight are removed.

    Where groups have probabilities, a row occurs once, in its most probable group, with the
    ``probabilities`` of all. ``entries`` has it once for each group of positive probability
    (``members``), with that share of its weight.
    """

    scheme: Scheme
    # (n,): codes of the classes, or numbers; None: no outcome was passed
    labels: NDArray[Any] | None
    groups: Integers  # (n, attributes): codes, -1 where the group is not known
    strata: Integers | None = None  # (n,): -1 where a row belongs to none
    weight: Floats | None = None  # None: every row counts once
    # the rows of the input that remain, as a mask or places; None: all
    kept: NDArray[Any] | None = None
    # (n, attributes): attributes that are numbers, 0 for others; None: there are none
    numbers: Floats | None = None
    # (n,): rows of one number stay together in every split; None: no row has to
    clusters: Integers | None = None
    # of rows in groups of which probabilities are known; None: groups are known
    members: Memberships | None = None
    # of the groups of rows that are here once; None: groups are known
    probabilities: RowProbabilities | None = None

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons."""
        return self.scheme.comparisons

    @property
    def is_positive(self) -> Booleans | None:
        """True where the outcome is the positive class; None where there are no classes."""
        if self.labels is None or not self.scheme.classes:
            return None
        return np.asarray(self.labels == self.scheme.positive)

    @property
    def values(self) -> NDArray[Any] | None:
        """The outcomes as the user passed them: labels, not their codes."""
        if self.labels is None or not self.scheme.classes:
            return self.labels
        return np.asarray(np.asarray(self.scheme.classes)[self.labels])

    @property
    def row_weights(self) -> Floats:
        """The weight of each row; 1 without weights."""
        if self.weight is None:
            return np.ones(len(self))
        return self.weight

    @property
    def passed_rows(self) -> Integers:
        """The position of each row among the rows that were passed."""
        if self.kept is None:
            return np.arange(len(self))
        return np.flatnonzero(self.kept)

    @cached_property
    def cell(self) -> Integers:
        """The cell of each row; 0 where nothing is compared."""
        if self.scheme.cells is None:
            return np.zeros(len(self), dtype=np.int64)
        cut = self.scheme.criterion.bins is not None or self.scheme.criterion.sets is not None
        return self.scheme.cells.of(
            self.groups, labels=self.values if cut else self.labels, strata=self.strata
        )

    def take(self, rows: NDArray[Any]) -> Problem:
        """Some of the rows, by number or by a mask."""
        members = None
        if self.members is not None:
            members = self.members.take(rows)
        probabilities = None
        if self.probabilities is not None:
            probabilities = self.probabilities.take(rows)
        return Problem(
            self.scheme,
            rows_or_none(self.labels, rows),
            self.groups[rows],
            rows_or_none(self.strata, rows),
            rows_or_none(self.weight, rows),
            numbers=rows_or_none(self.numbers, rows),
            clusters=rows_or_none(self.clusters, rows),
            members=members,
            probabilities=probabilities,
        )

    @cached_property
    def entries(self) -> Problem:
        """The rows, once for each group of positive probability, with that share of their weight;
        the problem itself if groups are known.
        """
        if self.probabilities is None:
            return self
        members = Memberships.of(self.probabilities)
        return _by_membership(replace(self, probabilities=None), members)

    @property
    def row_of_entry(self) -> Integers:
        """The row of each of the ``entries``."""
        members = self.entries.members
        return np.arange(len(self)) if members is None else members.row

    @property
    def cell_sizes(self) -> Floats | Integers:
        """The number of rows of each cell; the expected number if groups have probabilities."""
        entries = self.entries
        cells = 1 if self.scheme.cells is None else self.scheme.cells.count
        share = None if entries.members is None else entries.members.share
        return np.bincount(entries.cell, share, minlength=cells)

    @property
    def attribute_values(self) -> Floats | None:
        """The values of the attributes, (n, attributes), where scores should not depend on a
        number; None if groups are compared.
        """
        dependent = any(isinstance(comparison, Dependence) for comparison in self.comparisons)
        if self.numbers is None or not dependent:
            return None
        is_number = [attribute.is_number for attribute in self.scheme.attributes]
        return np.where(is_number, self.numbers, self.groups)

    def kept_rows(self, table: NDArray[Any]) -> NDArray[Any]:
        """The remaining rows of a table that belongs to the input."""
        return table if self.kept is None else table[self.kept]

    def sides(self) -> tuple[Sides, ...]:
        """The rows of every comparison; a side without any is an error."""
        sides = make_sides(self.comparisons, self.cell, self.weight)
        for comparison, side in zip(self.comparisons, sides, strict=True):
            for group, count in zip(comparison.groups, side.counts, strict=False):
                if count == 0:
                    raise TooFewSamples(
                        f"comparing {comparison}: group {group!r} has no sample there; leave it out"
                    )
        return sides

    def targets(self) -> NDArray[Any]:
        """Outcomes for losses and scores: 1 at the positive of two classes, codes of more, or
        numbers.
        """
        if self.labels is None:
            return np.zeros(len(self))
        positive = self.is_positive
        two = positive is not None and len(self.scheme.classes) <= 2
        if two:
            return np.asarray(positive, dtype=np.float64)
        return self.labels


def make_problem(
    inputs: Inputs,
    *,
    criterion: str | Criterion = "statistical_parity",
    contrast: Contrast = "pairs",
    intersectional: bool = False,
    pos_label: object = None,
    target: TargetKind = "either",
    classes: Sequence[object] | None = None,
    groups: Declared | None = None,
    compared: bool = True,
    continuous: Continuous = False,
    row_count: int | None = None,
) -> Problem:
    """The record of the first rows.

    ``target`` is the kind of the outcome: labels, numbers, or either. ``classes`` and ``groups``
    declare labels and groups that these rows may not all show. Unless groups must be ``compared``,
    they may be missing. ``continuous`` names the numeric sensitive features; "auto" selects them by
    their values and warns. ``row_count`` is the number of rows behind these, if equal rows are
    counted.

    >>> inputs = Inputs(["no", "yes", "yes"], sensitive_features=["f", "m", None],
    ...     sample_weight=[1, 2, 3])
    >>> problem = make_problem(inputs, criterion="equal_opportunity")
    >>> problem.scheme.classes, problem.is_positive, problem.groups.ravel()
    (('no', 'yes'), array([False,  True,  True]), array([ 0,  1, -1]))
    """
    check_switches(intersectional=intersectional)
    kind = criterion_named(criterion)
    if inputs.sensitive_features is None and compared:
        raise DataError(
            f"{inputs.prefix}sensitive_features is missing; pass the group of each sample"
        )
    if inputs.y is None and inputs.sensitive_features is not None and kind.needs_labels:
        raise DataError(f"{kind.name} needs the true labels", remedy=Remedy(inputs.label))
    rows = _rows_with_weight(inputs)
    labels = None
    values = tuple(classes or ())
    if rows.y is not None:
        labels, values = _target(rows.y, target, values)
    coded, attributes, numbers = Groups(np.zeros((rows.length, 0), dtype=np.int64), ())
    strata = None
    their_strata = None
    if rows.groups is not None:
        coded, attributes, numbers = _groups(
            inputs,
            rows.groups,
            groups,
            intersectional=intersectional,
            continuous=continuous,
            rows=row_count,
        )
    if rows.controls is not None:
        strata, their_strata = stratum_codes(rows.controls)
    positive = positive_place(values, pos_label)
    scheme = Scheme(
        kind, values, positive, attributes, intersectional, their_strata, contrast, rows.outcome
    )
    scheme = scheme.for_groups(coded)
    if compared:
        _ = scheme.cells  # what cannot be compared is an error before anything else is done
    clusters = None
    if rows.clusters is not None:
        clusters = cluster_codes(rows.clusters)
    return Problem(scheme, labels, coded, strata, rows.weight, rows.kept, numbers, clusters)


def check_labels(probabilities: RowProbabilities, criteria: Sequence[Criterion]) -> None:
    """Raise a DataError if a criterion uses labels, and no assumption allows group
    probabilities by label.
    """
    using_labels = [
        kind
        for kind in criteria
        if kind.needs_labels or kind.score == "loss" or callable(kind.score)
    ]
    if using_labels and probabilities.labels is None:
        raise DataError(
            f"{using_labels[0].name} uses labels, which needs a further assumption about "
            f"{probabilities.name}",
            remedy=[
                Remedy(
                    "with_labels", "included", " if the probabilities are P(group | inputs, label)"
                ),
                Remedy(
                    "with_labels",
                    "independent",
                    " if score and label are independent of the group given the inputs",
                ),
            ],
        )


def problem_by_membership(
    inputs: Inputs,
    *,
    criterion: str | Criterion = "statistical_parity",
    pos_label: object = None,
    **options: Any,
) -> Problem:
    """The record of the first rows, as ``make_problem`` makes it, for callers that accept group
    probabilities too.

    Rows are checked in their most probable groups, and then repeated for each group of positive
    probability.

    >>> sex = GroupProbabilities({"f": [0.25, 1.0], "m": [0.75, 0.0]}, attribute="sex")
    >>> problem = problem_by_membership(Inputs(sensitive_features=sex))
    >>> problem.groups.ravel(), problem.weight, problem.kept
    (array([0, 1, 0]), array([0.25, 0.75, 1.  ]), array([0, 0, 1]))
    """
    if not isinstance(inputs.sensitive_features, GroupProbabilities):
        return make_problem(inputs, criterion=criterion, pos_label=pos_label, **options)
    probabilities = row_probabilities(inputs.sensitive_features)
    labels_unused = inputs.y is not None and probabilities.labels is None
    if probabilities.labels is None:
        inputs = replace(inputs, y=None)
        pos_label = None
    problem = _in_most_probable_groups(
        inputs,
        probabilities,
        criterion=criterion,
        pos_label=pos_label,
        **options,
    )
    rows = probabilities if problem.kept is None else probabilities.take(problem.kept)
    problem = replace(problem, scheme=_probability_scheme(problem.scheme, probabilities))
    return _by_membership(problem, Memberships.of(rows, labels_unused=labels_unused))


def problem_with_probabilities(inputs: Inputs, **options: Any) -> Problem:
    """The record of the first rows, as ``make_problem`` makes it, for training with probabilities
    of groups as well.

    Each row occurs once. The outcome is used for the risk, and within groups only if
    ``with_labels`` allows it.

    >>> sex = GroupProbabilities({"f": [0.25, 1.0], "m": [0.75, 0.0]}, attribute="sex")
    >>> problem = problem_with_probabilities(Inputs([0, 1], sex, sample_weight=[1, 2]))
    >>> problem.groups.ravel(), problem.entries.groups.ravel(), problem.entries.weight
    (array([1, 0]), array([0, 1, 0]), array([0.25, 0.75, 2.  ]))
    """
    if not isinstance(inputs.sensitive_features, GroupProbabilities):
        return make_problem(inputs, **options)
    probabilities = row_probabilities(inputs.sensitive_features)
    if probabilities.inverse is not None:
        raise DataError(
            "corrects audits only", argument="confusion", remedy=Remedy("confusion", leave_out=True)
        )
    problem = _in_most_probable_groups(inputs, probabilities, **options)
    problem = replace(problem, scheme=_probability_scheme(problem.scheme, probabilities))
    if not options.get("compared", True):
        return problem
    return _with_probabilities(problem, probabilities)


def problem_with_scheme_and_probabilities(inputs: Inputs, scheme: Scheme) -> Problem:
    """The record of later rows, as ``problem_with_scheme`` makes it, with probabilities of
    groups as well.
    """
    if not isinstance(inputs.sensitive_features, GroupProbabilities):
        return problem_with_scheme(inputs, scheme)
    probabilities = row_probabilities(inputs.sensitive_features)
    attribute = scheme.attributes[0]
    if attribute.name != probabilities.name or set(attribute.groups) != set(probabilities.groups):
        raise DataError(
            f"has {probabilities.name} of {list(probabilities.groups)}, and the rows of fit came "
            "with "
            f"{attribute.name} of {list(attribute.groups)}",
            argument=f"{inputs.prefix}sensitive_features",
        )
    groups = tuple(map(str, attribute.groups))
    order = list(map(probabilities.groups.index, groups))
    probabilities = probabilities._replace(groups=groups, values=probabilities.values[:, order])
    most_probable = np.nan_to_num(_most_probable(probabilities.values), nan=UNKNOWN).astype(
        np.int64
    )
    names = np.array([*groups, None], dtype=object)[most_probable]
    return _with_probabilities(
        problem_with_scheme(replace(inputs, sensitive_features=names), scheme), probabilities
    )


def _with_probabilities(problem: Problem, probabilities: RowProbabilities) -> Problem:
    """The record with these probabilities of all rows that were given; those of 0 and 1 are
    groups.
    """
    values = problem.kept_rows(probabilities.values)
    if np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return problem
    return replace(
        problem,
        probabilities=probabilities if problem.kept is None else probabilities.take(problem.kept),
    )


def _in_most_probable_groups(
    inputs: Inputs,
    probabilities: RowProbabilities,
    *,
    criterion: str | Criterion = "statistical_parity",
    **more: Any,
) -> Problem:
    """The record of rows as if each were in its most probable group."""
    check_labels(probabilities, [criterion_named(criterion)])
    return make_problem(
        replace(inputs, sensitive_features=_most_probable(probabilities.values)),
        criterion=criterion,
        **more
        | {
            "groups": range(len(probabilities.groups)),
            "continuous": False,
            "intersectional": False,
        },
    )


def _probability_scheme(scheme: Scheme, probabilities: RowProbabilities) -> Scheme:
    """The scheme with the attribute and the groups of the probabilities."""
    return replace(scheme, attributes=(Attribute(probabilities.name, probabilities.groups),))


def _most_probable(values: Floats) -> NDArray[Any]:
    """The place of the most probable group of each row, NaN where probabilities are missing."""
    missing = np.isnan(values[:, 0])
    place = np.nan_to_num(values).argmax(1)
    return np.where(missing, np.nan, place) if missing.any() else place


def _by_membership(problem: Problem, members: Memberships) -> Problem:
    """The same rows, once for each group of positive probability, with this share of their
    weight.
    """
    entries = problem.take(members.row)
    weight = members.share
    if entries.weight is not None:
        weight = members.share * entries.weight
    kept = members.row
    if problem.kept is not None:
        kept = np.flatnonzero(problem.kept)[members.row]
    return replace(
        entries,
        groups=members.group[:, None],
        weight=weight,
        kept=kept,
        members=members,
    )


def _groups(
    inputs: Inputs,
    table: CodedColumns,
    declared: Declared | None,
    *,
    intersectional: bool,
    continuous: Continuous,
    rows: int | None,
) -> Groups:
    """The groups, among those that are declared.

    With "auto", numeric columns are selected here; categories of a data frame are names.
    """
    groups = _groups_in(
        inputs, table, intersectional=intersectional, continuous=continuous, rows=rows
    )
    if declared is None:
        return groups
    attributes = _declared_attributes(declared, groups.attributes)
    return group_codes(table, intersectional=intersectional, attributes=attributes)


def _groups_in(
    inputs: Inputs,
    table: CodedColumns,
    *,
    intersectional: bool,
    continuous: Continuous,
    rows: int | None,
) -> Groups:
    if not isinstance(continuous, str):
        return group_codes(table, intersectional=intersectional, continuous=continuous)
    categorical = categories("sensitive_features", inputs.sensitive_features)
    numbers = [
        name for name in numbers_among(table, continuous, rows=rows) if name not in categorical
    ]
    groups = group_codes(table, intersectional=intersectional, continuous=numbers)
    if numbers:
        warn_user(numbers_warning(number_facts(table, numbers)))
    return groups


def problem_with_scheme(inputs: Inputs, scheme: Scheme) -> Problem:
    """The record of later rows, whose values have the meaning of the first rows."""
    rows = _rows_with_weight(inputs)
    labels = None
    coded = np.zeros((rows.length, 0), dtype=np.int64)
    strata = None
    numbers = None
    if rows.y is not None:
        labels, _ = _target(rows.y, "labels" if scheme.classes else "numbers", scheme.classes)
    required = {
        "sensitive_features": bool(scheme.attributes),
        "control_features": scheme.strata is not None,
    }
    for name, is_required in required.items():
        if is_required and getattr(inputs, name) is None:
            if rows.y is None:
                uses = "group" if name == "sensitive_features" else "stratum"
                raise DataError(
                    f"predict needs {inputs.prefix}{name}: this post-processor uses the {uses}; "
                    "pass one value per row"
                )
            raise DataError(
                f"{inputs.prefix}{name} is missing: fit received it; pass one value per row"
            )
    if scheme.attributes and rows.groups is not None:
        coded, _, numbers = group_codes(
            rows.groups, intersectional=scheme.intersectional, attributes=scheme.attributes
        )
    if scheme.strata is not None and rows.controls is not None:
        strata, _ = stratum_codes(rows.controls, scheme.strata)
    return Problem(scheme, labels, coded, strata, rows.weight, rows.kept, numbers)


class _Rows(NamedTuple):
    """The input as columns, without rows of weight 0."""

    length: int
    weight: Floats | None
    kept: Booleans | None
    y: CodedColumn | None
    outcome: str
    groups: dict[str, CodedColumn] | None
    controls: dict[str, CodedColumn] | None
    clusters: ColumnArray | None


def _rows_with_weight(inputs: Inputs) -> _Rows:
    """The rows of positive weight; a DataError unless all tables have the same number and
    labels of rows.
    """
    label = inputs.label
    prefix = inputs.prefix
    weight = inputs.sample_weight
    outcome = inputs.rows.get(label, inputs.y)
    length = same_rows(
        **{
            **inputs.rows,
            label: outcome,
            f"{prefix}sensitive_features": inputs.sensitive_features,
            f"{prefix}control_features": inputs.control_features,
            f"{prefix}sample_weight": None if is_number(weight) else weight,
            "clusters": inputs.clusters,
        }
    )
    weights = read_weights(f"{prefix}sample_weight", weight, length)
    y = outcome
    target = None
    if inputs.y is not None:
        y = columns(label, inputs.y)
        target = CodedColumn(label, only_column(label, y))
    name = _outcome_name(label, y if outcome is inputs.y else outcome)
    clusters = None
    if inputs.clusters is not None:
        clusters = one_column("clusters", inputs.clusters)
    groups = inputs.group_columns
    controls = None
    if inputs.control_features is not None:
        controls = coded_columns("control_features", inputs.control_features)
    kept = None
    if weights is not None and not weights.all():
        kept = weights > 0
        weights = weights[kept]
        length = len(weights)
        if target is not None:
            target = target.take(kept)
        if clusters is not None:
            clusters = clusters[kept]
        groups = _take(groups, kept)
        controls = _take(controls, kept)
    return _Rows(length, weights, kept, target, name, groups, controls, clusters)


def _take(table: dict[str, CodedColumn] | None, kept: Booleans) -> dict[str, CodedColumn] | None:
    if table is None:
        return None
    return {name: column.take(kept) for name, column in table.items()}


def _outcome_name(label: str, table: Table | None) -> str:
    """The name of the outcome's column; an array has none."""
    name = label
    if table is not None:
        name = next(iter(columns(label, table)))
    if name == label:
        return LABEL
    return name


def positive_place(classes: Sequence[object], pos_label: object) -> int:
    """The place of the positive class: the last one unless ``pos_label`` names it, in any spelling
    of its value.

    >>> (positive_place(("no", "yes"), None), positive_place((0, 1), False),
    ...  positive_place((0, 1), "1"))
    (1, 0, 1)
    """
    if pos_label is None:
        return len(classes) - 1
    if not classes:
        raise DataError(
            "names a class, and there are none here",
            argument="pos_label",
            received=pos_label,
            remedy="leave it out",
        )
    place = place_among(pos_label, classes)
    if place is None:
        raise DataError(
            f"must be one of the classes {list(classes)}", argument="pos_label", received=pos_label
        )
    return place


def read_weights(name: str, sample_weight: Table | None, count: int) -> Floats | None:
    """Weights (n,), finite, not negative and not all zero; a number is the weight of every row."""
    if sample_weight is None:
        return None
    if is_number(sample_weight):
        weight = np.full(count, sample_weight, dtype=np.float64)
    else:
        weight = np.array(as_array(name, one_column(name, sample_weight)), dtype=np.float64)
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError(f"{name} must be finite and not negative")
    if count and not weight.any():
        raise DataError(f"{name} is zero for every sample; at least one must count")
    return weight


def _target(
    column: CodedColumn, kind: TargetKind, classes: tuple[object, ...]
) -> tuple[NDArray[Any], tuple[object, ...]]:
    """Codes and classes of labels; or numbers, and no classes."""
    missing = int(is_missing(column.column).sum())
    if missing:
        raise DataError(
            f"has no value in {missing:,} of {len(column.column):,} rows",
            argument=column.name,
            remedy="leave those samples out",
        )
    if kind == "labels":
        classes = classes or column.levels()
    elif kind == "either":
        classes = classes_in(column.name, column.levels())
    if classes:
        return column.places(classes), classes
    numbers = as_array(column.name, column.column).astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{column.name} contains infinite values; leave those samples out")
    return numbers, ()


def classes_in(name: str, values: tuple[object, ...]) -> tuple[object, ...]:
    """The distinct values themselves where they are labels; none where they are measurements.

    >>> classes_in("y", (1, 2, 3)), classes_in("y", (0.5, 1.5, 2.5))
    ((1, 2, 3), ())
    """
    numbers: list[Any] = [level for level in values if isinstance(level, Real | Decimal)]
    if len(numbers) == len(values):
        # an integer may be no float
        fractions = [number for number in numbers if not isinstance(number, int)]
        if not all(map(isfinite, fractions)):
            raise DataError(f"{name} contains infinite values; leave those samples out")
        integers = len(values) <= MOST_CLASSES and all(
            float(number).is_integer() for number in fractions
        )
        if len(values) <= 2 or integers:
            return values
        return ()
    item = next((level for level in values if not isinstance(level, str)), None)
    if item is not None:
        raise DataError(
            f"must be labels (text, integers) or a numeric target, got {type(item).__name__} "
            f"values such as {item}",
            argument=name,
            remedy="turn them into numbers or text",
        )
    if len(values) > MOST_CLASSES:
        raise DataError(
            f"contains {len(values):,} labels, at most {MOST_CLASSES} can be compared",
            argument=name,
            remedy=["merge labels", "make numbers of them", Remedy(name, leave_out=True)],
        )
    return values


def _declared_attributes(
    groups: Declared, attributes: Sequence[Attribute]
) -> tuple[Attribute, ...]:
    names = [attribute.name for attribute in attributes if not attribute.is_number]
    if not isinstance(groups, Mapping):
        if len(names) > 1:
            raise DataError(f"groups must map each of {names} to its groups, got a single list")
        groups = {names[0]: groups}
    if set(groups) != set(names):
        raise DataError(f"groups must name the attributes {names}, got {list(groups)}")
    declared = {name: Attribute(name, tuple(groups[name])) for name in names}
    return tuple(declared.get(attribute.name, attribute) for attribute in attributes)


# Two labels whose words show which one is positive. Values are the negative label and the positive
# one.
_OBVIOUS_PAIRS = (
    (0, 1),
    (-1, 1),
    ("no", "yes"),
    ("n", "y"),
    ("false", "true"),
    ("negative", "positive"),
)
_DECISION_PAIRS = (  # a note names the positive label
    *(
        (negative, "approved")
        for negative in ("denied", "declined", "rejected", "refused", "not approved")
    ),
    *(
        (negative, "accepted")
        for negative in ("denied", "declined", "rejected", "refused", "not accepted")
    ),
    *((negative, "granted") for negative in ("denied", "declined", "refused", "not granted")),
    *((negative, "selected") for negative in ("rejected", "not selected")),
    *((negative, "hired") for negative in ("rejected", "not hired")),
    ("bad", "good"),
    ("fail", "pass"),
    ("failed", "passed"),
)


def positive_by_name(classes: Sequence[object]) -> int | None:
    """The place of the positive one of two labels if their words show it; else None.

    >>> (positive_by_name(["No", "Yes"]), positive_by_name(["Approved", "Denied"]),
    ...  positive_by_name(["blue", "red"]))
    (1, 0, None)
    """
    labels = _plain_labels(classes)
    for negative, positive in (*_OBVIOUS_PAIRS, *_DECISION_PAIRS):
        if len(labels) == 2 and set(labels) == {negative, positive}:
            return labels.index(positive)
    return None


def is_evident_positive(classes: Sequence[object], positive: int) -> bool:
    """Whether the words of two labels show which one is positive, such as no and yes; True unless
    there are two.

    >>> is_evident_positive(["No", "Yes"], 1), is_evident_positive(["approved", "denied"], 1)
    (True, False)
    """
    labels = _plain_labels(classes)
    return len(labels) != 2 or (labels[positive - 1], labels[positive]) in _OBVIOUS_PAIRS


def _plain_labels(classes: Sequence[object]) -> list[object]:
    """Labels without capitals and surrounding spaces; True and False equal 1 and 0."""
    return [label.strip().lower() if isinstance(label, str) else label for label in classes]


def attributes_equal_to_label(problem: Problem, rows: NDArray[Any] | None = None) -> list[str]:
    """Attributes whose groups are a one-to-one encoding of the label, which leaves nothing to
    compare but the outcome.

    Each group has one label and each label one group, which labels that are shuffled over the rows
    would have with a probability below 1 in 10,000. ``rows`` is the number of rows behind each row;
    None: one.

    >>> attributes_equal_to_label(make_problem(Inputs([1, 0] * 9, {"sex": ["f", "m"] * 9})))
    ['sex']
    >>> attributes_equal_to_label(make_problem(Inputs([1, 0] * 4, {"sex": ["f", "m"] * 4})))
    []
    """
    if problem.probabilities is not None:  # a group that is likely is not the group
        return []
    names = []
    labels = problem.labels
    for attribute, code in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        has_group = code >= 0
        groups = code[has_group]
        outcome = labels[has_group] if labels is not None else code[:0]
        # as of most numbers
        if not len(outcome) or len(np.unique(outcome[:1_000])) > len(attribute.groups):
            continue
        if outcome.dtype.kind == "f":
            outcome = distinct_codes(outcome)
        size = int(outcome.max()) + 1
        counts = np.bincount(groups * size + outcome, rows_or_none(rows, has_group))
        pairs = np.flatnonzero(counts)
        alike = 1 < len(pairs) == len(set(pairs // size)) == len(set(pairs % size))
        ways = lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts[pairs].tolist())
        if alike and lgamma(len(pairs) + 1) - ways < log(1e-4):
            names.append(attribute.name)
    return names


def positive_sentence(labels: Sequence[object], positive: object) -> str:
    """Which label counts as positive, and by which default, without a full stop.

    >>> positive_sentence(["bad", "good"], "good"), positive_sentence([1, 2], 2)
    ("'good' counts as positive (alphabetical default)", '2 counts as positive (by default the last of 1, 2)')
    """
    if isinstance(positive, str) and positive == labels[-1]:
        return f"{positive!r} {COUNTS_AS_POSITIVE} (alphabetical default)"
    place = "last" if positive == labels[-1] else "first"
    names = ", ".join(map(repr, labels))
    return f"{positive!r} {COUNTS_AS_POSITIVE} (by default the {place} of {names})"


def warn_of_positive_label(problem: Problem, pos_label: object) -> None:
    """Warn which label is positive by default if the comparisons depend on it, and the words of
    both labels do not show it.
    """
    scheme = problem.scheme
    depends = scheme.criterion.labels in ("positive", "negative") and bool(scheme.comparisons)
    if pos_label is None and depends and not is_evident_positive(scheme.classes, scheme.positive):
        sentence = positive_sentence(scheme.classes, scheme.classes[scheme.positive])
        warn_user(MetrifairWarning(sentence, remedy=Remedy("pos_label", detail=" to change it")))


def warn_of_labels(problem: Problem, rows: NDArray[Any] | None = None) -> None:
    """Warn if the groups are a renaming of the label."""
    for name in attributes_equal_to_label(problem, rows):
        warn_user(f"The groups of {name} copy the label: correct scores are then unfair by design")
