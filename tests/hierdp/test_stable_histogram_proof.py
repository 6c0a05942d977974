"""The stability histogram SH keeps (ε, δ) on all neighbours of all tables of a small universe, exactly.

Which cells reach the threshold is an answer as well, so no sensitivity bounds what it reveals. The law of the
whole output is compared instead: P(S) ≤ e^ε P′(S) + δ for each set S of outputs. A cell with c trips is
not shown with probability 1 − P(X ≥ T − c), and shown as v ≥ T with P(X = v − c), where P(X = k) ∝ a^|k|. So
the smallest δ for an ε is a finite sum, because all values above both counts have the same ratio.
"""

from collections import Counter
from decimal import Decimal, localcontext
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
import universe

from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.unit import PrivacyUnit, trips_of_a_person
from hierdp.privacy.noise import SimulatedNoise
from tests.marks import quick

DIGITS = 60
ROUNDED = Decimal("3e-16")
"""A threshold's δ is rounded up to a float."""

UNITS = [
    *(trips_of_a_person(), trips_of_a_person(bounded=False), trips_of_a_person(2, False, False)),
    *(trips_of_a_person(2, False, True), trips_of_a_person(2, True, False), trips_of_a_person(2, True, True)),
]

BUDGETS = [(3.0, 0.05), (1.0, 1e-6)]
"""At the first, the threshold is 2 to 6, so that a few trips may be shown; at the second, it is 15 to 57."""


def people(unit):
    """The rows that a person may have."""
    choose = combinations if unit.distinct else combinations_with_replacement
    sizes = [unit.rows] if unit.replaced else range(unit.rows + 1)
    return [rows for size in sizes for rows in choose(universe.KINDS, size)]


def neighbours(others, unit):
    """Pairs of tables: a person with some rows, and with others or none, beside the rows of others."""
    every = people(unit)
    pairs = product(every, every) if unit.replaced else product(every, [()])
    for one, other in pairs:
        if one != other:
            yield (*others, *one), (*others, *other)


class Recording(SimulatedNoise):
    """Keeps what a release asks of a threshold."""

    def draw(self, query, true):
        self.counts, (self.changes, self.least) = true.copy(), query.threshold
        return super().draw(query, true)


def measured(table, unit, epsilon, delta):
    """What SH asks for on a table, with the record of its loss."""
    noise = Recording(0)
    made = top_down(universe.flows(table), epsilon, delta, noise, "SH", unit)
    (spend,) = made.ledger.spends
    assert (made.ledger.epsilon, made.ledger.delta) == (epsilon, delta)
    assert spend.epsilon <= epsilon
    assert spend.delta <= delta
    assert noise.counts.tolist() == [n for n in universe.cells(table).ravel().tolist() if n]
    return noise.changes, noise.least, spend


@cache
def law(count, other, scale, least):
    """The output's probabilities for one cell with either of two counts.

    Not shown; shown as each value up to the larger count; shown as more than that.
    """
    with localcontext() as context:
        context.prec = DIGITS
        a = (-1 / Decimal(scale)).exp()

        def reaches(k):
            return a**k / (1 + a) if k > 0 else 1 - a ** (1 - k) / (1 + a)

        def one(c, last):
            if not c:  # the histogram has no such cell
                return [Decimal(1)] + [Decimal(0)] * (last - least + 1)
            values = [(1 - a) / (1 + a) * a ** abs(v - c) for v in range(least, last)]
            return [1 - reaches(least - c), *values, reaches(last - c)]

        last = max(count, other, least)
        return list(zip(one(count, last), one(other, last), strict=True))


@cache
def smallest_delta(changed, scale, least, epsilon):
    """The maximum of P(S) − e^ε P′(S) over all sets of outputs, from the counts of the cells that differ."""
    with localcontext() as context:
        context.prec = DIGITS
        found, times = Decimal(0), epsilon.exp()
        for outputs in product(*(law(*pair, scale, least) for pair in changed)):
            p = q = Decimal(1)
            for here, there in outputs:
                p, q = p * here, q * there
            found += max(Decimal(0), p - times * q)
        return found


def exact(unit, epsilon, delta, most):
    """What all pairs of neighbours show, and what SH states.

    The others are all tables of up to so many rows, and one with as many in each cell as the threshold.

    Returns
    -------
    tuple
        The largest changes; the smallest δ for the loss ε on record, and for half of it; the changes
        and the δ on record.
    """
    changes, least, spend = measured(tuple(universe.KINDS), unit, epsilon, delta)
    few = universe.tables(most)
    assert all(measured(table, unit, epsilon, delta) == (changes, least, spend) for table in few)
    differ, largest = set(), Counter()
    for others in [(), *few, tuple(universe.KINDS) * least]:
        for pair in neighbours(others, unit):
            here, there = (universe.cells(table).ravel() for table in pair)
            away = np.abs(here - there)
            largest |= Counter(
                cells=np.count_nonzero(away),
                in_all=away.sum(),
                largest=away.max(),
                added=here[there == 0].sum(),
            )
            at = np.flatnonzero(away)
            differ.add(tuple(sorted(zip(here[at].tolist(), there[at].tolist(), strict=True))))
    loss = Decimal(changes.in_all) / Decimal(spend.scale)
    assert float(loss) == pytest.approx(spend.epsilon, rel=1e-15)  # the scale is a float
    needed, for_half = (
        max(smallest_delta(pair, spend.scale, least, part * loss) for pair in differ)
        for part in (Decimal(1), Decimal("0.5"))
    )
    return largest, needed, for_half, changes, Decimal(spend.delta)


def prove(unit, epsilon, delta, most):
    """The changes are the largest, δ is the smallest, and half of ε would not do."""
    largest, needed, for_half, changes, claimed = exact(unit, epsilon, delta, most)
    assert largest == changes._asdict()
    assert needed <= claimed <= needed * (1 + ROUNDED)
    assert for_half > claimed


@pytest.mark.parametrize("unit", quick(UNITS, first=3), ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_its_delta_is_the_smallest_for_all_neighbours(unit, epsilon, delta):
    """A person beside up to one row of others, or many in each cell."""
    prove(unit, epsilon, delta, 1)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_its_delta_is_the_smallest_for_all_tables_of_up_to_four_rows(unit, epsilon, delta):
    prove(unit, epsilon, delta, 4 - unit.rows)


WRONG = {
    "the second of a person's new cells is forgotten": {"added": 1},
    "half the noise": {"in_all": 1},
    "a person has at most one trip in a cell": {"largest": 1},
}


@pytest.mark.parametrize("bug", WRONG)
def test_a_wrong_threshold_or_scale_is_noticed(bug, monkeypatch):
    """By the largest changes, and by δ."""
    right = PrivacyUnit.changes
    monkeypatch.setattr(PrivacyUnit, "changes", lambda *given: right(*given)._replace(**WRONG[bug]))
    largest, needed, _, changes, claimed = exact(trips_of_a_person(2, False, False), 3.0, 0.05, 1)
    assert largest != changes._asdict()
    assert needed > claimed
