"""How scores and decisions go along an attribute that is a number."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from metrifair import audit, audit_file
from tests.flat_options import flat

FAST = {"random_state": 0, "permutations": 0, "resamples": 0}


def people(n: int = 900):
    generator = np.random.default_rng(1)
    age = generator.integers(18, 90, n).astype(float)
    score = np.clip(generator.normal(0.5, 0.15, n) - 0.2 * (age > 60), 0, 1).round(2)
    return score, age, generator.integers(2, size=n)


@pytest.mark.oracle(
    "AlongNumber.at",
    "AlongNumber.sizes",
    "AlongNumber.quantiles",
    "AlongNumber.selection_rates",
    "AlongNumber.cut",
)
def test_quantiles_and_selection_rates_are_those_of_each_band() -> None:
    score, age, _ = people()
    found = audit(None, score, sensitive_features={"age": age}, continuous=True, **flat(**FAST))
    (along,) = found.record.along
    # of 20, the last had 28 rows
    assert (along.attribute, along.within, len(along.bands)) == ("age", "everyone", 19)
    assert sum(along.sizes) == 900
    assert min(along.sizes) >= 30
    edges = [float(name.strip("≤(]").split(",")[-1]) for name in along.bands[:-1]]
    band = np.searchsorted(edges, age)
    for place in range(19):
        own = score[band == place]
        assert along.sizes[place] == len(own)
        assert along.at[place] == pytest.approx(age[band == place].mean())
        assert along.selection_rates[place] == pytest.approx((own >= 0.5).mean())
        for share, values in along.quantiles.items():
            expected = np.quantile(own, float(share.rstrip("%")) / 100, method="inverted_cdf")
            assert values[place] == pytest.approx(expected)
    (worst,) = [one for one in found.findings if one.metric == "kolmogorov"]
    assert along.cut == worst.cut
    assert f"≤{along.cut:.0f}" == worst.groups[0]
    assert json.loads(found.to_json())["along"][0]["bands"] == list(along.bands)


def test_rows_that_are_counted_show_the_same_and_weights_count(tmp_path) -> None:
    score, age, _ = people(3000)  # so many that bands have rows enough, weighted or repeated
    weight = np.random.default_rng(2).integers(1, 4, 3000)
    table = pl.DataFrame({"p": score, "age": age, "w": weight})
    table.write_parquet(tmp_path / "s.parquet")
    options = {"score": "p", "group": "age", "continuous": True, "weight": "w", **FAST}
    held, counted = (
        audit_file(tmp_path / "s.parquet", **flat(in_memory_rows=rows, **options))
        for rows in (10**6, 10)
    )
    (ours,), (theirs,) = held.record.along, counted.record.along
    assert ours.bands == theirs.bands
    assert ours.selection_rates == pytest.approx(theirs.selection_rates)
    for share, values in ours.quantiles.items():
        assert theirs.quantiles[share] == pytest.approx(values, abs=0.01)
    repeated = np.repeat(np.arange(3000), weight)
    (plain,) = audit(
        None,
        score[repeated],
        sensitive_features={"age": age[repeated]},
        continuous=True,
        **flat(**FAST),
    ).record.along
    assert plain.quantiles == ours.quantiles
    assert plain.at == pytest.approx(ours.at)
    edges = [float(name.strip("≤(]").split(",")[-1]) for name in ours.bands[:-1]]
    band = np.searchsorted(edges, age)
    for place, middle in enumerate(ours.at):
        inside = band == place
        assert middle == pytest.approx(np.average(age[inside], weights=weight[inside]))


def test_each_set_has_its_own_and_groups_have_none() -> None:
    score, age, y = people()
    found = audit(
        y,
        score,
        sensitive_features={"age": age, "sex": y},
        continuous=["age"],
        threshold=None,
        **flat(**FAST),
    )
    assert [one.within for one in found.record.along] == ["everyone", "label=1", "label=0"]
    assert not any(one.selection_rates for one in found.record.along)
    assert not audit(None, score, sensitive_features=y, **flat(**FAST)).record.along
    few = audit(
        None, score[:40], sensitive_features={"age": age[:40]}, continuous=True, **flat(**FAST)
    ).record.along
    assert len(few[0].bands) == 2
