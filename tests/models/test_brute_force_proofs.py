"""All answers of ten thousand tiny problems of each kind: every best one is proved, and no other."""

import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, islice, pairwise, permutations, product

import numpy as np
import pytest

from models import Program, adapters
from models.arithmetic import exact
from models.certificate import FLOAT_TOLERANCE
from models.claim import Claim, digest
from models.testing import MOST_ANSWERS, whole_answers
from solvers import fast, prove
from tests.marks import quick
from tests.models.families import CONTRACTS, joint_answers, runs, workload_rounding

MANY = int(os.environ.get("HIERDP_CASES", "110"))
"""Instances of each problem in the slow tests; ``python -m benchmarks brute_force`` judges ten thousand."""

BEST = 3
"""How many best answers are judged, of each problem."""

OTHERS = 3
"""How many answers that are not best are judged, of each problem; the best of them is among them."""


def spread(part):
    """The sum of squared distances to the mean."""
    mean = Fraction(int(sum(part)), len(part))
    return sum((int(value) - mean) ** 2 for value in part)


def cuts(n, most):
    return (starts for count in range(most + 1) for starts in combinations(range(1, n), count))


def parts(y, starts):
    return [y[a:b] for a, b in pairwise([0, *starts, len(y)])]


def clusters(rng):
    """One-dimensional k-means; fewer labels than k only if no more values differ."""
    y = np.sort(rng.integers(-3, 8, int(rng.integers(1, 7))))
    k = int(rng.integers(1, len(y) + 1))
    for starts in combinations(range(1, len(y)), k - 1):
        labels = np.isin(np.arange(len(y)), starts).cumsum()
        yield adapters.kmeans1d(labels, y, k), sum(map(spread, parts(y, starts)))


def change_points(rng):
    """By a penalty or a number of changes; runs of at least `min_size`, changes at multiples of `jump`."""
    y = rng.integers(-3, 8, int(rng.integers(2, 8)))
    n, size, jump = len(y), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    penalty, changes = int(rng.integers(0, 20)), int(rng.integers(0, 3))
    by = {"pen": penalty} if rng.random() < 0.5 else {"n_bkps": changes}
    for starts in cuts(n, n - 1) if "pen" in by else combinations(range(1, n), changes):
        runs = parts(y, starts)
        if min(map(len, runs)) < size or any(start % jump for start in starts):
            continue
        cost = sum(map(spread, runs)) + (penalty * len(runs) if "pen" in by else 0)
        yield adapters.ruptures([*starts, n], y, min_size=size, jump=jump, **by), cost


def assignments(rng):
    rows, columns = rng.integers(1, 4, 2).tolist()
    cost = rng.integers(-4, 9, (rows, columns))
    few = min(rows, columns)
    for chosen in permutations(range(max(rows, columns)), few):
        at = (range(few), chosen) if rows <= columns else (chosen, range(few))
        yield adapters.linear_sum_assignment(*at, cost), int(cost[list(at[0]), list(at[1])].sum())


class Flow:
    """An answer in the shape of OR-tools' SimpleMinCostFlow."""

    def __init__(self, ends, cost, room, supply, flow):
        self.given = {
            "tail": ends[:, 0], "head": ends[:, 1], "unit_cost": cost, "capacity": room,
            "supply": supply, "flow": flow,
        }  # fmt: skip

    def __getattr__(self, name):
        return self.given[name].__getitem__

    def num_arcs(self):
        return len(self.given["flow"])

    def num_nodes(self):
        return len(self.given["supply"])


def flows(rng):
    nodes, arcs = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    ends = rng.integers(0, nodes, (arcs, 2))
    ends[:, 1] = np.where(ends[:, 0] == ends[:, 1], (ends[:, 0] + 1) % nodes, ends[:, 1])
    cost, room = rng.integers(-2, 6, arcs), rng.integers(0, 3, arcs)
    balance = np.zeros((nodes, arcs), int)
    np.add.at(balance, (ends[:, 0], np.arange(arcs)), 1)
    np.add.at(balance, (ends[:, 1], np.arange(arcs)), -1)
    supply = balance @ rng.integers(0, room + 1)
    for flow in product(*(range(most + 1) for most in room)):
        flow = np.array(flow)
        if np.array_equal(balance @ flow, supply):
            yield adapters.ortools_flow(Flow(ends, cost, room, supply, flow)), int(cost @ flow)


