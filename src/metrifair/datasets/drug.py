"""Drug consumption: who has never used a drug, by ethnicity."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np

from metrifair.checks import check_known, check_switches
from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import RawFile, Read

DESCRIPTION = """\
Drug consumption (quantified): 1,885 answers to a survey, with personality scores, age, gender, education and country.
The label says whether the person has never used the drug (heroin, or cannabis); the groups are White respondents
and all others.
Source: https://archive.ics.uci.edu/dataset/373/drug+consumption+quantified (UCI 373, DOI 10.24432/C5TC7S)
Citation: E. Fehrman, V. Egan, E. Mirkes (2015). Drug Consumption (Quantified). UCI Machine Learning Repository.
E. Fehrman, A. K. Muhammad, E. M. Mirkes, V. Egan, A. N. Gorban (2017). The five factor model of personality and
evaluation of drug consumption risk. In: Data Science, Springer, 231-242.
Licence: CC BY 4.0"""

RAW = RawFile(
    name="drug_consumption.data",
    size=346_695,
    sha256="90b8cf500b07ad455baf9fe1dc519998c75a1df6d87f6bd7069176f0826ea8c1",
    url="https://archive.ics.uci.edu/static/public/373/drug+consumption+quantified.zip",
    member=("drug_consumption.data",),
)

# positions in the raw file, which has no header
_FEATURES = {"Age": 1, "Gender": 2, "Education": 3, "Country": 4, "Nscore": 6, "Escore": 7, "Oscore": 8}
_FEATURES |= {"Ascore": 9, "Cscore": 10, "Impulsive": 11, "SS": 12}
_ETHNICITY = 5
_TARGETS = {"heroin": 23, "cannabis": 18}
_WHITE = -0.31685
_NEVER_USED = "CL0"


def load(read: Read, *, target: Literal["heroin", "cannabis"] = "heroin", include_protected: bool = True) -> Dataset:
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

    check_known("target", target, _TARGETS)
    check_switches(include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(RAW)), header=None)
    # the code is a rounded number, so it is compared as one
    group = pd.Series(np.isclose(table[_ETHNICITY], _WHITE).astype("int64"), name="ethnicity")
    X = pd.DataFrame({name: table[column] for name, column in _FEATURES.items()}).astype("float64")
    if include_protected:
        X["ethnicity"] = group.astype("float64")
    return Dataset(
        X=X,
        y=(table[_TARGETS[target]] == _NEVER_USED).astype("int64").rename(f"never_used_{target}"),
        group_codes=group,
        task="classification",
        names=("other ethnicities", "White"),
        description=DESCRIPTION,
    )
