"""What a user of `metrifair[train]` can do, run by `make test-install` and `make test-lowest`."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import metrifair
from metrifair import FairClassifier, FairRegressor, audit, frontier, load, unfairness
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty

BOOSTERS = {"FairLGBMClassifier", "FairLGBMRegressor", "FairXGBClassifier", "FairXGBRegressor"}
EXTRAS = ("pandas", "lightgbm", "xgboost", "matplotlib", "cvxpy", "pooch", "safetensors")


def main() -> None:
    """Train, measure, audit, choose, save and load; what needs an extra says which."""
    there = [name for name in EXTRAS if find_spec(name)]
    if there:
        raise SystemExit(f"this environment holds more than training: {there}")
    generator = np.random.default_rng(0)
    a = generator.integers(2, size=400)
    X = generator.normal(size=(400, 3)) + a[:, None]
    y = (X.sum(1) + generator.normal(size=400) > 1.5).astype(int)
    plain, fair = (
        FairClassifier(s, random_state=0, model="mlp").fit(X, y, sensitive_features=a)
        for s in (0.0, 10.0)
    )
    gaps = [unfairness(y, model.predict_proba(X), sensitive_features=a) for model in (plain, fair)]
    assert gaps[1] < gaps[0] / 2, gaps
    found = audit(y, fair.predict_proba(X), sensitive_features=a, random_state=0)
    assert found.worst(criterion="statistical_parity").value == gaps[1]
    front = frontier(
        FairClassifier(epochs=20, model="mlp"),
        X,
        y,
        sensitive_features=a,
        strengths=[0, 1, 10],
        random_state=0,
    )
    assert len(front.points) == 3
    sampler = StratifiedBatchSampler(a, batch_size=50, random_state=0)
    rows = next(iter(sampler))
    penalty = UnfairnessPenalty(sampler=sampler)(torch.rand(len(rows)), torch.as_tensor(a[rows]))
    assert torch.isfinite(penalty)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "line.model")
        line = FairRegressor(random_state=0, model="mlp").fit(X, X[:, 0], sensitive_features=a)
        line.save(path)
        assert (load(path).predict(X) == line.predict(X)).all()
        found.to_html(Path(folder, "audit.html"))
        assert Path(folder, "audit.html").stat().st_size > 10_000
    missing = {}
    for name in (*metrifair.__all__, "datasets.load"):
        try:
            metrifair.datasets.load("mortgage") if name == "datasets.load" else getattr(
                metrifair, name
            )
        except metrifair.errors.MissingExtra as error:
            missing[name] = str(error)
    assert "metrifair[" in missing.pop("datasets.load")
    assert set(missing) == BOOSTERS, missing
    assert all('pip install "metrifair[boosting]"' in told for told in missing.values()), missing
    print(f"metrifair {metrifair.__version__} trains with its extra alone")


if __name__ == "__main__":
    main()
