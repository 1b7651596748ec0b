"""Student performance: the final grade in mathematics or Portuguese, by sex."""

from __future__ import annotations

import io

from metrifair.checks import check_switches
from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import RawFile, Read

DESCRIPTION = """\
Student performance: pupils of two Portuguese secondary schools, 395 in mathematics and 649 in Portuguese, with their
family, habits and earlier grades. The target is the final grade, 0 to 20; the groups are men and women.
Source: https://archive.ics.uci.edu/dataset/320/student+performance (UCI 320, DOI 10.24432/C5TG7T)
Citation: P. Cortez, A. Silva (2008). Using data mining to predict secondary school student performance. Proc. 5th
FUBUTEC, 5-12. P. Cortez (2008). Student Performance. UCI Machine Learning Repository.
Licence: CC BY 4.0"""

_ARCHIVE = "https://archive.ics.uci.edu/static/public/320/student+performance.zip"
RAW_MATH = RawFile(
    name="student-mat.csv",
    size=56_993,
    sha256="e47f9ee225e1ee6e69b7564e6dac7123e80b8486677fe111f351964cef5dec80",
    url=_ARCHIVE,
    member=("student.zip", "student-mat.csv"),
)
RAW_PORTUGUESE = RawFile(
    name="student-por.csv",
    size=93_220,
    sha256="a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",
    url=_ARCHIVE,
    member=("student.zip", "student-por.csv"),
)


def load_math(read: Read, *, drop_previous_grades: bool = False, include_protected: bool = False) -> Dataset:
    """The grades in mathematics as a regression task; parameters as in `load_portuguese`."""
    return _load(read, RAW_MATH, drop_previous_grades=drop_previous_grades, include_protected=include_protected)


def load_portuguese(read: Read, *, drop_previous_grades: bool = False, include_protected: bool = False) -> Dataset:
    """The grades in Portuguese as a regression task.

    Parameters
    ----------
    drop_previous_grades
        Whether ``G1`` and ``G2``, the grades of the two earlier periods, are left out: a harder task, not in the paper.
    include_protected
        Whether the group is the last column of X: 41 columns instead of the 40 of the published runs.
    """
    return _load(read, RAW_PORTUGUESE, drop_previous_grades=drop_previous_grades, include_protected=include_protected)


def _load(read: Read, raw: RawFile, *, drop_previous_grades: bool, include_protected: bool) -> Dataset:
    import pandas as pd  # noqa: PLC0415  (an extra)
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415  (an extra)

    check_switches(drop_previous_grades=drop_previous_grades, include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(raw)), sep=";")
    group = (table["sex"] == "F").astype("int64").rename("sex")
    left_out = ["sex", "G3"] + (["G1", "G2"] if drop_previous_grades else [])
    features = table.drop(columns=left_out)
    # strings have dtype str from pandas 3 on and object before; "not numeric" holds for both
    numeric = [name for name in features.columns if is_numeric_dtype(features[name])]
    columns = {name: features[name] for name in numeric}
    for name in features.columns.drop(numeric):
        # the last level follows from the others
        columns |= {f"{name}_{level}": features[name] == level for level in sorted(features[name].unique())[:-1]}
    if include_protected:
        columns["sex"] = group
    return Dataset(
        X=pd.DataFrame(columns).astype("float64"),
        y=table["G3"].astype("float64"),
        group_codes=group,
        task="regression",
        names=("men", "women"),
        description=DESCRIPTION,
    )
