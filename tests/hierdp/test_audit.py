"""The audit: bounds against exact binomials; broken mechanisms are caught, and correct ones pass."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from faulty_noise import Half
from scipy.stats import binom, norm

from hierdp import audit as package
from hierdp.audit import CASES, SAMPLERS, Case, audit, detectable, exactly
from hierdp.audit.analytic_events import ZeroNoise, all_over, direction, moves
from hierdp.audit.bound import at_least, at_most, least_epsilon, least_rho
from hierdp.audit.events import Claim, Condition, Event, _together, chosen, whole
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import using
from hierdp.experiments.papers.kuo2018.shared_seed import OneSeed
from hierdp.mechanisms import MECHANISMS
from hierdp.privacy.budget import CHOICE, GAUSSIAN, Allowed, Ledger
from hierdp.privacy.noise import (
    ExactNoise,
    SimulatedNoise,
    choice,
    gaussian,
    geometric,
    over,
    threshold,
)
from hierdp.privacy.threshold import Changes, miss_of

pytestmark = pytest.mark.slow

METHODS = {method.name for mechanism in MECHANISMS.values() for method in mechanism.methods}


def case_of(mechanism, method, change=""):
    return next(c for c in CASES if (c.mechanism, c.method) == (mechanism, method) and change in c.change)


# --- bounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 2, 7, 40])
@pytest.mark.parametrize("miss", [0.2, 0.025, 1e-6])
def test_bounds_of_a_probability_are_those_of_clopper_and_pearson(runs, miss):
    """Bounds solve P(at least as many hits) = miss, or P(at most as many); they hold for each probability."""
    hits = np.arange(runs + 1)
    low, high = at_least(hits, runs, miss), at_most(hits, runs, miss)
    assert low[0] == 0
    assert high[-1] == 1
    assert binom.sf(hits[1:] - 1, runs, low[1:]) == pytest.approx(np.full(runs, miss))
    assert binom.cdf(hits[:-1], runs, high[:-1]) == pytest.approx(np.full(runs, miss))
    for p in np.linspace(0, 1, 41):
        chance = binom.pmf(hits, runs, p)
        assert chance[low > p].sum() <= miss * (1 + 1e-9)
        assert chance[high < p].sum() <= miss * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_least_epsilon_is_sufficient_and_minimal(delta):
    for p, q in np.random.default_rng(0).random((200, 2)):
        epsilon = float(least_epsilon(p, q, delta))
        assert epsilon >= 0
        if p - delta > q:
            assert p == pytest.approx(math.exp(epsilon) * q + delta)
        else:
            assert epsilon == 0


def divergence(p, q, order):
    both = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return math.log(both) / (order - 1)


def test_the_least_rho_is_a_divergence_over_its_order():
    """It is no larger than the maximum over all orders, and hardly smaller."""
    orders = 1 + np.geomspace(1e-4, 50, 3000)
    for p, q in np.random.default_rng(1).uniform(0.02, 0.98, (60, 2)):
        found = float(least_rho(p, q))
        if p <= q:
            assert found == 0
            continue
        best = max(divergence(p, q, order) / order for order in orders)
        assert best * 0.98 <= found <= best * (1 + 1e-3)


@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0])
def test_no_event_of_normal_noise_shows_more_than_its_rho(shift):
    at = np.linspace(-6, 9, 400)
    found = least_rho(norm.sf(at - shift), norm.sf(at))
    assert 0.6 * shift**2 / 2 < found.max() <= shift**2 / 2


def test_bounds_rise_with_p_and_fall_with_q():
    """Otherwise bounds on p and q would not give a bound on the loss."""
    grid = np.linspace(0.01, 0.99, 50)
    for loss in (least_epsilon, partial(least_epsilon, delta=0.05), least_rho):
        table = loss(grid[:, None], grid[None, :])
        assert (np.diff(table, axis=0) >= -1e-12).all()
        assert (np.diff(table, axis=1) <= 1e-12).all()


# --- events ----------------------------------------------------------------------------------------------


def test_an_event_is_a_threshold_on_a_sum_of_what_is_released():
    over = Condition((("a", 2), ("b", -1)), 3.0, False)
    seen = [{"a": 2.0, "b": 1.0}, {"a": 2.0}, {"b": -2.9}, {}]
    assert over.holds(seen).tolist() == [True, True, False, False]
    under = replace(over, below=True)
    assert Event((under,), False).counts(seen) == 2
    assert str(over) == "2·a -b ≥ 3"
    assert str(under) == "2·a -b < 3"
    both = Event((over, Condition((("b", 1),), 1.0, False)), False)
    assert both.counts(seen) == 1
    assert str(both) == "2·a -b ≥ 3, b ≥ 1"
    assert str(Event((over,) * 5, False)) == "2·a -b ≥ 3, 2·a -b ≥ 3, 2·a -b ≥ 3, … (5 in all)"


def test_differences_are_found_by_running_without_noise():
    truths = {"a": 3.0, "b": 1.0, "n[x]": 2.0}, {"a": 5.0, "b": 1.0, "m": 4.0}
    moved = moves(truths)
    assert moved == {"a": (3.0, 5.0), "m": (0.0, 4.0), "n[x]": (2.0, 0.0)}
    first, second, *_ = all_over({"a": (3.0, 5.0), "n": (2.0, 0.0)})
    assert (first.swapped, second.swapped) == (False, True)
    seen = [{"a": 3.0, "n": 2.0}, {"a": 2.0, "n": 3.0}, {"a": 4.0, "n": 2.0}, {"a": 5.0, "n": 0.0}]
    assert [first.counts([run]) for run in seen] == [1, 1, 0, 0]
    assert [second.counts([run]) for run in seen] == [0, 0, 0, 1]
    assert direction(moved, ["a", "b", "m", "n[x]"]).tolist() == [1, 0, 2, -1]
    assert whole(np.array([0.0, 0.0])).tolist() == [0, 0]


def test_columns_are_separate_events():
    """Counts released twice, raw and repaired, need not both have their known values; nor need two steps."""
    names = "count[1]", "noisy of step 1[1]", "noisy of step 2[1]", "noisy of step 2[2]"
    moved = dict.fromkeys(names, (1.0, 2.0))
    sizes = [len(event.conditions) for event in all_over(moved)]
    assert sorted(sizes[::2]) == sorted(sizes[1::2]) == [1, 1, 1, 1, 2, 3, 4]  # step 2, noisy, all
    assert not list(all_over({}))


def coins():
    """Of two coins, each right with probability 3/4, the pair reveals more than either coin or their sum."""
    rng = np.random.default_rng(0)
    draw = lambda right: {"a": float(rng.random() < right), "b": float(rng.random() < right)}  # noqa: E731
    return [draw(0.25) for _ in range(400)], [draw(0.75) for _ in range(400)]


def test_a_known_event_is_chosen_if_it_gives_the_best_bound():
    sides = coins()
    known = list(all_over({"a": (0.0, 1.0), "b": (0.0, 1.0)}))
    event = chosen(sides, Claim(1.0, 0.0), 0.001, known)
    assert len(event.conditions) == 2


def test_without_noise_a_release_is_its_table():
    for case in CASES:
        if case.mechanism in ("range-query", "top-down") and case.method not in ("SH", "TDA_inf"):
            seen = case.seen(case.release(0, ZeroNoise()))
            assert seen == case.seen(case.release(0, ZeroNoise()))
            assert {20.0, 40.0} & set(seen.values())


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_event_that_distinguishes_two_tables_is_chosen(swapped, sign):
    rng = np.random.default_rng(2)
    here = [{"dull": float(rng.integers(9)), "revealing": float(sign * rng.integers(6))} for _ in range(60)]
    there = [
        {"dull": float(rng.integers(9)), "revealing": float(sign * rng.integers(5, 12))} for _ in range(60)
    ]
    sides = (there, here) if swapped else (here, there)
    event = chosen(sides, Claim(1.0, 0.0), 0.001)
    likely, unlikely = sides[::-1] if event.swapped else sides
    assert event.counts(likely) >= 48
    assert event.counts(unlikely) <= 4


@pytest.mark.parametrize("more", [0, 30])
def test_noise_that_cancels_out_is_found(more):
    """It cancels in the difference of two numbers; among many numbers, Fisher's discriminant finds it."""
    rng = np.random.default_rng(3)

    def runs(apart):
        for _ in range(100):
            shared = int(rng.integers(-50, 50))
            rest = {f"dull {i}": float(rng.integers(9)) for i in range(more)}
            yield {"a": shared, "b": shared + apart, **rest}

    sides = list(runs(0)), list(runs(1))
    event = chosen(sides, Claim(1.0, 0.0), 0.001)
    assert sorted(event.counts(side) for side in sides) == [0, 100]


