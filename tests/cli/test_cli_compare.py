"""`metrifair compare`, `metrifair monitor`, and several scores of one file."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from metrifair import audit, monitor
from tests.seams.api import read_audit
from tests.seams.cli import show_audit, show_differences, show_rates
from tests.seams.wording import p_text


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    group = np.repeat(["f", "m"], 150)
    latent = generator.normal(size=300)
    columns = {
        name: 1 / (1 + np.exp(-latent - shift * (group == "m")))
        for name, shift in (("old", 1.5), ("new", 0.1))
    }
    pl.DataFrame({**columns, "sex": group}).write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_several_scores_of_a_file_are_compared_with_the_first(
    scores: Path, call: Any, tmp_path: Path
) -> None:
    files = [
        "--html",
        tmp_path / "both.html",
        "--json",
        tmp_path / "both.json",
        "--output",
        tmp_path / "both.csv",
    ]
    done = call("audit", scores, "--score", "old", "--score", "new", "--group", "sex", *files)
    assert done.exit_code == 0, done.output
    assert "is better than “old” in" in done.output
    assert "errors in common cancel (paired)" in done.output
    found = json.loads((tmp_path / "both.json").read_text())
    assert (found["kind"], found["names"], found["pairing"]) == (
        "metrifair comparison",
        ["old", "new"],
        "rows",
    )
    assert set(pl.read_csv(tmp_path / "both.csv")["model"]) == {"new"}
    assert "better" in (tmp_path / "both.html").read_text()
    limit = ["--fail-above", "kolmogorov=0.3", "--json", tmp_path / "limited.json"]
    limited = call("audit", scores, "--score", "old", "--score", "new", "--group", "sex", *limit)
    assert limited.exit_code == 1
    assert [
        (check["model"], check["broken"])
        for check in json.loads((tmp_path / "limited.json").read_text())["limits"]
    ] == [
        ("old", True),
        ("new", False),
    ]
    assert "Unfair: old: kolmogorov is" in limited.output
    assert "Unfair: new" not in limited.output


def test_headings_tell_p_values_from_adjusted_ones() -> None:
    generator, group = np.random.default_rng(0), np.repeat(["f", "m"], 150)
    latent = generator.normal(size=300)
    models = {name: latent - shift * (group == "m") for name, shift in (("old", 0.5), ("new", 0.2))}
    both = audit(None, models, sensitive_features=group, threshold=0, random_state=0)
    new = both.audits["new"]
    rates = new.rates("four-fifths").audit.record
    for show, shown, heading, figures in (
        (show_differences, both, "Adjusted p-value", [row.p_adjusted for row in both.differences]),
        (show_audit, new.record, "p-value", [new.worst().p_value]),
        (show_rates, rates, "Fisher’s p", [rate.p_value for rate in rates.decisions[0].rates]),
    ):
        file = io.StringIO()
        show(Console(file=file, width=200), shown)  # type: ignore[operator]
        lines = [re.split(r"\s{2,}", line.strip()) for line in file.getvalue().splitlines()]
        at = next(place for place, cells in enumerate(lines) if heading in cells)
        assert {*map(p_text, figures)} == {
            cells[lines[at].index(heading)]
            for cells in lines[at + 2 :]
            if len(cells) == len(lines[at])
        }


@pytest.mark.parametrize("width", [60, 80, 100, 110, 120, 200])
def test_no_verdict_of_a_comparison_is_cut(width: int) -> None:
    generator, group = (
        np.random.default_rng(0),
        np.repeat(["Female, married", "Male, never married"], 150),
    )
    latent, label = generator.normal(size=300), generator.integers(2, size=300)
    models = {
        f"predictions_{name}": 1 / (1 + np.exp(-latent - shift * (group == group[0])))
        for name, shift in (("january", 2.0), ("february", 0.1))
    }
    both = audit(label, models, sensitive_features={"sex": group}, random_state=0)
    file = io.StringIO()
    show_differences(Console(file=file, width=width), both)
    lines = [line.split() for line in file.getvalue().splitlines()]
    verdicts = [
        words[-1]
        for words in lines
        if words and words[-1] in ("better", "worse", "distinguishable")
    ]
    assert len(verdicts) == min(20, len(both.differences))
    assert {"better", "distinguishable"} <= set(verdicts)
    assert any(words and words[-1] == "Verdict" for words in lines)


def test_audits_in_json_and_counts_are_compared(scores: Path, call: Any, tmp_path: Path) -> None:
    for name in ("old", "new"):
        assert (
            call(
                "audit",
                scores,
                "--score",
                name,
                "--group",
                "sex",
                "--json",
                tmp_path / f"{name}.json",
            ).exit_code
            == 0
        )
        state = tmp_path / f"{name}.state"
        assert (
            call("count", scores, "--score", name, "--group", "sex", "--output", state).exit_code
            == 0
        )
    # Of one file, by its hash; counts do not say which file they are of.
    for ending, how in {"json": "hold for any correlation", "state": "(independent)"}.items():
        done = call("compare", tmp_path / f"old.{ending}", tmp_path / f"new.{ending}")
        assert done.exit_code == 0, done.output
        assert "“new” is better than “old”" in done.output
        assert how in done.output
        assert "f vs m" in done.output
        assert (
            call(
                "compare", tmp_path / f"old.{ending}", tmp_path / f"new.{ending}", "--fail-worse"
            ).exit_code
            == 0
        )
        assert (
            call(
                "compare", tmp_path / f"new.{ending}", tmp_path / f"old.{ending}", "--fail-worse"
            ).exit_code
            == 1
        )
    series = call(
        "monitor",
        tmp_path / "new.state",
        tmp_path / "old.state",
        "--fail-worse",
        "--html",
        tmp_path / "s.html",
    )
    assert series.exit_code == 1
    assert "Worse than the baseline" in series.output
    assert (
        call("monitor", tmp_path / "old.state", tmp_path / "new.state", "--fail-worse").exit_code
        == 0
    )


def test_fail_worse_does_not_pass_where_nothing_could_be_tested(tmp_path: Path, call: Any) -> None:
    few, many = tmp_path / "few.csv", tmp_path / "many.csv"
    few.write_text("sex,p\n" + "f,0.2\nm,0.8\n" * 4)
    many.write_text("sex,p\n" + "f,0.2\nf,0.4\nm,0.6\nm,0.8\n" * 50)
    for file in (few, many):
        columns = ["--score", "p", "--group", "sex"]
        assert call("audit", file, *columns, "--json", file.with_suffix(".json")).exit_code == 0
        assert call("count", file, *columns, "--output", file.with_suffix(".state")).exit_code == 0
    for command, ending in {"compare": ".json", "monitor": ".state"}.items():
        small, large = few.with_suffix(ending), many.with_suffix(ending)
        untested = call(command, large, small, "--fail-worse")
        assert untested.exit_code == 2, untested.output
        assert "Error: --fail-worse: no figure of the last file could be tested" in untested.output
        assert call(command, large, small).exit_code == 0
        large_too = tmp_path / f"again{ending}"
        large_too.write_bytes(large.read_bytes())
        assert call(command, large, large_too, "--fail-worse").exit_code == 0
        # an earlier file was tested
        assert call(command, large, large_too, small, "--fail-worse").exit_code == 2


def test_what_cannot_be_compared_is_one_line(scores: Path, call: Any) -> None:
    alone = call("compare", scores)
    assert alone.exit_code == 2
    assert "two files or more" in alone.output
    twice = call("compare", scores, scores.parent / "." / scores.name)
    assert twice.exit_code == 2
    assert "named twice" in twice.output
    (scores.parent / "more.csv").write_bytes(scores.read_bytes())
    strange = call("compare", scores, scores.parent / "more.csv")
    assert strange.exit_code == 2
    assert "an audit's .json or counts of metrifair count" in " ".join(strange.output.split())
    twice = call("audit", scores, "--score", "old", "--score", "old", "--group", "sex")
    assert twice.exit_code == 2
    assert "several different ones" in twice.output


def test_files_of_one_name_are_numbered_and_folders_are_not_told(
    scores: Path, call: Any, tmp_path: Path
) -> None:
    files = []
    for folder, score in (("secret-may", "old"), ("secret-june", "new")):
        (tmp_path / folder).mkdir()
        files.append(tmp_path / folder / "all.json")
        assert (
            call("audit", scores, "--score", score, "--group", "sex", "--json", files[-1]).exit_code
            == 0
        )
    for command, names in (("compare", "names"), ("monitor", "looks")):
        done = call(
            command, *files, "--json", tmp_path / "found.json", "--html", tmp_path / "found.html"
        )
        assert done.exit_code == 0, done.output
        told = (tmp_path / "found.json").read_text()
        assert json.loads(told)[names] == ["all", "all 2"]
        assert "secret" not in told + (tmp_path / "found.html").read_text()
    looks = monitor([str(files[0]), files[1], read_audit(files[0])]).record.looks
    assert looks == ("all", "all 2", "look 3")


def test_comparisons_and_series_tell_their_title_command_and_files(
    scores: Path, call: Any, tmp_path: Path
) -> None:
    page, out = tmp_path / "r.html", tmp_path / "r.json"
    written = ["--html", page, "--json", out]
    asked = ["--score", "old", "--score", "new", "--group", "sex", "--title", "Hiring"]
    assert call("audit", scores, *asked, *written).exit_code == 0
    found = json.loads(out.read_text())
    command = "metrifair audit scores.csv --score old --score new --group sex --title Hiring --html r.html --json r.json"  # noqa: E501
    assert (found["origin"]["title"], found["origin"]["call"]) == ("Hiring", command)
    assert '<h1 id="title">Hiring</h1>' in page.read_text()
    assert command in page.read_text()
    states = [tmp_path / "old.state", tmp_path / "new.state"]
    for state in states:
        assert (
            call(
                "count", scores, "--score", state.stem, "--group", "sex", "--output", state
            ).exit_code
            == 0
        )
    for name in ("compare", "monitor"):
        assert (
            call(name, *states, *written, "--title", "May", "--about", "why=new model").exit_code
            == 0
        )
        found = json.loads(out.read_text())
        made = found["origin"]
        said = "--title May --about 'why=new model' --html r.html --json r.json"
        assert made["call"] == f"metrifair {name} old.state new.state {said}"
        assert (made["title"], made["about"], made["seed"]) == ("May", {"why": "new model"}, 0)
        assert set(made["versions"]) == {"metrifair", "Python", "torch", "numpy"}
        assert [one["name"] for one in made["files"]] == ["old.state", "new.state"]
        for text in ('<h1 id="title">May</h1>', made["time"], "new model", "metrifair " + name):
            assert text in page.read_text()
        assert [one["files"][0]["name"] for one in found["provenance"]] == [
            "old.state",
            "new.state",
        ]
        assert all(one["files"][0]["sha256"] in page.read_text() for one in found["provenance"])


@pytest.mark.parametrize("command", ["compare", "monitor"])
def test_files_that_are_no_audits_are_refused_by_name(
    command: str, scores: Path, call: Any, tmp_path: Path
) -> None:
    (tmp_path / "other.txt").write_text("a,b\n")
    done = call(command, scores, tmp_path / "other.txt")
    assert done.exit_code == 2
    asked = f"{command} takes an audit's .json or counts of metrifair count"
    assert (
        f"{asked}, got '{scores}'; first metrifair audit {scores} ... --json FILE.json"
        in done.output
    )
    for name in ("other.txt", "CARD.md"):
        (tmp_path / name).write_text("# A card\n" * 9)
        said = call(command, tmp_path / name, scores).output
        assert (
            f"{asked}, got '{tmp_path / name}', which is something else or was cut short; first "
            "metrifair" in said
        )
        assert "metrifair audit ROWS.csv ... --json FILE.json" in said


def test_damaged_counts_are_reported_as_damaged(scores: Path, call: Any, tmp_path: Path) -> None:
    state = tmp_path / "old.state"
    assert (
        call("count", scores, "--score", "old", "--group", "sex", "--output", state).exit_code == 0
    )
    state.write_bytes(state.read_bytes()[:-1] + b"!")
    assert "the file is damaged" in call("compare", state, scores).output


def test_probabilities_of_classes_are_no_models_to_compare(call: Any, tmp_path: Path) -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    columns = {f"probability of {name}": p[:, at] for at, name in enumerate("abc")}
    pl.DataFrame({**columns, "sex": ["m", "w"] * 30}).write_csv(tmp_path / "p.csv")
    scores = [part for name in columns for part in ("--score", name)]
    done = call("audit", tmp_path / "p.csv", *scores, "--group", "sex")
    assert done.exit_code == 2
    assert "add up to 1 in every row: they are one model's probabilities of classes" in done.output
    assert "use --positive CLASS and audit the column of that class" in done.output
    assert call("audit", tmp_path / "p.csv", *scores[:4], "--group", "sex").exit_code == 0
