"""Engines that take longer to start: a real PostgreSQL server, and Spark."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import polars as pl
import pytest
from test_audit_file import check_equal
from test_audit_table import QUICKER, incomplete

from metrifair import AuditState, DataError, audit_file, audit_table
from tests.flat_options import flat
from tests.programs import require_postgresql
from tests.seams.auditing import open_table

pytestmark = [pytest.mark.extended, pytest.mark.filterwarnings("ignore")]
ASK = {"score": "p", "group": ["sex", "region"], "label": "y", "weight": "w", **QUICKER}
UNWEIGHTED = {name: given for name, given in ASK.items() if name != "weight"}
PASSWORD = "s3cr:t@word"
# Columns of every type that PostgreSQL's users have; the audit needs the first two at most.
TYPED = """
    p::numeric(7,5) AS precise, (p >= 0.5)::int::smallint AS decision, p::numeric(40,5) AS wide,
    p::real AS small, 1 AS four, true AS flag, now() AS at, now()::date AS day, interval '1 day' AS span,
    'x'::char(3) AS padded, '{"a": 1}'::jsonb AS document, ARRAY[1, 2] AS list, gen_random_uuid() AS id,
    '\\x00'::bytea AS raw, '10.0.0.1'::inet AS host, point(1, 2) AS place, 12.5::money AS price