def transports(rng):
    """Whole masses between two or three places, at real costs."""
    a, b = rng.integers(1, 4, 2), rng.integers(1, 4, int(rng.integers(1, 4)))
    b[0] += max(0, a.sum() - b.sum())
    a[0] += b.sum() - a.sum()
    M = rng.integers(0, 9, (2, len(b))) / 4
    for top in product(*(range(int(most) + 1) for most in b)):
        plan = np.array([top, b - np.array(top)])
        if plan.min() >= 0 and np.array_equal(plan.sum(axis=1), a):
            yield adapters.emd(plan, a, b, M), Fraction(float((plan * M).sum()))


def paths(rng):
    nodes = int(rng.integers(2, 5))
    weight = {(u, v): int(rng.integers(0, 9)) for u, v in permutations(range(nodes), 2) if rng.random() < 0.8}
    edges = [(*ends, cost) for ends, cost in weight.items()]
    for count in range(nodes - 1):
        for between in permutations(range(2, nodes), count):
            steps = list(pairwise([0, *between, 1]))
            if all(step in weight for step in steps):
                yield adapters.shortest_path([0, *between, 1], edges), sum(map(weight.get, steps))


def linear_programs(rng):
    """Two variables in a box, up to three rows: all corners, in fractions."""
    rows = int(rng.integers(0, 4))
    A, inside = rng.integers(-3, 4, (rows, 2)), rng.integers(0, 4, 2)
    b, c = A @ inside + rng.integers(0, 4, rows), rng.integers(-4, 5, 2)
    lines = [*zip(A.tolist(), b.tolist(), strict=True)]
    lines += [([1, 0], 5), ([0, 1], 5), ([-1, 0], 0), ([0, -1], 0)]
    corners = {}
    for (p, s), (q, t) in combinations(lines, 2):
        det = p[0] * q[1] - p[1] * q[0]
        if det:
            x = Fraction(s * q[1] - p[1] * t, det), Fraction(p[0] * t - s * q[0], det)
            if all(r[0] * x[0] + r[1] * x[1] <= most for r, most in lines):
                corners[x] = int(c[0]) * x[0] + int(c[1]) * x[1]
    for x, cost in corners.items():
        answer = np.array([*x, None], object)[:-1]
        yield adapters.linear_program(answer, c, A, np.full(rows, -np.inf), b, (0, 5)), cost


def isotonics(rng):
    """Least squares over the reals, up or down: the mean of each run of equal values, in fractions."""
    n, up = int(rng.integers(1, 6)), bool(rng.random() < 0.5)
    y, w = rng.integers(-3, 8, n), rng.integers(1, 4, n)
    for starts in cuts(n, n - 1):
        held = [*zip(parts(w * y, starts), parts(w, starts), strict=True)]
        means = [Fraction(int(one.sum()), int(weight.sum())) for one, weight in held]
        if means == sorted(means, reverse=not up):
            x = [mean for mean, (_, weight) in zip(means, held, strict=True) for _ in weight]
            cost = sum(int(c) * (int(v) - f) ** 2 for c, v, f in zip(w, y, x, strict=True))
            yield adapters.isotonic_regression(np.array([*x, None])[:-1], y, w, increasing=up), cost


def distances(rng):
    """Wasserstein: the distance of whole masses on whole places, and larger claims."""
    u, v = (rng.integers(0, 9, int(rng.integers(1, 5))) for _ in range(2))
    a = rng.integers(1, 4, u.size)
    left, right = (np.repeat(u, a * v.size), np.repeat(v, a.sum()))  # as many of both
    cost = Fraction(int(np.abs(np.sort(left) - np.sort(right)).sum()), left.size)
    for more in (0, Fraction(1, 100), 1, 5):
        yield adapters.wasserstein_distance(float(cost + more), u, v, a), float(cost + more)


def transports_of_shares(rng):
    """As `transports`, claimed by their cost alone, of shares of the mass."""
    for claim, cost in transports(rng):
        model, plan = claim.model, claim.x
        rows, columns = 2, claim.x.size // 2
        masses, M = np.abs(model.supply) / plan.sum(), np.reshape(model.cost, (rows, columns))
        moved = plan.reshape(rows, columns) / plan.sum()
        potentials = model.row_prices(prove(model, plan).witness)
        log = {"G": moved, "u": potentials[:rows], "v": -np.asarray(potentials[rows:])}
        least = cost / int(plan.sum())
        yield adapters.emd2(float(least), masses[:rows], masses[rows:], M, log), float(least)


