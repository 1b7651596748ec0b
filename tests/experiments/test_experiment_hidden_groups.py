"""The study of hidden groups: its page is made of its records, and a trial runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import hidden_groups as experiment
from experiments import reproduce
from experiments.hidden_groups import (
    FEATURES,
    FEW,
    FOLDS,
    GROUPINGS,
    TRUE,
    WEIGHTED,
    HiddenGroups,
    draw_rows,
    figures,
    groupings,
    hidden_groups,
    hidden_groups_page,
    probabilities,
    read_records,
    trial,
)
from metrifair import unfairness
from metrifair.metrics import kolmogorov_distance

RESULTS = Path(__file__).parents[2] / "docs/results/hidden-groups"


@pytest.mark.page("hidden-groups/hidden-groups.md")
def test_the_page_is_computed() -> None:
    """All but the last note, on the machine, is computed."""
    page = (RESULTS / "hidden-groups.md").read_text(encoding="utf-8")
    (machine,) = (line for line in page.splitlines() if line.startswith("Computed on: "))
    assert hidden_groups_page(RESULTS, notes=[machine]).markdown("hidden-groups") == page


def test_the_records_have_every_split_and_grouping_once() -> None:
    models, proxies = (read_records(RESULTS / f"{name}.csv") for name in ("models", "proxies"))
    strengths = sorted({one["strength"] for one in models})
    for name in FEW:
        for grouping in GROUPINGS:
            for strength in strengths:
                own = figures(models, "split", data=name, trained_with=grouping, strength=strength)
                assert own.tolist() == list(range(480, 490))
    assert len(models) == len(FEW) * len(GROUPINGS) * len(strengths) * 10
    assert len(proxies) == len(FEW) * 2 * 10


def test_a_recorded_split_is_computed_anew(raw_data: Path) -> None:
    """On any processor: a probability near 0.5 may be on its other side there, so thresholded
    groups are left out.
    """
    found = trial(("compas", 480), sets=hidden_groups, strengths=(0.0, 1.0))
    for name, computed in zip(("proxies", "models"), found, strict=True):
        known = [
            one
            for one in read_records(RESULTS / f"{name}.csv")
            if (one["data"], one["split"]) == ("compas", 480)
            and one.get("strength", 0.0) in (0.0, 1.0)
        ]
        for recorded, own in zip(known, computed, strict=True):
            if "thresholded" not in own.get("trained_with", ""):
                for key in (
                    key
                    for key, value in own.items()
                    if "thresholded" not in key and not isinstance(value, str)
                ):
                    assert recorded[key] == pytest.approx(own[key], abs=0.02), key


def people(rows: int = 1500) -> HiddenGroups:
    """A place that predicts the group, and a feature that depends on the group beyond the place."""
    generator = np.random.default_rng(0)
    place = generator.normal(size=rows)
    a = (generator.uniform(size=rows) < 1 / (1 + np.exp(-2 * place))).astype(np.int64)
    x = np.column_stack([place, generator.normal(size=rows) + 1.5 * a, generator.normal(size=rows)])
    y = np.where(x.sum(1) + generator.logistic(size=rows) > 0.7, 1.0, -1.0)
    everyone = np.arange(rows)[None]
    return HiddenGroups(x, y, a, everyone, everyone, np.array([True, False, False]))


def test_a_trial_shows_where_the_assumption_holds() -> None:
    proxies, models = trial(("people", 465), sets=lambda _: people(), strengths=(0.0, 3.0))
    assert [(one["trained_with"], one["strength"]) for one in models] == [
        (grouping, strength) for grouping in GROUPINGS for strength in (0.0, 3.0)
    ]
    plain, fair = models[:2]
    assert fair[f"kolmogorov, {TRUE}"] < plain[f"kolmogorov, {TRUE}"] / 2
    # The place alone leaves out how the other feature depends on the group.
    true, weighted, few = (plain[f"kolmogorov, {own}"] for own in (TRUE, *WEIGHTED.values()))
    assert weighted == pytest.approx(true, abs=0.1)
    assert few < true - 0.15
    everything, place = proxies
    assert abs(everything["correlation"]) < 0.1 < place["correlation"]
    assert place["corrected_energy"] > 2 * plain[f"energy, {WEIGHTED['few features']}"]


def test_a_sketch_from_data_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "hidden_groups", lambda _: people(800))
    reproduce("hidden-groups", seeds=2, quick=True, out=tmp_path)
    folder = tmp_path / "hidden-groups"
    assert len(read_records(folder / "models.csv")) == len(FEW) * 2 * len(GROUPINGS) * 4
    page = (folder / "hidden-groups.md").read_text(encoding="utf-8")
    assert page.splitlines()[2].startswith("**A sketch")
    assert "<svg" in (folder / "hidden-groups-1.svg").read_text()
    assert "AUC at half the distance" in (folder / "hidden-groups.html").read_text(encoding="utf-8")


def test_certain_probabilities_are_groups() -> None:
    generator = np.random.default_rng(1)
    group, score = generator.integers(2, size=200), generator.normal(size=200)
    score += group
    found = groupings(group, dict.fromkeys(FEATURES, group.astype(float)))
    assert tuple(found) == GROUPINGS
    distance = kolmogorov_distance(score[group == 0], score[group == 1])
    for own in found.values():
        assert unfairness(None, score, sensitive_features=own) == pytest.approx(distance, abs=1e-12)


def test_a_row_is_not_used_for_its_own_probability() -> None:
    whole = people(400)
    train, test, fold = draw_rows(whole, 465)
    first, unseen = probabilities(whole.x, whole.a, (train, test, fold))
    assert len(unseen) == len(test)
    other = whole.a.copy()
    other[train[fold == 0]] = 1 - other[train[fold == 0]]
    second, _ = probabilities(whole.x, other, (train, test, fold))
    assert (first == second)[fold == 0].all()
    assert not any((first == second)[fold == place].all() for place in range(1, FOLDS))


def test_the_few_features_are_those_of_the_page(raw_data: Path) -> None:
    found = hidden_groups("compas")
    assert found.without_group.shape[1] == len(found.few) == 6
    assert found.few.sum() == 4  # three ages, and sex
    ages_and_sex = found.without_group[:, found.few]
    assert set(np.unique(ages_and_sex)) == {0.0, 1.0}
