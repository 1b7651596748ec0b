"""What the pages tell people to type exists: the options of commands, and pages that the tests
of the site run.
"""

import re
import runpy
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from metrifair.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("[ct]*s/*.md")),
]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands_of(text: str) -> list[str]:
    """The commands in a page's blocks of plain text."""
    blocks = [block for kind, block in FENCED.findall(text) if kind in {"", "console", "bash"}]
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [
        line.removeprefix("$ ")
        for line in lines
        if line.removeprefix("$ ").startswith("metrifair ")
    ]


def parsed(line: str) -> None:
    """Read a command's words as the command would, without running it."""
    name, *words = shlex.split(line, comments=True)[1:]
    # with the settings of the program: commands keep the names of their help
    group = click.Context(main, **main.context_settings)
    command = main.get_command(group, name)
    assert command is not None, f"there is no command {name}"
    command.make_parser(click.Context(command, parent=group)).parse_args(
        [word for word in words if word != "|"]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_pages_have_the_options_that_they_name(page: Path) -> None:
    for line in commands_of(page.read_text(encoding="utf-8")):
        parsed(line)


def test_planted_fault_an_option_that_there_is_not_is_found() -> None:
    (line,) = commands_of("```\nmetrifair audit a.csv --score p --grop sex\n```\n")
    with pytest.raises(click.NoSuchOption):
        parsed(line)


def test_the_site_links_to_the_repository_that_is_known(monkeypatch) -> None:
    repository = runpy.run_path(str(ROOT / "docs" / "conf.py"))["repository"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    written = project.get("urls", {}).get("Repository", "")
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert repository() == written
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "people/project")
    assert repository() == (written or "https://example.org/people/project")


@pytest.mark.extended  # docutils is in the extra docs
def test_every_page_with_search_terms_exists_and_every_term_has_one_page() -> None:
    pages = runpy.run_path(str(ROOT / "docs" / "search_terms.py"))["PAGES"]
    terms = [term for terms in pages.values() for term in terms]
    assert len(terms) == len(set(terms))
    assert all(term == term.lower() for term in terms)
    written = {name.removeprefix("gallery/") for name in pages if name.startswith("gallery/")}
    assert all((ROOT / "examples" / "gallery" / f"{name}.py").is_file() for name in written)
    assert all(
        (ROOT / "docs" / f"{name}.md").is_file()
        for name in pages
        if not name.startswith("gallery/")
    )
