"""Trees in a booster's own format, looked through before the booster's C++ reads them: it trusts what it reads."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import ModelFileError

_HEADER = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_MOST_CLASSES = 10_000
_LARGEST_TEXT = 2**29


def safe_lightgbm_text(text: str, *, features: int, classes: int) -> str:
    """A model text of LightGBM whose trees hold together, without what is not needed to read it.

    >>> safe_lightgbm_text("tree", features=2, classes=1)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the model text of LightGBM lacks max_feature_idx
    """
    header, *trees = re.split(r"^Tree=\d+$", text.partition("\nend of trees\n")[0], flags=re.MULTILINE)
    facts = dict(_HEADER.findall(header))
    expected = {"max_feature_idx": features - 1, "num_class": classes, "num_tree_per_iteration": classes}
    for name, value in expected.items():
        if name not in facts:
            raise ModelFileError(f"the model text of LightGBM lacks {name}")
        if facts[name] != str(value) or classes > _MOST_CLASSES:
            raise ModelFileError(f"{name} of the model text must be {value}, got {reprlib.repr(facts[name])}")
    if "end of trees\n" not in text or not trees or len(trees) % classes:
        raise ModelFileError(f"the model text of LightGBM ends early: it holds {len(trees)} trees")
    if len(facts.get("feature_names", "").split(" ")) != features or "average_output" in header:
        raise ModelFileError("the model text of LightGBM does not name its features, or averages its trees")
    for tree in trees:
        _check_lightgbm_tree(dict(_HEADER.findall(tree)), features)
    # Sizes in bytes, by which LightGBM would jump about in the text; without them it reads line by line.
    return re.sub(r"^tree_sizes=.*\n", "", text, count=1, flags=re.MULTILINE)


def _check_lightgbm_tree(tree: Mapping[str, str], features: int) -> None:
    leaves, categorical = _wholes(tree, "num_leaves", 1)[0], _wholes(tree, "num_cat", 1)[0]
    _numbers(tree, "leaf_value", int(leaves))
    if tree.get("is_linear", "0") != "0":
        raise ModelFileError("a tree has linear leaves, which fair boosters have not")
    if leaves == 1:
        return
    nodes = int(leaves) - 1
    columns = _wholes(tree, "split_feature", nodes)
    if (columns < 0).any() or (columns >= features).any():
        raise ModelFileError(f"a tree splits by a feature beyond the {features} that there are")
    left, right = (_wholes(tree, side, nodes) for side in ("left_child", "right_child"))
    _check_shape(np.stack([left, right]), nodes)
    chosen = _wholes(tree, "decision_type", nodes) & 1 == 1
    thresholds = _numbers(tree, "threshold", nodes)
    if categorical or chosen.any():
        bounds = _wholes(tree, "cat_boundaries", int(categorical) + 1)
        words = _wholes(tree, "cat_threshold", None)
        places = thresholds[chosen]
        if bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] != len(words):
            raise ModelFileError("the categories of a tree are cut at places that do not exist")
        if not ((places >= 0) & (places < categorical)).all():
            raise ModelFileError("a tree splits by categories that it does not list")


def _check_shape(children: NDArray[np.int64], nodes: int) -> None:
    """Every inner node but the first, and every leaf (as -1 - leaf), is the child of exactly one earlier node."""
    found = np.sort(children.reshape(-1))
    expected = np.concatenate([np.arange(-nodes - 1, 0), np.arange(1, nodes)])
    if not np.array_equal(found, expected) or (children[children >= 0] <= np.nonzero(children >= 0)[1]).any():
        raise ModelFileError("the nodes of a tree do not make a tree")


def _wholes(tree: Mapping[str, str], name: str, count: int | None) -> NDArray[np.int64]:
    return _parsed(tree, name, count, int, np.int64)


def _numbers(tree: Mapping[str, str], name: str, count: int) -> NDArray[np.float64]:
    return _parsed(tree, name, count, float, np.float64)


def _parsed(tree: Mapping[str, str], name: str, count: int | None, kind: type, dtype: Any) -> NDArray[Any]:
    try:
        values = np.array([kind(word) for word in tree[name].split(" ") if word], dtype=dtype)
    except (KeyError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{name} of a tree is missing or holds no numbers") from error
    if (count is not None and len(values) != count) or np.isnan(values).any():
        raise ModelFileError(f"{name} of a tree must be {count} numbers, got {len(values)}")
    return values


def safe_xgboost_json(text: str, *, features: int) -> bytes:
    """A JSON model of XGBoost whose trees hold together, written anew so that it can be read in one way only.

    >>> safe_xgboost_json("{}", features=2)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the JSON of XGBoost describes no model (KeyError: 'learner')
    """
    if len(text) > _LARGEST_TEXT:
        raise ModelFileError(
            f"the JSON of XGBoost has {len(text)} letters, more than the {_LARGEST_TEXT} that are read"
        )
    try:
        model = json.loads(text)
        learner = model["learner"]
        count = int(learner["learner_model_param"]["num_feature"])
        booster = learner["gradient_booster"]
        while booster["name"] == "dart":
            _check(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]), "weights of dropped trees")
            booster = booster["gbtree"]
        _check(booster["name"] == "gbtree", "the booster")
        _check(count == features, "the number of features")
        _check_xgboost_model(booster["model"], learner, count)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the JSON of XGBoost describes no model ({type(error).__name__}: {error})") from error
    return json.dumps(model, ensure_ascii=False).encode()  # XGBoost takes no escaped letters


def _check_xgboost_model(model: Mapping[str, Any], learner: Mapping[str, Any], features: int) -> None:
    trees, param = model["trees"], learner["learner_model_param"]
    classes, targets = max(1, int(param["num_class"])), int(param["num_target"])
    _check(1 <= classes <= _MOST_CLASSES and targets == 1, "num_class")
    info, ends = _array(model["tree_info"], len(trees)), _array(model["iteration_indptr"], None)
    _check(bool(((info >= 0) & (info < classes)).all()), "tree_info")
    _check(len(ends) > 0 and ends[0] == 0 and bool((np.diff(ends) >= 0).all()) and ends[-1] == len(trees), "rounds")
    _check(int(model["gbtree_model_param"]["num_trees"]) == len(trees), "num_trees")
    for names in ("feature_names", "feature_types"):
        _check(len(learner[names]) in (0, features) and all(isinstance(name, str) for name in learner[names]), names)
    if "cats" in model:
        _check_xgboost_categories(model["cats"], features)
    for place, tree in enumerate(trees):
        _check(tree["id"] == place, "the numbers of the trees")
        _check_xgboost_tree(tree, features)


def _check_xgboost_categories(cats: Mapping[str, Any], features: int) -> None:
    """Categories of each feature, written one after the other."""
    if not cats["enc"]:
        return
    segments = _array(cats["feature_segments"], features + 1)
    order = _array(cats["sorted_idx"], int(segments[-1]))
    _check(segments[0] == 0 and bool((np.diff(segments) >= 0).all()) and len(cats["enc"]) == features, "categories")
    for place, one in enumerate(cats["enc"]):
        count = int(segments[place + 1] - segments[place])
        own = order[segments[place] : segments[place + 1]]
        _check(bool(((own >= 0) & (own < max(count, 1))).all()), "the order of categories")
        if "offsets" in one:
            ends = _array(one["offsets"], count + 1 if count else None)
            inside = len(ends) == 0 or (ends[0] == 0 and ends[-1] == len(one["values"]))
            _check(inside and bool((np.diff(ends) >= 0).all()), "the letters of categories")
        else:
            _check(len(one["values"]) == count, "the values of categories")


def _check_xgboost_tree(tree: Mapping[str, Any], features: int) -> None:
    nodes = int(tree["tree_param"]["num_nodes"])
    _check(int(tree["tree_param"]["num_feature"]) == features, "num_feature of a tree")
    _check(int(tree["tree_param"]["size_leaf_vector"]) in (0, 1), "size_leaf_vector")
    by_node = ("left_children", "right_children", "parents", "split_indices", "default_left", "split_type")
    left, right, _, columns, _, kinds = (_array(tree[name], nodes) for name in by_node)
    for name in ("split_conditions", "base_weights", "loss_changes", "sum_hessian"):
        _check(len(tree[name]) == nodes and all(type(value) in (int, float) for value in tree[name]), name)
    inner = left >= 0
    _check(bool(((columns >= 0) & (columns < features)).all()), "a split's feature")
    _check(bool((inner == (right >= 0)).all()), "the children of a node")
    _check_reached(left, right, nodes)
    split = _array(tree["categories_nodes"], None)
    starts, sizes = (_array(tree[f"categories_{part}"], len(split)) for part in ("segments", "sizes"))
    words = _array(tree["categories"], None)
    _check(bool(((starts >= 0) & (sizes >= 0) & (starts + sizes <= len(words))).all()), "the categories of a tree")
    _check(bool((words >= 0).all()) and sorted(split) == sorted(np.flatnonzero((kinds == 1) & inner)), "its splits")


def _check_reached(left: NDArray[np.int64], right: NDArray[np.int64], nodes: int) -> None:
    """From the root no node is reached twice, and none that does not exist."""
    seen, waiting = np.zeros(nodes, dtype=np.bool_), [0]
    while waiting:
        node = waiting.pop()
        _check(0 <= node < nodes and not seen[node], "the shape of a tree")
        seen[node] = True
        if left[node] >= 0:
            waiting += [int(left[node]), int(right[node])]


def _array(values: Sequence[Any], count: int | None) -> NDArray[np.int64]:
    _check(isinstance(values, list) and all(type(value) is int for value in values), "a list of whole numbers")
    _check(count is None or len(values) == count, "the length of a list")
    return np.array(values, dtype=np.int64)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ModelFileError(f"the JSON of XGBoost does not hold together: {what}")
