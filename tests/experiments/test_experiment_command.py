"""`python -m experiments NAME`."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from math import inf
from pathlib import Path
from typing import Any

import pytest

import experiments.__main__ as command
from metrifair.errors import DataError


def test_an_experiment_gets_what_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command, "reproduce", lambda name, **given: asked.append((name, given)))
    options = ["--protocol", "published", "--seeds", "3", "--quick", "--jobs", "2"]
    command.main(["theory", *options, "--out", str(tmp_path)])
    given = {"protocol": "published", "seeds": 3, "quick": True, "n_jobs": 2, "out": tmp_path}
    parts = {
        "sets": "",
        "splits": "",
        "only_ours": False,
        "minutes": inf,
        "wheels": None,
        "recorded": None,
    }
    assert asked == [("theory", given | {"parts": parts})]
    command.main(
        [
            "duel",
            "--sets",
            "drug,compas",
            "--splits",
            "0-4",
            "--minutes",
            "9",
            "--wheels",
            str(tmp_path),
        ]
    )
    given = {"sets": "drug,compas", "splits": "0-4", "minutes": 9.0, "wheels": tmp_path}
    assert asked[1][1]["parts"] == parts | given
    assert capsys.readouterr().out.startswith(f"Results: {tmp_path.resolve()}\n")


def test_names_are_listed_and_refusals_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(["teory"])
    assert left.value.code == 2
    assert "invalid choice: 'teory'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        command.main(["--help"])
    assert left.value.code == 0
    told = "".join(capsys.readouterr().out.split())  # lines may break at the hyphen of a name
    assert all(name in told for name in (*command.NAMES, "all"))

    def refuse(*_: Any, **__: Any) -> None:
        raise DataError("seeds must be 1 or more, got 0")

    monkeypatch.setattr(command, "reproduce", refuse)
    with pytest.raises(SystemExit) as left:
        command.main(["theory", "--seeds", "0"])
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith("error: seeds must be 1 or more, got 0\n")


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from experiments.__main__ import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'torch', 'numpy', 'polars', 'pandas', 'sklearn'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("name", "shown"), [("theory", ["theory-corrected"]), ("all", ["boosting", "theory-corrected"])]
)
def test_the_pages_of_a_run_are_named(
    name: str,
    shown: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reproduce(*_: Any, **__: Any) -> None:
        for page in ("theory-corrected", "boosting"):
            (tmp_path / f"{page}.html").write_text("")

    old = tmp_path / "theory-published.html"
    old.write_text("")
    os.utime(old, (1, 1))
    monkeypatch.setattr(command, "reproduce", reproduce)
    command.main([name, "--out", str(tmp_path)])
    told = capsys.readouterr().out.splitlines()
    pages = [line.removeprefix("Open in a browser: ") for line in told if ".html" in line]
    assert sorted(pages) == [str(tmp_path.resolve() / f"{page}.html") for page in shown]


def test_the_wheel_holds_the_package_alone() -> None:
    settings = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/metrifair"]
