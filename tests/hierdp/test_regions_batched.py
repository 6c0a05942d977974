"""Count-of-counts: many regions in one step give what a step for each region gives."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hierdp import release
from hierdp.checking import FAILS, check
from hierdp.counts.size_runs import Runs
from hierdp.mechanisms.count_of_counts import plan as plans
from hierdp.mechanisms.count_of_counts import top_down
from hierdp.mechanisms.count_of_counts.estimates import METHODS, Sizes
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, measured_regions, steps_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.spool import Spool
from hierdp.record.step import Step
from models import Isotonic, Tree
from tests.marks import quick

TREE = Tree([[0, 0], [0, 0, 1]])
GROUPS = np.array([9, 7, 2, 3, 4, 2])


class OneByOne(SimulatedNoise):
    """Draws that do not depend on how many counts are measured at once."""

    def draw(self, query, true):
        drawn = super().draw(query, true[:0])
        draws = self._rng.geometric(-np.expm1(-1 / drawn.spend.scale), (true.size, 2))
        return replace(drawn, answers=true + draws[:, 0] - draws[:, 1])


def made(method, tmp_path, name, several, monkeypatch, **more):
    """A release of 13 regions, one of them without groups, and its folder."""
    monkeypatch.setattr(plans, "BATCHED_FROM", 2 if several else 10**9)
    monkeypatch.setattr(plans, "CELLS_A_STEP", 40)
    monkeypatch.setattr(top_down, "MATCHED_FROM", 2 if several else 10**9)
    monkeypatch.setattr(top_down, "RUNS_A_STEP", 12)
    homes = np.arange(60)
    rows = pd.DataFrame({"state": homes % 3, "county": homes % 9, "home": homes}).loc[
        np.repeat(homes, 1 + homes % 4)
    ]
    options = {"levels": ["state", "county"], "group": ["home"], "max_size": 9, "method": method} | more
    options |= {"regions_from_data": True} | ({} if "group_budget" in more else {"groups_from_data": True})
    found = release(rows, "count-of-counts", epsilon=1, noise=OneByOne(1), **options)
    return found, found.write(tmp_path / name)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        *quick([("Hc", {}), ("Hg x Hc x Hg1", {})]),
        ("Hc2", {"group_budget": 0.2}),
        ("Hg x naive x Hc", {"smallest": 1}),
        ("bottom-up", {}),
    ],
)
def test_the_table_is_the_same_and_the_check_holds(method, more, tmp_path, monkeypatch):
    apart, _ = made(method, tmp_path, "apart", False, monkeypatch, **more)
    together, folder = made(method, tmp_path, "together", True, monkeypatch, **more)
    pd.testing.assert_frame_equal(together.table, apart.table)
    assert together.ledger == apart.ledger
    assert len(together.steps) < len(apart.steps)
    several = [step for step in together.steps if step.problems]
    assert several
    assert all(step.model.problems == len(step.problems) for step in several)
    assert method == "bottom-up" or any(step.name.startswith(top_down.TOGETHER) for step in together.steps)
    assert not [line for line in check(folder) if line.verdict == FAILS]


def test_many_pairs_are_merged_in_parts(tmp_path, monkeypatch):
    whole, _ = made("Hc", tmp_path, "whole", True, monkeypatch)
    monkeypatch.setattr(top_down, "PAIRS_A_STEP", 7)
    parts, folder = made("Hc", tmp_path, "parts", True, monkeypatch)
    pd.testing.assert_frame_equal(parts.table, whole.table)
    merged = [step for step in parts.steps if step.name.startswith("merging: sizes at level 2, part ")]
    assert len(merged) > 2
    assert all(np.size(step.solution.x) <= 7 for step in merged)
    assert not [line for line in check(folder) if line.verdict == FAILS]


@pytest.mark.parametrize("broken", ["noisy", "upper", "cut"])
def test_a_check_refuses_a_changed_step_of_many_regions(broken, tmp_path, monkeypatch):
    honest, _ = made("Hc", tmp_path, "honest", True, monkeypatch)
    steps = list(honest.steps)
    at = next(n for n, one in enumerate(steps) if len(one.problems) > 1)
    names, model = steps[at].problems, steps[at].model
    noisy, upper, offsets = (np.array(part) for part in (model.noisy, model.upper, model.offsets))
    if broken == "noisy":
        noisy[: offsets[1]] += 1000  # then the table has another answer
    elif broken == "upper":
        upper[0] += 1
    else:
        offsets[1] += 1
    changed = Isotonic(noisy, model.p, lower=0, upper=upper, integer=True, offsets=offsets)
    steps[at] = Step.solve(steps[at].name, changed, names)
    folder = replace(honest, steps=Spool(steps)).write(tmp_path / "changed")
    fails = {line.check: line.why for line in check(folder) if line.verdict == FAILS}
    assert list(fails) == ["certificates", "table from steps"]
    assert fails["certificates"].startswith(f"step {steps[at].name!r}, {names[broken == 'cut']!r}: ")


def test_steps_have_regions_of_one_level_and_a_limited_number_of_cells(monkeypatch):
    monkeypatch.setattr(plans, "BATCHED_FROM", 2)
    monkeypatch.setattr(plans, "CELLS_A_STEP", 8)
    plan = CountOfCountsPlan((METHODS["Hc"], METHODS["Hg"], METHODS["Hg"]))
    at = measured_regions(TREE, GROUPS, plan)

    def steps(plan, domain, several=None):
        return [of.tolist() for of in steps_of(at, TREE.level, GROUPS, plan, domain, several)]

    each = [[r] for r in range(6)]
    assert steps(plan, Sizes(4)) == [[0], [1], [2], [3, 4], [5]]
    assert steps(plan, Sizes(4), False) == each
    assert steps(CountOfCountsPlan((METHODS["naive"],) * 3), Sizes(1)) == each
    monkeypatch.setattr(plans, "BATCHED_FROM", 7)
    assert steps(plan, Sizes(4)) == each
    assert steps(plan, Sizes(4), True) == [[0], [1], [2], [3, 4], [5]]
    assert steps_of(at[:0], TREE.level, GROUPS, plan, Sizes(4)) == []


def test_only_regions_with_groups_are_measured():
    groups = np.array([9, 9, 0, 0, 9, 0])
    assert measured_regions(TREE, groups, CountOfCountsPlan((METHODS["Hc"],) * 3)).tolist() == [0, 1, 4]
    assert measured_regions(TREE, groups, CountOfCountsPlan((METHODS["Hc"],), bottom_up=True)).tolist() == [4]


def test_rows_are_placed_among_empty_ones():
    runs = Runs.from_rows([([1, 2], [3, 4]), ([5], [6])]).placed(np.array([1, 3]), 5)
    assert [runs.of(row)[0].tolist() for row in range(5)] == [[], [1, 2], [], [5], []]
