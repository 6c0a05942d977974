"""The benchmark's test sets: random instances of every model, and more steps of releases of real data.

All are drawn from fixed seeds: the same problems everywhere. Noise is simulated, and the data are public. The
small and the medium set are frozen: they are read from a file, with their optimal answers and proofs, so that
they are the same whatever becomes of generators, mechanisms and solvers.

Other problems are cut from releases of real data, the flights from New York in 2013, to some airports each
(`cuts`). Each is a step of a release as the model of that step states it: the counts are those of the
flights, and simulated noise is added to them. A cut has the airports of one time zone, and is not larger than
its set.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import models
from hierdp.bench.no_optimum import NoOptimum, infeasible, unbounded
from hierdp.data import AIRPORTS, FLIGHTS
from hierdp.record.release import Release
from hierdp.verification import matrix
from models import Isotonic, Program
from models.arithmetic.arrays import Array, Ints
from models.certificate import Witness
from models.instances import unpacked
from models.synthetic import noise
from solvers.backends.conic import is_conic

SETS = {"small": (10, 30), "medium": (300, 1_000), "large": (30_000, 300_000)}
"""Approximate number of cells of the random instances of each test set."""

CUTS = {"small": 8, "medium": 300}
"""Counts of the problems that are cut from real data (`hierdp.bench.problems`)."""

LIMITS = {"small": 100, "medium": 10_000}
"""A step of a release belongs to the first set whose limit its cells do not exceed; the rest go to the last
set."""

NO_STEPS = ("ChangePoints", "MinCostFlow", "Reconciliation", "WassersteinDistance")
"""Models without random instances here: the benchmark's problems were chosen when no release solved them."""

INSTANCES = 1
"""Random instances of each model and size."""

FROZEN = {which: Path(__file__).with_name(f"problems-2026.2-{which}.tar.gz") for which in ("small", "medium")}
"""Sets of the edition without data from elsewhere; `benchmarks/freeze.py` writes such a file."""

INDEX = "index.json"


