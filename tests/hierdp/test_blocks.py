"""Groups by size from a table of one's own, and Kuo et al.'s study of them."""

from dataclasses import replace

import pandas as pd
import pytest

from hierdp.data.blocks import blocks
from hierdp.errors import InputError
from hierdp.experiments.papers import kuo2018

TABLE = pd.DataFrame(
    {
        "state": ["02", "02", "01", "01", "01"],
        "county": ["0201", "0201", "0102", "0101", "0101"],
        "size": [0, 3, 2, 5, 0],
        "groups": [4, 1, 2, 1, 7],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_counties_add_up(tmp_path, suffix):
    path = tmp_path / f"White.{suffix}"
    TABLE.to_csv(path, index=False) if suffix == "csv" else TABLE.to_parquet(path)
    data = blocks(path)
    assert data.hierarchy.levels == ("nation", "state", "county")
    found = {
        str(name): dict(zip(*(part.tolist() for part in data.runs.of(row)), strict=True))
        for row, name in enumerate([name for names in data.hierarchy.names for name in names])
    }
    assert found == {
        "US": {0: 11, 2: 2, 3: 1, 5: 1},
        "01": {0: 7, 2: 2, 5: 1}, "02": {0: 4, 3: 1},
        "0101": {0: 7, 5: 1}, "0102": {2: 2}, "0201": {0: 4, 3: 1},
    }  # fmt: skip


@pytest.mark.parametrize("wrong", [{"size": "county"}, {"groups": -1}, {"size": "many"}])
def test_other_tables_are_refused(tmp_path, wrong):
    table = TABLE.drop(columns="size") if wrong == {"size": "county"} else TABLE.assign(**wrong)
    table.to_csv(tmp_path / "White.csv", index=False)
    with pytest.raises(InputError, match=r"White\.csv"):
        blocks(tmp_path / "White.csv")


@pytest.mark.slow
def test_a_file_has_the_published_row_of_its_name(tmp_path):
    TABLE.to_csv(tmp_path / "White.csv", index=False)
    few = replace(kuo2018.QUICK, table_runs=2, max_size=20)
    made = {
        name: frame
        for part in kuo2018.study(few, tmp_path / "White.csv").parts
        for name, frame in part.frames.items()
    }
    table = made["bottom_up"]
    assert set(table.data) == {"White"}
    assert table[table.noise == "published"].level_0.tolist() == [448_909.0, 17_000.0]
    assert set(made["figure6"].data) == set(made["figure4"].data) == {"White"}
    assert made["one_region"].published.dropna().tolist() == [4_809_679_734]
