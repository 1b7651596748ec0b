"""What a user of `metrifair[cli]` can do, run by `make test-install` in an environment that
holds that and no more.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

EXTRAS = ("torch", "sklearn", "scipy", "pandas", "matplotlib")
MOST_MEGABYTES = 310
COLUMNS = ("--score", "p", "--group", "sex", "--label", "y")


def call(*arguments: object, code: int = 0) -> str:
    """What the command prints."""
    command = [sys.executable, "-I", "-m", "metrifair", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


def check_commands(folder: Path) -> None:
    """Audit files of two kinds, also by a standard; compare, count and merge."""
    generator = np.random.default_rng(0)
    sex = generator.choice(["f", "m"], size=1_000)
    p = np.clip(generator.normal(0.4 + 0.2 * (sex == "m"), 0.2), 0, 1)
    table = pl.DataFrame({"p": p, "sex": sex, "y": (generator.random(1_000) < p).astype(int)})
    table.write_csv(folder / "scores.csv")
    table.write_parquet(folder / "scores.parquet")
    for ending in ("csv", "parquet"):
        assert "sex" in call(
            "audit", folder / f"scores.{ending}", *COLUMNS, "--json", folder / f"{ending}.json"
        )
        call("count", folder / f"scores.{ending}", *COLUMNS, "--output", folder / f"{ending}.state")
    assert "Difference" in call("compare", folder / "csv.json", folder / "parquet.json")
    call("merge", folder / "csv.state", folder / "parquet.state")
    call(
        "audit",
        folder / "scores.csv",
        *COLUMNS,
        "--html",
        folder / "page.html",
        "--fail-above",
        "kolmogorov=0.01",
        code=1,
    )
    page = folder / "rates.html"
    said = call(
        "audit", folder / "scores.csv", *COLUMNS, "--standard", "four-fifths", "--html", page
    )
    assert "Four-fifths ratio" in said, said
    assert page.stat().st_size > 10_000
    check_errors(folder)


def check_errors(folder: Path) -> None:
    """What needs another extra names it."""
    (folder / "scores.duckdb").touch()
    said = call(
        "audit", f"duckdb:{folder / 'scores.duckdb'}", "--table", "scores", *COLUMNS, code=2
    )
    assert 'pip install "metrifair[sql]"' in said, said
    said = call("train", folder / "scores.csv", "--label", "y", "--group", "sex", code=2)
    assert 'pip install "metrifair[train]"' in said, said
    for command in (["demo"], ["datasets", "mortgage", "--output", folder / "mortgage.csv"]):
        said = call(*command, code=2)
        assert 'pip install "metrifair[demo]"' in said, said


def main() -> None:
    """Commands, and what they take on the disk."""
    there = [name for name in EXTRAS if find_spec(name)]
    if there:
        raise SystemExit(f"this environment holds more than the commands: {there}")
    with tempfile.TemporaryDirectory() as folder:
        check_commands(Path(folder))
    packages = Path(np.__file__).parents[1]
    files = (path for path in packages.rglob("*") if path.suffix != ".pyc" and path.is_file())
    size = sum(path.stat().st_size for path in files) / 2**20
    print(f"the commands of metrifair[cli] work: {size:.0f} MB of at most {MOST_MEGABYTES}")
    assert size <= MOST_MEGABYTES, size


if __name__ == "__main__":
    main()
