"""COMPAS: who is charged with a new crime within two years, by race."""

from __future__ import annotations

import io
from typing import Any, Literal

from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import RawFile, Read
from metrifair.support.checks import check_known, check_switches

DESCRIPTION = """\
COMPAS: defendants of Broward County, Florida, of 2013 and 2014, after ProPublica's filters. The label says whether
the person was charged with a new crime (or a new violent crime) within two years; the groups are African-American
and Caucasian defendants, or all others. Names and dates of birth are never loaded.
Source: https://github.com/propublica/compas-analysis
Citation: J. Angwin, J. Larson, S. Mattu, L. Kirchner (2016). Machine Bias. ProPublica.
J. Larson, S. Mattu, L. Kirchner, J. Angwin (2016). How we analyzed the COMPAS recidivism algorithm. ProPublica.
License: none stated in ProPublica's repository; public records published for re-analysis, not to be redistributed"""

_FOLDER = "https://raw.githubusercontent.com/propublica/compas-analysis/bafff5da3f2e45eca6c2d5055faad269defd135a"
RAW = RawFile(
    name="compas-scores-two-years.csv",
    size=2_546_489,
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    url=f"{_FOLDER}/compas-scores-two-years.csv",
)
RAW_VIOLENT = RawFile(
    name="compas-scores-two-years-violent.csv",
    size=1_603_205,
    sha256="918e218ba181d4db8a7266977d23ca7a5ecf1bc7d5defd7b2f27bf3cbd9763e3",
    url=f"{_FOLDER}/compas-scores-two-years-violent.csv",
)

# the only columns ever parsed: names and dates of birth stay in the file
_COLUMNS = [
    "sex", "age_cat", "race", "priors_count", "days_b_screening_arrest", "c_charge_degree", "is_recid", "score_text",
    "two_year_recid",
]  # fmt: skip
_AGES = ["25 - 45", "Greater than 45", "Less than 25"]


def load(
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
        ``"pair"``: African-American and Caucasian defendants only, 5,278 rows, the published runs. ``"all"``:
        6,172 rows, the number in the paper's text; group 1 is everyone who is not African-American.
    violent
        Whether to read the file on violent recidivism (3,373 or 4,015 rows). The paper's text speaks of it, its
        numbers come from the general file.
    standardize
        Whether ``priors_count`` has mean 0 and standard deviation 1 over all rows, before any split, as in the
        published runs.
    include_protected
        Whether the group is the last column of X, as in the published runs (7 columns instead of 6).
    """
    import pandas as pd  # noqa: PLC0415  (an extra)

    check_known("races", races, ["pair", "all"])
    check_switches(violent=violent, standardize=standardize, include_protected=include_protected)
    table = pd.read_csv(io.BytesIO(read(RAW_VIOLENT if violent else RAW)), usecols=_COLUMNS)
    # the rows that ProPublica kept: arrest near the screening, recidivism known, no ordinary offense, a score
    kept = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    kept &= (table["c_charge_degree"] != "O") & table["score_text"].notna()
    if races == "pair":
        kept &= table["race"].isin(["African-American", "Caucasian"])
    table = table[kept].reset_index(drop=True)
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
    if include_protected:
        columns["race"] = group
    return Dataset(
        X=pd.DataFrame(columns).astype("float64"),
        y=table["two_year_recid"].astype("int64"),
        group_codes=group,
        task="classification",
        names=("African-American", "Caucasian" if races == "pair" else "all others"),
        description=DESCRIPTION,
    )
