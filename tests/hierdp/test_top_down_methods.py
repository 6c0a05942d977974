"""Alternatives to InfTDA: each against its definition in plain Python, and common properties."""

import json
import math
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from doubles import Double, added, flows, hierarchy
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import solvers
from hierdp.api import release
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import METHODS, mechanism, refinements, top_down, true_table
from hierdp.mechanisms.top_down import post_processing as top_down_repairs
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import ExactNoise, SimulatedNoise, threshold
from hierdp.privacy.threshold import Changes
from hierdp.record.step import NotSolved
from hierdp.tables import Flows
from models import Chebyshev, FixedSum
from tests.marks import quick

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)
DELTA = 1e-6


def repair(method, name, noisy, totals, offsets, solver=None):
    """The answer of a method for one level."""
    chosen = METHODS[method]
    return chosen.solving(solver or SolverOptions())(name, chosen.model(noisy, totals, offsets))


any_nearest, rounded, two_phases = (partial(repair, name) for name in ("TDA_inf", "TDA_L2", "TDA"))
BY_LEVELS = [name for name, method in METHODS.items() if method.model is not None]


def small(counts=(40, 30, 7, 12)):
    axes = (hierarchy([[0, 0], [0, 0, 1]], "o"), hierarchy([[0, 0, 0]], "d"))
    cells = np.array([[0, 0], [0, 2], [1, 1], [2, 0]])
    return Flows(axes, ("from", "to"), cells, np.array(counts))


# --- properties of all methods ---------------------------------------------------------------------------


@pytest.mark.slow
@given(flows(), st.sampled_from(list(METHODS)), st.integers(0, 2**32 - 1), st.data())
@quiet
def test_releases_are_consistent(data, method, seed, draw):
    assume(method != "TDA_inf" or seed % 8 == 0)  # the solver is slow
    unit = trips_of_a_person(draw.draw(st.integers(1, 3)), draw.draw(st.booleans()), draw.draw(st.booleans()))
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    epsilon, noise = draw.draw(st.sampled_from([0.1, 3.0])), SimulatedNoise(seed)
    release = top_down(data, epsilon, DELTA, noise, method, unit, first=first)
    table, order = release.table, refinements(data, first)
    assert table["count"].dtype.kind == "i"
    assert table[table.level == 0].shape[0] == 1
    below = table[table.level > 0]
    assert (below["count"] != 0).all() if method == "VanillaGauss" else (below["count"] > 0).all()
    total = int(table["count"][table.level == 0].iloc[0])
    if unit.replaced and method in BY_LEVELS:
        assert total == data.total
    for level, axis in enumerate(order, start=1):
        sums = Counter()
        for row in table[table.level == level].to_dict("records"):
            key = [row[name] for name in data.axis_names]
            places = data.axes[axis]
            depth = places.levels.index(row[f"{data.axis_names[axis]}_level"])
            key[axis] = places.path(depth, list(places.names[depth]).index(key[axis]))[-2]
            sums[tuple(key)] += row["count"]
        above = table[table.level == level - 1]
        expected = {
            tuple(row[name] for name in data.axis_names): row["count"] for row in above.to_dict("records")
        }
        assert {k: v for k, v in sums.items() if v} == {k: v for k, v in expected.items() if v}
    assert all(bool(step.solution.certificate) for step in release.steps)
    assert len(release.steps) == (len(order) if method in BY_LEVELS else 0)
    assert not release.ledger.private
    if method != "SH":
        assert release.ledger.spent == pytest.approx(rho_of(release.ledger.epsilon, DELTA))


@pytest.mark.parametrize("method", [*BY_LEVELS, "VanillaGauss"])
@given(flows(), st.booleans())
@settings(deadline=None, max_examples=8)
def test_no_noise_gives_the_truth(method, data, bounded):
    release = top_down(data, 1.0, DELTA, Double(), method, trips_of_a_person(bounded=bounded))
    truth = true_table(data)
    counts = release.table[truth.columns]  # without standard errors
    assert sorted(counts.itertuples(index=False)) == sorted(truth.itertuples(index=False))


