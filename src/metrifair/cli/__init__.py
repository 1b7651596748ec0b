"""The command line: one module for each command. Heavy imports wait until a command needs them."""

from metrifair.cli.app import main

__all__ = ["main"]
