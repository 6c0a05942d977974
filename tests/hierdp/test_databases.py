"""Tables in databases: DuckDB files, a PostgreSQL server, queries; passwords are never shown."""

import gc
import itertools
import json
import logging
import sys

import duckdb
import numpy as np
import pandas as pd
import postgres
import pytest
from click.testing import CliRunner
from doubles import everything_in
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tables import COUNTY, PLACES, group_rows, plain_flows, plain_sizes, some

from hierdp import release
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.tables import Database, Prefixes, flows, group_sizes, read, read_regions

pytestmark = pytest.mark.slow

NUMBER = itertools.count()


@pytest.fixture(scope="module")
def server():
    if postgres.why_not():
        pytest.skip(postgres.why_not())
    with postgres.server() as (url, password):
        yield url, password


class InDuckDB:
    """Makes tables of frames in a DuckDB file."""

    engine = "duckdb"

    def __init__(self, folder):
        self.file = folder / "all.duckdb"
        self.url = str(self.file)

    def table(self, frame):
        name = f"t{next(NUMBER)}"
        gc.collect()  # nothing may have it open for reading
        with duckdb.connect(self.file) as connection:
            connection.register("rows_given", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_given")
        return Database(self.url, table=name)

    def run(self, sql):
        gc.collect()
        with duckdb.connect(self.file) as connection:
            connection.execute(sql)


class InPostgres:
    """Makes tables of frames in PostgreSQL: texts as text, whole numbers as bigint."""

    engine = "postgres"

    def __init__(self, url):
        self.url = url

    def table(self, frame):
        name = f"t{next(NUMBER)}"
        kinds = {"i": "bigint", "f": "double precision", "b": "boolean"}
        columns = ", ".join(f"{c} {kinds.get(frame[c].dtype.kind, 'text')}" for c in frame)
        self.run(f"CREATE TABLE {name} ({columns})")
        rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
        import psycopg

        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * frame.shape[1])})", rows)
        return Database(self.url, table=name)

    def run(self, sql):
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.execute(sql)


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def database(request, tmp_path_factory):
    if request.param == "duckdb":
        return InDuckDB(tmp_path_factory.mktemp("databases"))
    return InPostgres(request.getfixturevalue("server")[0])


# --- the same counts as by plain Python ------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [None, "?"])
@given(data=st.data(), max_size=st.integers(1, 6))
@settings(max_examples=8, deadline=None)
def test_group_sizes_match_plain_python(database, unknown, data, max_size):
    rows = data.draw(group_rows(missing=unknown is not None))
    frame = pd.DataFrame(rows, columns=["c", "g", "n"]).astype({"c": object, "g": object})
    sizes = group_sizes(
        database.table(frame),
        regions=PLACES,
        region="c",
        group=["g"],
        entities="n",
        max_size=max_size,
        unknown=unknown,
    )
    expected = plain_sizes(rows, max_size, unknown)
    places = sizes.hierarchy.frame()
    for region, row in zip(zip(places.level, places.region, strict=True), sizes.counts, strict=True):
        assert {k: n for k, n in enumerate(row) if n} == expected[region]


