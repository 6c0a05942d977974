"""The ledger of every mechanism, method and relation is complete, summed, printed and never exceeded."""

import json
from dataclasses import replace
from html import unescape

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.audit import CASES
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import SimulatedNoise
from tests.marks import quick

NAMES = [f"{case.name}: {case.change}" for case in CASES]


class Dear(SimulatedNoise):
    """Noise that costs a little more than requested."""

    def __init__(self, more=1.001, more_delta=1.0):
        super().__init__(0)
        self.more, self.more_delta, self.draws = more, more_delta, 0

    def _priced(self, spend):
        self.draws += 1
        return replace(
            spend,
            epsilon=spend.epsilon and spend.epsilon * self.more,
            rho=spend.rho and spend.rho * self.more,
            delta=spend.delta and spend.delta * self.more_delta,
        )

    def draw(self, query, true):
        drawn = super().draw(query, true)
        return replace(drawn, spend=self._priced(drawn.spend))


@pytest.mark.parametrize("case", quick(CASES, every=4), ids=NAMES)
def test_every_release_keeps_account_of_all_it_spends(case):
    made = case.release(1, SimulatedNoise(1))
    ledger, budget = made.ledger, json.loads(json.dumps(made.manifest()))["budget"]
    rows = 1 if ledger.person is None else ledger.person.times
    rows = rows**2 if ledger.zcdp else rows  # group privacy
    losses = [rows * (spend.rho if ledger.zcdp else spend.epsilon) for spend in ledger.spends]
    assert all(loss > 0 for loss in losses)
    allowed = ledger.rho if ledger.zcdp else ledger.epsilon
    assert sum(losses) <= allowed * (1 + 1e-9)
    if "groups and largest size secret" not in case.change:  # a level without groups is not measured
        assert sum(losses) == pytest.approx(allowed)
    assert budget["spent"] == pytest.approx(sum(losses))
    kind = "zero-concentrated" if ledger.zcdp else "(ε, δ)" if ledger.delta else "pure"
    assert budget["composition"].startswith(kind)
    assert len(budget["neighbouring_relation"].split()) > 4
    assert [line["query"] for line in budget["spends"]] == [spend.query for spend in ledger.spends]
    for line in budget["spends"]:
        assert line["query"]
        assert line["noise"]
        assert line["sensitivity"] > 0
        assert line["scale"] > 0


@pytest.mark.parametrize("case", quick(CASES, every=4), ids=NAMES)
def test_no_release_exceeds_its_budget(case):
    dear = Dear(1.5 if "groups and largest size secret" in case.change else 1.001)
    with pytest.raises(InputError, match="more than the budget"):
        case.release(1, dear)
    assert dear.draws  # all noise was drawn from it
    assert case.release(1, Dear(1.0)).ledger.spends


def test_no_release_exceeds_its_delta():
    for case in CASES:
        if case.method == "SH":
            honest = case.release(1, Dear(1.0)).ledger
            spare = honest.delta / honest.spent_delta  # the threshold is whole, so some δ remains
            assert case.release(1, Dear(1.0, 0.999 * spare)).ledger.spends
            with pytest.raises(InputError, match="more than the budget's"):
                case.release(1, Dear(1.0, 1.001 * spare))


SEEN = ["--regions-from-data", "--groups-from-data"]
PRINTED = {
    "group-size": ["--levels", "town", "--group", "home", "--max-size", "3", *SEEN],
    "count-of-counts": ["--levels", "town", "--group", "home", "--max-size", "3", *SEEN],
    "top-down": ["--axis", "a=town", "--axis", "b=home", "--delta", "1e-8", "--regions-from-data"],
    "range-query": ["--numbers", "home=0:4"],
    "clustering": ["--numbers", "home=0:4"],
    "tabulation": [
        *("--levels", "town", "--attribute", "home=1,2", "--delta", "1e-8", "--regions-from-data"),
        *("--method", "GLS"),
    ],
}


@pytest.mark.parametrize("mechanism", PRINTED)
def test_the_ledger_is_printed(tmp_path, mechanism):
    """The screen shows the sum, the report each query, the composition and the neighbouring relation."""
    pd.DataFrame({"town": ["a", "a", "b"], "home": [1, 1, 2]}).to_csv(tmp_path / "in.csv", index=False)
    arguments = [*PRINTED[mechanism], "--epsilon", "1", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(
        main, ["release", mechanism, str(tmp_path / "in.csv"), *arguments], env={"COLUMNS": "250"}
    )
    assert done.exit_code == 0, done.output
    budget = json.loads((tmp_path / "out" / "manifest.json").read_text())["budget"]
    assert f"{budget['spent']:.6g} spent" in done.output
    report = unescape((tmp_path / "out" / "report.html").read_text())
    for spend in budget["spends"]:
        assert spend["query"] in report
        assert spend["noise"] in report
    assert budget["neighbouring_relation"] in report
    assert f"ε = {budget['epsilon']:g}" in report
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "out")], env={"COLUMNS": "300"})
    assert checked.exit_code == 0, checked.output
    assert f"by {budget['composition']}" in checked.output


def test_a_ledger_is_checked_where_it_is_made():
    made = CASES[0].release(0, SimulatedNoise(0)).ledger
    with pytest.raises(InputError):
        Ledger(made.epsilon / 2, made.delta, made.neighbours, made.spends)
