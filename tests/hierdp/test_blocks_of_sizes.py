"""Large tables of group sizes are made consistent, proved, saved and checked in blocks of sizes."""

import gc
import json
import weakref
from dataclasses import replace
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from doubles import Double
from steps import save, solved_in

from hierdp import SimulatedNoise, execution, release
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms.group_size import mechanism, post_processing
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.record import files, proofs
from hierdp.record.spool import Steps
from hierdp.record.step import NotProved, Step
from hierdp.record.written import TooLarge
from hierdp.tables import GroupSizes, group_sizes
from hierdp.verification.verify import steps_of
from models import HierarchyQIP, Tree
from models.instances import packed
from solvers import fast
from tests.hierdp.changing import change_manifest
from tests.marks import quick

METHODS_IN_BLOCKS = quick(["M_c^dp", "M_H^dp"])


def made(method="M_c^dp", **options):
    region = np.repeat(np.arange(12), 1 + np.arange(12) % 5)
    home = np.arange(region.size)
    table = pd.DataFrame({"state": region // 4, "county": region, "home": home, "people": home % 7})
    where = {"levels": ["state", "county"], "group": ["home"], "entities": "people", "max_size": 6}
    where |= {"regions_from_data": True, "groups_from_data": True}
    return release(table, "group-size", epsilon=1, noise=SimulatedNoise(1), method=method, **where, **options)


@pytest.fixture
def blocks(monkeypatch):
    """A step for each region and blocks of at most three sizes (there are 16 regions), all saved at once."""
    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 1)
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 50)
    monkeypatch.setattr(Steps, "MOST", 0)


def failed(folder):
    return {line.check: line.why for line in check(folder) if line.verdict == FAILS}


