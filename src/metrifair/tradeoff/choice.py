"""The choice among configurations by their out-of-fold scores, and what the chosen one is expected
to reach on new rows.

Every configuration (a family at a strength) has scored all rows, each row by a model that was
trained without it. The choice is a rule on these figures (``choose``). Repeated on resamples of the
rows, and evaluated on the rows that each resample leaves out, it shows how much of its success was
luck (``resamples``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.special import normal_quantile
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.resamples import TAILS, ResampledGaps, ResampledUtilities, root, roots

NOTHING = -1
"""In place of a configuration: none is feasible."""
_STEP = 0.001  # of limits that are named
_MOST_STEPS = 1_000


@dataclass(frozen=True)
class Rule:
    """What a choice must meet: the largest gap with a confidence, or the least accuracy.

    With neither of them, the gap is to be the least of all. ``confidence`` is that of the gap being
    within the limit; None: no allowance. With ``least``, the least gap is chosen among
    configurations of that accuracy, or R2.
    """

    limit: float | None = None
    confidence: float | None = None
    least: float | None = None

    @property
    def quantile(self) -> float:
        """Standard errors that the gap stays below the limit."""
        return 0.0 if self.confidence is None else normal_quantile(self.confidence)


@dataclass(frozen=True)
class Expected:
    """What the chosen configuration is expected to reach on new rows."""

    utility: float
    utility_interval: Interval
    gap: float
    gap_interval: Interval
    noise: float  # a gap below it is not distinguishable from 0 with these rows
    optimism: float  # of the gap: of rows left out less of the rows that chose

    @property
    def is_noise(self) -> bool:
        """Whether the gap is reported as "below x", x the upper end of its interval."""
        return self.gap < self.noise


@dataclass(frozen=True)
class Choice:
    """The chosen configuration and its expected figures; ``NOTHING`` and None if none is feasible.

    ``needed`` is the least limit on the gap that some configuration meets by its own figures, or
    the largest accuracy if that is limited.
    """

    configuration: int
    feasible: int
    needed: float
    expected: Expected | None


@dataclass(frozen=True, eq=False)
class Chooser:
    """Choices among configurations, for any limit, from their figures; no rows are needed.

    ``simplicity`` is 0 for the simplest. ``tier`` is 0 where nothing speaks against a
    configuration; others are chosen only if no configuration of a smaller tier is feasible.
    ``accuracy`` is what ``Rule.least`` limits.
    """

    jobs: tuple[Job, ...]
    rows: int
    gaps: ResampledGaps
    utility: ResampledUtilities
    accuracy: ResampledUtilities
    simplicity: Integers
    tier: Integers

    def choose(self, rule: Rule, allowed: Booleans | None = None) -> Choice:
        """The simplest configuration within one standard error of the best feasible one.

        Only ``allowed`` configurations can be chosen. None: all.
        """
        task = self._task(rule, allowed)
        optimism = self.optimism(rule, allowed)
        needed = task.needed() + optimism
        chosen = task.choice(optimism)
        named = float(needed.min(initial=inf))
        return Choice(
            configuration=chosen,
            feasible=int((needed <= task.limit).sum()),
            needed=named if rule.least is None else -named,
            expected=None if chosen == NOTHING else self._expected(chosen, task, optimism),
        )

    def least_limit(self, rule: Rule, allowed: Booleans | None = None) -> float:
        """The least limit, rounded up to three digits, that some configuration meets with the
        confidence of a rule; infinity if none is allowed.

        The optimism depends on the limit, so limits are tried from the least one upwards. One below
        the noise cannot be verified.
        """
        least = float(self._task(rule, allowed).needed().min(initial=inf))
        if least == inf:
            return inf
        limit = _rounded_up(max(least, self.gaps.noise))
        for _ in range(_MOST_STEPS):
            needed = least + self.optimism(Rule(limit, rule.confidence), allowed)
            if needed <= limit:
                break
            limit = _rounded_up(needed)
        return limit

    def _task(self, rule: Rule, allowed: Booleans | None) -> _Task:
        usable = np.isfinite(self.utility.values)
        return _Task(self, rule, usable if allowed is None else usable & allowed)

    def optimism(self, rule: Rule, allowed: Booleans | None = None) -> float:
        """The allowance for choosing the best of many, which only a confidence asks for."""
        if rule.confidence is None:
            return 0.0
        return self._optimism(self._task(rule, allowed).choices())

    def _optimism(self, choices: Integers) -> float:
        """How much larger the gap of the chosen model is on rows that did not choose it.

        At least 0. Means of squares, then roots: the root of a noisy square is too small on
        average.
        """
        draws = np.flatnonzero(choices != NOTHING)
        if not len(draws):
            return 0.0
        inside = self.gaps.drawn[draws, choices[draws]].mean()
        outside = self.gaps.left_out[draws, choices[draws]].mean()
        return max(0.0, root(outside) - root(inside))

    def _expected(self, chosen: int, task: _Task, allowance: float) -> Expected:
        """The figures of the choice on the rows that did not make it."""
        choices = task.choices(allowance)
        draws = np.flatnonzero(choices != NOTHING)
        if not len(draws):
            draws = np.arange(len(choices))
            choices = np.full(len(choices), chosen)
        utilities = self.utility.left_out[draws, choices[draws]]
        optimism = self._optimism(choices)
        return Expected(
            utility=float(utilities.mean()),
            utility_interval=Interval(*np.quantile(utilities, TAILS).tolist()),
            gap=root(float(self.gaps.left_out[draws, choices[draws]].mean())),
            gap_interval=self.gaps.interval(chosen, optimism),
            noise=self.gaps.noise,
            optimism=optimism,
        )


@dataclass(frozen=True, eq=False)
class _Task:
    """A rule in numbers: what each configuration needs, the limit, and what makes it better.

    What is needed is at most the limit: a gap with its allowance, or minus the accuracy.
    """

    chooser: Chooser
    rule: Rule
    allowed: Booleans

    @property
    def limit(self) -> float:
        """What may be needed at most; infinity where the least gap is asked for."""
        if self.rule.least is not None:
            return -self.rule.least
        return inf if self.rule.limit is None else self.rule.limit

    def needed(self) -> Floats:
        """What each configuration needs, by all rows."""
        return self._needed(self.chooser.gaps.gaps, self.chooser.accuracy.values)

    def choice(self, allowance: float) -> int:
        """The configuration that all rows choose, or ``NOTHING``."""
        chooser = self.chooser
        gaps = chooser.gaps.gaps[None]
        accuracy = chooser.accuracy.values[None]
        return int(self._choose(gaps, accuracy, chooser.utility.values[None], allowance)[0])

    def choices(self, allowance: float = 0.0) -> Integers:
        """The configuration that each resample chooses."""
        chooser = self.chooser
        gaps = roots(chooser.gaps.drawn)
        return self._choose(gaps, chooser.accuracy.drawn, chooser.utility.drawn, allowance)

    def _needed(self, gaps: Floats, accuracy: Floats) -> Floats:
        needed = -accuracy
        if self.rule.least is None:
            needed = gaps + self.rule.quantile * self.chooser.gaps.errors
        return np.where(self.allowed, needed, inf)

    def _choose(
        self, gaps: Floats, accuracy: Floats, utility: Floats, allowance: float
    ) -> Integers:
        needed = self._needed(gaps, accuracy) + allowance
        quality = utility
        errors = self.chooser.utility.errors_of_differences
        if self.rule.least is not None:
            quality = -gaps
            errors = self.chooser.gaps.errors_of_differences
        limit: float | Floats = self.limit
        if self.rule.least is None and self.rule.limit is None:
            limit = needed.min(axis=1, keepdims=True)
        return choose(self.chooser, quality, needed, limit, errors)


def choose(
    among: Chooser, quality: Floats, needed: Floats, limit: float | Floats, errors: Floats
) -> Integers:
    """The chosen configuration of each draw, or ``NOTHING``.

    ``quality`` and ``needed`` have the shape (draws, configurations), ``errors`` are those of the
    difference in quality of every two configurations. Feasible are configurations that need at
    most the limit, of the smallest tier that has any. Of those within one standard error of the
    best feasible one, the simplest is chosen.
    """
    feasible = (needed <= limit) & np.isfinite(needed)
    tier = np.where(feasible, among.tier, among.tier.max() + 1)
    feasible &= tier == tier.min(axis=1, keepdims=True)
    offered = np.where(feasible, quality, -inf)
    best = offered.argmax(axis=1)
    draws = np.arange(len(best))
    near = feasible & (offered >= offered[draws, best][:, None] - errors[best])
    last = len(among.simplicity)
    chosen = np.where(near, among.simplicity, last).argmin(axis=1)
    return np.where(feasible.any(axis=1), chosen, NOTHING)


def _rounded_up(limit: float) -> float:
    """The next limit with three digits."""
    return round(ceil(limit / _STEP - 1e-9) * _STEP, 3)
