"""Forged model files, loaded and used, in a process that may not take long nor much memory.

    python -m tests.saving.forge SEED COUNT [--kind KIND] [--without MODULE:FUNCTION]

Honest files of every kind are taken apart, changed in one to three places as someone who knows the
format would change them, and sealed with a right hash; so are the rows of a ledger. Each must be a
ModelFileError (a DataError of a ledger) or predict: anything else ends the run, and the last line
printed says which file it was. ``--without`` plants a fault: that check then passes everything.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import json
import random
import re
import resource
import signal
import sqlite3
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline, make_pipeline

sys.path.insert(0, str(Path(__file__).parents[1]))
from forging import ODD, described

from metrifair import (
    AuditOptions,
    AuditState,
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    Frontier,
    PenaltyOptions,
    SearchOptions,
    TableEncoder,
    ThresholdPostprocessor,
    load,
    save,
)
from metrifair.errors import DataError, MetrifairWarning, ModelFileError
from tests.one_split import frontier
from tests.seams.estimators import TableModel
from tests.seams.saving import Content, from_bytes, lightgbm_trees, xgboost_trees

SECONDS = 60  # for one file, on a machine that is busy
MEMORY = 300 * 2**20  # above what an honest file takes
ROOM = 2**31  # of addresses beyond those in use: what asks for more is refused by the system

N = 120
GENERATOR = np.random.default_rng(0)
GROUP = np.array(["f", "m"])[GENERATOR.integers(2, size=N)]
X = GENERATOR.normal(size=(N, 3)) + (GROUP == "m")[:, None]
VALUE = X.sum(1) + GENERATOR.normal(size=N)
FRAME = pd.DataFrame(
    {
        "a": np.where(GENERATOR.random(N) < 0.2, np.nan, X[:, 0]),
        "b": pd.Categorical(np.array(["ü", "v", "w"])[GENERATOR.integers(3, size=N)]),
        "c": X[:, 2],
    }
)
TABLE = {
    "pay": [None if k % 9 == 0 else float(x) for k, x in enumerate(X[:, 0])],
    "town": GROUP.tolist(),
}
TABLE |= {"member": (X[:, 1] > 0).tolist(), "one": ["same"] * N}
QUICK: dict[str, Any] = {"model": "mlp", "epochs": 2, "random_state": 0, "hidden": (4,)}
LGBM: dict[str, Any] = {
    "n_jobs": 1,
    "verbose": -1,
    "n_estimators": 3,
    "min_child_samples": 5,
    "num_leaves": 6,
}
LGBM |= {"min_data_per_group": 1, "cat_l2": 0.0}
XGB: dict[str, Any] = {"n_jobs": 1, "n_estimators": 3, "enable_categorical": True, "max_depth": 3}


def models() -> dict[str, Any]:
    """A fitted model for every kind of file, and every way in which the kind differs inside."""
    three, groups = np.digitize(VALUE, [0, 2]), {"sensitive_features": GROUP}
    encoder = TableEncoder(min_frequency=1).fit(TABLE)
    encoded = encoder.transform(TABLE)
    inner = FairClassifier(**QUICK).fit(encoded, VALUE > 1, **groups)
    stream = {"model": "mlp", "batch_size": 32, "random_state": 0, "hidden": (4,)}
    both = {"sensitive_features": {"sex": GROUP, "old": three > 0}}
    linear, numbers = FairClassifier(0.0, model="linear"), FairRegressor(0.0, model="linear")
    return {
        "classifier": FairClassifier(criterion="equal_opportunity", **QUICK).fit(
            X, VALUE > 1, **groups
        ),
        "stream": FairClassifier(**stream).partial_fit(X, three, control_features=GROUP, **groups),
        "regressor": FairRegressor(**QUICK).fit(X, VALUE, **groups),
        "linear": FairClassifier(1.0, model="linear", penalty=PenaltyOptions(contrast="rest")).fit(
            X, three, **both
        ),
        "linear regression": FairRegressor(1.0, model="linear", metric="wasserstein").fit(
            X, VALUE, **both
        ),
        "lightgbm": FairLGBMClassifier(2.0, **LGBM).fit(FRAME, VALUE > 1, **groups),
        "lightgbm of three": FairLGBMClassifier(0.0, **LGBM).fit(FRAME, three),
        "lightgbm regression": FairLGBMRegressor(2.0, **LGBM).fit(FRAME, VALUE, **groups),
        "xgboost": FairXGBClassifier(2.0, **XGB).fit(FRAME, (VALUE > 1) * 1, **groups),
        "xgboost of three": FairXGBClassifier(0.0, **XGB).fit(FRAME, three),
        "xgboost dart": FairXGBRegressor(0.0, booster="dart", max_cat_to_onehot=1, **XGB).fit(
            FRAME, VALUE
        ),
        "table": TableModel(encoder, inner, "outcome", ("sex",), ("number",)),
        "table of lightgbm": TableModel(
            encoder, FairLGBMRegressor(0.0, **LGBM).fit(encoded, VALUE)
        ),
        "pipeline": make_pipeline(TableEncoder(min_frequency=1), FairRegressor(**QUICK)).fit(
            TABLE, VALUE, fairregressor__sensitive_features=GROUP
        ),
        "scores": BarycenterPostprocessor(linear, folds=1, tolerance=0.25).fit(
            X, VALUE > 1, **both
        ),
        "scores without groups": BarycenterPostprocessor(numbers, folds=1, needs_group=False).fit(
            X, VALUE, **groups
        ),
        "decisions": ThresholdPostprocessor(linear, folds=1, randomized=True, random_state=3).fit(
            X, VALUE > 1, **both
        ),
        "decisions without groups": ThresholdPostprocessor(
            linear, folds=1, needs_group=False, criterion="equal_opportunity"
        ).fit(X, VALUE > 1, **groups),
        "state": AuditState(score_range=(-99, 99), threshold=1.0, name="a").add(
            three, VALUE, sensitive_features=GROUP
        ),
        "state of weights": AuditState(score_range=(-99, 99), threshold=1.0).add(
            None, VALUE, sensitive_features=GROUP, sample_weight=1 + VALUE**2
        ),
        "frontier": frontier(
            FairClassifier(**QUICK), X, VALUE > 1, strengths=[0, 1], random_state=0, **groups
        ),
        "frontier of families": frontier(
            [linear, BarycenterPostprocessor(linear, folds=1)],
            X,
            VALUE > 1,
            strengths=[1],
            random_state=0,
            **groups,
            search=SearchOptions(tolerances=[0.5]),
        ),
    }


def swept(ledger: Path) -> Frontier:
    """A frontier that goes on from this ledger."""
    own = FairClassifier(model="linear")
    return frontier(
        own,
        X,
        VALUE > 1,
        sensitive_features=GROUP,
        strengths=[0, 1],
        random_state=0,
        search=SearchOptions(ledger=ledger),
    )


# Forging

NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "-2",
    "11",
    "15",
    "31",
    "255",
    "65536",
    "999999999",
    "2000000000",
]
NUMBERS += [
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "9" * 30,
    "1e400",
    "-1e400",
    "nan",
    "inf",
    "-inf",
]
NUMBERS += ["0x10", "1_0", "٣", "1.5", "", " ", "-", "1e-400", "1e300", "\t1"]
LINES = [
    "\rsplit_feature=999999999",
    "\rleft_child=0 0",
    "\rnum_class=100000000",
    "average_output",
    "is_linear=1",
]
LINES += [
    "objective=multiclass num_class:1000000",
    "objective=binary sigmoid:0",
    "num_cat=1",
    "Tree=0",
    "end of trees",
]
LINES += [
    "[valid1 ]",
    "parameters:",
    "[num_threads: 99999]",
    "tree_sizes=9 9 9",
    "num_leaves=2147483647",
    "\x0b",
    "\x00",
]
PLACES = [
    "split_feature",
    "left_child",
    "right_child",
    "num_leaves",
    "num_cat",
    "cat_boundaries",
    "cat_threshold",
]
PLACES += [
    "decision_type",
    "threshold",
    "leaf_value",
    "max_feature_idx",
    "num_class",
    "num_tree_per_iteration",
    "Tree",
]
JSON_NUMBERS = [
    -2,
    -1,
    0,
    1,
    2,
    3,
    100,
    2**24,
    2_000_000_000,
    2**31 - 1,
    2**31,
    2**40,
    2**63,
    0.5,
    1e39,
    1e300,
]
JSON_NUMBERS += [
    float("nan"),
    float("inf"),
    "1",
    "-1",
    "0",
    "99",
    "1000000000",
    "[5E-1]",
    "[]",
    "[NaN]",
    "1e999",
    "",
]
JSON_NUMBERS += [
    None,
    True,
    [],
    {},
    "binary:logistic",
    "multi:softprob",
    "reg:gamma",
    "gblinear",
    "x" * 300,
]
PARAMETERS: list[tuple[str, Any]] = [
    *[
        ("n_jobs", 10**6),
        ("n_jobs", "many"),
        ("n_jobs", -(2**70)),
        ("num_threads", 10**9),
        ("nthread", 99999),
    ],
    *[
        ("verbosity", 9),
        ("verbosity", "x"),
        ("verbosity", -(2**40)),
        ("missing", "gone"),
        ("base_score", "high"),
    ],
    *[
        ("num_leaves", -1),
        ("num_machines", 3),
        ("machines", "127.0.0.1:9"),
        ("predict_disable_shape_check", True),
    ],
    *[
        ("objective", "multi:softmax"),
        ("objective", "nothing"),
        ("device", "cuda"),
        ("booster", "gblinear"),
    ],
    *[
        ("boosting_type", "rf"),
        ("max_depth", 2**40),
        ("input_model", "/etc/passwd"),
        ("num_class", 10**8),
    ],
    *[
        ("early_stopping_rounds", {"float": "nan"}),
        ("eval_metric", "a b=c"),
        ("metric", "auc\nnum_threads=9"),
    ],
    *[
        ("feature_types", ["q"]),
        ("enable_categorical", "no"),
        ("random_state", 10**18),
        ("device", "gpu:99"),
    ],
    *[
        ("predict_raw_score", True),
        ("num_iteration_predict", -5),
        ("start_iteration_predict", 99),
        ("linear_tree", True),
    ],
]


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value inside a JSON value."""
    inside = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [
        place for key, value in inside for place in ((*path, key), *places(value, (*path, key)))
    ]


