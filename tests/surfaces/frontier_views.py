"""What frontiers say of a choice: figures made by hand, from which each sentence follows."""

from __future__ import annotations

from dataclasses import replace

from tests.report.frontiers import demo_view
from tests.seams.figures import UTILITIES, Interval
from tests.seams.tradeoff import Change, Goal, Point
from tests.seams.wording import FrontierView, frontier_highlights, headline, summary

TWO = [Point(0, 0, 0.9, 0.4), Point(2, 0, 0.85, 0.1)]
CHOSEN = TWO[1]
CHANGE = Change(
    TWO[0], -0.05, -0.3, {"utility": Interval(-0.06, -0.04), "unfairness": Interval(-0.4, 0.01)}
)
NOISE = replace(
    CHOSEN, unfairness=0.0, intervals={"unfairness": Interval(0.0, 0.062)}, is_noise=True
)
WIDE = replace(CHOSEN, intervals={"unfairness": Interval(0.05, 0.15)})
CONSTANT = replace(CHOSEN, marks={"accuracy": "constant"})
WITH_INTERVALS = replace(
    CHOSEN,
    unfairness=0.135,
    more={"auc": 0.829},
    intervals={"auc": Interval(0.798, 0.86), "unfairness": Interval(0.101, 0.17)},
)
WORSE = Point(3, 0, 0.7, 0.6)
FAIR = Point(0, 0, 0.9, 0.0)
FAMILIES = [replace(TWO[0], family="linear"), replace(TWO[1], family="moved")]
PARAMETERS = {"linear": "strength", "moved": "tolerance"}
AUC = UTILITIES["auc"]
SURE = Goal(0.15, confidence=0.9)
WITHOUT_GROUP = Goal(0.05, confidence=0.9, needs_group=False)

VIEWS: dict[str, FrontierView] = {
    "no choice": FrontierView(TWO),
    "a choice": FrontierView(TWO, chosen=CHOSEN),
    "a choice and its cost": FrontierView(TWO, chosen=CHOSEN, change=CHANGE, goal=Goal(0.1)),
    "a choice of R squared": FrontierView(TWO, chosen=CHOSEN, accuracy_name="R2", change=CHANGE),
    "no penalty": FrontierView(TWO, chosen=TWO[0], change=replace(CHANGE, utility=0.0)),
    "a choice of a family": FrontierView(FAMILIES, chosen=FAMILIES[1], parameters=PARAMETERS),
    "figures with intervals": FrontierView(
        [TWO[0], WITH_INTERVALS], chosen=WITH_INTERVALS, utility=AUC
    ),
    "figures of test rows": FrontierView(
        [TWO[0], WITH_INTERVALS], chosen=WITH_INTERVALS, utility=AUC, test_rows=500
    ),
    "an unfairness that could be 0": FrontierView(
        [TWO[0], NOISE], chosen=NOISE, change=CHANGE, goal=Goal(0.1)
    ),
    "an unfairness that could be 0, not chosen": FrontierView([NOISE]),
    "a constant predictor": FrontierView([TWO[0], CONSTANT], chosen=CONSTANT, goal=Goal(0.2)),
    "within a limit with confidence": FrontierView(
        TWO, chosen=CHOSEN, goal=Goal(0.1, confidence=0.9)
    ),
    "within a limit on test rows": FrontierView(TWO, chosen=CHOSEN, goal=Goal(0.1), test_rows=500),
    "within a limit that its interval reaches": FrontierView(TWO, chosen=WIDE, goal=Goal(0.12)),
    "beyond a limit": FrontierView(TWO, chosen=CHOSEN, goal=Goal(0.0999)),
    "beyond a limit on test rows": FrontierView(
        TWO, chosen=CHOSEN, goal=Goal(0.0999), test_rows=500
    ),
    "the least unfair of an accuracy": FrontierView(
        TWO, chosen=CHOSEN, goal=Goal(min_accuracy=0.8)
    ),
    "best effort": FrontierView(TWO, chosen=CHOSEN, goal=Goal(0.05), is_best_effort=True),
    "best effort without the group": FrontierView(
        TWO, chosen=CHOSEN, goal=WITHOUT_GROUP, is_best_effort=True
    ),
    "best effort for an accuracy": FrontierView(
        TWO, chosen=CHOSEN, goal=Goal(min_accuracy=0.95), is_best_effort=True
    ),
    "best effort for a limit that rows cannot verify": FrontierView(
        TWO, chosen=CHOSEN, goal=Goal(0.05), is_best_effort=True, noise=0.0742
    ),
    "no model meets a limit": FrontierView(TWO, unmet=Goal(0.15), noise=0.1164),
    "no model meets a limit with confidence": FrontierView(TWO, unmet=SURE, noise=0.1164),
    "no model meets a limit that rows cannot verify": FrontierView(
        TWO, unmet=Goal(0.05), noise=0.1164
    ),
    "no model needs the group": FrontierView(TWO, unmet=Goal(0.5, needs_group=True), noise=0.1164),
    "no model meets a later limit": FrontierView(
        TWO, chosen=CHOSEN, unmet=Goal(0.15), noise=0.1164
    ),
    "a choice worse than the best in both": FrontierView([*TWO, WORSE], chosen=WORSE),
    "a perfectly fair best model": FrontierView(
        [FAIR, Point(1, 0, 0.8, 0.2)], chosen=Point(1, 0, 0.8, 0.2)
    ),
    "one model": demo_view(count=1, seeds=1, failed=0),
    "failures": demo_view(),
    "failures alone": demo_view(count=2, failed=2),
}


def texts() -> dict[str, str]:
    """The headline and the rest of the summary, then the models worth a glance."""
    return {name: text_of(view) for name, view in VIEWS.items()}


def text_of(view: FrontierView) -> str:
    """What a view says."""
    lines = headline(view)
    rest = summary(view)[len(lines) :]
    glances = [f"[{found.heading}] {found.sentence}" for found in frontier_highlights(view)]
    return "\n".join([*lines, *(f"({line})" for line in rest), *glances])
