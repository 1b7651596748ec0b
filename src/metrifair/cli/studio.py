"""`metrifair studio`: a page on this machine, for people who do not write code."""

from __future__ import annotations

import click

from metrifair.cli.options import command_options


@click.command(short_help="Audit and train on a page in your browser, without code.")
@click.argument("file", required=False)
@command_options("studio")
def studio_command(*, file: str | None, no_browser: bool) -> None:
    """Open a page in your browser with five steps: look, audit, train, choose, take away.

    Only this machine can open the page, and the studio sends nothing to other machines. Each
    printed address opens one tab. Each step runs commands of metrifair and shows them. FILE is csv,
    tsv, parquet, arrow, ndjson or Excel. Without FILE, choose a file on the page. Stop the studio
    with Ctrl-C.

    \b
    Example:
      metrifair studio loans.csv
    """
    from metrifair.studio.server import serve

    serve(file, click.echo, browser=not no_browser)
