"""How many groups an audit compares: a column picked by mistake is refused at once, many real
groups are not.
"""

import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, DataError, audit, audit_file
from metrifair.metrics import distances
from tests.flat_options import flat
from tests.seams.auditing import (
    TwoSamples,
    check_attribute,
    one_against_rest,
    permutation_p_values,
    resampling,
)
from tests.seams.problem import Attribute

MOST_LEVELS = 10_000
MAX_GROUPS = 1000

PLAIN = {"resamples": 0, "permutations": 0, "random_state": 0}
STREAMED = {"in_memory_rows": 10}


def many(groups: int, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(rows) % groups)
    return np.clip(rng.normal(0.5 + 0.1 * (group % 3), 0.2), 0, 1).round(3), group


@pytest.mark.parametrize("kind", [str, int], ids=["text", "numbers"])
@pytest.mark.parametrize("how", [{}, STREAMED], ids=["held", "counted"])
def test_a_column_with_thousands_of_values_is_refused_with_what_to_do(tmp_path, kind, how):
    score, group = many(2500, 8000)
    frame = pl.DataFrame({"p": score, "id": [kind(one) for one in group]})
    frame.write_parquet(tmp_path / "scores.parquet")
    with pytest.raises(DataError) as caught:
        audit_file(
            tmp_path / "scores.parquet", score="p", group="id", **flat(continuous=False, **how)
        )
    text = str(caught.value)
    assert text.startswith("the groups 'id' have 2,500 ")
    most = MOST_LEVELS if how else 2500
    assert text.endswith(f"pass options=AuditOptions(max_groups={most}) if each value is a group")


@pytest.mark.parametrize(
    ("groups", "samples", "most", "allowed"),
    [
        (MAX_GROUPS, 10**6, None, True),
        (MAX_GROUPS + 1, 10**6, None, False),
        (MAX_GROUPS + 1, 10**6, MAX_GROUPS + 1, True),
        (MAX_GROUPS + 1, 10**6, MAX_GROUPS, False),
        (30, 30, None, True),
        (31, 62, None, True),
        (31, 61, None, False),
        (31, 31, 31, True),
        (MOST_LEVELS + 1, 10**9, MOST_LEVELS, False),
    ],
)
def test_where_the_limits_are(groups, samples, most, allowed):
    if allowed:
        check_attribute(Attribute("county", tuple(range(groups))), samples, most)
        return
    with pytest.raises(DataError, match="the groups 'county' have"):
        check_attribute(Attribute("county", tuple(range(groups))), samples, most)


def test_nobody_is_told_to_insist_on_more_groups_than_possible(refused):
    with refused(DataError):
        check_attribute(Attribute("number", tuple(range(MOST_LEVELS + 1))), 10**6)


@pytest.mark.parametrize("most", [1, 0, -5, True, 2.5, "many", MOST_LEVELS + 1])
def test_a_limit_that_is_none_is_refused(tmp_path, most, refused):
    with refused(DataError):
        audit(
            None, [0.1, 0.9], sensitive_features=["a", "b"], options=AuditOptions(max_groups=most)
        )
    (tmp_path / "s.csv").write_text("p,g\n0.1,a\n0.9,b\n")
    with refused(DataError):
        audit_file(
            tmp_path / "s.csv",
            score="p",
            group="g",
            options=AuditOptions(max_groups=most, in_memory_rows=1),
        )


@pytest.mark.parametrize("how", [{}, STREAMED], ids=["held", "counted"])
def test_whoever_insists_gets_every_group(tmp_path, how):
    score, group = many(40, 60)
    pl.DataFrame({"p": score, "g": group}).write_parquet(tmp_path / "s.parquet")
    found = audit_file(
        tmp_path / "s.parquet", score="p", group="g", **flat(max_groups=40, **PLAIN, **how)
    )
    assert len(found.findings) == 3 * 40


@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weights"])
def test_many_groups_each_against_the_rest_are_counted_exactly(tmp_path, weighted):
    """Small groups of a file too large to hold: their rows are held in the end, and every
    distance is the plain one.
    """
    score, group = many(120, 3000, seed=1)
    weight = np.random.default_rng(2).integers(1, 5, 3000).astype(float)
    pl.DataFrame({"p": score, "g": group, "w": weight}).write_parquet(tmp_path / "s.parquet")
    metrics = ["kolmogorov", "wasserstein", "energy", "lp", "total_variation"]
    more = {"weight": "w"} if weighted else {}
    plain = {**more, **PLAIN, **STREAMED, "continuous": False}
    found = audit_file(
        tmp_path / "s.parquet", score="p", group="g", metrics=metrics, **flat(**plain)
    )
    assert len(found.findings) == 120 * len(metrics)
    for one in found.findings[:: 7 * len(metrics)]:
        own = group == int(one.groups[0])
        weights = {"u_weights": weight[own], "v_weights": weight[~own]} if weighted else {}
        exact = distances(score[own], score[~own], metrics, **weights)
        for metric in metrics:
            (value,) = [
                f.value for f in found.findings if f.groups == one.groups and f.metric == metric
            ]
            assert value == pytest.approx(
                exact[metric], abs=2e-5 if metric != "kolmogorov" else 1e-12
            )


def test_a_small_side_of_very_many_samples_has_uniform_p_values():
    """It is dealt by shuffling: under one distribution, p-values of 200 audits are spread
    evenly.
    """
    rng = np.random.default_rng(5)
    rest, p_values = np.full(50, 2000), []
    for _ in range(200):
        own = rng.multinomial(60, np.full(50, 1 / 50))
        found = TwoSamples(np.arange(50.0), own.astype(float), rest.astype(float))
        p_values.append(
            permutation_p_values(found, ["wasserstein"], permutations=99, generator=rng)[
                "wasserstein"
            ]
        )
    ordered = np.sort(p_values)
    # Kolmogorov's bound at level 0.01
    assert np.abs(ordered - np.arange(1, 201) / 200).max() < 0.115


def test_what_many_groups_share_is_computed_once(monkeypatch):
    """Of all scores: one set of bins to deal them in.

    Of each group: one call for the quantiles of all metrics.
    """
    calls = dict.fromkeys(("pooled_bins", "student_quantiles", "quantile"), 0)

    def counted(module, name):
        right = getattr(module, name)

        def spied(*given, **options):
            calls[name] += 1
            return right(*given, **options)

        monkeypatch.setattr(module, name, spied)

    counted(one_against_rest, "pooled_bins")
    counted(resampling, "student_quantiles")
    counted(np, "quantile")
    score, group = many(40, 4000)
    options = AuditOptions(resamples=20, permutations=20, continuous=False)
    audit(None, score, sensitive_features=group, random_state=0, options=options)
    # alone and jointly, at once
    assert calls == {"pooled_bins": 1, "student_quantiles": 2 * 40, "quantile": 40}