def test_thresholds_that_hold_together_are_found_by_training():
    sides = coins()
    for swapped, likely in ((False, 0.0), (True, 1.0)):
        table = [np.array([list(run.values()) for run in side]) for side in sides]
        event = _together(["a", "b"], tuple(table), Claim(1.0, 0.0), 0.001, swapped)
        assert len(event.conditions) == 2
        assert event.counts([{"a": likely, "b": likely}]) == 1
        assert event.counts([{"a": likely, "b": 1 - likely}]) == 0


def test_there_may_be_nothing_to_choose():
    assert chosen(([{}] * 5, [{}] * 5), Claim(1.0, 0.0), 0.1).counts([{}] * 3) in (0, 3)


# --- honesty ---------------------------------------------------------------------------------------------


def plain(make, change="", tables=(0, 1), claim=1.0, delta=0.0):
    """A case whose mechanism is a function of a number and a random generator."""

    def run(table, rng):
        made = make(table, np.random.default_rng(0) if isinstance(rng, ZeroNoise) else rng)
        spent = Ledger(claim, delta, "any", ())
        return SimpleNamespace(
            table={"i": np.arange(len(made)), "count": np.array(made)}, settings={}, ledger=spent,
            measurements=None, steps=(),
        )  # fmt: skip

    return Case("plain", "plain", change, tables, ("i",), run)


