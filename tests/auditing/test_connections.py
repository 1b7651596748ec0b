"""Tables by the address of their database; no password reaches a message, a traceback, a report
or a log.
"""

import logging
import sqlite3
import sys
import traceback

import duckdb
import ibis
import numpy as np
import polars as pl
import pytest
from test_audit_file import table

from metrifair import DataError, audit_table
from metrifair.errors import MissingExtra
from tests.flat_options import flat
from tests.seams.auditing import DatabaseTable, open_table

PASSWORD = "p@ss/w?rd"
ASK = {
    "score": "p",
    "group": "sex",
    "label": "y",
    "random_state": 0,
    "resamples": 0,
    "permutations": 0,
}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "scores.db"
    frame = table(300)
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame.to_arrow())
        connection.execute("CREATE TABLE scores AS SELECT * FROM frame")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.more AS SELECT * FROM frame WHERE age > 20")
    return path


def test_a_table_of_a_duckdb_file(database):
    found = audit_table(open_table(f"duckdb:{database}", "scores"), **flat(**ASK))
    assert found.record == audit_table(table(300), **flat(**ASK)).record
    assert (
        audit_table(open_table(f"duckdb:{database}", "other.more"), **flat(**ASK)).record.rows < 300
    )


def test_a_database_is_read_beside_other_readers(database):
    """DuckDB lets a process that writes have no others beside it."""
    with duckdb.connect(str(database), read_only=True):
        assert (
            audit_table(open_table(f"duckdb:{database}", "scores"), **flat(**ASK)).record.rows
            == 300
        )


def test_a_table_and_a_query_exclude_each_other(database, refused):
    with refused(DataError):
        open_table(f"duckdb:{database}", "scores", "SELECT * FROM scores")
    assert (
        open_table(f"duckdb:{database}", None, "SELECT * FROM scores").name
        == f"the query of {database}"
    )


@pytest.mark.filterwarnings("ignore:.*infer_string")
def test_an_address_of_ibis(tmp_path):
    frame = table(300)
    with sqlite3.connect(tmp_path / "scores.sqlite") as connection:
        connection.execute("CREATE TABLE scores (p REAL, sex TEXT, y INTEGER)")
        connection.executemany(
            "INSERT INTO scores VALUES (?, ?, ?)", frame.select("p", "sex", "y").rows()
        )
    connection.close()
    place = open_table(f"sqlite://{tmp_path / 'scores.sqlite'}", "scores")
    for how in ({}, {"in_memory_rows": 10}):
        found = audit_table(place, **flat(**ASK, **how))
        direct = audit_table(frame, **flat(**ASK, **how))
        assert [one.value for one in found.findings] == pytest.approx(
            [one.value for one in direct.findings], abs=1e-12
        )


def test_what_is_not_there_is_named(database, tmp_path):
    for address, name, match in (
        (
            f"duckdb:{database}",
            None,
            "is a database; pass table=...; its tables are 'scores', 'other.more'",
        ),
        (
            f"duckdb:{database}",
            "score",
            "has no table 'score'; its tables are 'scores', 'other.more'",
        ),
        (f"duckdb:{tmp_path / 'no.db'}", "scores", "^there is no file .*no.db$"),
        (
            "duckdb:///no/such/folder/x.db",
            "scores",
            "^the duckdb database cannot be read: IOException: ",
        ),
    ):
        with pytest.raises(DataError, match=match):
            open_table(address, name)


def test_what_is_not_installed_is_named(database, monkeypatch, refused):
    with monkeypatch.context() as patch:
        patch.setattr(ibis, "connect", lambda address: (_ for _ in ()).throw(ImportError(address)))
        with refused(MissingExtra):
            open_table("postgresql://me:secret@host/db", "scores")
    for module, address in (("duckdb", f"duckdb:{database}"), ("ibis", "postgres://host/db")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingExtra, match=r'needs .*"metrifair\[sql\]"'):
                open_table(address, "scores")


ADDRESSES = [
    f"postgres://me:{PASSWORD}@host:5432/db",
    "postgres://me:p%40ss%2Fw%3Frd@host/db",
    f"postgres://host/db?user=me&password={PASSWORD}",
    f"nothing-of-the-kind://me:{PASSWORD}@host",
    f"postgres://me:{PASSWORD}@[bad",
]


class Talkative:
    """An engine that tells everything it knows in every error."""

    def __init__(self, address):
        self.address = address

    def list_tables(self):
        logging.getLogger("metrifair").debug("listing")
        raise RuntimeError(
            f"cannot log in with {self.address}, password {PASSWORD!r} or 'p%40ss%2Fw%3Frd'"
        )


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("fails", ["connecting", "listing", "as it is"])
def test_no_password_is_shown(address, fails, monkeypatch, caplog):
    def connect(given):
        if fails == "connecting":
            raise ValueError(f"no way to {given}: {PASSWORD} is wrong\nPASSWORD={PASSWORD}")
        return Talkative(given)

    if fails != "as it is":
        monkeypatch.setattr(ibis, "connect", connect)
    with caplog.at_level(logging.DEBUG), pytest.raises((DataError, MissingExtra)) as raised:
        open_table(address, "scores")
    error = raised.value
    told = "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    while error is not None:  # what carries no secret cannot show one either
        told, error = told + repr(error), error.__cause__ or error.__context__
    for secret in (PASSWORD, "p%40ss%2Fw%3Frd", address):
        assert secret not in told.replace(__file__, "")


def test_no_password_is_shown_by_an_audit(monkeypatch, refused):
    frame = table(50).lazy().with_columns(p=ibis_error())
    place = DatabaseTable("the table", frame, (PASSWORD,))
    assert PASSWORD not in repr(place)
    with refused(DataError) as raised:
        audit_table(place, **flat(**ASK))
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))


def ibis_error():
    def fail(column):
        raise RuntimeError(f"password {PASSWORD} refused")

    return pl.col("p").map_batches(fail, return_dtype=pl.Float64)


def test_reports_name_no_address(database, tmp_path):
    found = audit_table(open_table(f"duckdb:{database}", "scores"), **flat(**ASK))
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text() + found.to_json()
    assert str(database) not in text
    assert np.isfinite(found.worst().value)
