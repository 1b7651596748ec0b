"""Four people with messy files: the commands of the documentation, and the figures that they must
give.

Every expected figure is counted here from the rows, in plain Python.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml
from click.testing import CliRunner, Result

from metrifair import AuditOptions, FairClassifier, audit, audit_file, to_card
from metrifair.cli import main

QUICK = AuditOptions(resamples=50, permutations=50)


def run(*arguments: object, code: int = 0) -> Result:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def kolmogorov(first: list[float], second: list[float]) -> float:
    points = sorted({*first, *second})
    shares = [
        [sum(score <= point for score in side) / len(side) for point in points]
        for side in (first, second)
    ]
    return max(abs(one - other) for one, other in zip(*shares, strict=True))


def by_group(rows: list[dict[str, Any]], group: str, score: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row[group], []).append(row[score])
    return found


def test_a_bank_audits_and_trains_on_an_export_from_a_spreadsheet(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """Windows letters, semicolons, decimal commas, words for missing values, a constant column,
    text decisions.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(11)
    rows: list[dict[str, Any]] = []
    for number in range(600):
        sex = "Männer" if rng.random() < 0.6 else "Frauen"
        income = round(float(rng.normal(30 + 5 * (sex == "Männer"), 8)), 1)
        outcome = "Approved" if income + rng.normal(0, 6) > 30 else "Declined"
        p = round(float(1 / (1 + np.exp(-(income - 30) / 6))), 3)
        rows.append(
            {"Nr": number, "Sex": sex, "Income": income, "Land": "AT", "Outcome": outcome, "p": p}
        )
    cells = [
        {
            **row,
            "Income": str(row["Income"]).replace(".", ","),
            "p": str(row["p"]).replace(".", ","),
        }
        for row in rows
    ]
    for row, cell in list(zip(rows, cells, strict=True))[::50]:
        cell["p"], row["p"] = "k.A.", None
    text = "\r\n".join([";".join(cells[0]), *(";".join(map(str, cell.values())) for cell in cells)])
    Path("bank.csv").write_bytes(text.encode("cp1252"))
    reading = ("--separator", ";", "--decimal", ",", "--encoding", "cp1252", "--missing", "k.A.")

    run("audit", "bank.csv", "--score", "p", "--group", "Sex", *reading, "--json", "a.json")
    found = json.loads(Path("a.json").read_text())
    scores = by_group([row for row in rows if row["p"] is not None], "Sex", "p")
    (finding,) = [one for one in found["findings"] if one["metric"] == "kolmogorov"]
    assert finding["value"] == pytest.approx(
        kolmogorov(scores["Frauen"], scores["Männer"]), abs=1e-9
    )
    assert (found["rows"], found["left_out"]) == (588, 12)

    asked = (
        "--label",
        "Outcome",
        "--group",
        "Sex",
        "--id",
        "Nr",
        "--ignore",
        "p",
        "--model",
        "linear",
    )
    written = ("--output", "m.metrifair", "--held-out", "held.csv")
    done = run("train", "bank.csv", *asked, *reading, *written, code=2)
    # the last in ascending order is "Declined", so the bank must name the positive outcome
    assert "must be named: 'Declined'" in done.output or "must be named: 'Approved'" in done.output
    run("train", "bank.csv", *asked, *reading, *written, "--positive", "Approved")
    held = pl.read_csv("held.csv").to_dicts()
    run("audit", "held.csv", "--score", "probability", "--group", "Sex", "--label", "Outcome", "--positive", "Approved",
        "--json", "held.json")  # fmt: skip
    found = json.loads(Path("held.json").read_text())
    own = by_group(held, "Sex", "probability")
    expected = kolmogorov(own["Frauen"], own["Männer"])
    values = [one["value"] for one in found["findings"]
              if (one["metric"], one["criterion"]) == ("kolmogorov", "statistical_parity")]  # fmt: skip
    assert values == [pytest.approx(expected, abs=1e-9)]

    card = run("card", "m.metrifair", "--audit", "held.json").stdout
    assert "Audited: held-out rows of bank.csv" in card
    assert "| Features | 1: Income |" in card  # Land is constant
    run(
        "predict", "m.metrifair", "bank.csv", *reading, "--keep", "Sex,Outcome", "--output", "p.csv"
    )
    assert [(row["Nr"], row["Sex"]) for row in pl.read_csv("p.csv").to_dicts()] == [
        (row["Nr"], row["Sex"]) for row in rows
    ]