def test_the_runs_that_choose_the_event_do_not_bound_its_loss():
    """Noise that does not depend on the table shows a loss no more often than the confidence allows."""
    dull = [plain(lambda _, rng: rng.normal(size=8), str(i)) for i in range(80)]
    found = [next(audit([case], 40, 0.8, np.random.default_rng)) for case in dull]
    assert sum(line.epsilon > 0 for line in found) <= 16 + 3 * 4


def test_the_bound_comes_near_to_the_loss_and_stays_under_it():
    def noisy(table, rng):
        return [table + rng.geometric(1 - math.exp(-1)) - rng.geometric(1 - math.exp(-1))]

    (line,) = audit([plain(noisy)], 4000, 0.99, np.random.default_rng)
    assert 0.75 < line.epsilon <= 1
    assert not line.over
    (line,) = audit([plain(noisy, claim=0.7)], 4000, 0.99, np.random.default_rng)
    assert line.over


def test_delta_is_allowed_for():
    """A mechanism that reveals the table with probability δ is (0, δ)-private, but not (0, δ/10)-private."""

    def shows(table, rng):
        return [table if rng.random() < 0.1 else -1]

    (line,) = audit([plain(shows, delta=0.1)], 3000, 0.99, np.random.default_rng)
    assert line.epsilon < 1
    (line,) = audit([plain(shows, delta=0.01)], 3000, 0.99, np.random.default_rng)
    assert line.over


@pytest.mark.parametrize("claim", [Claim(2.0, 0.0), Claim(4.08, 0.01, 0.9)], ids=str)
@pytest.mark.parametrize("runs", [50, 500])
def test_the_smallest_loss_that_could_have_been_found(claim, runs):
    """One event with that loss exceeds the claim with the expected hits; a slightly smaller loss does not."""
    least = detectable(claim, runs, 1e-5)
    claimed = claim.epsilon if claim.rho is None else claim.rho

    def bound(loss):
        p = 1 / (1 + math.exp(-loss)) if claim.rho is None else norm.cdf(math.sqrt(2 * loss) / 2)
        hits = round(p * runs)
        low, high = at_least(hits, runs, 5e-6), at_most(runs - hits, runs, 5e-6)
        return float(claim.loss(low, high))

    if runs == 50:  # not even without noise
        assert least == math.inf
        assert bound(99 * claimed) <= claimed
    else:
        assert bound(least) > claimed >= bound(0.98 * least)
        assert least > claimed


