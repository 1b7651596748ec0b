"""Fitted models as ONNX graphs: written from their own numbers, operator by operator, in double
precision.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metrifair.encoding.coders import Coder, Levels, Numbers
from metrifair.errors import DataError, ModelFileError
from metrifair.saving.lightgbm_trees import lightgbm_trees
from metrifair.saving.modelfile import installed_version
from metrifair.saving.xgboost_trees import xgboost_trees
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import require
from metrifair.training import Predictor
from metrifair.training.models import Network

# versions: of 2022, so that older runtimes read the file
_OPERATORS = 17
_FORMAT = 8
# the first with trees in double precision
_TREE_OPERATORS = 5
_TREE_FORMAT = 10
_LEAST = 1e-12  # probability whose logarithm is taken, as by ``Correction``
# of labels, by the kind of their array
_TYPES = {"f": "DOUBLE", "i": "INT64", "b": "BOOL", "U": "STRING"}


class Graph:
    """A graph as it grows: every step is a node whose output has a name, numbers among its
    inputs are constants.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._taken = columns  # names that no step may have
        self.onnx: Any = require("onnx", extra="onnx", purpose="to_onnx")
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self,
        operator: str,
        *inputs: str | NDArray[Any] | float,
        output: str = "",
        **attributes: Any,
    ) -> str:
        """Add a step, and return the name of its output; ``output`` names an output of the
        graph.
        """
        names = [
            part if isinstance(part, str) else self._constant(np.asarray(part)) for part in inputs
        ]
        domain = "ai.onnx.ml" if operator in ("TreeEnsemble", "LabelEncoder") else ""
        output = output or self._fresh(f"step {len(self._nodes)}")
        tensors = {
            name: self._tensor(value, name) if isinstance(value, np.ndarray) else value
            for name, value in attributes.items()
        }
        self._nodes.append(
            self.onnx.helper.make_node(operator, names, [output], domain=domain, **tensors)
        )
        return output

    def cast(self, name: str, kind: str) -> str:
        """The same values as another type."""
        return self.add("Cast", name, to=self.number(kind))

    def number(self, kind: str) -> int:
        """The number of a type in ONNX."""
        code: int = self.onnx.TensorProto.DataType.Value(kind)
        return code

    def input(self, name: str, kind: str, width: int) -> str:
        """An input of so many columns."""
        self.inputs[name] = self.onnx.helper.make_tensor_value_info(
            name, self.number(kind), ["rows", width]
        )
        return name

    def output(
        self, name: str, operator: str, *inputs: Any, kind: str, width: int | None = None
    ) -> None:
        """An output, named so, with a line below where a column has that name."""
        while name in self.inputs:
            name += "_"
        self.add(operator, *inputs, output=name)
        shape = ["rows"] if width is None else ["rows", width]
        self.outputs[name] = self.onnx.helper.make_tensor_value_info(name, self.number(kind), shape)

    def serialized(self, about: Mapping[str, str]) -> bytes:
        """The file, which passes ONNX's own checks."""
        helper = self.onnx.helper
        parts = list(self.inputs.values()), list(self.outputs.values())
        graph = helper.make_graph(self._nodes, "metrifair", *parts, self._constants)
        domains = {node.domain for node in self._nodes}
        trees = any(node.op_type == "TreeEnsemble" for node in self._nodes)
        versions = {"": _OPERATORS, "ai.onnx.ml": _TREE_OPERATORS if trees else 3}
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid(name, version)
                for name, version in versions.items()
                if name in domains
            ],
            ir_version=_TREE_FORMAT if trees else _FORMAT,
            producer_name="metrifair",
            producer_version=about["metrifair"],
        )
        helper.set_model_props(model, dict(about))
        try:
            self.onnx.checker.check_model(model, full_check=True)
            data: bytes = model.SerializeToString()
        except (
            self.onnx.checker.ValidationError,
            self.onnx.shape_inference.InferenceError,
            ValueError,
        ) as error:
            raise DataError(f"this model cannot be written as ONNX: {str(error)[:400]}") from error
        return data

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "'"
        return name

    def _constant(self, value: NDArray[Any]) -> str:
        name = self._fresh(f"constant {len(self._constants)}")
        self._constants.append(self._tensor(value, name))
        return name

    def _tensor(self, value: NDArray[Any], name: str) -> Any:
        if value.dtype.kind == "U":
            return self.onnx.helper.make_tensor(
                name, self.number("STRING"), value.shape, value.ravel().tolist()
            )
        return self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(value).reshape(value.shape), name
        )


