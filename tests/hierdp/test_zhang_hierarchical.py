"""AHP at every region: the ways to make it consistent have the stated properties."""

import numpy as np
import pytest

from hierdp.experiments.papers import zhang2014
from hierdp.experiments.papers.zhang2014 import QUICK
from hierdp.privacy.noise import SimulatedNoise
from models import ConstrainedInference, Tree
from solvers import solve
from tests.hierdp.doubles import Double

TREE = Tree([[0, 0, 0], [0, 0, 1, 2, 2, 2]])


def test_bins_are_inferred_independently():
    noisy = np.random.default_rng(1).normal(0, 9, (TREE.size, 7))
    found = zhang2014.inference(TREE, noisy)
    for k in range(7):
        alone = solve(ConstrainedInference(TREE, noisy[:, k], 1.0))
        assert found[:, k] == pytest.approx(alone.x, abs=1e-9)


def test_qip_is_whole_consistent_and_adds_up():
    noisy = np.random.default_rng(2).normal(3, 9, (TREE.size, 5))
    found = zhang2014.qip(TREE, noisy, 40)
    assert found[0].sum() == 40
    assert (found >= 0).all()
    assert np.array_equal(found, np.rint(found))
    assert np.array_equal(TREE.sum_up(found[TREE.leaves]), found)


def test_without_noise_every_way_gives_the_counts():
    true = TREE.sum_up(np.random.default_rng(3).integers(0, 3, (6, 40)) * 1_000)
    released = zhang2014.regional_answers(TREE, true, 600.0, SimulatedNoise(4))
    assert tuple(released) == zhang2014.WAYS
    for way, counts in released.items():
        assert counts == pytest.approx(true, abs=1e-6), way


def test_each_way_spends_the_same_budget():
    noise = Double()
    zhang2014.regional_answers(TREE, TREE.sum_up(np.ones((6, 4), np.int64)), 0.9, noise)
    spent = sum(spend.epsilon for spend in noise.spends)
    # Plain noise and AHP: at 10 regions with a third of ε each, and at the 6 leaves with all of ε.
    assert spent == pytest.approx(2 * 10 * 0.3 + 2 * 6 * 0.9)


@pytest.mark.slow
def test_part_requires_data(monkeypatch, tmp_path):
    assert zhang2014.hierarchical_parts(QUICK, None, 0) == []
    assert zhang2014.hierarchical_parts(QUICK, tmp_path, 0) == []
    true = TREE.sum_up(np.random.default_rng(5).integers(0, 9, (6, 30)))
    sets = {"made up": (("top", "middle", "leaf"), TREE, true)}
    monkeypatch.setattr(zhang2014, "regional", lambda _: sets)
    (part,) = zhang2014.hierarchical_parts(QUICK, None, 0)
    frame = part.frames["hierarchical_made up"]
    assert frame["way"].tolist() == list(zhang2014.WAYS)
    assert (frame[["top", "middle", "leaf"]] > 0).all().all()
    again = zhang2014.regional_errors(sets, QUICK, 0)
    assert again.equals(zhang2014.regional_errors(sets, QUICK, 0))
    assert not again.equals(zhang2014.regional_errors(sets, QUICK, 1))