"""


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "scores.parquet"
    incomplete(3000).write_parquet(path)
    return path


def check_table(made, scores):
    held = audit_file(scores, **flat(**ASK))
    assert [one.value for one in audit_table(made, **flat(**ASK)).findings] == [
        one.value for one in held.findings
    ]
    check_equal(audit_table(made, **flat(in_memory_rows=10, **ASK)), held, located=False)


@pytest.fixture(scope="module")
def postgres(scores):
    """The port of a server with the table, of which nothing is left afterwards."""
    pytest.importorskip(
        "psycopg", reason="the driver of PostgreSQL is not installed (ibis-framework[postgres])"
    )
    programs = require_postgresql()
    root = os.geteuid() == 0
    # the server's user must be able to enter it
    folder = Path("/tmp") / f"metrifair-postgres-{os.getpid()}"
    port = 20_000 + os.getpid() % 20_000

    def run(program, *arguments):
        as_user = ["runuser", "-u", "postgres", "--"] if root else []
        subprocess.run(
            [*as_user, str(programs / program), *arguments],
            cwd="/",
            check=True,
            capture_output=True,
        )

    folder.mkdir(mode=0o700)
    try:
        (folder / "password").write_text(PASSWORD)
        if root:
            shutil.chown(folder, "postgres")
            shutil.chown(folder / "password", "postgres")
        data = str(folder / "data")
        run(
            "initdb",
            "-D",
            data,
            "-U",
            "me",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(folder / "password"),
        )
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        run("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            _filled(port, scores)
            yield port
        finally:
            # Ibis leaves its connections to the garbage collector, which complains
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gc.collect()
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def address(port):
    return f"postgres://me:s3cr%3At%40word@127.0.0.1:{port}/postgres"


def connection(port):
    import psycopg  # noqa: PLC0415

    return psycopg.connect(
        host="127.0.0.1", port=port, user="me", password=PASSWORD, dbname="postgres"
    )


def _filled(port, scores):
    frame = pl.read_parquet(scores)
    kinds = {pl.Float64: "DOUBLE PRECISION", pl.Int64: "BIGINT", pl.String: "TEXT"}
    with connection(port) as server:
        columns = ", ".join(f'"{name}" {kinds[type(kind)]}' for name, kind in frame.schema.items())
        server.execute(f"CREATE TABLE scores ({columns})")
        with server.cursor().copy("COPY scores FROM STDIN") as copy:
            for row in frame.rows():
                copy.write_row(row)
        server.execute(f"CREATE TABLE typed AS SELECT *, {TYPED} FROM scores")


def test_postgresql_finds_what_audit_file_finds(postgres, scores):
    check_table(open_table(address(postgres), "scores"), scores)
    check_table(open_table(address(postgres), "public.scores"), scores)


@pytest.mark.parametrize(
    "ask",
    [UNWEIGHTED, UNWEIGHTED | {"score": "precise"}, UNWEIGHTED | {"score": "decision"}],
    ids=str,
)
def test_postgresql_counts_without_weights(postgres, ask, tmp_path):
    """PostgreSQL's sums of integers are decimals; a table may have columns of any type that the
    audit does not need.
    """
    with connection(postgres) as server:
        rows = server.execute(
            "SELECT sex, region, y, p, precise::float8, decision::int FROM typed"
        ).fetchall()
    pl.DataFrame(
        rows,
        ["sex", "region", "y", "p", "precise", "decision"],
        orient="row",
        infer_schema_length=None,
    ).write_parquet(tmp_path / "p.parquet")
    held = audit_file(tmp_path / "p.parquet", **flat(**ask))
    table = open_table(address(postgres), "typed")
    assert [one.value for one in audit_table(table, **flat(**ask)).findings] == [
        one.value for one in held.findings
    ]
    check_equal(audit_table(table, **flat(in_memory_rows=10, **ask)), held, located=False)


@pytest.mark.parametrize("limit", [10, 10_000])
def test_postgresql_decimals_longer_than_those_of_data_frames_are_scores(postgres, limit):
    """numeric(40,5): one column is cast to floating-point numbers, as a score or a weight;
    names must stay names.
    """
    table = open_table(address(postgres), "typed")
    ask = UNWEIGHTED | {"in_memory_rows": limit}
    wide = audit_table(table, **flat(**ask | {"score": "wide"}))
    precise = audit_table(table, **flat(**ask | {"score": "precise"}))
    assert [one.value for one in wide.findings] == [one.value for one in precise.findings]
    assert audit_table(table, **flat(**ask | {"weight": "wide"})).findings
    with pytest.raises(
        DataError, match=r"'wide' of the table .* more than 38 digits; cast it to text in a query"
    ):
        audit_table(table, **flat(**ask | {"group": "wide"}))


def test_postgresql_is_counted_by_the_command(postgres, scores, tmp_path):
    ask = ["--score", "p", "--group", "sex", "--label", "y", "--output"]
    states = [tmp_path / "table.state", tmp_path / "file.state"]
    for source, state in zip(
        ([address(postgres), "--table", "typed"], [scores]), states, strict=True
    ):
        command = [sys.executable, "-m", "metrifair", "count", *map(str, source), *ask, str(state)]
        subprocess.run(command, capture_output=True, check=True)
    table, file = (AuditState.load(state).audit(random_state=0) for state in states)
    assert [one.value for one in table.findings] == [one.value for one in file.findings]


@pytest.mark.parametrize("wrong", ["password", "table", "port"])
def test_postgresql_never_shows_the_password(postgres, wrong):
    secret = "wr0ng%40one" if wrong == "password" else "s3cr%3At%40word"
    url = f"postgres://me:{secret}@127.0.0.1:{1 if wrong == 'port' else postgres}/postgres"
    with pytest.raises(DataError) as raised:
        open_table(url, "nothing" if wrong == "table" else "scores")
    told = "".join(traceback.format_exception(raised.value))
    assert not [one for one in (secret, PASSWORD, "wr0ng@one", url) if one in told]
    done = subprocess.run(
        [sys.executable, "-m", "metrifair", "audit", url, "--table", "nothing", "--score", "p", "--group", "sex"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert not [
        one for one in (secret, PASSWORD, "wr0ng@one", url) if one in done.stdout + done.stderr
    ]


@pytest.mark.slow
def test_spark_finds_what_audit_file_finds(scores):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs java, which is not installed")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    with contextlib.closing(session) if hasattr(session, "close") else contextlib.nullcontext():
        check_table(session.read.parquet(str(scores)), scores)
        session.stop()
