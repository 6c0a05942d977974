"""Large tables of group sizes are made consistent, proved, saved and checked in blocks of sizes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hierdp import SimulatedNoise, execution, release
from hierdp.check import FAILS, HOLDS, OPEN, check
from hierdp.execution import seal
from hierdp.mechanisms.group_size import repairs
from hierdp.mechanisms.group_size.repairs import METHODS
from hierdp.record import files, proofs
from hierdp.record.step import NotProved, Step
from models import HierarchyQIP
from solvers import Solution, fast

METHODS_IN_BLOCKS = ["M_c^dp", "M_H^dp"]


def made(method="M_c^dp", **options):
    region = np.repeat(np.arange(12), 1 + np.arange(12) % 5)
    home = np.arange(region.size)
    table = pd.DataFrame({"state": region // 4, "county": region, "home": home, "people": home % 7})
    where = {"levels": ["state", "county"], "group": ["home"], "entities": "people", "max_size": 6}
    where |= {"regions_from_data": True, "groups_from_data": True}
    return release(table, "group-size", epsilon=1, noise=SimulatedNoise(1), method=method, **where, **options)


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of at most three sizes (there are 16 regions)."""
    monkeypatch.setattr(repairs, "CELLS_A_BLOCK", 50)


def failed(folder):
    return {line.check: line.why for line in check(folder) if line.verdict == FAILS}


@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_blocks_release_the_same_table_and_pass_their_check(tmp_path, monkeypatch, method):
    whole = made(method).write(tmp_path / "whole")
    monkeypatch.setattr(repairs, "CELLS_A_BLOCK", 50)
    several = made(method).write(tmp_path / "blocks")
    for name in ("released.parquet", "released.csv", "finest.csv", "regions.csv"):
        assert (several / name).read_bytes() == (whole / name).read_bytes()
    names = [line["step"] for line in json.loads((several / files.MANIFEST).read_text())["solved"]]
    assert names[-3:] == [
        f"consistency of all regions, sizes {cut}" for cut in ("0 to 2", "3 to 5", "6 to 6")
    ]
    for folder in (whole, several):  # the first is like releases of 0.1
        assert {line.verdict for line in check(folder)} <= {HOLDS, OPEN}


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
    kept = [change(one) for one in proofs.read(folder / files.PROOFS)]
    steps = []
    for one in kept:
        proof = one.model.certificate(one.x, one.witness)
        known = {"objective": proof.objective, "bound": proof.bound, "certificate": proof}
        found = Solution("", "", "optimal", one.x, witness=one.witness, **known)
        steps.append(Step(one.step, one.model, found, one.problems))
    proofs.write(steps, folder / files.PROOFS)
    manifest = json.loads((folder / files.MANIFEST).read_text())
    manifest["solved"] = [step.proved.line for step in steps]
    (folder / files.MANIFEST).write_text(json.dumps(manifest))
    (folder / "SHA256SUMS").unlink()
    seal.seal(folder)
    return folder


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", METHODS_IN_BLOCKS)
def test_a_group_moved_from_one_block_to_another_is_found(tmp_path, method):
    """Every block is proved optimal for its share, but the shares are not optimal."""

    def moved(one):
        by = {"sizes 0 to 2": 1, "sizes 3 to 5": -1}.get(one.step.rpartition(", ")[2], 0)
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
        if not one.step.endswith("sizes 3 to 5"):
            return one
        model = HierarchyQIP(one.model.tree, one.model.counts, one.model.total + 1)
        return replace(one, model=model, x=fast.answer(model)[0])

    found = failed(rewritten(made().write(tmp_path / "out"), more))
    assert "the blocks of sizes hold" in " ".join(found.values())


@pytest.mark.usefixtures("blocks")
def test_blocks_that_do_not_fit_together_are_not_released(monkeypatch):
    right = repairs.share_out

    def wrong(*arguments):
        first, second, third = right(*arguments)
        return [first + 1, second - 1, third]

    monkeypatch.setattr(repairs, "share_out", wrong)
    with pytest.raises(NotProved, match="from one block of sizes to another"):
        made()


def test_a_program_over_all_sizes_is_not_split(monkeypatch):
    monkeypatch.setattr(repairs, "CELLS_A_BLOCK", 1)
    for name in ("M_H", "M_H^r", "M_c", "M_c^r", "M_dp^OP"):
        assert METHODS[name].blocks(16, 7, None) == [slice(0, 7)]
    assert METHODS["M_H^dp"].blocks(16, 7, 3) == [slice(0, 7)]
    assert METHODS["M_H^dp"].blocks(16, 7, None) == [slice(k, k + 1) for k in range(7)]
