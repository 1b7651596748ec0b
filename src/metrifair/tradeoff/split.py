"""A data set whose rows are kept apart: rows to train on, to choose on, and to judge the choice on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from metrifair.batches.samples import Samples, plug_in_sides
from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.figures.intervals import FEW
from metrifair.figures.selection_rates import enough_rows
from metrifair.postprocessing.postprocessor import assign_folds
from metrifair.problem.attributes import Continuous
from metrifair.problem.bands import BANDS, in_bands
from metrifair.problem.cells import Comparison, Contrast, Sides
from metrifair.problem.clusters import cluster_share
from metrifair.problem.criteria import Criterion
from metrifair.problem.problem import Given, Problem, problem_with_shares
from metrifair.problem.proxies import GroupProbabilities
from metrifair.problem.tables import Column, Table, one_column, rows_of
from metrifair.support.checks import is_number
from metrifair.support.provenance import Provenance, made_now

Rows = NDArray[np.int64]


class Split(NamedTuple):
    """Row numbers of the three parts."""

    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that were not trained on, with everything needed to judge a model on them."""

    X: Table
    sensitive_features: Table | GroupProbabilities
    problem: Problem
    least: int = FEW  # rows on either side of a comparison that models are judged by
    apart: frozenset[Comparison] = frozenset()  # with fewer in a part that models are judged on beside this one
    apart_groups: frozenset[tuple[str, str]] = frozenset()  # and groups, by attribute, with fewer in all there

    @property
    def regression(self) -> bool:
        """True if the outcome is a number."""
        return not self.problem.scheme.classes

    @property
    def labels(self) -> NDArray[Any]:
        """Codes of the classes, or numbers."""
        if self.problem.labels is None:
            raise DataError("models are judged by their outcomes; pass y")
        return self.problem.labels

    @property
    def has_certificates(self) -> bool:
        """Whether intervals of unfairness hold: every row counts once, in its group."""
        return self.problem.weight is None and self.problem.probabilities is None

    @cached_property
    def members(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Who is in which group, by attribute: true or false, or a probability.

        Where there are several attributes, groups bear the names of theirs.
        """
        attributes, probabilities = self.problem.scheme.attributes, self.problem.probabilities
        if probabilities is not None:
            return {
                probabilities.name: dict(zip(probabilities.groups, np.nan_to_num(probabilities.values).T, strict=True))
            }
        return {
            attribute.name: {
                f"{attribute.name}: {group}" if len(attributes) > 1 else str(group): codes == place
                for place, group in enumerate(attribute.groups)
            }
            for attribute, codes in zip(attributes, self.problem.groups.T, strict=True)
        }

    def with_known_groups(self) -> HeldOut | None:
        """The rows whose true groups are known beside probabilities, in these groups; None where there are none."""
        found = self.problem.probabilities
        if found is None or found.known is None or not (found.known >= 0).any():
            return None
        problem = self.problem.take(np.flatnonzero(found.known >= 0))
        known = found.known[found.known >= 0, None]
        return replace(self, problem=replace(problem, groups=known, probabilities=None))

    @cached_property
    def small(self) -> frozenset[tuple[str, str]]:
        """Groups, by attribute, with few rows in all, here or in a part that models are judged on beside this one."""
        sizes = {(name, group): own.sum() for name, groups in self.members.items() for group, own in groups.items()}
        return self.apart_groups | {group for group, rows in sizes.items() if rows < self.least}

    @cached_property
    def everyone(self) -> dict[Comparison, Sides]:
        """The rows of each comparison, with their weights; where none has rows on both its sides, an error."""
        problem = self.problem
        weight = torch.as_tensor(np.ones(len(problem)) if problem.weight is None else problem.weight)
        shares = None if problem.shares is None else torch.as_tensor(problem.shares)
        samples = Samples(weight[:, None], weight, torch.as_tensor(problem.cell), weight, shares=shares)
        sides = plug_in_sides(problem.comparisons, samples)
        found = dict(zip(problem.comparisons, sides, strict=True))
        if found and not any(min(side.counts) for side in sides):
            comparison, side = next(iter(found.items()))
            raise TooFewSamples(
                f"comparing {comparison}: the held-out data have {side.counts[0]} and {side.counts[1]} samples; "
                "hold more data out, merge small groups, or mark them as missing"
            )
        return found

    @cached_property
    def compared(self) -> dict[Comparison, Sides]:
        """Those with enough rows, or if none has, with any: models are evaluated on them; see ``small_groups``."""
        most = {True: self.least - 1, False: len(self.problem)}  # few elsewhere are few here
        rows = {one: min(*self.sizes_of(one), most[one in self.apart]) for one in self.everyone}
        return {one: self.everyone[one] for one in enough_rows(rows, self.least)}

    def sizes_of(self, one: Comparison) -> tuple[float, ...]:
        """How many rows each side of a comparison has; where groups have probabilities, how many are expected."""
        return tuple(self.problem.cell_sizes[list(cells)].sum() for cells in one.sides)

    @property
    def sides(self) -> tuple[Sides, ...]:
        """The rows of each comparison that models are judged by."""
        return tuple(self.compared.values())


def with_common_comparisons(*parts: HeldOut) -> list[HeldOut]:
    """The parts, evaluated by the same comparisons: those with enough rows in each of them, where there are such."""
    few = frozenset(one for part in parts for one in part.everyone if min(part.sizes_of(one)) < part.least)
    small = frozenset(group for part in parts for group in part.small)
    return [replace(part, apart=few, apart_groups=small) for part in parts]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table with its outcomes and groups, and the checked record of its rows."""

    X: Table
    y: Column  # as it came
    sensitive_features: Table | GroupProbabilities
    problem: Problem
    rows: Rows  # of the table that the record has: all but those without weight

    def held_out(self, rows: Rows) -> HeldOut:
        """These rows, to judge models on."""
        problem = self.problem.take(np.searchsorted(self.rows, rows))
        return HeldOut(_safe_indexing(self.X, rows), rows_of(self.sensitive_features, rows), problem)

    def split(self, validation: float, test: float, seed: int, *, train: bool = True) -> Split:
        """Rows of the three parts, each with the same mix of cells and labels where their numbers allow it."""
        shares = (validation, test)
        if not all(is_number(share) and share > 0 for share in shares) or sum(shares) >= (1 if train else 1.0000001):
            received = f"{validation!r} and {test!r}"
            if is_number(validation) and validation >= 1:
                received += "; for cross-validation, pass search=SearchOptions(folds=5)"
            raise DataError(f"validation and test must be shares above 0 that leave rows for training, got {received}")
        everything = np.arange(len(self.problem))
        if not train:
            chosen, judged = self.divided(everything, test / (validation + test), seed)
            return Split(everything[:0], self.rows[chosen], self.rows[judged])
        rest, judged = self.divided(everything, test, seed)
        own, chosen = self.divided(rest, validation / (1 - test), seed)
        return Split(self.rows[own], self.rows[chosen], self.rows[judged])

    def divided(self, rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
        """Two parts of these positions, the second with this share; both have the same mix of kinds if possible."""
        kinds = self.kinds[rows]
        if self.problem.clusters is not None:
            clusters = self.problem.clusters[rows]
            drawn = cluster_share(share, clusters, kinds, seed)
            if drawn.all() or not drawn.any():
                problem = f"have {len(np.unique(clusters)):,} distinct values, too few to hold out {share:.0%} of them"
                raise TooFewSamples(problem, argument="clusters", remedy="use smaller clusters, or omit clusters")
            return rows[~drawn], rows[drawn]
        counts = np.bincount(kinds)
        usual = np.where(counts[kinds] > 1, kinds, counts.argmax())  # one row of a kind cannot be in both
        few = len(np.unique(usual)) <= min(share, 1 - share) * len(rows)
        first, second = train_test_split(rows, test_size=share, random_state=seed, stratify=usual if few else None)
        return np.sort(first), np.sort(second)

    @cached_property
    def kinds(self) -> Rows:
        """Rows of equal cells, groups and labels have equal numbers."""
        labels = [] if self.problem.labels is None or not self.problem.scheme.classes else [self.problem.labels]
        alike = np.stack([self.problem.cell, *self.problem.groups.T, *labels], axis=1)
        return np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)

    def provenance(self, seed: int) -> Provenance:
        """Where figures of these rows come from."""
        kept = self.problem.kept
        return Provenance(
            source="rows in memory",
            rows_read=len(self.rows) if kept is None else len(kept),
            left_out={} if kept is None else {"zero_weight": len(kept) - len(self.rows)},
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
    """The data for evaluating a model; numbers in bands of about equal weight.

    Models are judged on shares of the rows that are ``held_out``: bands have enough of these, of those with the labels
    among which the fewest are compared.
    """
    problem = problem_with_shares(
        Given(y, sensitive_features, control_features, sample_weight, rows={"X": X}, clusters=clusters),
        criterion=criterion,
        contrast="pairs" if contrast == "independence" else contrast,  # judged by distances between groups
        intersectional=intersectional,
        continuous=continuous,
        pos_label=pos_label,
        target="numbers" if regression else "labels",
    )
    if problem.numbers is not None:
        share = min((one for one in held_out if is_number(one) and one > 0), default=1.0)
        by_labels: dict[str, set[int]] = {}
        for one in problem.comparisons:
            by_labels.setdefault(one.labels, set()).update(one.left + one.right)
        compared = min((np.isin(problem.cell, list(cells)) for cells in by_labels.values()), key=np.count_nonzero)
        problem = in_bands(problem, BANDS, rows=compared, least=FEW / share)
    rows = np.arange(len(problem)) if problem.kept is None else np.flatnonzero(problem.kept)
    if problem.weight is not None and np.ptp(problem.weight) == 0:
        problem = replace(problem, weight=None)  # equal weights weigh nothing, and leave certificates valid
    return DataSet(X, one_column("y", y), sensitive_features, problem, rows)


def split_rows(
    data: DataSet, validation: float, test: float, seed: int, *, folds: int | None, train: bool = True
) -> tuple[Split, tuple[Rows, ...]]:
    """Training, validation and test rows, and the folds where cross-validation is requested."""
    if folds is None:
        return data.split(validation, test, seed, train=train), ()
    return in_folds(data, folds, test, seed, fitted=not train)


def in_folds(
    data: DataSet, count: int, test: float, seed: int, *, fitted: bool = False
) -> tuple[Split, tuple[Rows, ...]]:
    """Rows to train and to choose on, in folds with the same mix of cells and labels, and rows to judge on.

    >>> given = np.arange(40.0)[:, None], np.arange(40) % 2, np.arange(40) // 2 % 2
    >>> data = data_set(*given, None, regression=False, criterion="statistical_parity", contrast="pairs")
    >>> split, folds = in_folds(data, 3, 0.25, 0)
    >>> len(split.train), len(split.validation), len(split.test), [len(fold) for fold in folds]
    (30, 30, 10, [10, 10, 10])
    """
    if fitted:
        remedy = Remedy("folds", leave_out=True)
        raise DataError("needs models to train, and these are fitted", argument="folds", remedy=remedy)
    if not is_number(test) or not 0 < test < 1:
        raise DataError(f"test must be a share above 0 that leaves rows for training, got {test!r}")
    rest, judged = data.divided(np.arange(len(data.problem)), test, seed)
    folds = tuple(data.rows[fold] for fold in dealt(data, rest, count, seed, "folds"))
    return Split(data.rows[rest], np.concatenate(folds), data.rows[judged]), folds


def outer_splits(
    data: DataSet, count: int, validation: float, seed: int, *, folds: int | None
) -> list[tuple[Split, tuple[Rows, ...]]]:
    """One split for each of ``count`` folds, whose rows are its test rows; the others train and validate.

    >>> given = np.arange(40.0)[:, None], np.arange(40) % 2, np.arange(40) // 2 % 2
    >>> data = data_set(*given, None, regression=False, criterion="statistical_parity", contrast="pairs")
    >>> [[len(part) for part in split] for split, _ in outer_splits(data, 4, 0.25, 0, folds=None)]
    [[20, 10, 10], [20, 10, 10], [20, 10, 10], [20, 10, 10]]
    """
    share = validation / (1 - 1 / count) if is_number(validation) else 0.0
    if folds is None and not 0 < share < 1:
        problem = "must be a share above 0 that leaves rows for training and test folds"
        raise DataError(problem, argument="validation", received=validation)
    everything = np.arange(len(data.problem))
    found = []
    for test in dealt(data, everything, count, seed, "test_folds"):
        rest = np.setdiff1d(everything, test)
        if folds is None:
            train, chosen = data.divided(rest, share, seed)
            inner: tuple[Rows, ...] = ()
        else:
            inner = tuple(data.rows[fold] for fold in dealt(data, rest, folds, seed, "folds"))
            train, chosen = rest, np.searchsorted(data.rows, np.concatenate(inner))
        found.append((Split(data.rows[train], data.rows[chosen], data.rows[test]), inner))
    return found


def dealt(data: DataSet, rows: Rows, count: int, seed: int, argument: str) -> list[Rows]:
    """These positions in ``count`` folds with the same mix of cells and labels; a TooFewSamples where there are fewer.

    ``argument`` is the option that requested them.
    """
    problem = data.problem
    labels = np.zeros_like(rows) if problem.labels is None or not problem.scheme.classes else problem.labels[rows]
    clusters = None if problem.clusters is None else problem.clusters[rows]
    fold = assign_folds(count, labels, data.kinds[rows], seed, clusters)
    complete = sum(len(np.unique(labels[fold == at])) == len(np.unique(labels)) for at in range(count))
    if complete < count:
        limit = f"must be at most {complete}, as every fold needs rows of every label"
        raise TooFewSamples(limit, argument=argument, received=count, remedy="use fewer, or leave rare labels out")
    return [rows[fold == at] for at in range(count)]
