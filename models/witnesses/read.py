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
from models.witnesses.scaled import Scaled, finite, numbers, scaled

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
        given = np.broadcast_to(np.asarray(getattr(part, side)), shape).ravel()
        parts.append(numbers(f"the {side} side of {part.name}", given, given.shape))
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
    found = scaled([numbers("the matrix", matrix.data, matrix.data.shape) for matrix in matrices])
    starts = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)])
    row = [matrix.row + start for matrix, start in zip(matrices, starts, strict=False)]
    none = np.empty(0, np.int64)
    return np.concatenate([none, *row]), np.concatenate([none, *(m.col for m in matrices)]), found


@_once
def terms(program: Program, kind: str) -> tuple[Ints, Scaled, Scaled]:
    """All terms of a kind put end to end: ``(variables, weights, centers)``."""
    chosen = [term for term in program.objective if term.kind == kind]
    index = np.concatenate([np.empty(0, np.int64), *(np.asarray(term.index) for term in chosen)])
    parts: tuple[list[Array], list[Array]] = ([], [])
    for term in chosen:
        for part, given, name in zip(parts, term.data, ("weight", "center"), strict=True):
            part.append(numbers(f"the {name} of a {kind} term", given, np.shape(term.index)))
            if not finite(part[-1]).all():
                raise ValueError(f"the {name} of a {kind} term is not finite")
    return index, scaled(parts[0]), scaled(parts[1])


def tabulated(program: Program) -> Iterator[Term]:
    """The terms that are tables."""
    return (term for term in program.objective if term.kind == "table")


def tables(term: Term) -> list[Array]:
    """The tables of a term, checked."""
    found = [numbers("a table", table, np.shape(table)) for table in term.tables]
    if not all(table.ndim == 1 and finite(table).all() for table in found):
        raise ValueError("a table must be a row of finite costs")
    return found
