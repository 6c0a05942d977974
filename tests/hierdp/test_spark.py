"""The same expressions on Spark, in a local session; only `make test-spark` runs these tests."""

import os
import shutil

import numpy as np
import pandas as pd
import pytest
from test_tables import COUNTY_OF, PLACES, plain_flows, plain_sizes

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, check
from hierdp.errors import InputError
from hierdp.tables import Database, Prefixes, flows, group_sizes, read

pytestmark = pytest.mark.spark

COUNTIES = list(COUNTY_OF)


@pytest.fixture(scope="module")
def spark():
    SparkSession = pytest.importorskip("pyspark.sql").SparkSession
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none: apt-get install openjdk-17-jre-headless")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    wishes = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "3",
    }
    session = SparkSession.builder.master("local[2]").appName("hierdp")
    for name, value in wishes.items():
        session = session.config(name, value)
    session = session.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.parametrize("unknown", [None, "?"])
def test_group_sizes_match_plain_python(spark, unknown):
    rng = np.random.default_rng(1)
    homes = {f"{g:03}": COUNTIES[g % len(COUNTIES)] for g in range(40)}
    rows = [
        (homes[g], g, int(n))
        for g, n in zip(rng.choice(list(homes), 300), rng.integers(0, 4, 300), strict=True)
    ]
    if unknown is not None:
        rows += [(None, "zz", 2), ("nowhere", "yy", 1), (COUNTIES[0], None, 3), (None, None, 1)]
    frame = spark.createDataFrame([(c, g and str(g), n) for c, g, n in rows], "c string, g string, n long")
    sizes = group_sizes(
        frame, regions=PLACES, region="c", group=["g"], entities="n", max_size=9, unknown=unknown
    )
    expected = plain_sizes(rows, 9, unknown)
    places = sizes.hierarchy.frame()
    for region, row in zip(zip(places.level, places.region, strict=True), sizes.counts, strict=True):
        assert {k: n for k, n in enumerate(row) if n} == expected[region]


@pytest.mark.parametrize("texts", [False, True])
def test_flows_match_plain_python(spark, texts):
    rng = np.random.default_rng(2)
    rows = [(*rng.choice(COUNTIES, 2), int(n)) for n in rng.integers(0, 2**40, 200)]
    frame = pd.DataFrame(rows, columns=["o", "d", "n"])
    source = spark.createDataFrame(
        frame.astype({"n": object}).assign(n=frame.n.map(" +{}.0".format)) if texts else frame
    )
    table = flows(source, axes={"origin": (PLACES, "o"), "destination": (PLACES, "d")}, count="n")
    names = [axis.names[-1] for axis in table.axes]
    found = {(names[0][a], names[1][b]): int(n) for (a, b), n in zip(table.cells, table.counts, strict=True)}
    assert found == plain_flows(rows, None)


def test_entities_groups_and_codes(spark):
    people = spark.createDataFrame(pd.DataFrame({"g": ["001", "001", "2"]}))
    groups = pd.DataFrame({"g": ["001", "2", "3"], "fips": ["01001", "02001", "01001"]})
    levels = Prefixes("fips", {"state": 2, "county": 5})
    for listed in (groups, spark.createDataFrame(groups)):
        sizes = group_sizes(people, groups=listed, group="g", max_size=3, levels=levels)
        assert sizes.counts.tolist() == [[1, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["2", "-7777"], "the count is negative"),
        (["2", "77.77"], "the count is fractional"),
        (["2", "9223372036854775808"], "the count is too large"),
        (["2", None], "the count is missing"),
        ([2.0, float("nan")], "the count is missing"),
        ([2.0, 1e300], "the count is too large"),
        ([2, -7777], "the count is negative"),
    ],
)
def test_bad_counts(spark, column, message):
    kind = {str: "string", float: "double", int: "long"}[type(column[0])]
    source = spark.createDataFrame(list(zip("ab", column, strict=True)), f"c string, n {kind}")
    with pytest.raises(InputError, match=f"^a row, column 'n': {message}") as caught:
        flows(source, axes={"c": ["c"]}, count="n")
    assert "777" not in str(caught.value)


def test_errors_hold_no_values(spark):
    frame = spark.createDataFrame(pd.DataFrame({"c": ["a", "7777"]}))
    frame.createOrReplaceTempView("seven")
    failing = spark.sql("SELECT c, CAST(c AS INT) AS n FROM seven")
    with pytest.raises(InputError, match=r"cannot read the table \(\w+ of pyspark\)") as caught:
        flows(failing, axes={"c": ["c"]}, count="n")
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "777" not in str(error)


def test_a_release_from_spark(spark, tmp_path):
    import ibis

    frame = pd.DataFrame({"s": ["01", "01", "é"] * 5, "g": range(15)})
    source = spark.createDataFrame(frame)
    options = {"epsilon": 1, "levels": ["s"], "group": ["g"], "max_size": 3,
        "regions_from_data": True, "groups_from_data": True}  # fmt: skip
    made = release(source, "group-size", noise=SimulatedNoise(1), **options)
    here = release(frame, "group-size", noise=SimulatedNoise(1), **options)
    pd.testing.assert_frame_equal(made.table, here.table)
    assert all(line.verdict != FAILS for line in check(made.write(tmp_path / "out", report=False)))
    source.createOrReplaceTempView("people")
    assert read(ibis.pyspark.connect(spark).table("people")).count().to_pyarrow().as_py() == 15
    assert Database("pyspark://local", query="SELECT 1").shown == "pyspark://local"


@pytest.mark.parametrize("known", [True, False], ids=["lists", "from data"])
def test_tables_of_attributes_match_those_of_a_frame(spark, known, tmp_path):
    """Spark counts the rows: the release is the same as from the rows themselves."""
    rng = np.random.default_rng(4)
    county = rng.choice(["A1", "A2", "B1", "B2"], 500)
    rows = pd.DataFrame({"state": [one[0] for one in county], "county": county})
    rows["group"] = rng.choice(["a", "b", "ç"], 500, p=[0.6, 0.3, 0.1])
    rows["age"] = rng.choice(["old", "young"], 500)
    rows["n"] = rng.integers(0, 4, 500)
    options = {
        "levels": ["state", "county"],
        "regions_from_data": True,
        "count": "n",
        "invariants": ["state:total"],
        "zeros": ["group=ç,age=young"],
        "attributes": {"group": ["a", "b", "ç"], "age": ["old", "young"]} if known else ["group", "age"],
        "attributes_from_data": not known,
        "epsilon": 1,
        "delta": 1e-6,
    }
    rows = rows[(rows.group != "ç") | (rows.age == "old")]
    there, here = (
        release(source, "tabulation", noise=SimulatedNoise(5), **options)
        for source in (spark.createDataFrame(rows), rows)
    )
    pd.testing.assert_frame_equal(there.table, here.table)
    assert there.manifest()["settings"] == here.manifest()["settings"]
    assert [line.why for line in check(there.write(tmp_path / "out")) if line.verdict == FAILS] == []
    if known:
        strange = spark.createDataFrame(rows.replace({"age": {"old": "other"}}))
        with pytest.raises(InputError, match=r"column 'age' has 1 categories .* 'other'"):
            release(strange, "tabulation", **options)
