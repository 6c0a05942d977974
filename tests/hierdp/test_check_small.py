"""The claimed scales of small releases are checked, also where few sums were measured twice."""

import json

import numpy as np
import pytest
from measurements import replayed
from test_check_noise import claim, claim_in

from hierdp import SimulatedNoise
from hierdp.checking import check
from hierdp.checking.claims import check_public
from hierdp.checking.noise import check_noise
from hierdp.checking.result import FAILS, HOLDS
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.group_size import group_size
from hierdp.tables import GroupSizes
from tests.marks import quick

REGIONS = Hierarchy.from_columns({"region": list("ABCD")}, ["region"])


def four_by_nine(seed, largest=60, method="M_c^dp"):
    """Four regions with nine sizes, and up to `largest` groups of each."""
    leaves = np.random.default_rng(seed).integers(0, largest + 1, (4, 9))
    data = GroupSizes(REGIONS, np.asarray(REGIONS.tree.sum_up(leaves)))
    return group_size(data, 1.0, SimulatedNoise(seed), method)


def verdict(found, tmp_path, factor):
    """The verdict on the noise, with a claim of so many times the noise."""
    folder = found.write(tmp_path / "out", overwrite=True)
    if factor != 1:
        claim_in(folder, found.table, factor)
    lines = {line.check: line.verdict for line in check(folder)}
    assert all(lines[name] == HOLDS for name in ("budget: each loss", "budget: sum", "budget: queries"))
    return lines["noise"]


@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H", "M_H^dp", "M_c"]))
@pytest.mark.parametrize(
    "largest", [3, 60, *(pytest.param(n, marks=pytest.mark.slow) for n in (1_000, 100_000))]
)
def test_a_scale_a_hundred_times_too_large_fails_on_four_regions_by_nine_sizes(tmp_path, method, largest):
    for seed in range(3):
        found = four_by_nine(seed, largest, method)
        assert verdict(found, tmp_path, 1) == HOLDS
        assert verdict(found, tmp_path, 100.0) == FAILS


@pytest.mark.slow
@pytest.mark.parametrize(("method", "least"), [("M_c^dp", 19), ("M_H", 20)])
def test_most_scales_fifteen_times_too_large_fail(method, least):
    """Of 20 releases: docs/privacy.md says that most fail from 15 times the true scale on."""
    verdicts = {1: [], 15: []}
    for seed in range(20):
        found = four_by_nine(seed, 60, method)
        for factor, lines in verdicts.items():
            manifest = json.loads(json.dumps(found.manifest()))
            claim(manifest, factor)
            saved = replayed(found, manifest)
            (line,) = check_noise(saved.redundant, saved.recovered, manifest["budget"]["spends"])
            lines.append(line.verdict)
    assert verdicts[1] == [HOLDS] * 20
    assert verdicts[15].count(FAILS) >= least


def test_words_on_public_lists_must_agree_with_the_settings():
    seen = "as seen in the data, which makes them public"
    sides = {"settings": {"regions_from_data": True}, "taken_as_public": {"regions": seen}}
    assert not list(check_public(sides))
    for manifest in (
        {**sides, "settings": {}},
        {**sides, "taken_as_public": {"regions": "from a table of regions"}},
        {"settings": {"group_budget": 0.1}, "taken_as_public": {"which_groups": "from a table of groups"}},
    ):
        (line,) = check_public(manifest)
        assert (line.check, line.verdict) == ("public", FAILS)
