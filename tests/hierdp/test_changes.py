"""What one unit changes in each query that a release asks, for every design of the catalogue."""

import numpy as np
import pytest

from hierdp.audit.changes import changes_of
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.registry import REPAIR
from hierdp.mechanisms.unit import PrivacyUnit
from tests.designs import DESIGNS
from tests.marks import quick

RELEASED = {name: design for name, design in DESIGNS.items() if design.mechanism != REPAIR.name}


def mechanism_of(design):
    options = {"epsilon": design.epsilon, **design.options}
    return MECHANISMS[design.mechanism].kind(**options)


def neighbours(design, unit, counted):
    """Tables with a person, a row, or one of what is counted less; or with another in its place."""
    table = design.table.reset_index(drop=True)
    if unit.column is not None:
        for person in table[unit.column].unique()[::3]:
            yield table[table[unit.column] != person]
        return
    if counted is None:
        for row in table.index[:: max(1, len(table) // 5)]:
            yield table.drop(index=row)
        return
    there = table.index[table[counted] > 0].tolist()
    rows = unit.rows if unit.bounded_row or not unit.by_row else 1
    for first in range(0, len(there), 3):
        neighbour, places = table.copy(), [there[(first + step) % len(there)] for step in range(2 * rows)]
        if not unit.distinct:  # all trips in one place
            places = [places[0]] * rows + [places[-1]] * rows
        for place in places[:rows]:
            neighbour.loc[place, counted] = max(0, neighbour.loc[place, counted] - 1)
        for place in places[rows:] if unit.replaced else ():
            neighbour.loc[place, counted] += 1
        yield neighbour


def facts_of(mechanism, data):
    """The regions and the number of groups that are public."""
    facts, _ = mechanism.facts(data)
    regions = mechanism.regions_of(facts)
    return np.asarray(getattr(facts, "groups", 0)).tolist(), {
        axis: list(one.names[-1]) for axis, one in regions.items()
    }


@pytest.mark.parametrize("name", quick(RELEASED, every=4))
def test_no_query_changes_by_more_than_its_sensitivity(name):
    design = RELEASED[name]
    mechanism = mechanism_of(design)
    unit, counted = mechanism.unit, getattr(mechanism, mechanism.COUNTED)
    data = mechanism.read(design.table)
    public = facts_of(mechanism, data)
    rows = unit.rows if unit.by_row and unit.enforced is not None else 1
    compared, moved = 0, 0
    for table in neighbours(design, unit, counted):
        neighbour = mechanism.read(table)
        if facts_of(mechanism, neighbour) != public:
            continue  # regions or groups are taken from the data, and one was this unit's alone
        changes = changes_of(mechanism, data, neighbour)
        assert changes
        for change in changes:
            assert change.change <= change.sensitivity * rows * (1 + 1e-12), change
        compared, moved = compared + 1, moved + any(change.change > 0 for change in changes)
    assert compared
    assert moved


def test_an_understated_sensitivity_is_found(monkeypatch):
    monkeypatch.setattr(PrivacyUnit, "squared_sensitivity", lambda *_: 1)
    design = RELEASED["InfTDA"]
    mechanism = mechanism_of(design)
    (neighbour, *_) = neighbours(design, mechanism.unit, "n")
    changes = changes_of(mechanism, mechanism.read(design.table), mechanism.read(neighbour))
    assert [change.sensitivity for change in changes] == [1.0] * len(changes)
    assert max(change.change for change in changes) == pytest.approx(np.sqrt(2))
    assert any(change.understated for change in changes)
