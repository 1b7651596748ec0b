"""Which libraries a call imports: audits, comparisons and counts take none of those that
training needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metrifair import monitor
from metrifair.report import write_html
from tests.seams.auditing import differences
from tests.seams.report import charts

HEAVY = ("joblib", "matplotlib", "pandas", "scipy", "sklearn", "torch")
# a terminal alone shows a status
PAGES = (charts.__name__, write_html.__module__, "rich.status")
NO_PAGE = {  # what else a command that writes no page leaves out; polars imports importlib.metadata
    "audit": ("narwhals", differences.__name__, *PAGES),
    "count": ("narwhals", differences.__name__, *PAGES),
    "merge": ("narwhals", "importlib.metadata", monitor.__module__, "polars", *PAGES),
    "compare": ("narwhals", "importlib.metadata", monitor.__module__, "polars", *PAGES),
}
COMMAND = """
import contextlib, io, json, sys
from metrifair.__main__ import main
sys.argv = ["metrifair", *{arguments!r}]
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""
SCORES = """
import sys, tempfile
from pathlib import Path
import numpy as np
import metrifair
generator = np.random.default_rng(0)
sex, y, p = generator.choice(["f", "m"], 200), generator.integers(2, size=200), generator.random(200)
"""
CALLS = {
    "audit": """
found = metrifair.audit(y, p, sensitive_features=sex, random_state=0)
found.rates(standard="four-fifths")
with tempfile.TemporaryDirectory() as folder:
    found.to_html(Path(folder, "page.html"))
""",
    "audit of losses": """
options = metrifair.AuditOptions(loss="log_loss")
metrifair.audit(y, p, sensitive_features=sex, criteria=["risk_parity"], random_state=0, options=options)
""",
    "audit of numbers": """
metrifair.audit(y, p, sensitive_features={"age": generator.normal(size=200)}, continuous=True, random_state=0)
""",
    "unfairness": """
for metric in ("kolmogorov", "wasserstein", "energy", "mmd"):
    metrifair.unfairness(y, p, sensitive_features=sex, metric=metric, criterion="equalized_odds")
""",
    "distances": """
metrifair.metrics.distances(p[y == 0], p[y == 1])
metrifair.metrics.witness(p[y == 0], p[y == 1])
""",
    "compare": """
found = [metrifair.audit(y, scores, sensitive_features=sex, random_state=0) for scores in (p, p**2)]
metrifair.compare(*found)
metrifair.monitor(found)
""",
    "state": """
state = metrifair.AuditState()
state.add(y, p, sensitive_features=sex)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "day.state")
    metrifair.save(state, path)
    metrifair.load(path).merge(metrifair.AuditState.load(path)).audit(random_state=0)
""",
}


def imported(code: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    """Those of the modules that a process has imported after this code."""
    report = f"\nimport json, sys\nprint(json.dumps([name for name in {names!r} if name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 1,000 scores, two audits and two counts of it."""
    where = tmp_path_factory.mktemp("scores")
    generator = np.random.default_rng(0)
    sex, p = generator.choice(["f", "m"], 1_000), generator.random(1_000)
    rows = [f"{score:.6f},{group},{int(score > 0.4)}" for score, group in zip(p, sex, strict=True)]
    (where / "scores.csv").write_text("\n".join(["p,sex,y", *rows]) + "\n")
    for name in ("one", "two"):
        columns = [str(where / "scores.csv"), "--score", "p", "--group", "sex", "--label", "y"]
        for arguments in (
            ["audit", *columns, "--json", str(where / f"{name}.json")],
            ["count", *columns, "--output", str(where / f"{name}.state")],
        ):
            imported(COMMAND.format(arguments=arguments))
    return where


@pytest.mark.extended
@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "scores.csv", "--score", "p", "--group", "sex", "--label", "y"],
        [
            "audit",
            "scores.csv",
            "--score",
            "p",
            "--group",
            "sex",
            "--label",
            "y",
            "--html",
            "page.html",
        ],
        ["audit", "scores.csv", "--score", "p", "--group", "sex", "--output", "found.csv"],
        ["count", "scores.csv", "--score", "p", "--group", "sex", "--output", "three.state"],
        ["merge", "one.state", "two.state"],
        ["compare", "one.json", "two.json"],
        ["compare", "one.state", "two.state", "--html", "page.html"],
        ["monitor", "one.json", "two.json"],
    ],
    ids=lambda arguments: "-".join(one.lstrip("-").replace(".", "_") for one in arguments),
)
def test_a_command_imports_no_library_of_training(
    arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    absent = () if {"--html", "found.csv"} & {*arguments} else NO_PAGE.get(arguments[0], ())
    assert imported(COMMAND.format(arguments=arguments), (*HEAVY, *absent)) == set()


@pytest.mark.extended
@pytest.mark.parametrize("name", CALLS)
def test_a_call_in_python_imports_no_library_of_training(name: str) -> None:
    assert imported(SCORES + CALLS[name]) == set()
