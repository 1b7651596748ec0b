"""The significance of findings, adjusted for all comparisons, and the gaps that rows detect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from metrifair.auditing.records import (
    Finding,
)
from metrifair.figures.power import detectable_gap

_LEVEL_ROUNDING = 1e-9


def with_significance(
    findings: Sequence[Finding], confidence: float, permutations: int
) -> list[Finding]:
    """Add the significance of findings with enough rows, adjusted for all comparisons by a metric.

    A joint interval decides by whether it excludes 0, so that no verdict contradicts the interval
    beside it. Without one, a p-value of at most (1 - confidence) over their number is significant
    (Bonferroni), unless no p-value of so many permutations can be that small. For cuts, p-values of
    other metrics count only if the dependence (energy) is significant: in this order, the metrics
    of an attribute keep the level together.
    """
    numbers = Counter(
        finding.metric for finding in findings if finding.assessed and finding.p_value is not None
    )
    adjusted = []
    for finding in findings:
        level = (1 - confidence) / max(1, numbers[finding.metric])
        if finding.assessed and finding.joint_interval is not None:
            adjusted.append(
                replace(
                    finding,
                    significant=finding.joint_interval.low > 0,
                    tested_by="joint_bounds",
                )
            )
        elif (
            finding.assessed
            and finding.p_value is not None
            and level * (1 + permutations) >= 1 - _LEVEL_ROUNDING
        ):
            adjusted.append(
                replace(
                    finding,
                    significant=finding.p_value <= level,
                    tested_by="bonferroni",
                )
            )
        else:
            adjusted.append(finding)
    independent = {
        _scope(finding)
        for finding in adjusted
        if finding.cuts and finding.metric == "energy" and finding.significant is False
    }
    compared = Counter(finding.metric for finding in findings if finding.assessed)
    return [
        replace(finding, significant=False)
        if finding.tested_by == "bonferroni" and _scope(finding) in independent
        else finding
        for finding in (
            _with_detectable(finding, confidence, compared[finding.metric]) for finding in adjusted
        )
    ]


def _with_detectable(finding: Finding, confidence: float, comparisons: int) -> Finding:
    """Add the smallest detectable gap to a finding that is not significant; for pairs of groups
    without weights.
    """
    if (
        finding.significant is not False
        or finding.metric != "kolmogorov"
        or finding.cuts
        or finding.certified is None
    ):
        return finding
    rate = 0.5
    if finding.shares is not None:
        rate = 1 - sum(finding.shares) / 2
    if not finding.decided:
        gap = detectable_gap(
            *finding.sizes,
            metric="kolmogorov",
            confidence=confidence,
            comparisons=comparisons,
        )
    elif 0 < rate < 1:
        gap = detectable_gap(
            *finding.sizes,
            rate=rate,
            confidence=confidence,
            comparisons=comparisons,
        )
    else:
        return finding
    return replace(finding, detectable=gap)


def _scope(finding: Finding) -> tuple[str, str, str]:
    return finding.attribute, finding.criterion, finding.within
