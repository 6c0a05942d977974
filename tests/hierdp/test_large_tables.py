"""Tables are written and read in parts, of any size."""

import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.cli.app import main
from hierdp.counts import size_table
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import SIZES
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import SizeTable, aligned, plain, same_rows
from hierdp.execution import seal
from hierdp.record import files, properties, written
from hierdp.record.compare import shape_of_regions
from hierdp.reports.counts import counts_section
from tests.marks import quick


def made(method="M_c^dp"):
    region = np.repeat(np.arange(12), 1 + np.arange(12) % 5)
    table = pd.DataFrame({"state": region // 4, "county": region, "home": np.arange(region.size)})
    where = {"levels": ["state", "county"], "group": ["home"], "max_size": 4, "method": method}
    where |= {"regions_from_data": True, "groups_from_data": True}
    return release(table, "group-size", epsilon=1, noise=SimulatedNoise(1), **where)


@pytest.fixture
def large(monkeypatch):
    """Tables are written in parts of four regions (of 16) with 5 sizes each; large ones have no CSV."""
    monkeypatch.setattr(files, "LARGE", 50)
    monkeypatch.setattr(size_table, "PART", 21)


def verdicts(folder, **options):
    return {line.check: (line.verdict, line.why) for line in check(folder, **options)}


def failed(folder):
    return {name: why for name, (verdict, why) in verdicts(folder).items() if verdict == FAILS}


def sealed(folder):
    (folder / "SHA256SUMS").unlink()
    seal.seal(folder)
    return folder


def test_parts_have_the_rows_of_the_table(tmp_path, monkeypatch):
    whole = made().write(tmp_path / "whole")
    monkeypatch.setattr(size_table, "PART", 21)
    release = made()
    folder = release.write(tmp_path / "parts")
    assert [len(part) for part in release.parts()] == [20] * 4
    for name, groups in (("released", 4), ("finest", 3)):
        file = pq.ParquetFile(folder / f"{name}.parquet")
        assert file.num_row_groups == groups
        assert pd.read_parquet(folder / f"{name}.parquet").equals(pd.read_parquet(whole / f"{name}.parquet"))
        assert (folder / f"{name}.csv").read_bytes() == (whole / f"{name}.csv").read_bytes()
    assert release.finest().equals(pd.read_parquet(whole / "finest.parquet"))
    assert (folder / "proofs.zip").read_bytes() == (whole / "proofs.zip").read_bytes()
    assert {verdict for verdict, _ in verdicts(whole).values()} <= {HOLDS, OPEN}  # read in other parts


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H^r"]))
def test_a_large_release_passes_its_check(tmp_path, method):
    folder = made(method).write(tmp_path / "out")
    assert not (folder / "released.csv").exists()
    assert not (folder / "finest.csv").exists()
    found = verdicts(folder)
    assert {verdict for verdict, _ in found.values()} <= {HOLDS, OPEN, "not claimed"}
    assert found["tables"] == (HOLDS, "all files and levels agree")
    assert found["report"][0] == HOLDS
    made().write(folder, overwrite=True)  # allowed, because it is an unchanged release


@pytest.mark.usefixtures("large")
def test_a_large_table_is_written_as_csv_on_request(tmp_path, monkeypatch):
    folder = made().write(tmp_path / "parts", large_csv=True)
    assert failed(folder) == {}
    monkeypatch.setattr(files, "LARGE", 100)
    whole = made().write(tmp_path / "whole")
    for name in ("released.csv", "finest.csv"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    (whole / "finest.csv").unlink()
    assert "finest.csv" in failed(sealed(whole))["tables"]  # a small table has both


@pytest.mark.usefixtures("large")
def test_a_csv_that_differs_is_found(tmp_path):
    folder = made().write(tmp_path / "out", large_csv=True)
    with (folder / "finest.csv").open("a") as file:
        file.write("0,0,0,0\n")
    assert failed(sealed(folder)) == {"tables": "finest.csv differs from released.parquet"}


def change(folder, name, column, row, value):
    """Change an entry of a file, and write it with other row groups."""
    path = folder / name
    frame = pd.read_parquet(path)
    frame.loc[row, column] = value
    frame.to_parquet(path, index=False, row_group_size=13)
    return sealed(folder)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("row", quick([7, 27, 47, 67], every=3))
def test_a_changed_count_is_found(tmp_path, row):
    folder = made().write(tmp_path / "out")
    found = failed(change(folder, "released.parquet", "groups", row, 99))
    assert found["table from steps"] == f"row {row + 1} of the table: 'groups' is not what the steps give"
    assert "do not add up" in found["consistent"]


@pytest.mark.usefixtures("large")
def test_a_count_that_is_right_in_its_last_32_bits_is_found(tmp_path):
    """Counts are held in 32 bits where all groups fit."""
    folder = made().write(tmp_path / "out")
    value = int(pd.read_parquet(folder / "released.parquet")["groups"].iloc[67]) + 2**32
    found = failed(change(folder, "released.parquet", "groups", 67, value))
    assert "'groups' is not what the steps give" in found["table from steps"]
    assert "do not add up" in found["consistent"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("column", "value"),
    quick([("region", "12"), ("parent", "9"), ("size", 8), ("level", 0), ("level_name", "x")], every=2),
)
def test_a_table_with_other_rows_is_found(tmp_path, column, value):
    folder = made().write(tmp_path / "out")
    found = failed(change(folder, "released.parquet", column, 27, value))
    assert found["table from steps"] == "the table does not have one row for each region and size, in order"


@pytest.mark.usefixtures("large")
def test_rows_in_another_order_are_found(tmp_path):
    folder = made().write(tmp_path / "out")
    path = folder / "released.parquet"
    pd.read_parquet(path)[::-1].to_parquet(path, index=False)
    assert "in order" in failed(sealed(folder))["table from steps"]


@pytest.mark.usefixtures("large")
def test_another_finest_level_is_found(tmp_path):
    folder = made().write(tmp_path / "out")
    why = "finest.parquet is not the last level of released.parquet"
    assert failed(change(folder, "finest.parquet", "groups", 23, 99)) == {"tables": why}
    made().write(folder, overwrite=True)
    path = folder / "finest.parquet"
    pd.read_parquet(path)[:-1].to_parquet(path, index=False)
    assert failed(sealed(folder)) == {"tables": why}


def test_pieces_of_two_tables():
    table = pa.table({"x": range(7)})
    ones, others = [table[:3], table[3:]], [table[:2], table[2:6], table[6:]]
    found = [(one["x"].to_pylist(), other["x"].to_pylist()) for one, other in aligned(ones, others)]
    assert found == [([0, 1], [0, 1]), ([2], [2]), ([3, 4, 5], [3, 4, 5]), ([6], [6])]
    for pair in ((ones, others[:2]), (ones[:1], others), (ones, [])):
        for one, other in (pair, pair[::-1]):
            assert not all(a.equals(b) for a, b in aligned(one, other))


# --- counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "region", "size", "by", "why"),
    [
        ("consistent", 3, 2, 1, "level 1, region 'A', size 2: the counts below do not add up to it"),
        ("consistent", 0, 1, 1, "level 0, region 'all', size 1: the counts below do not add up to it"),
        ("non_negative", 3, 0, -9, "row 10 is negative"),
        ("total", 0, 0, 1, "the table's total is 13, the manifest's 12"),
    ],
)
def test_the_properties_of_a_large_table(name, region, size, by, why):
    columns = {"zone": ["A", "B", "B"], "town": ["1", "2", "3"]}
    places = Hierarchy.from_columns(columns, ["zone", "town"])
    counts = places.tree.sum_up(np.array([[1, 2, 1], [3, 0, 0], [0, 4, 1]]))
    settings = {"groups": 12}
    table = SizeTable(places, counts)
    for each in (table, table.frame()):
        assert properties.holds(each, settings, {"region": places}) == dict.fromkeys(
            ("whole", "non_negative", "consistent", "total"), True
        )
    counts[region, size] += by
    for each in (table, table.frame()):
        assert properties.broken(each, settings, {"region": places})[name] == why


def named(names, known):
    codes = pa.array([None if name is None else known.index(name) for name in names], pa.int32())
    return pa.table({"region": pa.DictionaryArray.from_arrays(codes, known), "groups": [1, 2, 3, 4]})


def test_names_are_compared_however_they_are_numbered():
    one, other = named(["b", "a", None, "a"], ["b", "a"]), named(["b", "a", None, "a"], ["x", "a", "b"])
    assert same_rows(one, other)
    assert same_rows(other, one)
    assert plain(one).equals(plain(other))
    for wrong in (
        named(["b", "a", "x", "a"], ["x", "a", "b"]),
        named(["b", "a", None, "b"], ["b", "a"]),
        files.arrow_of(plain(one)),
        one.set_column(1, "groups", pa.array([1.0, 2, 3, 4])),
        one.rename_columns(["place", "groups"]),
        one[:3],
    ):
        assert not same_rows(one, wrong)
        assert not same_rows(wrong, one)


def test_rows_are_made_a_part_at_a_time(monkeypatch):
    """Making all parts of a table takes the memory of one part."""
    monkeypatch.setattr(size_table, "PART", 20_000)
    places = Hierarchy.flat("zone", np.arange(20_000).astype(str))
    table = SizeTable(places, np.ones((places.size, 50), np.int64))
    tracemalloc.start()
    try:
        seen = sum(len(part) for part in table.parts())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == len(table)
    assert (
        most < 20 * table.counts.size
    )  # the whole DataFrame takes 48 bytes per row, and twice that while it is made


def test_the_option_of_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files, "LARGE", 5)
    table = tmp_path / "homes.csv"
    table.write_text("state,home\n" + "".join(f"{n % 2},{n}\n" for n in range(8)))
    where = "--levels state --group home --max-size 3 --simulate 1 --regions-from-data --groups-from-data"
    out = tmp_path / "out"
    arguments = ["release", "group-size", str(table), "--epsilon", "1", "--out", str(out), *where.split()]
    for more in ([], ["--large-csv", "--overwrite"]):
        with pytest.raises(SystemExit) as end:
            main([*arguments, *more])
        assert end.value.code == 0, capsys.readouterr()
        assert (out / "released.csv").is_file() == bool(more)
        assert failed(out) == {}


def both_forms():
    """A table as an array, and as rows without those of no groups, as count-of-counts releases it."""
    columns = {"zone": ["A", "B", "B"], "town": ["1", "2", "3"]}
    places = Hierarchy.from_columns(columns, ["zone", "town"])
    table = SizeTable(places, places.tree.sum_up(np.array([[1, 2, 1], [3, 0, 0], [0, 4, 1]])))
    rows = table.frame()
    return places, table, rows[rows["groups"] > 0]


def test_the_runs_of_a_table():
    places, table, rows = both_forms()
    found, other = laid_out(table).runs(places), laid_out(rows).runs(places)
    assert found.groups.tolist() == [12, 4, 8, 4, 3, 5]
    assert found.people.tolist() == [10, 4, 6, 4, 0, 6]
    for name in ("offsets", "sizes", "counts"):
        assert getattr(found, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize("labels", [{}, {"B": "Bayside"}])
def test_a_report_draws_both_forms_alike(labels):
    _, table, rows = both_forms()
    found, other = (counts_section(laid_out(each).named(labels), {"max_size": 2}) for each in (table, rows))
    (chart, bars), (other_chart, same) = found.pictures, other.pictures
    assert chart == other_chart
    assert bars.title == same.title
    assert bars.frame.equals(same.frame)
    assert bars.frame.values.tolist() == [["B Bayside" if labels else "B", 8, 6], ["A", 4, 4]]


def test_sums_of_rows_are_checked_to_the_last_group():
    places, _, rows = both_forms()
    rows.loc[rows.index[-1], "groups"] += 1
    why = "level 1, region 'B', size 2: the counts below do not add up to it"
    assert properties.broken(rows, {"groups": 12}, {"region": places})["consistent"] == why


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"level": 5}, "a row has another level than 0 to 2"),
        ({"level_name": "x"}, "a row of level 0 has region at another level than 'root'"),
        ({"region": "x"}, "level 0: there is no region 'x'"),
        ({"parent": "A"}, "a row of level 0 has another parent than its region in regions.csv"),
    ],
)
def test_the_shape_of_rows(changed, why):
    places, _, rows = both_forms()
    settings = {"levels": ["root", "zone", "town"]}
    assert shape_of_regions(rows.assign(**changed), settings, {"region": places}, SIZES) == why


