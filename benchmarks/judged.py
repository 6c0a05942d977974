"""Other libraries' answers, proved or refuted: random, tied, huge, tiny and adversarial data.

Each answer is judged by the model that `models.adapters` makes of it. It counts as worse only if another
answer is known that costs less, by more than 10⁻⁶ of the cost. The libraries are not among hierdp's
dependencies: ``pip install scikit-learn kmeans1d ruptures lap POT networkx hierarchicalforecast``. Those that
are not installed are left out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from typing import Annotated, Any

import numpy as np

from models import Certificate, Program, adapters
from solvers import fast, prove

EXACT, HEURISTIC = "exact", "approximate"
"""What the documentation promises."""

KINDS = ("random", "tied", "huge", "tiny", "adversarial")

KEY = ("library", "function", "data")

NEAR = 1e-6

Problem = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A function of a library: how problems are drawn, and how its answer to one becomes a claim."""

    library: str
    function: str
    promise: str
    draw: Callable[[Any, str], Problem]
    claim: Callable[[Problem], adapters.Claim]


def numbers(rng: Any, kind: str, shape: Any) -> Any:
    """Numbers of a kind; adversarial ones are far from 0 and near each other, or alternate."""
    if kind == "tied":
        return rng.integers(0, 4, shape).astype(float)
    if kind == "adversarial":
        far = 10.0 ** rng.integers(3, 9)
        drawn = far + rng.integers(0, 3, shape)
        return drawn if rng.random() < 0.5 else rng.integers(0, 2, shape) * far + rng.random(shape)
    return rng.normal(0, 1, shape) * {"random": 10.0, "huge": 1e9, "tiny": 1e-9}[kind]


def series(rng: Any, kind: str) -> Problem:
    y = numbers(rng, kind, int(rng.integers(2, 13)))
    return {"y": y, "w": rng.integers(1, 5, y.size).astype(float), "increasing": bool(rng.random() < 0.5)}


def scipy_isotonic(given: Problem) -> adapters.Claim:
    from scipy.optimize import isotonic_regression

    y, w, increasing = given["y"], given["w"], given["increasing"]
    found = isotonic_regression(y, weights=w, increasing=increasing)
    return adapters.isotonic_regression(found.x, y, w, increasing=increasing)


def sklearn_isotonic(given: Problem) -> adapters.Claim:
    from sklearn.isotonic import isotonic_regression

    y, w, increasing = given["y"], given["w"], given["increasing"]
    found = isotonic_regression(y, sample_weight=w, increasing=increasing)
    return adapters.isotonic_regression(found, y, w, increasing=increasing)


