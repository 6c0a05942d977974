"""What the packages give is what the golden record says, and it is of every option."""

from dataclasses import replace

import pytest

from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.clustering.dawa import WORKLOADS
from hierdp.mechanisms.range_query.matrix import STRATEGIES
from hierdp.mechanisms.range_query.plan import BUDGETS
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.mechanisms.registry import REPAIR
from tests.designs import DESIGNS
from tests.golden import record
from tests.golden.canonical import canonical
from tests.marks import quick

ENTRIES, RECORDED = record.entries(), record.read()

NO_EFFECT = {
    "time_limit": "if it is reached, there is no release",
    "backend": "answers of all solvers are optimal, and it is not recorded which one it is",
}
"""Options that do not change a release, and why."""

DEFAULTS = {"weighted", "least squares", "p-identity", "ranges"}
"""Values that a release has without the option."""

WORDS = {"repair": REPAIRS, "budget": BUDGETS, "strategy": STRATEGIES, "workload": WORKLOADS}
"""The values of options that have a few, although their type does not list them."""


@pytest.mark.parametrize("name", quick(ENTRIES, every=5))
def test_nothing_has_changed(name):
    changes = record.changes(name, record.digests(ENTRIES[name]()), RECORDED.get(name, {}))
    assert not changes, "\n".join(["not what tests/golden/digests.txt says:", *changes])


def test_every_entry_is_recorded_and_nothing_else():
    assert list(RECORDED) == list(ENTRIES)


def designs_of(mechanism):
    return [design for design in DESIGNS.values() if design.mechanism == mechanism]


def options_of(mechanism):
    """Names of options that change a release, with the values of those that have a few."""
    if mechanism == REPAIR.name:
        options = dict.fromkeys(REPAIR.keywords, ())
        return options | {"method": [one.name for one in REPAIR.methods]}
    keywords = MECHANISMS[mechanism].keywords.values()
    options = {one.name: one.choices or WORDS.get(one.name, ()) for one in keywords}
    return options | {"method": [one.name for one in MECHANISMS[mechanism].methods]}


@pytest.mark.parametrize("mechanism", [*MECHANISMS, REPAIR.name])
def test_every_option_has_a_design(mechanism):
    designs = designs_of(mechanism)
    for name, values in options_of(mechanism).items():
        used = [design.options[name] for design in designs if name in design.options]
        assert used or name in NO_EFFECT, name
        assert {value for value in values if value not in used} <= DEFAULTS, name


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [*MECHANISMS, REPAIR.name])
def test_every_option_changes_a_release(mechanism):
    """Without it, some design has another release, or none."""

    def texts(design):
        release = design.release()
        budget = None if mechanism == REPAIR.name else release.ledger.as_dict()
        return [canonical(release.table), canonical(release.settings), canonical(budget or {})]

    def changes(design, option):
        others = {name: value for name, value in design.options.items() if name != option}
        try:
            return texts(replace(design, options=others)) != texts(design)
        except (ValueError, TypeError):  # it is needed
            return True

    for option in options_of(mechanism):
        using = [design for design in designs_of(mechanism) if option in design.options]
        assert option in NO_EFFECT or any(changes(design, option) for design in using), option


def test_canonical_texts_do_not_depend_on_order_or_last_digits():
    value = {"b": [1, 2 / 3, 1e-20], "a": {"d": "of 0.12345678901234, 2/3 and 1.2.3", "c": "ab" * 32}}
    text = "a: {c: DIGEST, d: of 0.123456789, 0.6666666667 and 1.2.3}\nb: [1, 0.6666666667, 0.0]"
    assert canonical(value) == text == canonical(dict(reversed(value.items())))
    assert canonical({"a": 1 / 3}) != canonical({"a": 1 / 3 + 1e-9})
