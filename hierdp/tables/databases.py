"""Tables in a database: a DuckDB file, PostgreSQL, or any database that Ibis reaches by a URL.

A URL may contain a password. It is passed to the database's library only, and never appears in a message, a
manifest or the text of an object. Error messages of such a library may quote the URL or values, so they are
replaced.
"""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

from hierdp.errors import InputError, listed

EXTRAS = {"postgresql": "postgres", "postgres": "postgres", "pyspark": "spark"}
"""The extra of hierdp to install for each scheme of a URL."""

_OPEN: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Connections in use, shared so that two tables of one database can be joined there."""

_IN_MEMORY = ":memory:"
"""DuckDB's name of a new database; the tests set one that all connections of their process share."""


@dataclass(frozen=True)
class Database:
    """The rows of a table, or of a query, in a database.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/name``, a DuckDB file (``survey.duckdb``, ``duckdb:///survey.duckdb``), or
        any URL for `ibis.connect`. Avoid a password in the URL: PostgreSQL reads it from ``PGPASSWORD`` or
        ``~/.pgpass``. Empty: DuckDB without a file, for a query over files.
    table : str, optional
        Name of the table, ``people``, or with its schema, ``census.people``.
    query : str, optional
        Instead of a table: a SELECT statement in the database's SQL.

    Raises
    ------
    InputError
        If there is neither a table nor a query, or both.

    Examples
    --------
    >>> Database("postgresql://ann:secret@db.example/census", table="people")
    Database(url='postgresql://ann:***@db.example/census', table='people', query=None)
    """

    url: str
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise InputError("for a database, give either a table or a query")
        if not self.url and self.query is None:
            raise InputError("give the database of the table; without a database, give a query over files")

    def __repr__(self) -> str:
        return f"Database(url={self.shown!r}, table={self.table!r}, query={self.query!r})"

    @property
    def shown(self) -> str:
        """The URL without a password, for messages."""
        scheme, there, rest = self.url.partition("://")
        if not there:
            return self.url
        place, question, _ = rest.partition("?")  # options may hold a password, too
        who, at, where = place.rpartition("@")
        name, colon, _ = who.partition(":")
        return f"{scheme}://{name}{':***' if colon else ''}{at}{where}{'?…' if question else ''}"

    @property
    def file(self) -> Path | None:
        """The DuckDB file, if it is one."""
        scheme, there, path = self.url.partition("://")
        local = self.url and (scheme == "duckdb" or not there)
        return Path(path if there else self.url) if local else None

    def files_read(self) -> list[Path]:
        """The DuckDB file, and the files that a query names; not those whose names it computes."""
        found = [] if self.file is None else [self.file]
        if self.query is not None and (self.file is not None or not self.url):
            found += _files_named(self.query)
        return found

    def connect(self) -> Any:
        """The connection; it is shared while one of its tables is in use.

        Raises
        ------
        InputError
            If the connection fails; without the message of the database's library.
        """
        if not self.url:
            return embedded()
        found = _OPEN.get(self.url)
        if found is None:
            found = _OPEN[self.url] = self._connect()
        return found

    def open(self) -> Any:
        """The rows as an Ibis table; only its columns are read.

        Raises
        ------
        InputError
            If the table does not exist, or the query fails.
        """
        connection = self.connect()
        if self.query is not None:
            problem = None
            try:
                return _rows_of(connection, self.query)
            except Exception as error:  # its message may quote values of the query
                problem = InputError(
                    f"the query failed ({type(error).__name__}); give one SELECT in the SQL of "
                    f"{connection.name}, over existing tables and columns"
                )
            raise problem
        assert self.table is not None
        schema, dot, name = self.table.rpartition(".")
        there: list[str] = []
        problem = None
        try:
            there = _tables(connection)
            if self.table in there:
                return connection.table(self.table)
            if dot:
                return connection.table(name, database=schema)
        except Exception as error:
            problem = _refused(error, f"the table {self.table!r} of {self.shown}")
        if problem is None or dot:
            known = f"its tables are {listed(sorted(there), most=20)}" if there else "it has none"
            raise InputError(f"no table {self.table!r} in {self.shown}; {known}")
        raise problem

    def _connect(self) -> Any:
        if self.file is not None:
            if not self.file.is_file():
                raise InputError(f"the database {str(self.file)!r} does not exist")
            return embedded(self.file)
        scheme = self.url.partition("://")[0]
        import ibis

        problem = None
        try:
            return ibis.connect(self.url)
        except ImportError:
            extra = EXTRAS.get(scheme)
            how = f"pip install 'hierdp[{extra}]'" if extra else f"pip install 'ibis-framework[{scheme}]'"
            problem = InputError(f"reading from {scheme} needs a library that is not installed; run {how}")
        except Exception as error:
            problem = _refused(error, self.shown)
        raise problem