def changed_json(rng: random.Random, json_value: Any, odd: list[Any]) -> None:
    """One value replaced, taken from elsewhere, left out or added, in place."""
    ways = places(json_value)
    if not ways:
        return
    # Ways into long lists would be most: choose their depth first.
    depth = rng.choice(sorted({len(way) for way in ways}))
    *path, key = rng.choice([way for way in ways if len(way) == depth])
    node = json_value
    for step in path:
        node = node[step]
    how = rng.choice(["odd", "odd", "odd", "elsewhere", "gone", "more", "twice"])
    if how == "odd":
        node[key] = copy.deepcopy(rng.choice(odd))
    elif how == "elsewhere":
        found = json_value
        for step in rng.choice(ways):
            found = found[step]
        node[key] = copy.deepcopy(found)
    elif how == "gone":
        del node[key]
    elif isinstance(node, dict):
        node["more" if how == "more" else f"{key} "] = copy.deepcopy(rng.choice(odd))
    else:
        node.insert(key, copy.deepcopy(node[key] if how == "twice" else rng.choice(odd)))


def changed_text(rng: random.Random, text: str) -> str:
    """A model text of LightGBM with a number, a line or a tree that is not what it was."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    if rng.random() < 0.7:
        name = rng.choice(PLACES)
        at = rng.choice([k for k, line in enumerate(lines) if line.startswith(f"{name}=")] or [at])
    how = rng.choice(
        [
            "number",
            "number",
            "number",
            "more",
            "fewer",
            "line",
            "drop",
            "copy",
            "tail",
            "again",
            "swap",
        ]
    )
    name, sign, words = lines[at].partition("=")
    values = words.split(" ")
    if how == "number" and sign:
        values[rng.randrange(len(values))] = rng.choice(NUMBERS)
        lines[at] = f"{name}={' '.join(values)}"
    elif how == "more" and sign:
        lines[at] = f"{name}={' '.join([*values, rng.choice(values)])}"
    elif how == "fewer" and sign:
        lines[at] = f"{name}={' '.join(values[:-1])}"
    elif how == "tail":
        lines[at] += rng.choice(LINES)
    elif how == "drop":
        del lines[at]
    elif how == "copy":
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif how == "swap":
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif how == "again":  # a tree, changed, and its good lines after an empty one
        trees = [k for k, line in enumerate(lines) if re.fullmatch(r"Tree=\d+", line)]
        begin = rng.choice(trees or [0])
        end = next((k for k in range(begin, len(lines)) if not lines[k]), len(lines))
        good = lines[begin + 1 : end]
        bad = [
            re.sub(r"-?\d+$", rng.choice(NUMBERS), line) if rng.random() < 0.3 else line
            for line in good
        ]
        lines[begin + 1 : end] = [*bad, "", *good]
    else:
        lines.insert(at, rng.choice(LINES))
    return "\n".join(lines)


def changed_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    """An array renamed, left out, added, reshaped, of another type or with other values, in
    place.
    """
    if not arrays:
        return
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    how = rng.choice(
        ["rename", "drop", "flat", "twice", "empty", "type", "value", "bytes", "add", "one"]
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "rename":
            arrays[rng.choice(["", "x", "learner/", "../x", *sorted(arrays)])] = array
        elif how == "flat":
            arrays[name] = array.reshape(-1)
        elif how == "twice":
            arrays[name] = np.concatenate([array.reshape(-1)] * 2)
        elif how == "empty":
            arrays[name] = np.zeros((0, 5))
        elif how == "type":
            arrays[name] = array.astype(
                rng.choice(["float32", "int64", "uint8", "bool", "float64", "int8"])
            )
        elif how == "value":
            odd = rng.choice(
                [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e300, 1e-300, 255.0, 7.0]
            )
            arrays[name] = np.full(array.shape, odd).astype(array.dtype)
        elif how == "bytes":
            arrays[name] = np.frombuffer(rng.randbytes(array.nbytes), array.dtype).reshape(
                array.shape
            )
        elif how == "one" and array.size:
            changed = array.copy()
            odd = np.array(rng.choice([0.0, 1.0, 255.0, 1e9, 1e300, -1e300]))
            changed.reshape(-1)[rng.randrange(array.size)] = odd.astype(array.dtype)
            arrays[name] = changed
        elif how == "add":
            arrays |= {name: array, "more": array}


def another_model(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    """One number replaced by one that an honest model could hold, in place: most such files are
    to be used.
    """
    trees = next((name for name in arrays if name.endswith("trees")), None)
    if trees is None:
        numbers = [
            name for name in sorted(arrays) if arrays[name].dtype.kind == "f" and arrays[name].size
        ]
        if numbers:
            name = rng.choice(numbers)
            arrays[name] = changed = arrays[name].copy()
            changed.reshape(-1)[rng.randrange(changed.size)] *= rng.uniform(0.9, 1.1)
        return
    text = arrays[trees].tobytes().decode()
    named = (
        r'("base_weights":\s*\[)([^\]]*)(\])'
        if text.startswith("{")
        else r"(\nleaf_value=)([^\n]*)(\n)"
    )
    place = rng.choice(list(re.finditer(named, text)))
    sign = "," if text.startswith("{") else " "
    values = place[2].split(sign)
    values[rng.randrange(len(values))] = repr(rng.uniform(-2, 2))
    text = text[: place.start(2)] + sign.join(values) + text[place.end(2) :]
    arrays[trees] = np.frombuffer(text.encode(), np.uint8)


def forged(rng: random.Random, content: Content, *, others: float) -> bytes:
    """The file of this content after one to three changes; so large a share as another model
    would write it.
    """
    meta, arrays = copy.deepcopy(content.meta), dict(content.arrays)
    if others and rng.random() < others:
        another_model(rng, arrays)
        return described(meta, arrays, content.kind)
    for _ in range(rng.randint(1, 3)):
        trees = next((name for name in arrays if name.endswith("trees")), None)
        how = rng.choice(
            ["meta", "arrays", "parameter"]
            if trees is None
            else ["meta", "arrays", "parameter"] + ["trees"] * 9
        )
        if how == "trees" and arrays[trees].dtype == np.uint8:
            text = arrays[trees].tobytes().decode(errors="replace")
            if text.startswith("{"):
                try:
                    model = json.loads(text)
                except ValueError:
                    continue
                changed_json(rng, model, JSON_NUMBERS)
                text = json.dumps(model, ensure_ascii=False)
            else:
                text = changed_text(rng, text)
            arrays[trees] = np.frombuffer(text.encode(errors="replace"), np.uint8)
        elif how == "arrays":
            changed_arrays(rng, arrays)
        elif how == "parameter" and isinstance(own := meta.get("parameters"), dict):
            name, value = rng.choice(PARAMETERS)
            own[name] = value
        else:
            changed_json(
                rng,
                meta,
                [*ODD, *(value for value in JSON_NUMBERS if value == value and abs_finite(value))],
            )
    kind = (
        content.kind
        if rng.random() < 0.98
        else rng.choice(["estimator", "booster", "frontier", "table model", 7])
    )
    return described(meta, arrays, kind)


def abs_finite(value: Any) -> bool:
    """Whether JSON can hold it."""
    return not isinstance(value, float) or abs(value) < 1e308


def forge_ledger(rng: random.Random, path: Path) -> None:
    """One row of the ledger with another record or model, in place."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        run, job, record, model = rng.choice(
            database.execute("SELECT * FROM finished ORDER BY job").fetchall()
        )
        figures: Any = json.loads(record)
        if rng.random() < 0.3:
            model = forged(rng, from_bytes(model), others=0.5)
        else:
            for _ in range(rng.randint(1, 3)):
                changed_json(rng, figures, [*ODD, *JSON_NUMBERS])
        if rng.random() < 0.05:
            figures, model = rng.choice([(figures, rng.choice(ODD[:12])), (rng.choice(ODD), model)])
        record = json.dumps(figures)
        # SQLite itself refuses numbers beyond 64 bits
        with contextlib.suppress(OverflowError, sqlite3.Error):
            database.execute(
                "INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?)", (run, job, record, model)
            )


