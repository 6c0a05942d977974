"""A release of groups by size, small or large, follows from its measurements, and from no others."""

from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_check import change_manifest, failed, verdicts
from test_measurement_files import CASES, change

from hierdp import Measurements
from hierdp.checking import FAILS, HOLDS, check
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.execution import seal
from hierdp.measurements import file
from hierdp.measurements.file import MeasurementsFile
from hierdp.measurements.measuring import MeasureTruth, OtherQuery, Recording, ReplayRecorded
from hierdp.measurements.query import Query
from hierdp.mechanisms.count_of_counts import count_of_counts, estimates
from hierdp.mechanisms.count_of_counts import plan as plans
from hierdp.mechanisms.count_of_counts.estimates import Sizes
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.files import MEASUREMENTS
from hierdp.record.spool import Steps
from models import Tree
from tests.hierdp.doubles import hierarchy
from tests.marks import quick


@pytest.fixture
def large(monkeypatch):
    """Regions share steps; groups are pooled; steps and measurements go to files, two answers at a time."""
    monkeypatch.setattr(plans, "BATCHED_FROM", 2)
    monkeypatch.setattr(plans, "CELLS_A_STEP", 7)
    monkeypatch.setattr(estimates, "CELLS", 9)
    monkeypatch.setattr(estimates, "BLOCK", 4)
    monkeypatch.setattr(Steps, "MOST", 60)
    monkeypatch.setattr(Recording, "MOST", 0)
    monkeypatch.setattr(file, "ROWS", 2)


@pytest.fixture
def written(tmp_path):
    return lambda name: CASES[name].release().write(tmp_path / "out", report=False, overwrite=True)


SMALL = ("Hc", "Hg", "bottom-up", "Hc2, all levels at once", "Hg x naive x Hg1, everything secret")


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", quick(SMALL, first=2))
def test_a_large_release_streams_and_follows_from_its_measurements(name, tmp_path):
    release = CASES[name].release()
    assert isinstance(release.measurements.parts, MeasurementsFile)
    folder = release.write(tmp_path / "out", report=False)
    again = Measurements.read(folder / MEASUREMENTS)
    assert again.spends == release.ledger.spends
    answers = sum(one.answers.size for one in again)
    assert pq.read_metadata(folder / MEASUREMENTS).num_row_groups == -(-answers // 2)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["budget: queries"] == found["table from steps"] == found["noise"] == HOLDS
    before = (folder / MEASUREMENTS).read_bytes()
    for row in range(0, answers, 3):

        def edit(frame, row=row):
            frame.loc[row, "answer"] += 1

        change(folder, edit)
        assert "table from steps" in failed(folder), row
        (folder / MEASUREMENTS).write_bytes(before)


def test_the_neighbouring_relation_follows_from_the_settings(written):
    folder = written("Hc, everything secret")
    relation = "one entity joins or leaves a group; regions and groups are public"
    change_manifest(folder, lambda manifest: manifest["budget"].update(neighbouring_relation=relation))
    seal.seal(folder)
    assert "manifest" in failed(folder)


def test_the_measurements_are_the_true_answers_with_noise():
    """Of regions with groups only, in the order of the table; one answer for each size, or each group."""
    rows = CASES["Hg x Hc x naive"].release().measurements.to_frame()
    assert rows.groupby("query", sort=False, observed=True).size().to_dict() == {
        "sizes of groups in order by root": 13,
        "cumulative sizes by state": 3 * 3,
        "sizes by town": 4 * 4,
    }
    exact = SizeRuns(hierarchy([[0, 0]]), Runs.from_dense([[1, 2, 1], [0, 1, 1], [1, 1, 0]]))
    made = count_of_counts(exact, 1e9, SimulatedNoise(1), "Hg x Hc", max_size=2)
    assert [one.answers.tolist() for one in made.measurements] == [[0, 1, 1, 2], [0, 1, 1, 2]]
    made = count_of_counts(exact, 1e9, SimulatedNoise(1), "naive x Hc", max_size=1)
    assert [one.answers.tolist() for one in made.measurements] == [[1, 3], [0, 1]]
    made = count_of_counts(exact, 1e9, SimulatedNoise(1), "Hg", max_size=1)
    assert [one.answers.tolist() for one in made.measurements] == [[0, 1, 1, 1], [1, 1, 0, 1]]
    made = count_of_counts(exact, 3e9, SimulatedNoise(1), "Hc", size_budget=1e9, group_budget=1e9)
    assert [one.answers.tolist() for one in made.measurements.parts[:3]] == [[2], [4], [2, 2]]


TREE = Tree([[0, 0, 0], [0, 0, 2, 2]])


def asks(sizes):
    """A query in parts about a list of numbers, each of which is its answer."""
    ends = np.cumsum([0, *sizes])
    cut = lambda truth: (truth[a:b] for a, b in pairwise(ends))  # noqa: E731
    return Query("counts", 1, 0.5, int(ends[-1]), cut, in_parts=True)


@pytest.mark.parametrize("sizes", [[6], [1, 1, 4], [2, 4], [5, 1], [3, 3]])
@pytest.mark.parametrize("rows", [1, 2, 4, 100])
def test_recorded_parts_are_those_that_were_measured(sizes, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "ROWS", rows)
    monkeypatch.setattr(Recording, "MOST", 1000 if rows > 4 else 3)
    measure = MeasureTruth(np.arange(6) * 100, SimulatedNoise(1))
    first, second = (measure.each(asks(sizes), sizes) for _ in range(2))
    measure.end()
    drawn = [[part.tolist() for part in parts] for parts in (first, second)]
    measure.measurements.write(tmp_path / "file")
    for found in (measure.measurements, Measurements(MeasurementsFile(tmp_path / "file"))):
        assert [one.answers.tolist() for one in found] == [[*chain(*parts)] for parts in drawn]
        recorded = ReplayRecorded(found)
        both = [recorded.each(asks(sizes), sizes) for _ in range(2)]
        recorded.end()
        assert recorded.ended
        assert [[part.tolist() for part in parts] for parts in both] == drawn
        assert np.concatenate([one.noisy for one in recorded.recovered]).tolist() == [*chain(*chain(*drawn))]


@pytest.mark.parametrize("sizes", [[5], [2, 3], [7], [2, 5]])
@pytest.mark.parametrize("rows", [1, 100])
def test_other_numbers_of_answers_are_refused_before_the_last_part(sizes, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "ROWS", rows)
    measure = MeasureTruth(np.arange(6), SimulatedNoise(1))
    assert len(list(measure.each(asks([2, 4]), [2, 4]))) == 2
    measure.measurements.write(tmp_path / "file")
    found = Measurements(MeasurementsFile(tmp_path / "file"))
    parts, got = ReplayRecorded(found).each(asks(sizes), sizes), []
    with pytest.raises(OtherQuery, match=f"has {sum(sizes)} answers, but 6 are recorded"):
        got.extend(parts)
    assert len(got) < len(sizes)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [4, 2], [2, 4], [6]])
