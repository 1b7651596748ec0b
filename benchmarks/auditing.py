"""The audit: counting against fairlearn's MetricFrame and AIF360, and what a whole audit of a
million scores takes.
"""

from __future__ import annotations

import time
from functools import partial

import fairlearn.metrics
import numpy as np
import pandas as pd
import torch
from aif360.datasets import BinaryLabelDataset
from aif360.metrics import ClassificationMetric
from sklearn.metrics import accuracy_score

from benchmarks.timing import Claim, peak_memory_above, print_table, seconds, shrunk
from metrifair import AuditOptions, GroupProbabilities, audit
from metrifair.auditing.measure.decisions import decision_tables
from metrifair.auditing.measure.selection import selection_for
from metrifair.auditing.records import Decisions
from metrifair.auditing.request import Request
from metrifair.auditing.sources.memory import MemorySource
from metrifair.problem.attributes import group_codes

METRICS = {"selection_rate": fairlearn.metrics.selection_rate, "accuracy": accuracy_score}


def table(rows: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, decisions and groups."""
    generator = np.random.default_rng(0)
    rows = shrunk(rows)
    label, decision = generator.integers(0, 2, (2, rows))
    return label, decision, generator.integers(0, groups, rows)


def ours(
    label: np.ndarray, decision: np.ndarray, group: np.ndarray, *, resamples: int = 0
) -> Decisions:
    request = Request(resamples=resamples)
    sample = MemorySource(decision, group, label).counts(request)
    selection = selection_for(sample, request)
    assert selection is not None
    return decision_tables(sample, selection, request)[0]


def theirs(
    label: np.ndarray, decision: np.ndarray, group: np.ndarray, *, resamples: int = 0
) -> None:
    again = (
        {"n_boot": resamples, "ci_quantiles": [0.025, 0.975], "random_state": 0}
        if resamples
        else {}
    )
    frame = fairlearn.metrics.MetricFrame(
        metrics=METRICS, y_true=label, y_pred=decision, sensitive_features=group, **again
    )
    frame.by_group, frame.difference(), frame.ratio()


def against_metric_frame() -> list[Claim]:
    rows = []
    for count, resamples, what in (
        (1_000_000, 0, "rates"),
        (100_000, 50, "rates with an interval of 50 resamples"),
    ):
        data = table(count, 4)
        fast = seconds(
            lambda data=data, resamples=resamples: ours(*data, resamples=resamples), repeat=3
        )
        start = time.perf_counter()
        theirs(*data, resamples=resamples)
        slow = time.perf_counter() - start
        claim = f"2 metrics x 4 groups x {count:,} rows, {what}: against fairlearn's MetricFrame ({slow:.1f} s)"
        rows.append(Claim(claim, f"{slow / fast:.0f}x", ">= 50x", slow / fast >= 50))
    return rows


def against_aif360() -> list[Claim]:
    """The rates behind parity, disparate impact, equal opportunity and accuracy; its data set
    is made beforehand.
    """
    label, decision, group = table(1_000_000, 2)
    frame = pd.DataFrame({"label": label, "group": group})
    true = BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])
    decided = true.copy()
    decided.labels = decision[:, None].astype(float)

    def rates() -> None:
        metric = ClassificationMetric(
            true, decided, unprivileged_groups=[{"group": 0}], privileged_groups=[{"group": 1}]
        )
        (
            metric.statistical_parity_difference(),
            metric.disparate_impact(),
            metric.equal_opportunity_difference(),
        )
        metric.accuracy(privileged=True), metric.accuracy(privileged=False)

    fast, slow = seconds(lambda: ours(label, decision, group), repeat=3), seconds(rates, repeat=1)
    claim = f"rates and accuracy of 2 groups x 1,000,000 rows: against AIF360's ClassificationMetric ({slow:.1f} s)"
    return [Claim(claim, f"{slow / fast:.0f}x", "", True)]


def scores() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, shrunk(1_000_000))
    return generator.beta(2 + group, 3), group


def whole_audit() -> list[Claim]:
    def run() -> None:
        score, group = scores()
        audit(None, score, sensitive_features=group, random_state=0)

    # Memory first: a process begins with what its parent held.
    memory = peak_memory_above(scores, run) / 1e6
    took = seconds(run, repeat=1)
    claim = "audit of 1,000,000 scores, 2 groups, 3 metrics, 500 resamples, 999 permutations"
    return [
        Claim(f"{claim}: time", f"{took:.1f} s", "<= 10 s", took <= 10),
        Claim(f"{claim}: peak memory", f"{memory:.0f} MB", "< 600 MB", memory < 600),
    ]


def many_groups() -> list[Claim]:
    """Processor time: what other programs take does not count."""
    score, _ = scores()
    rows = []
    for count, limit in ((1_000, 10), (5_000, 40)):
        group = np.random.default_rng(1).integers(0, shrunk(count, 10), len(score)).astype(str)
        start = time.process_time()
        audit(
            None,
            score,
            sensitive_features=group,
            options=AuditOptions(max_groups=count),
            random_state=0,
        )
        took = time.process_time() - start
        claim = (
            f"audit of 1,000,000 scores, {count:,} groups, each against the rest: processor time"
        )
        rows.append(Claim(claim, f"{took:.1f} s", f"<= {limit} s", took <= limit))
    return rows


def text_groups() -> list[Claim]:
    """Processor time of text groups over that of their codes: the columns alone."""
    rows = shrunk(1_000_000)
    generator = np.random.default_rng(0)
    race = np.array(["asian", "black", "hispanic", "other", "white"])[
        generator.integers(0, 5, rows)
    ]
    sex = np.array(["female", "male"])[generator.integers(0, 2, rows)]
    tables = {
        "text groups": pd.DataFrame({"race": race}),
        "intersections of two text attributes": pd.DataFrame({"race": race, "sex": sex}),
    }
    claims = []
    for (what, table), limit in zip(tables.items(), (0.1, 0.3), strict=True):
        start = time.process_time()
        group_codes(table, intersectional=len(table.columns) > 1)
        took = time.process_time() - start
        claim = f"{what} of 1,000,000 rows (pandas) as codes: processor time"
        claims.append(Claim(claim, f"{took:.2f} s", f"<= {limit} s", took <= limit))
    return claims


def by_probabilities() -> list[Claim]:
    """Six probabilities for each row against the groups themselves, both without permutations."""
    generator, names = np.random.default_rng(0), [f"g{place}" for place in range(6)]
    table = generator.dirichlet(np.ones(6), shrunk(1_000_000))
    place = (table.cumsum(1) < generator.uniform(size=(len(table), 1))).sum(1).clip(max=5)
    score = generator.beta(2 + place / 5, 3)
    probabilities = GroupProbabilities(dict(zip(names, table.T, strict=True)), attribute="race")
    options = AuditOptions(permutations=0)

    def audited(groups: object) -> float:
        run = partial(
            audit, None, score, sensitive_features=groups, options=options, random_state=0
        )
        return seconds(run, repeat=1)

    hard, soft = audited(np.array(names)[place]), audited(probabilities)
    claim = f"audit of 1,000,000 scores with 6 probabilities each: against an audit of 6 known groups ({hard:.1f} s)"
    return [Claim(claim, f"{soft / hard:.1f}x", "<= 3x", soft / hard <= 3)]


def along_a_number() -> list[Claim]:
    """A number with a million values, cut in two at each of its percentiles, against two groups."""
    score, group = scores()
    number = np.random.default_rng(1).gamma(9, 5, len(score))
    two = seconds(lambda: audit(None, score, sensitive_features=group, random_state=0), repeat=1)
    cuts = seconds(
        lambda: audit(None, score, sensitive_features=number, continuous=True, random_state=0),
        repeat=1,
    )
    claim = f"audit of 1,000,000 scores along a number: against an audit of 2 groups ({two:.1f} s)"
    return [Claim(claim, f"{cuts / two:.1f}x", "<= 10x", cuts / two <= 10)]


def main() -> None:
    torch.set_num_threads(1)
    rows = [*whole_audit(), *many_groups(), *text_groups(), *by_probabilities(), *along_a_number()]
    rows += [*against_metric_frame(), *against_aif360()]
    print_table("Audit (one thread)", rows)


if __name__ == "__main__":
    main()