def sklearn_estimator(given: Problem) -> adapters.Claim:
    from sklearn.isotonic import IsotonicRegression

    y, w = given["y"], given["w"]
    X = np.sort(np.arange(y.size) * 3 // 4).astype(float)
    fitted = IsotonicRegression(increasing=given["increasing"]).fit(X, y, w)
    return adapters.isotonic_estimator(fitted, X, y, w)


def clusters(rng: Any, kind: str) -> Problem:
    y = numbers(rng, kind, int(rng.integers(2, 11)))
    return {"y": y, "k": int(rng.integers(1, min(4, y.size) + 1))}


def kmeans1d(given: Problem) -> adapters.Claim:
    import kmeans1d as theirs

    labels = theirs.cluster(given["y"].tolist(), given["k"]).clusters
    return adapters.kmeans1d(labels, given["y"], given["k"])


def signal(by: str) -> Callable[[Any, str], Problem]:
    def draw(rng: Any, kind: str) -> Problem:
        y = numbers(rng, kind, int(rng.integers(4, 13)))
        spread = float(np.var(y)) or 1.0
        pen = spread * float(rng.choice([0.05, 0.2, 0.5, 1.0]))
        if kind == "tied":
            pen = float(rng.choice([0.5, 1.0, 2.0]))
        chosen = {"pen": np.array(pen), "n_bkps": int(rng.integers(1, 3))}
        size, jump = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        return {"y": y, by: chosen[by], "min_size": size, "jump": jump}

    return draw


def ruptures(name: str, by: str) -> Callable[[Problem], adapters.Claim]:
    def claim(given: Problem) -> adapters.Claim:
        import ruptures as theirs

        options = {"min_size": given["min_size"], "jump": given["jump"]}
        search = getattr(theirs, name)(model="l2", **options).fit(given["y"])
        chosen = {by: np.asarray(given[by]).item()}
        return adapters.ruptures(search.predict(**chosen), given["y"], **chosen, **options)

    return claim


def costs(rng: Any, kind: str) -> Problem:
    rows, columns = rng.integers(1, 6, 2)
    return {"cost": numbers(rng, kind, (rows, columns)), "maximize": bool(rng.random() < 0.3)}


def scipy_assignment(given: Problem) -> adapters.Claim:
    from scipy.optimize import linear_sum_assignment

    cost, most = given["cost"], given["maximize"]
    return adapters.linear_sum_assignment(*linear_sum_assignment(cost, most), cost, most)


def square(rng: Any, kind: str) -> Problem:
    n = int(rng.integers(1, 6))
    return {"cost": numbers(rng, kind, (n, n))}


def lap(given: Problem) -> adapters.Claim:
    from lap import lapjv

    _, columns, _ = lapjv(given["cost"])
    return adapters.linear_sum_assignment(range(len(columns)), columns, given["cost"])


def masses(rng: Any, kind: str) -> Problem:
    rows, columns = rng.integers(1, 5, 2)
    a, b = rng.integers(1, 5, rows).astype(float), rng.integers(1, 5, columns).astype(float)
    return {"a": a / a.sum(), "b": b / b.sum(), "M": np.abs(numbers(rng, kind, (rows, columns)))}


def pot(given: Problem) -> adapters.Claim:
    import ot

    plan, log = ot.emd(given["a"], given["b"], given["M"], log=True)
    return adapters.emd(plan, given["a"], given["b"], given["M"], log)


def pot_cost(given: Problem) -> adapters.Claim:
    import ot

    cost, log = ot.emd2(given["a"], given["b"], given["M"], log=True, return_matrix=True)
    return adapters.emd2(cost, given["a"], given["b"], given["M"], log)


def line(rng: Any, kind: str) -> Problem:
    n, m = rng.integers(1, 6, 2)
    return {"u": numbers(rng, kind, n), "v": numbers(rng, kind, m), "a": rng.integers(1, 5, n)}


def scipy_wasserstein(given: Problem) -> adapters.Claim:
    from scipy.stats import wasserstein_distance

    u, v, a = given["u"], given["v"], given["a"]
    return adapters.wasserstein_distance(wasserstein_distance(u, v, a), u, v, a)


def pot_line(given: Problem) -> adapters.Claim:
    import ot

    u, v, a = given["u"], given["v"], given["a"]
    shares = a / a.sum(), np.full(len(v), 1 / len(v))
    return adapters.wasserstein_distance(ot.emd2_1d(u, v, *shares, metric="cityblock"), u, v, a)


def network(rng: Any, kind: str) -> Problem:
    """Whole costs and capacities; both libraries ask for whole numbers."""
    nodes, arcs = int(rng.integers(2, 6)), int(rng.integers(1, 9))
    ends = rng.integers(0, nodes, (arcs, 2))
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    most = {"huge": 10**6, "adversarial": 2}.get(kind, 10)
    room = rng.integers(0, 2 if kind == "tiny" else 5, len(ends))
    held = rng.integers(0, room + 1)
    supply = np.zeros(nodes, np.int64)
    np.add.at(supply, ends[:, 0], held)
    np.subtract.at(supply, ends[:, 1], held)
    cost = rng.integers(-2 if kind == "adversarial" else 0, 2 if kind == "tied" else most, len(ends))
    return {"ends": ends, "room": room, "supply": supply, "cost": cost}


def networkx_flow(name: str) -> Callable[[Problem], adapters.Claim]:
    def claim(given: Problem) -> adapters.Claim:
        import networkx as nx

        graph = nx.DiGraph()
        for node, supply in enumerate(given["supply"].tolist()):
            graph.add_node(node, demand=-supply)
        for (u, v), room, cost in zip(given["ends"].tolist(), given["room"].tolist(), given["cost"].tolist(),
                                      strict=True):  # fmt: skip
            graph.add_edge(u, v, capacity=room, weight=cost)
        found = getattr(nx, name)(graph)
        return adapters.networkx_flow(found[1], graph)

    return claim


def ortools_flow(given: Problem) -> adapters.Claim:
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    flow = SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(*given["ends"].T, given["room"], given["cost"])
    flow.set_nodes_supplies(np.arange(given["supply"].size), given["supply"])
    if flow.solve() != flow.OPTIMAL:
        raise ValueError("no optimum found")
    return adapters.ortools_flow(flow)


def roads(rng: Any, kind: str) -> Problem:
    nodes = int(rng.integers(2, 6))
    ends = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    return {"ends": ends, "weight": np.abs(numbers(rng, kind, len(ends)))}


def networkx_path(given: Problem) -> adapters.Claim:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(given["ends"], given["weight"], strict=True))
    return adapters.shortest_path(nx.shortest_path(graph, 0, 1, "weight"), graph.edges(data="weight"))


