"""What an audit hands on: data frames, strict JSON, a page, a notebook table; names are text
wherever they go.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import asdict
from html import unescape
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import rc_context
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from metrifair import Audit, AuditOptions, DataError, audit
from metrifair.report import ChartDisplay
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.auditing import AuditRecord

HOSTILE = ["<script>alert(1)</script>", '"quoted" & \\escaped', "=1+1", "line\nbreak", "é中😀", ""]
RANDOM = np.random.default_rng(5)


def audited(**options: Any) -> Audit:
    rng = np.random.default_rng(99)
    group = np.array(HOSTILE, dtype=object)[np.arange(240) % len(HOSTILE)]
    return audit(
        None,
        rng.random(240),
        sensitive_features={"<b>attribute</b>": group},
        **flat(**{"resamples": 50, "permutations": 19, "random_state": 0, **options}),
    )


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), (None, pl.DataFrame)]
)
def test_the_frame_has_a_row_for_each_finding(backend: Any, kind: type) -> None:
    found = audited(metrics=["kolmogorov", "energy", "mmd"])
    frame = found.to_frame(backend)
    assert isinstance(frame, kind)
    assert frame["value"].to_list() == [one.value for one in found.findings]
    assert frame["group"].to_list() == [one.groups[0] for one in found.findings]
    assert frame["interval_high"].to_list() == [
        one.interval.high for one in found.findings if one.interval
    ]
    missing = frame["unbiased"].isna() if backend == "pandas" else frame["unbiased"].is_null()
    assert missing.to_list() == [one.unbiased is None for one in found.findings]
    assert str(frame["certified"].dtype) in ("float64", "Float64")


def test_frames_of_columns_without_any_value_keep_their_type(refused: Refusals) -> None:
    weighted = audited(sample_weight=np.ones(240), resamples=0)
    for backend in ("pandas", "polars"):
        assert str(weighted.to_frame(backend)["p_value"].dtype) in ("float64", "Float64")
    with refused(DataError):
        weighted.to_frame("arrow")  # type: ignore[arg-type]


def refuse(constant: str) -> None:
    raise AssertionError(constant)


@pytest.mark.parametrize(
    "options", [{}, {"sample_weight": np.ones(240)}, {"resamples": 0, "permutations": 0}]
)
def test_json_is_strict_and_holds_the_whole_record(options: dict[str, Any], tmp_path: Path) -> None:
    found = audited(**options)
    path = tmp_path / "audit.json"
    text = found.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    content = json.loads(text, parse_constant=refuse)
    assert (content.pop("kind"), content.pop("version")) == ("metrifair audit", 1)
    texts = [note.pop("text") for note in content["notes"]]
    assert texts == found.note_texts()
    notes = [f"Note: {text}" for text in texts]
    assert "\n".join([*content.pop("summary"), *notes]) == found.summary == str(found)
    record = json.loads(json.dumps(asdict(found.record)))
    assert record.pop("group_search") is None  # of audits with a search alone
    assert content == record
    assert content["findings"][0]["groups"] == list(found.findings[0].groups)


def test_what_is_not_a_number_never_reaches_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Audit(AuditRecord(1, 0, (0.0, float("nan")), 0.95, ())).to_json()


def test_json_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot write"):
        audited().to_json(tmp_path / "no" / "audit.json")


class Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_the_page_in_a_frame_that_no_style_leaves() -> None:
    found = audited()
    shown = found._repr_html_()
    parser = Text()
    parser.feed(shown)
    assert parser.tags == {"iframe"}
    assert len(shown) < 600_000
    page = unescape(shown.partition('srcdoc="')[2].partition('"')[0])
    assert page.startswith("<!doctype html>")
    assert HOSTILE[0] not in page  # but escaped
    assert all(finding.metric for finding in found.findings)


@pytest.fixture(scope="module")
def labeled() -> Audit:
    group, score = np.arange(300) % 2, np.random.default_rng(0).random(300)
    label = (np.random.default_rng(1).random(300) < score).astype(int)
    return audit(
        label,
        score,
        sensitive_features={"sex": np.array(["f", "m"])[group]},
        options=AuditOptions(resamples=20, permutations=0),
    )


def lines_of(display: ChartDisplay) -> dict[str, list[tuple[float, float]]]:
    """The points of the lines, by what the legend calls them."""
    legend = display.ax_.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    points = [
        [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]
        for line in display.ax_.lines
        if line.get_linestyle() != ":"  # the diagonal
    ]
    return dict(zip(names, points, strict=True))


def test_distributions_are_drawn_with_the_largest_gap(labeled: Audit) -> None:
    display = labeled.plot(ax=Figure().subplots())
    curves = labeled.record.distributions[0].curves
    assert lines_of(display) == {
        name: list(zip(curves.grid, values, strict=True))
        for name, values in curves.cumulative.items()
    }
    finding = next(
        one for one in labeled.findings if one.metric == "kolmogorov" and one.within == "everyone"
    )
    (gap,) = display.ax_.collections
    assert isinstance(gap, LineCollection)
    ((low, high),) = gap.get_segments()
    assert low[0] == high[0] == finding.at
    assert high[1] - low[1] == pytest.approx(finding.value)
    assert display.ax_.texts[0].get_text() == f"gap {finding.value:.3f}"


def test_densities_and_curves_are_drawn_of_the_records_values(labeled: Audit) -> None:
    curves, table = labeled.record.distributions[0].curves, labeled.record.by_group[0]
    expected: dict[str, dict[str, list[tuple[float, float]]]] = {
        "densities": {
            name: list(zip(curves.grid, values, strict=True))
            for name, values in curves.density.items()
        },
        "roc": {group.group: [(x, y) for x, y in group.roc] for group in table.groups},
        "reliability": {
            group.group: [(one.score, one.rate) for one in group.reliability]
            for group in table.groups
        },
    }
    for kind in ("densities", "roc", "reliability"):
        assert lines_of(labeled.plot(kind, ax=Figure().subplots())) == expected[kind], kind


def test_findings_are_drawn_with_their_intervals(labeled: Audit) -> None:
    axes = labeled.plot("findings", ax=Figure().subplots()).ax_
    findings = [one for one in labeled.findings if one.metric == "kolmogorov"]
    assert axes.get_xlabel() == "Kolmogorov distance"
    zero, dots = axes.lines
    assert set(np.asarray(zero.get_xdata())) == {0}
    assert sorted(np.asarray(dots.get_xdata()).tolist()) == sorted(one.value for one in findings)
    (spans,) = axes.collections
    assert isinstance(spans, LineCollection)
    ends = sorted((float(low[0]), float(high[0])) for low, high in spans.get_segments())
    known = [one.joint_interval for one in findings if one.joint_interval is not None]
    assert len(known) == len(findings) == 3
    assert ends == sorted((interval.low, interval.high) for interval in known)
    names = {text.get_text() for text in axes.get_yticklabels()}
    assert names == {f"f vs m of sex, {one.within}" for one in findings}


def test_names_are_drawn_as_text(labeled: Audit) -> None:
    """A legend leaves names out that begin with "_", and draws formulas between dollar signs."""
    names = ["_hidden", "$5 to $10", 80 * "n"]
    found = audit(
        None,
        np.arange(90.0),
        sensitive_features=np.array(names)[np.arange(90) % 3],
        options=AuditOptions(resamples=0, permutations=0),
    )
    figure = Figure()
    display = found.plot(ax=figure.subplots())
    picture = BytesIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(picture, format="svg")
    drawn = [text.strip() for text in ET.fromstring(picture.getvalue()).itertext()]
    assert {"_hidden", "$5 to $10", f"{59 * 'n'}…"} <= set(drawn)
    assert display.figure_ is figure


def test_what_cannot_be_drawn_says_why(refused: Refusals) -> None:
    found = audit(
        None,
        np.arange(40.0),
        sensitive_features=np.arange(40) % 2,
        options=AuditOptions(resamples=0, permutations=0),
    )
    with pytest.raises(DataError, match="pass y_true"):
        found.plot("reliability")
    with pytest.raises(DataError, match="no densities to draw"):
        audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("aabb")).plot("densities")
    with refused(DataError):
        found.plot("pie")  # type: ignore[arg-type]


def test_the_page_is_written_with_its_title_and_names_are_text(tmp_path: Path) -> None:
    path = tmp_path / "audit.html"
    audited().to_html(path, title="Scores & <groups>")
    page = path.read_text(encoding="utf-8")
    assert "Scores &amp; &lt;groups&gt;" in page
    assert "<script>alert(1)" not in page


@pytest.mark.parametrize("offset", [1.7e9, 1e6, 1e15, -1e17])
@pytest.mark.parametrize("spread", [0.0, 100.0])
def test_scores_far_from_zero_are_drawn_on_distinct_scores(
    offset: float, spread: float, tmp_path: Path
) -> None:
    score = offset + spread * np.random.default_rng(0).random(60)
    found = audit(
        None,
        score,
        sensitive_features=np.arange(60) % 2,
        options=AuditOptions(resamples=0, permutations=0),
    )
    found.to_html(tmp_path / "far.html")
    for one in found.record.distributions:
        assert (np.diff(one.curves.grid) > 0).all()


def test_repr_is_short_and_names_what_is_certain() -> None:
    found = audited()
    first, second = repr(found).split("\n")
    assert (
        first == f"Audit of 240 rows: {len(found.findings)} findings, 1 table of decisions, "
        f"{len(found.notes)} notes"
    )
    assert second == "no significant gap"
    assert found.headline is None
    group = np.arange(400) % 2
    sure = audit(
        None,
        group + np.random.default_rng(0).random(400),
        sensitive_features=group,
        random_state=0,
        options=AuditOptions(resamples=50),
    )
    assert sure.headline is not None
    least = f"{sure.headline.joint_interval.low:.3f}"
    largest = f"largest significant gap: Kolmogorov distance 1.000, at least {least}"
    assert f"{largest}: sensitive_features '0'" in repr(sure)
    empty = Audit(AuditRecord(0, 0, (0.0, 1.0), 0.95, ()))
    assert repr(empty) == "Audit of 0 rows: 0 findings, 0 tables of decisions, 0 notes"


def test_worst_by_metric_and_criterion() -> None:
    rng = np.random.default_rng(99)
    group, label, score = np.arange(90) % 3, np.arange(90) % 2, rng.random(90)
    found = audit(
        label, score, sensitive_features=group, options=AuditOptions(resamples=0, permutations=0)
    )
    for metric in ("kolmogorov", "wasserstein", "energy"):
        for criterion in ("statistical_parity", "equal_opportunity"):
            values = [
                one.value
                for one in found.findings
                if (one.metric, one.criterion) == (metric, criterion)
            ]
            assert found.worst(metric, criterion).value == max(values)
    assert found.worst().metric == "kolmogorov"
    only = audit(
        None,
        score,
        sensitive_features=group,
        metrics=["energy", "lp"],
        options=AuditOptions(resamples=0, permutations=0),
    )
    assert only.worst().metric == "energy"
    with pytest.raises(DataError, match="no finding with metric='mmd'"):
        found.worst("mmd")


def test_the_call_has_all_arguments_that_are_not_defaults() -> None:
    options = AuditOptions(resamples=20, permutations=0, loss=None)
    found = audit(
        None, [0.2, 0.8] * 20, sensitive_features=["f", "m"] * 20, threshold=None, options=options
    )
    assert found.provenance.call == (
        "audit(..., ..., sensitive_features=..., threshold=None, "
        "options=AuditOptions(resamples=20, permutations=0))"
    )
