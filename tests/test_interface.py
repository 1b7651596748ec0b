"""The public interface: few parameters, and one meaning for each name."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator

from metrifair import FairClassifier, FairRegressor, Frontier
from tests.seams.api import GroupMetrics, RateTable

MEANINGS = Path(__file__).parent / "parameter_meanings.toml"
MODULES = (
    *(
        "metrifair",
        "metrifair.baselines",
        "metrifair.batches",
        "metrifair.criteria",
        "metrifair.datasets",
    ),
    *("metrifair.metrics", "metrifair.mlflow", "metrifair.nn", "metrifair.postprocessing"),
    "metrifair.stacking",
)
MOST_PARAMETERS = 17
# Functions of ours return these records; nobody calls their constructors.
RETURNED = {
    *(
        "Audit",
        "AuditDifference",
        "AuditSeries",
        "Frontier",
        "GroupMetrics",
        "RateTable",
        "Witness",
    ),
    *("Calibration", "Chunk", "CoveringBatch", "Dataset", "Sample", "TradeOffPoint"),
}
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?\n((?:(?: +.*)?\n)*)", re.MULTILINE)
_REFERENCE = re.compile(r"As in (?::\w+:)?`{1,2}(?:\w+\.)*(\w+)`{1,2}\.")
_AFTER = re.compile(r"[.,:;]| \(| (?:of|for|that|if|to) ")


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, constructor and method of ours, by its qualified name."""
    for module in map(import_module, MODULES):
        inside = module.__name__.removeprefix("metrifair").lstrip(".") + "."
        for value in [*(getattr(module, name) for name in module.__all__), RateTable, GroupMetrics]:
            if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
                continue
            if not inspect.isclass(value):
                yield (inside + value.__name__).lstrip("."), value
                continue
            if value.__name__ not in RETURNED:
                yield value.__name__, value
            for name, method in inspect.getmembers(
                value, lambda one: inspect.isfunction(one) or inspect.ismethod(one)
            ):
                if not name.startswith("_") and method.__module__.startswith("metrifair"):
                    yield method.__qualname__, method


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of each parameter, on one line."""
    section = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w[\w ]*\n-+\n", section)[0] + "\n"
    return {
        name.strip("*"): " ".join(entry[2].split())
        for entry in _ENTRY.finditer(section)
        for name in entry[1].split(", ")
    }


CALLABLES = dict(public_callables())


def crowded(functions: dict[str, Callable[..., Any]]) -> dict[str, int]:
    return {
        name: len(parameters(function))
        for name, function in functions.items()
        if len(parameters(function)) > MOST_PARAMETERS
        and not (inspect.isclass(function) and issubclass(function, BaseEstimator))
    }


def test_no_public_callable_has_more_than_17_parameters() -> None:
    assert {
        "audit",
        "audit_file",
        "frontier",
        "AuditOptions",
        "SearchOptions",
        "Audit.to_html",
    } <= set(CALLABLES)
    assert crowded(CALLABLES) == {}


def test_planted_fault_a_crowded_function_is_found() -> None:
    crowd = eval(f"lambda {', '.join(f'p{place}' for place in range(18))}: None")
    assert crowded({"crowd": crowd}) == {"crowd": 18}


def table() -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The meanings by name, and the other meanings by name and callable."""
    texts = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))
    meanings = {name: text.rstrip(".") for name, text in texts["meanings"].items()}
    others = {
        (name, where): text.rstrip(".")
        for where, named in texts["elsewhere"].items()
        for name, text in named.items()
    }
    return meanings, others


def shared(functions: dict[str, Callable[..., Any]]) -> dict[str, dict[str, str]]:
    """Documented parameters of two or more of the functions: what each docstring says, by
    parameter and function.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for owner, function in functions.items():
        said = documented(function)
        for name in parameters(function):
            if name in said:
                found[name][owner] = said[name]
    return {name: texts for name, texts in found.items() if len(texts) > 1}


def means(text: str, meaning: str) -> bool:
    """Whether a text begins with this meaning, as a sentence or a noun with what belongs to it."""
    return text.startswith(meaning) and bool(_AFTER.match(text[len(meaning) :] + " "))


def says_itself(name: str, text: str) -> bool:
    """Whether a text begins with the words of the name: such names need no entry."""
    return re.sub("^(the|all) ", "", text.lower()).startswith(name.replace("_", " "))


def deviations(functions: dict[str, Callable[..., Any]]) -> list[str]:
    meanings, others = table()
    found = []
    for name, texts in shared(functions).items():
        for owner, text in texts.items():
            reference = _REFERENCE.match(text)
            if reference and any(
                other.split(".")[-1] == reference[1] for other in texts if other != owner
            ):
                continue
            if name not in meanings and (name, owner) not in others and says_itself(name, text):
                continue
            meaning = others.get((name, owner), meanings.get(name, "(the table has no such name)"))
            if not means(text, meaning):
                found.append(f"{owner}({name}): {text[:60]!r}, but the table: {meaning!r}")
    return found


def test_a_parameter_means_the_same_everywhere() -> None:
    assert deviations(CALLABLES) == []


def test_the_table_names_shared_parameters_only() -> None:
    meanings, others = table()
    names = shared(CALLABLES)
    assert meanings.keys() <= names.keys()
    empty = {name: {name, f"the {name}", f"all {name}"} for name in meanings}
    assert [name for name, texts in empty.items() if meanings[name].lower() in texts] == []
    assert {(name, where) for name, where in others if where not in names.get(name, ())} == set()


def test_planted_fault_another_meaning_is_found() -> None:
    def planted(threshold: float = 0.5) -> None:
        """Plant.

        Parameters
        ----------
        threshold : float, default=0.5
            Scores below count.
        """

    assert any(
        one.startswith("planted(threshold)")
        for one in deviations({**CALLABLES, "planted": planted})
    )


@pytest.mark.parametrize("estimator", [FairClassifier, FairRegressor])
def test_the_groups_of_an_estimators_parameters_are_complete(estimator: type) -> None:
    text = (inspect.getdoc(estimator) or "").partition("Parameters\n----------")[0]
    listed = [
        name
        for line in re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
        for name in re.findall(r"``(\w+)``", line)
    ]
    assert listed == parameters(estimator)


def test_a_frontier_has_few_public_attributes() -> None:
    names = {name for name in dir(Frontier) if not name.startswith("_")}
    assert len(names) <= 20, sorted(names)
    wanted = {"points", "pareto", "models", "chosen", "constant", "record", "select", "held_out"}
    assert wanted | {"summary", "plot", "to_frame", "to_html", "to_pdf", "to_json", "save"} <= names