def test_a_compliance_officer_writes_the_table_of_a_rule(tmp_path: Path, monkeypatch: Any) -> None:
    """Decisions in words, some still open, and a category that is too small for a ratio."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(12)
    groups = rng.choice(["Black", "Hispanic", "White", "Native"], 2_000, p=[0.3, 0.29, 0.4, 0.01])
    chances = {"Black": 0.3, "Hispanic": 0.35, "White": 0.4, "Native": 0.6}
    rows = []
    for group in groups:
        decision = (
            "Pending"
            if rng.random() < 0.05
            else "Advanced"
            if rng.random() < chances[group]
            else "Rejected"
        )
        rows.append({"Race": group, "Decision": f" {decision}"})
    pl.DataFrame(rows).write_csv("decisions.csv")
    asked = ("decisions.csv", "--score", "Decision", "--group", "Race", "--standard", "ll144")

    counts = Counter(row["Decision"].strip() for row in rows)
    refused = " ".join(run("audit", *asked, code=2).stderr.split())
    listed = ", ".join(f"'{value}' ({count:,})" for value, count in counts.most_common())
    assert f"use --favorable-decision VALUE if these values are decisions: {listed}" in refused
    run("audit", *asked, "--favorable-decision", "Approved", code=2)  # no such value

    run(
        "audit",
        *asked,
        "--favorable-decision",
        "Advanced",
        "--missing",
        "Pending",
        "--json",
        "a.json",
        "--rates",
        "r.csv",
    )
    decided = [row for row in rows if row["Decision"] != " Pending"]
    people = Counter(row["Race"] for row in decided)
    advanced = Counter(row["Race"] for row in decided if row["Decision"] == " Advanced")
    rates = {group: advanced[group] / people[group] for group in people}
    highest = max(rates[group] for group in people if people[group] >= 0.02 * len(decided))
    found = json.loads(Path("a.json").read_text())
    table = {one["group"]: one for one in found["decisions"][0]["rates"]}
    for group in people:
        assert (table[group]["size"], table[group]["selection_rate"]) == (
            people[group],
            pytest.approx(rates[group]),
        )
        expected = None if group == "Native" else pytest.approx(rates[group] / highest)
        assert table[group]["ratio"] == expected
    assert found["left_out"] == counts["Pending"]
    assert set(pl.read_csv("r.csv")["group"]) == set(people)

    result = audit_file(
        "decisions.csv",
        score="Decision",
        group="Race",
        favorable_decision="Rejected",
        options=QUICK,
    )
    rejected = {one.group: one.selection_rate for one in result.record.decisions[0].rates}
    shares = Counter(row["Race"] for row in rows if row["Decision"] == " Rejected")
    totals = Counter(row["Race"] for row in rows)
    # as the user stated
    assert rejected == pytest.approx({group: shares[group] / totals[group] for group in totals})


def test_a_data_scientist_works_in_a_notebook() -> None:
    """A pandas table with gaps, labels in words and decisions in words."""
    rng = np.random.default_rng(13)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 500), "x": rng.normal(size=500)})
    table["x"] += table["sex"] == "m"
    table["y"] = np.where(table["x"] + rng.normal(size=500) > 0.5, "yes", "no")
    table.loc[::40, "sex"] = None
    train, test = table[:250].dropna(), table[250:].dropna()
    model = FairClassifier(1.0, model="linear", random_state=0)
    model.fit(train[["x"]], train["y"], sensitive_features=train["sex"])
    scores = model.predict_proba(test[["x"]])[:, 1]
    result = audit(test["y"], scores, sensitive_features=test["sex"], random_state=0, options=QUICK)
    own = {group: scores[(test["sex"] == group).to_numpy()].tolist() for group in ("f", "m")}
    worst = result.worst(metric="kolmogorov", criterion="statistical_parity")
    assert worst.value == pytest.approx(kolmogorov(own["f"], own["m"]), abs=1e-9)

    words = np.where(scores >= 0.5, "Approved", "Declined")
    decided = audit(
        None, words, sensitive_features=test["sex"], favorable_decision="Approved", options=QUICK
    )
    rates = {
        one.group: one.selection_rate
        for one in decided.rates("four-fifths").audit.record.decisions[0].rates
    }
    assert rates == pytest.approx(
        {group: np.mean([one >= 0.5 for one in own[group]]) for group in own}
    )

    assert "## An audit of other scores" in to_card(model, result)
    card = to_card(model, result, audited_rows="rows 250 to 499")
    metrics = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"][0]["metrics"]
    (value,) = [
        one["value"]
        for one in metrics
        if one["name"].startswith("Kolmogorov") and "parity" in one["name"]
    ]
    assert value == pytest.approx(worst.value, abs=5e-4)


def test_a_pipeline_stops_at_an_unfair_model(tmp_path: Path, monkeypatch: Any) -> None:
    """Exit codes: 0 within the limit, 1 beyond it, 2 where the limit or the file cannot be used."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(14)
    rows = [
        {"sex": group, "p": round(float(rng.beta(2 + (group == "m"), 2)), 3)}
        for group in ["f", "m"] * 300
    ]
    pl.DataFrame(rows).with_columns(
        pl.when(pl.int_range(pl.len()) % 97 != 0).then("p").alias("p")
    ).write_csv("s.csv")
    known = [row for number, row in enumerate(rows) if number % 97 != 0]
    scores = by_group(known, "sex", "p")
    true = kolmogorov(scores["f"], scores["m"])
    rates = {group: sum(one >= 0.5 for one in own) / len(own) for group, own in scores.items()}
    asked = ("audit", "s.csv", "--score", "p", "--group", "sex")

    run(*asked, "--fail-above", f"kolmogorov={true + 1e-6}")
    broken = run(*asked, "--fail-above", f"kolmogorov={true - 1e-6}", code=1)
    assert f"Unfair: kolmogorov is {true:.4g}" in broken.output
    ratio = min(rates.values()) / max(rates.values())
    run(*asked, "--fail-below", f"selection_ratio={ratio - 1e-6}")
    run(*asked, "--fail-below", f"selection_ratio={ratio + 1e-6}", code=1)
    assert "0.95" in run(*asked, "--confidence", "95", code=2).stderr
    assert "did you mean 'kolmogorov'?" in run(*asked, "--fail-above", "ks=0.1", code=2).stderr
    assert "metrifair compare" in run("audit", "s.csv", "t.csv", *asked[2:], code=2).stderr
    run("audit", "gone.csv", *asked[2:], "--fail-above", "kolmogorov=0.1", code=2)
