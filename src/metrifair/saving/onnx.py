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
from metrifair.saving.records import in_one_line
from metrifair.saving.xgboost_trees import xgboost_trees
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.checks import require
from metrifair.training import Predictor
from metrifair.training.models import Network

# versions: of 2022, so that older runtimes read the file
_OPERATORS = 17
_FORMAT = 8
_MACHINE_LEARNING = "ai.onnx.ml"  # the domain of operators for trees and labels
_LEARNING_OPERATORS = 3
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
        domain = ""
        if operator in ("TreeEnsemble", "LabelEncoder"):
            domain = _MACHINE_LEARNING
        output = output or self._fresh(f"step {len(self._nodes)}")
        for name, value in attributes.items():
            if isinstance(value, np.ndarray):
                attributes[name] = self._tensor(value, name)
        node = self.onnx.helper.make_node(operator, names, [output], domain=domain, **attributes)
        self._nodes.append(node)
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
        inputs = list(self.inputs.values())
        outputs = list(self.outputs.values())
        graph = helper.make_graph(self._nodes, "metrifair", inputs, outputs, self._constants)
        versions = {"": _OPERATORS, _MACHINE_LEARNING: _LEARNING_OPERATORS}
        file_format = _FORMAT
        if any(node.op_type == "TreeEnsemble" for node in self._nodes):
            versions[_MACHINE_LEARNING] = _TREE_OPERATORS
            file_format = _TREE_FORMAT
        domains = {node.domain for node in self._nodes}
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid(name, version)
                for name, version in versions.items()
                if name in domains
            ],
            ir_version=file_format,
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
            problem = f"this model cannot be written as ONNX: {in_one_line(error)}"
            raise DataError(problem) from error
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
    if encoder is None:
        graph = Graph(())
        x = graph.input("X", "DOUBLE", int(estimator.n_features_in_))
    else:
        graph = Graph(encoder.coders_)
        coded = [
            part for name, coder in encoder.coders_.items() for part in _encode(graph, name, coder)
        ]
        x = graph.add("Concat", *coded, axis=1)
    metadata = {"metrifair": installed_version("metrifair"), "model": type(estimator).__name__}
    scored = _score(graph, x, estimator)
    if isinstance(scored, str):
        graph.output("prediction", "Reshape", scored, np.array([-1]), kind="DOUBLE")
    else:
        labels = _labels(estimator.classes_)
        metadata["classes"] = json.dumps(labels.tolist(), ensure_ascii=False)
        _output_decisions(graph, scored, model, labels)
    if encoder is not None:
        names = getattr(encoder, "feature_names_in_", None)
    elif getattr(estimator, "_fitted_with_feature_names", True):
        names = getattr(estimator, "feature_names_in_", None)
    else:
        names = None  # LightGBM's own: Column_0 and so on
    if names is not None:
        metadata["features"] = json.dumps(list(map(str, names)), ensure_ascii=False)
    return graph.serialized(metadata | dict(about))


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes, in a type that ONNX has; an error if there is none."""
    labels = np.asarray(classes.tolist())
    if labels.dtype.kind not in _TYPES or labels.tolist() != classes.tolist():
        raise DataError(
            f"classes such as {classes[-1]!r} cannot be written as ONNX; fit with integers or "
            "strings"
        )
    return labels


def _output_decisions(graph: Graph, scored: _Decision, model: Any, labels: NDArray[Any]) -> None:
    """Write the label and the probabilities; the label by the model's threshold if it has one."""
    place = scored.place
    if getattr(model, "threshold", None) is not None:
        yes = np.array(model.positive)
        no = np.array(1 - model.positive)
        score = graph.add("Gather", scored.probabilities, yes, axis=1)
        # A threshold is often a score itself, and who has that score is accepted.
        threshold = np.float64(model.threshold) - scored.rounding
        accepted = graph.add("GreaterOrEqual", score, threshold)
        place = graph.add("Where", accepted, yes, no)
    graph.output("label", "Gather", labels, place, kind=_TYPES[labels.dtype.kind])
    graph.output(
        "probabilities", "Identity", scored.probabilities, kind="DOUBLE", width=len(labels)
    )