@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_blocks_release_the_same_table_and_pass_their_check(tmp_path, monkeypatch, method):
    whole = made(method).write(tmp_path / "whole")
    assert {line.verdict for line in check(whole)} <= {HOLDS, OPEN}
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 50)
    several = made(method).write(tmp_path / "blocks")
    assert {line.verdict for line in check(several)} <= {HOLDS, OPEN}
    for name in ("released.parquet", "released.csv", "finest.csv", "regions.csv"):
        assert (several / name).read_bytes() == (whole / name).read_bytes()
    names = [line["step"] for line in json.loads((several / files.MANIFEST).read_text())["solved"]]
    assert names[-3:] == [
        f"consistency of all regions, sizes {cut}" for cut in ("0 to 2", "3 to 5", "6 to 6")
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("blocks")
def test_workers_give_the_same_files(tmp_path):
    here = made().write(tmp_path / "here")
    with execution.using(workers=2):
        there = made().write(tmp_path / "there")
    for name in ("released.parquet", "released.csv", "proofs.zip"):
        assert (there / name).read_bytes() == (here / name).read_bytes()


def rewritten(folder, change):
    """The same release with changed steps, manifest and table to match, sealed anew."""
    kept = [change(one) for one in solved_in(folder)]
    save(kept, folder)
    manifest = json.loads((folder / files.MANIFEST).read_text())
    for one, line in zip(kept, manifest["solved"], strict=True):
        proof = one.model.certificate(one.x, one.witness)
        line |= {"objective": str(proof.objective), "bound": str(proof.bound), "proved_optimal": bool(proof)}
    (folder / files.MANIFEST).write_text(json.dumps(manifest))
    table = pd.read_parquet(folder / "released.parquet")
    blocks = [np.asarray(one.x) for one in kept if np.ndim(one.x) == 2]
    table.assign(groups=np.hstack(blocks).ravel()).to_parquet(folder / "released.parquet", index=False)
    (folder / "SHA256SUMS").unlink()
    seal.seal(folder)
    return folder


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_a_group_moved_from_one_block_to_another_is_found(tmp_path, method):
    """Every block is proved optimal for its share, but the shares are not optimal."""

    def moved(one):
        by = {"sizes 0 to 2": 1, "sizes 3 to 5": -1}.get(one.name.rpartition(", ")[2], 0)
        if not by:
            return one
        model = HierarchyQIP(one.model.tree, one.model.counts, one.model.total + by)
        return replace(one, model=model, x=fast.answer(model)[0])

    folder = rewritten(made(method).write(tmp_path / "out"), moved)
    found = failed(folder)
    assert "certificates" not in found
    assert "moved from one block of sizes to another would cost less" in " ".join(found.values())


@pytest.mark.usefixtures("blocks")
def test_one_group_more_in_a_block_is_found(tmp_path):
    def more(one):
        if not one.name.endswith("sizes 3 to 5"):
            return one
        model = HierarchyQIP(one.model.tree, one.model.counts, one.model.total + 1)
        return replace(one, model=model, x=fast.answer(model)[0])

    found = failed(rewritten(made().write(tmp_path / "out"), more))
    assert "the blocks of sizes hold" in " ".join(found.values())


@pytest.mark.usefixtures("blocks")
def test_blocks_that_do_not_fit_together_are_not_released(monkeypatch):
    right = post_processing.solve_blocks

    def wrong(*arguments):
        (first, second, third), answers = right(*arguments)
        return [first + 1, second - 1, third], [None] * len(answers)

    monkeypatch.setattr(post_processing, "solve_blocks", wrong)
    with pytest.raises(NotProved, match="from one block of sizes to another"):
        made()


@pytest.mark.usefixtures("blocks")
def test_saved_steps_are_those_of_the_release(tmp_path):
    release = made()
    assert len(release.steps) == len(release.proved) == 19  # of 16 regions, and three blocks
    assert all(line.proved_optimal for line in release.proved)
    folder = release.write(tmp_path / "out")
    kept = list(proofs.read(folder / files.PROOFS))
    assert [one.name for one in kept] == [line.step for line in release.proved]
    assert (kept[-1].x[:, 0] == release.table["groups"][6::7]).all()
    with pytest.raises(InputError, match=r"use `Release\.proved`"):
        release.steps[0]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_the_problems_of_a_large_release_are_made_again_to_be_verified(method, monkeypatch):
    large = made(method)
    monkeypatch.setattr(Steps, "MOST", 10**6)
    small = made(method)
    assert not large.steps.in_memory
    for one, other in zip(steps_of(large), steps_of(small), strict=True):
        assert (one.name, one.problems) == (other.name, other.problems)
        ours, theirs = packed(one.model, one.solution.x), packed(other.model, other.solution.x)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
        assert one.proved.bound == other.proved.bound
    with pytest.raises(InputError, match="cannot make those of 'theirs'"):
        steps_of(replace(large, mechanism="theirs"))


@pytest.mark.usefixtures("blocks")
def test_the_temporary_file_is_deleted_with_the_release():
    release = made()
    folder = release.steps._path.parent
    assert folder.stat().st_mode & 0o077 == 0
    del release
    gc.collect()
    assert not folder.exists()


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_few_steps_are_in_memory_at_once(tmp_path, monkeypatch, method):
    """A step may still be referenced while the next is solved or read, but not longer."""

    def counted(kind, part):
        def start(self, *arguments, **options):
            before(self, *arguments, **options)
            alive.add(part(self))
            most.append(len(alive))

        alive, most, before = weakref.WeakSet(), [], kind.__init__
        monkeypatch.setattr(kind, "__init__", start)
        return most

    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 1)  # otherwise all regions are one task
    models, answers = counted(Step, lambda step: step.model), counted(proofs.SavedStep, lambda step: step)
    folder = made(method).write(tmp_path / "out")
    assert max(models) <= 2
    models.clear()
    assert failed(folder) == {}
    assert max(models) <= 2
    assert max(answers) <= 2


@pytest.mark.usefixtures("blocks")
def test_only_one_step_has_to_fit_the_limit(tmp_path):
    path = made().write(tmp_path / "out") / files.PROOFS
    with ZipFile(path) as file:
        sizes = [info.file_size for info in file.infolist()]
    most = 3 * max(sizes)
    assert 2 * most < sum(sizes)
    lines = json.loads((path.parent / files.MANIFEST).read_text())["solved"]
    assert len(list(proofs.read(path, lines, 2 * most))) == 19
    with pytest.raises(TooLarge, match=r"reading proofs\.zip"):
        list(proofs.read(path, lines, most - 1))


