"""Real audits: of a model of mortgages, of hostile names, of a regression, of losses."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import audit, datasets
from metrifair.errors import MissingExtra
from tests.flat_options import flat

HOSTILE = "</script><img src=x onerror=alert(1)>"
FEW = {"resamples": 50, "permutations": 49, "random_state": 0}


def mortgage():
    """Real applications, by race, scored by a model that was trained on others."""
    try:
        data = datasets.load("mortgage")
    except MissingExtra as missing:
        pytest.skip(str(missing))
    train, test = data.split(0)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        data.X.iloc[train], data.y.iloc[train]
    )
    score = model.predict_proba(data.X.iloc[test])[:, 1]
    groups, labels = data.sensitive_features.iloc[test], data.y.iloc[test]
    return audit(labels, score, sensitive_features=groups, **flat(**FEW))


def hostile():
    draw = np.random.default_rng(0)
    groups = np.array([HOSTILE, "<!--", "plain"])[draw.integers(0, 3, 300)]
    return audit(
        None,
        draw.random(300),
        sensitive_features=groups,
        control_features=groups[::-1],
        **flat(**FEW),
    )


def incomes():
    """A regression whose scores have a unit, with weights and a group that is not known."""
    draw = np.random.default_rng(1)
    groups = np.array(["f", "m", None], dtype=object)[draw.choice(3, 500, p=[0.5, 0.4, 0.1])]
    score = 50_000 + 9_000 * draw.standard_normal(500) + 4_000 * (groups == "m")
    return audit(
        None,
        score,
        sensitive_features=groups,
        sample_weight=draw.random(500),
        threshold=50_000.0,
        **flat(**FEW),
    )


def losses():
    """Two criteria within one set, of which one compares losses."""
    draw = np.random.default_rng(2)
    groups = draw.choice(["a", "b"], 400)
    score = draw.random(400) ** np.where(groups == "a", 1.0, 2.0)
    truth = (draw.random(400) < score).astype(int)
    criteria = ["statistical_parity", "risk_parity"]
    return audit(
        truth,
        score,
        sensitive_features=groups,
        criteria=criteria,
        **flat(loss="squared_error", **FEW),
    )


AUDITS = {"mortgage": mortgage, "hostile": hostile, "incomes": incomes, "losses": losses}


@cache
def audited(name):
    return AUDITS[name]()
