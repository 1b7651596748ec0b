"""Records of audits made by hand: normal scores in each group, figures that fit them."""

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np

from tests.seams.auditing import AuditRecord, Decisions, Distribution, Finding, Note, WitnessCurve
from tests.seams.figures import Curves, GroupRates, Interval, RatioRule, compare_rates

GRID = [step / 120 for step in range(121)]
SETS = (("statistical_parity", "everyone", 0.0), ("equal_opportunity", "label=1", 0.12))


def bells_of(groups, shift=0.0):
    return {
        name: NormalDist(
            0.44 + shift + 0.16 * number / max(len(groups) - 1, 1), 0.16 + 0.01 * number
        )
        for number, name in enumerate(groups)
    }


def curves_of(bells, scale):
    return Curves(
        [scale * score for score in GRID],
        {name: [bell.pdf(score) / scale for score in GRID] for name, bell in bells.items()},
        {name: [bell.cdf(score) for score in GRID] for name, bell in bells.items()},
    )


def step_witness(left, right, scale):
    """The last score at which a member counts, and the utility that counts it."""
    at = max(
        range(len(GRID)), key=lambda index: abs(left.cdf(GRID[index]) - right.cdf(GRID[index]))
    )
    utility = [1.0 if index <= at else 0.0 for index in range(len(GRID))]
    curve = WitnessCurve(
        [scale * score for score in GRID], utility, (left.cdf(GRID[at]), right.cdf(GRID[at]))
    )
    return scale * GRID[at], curve


def slope_witness(left, right, scale):
    sign = scale if left.mean >= right.mean else -scale
    return WitnessCurve(
        [scale * score for score in GRID],
        [sign * score for score in GRID],
        (sign * left.mean, sign * right.mean),
    )


def findings_of(attribute, criterion, within, bells, size, scale):
    """Three metrics of every pair."""
    for a, b in combinations(bells, 2):
        left, right = bells[a], bells[b]
        at, step = step_witness(left, right, scale)
        gap = abs(step.expected[0] - step.expected[1])
        moved = scale * abs(left.mean - right.mean)
        shared = (attribute, criterion, within, (a, b), (size, 3 * size))
        yield Finding(
            *shared,
            "kolmogorov",
            gap,
            interval=Interval(max(0.0, gap - 0.04), gap + 0.05),
            certified=min(1.0, gap + 0.11),
            certified_jointly=min(1.0, gap + 0.15),
            p_value=0.002,
            joint_interval=Interval(max(0.0, gap - 0.06), gap + 0.07),
            significant=True,
            tested_by="bonferroni",
            witness=step,
            at=at,
            shares=step.expected,
            span=scale,
        )
        yield Finding(
            *shared,
            "wasserstein",
            moved,
            interval=Interval(0.8 * moved, 1.25 * moved),
            p_value=0.004,
            witness=slope_witness(left, right, scale),
            at=at,
            shares=step.expected,
            means=(scale * left.mean, scale * right.mean),
            span=scale,
        )
        yield Finding(*shared, "energy", moved / 6, unbiased=moved / 6.2, p_value=0.03)


def decisions_of(attribute, within, bells, size, scale):
    threshold = 0.5
    rates = [
        GroupRates(
            name,
            size * (2 * number + 1),
            1 - bell.cdf(threshold),
            0.8 - 0.01 * number,
            min(1.0, 1.2 - bell.cdf(threshold)),
            0.8 * (1 - bell.cdf(threshold)),
        )
        for number, (name, bell) in enumerate(bells.items())
    ]
    counts = np.array(
        [[(1 - rate.selection_rate) * rate.size, rate.selection_rate * rate.size] for rate in rates]
    )
    told = compare_rates(
        rates, counts, all_rows=sum(rate.size for rate in rates), rule=RatioRule(min_group_share=0)
    )
    selected = [rate.selection_rate for rate in rates]
    spread = max(selected) - min(selected)
    return Decisions(
        attribute,
        within,
        threshold * scale,
        told.rates,
        spread,
        told.ratio,
        told.interval,
        0.9 * spread,
        0.8 * spread,
        0.03,
        told.reference,
    )


def demo_record(attributes=None, *, sets=SETS, size=240, scale=1.0, **changes):
    """Two attributes, two sets, three metrics: the usual case."""
    attributes = attributes or {"sex": ("women", "men"), "age": ("under 30", "30 to 60", "over 60")}
    findings, distributions, decisions = [], [], []
    for attribute, groups in attributes.items():
        for criterion, within, shift in sets:
            bells = bells_of(groups, shift)
            findings += findings_of(attribute, criterion, within, bells, size, scale)
            distributions.append(Distribution(attribute, within, curves_of(bells, scale)))
        decisions.append(decisions_of(attribute, "everyone", bells_of(groups), size, scale))
    given = {
        "rows": 1989,
        "left_out": 12,
        "score_range": (0.0, scale),
        "confidence": 0.95,
        "findings": findings,
        "decisions": decisions,
        "distributions": distributions,
        "notes": [
            Note("groups_are_labels", {"attribute": "sex"}),
            Note(
                "small_groups",
                {
                    "groups": [["over 60", "age", "everyone", 24]],
                    "min_group_size": 30,
                    "fewest": None,
                },
            ),
            Note("left_out_rows", {"rows": 12}),
        ],
    }
    return AuditRecord(**(given | changes))


def bare_finding(number, *, metric="kolmogorov", attribute="region"):
    """A finding with nothing but its value."""
    value = abs(math.sin(number + 1))
    return Finding(
        attribute, "statistical_parity", "everyone", (f"g{number}", "rest"), (5, 900), metric, value
    )


def many_findings(count, *, attribute="region"):
    """As many full findings as asked for, each with its own witness and sentences."""
    metrics = ("kolmogorov", "wasserstein", "energy")
    for number in range(count):
        value = round(abs(math.sin(number + 1)), 6)
        yield Finding(
            attribute,
            "equalized_odds",
            f"label={number % 2},county={number // 60}",
            (f"district number {number % 29}", f"district number {(number + 7) % 30}"),
            (100 + number, 1000 + number),
            metrics[number % 3],
            value,
            unbiased=value - 0.001,
            interval=Interval(value - 0.012345, value + 0.012345),
            certified=value + 0.101234,
            certified_jointly=value + 0.201234,
            p_value=0.0123,
            joint_interval=Interval(value - 0.02, value + 0.02),
            significant=True,
            tested_by="joint_bounds",
            witness=WitnessCurve(
                GRID, [math.sin(9 * score + number) for score in GRID], (0.25, 0.75)
            ),
            at=number / 1000,
            shares=(0.62, 0.41),
            span=1.0,
        )
