"""Tests repeat exactly, in any order: the same examples and the same draws in every run, on every
machine.

`make test` runs what a change can break soonest, in minutes; tests marked `extended`, and all in
EXTENDED, wait for `make test-all`, which also runs a tenth of the slow tests, another one for each
commit.

`make test-slow` sets METRIFAIR_EXPLORE, and examples and seeds are drawn anew. Tests marked `cuda`,
all in tests/cuda, skip where no such device is; `pytest -m cuda` reads no other file, so that a
machine with a device needs little else.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import secrets
from pathlib import Path

import numpy as np
import pytest
import torch

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # fails in every file that uses it; those in tests/cuda do not
    pass
else:
    # a busy machine is no fault
    clockless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("repeat", clockless, derandomize=True, database=None)
    settings.register_profile("explore", clockless, print_blob=True)
    settings.load_profile("explore" if os.environ.get("METRIFAIR_EXPLORE") else "repeat")


def pytest_runtest_setup() -> None:
    """Generators that all tests share begin anew: no test hangs on those before it, nor on what
    nobody seeded.
    """
    if not os.environ.get("METRIFAIR_EXPLORE"):
        torch.default_generator.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        secrets.randbelow = random.Random(0).randrange  # the seed where random_state is None


# Rooms for `make test-all`: browsers, the studio, experiments, methods of other authors. Files and
# tests elsewhere carry the mark: servers, workers, trees on real data, and what takes longer than
# about a second.
EXTENDED = (
    "src/metrifair/baselines",
    "tests/baselines",
    "tests/browser",
    "tests/experiments",
    "tests/studio",
)

# Fixtures of what a bare machine lacks: browsers, servers, the published files of the data sets.
EXTENDED_FIXTURES = frozenset({"browser", "postgres", "raw_data"})

# MLflow warns when it is imported: tests/test_mlflow.py runs the examples, where it is installed.
collect_ignore = ["src/metrifair/mlflow.py"]


# What a file says all of whose tests are extended.
EXTENDED_FILE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.extended\b", re.MULTILINE)


def is_extended(path: Path, root: Path) -> bool:
    """Whether a folder stands in EXTENDED, or a file marks all its tests as extended."""
    if path.relative_to(root).as_posix() in EXTENDED:
        return True
    is_test = path.name.startswith("test_") and path.suffix == ".py"
    return is_test and EXTENDED_FILE.search(path.read_text(encoding="utf-8")) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file whose tests are all left out: extended ones, or for ``-m cuda`` those outside of
    tests/cuda.
    """
    marks = config.getoption("markexpr")
    others = collection_path not in (config.rootpath, config.rootpath / "tests")
    left_out = marks == "cuda" and others and "cuda" not in collection_path.parts[-2:]
    if "not extended" in marks:
        left_out = is_extended(collection_path, config.rootpath)
    return True if left_out else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """A seed for the tenth of the slow tests that gets the mark `rotated`."""
    parser.addoption("--slow-seed", help="mark a tenth of the slow tests as rotated")


def rotated(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """A tenth of the slow tests that take turns; those that take minutes each do not
    (`rotate=False` at their mark).

    Which tests depends on the seed and their names alone, so that each of several processes finds
    the same.
    """
    able = [
        item
        for item in items
        if (mark := item.get_closest_marker("slow")) and mark.kwargs.get("rotate", True)
    ]
    able.sort(key=lambda item: hashlib.sha256(f"{seed} {item.nodeid}".encode()).digest())
    return able[: -(-len(able) // 10)]


def _is_odd_combination(item: pytest.Item) -> bool:
    """Whether the places in the lists of values of a test marked `pairwise` add up to an odd number.

    Whichever two values one looks at, where a third list has two, the other half of the tests holds
    them together.
    """
    if not isinstance(item, pytest.Function) or not item.get_closest_marker("pairwise"):
        return False
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    first = [names.split(",")[0].strip() if isinstance(names, str) else names[0] for names in lists]
    return sum(item.callspec.indices[name] for name in first) % 2 == 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark rooms as extended, and what a bare machine lacks; of tests marked `pairwise` every second
    combination as slow; a tenth of the slow tests as rotated. Skip what needs a device.
    """
    for item in items:
        if item.nodeid.startswith(EXTENDED) or EXTENDED_FIXTURES.intersection(
            getattr(item, "fixturenames", ())
        ):
            item.add_marker("extended")
        if _is_odd_combination(item):
            item.add_marker("slow")
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
    if seed := config.getoption("slow_seed"):
        for item in rotated(items, seed):
            item.add_marker("rotated")
