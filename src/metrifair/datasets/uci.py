"""Data sets of the UCI Machine Learning Repository: Adult (who earns more than 50,000 dollars a year, by sex),
Communities and Crime (violent crime, by the share of Black residents), Drug consumption (who has never used a drug, by
ethnicity) and Student performance (the final grade in mathematics or Portuguese, by sex)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import numpy as np

from metrifair.datasets.dataset import Dataset, Task
from metrifair.datasets.fetch import RawFile, Read
from metrifair.support.checks import check_known, check_switches

if TYPE_CHECKING:
    import pandas as pd


ADULT = """\
Adult: 48,842 people of the United States census of 1994, 32,561 for training and 16,281 for testing as prescribed.
The label says whether the person earns more than 50,000 dollars a year; the groups are women and men.
Source: https://archive.ics.uci.edu/dataset/2/adult (UCI 2, DOI 10.24432/C5XW20)
Citation: B. Becker, R. Kohavi (1996). Adult. UCI Machine Learning Repository.
License: CC BY 4.0"""

_ADULT_FOLDER = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
ADULT_TRAIN = RawFile(
    name="adult.data",
    size=3_974_305,
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    url=f"{_ADULT_FOLDER}/adult.data",
)
ADULT_TEST = RawFile(
    name="adult.test",
    size=2_003_153,
    sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    url=f"{_ADULT_FOLDER}/adult.test",
)

_ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
]  # fmt: skip
_ADULT_NOT_FEATURES = ["fnlwgt", "education", "income"]
_CATEGORIES = ["workclass", "marital-status", "occupation", "relationship", "race", "native-country"]
_RELATIONSHIPS = ["Not-in-family", "Unmarried", "Other-relative", "Own-child", "Husband", "Wife"]


def load_adult(
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
        pd.read_csv(io.BytesIO(read(raw)), header=None, names=_ADULT_COLUMNS, skipinitialspace=True, skiprows=skip)
        for raw, skip in ((ADULT_TRAIN, 0), (ADULT_TEST, 1))
    ]
    if drop_missing:
        parts = [part[(part[_CATEGORIES] != "?").all(axis="columns")] for part in parts]
    table = pd.concat(parts, ignore_index=True)
    group = (table["sex"] == "Male").astype("int64").rename("sex")
    table["sex"] = group
    table["over_50K"] = table["income"].str.startswith(">50K").astype("int64")
    features = table.drop(columns=[*_ADULT_NOT_FEATURES, "over_50K"] + ([] if include_protected else ["sex"]))
    levels = {name: sorted(table[name].unique()) for name in _CATEGORIES}  # "?" sorts before every letter
    levels["relationship"] = _RELATIONSHIPS
    return Dataset(
        X=_coded(features, levels) if encoding == "codes" else _one_hot(features, levels),
        y=table["over_50K"],
        group_codes=group,
        task="classification",
        names=("women", "men"),
        description=ADULT,
        prescribed=len(parts[0]),
    )


def _coded(features: pd.DataFrame, levels: dict[str, list[str]]) -> pd.DataFrame:
    """The place of each category among its column's levels."""
    places = {name: dict(zip(own, range(len(own)), strict=True)) for name, own in levels.items()}
    return features.assign(**{name: features[name].map(own) for name, own in places.items()}).astype("float64")


def _one_hot(features: pd.DataFrame, levels: dict[str, list[str]]) -> pd.DataFrame:
    """One 0/1 column for each of these levels, in place of their columns."""
    import pandas as pd  # noqa: PLC0415  (an extra)

    columns: dict[str, pd.Series] = {}
    for name in features.columns:
        if name in levels:
            columns |= {f"{name}_{level}": features[name] == level for level in levels[name]}
        else:
            columns[name] = features[name]
    return pd.DataFrame(columns).astype("float64")