def forecasts(rng):
    """Of a total and its parts, by the projection: with other variances it is another answer."""
    S = np.vstack([np.ones((1, 2)), np.eye(2)])
    y_hat, variance = rng.integers(-5, 9, 3), rng.integers(1, 4, 3)
    for others in {tuple(variance.tolist()), (1, 1, 1), (3, 1, 2), (1, 5, 2)}:
        w = [Fraction(1, part) for part in others]
        # The normal equations of two unknowns, in fractions.
        p, q, r = w[0] + w[1], w[0], w[0] + w[2]
        s, t = (w[0] * int(y_hat[0]) + w[k] * int(y_hat[k]) for k in (1, 2))
        b = (s * r - q * t) / (p * r - q * q), (p * t - q * s) / (p * r - q * q)
        y = [sum(b), *b]
        cost = sum((v - int(h)) ** 2 / int(c) for v, h, c in zip(y, y_hat, variance, strict=True))
        yield adapters.reconciliation([*map(float, y)], S, y_hat, variance), float(cost)


FIXED = (
    "BlockInference", "ConstrainedInference", "JointTables", "NonNegativeInference", "Reconciliation",
    "WorkloadLeastSquares",
)  # fmt: skip
"""Models whose answers do not depend on the data that `other_data` changes: they are listed once."""


