"""A release of groups by size follows from its measurements, small or large, and from no others."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from test_check import change_manifest, failed, verdicts
from test_measurement_files import change

from hierdp import Measurements, SimulatedNoise
from hierdp.checking import FAILS, HOLDS
from hierdp.counts.hierarchy import Hierarchy
from hierdp.execution import seal
from hierdp.measurements import file
from hierdp.measurements.file import MeasurementsFile
from hierdp.measurements.measuring import Recording
from hierdp.mechanisms.group_size import group_size, post_processing
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.record.files import MEASUREMENTS
from hierdp.record.spool import Spool, Steps
from hierdp.tables import GroupSizes
from tests.marks import quick

PLACES = Hierarchy.from_columns({"state": list("AAB"), "town": list("abc")}, ["state", "town"])
DATA = GroupSizes(PLACES, PLACES.tree.sum_up(np.array([[1, 2, 0], [0, 3, 1], [4, 0, 1]])))


def made(method):
    solver = SolverOptions(window=60, backend="fast") if method == "M_dp^OP" else None
    return group_size(DATA, 1.0, SimulatedNoise(1), method, solver)


@pytest.fixture
def written(tmp_path):
    return lambda method: made(method).write(tmp_path / method, report=False)


@pytest.fixture
def large(monkeypatch):
    """Blocks of one size; steps and measurements go to files at once, two answers at a time."""
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 6)
    monkeypatch.setattr(Steps, "MOST", 0)
    monkeypatch.setattr(Recording, "MOST", 0)
    monkeypatch.setattr(file, "ROWS", 2)


@pytest.mark.parametrize("method", METHODS)
def test_a_release_follows_from_its_measurements(method, written):
    found = verdicts(written(method))
    assert FAILS not in found.values()
    assert found["budget: queries"] == found["table from steps"] == found["noise"] == HOLDS


@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H^dp"]))
def test_a_large_release_has_the_measurements_of_a_small_one(method, tmp_path, monkeypatch):
    small = made(method)
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 6)
    monkeypatch.setattr(Steps, "MOST", 0)
    monkeypatch.setattr(Recording, "MOST", 0)
    monkeypatch.setattr(file, "ROWS", 2)
    release = made(method)
    assert isinstance(release.steps, Spool)
    assert isinstance(release.measurements.parts, MeasurementsFile)
    folder = release.write(tmp_path / "large")
    assert release.table.equals(small.table)
    again = Measurements.read(folder / MEASUREMENTS)
    assert again.spends == small.measurements.spends == release.ledger.spends
    for theirs, ours in zip(again, small.measurements, strict=True):
        assert theirs.answers.tolist() == ours.answers.tolist()
    assert pq.read_metadata(folder / MEASUREMENTS).num_row_groups == 9
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["budget: queries"] == found["table from steps"] == found["noise"] == HOLDS


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_can_be_changed(method, written):
    no_answer_can_be_changed(method, written, range(18))


@pytest.mark.parametrize("method", ["M_c^dp", "M_H"])
def test_the_first_and_the_last_answer_cannot_be_changed(method, written):
    no_answer_can_be_changed(method, written, [0, 17])


@pytest.mark.usefixtures("large")
def test_no_answer_of_a_large_release_can_be_changed(written):
    no_answer_can_be_changed("M_c^dp", written, [0, 5, 17])


def no_answer_can_be_changed(method, written, rows):
    """Each answer by itself, even by 1: the problem that starts from it is another one."""
    folder = written(method)
    before = (folder / MEASUREMENTS).read_bytes()
    for row in rows:

        def edit(frame, row=row):
            frame.loc[row, "answer"] += 1

        change(folder, edit)
        assert "table from steps" in failed(folder), row
        (folder / MEASUREMENTS).write_bytes(before)
    seal.seal(folder)
    assert not failed(folder)


@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H^dp"], first=1))
def test_a_stripped_file_is_noticed(method, written):
    folder = written(method)
    (folder / MEASUREMENTS).unlink()
    seal.seal(folder)
    assert "table from steps" in failed(folder)


@pytest.mark.parametrize(
    ("name", "value"), [("groups", 13), ("max_size", 3), ("window", 1), ("levels", ["root", "state"])]
)
def test_other_settings_do_not_give_the_release(name, value, written):
    folder = written("M_c^dp")
    change_manifest(folder, lambda manifest: manifest["settings"].update({name: value}))
    seal.seal(folder)
    assert "table from steps" in failed(folder)


def test_another_scale_is_noticed_in_the_file_and_in_the_budget(written):
    folder = written("M_c^dp")

    def edit(frame):
        frame.loc[4, "scale"] *= 2

    change(folder, edit)
    assert "table from steps" in failed(folder)
    other = written("M_H^dp")
    change_manifest(other, lambda manifest: manifest["budget"]["spends"][1].update(epsilon=0.2))
    seal.seal(other)
    assert {"table from steps", "budget: queries"} <= set(failed(other))


def test_another_order_of_levels_is_noticed(written):
    folder = written("M_c^dp")

    def swapped(frame):
        names = {0: 1, 1: 0, 2: 2}
        return frame.assign(measurement=frame["measurement"].map(names).astype(np.int32)).sort_values(
            ["measurement", "position"], ignore_index=True
        )

    def in_the_same_order(about):
        about["spends"][:2] = about["spends"][1::-1]

    change(folder, swapped, in_the_same_order)
    change_manifest(
        folder, lambda manifest: manifest["budget"]["spends"].insert(0, manifest["budget"]["spends"].pop(1))
    )
    seal.seal(folder)
    assert {"table from steps", "budget: queries"} <= set(failed(folder))


def test_the_measurements_are_all_noisy_counts_in_the_order_of_the_table(written):
    folder = written("M_H^dp")
    rows = pd.read_parquet(folder / MEASUREMENTS)
    assert rows["query"].tolist() == ["sizes by root"] * 3 + ["sizes by state"] * 6 + ["sizes by town"] * 9
    noisy = rows["answer"].to_numpy().reshape(-1, 3)
    assert np.abs(noisy - DATA.counts).max() < 100
    (step,) = made("M_H^dp").steps
    assert (np.asarray(step.model.noisy) == noisy).all()
