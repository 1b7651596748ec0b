"""A choice is told in the same words everywhere: headline, verdict of a limit, notes."""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from metrifair import Frontier
from tests.seams.cli import show_frontier
from tests.seams.figures import Interval
from tests.seams.report import frontier_html
from tests.seams.tradeoff import (
    Change,
    FrontierNote,
    FrontierRecord,
    Goal,
    Outcome,
    Point,
    TradeOff,
)
from tests.seams.wording import headline, note_texts, verdict

NONE = Point(0, 0, 0.9, 0.4)
CHOSEN = Point(1, 0, 0.8, 0.1, intervals={"unfairness": Interval(0.05, 0.15)})
RECORD = FrontierRecord(
    chosen=CHOSEN,
    goal=Goal(0.2),
    change=Change(NONE, -0.1, -0.3),
    choice_notes=(FrontierNote("only_unlike_folds"),),
    notes=(FrontierNote("chance", {"unfairness": 0.1, "comparisons": 1}),),
)


def media(front: Frontier) -> dict[str, str]:
    """What people read of a choice."""
    out = Console(file=io.StringIO(), width=10_000)
    show_frontier(out, front)
    page = frontier_html(front.view()).partition("<body>")[2].partition("<main>")[0]
    return {
        "terminal": out.file.getvalue(),  # type: ignore[attr-defined]
        "page": html.unescape(re.sub("<[^>]*>", " ", page)),
        "Python": front.summary,
        "JSON": " ".join(json.loads(front.to_json())["summary"]),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"goal": None},
        {"goal": Goal(0.05)},
        {"goal": Goal(0.05), "is_best_effort": True},
        {"goal": Goal(min_accuracy=0.7)},
        {"chosen": None, "goal": None, "change": None},
        {"unmet": Goal(0.01)},
        {"test_rows": 100},
    ],
    ids=str,
)
def test_all_media_tell_a_choice_in_the_same_words(changes: dict[str, Any]) -> None:
    record = replace(RECORD, **changes)
    outcomes = [Outcome(point.job, point) for point in (NONE, CHOSEN)]
    front = Frontier(TradeOff(outcomes, record))
    view = front.view()
    sentences = [*headline(view), *filter(None, [verdict(view)])]
    assert sentences
    assert set(filter(None, [verdict(view)])) <= set(headline(view))
    for medium, text in media(front).items():
        read = " ".join(text.split())
        assert [part for part in sentences if part not in read] == [], medium
        assert max(read.count(part) for part in sentences) == 1, medium
    assert repr(front).endswith(headline(view)[0])
    notes = note_texts(view)
    assert len(notes) == 2
    for medium in ("terminal", "page", "Python"):
        read = " ".join(media(front)[medium].split())
        assert [read.count(note) for note in notes] == [1, 1], medium