# Using


def use(model: Any) -> None:
    """Predict, and check that these are predictions; of counts, audit them."""
    if isinstance(model, AuditState):
        # as where nobody is left to compare
        with contextlib.suppress(DataError), warnings.catch_warnings():
            warnings.simplefilter("ignore", MetrifairWarning)  # the same rows count twice
            found = model.merge(model).audit(
                random_state=0, options=AuditOptions(resamples=0, permutations=0)
            )
            assert all(
                one.bracket.low <= one.value <= one.bracket.high
                for one in found.findings
                if one.bracket
            )
            rates = [rate.selection_rate for one in found.decisions for rate in one.rates]
            assert all(0 <= rate <= 1 + 1e-6 for rate in rates), rates
        return
    if isinstance(model, Frontier):
        assert repr(model)
        model.view()
        with contextlib.suppress(DataError):  # as where no model is left
            model.select(max_unfairness=1.0)
        for one in model.models:
            if one is not None:
                use(one)
        return
    if isinstance(model, (TableModel, Pipeline)):
        rows: Any = {name: [None, None] for name in TABLE}
        count, classes = (
            2,
            getattr(model, "classes" if isinstance(model, TableModel) else "classes_", None),
        )
        if isinstance(model, TableModel):
            rows = {name: [None, None] for name in model.encoder.coders_}
    else:
        count, classes = 4, getattr(model, "classes_", None)
        rows = np.random.default_rng(0).normal(size=(count, model.n_features_in_)) * 3
    asked = {}
    if getattr(model, "needs_group", False):
        found = zip(model.crossed_.scheme.attributes, model.crossed_.seen[0], strict=True)
        asked["sensitive_features"] = {one.name: [one.groups[code]] * count for one, code in found}
    predicted = model.predict(rows, **asked)
    assert predicted.shape == (count,), predicted.shape
    if classes is not None and hasattr(model, "predict_proba"):
        probability = model.predict_proba(rows, **asked)
        assert probability.shape == (count, len(classes)), probability.shape
        known = ~np.isnan(probability).any(1)
        assert np.allclose(probability[known].sum(1), 1, atol=1e-4), probability
    if classes is not None:
        assert set(predicted.tolist()) <= set(np.asarray(classes).tolist()), predicted