def _rows_of(connection: Any, query: str) -> Any:
    """A query's rows, through a temporary view; Ibis's own method fails with DuckDB 2.0 and sqlglot 30."""
    import ibis

    name = ibis.util.gen_name("query")
    view = f"CREATE TEMPORARY VIEW {name} AS {query.strip().rstrip(';')}"
    if connection.name == "duckdb":
        connection.con.execute(view)
    elif connection.name == "postgres":
        with connection.con.cursor() as cursor, connection.con.transaction():
            cursor.execute(view, binary=True)  # binary mode allows only one statement
    else:
        return connection.sql(query)
    return connection.table(name)


def _files_named(query: str) -> list[Path]:
    """The files that a query of DuckDB names anywhere: those that any text in it matches."""
    connection = embedded().con
    parsed = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()[0]
    texts = {re.sub("^file:(//(localhost)?)?", "", text) for text in _texts(json.loads(parsed))}
    names = {text for text in texts if "://" not in text}
    find = "SELECT file FROM glob(?)"
    return [Path(file) for name in sorted(names) for (file,) in connection.execute(find, [name]).fetchall()]


def _texts(parsed: Any) -> Iterator[str]:
    """All texts in a parsed statement; the parts of a table's name also as one, as in ``FROM visits.csv``."""
    if isinstance(parsed, str):
        yield parsed
    if isinstance(parsed, dict) and parsed.get("type") == "BASE_TABLE":
        yield ".".join(filter(None, map(parsed.get, ("catalog_name", "schema_name", "table_name"))))
    inner = parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else ()
    for part in inner:
        yield from _texts(part)


def _tables(connection: Any) -> list[str]:
    if connection.name != "duckdb":
        return list(connection.list_tables())
    named = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    return [str(name) for (name,) in connection.con.execute(named).fetchall()]


def embedded(file: Path | None = None) -> Any:
    """DuckDB in this process; a file is opened read-only.

    DuckDB must not write temporary files, which would contain true counts. Under a limit on address space
    (``ulimit -v``) it starts no threads, as the system ends a process that has no memory for one's data.
    """
    import duckdb
    import ibis

    _load_dialects_on_demand()
    problem, settings = None, dict[str, Any](temp_directory="")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        settings["threads"] = 1
        if not duckdb.__version__.startswith("1."):
            settings["async_threads"] = 0
    try:
        made = ibis.duckdb.connect(_IN_MEMORY if file is None else file, file is not None, **settings)
        with suppress(duckdb.InvalidInputException):  # in Jupyter without ipywidgets
            made.con.execute("SET enable_progress_bar = false")  # it would print to stdout
        return made
    except duckdb.Error as error:
        problem = InputError(
            f"cannot open {str(file)!r} ({type(error).__name__}): check that it is a DuckDB database, and "
            "that no other program is writing to it"
        )
    raise problem


COMPILERS = "ibis.backends.sql.compilers"
"""Ibis's package of a compiler for each dialect of SQL, and of the class of each."""


class _OnDemand(ModuleType):
    """A package whose modules are loaded when they are first used, and its own code for any other name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        with suppress(ModuleNotFoundError):
            return importlib.import_module(f"{self.__name__}.{name}")
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        if name not in self.__dict__:
            raise AttributeError(name)
        return self.__dict__[name]


def _load_dialects_on_demand() -> None:
    """Load only those of Ibis's twenty compilers that are used: to import all takes as long as DuckDB."""
    found = None if COMPILERS in sys.modules else importlib.util.find_spec(COMPILERS)
    if found is not None:
        parent, _, name = COMPILERS.rpartition(".")
        module = _OnDemand(COMPILERS)
        module.__spec__, module.__path__ = found, list(found.submodule_search_locations or ())
        sys.modules[COMPILERS] = module
        setattr(sys.modules[parent], name, module)


_REASONS = {
    r"password|authentication|role .* does not exist": "the user or the password is refused",
    r"database .* does not exist": "there is no such database",
    r"refused|could not translate|resolve|No such file|timeout|unreachable": "it cannot be reached",
    r"permission denied": "the user may not read it",
}


def _refused(error: Exception, what: str) -> InputError:
    said = str(error)
    reasons = (reason for pattern, reason in _REASONS.items() if re.search(pattern, said, re.IGNORECASE))
    return InputError(f"cannot read from {what}: {next(reasons, type(error).__name__)}")
