"""XGBoost's JSON model: read into typed records, checked, and written anew from the checked
records.

XGBoost does not validate its input: a parent that does not exist is a crash. So it is never given
the JSON of a file, only one that is made here; the parents are computed from the children.
"""

from __future__ import annotations

import json
import re
import reprlib
from itertools import accumulate
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from metrifair.errors import ModelFileError
from metrifair.saving.records import file_errors

_LARGEST_TEXT = 2**29
_MOST_CLASSES = 10_000
_DEEPEST = 2_000
_MOST_BITS = 2**29
_NONE = 2**31 - 1  # the parent of the root, and the feature of a node that was pruned away

Whole: TypeAlias = Annotated[int, Meta(ge=0, le=_NONE)]
Child: TypeAlias = Annotated[int, Meta(ge=-1, lt=_NONE)]
Flag: TypeAlias = Annotated[int, Meta(ge=0, le=1)]
Digits: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]{1,9}\Z")]
_REAL = re.compile(r"\[?([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?)\]?", re.ASCII)


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """A part of the JSON: these fields, and no others."""


class _TreeParam(_Record):
    num_deleted: Digits
    num_feature: Digits
    num_nodes: Digits
    size_leaf_vector: Literal["0", "1"]


class _TreeRecord(_Record):
    base_weights: list[float]
    categories: list[Whole]
    categories_nodes: list[Whole]
    categories_segments: list[Whole]
    categories_sizes: list[Whole]
    default_left: list[Flag]
    id: Whole
    left_children: list[Child]
    loss_changes: list[float]
    parents: list[int]
    right_children: list[Child]
    split_conditions: list[float]
    split_indices: list[Whole]
    split_type: list[Flag]
    sum_hessian: list[float]
    tree_param: _TreeParam


class _Levels(_Record, omit_defaults=True):
    """Categories of one feature: numbers, or the bytes of names with the places where names
    begin.
    """

    values: list[int | float]
    offsets: list[Whole] | None = None
    type: Whole | None = None  # of numbers


class _Categories(_Record):
    enc: list[_Levels]
    feature_segments: list[Whole]
    sorted_idx: list[Whole]


class _ForestParam(_Record):
    num_parallel_tree: Digits
    num_trees: Digits


class _Forest(_Record, omit_defaults=True):
    gbtree_model_param: _ForestParam
    iteration_indptr: list[Whole]
    tree_info: list[Whole]
    trees: list[_TreeRecord]
    cats: _Categories | None = None


class _GBTree(_Record):
    model: _Forest
    name: Literal["gbtree"]


class _Dart(_Record):
    gbtree: _GBTree
    name: Literal["dart"]
    weight_drop: list[float]


class _ModelParam(_Record):
    base_score: str
    boost_from_average: Literal["0", "1"]
    num_class: Digits
    num_feature: Digits
    num_target: Literal["1"]


class _Learner(_Record):
    attributes: dict[str, str]
    feature_names: list[str]
    feature_types: list[Literal["float", "int", "i", "q", "c"]]
    gradient_booster: dict[str, Any]
    learner_model_param: _ModelParam
    objective: dict[str, str | dict[str, str]]


class _Model(_Record):
    learner: _Learner
    version: Annotated[list[Annotated[int, Meta(ge=0, le=999)]], Meta(min_length=3, max_length=3)]


_SCALE = {"reg_loss_param": "scale_pos_weight"}
_CLASSES = {"softmax_multiclass_param": "num_class"}
# those of one output, or one for each class; with their only parameter
_OBJECTIVES: dict[str, dict[str, str]] = {
    "binary:logistic": _SCALE,
    "binary:logitraw": _SCALE,
    "binary:hinge": {},
    "reg:squarederror": _SCALE,
    "reg:squaredlogerror": {},
    "reg:logistic": _SCALE,
    "reg:pseudohubererror": {"pseudo_huber_param": "huber_slope"},
    "reg:absoluteerror": {},
    "reg:quantileerror": {"quantile_loss_param": "quantile_alpha"},
    "reg:gamma": _SCALE,
    "reg:tweedie": {"tweedie_regression_param": "tweedie_variance_power"},
    "count:poisson": {"poisson_regression_param": "max_delta_step"},
    "multi:softmax": _CLASSES,
    "multi:softprob": _CLASSES,
}

_PROBABILITIES = ("binary:logistic", "binary:hinge", "reg:logistic", "multi:softprob")
_CLASS_NUMBERS = "multi:softmax"
_CLASS_PROBABILITIES = "multi:softprob"
"""Objectives of the same trees: the first outputs the most probable class, the second all
probabilities.
"""


