"""Prices for any program: a backend's dual values, rounded to fractions.

Nothing here can make the bound wrong, as `models.lagrangian_bound` computes it from the prices, exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from models import Certificate, Program, lagrangian_bound, lagrangian_certificate
from models.arithmetic.arrays import Array, Floats
from models.programs.reformulate import Piecewise, without_absolutes, without_tables
from models.programs.terms import Term
from solvers import worker
from solvers.backends.table import Backend, find
from solvers.formulation import refine
from solvers.solution import Answer, Effort

UNITS = (1, 2, 12, 2**20)
"""Denominators of the fractions to which prices are rounded, as optimal ones are often simple."""

SIMPLEST_UP_TO = 20_000
"""The number of rows up to which prices are also rounded to simple fractions, in a Python loop."""


def prove_program(
    program: Program, variables: Any, backend: str | Backend = "highs", time_limit: float | None = None
) -> Certificate:
    """Certify any answer to a program.

    A backend solves the program without integrality. Its dual values are prices of the rows, and any prices
    prove a bound (see `models.lagrangian_bound`). Several roundings are tried, and the best bound is used.
    Over whole numbers a gap may remain even for an optimal answer, as prices cannot prove more than the
    Lagrangian bound.

    Parameters
    ----------
    program : Program
    variables : array, shape (program.size,)
        All variables of the program; whole ones as integers, others best as fractions or floats.
    backend : str or Backend
        One that reports dual values: ``highs``, ``glop``, ``pdlp``, ``clarabel``, ``scs``, ``osqp`` or
        ``gurobi``. With any other, or one that fails, the bound is that of the prices 0.
    time_limit : float, optional
        Seconds for the backend.

    Returns
    -------
    Certificate
        Its witness holds the prices, to be checked again by `models.lagrangian_certificate`.

    Raises
    ------
    ValueError
        If there is no such backend, or the number of variables does not match the program.

    Examples
    --------
    >>> from models import SimplexQP
    >>> program = SimplexQP([5, 3, -2], total=4).program()
    >>> proof = prove_program(program, [3, 1, 0])
    >>> proof.optimal, proof.objective
    (True, 12)
    >>> prove_program(program, [4, 0, 0]).gap
    2
    """
    proof = lagrangian_certificate(program, variables, np.zeros(program.matrix.shape[0], np.int64))
    if proof.bound is None or proof.optimal:
        return proof
    best: Any = proof.bound
    prices: Array | None = None
    for tried in likely_prices(program, backend, time_limit):
        bound: Any = lagrangian_bound(program, tried)
        if bound > best:
            best, prices = bound, tried
        if best >= proof.objective:
            break
    return proof if prices is None else lagrangian_certificate(program, variables, prices)


def likely_prices(
    program: Program, backend: str | Backend = "highs", time_limit: float | None = None
) -> Iterator[Array]:
    """A backend's prices of a program's rows, rounded in several ways; none if it reports none."""
    answer, _, _ = worker.run(find(backend), DualPlan(program), Effort(), time_limit)
    if answer.prices is not None and np.isfinite(answer.prices).all():
        yield from _roundings(program, answer.prices)


@dataclass(frozen=True, eq=False)
class DualPlan:
    """Lets a backend find prices of a program's rows, as a `Formulation` lets it find an answer.

    The backend gets the program without integrality. If all squares are of whole variables, they are replaced
    by lines through their values at whole numbers, so that the prices bound the optimum over whole numbers.
    """

    program: Program

    def open(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        """Build the relaxation in the backend's form; returns a function that solves it in a time limit."""
        program = without_absolutes(_bent_at_whole_numbers(without_tables(self.program)))
        rows = self.program.matrix.shape[0]
        if program.has("quadratic", integer=True) and not program.has("quadratic", integer=False):
            run = _by_lines(program, backend, effort)
        else:
            run = backend.open(program.relaxed(), effort).run

        def cut(seconds: float | None) -> Answer:
            answer = run(seconds)
            prices = None if answer.prices is None else np.asarray(answer.prices[:rows], float)
            return Answer(answer.status, message=answer.message, prices=prices)

        return cut


def _bent_at_whole_numbers(program: Program) -> Program:
    """Absolute terms of whole variables, bent at whole numbers only: the same costs, a tighter relaxation.

    With k = ⌊c⌋ and f = c − k, ``|v − c| = (1 − f)·|v − k| + f·|v − k − 1|`` for every whole v.
    """
    terms = []
    for term in program.objective:
        if term.kind != "absolute":
            terms.append(term)
            continue
        weight, center = (np.asarray(part, float) for part in term.data)
        below = np.where(program.integer[term.index], np.floor(center), center)
        part = center - below
        terms.append(Term("absolute", term.index, weight * (1 - part), below))
        above = np.flatnonzero(part > 0)
        terms.append(Term("absolute", term.index[above], (weight * part)[above], below[above] + 1))
    return replace(program, objective=terms)


def _by_lines(program: Program, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
    lines = Piecewise(program)
    batches = [lines.lines_near(lines.center, reach=8)]
    session = backend.open(lines.base.relaxed(), effort)
    session.add_rows(batches[0])

    def run(seconds: float | None) -> Answer:
        return refine(lines, session, batches, None if seconds is None else time.perf_counter() + seconds)

    return run


def _roundings(program: Program, prices: Floats) -> Iterator[Array]:
    """Prices near these that may prove more: rounded, or made a little smaller."""
    lower, upper = program.row_bounds
    unpaid = ((prices > 0) & np.isinf(lower)) | ((prices < 0) & np.isinf(upper))
    prices = np.where(unpaid, 0.0, prices)
    if np.abs(prices).max(initial=0.0) < 2.0**40:
        for unit in UNITS:
            whole = np.rint(prices * unit).astype(np.int64).tolist()
            yield np.array(whole) if unit == 1 else _objects([Fraction(p, unit) for p in whole])
    yield prices
    yield prices * _share(program, prices)
    if prices.size <= SIMPLEST_UP_TO:
        yield _objects([Fraction(p).limit_denominator(1000) for p in prices.tolist()])


def _objects(values: list[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _share(program: Program, prices: Floats) -> float:
    """A factor for the prices, at most 1, with which no unbounded variable's cost falls without end."""
    slope, bend = np.zeros(program.size), np.zeros(program.size)
    curved = np.zeros(program.size, bool)
    for term in program.objective:
        weight = np.asarray(term.data[0], float)
        if term.kind == "linear":
            np.add.at(slope, term.index, weight)
        elif term.kind == "absolute":
            np.add.at(bend, term.index, weight)
        else:
            curved[term.index] = True
    charge, share = program.matrix.T @ prices, 1.0
    for side, sign in zip(program.bounds, (-1, 1), strict=True):
        most, charged = np.maximum(bend + sign * slope, 0), sign * charge
        falls = np.isinf(side) & ~curved & (charged > most)
        share = min(share, np.min(most[falls] / charged[falls], initial=1.0))
    return share * (1 - 1e-12)
