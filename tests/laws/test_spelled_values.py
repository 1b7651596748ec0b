"""A column of two values means the same in every type: booleans, 0 and 1, text of booleans, and any
other two words.

Groups, strata, labels, clusters and decisions are spelled in all ways, and passed to every entry
point. Figures are equal to those of the integers 0 and 1. The gap within the strata is computed
here from plain arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression

from metrifair import (
    Audit,
    AuditState,
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairRegressor,
    FairXGBClassifier,
    ThresholdPostprocessor,
    audit,
    audit_file,
    audit_table,
    compare,
    load,
    monitor,
    unfairness,
)
from metrifair.cli import main
from tests.flat_options import flat
from tests.one_split import frontier

N = 240
RANDOM = np.random.default_rng(51)
GROUP = RANDOM.random(N) < 0.5
STRATUM = RANDOM.random(N) < 0.5
LABEL = RANDOM.random(N) < 0.3 + 0.3 * GROUP
PERSON = np.arange(N) // 4
# Among rows of the stratum False, nearly all of one group have higher scores than the other group.
GAP = np.where(STRATUM, 0.0, 0.55 * GROUP)
SCORE = np.round(0.05 + GAP + 0.35 * RANDOM.random(N) + 0.05 * LABEL, 2)
DECISION = SCORE >= 0.4
FEATURES = np.column_stack([SCORE, STRATUM + 0.3 * RANDOM.normal(size=N), RANDOM.normal(size=N)])
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}
DIGITS = 6

SPELLINGS: dict[str, Callable[[np.ndarray], Any]] = {
    "booleans": lambda flags: flags,
    "a list of booleans": lambda flags: flags.tolist(),
    "booleans of NumPy as objects": lambda flags: np.array(list(flags), dtype=object),
    "booleans of pandas": lambda flags: pd.Series(flags, dtype="boolean"),
    "booleans of polars": pl.Series,
    "text of booleans": lambda flags: np.where(flags, "True", "False"),
    "text of a csv": lambda flags: np.where(flags, "true", "false"),
    "words": lambda flags: np.where(flags, "yes", "no"),
    "short integers": lambda flags: flags.astype(np.uint8),
}
TYPES_OF_FILES = ("booleans", "text of booleans", "words", "short integers")


def integers(flags: np.ndarray) -> np.ndarray:
    return flags.astype(int)


def columns(**spelled: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """The columns, of which some are spelled in another way."""
    flags = {"group": GROUP, "stratum": STRATUM, "label": LABEL}
    return {name: spelled.get(name, integers)(values) for name, values in flags.items()}


def kolmogorov(left: np.ndarray, right: np.ndarray) -> float:
    grid = np.unique(SCORE)
    below = [(side[:, None] <= grid).mean(0) for side in (left, right)]
    return float(np.abs(below[0] - below[1]).max())


GAPS = [kolmogorov(SCORE[GROUP & inside], SCORE[~GROUP & inside]) for inside in (~STRATUM, STRATUM)]
assert GAPS[0] > 0.7
assert GAPS[1] < 0.2


def figures(result: Audit) -> list[float]:
    """Distances and selection rates, without the names of groups and strata."""
    distances = [finding.value for finding in result.findings]
    rates = [rate.selection_rate for table in result.decisions for rate in table.rates]
    return sorted(round(value, DIGITS) for value in [*distances, *rates])


def arguments(given: dict[str, Any]) -> dict[str, Any]:
    return {"sensitive_features": given["group"], "control_features": given["stratum"]}


def in_memory(given: dict[str, Any], folder: Path) -> Audit:
    return audit(given["label"], SCORE, **arguments(given), **flat(metrics="kolmogorov", **QUICK))


def state(given: dict[str, Any], rows: slice = slice(None)) -> AuditState:
    parts = {name: np.asarray(values)[rows] for name, values in given.items()}
    return AuditState().add(parts["label"], SCORE[rows], **arguments(parts))


def frame(given: dict[str, Any]) -> pl.DataFrame:
    listed = {name: np.asarray(values).tolist() for name, values in given.items()}
    return pl.DataFrame({"score": SCORE, **listed})


ROLES = {
    "score": "score",
    "group": "group",
    "control": "stratum",
    "label": "label",
    "metrics": "kolmogorov",
}


def written(given: dict[str, Any], path: Path) -> Path:
    table = frame(given)
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


def from_file(ending: str, **options: Any) -> Callable[[dict[str, Any], Path], Audit]:
    def entry(given: dict[str, Any], folder: Path) -> Audit:
        return audit_file(
            written(given, folder / f"rows.{ending}"), **flat(**ROLES, **QUICK, **options)
        )

    return entry


def from_database(given: dict[str, Any], folder: Path, **options: Any) -> Audit:
    rows = frame(given)  # noqa: F841 (DuckDB finds it by its name)
    return audit_table(duckdb.sql("select * from rows"), **flat(**ROLES, **QUICK, **options))


def by_command(*commands: Sequence[str]) -> None:
    for command in commands:
        done = CliRunner().invoke(main, list(command))
        assert done.exit_code == 0, done.output


OPTIONS = ("--score", "score", "--group", "group", "--control", "stratum", "--label", "label")


def counted(given: dict[str, Any], folder: Path) -> Audit:
    rows = written(given, folder / "rows.csv")
    by_command(["count", str(rows), *OPTIONS, "--output", str(folder / "rows.state")])
    return load(folder / "rows.state").audit(random_state=0, metrics="kolmogorov")


AUDITS: dict[str, Callable[[dict[str, Any], Path], Audit]] = {
    "audit": in_memory,
    "csv": from_file("csv"),
    "Parquet": from_file("parquet"),
    "csv out of core": from_file("csv", in_memory_rows=10),
    "Parquet out of core": from_file("parquet", in_memory_rows=10),
    "table": lambda given, folder: audit_table(frame(given).lazy(), **flat(**ROLES, **QUICK)),
    "database": from_database,
    "database out of core": lambda given, folder: from_database(given, folder, in_memory_rows=10),
    "state": lambda given, folder: state(given).audit(random_state=0, metrics="kolmogorov"),
    "count": counted,
}


@pytest.mark.parametrize("entry", AUDITS)
@pytest.mark.parametrize("role", ["group", "stratum", "label"])
@pytest.mark.parametrize("spelling", TYPES_OF_FILES)
def test_audits_of_all_spellings_have_the_same_figures(
    spelling: str, role: str, entry: str, tmp_path: Path
) -> None:
    found = AUDITS[entry](columns(**{role: SPELLINGS[spelling]}), tmp_path)
    expected = AUDITS[entry](columns(), tmp_path)
    assert figures(found) == figures(expected)
    parity = [
        finding.value
        for finding in found.findings
        if finding.criterion.endswith("statistical_parity")
    ]
    assert sorted(parity, reverse=True) == pytest.approx(GAPS, abs=1e-5)
    assert found.worst().value >= GAPS[0] - 1e-5


@pytest.mark.parametrize("role", ["group", "stratum", "label"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_arrays_of_all_kinds_have_the_same_figures(spelling: str, role: str) -> None:
    given = columns(**{role: SPELLINGS[spelling]})
    assert figures(in_memory(given, Path())) == figures(in_memory(columns(), Path()))
    named = {"sensitive_features": given["group"], "control_features": given["stratum"]}
    for criterion in ("statistical_parity", "conditional_statistical_parity", "equal_opportunity"):
        found = unfairness(given["label"], SCORE, criterion=criterion, **named)
        assert found == unfairness(
            integers(LABEL), SCORE, criterion=criterion, **arguments(columns())
        )
    assert unfairness(None, SCORE, **named, reduce="sum") == pytest.approx(sum(GAPS))


@pytest.mark.parametrize("role", ["group", "stratum", "label"])
@pytest.mark.parametrize("spelling", TYPES_OF_FILES)
def test_comparisons_and_series_have_the_same_figures(spelling: str, role: str) -> None:
    given = columns(**{role: SPELLINGS[spelling]})
    periods = [
        {f"day {day}": state(rows, slice(day, None, 3)) for day in range(3)}
        for rows in (given, columns())
    ]
    series = [monitor(days, random_state=0, metrics="kolmogorov").record for days in periods]
    values = [[look.value for look in record.series] for record in series]
    assert len(values[0]) > 1
    assert values[0] == values[1]
    if spelling != "words":  # "yes" is another value than 1, and is not matched
        different = compare(in_memory(given, Path()), of_other_scores())
        expected = compare(in_memory(columns(), Path()), of_other_scores())
        assert [one.difference for one in different.differences] == [
            one.difference for one in expected.differences
        ]


def of_other_scores() -> Audit:
    return audit(
        integers(LABEL),
        np.round(1 - SCORE, 2),
        **arguments(columns()),
        **flat(metrics="kolmogorov", **QUICK),
    )


@pytest.mark.parametrize("role", ["group", "stratum", "label"])
@pytest.mark.parametrize("spelling", TYPES_OF_FILES)
def test_the_command_line_reports_the_same_figures(
    spelling: str, role: str, tmp_path: Path
) -> None:
    pages = []
    for name, given in (
        ("spelled", columns(**{role: SPELLINGS[spelling]})),
        ("integers", columns()),
    ):
        rows = written(given, tmp_path / f"{name}.csv")
        page = tmp_path / f"{name}.json"
        by_command(["audit", str(rows), *OPTIONS, "--metric", "kolmogorov", "--json", str(page)])
        pages.append(json.loads(page.read_text()))
    values = [
        sorted(round(finding["value"], DIGITS) for finding in page["findings"]) for page in pages
    ]
    assert values[0] == values[1]
    assert max(values[0]) >= round(GAPS[0], DIGITS)


SHORT: dict[str, Any] = {"model": "linear", "random_state": 0}
CONDITIONAL = {"criterion": "conditional_statistical_parity"}
MODELS: dict[str, Callable[[], Any]] = {
    "FairClassifier": lambda: FairClassifier(5.0, **CONDITIONAL, **SHORT),
    "FairClassifier of equal opportunity": lambda: FairClassifier(
        2.0, criterion="equal_opportunity", **SHORT
    ),
    "FairLGBMClassifier": lambda: FairLGBMClassifier(
        2.0, **CONDITIONAL, n_estimators=5, random_state=0
    ),
    "FairXGBClassifier": lambda: FairXGBClassifier(
        2.0, **CONDITIONAL, n_estimators=5, random_state=0
    ),
}


def probabilities(make: Callable[[], Any], given: dict[str, Any]) -> np.ndarray:
    return make().fit(FEATURES, given["label"], **arguments(given)).predict_proba(FEATURES)[:, 1]


@pytest.mark.parametrize("role", ["group", "stratum", "label"])
@pytest.mark.parametrize("model", MODELS)
def test_models_of_all_spellings_predict_the_same(model: str, role: str) -> None:
    if (model, role) == ("FairXGBClassifier", "label"):
        pytest.skip("XGBoost requires the labels 0 and 1")
    expected = probabilities(MODELS[model], columns())
    for spelling in ("booleans", "booleans of pandas", "text of booleans", "words"):
        given = columns(**{role: SPELLINGS[spelling]})
        assert np.array_equal(probabilities(MODELS[model], given), expected), spelling


def test_a_fair_model_is_fair_within_both_strata() -> None:
    """With booleans as strata, the gap in the stratum False was 0.67 after training for parity
    within strata.
    """
    plain = FairClassifier(0.0, **SHORT).fit(FEATURES, LABEL, sensitive_features=GROUP)
    fair = FairClassifier(10.0, **CONDITIONAL, **SHORT)
    fair.fit(FEATURES, LABEL, sensitive_features=GROUP, control_features=STRATUM)
    within = {
        "sensitive_features": GROUP,
        "control_features": STRATUM,
        "criterion": "conditional_statistical_parity",
    }
    before, after = (
        unfairness(None, model.predict_proba(FEATURES)[:, 1], metric="energy", **within)
        for model in (plain, fair)
    )
    assert after < 0.2 * before


def test_streams_and_regressors_have_strata_of_booleans() -> None:
    outputs = []
    for stratum in (STRATUM, integers(STRATUM), np.where(STRATUM, "yes", "no")):
        stream = FairClassifier(2.0, **CONDITIONAL, **SHORT, batch_size=64)
        stream.partial_fit(FEATURES, LABEL, sensitive_features=GROUP, control_features=stratum)
        stream.partial_fit(FEATURES, LABEL, sensitive_features=GROUP, control_features=stratum)
        number = FairRegressor(2.0, **CONDITIONAL, **SHORT)
        number.fit(FEATURES, SCORE, sensitive_features=GROUP, control_features=stratum)
        outputs.append(
            np.concatenate([stream.predict_proba(FEATURES)[:, 1], number.predict(FEATURES)])
        )
    assert np.array_equal(outputs[0], outputs[1])
    assert np.array_equal(outputs[0], outputs[2])


POSTPROCESSORS: dict[str, Callable[[], Any]] = {
    "barycenter": lambda: BarycenterPostprocessor(LogisticRegression(), random_state=0),
    "thresholds": lambda: ThresholdPostprocessor(LogisticRegression(), random_state=0),
}


@pytest.mark.parametrize("role", ["group", "label", "cluster"])
@pytest.mark.parametrize("postprocessor", POSTPROCESSORS)
def test_postprocessors_of_all_spellings_predict_the_same(postprocessor: str, role: str) -> None:
    outputs = []
    for spell in (integers, *SPELLINGS.values()):
        given = {
            name: spell(flags) if name == role else integers(flags)
            for name, flags in (("group", GROUP), ("label", LABEL), ("cluster", PERSON % 16 < 8))
        }
        model = POSTPROCESSORS[postprocessor]()
        if role == "cluster":  # two clusters cannot be divided into more folds
            model.set_params(folds=2)
        clusters = {"clusters": given["cluster"]} if role == "cluster" else {}
        model.fit(FEATURES, given["label"], sensitive_features=given["group"], **clusters)
        predicted = model.predict(FEATURES, sensitive_features=given["group"])
        outputs.append(np.unique(predicted, return_inverse=True)[1])
    assert all(np.array_equal(output, outputs[0]) for output in outputs)


@pytest.mark.parametrize("role", ["group", "stratum", "label", "cluster"])
def test_frontiers_of_all_spellings_have_the_same_points(role: str) -> None:
    """Clusters have nine names."""
    names = [
        np.array(words)[PERSON % 9]
        for words in (range(9), list("987654321"), [f"c{k}" for k in range(9)])
    ]
    points = []
    for place, spelling in enumerate(("short integers", "booleans", "text of booleans", "words")):
        given = columns(**{role: SPELLINGS[spelling]} if role != "cluster" else {})
        clusters = names[place % 3] if role == "cluster" else PERSON
        front = frontier(
            FairClassifier(**CONDITIONAL, **SHORT),
            FEATURES,
            given["label"],
            **arguments(given),
            strengths=[0.0, 5.0],
            folds=2,
            clusters=clusters,
            random_state=0,
        )
        points.append([(point.unfairness, point.accuracy) for point in front.points])
    assert all(other == points[0] for other in points)


# Decisions: the favorable one is named in the spelling of the column.
FAVORABLE = {
    "booleans": True,
    "text of booleans": "True",
    "text of a csv": "true",
    "words": "yes",
    "short integers": 1,
}
RATES = sorted(round(float(DECISION[group == GROUP].mean()), DIGITS) for group in (False, True))


def selected(result: Audit) -> list[float]:
    return sorted(round(rate.selection_rate, DIGITS) for rate in result.decisions[0].rates)


@pytest.mark.parametrize("spelling", FAVORABLE)
def test_decisions_of_all_spellings_have_the_same_rates(spelling: str, tmp_path: Path) -> None:
    decision, favorable = SPELLINGS[spelling](DECISION), FAVORABLE[spelling]
    named: dict[str, Any] = {"favorable_decision": favorable, **QUICK}
    rows = pl.DataFrame({"decision": decision.tolist(), "sex": integers(GROUP)})
    in_columns: dict[str, Any] = {"score": "decision", "group": "sex", **named}
    rows.write_csv(tmp_path / "rows.csv")
    rows.write_parquet(tmp_path / "rows.parquet")
    audits = [audit(None, decision, sensitive_features=integers(GROUP), **flat(**named))]
    for in_memory_rows in (10_000, 10):
        options = flat(in_memory_rows=in_memory_rows, **in_columns)
        audits += [
            audit_file(tmp_path / f"rows.{ending}", **options) for ending in ("csv", "parquet")
        ]
        audits += [
            audit_table(rows.lazy(), **options),
            audit_table(duckdb.sql("select * from rows"), **options),
        ]
    if spelling in ("booleans", "short integers"):  # numbers, of which 1 is the favorable one
        audits += [audit(None, decision, sensitive_features=integers(GROUP), **flat(**QUICK))]
        audits += [
            AuditState()
            .add(None, decision, sensitive_features=integers(GROUP))
            .audit(random_state=0)
        ]
        gap = unfairness(None, decision, sensitive_features=integers(GROUP))
        assert gap == pytest.approx(RATES[1] - RATES[0], abs=1e-5)
    assert [selected(result) for result in audits] == [RATES] * len(audits)


@pytest.mark.parametrize("spelling", FAVORABLE)
def test_the_command_line_reads_decisions_in_all_spellings(spelling: str, tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"decision": SPELLINGS[spelling](DECISION).tolist(), "sex": integers(GROUP)}
    )
    rows.write_csv(tmp_path / "rows.csv")
    chosen = [
        "--score",
        "decision",
        "--group",
        "sex",
        "--favorable-decision",
        str(FAVORABLE[spelling]).lower() if spelling == "booleans" else str(FAVORABLE[spelling]),
    ]
    by_command(
        ["audit", str(tmp_path / "rows.csv"), *chosen, "--json", str(tmp_path / "page.json")]
    )
    page = json.loads((tmp_path / "page.json").read_text())
    rates = [group["selection_rate"] for group in page["decisions"][0]["rates"]]
    assert sorted(round(value, DIGITS) for value in rates) == RATES


def test_penalties_of_booleans_are_those_of_integers() -> None:
    from metrifair.nn import UnfairnessPenalty  # noqa: PLC0415 (torch)

    values = []
    for spell in (lambda flags: flags, integers):
        penalty = UnfairnessPenalty("equal_opportunity", random_state=0)
        values.append(
            penalty(
                torch.as_tensor(SCORE), torch.as_tensor(spell(GROUP)), torch.as_tensor(spell(LABEL))
            )
        )
    assert values[0].item() == values[1].item()