class Stored(NamedTuple):
    """What a frozen edition has of a problem with an optimum.

    Attributes
    ----------
    answer, witness : optional
        Proved to be optimal; None of an open problem.
    best : str
        Of an open problem, the cost of the best answer that was known.
    file : bytes
        The problem's ``.npz``.
    """

    answer: Array | None
    witness: Witness | None
    best: str = ""
    file: bytes = b""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model to solve.

    Attributes
    ----------
    name : str
        Unique in the benchmark, and valid as a file name.
    model : Model or Program
        A bare program has no optimum.
    origin : "random", "real" or "ladder"
    form : str
        LP, QP, MILP or MIQP, of problems that may be too large to state as programs.
    none : NoOptimum, optional
        Of infeasible and unbounded problems, the proof that there is no optimum.
    stored : Stored, optional
        The answer, of a problem of a frozen edition.
    """

    name: str
    model: Any
    origin: str
    form: str = ""
    none: NoOptimum | None = None
    stored: Stored | None = None

    @property
    def kind(self) -> str:
        """The model, by name."""
        if self.none is not None:
            return self.none.status
        return type(self.model).__name__ + ("" if getattr(self.model, "integer", True) else " (relaxed)")


def problems(which: str, data: Path | None = None) -> list[Problem]:
    """A test set.

    Parameters
    ----------
    which : "small", "medium" or "large"
    data : path, optional
        Folder of data that are not included; see `hierdp reproduce`. Missing files are left out.

    Raises
    ------
    ValueError
        If there is no such set.
    """
    if which not in SETS:
        raise ValueError(f"no test set {which!r}; there are {', '.join(SETS)}")
    found = [one for one in frozen(which) if one.none is None]
    if not found or data is not None:
        found += _others(generated(which, data), found)
    return _in_turns(found)


def with_no_optimum(which: str, data: Path | None = None) -> list[Problem]:
    """A test set, followed by its infeasible and unbounded problems."""
    found = problems(which, data)
    none = [one for one in frozen(which) if one.none is not None]
    if not none or data is not None:
        none += _others(without_optimum(found), none)
    return [*found, *none]


def _others(found: Iterable[Problem], known: list[Problem]) -> list[Problem]:
    names = {one.name for one in known}
    return [one for one in found if one.name not in names]


def frozen(which: str) -> list[Problem]:
    """The problems of a frozen set; none if it is not frozen."""
    if which not in FROZEN:
        return []
    found = []
    model: Any
    with tarfile.open(FROZEN[which]) as tar:
        parts = {Path(one.name).name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    for one in json.loads(parts[INDEX]):
        file = parts[f"{one['name']}.npz"]
        with np.load(BytesIO(file), allow_pickle=False) as arrays:
            model, answer, witness = unpacked(arrays)
        if "status" in one:
            numbers = {name: [Fraction(text) for text in part] for name, part in one["numbers"].items()}
            none = NoOptimum(model, one["status"], numbers)
            found.append(Problem(one["name"], model, one["origin"], none=none))
        else:
            stored = Stored(answer, witness, one.get("best", ""), file)
            found.append(Problem(one["name"], model, one["origin"], stored=stored))
    return found


def generated(which: str, data: Path | None = None) -> list[Problem]:
    """A test set as it is drawn and released by this version."""
    cut = [Problem(f"flights-{name}", model, "real") for name, model in cuts(CUTS.get(which, 0))]
    found = [*_random(SETS[which]), *cut, *(one for one in _real(data) if _set_of(one.model) == which)]
    return _in_turns([*found, *_relaxed(found)])


def without_optimum(found: list[Problem]) -> Iterator[Problem]:
    """Infeasible and unbounded problems, made from the first steps of releases of each model."""
    from solvers import solve

    seen: set[tuple[str, str]] = set()
    for one in found:
        if one.origin != "real" or is_conic(one.model):
            continue
        for make in (infeasible, unbounded):
            if (make.__name__, one.kind) in seen or (answer := solve(one.model)).x is None:
                continue
            made = make(one.model, answer.x)
            if made is not None:
                seen.add((make.__name__, one.kind))
                yield Problem(f"{one.name}-{made.status}", made.program, "real", none=made)


def _relaxed(found: list[Problem]) -> Iterator[Problem]:
    """The first problem of each model that can also be over the reals: for LP and QP solvers."""
    seen: set[tuple[str, str]] = set()
    for one in found:
        model: Any = one.model
        whole = getattr(model, "integer", False) and getattr(model, "window", None) is None
        if whole and (one.origin, one.kind) not in seen:
            try:
                relaxed = replace(model, integer=False)
            except ValueError:  # some options are for whole numbers only; the next of its kind may do
                continue
            seen.add((one.origin, one.kind))
            yield Problem(f"{one.name}-relaxed", relaxed, one.origin)


def _in_turns(found: list[Problem]) -> list[Problem]:
    """One problem of each model first, then a second of each, …, so that a short run covers all models."""
    seen: dict[tuple[str, str], int] = {}
    turns = []
    for one in found:
        turn = seen[one.origin, one.kind] = seen.get((one.origin, one.kind), -1) + 1
        turns.append(turn)
    return [found[i] for i in sorted(range(len(found)), key=turns.__getitem__)]


def fresh(model: Any) -> Any:
    """A copy of the model without cached results of earlier solves; its data are not checked again."""
    other = object.__new__(type(model))
    for one in fields(model):
        object.__setattr__(other, one.name, getattr(model, one.name))
    return other


def program_of(model: Any) -> Program | None:
    """The model as a program; None if it is not one, or is too large to state."""
    if is_conic(model):
        return None
    try:
        program: Program = model.program()
    except ValueError:
        return None
    return program


def _random(sizes: tuple[int, ...]) -> Iterator[Problem]:
    steps = [name for name in matrix.kinds() if name not in NO_STEPS]
    named = matrix.instances(steps, sizes, INSTANCES, 0)
    for name, model in named:
        yield Problem(f"{type(model).__name__}-{_plain(name)}", model, "random")


def _set_of(model: Any) -> str:
    cells = int(np.prod(np.shape(getattr(model, "noisy", ())))) or model.program().size
    return next((name for name, limit in LIMITS.items() if cells <= limit), "large")


def _real(data: Path | None) -> Iterator[Problem]:
    """The first steps of each kind, from the demo's releases, and from the papers' data if available."""
    from hierdp import demo
    from hierdp.mechanisms.group_size import group_size
    from hierdp.mechanisms.top_down import top_down
    from hierdp.privacy.conversion import PAPERS  # so that results for an instance remain comparable
    from hierdp.privacy.noise import SimulatedNoise

    sizes, flows = demo.read()
    releases = [
        ("flights-sizes", group_size(sizes, 1.0, SimulatedNoise(1))),
        ("flights-sizes-H", group_size(sizes, 1.0, SimulatedNoise(2), "M_H^dp")),
        ("flights-InfTDA", top_down(flows, 1.0, 1e-8, SimulatedNoise(3), conversion=PAPERS)),
        ("flights-TDA", top_down(flows, 1.0, 1e-8, SimulatedNoise(4), "TDA", conversion=PAPERS)),
    ]
    if data is not None and (data / "taxi").is_dir():
        from hierdp.data.taxi import taxi

        releases.append(("taxi-sizes", group_size(taxi(data / "taxi", 1_000), 1.0, SimulatedNoise(5))))
    if data is not None and (data / "us-commuting-2009-2013.parquet").is_file():
        from hierdp.data.commuting import commuting

        flows = commuting(data / "us-commuting-2009-2013.parquet")
        releases.append(
            ("commuting-InfTDA", top_down(flows, 1.0, 1e-8, SimulatedNoise(6), conversion=PAPERS))
        )
    if data is not None and (data / "us-precincts-2020.parquet").is_file():
        releases.append(("precincts-tabulation", _precincts(data / "us-precincts-2020.parquet")))
    for name, release in releases:
        kept: dict[type, int] = {}
        for step in release.steps:
            kind = type(step.model)
            for part in step.parts:
                kept[kind] = kept.get(kind, 0) + 1
                if kept[kind] <= (3 if kind is Isotonic else 8):
                    yield Problem(f"{name}-{kind.__name__}-{kept[kind]}", part()[1], "real")


def _precincts(path: Path) -> Release:
    """Persons of Delaware's counties and precincts, by eight groups and two ages, in 2020."""
    import pandas as pd

    from hierdp.mechanisms.tabulation.mechanism import tabulate
    from hierdp.mechanisms.tabulation.plan import plan_of
    from hierdp.privacy.noise import SimulatedNoise
    from hierdp.tables import Axis
    from hierdp.tables.tabulated import cross_table

    rows = pd.read_parquet(path, filters=[("state", "==", "DE")])
    plan = plan_of({"attributes": {name: sorted(rows[name].unique()) for name in ("group", "age")}})
    places = Axis.of(["county", "precinct"])
    return tabulate(
        cross_table(rows, axis=places, attributes=plan.attributes, count="persons"),
        plan, 2.0, 1e-10, SimulatedNoise(7),
    )  # fmt: skip


