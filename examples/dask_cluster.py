"""A frontier, and XGBoost on rows spread over workers, on a Dask cluster: python
examples/dask_cluster.py

Client() starts workers on this machine; Client("scheduler:8786") takes those of a cluster.
"""

import dask.array as da
import joblib
import numpy as np
from dask.distributed import Client

from metrifair import FairXGBClassifier, frontier, unfairness

if __name__ == "__main__":  # workers are processes, which load this file
    generator = np.random.default_rng(0)
    groups = generator.integers(2, size=4_000)
    X = generator.normal(size=(4_000, 4)) + 0.6 * groups[:, None]
    y = (X.sum(1) + generator.normal(size=4_000) > 1.2).astype(int)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        booster = FairXGBClassifier(n_estimators=20, n_jobs=1)
        with joblib.parallel_config("dask"):  # models are spread, each with all rows
            front = frontier(
                booster, X, y, sensitive_features=groups, strengths=[0, 1, 5], random_state=0
            )
        print(
            f"{len(front.points)} models; unfairness "
            f"{[round(point.unfairness, 2) for point in front.points]}"
        )

        rows, labels, members = (
            da.from_array(table, chunks=(1_000, -1)[: table.ndim]) for table in (X, y, groups)
        )
        model = FairXGBClassifier(expected_groups=False, n_estimators=20)
        model.fit(rows, labels, sensitive_features=members)  # rows are spread
        score = model.predict_proba(rows)[:, 1].compute()
    print(f"rows spread: unfairness {unfairness(y, score, sensitive_features=groups):.2f}")
