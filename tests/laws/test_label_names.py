"""A set of rows with a label is named by the label column and the value, wherever labels come
from.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from metrifair import (
    Audit,
    AuditState,
    FairClassifier,
    audit,
    audit_file,
    audit_table,
    compare,
    load,
    to_card,
)
from metrifair.cli import main
from metrifair.criteria import CRITERIA
from tests.flat_options import flat

N = 80
SEX = np.array(["f", "m"])[np.arange(N) // 4 % 2]
APPROVED = np.array(["no", "yes"])[np.arange(N) % 2]
SCORE = (np.arange(N) * 37 % N + 0.5) / N
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}
BY_LABEL = {
    "equal_opportunity": ["{}=yes"],
    "predictive_equality": ["{}=no"],
    "equalized_odds": ["{}=no", "{}=yes"],
}
"""The sets of each criterion that compares within labels."""


def in_memory(labels: Any) -> Callable[[Path, str], Any]:
    return lambda _, criterion: audit(
        labels, SCORE, sensitive_features=SEX, criteria=criterion, **flat(**QUICK)
    )


def from_file(**more: Any) -> Callable[[Path, str], Any]:
    def audited(folder: Path, criterion: str) -> Any:
        pl.DataFrame({"sex": SEX, "approved": APPROVED, "p": SCORE}).write_csv(folder / "rows.csv")
        options = flat(criteria=criterion, **QUICK, **more)
        return audit_file(folder / "rows.csv", score="p", group="sex", label="approved", **options)

    return audited


def from_table(table: Callable[[pl.DataFrame], Any], **more: Any) -> Callable[[Path, str], Any]:
    def audited(_: Path, criterion: str) -> Any:
        rows = table(pl.DataFrame({"sex": SEX, "approved": APPROVED, "p": SCORE}))
        options = flat(criteria=criterion, **QUICK, **more)
        return audit_table(rows, score="p", group="sex", label="approved", **options)

    return audited


def duckdb_rows(rows: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("rows", rows)
    return connection.table("rows")


def from_state(labels: Any, saved: bool) -> Callable[[Path, str], Any]:
    def audited(folder: Path, criterion: str) -> Any:
        state = AuditState(criterion).add(labels, SCORE, sensitive_features=SEX)
        if saved:
            state.save(folder / "rows.state")
            state = load(folder / "rows.state")
        return state.audit(**flat(**QUICK))

    return audited


NAMED = {
    "pandas column": in_memory(pd.Series(APPROVED, name="approved")),
    "polars column": in_memory(pl.Series("approved", APPROVED)),
    "table of one column": in_memory(pd.DataFrame({"approved": APPROVED})),
    "mapping": in_memory({"approved": APPROVED}),
    "file": from_file(),
    "file out of core": from_file(in_memory_rows=10),
    "polars table": from_table(pl.DataFrame.lazy),
    "DuckDB": from_table(duckdb_rows),
    "DuckDB out of core": from_table(duckdb_rows, in_memory_rows=10),
    "state": from_state(pd.Series(APPROVED, name="approved"), saved=False),
    "state in a file": from_state(pd.Series(APPROVED, name="approved"), saved=True),
}
UNNAMED = {
    "array": in_memory(APPROVED),
    "list": in_memory(APPROVED.tolist()),
    "column without a name": in_memory(pd.Series(APPROVED)),
    "state": from_state(APPROVED, saved=False),
}


def test_every_criterion_that_looks_at_labels_is_in_the_table() -> None:
    assert set(BY_LABEL) == {
        name for name, criterion in CRITERIA.items() if criterion.labels is not None
    }


@pytest.mark.parametrize("criterion", BY_LABEL)
@pytest.mark.parametrize(
    ("audited", "label"),
    [
        *(pytest.param(source, "approved", id=name) for name, source in NAMED.items()),
        *(
            pytest.param(source, "label", id=f"unnamed {name}", marks=pytest.mark.extended)
            for name, source in UNNAMED.items()
        ),
    ],
)
def test_sets_are_named_by_the_label_column(
    audited: Any, label: str, criterion: str, tmp_path: Path
) -> None:
    found = audited(tmp_path, criterion)
    expected = {text.format(label) for text in BY_LABEL[criterion]}
    assert {one.within for one in found.findings} == expected
    assert set(found.to_frame("polars")["within"]) == expected
    for place, text in written(found, tmp_path).items():
        assert set(SET_NAME.findall(text)) == expected, place


SET_NAME = re.compile(r"\b\w+=(?:yes|no)\b")


def written(found: Audit, folder: Path) -> dict[str, str]:
    """All texts that name the sets of an audit."""
    found.to_html(folder / "page.html")
    compare(found, found).to_html(folder / "difference.html")
    model = FairClassifier(0.0, model="linear").fit(SCORE[:, None], APPROVED)
    return {
        "page": (folder / "page.html").read_text(encoding="utf-8"),
        "page of a comparison": (folder / "difference.html").read_text(encoding="utf-8"),
        "JSON": found.to_json(),
        "plot": "\n".join(
            text.get_text()
            for text in found.plot("findings", ax=Figure().subplots()).ax_.get_yticklabels()
        ),
        "card": to_card(model, audit=found),
    }


@pytest.mark.parametrize("criterion", BY_LABEL)
def test_the_terminal_names_sets_by_the_label_column(criterion: str, tmp_path: Path) -> None:
    pl.DataFrame({"sex": SEX, "approved": APPROVED, "p": SCORE}).write_csv(tmp_path / "rows.csv")
    call = [
        "audit",
        str(tmp_path / "rows.csv"),
        "--score",
        "p",
        "--group",
        "sex",
        "--label",
        "approved",
    ]
    done = CliRunner().invoke(main, [*call, "--criterion", criterion])
    assert done.exit_code == 0, done.output
    assert set(SET_NAME.findall(done.output)) == {
        text.format("approved") for text in BY_LABEL[criterion]
    }


def test_a_trained_model_keeps_the_name_of_its_label(tmp_path: Path) -> None:
    labels = pd.Series(
        np.where(SEX == "f", APPROVED, np.where(np.arange(N) == 5, "yes", "no")), name="approved"
    )
    model = FairClassifier(1.0, criterion="equalized_odds", epochs=1, random_state=0, model="mlp")
    with pytest.warns(UserWarning, match="approved=yes"):
        model.fit(SCORE[:, None], labels, sensitive_features=SEX)
    model.save(tmp_path / "model.metrifair")
    sets = {one.within for one in load(tmp_path / "model.metrifair").scheme_.comparisons}
    assert sets == {"approved=no", "approved=yes"}
