"""ControlledRounding: backends; difficult and large instances."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import ControlledRounding
from models.check import checker, reader
from solvers import fast, solve


@given(st.lists(st.floats(-1e15, 1e15) | st.floats(-1, 1), max_size=20), st.floats(0, 1))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_ugly_floats_are_proved(values, where):
    floor = sum(int(np.floor(v)) for v in values)
    ceil = sum(int(np.ceil(v)) for v in values)
    assert solve(ControlledRounding(values, floor + round(where * (ceil - floor)))).status == "optimal"


def test_nothing_to_round():
    for values, total in (([], 0), ([3, -1], 2), (np.array([Fraction(5)]), 5), ([2.0**61] * 8, 2**64)):
        solution = solve(ControlledRounding(values, total))
        assert (solution.status, solution.objective) == ("optimal", 0)
        assert solution.x.tolist() == [int(v) for v in values]


tight = st.sampled_from(
    [0.5, 0.5 + 2**-53, 0.5 - 2**-54, 0.5 + 1e-9, 1e-300, -1e-300, -1e-20, 1 - 2**-53, 0.0, 2.0, -7.25]
)


@given(st.lists(tight, max_size=12), st.floats(0, 1))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_nearly_equal_parts_are_distinguished(values, where):
    # In floats, a number just below 0 is 1 above its floor.
    floor = [int(np.floor(v)) for v in values]
    part = [Fraction(v) - down for v, down in zip(values, floor, strict=True)]
    open_ = sum(v != np.floor(v) for v in values)
    ups = round(where * open_)
    model = ControlledRounding(values, sum(floor) + ups)
    assert model.ups == ups
    expected = list(floor)
    for i in sorted(range(len(values)), key=lambda i: (-part[i], i))[:ups]:
        expected[i] += 1
    assert fast.answer(model)[0].tolist() == expected
    proof = model.certificate(expected)
    assert (proof.optimal, proof.gap) == (True, 0)
    went = [p for p, x, f in zip(part, expected, floor, strict=True) if x > f]
    threshold = min(went) if went else max((p for p in part if p), default=Fraction(1, 2))
    assert not values or proof.witness["total"].tolist() == [1 - 2 * threshold]


def test_many_equal_parts_go_up_from_the_first():
    values = np.tile([0.25, 0.75, 3.0, 0.5], 5000)
    for ups in (0, 1, 4999, 5000, 5001, 9_999, 10_000, 10_001, 15_000):
        model = ControlledRounding(values, 3 * 5000 + ups)
        x = fast.answer(model)[0]
        expected = np.floor(values).astype(np.int64)
        expected[np.argsort(np.floor(values) - values, kind="stable")[:ups]] += 1
        assert np.array_equal(x, expected)
        assert model.certificate(x).optimal
    exactly = np.array([Fraction(1, 4), Fraction(3, 4), Fraction(3), Fraction(1, 2)] * 50, dtype=object)
    x = fast.answer(ControlledRounding(exactly, 150 + 60))[0]
    ups = np.flatnonzero(x > exactly).tolist()
    assert ups == sorted([*range(1, 200, 4), *range(3, 40, 4)])


@pytest.mark.parametrize("seed", range(6))
def test_many_floats_are_decided_as_few_are(monkeypatch, seed):
    """Floats decide most of many parts, and Fractions those that are nearly tied."""
    for module in (checker, reader):
        monkeypatch.setattr(module, "SMALL", 1_000)
    rng = np.random.default_rng(seed)
    parts = rng.choice(rng.random(50), 1_500) if seed % 2 else rng.random(1_500)
    values = rng.integers(-9, 99, parts.size) + np.where(rng.random(parts.size) < 0.01, parts[0], parts)
    for total in (round(float(values.sum())), int(np.floor(values).sum()), int(np.ceil(values).sum())):
        model = ControlledRounding(values, total)
        x = fast.answer(model)[0]
        proof = model.certificate(x)
        assert proof.optimal
        assert isinstance(proof.objective, float)
        up, down = (np.flatnonzero(side) for side in (x > values, x < values))
        if up.size and down.size:
            other = x.copy()
            other[rng.choice(up)] -= 1
            other[rng.choice(down)] += 1
        with monkeypatch.context() as few:
            for module in (checker, reader):
                few.setattr(module, "SMALL", 2_000)
            exactly = model.certificate(x)
            assert exactly.optimal
            assert proof.bound <= exactly.bound == pytest.approx(proof.objective)
            if up.size and down.size:
                worse = model.certificate(other)
        if up.size and down.size:
            assert model.certificate(other).optimal == worse.optimal == (worse.gap == 0)


def test_whole_data_and_invalid_whole_answers():
    model = ControlledRounding([3, -1, 4], 6)
    assert model.certificate([3, -1, 4]).optimal
    assert model.violations([4, -2, 4]) == [
        "x[1] = -2, not -1",
        "x[0] = 4, not 3",
    ]
    halves = ControlledRounding([0.5, 0.5, 2.0**61], 2**61 + 1)
    assert halves.certificate([1, 0, 2**61]).optimal
    assert halves.violations([0, 0, 2**61 + 1]) == [f"x[2] = {2**61 + 1}, not {2**61}"]
    assert halves.violations([2**63 - 1, 2, -(2**63)])[1] == f"x[0] = {2**63 - 1}, not at most 1"
    # A whole value goes up by one, another down by one: the number of ups is right, the answer is not.
    assert ControlledRounding([0.5, 1.0], 2).violations([0, 2]) != []
    assert ControlledRounding([0.5, 0.5], 1).violations([2, -1]) != []
