"""Adult: who earns more than 50,000 dollars a year, by sex."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

from metrifair.checks import check_known, check_switches
from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import RawFile, Read

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION = """\
Adult: 48,842 people of the United States census of 1994, 32,561 for training and 16,281 for testing as prescribed.
The label says whether the person earns more than 50,000 dollars a year; the groups are women and men.
Source: https://archive.ics.uci.edu/dataset/2/adult (UCI 2, DOI 10.24432/C5XW20)
Citation: B. Becker, R. Kohavi (1996). Adult. UCI Machine Learning Repository.
Licence: CC BY 4.0"""

_FOLDER = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
TRAIN = RawFile(
    name="adult.data",
    size=3_974_305,
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    url=f"{_FOLDER}/adult.data",
)
TEST = RawFile(
    name="adult.test",
    size=2_003_153,
    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    url=f"{_FOLDER}/adult.test",
)

_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
]  # fmt: skip
_NOT_FEATURES = ["fnlwgt", "education", "income"]
_CATEGORIES = ["workclass", "marital-status", "occupation", "relationship", "race", "native-country"]
_RELATIONSHIPS = ["Not-in-family", "Unmarried", "Other-relative", "Own-child", "Husband", "Wife"]
_MISSING = "?"


def load(
    read: Read,
    *,
    encoding: Literal["codes", "onehot"] = "codes",
    drop_missing: bool = False,
    include_protected: bool = True,
) -> Dataset:
    """The census as a classification task: the training rows, then the test rows.

    Parameters
    ----------
    encoding
        ``"codes"``: one integer per category in alphabetical order (``relationship``: the order of the reference
        code), 12 columns, the published runs. ``"onehot"``: one 0/1 column per level, 90 columns; better for linear
        models. Levels are those of the loaded rows, training and test together.
    drop_missing
        Whether rows with a missing value are left out, 45,222 rows stay. Otherwise ``?`` is a level of its own, as in
        the published runs.
    include_protected
        Whether ``sex`` (1 = male) is a column of X, in its own place.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("encoding", encoding, ["codes", "onehot"])
    check_switches(drop_missing=drop_missing, include_protected=include_protected)
    parts = [  # the test file has a line of its own on top; a comma and a blank separate the fields
        pd.read_csv(io.BytesIO(read(raw)), header=None, names=_COLUMNS, skipinitialspace=True, skiprows=skip)
        for raw, skip in ((TRAIN, 0), (TEST, 1))
    ]
    if drop_missing:
        parts = [part[(part[_CATEGORIES] != _MISSING).all(axis="columns")] for part in parts]
    table = pd.concat(parts, ignore_index=True)
    group = (table["sex"] == "Male").astype("int64").rename("sex")
    table["sex"] = group
    table["over_50K"] = table["income"].str.startswith(">50K").astype("int64")
    features = table.drop(columns=[*_NOT_FEATURES, "over_50K"] + ([] if include_protected else ["sex"]))
    return Dataset(
        X=_coded(features) if encoding == "codes" else _one_hot(features),
        y=table["over_50K"],
        group_codes=group,
        task="classification",
        names=("women", "men"),
        description=DESCRIPTION,
        prescribed=len(parts[0]),
    )


def _levels(column: pd.Series) -> list[str]:
    """Categories in the order of their codes; "?" sorts before every letter."""
    return _RELATIONSHIPS if column.name == "relationship" else sorted(column.unique())


def _coded(features: pd.DataFrame) -> pd.DataFrame:
    codes = {
        name: features[name].map({level: code for code, level in enumerate(_levels(features[name]))})
        for name in _CATEGORIES
    }
    return features.assign(**codes).astype("float64")


def _one_hot(features: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  (an extra)

    columns: dict[str, pd.Series] = {}
    for name in features.columns:
        if name in _CATEGORIES:
            columns |= {f"{name}_{level}": features[name] == level for level in _levels(features[name])}
        else:
            columns[name] = features[name]
    return pd.DataFrame(columns).astype("float64")
