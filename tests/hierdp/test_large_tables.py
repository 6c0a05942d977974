"""Tables of group sizes too large for a DataFrame are written in parts, with the same rows and checks."""

import shutil
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from hierdp import SimulatedNoise, release
from hierdp.check import FAILS, HOLDS, OPEN, check
from hierdp.cli.app import main
from hierdp.counts import size_table
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_table import SizeTable
from hierdp.execution import seal
from hierdp.record import files, properties
from tests.marks import quick

PARTS = ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet", "part-00003.parquet"]


def made(method="M_c^dp"):
    region = np.repeat(np.arange(12), 1 + np.arange(12) % 5)
    table = pd.DataFrame({"state": region // 4, "county": region, "home": np.arange(region.size)})
    where = {"levels": ["state", "county"], "group": ["home"], "max_size": 4, "method": method}
    where |= {"regions_from_data": True, "groups_from_data": True}
    return release(table, "group-size", epsilon=1, noise=SimulatedNoise(1), **where)


@pytest.fixture
def large(monkeypatch):
    """Tables of 51 rows or more are written in parts of four regions (of 16) with 5 sizes each."""
    monkeypatch.setattr(size_table, "LARGE", 50)
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
    monkeypatch.setattr(size_table, "LARGE", 50)
    monkeypatch.setattr(size_table, "PART", 21)
    release = made()
    folder = release.write(tmp_path / "parts")
    assert sorted(path.name for path in (folder / "released.parquet").iterdir()) == PARTS
    for name in ("released", "finest"):
        assert not (folder / f"{name}.csv").exists()
        rows = [pd.read_parquet(path) for path in sorted((folder / f"{name}.parquet").iterdir())]
        assert pd.concat(rows, ignore_index=True).equals(pd.read_parquet(whole / f"{name}.parquet"))
        kinds = {pq.read_schema(path).remove_metadata() for path in (folder / f"{name}.parquet").iterdir()}
        assert len(kinds) == 1  # a reader of the whole folder uses the first part's types
    assert release.finest().equals(pd.read_parquet(whole / "finest.parquet"))
    assert (folder / "proofs.zip").read_bytes() == (whole / "proofs.zip").read_bytes()
    assert "the folder released.parquet" in (folder / files.REPORT).read_text()
    assert "released.csv" not in (folder / files.REPORT).read_text()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H^r"]))
def test_a_release_in_parts_passes_its_check(tmp_path, method):
    folder = made(method).write(tmp_path / "out")
    found = verdicts(folder)
    assert {verdict for verdict, _ in found.values()} <= {HOLDS, OPEN, "not claimed"}
    assert found["files"][1] == "13 files as sealed"
    assert found["tables"] == (HOLDS, "all parts and levels agree")
    assert found["report"][0] == HOLDS
    made().write(folder, overwrite=True)  # allowed, because it is an unchanged release


@pytest.mark.usefixtures("large")
def test_a_large_table_is_written_as_csv_on_request(tmp_path, monkeypatch):
    folder = made().write(tmp_path / "parts", large_csv=True)
    assert failed(folder) == {}
    monkeypatch.setattr(size_table, "LARGE", 100)
    whole = made().write(tmp_path / "whole")
    for name in ("released.csv", "finest.csv"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.usefixtures("large")
def test_a_csv_that_differs_is_found(tmp_path):
    folder = made().write(tmp_path / "out", large_csv=True)
    with (folder / "finest.csv").open("a") as file:
        file.write("0,0,0,0\n")
    assert failed(sealed(folder)) == {"tables": "finest.csv differs from released.parquet"}


def change(folder, name, column, row, value):
    path = folder / name
    frame = pd.read_parquet(path)
    frame.loc[row, column] = value
    pq.write_table(files.arrow_of(frame), path)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("part", quick(PARTS, every=3))
def test_a_changed_part_is_found(tmp_path, part):
    folder = made().write(tmp_path / "out")
    change(folder, f"released.parquet/{part}", "groups", 7, 99)
    found = failed(folder)
    assert found["files"] == f"released.parquet/{part} is not the file that was released"
    found = failed(sealed(folder))
    assert "'groups' is not what the steps give" in " ".join(found.values())
    assert "adding" in " ".join(found) or "consistent" in found


@pytest.mark.usefixtures("large")
def test_a_count_that_is_right_in_its_last_32_bits_is_found(tmp_path):
    """Counts are held in 32 bits where all groups fit."""
    folder = made().write(tmp_path / "out")
    name = f"released.parquet/{PARTS[3]}"
    value = int(pd.read_parquet(folder / name)["groups"].iloc[7]) + 2**32
    change(folder, name, "groups", 7, value)
    found = failed(sealed(folder))
    assert "'groups' is not what the steps give" in found["table from steps"]
    assert "do not add up" in found["consistent"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("column", "value"),
    quick([("region", "12"), ("parent", "9"), ("size", 8), ("level", 0), ("level_name", "x")], every=2),
)
def test_a_part_with_other_rows_is_found(tmp_path, column, value):
    folder = made().write(tmp_path / "out")
    change(folder, f"released.parquet/{PARTS[1]}", column, 7, value)
    why = f"released.parquet/{PARTS[1]} has other rows than the regions of regions.csv"
    assert failed(sealed(folder)) == {"readable": why}


@pytest.mark.usefixtures("large")
def test_another_finest_level_is_found(tmp_path):
    folder = made().write(tmp_path / "out")
    change(folder, f"finest.parquet/{PARTS[1]}", "groups", 3, 99)
    assert failed(sealed(folder)) == {"tables": "finest.parquet is not the last level of released.parquet"}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ["part-00004.parquet", "other.txt"])
def test_an_added_part_is_found(tmp_path, name):
    folder = made().write(tmp_path / "out")
    shutil.copy(folder / f"released.parquet/{PARTS[0]}", folder / f"released.parquet/{name}")
    assert failed(folder)["files"] == f"released.parquet/{name} was added"
    found = failed(sealed(folder))
    assert found["readable"] == "released.parquet has 5 files; its table has 4 parts"


@pytest.mark.usefixtures("large")
def test_a_missing_part_is_found(tmp_path):
    folder = made().write(tmp_path / "out")
    (folder / f"released.parquet/{PARTS[2]}").unlink()
    found = failed(folder)
    assert found["files"] == f"released.parquet/{PARTS[2]} is missing"
    assert found["readable"] == "released.parquet has 3 files; its table has 4 parts"


@pytest.mark.usefixtures("large")
def test_a_link_in_place_of_a_part_is_not_read(tmp_path):
    folder = made().write(tmp_path / "out")
    part = folder / f"released.parquet/{PARTS[0]}"
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    assert failed(folder) == {"files": f"{PARTS[0]!r}: a release contains regular files only"}


@pytest.mark.usefixtures("large")
def test_a_folder_in_place_of_a_small_table_is_found(tmp_path, monkeypatch):
    folder = made().write(tmp_path / "out")
    monkeypatch.setattr(size_table, "LARGE", 100)
    assert "only large tables are in parts" in " ".join(failed(folder).values())


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
    monkeypatch.setattr(size_table, "LARGE", 5)
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
