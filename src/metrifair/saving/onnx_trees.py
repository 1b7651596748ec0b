"""Boosted trees as ONNX lists them, from the checked numbers of LightGBM and XGBoost.

A split of LightGBM compares doubles; one of XGBoost compares what is left of them in single precision, and so does the
graph. Leaves are added up in double precision: of LightGBM that is what it does itself, of XGBoost more exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError, ModelFileError
from metrifair.saving.lightgbm_trees import lightgbm_trees
from metrifair.saving.xgboost_trees import xgboost_trees

Link = Literal["Identity", "Sigmoid", "Softmax", "Exp", "SignedSquare"]

ZERO = float(np.float32(1e-35))  # numbers that are no larger are 0 to LightGBM
_ZERO, _NAN = 1, 2  # what LightGBM takes for missing at a split
_LIGHTGBM_LINKS: dict[str, Link] = {
    **dict.fromkeys(("", "regression", "regression_l1", "huber", "fair", "quantile", "mape"), "Identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "Exp"),
    **dict.fromkeys(("binary", "multiclassova", "cross_entropy"), "Sigmoid"),
    "multiclass": "Softmax",
}
_XGBOOST_LINKS: dict[str, Link] = {
    **dict.fromkeys(("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror"), "Identity"),
    **dict.fromkeys(("reg:absoluteerror", "reg:quantileerror"), "Identity"),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "Exp"),
    **dict.fromkeys(("binary:logistic", "reg:logistic"), "Sigmoid"),
    "multi:softprob": "Softmax",
}


class _FlatTree(NamedTuple):
    """Inner nodes, from the root, and leaves; a child below 0 is the leaf -1 - child."""

    feature: NDArray[np.int64]
    split: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    leaf: NDArray[np.float64]


class Forest(NamedTuple):
    """What a booster's output is made of."""

    trees: Sequence[_FlatTree]
    target: Sequence[int]  # the output that each tree adds to
    start: NDArray[np.float64]  # (outputs,), added to the leaves
    link: Link
    slope: float = 1.0  # of a sigmoid
    zeros: Sequence[int] = ()  # features in which 0 is missing
    missing: float = np.nan  # what stands for a missing value besides NaN
    single: bool = False  # of XGBoost: values are rounded to single precision, and go left below the split, not at it

    def attributes(self) -> dict[str, Any]:
        """Attributes of the operator TreeEnsemble; arrays are to become tensors."""
        trees = [_with_node(tree) for tree in self.trees]
        joined = _FlatTree(*map(np.concatenate, zip(*trees, strict=True)))
        nodes, leaves = [len(tree.feature) for tree in trees], [len(tree.leaf) for tree in trees]
        roots = np.cumsum([0, *nodes[:-1]])
        first_node = np.repeat(roots, nodes)  # of the tree of each node
        first_leaf = np.repeat(np.cumsum([0, *leaves[:-1]]), nodes)
        true, false = (
            np.where(child < 0, -1 - child + first_leaf, child + first_node) for child in (joined.left, joined.right)
        )
        return {
            "aggregate_function": 1,  # the sum
            "post_transform": 0,
            "n_targets": len(self.start),
            "tree_roots": roots.tolist(),
            "nodes_modes": np.full(sum(nodes), int(self.single), dtype=np.uint8),  # x <= split, or x < split
            "nodes_featureids": joined.feature.tolist(),
            "nodes_splits": joined.split.astype(np.float64),
            "nodes_missing_value_tracks_true": joined.missing_left.astype(int).tolist(),
            "nodes_truenodeids": true.tolist(),
            "nodes_trueleafs": (joined.left < 0).astype(int).tolist(),
            "nodes_falsenodeids": false.tolist(),
            "nodes_falseleafs": (joined.right < 0).astype(int).tolist(),
            "leaf_targetids": np.repeat(np.asarray(self.target), leaves).tolist(),
            "leaf_weights": joined.leaf.astype(np.float64),
        }


def _with_node(tree: _FlatTree) -> _FlatTree:
    """ONNX has no tree without a node: one that is a leaf only gets a node that leads to it either way."""
    if len(tree.feature):
        return tree
    zero, leaf = np.zeros(1, dtype=np.int64), np.full(1, -1)
    return _FlatTree(zero, np.zeros(1), np.zeros(1, dtype=np.bool_), leaf, leaf, tree.leaf)


def forest_of(booster: Any, outputs: int) -> Forest:
    """The trees that a fitted fair booster predicts by."""
    kind = type(booster).__name__
    try:
        if hasattr(booster, "booster_"):
            return _of_lightgbm(booster, outputs)
        return _of_xgboost(booster, outputs)
    except ModelFileError as error:
        raise DataError(f"this {kind} cannot be written as ONNX: {error}") from error


