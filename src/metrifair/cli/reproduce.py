"""`metrifair reproduce`: the paper's experiments."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from metrifair.experiments import NAMES  # light: nothing else is imported with them


class _Experiment(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A name that ``metrifair.experiments`` knows."""

    name = "experiment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in (*NAMES, "all"):
            self.fail(f"{value!r} is none of {', '.join(NAMES)} or all", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in (*NAMES, "all") if name.startswith(incomplete)]


@click.command(short_help="Run the paper's experiments.", epilog=f"NAME is one of {', '.join(NAMES)} or all.")
@click.argument("name", type=_Experiment())
@click.option(
    "--protocol",
    type=click.Choice(["published", "corrected"]),
    default="corrected",
    show_default=True,
    help="What the authors' code did, or what the paper's text means.",
)
@click.option("--seeds", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Repetitions.")
@click.option("--quick", is_flag=True, help="Two seeds, few strengths, few epochs: to see that it works.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes that work at once.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for points, tables, figures and pages. Finished work in it is not done again.",
)
def command(*, name: str, protocol: str, seeds: int, quick: bool, jobs: int, out: Path) -> None:
    """Run the paper's experiment NAME, or all of them, and set our figures beside the printed ones."""
    from metrifair.cli.console import console, working
    from metrifair.experiments import reproduce

    begun = time.time()
    with working(f"Reproducing {name}; what is finished is kept in {out}"):
        reproduce(name, protocol=protocol, seeds=seeds, quick=quick, out=out, n_jobs=jobs)
    console().print(f"Results: {out.resolve()}", soft_wrap=True)
    for page in pages(name, out, since=begun):
        console().print(f"Open in a browser: {page.resolve()}", soft_wrap=True)


def pages(name: str, out: Path, *, since: float) -> list[Path]:
    """The pages in the folder that an experiment, or all of them, wrote since that time."""
    named = [page for one in (NAMES if name == "all" else (name,)) for page in sorted(out.glob(f"{one}*.html"))]
    return [page for page in named if page.stat().st_mtime >= since - 1]  # the clock of a file system is coarse
