"""What is audited: each released mechanism on two neighbouring tables, tiny ones, made up.

Where a mechanism protects several kinds of neighbours there is a case of each. The tables, ε and the shares
of a budget are such that as much as possible of what noise hides can be seen in the release: one region or
one group where that keeps repairs from averaging noise away, counts far from 0, and most of the budget where
the neighbour moves something. For each method there is also a case of a count that is 0, and 1 on the other
table: noise that zeros do not get shows there. How many runs that takes: docs/privacy.md, and
`python -m benchmarks.audit`. What goes through the readers of tables is in `hierdp.audit.cases_read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from hierdp.audit.case import Case
from hierdp.audit.cases_read import read_cases
from hierdp.audit.events import Seen
from hierdp.counts.axes import Names
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.mechanisms import clustering, count_of_counts, group_size, range_query, top_down
from hierdp.mechanisms.group_size.repairs import METHODS as GROUP_SIZE
from hierdp.mechanisms.range_query.wavelet import coefficients
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release
from hierdp.tables import Flows, GroupSizes
from hierdp.tables.binning import Histogram

EPSILON = 2.0
"""With half the noise, 4 are lost: enough over 2 to be shown by few runs, and not so rare as to need many."""

LARGE = 3.0
"""ε where several noisy numbers must come out right at once, or noise be so small that a repair or a choice
hardly ever hides the change."""

ZCDP, DELTA = 4.08, 0.01
"""ρ is 0.9: with the δ of a real release, the ε that a ρ stands for is so far over what any event can show
that nothing would be audited."""


def _places(*names: str) -> Hierarchy:
    return Hierarchy.from_columns({"region": list(names)}, ["region"], root="all")


ONE, TWO, FOUR, EIGHT = (_places(*"ABCDEFGH"[:number]) for number in (1, 2, 4, 8))
FIRST_OF_SIZE_1 = "an entity joins a group of A, the first of size 1"

PLACES = {1: ONE, 2: TWO, 8: EIGHT}


def _group_sizes(*rows: list[int]) -> GroupSizes:
    places = PLACES[len(rows)]
    return GroupSizes(places, np.asarray(places.tree.sum_up(np.array(rows))))


def _size_runs(*rows: list[int]) -> SizeRuns:
    places = PLACES[len(rows)]
    return SizeRuns(places, Runs.from_dense(rows).summed_up(places.tree))


def _flows(changes: Sequence[tuple[int, int, int]] = (), usual: int = 20) -> Flows:
    """From four regions to two, and some cells of it changed by so many trips."""
    held = np.full((4, 2), usual)
    for origin, destination, more in changes:
        held[origin, destination] += more
    return Flows((FOUR, TWO), ("from", "to"), np.argwhere(held), held[held > 0])


def _towns(counts: list[int]) -> Histogram:
    return Histogram(np.array(counts), (Names.of("town", TWO),))


def _run_group_size(
    data: GroupSizes, noise: Noise, method: str, epsilon: float, backend: str | None = None
) -> Release:
    return group_size.group_size(data, epsilon, noise, method, SolverOptions(backend=backend))


def _run_count_of_counts(data: SizeRuns, noise: Noise, method: str, epsilon: float, **more: Any) -> Release:
    return count_of_counts.count_of_counts(data, epsilon, noise, method, **more)


def _run_top_down(data: Flows, noise: Noise, method: str, unit: Unit) -> Release:
    return top_down.top_down(data, EPSILON if method == "SH" else ZCDP, DELTA, noise, method, unit)


def _run_range_query(data: Histogram, noise: Noise, method: str, **more: Any) -> Release:
    return range_query.range_query(data, EPSILON, noise, method, **more)


def _run_clustering(data: Histogram, noise: Noise, method: str, epsilon: float, **more: Any) -> Release:
    return clustering.clustering(data, epsilon, noise, method, **more)


def _coefficients(seen: Seen, shape: tuple[int, ...]) -> Seen:
    """What the wavelet asks for, from released bins."""
    names = [f"count[{' '.join(map(str, place))}]" for place in np.ndindex(*shape)]
    asked: Any = coefficients(np.array([seen[name] for name in names]).reshape(shape))  # sums and differences
    return {f"coefficient[{i}]": float(x) for i, x in enumerate(asked.ravel().tolist())}


def _group_size_cases() -> Iterator[Case]:
    case = partial(Case, "group-size", by=("region", "size"))
    two = _group_sizes([9, 9], [9, 9]), _group_sizes([8, 10], [9, 9])
    few = _group_sizes([1, 1], [1, 0]), _group_sizes([0, 2], [1, 0])
    alone = _group_sizes([1, 0]), _group_sizes([0, 1])
    # In a square that large each noisy count shows by itself; among few, the sums that all must have hide it.
    held = [[9] * 8] * 8
    square = _group_sizes(*held), _group_sizes([8, 10, *held[0][2:]], *held[1:])
    # Of so many sizes without groups, none gets much of what the public number of groups takes back.
    empty = _group_sizes([20, *[0] * 15]), _group_sizes([19, 1, *[0] * 14])
    joins = "an entity joins a group of A"
    for method, about in GROUP_SIZE.items():
        run = partial(_run_group_size, method=method, epsilon=EPSILON if about.cumulative else LARGE)
        if about.cumulative:
            yield case(method, joins, two, run=run)
            yield case(method, "an entity joins the only group", alone, run=run)
        elif method == "M_dp^OP":  # a program for each of 200 cells: by default a constraint program
            yield case(method, f"{joins}; few groups", few, run=run, fewer=20)
            yield case(method, f"{joins}; backend fast", square, run=partial(run, backend="fast"), fewer=10)
        else:
            yield case(method, joins, square, run=run)
        if not about.cumulative:
            backend = "fast" if "backend" in about.takes else None
            run = partial(_run_group_size, method=method, epsilon=EPSILON, backend=backend)
            slow = method == "M_dp^OP"
            yield case(method, FIRST_OF_SIZE_1, empty, run=run, fewer=10 if slow else 1)


def _count_of_counts_cases() -> Iterator[Case]:
    case = partial(Case, "count-of-counts", by=("region", "size"))
    two = _size_runs([1, 0], [1, 0]), _size_runs([0, 1], [1, 0])
    alone = _size_runs([1, 0]), _size_runs([0, 1])
    for method in ("Hc", "Hc2", "Hg", "Hg1", "Hc x Hg", "bottom-up", "naive"):
        epsilon = LARGE if method == "naive" else EPSILON
        run = partial(_run_count_of_counts, method=method, epsilon=epsilon, max_size=1)
        yield case(method, "an entity joins a group of A", two, run=run)
        if method not in ("Hc x Hg", "bottom-up"):
            yield case(method, "an entity joins the only group", alone, run=run)
    empty = _size_runs([20, *[0] * 15]), _size_runs([19, 1, *[0] * 14])
    run = partial(_run_count_of_counts, method="naive", epsilon=EPSILON, max_size=15)
    yield case("naive", FIRST_OF_SIZE_1, empty, run=run)
    before = _size_runs([2, 1, 0])
    secret = "groups and largest size secret"
    changes = {
        f"an entity comes with a group of its own; {secret}": (_size_runs([2, 2, 0]), 2.7, 0.1),
        f"a group without entities comes; {secret}": (_size_runs([3, 1, 0]), 2.7, 0.1),
        f"an entity joins the largest group; {secret}": (_size_runs([2, 0, 1]), 0.1, 2.7),
    }
    for (change, (after, groups, size)), method in product(changes.items(), ("Hc", "Hg")):
        parts: dict[str, Any] = {"group_budget": groups, "size_budget": size}
        run = partial(_run_count_of_counts, method=method, epsilon=LARGE, **parts)
        yield case(method, change, (before, after), run=run)


def _top_down_cases() -> Iterator[Case]:
    case = partial(Case, "top-down", by=("level", "from", "to"))
    changes = [
        ("a trip A-A becomes one B-B", [(0, 0, -1), (1, 1, 1)], Unit()),
        ("a trip A-A is added", [(0, 0, 1)], Unit(bounded=False)),
        ("trips A-A, B-A become C-B, D-B", [(0, 0, -1), (1, 0, -1), (2, 1, 1), (3, 1, 1)], Unit(2)),
        ("a person comes with two trips A-A", [(0, 0, 2)], Unit(2, False, False)),
        ("a person comes with trips A-A, B-A", [(0, 0, 1), (1, 0, 1)], Unit(2, True, False)),
        ("two trips A-A become B-B", [(0, 0, -2), (1, 1, 2)], Unit(2, False, True)),
    ]
    for method, (change, moves, unit) in product(top_down.METHODS, changes):
        run = partial(_run_top_down, method=method, unit=unit)
        slow = method == "TDA_inf"  # a solver for each level
        yield case(method, change, (_flows(), _flows(moves)), run=run, fewer=4 if slow else 1)
    alone = _flows([(0, 1, 1)], usual=0), _flows([(1, 0, 1)], usual=0)
    run = partial(_run_top_down, method="SH", unit=Unit())
    yield case("SH", "the only trip A-B becomes the only B-A", alone, run=run)
    # Among eight, a count that is 0 takes little of what the public total takes back.
    first = Flows((EIGHT,), ("to",), np.array([[0]]), np.array([20]))
    both = Flows((EIGHT,), ("to",), np.array([[0], [1]]), np.array([19, 1]))
    for method in top_down.METHODS:
        if method != "SH":  # it takes no zeros: that a count is there is what its threshold hides
            run, slow = partial(_run_top_down, method=method, unit=Unit()), method == "TDA_inf"
            change = "a trip to A becomes the first one to B"
            yield case(method, change, (first, both), by=("level", "to"), run=run, fewer=4 if slow else 1)


def _range_query_cases() -> Iterator[Case]:
    change = "a person joins the first bin"
    line = Histogram.of([20, 20, 20, 20]), Histogram.of([21, 20, 20, 20])
    towns = _towns([20, 20]), _towns([21, 20])
    square = Histogram.of([[20, 20], [20, 20]]), Histogram.of([[21, 20], [20, 20]])
    no_line = Histogram.of([0, 0, 20, 20]), Histogram.of([1, 0, 20, 20])
    no_towns = _towns([0, 20]), _towns([1, 20])
    no_square = Histogram.of([[0, 20], [0, 20]]), Histogram.of([[1, 20], [0, 20]])
    case = partial(Case, "range-query")
    for method in range_query.METHODS:
        if method == "Wavelet":
            continue
        tree, quad = method.startswith("H_tree"), method == "Quadtree"
        names = ("town_first",) if tree else ("bin1_first", "bin2_first") if quad else ("bin_first",)
        run = partial(_run_range_query, method=method)
        tables, empty = (towns, no_towns) if tree else (square, no_square) if quad else (line, no_line)
        yield case(method, change, tables, ("level", *names), run)
        yield case(method, f"{change}, which is empty", empty, ("level", *names), run)
    run = partial(_run_range_query, method="H_2^c", budget="optimized", repair="whole")
    yield case("H_2^c", f"{change}; budget optimized, whole counts", line, ("level", "bin_first"), run)
    run = partial(_run_range_query, method="Wavelet")
    also = partial(_coefficients, shape=(4,))
    yield case("Wavelet", change, line, ("bin_first",), run, also=also)
    yield case("Wavelet", f"{change}, which is empty", no_line, ("bin_first",), run, also=also)
    by = ("bin1_first", "bin2_first")
    yield case("Wavelet", f"{change} of a square", square, by, run, also=partial(_coefficients, shape=(2, 2)))


def _clustering_cases() -> Iterator[Case]:
    first, empty = "a person joins the first bin", "a person joins the empty bin"
    told: list[tuple[str, str, list[int], list[int], float, dict[str, Any]]] = [
        *((m, first, [2, 0], [3, 0], LARGE, {}) for m in ("AHP", "AHP-greedy")),
        ("AHP-empirical", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        *((m, empty, [2, 0], [2, 1], LARGE, {}) for m in ("AHP", "AHP-greedy", "AHP-empirical")),
        ("SF", empty, [20, 0, 0], [20, 1, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", empty, [20, 0], [20, 1], EPSILON, {"share": 0.1}),
        ("NF", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("NF", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
        ("SF", first, [20, 0, 0], [21, 0, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        ("GS", first, [1, 1], [2, 1], LARGE, {"width": 1}),
        ("GS", empty, [0, 0], [1, 0], LARGE, {"width": 1}),
        ("Laplace", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("Laplace", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
    ]
    for method, change, before, after, epsilon, options in told:
        tables = Histogram.of(before), Histogram.of(after)
        run = partial(_run_clustering, method=method, epsilon=epsilon, **options)
        told_of = "; ".join([change, *(f"{name} {value:g}" for name, value in options.items())])
        yield Case("clustering", method, told_of, tables, ("bin",), run)


CASES = (
    *_group_size_cases(),
    *_count_of_counts_cases(),
    *_top_down_cases(),
    *_range_query_cases(),
    *_clustering_cases(),
    *read_cases(),
)
