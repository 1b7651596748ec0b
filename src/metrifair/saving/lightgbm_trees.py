"""LightGBM's model text: read strictly into numbers, checked, and written anew.

LightGBM trusts the text it reads: a child that does not exist is a crash or an endless loop. So it
is never given a text from a file, only one that is made here, of consistent numbers, without any
parameters.
"""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from metrifair.errors import ModelFileError

TreeNumbers: TypeAlias = NDArray[Any]

_MOST_CLASSES = 10_000
_DEEPEST = 2_000  # LightGBM goes down a tree by recursion where it explains a prediction
_INTEGERS = re.compile(r"(-?\d{1,10}( -?\d{1,10})*)?", re.ASCII)
_NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[+-]\d+)?|inf)", re.ASCII)
_SLOPE = rf"sigmoid:(?P<slope>{_NUMBER.pattern})"
_NUMBERS = re.compile(rf"({_NUMBER.pattern}( {_NUMBER.pattern})*)?", re.ASCII)
_RANGE = re.compile(
    r"none|\[(?P<low>[^:\[\]]+):(?P<high>[^:\[\]]+)\]|-?\d{1,10}(:-?\d{1,10})*", re.ASCII
)
_UNPRINTED = re.compile(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# What may follow the trees. Only the categories of pandas are kept of it.
_TAIL = re.compile(
    r"\n*(feature_importances:\n([^\n]+=[\d.e+-]+\n)*)?"
    r"\n*(parameters:\n(\[\w+: [^\n]*\]\n)*\n?end of parameters\n)?"
    r"\n*(pandas_categorical:(?P<categories>[^\n]*)\n*)?"
)
_HEADER = (
    *(
        "version",
        "num_class",
        "num_tree_per_iteration",
        "label_index",
        "max_feature_idx",
        "objective",
    ),
    *("feature_names", "monotone_constraints", "feature_infos", "tree_sizes"),
)
_OBJECTIVES = (
    *(
        "regression",
        "regression_l1",
        "huber",
        "fair",
        "poisson",
        "quantile",
        "mape",
        "gamma",
        "tweedie",
    ),
    *("cross_entropy", "cross_entropy_lambda", "lambdarank", "rank_xendcg"),
)


class _Field(NamedTuple):
    """A line of numbers in a tree."""

    per: str  # one value for each "node", "leaf" or "tree"
    kind: type  # int or float
    least: float = -(2.0**31)
    most: float = 2.0**31 - 1


_REAL = (-sys.float_info.max, sys.float_info.max)
_FIELDS = {  # in the order in which LightGBM writes them
    "num_leaves": _Field("tree", int, 1),
    "num_cat": _Field("tree", int, 0),
    "split_feature": _Field("node", int, 0),
    "split_gain": _Field("node", float, *_REAL),
    # infinite where missing values are split from all others
    "threshold": _Field("node", float, -inf, inf),
    # bits: categorical, default left, 2 for the kind of missing values
    "decision_type": _Field("node", int, 0, 11),
    "left_child": _Field("node", int),
    "right_child": _Field("node", int),
    "leaf_value": _Field("leaf", float, *_REAL),
    "leaf_weight": _Field("leaf", float, *_REAL),
    "leaf_count": _Field("leaf", int, 0),
    "internal_value": _Field("node", float, *_REAL),
    "internal_weight": _Field("node", float, *_REAL),
    "internal_count": _Field("node", int, 0),
    "cat_boundaries": _Field("category", int, 0),
    "cat_threshold": _Field("any", int, 0, 2.0**32 - 1),
    "is_linear": _Field("tree", int, 0, 0),
    "shrinkage": _Field("tree", float, *_REAL),
}
_NEEDED = ("leaf_value", "split_feature", "threshold", "decision_type", "left_child", "right_child")


@dataclass(frozen=True)
class LightGBMTrees:
    """The inputs of a prediction, and facts about the training."""

    classes: int  # trees in each round
    objective: str  # "" if there is none: outputs are then predictions
    features: tuple[str, ...]  # names
    ranges: tuple[str, ...]  # of the features: none, two numbers, or categories
    trees: tuple[Mapping[str, TreeNumbers], ...]
    categories: list[list[str | int | float | bool]] | None  # of the columns of a data frame

    def text(self) -> str:
        """The model as LightGBM reads it; the sizes of the trees, by which it would jump in the
        text, are left out.
        """
        lines = [
            "tree",
            "version=v4",
            f"num_class={self.classes}",
            f"num_tree_per_iteration={self.classes}",
        ]
        lines += ["label_index=0", f"max_feature_idx={len(self.features) - 1}"]
        lines += [f"objective={self.objective}"] * bool(self.objective)
        lines += [
            f"feature_names={' '.join(self.features)}",
            f"feature_infos={' '.join(self.ranges)}",
            "",
        ]
        for place, tree in enumerate(self.trees):
            lines.append(f"Tree={place}")
            for name, values in tree.items():
                # the shortest text of the very same number
                texts = (repr(value) for value in values.tolist())
                lines.append(f"{name}={' '.join(texts)}")
            lines += ["", ""]
        return "\n".join(
            [*lines, "end of trees", "", f"pandas_categorical:{json.dumps(self.categories)}", ""]
        )


def lightgbm_trees(
    text: str, *, features: int, classes: int, probabilities: bool = False
) -> LightGBMTrees:
    """The numbers in a model text of LightGBM, or a ModelFileError if they do not make trees.

    ``probabilities``: the outputs are those of a classifier.

    >>> lightgbm_trees("tree", features=2, classes=1)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the model text of LightGBM does not begin and end as one
    """
    if odd := _UNPRINTED.search(text):
        raise ModelFileError(f"the model text of LightGBM contains the character {odd[0]!r}")
    body, end, rest = text.partition("\nend of trees\n")
    tail = _TAIL.fullmatch(rest)
    lines = iter(body.split("\n"))
    if next(lines) != "tree" or not end or tail is None:
        raise ModelFileError("the model text of LightGBM does not begin and end as one")
    header = _block(lines, _HEADER)
    _check_header(header, features, classes)
    objective = header.get("objective", "")
    if probabilities and not re.match(r"binary|multiclass|cross_entropy\b", objective):
        raise ModelFileError(
            f"the outputs of the objective {reprlib.repr(objective)} are no probabilities"
        )
    trees: list[Mapping[str, TreeNumbers]] = []
    for line in filter(None, lines):  # _block takes those of each tree
        if line != f"Tree={len(trees)}":
            raise ModelFileError(
                f"the model text of LightGBM has {reprlib.repr(line)} where a tree should begin"
            )
        trees.append(_tree(_block(lines, _FIELDS), features))
    if not trees or len(trees) % classes:
        raise ModelFileError(
            f"the model text of LightGBM ends early: it contains {len(trees)} trees"
        )
    return LightGBMTrees(
        classes,
        objective,
        tuple(header["feature_names"].split(" ")),
        tuple(header["feature_infos"].split(" ")),
        tuple(trees),
        _categories(tail["categories"], features),
    )


def _check_header(header: Mapping[str, str], features: int, classes: int) -> None:
    expected = {
        "num_class": classes,
        "num_tree_per_iteration": classes,
        "max_feature_idx": features - 1,
    }
    for name in ("version", "feature_names", "feature_infos", *expected):
        if name not in header:
            raise ModelFileError(f"the model text of LightGBM lacks {name!r}")
    for name, value in expected.items():
        if header[name] != str(value) or classes > _MOST_CLASSES:
            raise ModelFileError(
                f"{name} of the model text must be {value}, got {reprlib.repr(header[name])}"
            )
    names = header["feature_names"].split(" ")
    ranges = header["feature_infos"].split(" ")
    if (
        len(names) != features
        or len(ranges) != features
        or "" in names
        or not all(map(_is_range, ranges))
    ):
        raise ModelFileError("the model text of LightGBM does not describe each of its features")
    _check_objective(header.get("objective", ""), classes)


def _block(lines: Iterator[str], allowed: Mapping[str, Any] | tuple[str, ...]) -> dict[str, str]:
    """The lines name=value up to an empty one: each name is allowed, and occurs once."""
    lines_by_name: dict[str, str] = {}
    for line in lines:
        if not line:
            break
        name, sign, value = line.partition("=")
        if not sign or name not in allowed or name in lines_by_name:
            raise ModelFileError(
                f"the model text of LightGBM has {reprlib.repr(line)} twice, or at a wrong place"
            )
        lines_by_name[name] = value
    return lines_by_name


def _is_range(word: str) -> bool:
    match = _RANGE.fullmatch(word)
    if match is None or match["low"] is None:
        return match is not None
    return all(
        _NUMBER.fullmatch(match[side]) and np.isfinite(float(match[side]))
        for side in ("low", "high")
    )


def _check_objective(objective: str, classes: int) -> None:
    """Raise a ModelFileError unless it is one that LightGBM writes, for so many classes."""
    pattern = rf"(binary( {_SLOPE})?|({'|'.join(_OBJECTIVES)})( sqrt)?)?"
    if classes > 1:
        pattern = rf"multiclass num_class:{classes}|multiclassova num_class:{classes} {_SLOPE}"
    match = re.fullmatch(pattern, objective, re.ASCII)
    if match is None or not 1e-6 < float(match["slope"] or 1) < 1e6:
        raise ModelFileError(
            f"a model of {classes} outputs cannot have the objective {reprlib.repr(objective)}"
        )


def _tree(lines: Mapping[str, str], features: int) -> dict[str, TreeNumbers]:
    """The numbers of one tree."""
    leaves, splits = (int(_parse_numbers(lines, name)[0]) for name in ("num_leaves", "num_cat"))
    counts = {"tree": 1, "leaf": leaves, "node": leaves - 1, "category": splits + 1}
    required = _NEEDED if leaves > 1 else ("leaf_value",)
    tree: dict[str, TreeNumbers] = {}
    for name, field in _FIELDS.items():
        given = name in lines
        if leaves == 1:  # LightGBM writes some lines with nothing in them
            given = bool(lines.get(name))
        if given or name in required:
            tree[name] = _parse_numbers(lines, name)
            if len(tree[name]) != counts.get(field.per, len(tree[name])):
                raise ModelFileError(
                    f"{name} of a tree must be {counts[field.per]} numbers, got {len(tree[name])}"
                )
    if leaves > 1:
        _check_shape(tree, leaves - 1)
        if (tree["split_feature"] >= features).any():
            raise ModelFileError(f"a tree splits by a feature beyond the {features} that there are")
        _check_categories(tree, splits)
    elif splits:
        raise ModelFileError("a tree without splits has categories")
    return tree


def _parse_numbers(lines: Mapping[str, str], name: str) -> TreeNumbers:
    field = _FIELDS[name]
    if name not in lines:
        raise ModelFileError(f"a tree of LightGBM lacks {name}")
    line = (_INTEGERS if field.kind is int else _NUMBERS).fullmatch(lines[name])
    if line is None or (field.per == "tree" and not line[0]):
        raise ModelFileError(
            f"{name} of a tree does not contain numbers: {reprlib.repr(lines[name])}"
        )
    values = np.array(
        [field.kind(word) for word in line[0].split()],
        np.int64 if field.kind is int else np.float64,
    )
    if not ((values >= field.least) & (values <= field.most)).all():
        raise ModelFileError(
            f"{name} of a tree contains numbers that are out of range: {reprlib.repr(lines[name])}"
        )
    return values


def _check_shape(tree: Mapping[str, TreeNumbers], nodes: int) -> None:
    """Every inner node but the first, and every leaf (as -1 - leaf), is the child of exactly
    one earlier node.
    """
    children = np.stack([tree["left_child"], tree["right_child"]])
    expected = np.concatenate([np.arange(-nodes - 1, 0), np.arange(1, nodes)])
    inner = children > 0
    if (
        not np.array_equal(np.sort(children.reshape(-1)), expected)
        or (children[inner] <= np.nonzero(inner)[1]).any()
    ):
        raise ModelFileError("the nodes of a tree do not make a tree")
    depth = np.zeros(nodes, dtype=np.int64)
    for node, pair in enumerate(children.T.tolist()):  # a parent comes before its children
        for child in pair:
            if child > 0:
                depth[child] = depth[node] + 1
    if depth.max() > _DEEPEST:
        raise ModelFileError(
            f"a tree is {depth.max()} levels deep, more than the {_DEEPEST} that are read"
        )


def _check_categories(tree: Mapping[str, TreeNumbers], splits: int) -> None:
    categorical = tree["decision_type"] & 1 == 1
    if not splits and not categorical.any():
        if "cat_boundaries" in tree or "cat_threshold" in tree:
            raise ModelFileError("a tree lists categories that no split uses")
        return
    bounds = tree.get("cat_boundaries", np.zeros(0))
    words = tree.get("cat_threshold", np.zeros(0))
    places = tree["threshold"][categorical]
    if (
        len(bounds) != splits + 1
        or bounds[0] != 0
        or (np.diff(bounds) < 0).any()
        or bounds[-1] != len(words)
    ):
        raise ModelFileError("the categories of a tree are cut at places that do not exist")
    if not ((places >= 0) & (places < splits) & (places == np.floor(places))).all():
        raise ModelFileError("a tree splits by categories that it does not list")


def _categories(text: str | None, features: int) -> list[list[str | int | float | bool]] | None:
    try:
        columns = msgspec.json.decode(
            text or "null", type=list[list[str | int | float | bool]] | None
        )
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ModelFileError(
            "the categories of pandas in a model of LightGBM cannot be read"
        ) from error
    if columns is not None and (
        len(columns) > features or any(len(set(levels)) < len(levels) for levels in columns)
    ):
        raise ModelFileError(
            "the categories of pandas in a model of LightGBM are repeated, or too many"
        )
    return columns