def test_confidence_is_shared_by_all_bounds():
    one = next(audit([plain(lambda t, _: [t])], 40, 0.9, np.random.default_rng))
    many = list(audit([plain(lambda t, _: [t])] * 10, 40, 0.9, np.random.default_rng))
    alone = least_epsilon(at_least(20, 20, 0.05), at_most(0, 20, 0.05))
    together = least_epsilon(at_least(20, 20, 0.005), at_most(0, 20, 0.005))
    assert one.epsilon == pytest.approx(float(alone))
    assert [line.epsilon for line in many] == pytest.approx([float(together)] * 10)


# --- mechanisms that are broken --------------------------------------------------------------------------


class Shared(SimulatedNoise):
    """One draw for all counts of a measurement."""

    def _noisy(self, query, counts):
        drawn = super()._noisy(query, np.zeros(1, np.int64))
        return replace(drawn, answers=counts + drawn.answers)


def caught(case, runs, source):
    (line,) = audit([case], runs, 0.999, source)
    return line.over


HALF = [
    *(("range-query", m, "", 800) for m in ("Flat", "H_tree", "H_tree^c", "H_b", "H_b^c", "Quadtree")),
    ("range-query", "H_2", "", 1333),
    ("range-query", "H_2^c", "first bin", 2000),
    ("range-query", "Wavelet", "first bin", 1333),
    *(("clustering", m, "", 2000) for m in ("AHP", "AHP-greedy", "AHP-by-place", "GS", "PHP", "SF")),
    *(("clustering", m, "first bin", 4000) for m in ("PrivTree", "DAWA")),
    *(("clustering", m, "", 800) for m in ("Laplace", "NF")),
    *(("count-of-counts", m, "only group", 1066) for m in ("Hc", "Hg")),
    ("count-of-counts", "bottom-up", "", 666),
    ("group-size", "M_c^dp", "only group", 1066),
    ("top-down", "VanillaGauss", "is added", 933),
    ("top-down", "SH", "is added", 400),
    ("tabulation", "GLS", "a person joins A", 267),
]
"""Cases whose runs take a few milliseconds."""


@pytest.mark.parametrize(("mechanism", "method", "change", "runs"), HALF)
def test_half_the_noise_is_detected(mechanism, method, change, runs):
    case = case_of(mechanism, method, change)
    assert caught(case, runs, Half)
    assert not caught(case, 100, SimulatedNoise)


def test_half_the_noise_is_half_of_each_kind():
    """It is not a quarter, although some kinds of noise are drawn with the help of others."""
    counts = np.full(30_000, 10**6)
    for law in (geometric("q", 1, 0.2), gaussian("q", 1.0, 0.005), over("q", Changes(2, 2, 1, 1), 0.4, 70)):
        usual, half = (np.std(source(1).draw(law, counts).answers) for source in (SimulatedNoise, Half))
        assert half / usual == pytest.approx(0.5, rel=0.03), law
    scores = [np.array([0, 4])] * 30_000  # the second is chosen with P(E₁ - E₂ < 4), means 2Δ/ε
    law = choice("q", 1, 0.5)
    usual, half = (np.mean(source(1).draw(law, scores).answers) for source in (SimulatedNoise, Half))
    assert 1 - usual == pytest.approx(math.exp(-1) / 2, rel=0.05)
    assert 1 - half == pytest.approx(math.exp(-2) / 2, rel=0.1)


@pytest.mark.parametrize(("mechanism", "method"), [("group-size", "M_H^dp"), ("count-of-counts", "naive")])
def test_a_wrong_l2_sensitivity_is_detected(mechanism, method, monkeypatch):
    """A quarter of the root of 2; `test_sensitivity_proof` notices any."""
    case = case_of(mechanism, method, "zCDP")
    assert not caught(case, 20, SimulatedNoise)
    monkeypatch.setattr(Allowed, "sensitivity", lambda *_: 2**0.5 / 4)
    assert caught(case, 150, SimulatedNoise)


class TooLow(SimulatedNoise):
    """A threshold for a far larger δ."""

    def _large(self, query, changes, least, counts):
        delta = miss_of(changes, changes.in_all / query.loss, least)
        low = threshold(changes, query.loss, 90 * delta)
        drawn = super()._large(query, changes, low, counts)
        return replace(drawn, spend=replace(drawn.spend, delta=delta))


def test_too_low_threshold_is_detected():
    """The threshold hides that a cell is present; this costs δ, while the noise is unchanged."""
    case = case_of("top-down", "SH", "only B-A")
    assert caught(case, 700, TooLow)
    assert not caught(case, 100, SimulatedNoise)