COMMUNITIES = """\
Communities and Crime: 1,994 communities of the United States, with figures of the 1990 census, all scaled to [0, 1]
by the source. The target is the number of violent crimes per person (scaled as well), or whether it is above its
mean; the groups are the communities with at most and with more than the median share of Black residents.
Source: https://archive.ics.uci.edu/dataset/183/communities+and+crime (UCI 183, DOI 10.24432/C53W3X)
Citation: M. Redmond (2009). Communities and Crime. UCI Machine Learning Repository.
M. Redmond, A. Baveja (2002). A data-driven software tool for enabling cooperative information sharing among police
departments. European Journal of Operational Research 141, 660-678.
License: CC BY 4.0"""

COMMUNITIES_DATA = RawFile(
    name="communities.data",
    size=1_102_815,
    sha256="09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data",
)
COMMUNITIES_NAMES = RawFile(
    name="communities.names",
    size=27_701,
    sha256="f71e9049d2a8efe566e41be59cae27c84282a8d9d5c4bce4861490227f42c429",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.names",
)

_CRIME = "ViolentCrimesPerPop"
_SHARE = "racepctblack"
_CRIME_NOT_FEATURES = ["state", "communityname", "fold", _CRIME, _SHARE]
_ABOVE = "racepctblack_above_median"


def load_communities(read: Read, *, task: Task = "classification", include_protected: bool | None = None) -> Dataset:
    """The communities as a classification or regression task.

    Parameters
    ----------
    task
        ``"regression"``: the crime rate. ``"classification"``: whether it is above its mean.
    include_protected
        Whether the group is the last column of X. None does as the published runs did: 99 columns with it in
        classification, 98 without it in regression.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("task", task, ["classification", "regression"])
    if include_protected is None:
        include_protected = task == "classification"
    check_switches(include_protected=include_protected)
    # the raw columns have no header: their names stand in the description file, one "@attribute NAME type" each
    lines = read(COMMUNITIES_NAMES).decode("utf-8", errors="replace").splitlines()
    columns = [line.split()[1] for line in lines if line.startswith("@attribute")]
    table = pd.read_csv(io.BytesIO(read(COMMUNITIES_DATA)), header=None, names=columns, na_values="?")
    group = (table[_SHARE] > table[_SHARE].median()).astype("int64").rename(_ABOVE)
    X = table.drop(columns=_CRIME_NOT_FEATURES).dropna(axis="columns").astype("float64")
    if include_protected:
        X[_ABOVE] = group.astype("float64")
    crime = table[_CRIME].astype("float64")
    high = (crime > crime.mean()).astype("int64").rename(f"{_CRIME}_above_mean")
    return Dataset(
        X=X,
        y=high if task == "classification" else crime,
        group_codes=group,
        task=task,
        names=("at most the median share of Black residents", "more than the median share of Black residents"),
        description=COMMUNITIES,
        number=table[_SHARE].astype("float64"),
    )


DRUG = """\
Drug consumption (quantified): 1,885 answers to a survey, with personality scores, age, gender, education and country.
The label says whether the person has never used the drug (heroin, or cannabis); the groups are White respondents
and all others.
Source: https://archive.ics.uci.edu/dataset/373/drug+consumption+quantified (UCI 373, DOI 10.24432/C5TC7S)
Citation: E. Fehrman, V. Egan, E. Mirkes (2015). Drug Consumption (Quantified). UCI Machine Learning Repository.
E. Fehrman, A. K. Muhammad, E. M. Mirkes, V. Egan, A. N. Gorban (2017). The five factor model of personality and
evaluation of drug consumption risk. In: Data Science, Springer, 231-242.
License: CC BY 4.0"""

DRUG_DATA = RawFile(
    name="drug_consumption.data",
    size=346_695,
    sha256="90b8cf500b07ad455baf9fe1dc519998c75a1df6d87f6bd7069176f0826ea8c1",
    url="https://archive.ics.uci.edu/static/public/373/drug+consumption+quantified.zip",
    member=("drug_consumption.data",),
)

# positions in the raw file, which has no header
_ANSWERS = {"Age": 1, "Gender": 2, "Education": 3, "Country": 4, "Nscore": 6, "Escore": 7, "Oscore": 8}
_ANSWERS |= {"Ascore": 9, "Cscore": 10, "Impulsive": 11, "SS": 12}
_ETHNICITY = 5
_DRUGS = {"heroin": 23, "cannabis": 18}
_WHITE = -0.31685
_NEVER_USED = "CL0"


def load_drug(
    read: Read, *, target: Literal["heroin", "cannabis"] = "heroin", include_protected: bool = True
) -> Dataset:
    """The survey as a classification task.

    Parameters
    ----------
    target
        The drug in question. The paper's text says heroin; its published figure and tables come from
        ``"cannabis"``.
    include_protected
        Whether the group is the last column of X, as in the published runs (12 columns instead of 11).
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("target", target, _DRUGS)
    check_switches(include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(DRUG_DATA)), header=None)
    # the code is a rounded number, so it is compared as one
    group = pd.Series(np.isclose(table[_ETHNICITY], _WHITE).astype("int64"), name="ethnicity")
    X = pd.DataFrame({name: table[column] for name, column in _ANSWERS.items()}).astype("float64")
    if include_protected:
        X["ethnicity"] = group.astype("float64")
    return Dataset(
        X=X,
        y=(table[_DRUGS[target]] == _NEVER_USED).astype("int64").rename(f"never_used_{target}"),
        group_codes=group,
        task="classification",
        names=("other ethnicities", "White"),
        description=DRUG,
    )


