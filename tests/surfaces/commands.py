"""What commands print: their help, and their output on small files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from click.testing import CliRunner

from metrifair.cli import main
from tests.surfaces.origins import without_figures, without_origin
from tests.surfaces.rows import people, table

WIDTH = {"COLUMNS": "80"}
AUDIT = "people.csv --score score --group sex --label outcome --positive hired"
OUTPUTS = {
    "columns": "columns people.csv",
    "audit": f"audit {AUDIT} --html report.html",
    "audit of decisions": "audit people.csv --score outcome --group sex --favorable-decision hired",
    "audit by a standard": f"audit {AUDIT} --standard four-fifths",
    "audit beyond a limit": f"audit {AUDIT} --fail-above gap=0.1",
    "audit with a search": f"audit {AUDIT} --find-groups selected --among region",
    "audit without groups": "audit people.csv --score score",
    "audit of a column that is not there": "audit people.csv --score points --group sex",
    "audit of texts": "audit people.csv --score outcome --group sex",
    "audit of no file": "audit nobody.csv --score score --group sex",
    "find-groups": f"find-groups {AUDIT} --among region",
    "audit as JSON": f"audit {AUDIT} --json old.json",
    "audit of other scores": f"audit later.csv {AUDIT.partition(' ')[2]} --json new.json",
    "compare": "compare old.json new.json",
    "monitor": "monitor old.json new.json",
    "count": "count people.csv --score score --group sex --output counts.state",
    "merge": "merge counts.state",
    "evidence": f"evidence {AUDIT} --out evidence --no-pdf",
    "verify": "verify evidence",
    "plan": "plan --gap 0.1",
    "datasets": "datasets",
}
"""Commands in their order: some read what an earlier one wrote."""

TRAIN = "training.csv --label outcome --group sex --positive hired"
TRAINING = {
    "train": f"train {TRAIN} --output model.metrifair --held-out held-out.csv",
    "train without a positive label": "train training.csv --label sex --group region",
    "train on a column that is not there": "train training.csv --label wage --group sex",
    "predict": "predict model.metrifair training.csv --output predictions.csv",
    "card": "card model.metrifair",
    "frontier": f"frontier {TRAIN} --strengths 0,1 --folds 3",
    "frontier with a choice": f"frontier {TRAIN} --strengths 0,1 --folds 3 --max-unfairness 0.5",
}


def run(command: str) -> str:
    """What a command prints, then its errors and its exit code unless it is 0."""
    done = CliRunner().invoke(main, command.split(), prog_name="metrifair", env=WIDTH)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    lines = [f"$ metrifair {command}", done.stdout]
    if done.stderr:
        lines.append(f"(standard error)\n{done.stderr}")
    if done.exit_code:
        lines.append(f"(exit code {done.exit_code})")
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own with the files that commands read, as the current one."""
    before = Path.cwd()
    with TemporaryDirectory() as name:
        os.chdir(name)
        try:
            table(people()).write_csv("people.csv")
            table(people(seed=1)).write_csv("later.csv")
            table(people()).rename({"score": "points"}).write_csv("training.csv")
            yield Path(name)
        finally:
            os.chdir(before)


def commands(command: click.Command, name: str) -> Iterator[str]:
    """The names of all commands, that of the program first."""
    yield name
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from commands(inner, f"{name} {part}".strip())


def help_texts() -> dict[str, str]:
    """The help of the program and of each command."""
    return {f"metrifair {name}".strip(): run(f"{name} --help") for name in commands(main, "")}


def output_texts() -> dict[str, str]:
    """What commands print that train nothing."""
    with folder() as place:
        texts = {title: run(command) for title, command in OUTPUTS.items()}
        return {title: without_place(text, place) for title, text in texts.items()}


def training_texts() -> dict[str, str]:
    """What commands print that train models, with # for each number."""
    with folder() as place:
        texts = {title: run(command) for title, command in TRAINING.items()}
        return {title: without_widths(without_place(text, place)) for title, text in texts.items()}


def without_place(text: str, place: Path) -> str:
    """A text without the folder of the files, and what else differs between machines."""
    text = text.replace(str(place.resolve()), "FOLDER").replace(str(place), "FOLDER")
    return without_origin(re.sub(r"\d+\.\d+ ?s\b", "TIME", text))


def without_widths(text: str) -> str:
    """A text without figures, and without the widths of tables that depend on them."""
    return re.sub("─+", "─", without_figures(text))