@pytest.mark.parametrize("unknown", [None, "?"])
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_flows_match_plain_python(database, unknown, data):
    place = some(COUNTY, unknown is not None)
    rows = data.draw(st.lists(st.tuples(place, place, st.integers(0, 2**40)), min_size=1, max_size=20))
    frame = pd.DataFrame(rows, columns=["o", "d", "n"]).astype({"o": object, "d": object})
    axes = {"origin": (PLACES, "o"), "destination": (PLACES, "d")}
    table = flows(database.table(frame), axes=axes, count="n", unknown=unknown)
    names = [axis.names[-1] for axis in table.axes]
    found = {(names[0][a], names[1][b]): int(n) for (a, b), n in zip(table.cells, table.counts, strict=True)}
    assert found == plain_flows(rows, unknown)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (["2", " +3.0 ", "007"], None),
        ([2, 3, 7], None),
        ([2.0, 3.0, 7.0], None),
        (["2", "3", "1e3"], "the count is not a number"),
        (["2", "3", "-7777"], "the count is negative"),
        (["2", "3", "77.77"], "the count is fractional"),
        (["2", "3", "9223372036854775808"], "the count is too large"),
        (["2", "3", None], "the count is missing"),
        ([2.0, 3.0, float("nan")], "the count is missing"),
        ([2, 3, -7777], "the count is negative"),
        ([2.0, 3.0, 1e300], "the count is too large"),
        ([2.0, 3.0, 77.77], "the count is fractional"),
    ],
)
def test_counts_of_any_type(database, counts, message):
    source = database.table(pd.DataFrame({"c": ["a", "a", "b"], "n": counts}))
    if message is None:
        assert flows(source, axes={"c": ["c"]}, count="n").counts.tolist() == [5, 7]
        return
    row = "row 3" if database.engine == "duckdb" else "a row"  # only rows of files and DuckDB have an order
    with pytest.raises(InputError, match=f"^{row}, column 'n': {message}") as caught:
        flows(source, axes={"c": ["c"]}, count="n")
    assert "777" not in str(caught.value).replace(database.url, "")


def test_regions_of_any_type(database):
    rows = {"t": ["01", "é", "", None], "f": [1.0, 2.5, np.nan, 1e300], "b": [True, False, True, True]}
    source = database.table(pd.DataFrame({**rows, "i": [1, 2, 3, 4]}))
    names = {c: flows(source, axes={c: [c]}, unknown="?").axes[0].names[1].tolist() for c in "tbi"}
    assert names == {"t": ["01", "?", "é"], "b": ["?", "false", "true"], "i": ["1", "2", "3", "4", "?"]}
    found = flows(source, axes={"f": ["f"]}, unknown="?").axes[0].names[1].tolist()
    assert found == ["1", "1e+300", "2.5", "?"]