def _of_lightgbm(booster: Any, outputs: int) -> Forest:
    text = booster.booster_.model_to_string(num_iteration=-1)
    found = lightgbm_trees(text, features=int(booster.n_features_in_), classes=outputs)
    best = int(booster.booster_.best_iteration)
    kept = found.trees[: best * outputs] if best > 0 else found.trees
    trees, none = [], np.zeros(0, dtype=np.int64)
    kinds = np.zeros((booster.n_features_in_, 3), dtype=np.bool_)  # of missing values, by feature
    for one in kept:
        feature, decision = (one.get(name, none) for name in ("split_feature", "decision_type"))
        if (decision & 1).any():
            raise _categorical(booster, feature[decision & 1 == 1])
        kind, split = decision >> 2, one.get("threshold", np.zeros(0))
        split = np.where(split == -ZERO, np.nextafter(-ZERO, -1.0), split)  # that number is 0 to it, and not below
        kinds[feature, kind] = True
        left, right = (one.get(name, feature) for name in ("left_child", "right_child"))
        # Where nothing was missing in training, a missing value is taken for 0.
        default = np.where(kind == 0, split >= 0, decision & 2 == 2)
        trees.append(_FlatTree(feature, split, default, left, right, one["leaf_value"]))
    name, *details = found.objective.split(" ")
    link = _link(_LIGHTGBM_LINKS, name, booster)
    slopes = [float(detail.removeprefix("sigmoid:")) for detail in details if detail.startswith("sigmoid:")]
    zeros = np.flatnonzero(kinds[:, _ZERO])
    if kinds[zeros][:, [0, _NAN]].any():
        raise DataError("a feature has splits for which 0 is a missing value, and others; ONNX takes one kind only")
    return Forest(
        trees,
        [place % outputs for place in range(len(trees))],
        np.zeros(outputs),
        "SignedSquare" if "sqrt" in details else link,
        slope=slopes[0] if slopes else 1.0,
        zeros=zeros.tolist(),
    )


def _of_xgboost(booster: Any, outputs: int) -> Forest:
    text = bytes(booster.get_booster().save_raw("json")).decode()
    learner = json.loads(xgboost_trees(text, features=int(booster.n_features_in_), classes=outputs))["learner"]
    gradient = learner["gradient_booster"]
    forest = gradient["gbtree"]["model"] if "gbtree" in gradient else gradient["model"]
    best, count = learner["attributes"].get("best_iteration"), len(forest["trees"])
    count = count if best is None else forest["iteration_indptr"][int(best) + 1]
    weights = gradient.get("weight_drop", np.ones(count))
    trees = [_of_json(one, weight, booster) for one, weight in zip(forest["trees"][:count], weights, strict=False)]
    link = _link(_XGBOOST_LINKS, learner["objective"]["name"], booster)
    base = np.array(json.loads(f"[{learner['learner_model_param']['base_score'].strip('[]')}]"), dtype=np.float64)
    start = {"Sigmoid": lambda: np.log(base / (1 - base)), "Exp": lambda: np.log(base)}.get(link, lambda: base)()
    return Forest(
        trees,
        forest["tree_info"][:count],
        np.broadcast_to(start, outputs),
        link,
        missing=float(booster.missing),
        single=True,
    )


def _of_json(tree: Mapping[str, Any], weight: float, booster: Any) -> _FlatTree:
    left, right, feature = (np.array(tree[name]) for name in ("left_children", "right_children", "split_indices"))
    values = np.array(tree["split_conditions"]).astype(np.float32).astype(np.float64)
    inner = left >= 0
    chosen = inner & (np.array(tree["split_type"]) == 1)
    if chosen.any():
        raise _categorical(booster, feature[chosen])
    place = np.where(inner, np.cumsum(inner) - 1, -1 * np.cumsum(~inner))  # of each node among those of its kind
    default = np.array(tree["default_left"])[inner] == 1
    leaf = values[~inner] * np.float64(np.float32(weight))
    return _FlatTree(feature[inner], values[inner], default, place[left[inner]], place[right[inner]], leaf)


def _link(known: Mapping[str, Link], objective: str, booster: Any) -> Link:
    if objective not in known:
        raise DataError(
            f"the objective {objective!r} of this {type(booster).__name__} cannot be written as ONNX; those that can "
            f"are {', '.join(name for name in known if name)}"
        )
    return known[objective]


def _categorical(booster: Any, features: NDArray[np.int64]) -> DataError:
    names = getattr(booster, "feature_names_in_", None)
    column = repr(str(names[features[0]])) if names is not None else int(features[0])
    return DataError(
        f"this {type(booster).__name__} splits column {column} by its categories, which cannot be written as ONNX; "
        "encode the table with TableEncoder before fitting, and export a TableModel of both"
    )
