"""A program's data as exact numbers: sides of blocks and rows, entries of the matrix, terms, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from models.arithmetic.arrays import Array, Flags, Ints
from models.programs.program import Program
from models.programs.terms import INFINITY, Term
from models.witnesses.scaled import Scaled, finite, scaled

Part = TypeVar("Part")


def _once(reader: Callable[..., Part]) -> Callable[..., Part]:
    """Keep what is read as long as the program: both its cost and its bound need it."""
    seen: WeakKeyDictionary[Program, dict[tuple[str, ...], Part]] = WeakKeyDictionary()

    @wraps(reader)
    def read(program: Program, *which: str) -> Part:
        kept = seen.setdefault(program, {})
        if which not in kept:
            kept[which] = reader(program, *which)
        return kept[which]

    return read


class Side(NamedTuple):
    """One side of all bounds: exact numbers, with 0 for missing ones, and which are missing."""

    at: Scaled
    open: Flags


@_once
def sides(program: Program, of: str, side: str) -> Side:
    """One side of the rows or of the blocks, exactly (`Program.bounds` are floats)."""
    parts = []
    for part in getattr(program, of):
        shape = part.shape if of == "blocks" else (part.matrix.shape[0],)
        parts.append(np.broadcast_to(getattr(part, side), shape).ravel())
    closed = [finite(part) for part in parts]
    wrong = INFINITY if side == "lower" else -INFINITY
    for part, inside in zip(parts, closed, strict=True):
        if (part[~inside] != -wrong).any():
            raise ValueError(f"a {side} side of the program's {of} is {wrong} or not a number")
    kept = [np.where(inside, part, 0) for part, inside in zip(parts, closed, strict=True)]
    return Side(scaled(kept), ~np.concatenate([np.empty(0, bool), *closed]))


@_once
def entries(program: Program) -> tuple[Ints, Ints, Scaled]:
    """The entries of ``program.matrix``: ``(rows, variables, coefficients)``."""
    matrices = [rows.matrix.tocoo() for rows in program.rows]
    found = scaled([rows.matrix.data if rows.exactly is None else rows.exactly for rows in program.rows])
    starts = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)])
    row = [matrix.row + start for matrix, start in zip(matrices, starts, strict=False)]
    none = np.empty(0, np.int64)
    return np.concatenate([none, *row]), np.concatenate([none, *(m.col for m in matrices)]), found


@_once
def terms(program: Program, kind: str) -> tuple[Ints, Scaled, Scaled]:
    """All terms of a kind put end to end: ``(variables, weights, centers)``."""
    chosen = [term for term in program.objective if term.kind == kind]
    index = np.concatenate([np.empty(0, np.int64), *(term.index for term in chosen)])
    parts: tuple[list[Array], list[Array]] = ([], [])
    for term in chosen:
        for part, values in zip(parts, term.data, strict=True):
            part.append(values)
    return index, scaled(parts[0]), scaled(parts[1])


def tabulated(program: Program) -> Iterator[Term]:
    """The terms that are tables."""
    return (term for term in program.objective if term.kind == "table")