LIGHTGBM = [
    "split_feature",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
]
LIGHTGBM += ["cat_boundaries", "cat_threshold"]
XGBOOST = [
    "left_children",
    "right_children",
    "split_indices",
    "split_conditions",
    "default_left",
    "parents",
]
XGBOOST += ["categories", "categories_nodes", "categories_segments", "categories_sizes"]


def check_trees(model: Any, path: Path) -> None:
    """The booster holds the very trees of the file: what was checked is what it read."""
    trees = from_bytes(path.read_bytes()).arrays["trees"].tobytes().decode()
    outputs = 1 if len(getattr(model, "classes_", ())) < 3 else len(model.classes_)
    asked = {"features": model.n_features_in_, "classes": outputs}
    if hasattr(model, "booster_"):
        found = [
            lightgbm_trees(text, **asked).trees
            for text in (trees, model.booster_.model_to_string(num_iteration=-1))
        ]
        names = LIGHTGBM
    else:
        held = bytes(model.get_booster().save_raw("json")).decode()
        boosters = [
            json.loads(xgboost_trees(text, **asked))["learner"]["gradient_booster"]
            for text in (trees, held)
        ]
        found = [booster.get("gbtree", booster)["model"]["trees"] for booster in boosters]
        names = XGBOOST
    for file, booster in zip(*found, strict=True):
        for name in names:
            ours, theirs = (
                np.asarray(tree.get(name, []), dtype=np.float64) for tree in (file, booster)
            )
            if names is XGBOOST:
                ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
            assert np.array_equal(ours, theirs, equal_nan=True), (name, ours, theirs)


