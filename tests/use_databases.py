"""What a user of `metrifair[cli,sql]` can do, run by `make test-install`: audits of a table in
DuckDB.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

EXTRAS = ("torch", "sklearn", "scipy", "matplotlib")
COLUMNS = ("--score", "p", "--group", "sex", "--label", "y")


def call(*arguments: object) -> str:
    """What the command prints."""
    command = [sys.executable, "-I", "-m", "metrifair", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def main() -> None:
    """The audit and the counts of a table are those of a file with its rows."""
    there = [name for name in EXTRAS if find_spec(name)]
    if there:
        raise SystemExit(f"this environment holds more than databases: {there}")
    generator = np.random.default_rng(0)
    sex, p = generator.choice(["f", "m"], size=1_000), generator.random(1_000).round(3)
    rows = pl.DataFrame({"p": p, "sex": sex, "y": (generator.random(1_000) < p).astype(int)})
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows.write_parquet(folder / "scores.parquet")
        with duckdb.connect(str(folder / "scores.duckdb")) as database:
            database.execute("CREATE TABLE scores AS SELECT * FROM rows")
        table = (f"duckdb:{folder / 'scores.duckdb'}", "--table", "scores")
        shown = [
            call("audit", *place, *COLUMNS, "--seed", 0)
            for place in (table, (folder / "scores.parquet",))
        ]
        assert "sex" in shown[0], shown
        call("count", *table, *COLUMNS, "--output", folder / "table.state")
        call("count", folder / "scores.parquet", *COLUMNS, "--output", folder / "file.state")
        assert "Difference" in call("compare", folder / "table.state", folder / "file.state")
    print("audits of a table in DuckDB work with metrifair[cli,sql]")


if __name__ == "__main__":
    main()
