"""Other libraries' problems and answers as models.

Each function takes a library's answer, and the arguments that led to it. No library is imported. A `Claim`
says which model the library claims to have solved, with which answer:

>>> from scipy.optimize import isotonic_regression as theirs
>>> claim = isotonic_regression(theirs([3, 1, 4]).x, [3, 1, 4])
>>> claim.certificate().optimal
True

`solvers.prove(claim.model, claim.x)` also searches what proves the answer; the certificate alone uses what
the library returned (dual values, for example), or what it reads off the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.arrays import Array, Flags
from models.change_points import ChangePoints
from models.claim import Claim
from models.clustering import Clustering
from models.isotonic import Isotonic
from models.min_cost_flow import MinCostFlow
from models.programs import linear
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows, Term
from models.runs import marks_of
from models.wasserstein_distance import WassersteinDistance


def isotonic_regression(
    x: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    y_min: float | None = None,
    y_max: float | None = None,
    increasing: bool = True,
) -> Claim:
    """SciPy's ``isotonic_regression(y, weights=…, increasing=…).x``, or scikit-learn's function of that name.

    If all values lie within a factor of 2, their middle one is subtracted first: that rounds nothing
    (Sterbenz 1974), and leaves digits for the proof.

    Examples
    --------
    >>> isotonic_regression([3.0, 1.5, 1.5], [3, 1, 2], increasing=False).certificate().optimal
    True
    >>> isotonic_regression([1, 1, 4], [3, 1, 4]).certificate().optimal
    False
    """
    x, y = door.numbers("x", x), door.numbers("y", y)
    weights = None if weights is None else door.numbers("weights", weights)
    if not increasing:
        x, y, weights = x[::-1], y[::-1], None if weights is None else weights[::-1]
    ends = [float(end(part)) for part in (x, y) for end in (np.min, np.max)]
    near = 0 < max(ends) <= 2 * min(ends) or 0 > min(ends) >= 2 * max(ends)
    if y.dtype.kind == "f" and y_min is y_max is None and near:
        middle = y[y.size // 2]
        x, y = x - middle, y - middle
    return Claim(Isotonic(y, 2, weights, y_min, y_max), np.asarray(x))


def isotonic_estimator(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Claim:
    """A fitted ``sklearn.isotonic.IsotonicRegression``, with the data that it was fitted to.

    Entries of y with the same X get one value, so the model has their weighted mean, and the sum of their
    weights. Those of weight 0 cost nothing, and are left out.

    Examples
    --------
    >>> class Fitted:  # as scikit-learn's
    ...     y_min, y_max, increasing_ = 0, None, True
    ...     def predict(self, X):
    ...         return np.interp(X, [1, 2], [2.0, 5.0])
    >>> isotonic_estimator(Fitted(), [1, 1, 2], [3, 1, 5]).certificate().optimal
    True
    """
    X = np.ravel(X)
    y = door.in_floats("y", y)
    sample_weight = (
        np.ones(y.size) if sample_weight is None else door.in_floats("sample_weight", sample_weight)
    )
    if (sample_weight < 0).any():
        raise ValueError(f"sample_weight has {sample_weight.min()}: weights must be at least 0")
    X, y, sample_weight = (part[sample_weight > 0] for part in (X, y, sample_weight))
    places, at = np.unique(X, return_inverse=True)
    weights = np.bincount(at, sample_weight)
    means = np.bincount(at, sample_weight * y) / weights
    return isotonic_regression(
        estimator.predict(places), means, weights, y_min=estimator.y_min, y_max=estimator.y_max,
        increasing=estimator.increasing_,
    )  # fmt: skip


def kmeans1d(clusters: ArrayLike, array: ArrayLike, k: int) -> Claim:
    """``kmeans1d.cluster(array, k)``, or the labels of ckmeans: one-dimensional k-means.

    The clusters of a best answer are runs of the sorted values. If fewer than k labels are used, equal values
    are separated, which costs nothing; if there are none, the answer is not feasible, as more clusters would
    cost less.

    Examples
    --------
    >>> kmeans1d([1, 0, 1, 0], [9.0, 1.0, 8.0, 2.0], k=2).certificate().optimal
    True
    >>> kmeans1d([1, 0, 0, 0], [9.0, 1.0, 8.0, 2.0], k=2).certificate().optimal
    False

    Raises
    ------
    ValueError
        If a value lies between two of another cluster: exchanging them would cost less.
    """
    values = door.data("array", array)
    labels = door.whole("clusters", clusters, values.shape)
    order = np.lexsort((labels, values))
    values, labels = values[order], labels[order]
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    if starts.size > np.unique(labels).size:
        twice = next(label for label in labels[starts].tolist() if (labels[starts] == label).sum() > 1)
        raise ValueError(f"cluster {twice} has values of another between its own, so it is not optimal")
    equal = np.setdiff1d(1 + np.flatnonzero(values[1:] == values[:-1]), starts)
    starts = np.union1d(starts, equal[: max(0, k - starts.size)]).astype(np.int64)
    return Claim(Clustering(values, 0, k), marks_of(starts, values.size))


def ruptures(
    bkps: Sequence[int], signal: ArrayLike, *, n_bkps: int | None = None, pen: float | None = None,
    min_size: int = 2, jump: int = 5,
) -> Claim:  # fmt: skip
    """Break points of ruptures' ``Dynp``, ``Pelt``, ``BottomUp``, … with ``model="l2"``.

    Give the number of breaks or the penalty, as to ``predict``; `min_size` and `jump` have the defaults of
    ruptures.

    Examples
    --------
    >>> claim = ruptures([3, 6], [1, 1, 2, 9, 9, 8], n_bkps=1, min_size=2, jump=1)
    >>> from solvers import prove
    >>> prove(claim.model, claim.x).optimal
    True

    Raises
    ------
    ValueError
        If not exactly one of `n_bkps` and `pen` is given, or the breaks do not rise to the signal's length.
    """
    if (n_bkps is None) == (pen is None):
        raise ValueError("give n_bkps or pen, as to predict: one of them")
    n, breaks = len(np.asarray(signal)), door.whole("bkps", bkps, (len(bkps),)).tolist()
    if breaks[-1:] != [n]:
        raise ValueError(f"the last break must be {n}, the length of the signal")
    if any(b <= a for a, b in pairwise([0, *breaks])):
        raise ValueError(f"the breaks must be above 0 and rise, not {breaks}")
    clusters = None if n_bkps is None else n_bkps + 1
    model = ChangePoints(signal, clusters, 0 if pen is None else pen, min_size, jump)
    return Claim(model, marks_of(np.array([0, *breaks[:-1]]), n))


def linear_sum_assignment(
    row_ind: ArrayLike, col_ind: ArrayLike, cost_matrix: ArrayLike, maximize: bool = False
) -> Claim:
    """SciPy's ``linear_sum_assignment(cost_matrix, maximize)``.

    A pair that costs infinity is forbidden (``-inf`` with `maximize`). For ``lap.lapjv``, the rows are
    ``range(rows)``; leave out those that it did not assign, which it marks by -1.

    Examples
    --------
    >>> cost = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]
    >>> from scipy.optimize import linear_sum_assignment as theirs
    >>> claim = linear_sum_assignment(*theirs(cost), cost)
    >>> from solvers import prove
    >>> proof = prove(claim.model, claim.x)
    >>> proof.optimal, proof.objective
    (True, 5)

    Raises
    ------
    ValueError
        If an index is not that of a row or column, a pair is forbidden, or an entry is not a number.
    """
    cost = door.sides("cost_matrix", cost_matrix)
    if cost.ndim != 2:
        raise ValueError(f"cost_matrix must have 2 axes, got shape {cost.shape}")
    cost = exact.negated(cost) if maximize else cost
    rows, columns = cost.shape
    allowed = cost < INFINITY
    if not (cost > -INFINITY).all():
        raise ValueError(
            f"cost_matrix has {'inf' if maximize else '-inf'}: a pair must not be worth infinity"
        )
    x = np.zeros(cost.shape, np.int64)
    names = ("row_ind", "col_ind")
    pairs = [door.whole(*part, np.shape(part[1])) for part in zip(names, (row_ind, col_ind), strict=True)]
    for name, ind, size in zip(names, pairs, cost.shape, strict=True):
        if ind.size and not 0 <= ind.min() <= ind.max() < size:
            wrong = ind[(ind < 0) | (ind >= size)][0]
            raise ValueError(f"{name} has {wrong}: it must be from 0 to {size - 1}")
    np.add.at(x, tuple(pairs), 1)
    if x[~allowed].any():
        row, column = np.argwhere(~allowed & (x > 0))[0]
        raise ValueError(f"row {row} and column {column} are paired, which cost_matrix forbids")
    each, few = np.arange(rows + columns), min(rows, columns)
    tail, head = (part[allowed] for part in np.meshgrid(each[:rows], each[rows:], indexing="ij"))
    supply = np.repeat([1, -1], [rows, columns])
    cost, chosen = cost[allowed], x[allowed]
    if rows == columns:
        return Claim(MinCostFlow(tail, head, cost, supply, np.ones(cost.size, int)), chosen)
    # The longer side is joined to one more node, which takes (or gives) as much as the shorter side has.
    longer, used = (each[rows:], x.sum(axis=0)) if rows < columns else (each[:rows], x.sum(axis=1))
    node = np.full(longer.size, rows + columns)
    supply = np.append(supply, 0)
    supply[longer], supply[-1] = 0, -few if rows < columns else few
    ends = (longer, node) if rows < columns else (node, longer)
    tail, head = (np.append(one, more) for one, more in zip((tail, head), ends, strict=True))
    every = np.append(cost, np.zeros(longer.size, cost.dtype))
    return Claim(MinCostFlow(tail, head, every, supply, np.ones(tail.size, int)), np.append(chosen, used))


def emd(
    G: ArrayLike, a: ArrayLike, b: ArrayLike, M: ArrayLike, log: Mapping[str, Any] | None = None
) -> Claim:
    """POT's ``ot.emd(a, b, M, log=True)``: a plan of least cost, with its dual values if given as `log`.

    If all masses are whole numbers, the model is a `MinCostFlow`, and exact. Otherwise it is a linear program
    over the reals, with its tolerances.

    Examples
    --------
    >>> plan, M = [[0.5, 0.0], [0.0, 0.5]], [[0.0, 1.0], [1.0, 0.0]]
    >>> log = {"u": np.array([0.0, 0.0]), "v": np.array([0.0, 0.0])}
    >>> emd(plan, [0.5, 0.5], [0.5, 0.5], M, log).certificate().optimal
    True
    >>> emd([[1, 0], [1, 2]], [1, 3], [2, 2], [[0, 1], [1, 0]]).model
    MinCostFlow(tail=array([0, 0, 1, 1]), ...
    """
    G, a, b, M = (door.data(*part) for part in (("G", G, 2), ("a", a), ("b", b), ("M", M, 2)))
    if not (G.shape == M.shape == (a.size, b.size)):
        raise ValueError(f"G has shape {G.shape}, M {M.shape}: both must be {(a.size, b.size)}, as a and b")
    rows, columns = M.shape
    each = np.arange(rows + columns)
    tail, head = (part.ravel() for part in np.meshgrid(each[:rows], each[rows:], indexing="ij"))
    prices = None if log is None else np.concatenate([np.asarray(log["u"]), np.asarray(log["v"])])
    if all(np.array_equal(part, np.rint(part)) and np.abs(part).max() < 2**62 for part in (G, a, b)):
        witness = None if prices is None else {"balance": np.append(prices[:rows], -prices[rows:])}
        supply = np.concatenate([a.astype(np.int64), -b.astype(np.int64)])  # -b of unsigned numbers wraps
        return Claim(MinCostFlow(tail, head, M.ravel(), supply), G.ravel().astype(np.int64), witness)
    place = np.tile(np.arange(tail.size), 2)
    matrix = scipy.sparse.csr_matrix(
        (np.ones(place.size), (np.append(tail, head), place)), (each.size, tail.size)
    )
    sides = np.append(a, b)
    bounds = 0, np.minimum(a[:, None], b[None]).ravel()  # they follow from the rows
    claim = linear_program(G.ravel(), M.ravel(), matrix, sides, sides, bounds)
    return claim._replace(witness=None if prices is None else {"prices": prices})


def emd2(cost: float, a: ArrayLike, b: ArrayLike, M: ArrayLike, log: Mapping[str, Any]) -> Claim:
    """POT's ``ot.emd2(a, b, M, log=True, return_matrix=True)``: a cost; plan and dual values in `log`.

    The program's first variable is the cost claimed, at least that of the plan.

    Examples
    --------
    >>> log = {"G": [[0.5, 0.0], [0.0, 0.5]], "u": [0.0, 0.0], "v": [0.0, 0.0]}
    >>> emd2(0.0, [0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], log).certificate().optimal
    True
    >>> emd2(0.1, [0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], log).certificate().optimal
    False
    """
    sides = [door.in_floats("a", a), door.in_floats("b", b)]
    shape = sides[0].size, sides[1].size
    M, G = door.in_floats("M", M), door.in_floats("G", log["G"])
    if not (G.shape == M.shape == shape):
        raise ValueError(f"G has shape {G.shape}, M {M.shape}: both must be {shape}, as a and b")
    rows, columns = M.shape
    sums = [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
    matrix = np.block([[np.ones((1, 1)), -M.ravel()[None]], [np.zeros((rows + columns, 1)), np.vstack(sums)]])
    most = np.append(INFINITY, np.minimum(sides[0][:, None], sides[1][None]).ravel())  # follow from the rows
    low, masses = np.append(-INFINITY, np.zeros(M.size)), np.concatenate(sides)
    x, c = np.append(cost, G.ravel()), np.eye(1, 1 + M.size)[0]
    claim = linear_program(x, c, matrix, np.append(0, masses), np.append(INFINITY, masses), (low, most))
    return claim._replace(witness={"prices": np.concatenate([[1.0], np.ravel(log["u"]), np.ravel(log["v"])])})


def wasserstein_distance(
    distance: float,
    u_values: ArrayLike,
    v_values: ArrayLike,
    u_weights: ArrayLike | None = None,
    v_weights: ArrayLike | None = None,
) -> Claim:
    """SciPy's ``wasserstein_distance(u_values, v_values, u_weights, v_weights)``.

    Examples
    --------
    >>> wasserstein_distance(5.0, [0, 1, 3], [5, 6, 8]).certificate().optimal
    True
    >>> wasserstein_distance(5.1, [0, 1, 3], [5, 6, 8]).certificate().gap > 0.09
    True
    """
    return Claim(WassersteinDistance(u_values, v_values, u_weights, v_weights), np.array([distance]))


def networkx_flow(
    flow: Mapping[Any, Mapping[Any, Any]], G: Any, demand: str = "demand", capacity: str = "capacity",
    weight: str = "weight",
) -> Claim:  # fmt: skip
    """networkx's ``min_cost_flow(G)`` or ``network_simplex(G)[1]``, of a `DiGraph` or a `MultiDiGraph`.

    Arcs without a capacity get one that no best flow exceeds: the sum of all demands and other capacities.

    Examples
    --------
    >>> class Graph:  # as networkx's: the edges 0 → 1 → 2, and 0 → 2
    ...     def is_multigraph(self): return False
    ...     def nodes(self, data): return [(0, {"demand": -2}), (1, {}), (2, {"demand": 2})]
    ...     def edges(self, data): return [(0, 1, {"weight": 1, "capacity": 1}), (1, 2, {"weight": 1}),
    ...                                    (0, 2, {"weight": 5})]
    >>> claim = networkx_flow({0: {1: 1, 2: 1}, 1: {2: 1}}, Graph())
    >>> from solvers import prove
    >>> prove(claim.model, claim.x).optimal
    True

    Raises
    ------
    ValueError
        If an arc without a capacity costs less than 0.
    """
    nodes = {node: place for place, (node, _) in enumerate(G.nodes(data=True))}
    supply = np.array([-data.get(demand, 0) for _, data in G.nodes(data=True)])
    if G.is_multigraph():
        arcs = [(u, v, data, flow[u][v][key]) for u, v, key, data in G.edges(data=True, keys=True)]
    else:
        arcs = [(u, v, data, flow[u][v]) for u, v, data in G.edges(data=True)]
    rooms = [data.get(capacity, INFINITY) for *_, data, _ in arcs]
    costs = [data.get(weight, 0) for *_, data, _ in arcs]
    most = int(supply[supply > 0].sum()) + sum(int(room) for room in rooms if room < INFINITY)
    for (u, v, *_), room, cost in zip(arcs, rooms, costs, strict=True):
        if room == INFINITY and cost < 0:
            raise ValueError(f"the arc from {u!r} to {v!r} costs {cost}, and has no capacity")
    model = MinCostFlow(
        [nodes[u] for u, *_ in arcs], [nodes[v] for _, v, *_ in arcs], costs, supply,
        [most if room == INFINITY else room for room in rooms],
    )  # fmt: skip
    return Claim(model, np.array([moved for *_, moved in arcs]))


def shortest_path(path: Sequence[Any], edges: Iterable[tuple[Any, Any, Any]]) -> Claim:
    """A path of networkx's ``shortest_path`` or ``bellman_ford_path``: its nodes, and all edges with weights.

    The edges are ``G.edges(data="weight")``, those of an undirected graph once in each direction. The model
    is a flow of one unit.

    Examples
    --------
    >>> claim = shortest_path("acb", [("a", "b", 5), ("a", "c", 2), ("c", "b", 2)])
    >>> from solvers import prove
    >>> proof = prove(claim.model, claim.x)
    >>> proof.optimal, proof.objective
    (True, 4)

    Raises
    ------
    ValueError
        If a step of the path is not an edge.
    """
    edges = list(edges)
    nodes = {
        node: place for place, node in enumerate(dict.fromkeys(end for *ends, _ in edges for end in ends))
    }
    x, supply = np.zeros(len(edges), np.int64), np.zeros(len(nodes), np.int64)
    for u, v in pairwise(path):
        joins = [k for k, edge in enumerate(edges) if edge[:2] == (u, v)]
        if not joins:
            raise ValueError(f"no edge leads from {u!r} to {v!r}")
        x[min(joins, key=lambda k: edges[k][2])] += 1
    supply[nodes[path[0]]] += 1
    supply[nodes[path[-1]]] -= 1
    tail, head = ([nodes[edge[k]] for edge in edges] for k in range(2))
    costs, capacity = [edge[2] for edge in edges], np.ones(len(edges), np.int64)
    return Claim(MinCostFlow(tail, head, costs, supply, capacity), x)


def ortools_flow(flow: Any) -> Claim:
    """OR-tools' ``SimpleMinCostFlow`` after ``solve()``.

    Examples
    --------
    >>> class Flow:  # as OR-tools': one arc
    ...     def num_arcs(self): return 1
    ...     def num_nodes(self): return 2
    ...     def tail(self, arc): return 0
    ...     def head(self, arc): return 1
    ...     def capacity(self, arc): return 3
    ...     def unit_cost(self, arc): return 7
    ...     def flow(self, arc): return 2
    ...     def supply(self, node): return 2 - 4 * node
    >>> claim = ortools_flow(Flow())
    >>> from solvers import prove
    >>> prove(claim.model, claim.x).objective
    14
    """
    read = (flow.tail, flow.head, flow.unit_cost, flow.capacity, flow.flow)
    parts = [np.array([part(arc) for arc in range(flow.num_arcs())], np.int64) for part in read]
    tail, head, cost, capacity, x = parts
    supply = np.array([flow.supply(node) for node in range(flow.num_nodes())], np.int64)
    return Claim(MinCostFlow(tail, head, cost, supply, capacity), x)


def linear_program(
    x: ArrayLike,
    c: ArrayLike,
    A: Any,
    lower: Any,
    upper: Any,
    bounds: tuple[ArrayLike, ArrayLike] = (0, INFINITY),
    integer: ArrayLike = False,
    squares: ArrayLike = 0,
) -> Claim:
    """Any answer x to: minimize c·x + Σ squares·x² subject to ``lower ≤ A x ≤ upper`` and bounds.

    Values of whole variables are rounded if they are within 10⁻⁶ of whole numbers, as solvers return
    0.9999999999 for 1; everything else is taken as it is.

    Examples
    --------
    >>> claim = linear_program([1, 1], [2, 3], [[1, 1]], 2, np.inf, (0, 1))
    >>> from solvers import prove
    >>> prove(claim.model, claim.x).optimal
    True
    """
    columns = np.shape(A)[-1] if np.ndim(A) or scipy.sparse.issparse(A) else 0
    whole = np.broadcast_to(np.asarray(integer, bool), columns)
    program = linear.linear_program("linear program", c, A, lower, upper, bounds, whole, squares)
    return Claim(program, rounded_answer(door.numbers("x", x, (columns,)), whole))


def rounded_answer(x: Array, whole: Flags) -> Array:
    """An answer whose whole variables are whole numbers where they were within 10⁻⁶ of these."""
    if x.dtype == object:
        near = [round(value) if is_whole else value for value, is_whole in zip(x, whole, strict=True)]
        far = [abs(a - b) > FEASIBILITY_TOLERANCE for a, b in zip(x, near, strict=True)]
        return exact.objects((a if off else b for a, b, off in zip(x, near, far, strict=True)), x.shape)
    if x.dtype.kind == "f":
        x = np.where(whole & (np.abs(x - np.rint(x)) <= FEASIBILITY_TOLERANCE), np.rint(x), x)
        whole_answer = whole.all() and np.array_equal(x, np.rint(x))
        x = x.astype(np.int64) if whole_answer and np.abs(x).max(initial=0) < 2**62 else x
    return x


def linprog(
    res: Any, c: ArrayLike, A_ub: Any = None, b_ub: ArrayLike | None = None, A_eq: Any = None,
    b_eq: ArrayLike | None = None, bounds: Any = (0, None), integrality: ArrayLike | None = None,
) -> Claim:  # fmt: skip
    """SciPy's ``linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, integrality=…)``: its marginals are the prices.

    Examples
    --------
    >>> from scipy.optimize import linprog as theirs
    >>> problem = dict(c=[-1, -2], A_ub=[[1, 1], [1, 3]], b_ub=[4, 6])
    >>> linprog(theirs(**problem), **problem).certificate().optimal
    True

    Raises
    ------
    ValueError
        If the result has no answer, or bounds or integrality have another form than SciPy takes.
    """
    size = np.size(c)
    rows = []
    for A, b, equal in ((A_ub, b_ub, False), (A_eq, b_eq, True)):
        if A is not None:
            right = door.sides("b_eq" if equal else "b_ub", b).ravel()
            rows.append((A, right if equal else np.full(right.size, -INFINITY), right))
    claim = _of_rows(res, c, rows, _box(bounds, size), integrality)
    if claim.model.integer.any():
        return claim  # the marginals are those of the program with all whole variables fixed
    found = [part for part, A in ((res.ineqlin, A_ub), (res.eqlin, A_eq)) if A is not None]
    return claim._replace(witness={"prices": np.concatenate([[], *(part.marginals for part in found)])})


def _box(bounds: Any, size: int) -> tuple[ArrayLike, ArrayLike]:
    """The bounds of SciPy's ``linprog``: one pair, or a pair for each variable; None is no bound."""
    pairs: list[Any] = [(0, None)] if bounds is None else list(bounds)
    if len(pairs) == 2 and all(end is None or np.ndim(end) == 0 for end in pairs):
        pairs = [pairs]
    pairs = pairs * size if len(pairs) == 1 else pairs
    if len(pairs) != size or any(np.size(pair) != 2 for pair in pairs):
        raise ValueError(f"bounds must be a pair, or a pair for each of the {size} variables")
    low, high = zip(*pairs, strict=True)
    return (
        [-INFINITY if end is None else end for end in low],
        [INFINITY if end is None else end for end in high],
    )


def _of_rows(
    res: Any, c: ArrayLike, rows: list[Any], box: tuple[ArrayLike, ArrayLike], integrality: ArrayLike | None
) -> Claim:
    """The claim of a result of SciPy's; `rows` are triples (A, lower, upper)."""
    size = np.size(c)
    whole = np.broadcast_to(np.asarray(0 if integrality is None else integrality), size)
    if not np.isin(whole, (0, 1)).all():
        raise ValueError("semi-continuous variables (integrality 2 and 3) are not supported")
    if res.x is None:
        raise ValueError(f"the result has no answer: {res.message}")
    parts = [
        door.sparse("A", A if scipy.sparse.issparse(A) else np.atleast_2d(door.numbers("A", A)))
        for A, *_ in rows
    ]
    matrix = scipy.sparse.vstack(parts or [scipy.sparse.csr_matrix((0, size))])
    sides = []
    for name, *ends in (("lower", *(low for _, low, _ in rows)), ("upper", *(high for *_, high in rows))):
        each = [
            np.broadcast_to(door.sides(name, end), part.shape[0])
            for end, part in zip(ends, parts, strict=True)
        ]
        sides.append(exact.together(each))
    return linear_program(res.x, c, matrix, sides[0], sides[1], box, whole == 1)


def milp(
    res: Any, c: ArrayLike, *, integrality: ArrayLike | None = None, bounds: Any = None, constraints: Any = ()
) -> Claim:
    """SciPy's ``milp(c, integrality=…, bounds=…, constraints=…)``, in all the forms that SciPy takes.

    It returns no dual values: `solvers.prove` finds prices. They may leave a gap, which bounds what the
    answer misses.

    Examples
    --------
    >>> from scipy.optimize import LinearConstraint, milp as theirs
    >>> problem = dict(c=[-1, -1], integrality=1, constraints=LinearConstraint([[2, 1]], -np.inf, 4))
    >>> claim = milp(theirs(**problem), **problem)
    >>> from solvers import prove
    >>> prove(claim.model, claim.x).optimal
    True

    Raises
    ------
    ValueError
        If the result has no answer, or a variable is semi-continuous.
    """

    def is_one(part: Any) -> bool:
        """Whether this is one constraint, and not a sequence of them: SciPy tries the first."""
        if hasattr(part, "A") or len(part) not in (2, 3) or hasattr(part[0], "lb"):
            return hasattr(part, "A")
        try:
            return np.asarray(_dense(part[0]), float).ndim in (1, 2)
        except (TypeError, ValueError):  # the first of several, with a matrix and sides
            return False

    def triple(part: Any) -> tuple[Any, Any, Any]:
        A, low, high = (part.A, part.lb, part.ub) if hasattr(part, "A") else (*part, INFINITY)[:3]
        return A, low, high

    given = [constraints] if is_one(constraints) else list(constraints)
    box: Any = (0, INFINITY) if bounds is None else bounds
    box = (box.lb, box.ub) if hasattr(box, "lb") else tuple(box)
    return _of_rows(res, c, [triple(part) for part in given], box, integrality)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else getattr(matrix, "A", matrix)


def highs(solver: Any) -> Claim:
    """A ``highspy.Highs`` that has run: its model, its answer, and the dual values of its rows.

    A maximization becomes the minimization of the negated costs, and the offset is left out.

    Examples
    --------
    >>> import highspy
    >>> solver = highspy.Highs()
    >>> solver.silent()
    >>> x, y = solver.addVariable(0, 4), solver.addVariable(0, 4)
    >>> row = solver.addConstr(x + 3 * y <= 6)
    >>> status = solver.maximize(x + 2 * y)
    >>> highs(solver).certificate().optimal
    True

    Raises
    ------
    ValueError
        If the model has a Hessian, or variables that are neither real nor whole.
    """
    lp, found = solver.getLp(), solver.getSolution()
    if solver.getModel().hessian_.dim_:
        raise ValueError("models with a Hessian are not supported")
    kinds = [int(kind) for kind in lp.integrality_] or [0] * lp.num_col_
    if not {0, 1}.issuperset(kinds):
        raise ValueError("semi-continuous and semi-integer variables are not supported")
    held, ends = lp.a_matrix_, (lp.num_row_, lp.num_col_)
    by_rows = str(held.format_).endswith("kRowwise")
    kind = scipy.sparse.csr_matrix if by_rows else scipy.sparse.csc_matrix
    matrix = kind((np.asarray(held.value_), np.asarray(held.index_), np.asarray(held.start_)), ends)
    sign = -1 if str(lp.sense_).endswith("kMaximize") else 1
    lower, upper, least, most = (
        np.asarray(side) for side in (lp.row_lower_, lp.row_upper_, lp.col_lower_, lp.col_upper_)
    )
    c, x = sign * np.asarray(lp.col_cost_), np.asarray(found.col_value)
    claim = linear_program(x, c, matrix, lower, upper, (least, most), np.array(kinds) == 1)
    prices = sign * np.asarray(found.row_dual)
    return claim._replace(witness={"prices": prices} if found.dual_valid else None)


def reconciliation(
    y_tilde: ArrayLike, S: ArrayLike, y_hat: ArrayLike, variance: ArrayLike = 1, nonnegative: bool = False
) -> Claim:
    """Forecasts of a hierarchy made consistent by least squares, as by hierarchicalforecast's ``MinTrace``.

        minimize Σ_i (y_i − ŷ_i)²/variance_i  subject to  y = S b  (with `nonnegative`: b ≥ 0)

    The last rows of S, one for each bottom series, are the identity. The variances of the method ``ols`` are
    1, those of ``wls_struct`` the sums of the rows of S. A matrix is taken as covariances W, as those of
    ``mint_cov`` and ``mint_shrink``: with W = L Lᵀ, the cost is Σ r² with L r = y − ŷ.

    Examples
    --------
    >>> S = [[1, 1], [1, 0], [0, 1]]
    >>> reconciliation([11, 4, 7], S, [12, 3, 6]).certificate().optimal
    True
    >>> reconciliation([12, 5, 7], S, [12, 3, 6]).certificate().optimal
    False
    """
    S = door.in_floats("S", S)
    n, m = S.shape
    y_hat, y = (door.in_floats(name, part) for name, part in (("y_hat", y_hat), ("y_tilde", y_tilde)))
    for name, part in (("y_hat", y_hat), ("y_tilde", y)):
        if part.shape != (n,):
            raise ValueError(f"{name} has shape {part.shape}; S has {n} rows")
    variance = door.in_floats("variance", variance)
    if variance.ndim == 2 and not (variance.shape == (n, n) and np.array_equal(variance, variance.T)):
        raise ValueError(f"a matrix of covariances must be symmetric, of shape {(n, n)}")
    if variance.ndim < 2 and (variance <= 0).any():
        raise ValueError(f"variance has {variance.min()}: variances must be positive")
    if not np.array_equal(S[n - m :], np.eye(m)):
        raise ValueError("the last rows of S must be the identity: the bottom series themselves")
    joint = variance.ndim == 2
    factor = np.linalg.cholesky(variance) if joint else np.eye(0)
    variances = (factor**2).sum(axis=1) if joint else np.broadcast_to(variance, n)
    # An answer of 0 costs no less than the best one, so none is further from the forecasts than these limits.
    cost = float((np.linalg.solve(factor, y_hat) ** 2).sum() if joint else (y_hat * y_hat / variances).sum())
    reach = 1 + 2 * np.abs(y_hat) + 2 * np.sqrt(cost * variances)
    one = scipy.sparse.identity(n, format="csr")
    matrix = scipy.sparse.hstack([one, -scipy.sparse.csr_matrix(S)], format="csr")
    blocks = [
        Block("y", (n,), -INFINITY),
        Block("b", (m,), 0 if nonnegative else -reach[n - m :], reach[n - m :]),
    ]
    answer = np.append(y, y[n - m :])
    if not joint:
        squares = Term("quadratic", np.arange(n), 1 / variances, y_hat)
        rows = [Rows("y = S b", matrix, np.zeros(n), np.zeros(n))]
        program = Program("reconciliation", blocks, rows, [squares])
        return Claim(program, answer, {"prices": 2 / variances * (y - y_hat)})
    none = scipy.sparse.csr_matrix((n, m))
    errors = np.linalg.solve(factor, y - y_hat)
    paid = np.linalg.solve(factor.T, 2 * errors)
    rows = [
        Rows("y = S b", scipy.sparse.hstack([matrix, 0 * one], format="csr"), np.zeros(n), np.zeros(n)),
        Rows("L r = y - forecast", scipy.sparse.hstack([-one, none, factor], format="csr"), -y_hat, -y_hat),
    ]
    squares = Term("quadratic", n + m + np.arange(n))
    program = Program("reconciliation", [*blocks, Block("r", (n,), -INFINITY)], rows, [squares])
    return Claim(program, np.append(answer, errors), {"prices": np.append(paid, paid)})
