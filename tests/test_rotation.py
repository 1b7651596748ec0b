"""A tenth of the slow tests runs with every commit, and each of them with some."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.parametrize("n", range(30))
@pytest.mark.slow
def test_slow(n): pass

@pytest.mark.slow(rotate=False)
def test_long(): pass

@pytest.mark.extended
def test_extended(): pass

def test_fast(): pass
"""


class Named:
    """What a rotation reads of a test."""

    def __init__(self, nodeid: str, **marks: pytest.Mark) -> None:
        self.nodeid = nodeid
        self.get_closest_marker = marks.get


SLOW = [Named(f"tests/test_it.py::test_slow[{n}]", slow=pytest.mark.slow.mark) for n in range(95)]
OTHERS = [
    Named("tests/test_it.py::test_long", slow=pytest.mark.slow(rotate=False).mark),
    Named("tests/test_it.py::test_fast"),
]


@pytest.fixture(scope="module")
def draw(pytestconfig: pytest.Config) -> Any:
    """Names of the tests that a seed draws."""
    rotated = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py")).rotated
    return lambda items, seed: {item.nodeid for item in rotated(items, seed)}


def test_a_seed_draws_a_tenth_in_whatever_order_tests_are_found(draw: Any) -> None:
    first = draw([*SLOW, *OTHERS], "6fb0f1b5")
    mixed = random.Random(1).sample([*SLOW, *OTHERS], len(SLOW) + len(OTHERS))
    assert len(first) == 10
    assert draw(mixed, "6fb0f1b5") == first
    assert draw([*SLOW, *OTHERS], "c34a4246") != first


def test_each_slow_test_is_drawn_as_often_as_any_other_but_the_long_ones(draw: Any) -> None:
    times = dict.fromkeys((item.nodeid for item in [*SLOW, *OTHERS]), 0)
    for seed in range(1000):
        for name in draw([*SLOW, *OTHERS], str(seed)):
            times[name] += 1
    assert [times[item.nodeid] for item in OTHERS] == [0, 0]
    expected = 1000 * 10 / 95
    assert all(abs(times[item.nodeid] - expected) < 5 * expected**0.5 for item in SLOW)


@pytest.mark.extended
def test_a_run_has_the_tests_of_its_marks_and_those_that_are_drawn(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    options = ["-m", "extended and not slow or rotated", "--slow-seed=6fb0f1b5", "--collect-only"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.split("::")[1] for line in run.stdout.splitlines() if "::" in line]
    assert names.count("test_extended") == 1
    assert len(names) == 4
    assert sum(name.startswith("test_slow[") for name in names) == 3
