"""The errors of run costs in floats stay within their bounds, even if squares far exceed costs."""

from fractions import Fraction

import numpy as np

from models.arithmetic.run_costs import cost_in_floats, cost_of, spread, sums_error, sums_of
from models.arithmetic.whole_sums import NEAR, whole_sums

FAR = 2**56


def two_crowds():
    """Two groups of close counts, so far apart that floats round them."""
    apart = np.random.default_rng(0).integers(0, 2**20, (2, 4))
    apart[0] -= FAR
    apart[1] += FAR
    return np.sort(apart.ravel()), np.array([0, 4])


def test_counts_that_floats_round():
    values, starts = two_crowds()
    sums, exactly = sums_of(values), cost_of(values, starts, 0)
    off = abs(Fraction(cost_in_floats(starts, 0.0, sums)) - exactly)
    assert 2**20 < off <= sums_error(values, sums, float(exactly))


def test_whole_sums_that_floats_round():
    values, _ = two_crowds()
    given = whole_sums(values)
    most = Fraction(0)
    for i in range(8):
        for j in range(i + 1, 9):
            before = [part[i] for part in given.floats]
            found = spread(*before, tuple(part[j] for part in given.floats), float(j - i))
            total = given.sums[j] - given.sums[i]
            exactly = given.squares[j] - given.squares[i] - Fraction(total * total, j - i)
            off = abs(Fraction(found) - exactly) - Fraction(NEAR) * exactly
            assert off <= Fraction(given.lost)
            most = max(most, off)
    assert most > Fraction(given.lost) / 2**16  # a far smaller bound would not hold