def program(rng: Any, kind: str) -> Problem:
    rows, columns = rng.integers(1, 5, 2)
    A = rng.integers(0, 4, (rows, columns)).astype(float)
    inside = rng.integers(0, 5, columns)
    return {"c": numbers(rng, kind, columns), "A_ub": A, "b_ub": A @ inside + 1.0, "bounds": (0, 9)}


def scipy_linprog(given: Problem) -> adapters.Claim:
    from scipy.optimize import linprog

    return adapters.linprog(linprog(**given), **given)


def forecasts(rng: Any, kind: str) -> Problem:
    past = numbers(rng, kind, (7, 20))
    return {"y_hat": numbers(rng, kind, 7), "past": past, "fitted": past + numbers(rng, kind, (7, 20))}


def reconciled(method: str) -> Callable[[Problem], adapters.Claim]:
    def claim(given: Problem) -> adapters.Claim:
        from hierarchicalforecast.methods import MinTrace

        S = np.vstack([np.ones((1, 4)), np.kron(np.eye(2), np.ones((1, 2))), np.eye(4)])
        search, y_hat = MinTrace(method=method), given["y_hat"]
        past = (
            {} if method == "wls_struct" else {"y_insample": given["past"], "y_hat_insample": given["fitted"]}
        )
        found = search.fit_predict(S=S, y_hat=y_hat[:, None], **past)["mean"][:, 0]
        variance = S.sum(axis=1) if method == "wls_struct" else np.asarray(search.W)
        return adapters.reconciliation(found, S, y_hat, variance)

    return claim


PEERS = (
    Peer("scipy", "optimize.isotonic_regression", EXACT, series, scipy_isotonic),
    Peer("scikit-learn", "isotonic.isotonic_regression", EXACT, series, sklearn_isotonic),
    Peer("scikit-learn", "isotonic.IsotonicRegression, tied X", EXACT, series, sklearn_estimator),
    Peer("kmeans1d", "cluster", EXACT, clusters, kmeans1d),
    Peer("ruptures", "Dynp", EXACT, signal("n_bkps"), ruptures("Dynp", "n_bkps")),
    Peer("ruptures", "Pelt", EXACT, signal("pen"), ruptures("Pelt", "pen")),
    Peer("ruptures", "BottomUp, n_bkps", HEURISTIC, signal("n_bkps"), ruptures("BottomUp", "n_bkps")),
    Peer("ruptures", "BottomUp, pen", HEURISTIC, signal("pen"), ruptures("BottomUp", "pen")),
    Peer("ruptures", "Binseg, n_bkps", HEURISTIC, signal("n_bkps"), ruptures("Binseg", "n_bkps")),
    Peer("scipy", "optimize.linear_sum_assignment", EXACT, costs, scipy_assignment),
    Peer("lap", "lapjv", EXACT, square, lap),
    Peer("POT", "emd", EXACT, masses, pot),
    Peer("POT", "emd2", EXACT, masses, pot_cost),
    Peer("POT", "emd2_1d", EXACT, line, pot_line),
    Peer("scipy", "stats.wasserstein_distance", EXACT, line, scipy_wasserstein),
    Peer("networkx", "network_simplex", EXACT, network, networkx_flow("network_simplex")),
    Peer("networkx", "capacity_scaling", EXACT, network, networkx_flow("capacity_scaling")),
    Peer("ortools", "SimpleMinCostFlow", EXACT, network, ortools_flow),
    Peer("networkx", "shortest_path", EXACT, roads, networkx_path),
    Peer("scipy", "optimize.linprog", EXACT, program, scipy_linprog),
    Peer("hierarchicalforecast", "MinTrace, wls_struct", EXACT, forecasts, reconciled("wls_struct")),
    Peer("hierarchicalforecast", "MinTrace, mint_shrink", EXACT, forecasts, reconciled("mint_shrink")),
)


