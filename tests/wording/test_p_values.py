"""p-values of permutations: the least possible one is shown as "at most", in every place by one
formatter.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from metrifair import Audit, AuditOptions, audit
from tests.seams.cli import show_audit
from tests.seams.report import audit_content
from tests.seams.wording import p_text


def separated_audit(permutations: int) -> Audit:
    """Two groups whose scores do not overlap, and two that hardly differ."""
    generator = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 60)
    race = np.tile(["a", "b"], 60)
    score = generator.random(120) / 3 + 0.5 * (sex == "m")
    features = {"sex": sex, "race": race}
    options = AuditOptions(resamples=0, permutations=permutations)
    return audit(
        None,
        score,
        sensitive_features=features,
        metrics=["energy"],
        random_state=0,
        options=options,
    )


@pytest.mark.parametrize(
    ("permutations", "text"),
    [(999, "at most 0.001"), (1000, "at most 0.001"), (30, "at most 0.0323")],
)
def test_the_least_p_value_says_at_most_on_terminal_and_page(
    permutations: int, text: str, tmp_path: Path
) -> None:
    result = separated_audit(permutations)
    values = {finding.attribute: finding.p_value for finding in result.findings}
    assert values["sex"] == pytest.approx(1 / (1 + permutations))
    assert values["race"] is not None
    assert values["race"] > 0.05
    out = Console(file=io.StringIO(), width=160)
    show_audit(out, result.record)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert audit_content(result.record)["draws"] == permutations
    for shown in (printed, page):
        assert shown.count(text) == 1
        assert f"{values['race']:.4f}" in shown


def test_a_bound_is_never_below_the_p_value_that_it_states() -> None:
    for draws in range(1, 3000):
        bound = float(p_text(1 / (1 + draws), draws).removeprefix("at most "))
        assert 1 / (1 + draws) <= bound <= 1 / (1 + draws) + 1e-4
        assert not p_text(2 / (1 + draws), draws).startswith("at most")