def test_counts_of_32_bits_need_less_memory_than_those_of_64(tmp_path, monkeypatch):
    folder = made().write(tmp_path / "out")
    path, manifest = folder / "released.parquet", written.read_manifest(folder)
    regions = written.read(folder).regions
    cells = pq.read_metadata(path).num_rows
    assert (written._NARROW_CELL, written._WIDE_CELL) == (20, 24)
    narrow, wide = 2_000, 2_400  # so that the file itself and its only row group need less
    monkeypatch.setattr(written, "_NARROW_CELL", narrow)
    monkeypatch.setattr(written, "_WIDE_CELL", wide)
    found, _ = written._size_table(path, manifest, regions, narrow * cells)
    assert found.counts.dtype == np.int32
    with pytest.raises(written.TooLarge):
        written._size_table(path, manifest, regions, narrow * cells - 1)
    change(folder, path.name, "groups", 0, 2**40)
    with pytest.raises(written.TooLarge):
        written._size_table(path, manifest, regions, wide * cells - 1)
    found, _ = written._size_table(path, manifest, regions, wide * cells)
    assert found.counts.dtype == np.int64


@pytest.mark.parametrize("named", [False, True])
def test_texts_that_would_take_too_much_memory_are_not_spelt_out(tmp_path, named):
    path = tmp_path / "released.parquet"
    pd.DataFrame({"region": ["x" * 10**5] * 1_000, "groups": 1}).to_parquet(path)
    with pytest.raises(written.TooLarge):
        list(written.read_parts(path, 10**8, named))
    assert [len(part) for part in written.read_parts(path, 10**9, named)] == [1_000]