@pytest.mark.parametrize("method", METHODS)
def test_with_exact_noise(method):
    release = top_down(small(), 5.0, DELTA, None, method)
    assert release.ledger.private
    assert release.mechanism == method
    assert release.manifest()["all_proved_optimal"]


def test_the_table_of_mechanisms_has_each():
    assert [method.name for method in MECHANISMS["top-down"].methods] == list(METHODS)


# --- unbounded, and budgets by level ---------------------------------------------------------------------


def test_a_secret_total():
    noise = Double(lambda counts: counts + 5)
    release = top_down(small(), 1.0, DELTA, noise, unit=trips_of_a_person(bounded=False))
    assert release.table["count"][0] == 94
    assert (release.table.groupby("level")["count"].sum() == 94).all()
    assert [spend.rho for spend in noise.spends] == pytest.approx([rho_of(1.0, DELTA) / 4] * 4)
    assert noise.spends[0].query == "the total"
    assert "total" not in release.settings


def test_a_total_is_never_negative():
    noise = Double(lambda counts: counts - 1000 if counts.size == 1 else counts)
    release = top_down(small(), 1.0, DELTA, noise, unit=trips_of_a_person(bounded=False))
    assert release.table["count"].tolist() == [0]


def test_shares():
    noise = Double()
    release = top_down(small(), 1.0, DELTA, noise, shares=[1, 2, 5])
    spent = [spend.rho / rho_of(1.0, DELTA) for spend in noise.spends]
    assert spent == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert release.settings["shares"] == [1.0, 2.0, 5.0]
    noise = Double()
    top_down(small(), 1.0, DELTA, noise, unit=trips_of_a_person(bounded=False), shares=[4, 2, 1, 1])
    assert [s.rho / rho_of(1.0, DELTA) for s in noise.spends] == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 8])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"method": "TDA_3"},
            "no method 'TDA_3'; did you mean 'TDA' or 'TDA_L2' or 'TDA_inf'? There are 'InfTDA', ",
        ),
        ({"method": "InfTDA", "solver": SolverOptions("highs")}, "InfTDA takes no backend"),
        (
            {"method": "TDA", "solver": SolverOptions(window=3)},
            "TDA takes no window; it takes backend, time_limit",
        ),
        ({"method": "TDA_L2", "solver": SolverOptions("clarabell")}, "Did you mean clarabel?"),
        ({"method": "TDA_inf", "solver": SolverOptions(time_limit=-1.0)}, "time_limit is -1.0"),
        ({"method": "SH", "shares": [1]}, "SH takes no shares"),
        ({"method": "VanillaGauss", "shares": [1, 1, 1]}, "VanillaGauss takes no shares"),
        ({"shares": [1, 1]}, "2 shares for 3 levels"),
        ({"shares": [1, 1, 1], "unit": trips_of_a_person(bounded=False)}, "3 shares for 4 levels"),
        ({"shares": [1, 0, 1]}, "share 1 is 0.0"),
        ({"first": "too"}, "no axis 'too'"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"delta": 2}, "delta is 2"),
    ],
)
def test_bad_options_are_refused_before_any_noise(given, said):
    noise = Double()
    with pytest.raises(InputError) as refused:
        top_down(small(), **{"epsilon": 1.0, "delta": DELTA, "noise": noise, **given})
    assert said in str(refused.value)
    assert not noise.spends


# --- least squares: the paper's simple one, and the two phases ---------------------------------------------


def nearest_fractions(y, c):
    """max(0, y + λ) with the total c, by trying every number of positive entries."""
    for k in range(len(y), 0, -1):
        largest = sorted(y, reverse=True)[:k]
        shift = Fraction(c - sum(largest), k)
        if largest[-1] + shift > 0:
            return [max(Fraction(0), v + shift) for v in y]
    return [Fraction(0)] * len(y)


def simple(y, c):
    """Rounded (halves up), then repaired entry by entry as by the authors."""
    x = [math.floor(v + Fraction(1, 2)) for v in nearest_fractions(y, c)]
    short = c - sum(x)
    for i in sorted(range(len(y)), key=lambda i: (-x[i], -y[i]))[: max(short, 0)]:
        x[i] += 1
    for i in sorted((i for i in range(len(y)) if x[i] > 0), key=lambda i: (x[i], y[i]))[: max(-short, 0)]:
        x[i] -= 1
    return x


