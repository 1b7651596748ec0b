"""Groups that are numbers, on the command line: as they are, or cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair.metrics import energy_dependence
from tests.seams.cli import continuous_argument


@pytest.fixture
def people(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    age = generator.integers(18, 80, 240)
    x = generator.normal(size=240).round(3)
    z = (generator.normal(size=240) - (age - 50) / 15).round(3)
    y = (x + z + generator.normal(size=240) / 2 > 0).astype(int)
    p = (1 / (1 + np.exp(-x - z))).round(3)
    sex, region = generator.choice(list("fm"), 240), generator.choice(list("abcd"), 240)
    path = tmp_path / "people.csv"
    pl.DataFrame(
        {"x": x, "z": z, "age": age, "sex": sex, "region": region, "y": y, "p": p}
    ).write_csv(path)
    return path


def findings(done: Any, path: Path) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text())["findings"]


def test_an_audit_takes_a_number_as_it_is_or_cut(people: Path, tmp_path: Path, call: Any) -> None:
    out = tmp_path / "out.json"
    asked = ["audit", str(people), "--score", "p", "--group", "age", "--json", str(out)]
    done = call(*asked)
    told = "use --continuous age if the values are numbers, or use --continuous none if every value"
    assert told in " ".join(done.output.split())
    assert "continuous=" not in done.output
    table = pl.read_csv(people)
    (energy,) = [one for one in findings(done, out) if one["metric"] == "energy"]
    assert energy["value"] == pytest.approx(energy_dependence(table["p"], table["age"]), rel=1e-9)
    done = call(*asked, "--continuous", "age")
    assert "is taken as a number" not in done.output
    assert findings(done, out)[0]["cuts"] > 20
    found = findings(call(*asked, "--cuts", "60,25"), out)
    assert {group for one in found for group in one["groups"]} == {"≤25", "(25,60]", ">60"}
    assert continuous_argument(("none",), ["age"]) is False
    assert continuous_argument(("none",), ["none"]) == ["none"]


def test_counts_of_a_number_are_cut_or_told_when_merged(
    people: Path, tmp_path: Path, call: Any
) -> None:
    out, state = tmp_path / "out.json", tmp_path / "day.state"
    asked = ["count", str(people), "--score", "p", "--group", "age", "--output", str(state)]
    assert call(*asked, "--cuts", "40").exit_code == 0
    merged = ["merge", str(state), "--json", str(out)]
    assert findings(call(*merged), out)[0]["groups"] == ["≤40", ">40"]
    assert call(*asked).exit_code == 0
    found = findings(call(*merged, "--continuous", "age"), out)
    assert found[0]["cuts"] > 20
    done = call(*merged, "--continuous", "sex")
    assert done.exit_code == 2
    assert (
        "--continuous names 'sex', which is none of the sensitive features ['age']" in done.output
    )


@pytest.mark.extended
def test_models_are_trained_on_numbers_and_on_cuts(people: Path, tmp_path: Path, call: Any) -> None:
    held_out, out = tmp_path / "held-out.csv", tmp_path / "out.json"
    asked = ["train", str(people), "--label", "y", "--ignore", "p", "--model", "linear"]
    reached = {}
    for strength in ("0", "30"):
        done = call(*asked, "--group", "age", "--strength", strength, "--held-out", str(held_out))
        assert done.exit_code == 0, done.output
        said = " ".join(done.output.split())
        assert " different values) is taken as a number: " in said
        assert "(a number, shown in bands)" in said
        table = pl.read_csv(held_out)
        reached[strength] = energy_dependence(table["probability"], table["age"])
    assert reached["30"] < reached["0"] / 2
    cut = call(
        *asked,
        "--group",
        "age",
        "--group",
        "sex",
        "--cuts",
        "age=30,50",
        "--held-out",
        str(held_out),
    )
    assert cut.exit_code == 0, cut.output
    assert "age: ≤30, (30,50], >50; sex: f, m" in " ".join(cut.output.split())
    assert "--group age --group sex --cuts age=30,50 --label y" in " ".join(cut.output.split())
    options = [
        "--group",
        "region",
        "--contrast",
        "rest",
        "--strengths",
        "0,3",
        "--json",
        str(out),
    ]
    done = call("frontier", *asked[1:], *options)
    assert done.exit_code == 0, done.output
    assert len(json.loads(out.read_text())["points"]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "age", "--group", "sex", "--cuts", "2"], ("use --cuts COLUMN=NUMBERS, with "
                                                               "one "
                                                              "of the columns")),
        (["--group", "age", "--cuts", "sex=3"], ("--cuts names 'sex', which is none of the "
                                                "sensitive features ['age']")),
        (["--group", "age", "--continuous", "sex"], ("--continuous names 'sex', which is none of "
                                                    "the")),
        (["--group", "age", "--cuts", "old"], ("'old' is not a list of numbers, such as 25,40,60 "
                                               "or "
                                              "age=25,40,60")),
        (["--group", "sex", "--cuts", "3"], "sex"),
        (["--group", "sex", "--continuous", "sex"], "sex"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["audit", "train"])
def test_what_cannot_be_meant_is_refused(
    people: Path, call: Any, command: str, options: list[str], message: str
) -> None:
    columns = ["--score", "p"] if command == "audit" else ["--label", "y"]
    done = call(command, str(people), *columns, *options)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_families_that_need_groups_say_so(people: Path, call: Any) -> None:
    done = call(
        "frontier", str(people), "--label", "y", "--group", "age", "--families", "linear,barycenter"
    )
    assert done.exit_code == 2
    assert (
        "--families barycenter needs groups, and 'age' is a number; cut it with --cuts"
        in " ".join(done.output.split())
    )