def test_entities_groups_and_regions_in_one_database(database):
    people = database.table(pd.DataFrame({"g": ["001", "001", "2"]}))
    groups = database.table(pd.DataFrame({"g": ["001", "2", "3"], "fips": ["01001", "02001", "01001"]}))
    lengths = {"state": 2, "county": 5}
    places = read_regions(groups, Prefixes("fips", lengths))
    for where in ({"regions": places, "region": "fips"}, {"levels": Prefixes("fips", lengths)}):
        sizes = group_sizes(people, groups=groups, group="g", max_size=3, **where)
        assert sizes.counts.tolist() == [[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]


def test_groups_in_a_file_beside_a_database(database, tmp_path):
    people = database.table(pd.DataFrame({"g": ["001", "001", "2"]}))
    groups = pd.DataFrame({"g": ["001", "2", "3"], "c": ["a", "b", "a"]})
    groups.to_csv(tmp_path / "groups.csv", index=False)
    for listed in (groups, tmp_path / "groups.csv"):
        sizes = group_sizes(people, groups=listed, levels="c", group="g", max_size=3)
        assert sizes.counts.tolist() == [[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0]]
    people = pd.DataFrame({"g": ["001", "001", "2"]})
    sizes = group_sizes(people, groups=database.table(groups), levels="c", group="g", max_size=3)
    assert sizes.counts.tolist() == [[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0]]


def test_queries_and_schemas(database):
    source = database.table(pd.DataFrame({"c": ["a", "a", "b"], "n": [1, 2, 4]}))
    for end in ("", ";", " ;\n"):
        query = Database(database.url, query=f"SELECT c, n FROM {source.table} WHERE n > 1{end}")
        assert flows(query, axes={"c": ["c"]}, count="n").counts.tolist() == [2, 4]
    name = f"s{next(NUMBER)}"
    database.run(f"CREATE SCHEMA {name}")
    database.run(f"CREATE TABLE {name}.trips AS SELECT * FROM {source.table}")
    assert flows(Database(database.url, table=f"{name}.trips"), axes={"c": ["c"]}, count="n").total == 7


def test_what_is_not_there(database):
    source = database.table(pd.DataFrame({"c": ["a"], "n": [7777]}))
    for rows, message in (
        ({"table": "nobody"}, r"no table 'nobody' in .*; its tables are "),
        ({"table": "no.body"}, r"no table 'no.body' in .*; its tables are "),
        ({"query": "SELEC c"}, r"the query failed \(.*\); give one SELECT"),
        ({"query": f"SELECT d FROM {source.table}"}, "the query failed"),
        ({"query": "SELECT c FROM nobody"}, "the query failed"),
        ({"query": f"SELECT 1 AS c; DROP TABLE {source.table}"}, "the query failed"),
        ({"query": f"DROP TABLE {source.table}"}, "the query failed"),
    ):
        with pytest.raises(InputError, match=message):
            read(Database(database.url, **rows))
    with pytest.raises(InputError, match="no column 'm' in the data; its columns are 'c', 'n'"):
        flows(source, axes={"c": ["c"]}, count="m")
    fails = Database(database.url, query=f"SELECT c, CAST(c || n AS INTEGER) AS n FROM {source.table}")
    with pytest.raises(InputError, match=r"cannot read the table \(.*\)") as caught:
        flows(fails, axes={"c": ["c"]}, count="n")
    said = f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
    assert "777" not in said.replace(database.url, "")  # a file's path has the number of the test run


# --- DuckDB ----------------------------------------------------------------------------------------------


def test_a_query_over_files(tmp_path):
    for year in (2012, 2013):
        pd.DataFrame({"c": ["a", "b"], "y": year}).to_parquet(tmp_path / f"trips-{year}.parquet")
    query = f"SELECT * FROM '{tmp_path}/trips-*.parquet' WHERE y = 2013"
    assert flows(Database("", query=query), axes={"c": ["c"]}).total == 2


def test_duckdb_files(tmp_path):
    file = tmp_path / "a.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS c")
    before = file.read_bytes()
    for url in (str(file), f"duckdb://{file}"):
        assert flows(Database(url, table="t"), axes={"c": ["c"]}).total == 1
    assert file.read_bytes() == before
    with pytest.raises(InputError, match=r"the database '.*none\.duckdb' does not exist"):
        read(Database(str(tmp_path / "none.duckdb"), table="t"))
    (tmp_path / "b.duckdb").write_text("no database")
    with pytest.raises(InputError, match=r"cannot open '.*b\.duckdb' \(IOException\)"):
        read(Database(str(tmp_path / "b.duckdb"), table="t"))
    with pytest.raises(
        InputError, match=r"cannot tell the format of '.*a\.duckdb'.* Database\(file, table\)"
    ):
        read(file)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give either a table or a query"),
        ({"table": "a", "query": "SELECT 1"}, "either a table or a query"),
        ({"url": "", "table": "a"}, "give the database of the table"),
    ],
)
def test_incomplete_database_arguments(given, message):
    with pytest.raises(InputError, match=message):
        Database(**{"url": "x.duckdb", **given})


# --- passwords -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:pw@h/x", "postgresql://ann:***@h/x"),
        ("postgresql://ann:p@w:q@h:5/x?password=pw", "postgresql://ann:***@h:5/x?…"),
        ("postgresql://:pw@h/x", "postgresql://:***@h/x"),
        ("postgresql://ann@h/x", "postgresql://ann@h/x"),
        ("postgresql:///x?user=ann&password=pw", "postgresql:///x?…"),
        ("survey.duckdb", "survey.duckdb"),
    ],
)
def test_no_password_is_shown(url, shown):
    database = Database(url, table="t")
    assert database.shown == shown
    assert "pw" not in repr(database)
    assert "w:q" not in repr(database)


def chain(error):
    while error is not None:
        yield repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda url: url.replace("pass@", "word@"), "the user or the password is refused"),
        (lambda url: url.rpartition("/")[0] + "/none", "there is no such database"),
        (lambda url: url.rpartition(":")[0] + ":1/postgres", "it cannot be reached"),
        (lambda url: url.rpartition(":")[0] + ":port/postgres", "cannot read from postgresql://ann"),
    ],
)
def test_a_server_that_refuses(server, change, message, caplog):
    caplog.set_level(logging.DEBUG)
    url, password = server
    with pytest.raises(InputError, match=message) as caught:
        read(Database(change(url), table="t"))
    text = "".join(chain(caught.value)) + caplog.text
    assert "***" in text
    assert password[:5] not in text