def controlled(y, c):
    """The largest fractional parts go up."""
    v = nearest_fractions(y, c)
    x = [math.floor(a) for a in v]
    for i in sorted(range(len(y)), key=lambda i: x[i] - v[i])[: c - sum(x)]:
        x[i] += 1
    return x


segments = st.lists(
    st.tuples(st.lists(st.integers(-9, 12), min_size=1, max_size=6), st.integers(0, 25)), max_size=6
)


def level(parts):
    noisy = np.array([v for y, _ in parts for v in y], dtype=np.int64)
    totals = np.array([c for _, c in parts], dtype=np.int64)
    return noisy, totals, np.cumsum([0, *(len(y) for y, _ in parts)])


@pytest.mark.parametrize(("repair", "plain"), quick([(rounded, simple), (two_phases, controlled)]))
@given(segments)
@settings(deadline=None, max_examples=40)
def test_least_squares_rounded(repair, plain, parts):
    step = repair("q", *level(parts), SolverOptions())
    assert step.solution.x.tolist() == [v for y, c in parts for v in plain(y, c)]
    assert isinstance(step.model, FixedSum)
    assert (step.solution.status, step.model.p) == ("optimal", 2)


@pytest.mark.parametrize("repair", [rounded, two_phases])
def test_large_counts(repair):
    noisy, totals, offsets = np.array([2**55, -3, 7, 2**40]), np.array([2**55 + 1, 5]), np.array([0, 2, 4])
    step = repair("q", noisy, totals, offsets, SolverOptions())
    assert step.solution.certificate.optimal
    assert step.solution.x.tolist() == [2**55 + 1, 0, 0, 5]


@pytest.mark.parametrize("backend", quick(["clarabel", "highs", "osqp"], first=2))
@pytest.mark.parametrize("repair", [rounded, two_phases])
def test_least_squares_by_a_solver(backend, repair, monkeypatch):
    monkeypatch.setattr(top_down_repairs, "MOST_REAL", 7)
    rng = np.random.default_rng(1)
    parts = [(rng.integers(-9, 30, n).tolist(), int(rng.integers(1, 60))) for n in (1, 2, 3, 9, 4, 5, 2)]
    step = repair("q", *level(parts), SolverOptions(backend))
    assert step.solution.backend == backend
    assert step.solution.certificate.optimal
    assert step.solution.objective == repair("q", *level(parts), SolverOptions()).solution.objective


@pytest.mark.parametrize("repair", [rounded, two_phases])
def test_a_solvers_last_digits_do_not_matter(repair, monkeypatch):
    """Halves that are slightly too large or too small still count as halves."""
    noisy, totals, offsets = np.array([3, 3, 7, 8]), np.array([11]), np.array([0, 4])
    exact = repair("q", noisy, totals, offsets, SolverOptions()).solution.x.tolist()
    for signs in np.ndindex(2, 2, 2, 2):

        class Near:
            status, message, backend = "optimal", "", "clarabel"
            x = np.array([0.5, 0.5, 4.5, 5.5]) + (np.array(signs) - 0.5) * 1e-7

        monkeypatch.setattr(solvers, "solve", lambda *_, near=Near, **__: near())
        assert repair("q", noisy, totals, offsets, SolverOptions("clarabel")).solution.x.tolist() == exact


def test_floats_too_far_off_are_not_released(monkeypatch):
    class Off:
        status, message, backend = "optimal", "", "clarabel"
        x = np.array([9.5, 4.0])

    monkeypatch.setattr(solvers, "solve", lambda *_, **__: Off())
    with pytest.raises(NotSolved, match="q: clarabel: numerical; not feasible: total"):
        two_phases("q", np.array([3, 4]), np.array([7]), np.array([0, 2]), SolverOptions("clarabel"))


