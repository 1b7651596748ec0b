"""Direction: records hold values.

No string in them has a space, so none is a sentence; ``wording`` makes those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from metrifair import AuditState, GroupProbabilities, audit, audit_file, compare, monitor
from tests.flat_options import flat
from tests.one_split import frontier
from tests.seams.auditing import records

# Names of sets, bands and intersections join the user's names and values by these.
JOINTS = {"x"}
DATA = {"everyone", "sex", "region", "age", "label", "y", "f", "m", "north", "south", "west"}
TYPED = {"call", "time", "source"}  # code, a time stamp, and what was read

RANDOM = np.random.default_rng(0)
ROWS = 240
SEX = RANDOM.choice(["f", "m"], ROWS)
REGION = RANDOM.choice(["north", "south", "west"], ROWS)
AGE = RANDOM.integers(18, 80, ROWS).astype(float)
LABEL = RANDOM.integers(0, 2, ROWS)
SCORE = np.clip(RANDOM.normal(0.4 + 0.1 * LABEL + 0.1 * (SEX == "m"), 0.2), 0, 1)
QUICK: dict[str, Any] = {"resamples": 20, "permutations": 19, "random_state": 0}


def _state() -> Any:
    return AuditState().add(LABEL, SCORE, sensitive_features={"sex": SEX}).audit(**flat(**QUICK))


def _file(folder: Path, **options: Any) -> Any:
    table = pl.DataFrame({"p": SCORE, "sex": SEX, "age": AGE, "y": LABEL, "w": 1 + LABEL})
    table.write_parquet(folder / "scores.parquet")
    return audit_file(folder / "scores.parquet", score="p", label="y", **flat(**options, **QUICK))


def _several(**options: Any) -> Any:
    return audit(
        None,
        {"old": SCORE, "new": SCORE**2},
        sensitive_features={"sex": SEX},
        **flat(**options, **QUICK),
    )


def _classes() -> Any:
    probabilities = RANDOM.dirichlet([1, 1, 1], ROWS)
    return audit(REGION, probabilities, sensitive_features={"sex": SEX}, **flat(**QUICK))


def _probabilities() -> GroupProbabilities:
    north = RANDOM.uniform(0.1, 0.9, ROWS)
    known = np.where(np.arange(ROWS) < 60, REGION, None)
    known[known == "west"] = None
    table = {"north": north, "south": 1 - north}
    return GroupProbabilities(
        table, attribute="region", source="BISG", known_groups=known, cells=REGION
    )


def _frontier() -> Any:
    X = np.column_stack([SCORE, AGE])
    return frontier(
        [LogisticRegression().fit(X, LABEL)],
        X,
        LABEL,
        sensitive_features={"sex": SEX},
        random_state=0,
    )


RESULTS: dict[str, Callable[[Path], Any]] = {
    "groups": lambda _: audit(
        LABEL, SCORE, sensitive_features={"sex": SEX, "region": REGION}, **flat(**QUICK)
    ),
    "metrics": lambda _: audit(
        LABEL, SCORE, sensitive_features={"sex": SEX, "region": REGION}, **flat(**QUICK)
    ).by_group({"share": lambda y_true, y_pred: (y_true == y_pred).mean()}),
    "strata": lambda _: audit(
        None,
        SCORE,
        sensitive_features={"sex": SEX},
        control_features={"region": REGION},
        **flat(**QUICK),
    ),
    "rest": lambda _: audit(
        None, SCORE, sensitive_features={"region": REGION}, **flat(contrast="rest", **QUICK)
    ),
    "intersection": lambda _: audit(
        None,
        SCORE,
        sensitive_features={"sex": SEX, "region": REGION},
        intersectional=True,
        **flat(**QUICK),
    ),
    "numbers": lambda _: audit(
        LABEL, SCORE, sensitive_features={"age": AGE}, continuous=["age"], **flat(**QUICK)
    ),
    "standard": lambda _: (
        audit(None, SCORE, sensitive_features={"sex": SEX, "region": REGION}, **flat(**QUICK))
        .rates("ll144")
        .audit
    ),
    "weights": lambda _: audit(
        None, SCORE, sensitive_features={"sex": SEX}, sample_weight=1 + LABEL, **flat(**QUICK)
    ),
    "scores": lambda _: audit(
        None, 100 * SCORE - 7, sensitive_features=[*SEX[:-9], *["NA"] * 9], **flat(**QUICK)
    ),
    "constant": lambda _: audit(
        SEX, np.full(ROWS, 0.3), sensitive_features={"sex": SEX}, **flat(**QUICK)
    ),
    "classes": lambda _: _classes(),
    "state": lambda _: _state(),
    "file": lambda folder: _file(folder, group="sex", weight="w"),
    "streamed": lambda folder: _file(
        folder, group=["sex", "age"], continuous=["age"], in_memory_rows=0
    ),
    "probabilities": lambda _: audit(
        LABEL, SCORE, sensitive_features=_probabilities(), **flat(**QUICK)
    ),
    "models": lambda _: _several(),
    "comparison": lambda _: compare(_state(), _state()),
    "series": lambda _: monitor({"may": _state(), "june": _state()}),
    "frontier": lambda _: _frontier(),
}


def texts(value: Any, path: str = "", field: str = "") -> Iterator[tuple[str, str, str]]:
    """Each text below a value: where, the field that has it, and the text."""
    if isinstance(value, str):
        yield path, field, value
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from texts(getattr(value, one.name), f"{path}.{one.name}", one.name)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(key, f"{path}[key]", field)
            yield from texts(inner, f"{path}[{key}]", field)
    elif isinstance(value, list | tuple | set | frozenset):
        for place, inner in enumerate(value):
            yield from texts(inner, f"{path}[{place}]", field)


def is_name(text: str) -> bool:
    """Whether a text is made of words of the data, numbers and the joints of names."""
    words = re.split("[ ,=]+", text)
    return all(word in JOINTS | DATA or word.replace(".", "").isdigit() for word in words)


@pytest.mark.filterwarnings("ignore::metrifair.errors.MetrifairWarning")
@pytest.mark.parametrize("name", RESULTS)
def test_no_record_holds_a_sentence(name: str, tmp_path: Path) -> None:
    result = RESULTS[name](tmp_path)
    walked = [result.record] if hasattr(result, "record") else [result.points]
    walked += [one.record for one in getattr(result, "audits", {}).values()]
    found = [entry for record in walked for entry in texts(record)]
    assert len(found) > 10
    spaced = [(path, text) for path, field, text in found if " " in text and field not in TYPED]
    assert [entry for entry in spaced if not is_name(entry[1])] == []


def test_records_of_the_same_values_are_equal_wherever_they_come_from() -> None:
    origins = [
        one
        for record in vars(records).values()
        if is_dataclass(record)
        for one in fields(record)
        if "Provenance" in str(one.type)
    ]
    assert len(origins) > 3
    assert not any(one.compare for one in origins)


def test_a_sentence_would_be_found() -> None:
    sentences = [
        "At a cutoff of 0.4, 30% pass it.",
        "not by chance",
        "the rest",
        "without a label",
        "probability of north",
    ]
    assert not any(map(is_name, sentences))
    assert all(map(is_name, ["label=1,region=north", "sex x region", "f x north"]))
