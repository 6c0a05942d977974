"""Figure 3: errors are measured on the answers of releases, and agree with those that they state."""

from types import SimpleNamespace

import numpy as np
import pytest

from hierdp.experiments.papers import qardaji2013
from hierdp.experiments.papers.qardaji2013 import histograms

pytestmark = pytest.mark.slow

TINY = SimpleNamespace(runs=2, curve_queries=20, curve_sizes=3)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "dpbench").mkdir()
    rng = np.random.default_rng(0)
    np.save(folder / "dpbench" / "SPARSE.npy", rng.integers(1, 9, 128) * (rng.random(128) < 0.1))
    np.save(folder / "dpbench" / "FULL.npy", rng.integers(50, 90, 128))
    np.save(folder / "dpbench" / "PLANE.npy", rng.integers(0, 9, (16, 16)))
    return folder


@pytest.fixture(scope="module")
def made(data):
    return {part.name: part for part in qardaji2013.curve_parts(TINY, histograms(data), 3)}


def test_every_part_is_there_and_drawn(made):
    assert list(made) == ["figure3", "figure3-profiles", "figure3-boxes", "repairs"]
    assert all(part.figure is not None for part in made.values())
    assert {name for part in made.values() for name in part.frames} == {
        "figure3", "profiles", "figure3_boxes", "repairs", "repairs_spread"
    }  # fmt: skip


def test_errors_are_those_that_the_releases_state(made):
    table = made["figure3"].frames["figure3"]
    assert len(table) == 2 * 3 * len(qardaji2013.ONE_AXIS)
    assert set(table["size"]) == {1, 64, 128}
    known = table[table.method != "StructureFirst"]
    assert known.expected_mse.notna().all()
    assert table[table.method == "StructureFirst"].expected_mse.isna().all()
    flat = known[known.method == "Flat"].set_index(["data", "size"])
    # Noise of scale 1 on each bin has a variance of 1/(2 sinh² ½).
    assert flat.expected_mse["FULL", 64] == pytest.approx(64 / (2 * np.sinh(0.5) ** 2))
    for method in set(known.method):
        mine = known[known.method == method]
        assert 0.2 < mine.mse.mean() / mine.expected_mse.mean() < 5
    boxes = made["figure3-boxes"].frames["figure3_boxes"]
    assert set(boxes.method) == {line.label for line in qardaji2013.TWO_AXES}


def test_the_same_seed_gives_the_same_numbers(made, data):
    again = {part.name: part for part in qardaji2013.curve_parts(TINY, histograms(data), 3)}
    for name, part in made.items():
        for frame, table in part.frames.items():
            assert table.equals(again[name].frames[frame]), (name, frame)
    other = qardaji2013.curve_parts(TINY, histograms(data), 4)[0].frames["figure3"]
    assert not other.mse.equals(made["figure3"].frames["figure3"].mse)


def test_repairs_are_compared_with_least_squares(made):
    table = made["repairs"].frames["repairs"]
    least = table[table.repair == "least squares"]
    assert (least.ratio == 1).all()
    assert (least.runs == 8).all()
    assert set(table.queries) == {"1 bin", "16 bins", "all ranges"}  # there are only 128 bins
    sparse = table[(table.data == "SPARSE") & (table.queries == "1 bin") & (table.epsilon == 0.1)]
    sparse = sparse.set_index("repair").ratio
    assert sparse["non-negative"] < 0.5
    assert sparse["non-negative"] < sparse[qardaji2013.CLIPPED] < 1


def test_no_data_give_no_parts(tmp_path):
    assert histograms(tmp_path) == histograms(None) == {}
    np.save(tmp_path / "ages.npy", np.arange(96))
    assert [part.name for part in qardaji2013.curve_parts(TINY, histograms(tmp_path / "ages.npy"), 0)] == [
        "figure3", "figure3-profiles", "repairs"
    ]  # fmt: skip
