"""Conversions between ε and ρ in high precision, splits, and a ledger that refuses to overspend."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.clustering import METHODS as CLUSTERING
from hierdp.mechanisms.clustering import clustering
from hierdp.mechanisms.count_of_counts.plan import budgets_of
from hierdp.mechanisms.count_of_counts.plan import plan_of as counts_plan_of
from hierdp.mechanisms.range_query.plan import METHODS, plan_of
from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.budget import (
    Ledger,
    Spend,
    check_delta,
    check_epsilon,
    of_one_row,
    rest_of,
    split,
    sum_of,
)
from hierdp.privacy.conversion import PAPERS, TIGHTER, papers_rho_of, rho_of
from hierdp.privacy.noise import ExactNoise, SimulatedNoise, gaussian, geometric
from hierdp.privacy.rounding import below, root_of
from hierdp.tables import Flows
from hierdp.tables.binning import Histogram
from tests.marks import quick


def spend(epsilon=None, rho=None, private=True):
    return Spend("q", "noise", 1, 1.0, epsilon, rho, private)


@given(st.floats(1e-6, 1e6), st.integers(1, 40))
@settings(deadline=None)
def test_even_split(budget, parts):
    shares = split(budget, parts)
    assert len(shares) == parts
    assert len(set(shares)) == 1
    assert sum(map(Fraction, shares)) <= Fraction(budget)
    assert Fraction(math.nextafter(shares[0], math.inf)) * parts > Fraction(budget)


@given(st.floats(1e-6, 1e6), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=10))
@settings(deadline=None)
def test_split_by_shares(budget, shares):
    parts = split(budget, len(shares), shares)
    assert math.fsum(parts) == pytest.approx(budget, rel=1e-12)
    assert sum(map(Fraction, parts)) <= Fraction(budget)
    for part, share in zip(parts, shares, strict=True):
        assert part / parts[0] == pytest.approx(share / shares[0], rel=1e-12)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([1, 2], "2 shares for 3 levels"),
        ([1, 2, 3, 4], "4 shares for 3 levels"),
        ([1, 0, 1], "share 1 is 0.0: it must be a positive"),
        ([1, 1, -2], "share 2 is -2.0"),
        ([math.nan, 1, 1], "share 0 is nan"),
        ([1, math.inf, 1], "share 1 is inf"),
        (["a", 1, 1], "share 0 must be a number, got 'a'"),
    ],
)
def test_bad_shares(shares, message):
    with pytest.raises(InputError, match=message):
        split(1.0, 3, shares)


@pytest.mark.parametrize("parts", [1, 3, 7, 49])
def test_ledger_takes_its_whole_budget(parts):
    pure = Ledger(0.7, 0.0, "n", tuple(spend(epsilon=e) for e in split(0.7, parts)))
    assert pure.spent == pytest.approx(0.7)
    zcdp = Ledger(0.7, 1e-8, "n", tuple(spend(rho=r) for r in split(rho_of(0.7, 1e-8), parts)))
    assert zcdp.spent == pytest.approx(zcdp.rho)


@pytest.mark.parametrize("excess", [1e-8, 0.01, 5])
def test_ledger_refuses_to_exceed_its_budget(excess):
    with pytest.raises(InputError, match="more than the budget"):
        Ledger(1.0, 0.0, "n", (spend(epsilon=0.5), spend(epsilon=0.5 + excess)))
    rho = rho_of(1.0, 1e-8)
    with pytest.raises(InputError, match="more than the budget"):
        Ledger(1.0, 1e-8, "n", (spend(rho=rho), spend(rho=rho * excess)))


ODD = [0.1, 0.3, 1 / 3, 1e-3, 7.7]
"""Values of ε whose parts are not representable as floats."""


@pytest.mark.parametrize("epsilon", ODD)
def test_ledger_refuses_one_digit_too_much(epsilon):
    """One unit in a float's last place is enough, even if the sum in floats hides it."""
    for parts in range(1, 13):
        shares = split(epsilon, parts)
        Ledger(epsilon, 0.0, "n", tuple(map(spend, shares)))
        over = [*shares[:-1], rest_of(epsilon, *shares[:-1])]
        Ledger(epsilon, 0.0, "n", tuple(map(spend, over)))
        over[-1] = math.nextafter(over[-1], math.inf)
        with pytest.raises(InputError, match="more than the budget"):
            Ledger(epsilon, 0.0, "n", tuple(map(spend, over)))
    rho = rho_of(epsilon, 1e-8)
    Ledger(epsilon, 1e-8, "n", (spend(rho=rho),))
    with pytest.raises(InputError, match="more than the budget"):
        Ledger(epsilon, 1e-8, "n", (spend(rho=math.nextafter(rho, math.inf)),))
    with pytest.raises(InputError, match="a δ of"):
        Ledger(epsilon, 1e-8, "n", (Spend("q", "n", 1, 1.0, epsilon, None, True, math.nextafter(1e-8, 1)),))