class _Decision(NamedTuple):
    """Steps of a classifier: probabilities (rows, classes), and the place of the class that is
    decided for (rows,).
    """

    probabilities: str
    place: str
    rounding: float = 1e-12  # by which probabilities here may differ from those in Python, and more


def onnx_model(model: Any, about: Mapping[str, str]) -> bytes:
    """The file of a fitted estimator or booster, or of a table model with its encoder;
    ``about`` is noted in it.
    """
    encoder = getattr(model, "encoder", None)
    estimator = model if encoder is None else model.estimator
    if not _is_exported(estimator):
        check_is_fitted(estimator)
        raise DataError(
            f"a {type(estimator).__name__} cannot be written as ONNX; export the model that it "
            "wraps, base_, and "
            "apply its rule to the scores where you use them"
        )
    graph = Graph(() if encoder is None else encoder.coders_)
    if encoder is None:
        x = graph.input("X", "DOUBLE", int(estimator.n_features_in_))
    else:
        coded = [
            part for name, coder in encoder.coders_.items() for part in _encode(graph, name, coder)
        ]
        x = graph.add("Concat", *coded, axis=1)
    classes: Any = getattr(estimator, "classes_", None)
    scored = _score(graph, x, estimator)
    if isinstance(scored, str):
        graph.output("prediction", "Reshape", scored, np.array([-1]), kind="DOUBLE")
    else:
        place = scored.place
        if getattr(model, "threshold", None) is not None:
            yes = model.positive
            score = graph.add("Gather", scored.probabilities, np.array(yes), axis=1)
            # A threshold is often a score itself, and who has that score is accepted.
            accepted = graph.add(
                "GreaterOrEqual", score, np.float64(model.threshold) - scored.rounding
            )
            place = graph.add("Where", accepted, np.array(yes), np.array(1 - yes))
        labels = np.asarray(classes.tolist())
        if labels.dtype.kind not in _TYPES or labels.tolist() != classes.tolist():
            raise DataError(
                f"classes such as {classes[-1]!r} cannot be written as ONNX; fit with integers or "
                "strings"
            )
        graph.output("label", "Gather", labels, place, kind=_TYPES[labels.dtype.kind])
        graph.output(
            "probabilities", "Identity", scored.probabilities, kind="DOUBLE", width=len(labels)
        )
    names = getattr(estimator if encoder is None else encoder, "feature_names_in_", None)
    if not getattr(estimator, "_fitted_with_feature_names", True) and encoder is None:
        names = None  # LightGBM's own: Column_0 and so on
    metadata = {"metrifair": installed_version("metrifair"), "model": type(estimator).__name__}
    metadata |= (
        {} if classes is None else {"classes": json.dumps(labels.tolist(), ensure_ascii=False)}
    )
    metadata |= (
        {}
        if names is None
        else {"features": json.dumps([str(name) for name in names], ensure_ascii=False)}
    )
    return graph.serialized(metadata | dict(about))


def _is_exported(estimator: Any) -> bool:
    """Whether it is a fitted estimator or booster of metrifair."""
    return hasattr(estimator, "predictor_") or hasattr(estimator, "left_out_")


def _score(graph: Graph, x: str, estimator: Any) -> str | _Decision:
    """Numbers or decisions of a fitted estimator or booster."""
    classes = len(getattr(estimator, "classes_", ()))
    return (_network if hasattr(estimator, "predictor_") else _booster_output)(
        graph, x, estimator, classes
    )