def _is_exported(estimator: Any) -> bool:
    """Whether it is a fitted estimator or booster of metrifair."""
    return hasattr(estimator, "predictor_") or hasattr(estimator, "left_out_")


def _score(graph: Graph, x: str, estimator: Any) -> str | _Decision:
    """Numbers or decisions of a fitted estimator or booster."""
    classes = len(getattr(estimator, "classes_", ()))
    if hasattr(estimator, "predictor_"):
        return _network(graph, x, estimator, classes)
    return _booster_output(graph, x, estimator, classes)


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
            filled = graph.add("Where", missing, coder.median, x)
            centered = graph.add("Sub", filled, coder.center)
            parts.append(graph.add("Div", centered, coder.spread))
        if coder.flagged:
            parts.append(graph.cast(missing, "DOUBLE"))
        return parts
    return [_levels(graph, name, coder)]


def _levels(graph: Graph, name: str, coder: Levels) -> str:
    """A column for each level; a value that has none is 0 in all."""
    place = {level: code for code, level in enumerate(coder.levels)}
    rest = len(place) if coder.pooled else -1
    missing = rest
    if coder.flagged:
        missing = len(place) + coder.pooled
    if coder.kind == "boolean":
        x = graph.input(name, "DOUBLE", 1)
        yes = np.array(place.get("True", rest))
        no = np.array(place.get("False", rest))
        is_true = graph.cast(x, "BOOL")
        present = graph.add("Where", is_true, yes, no)
        is_missing = graph.add("IsNaN", x)
        code = graph.add("Where", is_missing, np.array(missing), present)
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
    columns = np.arange(len(place) + coder.pooled + coder.flagged)
    is_level = graph.add("Equal", code, columns[None])
    return graph.cast(is_level, "DOUBLE")


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
    centered = graph.add("Sub", x, mean)
    x = graph.add("Div", centered, scale)
    for layer in range(len(predictor.model.widths) - 1):
        weight = predictor.parameters[f"weight{layer}"][0, 0].numpy()
        bias = predictor.parameters[f"bias{layer}"][0, 0, :, 0].numpy()
        if layer:
            x = graph.add("Relu", x)
        x = graph.add("Gemm", x, weight, bias, transB=1)
    if not classes:
        center, spread = map(float, estimator.target_scaling_)
        scaled = graph.add("Mul", x, spread)
        return graph.add("Add", scaled, center)
    if classes > 2:
        probabilities = graph.add("Softmax", x, axis=1)
        place = graph.add("ArgMax", x, axis=1, keepdims=0)
        return _Decision(probabilities, place)
    comparison = "Greater"
    if estimator.scheme_.positive == 1:
        comparison = "GreaterOrEqual"
    positive = graph.add(comparison, x, 0.0)
    code = graph.cast(positive, "INT64")
    place = graph.add("Reshape", code, np.array([-1]))
    probability = graph.add("Sigmoid", x)
    return _Decision(_both_classes(graph, probability), place)


def _stack_inputs(graph: Graph, x: str, predictor: Any) -> str:
    """The inputs of a stack's last model: the blended predictions of the others, and the
    features if it uses them.
    """
    parts = [
        _blend(graph, x, blend)
        for blend in (predictor.outcome, predictor.group)
        if blend is not None
    ]
    if predictor.passthrough:
        parts.append(x)
    if len(parts) == 1:
        return parts[0]
    return graph.add("Concat", *parts, axis=1)


def _blend(graph: Graph, x: str, blend: Any) -> str:
    """The mean of numbers, or the calibrated log-odds of classes but the first, as ``Blend``
    computes them.
    """
    count = 0
    if blend.correction is not None:
        count = len(blend.correction.bias)
    predictions = [_prediction(graph, x, model, count) for model in blend.models]
    total = graph.add("Sum", *predictions)
    mean = graph.add("Div", total, float(len(predictions)))
    if blend.correction is None:
        return graph.add("Reshape", mean, np.array([-1, 1]))
    slope, bias = blend.correction
    # Log-odds do not depend on what probabilities are divided by to add up to 1.
    positive = graph.add("Max", mean, _LEAST)
    logs = graph.add("Log", positive)
    scaled = graph.add("Mul", logs, slope)
    corrected = graph.add("Add", scaled, bias)
    others = count - 1
    odds = np.vstack([-np.ones(others), np.eye(others)])
    return graph.add("MatMul", corrected, odds)


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
    if forest.start.any():
        output = graph.add("Add", output, forest.start)
    output = _linked(graph, output, forest)
    if not classes:
        return output
    probabilities = output
    if classes == 2:
        probabilities = _both_classes(graph, output)
    if not forest.single:
        place = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
        return _Decision(probabilities, place)
    compared = graph.cast(probabilities, "FLOAT")
    place = graph.add("ArgMax", compared, axis=1, keepdims=0)
    return _Decision(probabilities, place, rounding=1e-6)