@pytest.mark.parametrize(
    ("mechanism", "method"),
    [("range-query", "Flat"), ("clustering", "Laplace"), ("top-down", "VanillaGauss")],
)
def test_one_noise_for_two_nodes_is_caught(mechanism, method):
    assert caught(case_of(mechanism, method), 200, Shared)


def test_one_seed_for_all_regions_is_detected():
    """As in the published numbers of Kuo et al. 2018: equal regions get equal results."""
    case = case_of("count-of-counts", "bottom-up")
    drawn = iter(range(10**6))

    def run(table, _):
        return case.run(table, OneSeed(next(drawn)))

    assert caught(replace(case, run=run), 200, SimulatedNoise)


def peeking(case, change):
    """The case, with a repair that uses the true table."""

    def run(table, noise):
        made = case.run(table, noise)
        return replace(made, counts=change(made.table.copy(), table))

    return replace(case, run=run)


def empty_where_empty(released, true):
    """Release empty bins as 0."""
    released.loc[true.counts == 0, "count"] = 0
    return released


def nearest_whole(released, true):
    """Replace counts close to the true ones by these."""
    near = (released["count"] - true.counts).abs() <= 1
    released.loc[near, "count"] = true.counts[near.to_numpy()]
    return released


def true_total(released, true):
    """Correct the total, which is secret here."""
    released.loc[released.level == 0, "count"] = int(true.counts.sum())
    return released


@pytest.mark.parametrize(
    ("case", "change", "runs"),
    [
        (case_of("clustering", "Laplace", "empty bin"), empty_where_empty, 300),
        (case_of("clustering", "Laplace", "empty bin"), nearest_whole, 200),
        (case_of("clustering", "GS", "empty bin"), empty_where_empty, 1500),
        (case_of("top-down", "InfTDA", "A-A is added"), true_total, 100),
    ],
    ids=["zeros", "near", "zeros of clusters", "total"],
)
def test_a_repair_that_uses_true_counts_is_detected(case, change, runs):
    assert caught(peeking(case, change), runs, SimulatedNoise)
    assert not caught(case, runs, SimulatedNoise)


# --- shipped mechanisms ----------------------------------------------------------------------------------


CONCENTRATED = "top-down", "tabulation", "group-size", "count-of-counts"


def test_every_mechanism_is_audited():
    assert {case.method for case in CASES} >= METHODS - {"Hc x Hg x Hc"}
    assert {case.mechanism for case in CASES} == set(MECHANISMS)
    assert {case.mechanism for case in SAMPLERS} == {"noise"}
    assert len({(case.name, case.change) for case in CASES}) == len(CASES)