def test_a_sum_in_floats_hides_what_fractions_show():
    half = math.nextafter(0.5, 1)
    assert 0.5 + half == 1.0
    with pytest.raises(InputError, match=r"cost 1, more than the budget of 1 \(by 1\.11e-16\)"):
        Ledger(1.0, 0.0, "n", (spend(0.5), spend(half)))
    with pytest.raises(InputError, match=r"by inf"):
        Ledger(1.0, 0.0, "n", (spend(math.inf),))


@given(st.fractions())
def test_rounding_is_down(number):
    assert Fraction(below(number)) <= number < Fraction(math.nextafter(below(number), math.inf))


@given(st.lists(st.floats(0, 1e3), max_size=9))
def test_sums_of_losses_are_rounded_up_and_rests_down(losses):
    total = sum(map(Fraction, losses), Fraction(0))
    assert Fraction(math.nextafter(sum_of(losses), -math.inf)) < total <= Fraction(sum_of(losses))
    assert Fraction(rest_of(1e4, *losses)) <= 10**4 - total


def plans(epsilon):
    """The levels' shares for each way to split a budget over up to 12 levels."""
    axes = Histogram.of(np.zeros(4096, int)).axes
    for method, budget in itertools.product(("H_b^c", "H_b"), ("equal", "geometric", "optimized")):
        yield plan_of(axes, epsilon, METHODS[method], 2, budget).epsilons
    yield plan_of(axes, epsilon, METHODS["H_2"], None, [1 / 3, 0.1, 7, *range(1, 10)]).epsilons
    for shares in (None, (0.1, 0.2, 0.3, 0.7)):
        plan = counts_plan_of(
            "Hc", list("abcd"), group_budget=epsilon / 7, size_budget=epsilon / 3, shares=shares
        )
        yield (epsilon / 7, epsilon / 3, *budgets_of(plan, epsilon))


@pytest.mark.parametrize("epsilon", quick(ODD, every=4))
def test_exact_noise_on_every_split_stays_within_the_budget(epsilon):
    """By OpenDP's privacy map for each level, with no allowance for rounding."""
    noise, zero = ExactNoise(), np.zeros(1, np.int64)
    for shares in plans(epsilon):
        spends = [noise.draw(geometric("q", 1, share), zero).spend for share in shares]
        assert Ledger(epsilon, 0.0, "n", tuple(spends)).spent <= epsilon
    for parts, squared in itertools.product((1, 2, 5, 12), (1, 2, 10)):
        shares = split(rho_of(epsilon, 1e-6), parts)
        spends = [noise.draw(gaussian("q", root_of(squared), share), zero).spend for share in shares]
        ledger = Ledger(epsilon, 1e-6, "n", tuple(spends))
        assert ledger.spent == pytest.approx(ledger.rho)


CLUSTERED = [(name, {}) for name in CLUSTERING] + [
    ("SF", {"clusters": 4, "share": 0.1}),
    ("AHP", {"share": 0.3}),
]


@pytest.mark.parametrize("odd", quick([ODD[::3], ODD[1:3], ODD[4:]]), ids=str)
@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(0)], ids=["exact", "simulated"])
def test_every_mechanism_stays_within_an_odd_budget(noise, odd):
    data = Histogram.of([3, 0, 2, 5, 0, 1, 9])
    trips = Flows((Hierarchy.flat("o", ["a", "b"]), Hierarchy.flat("d", ["a", "b"])), ("o", "d"),
                  np.array([[0, 0], [1, 1]]), np.array([400, 3]))  # fmt: skip
    for epsilon in odd:
        for method, options in CLUSTERED:
            made = clustering(data, epsilon, noise, method, **options)
            assert made.ledger.spent == pytest.approx(epsilon)
        for method, unit in itertools.product(
            ("InfTDA", "VanillaGauss", "SH"), (trips_of_a_person(), trips_of_a_person(3, True, False))
        ):
            made = top_down(trips, epsilon, 1e-6, noise, method, unit)
            assert made.ledger.spent == pytest.approx(made.ledger.rho if made.ledger.zcdp else epsilon)


def test_ledger_refuses_many_small_spends():
    with pytest.raises(InputError, match="more than the budget"):
        Ledger(1.0, 0.0, "n", (spend(epsilon=0.001),) * 1001)


def test_ledger_refuses_to_mix_kinds():
    with pytest.raises(InputError, match="another kind"):
        Ledger(1.0, 0.0, "n", (spend(epsilon=0.1), spend(rho=0.1)))
    with pytest.raises(InputError, match="another kind"):
        Ledger(1.0, 1e-6, "n", (spend(epsilon=0.1),))


def test_ledger_is_private_only_if_all_of_it_is():
    assert Ledger(1.0, 0.0, "n", (spend(0.1), spend(0.1))).private
    assert not Ledger(1.0, 0.0, "n", (spend(0.1), spend(0.1, private=False))).private


