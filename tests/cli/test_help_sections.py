"""Help lists every option of every command in one section, in a fixed order, the main options
first.
"""

from __future__ import annotations

import re
from typing import Any

import click
import pytest

from metrifair.cli import main
from tests.seams.cli import MAIN_OPTIONS, SECTIONS, SectionedCommand, option_name

COMMANDS: dict[str, click.Command] = {
    name: command
    for name in main.list_commands(click.Context(main))
    if (command := main.get_command(click.Context(main), name)) is not None
}
SECTIONED = [name for name, command in COMMANDS.items() if isinstance(command, SectionedCommand)]
WIDTH = 80


def options_of(command: click.Command) -> set[str]:
    """Names of the options, ``help`` apart."""
    return {option_name(one) for one in command.params if isinstance(one, click.Option)}


def shown_sections(call: Any, name: str) -> dict[str, list[str]]:
    """The options that the help of a command shows in each section, by reading it as people do."""
    found: dict[str, list[str]] = {}
    for line in call(name, "--help", terminal_width=WIDTH).output.splitlines():
        if heading := re.fullmatch(r"([A-Z][a-zA-Z ]+):", line):
            found[heading[1]] = []
        elif found and (option := re.match(r"  (?:-h, )?--([a-z-]+)", line)):
            found[list(found)[-1]].append(option[1])
    return found


def test_commands_with_many_options_have_sections() -> None:
    many = {name for name, command in COMMANDS.items() if len(options_of(command)) > 10}
    assert many >= {"audit", "count", "frontier", "merge", "monitor", "predict", "train"}
    assert many | {"compare"} == set(SECTIONED)
    assert set(MAIN_OPTIONS) == set(SECTIONED)


@pytest.mark.parametrize("name", SECTIONED)
def test_every_option_is_in_one_section(call: Any, name: str) -> None:
    found = shown_sections(call, name)
    listed = [option for names in found.values() for option in names]
    assert sorted(listed) == sorted([*options_of(COMMANDS[name]), "help"])
    order = ["Main options", *SECTIONS]
    assert list(found) == [section for section in order if section in found]
    assert all(found.values())
    assert found["Main options"] == [*MAIN_OPTIONS[name].split(), "help"]
    for section in found.keys() - {"Main options"}:
        assert found[section] == [one for one in SECTIONS[section].split() if one in found[section]]


def test_the_table_has_every_option_once_and_no_other() -> None:
    tabled = " ".join(SECTIONS.values()).split()
    assert len(tabled) == len(set(tabled))
    known = set().union(*(options_of(COMMANDS[name]) for name in SECTIONED))
    assert set(tabled) == known
    for name, main_options in MAIN_OPTIONS.items():
        assert len(set(main_options.split())) == len(main_options.split()) <= 8
        assert set(main_options.split()) <= options_of(COMMANDS[name])


@pytest.mark.parametrize("name", SECTIONED)
def test_no_line_of_the_help_cuts_the_name_of_an_option(call: Any, name: str) -> None:
    every = set().union(*map(options_of, COMMANDS.values())) | {"regression", "help"}
    for width in range(60, 101, 5):
        text = call(name, "--help", terminal_width=width).output
        assert "\N{NON-BREAKING HYPHEN}" not in text
        for mentioned in re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text):
            assert mentioned in every, width
    text = call(name, "--help", terminal_width=WIDTH).output
    examples = {line.strip() for line in (COMMANDS[name].help or "").splitlines()}
    assert [
        line for line in text.splitlines() if len(line) > WIDTH and line.strip() not in examples
    ] == []


def test_an_option_that_the_table_lacks_is_shown_as_advanced() -> None:
    command = SectionedCommand(
        "new", params=[click.Option(["--html"]), click.Option(["--unheard-of"])]
    )
    text = command.get_help(click.Context(command, info_name="new"))
    assert (
        text.index("Output:")
        < text.index("--html")
        < text.index("Advanced:")
        < text.index("--unheard-of")
    )
