"""The study of rules of choice: its page is made of its points, and a sweep runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.choice import FAMILIES, FOLDS, choice_page, draw_rows, sweep
from experiments.data import Splits

RESULTS = Path(__file__).parents[2] / "docs/results/choice"


def test_the_page_follows_from_the_points() -> None:
    """All but the last note, on the machine, is computed."""
    page = (RESULTS / "choice.md").read_text(encoding="utf-8")
    (machine,) = (line for line in page.splitlines() if line.startswith("Computed on: "))
    assert choice_page(RESULTS / "points.json", notes=[machine]).markdown("choice") == page


def people() -> Splits:
    generator = np.random.default_rng(0)
    a = generator.integers(2, size=300)
    x = np.column_stack([a, generator.normal(size=(300, 2)) + a[:, None]])
    y = np.where(x[:, 1] + generator.normal(size=300) > 0.5, 1.0, -1.0)
    return Splits(x, y, a, np.arange(300)[None], np.arange(300)[None])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sweep_has_figures_of_both_parts_at_every_strength(family: str) -> None:
    found = sweep(("people", 440, family), sets=lambda *_: people(), strengths=(0.0, 10.0))
    assert [len(own) for own in (found.auc, found.gap, found.test_auc, found.test_gap)] == [2] * 4
    assert found.gap[1] < found.gap[0]
    assert min(found.auc) > 0.5


def test_parts_share_no_row_and_folds_are_stratified() -> None:
    whole = people()
    train, test, fold = draw_rows(whole, 440)
    assert sorted([*train, *test]) == list(range(300))
    for own in (0, 1):
        counts = np.bincount(fold[whole.a[train] == own], minlength=FOLDS)
        assert counts.max() - counts.min() <= 2  # one of either label
