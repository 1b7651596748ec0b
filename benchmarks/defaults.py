"""How good the default settings are: without a penalty against scikit-learn, and along the
strengths; on real data.
"""

from __future__ import annotations

import sys
from statistics import mean

import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import DataError, FairClassifier, FairRegressor, datasets, unfairness

SETS = (
    ("drug", {"target": "cannabis"}),
    ("communities", {}),
    ("compas", {}),
    ("mortgage", {}),
    ("adult", {}),
    ("communities", {"task": "regression"}),
    ("student-math", {}),
    ("student-portuguese", {}),
)
STRENGTHS = (0.0, 0.1, 1.0, 10.0, 100.0)


def peers(task: str) -> dict[str, object]:
    if task == "regression":
        network = MLPRegressor(
            hidden_layer_sizes=(16,), max_iter=1_000, early_stopping=True, random_state=0
        )
        return {"linear": LinearRegression(), "mlp": network}
    network = MLPClassifier(
        hidden_layer_sizes=(16,), max_iter=300, early_stopping=True, random_state=0
    )
    return {"linear": LogisticRegression(max_iter=2_000), "mlp": network}


def report(name: str, options: dict[str, str], seeds: range) -> None:
    data = datasets.load(name, **options)
    X, y, a = data.X.to_numpy(), data.y.to_numpy(), data.group_codes.to_numpy()
    regression = data.task == "regression"
    ours = FairRegressor if regression else FairClassifier
    splits = [data.split(seed) for seed in (seeds if name != "adult" else range(1))]
    for model, peer in peers(data.task).items():
        pipeline = make_pipeline(StandardScaler(), peer)
        theirs = mean(
            pipeline.fit(X[train], y[train]).score(X[test], y[test]) for train, test in splits
        )
        figures = []
        for strength in STRENGTHS:
            accuracy, gap = [], []
            for train, test in splits:
                fair = ours(strength, model=model, random_state=0).fit(
                    X[train], y[train], sensitive_features=a[train]
                )
                score = fair.predict(X[test]) if regression else fair.predict_proba(X[test])[:, 1]
                accuracy.append(fair.score(X[test], y[test]))
                gap.append(unfairness(y[test], score, sensitive_features=a[test]))
            figures.append(f"{mean(accuracy):.3f} / {mean(gap):.3f}")
        label = f"{name}{' (regression)' if regression and name == 'communities' else ''}, {model}"
        print(f"| {label} | {theirs:.3f} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    print(
        "\nDefaults on test data: accuracy (or R2) / Kolmogorov distance of the scores, mean over "
        "splits 100 to 103"
    )
    print(
        "| data, model | scikit-learn | "
        f"{' | '.join(f'strength {value:g}' for value in STRENGTHS)} |"
    )
    print(f"|---|---|{'---|' * len(STRENGTHS)}")
    for name, options in SETS:
        try:
            report(name, options, range(100, 104))
        except DataError as error:
            print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
