"""Sensitivities over all neighbours of tiny tables, where the mechanisms' own tests leave some out.

A query may depend on noisy answers to earlier queries. Given the same answers, the queries on two
neighbours must have the same shape, and differ by at most the sensitivity of their noise.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from doubles import unrelated
from test_clustering import Choosing
from test_range_query import NoNoise
from test_top_down_unit import UNITS, flows_of, people

from hierdp.mechanisms.clustering import METHODS as CLUSTERING
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.top_down import METHODS as TOP_DOWN
from hierdp.mechanisms.top_down import top_down
from hierdp.tables.binning import Histogram
from tests.marks import quick

OTHERS = ((0, 0), (0, 1), (2, 1))
"""Trips of other people, which do not change."""


@pytest.mark.parametrize("unit", quick(UNITS, slow=lambda unit: unit not in (UNITS[0], *UNITS[5:7])), ids=str)
def test_top_down_as_a_run_goes_by_every_method_and_unit(unit):
    """For all methods but SH; the stability histogram is tested in test_top_down_unit."""
    for method in TOP_DOWN:
        if method == "SH" or (method == "TDA_inf" and unit.rows > 1):  # same queries as InfTDA, and slow
            continue
        runs = {}
        for trips in [*people(unit), ()]:
            noise = unrelated(5, 4)
            top_down(flows_of([*OTHERS, *trips]), 1.0, 1e-6, noise, method, unit)
            runs[trips] = noise
        nobody = runs[()] if not unit.replaced else runs.pop(())
        pairs = (
            itertools.combinations(runs.values(), 2)
            if unit.replaced
            else ((r, nobody) for r in runs.values())
        )
        worst = 0
        for one, other in pairs:
            assert [a.shape for a in one.true] == [b.shape for b in other.true]
            for a, b, spend in zip(one.true, other.true, one.spends, strict=True):
                squared = int(((a - b) ** 2).sum())
                assert squared <= spend.sensitivity**2 * (1 + 1e-12)
                worst = max(worst, squared)
        assert worst > 0
        if method == "VanillaGauss":
            assert worst == unit.squared_sensitivity()


OPTIONS = [
    ("H_b^c", {"budget": "optimized"}),
    ("H_b", {"budget": "optimized", "branching": 2}),
    ("H_b^c", {"budget": "geometric", "branching": 3}),
    ("H_2^c", {"budget": [3, 1, 2]}),
]


@pytest.mark.parametrize(("method", "options"), OPTIONS, ids=str)
def test_range_query_with_its_options(method, options):
    """With one more tuple in any bin, the levels' losses add up to ε, also if levels are left out."""
    counts = np.array([3, 0, 1, 2, 0, 0, 4, 1])
    before = NoNoise()
    range_query(Histogram.of(counts), 1.0, before, method, **options)
    for at in range(counts.size):
        after = NoNoise()
        range_query(Histogram.of(counts + (np.arange(8) == at)), 1.0, after, method, **options)
        loss = 0.0
        for (a, sensitivity, epsilon), (b, *_) in zip(before.queried, after.queried, strict=True):
            away = np.abs(a - b).sum()
            assert away <= sensitivity == 1
            loss += away * epsilon
        assert loss == pytest.approx(1.0)


@pytest.mark.parametrize(
    "given", quick([{"clusters": 3, "largest": 2}, {"clusters": 2}, {"clusters": 3}]), ids=str
)
def test_structure_first_with_boundaries_to_choose(given):
    """Covers the noisy maximum, the boundaries' scores and the sums, for any earlier answers."""
    for counts, seed in itertools.product(itertools.product(range(3), repeat=4), range(1)):
        for i in range(4):
            sides = []
            for more in (0, 1):
                rng = np.random.default_rng(seed)
                noise = Choosing([seed, 1], make=lambda true, rng=rng: rng.integers(1, 4, true.shape))
                CLUSTERING["SF"].publish(np.array(counts) + more * (np.arange(4) == i), 1.0, noise, **given)
                sides.append(noise)
            here, there = sides
            assert here.queried == there.queried
            assert len(here.true) == (1 if "largest" in given else 2)
            for a, b, spend in zip(here.true, there.true, here.spends, strict=True):
                assert np.abs(a - b).sum() <= spend.sensitivity == 1
            assert len(here.scores) == given["clusters"] - 1
            for a, b, (_, sensitivity, _) in zip(here.scores, there.scores, here.queried, strict=True):
                assert np.abs(a - b).max() <= sensitivity


def test_the_tests_that_the_docs_name_are_there():
    """Pages name tests of their statements."""
    here = Path(__file__).parents[1]
    text = "".join(page.read_text(encoding="utf-8") for page in (here.parent / "docs").glob("*.md"))
    files = set(re.findall(r"test_\w+\.py", text))
    assert files
    assert files <= {path.name for path in here.rglob("test_*.py")}
