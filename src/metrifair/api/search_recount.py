"""A search from its out-of-fold scores, again: counts, standard errors, choice, expected figures
and the scores of the delivered model.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from metrifair.api.loading import load
from metrifair.api.reading import read_file
from metrifair.api.search_counts import (
    SearchRows,
    expected_facts,
    facts_of_scores,
    has_utility,
    rounded,
)
from metrifair.api.search_evidence import model_file_facts
from metrifair.api.search_figures import DELIVERED, count_files
from metrifair.api.search_folder import FACTS, SearchManifest, read_scorings
from metrifair.auditing.release.evidence_format import Check, Files, decoded, different_values
from metrifair.auditing.release.suppression import released_together
from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.auditing.sources.state_file import state_content
from metrifair.auditing.sources.typed_tables import typed_text
from metrifair.errors import DataError
from metrifair.estimators.table_model import TableModel
from metrifair.figures.utility import UTILITIES, Predictions
from metrifair.problem.attributes import in_groups
from metrifair.saving.modelfile import PathLike, to_bytes
from metrifair.support.arrays import Floats
from metrifair.support.files import csv_bytes, error_reason
from metrifair.support.provenance import CUTS
from metrifair.tradeoff.choice import Chooser, Rule
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.resamples import draw_rows
from metrifair.tradeoff.result import SweepContext
from metrifair.tradeoff.search_facts import ConfigurationFacts, JsonScalar, SearchFacts
from metrifair.tradeoff.split import data_set, with_common_comparisons

_COUNTED = " (counted)"  # after the names of columns of the counts
_SCORE = "score "
_STATED = 1e-3  # relative: stated figures have four significant digits
_STATED_APART = 1e-9
_SAME_SCORE = 1e-6


@dataclass(frozen=True, eq=False)
class ScoresFile:
    """The rows of a file of out-of-fold scores, with the values of the counts."""

    path: Path
    facts: SearchFacts
    columns: Mapping[str, Sequence[str]]  # text by name
    values: Sequence[Mapping[str, JsonScalar]]  # of each column of the counts, by text

    @classmethod
    def read(
        cls, path: PathLike, facts: SearchFacts, values: Sequence[Mapping[str, JsonScalar]]
    ) -> ScoresFile:
        """Read a file; a DataError if it lacks a column."""
        place = Path(path)
        try:
            text = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"cannot read {place}: {error_reason(error)}", argument="scores"
            ) from None
        head, *rows = csv.reader(io.StringIO(text))
        if any(len(row) != len(head) for row in rows):
            raise DataError(f"{place.name} has rows of other lengths than its head")
        columns = dict(zip(head, zip(*rows, strict=True), strict=False))
        names = [str(item.number) for item in facts.usable]
        needed = ["row", *(f"{name}{_COUNTED}" for name in facts.columns)]
        needed += [f"{_SCORE}{name}" for name in (*names, DELIVERED)]
        missing = [name for name in needed if name not in columns]
        if missing:
            raise DataError(
                f"{place.name} has no column {missing[0]!r}; pass the file that to_evidence wrote",
                argument="scores",
            )
        return cls(place, facts, columns, values)

    @cached_property
    def rows(self) -> np.ndarray:
        """The number of each row in the data."""
        return np.array(self.columns["row"], np.int64)

    def score(self, name: int | str) -> Floats:
        """The scores of a configuration, or of the delivered model."""
        return np.array(self.columns[f"{_SCORE}{name}"], np.float64)

    def column(self, place: int) -> list[JsonScalar]:
        """The values of a column of the counts."""
        texts = self.columns[f"{self.facts.columns[place]}{_COUNTED}"]
        known = self.values[place]
        others = {text: _like(text, known.values()) for text in {*texts} - known.keys()}
        values = {**others, **known}
        return [values[text] for text in texts]

    @cached_property
    def _strata(self) -> tuple[JsonScalar, ...]:
        """The names of the strata, in the order of their comparisons."""
        named = [key[-2] for item in self.facts.comparisons for key in (*item.left, *item.right)]
        others = sorted({*self.column(self.facts.attributes + 1)} - {None, *named}, key=str)
        return (*dict.fromkeys(named), *others)

    @cached_property
    def context(self) -> SweepContext:
        """The rows and scores as the search had them."""
        facts = self.facts
        groups = facts.attributes
        strata = None
        if len(facts.columns) > groups + 2:
            numbers = {name: number for number, name in enumerate(self._strata)}
            strata = np.array([numbers.get(name) for name in self.column(groups + 1)], object)
        labels = np.array(self.column(len(facts.columns) - 1))
        fold = np.array([int(str(value)) for value in self.column(groups)], np.int64)
        attributes: Any = {
            name: np.array(self.column(place), object)
            for place, name in enumerate(facts.columns[:groups])
        }
        data = data_set(
            np.zeros((len(labels), 1)),
            labels,
            attributes,
            strata,
            regression=False,
            criterion=facts.criterion,
            contrast=facts.contrast,
            pos_label=facts.positive,
            intersectional=facts.joint and groups > 1,
            held_out=(),
        )
        if data.problem.scheme.strata is not None and strata is not None:
            # they have names already, of columns and values
            named = data.problem.scheme.strata._replace(names=tuple(map(str, self._strata)))
            scheme = replace(data.problem.scheme, strata=named)
            data = replace(data, problem=replace(data.problem, scheme=scheme))
        (part,) = with_common_comparisons(data.held_out(data.rows))
        predictions = {_job(item): self._predictions(item) for item in facts.usable}
        return SweepContext(
            part,
            self.rows,
            fold,
            predictions,
            {},
            UTILITIES[facts.utility],
            facts.unfairness_of,
            facts.seed,
            draw_rows(part.fold_sides(fold), facts.seed),
        )

    def _predictions(self, item: ConfigurationFacts) -> Predictions:
        score = self.score(item.number)
        is_positive = score >= 0.5
        positive = self._positive_code
        kind = "probability"
        # Other scores are probabilities, whatever the facts state of their utility.
        without = item.excluded == "no_utility" and bool(np.isin(score, [0.0, 1.0]).all())
        if self.facts.unfairness_of == "decisions" or without:
            kind = "decision"
        return Predictions(score, np.where(is_positive, positive, 1 - positive), kind)

    @cached_property
    def _positive_code(self) -> int:
        """The place of the positive label among both."""
        distinct = np.unique(np.array(self.column(len(self.facts.columns) - 1)))
        return int(np.flatnonzero(distinct == self.facts.positive)[0])


def _job(item: ConfigurationFacts) -> Job:
    return Job(item.value, item.seed, item.family)


def check_recount(
    files: Files, manifest: SearchManifest, scores: PathLike, data: PathLike | None
) -> Iterator[Check]:
    """The counts and the facts of a search, from its scores; and its rows, from the data."""
    facts: SearchFacts = decoded(files[FACTS], SearchFacts)
    found = ScoresFile.read(scores, facts, _values(files, facts, manifest))
    rows = SearchRows(found.context, UTILITIES[facts.utility], tuple(facts.columns))
    yield _check_counts(files, manifest, found, rows)
    yield _check_facts(found, rows)
    if data is not None:
        yield _check_rows(found, manifest, data)


def _values(
    files: Files, facts: SearchFacts, manifest: SearchManifest
) -> list[Mapping[str, JsonScalar]]:
    """The values of each column of the counts, by their text in a csv file."""
    values: dict[str, dict[str, JsonScalar]] = {name: {} for name in facts.columns}

    def add(names: Sequence[str], keys: Iterable[Sequence[JsonScalar]]) -> None:
        for key in keys:
            for name, value in zip(names, key, strict=True):
                values[name][_csv_text(value)] = value

    for scoring in read_scorings(files, facts, manifest).values():
        for table, _ in scoring:
            assert table.shape is not None
            assert table.shape.label is not None
            add([*table.shape.groups, *table.shape.controls, table.shape.label], table.cells)
    # those of withheld groups, too
    attributes = facts.columns[: facts.attributes]
    for item in facts.comparisons:
        groups = attributes if facts.joint else [attributes[item.table]]
        add([*groups, *facts.columns[facts.attributes + 1 :]], [*item.left, *item.right])
    return [values[name] for name in facts.columns]


def _like(text: str, known: Iterable[JsonScalar]) -> JsonScalar:
    """The value of a text that no count and no comparison has: of the type of all others."""
    kinds = {type(value) for value in known if value is not None}
    if not text or kinds not in ({int}, {float}):
        return text or None
    (kind,) = kinds
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def _csv_text(value: JsonScalar) -> str:
    content = csv_bytes({"value": [value]}).decode()
    rows = list(csv.reader(io.StringIO(content)))
    return rows[1][0] if rows[1] else ""


def _check_counts(
    files: Files, manifest: SearchManifest, found: ScoresFile, rows: SearchRows
) -> Check:
    """Whether the scores give the files of counts."""
    facts = found.facts
    names = [*(str(item.number) for item in facts.usable), DELIVERED]
    releases = released_together(
        [rows.parts(found.score(name)) for name in names], manifest.min_cell, joint=facts.joint
    )
    different = []
    for name, release in zip(names, releases, strict=True):
        for file, table, ends in zip(
            count_files(name, facts.tables), release.tables, release.grid, strict=True
        ):
            same = files[file] == to_bytes(state_content(table))
            if not same or list(ends) != list(manifest.grid[file]):
                different.append(file)
    about = {
        "name": found.path.name,
        "rows": len(found.rows),
        "configurations": len(facts.usable),
        "counts": different,
    }
    return Check("scores_recount", "differs" if different else "agrees", about)


def _check_facts(found: ScoresFile, rows: SearchRows) -> Check:
    """Whether the scores give the standard errors, the choice and the expected figures."""
    stated = found.facts
    again = _facts_again(found, rows)
    pair = [msgspec.to_builtins(facts) for facts in (stated, again)]
    differences = [
        (place, old, new) for place, old, new in different_values(*pair) if not _is_near(old, new)
    ]
    about = {
        "name": found.path.name,
        "places": [place for place, *_ in differences],
        "values": [values for _, *values in differences],
    }
    return Check("scores_facts", "differs" if differences else "agrees", about)


def _is_near(old: object, new: object) -> bool:
    """Whether stated figures are equal but for rounding; integers must be equal."""
    if not isinstance(old, float) or not isinstance(new, float):
        return False
    return isclose(old, new, rel_tol=_STATED, abs_tol=_STATED_APART)


def _facts_again(found: ScoresFile, rows: SearchRows) -> SearchFacts:
    """The facts of a search with all that its scores determine."""
    facts = found.facts
    chooser = found.context.chooser(UTILITIES[facts.utility])
    simplicity = np.array([item.simplicity for item in facts.usable])
    chooser = Chooser(**{**vars(chooser), "simplicity": simplicity})
    allowed = np.array([not item.excluded for item in facts.usable])
    asked = Rule.of(facts.goal)
    choice, rule = chooser.choose_or_least_unfair(asked, allowed)
    errors = chooser.utility.errors_of_differences
    if facts.goal is not None and facts.goal.min_accuracy is not None and facts.met:
        errors = chooser.gaps.errors_of_differences
    place = iter(range(len(facts.usable)))
    configurations = [
        item if item.excluded == "failed" else _again(item, next(place), chooser, found)
        for item in facts.configurations
    ]
    chosen = facts.usable[choice.configuration].number if choice.configuration >= 0 else 0
    return msgspec.structs.replace(
        facts,
        met=rule is asked,
        configurations=configurations,
        comparisons=rows.comparisons(),
        allowance=rounded(chooser.optimism(rule, allowed)),
        errors_of_differences=[[rounded(value) for value in row] for row in errors],
        chosen=chosen,
        expected=expected_facts(choice, larger_is_better=facts.larger_is_better),
    )


def _again(
    item: ConfigurationFacts, place: int, chooser: Chooser, found: ScoresFile
) -> ConfigurationFacts:
    """The facts of a configuration with all that its scores determine."""
    excluded: Any = item.excluded
    if excluded in ("", "no_utility"):
        excluded = "" if has_utility(chooser, place) else "no_utility"
    scores = found.score(item.number)
    return msgspec.structs.replace(
        item, excluded=excluded, **facts_of_scores(chooser, place, scores)
    )


def _check_rows(found: ScoresFile, manifest: SearchManifest, data: PathLike) -> Check:
    """Whether groups and labels of the scores are those of the data, by the names of columns.

    Rows in memory may have other names for all values of a column; that is left unchecked.
    """
    provenance = manifest.provenance
    name = found.path.name
    from_file = bool(provenance.files)
    table = _with_cuts(_table(data, manifest), manifest)
    differs = np.zeros(len(found.rows), bool)
    compared = 0
    for place, column in enumerate(found.facts.columns):
        if column not in table.columns or place == found.facts.attributes:
            continue
        theirs = table[column].to_list()
        pairs = [
            (_compared_text(theirs[row]), _compared_text(value))
            for row, value in zip(found.rows.tolist(), found.column(place), strict=True)
        ]
        if not from_file and not {old for old, _ in pairs} & {new for _, new in pairs}:
            continue
        compared += 1
        differs |= np.array([old != new for old, new in pairs])
    if not compared:
        return Check("scores_data", "unchecked", {"name": name})
    about = {"name": name, "rows": int(differs.sum())}
    return Check("scores_data", "differs" if differs.any() else "agrees", about)


def _table(data: PathLike, manifest: SearchManifest, sensitive: Sequence[str] = ()) -> pl.DataFrame:
    """The data as the search read them; groups and strata of files are text."""
    provenance = manifest.provenance
    texts = [*sensitive]
    if provenance.files:
        for role in ("group", "control"):
            texts += provenance.columns.get(role, ())
    options = {name: value for name, value in provenance.reading.items() if name != CUTS}
    return read_file(data, text=list(dict.fromkeys(texts)), reading=ReadOptions(**options))


def _with_cuts(table: pl.DataFrame, manifest: SearchManifest) -> pl.DataFrame:
    """The data with groups in place of numbers that were cut."""
    for name, edges in manifest.provenance.reading.get(CUTS, {}).items():
        numbers = typed_text(table.get_column(name)).cast(pl.Float64).fill_null(float("nan"))
        groups = in_groups({name: numbers.to_numpy()}, edges)
        table = table.with_columns(pl.Series(name, groups[name], dtype=pl.String))
    return table


def _compared_text(value: object) -> str:
    """A value as text, the same for 1 and 1.0, and for text with spaces around it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def check_model_file(
    files: Files,
    manifest: SearchManifest,
    model: PathLike,
    scores: PathLike | None,
    data: PathLike | None,
) -> Iterator[Check]:
    """The hash of the model file; with scores and data, the scores of the model."""
    facts: SearchFacts = decoded(files[FACTS], SearchFacts)
    name = Path(model).name
    if facts.model is None:
        yield Check("model_file", "unchecked", {"name": name})
        return
    same = model_file_facts(model).sha256 == facts.model.sha256
    yield Check("model_file", "agrees" if same else "differs", {"name": name})
    if scores is None or data is None:
        return
    found = ScoresFile.read(scores, facts, _values(files, facts, manifest))
    yield _check_model_scores(found, manifest, model, data)


def _check_model_scores(
    found: ScoresFile, manifest: SearchManifest, model: PathLike, data: PathLike
) -> Check:
    """Whether a model of table rows gives the scores of the delivered model."""
    loaded = load(model)
    if not isinstance(loaded, TableModel) or loaded.classes is None:
        return Check("model_scores", "unchecked", {"name": Path(model).name})
    table = _table(data, manifest, loaded.sensitive)[found.rows.tolist()]
    if found.facts.unfairness_of == "decisions":
        again = (loaded.predict(table) == loaded.classes[loaded.positive]).astype(np.float64)
    else:
        again = loaded.predict_proba(table)[:, loaded.positive]
    differs = ~np.isclose(again, found.score(DELIVERED), rtol=0.0, atol=_SAME_SCORE)
    about = {"name": Path(model).name, "rows": int(differs.sum())}
    return Check("model_scores", "differs" if differs.any() else "agrees", about)
