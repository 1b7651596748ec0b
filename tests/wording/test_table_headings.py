"""Tables have one description: headings are written once, and all media show the same figures."""

from __future__ import annotations

import ast
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import metrifair
from metrifair import Audit, AuditOptions, Frontier, audit, find_groups
from metrifair.report import audit_html
from tests.seams.cli import show_audit, show_frontier, show_search
from tests.seams.figures import Interval
from tests.seams.report import audit_markdown, page_content
from tests.seams.tradeoff import FrontierRecord, Outcome, Point, TradeOff
from tests.seams.wording import (
    RATES,
    TERMS,
    Cell,
    Column,
    Term,
    finding_table,
    rate_rows,
    row_columns,
    row_table,
    sort_value,
)

ROOT = Path(metrifair.__file__).parent


def literals(source: str) -> Iterator[str]:
    """The texts of a module, without docstrings and without examples in them."""
    tree = ast.parse(source)
    statements = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in statements:
            yield str(node.value)


def all_literals() -> Counter[str]:
    """All texts of the package, and the quoted and marked-up ones of its pages."""
    found: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        if path.parent.name == "studio":  # fields of its form
            continue
        found.update(literals(path.read_text()))
    for path in ROOT.rglob("report/*"):
        if path.suffix in (".js", ".html"):
            texts = re.findall(r"[\"'`>]([^\"'`<>\n]+)[\"'`<]", path.read_text())
            found.update(texts)
    return found


def test_texts_are_found_in_code_and_not_in_docstrings() -> None:
    assert list(literals('"""Log loss"""\nname = "Base rate"\n')) == ["Base rate"]


def test_no_heading_is_written_in_two_places() -> None:
    found = all_literals()
    names = {term.name for term in TERMS.values()}
    assert len(names) == len(TERMS)  # no two figures have one name
    twice = {name: found[name] for name in names if found[name] != 1}
    assert twice == {}


def two_groups() -> Audit:
    """An audit of scores and labels: women are selected less often."""
    generator = np.random.default_rng(3)
    sex = np.repeat(["women", "men"], 150)
    label = generator.random(300) < 0.5
    score = np.clip(generator.random(300) * 0.6 + 0.2 * label + 0.15 * (sex == "men"), 0, 1)
    options = AuditOptions(resamples=50, permutations=99)
    return audit(
        label.astype(int), score, sensitive_features={"sex": sex}, random_state=0, options=options
    )