def _linked(graph: Graph, output: str, forest: Forest) -> str:
    """Numbers or probabilities of the sums of leaves."""
    match forest.link:
        case "Sigmoid":
            scaled = graph.add("Mul", output, forest.slope)
            return graph.add("Sigmoid", scaled)
        case "Softmax":
            return graph.add("Softmax", output, axis=1)
        case "Exp":
            return graph.add("Exp", output)
        case "SignedSquare":
            size = graph.add("Abs", output)
            return graph.add("Mul", output, size)
        case "Identity":
            return output


def _with_missing(graph: Graph, x: str, forest: Forest, features: int) -> str:
    """The features as the trees take them: in their precision, and NaN where the booster takes
    a value for missing.
    """
    if forest.single:
        x = graph.cast(graph.cast(x, "FLOAT"), "DOUBLE")
    if not np.isnan(forest.missing):
        is_missing = graph.add("Equal", x, np.float64(np.float32(forest.missing)))
        x = graph.add("Where", is_missing, np.nan, x)
    if forest.zeros:
        zeros = np.full(features, -1.0)
        zeros[forest.zeros] = ZERO
        size = graph.add("Abs", x)
        is_missing = graph.add("LessOrEqual", size, zeros)
        x = graph.add("Where", is_missing, np.nan, x)
    return x


def _both_classes(graph: Graph, probability: str) -> str:
    """Probabilities of both classes, of that of the last."""
    negative = graph.add("Sub", 1.0, probability)
    return graph.add("Concat", negative, probability, axis=1)


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

        def places(child: Integers) -> list[int]:
            place: list[int] = np.where(
                child < 0, -1 - child + first_leaf, child + first_node
            ).tolist()
            return place

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
            "nodes_truenodeids": places(joined.left),
            "nodes_trueleafs": (joined.left < 0).astype(int).tolist(),
            "nodes_falsenodeids": places(joined.right),
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
    used = parsed.trees
    if best > 0:
        used = used[: best * outputs]
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
    if "gbtree" in gradient:
        forest = gradient["gbtree"]["model"]
    else:
        forest = gradient["model"]
    best = learner["attributes"].get("best_iteration")
    count = len(forest["trees"])
    if best is not None:
        count = forest["iteration_indptr"][int(best) + 1]
    weights = gradient.get("weight_drop", np.ones(count))
    trees = [
        _flat_tree(tree, weight, booster)
        for tree, weight in zip(forest["trees"][:count], weights, strict=False)
    ]
    link = _link(_XGBOOST_LINKS, learner["objective"]["name"], booster)
    base_score = learner["learner_model_param"]["base_score"].strip("[]")
    start = np.array(json.loads(f"[{base_score}]"), dtype=np.float64)
    if link == "Sigmoid":
        start = np.log(start / (1 - start))
    elif link == "Exp":
        start = np.log(start)
    return Forest(
        trees,
        forest["tree_info"][:count],
        np.broadcast_to(start, outputs),
        link,
        missing=float(booster.missing),
        single=True,
    )


def _flat_tree(tree: Mapping[str, Any], weight: float, booster: Any) -> _FlatTree:
    left = np.array(tree["left_children"])
    right = np.array(tree["right_children"])
    feature = np.array(tree["split_indices"])
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
    column = str(features[0])
    if names is not None:
        column = repr(str(names[features[0]]))
    return DataError(
        f"this {type(booster).__name__} splits column {column} by its categories, which cannot be "
        "written as ONNX; "
        "encode the table with TableEncoder before fitting, and export a TableModel of both"
    )
