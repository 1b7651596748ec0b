"""An exact test of whether the scores of two groups have changed since a baseline, from the counts
of states.

If the scores of both groups are distributed as in the baseline, a row of the look and a row of the
baseline can be exchanged, within each group. Rows are paired at random, and the difference of each
pair is equally likely with either sign. The utility of a score does not depend on which row of a
pair is in the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.audit_record import AuditedRows
from metrifair.auditing.measure.group_pairs import GroupPair, group_pairs
from metrifair.auditing.measure.parts import parts_for
from metrifair.auditing.records import Conditions
from metrifair.auditing.sources.state_counts import StateCounts
from metrifair.auditing.sources.state_source import StateRows
from metrifair.figures.sign_flips import sign_flip_p_value
from metrifair.metrics.witnesses import witness
from metrifair.problem.values import Value
from metrifair.support.arrays import Floats, Integers

_MOST_PAIRS = 10**6  # in each group: a sample of more rows is paired
_FEWEST_BINS = 100  # with scores, if only the bins of scores are known

ComparedKey: TypeAlias = tuple[str, str, Conditions, frozenset[Value]]
"""The identity of a comparison in all looks: attribute, criterion, conditions and group values."""


class _CountedLook(NamedTuple):
    """The counts of a look, and its comparisons."""

    counts: StateCounts
    scores: Floats  # of each entry, or the number of its bin
    compared: dict[ComparedKey, GroupPair]

    def rows(self, key: ComparedKey, group: Value, grid: Floats) -> Integers:
        """The number of rows of a group at each score of the grid."""
        compared = self.compared[key]
        counts = self.counts
        used = np.isin(counts.cell, compared.sides[compared.group_values.index(group)])
        points = np.searchsorted(grid, self.scores[used])
        return np.bincount(points, counts.rows[used], len(grid)).astype(np.int64)


class ChangeTest:
    """The tests of all comparisons of several looks."""

    def __init__(self, looks: Sequence[_CountedLook] = (), seed: int = 0) -> None:
        self._looks = looks
        self._seed = seed
        self._grid = np.unique(np.concatenate([np.zeros(0), *(look.scores for look in looks)]))
        # Scores in few bins of a much wider range: differences between them would not be seen.
        is_fine = len(self._grid) >= _FEWEST_BINS or all(look.counts.exact for look in looks)
        self.compared = {key for look in looks for key in look.compared if is_fine}

    @classmethod
    def of(cls, audited: Sequence[AuditedRows | None], seed: int) -> ChangeTest:
        """The tests of looks that are all states of one score range without weights; otherwise
        no tests.
        """
        states = [
            (rows.source, _comparisons(rows))
            for rows in audited
            if rows is not None and isinstance(rows.source, StateRows) and not rows.source.weighted
        ]
        if len(states) < len(audited) or len({state.parts.score_range for state, _ in states}) != 1:
            return NO_TEST
        exact = all(state.entries.exact for state, _ in states)
        return cls(
            [
                _CountedLook(
                    counts,
                    counts.low if exact else counts.bin.astype(np.float64),
                    compared,
                )
                for counts, compared in ((state.entries, compared) for state, compared in states)
            ],
            seed,
        )

    def p_value(self, key: ComparedKey, first: int, last: int, look: int) -> float | None:
        """The p-value of "the scores of both groups are distributed as in the looks from the first
        to the last".

        The test is of the mean utility of one group less that of the other. The utility is the
        witness of the energy distance between the groups, in the rows of the baseline and of the
        look together. None: no comparison has this key, such as that of a numeric attribute.
        """
        if key not in self.compared:
            return None
        groups = sorted(key[-1], key=repr)
        looks = self._looks
        baseline = [looks[at] for at in range(first, last + 1) if key in looks[at].compared]
        counts = np.array(
            [
                [part.rows(key, group, self._grid) for group in groups]
                for part in (*baseline, looks[look])
            ]
        )
        used = counts.any((0, 1))
        counts = counts[:, :, used]
        scores = self._grid[used]
        left, right = counts.sum(0)
        utility = witness(scores, scores, metric="energy", u_weights=left, v_weights=right)(scores)
        generator = np.random.default_rng([self._seed, look])  # independent of other looks
        sides = zip(counts[:-1].sum(0), counts[-1], strict=True)
        differences = [_differences(utility, before, after, generator) for before, after in sides]
        return sign_flip_p_value(np.concatenate([differences[0], -differences[1]]))


NO_TEST: ChangeTest = ChangeTest()


def _comparisons(rows: AuditedRows) -> dict[ComparedKey, GroupPair]:
    sample = rows.sample
    request = rows.request
    return {
        (
            pair.attribute.name,
            part.criterion,
            part.conditions,
            frozenset(pair.group_values),
        ): pair
        for part in parts_for(sample, request.named_criteria(), request.loss)
        for pair in group_pairs(sample, part, request.contrast)
    }


def _differences(
    utility: Floats,
    before: Integers,
    after: Integers,
    generator: np.random.Generator,
) -> Floats:
    """The differences in utility of randomly paired rows, over their number, from the rows at
    each score.
    """
    old, new = (
        generator.permutation(
            np.repeat(
                utility,
                generator.binomial(rows, min(1.0, _MOST_PAIRS / rows.sum())),
            )
        )
        for rows in (before, after)
    )
    pairs = min(len(old), len(new))
    return np.asarray((new[:pairs] - old[:pairs]) / pairs)
