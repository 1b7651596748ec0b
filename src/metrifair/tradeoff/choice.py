"""The choice among configurations by their out-of-fold scores, and what the chosen one is expected
to reach on new rows.

Every configuration (a family at a strength) has scored all rows, each row by a model that was
trained without it. The choice is a rule on these figures (``choose``). Repeated on resamples of the
rows, and evaluated on the rows that each resample leaves out, it shows how much of its success was
luck (``resamples``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Protocol

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
_HALVINGS = 6  # of the range in which an allowance is sought
_LUCK_OF_RESAMPLES = sqrt(2)
"""How much luckier the choices of resamples are than the choice by all rows: a resample has the noise
of the rows, and as much of its own."""


class Asked(Protocol):
    """What is asked of a choice, as ``Goal`` has it."""

    @property
    def max_unfairness(self) -> float | None:
        """The largest gap."""

    @property
    def confidence(self) -> float | None:
        """That of the gap being within the limit."""

    @property
    def min_accuracy(self) -> float | None:
        """The least accuracy."""


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

    @classmethod
    def of(cls, goal: Asked | None) -> Rule:
        """The rule of a goal; None: the least gap of all."""
        if goal is None:
            return cls()
        return cls(goal.max_unfairness, goal.confidence, goal.min_accuracy)

    @property
    def least_unfair(self) -> Rule:
        """The rule that applies where no configuration meets this one."""
        return Rule(confidence=self.confidence)

    @property
    def quantile(self) -> float:
        """Standard errors that the gap stays below the limit."""
        if self.confidence is None:
            return 0.0
        return normal_quantile(self.confidence)


@dataclass(frozen=True)
class Expected:
    """What the chosen configuration is expected to reach on new rows."""

    utility: float
    utility_interval: Interval
    gap: float
    gap_interval: Interval
    noise: float  # a gap below it is not distinguishable from 0 with these rows

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
class AcceptedChoice:
    """A choice that was accepted after others were refused."""

    choice: Choice
    rule: Rule  # that chose
    allowed: Booleans  # without the refused configurations
    refused: tuple[Job, ...]


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
        least = float(needed.min(initial=inf))
        expected = None
        if chosen != NOTHING:
            expected = self._expected(chosen, task, optimism)
        return Choice(
            configuration=chosen,
            feasible=int((needed <= task.limit).sum()),
            needed=root(least) if rule.least is None else -least,
            expected=expected,
        )

    def choose_or_least_unfair(self, rule: Rule, allowed: Booleans) -> tuple[Choice, Rule]:
        """The choice by a rule, or the least unfair configuration if none meets it; and the rule
        that chose.
        """
        choice = self.choose(rule, allowed)
        if choice.configuration != NOTHING:
            return choice, rule
        return self.choose(rule.least_unfair, allowed), rule.least_unfair

    def first_accepted(
        self,
        rule: Rule,
        allowed: Booleans,
        is_accepted: Callable[[Job], bool],
        *,
        best_effort: bool,
    ) -> AcceptedChoice:
        """The first choice that is accepted, or ``NOTHING``; one that is refused is not allowed
        again. With ``best_effort`` the least unfair configuration is chosen if none meets the rule.
        """
        allowed = allowed.copy()
        refused: list[Job] = []
        while True:
            applied = rule
            if best_effort:
                choice, applied = self.choose_or_least_unfair(rule, allowed)
            else:
                choice = self.choose(rule, allowed)
            place = choice.configuration
            if place == NOTHING or is_accepted(self.jobs[place]):
                return AcceptedChoice(choice, applied, allowed, tuple(refused))
            refused.append(self.jobs[place])
            allowed[place] = False

    def least_limit(self, rule: Rule, allowed: Booleans | None = None) -> float:
        """The least limit, rounded up to three digits, that some configuration meets with the
        confidence of a rule; infinity if none is allowed.

        The optimism depends on the limit, so limits are tried from the least one upwards. One below
        the noise cannot be verified.
        """
        least = float(self._task(rule, allowed).needed().min(initial=inf))
        if least == inf:
            return inf
        limit = _rounded_up(max(root(least), self.gaps.noise))
        for _ in range(_MOST_STEPS):
            needed = root(least + self.optimism(Rule(limit, rule.confidence), allowed))
            if needed <= limit:
                break
            limit = _rounded_up(needed)
        return limit

    def _task(self, rule: Rule, allowed: Booleans | None) -> _Task:
        usable = np.isfinite(self.utility.values)
        return _Task(self, rule, usable if allowed is None else usable & allowed)

    def gaps_with_allowance(self, rule: Rule, allowed: Booleans) -> dict[Job, float]:
        """What the choice compares with the limit of a rule: each allowed configuration's gap with
        the allowances for sampling and for choosing.
        """
        needed = self._task(rule, allowed).needed() + self.optimism(rule, allowed)
        return {
            job: root(float(square))
            for job, square in zip(self.jobs, needed, strict=True)
            if np.isfinite(square)
        }

    def optimism(self, rule: Rule, allowed: Booleans | None = None) -> float:
        """The allowance in the square of the gap for choosing the best of many; 0 without a limit
        on the gap.

        Without a confidence, the gap alone has to be within the limit. The allowance then takes at
        most half of the room that the fairest model leaves below the limit: all of it would leave
        that model alone, which is often much less accurate.
        """
        if rule.limit is None:
            return 0.0
        task = self._task(rule, allowed)
        allowance = self._sufficient_allowance(task)
        if rule.confidence is not None:
            return allowance
        return min(allowance, task.room() / 2)

    def _sufficient_allowance(self, task: _Task) -> float:
        """About the smallest allowance that covers the luck of the choices that are made with it; the
        luck of choices without an allowance, if even that does not cover it.

        Choices without an allowance stay closer to the limit, where luck is largest. With an
        allowance for theirs alone, a higher confidence, whose choices are more cautious, would more
        often name a model where a lower one names none.
        """
        too_small = 0.0
        allowance = max(0.0, self._luck(task.choices(too_small)))
        if self._luck(task.choices(allowance)) > allowance:
            return allowance
        for _ in range(_HALVINGS):
            between = (too_small + allowance) / 2
            if self._luck(task.choices(between)) > between:
                too_small = between
            else:
                allowance = between
        return allowance

    def _luck(self, choices: Integers) -> float:
        """How much larger squared gaps are, on average, on the rows that a resample leaves out
        than on those by which it chooses.
        """
        draws = np.arange(len(choices))
        larger = self.gaps.left_out[draws, choices] - self.gaps.drawn[draws, choices]
        return float(larger.mean())

    def _expected(self, chosen: int, task: _Task, allowance: float) -> Expected:
        """The delivered configuration's own figures on all rows, without the luck of choosing it.

        The luck of resamples is how much better their choices look on the rows drawn than on those
        left out. Squares of gaps are corrected, then the root is taken: the root of a noisy square
        is too small on average.
        """
        choices = task.choices(allowance)
        draws = np.arange(len(choices))
        drawn = self.utility.drawn
        better = drawn[draws, choices] - self.utility.left_out[draws, choices]
        utility = float(self.utility.values[chosen] - better.mean() / _LUCK_OF_RESAMPLES)
        own = drawn[:, chosen]
        low, high = np.quantile(own - own.mean(), TAILS).tolist()
        luck = self._luck(choices) / _LUCK_OF_RESAMPLES
        square = float(self.gaps.squares[chosen]) + luck
        return Expected(
            utility=utility,
            utility_interval=Interval(utility + low, utility + high),
            gap=root(square),
            gap_interval=self.gaps.interval(chosen, square),
            noise=self.gaps.noise,
        )


@dataclass(frozen=True, eq=False)
class _Task:
    """A rule in numbers: what each configuration needs, the limit, and what makes it better.

    What is needed is at most the limit: a squared gap with its allowance, or minus the accuracy.
    """

    chooser: Chooser
    rule: Rule
    allowed: Booleans

    @property
    def limit(self) -> float:
        """What may be needed at most; infinity where the least gap is asked for."""
        if self.rule.least is not None:
            return -self.rule.least
        if self.rule.limit is None:
            return inf
        # a gap that equals the limit is within it, however its square is rounded
        return self.rule.limit**2 * (1 + 1e-12)

    def needed(self) -> Floats:
        """What each configuration needs, by all rows."""
        return self._needed(self.chooser.gaps.squares, self.chooser.accuracy.values)

    def room(self) -> float:
        """What can be added to all needs so that one of the best tier stays within the limit."""
        needed = self.needed()
        within = needed <= self.limit
        if not within.any():
            return 0.0
        tier = self.chooser.tier
        within &= tier == tier[within].min()
        # a little less, so that rounding takes none away
        return (1 - 1e-9) * float(self.limit - needed[within].min())

    def choice(self, allowance: float) -> int:
        """The configuration that all rows choose, or ``NOTHING``."""
        chooser = self.chooser
        squares = chooser.gaps.squares[None]
        needed = self.needed()[None] + allowance
        return int(self._choose(squares, needed, chooser.utility.values[None])[0])

    def choices(self, allowance: float = 0.0) -> Integers:
        """The configuration that each resample chooses: what needs least, if none is feasible."""
        chooser = self.chooser
        squares = chooser.gaps.drawn
        needed = self._needed(squares, chooser.accuracy.drawn) + allowance
        chosen = self._choose(squares, needed, chooser.utility.drawn)
        return np.where(chosen == NOTHING, needed.argmin(axis=1), chosen)

    def _needed(self, squares: Floats, accuracy: Floats) -> Floats:
        needed = -accuracy
        if self.rule.least is None:
            needed = squares
        if self.rule.confidence is not None:
            needed = needed + self.rule.quantile * self.chooser.gaps.errors_of_squares
        return np.where(self.allowed, needed, inf)

    def _choose(self, squares: Floats, needed: Floats, utility: Floats) -> Integers:
        quality = utility
        errors = self.chooser.utility.errors_of_differences
        if self.rule.least is not None:
            quality = -roots(squares)
            errors = self.chooser.gaps.errors_of_differences
        limit: float | Floats = self.limit
        if self.rule.least is None and self.rule.limit is None:
            # squares below 0 are no smaller gaps
            limit = np.maximum(needed.min(axis=1, keepdims=True), 0.0)
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
