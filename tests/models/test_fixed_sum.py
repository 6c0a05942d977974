"""FixedSum: problems side by side; backends; difficult and large instances."""

from itertools import pairwise

import numpy as np
import pytest

from models import FixedSum, SimplexQP
from solvers import prove, solve
from tests.marks import quick


def test_nothing_at_all():
    for p in (1, 2):
        for model in (FixedSum([], 0, p), FixedSum([], [], p, [0]), FixedSum([], [0, 0], p, [0, 0, 0])):
            solution = solve(model)
            assert (solution.status, solution.objective, solution.x.size) == ("optimal", 0, 0)


@pytest.mark.parametrize("n", [2, 8, 1000])
def test_all_units_in_one_entry_is_judged_exactly(n):
    total = 2**61
    heap = [total] + [0] * (n - 1)
    even = [total // n + (i < total % n) for i in range(n)]
    squares = FixedSum([0] * n, total, 2)
    proof = prove(squares, heap)  # trial shifts of all entries at once would exceed 64 bits
    assert proof.bound == sum(v * v for v in even)
    assert proof.gap == total**2 - proof.bound
    assert squares.certificate(even).gap == 0
    assert FixedSum([0] * n, total, 1).certificate(heap).gap == 0


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("kind", quick(["whole", "floats"]))
@pytest.mark.parametrize("weighted", [True, False])
def test_segments_with_weights_and_over_the_reals_are_problems_side_by_side(integer, kind, weighted):
    rng = np.random.default_rng(7)
    for _ in range(6):
        sizes = rng.integers(0, 5, 6)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        totals = np.where(sizes == 0, 0, rng.integers(0, 12, sizes.size))
        y = rng.integers(-4, 8, offsets[-1])
        y = y if kind == "whole" else y + rng.integers(0, 8, y.size) / 8
        w = rng.integers(1, 6, y.size) if weighted else None
        if integer and not weighted and kind == "floats":
            with pytest.raises(ValueError, match="noisy must be integers"):
                FixedSum(y, totals, 2, offsets)
            continue
        model = FixedSum(y, totals, 2, offsets, w, integer)
        alone = [
            SimplexQP(y[a:b], int(c), None if w is None else w[a:b], integer)
            for a, b, c in zip(offsets[:-1], offsets[1:], totals, strict=True)
        ]
        solution = solve(model)
        assert solution.status == "optimal"
        assert solution.x.tolist() == np.concatenate([solve(one).x for one in alone]).tolist()
        other = np.concatenate(
            [rng.multinomial(one.total, np.ones(k) / k) for one, k in zip(alone, sizes, strict=True) if k]
        )
        moved = [other[a:b] for a, b in pairwise(offsets)]
        proof, proofs = prove(model, other), [prove(one, x) for one, x in zip(alone, moved, strict=True)]
        for what in ("objective", "bound", "gap"):
            whole, parts = getattr(proof, what), sum(getattr(one, what) for one in proofs)
            assert whole == (parts if kind == "whole" else pytest.approx(parts, abs=1e-9))
        assert proof.optimal == all(one.optimal for one in proofs)
        again = model.certificate(other, proof.witness)  # the prices of all segments
        assert again.witness["total"].shape == totals.shape
        # In floats each gap contains a bound on its rounding, that of costs up to 10⁴ times as large.
        assert again.gap == (proof.gap if kind == "whole" else pytest.approx(proof.gap, rel=1e-10))
        broken_sum = other + (np.arange(other.size) == 0)
        (text,) = model.violations(broken_sum)
        first = int(np.argmax(sizes > 0))
        assert text.startswith(f"total: the sum of segment {first} is {totals[first] + 1}")


@pytest.mark.parametrize("options", [{"weights": [1, 2]}, {"integer": False}])
def test_weights_and_reals_need_squares(options):
    with pytest.raises(ValueError, match="need p = 2"):
        FixedSum([1, 2], 3, 1, **options)


def test_data_of_either_kind_may_come_close_to_64_bits():
    # Without weights, whole counts must add up within 62 bits; with weights, unit costs must fit 62 bits.
    assert solve(FixedSum([2**58, 0], 1)).gap == 0
    assert solve(FixedSum([2**56] * 300, 2**56, weights=[1] * 300)).gap == 0
    with pytest.raises(ValueError, match="pass 62 bits"):
        FixedSum([2**58, 0], 1, weights=[1, 1])
    with pytest.raises(ValueError, match="add up beyond 62 bits"):
        FixedSum([2**56] * 300, 2**56)
    # Halves and quarters of the largest sums, in random places.
    rng = np.random.default_rng(2)
    for n, y, total in [(1, 2**60, 2**61 - 9), (2, -(2**58), 2**61), (3, 2**58, 1), (40, -(2**54), 2**60)]:
        model = FixedSum(rng.choice([y, y // 2, 0], n), total)
        best = solve(model)
        assert best.gap == 0
        for _ in range(5):
            x = np.zeros(n, np.int64)
            np.add.at(x, rng.integers(0, n, 3), [total // 2, total // 4, total - total // 2 - total // 4])
            own, proof = model.certificate(x), prove(model, x)
            assert own.bound <= proof.bound == best.objective
            for price in (2**61 - 1, -(2**61) + 1, 0):
                bound = model.certificate(x, {"total": [price]}).bound
                taken = [max(0, v + (price + 1) // 2) for v in model.data[0].tolist()]
                cost = sum(
                    (z - v) ** 2 - price * z for z, v in zip(taken, model.data[0].tolist(), strict=True)
                )
                assert bound == cost + price * total


def test_slopes_of_whole_numbers_are_a_witness_of_the_real_problem():
    model = FixedSum([-1, 2, -1, -1], [2, 1], 2, [0, 2, 4], weights=[3, 1, 2, 2], integer=False)
    first = model.certificate([0, 2, 0, 1])
    again = model.certificate([0, 2, 0, 1], first.witness)
    assert again.bound == first.bound == 12