# --- the nearest by a solver -------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 6, 1000])
@pytest.mark.parametrize("backend", [None, "cp-sat"])
def test_nearest_by_a_solver(most, backend, monkeypatch):
    monkeypatch.setattr(top_down_repairs, "MOST_WHOLE", most)
    rng = np.random.default_rng(2)
    parts = [(rng.integers(-9, 30, n).tolist(), int(rng.integers(1, 60))) for n in (1, 2, 3, 9, 4, 5, 2)]
    noisy, totals, offsets = level(parts)
    step = any_nearest("q", noisy, totals, offsets, SolverOptions(backend))
    model = Chebyshev(noisy, totals, offsets)
    assert step.solution.certificate.optimal
    assert model.violations(step.solution.x) == []
    assert step.solution.backend == (backend or "highs")
    assert step.solution.solve_seconds > 0


def test_a_solver_that_does_not_finish_is_reported():
    rng = np.random.default_rng(3)
    data = Flows((hierarchy([[0] * 900], "o"),), ("from",), np.arange(900)[:, None], rng.integers(1, 99, 900))
    with pytest.raises(NotSolved, match=r"from olevel1: .*time limit (of|is) 1e-06 s"):
        top_down(data, 0.01, DELTA, SimulatedNoise(0), "TDA_inf", solver=SolverOptions(time_limit=1e-6))


# --- only the finest counts --------------------------------------------------------------------------------


@given(flows(), st.integers(0, 2**32 - 1))
@quiet
def test_vanilla_gauss_has_noise_on_every_possible_cell(data, seed):
    noise = added(seed, 3)
    table = top_down(data, 1.0, DELTA, noise, "VanillaGauss").table
    shape = [axis.names[-1].size for axis in data.axes]
    assert [true.size for true in noise.true] == [math.prod(shape)]
    assert noise.true[0].sum() == data.total
    expected = {}
    for at, count in zip(np.ndindex(*shape), noise.noisy[0].tolist(), strict=True):
        if count:
            expected[tuple(axis.names[-1][i] for axis, i in zip(data.axes, at, strict=True))] = count
    finest = table[(table.level == table.level.max()) & (table.level > 0)]
    found = {tuple(row[name] for name in data.axis_names): row["count"] for row in finest.to_dict("records")}
    assert found == expected
    assert table["count"][0] == sum(expected.values())


def test_vanilla_gauss_refuses_too_many_cells(monkeypatch):
    wide = hierarchy([[0] * 5000], "w")
    data = Flows((wide, wide), ("a", "b"), np.zeros((1, 2), np.int64), np.ones(1, np.int64))
    noise = Double()
    with pytest.raises(InputError, match=r"here 5000 × 5000 = 25,000,000; at most 20,000,000 are allowed"):
        top_down(data, 1.0, DELTA, noise, "VanillaGauss")
    assert not noise.spends
    monkeypatch.setattr(mechanism, "MOST_CELLS", 9)
    top_down(small(), 1.0, DELTA, Double(), "InfTDA")
    assert top_down(small(), 1.0, DELTA, Double(), "VanillaGauss").table["count"][0] == 89


def test_stability_histogram_by_hand():
    least = threshold(Changes(2, 2, 1, 1), 1.0, DELTA)
    assert least == 1 + math.ceil(2 * math.log(1 / (1 + math.exp(-0.5)) / DELTA))
    data = small((1, least + 200, 2, least + 300))
    release = top_down(data, 1.0, DELTA, ExactNoise(), "SH")
    finest = release.table[release.table.level == 3]
    assert sorted(zip(finest["from"], finest["to"], strict=True)) == [
        ("o2-000", "d1-002"),
        ("o2-002", "d1-000"),
    ]
    assert release.table["count"][0] == finest["count"].sum()
    (spend,) = release.ledger.spends
    assert 0.999 < spend.epsilon <= 1.0
    assert 0 < spend.delta <= DELTA
    assert f"under {least} dropped" in spend.noise
    assert not release.steps
    stated = release.manifest()["budget"]
    assert stated["composition"] == "(ε, δ)-differential privacy"
    assert (stated["spent"], stated["spent_delta"]) == (spend.epsilon, spend.delta)


def test_stability_histogram_makes_nothing_up():
    data = small((500, 600, 700, 800))
    for seed in range(20):
        table = top_down(data, 1.0, DELTA, SimulatedNoise(seed), "SH").table
        finest = table[table.level == 3]
        truth = true_table(data)
        assert set(zip(finest["from"], finest["to"], strict=True)) <= set(
            zip(truth["from"], truth["to"], strict=True)
        )
    empty = Flows(data.axes, data.axis_names, data.cells[:0], data.counts[:0])
    assert top_down(empty, 1.0, DELTA, None, "SH").table["count"].tolist() == [0]