FAR = 1e32
REPORTED: dict[str, tuple[str, Problem]] = {
    "ruptures#383": (
        "Pelt",
        {"y": np.array([0.0, 1, 0, 0, 1]), "pen": np.array(0.1), "min_size": 2, "jump": 1},
    ),
    "POT#229": (
        "emd",
        {
            "a": np.array([0.125, 0.125, 0.125, 0.125, 0.5]),
            "b": np.array([0.125, 0.125, 0.125, 0.125, 0.5]),
            "M": np.array(
                [
                    [2.50275352e02, 3.74653218e02, 2.41352736e03, FAR, 1.51751540e-03],
                    [2.13082030e02, 3.28812836e02, 2.29487946e03, FAR, 1.37109800e-01],
                    [1.97333083e02, 3.09175848e02, 2.24250550e03, FAR, 2.46506283e00],
                    [FAR, FAR, FAR, 5.26223432e00, 2.5e31],
                    [3.84690152e01, 8.09465684e01, 3.33064175e02, 2.5e31, 0.0],
                ]
            ),
        },
    ),
}
"""Problems of open reports, with the function; only these are judged as the data ``reported``."""


def better(model: Any) -> Any:
    """A good answer: that of the fast path, or at scaled costs that of SciPy or of the fast path."""
    if isinstance(model, Program):
        from scipy.optimize import Bounds, LinearConstraint, milp

        if any(term.kind != "linear" for term in model.objective):
            return None
        _, c, _ = model.expanded()
        rows = LinearConstraint(model.matrix, *model.row_bounds)
        return milp(c / (np.abs(c).max() or 1.0), constraints=rows, bounds=Bounds(*model.bounds)).x
    with suppress(fast.NoFastPath):
        return fast.answer(model)[0]
    largest = float(np.abs(model.costs).max()) or 1.0
    return fast.answer(replace(model, cost=np.rint(model.costs / largest * 2**30).astype(np.int64)))[0]


