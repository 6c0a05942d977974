"""Exact reformulations: the same optimum, in a form that more solvers accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
import scipy

from models.arithmetic.arrays import Floats, Ints
from models.programs.terms import INFINITY, Block, Formulation, Rows, Term

P = TypeVar("P", bound=Formulation)


def _with_block(program: Formulation, block: Block) -> tuple[list[Block], list[Rows], Ints]:
    """The program's blocks and rows, widened by a block of auxiliary variables; and their positions."""
    wide = [
        replace(rows, matrix=scipy.sparse.csr_matrix(
            (rows.matrix.data, rows.matrix.indices, rows.matrix.indptr),
            shape=(rows.matrix.shape[0], program.size + block.size),
        ))
        for rows in program.rows
    ]  # fmt: skip
    return [*program.blocks, block], wide, program.size + np.arange(block.size)


def without_absolutes(program: P) -> P:
    """Each Σ w·|v − c| as Σ w·t with t ≥ v − c and t ≥ c − v (its epigraph)."""
    for position, term in enumerate(program.objective):
        if term.kind != "absolute":
            continue
        weight, center = term.data
        count = term.index.size
        name = f"t{position}"
        blocks, rows, at = _with_block(program, Block(name, (count,)))
        each, unit = np.arange(count), scipy.sparse.csr_matrix
        t = unit((np.ones(count), (each, at)), shape=(count, program.size + count))
        v = unit((np.ones(count), (each, term.index)), shape=(count, program.size + count))
        rows.append(Rows(f"{name} above", scipy.sparse.csr_matrix(t - v), -center, np.full(count, INFINITY)))
        rows.append(Rows(f"{name} below", scipy.sparse.csr_matrix(t + v), center, np.full(count, INFINITY)))
        terms = list(program.objective)
        terms[position] = Term("linear", at, weight)
        return without_absolutes(replace(program, blocks=blocks, rows=rows, objective=terms))
    return program


def without_tables(program: P) -> P:
    """Each τ(v) by choosing one of its values: v = Σ k·z_k, cost Σ τ(k)·z_k, Σ z_k = 1, z binary."""
    for position, term in enumerate(program.objective):
        if term.kind != "table":
            continue
        lengths = np.array([table.size for table in term.tables])
        which = np.repeat(np.arange(lengths.size), lengths)
        start = np.asarray(term.data[1])
        value = np.arange(which.size) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)
        name = f"z{position}"
        blocks, rows, at = _with_block(program, Block(name, (which.size,), 0, 1, True))
        shape, ones = (lengths.size, program.size + which.size), np.ones(which.size)
        each = np.arange(lengths.size)
        one = scipy.sparse.csr_matrix((ones, (which, at)), shape=shape)
        chosen = scipy.sparse.csr_matrix((value, (which, at)), shape=shape)
        itself = scipy.sparse.csr_matrix((np.ones(each.size), (each, term.index)), shape=shape)
        rows.append(Rows(f"{name} one", one, np.ones(each.size), np.ones(each.size)))
        rows.append(
            Rows(
                f"{name} value",
                scipy.sparse.csr_matrix(itself - chosen),
                np.zeros(each.size),
                np.zeros(each.size),
            )
        )
        terms = list(program.objective)
        terms[position] = Term("linear", at, np.concatenate(term.tables))
        return without_tables(replace(program, blocks=blocks, rows=rows, objective=terms))
    return program


class Piecewise(Generic[P]):
    """Convex quadratics of integer variables as the piecewise-linear functions through their integers.

    A quadratic w(v − c)² of an integer v equals, at every integer, the maximum of the lines through its
    neighbouring values at k and k + 1. Each line is a row ``t ≥ f(k) + (f(k+1) − f(k))·(v − k)``. Any subset
    of these rows is a relaxation, so its optimum is a lower bound; if ``t = f(v)`` for all v, it is the
    optimum. Starting with a few rows and adding those that an answer violates is therefore exact.
    """

    def __init__(self, program: P) -> None:
        terms = [t for t in program.objective if t.kind == "quadratic"]
        self.index = np.concatenate([t.index for t in terms])
        self.weight = np.concatenate([np.asarray(t.data[0], float) for t in terms])
        self.center = np.concatenate([np.asarray(t.data[1], float) for t in terms])
        lower, upper = program.bounds
        self.lower, self.upper = np.ceil(lower[self.index]), np.floor(upper[self.index])
        # Whole data have whole costs. If these are bounded integer variables, integer-only solvers accept the
        # program.
        data = np.concatenate([self.weight, self.center])
        most = np.maximum(self._quadratic(self.lower), self._quadratic(self.upper))
        whole = bool(np.all(data == np.rint(data)) and np.isfinite(most).all())
        block = Block("cost", (self.index.size,), 0, most if whole else INFINITY, whole)
        blocks, rows, self.cost = _with_block(program, block)
        rest = [t for t in program.objective if t.kind != "quadratic"]
        self.base = replace(program, blocks=blocks, rows=rows, objective=[*rest, Term("linear", self.cost)])
        self._known: set[tuple[int, int]] = set()

    def value(self, at: Floats) -> Floats:
        """The piecewise-linear costs at (possibly fractional) points; equal to the quadratics at integers."""
        k = np.floor(at + 1e-9)
        return self._quadratic(k) + self._slope(k) * (at - k)

    def _quadratic(self, k: Floats) -> Floats:
        return np.asarray(self.weight * (k - self.center) ** 2)

    def _slope(self, k: Floats) -> Floats:
        return np.asarray(self.weight * (2 * (k - self.center) + 1))

    def lines_near(self, points: Floats, reach: int, only: Ints | None = None) -> Rows:
        """New rows for the lines at ``floor(point) - reach … floor(point) + reach`` inside the domain."""
        chosen = np.arange(self.index.size) if only is None else only
        base = np.clip(np.floor(points + 1e-9), self.lower, np.maximum(self.lower, self.upper - 1))[chosen]
        which, places = [], []
        for step in range(-reach, reach + 1):
            k = base + step
            inside = (k >= self.lower[chosen]) & (k < np.maximum(self.upper[chosen], self.lower[chosen] + 1))
            which.append(chosen[inside])
            places.append(k[inside])
        pairs = zip(np.concatenate(which).tolist(), np.concatenate(places).astype(int).tolist(), strict=True)
        new = sorted(pair for pair in set(pairs) if pair not in self._known)
        self._known.update(new)
        return self._rows(new)

    def _rows(self, pairs: list[tuple[int, int]]) -> Rows:
        which = np.array([p[0] for p in pairs], dtype=np.int64)
        k = np.array([p[1] for p in pairs], dtype=float)
        weight, center = self.weight[which], self.center[which]
        slope = weight * (2 * (k - center) + 1)
        intercept = weight * (k - center) ** 2 - slope * k
        each = np.arange(len(pairs))
        matrix = scipy.sparse.csr_matrix(
            (
                np.concatenate([np.ones(len(pairs)), -slope]),
                (np.concatenate([each, each]), np.concatenate([self.cost[which], self.index[which]])),
            ),
            shape=(len(pairs), self.base.size),
        )
        return Rows("lines", matrix, intercept, np.full(len(pairs), INFINITY))
