"""Blocks of sizes: with the right totals they give the answer of all sizes at once; root prices prove it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import HierarchyQIP, Tree
from models.programs.layout import layout_of
from solvers import fast
from solvers.fast import hierarchy_blocks
from solvers.fast.exchange import units_near
from solvers.fast.hierarchy import settled
from solvers.fast.hierarchy_blocks import block_answers
from tests.marks import shares


def example(seed):
    """A problem with two or more sizes, and a partition of them into blocks."""
    rng = np.random.default_rng(seed)
    model = HierarchyQIP.random(rng, 60)
    sizes = model.counts.shape[1] + 1
    noisy = np.concatenate([model.counts, model.counts[:, :1]], axis=1) * int(rng.choice([1, 1, 7, 1000]))
    noisy += rng.integers(-3, 4, noisy.shape)
    width = int(rng.integers(1, sizes + 1))
    cuts = [slice(first, first + width) for first in range(0, sizes, width)]
    total = max(0, int(noisy[0].sum() * rng.choice([0.5, 1, 2])))
    return HierarchyQIP(model.tree, noisy, total), cuts


def in_turn(tree):
    return lambda work, items: [work(tree, layout_of(tree), *item) for item in items]


@shares(4)
def test_blocks_have_the_answer_of_the_whole(share, monkeypatch):
    """Blocks have the answer of the whole for any number of units listed at first."""
    for k in range(12)[share]:
        units, seed = (1, 3, 64)[k % 3], 14 + k  # the totals of 14 are far from those over the reals
        model, cuts = example(seed)
        best = fast.answer(model)[0]
        parts = [model.counts[:, cut] for cut in cuts]
        monkeypatch.setattr(hierarchy_blocks, "_UNITS", units)
        totals, found = block_answers(model.tree, parts, model.total, in_turn(model.tree))
        assert totals == [int(best[0, cut].sum()) for cut in cuts]
        assert np.array_equal(np.concatenate([one.of(model.tree) for one in found], axis=1), best)
        blocks = [HierarchyQIP(model.tree, part, n) for part, n in zip(parts, totals, strict=True)]
        answers = [fast.answer(block)[0] for block in blocks]
        assert np.array_equal(np.concatenate(answers, axis=1), best)
        ends = [block.root_prices(x) for block, x in zip(blocks, answers, strict=True)]
        assert max(low for low, _ in ends) <= min(high for _, high in ends)


@given(st.integers(0, 10**6))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_a_common_root_price_is_there_only_if_the_whole_is_optimal(seed):
    model, cuts = example(seed)
    rng = np.random.default_rng(seed)
    best = fast.answer(model)[0]
    totals = [int(best[0, cut].sum()) for cut in cuts]
    giver = int(np.argmax(totals))
    moved = min(int(rng.integers(1, 4)), totals[giver])
    totals[giver] -= moved
    totals[int(rng.integers(0, len(cuts)))] += moved
    blocks = [HierarchyQIP(model.tree, model.counts[:, c], n) for c, n in zip(cuts, totals, strict=True)]
    answers = [fast.answer(block)[0] for block in blocks]
    ends = [block.root_prices(x) for block, x in zip(blocks, answers, strict=True)]
    one_price = max(low for low, _ in ends) <= min(high for _, high in ends)
    assert one_price == model.certificate(np.concatenate(answers, axis=1)).optimal


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_units_near_a_total_cost_what_they_add(seed):
    model, _ = example(seed)
    x, state = settled(model, layout_of(model.tree), model.counts, 1)
    before = x.copy()
    last, following, _ = units_near(state, 1, 3)
    assert np.array_equal(x, before)
    at = model.objective(fast.answer(model)[0])
    for n in range(1, 4):
        more = HierarchyQIP(model.tree, model.counts, model.total + n)
        assert more.objective(fast.answer(more)[0]) - at == following[:n].sum()
        if model.total >= n:
            less = HierarchyQIP(model.tree, model.counts, model.total - n)
            assert less.objective(fast.answer(less)[0]) - at == -last[:n].sum()
        else:
            assert last[n - 1] == -(2**60)


@pytest.mark.parametrize("other", [{"integer": False}, {"window": 5}, {"weights": [1, 2]}])
def test_root_prices_are_for_plain_whole_problems(other):
    tree = Tree([[0, 0]])
    model = HierarchyQIP(tree, [[3], [2], [1]], 3, **other)
    with pytest.raises(ValueError, match="root prices are for"):
        model.root_prices(np.array([[3], [2], [1]]))