def _encode(graph: Graph, name: str, coder: Coder) -> list[str]:
    """The columns (rows, ...) that a column of a table becomes, as in ``coder.encoded``."""
    if not name:
        raise DataError(
            "a column of the table has no name, which ONNX requires; name it, and fit again"
        )
    if isinstance(coder, Numbers):
        if coder.kind == "date":
            raise DataError(
                f"column {name!r} contains dates, which ONNX does not support; make a number of it "
                "before fitting, "
                "such as the days since 1970, or leave it out"
            )
        x = graph.input(name, "DOUBLE", 1)
        missing = graph.add("IsNaN", x)
        parts = []
        if coder.spread:
            centered = graph.add("Sub", graph.add("Where", missing, coder.median, x), coder.center)
            parts.append(graph.add("Div", centered, coder.spread))
        return [*parts, graph.cast(missing, "DOUBLE")] if coder.flagged else parts
    return [_levels(graph, name, coder)]


def _levels(graph: Graph, name: str, coder: Levels) -> str:
    """A column for each level; a value that has none is 0 in all."""
    place = {level: code for code, level in enumerate(coder.levels)}
    rest = len(place) if coder.pooled else -1
    missing = len(place) + coder.pooled if coder.flagged else rest
    if coder.kind == "boolean":
        x = graph.input(name, "DOUBLE", 1)
        yes, no = (np.array(place.get(level, rest)) for level in ("True", "False"))
        present = graph.add("Where", graph.cast(x, "BOOL"), yes, no)
        code = graph.add("Where", graph.add("IsNaN", x), np.array(missing), present)
    elif "" in place:
        raise DataError(
            f"column {name!r} has the empty text among its levels, which is a missing value in "
            "ONNX; replace "
            "it by a word before fitting"
        )
    else:
        keys = [*place, ""]
        values = [*place.values(), missing]
        x = graph.input(name, "STRING", 1)
        code = graph.add(
            "LabelEncoder", x, keys_strings=keys, values_int64s=values, default_int64=rest
        )
    columns = np.arange(len(place) + coder.pooled + coder.flagged)[None]
    return graph.cast(graph.add("Equal", code, columns), "DOUBLE")


def _network(graph: Graph, x: str, estimator: Any, classes: int) -> str | _Decision:
    """A linear model or a network with its scaling, as in ``predict`` and ``predict_proba``."""
    predictor: Predictor = estimator.predictor_
    if hasattr(predictor, "last"):
        x = _stack_inputs(graph, x, predictor)
        predictor = predictor.last
    if not isinstance(predictor.model, Network):
        raise DataError(
            "the model is a module of your own, whose code metrifair cannot export; export it with "
            "torch.onnx.export(model.module(), ...)"
        )
    mean, scale = (part.numpy() for part in predictor.scaling)
    x = graph.add("Div", graph.add("Sub", x, mean), scale)
    for layer in range(len(predictor.model.widths) - 1):
        weight, bias = (
            predictor.parameters[f"{name}{layer}"][0, 0].numpy() for name in ("weight", "bias")
        )
        x = graph.add("Gemm", graph.add("Relu", x) if layer else x, weight, bias[:, 0], transB=1)
    if not classes:
        center, spread = map(float, estimator.target_scaling_)
        return graph.add("Add", graph.add("Mul", x, spread), center)
    if classes > 2:
        return _Decision(
            graph.add("Softmax", x, axis=1), graph.add("ArgMax", x, axis=1, keepdims=0)
        )
    positive = graph.add("GreaterOrEqual" if estimator.scheme_.positive == 1 else "Greater", x, 0.0)
    place = graph.add("Reshape", graph.cast(positive, "INT64"), np.array([-1]))
    return _Decision(_both_classes(graph, graph.add("Sigmoid", x)), place)


