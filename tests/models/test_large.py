"""Typical instances of up to 250,000 entries are proved, twice the same; a worse answer is not."""

from dataclasses import replace

import numpy as np
import pytest

import models
from solvers import fast, prove

pytestmark = pytest.mark.slow

SIZES = {
    **{"BudgetSplit": 1_000, "CumulativeQIP": 20_000, "Segmentation": 2_048, "StrategySDP": 64},
    **{"MinCostFlow": 10_000, "TreeAbsolute": 100_000, "TreeMatching": 20_000},
    **{"Reconciliation": 5_000, "WorkloadLeastSquares": 10_000, "WorkloadRounding": 10_000},
}
"""Of models whose fast paths take longer; others get a quarter of a million entries."""

CASES = [
    (name, variant)
    for name in sorted(fast.PATHS)
    for variant in getattr(getattr(models, name), "variants", {"": {}})
]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_typical_instances_are_proved_and_worse_answers_are_not(name, variant):
    kind, rng = getattr(models, name), np.random.default_rng(1)
    options = getattr(kind, "variants", {"": {}})[variant]
    model = kind.typical(rng, SIZES.get(name, 250_000), **options)
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    if not fast.exact(model):
        assert proof.gap <= 0.05 * proof.objective
        return
    assert proof.optimal
    assert proof.gap == 0 or (isinstance(proof.gap, float) and proof.gap <= 1e-7 * max(1.0, proof.objective))
    assert np.asarray(x).tobytes() == np.asarray(fast.answer(model)[0]).tobytes()
    if hasattr(model, "noisy") and name not in (
        "WorkloadLeastSquares",
        "WorkloadRounding",
        "SparsestChebyshev",
    ):
        other = fast.answer(replace(model, noisy=rng.permuted(np.asarray(model.noisy))))[0]
        worse = prove(model, other)
        assert not worse.optimal
        # Costs in floats are sums of many terms; those of a bound are lowered by their rounding.
        assert worse.bound <= proof.objective + 1e-9 * max(1.0, abs(float(proof.objective)))
        miss = model.objective(other) - proof.objective
        assert worse.gap == miss or float(worse.gap) == pytest.approx(float(miss), rel=1e-6, abs=1e-6)
