"""A small but realistic frontier: strengths from 0 on a logarithmic grid, seeds, groups with
normal scores.
"""

import math
import random
from statistics import NormalDist

from tests.seams.figures import Curves, Interval
from tests.seams.tradeoff import FrontierNote, Point
from tests.seams.wording import FrontierView

HOSTILE = "<script>alert(1)</script>"


def strengths_of(count):
    return (0.0, *(10 ** (-2 + 4 * step / max(count - 2, 1)) for step in range(count - 1)))


def point_of(strength, seed, *, decisions=True):
    """Unfairness falls with the strength, accuracy with the lost unfairness; seeds add a little
    noise.
    """
    noise = random.Random(f"{strength:.6g} {seed}")
    gap = 0.38 / (1 + 4 * strength) ** 0.7 + abs(noise.gauss(0, 0.008))
    accuracy = 0.861 - 0.09 * (1 - gap / 0.4) ** 2.4 + noise.gauss(0, 0.0025)
    more = {"auc": accuracy + 0.05, "log_loss": 1.16 - accuracy, "four_fifths": 1 - gap}
    intervals = {
        "accuracy": Interval(accuracy - 0.012, accuracy + 0.012),
        "unfairness": Interval(gap * 0.8, gap * 1.2),
    }
    return Point(
        strength,
        seed,
        accuracy,
        gap,
        gap * 0.8 if decisions else None,
        more if decisions else {},
        intervals,
    )


def curves_of(strength, groups, *, size=160):
    """Normal scores, the groups' means drawn together by the strength."""
    grid = [step / (size - 1) for step in range(size)]
    pull = 1 / (1 + 4 * strength) ** 0.7
    bells = {
        name: NormalDist(0.52 + 0.16 * pull * (number - (len(groups) - 1) / 2), 0.09 + 0.08 * pull)
        for number, name in enumerate(groups)
    }
    return Curves(
        grid,
        {name: [bell.pdf(score) for score in grid] for name, bell in bells.items()},
        {name: [bell.cdf(score) for score in grid] for name, bell in bells.items()},
    )


def demo_view(*, count=25, seeds=2, groups=("Black", "White"), failed=1, decisions=True, **changes):
    """25 strengths x 2 seeds, the last strengths failed."""
    strengths = strengths_of(count)
    points = [
        point_of(strength, seed, decisions=decisions)
        for strength in strengths
        for seed in range(seeds)
    ]
    bad = [
        Point(strength, seed, math.nan, math.nan, failed=True)
        for strength in strengths[count - failed :]
        for seed in range(seeds)
    ]
    kept = [point for point in points if point.strength not in strengths[count - failed :]]
    chosen = next((point for point in kept if point.unfairness < 0.1), kept[0] if kept else None)
    given = {
        "points": [*kept, *bad],
        "curves": {
            strength: curves_of(strength, groups) for strength in strengths[: count - failed]
        },
        "chosen": chosen,
        "title": "Mortgage approvals in Boston",
        "groups": groups,
        "notes": (FrontierNote("cross_validation", {"rows": 1989, "folds": 5, "test": 0}),),
        "noise": 0.098,
    }
    return FrontierView(**(given | changes))
