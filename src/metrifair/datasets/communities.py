"""Communities and Crime: violent crime of a community, by the share of its Black residents."""

from __future__ import annotations

import io

from metrifair.checks import check_known, check_switches
from metrifair.datasets.dataset import Dataset, Task
from metrifair.datasets.fetch import RawFile, Read

DESCRIPTION = """\
Communities and Crime: 1,994 communities of the United States, with figures of the 1990 census, all scaled to [0, 1]
by the source. The target is the number of violent crimes per person (scaled as well), or whether it is above its
mean; the groups are the communities with at most and with more than the median share of Black residents.
Source: https://archive.ics.uci.edu/dataset/183/communities+and+crime (UCI 183, DOI 10.24432/C53W3X)
Citation: M. Redmond (2009). Communities and Crime. UCI Machine Learning Repository.
M. Redmond, A. Baveja (2002). A data-driven software tool for enabling cooperative information sharing among police
departments. European Journal of Operational Research 141, 660-678.
Licence: CC BY 4.0"""

RAW = RawFile(
    name="communities.data",
    size=1_102_815,
    sha256="09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data",
)
HEADER = RawFile(
    name="communities.names",
    size=27_701,
    sha256="f71e9049d2a8efe566e41be59cae27c84282a8d9d5c4bce4861490227f42c429",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.names",
)

_CRIME = "ViolentCrimesPerPop"
_SHARE = "racepctblack"
_NOT_FEATURES = ["state", "communityname", "fold", _CRIME, _SHARE]
_GROUP = "racepctblack_above_median"


def load(read: Read, *, task: Task = "classification", include_protected: bool | None = None) -> Dataset:
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
    lines = read(HEADER).decode("utf-8", errors="replace").splitlines()
    columns = [line.split()[1] for line in lines if line.startswith("@attribute")]
    table = pd.read_csv(io.BytesIO(read(RAW)), header=None, names=columns, na_values="?")
    group = (table[_SHARE] > table[_SHARE].median()).astype("int64").rename(_GROUP)
    X = table.drop(columns=_NOT_FEATURES).dropna(axis="columns").astype("float64")
    if include_protected:
        X[_GROUP] = group.astype("float64")
    crime = table[_CRIME].astype("float64")
    high = (crime > crime.mean()).astype("int64").rename(f"{_CRIME}_above_mean")
    return Dataset(
        X=X,
        y=high if task == "classification" else crime,
        group_codes=group,
        task=task,
        names=("at most the median share of Black residents", "more than the median share of Black residents"),
        description=DESCRIPTION,
        number=table[_SHARE].astype("float64"),
    )
