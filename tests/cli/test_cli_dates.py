"""ISO dates in files of text are dates to `train` and `predict`, and nothing else is."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import load, read_file

_DAY = dt.datetime(2026, 1, 31)

CASES: dict[str, tuple[list[str], list[Any] | None]] = {
    "days": (["2026-01-31", "NA", ""], [_DAY.date(), None, None]),
    "times": (["2026-01-31", "2026-01-31T06:00", "2026-01-31 06:00:30.5"], [0, 6, 6 + 30.5 / 3600]),
    "zones": (["2026-01-31T02:00:00+02:00", "2026-01-31T00:00:00Z", "NA"], [0, 0, None]),
    "no such day": (["2026-02-30", "2026-01-31", "2026-01-31"], None),
    "one word": (["2026-01-31", "soon", "2026-01-31"], None),
    "another order": (["31-01-2026", "30-01-2026", "30-01-2026"], None),
    "more behind it": (["2026-01-31-a", "2026-01-31-b", "2026-01-31-c"], None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_column_is_of_dates_where_all_its_values_are(case: str, tmp_path: Path) -> None:
    given, meant = CASES[case]
    path = tmp_path / "dates.csv"
    pl.DataFrame({"row": [1, 2, 3], "day": given}).write_csv(path)
    found = read_file(path)["day"].to_list()
    if meant is None:
        assert found == given
    elif case == "days":
        assert found == meant
    else:
        assert found == [
            None if hours is None else _DAY + dt.timedelta(hours=hours) for hours in meant
        ]
    assert read_file(path, text=["day"])["day"].to_list() == [value or None for value in given]


def test_what_is_trained_on_dates_predicts_from_dates(tmp_path: Path, call: Any) -> None:
    rng = np.random.default_rng(0)
    days = rng.integers(0, 2000, size=200)
    table = pl.DataFrame(
        {
            "day": [str(dt.date(2020, 1, 1) + dt.timedelta(days=int(day))) for day in days],
            "sex": ["f", "m"] * 100,
            "pay": days + rng.normal(size=200),
        }
    )
    data, model, out = tmp_path / "d.csv", tmp_path / "m.metrifair", tmp_path / "p.csv"
    table.write_csv(data)
    trained = call(
        "train",
        data,
        "--label",
        "pay",
        "--group",
        "sex",
        "--strength",
        0,
        "--model",
        "linear",
        "--output",
        model,
    )
    assert trained.exit_code == 0, trained.output
    assert load(model).encoder.coders_["day"].kind == "date"
    assert call("predict", model, data, "--output", out).exit_code == 0
    assert np.corrcoef(pl.read_csv(out)["prediction"], days)[0, 1] > 0.99
    table.with_columns(pl.lit("soon").alias("day")).write_csv(data)
    refused = call("predict", model, data, "--output", out)
    assert refused.exit_code == 2
    assert "'day' contained dates at fit, and contains text now" in refused.output
