"""What people read holds none of the words that are ruled out: standard terms, plain verbs,
American spelling.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from test_interface import CALLABLES

from metrifair.cli import main
from tests.seams.studio import STUDIO_TEXTS
from tests.seams.wording import PAGE_TEXTS

ROOT = Path(__file__).parents[1]
# Words of our own for what has a name already, and verbs that hide who acts.
PHRASES = (
    *(
        "from here on",
        "from which on",
        "as it were",
        "in words",
        "is told",
        "are told",
        "be told",
        "was told",
        "stands? for",
    ),
    *(
        r"decisions? for(?= and\b| or\b|[.,;:)]|$)",
        "label that counts",
        "for certain",
        "how sure",
        "what is proven",
        "too few to tell",
    ),
    *(
        "crossings?",
        "crossed",
        "who somebody is",
        "whose rate",
        "rows? kept apart",
        "kept apart",
        "by heart",
    ),
    *(
        "least_count",
        "most_groups",
        "least_share",
        "on_small",
        "gap_contributions",
        "a yes",
        "a no",
        "knobs?",
        "wish",
    ),
    *(
        "says? the same for everyone",
        "rows for choosing",
        "handed? over",
        "how far apart",
        "age is no group",
    ),
    *(
        "what is to be known",
        "what to know of",
        "as if it were not there",
        "say so where",
        "left to us",
        "look(?:ed|s) at",
    ),
)
# British spellings of words that this package uses.
SPELLINGS = (
    *(
        "(?:un)?favourabl[ey]",
        "favour(?:ed|s|ing)?",
        "colour(?:ed|s)?",
        "barycent(?:re|res)",
        "cent(?:re|res|red)",
    ),
    *(
        "behaviours?",
        "neighbours?",
        "labell(?:ed|ing)",
        "modell(?:ed|ing)",
        "learnt",
        "catalogue",
        "grey",
    ),
    *(
        f"{stem}is(?:e|es|ed|ing|ation|ations)"
        for stem in ("normal", "standard", "random", "penal", "optim", "minim", "maxim")
    ),
    *(
        f"{stem}is(?:e|es|ed|ing|ation|ations)"
        for stem in ("initial", "regular", "organ", "recogn", "summar", "memor", "visual")
    ),
    *(
        f"{stem}is(?:e|es|ed|ing|ation|ations)"
        for stem in ("general", "vector", "serial", "discret", "real", "parallel")
    ),
    *("analys(?:e|es|ed|ing)",),
)
RULED_OUT = re.compile(rf"(?<![\w-])(?:{'|'.join((*PHRASES, *SPELLINGS))})(?![\w-])", re.IGNORECASE)
STUDIO = ROOT / "src/metrifair/studio/studio.js"
NOT_PAGES = {"architecture.md", "changelog.md"}
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*\s*$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"``.+?``|`[^`]+`|\"[^\"\n]*\"|“[^”]*”|\]\([^)]*\)|<[^>\n]*>", re.DOTALL)
_PARAMETER = re.compile(r"^ *\*{0,2}\w+(?:, \*{0,2}\w+)* : .*$", re.MULTILINE)
_EXAMPLE = re.compile(r"^ *(?:>>>|\.\.\.) .*$", re.MULTILINE)


def phrases(text: str) -> list[str]:
    """The ruled-out words of a text, code and quotes aside.

    >>> phrases("The favourable decision is told.")
    ['favourable', 'is told']
    >>> phrases("`least_count` was renamed.")
    []
    """
    prose = " ".join(
        _QUOTED.sub(" ` ", _EXAMPLE.sub("", _PARAMETER.sub("", _FENCE.sub("", text)))).split()
    )
    return RULED_OUT.findall(prose)


def pages() -> list[Path]:
    docs = ROOT / "docs"
    folders = [docs, docs / "tutorials", docs / "concepts", docs / "reference"]
    written = [
        page
        for folder in folders
        for page in sorted(folder.glob("*.md"))
        if page.name not in NOT_PAGES
    ]
    return [ROOT / "README.md", *written, *sorted((docs / "tutorials").glob("*.py"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_holds_no_ruled_out_word(page: Path) -> None:
    text = page.read_text()
    if page.suffix == ".py":  # prose of a tutorial: its comments and docstring
        comments = [line.strip("# ") for line in text.splitlines() if line.startswith("#")]
        text = "\n".join([ast.get_docstring(ast.parse(text)) or "", *comments])
    words = sorted(set(phrases(text)))
    assert not words, f"{page.relative_to(ROOT)} holds {', '.join(words)}"


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            yield from commands(inner, f"{name} {part}")


def test_the_help_of_commands_holds_no_ruled_out_word() -> None:
    found = {}
    for name, command in commands(main, "metrifair"):
        texts = {"": command.help or ""} | {
            str(one.name): one.help or "" for one in command.params if isinstance(one, click.Option)
        }
        found |= {f"{name} {option}": phrases(text) for option, text in texts.items()}
    assert len(found) > 100
    assert {place: words for place, words in found.items() if words} == {}


def test_docstrings_of_public_names_hold_no_ruled_out_word() -> None:
    owners = {name: inspect.getdoc(value) or "" for name, value in CALLABLES.items()}
    assert len(owners) > 120
    assert {name: words for name, text in owners.items() if (words := phrases(text))} == {}


def sentences(path: Path) -> str:
    """The texts of a module of sentences, without its docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    texts = [
        one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "src/metrifair/wording").glob("*.py")), STUDIO.with_name("page_texts.py")],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_sentences_hold_no_ruled_out_word(path: Path) -> None:
    assert phrases(sentences(path)) == []


