"""
Damaged files are refused
=========================

``load`` executes no code from a file and checks all of its bytes. This program changes one byte of
a model file at a time, at 400 places. Every changed file raises ``ModelFileError``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import metrifair
from metrifair.errors import ModelFileError

generator = np.random.default_rng(0)
group = generator.integers(2, size=500)
X = generator.normal(size=(500, 3)) + group[:, None]
y = (X.sum(1) + generator.normal(size=500) > 1.5).astype(int)
model = metrifair.FairClassifier().fit(X, y, sensitive_features=group)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.metrifair")
    model.save(path)
    original = path.read_bytes()
    places = np.linspace(0, len(original) - 1, 400).astype(int)
    refused = []
    for place in places:
        changed = bytearray(original)
        changed[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(changed)
        try:
            metrifair.load(path)
            refused.append(False)
        except ModelFileError:
            refused.append(True)

figure, axes = plt.subplots(figsize=(7.2, 2.4))
axes.scatter(
    places,
    np.zeros(400),
    c=np.where(refused, "#0072b2", "#d55e00"),
    marker="|",
    s=900,
    linewidths=0.7,
)
axes.set(
    xlabel=f"place of the changed byte in a file of {len(original):,} bytes",
    title=f"Refused: {sum(refused)} of {len(refused)} changed files",
    yticks=[],
)
axes.grid(visible=False)
plt.show()
