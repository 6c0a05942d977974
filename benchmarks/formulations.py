"""Which formulation is best for which solver: the same integer problems stated in several ways.

The problems are steps of post-processing whose counts are at most `MOST`: a tree, a histogram and a chain
with squares, and a chain with absolute values. Each cost is stated as

- squares, as they are (``squares``), or over the reals (``squares, relaxed``);
- the lines through neighbouring whole numbers, those needed added after each solve (``lines as needed``), or
  all of them at first (``all lines``); absolute values are two lines (``epigraph``);
- a sum of unit steps with increasing costs, v = Σ y_k with 0 ≤ y_k ≤ 1 (``steps``): variables, not rows;
- one binary for each value of a count (``binaries``);
- a cost of the flow in a network (``network``).

Each answer is compared with the fast path's optimum, which its certificate proves. docs/solver-findings.md
describes the summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from hierdp.bench import metrics
from hierdp.verification.judge import KnownBounds, judge
from models import HierarchyQIP, Isotonic, Program, SimplexQP, Tree
from models.programs.reformulate import Piecewise, without_absolutes, without_tables
from models.programs.terms import Block, Rows, Term
from solvers import Solution, solve, worker
from solvers.backends.table import find
from solvers.effort import Effort
from solvers.formulation import Formulation
from solvers.probe import probe

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 20
"""The largest count."""

SIZES = (30, 300)

SECONDS = 2.0

KEY = ["problem", "cells", "form", "backend", "version", "seed", "time_limit"]

WHOLE = ("highs", "scip", "cvxpy:cplex", "cp-sat", "glpk_mi")
CONTINUOUS = tuple(name for name in WHOLE if name != "cp-sat")
SQUARES = ("scip", "cvxpy:cplex")
REAL = ("glop", "pdlp", "clarabel", "osqp", "scs", "qpsolvers:piqp", "qpsolvers:daqp")
"""Solvers of integer programs; those that take continuous variables, too; squares; solvers over the reals."""

SOLVERS = {
    "squares": SQUARES, "squares, relaxed": (*REAL[1:], "highs"), "lines as needed": (*WHOLE, *REAL),
    "all lines": (*WHOLE, *REAL), "epigraph": (*CONTINUOUS, *REAL), "steps": (*CONTINUOUS, *REAL),
    "binaries": WHOLE, "network": ("min-cost-flow",),
}  # fmt: skip
"""The solvers that get each form."""


@dataclass(frozen=True)
class Stated:
    """A program in some form: what a solver gets, and where the counts are in its answer."""

    program: Program
    piecewise: bool = False


def problems(size: int, seed: int) -> dict[str, Any]:
    """Models with about that many counts between 0 and `MOST`."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 8, size)
    noisy = true + np.rint(rng.laplace(0, 2, size)).astype(int)
    leaves, columns = max(2, size // 10 - 2), 10
    counts = rng.multinomial(3, [0.1] * columns, leaves)
    total = np.vstack([counts.sum(axis=0), counts])
    measured = total + np.rint(rng.laplace(0, 2, total.shape)).astype(int)
    tree = Tree([np.zeros(leaves, int)])
    return {
        "tree, squares": HierarchyQIP(tree, measured, int(counts.sum())),
        "one sum, squares": SimplexQP(noisy, int(true.sum())),
        "chain, squares": Isotonic(noisy + np.arange(size) * 8 // size, integer=True, lower=0),
        "chain, |x|": Isotonic(noisy + np.arange(size) * 8 // size, p=1, integer=True, lower=0),
    }


def bounded(program: Program, most: int) -> Program:
    """The program with its variables at most this large."""
    return replace(
        program, blocks=[replace(one, upper=np.minimum(one.upper, most)) for one in program.blocks]
    )


def forms(program: Program, most: int) -> Iterator[tuple[str, Stated]]:
    """The program in every form that suits it."""
    squares = program.has("quadratic")
    yield "network", Stated(program)
    if squares:
        yield "squares", Stated(program)
        yield "squares, relaxed", Stated(program.relaxed())
        yield "lines as needed", Stated(program, piecewise=True)
        yield "all lines", Stated(all_lines(program))
    else:
        yield "epigraph", Stated(without_absolutes(program))
    yield "steps", Stated(steps(program, most))
    yield "binaries", Stated(without_tables(tabled(program, most)))


def all_lines(program: Program) -> Program:
    """Squares as the rows of all lines between whole numbers within the bounds."""
    lines = Piecewise(program)
    rows = lines.lines_near(lines.lower, reach=int((lines.upper - lines.lower).max()))
    return replace(lines.base, rows=[*lines.base.rows, replace(rows, name="lines")])


def costs(program: Program, most: int) -> tuple[Any, list[Any]]:
    """The variables with costs, and the cost of each value 0, 1, …, most of each."""
    values = np.arange(most + 1)
    places, found = [], []
    for term in program.objective:
        weight, center = (np.broadcast_to(part, term.index.shape) for part in term.data)
        for i, w, c in zip(term.index.tolist(), weight.tolist(), center.tolist(), strict=True):
            places.append(i)
            off = values - c
            found.append(w * (off * off if term.kind == "quadratic" else np.abs(off)))
    return np.array(places), found


def steps(program: Program, most: int) -> Program:
    """Each count as a sum of unit steps with costs that increase, so that steps are taken in turn."""
    places, tables = costs(program, most)
    count = places.size * most
    which = np.repeat(np.arange(places.size), most)
    size = program.size
    rows = [replace(one, matrix=sp.csr_matrix(
        (one.matrix.data, one.matrix.indices, one.matrix.indptr), shape=(one.matrix.shape[0], size + count)
    )) for one in program.rows]  # fmt: skip
    entries = np.concatenate([np.ones(places.size), -np.ones(count)])
    across = np.concatenate([places, size + np.arange(count)])
    down = np.concatenate([np.arange(places.size), which])
    matrix = sp.csr_matrix((entries, (down, across)), shape=(places.size, size + count))
    none = np.zeros(places.size)
    each = Term("linear", size + np.arange(count), np.concatenate([np.diff(table) for table in tables]))
    return replace(
        program,
        blocks=[*program.blocks, Block("y", (count,), 0, 1)],
        rows=[*rows, Rows("steps", matrix, none, none)],
        objective=[each],
    )


def tabled(program: Program, most: int) -> Program:
    """Each cost as a table of its values."""
    places, tables = costs(program, most)
    return replace(program, objective=[Term("table", places, 1, np.zeros(places.size, int), tables)])


def measure(model: Any, stated: Stated, backend: str, seconds: float) -> dict[str, Any]:
    """Solve, and compare the counts of the answer with the proved optimum."""
    row = find(backend)
    whole = bool(stated.program.integer.any())
    relaxed = whole and not row.integer
    program = stated.program.relaxed() if relaxed and not stated.piecewise else stated.program
    formulation = Formulation(program, relaxed, stated.piecewise)
    answer, building, solving = worker.run(row, formulation, Effort(threads=1), seconds)
    return {
        "verdict": judged(model, answer, seconds), "seconds": building + solving,
        "cpu_seconds": answer.cpu_seconds, "variables": stated.program.size,
        "rows": int(stated.program.matrix.shape[0]), "message": answer.message[:200],
    }  # fmt: skip


def judged(model: Any, answer: Any, seconds: float) -> str:
    """The verdict on an answer; one that is not whole and feasible is that of a relaxation."""
    best = solve(model)
    status, cost = answer.status, None
    if answer.variables is not None:
        counts = np.asarray(answer.variables)[: model.program().size]
        near = np.rint(counts).astype(np.int64).reshape(np.shape(best.x))
        if np.abs(counts - near.ravel()).max() <= 1e-5 and not model.violations(near):
            cost = model.objective(near)
        elif status == "optimal":
            status = "relaxed"
    found = Solution("", "", status, objective=cost, solve_seconds=seconds)
    return judge(found, KnownBounds(best.objective, best.objective, optimal=True), time_limit=seconds)


def run(*, known: Any, seeds: int = 2) -> Iterator[dict[str, Any]]:
    """Measure what the file lacks."""
    done, warm = set(known[KEY].itertuples(index=False, name=None)), set()
    for seed, size in product(range(seeds), SIZES):
        for name, model in problems(size, seed).items():
            program = bounded(model.program(), MOST)
            for form, stated in forms(program, MOST):
                for backend in SOLVERS[form]:
                    key = (name, size, form, backend, find(backend).version, seed, SECONDS)
                    if key in done:
                        continue
                    if backend not in warm:
                        probe(find(backend))
                        warm.add(backend)
                    found = measure(model, stated, backend, SECONDS)
                    if found["cpu_seconds"] is None:  # its process has ended
                        warm.discard(backend)
                    yield {**dict(zip(KEY, key, strict=True)), **found}


def summary(rows: DataFrame) -> DataFrame:
    """For squares and absolute values, each size and solver: the mean CPU seconds of each form.

    Shifted geometric means, in which an unsolved problem costs the time limit; in brackets, how many were
    solved, if not all. Solvers that solve nothing in any form are left out.
    """
    import pandas as pd

    costs = rows["problem"].str.rpartition(", ")[2].replace("|x|", "absolute values")
    made = []
    for (cost, cells, backend), own in rows.groupby([costs, "cells", "backend"], sort=False):
        line = {"costs": cost, "cells": cells, "solver": backend}
        if not (own["verdict"] == "solved").any():
            continue
        for form, of in own.groupby("form"):
            solved = of["verdict"] == "solved"
            spent = metrics.shifted_geometric_mean(of["cpu_seconds"].where(solved, SECONDS).to_numpy(float))
            some = "" if solved.all() else f" ({int(solved.sum())} of {len(of)})"
            line[form] = f"{spent:.2g}{some}" if solved.any() else of["verdict"].mode()[0]
        made.append(line)
    columns = ["costs", "cells", "solver", *(form for form in SOLVERS if any(form in line for line in made))]
    found = pd.DataFrame(made, columns=columns).fillna("")
    return found.sort_values(["costs", "cells"], kind="stable", ascending=[False, True], ignore_index=True)
