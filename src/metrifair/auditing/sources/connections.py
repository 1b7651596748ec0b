"""Open a table by the address of its database: duckdb:FILE, or one that Ibis supports.

Passwords are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from metrifair.errors import DataError, MissingExtra, Remedy
from metrifair.support.checks import require, shortlist

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DUCKDB = "duckdb:"
_LISTED = 20
# of files
_STORES = (
    "http",
    "https",
    "ftp",
    "sftp",
    "s3",
    "s3a",
    "gs",
    "gcs",
    "az",
    "abfs",
    "abfss",
    "hdfs",
)

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DatabaseTable:
    """A table, its name in messages, and the secrets that messages must not show."""

    name: str
    table: Any = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    file: str | None = None  # of the database, where it is one file


def is_address(text: str) -> bool:
    """Whether this is the address of a database, and not the path of a file.

    >>> [is_address(text) for text in ("postgres://me@host/db", "duckdb:scores.db", "C:/a.csv")]
    [True, True, False]
    """
    return text.startswith(_DUCKDB) or _ADDRESS.match(text) is not None


def run_query(name: str, query: Callable[[], T], secrets: Sequence[str] = ()) -> T:
    """Run a query; raise any error of the engine as a DataError of one sentence, without the
    secrets.

    The engine's error is not chained, because it may contain connection details.
    """
    try:
        return query()
    except DataError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        message = ": ".join([type(error).__name__, *lines[:1]])
        missing = isinstance(error, ImportError)
    for secret in secrets:
        message = message.replace(secret, "***")
    raise (MissingExtra if missing else DataError)(f"{name} cannot be read: {message[:300]}")


def open_table(address: str, table: str | None, query: str | None = None) -> DatabaseTable:
    """The table of this name in the database at this address, or the rows of a query.

    If there is no such table, a DataError lists those that exist. ``duckdb:FILE`` is opened for
    reading only. Other addresses are those of ``ibis.connect``.
    """
    kind = address.partition(":")[0].lower()
    if kind == "file":
        raise DataError(
            f"{address} is the address of a file",
            remedy="pass its path, without file://",
        )
    if kind in _STORES:
        raise DataError(
            f"{kind}:// addresses are not supported",
            remedy="download the file and pass its path; databases are duckdb:FILE and what Ibis "
            "connects to, such as "
            "postgres://user@host/database",
        )
    if table is not None and query is not None:
        raise DataError(
            "exclude each other",
            argument=("table", "query"),
            remedy="leave one of them out",
        )
    if address.startswith(_DUCKDB) and not address.startswith(f"{_DUCKDB}//"):
        return _in_duckdb(address.removeprefix(_DUCKDB), table, query)
    return _by_ibis(address, kind, table, query)


def _in_duckdb(file: str, table: str | None, query: str | None) -> DatabaseTable:
    if not Path(file).is_file():
        raise DataError(f"there is no file {file}")
    library = require("duckdb", extra="sql", purpose="auditing a DuckDB database")
    connection = run_query(file, lambda: library.connect(file, read_only=True))
    # it is drawn on standard output, where results may go
    connection.execute("SET enable_progress_bar = false")
    if query is not None:
        return DatabaseTable(
            f"the query of {file}",
            _query_rows(f"the query of {file}", connection, query),
            (),
            file,
        )
    list_tables = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    pairs = run_query(file, lambda: connection.sql(list_tables).fetchall())
    names = [name if schema == "main" else f"{schema}.{name}" for schema, name in pairs]
    source = _existing_table(file, table, names)
    return DatabaseTable(
        f"the table {source!r} of {file}",
        run_query(file, lambda: connection.table(source)),
        (),
        file,
    )


def _by_ibis(address: str, kind: str, table: str | None, query: str | None) -> DatabaseTable:
    database = f"the {kind} database"
    secrets = _secrets(address)
    library = require("ibis", extra="sql", purpose="auditing a table of a database")
    try:
        connection = run_query(database, lambda: library.connect(address), secrets)
    except MissingExtra:
        driver = kind
        if kind == "postgresql":
            driver = "postgres"
        raise MissingExtra(
            f'{database} needs its driver: pip install "ibis-framework[{driver}]"'
        ) from None
    if query is not None:
        name = f"the query of {database}"
        return DatabaseTable(name, _query_rows(name, connection, query, secrets), secrets)
    names = run_query(database, connection.list_tables, secrets)
    # A name with a point may name a table of another schema, which is not listed.
    schema, point, inner = (table or "").rpartition(".")
    if point and table not in names:
        relation = run_query(database, lambda: connection.table(inner, database=schema), secrets)
    else:
        existing = _existing_table(database, table, names)
        relation = run_query(database, lambda: connection.table(existing), secrets)
    return DatabaseTable(f"the table {table!r} of {database}", relation, secrets)


def _query_rows(name: str, connection: Any, query: str, secrets: Sequence[str] = ()) -> Any:
    """The rows that a query selects; a DataError if the text is not a query."""
    if not re.match(r"\s*(select|with|from|values)\b", query, re.IGNORECASE):
        raise DataError(
            "must be a query that selects rows",
            argument="query",
            received=query,
        )
    return run_query(name, lambda: connection.sql(query), secrets)


def _existing_table(database: str, table: str | None, names: Sequence[str]) -> str:
    """The name of the table, or a DataError that lists the existing tables."""
    if table in names:
        return str(table)
    tables = "it has no tables"
    if names:
        tables = f"its tables are {shortlist(list(map(repr, names)), _LISTED)}"
    if table is None:
        raise DataError(
            f"{database} is a database",
            remedy=Remedy("table", detail=f"; {tables}"),
        )
    raise DataError(f"{database} has no table {table!r}; {tables}")


def _secrets(address: str) -> tuple[str, ...]:
    """The parts of an address that messages must not show, longer ones first."""
    location = address.partition("://")[2]
    password = location.rpartition("@")[0].partition(":")[2]
    values = [
        password,
        *(value for _, value in parse_qsl(location.partition("?")[2])),
    ]
    forms = {
        form for value in values for form in (value, unquote(value), quote(unquote(value), safe=""))
    }
    if location:
        return tuple(sorted({address, *forms} - {""}, key=len, reverse=True))
    return ()
