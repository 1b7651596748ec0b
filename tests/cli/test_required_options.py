"""Commands ask for the options that they cannot do without, before they read anything."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from metrifair.cli import main

CONTEXT = click.Context(main)
COMMANDS = {name: main.get_command(CONTEXT, name) for name in main.list_commands(CONTEXT)}
REQUIRED = {
    name: [part for part in command.params if isinstance(part, click.Option) and part.required]
    for name, command in COMMANDS.items()
    if command is not None
}


@pytest.mark.parametrize("name", [name for name, options in REQUIRED.items() if options])
def test_an_option_that_is_left_out_is_named(name: str) -> None:
    command = COMMANDS[name]
    assert command is not None
    arguments = [part for part in command.params if isinstance(part, click.Argument)]
    done = CliRunner().invoke(main, [name, *["nothing.csv"] * len(arguments)])
    assert done.exit_code == 2
    first = REQUIRED[name][0].opts[0]
    assert f"Missing option '{first}'" in done.output


def test_some_commands_have_such_options() -> None:
    assert {"predict", "count", "train"} <= {name for name, options in REQUIRED.items() if options}
