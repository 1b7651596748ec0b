"""The distances of every pair of groups, of rows in memory and of rows in bins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.bins import BinnedScores
from metrifair.auditing.measure.brackets import CellSides, bracket_distances
from metrifair.auditing.measure.group_pairs import GroupPair
from metrifair.auditing.measure.one_against_rest import (
    AllGroups,
    has_running_integrals,
)
from metrifair.auditing.measure.parts import members_in
from metrifair.auditing.measure.plug_in import (
    LargestGap,
    largest_gap,
    plug_in_distances,
)
from metrifair.auditing.measure.resampling import SampleRows
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import (
    InBins,
    TwoSamples,
    in_pooled_bins,
)
from metrifair.auditing.request import MOST_PAIRED
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Floats


class PairDistances(NamedTuple):
    """One comparison: the distinguished scores of both sides, and its distances."""

    pair: TwoSamples
    permuted: InBins  # the samples in bins that do not depend on the groups, for permutations
    gap: LargestGap
    values: Mapping[str, float]
    brackets: Mapping[str, Interval] = {}  # none of rows in memory
    # of both sides, if they have clusters, weights in memory, or probabilities of groups
    rows: SampleRows = None
    # If scores were merged: all scores of the left side with its rows at each, and the means of
    # both sides.
    left_scores: tuple[Floats, Floats] | None = None
    means: tuple[float, float] | None = None


def measure_pairs(
    sample: AuditSample,
    compared: Sequence[GroupPair],
    metrics: Sequence[str],
    max_scores: int,
) -> Iterator[PairDistances]:
    """Each comparison with its distances.

    Many groups share ``max_scores`` distinct scores for resampling and curves.
    """
    if sample.scores.binned is None:
        return _exact_pairs(sample, compared, metrics, max_scores)
    return _bracketed_pairs(sample.scores.binned, sample.units.amount, compared, metrics)


def _bracketed_pairs(
    binned: BinnedScores,
    amount: Floats,
    compared: Sequence[GroupPair],
    metrics: Sequence[str],
) -> Iterator[PairDistances]:
    """Measure binned rows. The largest gap is at the end of a bin."""
    sides = [
        CellSides(left, right, (float(amount[left].sum()), float(amount[right].sum())))
        for left, right in (comparison.sides for comparison in compared)
    ]
    for comparison, bracketing in zip(
        compared, bracket_distances(binned, sides, metrics), strict=True
    ):
        pair, rows = comparison.two_samples(comparison.sides, binned.products)
        yield PairDistances(
            pair,
            partial(in_pooled_bins, pair),
            bracketing.gap,
            {metric: bracketing.value(metric) for metric in metrics},
            {metric: bracketing.bracket(metric) for metric in metrics},
            rows,
        )


def _exact_pairs(
    sample: AuditSample,
    compared: Sequence[GroupPair],
    metrics: Sequence[str],
    max_scores: int,
) -> Iterator[PairDistances]:
    """Measure rows in memory.

    For many groups, each against the rest, common counts are computed once.
    """
    for _, some in groupby(compared, lambda comparison: (id(comparison.part), comparison.place)):
        several = list(some)
        part = several[0].part
        place = several[0].place
        many = len(several) > MOST_PAIRED and several[0].right is None and not sample.units.weighted
        if many and sample.problem.clusters is None and all(map(has_running_integrals, metrics)):
            members = members_in(sample.problem, part.units, place)
            all_groups = AllGroups(part.scores, members.units, members.codes, max_scores)
            for comparison in several:
                pair, permuted, left_scores, means, gap, values = all_groups.against_rest(
                    comparison.left, metrics
                )
                split = _split_at(pair, gap, counts=True)
                yield PairDistances(
                    split,
                    permuted,
                    gap,
                    values,
                    left_scores=left_scores,
                    means=means,
                )
            continue
        for comparison in several:
            pair, rows = comparison.two_samples(comparison.sides)
            values = {
                name: float(value) for name, value in plug_in_distances(*pair, metrics).items()
            }
            yield PairDistances(
                pair,
                partial(in_pooled_bins, pair),
                largest_gap(pair),
                values,
                rows=rows,
            )


def _split_at(pair: TwoSamples, gap: LargestGap, *, counts: bool) -> TwoSamples:
    """Split the bin of the largest gap at its score, where shares are exact; ``counts``:
    amounts are integers.
    """
    at = int(np.searchsorted(pair.values, gap.score))
    if at == len(pair.values) or pair.values[at] == gap.score:
        return pair
    halves = []
    for side, share in zip(pair[1:], gap.shares, strict=True):
        first = np.clip(share * side.sum() - side[:at].sum(), 0.0, side[at])
        if counts:
            first = np.rint(first)
        halves.append(np.concatenate([side[:at], [first, side[at] - first], side[at + 1 :]]))
    used = (halves[0] > 0) | (halves[1] > 0)
    return TwoSamples(
        np.insert(pair.values, at, gap.score)[used],
        halves[0][used],
        halves[1][used],
    )