STUDENT = """\
Student performance: pupils of two Portuguese secondary schools, 395 in mathematics and 649 in Portuguese, with their
family, habits and earlier grades. The target is the final grade, 0 to 20; the groups are men and women.
Source: https://archive.ics.uci.edu/dataset/320/student+performance (UCI 320, DOI 10.24432/C5TG7T)
Citation: P. Cortez, A. Silva (2008). Using data mining to predict secondary school student performance. Proc. 5th
FUBUTEC, 5-12. P. Cortez (2008). Student Performance. UCI Machine Learning Repository.
License: CC BY 4.0"""

_STUDENT_ARCHIVE = "https://archive.ics.uci.edu/static/public/320/student+performance.zip"
STUDENT_MATH = RawFile(
    name="student-mat.csv",
    size=56_993,
    sha256="e47f9ee225e1ee6e69b7564e6dac7123e80b8486677fe111f351964cef5dec80",
    url=_STUDENT_ARCHIVE,
    member=("student.zip", "student-mat.csv"),
)
STUDENT_PORTUGUESE = RawFile(
    name="student-por.csv",
    size=93_220,
    sha256="a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",
    url=_STUDENT_ARCHIVE,
    member=("student.zip", "student-por.csv"),
)


def load_student(
    raw: RawFile, read: Read, *, drop_previous_grades: bool = False, include_protected: bool = False
) -> Dataset:
    """The grades in mathematics or Portuguese, by the raw file, as a regression task.

    Parameters
    ----------
    drop_previous_grades
        Whether ``G1`` and ``G2``, the grades of the two earlier periods, are left out: a harder task, not in the paper.
    include_protected
        Whether the group is the last column of X: 41 columns instead of the 40 of the published runs.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415  (an extra)

    check_switches(drop_previous_grades=drop_previous_grades, include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(raw)), sep=";")
    group = (table["sex"] == "F").astype("int64").rename("sex")
    left_out = ["sex", "G3"] + (["G1", "G2"] if drop_previous_grades else [])
    features = table.drop(columns=left_out)
    # strings have dtype str from pandas 3 on and object before; "not numeric" holds for both
    numeric = [name for name in features.columns if is_numeric_dtype(features[name])]
    # the last level follows from the others
    levels = {name: sorted(features[name].unique())[:-1] for name in features.columns.drop(numeric)}
    X = _one_hot(features[[*numeric, *levels]], levels)
    if include_protected:
        X["sex"] = group.astype("float64")
    return Dataset(
        X=X,
        y=table["G3"].astype("float64"),
        group_codes=group,
        task="regression",
        names=("men", "women"),
        description=STUDENT,
    )
