"""The least sum of absolute changes along a tree, beyond what floats hold."""

import numpy as np
import pytest

from models import Tree, TreeAbsolute, TreeChebyshev
from solvers import solve


@pytest.mark.parametrize("total", [None, 2**55 + 5])
def test_counts_beyond_53_bits_are_divided_exactly(total):
    model = TreeAbsolute(Tree([[0, 0, 0]]), [2**55 + 5, 2**54 + 1, 2**53 + 1, 2**53 + 3], total=total)
    found = solve(model)
    assert found.status == "optimal"
    assert found.x.tolist() == [2**55 + 5, 2**54 + 1, 2**53 + 1, 2**53 + 3]
    assert found.objective == 0


@pytest.mark.parametrize("kind", [TreeAbsolute, TreeChebyshev])
def test_sums_that_64_bits_cannot_hold_are_wrong(kind):
    """Four times 2⁶² is 0 in 64 bits."""
    model = kind(Tree([[0, 0, 0, 0]]), [0] * 5, total=0)
    assert str(2**64) in model.violations(np.array([0] + [2**62] * 4))[-1]