def _plain(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).split())


ZONES = ("New_York", "Chicago", "Los_Angeles", "Denver")
"""Time zones of airports, from which the cuts are taken; their names end so."""

SCALE = 10.0
"""Of the noise: two-sided, as for a sensitivity of 1 and ε = 0.1."""

WIDE = 24
"""Bins of the cuts whose programs have a variable for each run of bins."""


def cuts(cells: int) -> Iterator[tuple[str, models.Model]]:
    """The problems of about so many counts, by name; none for 0 counts."""
    for number, zone in enumerate(ZONES if cells else ()):
        steps = _steps(*_cut(zone, cells), np.random.default_rng([cells, number]))
        yield from ((f"{zone}-{name}", model) for name, model in steps)


def _cut(zone: str, cells: int) -> tuple[Ints, Ints]:
    """The flights to some airports of a time zone, by airport or by aircraft and airport; their airports."""
    import pandas as pd

    flights, airports = pd.read_parquet(FLIGHTS), pd.read_parquet(AIRPORTS)
    inside = airports[airports["zone"].str.endswith(zone)]["airport"]
    here = flights[flights["destination"].isin(inside)]
    finest = here["destination"].nunique() < cells  # then aircraft are distinguished
    keys = ["destination", "aircraft"] if finest else ["destination"]
    found = here.groupby(keys)["flights"].sum().sort_index()
    chosen = found.iloc[np.linspace(0, len(found) - 1, min(cells, len(found))).astype(int)]
    named = chosen.index.get_level_values("destination")
    return chosen.to_numpy(np.int64), np.unique(named, return_inverse=True)[1].astype(np.int64)


