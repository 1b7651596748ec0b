"""Files beside the package agree with it: version, checks before a commit, the public workflow,
README.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import metrifair

ROOT = Path(__file__).parents[1]
yaml = pytest.importorskip("yaml")


def _read(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_citation_names_this_version_and_the_paper() -> None:
    citation = _read("CITATION.cff")
    assert citation["version"] == metrifair.__version__
    # what the format requires
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert [one["family-names"] for one in citation["preferred-citation"]["authors"]] == [
        "Rychener",
        "Taşkesen",
        "Kuhn",
    ]


def test_before_a_commit_run_fast_checks_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.split("\nlint:")[1].split("\n\n")[0].split("\n\t")[1:]
    (repository,) = _read(".pre-commit-config.yaml")["repos"]
    before = [hook["entry"] for hook in repository["hooks"] if "stages" not in hook]
    assert before == [line.replace("$(BIN)", ".venv/bin") for line in recipe if "ruff" in line]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("Match named columns by class\n\nBecause they may be in any order.", ""),
        ("# a comment of git\nFix the threshold", ""),
        (
            (
                "Merge branch 'a branch whose name is far too long for the subject of a commit of "
                "ours'"
            ),
            "",
        ),
        ("Fixed the threshold", "imperative"),
        ("fix the threshold", "capital"),
        ("Fix the threshold.", "period"),
        (f"Fix {'x' * 69}", "73 characters"),
        (f"Fix {'x' * 68}", ""),
        ("", "empty"),
    ],
)
def test_the_hook_checks_the_subject_of_a_commit(
    message: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "message").write_text(message, encoding="utf-8")
    command = [sys.executable, str(ROOT / ".ci/commit_subject.py"), str(tmp_path / "message")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == bool(problem)
    assert problem in done.stderr


def test_the_public_workflow_runs_the_same_script_on_every_supported_version() -> None:
    jobs = _read(".github/workflows/test.yml")["jobs"]
    matrix = jobs["whole"]["strategy"]["matrix"]
    supported = [
        line for line in (ROOT / "pyproject.toml").read_text().split("\n") if "Python :: 3." in line
    ]
    assert [
        version for version in matrix["python"] if not any(version in line for line in supported)
    ] == []
    assert len(matrix["python"]) == len(supported)
    assert any("arm" in machine for machine in matrix["machine"])
    assert jobs["whole"]["steps"][-1] == {"run": "bash .ci/run"}
    assert set(jobs["elsewhere"]["strategy"]["matrix"]["machine"]) == {"macos-15", "windows-2025"}
    assert all(
        f"\n{one['steps'][-1]['run'].split()[-1]}:" in (ROOT / "Makefile").read_text()
        for one in (jobs["lowest"], jobs["slow"])
    )


def test_workflows_name_actions_by_the_hash_of_a_commit() -> None:
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
        assert used
        pinned = re.compile(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
        assert [text for text in used if not pinned.fullmatch(text)] == []


def test_whatever_a_fast_run_leaves_out_is_run_by_continuous_integration(
    pytestconfig: pytest.Config,
) -> None:
    extended = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py")).EXTENDED
    assert [part for part in extended if not (ROOT / part).exists()] == []
    makefile = (ROOT / "Makefile").read_text()
    fast, rest = (
        makefile.split(f"\n{name}: ")[1].split('-m "')[1].split('"')[0]
        for name in ("test", "extended")
    )
    assert (fast, rest) == ("not slow and not extended", "extended and not slow or rotated")
    assert "\ntest-all: test\n\t$(MAKE) --no-print-directory -j 2 lint extended\n" in makefile
    steps = [
        line for line in (ROOT / ".ci/run").read_text().split("\n") if re.search(r"\bmake ", line)
    ]
    assert [step.split("make ")[1] for step in steps] == [
        'test PYTHON="$python"',
        "-j 2 lint extended",
        "test-install",
        "docs",
    ]
    assert steps[0].startswith('env -u METRIFAIR_DATA PATH="$bare" ')


def test_browsers_and_servers_are_hidden_and_all_other_programs_are_not(tmp_path: Path) -> None:
    """One folder of the PATH has two programs that are hidden, the other has none and stays as
    it is.
    """
    with_browser = tmp_path / "with browser"
    without = tmp_path / "without"
    links = tmp_path / "links"
    for folder in (with_browser, without, links):
        folder.mkdir()
    for program in (
        with_browser / "chromium",
        with_browser / "initdb",
        with_browser / "gcc",
        without / "make",
    ):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    usual = os.environ["PATH"]
    done = subprocess.run(
        [ROOT / ".ci/bare_path", links],
        env=os.environ | {"PATH": f"{with_browser}:{without}:{usual}"},
        capture_output=True,
        text=True,
        check=True,
    )
    bare = done.stdout.strip()
    assert [shutil.which(name, path=bare) for name in ("chromium", "initdb", "java", "psql")] == [
        None
    ] * 4
    assert Path(shutil.which("gcc", path=bare)).resolve() == with_browser / "gcc"
    assert shutil.which("make", path=bare) == str(without / "make")
    assert f"hidden from make test: {with_browser}/chromium {with_browser}/initdb" in done.stderr


def test_what_make_tests_with_the_lowest_versions_is_there() -> None:
    listed = (
        (ROOT / "Makefile")
        .read_text()
        .split("$(addprefix tests/,")[1]
        .split(")")[0]
        .replace("\\", " ")
        .split()
    )
    assert len(listed) > 8
    assert [name for name in listed if not (ROOT / "tests" / name).is_file()] == []


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_is_short() -> None:
    before_details = re.sub("<!--.*?-->", "", README.split("<details>")[0], flags=re.DOTALL)
    assert len(before_details.split()) <= 700


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "AGENTS.md"]
)
def test_links_to_files_resolve(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = [
        target.split("#")[0]
        for target in re.findall(r"\]\(([^)\s]+)\)", text)
        if "://" not in target
    ]
    named = re.findall(r"`((?:src|docs|tests|benchmarks)/[\w./-]+)`", text)
    assert [target for target in targets + named if not (ROOT / target).exists()] == []


def test_figures_of_boosted_trees_in_readme_are_those_of_the_results() -> None:
    page = (ROOT / "docs/results/boosting/boosting.md").read_text(encoding="utf-8")
    header, row = (
        next(line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(start))
        for start in ("| data | method |", "| adult | XGBoost, blind |")
    )
    cells = dict(zip(header, row, strict=True))
    (before, gap_before), (after, gap_after) = (
        cells[f"strength {it}"].split(" / ") for it in (0, 3)
    )
    sentence = f"strength 3 lowers unfairness from {gap_before} to {gap_after} and accuracy from {before} to {after}"
    assert sentence in " ".join(README.split())


def test_comparisons_with_other_libraries_in_readme_are_those_of_the_results() -> None:
    page = (ROOT / "docs/results/duel/duel.md").read_text(encoding="utf-8")
    table = page.split("| verdict |\n")[1].split("\n\n")[0]
    verdicts = [line.strip("| ").split(" | ")[-1] for line in table.splitlines()[1:]]
    ahead, even, behind = (verdicts.count(word) for word in ("ahead", "even", "behind"))
    assert ahead + even + behind == len(verdicts)
    text = " ".join(README.split())
    assert f"[{len(verdicts)} comparisons" in text
    assert f"ahead in {ahead}, even in {even} and behind in {behind}" in text