def xgboost_trees(text: str, *, features: int, classes: int, probabilities: bool = False) -> str:
    """The JSON of a model whose trees are consistent, written anew; ``classes`` is 1 if there is
    one output.

    ``probabilities``: the output is that of a classifier. A model of the most probable class
    becomes one of the probabilities of all classes, which every reader of the file can use.

    >>> xgboost_trees("{}", features=2, classes=1)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the JSON of XGBoost does not describe a model: Object missing required field ...
    """
    if len(text) > _LARGEST_TEXT:
        raise ModelFileError(
            f"the JSON of XGBoost has {len(text)} characters, more than {_LARGEST_TEXT}"
        )
    with file_errors("the JSON of XGBoost does not describe a model", ValueError, RecursionError):
        # json, since XGBoost writes NaN and Infinity
        model = msgspec.convert(json.loads(text), _Model)
        booster = model.learner.gradient_booster
        _check(booster.get("name") in ("gbtree", "dart"), "the booster")
        kind: Any = _Dart if booster.get("name") == "dart" else _GBTree
        trees = msgspec.convert(booster, kind)
    forest = trees.gbtree.model if isinstance(trees, _Dart) else trees.model
    _check_learner(model.learner, len(forest.iteration_indptr) - 1, features, classes)
    name = str(model.learner.objective["name"])
    if name == _CLASS_NUMBERS:
        name = _CLASS_PROBABILITIES
        model.learner.objective["name"] = name
    if probabilities and name not in _PROBABILITIES:
        raise ModelFileError(f"the outputs of the objective {name!r} are no probabilities")
    _check_forest(forest, features, classes)
    if isinstance(trees, _Dart):
        _check(
            len(trees.weight_drop) == len(forest.trees) and _finite(trees.weight_drop),
            "weights of dropped trees",
        )
    model.learner.gradient_booster = msgspec.to_builtins(trees)
    # XGBoost takes no escaped characters
    return json.dumps(msgspec.to_builtins(model), ensure_ascii=False)


def _check_learner(learner: _Learner, rounds: int, features: int, classes: int) -> None:
    """The parts besides the trees; attributes that no prediction needs are left out."""
    param = learner.learner_model_param
    _check(int(param.num_feature) == features, "num_feature")
    _check(
        classes <= _MOST_CLASSES and int(param.num_class) == (classes if classes > 1 else 0),
        "num_class",
    )
    name = str(learner.objective.get("name"))
    _check(name in _OBJECTIVES and name.startswith("multi:") == (classes > 1), "objective")
    expected = {"name": name}
    for group, only in _OBJECTIVES[name].items():
        objective = learner.objective.get(group)
        value = (
            objective.get(only, "") if isinstance(objective, dict) and len(objective) == 1 else ""
        )
        _check(
            bool(_REAL.fullmatch(value)) and (only != "num_class" or value == str(classes)),
            f"objective: {only}",
        )
        expected[group] = {only: value}  # type: ignore[assignment]
    _check(learner.objective == expected, "objective")
    _check_base_score(param, name, classes)
    for names in (learner.feature_names, learner.feature_types):
        _check(len(names) in (0, features), "the names of the features")
    _check(
        len(set(learner.feature_names)) == len(learner.feature_names), "the names of the features"
    )
    best = learner.attributes.get("best_iteration")
    score = learner.attributes.get("best_score", "0")
    if best is not None:
        _check(bool(re.fullmatch(r"[0-9]{1,9}", best)) and int(best) < rounds, "best_iteration")
        _check(bool(_REAL.fullmatch(score.removeprefix("-"))), "best_score")
    fields = ("best_iteration", "best_score")
    learner.attributes = {
        key: value
        for key, value in learner.attributes.items()
        if best is not None and key in fields
    }


def _check_base_score(param: _ModelParam, objective: str, classes: int) -> None:
    """The prediction to begin with: one, or one for each class; in brackets since XGBoost 3.1."""
    words = param.base_score.removeprefix("[").removesuffix("]").split(",")
    _check(all(_REAL.fullmatch(word.removeprefix("-")) for word in words), "base_score")
    base = [float(word) for word in words]
    _check(len(base) in (1, classes) and _finite(base), "base_score")
    if objective in ("binary:logistic", "binary:logitraw", "reg:logistic"):
        _check(0 < base[0] < 1, "base_score")
    if objective in ("reg:gamma", "reg:tweedie", "count:poisson"):
        _check(base[0] > 0, "base_score")


def _check_forest(forest: _Forest, features: int, classes: int) -> None:
    count = len(forest.trees)
    ends = forest.iteration_indptr
    _check(int(forest.gbtree_model_param.num_trees) == count, "num_trees")
    _check(int(forest.gbtree_model_param.num_parallel_tree) >= 1, "num_parallel_tree")
    _check(
        len(forest.tree_info) == count and all(target < classes for target in forest.tree_info),
        "tree_info",
    )
    _check(
        len(ends) > 0 and ends[0] == 0 and ends == sorted(ends) and ends[-1] == count,
        "iteration_indptr",
    )
    for place, tree in enumerate(forest.trees):
        _check(tree.id == place, "the numbers of the trees")
        _check_tree(tree, features)
    # XGBoost makes a bit of every number up to a split's largest category: a small file could
    # require much memory.
    bits = sum(
        max(tree.categories[start : start + size], default=0)
        for tree in forest.trees
        for start, size in zip(tree.categories_segments, tree.categories_sizes, strict=True)
    )
    _check(bits <= _MOST_BITS, "the categories of the trees")
    if forest.cats is not None and forest.cats.enc:
        _check_categories(forest.cats, features)