def _steps(counts: Ints, airport: Ints, rng: np.random.Generator) -> Iterator[tuple[str, models.Model]]:
    """A step of each model, of the same flights."""
    total = int(counts.sum())
    tree = models.Tree([np.zeros(int(airport.max()) + 1, np.int64), airport])
    true: Any = tree.sum_up(counts)
    noisy, whole = counts + noise(rng, counts.shape, SCALE), true + noise(rng, true.shape, SCALE)
    yield "Chebyshev", models.Chebyshev(noisy, total)
    yield "FixedSum-L1", models.FixedSum(noisy, total, p=1)
    yield "FixedSum", models.FixedSum(noisy, total)
    yield "SparsestChebyshev", models.SparsestChebyshev(noisy, total)
    shares = [Fraction(int(count) * 64, max(total, 1)) for count in counts]
    yield "ControlledRounding", models.ControlledRounding(np.array(shares, dtype=object), 64)
    yield (
        "Isotonic-L1",
        models.Isotonic(np.cumsum(counts) + noise(rng, counts.shape, SCALE), p=1, integer=True),
    )
    yield "Isotonic", models.Isotonic(np.sort(counts) + noise(rng, counts.shape, SCALE), integer=True)
    yield "HierarchyQIP", models.HierarchyQIP(tree, whole[:, None], total)
    yield "TreeChebyshev", models.TreeChebyshev(tree, whole, total)
    yield "TreeAbsolute", models.TreeAbsolute(tree, whole)
    variance = np.where(np.arange(true.size) < 1, 1, 4)
    yield "ConstrainedInference", models.ConstrainedInference(tree, whole, variance)
    yield "NonNegativeInference", models.NonNegativeInference(tree, whole, integer=True)
    sizes = np.bincount(np.minimum(counts, 5), minlength=6)
    groups = np.array([np.bincount(np.minimum(counts[airport == a], 5), minlength=6)
                       for a in range(int(airport.max()) + 1)])  # fmt: skip
    flat = models.Tree([np.zeros(len(groups), np.int64)])
    by_size = np.vstack([sizes, groups])
    drawn: Any = noise(rng, by_size.shape, 2.0)
    by_size = np.cumsum(by_size, axis=1) + drawn
    yield "CumulativeQIP", models.CumulativeQIP(flat, by_size, int(counts.size))
    yield "SimplexQP", models.SimplexQP(sizes + noise(rng, sizes.shape, 2.0), int(counts.size))
    few = noisy[:WIDE]
    yield "Clustering", models.Clustering(np.sort(few), Fraction(int(SCALE)))
    yield "Segmentation", models.Segmentation(few, min(4, few.size))
    two = np.sort(np.vstack([noisy, counts + noise(rng, counts.shape, SCALE)]), axis=1)
    yield "Merging", models.Merging(np.maximum(two, 0), np.broadcast_to([[1], [3]], two.shape), integer=True)
    table = [np.abs(np.arange(9) - max(0, int(one) % 9)) for one in few[:12]]
    yield "CostTable", models.CostTable(table, min(30, 4 * len(table)))
    held = [np.sort(np.maximum(noisy[airport == a], 0))[:6] for a in range(2)]
    runs = [tuple(part.astype(np.int64) for part in np.unique(one, return_counts=True)) for one in held]
    above = np.sort(np.maximum(np.concatenate(held) + noise(rng, sum(map(len, held)), 2.0), 0))
    whole_runs = tuple(part.astype(np.int64) for part in np.unique(above, return_counts=True))
    yield "GroupMatching", models.GroupMatching(whole_runs, runs)