def media(result: Audit) -> dict[str, str]:
    """What people read of an audit: the page without its script, Markdown, and a wide terminal."""
    out = Console(file=io.StringIO(), width=400)
    show_audit(out, result.record)
    return {
        "page": audit_html(result.record).partition("<body>")[2].partition("<script")[0],
        "Markdown": "\n".join(audit_markdown(result.record)),
        "terminal": out.file.getvalue(),  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize(
    "key",
    [
        "groups",
        "within",
        "joint_interval",
        "significant",
        "selection_rate",
        "selection_ratio",
        "true_positive_rate",
        "auc",
        "calibration_error",
        "rows",
    ],
)
def test_a_new_name_is_read_by_all_media(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = two_groups()
    monkeypatch.setitem(TERMS, key, Term("A new name"))
    for medium, text in media(result).items():
        assert "A new name" in text, medium


def test_all_media_show_the_same_figures_of_a_finding() -> None:
    result = two_groups()
    finding = result.findings[0]
    table = finding_table(result.record)
    shown = [table[key].cell(finding).text for key in ("value", "joint", "significance")]
    assert shown[0] == f"{finding.value:.3f}"
    assert finding.joint_interval is not None
    assert shown[1].startswith(f"{finding.joint_interval.low:.3f} to ")
    for medium, text in media(result).items():
        mark = "men vs women" if "men vs women" in text else "women vs men"
        (line, *_) = (
            line for line in re.split(r"\n|</tr>", text) if mark in line and shown[0] in line
        )
        assert all(part in line for part in shown), medium


def test_all_media_show_the_same_rates() -> None:
    result = two_groups()
    (table,) = (table for table in result.decisions if table.within == "everyone")
    rates = {rate.group: rate for rate in table.rates}
    frame = result.rates().to_frame("pandas").set_index("group")
    for row in rate_rows(table):
        cells = [RATES[key].cell(row) for key in ("rate", "ratio", "true_positive_rate")]
        rate = rates[row.group.group]
        assert cells[0].text == f"{100 * rate.selection_rate:.1f}%"
        assert cells[2].text == f"{100 * float(rate.true_positive_rate or 0):.1f}%"
        assert frame.loc[rate.group, "rate"] == rate.selection_rate
        for medium, text in media(result).items():
            lines = [
                line
                for line in re.split(r"\n|</tr>", text)
                if re.search(rf"\b(?<!wo){rate.group}\b", line) and cells[0].text in line
            ]
            assert any(all(cell.text in line for cell in cells) for line in lines), medium


def two_models(*, failed: bool = False) -> Frontier:
    """A frontier with a chosen model; a failed one has no figures."""
    interval = Interval(0.712, 0.888)
    points = [
        Point(0, 0, 0.9, 0.4, 0.3, more={"auc": 0.95}, failed=failed),
        Point(1, 0, 0.8, 0.1234, 0.2, more={"auc": 0.93}, intervals={"accuracy": interval}),
    ]
    record = FrontierRecord(chosen=points[1], constant=Point(0, 0, 0.7, 0.0))
    return Frontier(TradeOff([Outcome(point.job, point) for point in points], record))


def frontier_media(front: Frontier) -> dict[str, str]:
    """What people read of the models of a frontier."""
    out = Console(file=io.StringIO(), width=400)
    show_frontier(out, front)
    return {
        "page": json.dumps(page_content(front.view())["table"], ensure_ascii=False),
        "terminal": out.file.getvalue(),  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize(
    "key", ["strength", "accuracy", "unfairness", "decision_unfairness", "auc"]
)
def test_a_new_name_is_read_by_all_media_of_a_frontier(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TERMS, key, Term("A new name"))
    for medium, text in frontier_media(two_models()).items():
        assert "A new name" in text, medium


def test_all_media_show_the_same_figures_of_a_model() -> None:
    front = two_models()
    row = front.view().rows[1]
    table = row_table(front.view())
    texts = [table[key].cell(row).text for key in ("accuracy", "unfairness", "auc")]
    assert texts == ["0.800", "0.123", "0.930"]
    for medium, text in frontier_media(front).items():
        line = next(part for part in re.split(r"\n|\]", text) if all(map(part.__contains__, texts)))
        assert re.search(r"\b1\b", line), medium
    frame = front.to_frame("pandas")
    assert frame["unfairness"].tolist() == [0.4, 0.1234]
    assert frame["accuracy_low"].tolist()[1] == 0.712
    assert frame["chosen"].tolist() == [False, True]


@pytest.mark.parametrize("key", ["group", "figure", "at_least", "worst_parent", "largest_gap"])
def test_a_new_name_is_read_by_all_media_of_a_search(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = {"region": ["north", "south"] * 200, "shift": ["day", "day", "night", "night"] * 100}
    search = find_groups(None, [1, 1, 1, 0] * 100, X)
    assert len(search.groups) == 1
    monkeypatch.setitem(TERMS, key, Term("A new name"))
    out = Console(file=io.StringIO(), width=400)
    show_search(out, search.record)
    assert "A new name" in out.file.getvalue()  # type: ignore[attr-defined]
    assert "A new name</th>" in search._page()


def test_a_failed_model_has_no_figures_in_tables() -> None:
    front = two_models(failed=True)
    row = front.view().rows[0]
    columns = row_columns(front.view())
    cells = {column.key: column.cell(row).text for column in columns}
    assert cells["accuracy"] == cells["auc"] == "\u2013"
    assert cells["training"] == "failed"
    values = {column.key: sort_value(front.view(), column, row) for column in columns}
    assert (values["strength"], values["accuracy"], values["training"]) == (0, None, 1)
    assert front.to_frame("polars")["accuracy"].to_list() == [None, 0.8]


def test_a_column_has_its_value_its_interval_and_its_columns_in_frames() -> None:
    column = RATES["ratio"]
    row = rate_rows(two_groups().decisions[0])[0]
    assert list(column.frame()) == ["ratio", "ratio_low", "ratio_high"]
    assert column.frame()["ratio_low"][1](row) == row.group.ratio_interval.low
    assert Column("rows", "").frame() == {}
    assert Column("missing").cell(row) == Cell("\u2013")
