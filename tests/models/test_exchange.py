"""Exchanges from any start reach the one optimum that the tie rule selects; layouts and blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import HierarchyQIP, Tree
from models.programs import layout
from models.programs.layout import by_node, by_size, in_blocks, layout_of
from solvers import fast, prove
from solvers.fast.exchange import exchange
from tests.marks import quick, shares


def exchanged(model: HierarchyQIP, x: np.ndarray) -> np.ndarray:
    """The answer that exchanges reach from x."""
    order = layout_of(model.tree)
    sides = (None, None) if model.window is None else (by_size(side, order.order) for side in model.domain)
    held = by_size(x, order.order)
    exchange(order, by_size(model.counts, order.order), held, 1, *sides, np.ones(order.order.size, np.int64))
    return by_node(held, order.order)


def in_one_place(model: HierarchyQIP, leaf: int, size: int) -> np.ndarray:
    leaves = np.zeros((model.tree.leaves.size, model.counts.shape[1]), np.int64)
    leaves[leaf % leaves.shape[0], size % leaves.shape[1]] = model.total
    return model.tree.sum_up(leaves)


@shares(5)
def test_every_start_leads_to_the_same_answer(share):
    for seed in range(36)[share]:
        rng, scale = np.random.default_rng(seed), [1, 1, 7, 1000, 10**6, 2**33][seed % 6]
        model = HierarchyQIP.random(rng, 80)
        noisy = model.counts * scale + rng.integers(-3, 4, model.counts.shape)
        model = HierarchyQIP(model.tree, noisy, model.total * scale // 2)
        best = fast.answer(model)[0]
        for _ in range(3):
            start = in_one_place(model, *rng.integers(0, 100, 2).tolist())
            assert np.array_equal(exchanged(model, start), best)
            proof = prove(model, start)
            assert proof.gap == model.objective(start) - model.objective(best)
        assert np.array_equal(exchanged(model, best), best)


@pytest.mark.parametrize("offset", quick(range(-2, 3)))
def test_counts_near_the_end_of_60_bits(offset):
    """Costs of up to half of NEVER neither overflow nor count as a refusal."""
    tree = Tree([[0, 0, 0], [0, 0, 2]])
    rng = np.random.default_rng(9)
    for _ in range(20):
        total = int(rng.integers(0, 2**55))
        noisy = rng.integers(-(2**55), 2**55, (tree.size, 2)) + offset
        model = HierarchyQIP(tree, noisy, total)
        best = fast.answer(model)[0]
        assert model.certificate(best).optimal
        assert np.array_equal(exchanged(model, in_one_place(model, 1, 1)), best)
    for y in (2**56 - 1, -(2**56) + 1):
        model = HierarchyQIP(tree, np.full((tree.size, 1), y), 2**53)
        assert model.certificate(fast.answer(model)[0]).optimal


@shares(5)
def test_windows_are_kept_on_the_way(share):
    for seed in range(54)[share]:
        rng, window = np.random.default_rng(seed), seed % 9
        tree = Tree.random(rng, int(rng.integers(0, 4)), 3, ragged=bool(rng.random() < 0.4))
        start = tree.sum_up(rng.integers(0, 2 * window + 2, (tree.leaves.size, int(rng.integers(1, 4)))))
        noisy = start + rng.integers(-window, window + 1, start.shape)
        model = HierarchyQIP(tree, noisy, int(start[0].sum()), window=window)
        assert model.violations(start) == []
        found = exchanged(model, start)
        assert model.violations(found) == []
        assert np.array_equal(found, fast.answer(model)[0])
        proof = prove(model, start)
        assert proof.gap == model.objective(start) - model.objective(found)
        assert model.certificate(found).optimal


@pytest.mark.parametrize("depth", quick([1, 10, 8, 20], first=2))
def test_empty_subtrees_stay_empty_however_deep(depth):
    """Refusals are passed up unchanged; their sum over eight levels would overflow 64 bits."""
    rng = np.random.default_rng(7)
    tree = Tree([[0, 0], *([[0, 1]] * (depth - 1))])
    for window in (None, 2**20):
        for _ in range(10):
            noisy = rng.integers(-(2**20), 2**19, (tree.size, 4))
            model = HierarchyQIP(tree, noisy, int(rng.integers(0, 9)), window=window)
            best = fast.answer(model)[0]
            if best is None:
                assert model.why_infeasible()
                continue
            assert model.certificate(best).optimal
            start = in_one_place(model, 0, 3)
            if not model.violations(start):
                assert np.array_equal(exchanged(model, start), best)


@pytest.mark.parametrize("wide", quick([5, 11, 3_001]))
def test_wide_families_of_leaves_and_of_regions(wide):
    """Distant starts in families of many children, whose numbers are not powers of two."""
    rng = np.random.default_rng(2)
    for tree in (
        Tree([np.zeros(wide, int)]),
        Tree([np.zeros(wide, int), np.arange(wide).repeat(rng.integers(0, 4, wide))]),
        Tree([[0], [0], np.zeros(wide, int)]),
    ):
        noisy = np.floor(rng.pareto(0.5, (tree.size, 3)).clip(0, 1e7)).astype(np.int64) - 5
        model = HierarchyQIP(tree, noisy, 10**8)
        best = fast.answer(model)[0]
        assert model.certificate(best).optimal
        for start in (in_one_place(model, 0, 0), in_one_place(model, -1, 2)):
            assert np.array_equal(exchanged(model, start), best)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_layouts_keep_siblings_together_and_can_be_inverted(seed):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, int(rng.integers(0, 5)), 5, ragged=bool(rng.random() < 0.5))
    order, first, degree, parent = layout_of(tree)
    start, child = tree.children
    assert sorted(order.tolist()) == list(range(tree.size))
    assert parent[0] == -1
    for i in range(tree.size):
        family = slice(first[i], first[i] + degree[i])
        assert order[family].tolist() == child[start[order[i]] : start[order[i] + 1]].tolist()
        assert (parent[family] == i).all()
    for sizes in (1, 31, 33, 100):
        rows = rng.integers(0, 9, (tree.size, sizes))
        turned = by_size(rows, order)
        assert np.array_equal(turned, rows[order].T)
        assert turned.flags.c_contiguous
        assert np.array_equal(by_node(turned, order), rows)
    assert np.array_equal(by_size(np.asfortranarray(rows), order), turned)


@pytest.mark.parametrize("length", [1, 2, 7, 300, 5_000])
@pytest.mark.parametrize("cells", [10, 10**9])
@pytest.mark.parametrize("widths", [(1, 1 << 62), (128, 1024)])
def test_blocks_cover_everything_once_in_order(length, cells, widths):
    blocks = in_blocks(lambda a, b: (a, b), length, cells, widths)
    assert [blocks[0][0], *(b for _, b in blocks)] == [0, *(a for a, _ in blocks[1:]), length]
    assert all(a < b for a, b in blocks)
    assert all(b - a <= widths[1] for a, b in blocks)
    assert len(blocks) == 1 or all(b - a >= min(widths[0], length) // 2 for a, b in blocks)


@pytest.mark.slow
def test_answers_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(3)
    tree = Tree([np.repeat(0, 20), rng.integers(0, 20, 300)])
    noisy = tree.sum_up(rng.integers(0, 40, (tree.leaves.size, 1_000))) + rng.integers(
        -30, 30, (tree.size, 1_000)
    )
    model = HierarchyQIP(tree, noisy, int(noisy[0].sum()))
    assert model.counts.size > layout._WORTHWHILE
    far = in_one_place(model, 4, 7)
    answers = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr(layout, "processors", lambda threads=threads: threads)
        assert model.certificate(fast.answer(model)[0]).optimal
        answers.add(fast.answer(model)[0].tobytes())
        answers.add(exchanged(model, far).tobytes())
        relaxed = HierarchyQIP(tree, noisy, model.total, integer=False)
        assert relaxed.certificate(fast.answer(relaxed)[0]).optimal
    assert len(answers) == 1