def _stack_inputs(graph: Graph, x: str, predictor: Any) -> str:
    """The inputs of a stack's last model: the blended predictions of the others, and the
    features if it uses them.
    """
    parts = [
        _blend(graph, x, blend)
        for blend in (predictor.outcome, predictor.group)
        if blend is not None
    ]
    parts += [x] if predictor.passthrough else []
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _blend(graph: Graph, x: str, blend: Any) -> str:
    """The mean of numbers, or the calibrated log-odds of classes but the first, as ``Blend``
    computes them.
    """
    count = 0 if blend.correction is None else len(blend.correction.bias)
    total = graph.add("Sum", *(_prediction(graph, x, model, count) for model in blend.models))
    mean = graph.add("Div", total, float(len(blend.models)))
    if blend.correction is None:
        return graph.add("Reshape", mean, np.array([-1, 1]))
    slope, bias = blend.correction
    # Log-odds do not depend on what probabilities are divided by to add up to 1.
    logs = graph.add(
        "Add", graph.add("Mul", graph.add("Log", graph.add("Max", mean, _LEAST)), slope), bias
    )
    odds = np.vstack([-np.ones(count - 1), np.eye(count - 1)])
    return graph.add("MatMul", logs, odds)


def _prediction(graph: Graph, x: str, model: Any, classes: int) -> str:
    """Numbers (rows, 1), or probabilities (rows, classes) of classes from 0 on."""
    if not _is_exported(model):
        raise DataError(
            f"the stack contains a {type(model).__name__}, which cannot be written as ONNX; use "
            "metrifair models, "
            "such as FairClassifier(0) and FairLGBMClassifier(0)"
        )
    scored = _score(graph, x, model)
    if isinstance(scored, str):
        return graph.add("Reshape", scored, np.array([-1, 1]))
    labels = np.asarray(model.classes_).astype(int)
    if len(labels) == classes:
        return scored.probabilities
    return graph.add("MatMul", scored.probabilities, np.eye(classes)[labels])


def _booster_output(graph: Graph, x: str, booster: Any, classes: int) -> str | _Decision:
    """The trees of a booster and the link of their sum, as in ``predict`` and ``predict_proba``."""
    forest = make_forest(booster, classes if classes > 2 else 1)
    x = _with_missing(graph, x, forest, int(booster.n_features_in_))
    output = graph.add("TreeEnsemble", x, **forest.attributes())
    output = graph.add("Add", output, forest.start) if forest.start.any() else output
    if forest.link == "Sigmoid":
        output = graph.add("Sigmoid", graph.add("Mul", output, forest.slope))
    elif forest.link == "Softmax":
        output = graph.add("Softmax", output, axis=1)
    elif forest.link == "Exp":
        output = graph.add("Exp", output)
    elif forest.link == "SignedSquare":
        output = graph.add("Mul", output, graph.add("Abs", output))
    if not classes:
        return output
    probabilities = _both_classes(graph, output) if classes == 2 else output
    compared = graph.cast(probabilities, "FLOAT") if forest.single else probabilities
    place = graph.add("ArgMax", compared, axis=1, keepdims=0)
    return (
        _Decision(probabilities, place, rounding=1e-6)
        if forest.single
        else _Decision(probabilities, place)
    )


def _with_missing(graph: Graph, x: str, forest: Forest, features: int) -> str:
    """The features as the trees take them: in their precision, and NaN where the booster takes
    a value for missing.
    """
    if forest.single:
        x = graph.cast(graph.cast(x, "FLOAT"), "DOUBLE")
    if not np.isnan(forest.missing):
        x = graph.add(
            "Where", graph.add("Equal", x, np.float64(np.float32(forest.missing))), np.nan, x
        )
    if forest.zeros:
        close = np.where(np.isin(np.arange(features), forest.zeros), ZERO, -1.0)
        x = graph.add("Where", graph.add("LessOrEqual", graph.add("Abs", x), close), np.nan, x)
    return x


def _both_classes(graph: Graph, probability: str) -> str:
    """Probabilities of both classes, of that of the last."""
    return graph.add("Concat", graph.add("Sub", 1.0, probability), probability, axis=1)


Link = Literal["Identity", "Sigmoid", "Softmax", "Exp", "SignedSquare"]

