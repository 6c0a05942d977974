"""Why there is no table: the constraints that contradict each other, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.passes import Family
from hierdp.record.step import NotSolved
from models import JointTables, Program
from models.programs.terms import INFINITY, Block, Rows

if TYPE_CHECKING:
    from solvers.conflict import Constraint

MOST = 8
"""How many constraints a message shows."""

SECONDS = 60.0
"""How long HiGHS may search for whole tables that satisfy all constraints."""

Named = tuple[Sequence[str], Sequence[str]]
"""The names of the children or nodes, and of the sums."""


class NoTables(NotSolved):
    """A step has no answer, perhaps because constraints contradict each other."""

    def __init__(self, failure: Exception, name: str, given: Family | JointTables, named: Named) -> None:
        super().__init__(getattr(failure, "status", "error"), str(failure))
        self.failure, self.name, self.given, self.named = failure, name, given, named

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, because it may be raised in another process."""
        return type(self), (self.failure, self.name, self.given, self.named)


@contextmanager
def about(name: str, given: Family | JointTables, named: Named) -> Iterator[None]:
    """Say which constraints a step that has no answer is about, by `NoTables`."""
    try:
        yield
    except InputError:
        raise
    except (NotSolved, ValueError) as failure:
        raise NoTables(failure, name, given, named) from failure


@contextmanager
def explaining() -> Iterator[None]:
    """Search for the reason of `NoTables`.

    Raises `InputError` if constraints contradict each other; the message lists some that do, as few as
    possible; `NotSolved`, `ValueError` if a step has no answer for another reason.
    """
    try:
        yield
    except NoTables as none:
        found = [] if none.status == "time_limit" else _found(none.given)
        if not found:
            raise none.failure from None
        raise _error(none.name, found, none.given, none.named) from none


def refuse_contradictions(name: str, given: Family | JointTables, named: Named) -> None:
    """Refuse constraints that no whole tables satisfy, before there are noisy answers; see `NoTables`.

    Raises `InputError` if there are no such tables, or HiGHS does not find out.
    """
    from solvers import solve

    program = _alone(given) if isinstance(given, JointTables) else program_of(given)
    x, *others = program.blocks
    found = solve(replace(program, blocks=[replace(x, integer=True), *others]), "highs", SECONDS)
    if found.status == "optimal":
        return
    if found.status == "infeasible":
        raise _error(name, _found(given), given, named)
    raise InputError(
        f"{name}: HiGHS did not find out whether tables of counts satisfy all constraints ({found.status}; "
        f"{found.message}). Use fewer bounds or invariants. Nothing is released"
    )


def _error(name: str, found: Sequence[Constraint], given: Family | JointTables, named: Named) -> InputError:
    reasons = list(dict.fromkeys(filter(None, (_words(one, given, *named) for one in found))))
    more = [f"{len(reasons) - MOST} more"] if len(reasons) > MOST else []
    which = "; ".join(reasons[:MOST] + more) or "fractions satisfy them, whole numbers do not"
    return InputError(
        f"{name}: no tables of counts satisfy all constraints; these contradict each other: {which}. Change "
        "or leave out one of them. Nothing is released"
    )


def _found(given: Family | JointTables) -> list[Constraint]:
    """The conflict; none if real numbers satisfy the constraints, or the search fails."""
    from solvers.conflict import conflict
    from solvers.solution import NoAnswer

    try:
        return conflict(_alone(given) if isinstance(given, JointTables) else program_of(given))
    except NoAnswer:
        return []


def _alone(model: JointTables) -> Program:
    """A model's constraints alone, without the bounds that they imply for each cell."""
    program = model.program()
    zeros = np.zeros(model.workload.cells, bool) if model.zeros is None else np.asarray(model.zeros)
    x = Block("x", model.shape, 0, np.broadcast_to(np.where(zeros, 0.0, INFINITY), model.shape))
    others = Block("answer", program.blocks[1].shape, -INFINITY, INFINITY)
    return replace(program, blocks=[x, others], rows=[r for r in program.rows if r.name != "queries"])


def program_of(family: Family) -> Program:
    """A family's constraints alone, over the cells of its children."""
    children, cells = len(family.noisy), family.workload.cells
    upper = np.broadcast_to(np.where(family.zeros, 0.0, INFINITY), (children, cells))
    each, kron = scipy.sparse.identity, scipy.sparse.kron
    rows = []
    if family.parent is not None:
        sums = kron(np.ones((1, children)), each(cells), "csr")
        rows.append(Rows("parent", sums, family.parent, family.parent))
    if family.sums is not None:
        sums = kron(each(children), family.sums.matrix, "csr")
        rows.append(Rows("sums", sums, family.lower.ravel(), family.upper.ravel()))
    return Program("constraints", [Block("x", (children, cells), 0, upper)], rows, [])


def _words(one: Constraint, given: Family | JointTables, regions: Sequence[str], sums: Sequence[str]) -> str:
    """A constraint in words; empty for counts of at least 0."""
    shape = given.workload.shape

    def cell(at: int) -> str:
        return f"cell {tuple(map(int, np.unravel_index(at, shape)))}"

    if one.name == "sums":
        region, at = divmod(one.place[0], len(sums))
        return f"{regions[region]}: {sums[at]} {one.sides}"
    if one.is_row:
        return f"the regions add up in {cell(one.place[0] % given.workload.cells)}"
    if one.upper < INFINITY and one.name == "x":
        return f"{regions[one.place[0]]}: {cell(one.place[1])} {one.sides}"
    return ""
