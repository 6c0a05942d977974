"""Zeros get noise like other counts: every mechanism adds it, and an audit detects if one does not."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp.audit import CASES, audit
from hierdp.audit.analytic_events import ZeroNoise
from hierdp.privacy.budget import CHOICE
from hierdp.privacy.noise import ExactNoise, SimulatedNoise, gaussian, geometric
from tests.marks import quick


class SparesZeros(SimulatedNoise):
    """Noise that leaves zeros at 0."""

    def draw(self, query, true):
        drawn = super().draw(query, true)
        if query.noise == CHOICE:
            return drawn
        return replace(drawn, answers=np.where(true == 0, 0, drawn.answers))


class OnZerosAlone(ZeroNoise):
    """Adds 5 to zeros, and no noise to other counts."""

    def draw(self, query, true):
        drawn = super().draw(query, true)
        return drawn if query.noise == CHOICE else replace(drawn, answers=true + 5 * (true == 0))


METHODS = sorted({(case.mechanism, case.method) for case in CASES} - {("top-down", "SH")})
"""The stability histogram takes no zeros: its threshold hides which counts are present."""


@pytest.mark.parametrize(("mechanism", "method"), METHODS)
def test_every_method_adds_noise_to_zeros(mechanism, method):
    """Noise that changes only zeros changes the release, so the method adds noise to zeros."""
    for case in CASES:
        if (case.mechanism, case.method) == (mechanism, method):
            for side in (0, 1):
                with_it, without = (
                    case.seen(case.release(side, noise())) for noise in (OnZerosAlone, ZeroNoise)
                )
                if with_it != without:
                    return
    assert (mechanism, method) in SLOW_ONES


SLOW_ONES = {
    *(("group-size", "M_dp^OP"), ("top-down", "TDA_inf"), ("top-down", "InfTDA_large")),
    *(("tabulation", "TopDown"), ("tabulation", "BlueDown"), ("tabulation", "Joint")),
}
"""These take longer; they measure the same as M_H, InfTDA and GLS, with the same code."""


SPARED = [
    ("range-query", "Flat", "bin, which is empty", 300),
    ("top-down", "VanillaGauss", "first one to B", 800),
    ("range-query", "H_b^c", "bin, which is empty", 400),
    ("range-query", "H_tree^c", "unknown region, which is empty", 400),
    ("top-down", "InfTDA", "first one to B", 1500),
    ("clustering", "AHP", "a person joins the empty bin", 400),
    ("group-size", "M_H", "first of size 1", 1000),
    ("count-of-counts", "Hc", "only group", 400),
]


@pytest.mark.parametrize(("mechanism", "method", "change", "runs"), quick(SPARED[::2]))
def test_an_audit_sees_that_zeros_get_no_noise(mechanism, method, change, runs):
    (case,) = (c for c in CASES if (c.mechanism, c.method) == (mechanism, method) and change in c.change)
    (line,) = audit([case], runs, 0.999, SparesZeros)
    assert line.over
    (line,) = audit([case], 100, 0.999, SimulatedNoise)
    assert not line.over


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(1)], ids=["exact", "simulated"])
def test_zeros_get_the_noise_of_other_counts(noise):
    for law in (geometric("q", 1, 0.5), gaussian("q", 1.0, 0.125)):
        zeros = noise.draw(law, np.zeros(2000, np.int64)).answers
        others = noise.draw(law, np.full(2000, 50)).answers - 50
        assert np.std(zeros) == pytest.approx(np.std(others), rel=0.3)
        assert (zeros == 0).mean() == pytest.approx((others == 0).mean(), abs=0.08)  # 5 deviations
