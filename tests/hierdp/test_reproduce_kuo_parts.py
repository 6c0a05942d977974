"""Parts of hierdp reproduce kuo2018: the naive row, Algorithm 1's line 12, fast draws, Hawaiian data."""

import numpy as np
import pytest

from hierdp.counts.size_runs import Runs
from hierdp.data.blocks import FILE, hawaiian
from hierdp.experiments.papers.kuo2018 import FastDraws, answers_of, distance, top_down_by_original
from hierdp.mechanisms.count_of_counts.top_down import top_down
from hierdp.metrics.runs import earth_movers_runs
from hierdp.privacy.noise import geometric
from models import FixedSum, Tree


def test_the_naive_answers_are_optimal_for_their_programs():
    rng = np.random.default_rng(0)
    noisy = rng.integers(-6, 9, 40)
    answers = answers_of(noisy, groups=30)
    assert np.maximum(noisy, 0).sum() > 30
    checked = 0
    for p in (1, 2):
        model = FixedSum(noisy, 30, p=p)
        for name, x in answers.items():
            if name.startswith(f"p = {p}") and np.all(x == np.rint(x)):
                assert model.certificate(np.asarray(x, np.int64)).optimal, name
                checked += 1
    assert checked == 6  # all but those in proportion, and of negative counts set to 0
    assert answers["p = 1, reduced in proportion"].sum() == pytest.approx(30)
    ends = [answers[f"p = 1, reduced at the {end} sizes"] for end in ("largest", "smallest")]
    assert (np.cumsum(ends[0]) >= np.cumsum(ends[1])).all()
    up = [answers[f"p = 2, rounded up at the {end} sizes"] for end in ("smallest", "largest")]
    assert (np.cumsum(up[0]) >= np.cumsum(up[1])).all()
    assert distance(np.array([2, 0, 0]), np.array([0, 0, 2])) == 4


def estimates(tree: Tree, rng: np.random.Generator) -> Runs:
    """Estimated sizes of the nodes' groups; each node has as many groups as its children."""
    groups = tree.sum_up(rng.integers(1, 20, tree.leaves.size))
    return Runs.from_rows([np.unique(rng.integers(0, 100, n), return_counts=True) for n in groups])


def test_matching_by_original_estimates_differs_from_three_levels_on():
    rng = np.random.default_rng(0)
    differ = 0
    for tree in [Tree([[0, 0, 0]]), *[Tree([[0, 0], [0, 0, 1, 1]])] * 8]:
        found = estimates(tree, rng)
        weights = found.counts * rng.integers(1, 30, found.counts.size)
        updated = top_down(tree, found, weights)
        original = top_down_by_original(tree, found, weights)
        assert original.groups.tolist() == found.groups.tolist()
        same = bool((earth_movers_runs(updated, original) == 0).all())
        if tree.depth == 1:
            assert same
        differ += not same
    assert differ > 2


def test_groups_keep_their_updated_sizes_when_matched_by_the_original_ones():
    """The root says 0 and 8 where the middle says 4 and 4: both of its groups count as 4 for the leaves."""
    tree = Tree([[0], [0, 0]])
    found = Runs.from_rows([([0, 8], [1, 1]), ([4], [2]), ([3], [1]), ([5], [1])])
    made = top_down_by_original(tree, found, np.ones(found.counts.size, np.int64))
    # Middle, updated: 2 and 6, with weight 2. Leaves: (2·2 + 3)/3 and (2·6 + 5)/3, rounded.
    assert [made.of(r)[0].tolist() for r in (2, 3)] == [[2], [6]]


def test_fast_draws_are_double_geometric_and_not_private():
    zeros = np.zeros(200_000, np.int64)
    made = FastDraws(1).draw(geometric("zeros", 2, 0.5), zeros)
    again = FastDraws(1).draw(geometric("zeros", 2, 0.5), zeros)
    assert (made.answers == again.answers).all()
    assert not made.spend.private
    a = np.exp(-1 / 4)
    for k in (0, 1, -1, 5):
        share = (1 - a) / (1 + a) * a ** abs(k)
        assert np.mean(made.answers == k) == pytest.approx(share, abs=5 * np.sqrt(share / zeros.size))
    assert zeros.max() == 0


@pytest.mark.slow
def test_hawaiian_blocks_add_up_to_the_nation(tmp_path):
    nation = np.array([5_000, 60, 20, 4, 0, 1])
    np.save(tmp_path / FILE, nation)
    made = hawaiian(tmp_path / FILE)
    sizes, counts = made.runs.of(0)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {0: 5_000, 1: 60, 2: 20, 3: 4, 5: 1}
    assert made.hierarchy.levels == ("nation", "state", "county")
    part = hawaiian(tmp_path / FILE, states=("S01", "S02"))
    assert part.runs.of(1)[1].tolist() == made.runs.of(1)[1].tolist()
