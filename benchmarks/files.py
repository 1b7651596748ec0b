"""Audits of files larger than memory: time against a bare count, peak memory, width of the
brackets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.timing import Claim, print_table

ROWS = int(float(os.environ.get("METRIFAIR_BENCH_ROWS", "1e8")))
CHUNK = 2_000_000
LIMIT = 512
PLAIN = "options=AuditOptions(resamples=0, permutations=0)"

TIMED = """
import json, resource, sys
{work}
used = resource.getrusage(resource.RUSAGE_SELF)
status = dict(line.split(":") for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024  # ru_maxrss would include the process that started this one
print(json.dumps({{"seconds": used.ru_utime + used.ru_stime, "peak": peak, "found": found}}))
"""

COUNT = """
import polars as pl
bins = (pl.col("score") * 65_536).cast(pl.Int32).alias("bin")
found = len(pl.scan_parquet(sys.argv[1]).group_by({keys}).len().collect(engine="streaming"))
"""

AUDIT = """
from metrifair import AuditOptions, audit_file
found = audit_file(sys.argv[1], score="score", group="group", random_state=0, {options})
found = {one.metric: [one.value, one.bracket.high - one.bracket.low if one.bracket else 0.0] for one in found.findings}
"""


def measured(work: str, path: Path, threads: int = 1) -> dict[str, Any]:
    """Work in a process of its own, imports and all, in seconds of processor time: other
    programs do not count.
    """
    limits = dict.fromkeys(
        ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)
    )
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(work=work), str(path)],
        env=os.environ | limits,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


Scores = Callable[[np.random.Generator, NDArray[np.bool_]], NDArray[np.float64]]


def continuous(generator: np.random.Generator, group: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(
        group, generator.beta(2.0, 3.0, len(group)), generator.beta(2.2, 3.0, len(group))
    )


def one_bin(generator: np.random.Generator, group: NDArray[np.bool_]) -> NDArray[np.float64]:
    """All scores but two within a stretch that no grid of the whole range can resolve."""
    scores = 1.0 + 1e-9 * (generator.random(len(group)) + 0.01 * group)
    scores[0], scores[-1] = -1e9, 1e9
    return scores


def written(path: Path, scores: Scores, rows: int, row_group: int = 2**18) -> Path:
    """A file of scores and groups, made a chunk at a time."""

    def chunks() -> Iterator[pl.LazyFrame]:
        for place in range(0, rows, CHUNK):
            yield pl.defer(
                lambda place=place: chunk(place, min(CHUNK, rows - place)),
                schema={"score": pl.Float64, "group": pl.String},
            )

    def chunk(seed: int, size: int) -> pl.DataFrame:
        generator = np.random.default_rng(seed)
        group = generator.random(size) < 0.4
        return pl.DataFrame({"score": scores(generator, group), "group": np.where(group, "f", "m")})

    pl.concat(list(chunks())).sink_parquet(
        path, compression="zstd", row_group_size=row_group, maintain_order=True
    )
    return path


def against_a_count(path: Path) -> list[Claim]:
    bare, by_group = (measured(COUNT.format(keys=keys), path) for keys in ("bins", 'bins, "group"'))
    plain = measured(AUDIT.replace("{options}", PLAIN), path)
    full = measured(AUDIT.replace("{options}", ""), path)
    size = f"{ROWS:.0e} rows of Parquet ({path.stat().st_size / 1e6:.0f} MB)"
    gap, widest = widths(plain)
    claim = f"{size}, Kolmogorov, W1 and energy, one thread"

    def ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
        return float(ours["seconds"] / theirs["seconds"])

    return [
        Claim(
            f"{claim}: audit ({plain['seconds']:.1f} s) against a count by bin, group "
            f"({by_group['seconds']:.1f} s)",
            f"{ratio(plain, by_group):.1f}x",
            "<= 3x",
            ratio(plain, by_group) <= 3,
        ),
        Claim(
            f"the same against a bare count by bin ({bare['seconds']:.1f} s)",
            f"{ratio(plain, bare):.1f}x",
            "",
            True,
        ),
        Claim(
            f"the same with intervals and p-values ({full['seconds']:.1f} s) against a bare count "
            "by bin, group",
            f"{ratio(full, by_group):.1f}x",
            "<= 3x",
            ratio(full, by_group) <= 3,
        ),
        Claim("the same: bracket of the Kolmogorov distance", f"{gap:.1e}", "<= 2e-4", gap <= 2e-4),
        Claim("the same: widest other bracket", f"{widest:.1e}", "<= 1e-5", widest <= 1e-5),
        Claim(
            "the same: peak memory",
            f"{full['peak']:.0f} MiB",
            f"< {LIMIT} MiB",
            full["peak"] < LIMIT,
        ),
    ]


def widths(audited: dict[str, Any]) -> tuple[float, float]:
    """The width of the bracket of the Kolmogorov distance, and the largest of other distances."""
    by_metric = {metric: width for metric, (_, width) in audited["found"].items()}
    return by_metric.pop("kolmogorov"), max(by_metric.values())


def adversarial(path: Path) -> list[Claim]:
    result = measured(AUDIT.replace("{options}", PLAIN), path)
    width = max(width for metric, (_, width) in result["found"].items() if metric == "kolmogorov")
    claim = f"{ROWS:.0e} scores in one bin ({result['seconds']:.1f} s)"
    return [
        Claim(
            f"{claim}: peak memory",
            f"{result['peak']:.0f} MiB",
            f"< {LIMIT} MiB",
            result["peak"] < LIMIT,
        ),
        Claim(
            "the same: bracket of the Kolmogorov distance", f"{width:.1e}", "<= 2e-4", width <= 2e-4
        ),
    ]


def large_row_groups(path: Path) -> list[Claim]:
    """As pyarrow and pandas write them: what is decoded at once is larger, and two threads read
    ahead.
    """
    result = measured(AUDIT.replace("{options}", ""), path, threads=2)
    claim = f"{ROWS / 10:.0e} rows in row groups of 10^6, two threads: peak memory"
    return [Claim(claim, f"{result['peak']:.0f} MiB", f"< {LIMIT} MiB", result["peak"] < LIMIT)]


DUCKDB = """
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
connection.execute("SET threads = 1")
connection.execute("SET enable_progress_bar = false")  # it is drawn on standard output
"""
DUCKDB_COUNT = (
    DUCKDB
    + """
bins = "CAST(floor(score * 65536) AS BIGINT)"
found = len(connection.sql(f'SELECT "group", {bins} AS bin, count(*) FROM scores GROUP BY ALL').pl())
"""
)
DUCKDB_AUDIT = (
    DUCKDB
    + """
from metrifair import AuditOptions, audit_table
options = AuditOptions(resamples=0, permutations=0)
found = audit_table(connection.table("scores"), score="score", group="group", random_state=0, options=options)
found = {one.metric: [one.value, one.bracket.high - one.bracket.low if one.bracket else 0.0] for one in found.findings}
"""
)


def in_database(path: Path) -> Path:
    """The rows of a file as a table of a DuckDB database."""
    import duckdb  # noqa: PLC0415

    file = path.with_suffix(".db")
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE scores AS SELECT * FROM read_parquet(?)", [str(path)])
    return file


def in_duckdb(path: Path) -> list[Claim]:
    file = in_database(path)
    bare, ours = measured(DUCKDB_COUNT, file), measured(DUCKDB_AUDIT, file)
    file.unlink()
    ratio = ours["seconds"] / bare["seconds"]
    gap, widest = widths(ours)
    claim = f"{ROWS:.0e} rows in DuckDB, one thread: audit ({ours['seconds']:.1f} s) against its own count by bin, group"  # noqa: E501
    return [
        Claim(f"{claim} ({bare['seconds']:.1f} s)", f"{ratio:.1f}x", "<= 3x", ratio <= 3),
        Claim("the same: bracket of the Kolmogorov distance", f"{gap:.1e}", "<= 2e-4", gap <= 2e-4),
        Claim("the same: widest other bracket", f"{widest:.1e}", "<= 1e-5", widest <= 1e-5),
    ]


FRAME_AUDIT = """
import polars as pl
from metrifair import audit_table
found = audit_table(pl.scan_parquet(sys.argv[1]), score="score", group="group", random_state=0)
found = [one.value for one in found.findings]
"""
DUCKDB_FULL_AUDIT = (
    DUCKDB
    + """
from metrifair import audit_table
found = audit_table(connection.table("scores"), score="score", group="group", random_state=0)
found = [one.value for one in found.findings]
"""
)


def of_tables(path: Path) -> list[Claim]:
    """Audits of a tenth of the rows with intervals and p-values: as a file, a lazy frame of polars
    and a table of DuckDB.
    """
    database = in_database(path)
    kinds = (
        ("Parquet, audit_file", AUDIT.replace("{options}", ""), path),
        ("a lazy frame of polars, audit_table", FRAME_AUDIT, path),
        ("a table of DuckDB, audit_table", DUCKDB_FULL_AUDIT, database),
    )
    claims = []
    for kind, work, source in kinds:
        result = measured(work, source)
        seconds, peak = result["seconds"], result["peak"] * 2**20 / 1e6
        name = f"{ROWS / 10:.0e} rows of {kind}"
        claims += [
            Claim(f"{name}: processor time", f"{seconds:.1f} s", "<= 3.5 s", seconds <= 3.5),
            Claim(f"{name}: peak memory", f"{peak:.0f} MB", "<= 270 MB", peak <= 270),
        ]
    database.unlink()
    return claims


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="metrifair-bench-") as folder:
        path = written(Path(folder, "scores.parquet"), continuous, ROWS)
        rows = against_a_count(path) + in_duckdb(path)
    with tempfile.TemporaryDirectory(prefix="metrifair-bench-") as folder:
        rows += adversarial(written(Path(folder, "scores.parquet"), one_bin, ROWS))
        rows += large_row_groups(
            written(Path(folder, "large.parquet"), continuous, ROWS // 10, 10**6)
        )
        rows += of_tables(written(Path(folder, "tenth.parquet"), continuous, ROWS // 10))
    print_table("Files (one thread)", rows)


if __name__ == "__main__":
    main()
