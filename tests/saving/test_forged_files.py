"""Forged files with a right hash: those that once brought the process down, and many that
nobody thought of.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from forging import described

from metrifair import FairClassifier, FairLGBMClassifier, FairXGBClassifier, load
from metrifair.errors import ModelFileError
from tests.expected_errors import Refusals
from tests.one_split import frontier
from tests.seams.auditing import read_parts
from tests.seams.saving import (
    Content,
    from_bytes,
    lightgbm_trees,
    make_content,
    write,
    xgboost_trees,
)

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

GENERATOR = np.random.default_rng(0)
A = GENERATOR.integers(2, size=200)
X = GENERATOR.normal(size=(200, 3)) + A[:, None]
Y = (X.sum(1) + GENERATOR.normal(size=200) > 1.5).astype(int)


@cache
def lightgbm_content() -> Content:
    model = FairLGBMClassifier(2.0, n_jobs=1, verbose=-1, n_estimators=3, num_leaves=5)
    return make_content(model.fit(X, Y, sensitive_features=A))


@cache
def xgboost_content() -> Content:
    return make_content(
        FairXGBClassifier(2.0, n_jobs=1, n_estimators=3, max_depth=3).fit(
            X, Y, sensitive_features=A
        )
    )


def refusal(path: Path, content: Content) -> str:
    path.write_bytes(described(content.meta, content.arrays, content.kind))
    with pytest.raises(ModelFileError) as caught:
        load(path)
    return str(caught.value)


def with_text(content: Content, text: str) -> Content:
    return content._replace(arrays={"trees": np.frombuffer(text.encode(), np.uint8)})


# LightGBM

TEXT = {
    "a carriage return before a feature": (
        r"shrinkage=(\S+)",
        r"shrinkage=\1\rsplit_feature=999999999",
    ),
    "a carriage return before a child": (r"shrinkage=(\S+)", r"shrinkage=\1\rleft_child=0 0 0 0"),
    "a bad tree and the good one after a blank line": (
        r"(Tree=0\n)((?:.+\n)+)",
        lambda found: found[1] + found[2].replace("left_child=1", "left_child=0") + "\n" + found[2],
    ),
    "a bad feature and the good ones after a blank line": (
        r"(Tree=0\n)((?:.+\n)+)",
        lambda found: (
            found[1]
            + re.sub(r"split_feature=\d", "split_feature=99999999", found[2])
            + "\n"
            + found[2]
        ),
    ),
    "an objective of many classes": (r"objective=.*", "objective=multiclass num_class:1000000"),
    "a carriage return before a number of classes": (
        r"num_class=1",
        "num_class=1\rnum_class=100000000",
    ),
    "a number of classes": (r"num_class=1", "num_class=100000000"),
    "a parameter": (
        r"pandas_categorical",
        "parameters:\n[valid1 ]\n\nend of parameters\n\npandas_categorical",
    ),
    "an unknown objective": (r"objective=.*", "objective=lambda"),
    "a slope of nothing": (r"sigmoid:1", "sigmoid:nan"),
    "a key twice": (r"(max_feature_idx=2)", r"\1\n\1"),
    "digits of another script": (r"split_feature=\d", "split_feature=٣"),
    "a kind of missing values": (r"decision_type=\d+", "decision_type=14"),
    "an endless leaf": (r"leaf_value=\S+", "leaf_value=inf"),
    "categories of nothing": (
        r"num_cat=0",
        "num_cat=0\ncat_boundaries=0 5\ncat_threshold=1 2 3 4 5",
    ),
    "categories of pandas": (r"pandas_categorical:null", 'pandas_categorical:[["a","a"]]'),
}


@pytest.mark.parametrize("case", TEXT)
def test_a_forged_text_of_lightgbm_is_refused(case: str, tmp_path: Path) -> None:
    content = lightgbm_content()
    text = content.arrays["trees"].tobytes().decode()
    changed = re.sub(*TEXT[case], text, count=1)
    assert changed != text
    refusal(tmp_path / "m", with_text(content, changed))


def test_parameters_of_lightgbm_are_read_over_but_must_be_what_it_writes(tmp_path: Path) -> None:
    content = lightgbm_content()
    text = content.arrays["trees"].tobytes().decode()
    parameters = text.replace(
        "\npandas_", "\nparameters:\n[valid: ]\n\nend of parameters\n\npandas_"
    )
    write(tmp_path / "m", with_text(content, parameters))
    load(tmp_path / "m")
    refusal(tmp_path / "m", with_text(content, parameters.replace("[valid: ]", "[valid1 ]")))


def test_a_file_holds_no_parameters_of_lightgbm() -> None:
    assert b"parameters" not in lightgbm_content().arrays["trees"].tobytes()


# XGBoost

MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
PARAM = ("learner", "learner_model_param")
JSON: dict[str, tuple[tuple[Any, ...], Any]] = {
    "a parent": ((*TREE, "parents", 1), 2_000_000_000),
    "a negative parent": ((*TREE, "parents", 1), -5),
    "a base score that is not a number": ((*PARAM, "base_score"), "[NaN]"),
    "a base score without bounds": ((*PARAM, "base_score"), "[1E39]"),
    "a base score beyond a probability": ((*PARAM, "base_score"), "[2E0]"),
    "many base scores": ((*PARAM, "base_score"), "[5E-1,5E-1,5E-1]"),
    "text as a base score": ((*PARAM, "base_score"), "high"),
    "a number of classes": ((*PARAM, "num_class"), "3"),
    "a huge number of classes": ((*PARAM, "num_class"), "1000000000"),
    "a best round": (("learner", "attributes", "best_iteration"), "99"),
    "a best round of words": (("learner", "attributes", "best_iteration"), "the last"),
    "an objective": (("learner", "objective", "name"), "survival:aft"),
    "an objective of several classes": (
        ("learner", "objective"),
        {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": "3"}},
    ),
    "a weight of positives": (
        ("learner", "objective", "reg_loss_param", "scale_pos_weight"),
        "heavy",
    ),
    "a version": (("version",), [10**9, 0, 0]),
    "a leaf without bounds": ((*TREE, "split_conditions", -1), float("inf")),
    "a field more": ((*TREE, "more"), 1),
}


@pytest.mark.parametrize("case", JSON)
def test_a_forged_json_of_xgboost_is_refused(case: str, tmp_path: Path) -> None:
    content = xgboost_content()
    model = json.loads(content.arrays["trees"].tobytes())
    (*path, last), value = JSON[case]
    node = model
    for step in path:
        node = node[step]
    node[last] = value
    refusal(tmp_path / "m", with_text(content, json.dumps(model)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("verbosity", 9),
        ("verbosity", "loud"),
        ("missing", "gone"),
        ("n_jobs", "many"),
        ("objective", "multi:softmax"),
        ("booster", "gblinear"),
        ("num_class", 10**8),
        ("callbacks", ["print"]),
    ],
)
def test_parameters_with_which_nothing_can_be_predicted_are_refused(
    name: str, value: Any, tmp_path: Path
) -> None:
    """And are not set for the other models of the process."""
    content, before = xgboost_content(), xgboost.get_config()
    meta = content.meta | {"parameters": content.meta["parameters"] | {name: value}}
    refusal(tmp_path / "m", content._replace(meta=meta))
    assert xgboost.get_config() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_class", 10**8),
        ("num_leaves", -1),
        ("machines", "127.0.0.1:9"),
        ("predict_disable_shape_check", True),
        ("forcedsplits_filename", "/etc/passwd"),
        ("metric", "auc\nnum_threads=9"),
        ("max_depth", 2**40),
    ],
)
def test_parameters_that_reach_beyond_the_model_are_refused(
    name: str, value: Any, tmp_path: Path
) -> None:
    content = lightgbm_content()
    meta = content.meta | {"parameters": content.meta["parameters"] | {name: value}}
    refusal(tmp_path / "m", content._replace(meta=meta))


def test_more_threads_than_processors_are_not_believed(tmp_path: Path) -> None:
    content = lightgbm_content()
    meta = content.meta | {"parameters": content.meta["parameters"] | {"n_jobs": 10**6}}
    (tmp_path / "m").write_bytes(described(meta, content.arrays, content.kind))
    assert load(tmp_path / "m").n_jobs == os.cpu_count()


# Frontiers


@cache
def frontier_content() -> Content:
    front = frontier(
        FairClassifier(epochs=2, hidden=(4,), model="mlp"),
        X,
        Y,
        sensitive_features=A,
        strengths=[0, 1],
        random_state=0,
    )
    path = Path(os.environ.get("TMPDIR", "/tmp"), f"metrifair-test-{os.getpid()}.front")
    try:
        front.save(path)
        return from_bytes(path.read_bytes())
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("outcomes", 0, "value"), 10**400, "takes more than 64 bits"),
        (("outcomes", 0, "point", "unfairness"), "none", "Expected `float`, got `str`"),
        (("outcomes", 0, "point", "intervals", "unfairness"), 3, "Expected `object`, got `int`"),
        (("outcomes", 0, "point", "more", "auc"), [], "Expected `float`, got `array`"),
        (("outcomes", 0, "point"), None, "Expected `object`, got `null`"),
        (("outcomes", 0, "resembles_folds"), 1, "Expected `bool`, got `int`"),
        (("outcomes", 0, "tested"), "good", "got `str`"),
        (("outcomes", 0, "seed"), 0.5, "Expected `int`, got `float`"),
        (("outcomes", 0, "curves", "grid"), [0.0], "its curves do not match their grid"),
        (("outcomes", 0, "curves", "density", "1"), "high", "Expected `array`, got `str`"),
        (("outcomes", 0, "model", "kind"), "Oracle", "a model of the kind 'Oracle'"),
        (
            ("outcomes", 0, "point", "unfairness"),
            -1e300,
            "an unfairness or accuracy is outside of its range",
        ),
        (
            ("outcomes", 0, "tested", "decision_unfairness"),
            1.5,
            "an unfairness or accuracy is outside",
        ),
        (
            ("record", "constant", "accuracy"),
            1e300,
            "an unfairness or accuracy is outside of its range",
        ),
        (("outcomes",), {}, "Expected `array`, got `object`"),
        (
            (
                "record",
                "groups",
            ),
            [1, 2],
            "Expected `str`, got `int`",
        ),
        (("record", "sizes", "0"), -1, "Expected `int` >= 0"),
        (
            (
                "record",
                "notes",
            ),
            "note",
            "Expected `array`, got `str`",
        ),
        (("record", "notes", 0), ["cross_validation", {"rows": 3}], "note 'cross_validation'"),
        (("record", "notes", 0), ["luck", {}], "note 'luck'"),
        (("record", "notes", 0), ["chance", {"unfairness": "high"}], "note 'chance'"),
        (
            (
                "record",
                "unfairness_of",
            ),
            "luck",
            "Invalid enum value 'luck'",
        ),
        (
            (
                "record",
                "accuracy_name",
            ),
            "luck",
            "Invalid enum value 'luck'",
        ),
        (
            (
                "record",
                "noise",
            ),
            "low",
            "got `str`",
        ),
        (
            (
                "record",
                "chosen",
            ),
            {"strength": 1},
            "missing required field",
        ),
        (
            (
                "record",
                "goal",
            ),
            [],
            "got `array`",
        ),
        (("utility",), "auc", "Expected `object`, got `str`"),
        (("utility", "larger_is_better"), "yes", "Expected `bool`, got `str`"),
        (("utility", "measure"), "os.system", "unknown field `measure`"),
        (("record", "constant", "accuracy"), [], "Expected `float`, got `array`"),
        (
            (
                "record",
                "constant_value",
            ),
            [7],
            "got `array`",
        ),
        (
            (
                "record",
                "folds",
            ),
            -1,
            "Expected `int` >= 0",
        ),
        (
            (
                "record",
                "goal",
            ),
            {"best_effort": "surely"},
            "Expected `bool`, got `str`",
        ),
        (
            (
                "record",
                "is_best_effort",
            ),
            "no",
            "Expected `bool`, got `str`",
        ),
        (("choice",), [], "got `array`"),
        (("choice", "rows"), 0, "Expected `int` >= 1"),
        (("choice", "noise"), -0.1, "Expected `float` >= 0"),
        (("choice", "outcomes"), [0, 0], "its configurations are not distinct"),
        (("choice", "outcomes"), [0, 7], "a configuration to choose has no figures"),
        (("choice", "simplicity"), [0, 2], "its configurations are not distinct"),
        (("choice", "tier"), [0], "its configurations do not have one tier each"),
        (("outcomes", 0, "point", "failed"), True, "a configuration to choose has no figures"),
        (
            (
                "record",
                "unmet",
            ),
            {"max_unfairness": 5.0},
            "at most 1",
        ),
        (("outcomes", 0, "point", "marks", "auc"), 3, "got `int`"),
        (("outcomes", 0, "point", "errors"), [], "Expected `object`, got `array`"),
        (("outcomes", 0, "training"), "none", "unknown field `training`"),
    ],
)
def test_a_forged_frontier_is_refused(
    place: tuple[Any, ...], value: Any, said: str, tmp_path: Path
) -> None:
    content = frontier_content()
    meta = copy.deepcopy(content.meta)
    node: Any = meta
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = value
    assert said in refusal(tmp_path / "m", content._replace(meta=meta))


def test_a_frontier_by_a_figure_that_no_model_has_is_shown(tmp_path: Path) -> None:
    """A file may name any utility, and figures that are not finite are none: it is shown, and
    chosen from.
    """
    content = frontier_content()
    luck = {"name": "luck", "larger_is_better": False}
    (tmp_path / "m").write_bytes(
        described(content.meta | {"utility": luck}, content.arrays, content.kind)
    )
    front = load(tmp_path / "m")
    assert repr(front)
    front.view()
    assert front.select(max_unfairness=1.0, best_effort=True) in front.models


NAMES = ["gap", "gap/drawn", "gap/left_out", "gap/training_errors"]
NAMES += [f"{name}{end}" for name in ("utility", "accuracy") for end in ("", "/drawn", "/left_out")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["missing", "shorter", "nan", "infinite", "integers"])
def test_forged_figures_of_a_choice_are_refused(name: str, way: str, tmp_path: Path) -> None:
    content = frontier_content()
    arrays = dict(content.arrays)
    array = arrays.pop(f"choice/{name}")
    if way != "missing":
        changed = array.copy()
        if way in ("nan", "infinite"):
            changed.flat[0] = np.nan if way == "nan" else np.inf
        changed = changed[..., :-1] if way == "shorter" else changed
        changed = changed.astype(np.int64) if way == "integers" else changed
        arrays[f"choice/{name}"] = np.ascontiguousarray(changed)
    assert refusal(tmp_path / "m", content._replace(arrays=arrays))


def test_more_figures_of_a_choice_and_squares_above_1_are_refused(
    tmp_path: Path, refused: Refusals
) -> None:
    content = frontier_content()
    more = content.arrays | {"choice/luck": np.zeros(2)}
    refused.said(refusal(tmp_path / "m", content._replace(arrays=more)))
    large = content.arrays | {"choice/gap": content.arrays["choice/gap"] + 2}
    assert "outside of their range" in refusal(tmp_path / "m", content._replace(arrays=large))


# Any other forgery


def forge(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.saving.forge", *map(str, arguments)]
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=root,
        timeout=3600,
    )


def assert_survived(done: subprocess.CompletedProcess[str], count: int) -> None:
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-2000:])
    # XGBoost may speak last, if a file asks it to
    (told,) = [line for line in lines if line.startswith("{")]
    found = json.loads(told)
    assert found["forged"] == count
    # a quarter is another model's, and is used
    assert count // 10 < count - found["refused"] < count // 2


@pytest.mark.extended
def test_a_thousand_forged_files_are_refused_or_predict() -> None:
    assert_survived(forge(0, 1000), 1000)


@pytest.mark.slow(rotate=False)  # together they take half an hour
@pytest.mark.parametrize("seed", range(1, 21))
def test_twenty_thousand_forged_files_are_refused_or_predict(seed: int) -> None:
    assert_survived(forge(seed, 1000), 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("lightgbm", f"{lightgbm_trees.__module__}:_check_shape"),
        ("xgboost", f"{xgboost_trees.__module__}:_check_tree"),
        ("state", f"{read_parts.__module__}:_check_cells"),
    ],
)
def test_the_forger_finds_a_check_that_is_missing(kind: str, check: str) -> None:
    assert forge(0, 600, "--kind", kind, "--without", check).returncode != 0
