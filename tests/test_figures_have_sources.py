"""Every figure in the prose of README and of a guide is printed by its page's code, recorded in a
file, or a setting.

A measured figure that no file records fails here: record it, or remove it. Pages under docs/results
are the record: each is listed with the test that rebuilds or checks it, or with the command that
writes it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks import record

ROOT = Path(__file__).parents[1]
RESULTS = "docs/results/"

_CODE = re.compile(r"^[ ]*(```|~~~).*?^[ ]*\1[ ]*$", re.MULTILINE | re.DOTALL)
_NOT_PROSE = re.compile(
    f"{re.escape(record.BEGIN)}.*?{re.escape(record.END)}|<!--.*?-->|`[^`\n]*`|\\]\\([^)]*\\)|^---$.*?^---$",
    re.MULTILINE | re.DOTALL,
)
_UNITS = "x|%| %| times| s| ms| MB| MiB| GB| minutes?| seconds?| hours?| of [0-9,]+ (?:series|data sets|audits|runs)"
_FIGURE = re.compile(rf"(?<![\w.,/-])(\d[\d,]*\.\d+(?:e-?\d+)?|\d[\d,]*(?=(?:{_UNITS})(?!\w)))")

RECORDED = {
    # the story of the demo
    "README.md": [f"{RESULTS}boosting/boosting.md", "tests/cli/test_cli_app.py"],
    "docs/boosting.md": [f"{RESULTS}boosting-notes.md"],
    "docs/evidence.md": [f"{RESULTS}power.md"],
    "docs/choosing.md": [f"{RESULTS}README.md"],
    "docs/comparing.md": [f"{RESULTS}differences.md"],
    "docs/defaults.md": [f"{RESULTS}defaults.md"],
    "docs/finding-groups.md": [f"{RESULTS}groups.md"],
    "docs/start.md": ["README.md"],
    "docs/good-values.md": [f"{RESULTS}boosting/boosting.md"],
    "docs/group-probabilities.md": [
        f"{RESULTS}group-probabilities.md",
        f"{RESULTS}hidden-groups/hidden-groups.md",
    ],
    "docs/numbers.md": [f"{RESULTS}numeric-audits.md"],
    "docs/concepts/unbiased-batches.md": [f"{RESULTS}README.md"],
}
"""Page to the files that record its figures."""

INSTALLED = {"90": "tests/use_audits.py", "300": "tests/use_commands.py"}
"""Megabytes of an install to the program with which `make test-install` measures it against a
limit.
"""

SETTINGS = {
    "README.md": "3.11 95 0.1 0.2 90 300",
    # Widths of brackets: tests/auditing/test_audit_file.py limits them.
    "docs/beyond-one-machine.md": "0.0001 0.00001",
    "docs/choosing.md": "0.5",
    "docs/cli.md": "95 4.4",
    "docs/comparing.md": "1.0 95 5",
    "docs/defaults.md": "0.005 0.03",
    "docs/evidence.md": "8.2 2.11 256",
    "docs/group-probabilities.md": "0.02 0.05",
    # the four-fifths rule, examples, and figures of others with their source
    "docs/good-values.md": "0.1 0.8 5 8 10 72 90 0.2 44.9 23.5 34.7 17.7 46.5",
    "docs/numbers.md": "5 95",
    "docs/stability.md": "1.0 3.11 3.14",
    "docs/standards.md": "1607.4 1.1 2",
    "docs/start.md": "3.11 95 90 300 1",
    "docs/studio.md": "127.0 2 4",
    "docs/untrusted-input.md": "16",
    "docs/concepts/distances.md": "0.36 0.5 0.7",
    "docs/concepts/limits.md": "0.1 5",
    "docs/tutorials/audit-for-a-regulator.md": "2",
    "docs/tutorials/choosing-a-strength.md": "0.15 90",
    "docs/tutorials/first-fair-model.md": "0.05",
    "docs/tutorials/reading-a-report.md": "0.7",
}
"""Confidence levels, defaults, versions, sizes of installs, examples, and what follows from
figures beside them.
"""

PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"results", "_build", "gallery", "generated"} & set(path.relative_to(ROOT).parts)
    and path.name not in ("intervals.md", "changelog.md")
]


@cache
def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def figures_in_prose(text: str) -> list[str]:
    """Decimal numbers, and whole numbers with a unit; none of code, comments, links or tables
    of the record.
    """
    return _FIGURE.findall(_NOT_PROSE.sub(" ", _CODE.sub(" ", text)))


def is_in(figure: str, text: str) -> bool:
    """Whether a text has the number, and not as a part of a longer one."""
    return re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", text) is not None


def sources(page: str) -> str:
    """What may say the figures of a page: its code, which other tests run, and files that
    record figures.
    """
    code = "\n".join(match.group() for match in _CODE.finditer(_read(page)))
    spans = " ".join(re.findall(r"`[^`\n]*`", _read(page)))
    return "\n".join([code, spans, *map(_read, RECORDED.get(page, []))])


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_has_a_source(page: str) -> None:
    settings = SETTINGS.get(page, "").split()
    figures = figures_in_prose(_read(page))
    assert [one for one in figures if one not in settings and not is_in(one, sources(page))] == []
    assert [one for one in settings if one not in figures] == [], (
        "settings that the page does not name"
    )


@pytest.mark.parametrize("figure", INSTALLED)
def test_sizes_of_installs_are_within_the_limits_that_are_tested(figure: str) -> None:
    (limit,) = re.findall(r"^MOST_MEGABYTES = (\d+)$", _read(INSTALLED[figure]), re.MULTILINE)
    assert int(figure) <= int(limit)
    assert all(f"{figure} MB" in _read(page) for page in ("README.md", "docs/start.md"))


def test_a_figure_without_a_source_is_found() -> None:
    text = "It takes 7 s, 1,234 MB and 0.5 with 95 % `0.9`; 3 groups, [2.5x](a-1.5.md).\n```\n8.25\n```\n"
    assert figures_in_prose(text) == ["7", "1,234", "0.5", "95", "2.5"]
    assert is_in("0.5", "at 0.5, or")
    assert is_in("0.5", "at 0.5.")
    assert not is_in("0.5", "0.55 10.5 0.5.1")
    assert figures_in_prose("2 of 400 series had an alarm") == ["2"]


NOTES = {
    "boosting-notes.md": "python -m experiments boosting",
    "defaults.md": "python -m benchmarks defaults",
    "differences.md": "python -m benchmarks.differences",
    "groups.md": "python -m benchmarks.groups",
    "group-probabilities.md": "python -m benchmarks.proxies",
}
"""Records of single runs, which are their own source: each names the command or the files
behind it.
"""


def checked_pages() -> set[str]:
    """Pages of results that tests make anew or check: such a test has the mark ``page``."""
    return {
        page
        for path in (ROOT / "tests").rglob("test_*.py")
        if "pytest.mark.page(" in (text := path.read_text(encoding="utf-8"))
        for test in ast.parse(text).body
        if isinstance(test, ast.FunctionDef)
        for mark in test.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.page"
        for page in map(ast.literal_eval, mark.args)
    }


def test_every_page_of_results_is_made_by_a_test_or_names_its_command() -> None:
    folder = ROOT / RESULTS
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    assert present == checked_pages() | NOTES.keys()
    for page, command in NOTES.items():
        assert command in _read(f"{RESULTS}{page}"), page
