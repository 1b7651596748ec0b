"""Names and definitions that results, pages and glossaries share."""

from __future__ import annotations

from tests.seams.wording import CRITERION_MEANINGS, METRIC_WORDS, STANDARD_WORDS, TERMS


def texts() -> dict[str, str]:
    """Each figure, distance, criterion and standard with its definition."""
    return {
        "figures": "\n".join(f"{term.name}: {term.about}" for term in TERMS.values()),
        "distances": "\n".join(metric_lines()),
        "criteria": "\n".join(f"{name}: {text}" for name, text in CRITERION_MEANINGS.items()),
        **{f"standard {name or '(none)'}": standard(name) for name in STANDARD_WORDS},
    }


def standard(name: str) -> str:
    """The title, description, fields and document of a standard, one a line."""
    words = STANDARD_WORDS[name]
    document = () if words.source is None else words.source
    return "\n".join([words.title, words.about, *words.fields, *map(str, document)])


def metric_lines() -> list[str]:
    """Each distance with its definition and the meaning of one value."""
    return [f"{words.name}: {words.about} {words.meaning}" for words in METRIC_WORDS.values()]
