"""The words of an evidence folder: its README, and the results of a verification."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from metrifair.auditing.notes import release_notes
from metrifair.auditing.records import AuditRecord, GridError
from metrifair.auditing.release.evidence_format import (
    AUDIT_FILE,
    COUNTS,
    GROUPS,
    MANIFEST,
    PAGE,
    PRINT,
    SIGNATURE,
    TOLERANCE,
    Check,
    Manifest,
    counts_names,
)
from metrifair.auditing.release.releases import LEDGER
from metrifair.wording.crosswalks import crosswalk_named
from metrifair.wording.notes import error_texts, note_text
from metrifair.wording.numbers import listed, part_text, points_text
from metrifair.wording.provenance import origin_sentences, readme_lines
from metrifair.wording.rates import NO_VERDICT
from metrifair.wording.summary import audit_summary

_LONGEST = 60  # characters of a value that differs

_SERIES_OF_SCORES = (
    "Each release shows the scores with its own groups, strata and labels.",
    "Releases with other columns can be joined by scores that are rare.",
)
_SERIES_ON_GRID = (
    "All counts are computed from the intervals of a public grid in which the scores are.",
    (
        "Therefore, the counts of a series of releases show no more of a person's score than one "
        "interval of the grid."
    ),
    "If scores have few distinct values, an interval may contain only one of them.",
    "Another threshold shows no other counts.",
    "Counts by one attribute with a larger minimum are sums of those with a smaller one.",
    (
        "Before and after a person is added, releases differ by her groups, label and weight, and "
        "at "
        "most her interval."
    ),
    "They may also show how many others are in it, even if these are fewer than the minimum.",
    "Releases by other columns, cuts or minima can withhold other groups.",
    "Their differences may show small intersections of groups.",
    "Whoever knows all rows but one can test guesses of that row by the sha256 of the input.",
)

_CONTENT = {
    PAGE: "The report. Open it in any browser; it needs no network.",
    PRINT: "The same report as PDF.",
    "tables/": "Findings, rates and figures by group as csv files.",
    AUDIT_FILE: "All figures, as JSON.",
    COUNTS: "Counts by group, stratum, label and score. All figures are computed from them.",
    GROUPS: "Counts of the groups that were searched. All figures of the search are computed from them.",
    "counts-*.state": "The same rows, counted by each further attribute.",
    MANIFEST: "The sha256 of every file and of the inputs, the command, all parameters, versions "
    "and time.",
    SIGNATURE: "The signature of the manifest by ssh-keygen, if it was signed.",
}

_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "files": {"agrees": "{files} files have the sha256 that the manifest lists."},
    "missing_file": {"differs": "{name} is missing."},
    "unlisted_file": {"differs": "{name} is not in the manifest."},
    "underived_file": {
        "differs": "{name} is no file of evidence: nothing says what it should contain."
    },
    "changed_file": {"differs": "{name} does not have the sha256 that the manifest lists."},
    "provenance": {
        "agrees": "The manifest and audit.json state the same inputs, command, seed, versions and "
        "time.",
        "differs": "The manifest and audit.json differ in {places}.",
    },
    "figures": {
        "agrees": "{figures} figures of audit.json equal those recomputed from counts.state "
        "(relative tolerance "
        "{tolerance}).",
        "differs": "audit.json differs from the figures recomputed from counts.state in {count} "
        "places: {places}.",
    },
    "fields": {
        "unchecked": "metrifair {theirs} wrote other fields in audit.json than this version, "
        "{ours}. Not checked by "
        "this version: {places}."
    },
    "unusable": {"differs": "The figures cannot be recomputed from these files: {problem}"},
    "page": {
        "agrees": "{name} equals the file generated again from audit.json and the manifest.",
        "differs": "{name} differs from the file generated again from audit.json and the manifest. "
        "The first "
        "difference is in line {line}: received {text!r}, expected {expected!r}.",
        "unchecked": "{name} was written by metrifair {theirs}. Verify it with that version; this "
        "version is {ours}.",
    },
    "print": {
        "agrees": "report.pdf equals report.html printed again.",
        "differs": "report.pdf differs from report.html printed again.",
        "unchecked": "report.pdf was printed by another browser or system, so it cannot be "
        "compared.",
    },
    "browser": {"unchecked": "report.pdf cannot be compared without Chromium or Google Chrome."},
    "data": {
        "agrees": "{name} has the sha256 that the manifest lists.",
        "differs": "{name} does not have the sha256 of an input in the manifest: received "
        "{sha256}, expected "
        "{expected}.",
    },
    "recount": {
        "agrees": "The {rows:,} rows of {name} give the counts of counts.state.",
        "differs": "{name} has {rows:,} rows and {left_out:,} excluded rows; the evidence has "
        "{their_rows:,} and "
        "{their_left_out:,}. {cells} of {their_cells} cells (groups, strata and label) have other "
        "counts.",
    },
    "search_recount": {
        "agrees": "A search of {name} counts the same {groups:,} groups as groups.state.",
        "differs": "A search of {name} does not count the same groups as groups.state.",
        "unchecked": "The search cannot be repeated on {name}: only its author knows which rows selected "
        "the groups.",
    },
    "withheld_search": {
        "withheld": "Cannot be recomputed: the search for groups. Its groups overlap, so that their "
        "counts would show cells with fewer than {min_cell} rows."
    },
    "search_figures": {
        "agrees": "{figures} figures of figures.json equal those recomputed from the counts "
        "(relative tolerance {tolerance}).",
        "differs": "figures.json differs from the figures recomputed from the counts in {count} "
        "places: {places}.",
    },
    "front": {"agrees": "The Pareto front has {on_front} of {of} configurations."},
    "choice": {
        "agrees": "The rule may choose configuration {chosen}, given the bounds of the counts and "
        "the standard errors. It is one of {possible} that it may choose.",
        "differs": "The rule cannot choose configuration {chosen}, given the bounds of the counts "
        "and the standard errors.",
    },
    "search_facts": {
        "agrees": "The facts of search.json do not contradict each other or the counts.",
        "differs": "search.json contradicts itself or the counts: {contradictory}.",
    },
    "unlike_folds": {
        "withheld": "Cannot be recomputed: that configurations were passed over because their "
        "models of all rows are unlike those of the folds ({number})."
    },
    "search_page": {
        "agrees": "{name} equals the file generated again from search.json and the figures.",
        "differs": "{name} differs from the file generated again from search.json, figures.json "
        "and the counts.",
    },
    "scores_recount": {
        "agrees": "The {rows:,} rows of {name} give the counts of all {configurations} "
        "configurations.",
        "differs": "The rows of {name} give other counts in {counts}.",
    },
    "scores_facts": {
        "agrees": "{name} gives the standard errors, the choice and the expected figures of "
        "search.json.",
        "differs": "search.json differs from what {name} gives in {count} places: {places}.",
    },
    "scores_data": {
        "agrees": "The groups and labels of {name} are those of the data.",
        "differs": "The groups or labels of {name} differ from those of the data in {rows:,} rows.",
        "unchecked": "The groups and labels of {name} cannot be compared with the data, which have "
        "no column of the same name and values.",
    },
    "model_file": {
        "agrees": "{name} has the sha256 of the delivered model.",
        "differs": "{name} does not have the sha256 of the delivered model.",
        "unchecked": "search.json does not name a model file, so {name} cannot be compared.",
    },
    "model_scores": {
        "agrees": "The model in {name} gives the scores of the delivered model.",
        "differs": "The model in {name} gives other scores than the delivered model in {rows:,} "
        "rows.",
        "unchecked": "{name} is not a model of table rows, so its scores cannot be compared.",
    },
    "signature": {
        "agrees": "The manifest is signed by the key in {name}.",
        "differs": "The manifest is not signed by the key in {name}.",
        "unchecked": "The manifest is signed. Pass the public key of the expected signer to verify "
        "the signature.",
    },
    "suppressed": {"withheld": "Cannot be recomputed: figures of {column} {groups}."},
    "merged_scores": {
        "withheld": "Cannot be recomputed: figures of the original scores. Each count has at least "
        "{min_cell} rows of "
        "neighboring intervals of a public grid."
    },
    "rates_on_grid": {
        "withheld": "Cannot be recomputed: decisions by the original scores. Their rates by "
        "{column} differ by at "
        "most: {errors}."
    },
    "distances_on_grid": {
        "withheld": "Cannot be recomputed: Kolmogorov distances of the original scores. They "
        "differ by at most the sum "
        "of these shares of both groups, by {column}: {errors}."
    },
}

_WORDS = {
    "agrees": "agrees",
    "differs": "DIFFERS",
    "unchecked": "not checked",
    "withheld": "withheld",
}


def check_text(check: Check) -> str:
    """The result of one check, as a line.

    >>> check_text(Check("recount", "agrees", {"rows": 120, "name": "scores.csv"}))
    'agrees: The 120 rows of scores.csv give the counts of counts.state.'
    """
    facts = dict(check.facts)
    if "places" in facts:
        facts["count"] = len(facts["places"])
    if "values" in facts:
        pairs = zip(facts["places"], facts["values"], strict=True)
        facts["places"] = [
            f"{place} (received {_shown(old)}, expected {_shown(new)})"
            for place, (old, new) in pairs
        ]
    facts |= {
        name: listed(value)
        for name, value in facts.items()
        if name in ("places", "expected", "counts") and not isinstance(value, str)
    }
    text = _TEMPLATES[check.kind][check.outcome].format(tolerance=f"{TOLERANCE:g}", **facts)
    return f"{_WORDS[check.outcome]}: {text}"


def _shown(value: object) -> str:
    return textwrap.shorten(json.dumps(value, ensure_ascii=False), _LONGEST, placeholder=" ...")


def verdict_text(checks: Sequence[Check]) -> str:
    """The result of all checks in one sentence.

    >>> verdict_text([Check("print", "unchecked"), Check("provenance", "agrees")])
    'No check found a difference, but 1 of 2 checks could not be completed.'
    >>> verdict_text([Check("hashes", "agrees"), Check("provenance", "agrees")])
    'The evidence agrees in all 2 checks. Without the data or a signature, they do not detect a consistent forgery.'
    """
    completed = [check for check in checks if check.outcome != "withheld"]
    differs, unchecked = (
        sum(check.outcome == outcome for check in completed) for outcome in ("differs", "unchecked")
    )
    if differs:
        checked = part_text(differs, len(completed), "checks")
        return f"{checked} found a difference."
    if unchecked:
        return f"No check found a difference, but {unchecked} of {len(completed)} checks could not be completed."
    agrees = f"The evidence agrees in all {len(completed)} checks."
    if {"recount", "scores_recount", "signature"} & {check.kind for check in checks}:
        return agrees
    return f"{agrees} Without the data or a signature, they do not detect a consistent forgery."


def plan_text(gap: float | None, rows: Sequence[int], power: float) -> str:
    """The gap that so many rows detect.

    >>> plan_text(0.1, (412, 824), 0.8)
    '412 and 824 rows detect a gap of 10.0 points with a power of 80%.'
    """
    groups = " and ".join(f"{size:,}" for size in rows)
    if gap is None:
        return f"{groups} rows are too few to detect any gap with a power of {100 * power:g}%."
    return f"{groups} rows detect a gap of {points_text(gap)} with a power of {100 * power:g}%."


def readme_text(
    record: AuditRecord, manifest: Manifest, names: Iterable[str], single: tuple[int, int]
) -> str:
    """The README of an evidence folder with files of these names; ``single``: counts of one
    row, and all counts.
    """
    present = {name.partition("/")[0] for name in names} | {MANIFEST, SIGNATURE}
    if counts_names(2)[1] in present:
        present.add("counts-*.state")
    files = [f"{name:18} {text}" for name, text in _CONTENT.items() if name.rstrip("/") in present]
    released = {"min_cell": manifest.min_cell, "score_digits": manifest.score_digits}
    parts = [
        ("WHAT WAS MEASURED", [*audit_summary(record), NO_VERDICT]),
        ("ON WHAT", origin_sentences(manifest.provenance)),
        ("WHAT IS NOT HERE", _absent(manifest, single)),
        ("OTHER RELEASES OF THE SAME ROWS", _series(manifest)),
        ("FILES", files),
        (
            "PARAMETERS",
            [
                f"{name} = {json.dumps(value)}"
                for name, value in {**manifest.parameters, **released}.items()
            ],
        ),
        ("PLATFORM", [manifest.platform]),
        *(_crosswalk_part(name) for name in manifest.crosswalks),
        (
            "HOW TO VERIFY",
            [
                (
                    "pip install 'metrifair[cli]', then: metrifair verify FOLDER [--data FILE] "
                    "[--verify-key KEY.pub]"
                ),
                (
                    "It checks every sha256, recomputes every figure from counts.state, and "
                    "compares "
                    "report and tables."
                ),
                "Without a signature, verification detects accidents and careless edits.",
                (
                    "Only --data or a signature detects counts and files that were rewritten "
                    "consistently."
                ),
            ],
        ),
    ]
    title = manifest.provenance.title or "Fairness audit: evidence"
    lines = [title, "=" * len(title)]
    for heading, sentences in parts:
        lines += ["", heading, *(line for sentence in sentences for line in readme_lines(sentence))]
    return "\n".join(lines) + "\n"


def _absent(manifest: Manifest, single: tuple[int, int]) -> list[str]:
    searched = ""
    if manifest.search == "counted":
        searched = " Columns that were searched are in it as counts of groups."
    sentences = [
        (
            "The evidence contains no input file, only its sha256, and no column except groups, "
            f"strata, label and score.{searched}"
        ),
    ]
    if manifest.min_cell == 1:
        text = f"{part_text(*single, 'counts')} in counts.state are of a single row."
        sentences.append(f"{text} With --min-cell, every count is of at least so many rows.")
    if manifest.search == "counted":
        sentences.append(
            "The groups in groups.state overlap: differences of their counts can be of a single row."
        )
    sentences += map(
        note_text,
        release_notes(
            manifest.suppressed,
            manifest.min_cell,
            manifest.score_digits,
            without_search=manifest.search == "withheld",
        ),
    )
    return [
        *sentences,
        "The evidence states no causes of a gap, and nothing about rows that were not audited.",
    ]


def _series(manifest: Manifest) -> list[str]:
    """What several releases of the same rows show together."""
    ledger = (
        "metrifair refuses to release the same rows with other parameters, unless --again is "
        f"passed. {LEDGER} beside "
        "the evidence lists the releases. It recognizes rows by their file, or by all their scores "
        "together."
    )
    if manifest.min_cell == 1:
        return [*_SERIES_OF_SCORES, ledger]
    widths = [high - low for ends in manifest.grid.values() for low, high in ends]
    shown = f"Intervals here are from {min(widths, default=0.0):g} to {max(widths, default=0.0):g} wide."
    return [shown, *_SERIES_ON_GRID, ledger]


def suppression_checks(manifest: Manifest, error: GridError | None) -> list[Check]:
    """The figures that nobody can recompute from what was released: of suppressed values, and
    of merged scores.
    """
    checks = [
        Check(
            "suppressed", "withheld", {"column": column, "groups": listed(list(map(str, values)))}
        )
        for column, values in manifest.suppressed.items()
    ]
    if manifest.search == "withheld":
        checks.append(Check("withheld_search", "withheld", {"min_cell": manifest.min_cell}))
    if error is None:
        return checks
    checks.append(Check("merged_scores", "withheld", {"min_cell": manifest.min_cell}))
    for kind, by_column in (("rates_on_grid", error.rates), ("distances_on_grid", error.distances)):
        for column, errors in by_column.items():
            facts = {"column": column, "errors": error_texts(list(errors.items()))}
            checks.append(Check(kind, "withheld", facts))
    return checks


def _crosswalk_part(name: str) -> tuple[str, list[str]]:
    table = crosswalk_named(name)
    items = [f"{item['item']}: {item['figure']} ({item['place']})" for item in table.items]
    return f"CROSSWALK: {table.title}", [*table.sources, *items]
