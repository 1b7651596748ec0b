"""``--find-groups``: a search for groups in the file of an audit or of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from metrifair.auditing.sources.file_tables import matching_files
from metrifair.cli.options import cuts_argument, gather_options

if TYPE_CHECKING:
    from metrifair.api.audit_result import Audit
    from metrifair.auditing.sources.file_formats import ReadOptions


class Searched(NamedTuple):
    """The options of a search for groups: its outcome, None without a search, and its columns."""

    find_groups: str | None
    among: tuple[str, ...]

    def check(self, file: str, scores: Sequence[str], groups: Sequence[str]) -> None:
        """Raise a usage error for options that do not fit each other."""
        if self.find_groups is None:
            if self.among:
                raise click.UsageError("--among needs --find-groups OUTCOME")
            return
        if not (self.among or groups):
            raise click.UsageError("--find-groups needs the columns to search: --among COLUMN")
        if len(scores) > 1:
            raise click.UsageError("--find-groups searches one --score, got several")
        if not matching_files(file):
            raise click.UsageError(
                "--find-groups reads the rows again, so FILE must be a file or a pattern of files"
            )


SEARCHED = gather_options("searched", Searched, Searched._fields)
"""A command gets the options of its search for groups as ``searched``."""


def with_search(
    audit: Audit,
    searched: Searched,
    file: str,
    reading: ReadOptions,
    arguments: Mapping[str, Any],
) -> Audit:
    """The audit of a file with the search for groups that the options ask for."""
    if searched.find_groups is None:
        return audit
    from metrifair.api.search_file import search_cuts, search_file

    groups = list(arguments["group"])
    threshold = arguments["threshold"]
    search = search_file(
        file,
        reading,
        score=arguments["score"],
        among=searched.among,
        protected=groups,
        label=arguments["label"],
        weight=arguments["weight"],
        clusters=arguments.get("clusters"),
        favorable_decision=arguments["favorable_decision"],
        outcome=searched.find_groups.replace("-", " "),
        threshold="auto" if threshold is None else threshold,
        pos_label=arguments["pos_label"],
        cuts=search_cuts(cuts_argument(arguments["cuts"]), groups),
        confidence=audit.record.confidence,
    )
    origin = audit.provenance
    columns = {**origin.columns, "among": list(searched.among)}
    record = replace(audit.record, provenance=replace(origin, columns=columns))
    return replace(audit, record=record).with_groups(search)
