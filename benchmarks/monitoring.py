"""How soon ``monitor`` raises an alarm, and how often a false one: `python -m benchmarks.monitoring
[--streams 60]`.

Two groups of equal size have normal scores, one of them ahead. The table is the one of
docs/results/differences.md: alarms with the exact test of unchanged scores, and with the
approximate test of distances alone.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from metrifair import AuditOptions, AuditState
from metrifair.auditing.changes.change_test import NO_TEST, ChangeTest
from metrifair.auditing.changes.series import series_record

BEFORE, AFTER = 4, 8  # looks before and after a change
UNCHANGED = 20  # looks of a stream without a change


class Setting(NamedTuple):
    """Rows of a look, and by how much the Kolmogorov distance grows: by a shift of one group,
    or of both.
    """

    rows: int
    rise: float = 0.0
    both: bool = False
    ahead: float = 0.4  # of one group, in standard deviations, before the change


SETTINGS = (
    Setting(2000, 0.1),
    Setting(2000, 0.1, both=True),
    Setting(2000, 0.1, ahead=0.0),
    Setting(2000, 0.2),
    Setting(200, 0.2),
    Setting(200, 0.3),
    Setting(200),
    Setting(200, ahead=0.0),
)


def look(setting: Setting, *, changed: bool, generator: np.random.Generator) -> AuditState:
    """The counts of one look."""
    group, ahead = np.repeat(["a", "b"], setting.rows // 2), np.array([0.0, setting.ahead])
    if changed:
        gap = 2 * norm.ppf((2 * norm.cdf(setting.ahead / 2) + setting.rise) / 2)
        rise = gap - setting.ahead
        ahead += [-rise / 2, rise / 2] if setting.both else [0.0, rise]
    scores = generator.normal(size=len(group)) + np.repeat(ahead, setting.rows // 2)
    return AuditState().add(None, expit(scores).round(3), sensitive_features=group)


def delays(setting: Setting, seed: int) -> dict[str, int | None]:
    """The looks from the change to the first alarm; in a stream without a change, those to a
    false alarm.
    """
    generator = np.random.default_rng([seed, setting.rows, int(100 * setting.rise)])
    start, looks = (BEFORE, BEFORE + AFTER) if setting.rise else (0, UNCHANGED)
    options = AuditOptions(resamples=100, permutations=0)
    audits = {
        f"{number}": look(
            setting, changed=setting.rise > 0 and number >= start, generator=generator
        ).audit(random_state=number, options=options)
        for number in range(looks)
    }
    tests = {
        "exact": ChangeTest.of([audit.rows for audit in audits.values()], seed),
        "approximate": NO_TEST,
    }
    records = {name: audit.record for name, audit in audits.items()}
    delay: dict[str, int | None] = {}
    for name, test in tests.items():
        series = series_record(records, confidence=0.95, min_group_size=30, change_test=test).series
        alarms = [
            int(row.look)
            for row in series
            if row.alarm in ("worse", "better") and int(row.look) >= start
        ]
        delay[name] = min(alarms) - start if alarms else None
    return delay


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.monitoring", description=__doc__.split(":")[0]
    )
    parser.add_argument("--streams", type=int, default=60)
    streams = parser.parse_args().streams
    print("| rows of a look | rise | shifted | before | test | at once | by the last look |")
    print("|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        runs = [delays(setting, seed) for seed in range(streams)]
        for test in runs[0]:
            first = [run[test] for run in runs]
            at_once, ever = first.count(0) / streams, 1 - first.count(None) / streams
            shifted = "both groups" if setting.both else "one group" if setting.rise else "none"
            rise, before = f"{setting.rise:.1f}", f"{2 * norm.cdf(setting.ahead / 2) - 1:.2f}"
            print(
                f"| {setting.rows:,} | {rise} | {shifted} | {before} | {test} | {at_once:.0%} | "
                f"{ever:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