def test_ledger_for_the_manifest():
    pure = Ledger(1.0, 0.0, "an entity more or less", (spend(0.25),)).as_dict()
    assert pure["composition"] == "pure differential privacy"
    assert (pure["epsilon"], pure["delta"], pure["spent"]) == (1.0, 0.0, 0.25)
    assert pure["neighbouring_relation"] == "an entity more or less"
    assert "rho" not in pure
    zcdp = Ledger(1.0, 1e-8, "n", (spend(rho=0.001),)).as_dict()
    assert zcdp["composition"] == "zero-concentrated differential privacy"
    assert zcdp["rho"] == rho_of(1.0, 1e-8)
    assert zcdp["conversion"] == TIGHTER
    assert "conversion" not in pure


def test_a_budget_names_its_conversion():
    rho = papers_rho_of(1.0, 1e-8)
    theirs = Ledger(1.0, 1e-8, "n", (spend(rho=rho),), PAPERS)
    entries = theirs.as_dict()
    assert (entries["rho"], entries["conversion"]) == (rho, PAPERS)
    assert Ledger.from_dict(entries) == theirs
    new = Ledger(1.0, 1e-8, "n", (spend(rho=rho_of(1.0, 1e-8)),))
    assert Ledger.from_dict(new.as_dict()) == new
    with pytest.raises(InputError, match="more than the budget"):
        Ledger(1.0, 1e-8, "n", new.spends, PAPERS)
    with pytest.raises(InputError, match="no conversion 'mine'"):
        Ledger(1.0, 1e-8, "n", new.spends, "mine")


@pytest.mark.parametrize("value", [0, 0.0, -1, -1e-300, math.nan, math.inf, -math.inf])
def test_bad_epsilon(value):
    with pytest.raises(InputError, match=r"epsilon is .*positive finite number"):
        check_epsilon(value)


@pytest.mark.parametrize("value", ["", "one", "1,5", "1", "nan", b"1", True, np.True_, None, [1], 1j])
def test_epsilon_that_is_no_number(value):
    with pytest.raises(InputError, match="epsilon must be a number, got"):
        check_epsilon(value)


@pytest.mark.parametrize("value", [0, -1e-9, math.nan, math.inf, 1, 1.0, 1.5, 1 - 1e-17])
def test_bad_delta(value):
    with pytest.raises(InputError, match="delta is"):
        check_delta(value)


@pytest.mark.parametrize("value", ["", "tiny", "1e-8", True, None])
def test_delta_that_is_no_number(value):
    with pytest.raises(InputError, match="delta must be a number, got"):
        check_delta(value)


@pytest.mark.parametrize("value", [1, 1e-3, np.float32(0.5), 1e-300, 1e300, Fraction(1, 3)])
def test_good_epsilon(value):
    assert check_epsilon(value) == float(value)


@pytest.mark.parametrize("value", [1e-8, np.float64(1e-8), 5e-324, 0.999999])
def test_good_delta(value):
    assert check_delta(value) == float(value)


def test_ledger_of_a_measurement_with_a_delta_of_its_own():
    own = Spend("q", "noise", 2, 2.0, 0.9, None, True, 1e-9)
    kept = Ledger(1.0, 1e-8, "n", (own,))
    assert not kept.zcdp
    assert (kept.spent, kept.spent_delta) == (0.9, 1e-9)
    entries = kept.as_dict()
    assert entries["composition"] == "(ε, δ)-differential privacy"
    assert (entries["spent"], entries["spent_delta"], "rho" in entries) == (0.9, 1e-9, False)
    with pytest.raises(InputError, match=r"a δ of 1\.1e-08, more than the budget's 1e-08"):
        Ledger(1.0, 1e-8, "n", (own, Spend("q", "noise", 2, 2.0, 0.05, None, True, 1e-8)))
    with pytest.raises(InputError, match="more than the budget of 1"):
        Ledger(1.0, 1e-8, "n", (own, own))
    with pytest.raises(InputError, match="another kind"):
        Ledger(1.0, 1e-8, "n", (own, spend(rho=1e-9)))
    with pytest.raises(InputError, match="a δ of"):
        Ledger(1.0, 0.0, "n", (own,))
    none = Ledger(1.0, 1e-8, "n", (Spend("q", "noise", 2, 2.0, 0.9, None, True, 0.0),))  # δ may underflow
    assert (none.zcdp, none.spent, none.as_dict()["spent_delta"]) == (False, 0.9, 0.0)
    both = Ledger(1.0, 1e-8, "n", (own, Spend("q", "noise", 1, 16.0, 0.0625, None, True)))
    assert (both.zcdp, both.spent, both.spent_delta) == (False, 0.9625, 1e-9)


def test_all_rows_of_a_person_cost_no_more_than_the_budget():
    """This also holds where the nearest float exceeds the quotient, as 0.1 exceeds a tenth."""
    rounded_up = 0
    for epsilon in (1.0, 0.3, 2.5):
        for rows in range(1, 50):
            of_row = of_one_row(epsilon, rows)
            assert rows * Fraction(of_row) <= Fraction(epsilon) < rows * Fraction(math.nextafter(of_row, 9))
            rounded_up += of_row < epsilon / rows
    assert rounded_up > 9
