"""scikit-learn's checks: at strength 0 a fair booster passes every one that the plain booster
passes.
"""

from __future__ import annotations

import warnings
from typing import Any

import lightgbm
import pytest
import xgboost
from sklearn.utils.estimator_checks import check_estimator

from metrifair import FairLGBMClassifier, FairLGBMRegressor, FairXGBClassifier, FairXGBRegressor

pytestmark = pytest.mark.extended

LGBM: dict[str, Any] = {"n_estimators": 5, "n_jobs": 1, "verbose": -1}
XGB: dict[str, Any] = {"n_estimators": 5, "n_jobs": 1}
PLAIN = {
    FairLGBMClassifier: (lightgbm.LGBMClassifier, LGBM),
    FairLGBMRegressor: (lightgbm.LGBMRegressor, LGBM),
    FairXGBClassifier: (xgboost.XGBClassifier, XGB),
    FairXGBRegressor: (xgboost.XGBRegressor, XGB),
}


def passed(estimator: Any) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    return {result["check_name"] for result in results if result["status"] == "passed"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)
def test_every_check_that_the_plain_booster_passes(kind: Any) -> None:
    plain, settings = PLAIN[kind]
    theirs, ours = passed(plain(**settings)), passed(kind(0.0, **settings))
    assert len(theirs) > 30
    assert not theirs - ours
