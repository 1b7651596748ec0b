"""
An audit on the command line
============================

``metrifair audit`` reads a file of scores and prints the gaps between groups. This program writes
such a file, runs the command, and draws what the terminal shows.
"""

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

generator = np.random.default_rng(0)
sex = generator.choice(["f", "m"], 2000)
score = generator.beta(4, 4, 2000) * 0.9 + 0.1 * (sex == "m")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "scores.csv")
    rows = [f"{value:.6f},{name}" for value, name in zip(score, sex, strict=True)]
    path.write_text("\n".join(["score,sex", *rows]))
    words = ["audit", path.name, "--score", "score", "--group", "sex"]
    shown = subprocess.run(
        [sys.executable, "-m", "metrifair", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

lines = [f"$ metrifair {' '.join(words)}"]
for line in shown.splitlines():
    sentence = line[:1].isalpha()
    lines += textwrap.wrap(line, 118) if sentence else [line.rstrip()]
width, height = 0.0755 * max(map(len, lines)) + 0.4, 0.16 * len(lines) + 0.4
figure = plt.figure(figsize=(width, height), facecolor="#f6f6f4")
figure.text(0.2 / width, 1 - 0.2 / height, "\n".join(lines), family="monospace", size=9, va="top")
plt.show()
