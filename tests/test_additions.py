"""Adding a metric, a note, a column, an option or a post-processor touches at most four files.

Each addition is made in a copy of the package, and a command or a page then shows it. Files of tests
do not count, nor does the changelog.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import metrifair
from metrifair.postprocessing import ScorePostprocessor
from tests.seams.cli import _AT_MOST_1 as AT_MOST_1
from tests.seams.cli import GAPS, RATIOS
from tests.seams.metrics import METRICS

ROOT = Path(metrifair.__file__).parents[2]
MOST_FILES = 4


class Edit(NamedTuple):
    """Text that is inserted after a line of a file; a new file has no such line."""

    path: str
    text: str
    after: str = ""


class Addition(NamedTuple):
    """What is added, by which edits, and a script that fails unless it is there."""

    edits: list[Edit]
    script: str


PAGE = "(Path(sys.argv[1]) / 'page.html')"
START = """
import contextlib, io, json, sys
from pathlib import Path
import numpy as np
import metrifair
from metrifair import AuditOptions, audit
from metrifair.cli import main
file = Path(sys.argv[1]) / "scores.csv"
options = AuditOptions(resamples=20, permutations=0)
def run(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main([*map(str, words)], standalone_mode=False)
    return " ".join(out.getvalue().split())
rng = np.random.default_rng(0)
sex, score = np.repeat(["f", "m"], 100), rng.random(200)
X, y = rng.normal(size=(200, 2)), np.tile([0, 1], 100)
"""

ADDITIONS = {
    "metric": Addition(
        [
            Edit(
                "src/metrifair/metrics/line.py",
                "\n\ndef cubic(pooled: Merged) -> Array:\n"
                '    """L^3 norm of the difference of the distribution functions."""\n'
                "    gap = abs(pooled.difference[..., :-1])\n"
                "    return (gap**3 * pooled.gaps).sum(-1) ** (1 / 3)\n",
            ),
            Edit(
                "src/metrifair/metrics/registry.py",
                '    "cubic": MetricFacts(_of_merged(line.cubic), of_merged=line.cubic),\n',
                "METRICS: dict[str, MetricFacts] = {\n",
            ),
            Edit(
                "src/metrifair/wording/metrics.py",
                '    "cubic": MetricWords("Cubic distance", "What a cube measures."),\n',
                "METRIC_WORDS = {\n",
            ),
            Edit(
                "docs/concepts/distances.md",
                "| `cubic` | Cubic distance | reports |\n",
                "| `kolmogorov` | Kolmogorov distance | reports, limits, automated checks |\n",
            ),
        ],
        f"""
assert "cubic" in run("audit", "--help") and "cubic" in run("train", "--help")
assert "Cubic" in run("audit", file, "--score", "p", "--group", "sex", "--metric", "cubic",
    "--html", {PAGE})
assert "What a cube measures." in {PAGE}.read_text()
metrifair.FairClassifier(0.1, metric="cubic", model="linear").fit(X, y, sensitive_features=sex)
""",
    ),
    "note of an audit": Addition(
        [
            Edit(
                "src/metrifair/auditing/notes.py",
                '    notes.append(Note("even_rows", {"attributes": len(scheme.attributes)}))\n',
                "    notes += _parity_notes(sample)\n",
            ),
            Edit(
                "src/metrifair/wording/notes.py",
                '    "even_rows": Template("parity", lambda attributes: f"Even in {attributes}."),\n',
                '    "uninformative_score": Template("parity", _uninformative_score),\n',
            ),
        ],
        f"""
assert "Even in 1." in run("audit", file, "--score", "p", "--group", "sex", "--html", {PAGE})
assert "Even in 1." in {PAGE}.read_text()
assert "Even in 1." in audit(None, score, sensitive_features=sex, options=options).to_json()
""",
    ),
    "note of a frontier": Addition(
        [
            Edit(
                "src/metrifair/tradeoff/frontier.py",
                '    yield FrontierNote("even_rows", {"rows": len(data.rows)})\n',
                '    """Notes about weights, clusters and groups."""\n    data = search.data\n',
            ),
            Edit(
                "src/metrifair/wording/frontier.py",
                '    "even_rows": lambda rows: f"Even in {rows} rows.",\n',
                '    "weighted": lambda: "Rows count by their sample weights.",\n',
            ),
        ],
        f"""
models = [metrifair.FairClassifier(0, model="linear").fit(X, y)]
front = metrifair.frontier(models, X, y, sensitive_features=sex)
front.to_html({PAGE})
assert "Even in 200 rows." in {PAGE}.read_text()
assert "Even in 200 rows." in front.summary and "Even in 200 rows." in front.to_json()
""",
    ),
    "column of findings": Addition(
        [
            Edit(
                "src/metrifair/wording/tables.py",
                '        Column("doubled", value=lambda finding: 2 * finding.value),\n',
                '        Column("unbiased"),\n',
            ),
            Edit("src/metrifair/wording/tables.py", '    "doubled",\n', "FINDING_KEYS = (\n"),
            Edit(
                "src/metrifair/wording/terms.py", '    "doubled": Term("Twice"),\n', "TERMS = {\n"
            ),
        ],
        f"""
found = audit(None, score, sensitive_features=sex, options=options)
found.to_html({PAGE})
assert '>Twice</th>' in {PAGE}.read_text() and '"name":"Twice"' in {PAGE}.read_text()
assert (found.to_frame("pandas")["doubled"] == 2 * found.to_frame("pandas")["value"]).all()
""",
    ),
    "column of rates": Addition(
        [
            Edit(
                "src/metrifair/wording/tables.py",
                '    count_column("unselected", lambda row: row.group.size - row.group.selected),\n',
                '    count_column("selected", "group.selected"),\n',
            ),
            Edit(
                "src/metrifair/wording/terms.py",
                '    "unselected": Term("Not selected"),\n',
                "TERMS = {\n",
            ),
            Edit(
                "src/metrifair/figures/selection_rates.py",
                '    "unselected",\n',
                '_USUAL = (\n    "group",\n',
            ),
        ],
        f"""
command = ("audit", file, "--score", "p", "--group", "sex", "--threshold", "0.5")
assert "Not selected" in run(*command, "--html", {PAGE})
assert "Not selected" in {PAGE}.read_text()
found = audit(None, score, sensitive_features=sex, threshold=0.5, options=options)
assert found.rates().to_frame("pandas")["unselected"].notna().all()
""",
    ),
    "figure of a frontier": Addition(
        [
            Edit(
                "src/metrifair/wording/terms.py", '    "own": Term("Own figure"),\n', "TERMS = {\n"
            ),
            Edit(
                "src/metrifair/tradeoff/frontier.py",
                '        point = replace(point, more={**point.more, "own": 0.4321})\n',
                "        point = _as_compared(point, places[job], context, gaps)\n",
            ),
        ],
        f"""
models = [metrifair.FairClassifier(0, model="linear").fit(X, y)]
front = metrifair.frontier(models, X, y, sensitive_features=sex)
front.to_html({PAGE})
assert "Own figure" in {PAGE}.read_text() and "0.432" in {PAGE}.read_text()
assert front.to_frame("pandas")["own"].tolist() == [0.4321]
assert '"own": 0.4321' in front.to_json()
""",
    ),
    "option of an audit": Addition(
        [
            Edit(
                "src/metrifair/cli/options.ini",
                "[resamples]\nsection = Advanced\nplaceholder = NUMBER\ntype = integer\n"
                "range = 0 9999\ndefault = 500\nhelp = Number of resamples.\n\n",
                "# before [max-groups]",
            ),
            Edit("src/metrifair/cli/options.ini", "resamples ", "[commands]\naudit = "),
        ],
        """
assert "--resamples" in run("audit", "--help")
path = Path(sys.argv[1]) / "audit.json"
for count in (0, 50):
    run("audit", file, "--score", "p", "--group", "sex", "--resamples", count, "--json", path)
    (finding, *_) = json.loads(path.read_text())["findings"]
    assert (finding["interval"] is None) == (count == 0)
""",
    ),
    "post-processor": Addition(
        [
            Edit(
                "src/metrifair/postprocessing/halving.py",
                f"from {ScorePostprocessor.__module__} import ScorePostprocessor\n\n\n"
                "class HalvingPostprocessor(ScorePostprocessor):\n"
                '    """Halve all scores."""\n\n'
                "    def adjust(self, scores, groups):\n"
                "        return scores / 2\n\n"
                "    def state(self):\n"
                "        return {}\n\n"
                "    def restore(self, arrays):\n"
                "        pass\n",
            ),
            Edit(
                "src/metrifair/__init__.pyi",
                "from .postprocessing.halving import HalvingPostprocessor\n",
                "from .postprocessing.barycenter import BarycenterPostprocessor\n",
            ),
            Edit(
                "src/metrifair/__init__.pyi",
                '    "HalvingPostprocessor",\n',
                '    "GroupProbabilities",\n',
            ),
            Edit(
                "src/metrifair/saving/models.py",
                '    "HalvingPostprocessor": "metrifair.postprocessing.halving",\n',
                '    "FairXGBRegressor": "metrifair.boosting.xgboost",\n',
            ),
            Edit(
                "docs/reference/index.md",
                "   HalvingPostprocessor\n",
                "   BarycenterPostprocessor\n",
            ),
        ],
        """
base = metrifair.FairClassifier(0, model="linear")
model = metrifair.HalvingPostprocessor(base, folds=2).fit(X, y, sensitive_features=sex)
path = Path(sys.argv[1]) / "model.metrifair"
model.save(path)
again = metrifair.load(path)
expected = model.base_.predict_proba(X)[:, 1] / 2
assert np.allclose(again.predict_proba(X, sensitive_features=sex)[:, 1], expected)
front = metrifair.frontier({"half": model}, X, y, sensitive_features=sex, folds=2)
assert front.points[0].family == "half"
""",
    ),
}


def insert(folder: Path, edit: Edit) -> None:
    path = folder / edit.path
    if not path.exists():
        path.write_text(edit.text)
        return
    text = path.read_text()
    if not edit.after:
        path.write_text(text + edit.text)
    elif edit.after.startswith("# before "):
        place = "\n" + edit.after.removeprefix("# before ") + "\n"
        assert text.count(place) == 1, edit.after
        path.write_text(text.replace(place, f"\n{edit.text}{place[1:]}"))
    else:
        assert text.count(edit.after) == 1, edit.after
        path.write_text(text.replace(edit.after, edit.after + edit.text))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and of the pages that additions touch, beside a file of scores."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src/metrifair", tmp_path / "src/metrifair", ignore=leave)
    for page in ("docs/concepts/distances.md", "docs/reference/index.md"):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    rng = np.random.default_rng(0)
    rows = [f"{score!r},{'fm'[place % 2]}" for place, score in enumerate(rng.random(200).tolist())]
    (tmp_path / "scores.csv").write_text("\n".join(["p,sex", *rows]))
    return tmp_path


@pytest.mark.extended
@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_touches_few_files_and_is_shown(name: str, copy: Path) -> None:
    addition = ADDITIONS[name]
    assert len({edit.path for edit in addition.edits}) <= MOST_FILES
    for edit in addition.edits:
        insert(copy, edit)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + addition.script, str(copy)],
        env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_limits_of_metrics_that_are_at_most_1() -> None:
    """The command line lists them, because the registry imports NumPy."""
    assert {name for name, row in METRICS.items() if row.maximum == 1.0} == set(AT_MOST_1) - {
        *GAPS,
        *RATIOS,
    }
