"""`metrifair studio`: a page on this machine, for people who do not write code."""

from __future__ import annotations

import click

from metrifair.cli.options import command_options


@click.command(short_help="Audit and train in a page of your browser, without code.")
@click.argument("file", required=False)
@command_options("studio")
def studio_command(*, file: str | None, no_browser: bool) -> None:
    """Open a page in your browser with five steps: look, audit, train, choose, take away.

    The page is on this machine only, and nothing is sent anywhere. Each step runs a command of metrifair and shows it.
    FILE is csv, tsv, parquet, arrow, ndjson or Excel. Without FILE, choose a file in the page. Stop with Ctrl-C.

    \b
    Example:
      metrifair studio loans.csv
    """
    from metrifair.studio.server import serve

    serve(file, click.echo, browser=not no_browser)