def other_data(name, model, rng):
    """The instance with other numbers, so that ten thousand draws differ."""
    if name == "BudgetSplit":
        return replace(model, weights=model.weights + rng.integers(0, 40, np.size(model.weights)))
    if name == "StrategySDP":
        bins = int(rng.integers(1, 4))
        queries = rng.integers(-9, 10, (int(rng.integers(1, 4)), bins))
        return replace(model, workload=np.vstack([np.eye(bins, dtype=int), queries]))
    if name == "GroupMatching":
        groups = int(rng.integers(1, 4))
        cut, above, below = int(rng.integers(groups + 1)), *np.sort(rng.integers(0, 9, (2, groups)))
        return replace(model, parent_sizes=runs(above), child_sizes=[runs(below[:cut]), runs(below[cut:])])
    if name == "TreeMatching":
        groups = [int(held[1].sum()) for held in model.sizes]
        return replace(model, sizes=[runs(np.sort(rng.integers(0, 5, number))) for number in groups])
    if name == "ControlledRounding":
        values = exact.fractions(rng.integers(-9, 12, np.size(model.values))) / 6
        low = sum(value // 1 for value in values)
        total = int(rng.integers(low, 1 + low + sum(value % 1 != 0 for value in values)))
        floats = np.asarray(model.values).dtype.kind == "f"
        return replace(model, values=values.astype(float) if floats else values, total=total)
    if name == "WorkloadRounding":
        return next(workload_rounding([int(rng.integers(2**32))]))
    if name.startswith("CostTable"):
        steps = [rng.integers(-2, 4, len(table) - 1) for table in model.tables]
        steps = [np.sort(one) if model.convex else one for one in steps]
        each = zip(model.tables, steps, strict=True)
        return replace(model, tables=[table + np.append(0, np.cumsum(one)) for table, one in each])
    few = ("Chebyshev", "Clustering", "Isotonic, side by side", "Merging", "MinCostFlow", "Segmentation")
    most = 9 if name in few else 4
    for one in ("noisy", "base", "values", "cost", "estimates", "u_values", "v_values"):
        if hasattr(model, one):
            given = np.asarray(getattr(model, one))
            changed = given + rng.integers(0, most, given.shape)
            model = replace(model, **{one: np.sort(changed) if name == "Clustering" else changed})
    return model


def of_model(name):
    """Instances of the contract of a model, with other data; all answers, and the fast path's.

    Without a fast path, an instance is left out if real numbers or more than `MOST_ANSWERS` answers are
    feasible: the best of those listed might not be an optimum.
    """
    family, promises = list(CONTRACTS[name].tiny()), CONTRACTS[name].promises
    complete, listed = promises.get("complete", True), {}
    every = joint_answers if name == "JointTables" else promises.get("answers", whole_answers)

    def draw(rng):
        place = int(rng.integers(len(family)))
        model = other_data(name, family[place], rng)
        try:
            x = fast.answer(model)[0]
        except fast.NoFastPath:
            if (complete and name != "JointTables") or not getattr(model, "integer", True):
                return
            x = None
        if x is not None:
            yield Claim(model, x), model.objective(x)
        answers = listed.get(place) or list(islice(every(model), MOST_ANSWERS + 1))
        if name.partition(",")[0] in FIXED:
            listed[place] = answers
        if x is None and len(answers) > MOST_ANSWERS:
            return
        for x in answers[:MOST_ANSWERS]:
            yield Claim(model, x), model.objective(x)

    draw.__name__ = name
    draw.complete = complete
    return draw


PROBLEMS = [
    clusters, change_points, assignments, flows, transports, paths, linear_programs, isotonics, distances,
    transports_of_shares, forecasts, *map(of_model, CONTRACTS),
]  # fmt: skip


def near(cost):
    """How far the costs of two answers in floats may be apart that cost the same."""
    return FLOAT_TOLERANCE * max(1.0, abs(float(cost))) if isinstance(cost, float) else 0


@dataclass
class Tally:
    """Different instances judged; optima of these, and those that were proved; other answers, and refused.

    `unproved` and `false` name seeds and answers: best ones that were not proved, others with a false claim.
    """

    instances: int = 0
    optima: int = 0
    refused: int = 0
    unproved: list = field(default_factory=list)
    false: list = field(default_factory=list)


def judged(problem, seeds, most=None, search=True):
    """A tally of the best answers of each instance, of others, and of a best one with another number.

    Parameters
    ----------
    seeds : iterable of int
    most : int, optional
        End after so many instances.
    search : bool
        Whether a proof of every answer is searched; otherwise the witness of the first best one is checked
        beside the others, and a search is made only for best ones that it leaves a gap.
    """
    tally, seen = Tally(), set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        answers = list(problem(rng))
        if not answers or (key := digest(answers[0][0].model)) in seen:
            continue
        seen.add(key)
        least = min(cost for _, cost in answers)
        slack = max(near(cost) for _, cost in answers)
        ties = sorted((pair for pair in answers if pair[1] <= least + slack), key=lambda pair: pair[1])
        best = list({claim.x.tobytes(): claim for claim, _ in ties}.values())
        others = sorted((pair for pair in answers if pair[1] > least + slack), key=lambda pair: pair[1])
        first = prove(best[0].model, best[0].x)

        def proof_of(model, x, first=first):
            return prove(model, x) if search else Claim(model, x, first.witness or None).certificate()

        for k, claim in enumerate(best[:BEST]):
            proof = first if k == 0 else proof_of(claim.model, claim.x)
            proof = proof if proof.optimal or k == 0 else prove(claim.model, claim.x)
            if proof.optimal or k == 0 or not slack:  # others in floats may cost a little more
                tally.optima += 1
                tally.unproved += [] if proof.optimal else [(seed, claim)]
        chosen = [*others[:1], *(others[k] for k in rng.integers(0, len(others) or 1, OTHERS - 1) if others)]
        for claim, _ in chosen:
            proof = proof_of(claim.model, claim.x)
            true = not proof.optimal and (proof.bound is None or proof.bound <= least + slack)
            tally.refused += true
            tally.false += [] if true else [(seed, claim)]
        # An answer with another number is proved only if it is one of the best.
        wrong = np.array(best[0].x, copy=True)
        changed = wrong["count"] if wrong.dtype.names else wrong
        changed.flat[int(rng.integers(wrong.size))] += int(rng.choice([-1, 1]))
        proof = proof_of(best[0].model, wrong)
        tally.refused += not proof.optimal
        program = isinstance(best[0].model, Program)  # it has no `violations`
        if proof.optimal and (
            proof.objective > least + slack or (not program and best[0].model.violations(wrong))
        ):
            tally.false.append((seed, wrong))
        tally.instances += 1
        if tally.instances == most:
            break
    return tally


@pytest.mark.parametrize("seeds", quick([range(10), range(10, MANY)]), ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.__name__.replace(", ", "-"))
def test_every_best_answer_is_proved_and_no_other(problem, seeds):
    tally = judged(problem, seeds)
    assert not tally.false
    assert not tally.unproved or not getattr(problem, "complete", True)
    assert tally.refused >= min(100, len(seeds))