ZERO = float(np.float32(1e-35))  # numbers that are no larger are 0 to LightGBM
# what LightGBM takes for missing at a split
_ZERO = 1
_NAN = 2
_LIGHTGBM_LINKS: dict[str, Link] = {
    **dict.fromkeys(
        ("", "regression", "regression_l1", "huber", "fair", "quantile", "mape"), "Identity"
    ),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "Exp"),
    **dict.fromkeys(("binary", "multiclassova", "cross_entropy"), "Sigmoid"),
    "multiclass": "Softmax",
}
_XGBOOST_LINKS: dict[str, Link] = {
    **dict.fromkeys(
        ("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror"), "Identity"
    ),
    **dict.fromkeys(("reg:absoluteerror", "reg:quantileerror"), "Identity"),
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "Exp"),
    **dict.fromkeys(("binary:logistic", "reg:logistic"), "Sigmoid"),
    "multi:softprob": "Softmax",
}


class _FlatTree(NamedTuple):
    """Inner nodes, from the root, and leaves; a child below 0 is the leaf -1 - child."""

    feature: Integers
    split: Floats
    missing_left: Booleans
    left: Integers
    right: Integers
    leaf: Floats


class Forest(NamedTuple):
    """The parts of a booster's output."""

    trees: Sequence[_FlatTree]
    target: Sequence[int]  # the output that each tree adds to
    start: Floats  # (outputs,), added to the leaves
    link: Link
    slope: float = 1.0  # of a sigmoid
    zeros: Sequence[int] = ()  # features in which 0 is missing
    missing: float = np.nan  # read as a missing value besides NaN
    # of XGBoost: values are rounded to single precision, and go left below the split, not at it
    single: bool = False

    def attributes(self) -> dict[str, Any]:
        """Attributes of the operator TreeEnsemble; arrays are to become tensors."""
        trees = [_with_node(tree) for tree in self.trees]
        joined = _FlatTree(*map(np.concatenate, zip(*trees, strict=True)))
        nodes = [len(tree.feature) for tree in trees]
        leaves = [len(tree.leaf) for tree in trees]
        roots = np.cumsum([0, *nodes[:-1]])
        first_node = np.repeat(roots, nodes)  # of the tree of each node
        first_leaf = np.repeat(np.cumsum([0, *leaves[:-1]]), nodes)
        true, false = (
            np.where(child < 0, -1 - child + first_leaf, child + first_node)
            for child in (joined.left, joined.right)
        )
        return {
            "aggregate_function": 1,  # the sum
            "post_transform": 0,
            "n_targets": len(self.start),
            "tree_roots": roots.tolist(),
            # x <= split, or x < split
            "nodes_modes": np.full(sum(nodes), int(self.single), dtype=np.uint8),
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
    """ONNX has no tree without a node: one that is a leaf only gets a node that leads to it
    either way.
    """
    if len(tree.feature):
        return tree
    zero = np.zeros(1, dtype=np.int64)
    leaf = np.full(1, -1)
    return _FlatTree(zero, np.zeros(1), np.zeros(1, dtype=np.bool_), leaf, leaf, tree.leaf)


def make_forest(booster: Any, outputs: int) -> Forest:
    """The trees that a fitted fair booster predicts by."""
    kind = type(booster).__name__
    try:
        if hasattr(booster, "booster_"):
            return _lightgbm_forest(booster, outputs)
        return _xgboost_forest(booster, outputs)
    except ModelFileError as error:
        raise DataError(f"this {kind} cannot be written as ONNX: {error}") from error


def _lightgbm_forest(booster: Any, outputs: int) -> Forest:
    text = booster.booster_.model_to_string(num_iteration=-1)
    parsed = lightgbm_trees(text, features=int(booster.n_features_in_), classes=outputs)
    best = int(booster.booster_.best_iteration)
    used = parsed.trees[: best * outputs] if best > 0 else parsed.trees
    trees = []
    none = np.zeros(0, dtype=np.int64)
    kinds = np.zeros((booster.n_features_in_, 3), dtype=np.bool_)  # of missing values, by feature
    for tree in used:
        feature, decision = (tree.get(name, none) for name in ("split_feature", "decision_type"))
        if (decision & 1).any():
            raise _categorical(booster, feature[decision & 1 == 1])
        kind = decision >> 2
        split = tree.get("threshold", np.zeros(0))
        # that number is 0 to it, and not below
        split = np.where(split == -ZERO, np.nextafter(-ZERO, -1.0), split)
        kinds[feature, kind] = True
        left, right = (tree.get(name, feature) for name in ("left_child", "right_child"))
        # Where nothing was missing in training, a missing value is taken for 0.
        default = np.where(kind == 0, split >= 0, decision & 2 == 2)
        trees.append(_FlatTree(feature, split, default, left, right, tree["leaf_value"]))
    name, *details = parsed.objective.split(" ")
    link = _link(_LIGHTGBM_LINKS, name, booster)
    slopes = [
        float(detail.removeprefix("sigmoid:"))
        for detail in details
        if detail.startswith("sigmoid:")
    ]
    zeros = np.flatnonzero(kinds[:, _ZERO])
    if kinds[zeros][:, [0, _NAN]].any():
        raise DataError(
            "a feature has splits for which 0 is a missing value, and others; ONNX takes one kind "
            "only"
        )
    if "sqrt" in details:
        link = "SignedSquare"
    return Forest(
        trees,
        [place % outputs for place in range(len(trees))],
        np.zeros(outputs),
        link,
        slope=[*slopes, 1.0][0],
        zeros=zeros.tolist(),
    )


def _xgboost_forest(booster: Any, outputs: int) -> Forest:
    text = bytes(booster.get_booster().save_raw("json")).decode()
    learner = json.loads(
        xgboost_trees(text, features=int(booster.n_features_in_), classes=outputs)
    )["learner"]
    gradient = learner["gradient_booster"]
    forest = gradient["gbtree"]["model"] if "gbtree" in gradient else gradient["model"]
    best = learner["attributes"].get("best_iteration")
    count = len(forest["trees"])
    count = count if best is None else forest["iteration_indptr"][int(best) + 1]
    weights = gradient.get("weight_drop", np.ones(count))
    trees = [
        _flat_tree(tree, weight, booster)
        for tree, weight in zip(forest["trees"][:count], weights, strict=False)
    ]
    link = _link(_XGBOOST_LINKS, learner["objective"]["name"], booster)
    base = np.array(
        json.loads(f"[{learner['learner_model_param']['base_score'].strip('[]')}]"),
        dtype=np.float64,
    )
    start = {"Sigmoid": lambda: np.log(base / (1 - base)), "Exp": lambda: np.log(base)}.get(
        link, lambda: base
    )()
    return Forest(
        trees,
        forest["tree_info"][:count],
        np.broadcast_to(start, outputs),
        link,
        missing=float(booster.missing),
        single=True,
    )


def _flat_tree(tree: Mapping[str, Any], weight: float, booster: Any) -> _FlatTree:
    left, right, feature = (
        np.array(tree[name]) for name in ("left_children", "right_children", "split_indices")
    )
    values = np.array(tree["split_conditions"]).astype(np.float32).astype(np.float64)
    inner = left >= 0
    categorical = inner & (np.array(tree["split_type"]) == 1)
    if categorical.any():
        raise _categorical(booster, feature[categorical])
    # of each node among those of its kind
    position = np.where(inner, np.cumsum(inner) - 1, -1 * np.cumsum(~inner))
    default = np.array(tree["default_left"])[inner] == 1
    leaf = values[~inner] * np.float64(np.float32(weight))
    return _FlatTree(
        feature[inner], values[inner], default, position[left[inner]], position[right[inner]], leaf
    )


def _link(links: Mapping[str, Link], objective: str, booster: Any) -> Link:
    if objective not in links:
        raise DataError(
            f"the objective {objective!r} of this {type(booster).__name__} cannot be written as "
            "ONNX; those that can "
            f"are {', '.join(name for name in links if name)}"
        )
    return links[objective]


def _categorical(booster: Any, features: Integers) -> DataError:
    names = getattr(booster, "feature_names_in_", None)
    column = repr(str(names[features[0]])) if names is not None else int(features[0])
    return DataError(
        f"this {type(booster).__name__} splits column {column} by its categories, which cannot be "
        "written as ONNX; "
        "encode the table with TableEncoder before fitting, and export a TableModel of both"
    )
