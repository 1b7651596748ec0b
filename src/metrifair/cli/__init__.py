"""The command line: one module for each command. Heavy imports wait until a command needs them."""

from metrifair.cli.group import main

__all__ = ["main"]
