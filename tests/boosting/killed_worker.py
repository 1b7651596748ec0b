"""A worker of a Dask cluster is killed while XGBoost trains: `python -m
tests.boosting.killed_worker`.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from xgboost import collective
from xgboost.callback import TrainingCallback

from metrifair import FairXGBClassifier
from metrifair.errors import DataError
from tests import cluster
from tests.boosting.test_boosting_cluster import SETTINGS, A, X, Y, spread


def main() -> None:
    """Train with a worker that is killed, then with a parameter that XGBoost refuses."""

    class KilledAtThree(TrainingCallback):  # within a function, so that workers receive it by value
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if epoch == 3 and collective.get_rank() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    with cluster.two_workers(FairXGBClassifier.__module__, "xgboost.dask"):
        x, y, a = spread(X, Y, A)
        model = FairXGBClassifier(5.0, **SETTINGS, callbacks=[KilledAtThree()])
        with pytest.raises(
            DataError, match=r"1 of 2 workers of the Dask cluster stopped during training"
        ) as raised:
            model.fit(x, y, sensitive_features=a)
        assert "0x" not in str(raised.value)
        assert raised.value.__suppress_context__
        # a fault of the caller's keeps its own error
        model.set_params(callbacks=None, learning_rate=-1.0)
        with pytest.raises(ValueError, match=r"learning_rate|eta"):
            model.fit(x, y, sensitive_features=a)
        print("both errors are as they should be", flush=True)


if __name__ == "__main__":
    main()
