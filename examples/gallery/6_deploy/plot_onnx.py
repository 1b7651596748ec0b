"""
The same scores from an ONNX graph
==================================

``to_onnx`` writes a fitted model as a graph. onnxruntime computes the same scores from it, up to
rounding, without metrifair and without PyTorch.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

from metrifair import FairClassifier

generator = np.random.default_rng(0)
group = generator.integers(2, size=1500)
X = generator.normal(size=(1500, 4)) + np.outer(group, [1.0, 0.5, 0, 0])
y = (X.sum(1) + generator.normal(size=1500) > 0.7).astype(int)
model = FairClassifier(model="mlp", random_state=0).fit(X, y, sensitive_features=group)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.onnx")
    model.to_onnx(path)
    session = onnxruntime.InferenceSession(path)
    outputs = session.run(None, {session.get_inputs()[0].name: X})

ours = model.predict_proba(X)[:, 1]
theirs = next(output for output in outputs if np.ndim(output) == 2)[:, 1]

figure, axes = plt.subplots(figsize=(5.6, 4.4))
axes.plot([0, 1], [0, 1], color="#5a5a63", linewidth=1)
axes.plot(ours, theirs, ".", alpha=0.4)
axes.set(
    xlabel="score of predict_proba",
    ylabel="score of onnxruntime",
    title=f"Largest difference: {np.abs(ours - theirs).max():.0e}",
)
plt.show()
