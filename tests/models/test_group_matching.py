"""GroupMatching: Alg. 2 group by group, all matchings of tiny tables, backends, difficult and large ones."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import GroupMatching, group_matching
from models.group_matching import PAIR
from models.witnesses.row_proofs import general_proof, proofs_of
from solvers import fast, solve


def kuo(parent, children):
    """Alg. 2 as printed, one group at a time: {(parent size, child, child's size): groups}."""
    top = sorted(s for s, count in zip(*parent, strict=True) for _ in range(count))
    bottom = sorted(
        (s, c) for c, table in enumerate(children) for s, n in zip(*table, strict=True) for _ in range(n)
    )
    matched = {}
    while top:
        g_t = [s for s in top if s == top[0]]
        g_b = [pair for pair in bottom if pair[0] == bottom[0][0]]
        if len(g_t) >= len(g_b):
            taken = g_b
        else:
            num = [sum(1 for _, c in g_b if c == child) for child in range(len(children))]
            shares = [Fraction(len(g_t) * n, len(g_b)) for n in num]
            down = [share // 1 for share in shares]
            order = sorted(range(len(num)), key=lambda c: (down[c] - shares[c], c))
            for c in order[: len(g_t) - sum(down)]:
                down[c] += 1
            taken = [(g_b[0][0], c) for c in range(len(children)) for _ in range(down[c])]
        for size, c in taken:
            key = (top.pop(0), c, size)
            matched[key] = matched.get(key, 0) + 1
            bottom.remove((size, c))
    return matched


def by_size(model, x):
    """An answer in the same form."""
    (sizes, _), (child_sizes, _, child) = model.parent, model.children
    matched = {}
    for i, j, count in zip(*(part.tolist() for part in model.pairs(x)), strict=True):
        key = (int(sizes[i]), int(child[j]), int(child_sizes[j]))
        matched[key] = matched.get(key, 0) + count
    return matched


def all_matchings(rows, columns):
    """Every matrix of whole numbers ≥ 0 with these row and column sums."""

    @cache
    def rest(row, left):
        if row == len(rows):
            return [()] if not any(left) else []
        found = []
        for first in product(*(range(min(rows[row], n) + 1) for n in left)):
            if sum(first) == rows[row]:
                after = tuple(a - b for a, b in zip(left, first, strict=True))
                found += [(first, *more) for more in rest(row + 1, after)]
        return found

    return [np.array(x, np.int64).reshape(len(rows), len(columns)) for x in rest(0, tuple(columns))]


def sorted_distance(model):
    (sizes, counts), (child_sizes, child_counts, _) = model.parent, model.children
    a, b = np.sort(np.repeat(sizes, counts)), np.sort(np.repeat(child_sizes, child_counts))
    return int(np.abs(a - b).sum())


def sparse(dense):
    i, j = np.nonzero(dense)
    return np.array(list(zip(i, j, dense[i, j], strict=True)), dtype=PAIR)


def tiny():
    for sizes, counts in product([(1, 2), (2, 1), (1, 1), (5, 2)], [(2, 2), (1, 3), (4, 0)]):
        for second, far in product([(1, 3), (2, 2)], [(2, 1), (0, 2)]):
            first = 4 - sum(far)
            yield (sizes, counts), [([2], [first]), (second, far)]


def test_every_matching_of_tiny_tables():
    for parent, children in tiny():
        model = GroupMatching(parent, children)
        least = sorted_distance(model)
        found = set()
        for x in all_matchings(parent[1], model.children[1].tolist()):
            proof = model.certificate(x)
            c = int((x * np.abs(np.subtract.outer(parent[0], model.children[0]))).sum())
            found.add(c)
            assert (proof.objective, proof.bound, proof.gap) == (c, least, c - least)
            assert proof.optimal == (c == least)
            assert type(proof.objective) is type(proof.gap) is int
            assert model.certificate(sparse(x)).gap == c - least
        assert min(found) == least
        solution = solve(model)
        assert (solution.status, solution.objective) == ("optimal", least)
        assert by_size(model, solution.x) == kuo(parent, children)


def test_example_of_the_paper():
    # §5.2.1: 300 groups of size 1 above; 200, 100 and 100 below: 50%, 25% and 25%.
    model = GroupMatching(([1, 2], [300, 100]), [([1], [200]), ([1], [100]), ([1], [100])])
    assert solve(model).x.tolist() == [
        (0, 0, 150), (0, 1, 75), (0, 2, 75), (1, 0, 50), (1, 1, 25), (1, 2, 25)
    ]  # fmt: skip
    # With 300 above and 200 below: all of the 200, then the remaining 100 with size 2.
    model = GroupMatching(([1], [300]), ([1, 2], [200, 100]))
    assert solve(model).x.tolist() == [(0, 0, 200), (0, 1, 100)]


def test_ties_are_as_stated():
    # One group for three children with one group each: equal parts, so the first child gets it.
    model = GroupMatching(([1, 2], [1, 2]), [([3], [1]), ([3], [1]), ([3], [1])])
    assert solve(model).x.tolist() == [(0, 0, 1), (1, 1, 1), (1, 2, 1)]
    # Groups of one size are used in the order of their runs, on both sides.
    model = GroupMatching(([4, 1, 4], [2, 1, 1]), ([7, 2, 7], [1, 1, 2]))
    assert solve(model).x.tolist() == [(1, 1, 1), (0, 0, 1), (0, 2, 1), (2, 2, 1)]


@pytest.mark.parametrize("tops", [70, 90, 100])
def test_ties_among_many_children_go_to_the_earlier(tops):
    counts = [1, 3] * 60
    parent, children = ([1, 9], [tops, 240 - tops]), [([4], [count]) for count in counts]
    model = GroupMatching(parent, children)
    assert by_size(model, fast.answer(model)[0]) == kuo(parent, children)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_random_tables_are_matched_as_alg_2_does(seed):
    rng = np.random.default_rng(seed)
    model = GroupMatching.random(rng, int(rng.integers(1, 150)))
    solution = solve(model)
    assert (solution.status, solution.objective) == ("optimal", sorted_distance(model))
    assert solution.x.dtype == PAIR
    assert (solution.x["count"] > 0).all()
    assert np.unique(solution.x[["parent", "child"]]).size == solution.x.size  # each pair of runs once
    assert by_size(model, solution.x) == kuo(model.parent, model.child_sizes)
    # The potentials are valid: they differ by no more than the sizes do, and their value is the bound.
    u, v = (solution.certificate.witness[f"{side}_potential"] for side in ("parent", "child"))
    (sizes, counts), (child_sizes, child_counts, _) = model.parent, model.children
    assert np.all(np.subtract.outer(u, v) <= np.abs(np.subtract.outer(sizes, child_sizes)))
    assert u @ counts - v @ child_counts == solution.bound
    if solution.x.size > 1:  # two pairs swap partners
        a, b = rng.choice(solution.x.size, 2, replace=False)
        moved = np.concatenate([solution.x, solution.x[[a, b]]])
        moved["count"][[a, b]] -= 1
        moved["count"][-2:] = 1
        moved["child"][-2:] = moved["child"][[b, a]]
        assert model.certificate(moved).gap == model.objective(moved) - solution.objective


def test_many_groups_are_exact():
    # Beyond 2³¹ groups, products of counts exceed 64 bits; the answer stays proportional.
    third = 2**60 // 3
    children = [([5], [third]), ([5], [third]), ([5], [2**60 - 2 * third])]
    model = GroupMatching(([2**59, 0], [2**60 - 7, 7]), children)
    solution = solve(model)
    assert solution.status == "optimal"
    assert solution.objective == 7 * 5 + (2**60 - 7) * (2**59 - 5)
    assert solution.x[:3].tolist() == [(1, 0, 2), (1, 1, 2), (1, 2, 3)]
    assert solution.x["count"].sum() == 2**60
    # Both methods agree where both apply.
    small = GroupMatching(([1, 2, 2, 9], [5, 1, 3, 8]), [([4, 7], [3, 6]), ([4, 4, 7], [2, 3, 3])])
    big = GroupMatching(([1, 2, 2, 9, 100], [5, 1, 3, 8, 2**40]),
                        [([4, 7], [3, 6]), ([4, 4, 7, 100], [2, 3, 3, 2**40])])  # fmt: skip
    assert fast.answer(big)[0][:-1].tolist() == fast.answer(small)[0].tolist()
    for half in (2**30 - 1, 2**30, 2**32, 2**33):  # around 2³¹, and where half² just exceeds 64 bits
        twins = GroupMatching(([0, 9], [half, half]), [([3], [half]), ([3], [half])])
        first = half // 2
        assert fast.answer(twins)[0].tolist() == [
            (0, 0, half - first), (0, 1, first), (1, 0, first), (1, 1, half - first)
        ]  # fmt: skip


def test_every_form_of_table():
    pair = GroupMatching(([1, 2], [2, 3]), [([4, 5], [1, 4])])
    for parent, child in [
        (np.array([[1, 2], [2, 3]]), np.array([[4, 1], [5, 4]])),
        ((np.array([1, 2]), np.array([2, 3])), [np.array([[4, 1], [5, 4]])]),
        (([1, 2], [2, 3]), ([4, 5], [1, 4])),
        (([1, 2], [2, 3]), np.array([[[4, 1], [5, 4]]])),
        (([1, 2], [2, 3]), [([4], [1]), ([5], [4])]),
        (([1, 2], [2, 3]), ([4, 5], [1, 4], [3, 7])),
    ]:
        model = GroupMatching(parent, child)
        assert solve(model).x.tolist() == solve(pair).x.tolist()
    assert str(pair.program()).startswith("GroupMatching: 4 variables (4 integer), 4 rows")


def test_nothing_at_all():
    for parent, children in [(([], []), []), (([1], [0]), [([], []), ([2], [0])]), (([], []), ([], []))]:
        model = GroupMatching(parent, children)
        solution = solve(model)
        assert (solution.status, solution.objective, solution.x.size) == ("optimal", 0, 0)
        assert model.certificate(np.zeros(model.shape)).optimal


@pytest.mark.parametrize("sign", [1, -1])
def test_potentials_that_fall_too_fast_prove_nothing(sign):
    """Potentials that rise too fast do not either: each would prove 2, the cost of matching crosswise."""
    model = GroupMatching(([0, 1], [1, 1]), [([0, 1], [1, 1])])
    for parent, child in (([1, 1], [0, 0]), ([5, 9], [4, 8]), ([9, 5], [8, 4])):
        given = {"parent_potential": [sign * v for v in parent], "child_potential": [sign * v for v in child]}
        proof = model.certificate([[0, 1], [1, 0]], given)
        assert (proof.objective, proof.bound, proof.optimal) == (2, 0, False)


@pytest.mark.parametrize("runs", [1, 3, 100])
def test_problems_apart_cost_and_prove_what_all_do(runs, monkeypatch):
    monkeypatch.setattr(group_matching, "RUNS_APART", runs)
    rng, most = np.random.default_rng(runs), 0
    for size in rng.integers(0, 60, 20).tolist():
        several = [GroupMatching.random(rng, size) for _ in range(4)]  # sizes are below 2,000
        (sizes, counts), below = (
            [np.concatenate(column) for column in zip(*sides, strict=True)]
            for sides in zip(*((one.parent, one.children) for one in several), strict=True)
        )
        sizes, below[0] = (
            each + 2_000 * np.repeat(np.arange(4), [one.shape[side] for one in several])
            for side, each in enumerate((sizes, below[0]))
        )
        model = GroupMatching((sizes, counts), (*below[:2], np.arange(below[0].size)))
        x = np.append(solve(model).x, np.array([(0, 0, 0)], PAIR)[: min(model.shape)])  # without groups
        proof = model.certificate(x)
        parts = [general_proof(*found) for _, found in proofs_of("", model, x, proof)]
        assert all(part.objective == part.bound for part in parts)
        assert sum(part.objective for part in parts) == proof.objective == proof.bound
        assert proof.objective == sum(solve(one).objective for one in several)
        shapes = [part.shape for part, _, _ in model.apart(x, proof.witness)]
        assert tuple(map(sum, zip(*shapes, strict=True))) == model.shape
        assert len(shapes) <= 1 + sum(model.shape) // runs
        most = max(most, len(parts))
    assert most == 1 if runs == 100 else most >= 4