@pytest.mark.parametrize(
    "text", ["Scores from here on are decisions for.", "The behaviour", "a Knob", "We minimise it"]
)
def test_planted_fault_a_ruled_out_word_is_found(text: str) -> None:
    assert phrases(text)


def test_code_and_quotes_are_left_alone() -> None:
    assert (
        phrases('Use `least_count`, ``crossed``.\n\n```python\ncolour = 1\n```\nHe said "favour".')
        == []
    )


# --- pages
# -------------------------------------------------------------------------------------

SCRIPTS = sorted((ROOT / "src/metrifair/report").glob("*.js"))
_COMMENT = re.compile(r"^\s*//.*$|^\s*/\*\*.*\*/|(?<=\s)// .*$", re.MULTILINE)
_LITERAL = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")
_CLASSES = re.compile(r"class: (?:row\.mark \? )?(?:\"[^\"]*\"|`[^`]*`)(?: : \"[^\"]*\")?")
# keys, classes, headers, elements
_FIXED = {"Bearer", "Enter", "Escape", "dot alike", "main, nav", "#notes button"}


def shown_literals(script: str) -> list[str]:
    r"""Literals of a script that read as text: two words, or one with a capital.

    >>> shown_literals('html("p", { class: "a hint" }, `No model of ${name}`); // "A comment"')
    ['No model of ${name}']
    """
    code = _CLASSES.sub("", _COMMENT.sub("", script))
    literals = [plain or template for plain, template in _LITERAL.findall(code)]
    return [text for text in literals if _is_text(re.sub(r"\$\{[^}]*\}", " ", text))]


def _is_text(literal: str) -> bool:
    if literal.strip() in _FIXED or "[data-runs]" in literal:
        return False
    return bool(re.search(r"[A-Za-z]{2,},? [A-Za-z]{2,}|^\s*[A-Z][a-z]+", literal))


def test_planted_fault_a_text_in_a_script_is_found() -> None:
    script = 'if (!count) return "No finding matches.";\nconst text = `${name} differ by`;\n'
    assert shown_literals(script) == ["No finding matches.", "${name} differ by"]


@pytest.mark.parametrize("path", [*SCRIPTS, STUDIO], ids=lambda path: path.stem)
def test_scripts_of_pages_contain_no_texts(path: Path) -> None:
    assert shown_literals(path.read_text()) == []


@pytest.mark.parametrize(
    ("scripts", "texts"), [(SCRIPTS, PAGE_TEXTS), ([STUDIO], STUDIO_TEXTS)], ids=["pages", "studio"]
)
def test_scripts_and_the_texts_of_pages_agree(scripts: list[Path], texts: dict[str, str]) -> None:
    """Every text that a script asks for exists, and is asked for."""
    code = "\n".join(path.read_text() for path in scripts)
    names = set(re.findall(r"\"(\w+)\"", code))
    prefixes = tuple(re.findall(r"textOf\(`(\w+_)\$\{", code))
    asked = set(re.findall(r"textOf\(\"(\w+)\"", code))
    assert asked <= set(texts)
    assert len(asked) > 30
    assert {name for name in texts if name not in names and not name.startswith(prefixes)} == set()
