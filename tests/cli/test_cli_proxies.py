"""`--group-probabilities` of `audit`, `count`, `train` and `frontier`: columns of probabilities
in place of groups.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from html import unescape
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from click.testing import Result

from metrifair import GroupProbabilities, unfairness

ROWS = 300
RANDOM = np.random.default_rng(0)
SHARE = RANDOM.uniform(0.05, 0.95, ROWS)
SCORE = np.clip(RANDOM.normal(0.3 + 0.3 * SHARE, 0.2), 0, 1)
RACE = ("--group-probabilities", "race=white:p_white,black:p_black")


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    black = RANDOM.uniform(size=ROWS) >= SHARE
    known = [
        ("black" if one else "white") if place % 3 == 0 else None for place, one in enumerate(black)
    ]
    table = {
        "p": SCORE,
        "p_white": SHARE,
        "p_black": 1 - SHARE,
        "race": known,
        "tract": np.floor(SHARE * 3),
    }
    pl.DataFrame({**table, "y": RANDOM.integers(0, 2, ROWS)}).write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_an_audit_by_probabilities_states_its_assumption_and_what_checks_it(
    call: Callable[..., Result], scores: Path, tmp_path: Path
) -> None:
    checks = ("--known-group", "race", "--proxy-cells", "tract", "--json", tmp_path / "audit.json")
    found = call(
        "audit", scores, "--score", "p", *RACE, *checks, "--seed", 0, env={"COLUMNS": "140"}
    )
    assert found.exit_code == 0, found.output
    words = " ".join(found.stdout.split())
    assert (
        "The figures weight each row by P(race). They are valid for the true groups only if score "
        "and group" in words
    )
    assert "Corrected with 100 rows of known group" in words
    assert "Bounds without the assumption" in words
    record = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    race = GroupProbabilities({"white": SHARE, "black": 1 - SHARE}, attribute="race")
    expected = unfairness(None, SCORE, sensitive_features=race)
    assert record["findings"][0]["value"] == pytest.approx(expected, abs=1e-9)
    assert record["proxy"]["corrected_by"] == "known_groups"


RECORDED = {
    "named groups": RACE,
    "names of columns": ("--group-probabilities", "race=p_white,p_black"),
    "known groups": (*RACE, "--known-group", "race"),
    "inputs": (*RACE, "--proxy-cells", "tract"),
    "labels": (*RACE, "--label", "y", "--proxy-labels", "independent"),
}


@pytest.mark.parametrize("case", RECORDED)
def test_the_recorded_call_of_an_audit_by_probabilities_gives_its_figures_again(
    call: Callable[..., Result], scores: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scores.parent)
    typed = ["audit", scores.name, "--score", "p", *RECORDED[case], "--json", "-", "--seed", "0"]
    typed += ["--html", "page.html"]
    first = call(*typed)
    assert first.exit_code == 0, first.output
    record = json.loads(first.stdout)
    words = shlex.split(record["provenance"]["call"])
    assert sorted(words[1:]) == sorted(typed)
    assert record["provenance"]["call"] in unescape(Path("page.html").read_text(encoding="utf-8"))
    again = call(*words[1:])
    assert again.exit_code == 0, again.output
    repeated = json.loads(again.stdout)
    del record["provenance"]["time"], repeated["provenance"]["time"]
    assert repeated == record


def test_only_columns_with_probabilities_are_recorded_as_groups(
    call: Callable[..., Result], scores: Path, tmp_path: Path
) -> None:
    asked = (
        "--known-group",
        "race",
        "--proxy-cells",
        "tract",
        "--html",
        tmp_path / "page.html",
        "--json",
        "-",
    )
    found = call("audit", scores, "--score", "p", *RACE, *asked)
    columns = json.loads(found.stdout)["provenance"]["columns"]
    assert columns["group"] == ["p_white", "p_black"]
    assert (columns["known_groups"], columns["cells"]) == (["race"], ["tract"])
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (
        "group: p_white, p_black; known groups: race; inputs of the group probabilities: tract"
        in page
    )


def audited(call: Callable[..., Result], scores: Path, *limits: object) -> tuple[int, str]:
    found = call(
        "audit", scores, "--score", "p", *RACE, *limits, "--seed", 0, env={"COLUMNS": "140"}
    )
    return found.exit_code, " ".join(found.stdout.split())


def test_limits_are_broken_if_both_ends_break_them(
    call: Callable[..., Result], scores: Path
) -> None:
    race = GroupProbabilities({"white": SHARE, "black": 1 - SHARE}, attribute="race")
    weighted = unfairness(None, SCORE, sensitive_features=race)
    divided = min(1.0, weighted / (SHARE.var() / (SHARE.mean() * (1 - SHARE.mean()))))
    below, between, above = weighted / 2, (weighted + divided) / 2, (1 + divided) / 2
    code, words = audited(call, scores, "--fail-above", f"kolmogorov={below}")
    assert (code, "Unfair: kolmogorov" in words) == (1, True)
    code, words = audited(call, scores, "--fail-above", f"kolmogorov={between}")
    assert (code, "Unfair:" in words) == (0, False)
    assert (
        "Possibly unfair, but no limit is broken: at one of its two ends, kolmogorov is "
        f"{divided:.4g}" in words
    )
    code, words = audited(call, scores, "--fail-above", f"kolmogorov={above}")
    assert (code, "unfair" in words) == (0, False)
    known = "--known-group", "race"
    code, words = audited(call, scores, *known, "--fail-above", f"kolmogorov={between}")
    assert (code, "Possibly" in words) == (0, False)


def test_limits_of_ratios_and_bounds_have_two_ends_too(
    call: Callable[..., Result], scores: Path, tmp_path: Path
) -> None:
    audited(call, scores, "--json", tmp_path / "audit.json")
    record = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    table, finding = record["decisions"][0], record["findings"][0]
    between = (table["selection_ratio"] + table["divided"]["selection_ratio"]) / 2
    code, words = audited(
        call, scores, "--fail-below", f"selection_ratio={between}", "--json", tmp_path / "b.json"
    )
    assert (code, "Possibly unfair" in words) == (0, True)
    limits = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))["limits"]
    assert [(limit["broken"], limit["possibly_broken"]) for limit in limits] == [(False, True)]
    lows = finding["joint_interval"]["low"], finding["divided"]["joint_interval"]["low"]
    code, words = audited(call, scores, "--fail-certain-above", f"kolmogorov={sum(lows) / 2}")
    assert (code, "Possibly unfair" in words) == (0, True)
    code, _ = audited(call, scores, "--fail-certain-above", f"kolmogorov={lows[0] / 2}")
    assert code == 1


def test_both_ends_are_in_every_output(
    call: Callable[..., Result], scores: Path, tmp_path: Path
) -> None:
    written = "--html", tmp_path / "page.html", "--output", tmp_path / "findings.csv"
    _, words = audited(call, scores, *written)
    frame = pl.read_csv(tmp_path / "findings.csv")
    low, high = frame["value"][0], frame["divided"][0]
    bracket = f"The gap is {100 * low:.1f} to {100 * high:.1f} points"
    assert bracket in words
    page = unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    for text in (words, page):
        assert f"the true gaps are those divided by R2 (R2 {frame['r2'][0]:.3f})" in text
        assert "as with most surnames" in text
        assert "as with most places" in text
    assert bracket in page
    assert f" {high:.3f} " in words  # in the table of comparisons
    assert '<th scope="col">Divided by R2</th>' in page.replace("'", '"')


def test_probabilities_of_four_digits_are_read(call: Callable[..., Result], tmp_path: Path) -> None:
    third = np.full(ROWS, 0.3333)
    table = {"p": SCORE, "a": third, "b": third, "c": third}
    pl.DataFrame(table).write_csv(tmp_path / "rounded.csv")
    named = "--score", "p", "--group-probabilities", "race=a,b,c"
    assert call("audit", tmp_path / "rounded.csv", *named).exit_code == 0
    pl.DataFrame(table | {"c": third / 2}).write_csv(tmp_path / "wrong.csv")
    found = call("audit", tmp_path / "wrong.csv", *named)
    assert found.exit_code == 2
    words = " ".join(found.stderr.split())
    assert "which 300 rows do not satisfy" in words
    # nobody can on the command line, and a group may be missing
    assert "divide each row by its sum" not in words


REFUSED = {
    "neither": ((), "Missing option '--group', or '--group-probabilities'"),
    "both": ((*RACE, "--group", "tract"), "--group and --group-probabilities cannot be combined"),
    "without probabilities": (
        ("--group", "race", "--proxy-cells", "tract"),
        "--proxy-cells needs --group-probabil",
    ),
    "one column": (
        ("--group-probabilities", "race=p_white"),
        "must be NAME=COLUMNS, such as race=p_white,p_black",
    ),
    "no such column": (
        ("--group-probabilities", "race=p_white,p_red"),
        "has no column 'p_red' (given as group)",
    ),
    "no probabilities": (
        ("--group-probabilities", "race=p_white,tract"),
        "the probabilities of race must lie in [0, 1]",
    ),
    "other names": (
        ("--group-probabilities", "race=p_white,p_black", "--known-group", "race"),
        "--known-group must be missing or one of the groups ['p_white', 'p_black']",
    ),
    "labels": (
        (*RACE, "--label", "y", "--criterion", "equal_opportunity"),
        (
            "equal_opportunity uses labels, which needs a further assumption about P(race); use "
            "--proxy-labels included"
        ),
    ),
    "reported groups": (
        (*RACE, "--standard", "ll144"),
        "--standard does not permit imputed groups",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_audited_is_refused_in_the_words_of_options(
    call: Callable[..., Result], scores: Path, case: str
) -> None:
    options, message = REFUSED[case]
    found = call("audit", scores, "--score", "p", *options, env={"COLUMNS": "300"})
    assert found.exit_code == 2
    assert message in found.stderr


def test_figures_by_label_are_shown_where_a_reason_is_stated(
    call: Callable[..., Result], scores: Path
) -> None:
    asked = "audit", scores, "--score", "p", *RACE, "--label", "y"
    found = call(*asked, env={"COLUMNS": "300"})
    assert (
        "Figures by label are omitted, because they need a further assumption about P(race). Use "
        "--proxy-labels" in found.stdout
    )
    found = call(*asked, "--proxy-labels", "independent", env={"COLUMNS": "300"})
    assert "only if score and label together are independent of the group" in found.stdout
    assert "y=1 (Equal" in found.stdout


def test_commands_without_the_option_refuse_it(call: Callable[..., Result], scores: Path) -> None:
    asked = "--score", "p", *RACE, "--output", scores.with_suffix(".state")
    for command in (
        ("evidence", scores, "--score", "p", *RACE),
        ("count", scores, *asked, "--known-group", "race"),
    ):
        found = call(*command)
        assert found.exit_code == 2
        assert "No such option" in found.stderr


@pytest.mark.parametrize("written", ["csv", "duckdb"])
def test_counts_by_probabilities_are_audited_as_their_rows_are(
    call: Callable[..., Result], scores: Path, tmp_path: Path, written: str
) -> None:
    rows, states = pl.read_csv(scores), []
    for name, part in (("may", rows[:100]), ("june", rows[100:])):
        part.write_csv(tmp_path / f"{name}.csv")
        place: tuple[object, ...] = (tmp_path / f"{name}.csv",)
        if written == "duckdb":
            with duckdb.connect(str(tmp_path / "scores.db")) as database:
                database.sql(f"create table {name} as select * from part")
            place = f"duckdb:{tmp_path / 'scores.db'}", "--table", name
        states.append(tmp_path / f"{name}.state")
        done = call("count", *place, "--score", "p", *RACE, "--name", name, "--output", states[-1])
        assert done.exit_code == 0, done.output
        assert f"AuditState of {name}: {len(part)} rows in 2 cells" in done.stdout
    made = "--json", tmp_path / "merged.json", "--html", tmp_path / "merged.html", "--seed", 0
    merged = call("merge", *states, *made, env={"COLUMNS": "140"})
    assert merged.exit_code == 0, merged.output
    assumption = "The figures weight each row by P(race). They are valid for the true groups only if score and group"
    assert assumption in " ".join(merged.stdout.split())
    assert assumption in (tmp_path / "merged.html").read_text(encoding="utf-8")
    call("audit", scores, "--score", "p", *RACE, "--json", tmp_path / "audit.json", "--seed", 0)
    found, exact = (
        json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("merged", "audit")
    )
    assert found["proxy"]["assumption"] == exact["proxy"]["assumption"] == "scores"
    for ours, theirs in zip(found["findings"], exact["findings"], strict=True):
        assert (ours["groups"], ours["metric"], ours["sizes"]) == (
            theirs["groups"],
            theirs["metric"],
            theirs["sizes"],
        )
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-12)
        for end in ("low", "high"):
            assert ours["interval"][end] == pytest.approx(theirs["interval"][end], abs=0.01)
    assert call("compare", *states).exit_code == 0
    assert call("monitor", *states).exit_code == 0


def test_counting_needs_groups_or_probabilities(call: Callable[..., Result], scores: Path) -> None:
    for given, message in (
        ((), "Missing option '--group', or '--group-probabilities'"),
        ((*RACE, "--group", "tract"), "--group and --group-probabilities cannot be combined"),
        (
            ("--group", "tract", "--proxy-labels", "included"),
            "--proxy-labels needs --group-probabilities",
        ),
        (
            ("--group-probabilities", "race=p_white,tract"),
            "the probabilities of race must lie in [0, 1]",
        ),
    ):
        found = call(
            "count", scores, "--score", "p", *given, "--output", scores.with_suffix(".state")
        )
        assert found.exit_code == 2
        assert message in " ".join(found.stderr.split())


@pytest.fixture
def people(tmp_path: Path) -> Path:
    income = RANDOM.normal(size=ROWS) + 3 * SHARE
    known = ["white" if one else "black" for one in RANDOM.uniform(size=ROWS) < SHARE]
    label = np.where(income + RANDOM.logistic(size=ROWS) > 1.5, "yes", "no")
    table = {
        "income": income,
        "age": RANDOM.normal(size=ROWS),
        "p_white": SHARE,
        "p_black": 1 - SHARE,
        "race": known,
    }
    pl.DataFrame({**table, "approved": label}).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_a_model_is_trained_by_probabilities_that_are_no_features(
    call: Callable[..., Result], people: Path, tmp_path: Path
) -> None:
    asked = (
        people,
        "--label",
        "approved",
        *RACE,
        "--known-group",
        "race",
        "--model",
        "linear",
        "--test",
        0.4,
    )
    written = (
        "--held-out",
        tmp_path / "held-out.csv",
        "--json",
        tmp_path / "model.json",
        "--html",
        tmp_path / "a.html",
    )
    found = call("train", *asked, "--strength", 3, *written, env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output
    words = " ".join(found.stdout.split())
    assert "(2 columns, as" in words
    assert (
        "The figures weight each row by P(race). They are valid for the true groups only if score "
        "and group" in words
    )
    assert "sample weights" not in words
    again = (
        "--group-probabilities race=white:p_white,black:p_black --known-group race --label approved"
    )
    assert f"metrifair audit {tmp_path / 'held-out.csv'} --score probability {again}" in words
    held_out = pl.read_csv(tmp_path / "held-out.csv")
    race = GroupProbabilities(
        {"white": held_out["p_white"], "black": held_out["p_black"]}, attribute="race"
    )
    # the model of all other rows, on the test rows
    point = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["chosen"]
    # without the part that chance explains
    assert point["unfairness"] < unfairness(None, held_out["probability"], sensitive_features=race)
    decided = (held_out["probability"] >= 0.5).to_numpy()
    shares = held_out["p_white", "p_black"].to_numpy()
    shares = shares / shares.sum(axis=1, keepdims=True)
    rates = decided @ shares / shares.sum(axis=0)
    assert point["more"]["four_fifths"] == pytest.approx(rates.min() / rates.max(), abs=1e-9)


def test_a_frontier_is_made_by_probabilities(
    call: Callable[..., Result], people: Path, tmp_path: Path
) -> None:
    written = ("--output", tmp_path / "model.metrifair", "--max-unfairness", 0.5)
    found = call(
        "frontier",
        people,
        "--label",
        "approved",
        *RACE,
        "--model",
        "linear",
        "--strengths",
        "0,3",
        *written,
    )
    assert found.exit_code == 0, found.output
    assert "weight each row by P(race)" in " ".join(found.stdout.split())
    scored = call(
        "predict", tmp_path / "model.metrifair", people, "--output", tmp_path / "scores.csv"
    )
    assert scored.exit_code == 0, scored.output
    probability = pl.read_csv(tmp_path / "scores.csv")
    assert len(probability) == ROWS


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_training_needs_groups_or_probabilities(
    call: Callable[..., Result], people: Path, command: str
) -> None:
    for given, message in (
        ((), "Missing option '--group', or '--group-probabilities'"),
        (("--group", "race", *RACE), "--group and --group-probabilities cannot be combined"),
        (("--group", "race", "--known-group", "race"), "--known-group needs --group-probabilities"),
    ):
        found = call(command, people, "--label", "approved", *given)
        assert found.exit_code == 2
        assert message in " ".join(found.stderr.split())
