"""Predictions in any order of columns and in any precision: the same number, or an error."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from metrifair import Audit, AuditDifference, AuditState, audit, audit_file, audit_table, unfairness
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.flat_options import flat

GENERATOR = np.random.default_rng(3)
N = 600
GROUP = GENERATOR.integers(2, size=N)
POSITIVE = GENERATOR.random(N) < 0.4
LABEL = np.where(POSITIVE, "yes", "no")
PROBABILITY = np.clip(0.3 + 0.4 * POSITIVE + 0.1 * GENERATOR.normal(size=N), 0.01, 0.99)
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}


def auc(found: Audit) -> float:
    return float(found.record.by_group[0].groups[0].auc.value)


TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("order", [("no", "yes"), ("yes", "no")])
def test_probability_columns_are_matched_to_labels_by_name(
    table: Any, order: tuple[str, str]
) -> None:
    columns = {"yes": PROBABILITY, "no": 1 - PROBABILITY}
    given = table({name: columns[name] for name in order})
    expected = audit(LABEL, PROBABILITY, sensitive_features=GROUP, **flat(**QUICK))
    found = audit(LABEL, given, sensitive_features=GROUP, **flat(**QUICK))
    assert auc(found) == auc(expected) > 0.9
    assert [one.value for one in found.findings] == [one.value for one in expected.findings]


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b")])
def test_probabilities_of_three_classes_are_matched_by_name(order: tuple[str, ...]) -> None:
    shares = GENERATOR.dirichlet([1.0, 2.0, 4.0], N)
    columns = dict(zip("abc", shares.T, strict=True))
    y_true = np.array(list("abc"))[GENERATOR.integers(3, size=N)]
    given = pd.DataFrame({name: columns[name] for name in order})
    found = audit(
        y_true, given, sensitive_features=GROUP, criteria="statistical_parity", **flat(**QUICK)
    )
    classes = {one.within for one in found.record.distributions}
    expected = audit(
        y_true, shares, sensitive_features=GROUP, criteria="statistical_parity", **flat(**QUICK)
    )
    assert [(one.within, one.value) for one in found.findings] == [
        (one.within, one.value) for one in expected.findings
    ]
    assert classes == {"p(a)", "p(b)", "p(c)"}
    log_loss = [
        unfairness(y_true, one, sensitive_features=GROUP, criterion="risk_parity", loss="log_loss")
        for one in (given, shares)
    ]
    assert log_loss[0] == log_loss[1]


@pytest.mark.parametrize(
    "labels", [POSITIVE.astype(int), POSITIVE, POSITIVE.astype(float), POSITIVE.astype(str)]
)
def test_text_names_numbers_and_booleans(labels: np.ndarray) -> None:
    given = {"1": PROBABILITY, "0": 1 - PROBABILITY}
    if labels.dtype.kind == "U":
        given = {"true": PROBABILITY, "false": 1 - PROBABILITY}
    assert auc(audit(labels, pd.DataFrame(given), sensitive_features=GROUP, **flat(**QUICK))) > 0.9


def test_the_positive_label_is_the_column_of_its_name() -> None:
    given = pl.DataFrame({"yes": PROBABILITY, "no": 1 - PROBABILITY})
    found = audit(LABEL, given, sensitive_features=GROUP, pos_label="no", **flat(**QUICK))
    expected = audit(
        LABEL, 1 - PROBABILITY, sensitive_features=GROUP, pos_label="no", **flat(**QUICK)
    )
    assert auc(found) == auc(expected) > 0.9


def test_states_match_columns_by_name_in_every_batch() -> None:
    expected = AuditState().add(LABEL, PROBABILITY, sensitive_features=GROUP).audit(**flat(**QUICK))
    state = AuditState()
    for label in ("yes", "no"):  # a batch may lack a label
        rows = label == LABEL
        given = pd.DataFrame({"yes": PROBABILITY[rows], "no": 1 - PROBABILITY[rows]})
        state.add(LABEL[rows], given, sensitive_features=GROUP[rows])
    assert [one.value for one in state.audit(**flat(**QUICK)).findings] == [
        one.value for one in expected.findings
    ]


def test_names_that_are_no_labels_are_an_error() -> None:
    given = pd.DataFrame({"approved": PROBABILITY, "refused": 1 - PROBABILITY})
    message = (
        "the columns of y_pred are named 'approved', 'refused', and the labels are ['no', 'yes']: "
        "no column has the "
        "name of the label 'no'; name the columns after the labels, or pass an array with one "
        "column for each label "
        "in ascending order"
    )
    with pytest.raises(DataError) as error:
        audit(LABEL, given, sensitive_features=GROUP, **flat(**QUICK))
    assert str(error.value) == message


def test_a_table_is_one_model_and_a_dict_several_whatever_they_hold(refused: Refusals) -> None:
    columns = {"yes": PROBABILITY, "no": PROBABILITY}
    with refused(DataError):
        audit(LABEL, pd.DataFrame(columns), sensitive_features=GROUP, **flat(**QUICK))
    for several in (columns, {"yes": PROBABILITY, "no": 1 - PROBABILITY}):
        assert isinstance(
            audit(LABEL, several, sensitive_features=GROUP, **flat(**QUICK)), AuditDifference
        )
    for refuse in (unfairness, AuditState().add):
        with refused(DataError):
            refuse(LABEL, columns, sensitive_features=GROUP)


def test_columns_that_a_library_numbered_are_taken_by_position() -> None:
    both = np.stack([1 - PROBABILITY, PROBABILITY], 1)
    for given in (pd.DataFrame(both), pl.DataFrame(both)):
        assert auc(audit(LABEL, given, sensitive_features=GROUP, **flat(**QUICK))) > 0.9


def test_a_single_column_is_the_score_whatever_its_name() -> None:
    found = audit(
        LABEL, pd.DataFrame({"no": PROBABILITY}), sensitive_features=GROUP, **flat(**QUICK)
    )
    assert auc(found) > 0.9


TENTHS = GENERATOR.integers(11, size=N) / 10
PRECISIONS = {
    "float64": TENTHS,
    "float32": TENTHS.astype(np.float32),
    "float16": TENTHS.astype(np.float16),
    "Decimal": [Decimal(str(score)) for score in TENTHS],
    "a list": TENTHS.tolist(),
    "a list of float32": list(TENTHS.astype(np.float32)),
    "pandas float32": pd.Series(TENTHS, dtype="Float32"),
    "polars float32": pl.Series(TENTHS, dtype=pl.Float32),
}


def selected(found: Audit) -> list[int | None]:
    return [rate.selected for rate in found.record.decisions[0].rates]


def at_or_above(threshold: float, favorable: str) -> list[int]:
    chosen = (
        np.less(TENTHS, threshold) if favorable == "low" else np.greater_equal(TENTHS, threshold)
    )
    return [int(chosen[group == GROUP].sum()) for group in (0, 1)]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("favorable", ["high", "low"])
def test_scores_at_the_threshold_are_selected_in_every_precision(
    threshold: float, favorable: str
) -> None:
    asked = {**QUICK, "favorable": favorable}
    for name, score in PRECISIONS.items():
        found = audit(None, score, sensitive_features=GROUP, threshold=threshold, **flat(**asked))
        assert selected(found) == at_or_above(threshold, favorable), name
        state = AuditState(threshold=threshold).add(None, score, sensitive_features=GROUP)
        assert selected(state.audit(**flat(**asked))) == at_or_above(threshold, favorable), name


@pytest.mark.parametrize("rows", [N, 0], ids=["in memory", "out of core"])
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
def test_files_and_tables_of_float32_select_the_same_rows(
    tmp_path: Path, threshold: float, rows: int
) -> None:
    table = pl.DataFrame({"p": TENTHS.astype(np.float32), "group": GROUP})
    table.write_csv(tmp_path / "scores.csv")
    table.write_parquet(tmp_path / "scores.parquet")
    asked: dict[str, Any] = {
        "score": "p",
        "group": "group",
        "threshold": threshold,
        "in_memory_rows": rows,
        **QUICK,
    }
    found = {
        name: audit_file(tmp_path / f"scores.{name}", **flat(**asked))
        for name in ("csv", "parquet")
    }
    with duckdb.connect() as connection:
        connection.register("rows", table.to_arrow())
        found["DuckDB"] = audit_table(
            connection.sql('SELECT p::FLOAT AS p, "group" FROM rows'), **flat(**asked)
        )
        found["polars"] = audit_table(table.lazy(), **flat(**asked))
    assert {name: selected(one) for name, one in found.items()} == dict.fromkeys(
        found, at_or_above(threshold, "high")
    )
