"""A search for groups in an audit: its page, JSON and summary, and searches of other rows."""

from __future__ import annotations

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from metrifair import Audit, AuditOptions, DataError, audit, find_groups
from tests.seams.auditing import AuditRecord
from tests.seams.report import audit_markdown

ROWS = 2_000
FAST = AuditOptions(resamples=20, permutations=19)


@cache
def rows() -> dict[str, Any]:
    """Farm workers at night are rarely selected."""
    rng = np.random.default_rng(0)
    job = rng.choice(["Sales", "<b>Farm"], ROWS)
    shift = rng.choice(["day", "night"], ROWS)
    worse = (job == "<b>Farm") & (shift == "night")
    selected = rng.random(ROWS) < np.where(worse, 0.3, 0.7)
    return {
        "y_true": rng.choice(["no", "yes"], ROWS),
        "y_pred": np.where(selected, 0.8, 0.2),
        "X": {"job": job, "shift": shift},
        "sex": rng.choice(["f", "m"], ROWS),
    }


def audited(**changes: Any) -> Audit:
    arguments = {"sensitive_features": {"sex": rows()["sex"]}, "options": FAST, **changes}
    return audit(rows()["y_true"], rows()["y_pred"], **arguments)


def searched(**changes: Any) -> Any:
    protected = {"sex": rows()["sex"]}
    arguments = {"X_audit": rows()["X"], "sensitive_features": protected, **changes}
    return find_groups(rows()["y_true"], rows()["y_pred"], **arguments)


@cache
def with_search() -> Audit:
    return audited().with_groups(searched())


def test_the_json_has_the_search_and_can_be_read_again() -> None:
    search = searched()
    content = with_search().to_json()
    found = json.loads(content)["group_search"]
    expected = json.loads(search.to_json())
    assert found["worse"] == expected["worse"]
    assert len(found["worse"]) > 0
    assert found["largest_gaps"] == expected["largest_gaps"]
    again = msgspec.json.decode(content.encode(), type=AuditRecord)
    assert again.group_search == search.record


def test_an_audit_without_a_search_says_nothing_of_one() -> None:
    plain = audited()
    assert "group_search" not in json.loads(plain.to_json())
    assert not any("Search for groups" in sentence for sentence in plain.summary)


def test_the_summary_has_the_number_of_groups_and_the_largest_bound() -> None:
    plain, found = (result.summary.splitlines() for result in (audited(), with_search()))
    added = [sentence for sentence in found if sentence not in plain]
    assert len(added) == 2
    assert added[0].startswith("Search for groups: of ")
    assert "job=<b>Farm and shift=night" in added[1]


def test_a_search_that_finds_nothing_gives_its_bound() -> None:
    rng = np.random.default_rng(3)
    y_pred = (rng.random(ROWS) < 0.6).astype(float)
    search = find_groups(None, y_pred, rows()["X"])
    result = audit(None, y_pred, sensitive_features=rows()["sex"], options=FAST)
    summary = result.with_groups(search).summary.splitlines()
    assert any(sentence.startswith("Search for groups: none of the ") for sentence in summary)
    assert any("is worse than the other rows by more than" in sentence for sentence in summary)


@pytest.mark.parametrize("standard", [None, "four-fifths"])
def test_the_page_shows_the_groups_with_their_bars(standard: Any, tmp_path: Path) -> None:
    path = tmp_path / "audit.html"
    with_search().rates(standard).to_html(path)
    page = path.read_text(encoding="utf-8")
    assert page.count('id="group-search"') == 1
    assert "job=&lt;b&gt;Farm and shift=night" in page
    assert "<b>Farm" not in page
    assert page.count('class="change-bar"') == len(searched().groups)
    assert "How large a gap could be missed" in page
    assert "Worst parent" in page


def test_a_copy_keeps_the_search_without_its_counts() -> None:
    copy = pickle.loads(pickle.dumps(with_search()))
    assert copy.record.group_search == with_search().record.group_search
    assert with_search().search_counts is not None
    assert copy.search_counts is None


def test_rows_with_a_missing_group_are_searched_too() -> None:
    sex = np.where(np.arange(ROWS) < 30, None, rows()["sex"])
    result = audited(sensitive_features={"sex": sex}).with_groups(searched())
    assert result.record.rows == ROWS - 30
    assert result.record.group_search is not None
    assert result.record.group_search.rows == ROWS


def halved(name: str) -> Any:
    value = rows()[name]
    if isinstance(value, dict):
        return {key: column[::2] for key, column in value.items()}
    return value[::2]


def other_rows() -> Any:
    return find_groups(halved("y_true"), halved("y_pred"), halved("X"))


@pytest.mark.parametrize(
    ("of_audit", "search", "message"),
    [
        ({}, other_rows, "group_search must have the 2,000 rows of the audit, got 1000"),
        ({}, lambda: searched(threshold=0.3), "the threshold of the audit, 0.5, got 0.3"),
        (
            {},
            lambda: searched(outcome="missed positives", pos_label="no"),
            "the positive label of the audit, 'yes', got 'no'",
        ),
        ({"favorable": "low"}, searched, "high scores as favorable, and this audit low ones"),
        ({}, lambda: searched(clusters=np.arange(ROWS) // 2), "the clusters of the audit"),
    ],
)
def test_a_search_of_something_else_is_refused(
    of_audit: dict[str, Any], search: Any, message: str
) -> None:
    with pytest.raises(DataError) as error:
        audited(**of_audit).with_groups(search())
    assert message in str(error.value)


def test_markdown_lists_the_groups() -> None:
    text = "\n".join(audit_markdown(with_search().record))
    assert "**Groups that are worse**" in text
    assert text.count(r"\<b\>Farm and shift=night") == 2  # in the summary, and in the table
    assert "**Groups that are worse**" not in "\n".join(audit_markdown(audited().record))