def test_at_the_defaults_every_case_could_show_a_loss():
    every = (*CASES, *SAMPLERS)
    for case in every:
        runs, ledger = int(1000 / case.fewer), case.release(0, ZeroNoise()).ledger
        claim = Claim(ledger.epsilon, ledger.delta, ledger.rho if ledger.zcdp else None)
        assert detectable(claim, runs - runs // 2, 0.001 / len(every)) < math.inf, case


def test_no_bound_of_a_shipped_mechanism_exceeds_its_claim():
    cases = list({(case.mechanism, case.method): case for case in CASES}.values())
    found = list(audit(cases, 10, 0.999))
    assert not [line.case.name for line in found if line.over]
    assert {line.claim.delta for line in found} == {0.0, 0.01}
    assert {line.case.mechanism for line in found if line.rho is not None} == {*CONCENTRATED}
    again = list(audit(CASES[:2], 10, 0.999))
    assert [str(line.event) for line in again] == [str(line.event) for line in audit(CASES[:2], 10, 0.999)]
    assert all(line.shows_nothing for line in found)  # in so few runs


class Answered(SimulatedNoise):
    """Record the queries; return given answers, or true ones if none are given."""

    def __init__(self, answers=()):
        super().__init__(0)
        self.measured, self._answers = [], list(answers)

    def draw(self, query, true):
        drawn = super().draw(query, true)
        if query.noise == CHOICE:
            return replace(drawn, answers=np.zeros(len(true), np.int64))
        norm = 2 if query.noise == GAUSSIAN else 1
        self.measured.append((np.array(true), float(query.sensitivity), norm))
        answers = self._answers[len(self.measured) - 1] if self._answers else true.copy()
        return replace(drawn, answers=answers)


def test_the_two_tables_are_those_of_the_relation():
    """With the same answers, all queries on two neighbours differ by at most their sensitivity."""
    for case in CASES:
        if case.method == "SH":  # queries cells that one table may not have
            continue
        first = Answered()
        person = case.release(0, first).ledger.person
        rows = 1 if person is None else person.times  # sensitivities are for one row of a person, or for all
        second = Answered([counts for counts, _, _ in first.measured])
        case.release(1, second)
        assert len(first.measured) == len(second.measured) > 0
        for (a, sensitivity, norm_of), (b, _, _) in zip(first.measured, second.measured, strict=True):
            assert np.linalg.norm((a - b).ravel(), norm_of) <= rows * sensitivity * (1 + 1e-12), (
                case.name,
                case.change,
            )


def test_audit_with_exact_noise():
    """The audit draws OpenDP's noise for both tables; half of that noise would be detected."""
    case, drawn = case_of("clustering", "Laplace"), []

    def run(table, noise):
        drawn.append(type(noise))
        return case.run(table, noise)

    (line,) = audit([replace(case, run=run)], 400, 0.999, exactly)
    assert not line.over
    assert 1 < line.epsilon <= 2
    assert drawn.count(ExactNoise) >= 800


def test_the_bounds_are_the_same_however_the_runs_are_spread():
    cases = [case_of("clustering", "Laplace"), case_of("range-query", "H_2")]
    here = list(audit(cases, 120, 0.999))
    with using(workers=2):
        there = list(audit(cases, 120, 0.999))
    for one, other in zip(here, there, strict=True):
        assert (str(one.event), one.epsilon, one.runs) == (str(other.event), other.epsilon, other.runs)


@pytest.mark.parametrize(
    ("runs", "confidence", "words"), [(9, 0.9, "at least 10"), (10, 1.0, "between 0 and 1")]
)
def test_bad_parameters(runs, confidence, words):
    with pytest.raises(InputError, match=words):
        audit(CASES[:1], runs, confidence)


# --- the command -----------------------------------------------------------------------------------------


def test_the_command_prints_findings_and_what_they_prove():
    done = CliRunner().invoke(main, ["audit", "Laplace", "Flat", "--runs", "20"])
    assert done.exit_code == 0, done.output
    assert done.output.count("shows nothing") == 7  # 20 runs are too few
    assert "cases show nothing: no loss could exceed the claim in so few runs" in done.output
    assert "This does not prove privacy" in done.output


def test_the_command_with_exact_noise_and_with_workers():
    said = []
    for options in (["--exact"], ["--workers", "2"], []):
        done = CliRunner().invoke(main, ["audit", "Laplace", "--runs", "30", *options])
        assert done.exit_code == 0, done.output
        said.append(done.stdout)
    assert "exact noise" in said[0]
    assert "simulated noise" in said[1]
    assert said[1] == said[2]


def test_the_command_with_exact_noise_from_tables():
    pytest.importorskip("flint")
    done = CliRunner().invoke(main, ["audit", "Laplace", "--runs", "20", "--exact", "--noise", "tables"])
    assert done.exit_code == 0, done.output
    assert "(exact noise, from tables)" in done.stdout
    wrong = CliRunner().invoke(main, ["audit", "Laplace", "--noise", "tables"])
    assert wrong.exit_code == 2
    assert "add --exact" in wrong.output


def test_the_command_fails_where_a_bound_exceeds_the_claim(monkeypatch):
    broken = peeking(case_of("clustering", "Laplace", "empty bin"), empty_where_empty)
    monkeypatch.setattr(package, "cases", lambda: (broken,))
    monkeypatch.setattr(package, "SAMPLERS", ())
    done = CliRunner().invoke(main, ["audit", "--runs", "300"])
    assert done.exit_code == 1, done.output
    assert "MORE THAN CLAIMED" in done.output


def test_the_command_lists_the_known_mechanisms():
    done = CliRunner().invoke(main, ["audit", "Lapace"])
    assert done.exit_code == 2
    assert "unknown mechanism or method 'Lapace'; did you mean 'Laplace'" in done.output
    assert "'top-down'" in CliRunner().invoke(main, ["audit", "Quantum"]).output
