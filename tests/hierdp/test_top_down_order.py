"""InfTDA_large: IntOpt's loop with the largest counts lowered first, and its check."""

import itertools

import numpy as np
from test_check import FLOWS, change_manifest, check, failed, released

from hierdp.mechanisms.top_down.post_processing import large_first
from hierdp.privacy.noise import SimulatedNoise
from models import Chebyshev
from tests.brute import intopt


def answer(noisy, totals, offsets=None):
    model = Chebyshev(noisy, totals, offsets)
    x = large_first(*model.data, model.least_distance())
    assert model.certificate(x).optimal
    return x.tolist()


def test_it_is_the_loop_from_large_to_small_counts():
    """All tiny vectors, side by side; and larger ones with ties, one large count, and negative ones."""
    tiny = [y for n in (1, 2, 3) for y in itertools.product(range(-2, 4), repeat=n)]
    rng = np.random.default_rng(0)
    tiny += [tuple(rng.integers(-9, 30, n) ** k) for n in (5, 9) for k in (1, 2) for _ in range(5)]
    for c in (0, 1, 7):
        offsets = np.concatenate([[0], np.cumsum([len(y) for y in tiny])])
        found = answer(np.concatenate(tiny), np.full(len(tiny), c), offsets)
        expected = [x for y in tiny for x in intopt([int(v) for v in y], c, large_first=True)]
        assert found == expected


def test_it_loses_fewer_small_counts():
    noisy = [9, 1, 1, 1, 1, 1]
    assert answer(noisy, 9) == [8, 0, 0, 0, 0, 1]
    assert intopt(noisy, 9) == [9, 0, 0, 0, 0, 0]
    assert answer([], 0) == []
    assert answer([5, -1, 4], [0, 4], [0, 2, 3]) == [0, 0, 4]


def test_a_check_distinguishes_the_two_orders(tmp_path):
    noise = SimulatedNoise(5)
    folder = released("top-down", tmp_path / "large", noise, **FLOWS, delta=1e-6, method="InfTDA_large")
    assert not failed(folder)
    small = released("top-down", tmp_path / "small", SimulatedNoise(5), **FLOWS, delta=1e-6)
    change_manifest(small, lambda manifest: manifest.update(mechanism="InfTDA_large"))
    reasons = " ".join(line.why for line in check(small))
    assert "does not lower the largest counts first" in reasons
