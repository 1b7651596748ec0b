"""The search for groups in the columns of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metrifair.api.find_groups import GroupSearch, find_groups
from metrifair.auditing.sources.file_formats import AS_USUAL, ReadOptions
from metrifair.auditing.sources.typed_tables import typed_table
from metrifair.errors import DataError
from metrifair.problem.predictions import favorable_decisions
from metrifair.problem.spelling import MISSING_WORDS
from metrifair.problem.tables import Columns

if TYPE_CHECKING:
    import polars as pl


def search_file(
    path: str | os.PathLike[str],
    reading: ReadOptions = AS_USUAL,
    *,
    score: str,
    among: Sequence[str],
    protected: Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    clusters: str | None = None,
    favorable_decision: object = None,
    **options: Any,
) -> GroupSearch:
    """Search the rows of a file that have a score, a label and a weight.

    ``among`` and ``protected`` are the columns of the conditions; ``options`` those of
    ``find_groups``.
    """
    single = {"score": score, "label": label, "weight": weight, "clusters": clusters}
    roles = {role: [name] for role, name in single.items() if name is not None}
    names = {"among": list(among), "group": list(protected)}
    texts = [] if clusters is None else [clusters]
    table, files = typed_table(path, reading, texts=texts, roles={**roles, **names})
    needed = [name for role, (name,) in roles.items() if role != "clusters"]
    used = _with_values(table, needed, label)
    scores: Columns = used[score]
    if favorable_decision is not None:
        scores = favorable_decisions(scores, favorable_decision)
    search = find_groups(
        _column(used, label),
        scores,
        used.select(among or protected),
        sensitive_features=used.select(protected) if protected else None,
        sample_weight=_column(used, weight),
        clusters=_column(used, clusters),
        **options,
    )
    left_out = {"missing_score": len(table) - len(used)} if len(used) < len(table) else {}
    origin = replace(
        search.provenance,
        files=files,
        source="",
        rows_read=len(table),
        left_out=left_out,
        reading=reading.changed,
    )
    return replace(search, provenance=origin)


def search_cuts(cuts: object, groups: Sequence[str]) -> Any:
    """The cuts of the attributes of an audit as those of a search, which cuts other numbers at
    quartiles.

    >>> search_cuts([25.0], ["age"]), search_cuts(None, ["sex"])
    ({'age': [25.0]}, 'quantiles')
    """
    if cuts is None:
        return "quantiles"
    return cuts if isinstance(cuts, Mapping) else dict.fromkeys(groups[:1], cuts)


def _column(table: pl.DataFrame, name: str | None) -> pl.Series | None:
    return None if name is None else table[name]


def _with_values(table: pl.DataFrame, needed: list[str], label: str | None) -> pl.DataFrame:
    """The rows with a value in each of these columns; a word such as NA is none in a label."""
    used = table.drop_nulls(needed)
    if label is not None and str(used[label].dtype) == "String":
        words = used[label].str.strip_chars().str.to_lowercase()
        used = used.filter(~words.is_in(MISSING_WORDS))
    if not len(used):
        raise DataError(f"no row has a value in each of {', '.join(needed)}")
    return used
