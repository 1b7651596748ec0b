"""The script behind `make mutate`: what it changes, and that it tells a caught mutant from a
survivor.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutate import ROOMS, mutants, survivors

pytestmark = pytest.mark.extended

TOY = '''
"""A docstring with 1 < 2."""
from __future__ import annotations


def total(values: list[float], weight: list[float] | None = None, *, least: int = 0) -> float:
    """Not 1 + 1."""
    if not values:
        raise ValueError("at least 1")
    scaled = [value * weight[at] if weight is not None else value for at, value in enumerate(values)]
    return sum(value for value in scaled if value >= least and value < 100)
'''

TESTS = """
from toy import total

def test_total():
    assert total([1, 2]) == 3
    assert total([1, 2], [1, 3], least=6) == 6
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "toy.py").write_text(TOY)
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    return tmp_path


def test_every_kind_of_fault_is_made_once_and_is_python(toy: Path) -> None:
    found = mutants(Path("src/toy.py"), toy)
    pairs = {(one.kind, one.before, one.after) for one in found}
    assert pairs == {
        ("constant", "0", "1"),
        ("constant", "100", "101"),
        ("not", "not values", "values"),
        ("arithmetic", "value * weight[at]", "value / weight[at]"),
        ("weights", "value * weight[at]", "value"),
        ("comparison", "weight is not None", "weight is None"),
        ("and, or", "value >= least and value < 100", "value >= least or value < 100"),
        ("comparison", "value >= least", "value > least"),
        ("comparison", "value < 100", "value <= 100"),
    }
    for one in found:
        assert ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(TOY))
    assert mutants(Path("src/toy.py"), toy, 3) == mutants(Path("src/toy.py"), toy, 3)


def test_a_caught_mutant_is_told_from_a_survivor(toy: Path) -> None:
    chosen = [
        one for one in mutants(Path("src/toy.py"), toy) if one.before in ("value >= least", "100")
    ]
    assert len(chosen) == 2
    assert [one.before for one in survivors(chosen, toy, ["tests"])] == ["100"]


def test_a_mutant_may_change_which_tests_there_are(toy: Path) -> None:
    (toy / "src" / "toy.py").write_text("def names():\n    return ['a', 'b'][0:]\n")
    (toy / "tests" / "test_toy.py").write_text(
        "import pytest\nfrom toy import names\n\n"
        "@pytest.mark.parametrize('name', names())\ndef test_names(name):\n    assert name in "
        "names()\n"
    )
    chosen = mutants(Path("src/toy.py"), toy)
    assert survivors(chosen, toy, ["tests"]) == chosen  # 'b' is left, and passes


def test_rooms_are_there() -> None:
    root = Path(__file__).parent.parent
    for files, tests in ROOMS.values():
        assert all((root / "src/metrifair" / file).exists() for file in files)
        assert all((root / folder).exists() for folder in tests)