def _check_categories(cats: _Categories, features: int) -> None:
    """Categories of each feature, written one after the other."""
    segments = cats.feature_segments
    _check(
        len(segments) == features + 1 and segments[0] == 0 and segments == sorted(segments),
        "feature_segments",
    )
    _check(
        len(cats.enc) == features and len(cats.sorted_idx) == segments[-1],
        "the number of categories",
    )
    for place, names in enumerate(cats.enc):
        order = cats.sorted_idx[segments[place] : segments[place + 1]]
        _check(sorted(order) == list(range(len(order))), "the order of categories")
        if names.offsets is None:
            _check(
                len(names.values) == len(order) and _finite(names.values),
                "the values of categories",
            )
        else:
            ends = names.offsets or [0]
            _check(len(ends) == len(order) + 1 and ends == sorted(ends), "the names of categories")
            _check(ends[0] == 0 and ends[-1] == len(names.values), "the names of categories")
            _check(
                all(type(value) is int and -128 <= value < 256 for value in names.values),
                "the names of categories",
            )


def _check_tree(tree: _TreeRecord, features: int) -> None:
    _check_lists(tree, features)
    nodes = len(tree.left_children)
    parents = _parents(tree, nodes)
    left = np.array(tree.left_children)
    columns = np.array(tree.split_indices)
    reached = np.array(parents) >= -1
    inner = left >= 0
    _check(bool((columns[reached] < features).all()), "a split's feature")
    _check(
        _finite([tree.split_conditions[node] for node in np.flatnonzero(reached & ~inner)]),
        "the value of a leaf",
    )
    # A node that was pruned away is not reached, and is marked by an impossible feature.
    gone = np.flatnonzero(~reached)
    _check(
        bool((columns[gone] == _NONE).all() and not inner[gone].any()),
        "a node that nothing leads to",
    )
    _check(len(gone) == int(tree.tree_param.num_deleted), "num_deleted")
    agrees = all(tree.parents[node] == parent for node, parent in enumerate(parents) if parent >= 0)
    _check(agrees, "the parents of a tree")
    shown = np.where(np.asarray(parents) == -1, _NONE, np.maximum(parents, 0))
    tree.parents = shown.tolist()
    tree.split_type = [
        int(kind) if split else 0 for kind, split in zip(tree.split_type, inner, strict=True)
    ]
    _check_splits_by_category(tree)


def _check_lists(tree: _TreeRecord, features: int) -> None:
    """Raise a ModelFileError unless each list has a value for each node."""
    nodes = len(tree.left_children)
    param = tree.tree_param
    _check(
        int(param.num_nodes) == nodes >= 1 and int(param.num_feature) == features,
        "the size of a tree",
    )
    by_node: list[list[Any]] = [
        tree.right_children,
        tree.parents,
        tree.split_indices,
        tree.default_left,
        tree.split_type,
        tree.split_conditions,
        tree.base_weights,
        tree.loss_changes,
        tree.sum_hessian,
    ]
    _check(all(len(values) == nodes for values in by_node), "the length of a list")
    _check(
        _finite(tree.base_weights) and _finite(tree.loss_changes) and _finite(tree.sum_hessian),
        "weights of nodes",
    )


def _check_splits_by_category(tree: _TreeRecord) -> None:
    """Raise a ModelFileError unless each split by categories has some, one after the other."""
    starts = tree.categories_segments
    sizes = tree.categories_sizes
    splits = np.flatnonzero(np.array(tree.split_type) == 1).tolist()
    ends = list(accumulate(sizes, initial=0))
    _check(
        tree.categories_nodes == splits
        and len(sizes) == len(splits)
        and starts == ends[:-1]
        and ends[-1] == len(tree.categories)
        and 0 not in sizes,
        "the categories of a tree",
    )


def _parents(tree: _TreeRecord, nodes: int) -> list[int]:
    """The parent of every node: -1 of the root, -2 of one that is not reached; none is reached
    twice.
    """
    parents = [-2] * nodes
    depth = 0
    waiting = [0]
    parents[0] = -1
    while waiting:
        below = []
        for node in waiting:
            left = tree.left_children[node]
            right = tree.right_children[node]
            _check((left < 0) == (right < 0), "the children of a node")
            if left < 0:
                continue
            for child in (left, right):
                _check(0 < child < nodes and parents[child] == -2, "the shape of a tree")
                parents[child] = node
                below.append(child)
        waiting = below
        depth = depth + 1
        _check(depth <= _DEEPEST, "the depth of a tree")
    return parents


def _finite(values: list[Any]) -> bool:
    with np.errstate(over="ignore"):
        single: NDArray[np.float32] = np.asarray(values, dtype=np.float64).astype(np.float32)
    return bool(np.isfinite(single).all())


def _check(is_valid: bool, part: str) -> None:
    if not is_valid:
        raise ModelFileError(f"the JSON of XGBoost is inconsistent: {reprlib.repr(part)[1:-1]}")