def load_and_use(path: Path) -> None:
    """What must end in a ModelFileError, or well."""
    model = load(path)
    use(model)
    if hasattr(model, "_fit_booster"):
        check_trees(model, path)
        # names and categories may be others now: an error, but not a crash
        with contextlib.suppress(Exception):
            model.predict(FRAME)


def peak() -> int:
    """The most memory that the process has held, in bytes."""
    # ru_maxrss would include the process that started this one
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def main() -> None:
    """Forge, load and use, printing the number of each file before it is loaded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--kind")
    parser.add_argument("--without", action="append", default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path, honest = Path(folder, "file"), {}
        for name, model in models().items():
            save(model, path)
            honest[name] = from_bytes(path.read_bytes())
            load_and_use(path)
        path.unlink()
        swept(path)
        ledger = path.read_bytes()
        for fault in given.without:
            module, _, function = fault.partition(":")
            setattr(importlib.import_module(module), function, lambda *_, **__: None)
        with contextlib.suppress(OSError):
            # the peak of training is not that of loading
            Path("/proc/self/clear_refs").write_text("5")
        for content in honest.values():
            path.write_bytes(described(*content[1:], content.kind))
            use(load(path))
        path.write_bytes(ledger)
        use(swept(path))
        before = peak()
        addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (addresses + ROOM, addresses + ROOM))
        refused = 0
        kinds = [
            name
            for name in (*honest, "ledger")
            if given.kind is None or name.startswith(given.kind)
        ]
        for number in range(given.count):
            rng = random.Random(f"{given.seed} {number}")
            name = kinds[number % len(kinds)]
            if name == "ledger":
                path.write_bytes(ledger)
                forge_ledger(rng, path)
            else:
                path.write_bytes(forged(rng, honest[name], others=0.0 if given.without else 0.25))
            print(f"file {number} of seed {given.seed} ({name})", flush=True)
            signal.alarm(SECONDS)
            refused += was_refused(path, ledger=name == "ledger")
            signal.alarm(0)
            assert peak() - before < MEMORY, (
                f"{(peak() - before) >> 20} MiB more than honest files took"
            )
    print(
        json.dumps(
            {"forged": given.count, "refused": refused, "mebibytes": (peak() - before) >> 20}
        )
    )


def was_refused(path: Path, *, ledger: bool) -> bool:
    """False where the file was used."""
    try:
        if ledger:
            use(swept(path))
        else:
            load_and_use(path)
    except DataError as error:
        if not (ledger or isinstance(error, ModelFileError)):
            raise
        message = str(error)
        assert message.isprintable(), message
        assert len(message) < 2000, len(message)
        return True
    return False


if __name__ == "__main__":
    main()