def test_levels_in_parts_are_compared_where_regions_have_groups(sizes):
    """One of three parents and one of four children has no groups; each of the others has two answers."""
    above = replace(asks([4]), level=(TREE, 1), nodes=np.array([0, 2]))
    below = replace(asks(sizes), level=(TREE, 2), nodes=np.array([0, 2, 3]))
    measure = MeasureTruth(np.array([5, 60, 7, 80, 9, 90]), SimulatedNoise(1))
    first = np.concatenate(list(measure.each(above, [4]))).reshape(2, 2)
    children = np.concatenate(list(measure.each(below, sizes))).reshape(3, 2)
    recorded = ReplayRecorded(measure.measurements)
    list(recorded.each(above, [4]))
    list(recorded.each(below, sizes))
    (twice,) = recorded.redundant
    expected = first - [children[0], children[1] + children[2]]
    assert twice.differences.tolist() == expected.ravel().tolist()
    assert twice.counts.tolist() == [1, 1, 2, 2]


def test_sizes_of_secret_numbers_of_groups_are_not_compared(written):
    """Groups were cut or added at each level by itself, so only the numbers of groups are compared."""
    found = {line.check: line.why for line in check(written("Hc, everything secret"))}
    assert found["noise"].startswith("4 sums measured twice differ")


@pytest.mark.parametrize("method", ["Hg", "Hc"])
def test_a_step_of_many_regions_has_the_groups_of_each(method):
    """The last group of a region may have the size of the first group of the next."""
    together = estimates.Together(np.array([1, 3]), np.array([2, 3]), estimates.METHODS[method], Sizes(4))
    runs = Runs.from_rows([((9,), (9,)), ((1, 3), (1, 1)), ((), ()), ((3, 4), (2, 1))])
    (true,) = together.true(runs)
    assert true.size == together.cells == sum(together.sizes)
    found = together.estimates(true, None)
    assert [found.of(row)[0].tolist() for row in range(2)] == [[1, 3], [3, 4]]
    assert found.counts.tolist() == [1, 1, 2, 1]
