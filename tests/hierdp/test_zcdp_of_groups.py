"""Groups by size under zCDP: what is spent, charged, planned and checked; intervals by the normal law."""

import numpy as np
import pandas as pd
import pytest

from hierdp import check, plan, release
from hierdp.errors import InputError
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.count_of_counts.intervals import CountOfCountsIntervals
from hierdp.mechanisms.group_size.intervals import GroupSizeIntervals
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise
from tests.marks import quick

HOMES = pd.DataFrame({"state": ["A"] * 30 + ["B"] * 20, "home": np.arange(50) // 3, "who": np.arange(50)})
GIVEN = {
    "groups": HOMES.drop_duplicates("home"),
    "levels": ["state"],
    "group": ["home"],
    "epsilon": 1.0,
    "delta": 1e-6,
}
RHO = rho_of(1.0, 1e-6)
CASES = [
    *(("group-size", {"method": m, "max_size": 5}) for m in ("M_c^dp", "M_H^dp", "M_c", "M_H")),
    *(
        ("count-of-counts", {"method": m, "max_size": 5})
        for m in ("Hc", "Hg", "naive", "bottom-up", "Hc x Hg")
    ),
    ("count-of-counts", {"method": "Hg", "max_size": 5, "shares": [1, 3]}),
    ("count-of-counts", {"size_budget": 0.1}),
    ("group-size", {"method": "M_H^dp", "max_size": 5, "shares": [1, 3]}),
]


@pytest.mark.parametrize(("mechanism", "options"), quick(CASES, every=3), ids=str)
@pytest.mark.parametrize("rows", [None, 2])
def test_a_release_spends_its_rho_and_holds_in_every_check(mechanism, options, rows, tmp_path):
    person = {} if rows is None else {"person": "who", "rows_per_person": rows}
    made = release(HOMES, mechanism, **GIVEN, **options, **person, confidence=0.9)
    ledger = made.ledger
    assert {spend.noise for spend in ledger.spends} == {GAUSSIAN}
    assert sum(spend.rho for spend in ledger.spends) * (rows or 1) ** 2 == pytest.approx(RHO)
    changed = [2**0.5 if spend.query.startswith("sizes by") else 1.0 for spend in ledger.spends]
    assert [spend.sensitivity for spend in ledger.spends] == pytest.approx(changed)
    found = check(made.write(tmp_path / "out"))
    assert [line for line in found if line.verdict == "FAILS"] == []
    assert {"table from steps", "noise", "budget: queries"} <= {
        line.check for line in found if line.verdict == "holds"
    }


def test_a_part_of_epsilon_is_that_part_of_rho():
    hidden = {name: value for name, value in GIVEN.items() if name != "groups"}
    made = release(HOMES, "count-of-counts", **hidden, size_budget=0.1, group_budget=0.3,
                   regions_from_data=True)  # fmt: skip
    size, *numbers = [spend.rho for spend in made.ledger.spends][:3]
    assert (size, sum(numbers)) == pytest.approx((0.1 * RHO, 0.3 * RHO))
    with pytest.raises(InputError, match="size_budget is 1: it must be a part of epsilon"):
        release(HOMES, "count-of-counts", **GIVEN, size_budget=1)


@pytest.mark.parametrize("mechanism", ["group-size", "count-of-counts"])
def test_it_is_planned_and_charged_in_rho(mechanism):
    loss = MECHANISMS[mechanism].loss(1.0, {"delta": 1e-6})
    assert (loss.rho, loss.epsilon) == (RHO, None)
    planned = plan(mechanism, epsilon=1.0, delta=1e-6, levels=["state=2"], max_size=5)
    made = release(HOMES, mechanism, **GIVEN, max_size=5, noise=SimulatedNoise(0))
    scales = [spend.scale for spend in made.ledger.spends]  # above 1 they are the deviations, to 10⁻⁶
    assert planned.table.noise_deviation.tolist() == pytest.approx(scales)


@pytest.mark.parametrize(
    ("mechanism", "method", "kind"),
    [("group-size", "M_H^dp", GroupSizeIntervals), ("count-of-counts", "naive", CountOfCountsIntervals)],
)
def test_intervals_are_by_the_normal_law(mechanism, method, kind, monkeypatch):
    """At 99 %, those by the law of double-geometric noise of the same variance are wider."""

    def widest():
        made = release(HOMES, mechanism, **{**GIVEN, "epsilon": 9.0}, method=method, max_size=5,
                       confidence=0.99, noise=SimulatedNoise(0))  # fmt: skip
        return (made.table.upper - made.table.lower).max()

    normal = widest()
    monkeypatch.setattr(kind, "_laws", {GEOMETRIC})
    assert widest() > normal


@pytest.mark.parametrize("delta", [0, 1, -1e-9, "small"])
def test_a_delta_out_of_range_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        release(HOMES, "group-size", **{**GIVEN, "delta": delta}, max_size=5)
