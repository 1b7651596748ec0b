"""Columns of a file or table as numbers and codes.

Levels are collected as they occur, in one pass. A cell is a combination of groups, strata and
label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.formats import polars
from metrifair.auditing.request import MOST_LEVELS, Request, too_many_groups
from metrifair.errors import DataError, Remedies, Remedy
from metrifair.problem.attributes import Continuous, Cuts, cuts_by_column, in_groups
from metrifair.problem.bands import quantile_cuts
from metrifair.problem.predictions import ROUNDING, are_probabilities, check_one_spelling, value_counts
from metrifair.problem.proxies import (
    GroupProbabilities,
    further_columns,
    probability_columns,
    proxy_columns,
    with_values,
)
from metrifair.problem.spelling import COMMA, MISSING
from metrifair.problem.tables import EXACT, MOST_CLASSES, check_exact
from metrifair.problem.values import place_among
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.checks import as_names

if TYPE_CHECKING:
    import polars as pl

SAMPLED_ROWS = 10_000  # rows that decide whether columns are models, if not all are in memory
LEVELS = 256  # of a numeric column out of core
_WORDS = 10  # that an error lists
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # a comma that may be either sign
_FEW = 8  # levels compared one by one: faster than a lookup
# A leading zero makes it a code, such as 02139; so does "_", which Python would ignore.
_NUMBER = re.compile(r"-?(?!0\d)(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class Roles(NamedTuple):
    """The columns of a file or table by role."""

    score: str
    groups: tuple[str, ...]
    label: str | None = None
    controls: tuple[str, ...] = ()
    weight: str | None = None
    cuts: Mapping[str, tuple[float, ...]] = {}  # that make groups of numbers, by column
    continuous: Continuous = False  # which of the groups are numbers
    favorable_decision: object = None  # the value of the score column that counts as 1, any other as 0; None: numbers
    proxy: GroupProbabilities | None = None  # columns of probabilities in place of groups

    @classmethod
    def from_names(
        cls,
        *,
        score: str,
        group: str | Sequence[str] | GroupProbabilities,
        label: str | None = None,
        control: str | Sequence[str] | None = None,
        weight: str | None = None,
        cuts: Cuts = None,
        continuous: Continuous = False,
        favorable_decision: object = None,
    ) -> Self:
        """The columns that a user named; a DataError if one has two roles."""
        several: dict[str, tuple[str, ...]] = {}
        proxy = group if isinstance(group, GroupProbabilities) else None
        group_columns = group if proxy is None else proxy_columns(proxy)
        for role, value in (("group", group_columns), ("control", control)):
            names = () if value is None else as_names(role, value)
            if role == "group" and not names:
                raise DataError("must name at least one column, got none", argument="group")
            if len(set(names)) < len(names):
                raise DataError("must name different columns", argument=role, received=list(names))
            several[role] = names
        for role, name in (("label", label), ("weight", weight)):
            if name is not None and not isinstance(name, str):
                raise DataError("must be the name of a column", argument=role, received=name)
            several[role] = () if name is None else (name,)
        for first, role in (*(("score", role) for role in several), ("label", "group"), ("weight", "group")):
            names = (score,) if first == "score" else several[first]
            if shared := set(names) & set(several[role]):
                raise DataError(
                    f"both name the column {min(shared)!r}", argument=(first, role), remedy="name two columns"
                )
        groups = several["group"] if proxy is None else ()
        edges = cuts_by_column(cuts, groups)
        return cls(score, groups, label, several["control"], weight, edges, continuous, favorable_decision, proxy)

    @property
    def by_role(self) -> dict[str, Sequence[str]]:
        """The columns of each role."""
        single = {"score": self.score, "label": self.label, "weight": self.weight}
        columns: dict[str, Sequence[str]] = {role: [name] for role, name in single.items() if name is not None}
        if self.proxy is None:
            return columns | {"group": self.groups, "control": self.controls}
        further = {role: [name] for role, name in further_columns(self.proxy).items()}
        return columns | {"group": [*probability_columns(self.proxy).values()], "control": self.controls} | further

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The columns of group probabilities, and further columns about these groups."""
        return () if self.proxy is None else proxy_columns(self.proxy)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose combinations are cells: groups, then controls, then the label."""
        return *self.groups, *self.controls, *([] if self.label is None else [self.label])

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return *self.keys, self.score, *([] if self.weight is None else [self.weight]), *self.probabilities

    def is_number(self, name: str) -> bool | None:
        """Whether a column of groups is numeric; None: its values decide."""
        if isinstance(self.continuous, bool | str):
            return None if self.continuous == "auto" else bool(self.continuous)
        return name in self.continuous


def numbers(role: str, name: str, column: pl.Series) -> Floats:
    """A column as numbers, NaN for missing values; a DataError shows the first value that is neither."""
    pl = polars()
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = text.cast(pl.Float64, strict=False)
        invalid = text.filter(column.is_null() & text.is_not_null() & ~text.str.to_lowercase().is_in(MISSING))
        if len(invalid):
            raise DataError(
                f"the {role} column {name!r} must contain numbers",
                received=invalid[0],
                remedy=_number_remedy(role, invalid),
            )
        integers = text.filter((column.abs() >= EXACT).fill_null(value=False)).str.extract(r"^([+-]?\d+)$", 1)
        check_exact(f"the {role} column {name!r}", np.array(list(map(int, integers.drop_nulls())), dtype=object))
    original, column = column, column.cast(pl.Float64)
    if original.dtype.is_integer():
        long = original.filter((column.abs() >= EXACT).fill_null(value=False))
        check_exact(f"the {role} column {name!r}", np.array(long.to_list(), dtype=object))
    return np.asarray(column.fill_null(float("nan")).to_numpy() if column.null_count() else column.to_numpy())


def score_precision(kinds: Iterable[object]) -> np.dtype[Any]:
    """The precision of scores whose columns, of one or several files, have these types of polars or narwhals.

    >>> score_precision(["Float32"]), score_precision(["Float32", "Float64"])
    (dtype('float32'), dtype('float64'))
    """
    return np.result_type(
        *({"Float16": np.float16, "Float32": np.float32}.get(str(kind), np.float64) for kind in kinds)
    )


def _number_remedy(role: str, invalid: pl.Series) -> Remedies:
    """The remedies for text in a numeric column; only the user can state the number of a word."""
    first = str(invalid[0])
    if re.match(COMMA, first, re.ASCII):
        if not invalid.str.contains(_THOUSANDS).all():
            return Remedy("decimal", ",")
        return ["write numbers without a sign between thousands", Remedy("decimal", detail=" if it is the comma")]
    if first.endswith("%"):
        return "write shares as numbers, such as 0.25 for 25%"
    if role == "score":
        return Remedy("favorable_decision", detail=f" if these values are decisions: {_counts_in(invalid)}")
    words = invalid.unique(maintain_order=True).to_list()[:_WORDS]
    return Remedy("replace", dict.fromkeys(words, ...), " with the number of each")


def scores_in(roles: Roles, column: pl.Series) -> Floats:
    """A column of scores as numbers; of decisions, 1 where the decision is the favorable one, 0 for any other.

    >>> import polars as pl
    >>> scores_in(Roles("d", ("sex",), favorable_decision="yes"), pl.Series("d", ["yes", "no", None, " yes"]))
    array([ 1.,  0., nan,  1.])
    """
    if roles.favorable_decision is None:
        return numbers("score", column.name, column)
    if column.dtype == polars().String:
        column = column.str.strip_chars()
        column = column.set(column.str.to_lowercase().is_in(MISSING), None)
    values = column.drop_nulls().unique(maintain_order=True).to_list()
    place = place_among(roles.favorable_decision, values)
    check_one_spelling(roles.favorable_decision, values)
    favorable = np.zeros(len(column)) if place is None else (column == values[place]).fill_null(value=False).to_numpy()
    return np.where(column.is_null().to_numpy(), np.nan, favorable)


def _counts_in(column: pl.Series) -> str:
    """The values of a column with their counts, equal counts in the order of the values."""
    return value_counts(sorted(column.drop_nulls().value_counts().iter_rows(), key=lambda pair: str(pair[0])))


def check_favorable(roles: Roles, selected: float, decisions: pl.Series | None = None) -> None:
    """Raise a DataError if no row has the favorable decision."""
    if roles.favorable_decision is not None and selected == 0:
        raise DataError(
            f"is no value of the column {roles.score!r}",
            argument="favorable_decision",
            received=roles.favorable_decision,
            remedy=None if decisions is None else f"its values are {_counts_in(decisions)}",
        )


def name_values(values: Sequence[object]) -> list[Any]:
    """Names that were read as text; as numbers only if that changes no name, so that 9 sorts before 10.

    >>> [name_values(text) for text in (["10", "9"], ["02139", "10001"], ["18_25", "26_40"], ["1.50", "true"])]
    [[10, 9], ['02139', '10001'], ['18_25', '26_40'], ['1.50', 'true']]
    """
    text = [str(value) for value in values]
    for kind in (int, float):
        try:
            names = [kind(value) for value in text]
        except ValueError:
            continue
        if [str(value) for value in names] == text and {"nan", "inf", "-inf"}.isdisjoint(text):
            return names
    return text


def label_values(values: Sequence[object]) -> list[Any]:
    """Labels read as text, converted if all are integers, numbers, or true or false; else text.

    >>> [label_values(text) for text in (["1", "0"], ["1.50", "2"], ["a", "1"], ["007", "8"], ["True", "false"])]
    [[1, 0], [1.5, 2.0], ['a', '1'], ['007', '8'], [True, False]]
    """
    text = [str(value).strip() for value in values]
    if {value.lower() for value in text} <= {"true", "false"}:
        return [value.lower() == "true" for value in text]
    labels = name_values(text)
    if all(map(_NUMBER.fullmatch, text)) and isinstance(labels[0], str):
        return [float(value) for value in text]
    return labels


class ManyNumbers(DataError):
    """A column of numbers with more values than are distinguished one by one; it has to be cut into levels."""

    level: ColumnLevels


@dataclass
class ColumnLevels:
    """The values of one column in order of occurrence; of numbers that are cut, one for each band."""

    role: str
    name: str
    max_values: int = MOST_LEVELS
    values: list[Any] = field(default_factory=list)
    is_number: bool | None = False  # None: its values decide
    cuts: Floats | None = None

    def cut_at(self, cuts: Sequence[float] | Floats, largest: float) -> None:
        """Replace numbers by the largest of their band: up to the first cut, up to the next, above the last."""
        self.cuts = np.asarray(cuts, dtype=np.float64)
        self.values = [*self.cuts.tolist(), largest]

    def cut_into_levels(
        self, values: Floats, amounts: Floats | None, *, rows: int, ends: tuple[float, float]
    ) -> Floats:
        """Cut a numeric column out of core, from ``values`` of some or all of its rows, which lie between ``ends``."""
        is_numbering = bool((values % 1 == 0).all()) and len(np.unique(values)) == len(values)
        if self.is_number is None and is_numbering and ends[1] - ends[0] + 1 == rows:  # numbers of rows, each once
            self._raise_too_many(rows)
        cuts = quantile_cuts(values, amounts, LEVELS)
        beyond = values > cuts[-1]
        self.cut_at(cuts, float(np.average(values[beyond], weights=None if amounts is None else amounts[beyond])))
        return cuts

    def codes(self, column: pl.Series) -> NDArray[Any]:
        """1 + the index of each value, 0 if it is missing."""
        if self.cuts is not None:
            values = numbers(self.role, self.name, column)
            return np.where(np.isnan(values), 0, np.searchsorted(self.cuts, values) + 1)
        if column.dtype.is_float():
            column = column.fill_nan(None)
            column = column.set((column == 0).fill_null(value=False), 0.0)  # -0.0 is 0.0, but not as text
        codes = self._value_codes(column)
        if int(np.count_nonzero(codes)) < len(column) - column.null_count() and self._add_values(column, codes):
            codes = self._value_codes(column)
        return codes

    def _add_values(self, column: pl.Series, codes: NDArray[Any]) -> bool:
        """Add new values; return whether there are any."""
        distinct = column.filter(polars().Series(codes == 0)).drop_nulls().unique()
        if len(self.values) + len(distinct) > self.max_values + len(MISSING) and self.role == "group":
            self._raise_too_many(len(self.values) + len(distinct), distinct)  # before a million are named and sorted
        ordered = distinct.sort().to_list()
        # Empty text is missing; in labels, so are words for missing values.
        missing = MISSING if self.role == "label" else ("",)
        new = [value for value in ordered if str(value).strip().lower() not in missing]
        self.values += new
        if len(self.values) > self.max_values and self.role == "group":
            self._raise_too_many(len(self.values), distinct)
        if len(self.values) > self.max_values:
            raise DataError(
                f"the {self.role} column {self.name!r} has {len(self.values):,} or more different values, of which at "
                f"most {self.max_values:,} can be distinguished; make them coarser"
            )
        return bool(new)

    def _raise_too_many(self, groups: int, distinct: pl.Series | None = None) -> NoReturn:
        error = too_many_groups(self.name, f"{groups:,} or more different values", max(groups, MOST_LEVELS))
        if distinct is not None and self.is_number is not False and _are_numbers(distinct):
            many = ManyNumbers(*error.args)
            many.level = self
            raise many
        raise error

    def _value_codes(self, column: pl.Series) -> NDArray[Any]:
        pl = polars()
        if len(self.values) <= _FEW:
            codes = np.zeros(len(column), np.uint8)
            for code, value in enumerate(self.values, 1):
                equal = column == value
                equal = equal.fill_null(value=False) if column.null_count() else equal
                codes += equal.to_numpy().view(np.uint8) * np.uint8(code)
            return codes
        names = pl.Series(self.values, dtype=column.dtype).cast(pl.String)
        indices = column.cast(pl.String).cast(pl.Enum(names), strict=False).to_physical()
        return (indices.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def _are_numbers(column: pl.Series) -> bool:
    """Whether a column contains numbers, or only text that reads as numbers; codes such as 02139 do not."""
    if column.dtype != polars().String:
        return column.dtype.is_numeric()
    text = column.str.strip_chars()
    invalid = text.cast(polars().Float64, strict=False).is_null() & ~text.str.to_lowercase().is_in(MISSING)
    return not (invalid | text.str.contains(r"^[+-]?0\d")).any()


def levels_for(roles: Roles, *, max_values: int = MOST_LEVELS, max_groups: int | None = None) -> list[ColumnLevels]:
    """Levels of the key columns, without values yet; group columns may have ``max_groups``."""
    groups, controls = len(roles.groups), len(roles.controls)
    kinds = ["group"] * groups + ["control"] * controls + ["label"] * (roles.label is not None)
    levels = [ColumnLevels(kind, name, max_values) for kind, name in zip(kinds, roles.keys, strict=True)]
    for level in levels[:groups]:
        level.max_values = max_values if max_groups is None else max_groups
        level.is_number = roles.is_number(level.name)
        if level.name in roles.cuts:
            level.cut_at(roles.cuts[level.name], np.inf)
    return levels


def decode_columns(
    roles: Roles, levels: Sequence[ColumnLevels], codes: Sequence[NDArray[Any]], *, is_text: bool
) -> dict[str, Any]:
    """Groups, strata and labels as arguments of an audit, from codes of the key columns; None if one is missing."""
    arguments: dict[str, dict[str, NDArray[Any]]] = {"group": {}, "control": {}, "label": {}}
    for level, code in zip(levels, codes, strict=True):
        # Booleans of a control are a set of rows, which has the name of its column.
        is_set = level.role == "control" and {str(value).lower() for value in level.values} <= {"true", "false"}
        values: Sequence[Any] = level.values
        if is_text and level.cuts is None:
            numeric = level.is_number or (level.is_number is None and len(values) > MOST_CLASSES)
            values = (label_values if level.role == "label" or is_set or numeric else name_values)(values)
        index = np.asarray(code, dtype=np.int64)
        array = np.array([None, *values], dtype=object)[index] if (index == 0).any() else np.array(values)[index - 1]
        arguments[level.role][level.name] = array
    return {
        "sensitive_features": in_groups(arguments["group"], roles.cuts) if arguments["group"] else None,
        "control_features": arguments["control"] or None,
        "y_true": arguments["label"] or None,
    }


def probabilities_in(proxy: GroupProbabilities, table: pl.DataFrame) -> GroupProbabilities:
    """The group probabilities in the columns of a table, with the further columns about these groups."""
    return with_values(
        proxy,
        lambda name: numbers("group", name, table[name]),
        lambda name: np.array(table[name].to_list(), dtype=object),
    )


class UsedRows(NamedTuple):
    """Usable rows: scores, codes of the key columns and weights; and the number of other rows."""

    scores: Floats
    codes: list[NDArray[Any]]
    weight: Floats | None
    left_out: Counter[str]  # by reason
    proxy: GroupProbabilities | None = None  # None: groups are among the key columns

    def only(self, mask: Booleans) -> UsedRows:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[mask]
        proxy = None if self.proxy is None else self.proxy.at_rows(mask)
        return UsedRows(self.scores[mask], [code[mask] for code in self.codes], weight, self.left_out, proxy)


def used_rows(roles: Roles, levels: Sequence[ColumnLevels], table: pl.DataFrame) -> UsedRows:
    """The rows of a table with a score, and with a label and a weight if requested; groups may be missing."""
    scores = scores_in(roles, table[roles.score])
    weight = None if roles.weight is None else numbers("weight", roles.weight, table[roles.weight])
    codes = [level.codes(table[level.name]) for level in levels]
    rows = UsedRows(scores, codes, weight, Counter())
    if len(scores) == 0:
        return rows
    complete = all(int(code.min()) > 0 for code in codes) and not np.isnan(scores.min())
    if not complete or (weight is not None and np.isnan(weight.min())):
        has = {"missing_score": ~np.isnan(scores)}
        if weight is not None:
            has["missing_weight"] = ~np.isnan(weight)
        if roles.label is not None:
            has["missing_label"] = codes[-1] > 0
        used, left_out = np.ones(len(scores), np.bool_), Counter[str]()
        for why, present in has.items():  # a row that lacks several is counted once
            left_out[why] = int(np.count_nonzero(used & ~present))
            used &= present
        rows = rows.only(used)._replace(left_out=+left_out)
        table = table if roles.proxy is None else table.filter(used)
    if len(rows.scores):
        weight = rows.weight
        check_values(
            roles,
            (float(rows.scores.min()), float(rows.scores.max())),
            None if weight is None else (float(weight.min()), float(weight.max())),
        )
    return rows if roles.proxy is None else rows._replace(proxy=probabilities_in(roles.proxy, table))


def check_some(name: str, roles: Roles, rows: int) -> None:
    """Raise a DataError unless there are usable rows."""
    if rows == 0:
        raise DataError(f"no row of {name} has a score in {roles.score!r} and a value in every other column")


def check_range(name: str, kind: Any, scores: Iterable[Any]) -> None:
    """Raise a DataError for integer scores between these ends that were cast to floating-point numbers and rounded."""
    if kind.is_integer() and max((abs(end) for end in scores if end is not None), default=0.0) >= EXACT:
        raise DataError(
            f"the score column {name!r} contains integers beyond 2^53, which floating-point numbers do not distinguish",
            remedy="subtract a constant from all of them, or round them yourself",
        )


def check_values(roles: Roles, scores: tuple[float, float], weights: tuple[float, float] | None) -> None:
    """Raise a DataError unless scores and weights between these ends can be used."""
    if not np.isfinite(scores).all():
        raise DataError(f"the score column {roles.score!r} contains an infinite value; replace it or leave the row out")
    if weights is not None and not (weights[0] >= 0 and weights[1] < np.inf):
        raise DataError(f"the weight column {roles.weight!r} must contain finite numbers that are not negative")


def used_codes(roles: Roles, codes: Sequence[NDArray[Any]]) -> Booleans:
    """Mask of the rows with a label, if one is requested."""
    return np.ones(len(codes[0]), np.bool_) if roles.label is None else codes[-1] > 0


def roles_by_score(request: Request, arguments: Mapping[str, Any]) -> dict[str, Roles]:
    """The roles of the columns for each score column, validated; several score columns are several models."""
    names = as_names("score", arguments["score"])
    if not names or len(set(names)) < len(names):
        raise DataError(
            "must name one column, or several different ones", argument="score", received=arguments["score"]
        )
    columns = {role: arguments[role] for role in ("group", "label", "control", "weight")}
    columns |= {"cuts": request.cuts, "continuous": request.numbers, "favorable_decision": request.favorable_decision}
    return {name: Roles.from_names(score=name, **columns) for name in names}


def check_models(table: pl.DataFrame, scores: Sequence[str]) -> None:
    """Raise a DataError if numeric columns can be probabilities of one model's classes, not several models."""
    values = np.stack([numbers("score", score, table[score]) for score in scores], -1)
    values = values[np.isfinite(values).all(1)]
    if len(values) > 0 and float(np.ptp(values[:, 0])) > 0 and are_probabilities(values, rounding=ROUNDING):
        raise not_models(scores)


def not_models(scores: Sequence[str]) -> DataError:
    """The error for columns that are one model's class probabilities, not the scores of several models."""
    return DataError(
        f"the scores {', '.join(map(repr, scores))} add up to 1 in every row: they are one model's probabilities of "
        "classes, not several models to compare",
        remedy=[
            Remedy("pos_label", detail=" and audit the column of that class"),
            "audit each by itself and compare the audits if they are several models",
        ],
    )
