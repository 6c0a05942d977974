"""The problems of thousands of regions are solved, proved, saved and checked side by side."""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from steps import save, solved_in

from hierdp import SimulatedNoise, release, verify
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.execution import seal
from hierdp.mechanisms.group_size import post_processing
from hierdp.record import files
from models.arithmetic import kernels
from tests.hierdp.changing import change_manifest
from tests.marks import quick


def homes(regions):
    """A table with two levels and some homes in each region."""
    region = np.repeat(np.arange(regions), 1 + np.arange(regions) % 3)
    return pd.DataFrame({"state": region // 4, "county": region, "home": np.arange(region.size)})


def made(table, seed=1):
    options = {"levels": ["state", "county"], "group": ["home"], "max_size": 2,
        "regions_from_data": True, "groups_from_data": True}  # fmt: skip
    return release(table, "group-size", epsilon=1, noise=SimulatedNoise(seed), **options)


def failed(folder):
    return {line.check: line.why for line in check(folder) if line.verdict == FAILS}


@pytest.fixture
def few(monkeypatch):
    """Make tasks small."""
    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 18)


def test_regions_side_by_side_are_released_as_each_alone(tmp_path, monkeypatch):
    def checked(release, name):
        folder = release.write(tmp_path / name)
        found = {line.check: line for line in check(folder)}
        assert {line.verdict for line in found.values()} <= {HOLDS, OPEN}
        assert found["certificates"].why.startswith("17 of 17 steps proved optimal")
        return folder

    table = homes(12)
    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 1)
    alone = checked(made(table), "alone")
    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 18)
    several = made(table)
    together = checked(several, "several")
    for name in ("released.parquet", "released.csv", "finest.csv", "regions.csv"):
        assert (together / name).read_bytes() == (alone / name).read_bytes()
    lines = json.loads((together / files.MANIFEST).read_text())["solved"]
    assert [line.get("problems") for line in lines] == [6, 6, 4, None]
    assert [line["variables"] for line in lines] == [18, 18, 12, 48]
    assert "17 of 17 steps" in repr(several)


@pytest.mark.usefixtures("few")
def test_every_backend_sees_the_problems_of_single_regions():
    found = verify(made(homes(8)), backends=["highs"], sample=3)
    assert found.agree
    assert (
        found.note
        == "M_c^dp: 3 of 11 Isotonic models (evenly spread over the regions), the HierarchyQIP model"
    )
    names = [row.step for row in found.rows]
    assert (names[0], names[-1]) == ("root all", "consistency of all regions")


def rewritten(folder, change):
    """The same release with other steps, sealed anew."""
    save([change(at, kept) for at, kept in enumerate(solved_in(folder))], folder)
    (folder / "SHA256SUMS").unlink()
    seal.seal(folder)
    return folder


def other_answer(region, entry, by):
    def change(at, kept):
        if at:
            return kept
        x = kept.x.copy()
        x[3 * region + entry] += by
        return replace(kept, x=x)

    return change


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("region", quick([5, 0, 3]))
@pytest.mark.parametrize("by", [-1, 1000])
def test_one_region_with_another_answer_is_found_and_named(tmp_path, region, by):
    release = made(homes(12))
    folder = rewritten(release.write(tmp_path / "out"), other_answer(region, 1, by))
    name = release.steps[0].problems[region]
    assert repr(name) in failed(folder)["certificates"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("by", [-1, 1])
def test_another_number_of_problems_is_found(tmp_path, by):
    folder = made(homes(12)).write(tmp_path / "out")
    change_manifest(folder, lambda manifest: manifest["solved"][0].update(problems=6 + by))
    why = failed(folder)["certificates"]
    assert why.endswith(f": 6 problems, the manifest says {6 + by}")


def calls(work):
    """The number of calls of any function."""
    number = 0

    def seen(_frame, event, _what):
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


@pytest.mark.slow
@pytest.mark.parametrize("work", ["release", "check"])
def test_the_calls_for_a_region_are_few_however_many_there_are(tmp_path, work, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 1_000)  # calls in machine code are not counted
    made(homes(1_200)).write(tmp_path / "first")  # compiles and loads everything needed
    check(tmp_path / "first")
    number = []
    for regions in (1_200, 4_800):
        table, out = homes(regions), tmp_path / f"{regions}"
        if work == "check":
            made(table).write(out)
        number.append(
            calls(lambda table=table, out=out: check(out) if work == "check" else made(table).write(out))
        )
    assert number[1] - number[0] < 40 * 1.25 * (4_800 - 1_200)
