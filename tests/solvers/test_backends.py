"""Backends agree with the fast path, or give a reason; `test_contract` has every kind of program."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from models import Chebyshev, CostTable, HierarchyQIP, Isotonic, Program, Tree
from models.programs.terms import Block, Rows, Term, rows_of
from solvers import backends, solve
from solvers.backends.table import Backend, find
from solvers.solution import Effort
from solvers.testing import MODELS, allowed
from tests.marks import quick

NAMES = [backend.name for backend in backends() if backend.name != "fast"]
FIRST = {backend.module: backend.name for backend in reversed(backends())}.values()
"""The first backend of each module. Each backend starts a process and loads its libraries, for seconds."""


def named(name: str) -> Backend:
    backend = next(b for b in backends() if b.name == name)
    if not backend.installed:
        pytest.skip(f"not installed: {backend.install}")
    return backend


@pytest.mark.parametrize("kind", quick([Isotonic, Chebyshev, HierarchyQIP]))
@pytest.mark.parametrize("name", quick(NAMES, slow=lambda name: name not in FIRST))
def test_random_instances(name, kind):
    backend = named(name)
    for seed in range(4):
        model = kind.random(np.random.default_rng(seed), 15)
        fast, found = solve(model), solve(model, name, time_limit=300, threads=1)
        assert found.status in allowed(backend, model.program()), (model, found)
        if found.status == "optimal":
            close = pytest.approx(float(fast.objective), rel=1e-6, abs=1e-6)
            assert found.objective == (fast.objective if getattr(model, "integer", True) else close)


@pytest.mark.parametrize("name", ["highs", "pyomo:highs", "cvxpy:highs", "qpsolvers:highs"])
def test_highs_runs_with_another_number_of_threads_in_the_same_process(name):
    """HiGHS refuses to, until its scheduler has been reset."""
    if not find_or_none(name):
        pytest.skip(f"not installed: {name}")
    model = Isotonic([3, 1, 4, 1, 5, 9, 2, 6])
    for threads in (2, 1, None, 1, 3):
        found = solve(model, name, threads=threads)
        assert found.status == "optimal", (threads, found)


@pytest.mark.parametrize("name", ["min-cost-flow", "glop"])
def test_network_relaxation_is_integral(name):
    """If the rows are a network, the relaxation by lines is integral, so an LP proves the integer optimum."""
    for seed in range(6):
        model = HierarchyQIP.random(np.random.default_rng(seed), 60)
        found = solve(model, name)
        assert found.status == "optimal"
        assert found.objective == solve(model).objective
        assert found.bound == pytest.approx(float(found.objective))


def test_far_from_the_first_lines():
    """Lines near the noisy counts are stated first; here the optimum is far from all of them."""
    model = HierarchyQIP(Tree([[0, 0]]), [[10**6], [10**6], [10**6 + 1001]], total=10**6)
    for name in ("highs", "cp-sat", "glop", "scip", "glpk_mi"):
        if find_or_none(name):
            found = solve(model, name, time_limit=300, threads=1)
            if name in ("glop", "scip") and found.status in ("numerical", "feasible"):
                assert found.message  # squares of millions exceed their tolerances, which they report
                continue
            assert (found.status, found.objective) == ("optimal", solve(model).objective), name


@pytest.mark.parametrize(
    "name", quick(["highs", "cp-sat", "scip", "gurobi", "ortools:scip", "cvxpy:highs"], first=2)
)
def test_optimum_is_exact_to_the_last_unit(name):
    """The optimal cover of 16,322 is found soon; a relative gap of a thousandth would accept many others."""
    rng = np.random.default_rng(4)
    weight = rng.integers(20, 100, (3, 25))
    cost = weight.sum(axis=0) * 10 + rng.integers(0, 40, 25)
    entries = (*np.nonzero(weight), weight[np.nonzero(weight)])
    rows = rows_of("cover", weight.shape, entries, weight.sum(axis=1) // 3, np.inf)
    cover = Program("p", [Block("v", (25,), 0, 1, True)], [rows], [Term("linear", np.arange(25), cost)])
    if not find_or_none(name):
        pytest.skip(f"not installed: {name}")
    found = solve(cover, name, threads=1)
    assert (found.status, found.objective) == ("optimal", 16_322)


@pytest.mark.slow
def test_first_order_methods_get_tighter_tolerances_than_by_default():
    model = Isotonic(np.random.default_rng(1).normal(0, 50, 160)[120:], p=1)
    for name in ("pdlp", "osqp", "scs"):
        assert solve(model, name).objective == pytest.approx(solve(model).objective, rel=1e-8), name


@pytest.mark.slow
def test_weights_and_mixed_programs_through_cvxpy():
    weighted = Isotonic([3.0, 1.0, 4.0, 2.0], weights=[1, 9, 2, 5])
    for name in ("clarabel", "osqp", "scs", "cvxpy:highs"):
        assert solve(weighted, name).objective == pytest.approx(solve(weighted).objective, rel=1e-6), name
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [1, 1]), 2.5, 2.5)
    blocks = [Block("a", (1,), 0, 5, True), Block("b", (1,), 0, 5)]
    mixed = Program("p", blocks, [rows], [Term("linear", np.arange(2), np.array([1, 3]))])
    for name in ("cvxpy:highs", "glpk_mi", "highs"):
        if find_or_none(name):
            assert solve(mixed, name).objective == pytest.approx(2 + 3 * 0.5), name


@pytest.mark.parametrize("name", quick(["glop", "pdlp", "ortools:scip"], first=2))
def test_matrices_with_twins_and_zeros(name):
    entries = np.array([0.5, 2, 0, 0.5]), np.array([0, 1, 2, 0]), np.array([0, 4])
    rows = Rows("r", sp.csr_matrix(entries, shape=(1, 3)), np.array([6]), np.array([np.inf]))
    cost = Term("linear", np.arange(3), np.array([1, 3, -1]))
    program = Program("p", [Block("v", (3,), 0, 4)], [rows], [cost])
    assert solve(program, name).x == pytest.approx([4, 1, 4])


def test_rows_without_sides_say_nothing():
    entries = [0, 0, 1], [0, 1, 0], [1, 1, 1]
    rows = rows_of("r", (2, 2), entries, [4, -np.inf], [4, np.inf])
    program = Program("p", [Block("v", (2,), 0, 9, True)], [rows], [Term("linear", np.arange(2), [1, 3])])
    for name in ("highs", "pyomo:highs"):
        assert solve(program, name).x.tolist() == [4, 0], name


@pytest.mark.parametrize("name", quick(["highs", "pyomo:highs", "cvxpy:highs"], first=2))
def test_highs_does_not_regularize(name):
    """By default, HiGHS adds 10⁻⁷·x², which changes answers in the millions by tenths."""
    found = solve(Isotonic([1e6, 2e6, 3e6]), name)
    assert found.status in ("optimal", "feasible")
    assert found.objective < 1e-6


def test_lines_found_over_the_reals_go_to_the_whole_problem():
    """The optimum is far from the first lines, and the real optimum is not whole."""
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [2, 3]), 2002, 2002)
    squares = Term("quadratic", np.arange(2), np.array([2, 1]), np.array([2, 1]))
    program = Program("p", [Block("v", (2,), 0, 1001, True)], [rows], [squares])
    best = min(2 * (a - 2) ** 2 + ((2002 - 2 * a) // 3 - 1) ** 2 for a in range(2, 1002, 3))
    for name in ("highs", "pyomo:highs"):
        found = solve(program, name)
        assert (name, found.status, found.objective) == (name, "optimal", best)


def test_lines_over_the_reals_bound_better_than_squares():
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [2, 3]), 7, 7)
    squares = Term("quadratic", np.arange(2), 1, np.array([1, 1]))
    program = Program("p", [Block("v", (2,), 0, 9, True)], [rows], [squares])
    lines, smooth, best = (solve(program, name) for name in ("glop", "pdlp", "highs"))
    assert (lines.status, smooth.status, best.status) == ("relaxed", "relaxed", "optimal")
    assert smooth.bound + 1e-6 < lines.bound <= best.objective


@pytest.mark.slow
def test_whole_numbers_may_cost_fractions():
    model = Isotonic([7.25, 3.5, 9.5, -2, 5], weights=[1, 0.5, 2, 1, 0.25], integer=True)
    for name in ("highs", "ortools:scip", "scip", "glpk_mi"):
        if find_or_none(name):
            found = solve(model, name)
            assert (name, found.status) == (name, "optimal")
            assert found.objective == pytest.approx(solve(model).objective)
    # The lines' real optimum is not whole here; with costs rounded to integers, [2, 3] would be cheaper.
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [2, 3]), 13, 13)
    squares = Term("quadratic", np.arange(2), np.array([0.05, 0.2]), np.array([2, 1.1]))
    program = Program("p", [Block("v", (2,), 0, 9, True)], [rows], [squares])
    for name in ("highs", "pyomo:highs", "ortools:scip"):
        assert solve(program, name).x.tolist() == [5, 1], name


def find_or_none(name):
    try:
        return find(name)
    except ValueError:
        return None


# Minimum cost flow: programs that fit, programs that do not, and the reasons given.


def flow(rows, lower, upper, costs, blocks=None, kind="linear", center=0):
    matrix = np.atleast_2d(np.array(rows, float))
    size = matrix.shape[1]
    entries = (*np.nonzero(matrix), matrix[np.nonzero(matrix)])
    block = blocks or Block("v", (size,), 0, 9, True)
    terms = [Term(kind, np.arange(size), np.array(costs), center)]
    program = Program("p", [block], [rows_of("r", matrix.shape, entries, lower, upper)], terms)
    return solve(program, "min-cost-flow"), solve(program, "highs")


NETWORKS = {
    "signs to change": ([[1, 1, 0], [0, 1, 1]], [4, 3], [4, 3], [2, 5, 1]),
    "ranges": ([[1, -1, 0], [0, 1, 1]], [-2, 3], [2, 8], [-2, 5, -1]),
    "one side": ([[1, -1, 0], [0, 1, 1]], [-np.inf, 3], [2, np.inf], [-2, 5, 1]),
    "no side": ([[1, -1, 0], [0, 1, 1]], [-np.inf, 3], [np.inf, 3], [-2, 5, 1]),
    "in no row": ([[1, 1, 0]], [4], [4], [2, 5, -1]),
    "even cycle": (
        [[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], [3, 4, 5, 4], [3, 4, 5, 4], [1, 2, 3, 4]
    ),
    "without an answer": ([[1, 1, 0]], [40], [40], [2, 5, -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    found, other = flow(*NETWORKS[name])
    assert found.status == other.status
    assert found.objective == other.objective
    assert name != "without an answer" or found.status == "infeasible"


@pytest.mark.parametrize("kind", ["absolute", "quadratic"])
@pytest.mark.parametrize("seed", range(8))
def test_random_networks_of_convex_costs(kind, seed):
    rng = np.random.default_rng(seed)
    matrix = np.zeros((3, 8))
    for column in range(7):
        one, two = rng.permutation(4)[:2]
        if one < 3:
            matrix[one, column] = 1
        if two < 3:
            matrix[two, column] = -1
    matrix *= rng.choice([-1, 1], (3, 1))
    low = rng.integers(-4, 5, 3)
    arguments = (matrix, low, low + rng.integers(0, 3, 3), rng.integers(0, 4, 8))
    found, other = flow(*arguments, Block("v", (8,), -5, 9, True), kind, rng.integers(-9, 12, 8))
    assert (found.status, found.objective) == (other.status, other.objective)


def test_continuous_and_unbounded_variables_flow_too():
    free = Block("v", (3,), -np.inf, np.inf)
    found, other = flow([[1, -1, 0], [0, 1, -1]], 2, 5, [1, 1, 2], free, "absolute", np.array([7, -3, 50]))
    assert found.status == other.status == "optimal"
    assert found.objective == other.objective == found.bound


def twice_in_one_term():
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [1, 1]), 3, 3)
    program = Program("p", [Block("v", (2,), 0, 9, True)], [rows], [Term("linear", np.array([0, 0]))])
    return solve(program, "min-cost-flow"), None


def test_whole_numbers_between_fractional_bounds_flow():
    found, other = flow([[1, 1]], 3, 3, [1, 5], Block("v", (2,), 0.5, 8.5, True))
    assert found.status == other.status == "optimal"
    assert found.objective == other.objective == 7


REFUSED = {
    "neither 1 nor -1": lambda: flow([[2, 1]], 3, 3, [1, 1]),
    "more than two rows": lambda: flow(np.ones((3, 1)), 0, 5, [1]),
    "no signs of the rows": lambda: flow([[1, 0, 1], [1, 1, 0], [0, 1, 1]], 3, 4, [1, 1, 1]),
    "row of halves: a bound is not whole": lambda: flow([[1, 1]], 2.5, 3, [1, 1]),
    "a cost is not whole": lambda: flow([[1, 1]], 2, 3, [0.5, 1]),
    "half a unit: a cost is not whole": lambda: flow([[1, 1]], 2, 3, [0.5, 1], Block("v", (2,), 0, 8)),
    "a center is not whole": lambda: flow([[1, 1]], 2, 3, [1, 1], kind="absolute", center=0.5),
    "falls without end": lambda: flow([[1, 1]], 2, np.inf, [-1, 1], Block("v", (2,), 0, np.inf, True)),
    "a bound is beyond 2**53": lambda: flow([[1, 1]], 2**54, 2**54, [1, 1], Block("v", (2,), 0, 2**54, True)),
    "one term has a variable twice": twice_in_one_term,
    "need an arc each": lambda: flow([[1, 1]], 2, 9, [1, 1], Block("v", (2,), 0, 1e7, True), "quadratic"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_non_network_programs_are_refused_with_a_reason(words):
    found, _ = REFUSED[words]()
    assert found.status == "unsupported"
    assert words.split(": ")[-1] in found.message


def test_cp_sat_takes_any_table_as_it_is():
    model = MODELS["bumpy tables"][0]
    program = model.program()
    best = min(
        int(sum(t[i] for t, i in zip(program.objective[0].tables, at, strict=True)))
        for at in np.ndindex(5, 4, 4)
        if sum(at) == 6
    )
    assert solve(model, "cp-sat").objective == best == solve(model, "highs").objective
    halves = CostTable([[0.5, 1.0], [0.25, 2.0]], total=1)
    assert solve(halves, "cp-sat").status == "unsupported"


def test_cp_sat_states_convex_tables_by_their_slopes():
    rng = np.random.default_rng(3)
    for _ in range(12):
        bumpy, convex = rng.integers(-9, 9, 4), np.cumsum(np.sort(rng.integers(-3, 3, 5)))
        far = rng.choice([0, 2**51])
        tables, start = [bumpy, convex + far, convex - far, [7]], rng.integers(-3, 3, 4)
        spans = [range(k, k + len(table)) for k, table in zip(start.tolist(), tables, strict=True)]
        for total in (int(start.sum()), int(start.sum()) + 5, sum(span[-1] for span in spans)):
            model = CostTable(tables, total, start)
            best = min(model.objective(x) for x in itertools.product(*spans) if sum(x) == total)
            found = solve(model, "cp-sat", threads=1)
            assert (found.status, found.objective, found.bound) == ("optimal", best, best)
    steep = CostTable([[2**58 + 1, 2**57, 5], [3, 3, 4]], 2)
    assert solve(steep, "cp-sat", threads=1).status == "optimal"


def test_cp_sat_rounds_bounds_inwards_and_refuses_what_may_overflow():
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [1, 1]), 1.5, 3.5)
    for cost, best in ((1, 2), (-1, -3)):
        program = Program(
            "p", [Block("v", (2,), -0.5, 2.5, True)], [rows], [Term("linear", np.arange(2), cost)]
        )
        assert solve(program, "cp-sat").objective == best
    nothing = Program("p", [Block("v", (2,), 0.2, 0.8, True)], [], [])
    assert solve(nothing, "cp-sat").status == "infeasible"
    found = solve(Isotonic([2**40, 0], p=1, weights=[2**30, 1], integer=True), "cp-sat")
    assert (found.status, found.message) == ("unsupported", "the objective may pass CP-SAT's 64 bits")


@pytest.mark.parametrize("sizes", [(1, 2, 7, 3, 30, 5), (2,) * 40, (0, 3, 0, 4, 4, 1)])
def test_highs_solves_many_families_as_linear_programs(sizes):
    rng = np.random.default_rng(len(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for high in (5, 1_000, 10**6):
        noisy = rng.integers(-high, high, offsets[-1])
        model = Chebyshev(noisy, rng.integers(0, 3 * high, len(sizes)) * (np.array(sizes) > 0), offsets)
        found = solve(model, "highs")
        assert (found.status, found.objective) == ("optimal", int(model.least_distance().sum()))
        assert found.bound == pytest.approx(found.objective, rel=1e-9)


def several(side: int, entries: list[list[int]], low: float, high: float) -> Program:
    """Four problems side by side: minimize d, `entries` over (d, x), x of zeros and ones."""
    one = sp.csr_matrix(np.array(entries, float))
    count = 4 * len(entries)
    rows = Rows("r", sp.block_diag([one] * 4, format="csr"), np.full(count, low), np.full(count, high))
    upper = np.tile([9.0, *([1.0] * side)], 4)
    return Program(
        "several",
        [Block("v", upper.shape, 0, upper, True)],
        [rows],
        [Term("linear", np.arange(4) * (side + 1))],
    )


def test_highs_solves_an_integer_program_where_rounded_bounds_leave_fractions():
    pairs = [[0, *(int(k in pair) for k in range(5))] for pair in itertools.combinations(range(5), 2)]
    clique = several(5, [[-1, *([-1] * 5)], *pairs], -np.inf, 1)
    upper = clique.rows[0].upper.copy()
    upper[:: len(pairs) + 1] = -3  # d + Σ x ≥ 3, where at most one x is 1: over the reals, d ≥ 1/2
    clique = replace(clique, rows=[replace(clique.rows[0], upper=upper)])
    found = solve(clique, "highs")
    assert (found.status, found.objective, found.bound) == ("optimal", 8, 8)
    halves = several(1, [[0, 2]], 1, 1)
    assert solve(halves, "highs").status == "infeasible"
    ring = rows_of("r", (5, 5), (np.tile(np.arange(5), 2), [0, 1, 2, 3, 4, 1, 2, 3, 4, 0], np.ones(10)), 1, 2)
    apart = Program("apart", [Block("v", (5,), 0, 1, True)], [], [Term("linear", np.arange(5))])
    # One problem, over the reals with halves: to round each of them up is too much.
    assert solve(replace(apart, rows=[ring]), "highs").objective == 3
    opened = find("highs").open(apart, Effort())
    assert opened.run(None).bound == 0
    opened.add_rows(ring)
    assert opened.run(None).bound == 3


def test_programs_of_both_kinds_of_squares_are_refused_by_lines_only():
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], [1.0, 1.0]), 2.5, 2.5)
    blocks = [Block("a", (1,), 0, 5, True), Block("b", (1,), 0, 5)]
    program = Program("p", blocks, [rows], [Term("quadratic", np.arange(2))])
    for name in ("highs", "scip", "gurobi"):
        if find_or_none(name):
            assert solve(program, name).status == "unsupported", name
    assert solve(program, "clarabel").status == "relaxed"


@pytest.mark.slow
def test_relaxed_instances_agree_over_the_reals():
    model = replace(MODELS["tree"][0], integer=False)
    best = float(solve(model).objective)
    for name in NAMES:
        found = solve(model, name) if find_or_none(name) else None
        assert found is None or found.status == "unsupported" or found.objective == pytest.approx(best)
