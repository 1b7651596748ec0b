"""The lowest versions that are tried are the lowest that are allowed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def test_the_lowest_constraints_are_the_lower_bounds_of_audits_and_training() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(
        one.split(">=")
        for one in project["dependencies"] + project["optional-dependencies"]["train"]
    )
    pinned = dict(
        re.findall(
            r"^([\w-]+)==([\w.]+)$", (_ROOT / "constraints-lowest.txt").read_text(), re.MULTILINE
        )
    )
    assert set(bounds) == set(pinned)
    for name, bound in bounds.items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)?", pinned[name]), name
