"""A data set and its splits into training, validation and test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from metrifair.batches.samples import sides_by_row
from metrifair.errors import DataError, TooFewSamples
from metrifair.figures.fold_gaps import FoldSides
from metrifair.figures.intervals import FEW
from metrifair.figures.selection_rates import enough_rows
from metrifair.postprocessing.postprocessor import assign_folds
from metrifair.problem.attributes import Continuous
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.cells import Comparison, Contrast, Sides
from metrifair.problem.clusters import cluster_share
from metrifair.problem.criteria import Criterion
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.problem import Inputs, Problem, problem_with_probabilities
from metrifair.problem.tables import ColumnArray, Table, columns, one_column, take_rows
from metrifair.support.arrays import Floats, Integers, distinct_codes
from metrifair.support.checks import is_number
from metrifair.support.provenance import Provenance, made_now

RowNumbers = Integers


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that were not trained on, with everything needed to evaluate a model on them."""

    X: Table
    sensitive_features: Table | GroupProbabilities
    problem: Problem
    min_rows: int = FEW  # on either side of a comparison
    # Comparisons, and groups by attribute, with fewer rows in another part on which models are
    # evaluated.
    small_elsewhere: frozenset[Comparison] = frozenset()
    small_groups_elsewhere: frozenset[tuple[str, str]] = frozenset()

    @property
    def regression(self) -> bool:
        """True if the outcome is a number."""
        return not self.problem.scheme.classes

    @property
    def labels(self) -> NDArray[Any]:
        """Codes of the classes, or numbers."""
        if self.problem.labels is None:
            raise DataError("y is required to evaluate models")
        return self.problem.labels

    @cached_property
    def members(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Memberships of each group, by attribute: true or false, or a probability.

        With several attributes, names of groups start with that of the attribute.
        """
        attributes = self.problem.scheme.attributes
        probabilities = self.problem.probabilities
        if probabilities is not None:
            return {
                probabilities.name: dict(
                    zip(probabilities.groups, np.nan_to_num(probabilities.values).T, strict=True)
                )
            }
        return {
            attribute.name: {
                f"{attribute.name}: {group}" if len(attributes) > 1 else str(group): codes == place
                for place, group in enumerate(attribute.groups)
            }
            for attribute, codes in zip(attributes, self.problem.groups.T, strict=True)
        }

    def with_known_groups(self) -> HeldOut | None:
        """The rows whose true groups are known beside probabilities, in these groups; None
        where there are none.
        """
        probabilities = self.problem.probabilities
        if (
            probabilities is None
            or probabilities.known is None
            or not (probabilities.known >= 0).any()
        ):
            return None
        problem = self.problem.take(np.flatnonzero(probabilities.known >= 0))
        groups = probabilities.known[probabilities.known >= 0, None]
        return replace(self, problem=replace(problem, groups=groups, probabilities=None))

    @cached_property
    def small_groups(self) -> frozenset[tuple[str, str]]:
        """Groups, by attribute, with few rows in all, in this part or in another on which
        models are evaluated.
        """
        sizes = {
            (name, group): rows.sum()
            for name, groups in self.members.items()
            for group, rows in groups.items()
        }
        return self.small_groups_elsewhere | {
            group for group, size in sizes.items() if size < self.min_rows
        }

    @cached_property
    def all_comparisons(self) -> dict[Comparison, Sides]:
        """The rows of each comparison, with their weights; where none has rows on both its
        sides, an error.
        """
        problem = self.problem
        sides = sides_by_row(problem.comparisons, problem)
        comparisons = dict(zip(problem.comparisons, sides, strict=True))
        if comparisons and not any(min(side.counts) for side in sides):
            comparison, side = next(iter(comparisons.items()))
            raise TooFewSamples(
                f"comparing {comparison}: the held-out data have {side.counts[0]} and "
                f"{side.counts[1]} samples; "
                "hold more data out, merge small groups, or mark them as missing"
            )
        return comparisons

    @cached_property
    def comparisons(self) -> dict[Comparison, Sides]:
        """The comparisons that models are evaluated by: those with enough rows; if there are
        none, those with any.
        """
        most = {True: self.min_rows - 1, False: len(self.problem)}  # few elsewhere are few here
        rows = {
            key: min(*self.side_sizes(key), most[key in self.small_elsewhere])
            for key in self.all_comparisons
        }
        return {key: self.all_comparisons[key] for key in enough_rows(rows, self.min_rows)}

    def side_sizes(self, comparison: Comparison) -> tuple[float, ...]:
        """Number of rows on each side of a comparison; expected number where groups have
        probabilities.
        """
        return tuple(self.problem.cell_sizes[list(cells)].sum() for cells in comparison.sides)

    def fold_sides(self, fold: RowNumbers) -> FoldSides:
        """The weight of each row on both sides of each comparison, and its fold.

        Folds have equal shares of the labels, as ``make_folds`` assigns them, unless rows are
        clustered.
        """
        comparisons = self.comparisons
        problem = self.problem
        has_equal_shares = problem.clusters is None and len(problem.scheme.classes) > 0
        return FoldSides(
            np.array([self._amounts(comparison.left) for comparison in comparisons]),
            np.array([self._amounts(comparison.right) for comparison in comparisons]),
            fold,
            problem.clusters,
            problem.labels if has_equal_shares else None,
        )

    def _amounts(self, cells: tuple[int, ...]) -> Floats:
        """The weight of each row in these cells; by probabilities, of its entries in them."""
        entries = self.problem.entries
        inside = np.isin(entries.cell, list(cells)).astype(np.float64)
        if entries.weight is not None:
            inside *= entries.weight
        amounts = np.bincount(self.problem.row_of_entry, inside, len(self.problem))
        return amounts.astype(np.float64)

    @property
    def sides(self) -> tuple[Sides, ...]:
        """The rows of each comparison that models are evaluated by."""
        return tuple(self.comparisons.values())


def with_common_comparisons(*parts: HeldOut) -> list[HeldOut]:
    """The parts, evaluated by the same comparisons: those with enough rows in each part, if
    there are any.
    """
    few = frozenset(
        key
        for part in parts
        for key in part.all_comparisons
        if min(part.side_sizes(key)) < part.min_rows
    )
    small = frozenset(group for part in parts for group in part.small_groups)
    return [replace(part, small_elsewhere=few, small_groups_elsewhere=small) for part in parts]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table with its outcomes and groups, and the checked record of its rows."""

    X: Table
    y: ColumnArray  # as passed
    sensitive_features: Table | GroupProbabilities
    problem: Problem
    rows: RowNumbers  # of the table, by number: those with positive weight

    def feature_columns(self) -> dict[str, ColumnArray]:
        """The features of the rows that count; none where X does not consist of columns of single
        values.
        """
        try:
            features = {name: column[self.rows] for name, column in columns("X", self.X).items()}
            for column in features.values():
                hash(column[0])
        except (DataError, TypeError):
            return {}
        return features

    def held_out(self, rows: RowNumbers) -> HeldOut:
        """These rows, to evaluate models on."""
        problem = self.problem.take(np.searchsorted(self.rows, rows))
        return HeldOut(
            _safe_indexing(self.X, rows), take_rows(self.sensitive_features, rows), problem
        )

    def divide(self, rows: RowNumbers, share: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
        """Divide these positions into two parts, the second with this share, of the same mix of
        kinds if possible.
        """
        kinds = self.kinds[rows]
        if self.problem.clusters is not None:
            clusters = self.problem.clusters[rows]
            is_second = cluster_share(share, clusters, kinds, seed)
            if is_second.all() or not is_second.any():
                problem = f"have {len(np.unique(clusters)):,} distinct values, too few to hold out {share:.0%} of them"
                raise TooFewSamples(
                    problem, argument="clusters", remedy="use smaller clusters, or omit clusters"
                )
            return rows[~is_second], rows[is_second]
        counts = np.bincount(kinds)
        # one row of a kind cannot be in both
        usual = np.where(counts[kinds] > 1, kinds, counts.argmax())
        few = len(np.unique(usual)) <= min(share, 1 - share) * len(rows)
        first, second = train_test_split(
            rows, test_size=share, random_state=seed, stratify=usual if few else None
        )
        return np.sort(first), np.sort(second)

    @cached_property
    def kinds(self) -> RowNumbers:
        """Rows of equal cells, groups and labels have equal numbers."""
        problem = self.problem
        columns = [problem.cell, *problem.groups.T]
        if problem.labels is not None and problem.scheme.classes:
            columns.append(problem.labels)
        return distinct_codes(np.stack(columns, axis=1), axis=0)

    def provenance(self, seed: int) -> Provenance:
        """The provenance of figures of these rows."""
        rows = len(self.rows)
        left_out = {}
        if self.problem.kept is not None:
            rows = len(self.problem.kept)
            left_out["zero_weight"] = rows - len(self.rows)
        return Provenance(
            source="rows in memory",
            rows_read=rows,
            left_out=left_out,
            columns={"group": [attribute.name for attribute in self.problem.scheme.attributes]},
            seed=seed,
            **made_now(),
        )


def data_set(
    X: Table,
    y: Table,
    sensitive_features: Table | GroupProbabilities,
    control_features: Table | None,
    *,
    regression: bool,
    criterion: str | Criterion,
    contrast: Contrast,
    pos_label: object = None,
    intersectional: bool = False,
    continuous: Continuous = False,
    sample_weight: Table | None = None,
    clusters: Table | None = None,
    held_out: Sequence[float] = (0.25,),
) -> DataSet:
    """The data for evaluating a model, with numeric attributes in bands of about equal weight.

    ``held_out`` are the shares of rows on which models are evaluated. Bands have enough of these
    rows, even among the labels with the fewest rows that are compared.
    """
    problem = problem_with_probabilities(
        Inputs(
            y, sensitive_features, control_features, sample_weight, rows={"X": X}, clusters=clusters
        ),
        criterion=criterion,
        contrast=contrast,
        intersectional=intersectional,
        continuous=continuous,
        pos_label=pos_label,
        target="numbers" if regression else "labels",
    )
    if problem.numbers is not None:
        smallest = min((share for share in held_out if is_number(share) and share > 0), default=1.0)
        by_labels: dict[str, set[int]] = {}
        for comparison in problem.comparisons:
            by_labels.setdefault(comparison.labels, set()).update(
                comparison.left + comparison.right
            )
        compared = min(
            (np.isin(problem.cell, list(cells)) for cells in by_labels.values()),
            key=np.count_nonzero,
        )
        problem = in_bands(problem, BANDS, rows=compared, least=FEW / smallest)
    rows = problem.passed_rows
    if problem.weight is not None and np.ptp(problem.weight) == 0:
        # equal weights change nothing, and certificates stay valid
        problem = replace(problem, weight=None)
    return DataSet(X, one_column("y", y), sensitive_features, problem, rows)


def make_folds(
    data: DataSet, rows: RowNumbers, count: int, seed: int, argument: str
) -> list[RowNumbers]:
    """Assign positions to ``count`` folds with the same mix of cells and labels; TooFewSamples if
    they are too few.

    ``argument`` is the option that requested them.
    """
    problem = data.problem
    if problem.labels is None or not problem.scheme.classes:
        labels = np.zeros_like(rows)
    else:
        labels = problem.labels[rows]
    clusters = None
    if problem.clusters is not None:
        clusters = problem.clusters[rows]
    fold = assign_folds(count, labels, data.kinds[rows], seed, clusters)
    complete = sum(
        len(np.unique(labels[fold == place])) == len(np.unique(labels)) for place in range(count)
    )
    if complete < count:
        limit = f"must be at most {complete}, as every fold needs rows of every label"
        raise TooFewSamples(
            limit, argument=argument, received=count, remedy="use fewer, or leave rare labels out"
        )
    return [rows[fold == place] for place in range(count)]
