"""What the pages tell people to type exists: the options of commands, and pages that the tests of the site run."""

import re
import shlex
from pathlib import Path

import click
import pytest

from metrifair.cli.app import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[ct]*s/*.md"))]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(text: str) -> list[str]:
    """The commands in a page's blocks of plain text."""
    blocks = [block for kind, block in FENCED.findall(text) if kind in {"", "console", "bash"}]
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.removeprefix("$ ").startswith("metrifair ")]


def parsed(line: str) -> None:
    """Read a command's words as the command would, without running it."""
    name, *words = shlex.split(line, comments=True)[1:]
    group = click.Context(main)
    command = main.get_command(group, name)
    assert command is not None, f"there is no command {name}"
    command.make_parser(click.Context(command, parent=group)).parse_args([word for word in words if word != "|"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_pages_have_the_options_that_they_name(page: Path) -> None:
    for line in commands_of(page.read_text(encoding="utf-8")):
        parsed(line)


def test_planted_fault_an_option_that_there_is_not_is_found() -> None:
    (line,) = commands_of("```\nmetrifair audit a.csv --score p --grop sex\n```\n")
    with pytest.raises(click.NoSuchOption):
        parsed(line)