def verdict(peer: Peer, given: Problem) -> tuple[str, Certificate | None, Any]:
    """Whether the answer is proved, worse than another one (given with its cost), infeasible, …."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            claim = peer.claim(given)
        except Exception as refusal:
            return f"refused: {type(refusal).__name__}", None, None
    proof = claim.certificate()
    if not proof.optimal and not isinstance(claim.model, Program):
        proof = prove(claim.model, claim.x)
    if proof.optimal:
        return "proved", proof, None
    if proof.gap is None:
        return "infeasible", proof, None
    best = better(claim.model)
    if best is not None:
        model = claim.model
        cost = model.value(best) if isinstance(model, Program) else model.objective(best)
        if cost < proof.objective - NEAR * abs(float(proof.objective)):
            return "worse", proof, (np.asarray(best).tolist(), cost)
    return "unproved", proof, None


AXES: tuple[tuple[tuple[str, int], ...], ...] = (
    (("y", 0), ("w", 0)), (("y", 0),), (("cost", 0), ("cost", 1)), (("A_ub", 0), ("b_ub", 0)),
    (("A_ub", 1), ("c", 0)),
)  # fmt: skip
"""Where entries are left out together; of a square matrix any row and any column."""


def smaller(given: Problem) -> Iterator[Problem]:
    """The problem with an entry less along some axes."""
    for axes in AXES:
        if not all(name in given for name, _ in axes):
            continue
        sizes = [range(np.shape(given[name])[axis]) for name, axis in axes]
        together = axes[0][0] != axes[-1][0]
        for places in zip(*sizes, strict=True) if together else product(*sizes):
            fewer = dict(given)
            for (name, axis), k in zip(axes, places, strict=True):
                fewer[name] = np.delete(fewer[name], k, axis)
            if all(fewer[name].size for name, _ in axes):
                yield fewer


def rounder(given: Problem) -> Iterator[Problem]:
    """The problem with one array rounded to one digit, to two, …."""
    for name, part in given.items():
        if not isinstance(part, np.ndarray) or part.dtype.kind != "f":
            continue
        for digits in range(1, 6):
            unit = digits - 1 - math.floor(math.log10(np.abs(part).max() or 1.0))
            rounded = np.array([round(value, unit) for value in part.ravel().tolist()]).reshape(part.shape)
            if np.array_equal(rounded, part):
                break
            yield given | {name: rounded}


def reduced(peer: Peer, given: Problem) -> Problem:
    """A smaller problem whose answer is worse, too: entries are left out, then numbers are rounded."""
    for simpler in (smaller, rounder):
        found: Problem | None = given
        while found is not None:
            given = found
            tried = (one for one in simpler(given) if verdict(peer, one)[0] in ("worse", "infeasible"))
            found = next(tried, None)
    return given


def run(
    known: Any,
    cases: Annotated[int, "problems of each function"] = 1_000,
    only: Annotated[str, "a part of a library's or a function's name"] = "",
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """One row a function and kind of data, with the smallest answer that is not optimal."""
    done = set(known[list(KEY)].itertuples(index=False, name=None))
    for peer in PEERS:
        if only.lower() not in f"{peer.library} {peer.function}".lower():
            continue
        try:
            release = version(peer.library)
        except PackageNotFoundError:
            continue
        reports = [given for function, given in REPORTED.values() if function == peer.function]
        for kind in (*KINDS, "reported") if reports else KINDS:
            if (peer.library, peer.function, kind) in done:
                continue
            rng = np.random.default_rng([seed, *map(ord, peer.function + kind)])
            counts: dict[str, int] = {}
            wrong: list[Problem] = []
            drawn = (peer.draw(rng, kind) for _ in range(cases // len(KINDS)))
            for given in reports if kind == "reported" else drawn:
                found = verdict(peer, given)[0]
                counts[found] = counts.get(found, 0) + 1
                if found in ("worse", "infeasible"):
                    wrong.append(given)
            row: dict[str, Any] = {
                "library": peer.library, "version": release, "function": peer.function,
                "promise": peer.promise, "data": kind, "cases": sum(counts.values()),
                **{name: counts.get(name, 0) for name in ("proved", "worse", "infeasible", "unproved")},
                "refused": sum(count for name, count in counts.items() if name.startswith("refused")),
                "why": "; ".join(sorted(name for name in counts if name.startswith("refused: "))),
            }  # fmt: skip
            if wrong:
                least = reduced(peer, min(wrong, key=lambda one: sum(np.size(part) for part in one.values())))
                _, proof, better = verdict(peer, least)
                assert proof is not None
                row |= {
                    "input": repr({name: np.asarray(part).tolist() for name, part in least.items()}),
                    "their answer": repr(peer.claim(least).x.tolist()), "their cost": float(proof.objective),
                    "reason": proof.reason, "our bound": None if proof.bound is None else float(proof.bound),
                    "better answer": None if better is None else repr(better[0]),
                    "its cost": None if better is None else float(better[1]),
                }  # fmt: skip
            yield row


def summary(rows: Any) -> dict[str, Any]:
    """The counts of each function, and the answers that are not optimal."""
    counts = ["cases", "proved", "worse", "infeasible", "unproved", "refused"]
    names = ["library", "version", "function", "promise"]
    table = rows.groupby(names, sort=False)[counts].sum().reset_index()
    if "input" not in rows:
        return {"Answers": table}
    wrong = rows[rows.input.notna()]
    shown = [
        "library",
        "function",
        "data",
        "input",
        "their answer",
        "their cost",
        "better answer",
        "its cost",
    ]
    return {"Answers": table, "Not optimal": wrong[shown]}