def test_a_release_from_postgres_holds_no_password(server, tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    url, password = server
    table = InPostgres(url).table(pd.DataFrame({"s": ["A", "A", "B"], "g": [1, 1, 2]})).table
    InPostgres(url).run(
        "CREATE TABLE IF NOT EXISTS states AS SELECT 'A' AS s UNION SELECT 'C' UNION SELECT 'B'"
    )
    options = ["--group", "g", "--max-size", "3", "--epsilon", "1", "--levels", "s", "--groups-from-data"]
    options += ["--regions", "states", "--region-levels", "s", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["release", "group-size", table, "--database", url, *options])
    assert done.exit_code == 0, done.output
    seen = done.output + everything_in(tmp_path / "out") + caplog.text
    assert password not in seen
    assert pd.read_parquet(tmp_path / "out" / "finest.parquet")["s"].unique().tolist() == ["A", "B", "C"]
    monkeypatch.setenv("PGPASSWORD", password)
    monkeypatch.setenv("HIERDP_DATABASE", url.replace(f":{password}", ""))
    query = ["--query", f"SELECT * FROM {table}", *options, "--overwrite"]
    done = CliRunner().invoke(main, ["release", "group-size", *query])
    assert done.exit_code == 0, done.output


def test_a_url_in_the_wrong_place(tmp_path):
    url = "postgresql://ann:secret@h/x?table=people"
    common = ["--levels", "s", "--regions-from-data", "--groups-from-data", "--group", "g",
        "--max-size", "3", "--epsilon", "1", "--out", str(tmp_path / "o")]  # fmt: skip
    done = CliRunner().invoke(main, ["release", "group-size", url, *common])
    assert done.exit_code == 2
    assert "URL with --database" in done.output
    assert "secret" not in done.output
    with pytest.raises(InputError, match=r"Database\(url, table=…\)") as caught:
        read(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no table: give TABLE, the name of a file or table, or --sql SQL"),
        (["people", "--query", "SELECT 1"], "no table: give TABLE"),
        (["people"], "no file 'people'; a table of a database needs --database URL"),
        (["people", "--database", "none.duckdb"], "the database 'none.duckdb' does not exist"),
    ],
)
def test_which_rows(tmp_path, arguments, message):
    common = ["--levels", "s", "--regions-from-data", "--groups-from-data", "--group", "g",
        "--max-size", "3", "--epsilon", "1", "--out", str(tmp_path / "o")]  # fmt: skip
    done = CliRunner().invoke(main, ["release", "group-size", *arguments, *common])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_libraries_that_are_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "ibis.backends.postgres", raising=False)
    with pytest.raises(
        InputError, match=r"reading from postgresql needs .*; run pip install 'hierdp\[postgres\]'"
    ):
        read(Database("postgresql://ann@127.0.0.1:1/none", table="t"))
    with pytest.raises(InputError, match=r"pip install 'ibis-framework\[mysql\]'"):
        read(Database("mysql://ann:secret@127.0.0.1:1/none", table="t"))
    with pytest.raises(InputError, match="cannot read from nosuch://h/x") as caught:
        read(Database("nosuch://h/x", table="t"))
    assert caught.value.__cause__ is None


def test_the_manifest_says_where_groups_are_from():
    people = pd.DataFrame({"g": [1, 1, 2]})
    groups = pd.DataFrame({"g": [1, 2, 3], "s": ["A", "A", "B"]})
    for name, options in (("group-size", {"max_size": 3}), ("count-of-counts", {"max_size": 9})):
        made = release(people, name, epsilon=1, groups=groups, levels=["s"], group=["g"], **options)
        public = json.loads(json.dumps(made.manifest()))["taken_as_public"]
        assert public["which_groups"] == "from a table of groups"
        assert made.settings["groups"] == 3