@pytest.mark.usefixtures("blocks")
def test_a_table_of_another_size_than_its_settings_is_found_before_arrays_are_made(tmp_path):
    folder = made().write(tmp_path / "out")
    change_manifest(folder, lambda manifest: manifest["settings"].update(max_size=10**4))
    (folder / "SHA256SUMS").unlink()
    seal.seal(folder)
    why = "the table does not have one row for each region and size, in order"
    assert failed(folder)["table from steps"] == why


def test_a_level_measured_in_parts_is_one_measurement(monkeypatch):
    places = Hierarchy.flat("zone", [str(k) for k in range(7)])
    data = GroupSizes(places, places.tree.sum_up(np.arange(21).reshape(7, 3)))
    five = Double(lambda counts: counts + 5)
    whole, _ = mechanism.measure(data, 1.0, five, METHODS["M_c^dp"])
    monkeypatch.setattr(mechanism, "CELLS_AT_ONCE", 7)  # two regions
    parts, _ = mechanism.measure(data, 1.0, five, METHODS["M_c^dp"])
    made = mechanism.m_c_dp(data, 1.0, SimulatedNoise(1))
    assert [true.shape for true in five.true] == [(1, 3), (7, 3), (1, 3), (2, 3), (2, 3), (2, 3), (1, 3)]
    assert len(made.measurements) == 2
    assert [one.answers.size for one in made.measurements] == [3, 21]
    assert (whole == parts).all()
    assert (whole - np.cumsum(data.counts, axis=1) == 5).all()


def test_true_counts_are_not_kept_while_solving(monkeypatch):
    """They would take as much memory as the noisy counts."""
    true, solving = [], mechanism.post_process

    def counting(*arguments, **options):
        data = group_sizes(*arguments, **options)
        true.extend([weakref.ref(data), weakref.ref(data.counts)])
        return data

    def post_processing(*arguments, **options):
        gc.collect()
        assert [one() for one in true] == [None, None]
        return solving(*arguments, **options)

    monkeypatch.setattr(mechanism, "group_sizes", counting)
    monkeypatch.setattr(mechanism, "post_process", post_processing)
    made()
    assert len(true) == 2


def test_a_program_over_all_sizes_is_not_split(monkeypatch):
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 1)
    for name in ("M_H", "M_H^r", "M_c", "M_c^r", "M_dp^OP"):
        assert METHODS[name].blocks(16, 7, None) == [slice(0, 7)]
    assert METHODS["M_H^dp"].blocks(16, 7, 3) == [slice(0, 7)]
    assert METHODS["M_H^dp"].blocks(16, 7, None) == [slice(k, k + 1) for k in range(7)]


@pytest.mark.usefixtures("blocks")
def test_an_answer_beyond_the_groups_is_found(tmp_path):
    """Its counts are held in 32 bits, which may hide a multiple of 2³²: the certificate must fail."""

    def beyond(one):
        if not one.name.endswith("sizes 0 to 2"):
            return one
        x = one.x.copy()
        x[3, 1] += 2**32
        return replace(one, x=x)

    found = failed(rewritten(made("M_H^dp").write(tmp_path / "out"), beyond))
    assert "certificates" in found


def test_a_known_answer_is_proved_and_not_trusted():
    model = HierarchyQIP(Tree([[0, 0]]), [[3, 1], [2, 0], [2, -1]], total=5)
    best, feasible, broken = ([[4, 1], [2, 1], [2, 0]], [[3, 2], [1, 1], [2, 1]], [[4, 1], [2, 1], [1, 0]])
    step = Step.solve("sizes", model, known=np.array(best))
    assert step.proved == replace(Step.solve("sizes", model).proved, seconds=0)
    for wrong in (feasible, broken):
        with pytest.raises(NotProved):
            Step.solve("sizes", model, known=np.array(wrong))