def test_a_report_of_a_release_without_steps(tmp_path):
    for method in ("SH", "VanillaGauss"):
        made = top_down(small(), 5.0, DELTA, None, method)
        page = (made.write(tmp_path / method) / "report.html").read_text()
        assert "No problem had to be solved" in page
        assert ("zCDP" in page) == (method == "VanillaGauss")


# --- by Python and the command line ----------------------------------------------------------------


ROWS = pd.DataFrame(
    {"os": list("AABB"), "oc": ["a1", "a2", "b1", "b2"], "d": list("xyxy"), "n": [40, 30, 7, 12]}
)
COLUMNS = {"axes": {"origin": ["os", "oc"], "destination": ["d"]}, "count": "n", "regions_from_data": True}


def test_through_release():
    options = {
        "method": "TDA_L2",
        "backend": "clarabel",
        "trips": 2,
        "bounded": False,
        "shares": [1, 1, 1, 5],
    }
    made = release(
        ROWS,
        "top-down",
        epsilon=3,
        delta=DELTA,
        noise=SimulatedNoise(1),
        time_limit=600,
        **options,
        **COLUMNS,
    )
    assert made.mechanism == "TDA_L2"
    assert made.steps[0].solution.backend == "clarabel"
    assert [spend.sensitivity for spend in made.ledger.spends] == [2.0] * 4  # trips may repeat by default
    assert made.settings["shares"] == [1.0, 1.0, 1.0, 5.0]
    assert (made.settings["trips"], made.settings["distinct"]) == (2, False)
    stated = {"trips": 2, "distinct": True, **COLUMNS}
    apart = release(ROWS, "top-down", epsilon=3, delta=DELTA, noise=SimulatedNoise(1), **stated)
    assert apart.ledger.spends[-1].sensitivity == 2.0  # √(2m), not √(2m²)
    for wrong in ({"trips": 2}, {"distinct": True}, {"bounded": False}):
        with pytest.raises(InputError, match=f"group-size takes no {next(iter(wrong))}"):
            release(ROWS, "group-size", epsilon=1, levels=["os"], group=["oc"], max_size=3, **wrong)
    with pytest.raises(InputError, match="top-down takes no window"):
        release("no such file", "top-down", epsilon=1, delta=DELTA, method="TDA", window=3, **COLUMNS)


@pytest.mark.parametrize("method", METHODS)
def test_by_the_command_line(method, tmp_path):
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    line = f"release top-down {tmp_path / 't.csv'} --axis origin=os,oc --axis destination=d --count n "
    line += f"--regions-from-data --epsilon 5 --delta 1e-6 --method {method} --out {tmp_path / 'out'} "
    line += "--trips 3 --distinct --unbounded"
    if method in BY_LEVELS:
        line += " --share 1 --share 1 --share 1 --share 2"
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["mechanism"] == method
    assert manifest["budget"]["neighbouring_relation"] == trips_of_a_person(3, True, False).neighbours
    assert ("shares" in manifest["settings"]) == (method in BY_LEVELS)
    assert ("ε =" if method == "SH" else "ρ =") in done.output


def test_batches_keep_siblings_together_and_fill_up():
    noisy, totals = np.arange(10), np.arange(5)

    def cells(most):
        found = list(top_down_repairs._batches(noisy, totals, np.array([0, 2, 4, 4, 9, 10]), most))
        for part, _, offsets in found:
            assert (offsets[0], offsets[-1]) == (0, part.size)
        return [(nodes.tolist(), part[0], part[-1]) for part, nodes, _ in found]

    assert cells(4) == [([0, 1, 2], 0, 3), ([3], 4, 8), ([4], 9, 9)]
    assert cells(6) == [([0, 1, 2], 0, 3), ([3, 4], 4, 9)]
    assert cells(100) == [([0, 1, 2, 3, 4], 0, 9)]
    assert list(top_down_repairs._batches(noisy[:0], totals[:0], np.array([0]), 5)) == []
