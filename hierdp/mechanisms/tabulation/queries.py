"""A plan's queries, structural zeros and bounds, in the cells of a histogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from hierdp.errors import InputError, listed
from hierdp.mechanisms.tabulation.plan import TOTAL, Bound, Cells, TabulationPlan, end_of
from models import Workload
from models.arithmetic.arrays import Flags, Ints

MOST_CELLS = 2**20
"""The largest number of cells of a histogram."""


@dataclass(frozen=True)
class Variable:
    """An attribute, or a recode of one: the coarse category of each of its categories.

    - axis: the attribute's position.
    - codes, int64 array, shape (categories,)
    - labels: the names of the coarse categories 0, 1, …
    """

    axis: int
    codes: Ints
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Queries:
    """The cells of a plan whose attributes all have categories.

    Raises `InputError` if a recode, a structural zero or a bound names a category that is not in the list; a
    category has no coarser one; two queries are the same; there are too many cells; or no table can keep a
    bound.

    >>> from hierdp.mechanisms.tabulation.plan import plan_of
    >>> queries = Queries(plan_of({"attributes": {"group": ["a", "b", "c"], "age": ["old", "young"]}},
    ...                           zeros=["group=c,age=young"]))
    >>> queries.workload, queries.zeros.tolist()
    (Workload(shape (3, 2), 4 queries, 12 answers), [False, False, False, False, False, True])
    >>> queries.labels("detailed")[:2]
    ['a, old', 'a, young']
    """

    plan: TabulationPlan

    def __post_init__(self) -> None:
        cells = 1
        for name, categories in self.plan.attributes.items():
            cells *= len(categories or ())
            if cells > MOST_CELLS:
                raise InputError(
                    f"the attributes up to {name!r} have {cells:,} combinations of categories; at most "
                    f"{MOST_CELLS:,} are allowed: use fewer attributes or coarser categories"
                )
        seen: dict[bytes, str] = {}
        for query in self.plan.queries:
            key = b"|".join(part.tobytes() for part in self.recodes(query))
            if key in seen:
                raise InputError(f"queries {seen[key]!r} and {query!r} are the same; leave out one")
            seen[key] = query
        for bound in self.plan.bounds:
            self._check_bound(bound)

    @cached_property
    def variables(self) -> Mapping[str, Variable]:
        """The attributes and recodes by name."""
        found: dict[str, Variable] = {}
        at: dict[str, dict[str, int]] = {}
        for axis, (name, categories) in enumerate(self.plan.attributes.items()):
            labels = tuple(categories or ())
            at[name] = {label: code for code, label in enumerate(labels)}
            found[name] = Variable(axis, np.arange(len(labels)), labels)
        for name, recode in self.plan.recodes.items():
            known, attribute = at[recode.attribute], found[recode.attribute]
            codes = np.full(len(known), -1)
            for code, fine in enumerate(recode.categories.values()):
                for category in fine:
                    codes[_code(f"recode {name!r}", recode.attribute, category, attribute.labels)] = code
            empty = [coarse for coarse, fine in recode.categories.items() if not fine]
            if empty:
                raise InputError(f"recode {name!r}: category {empty[0]!r} holds none of {recode.attribute!r}")
            if (codes < 0).any():
                lost = attribute.labels[int(np.argmax(codes < 0))]
                raise InputError(
                    f"recode {name!r} has no coarser category for {lost!r} of attribute {recode.attribute!r}"
                )
            found[name] = Variable(attribute.axis, codes, tuple(recode.categories))
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each attribute."""
        return tuple(len(categories or ()) for categories in self.plan.attributes.values())

    @cached_property
    def workload(self) -> Workload:
        """The plan's queries, in their order."""
        return self.workload_of(self.plan.queries)

    def workload_of(self, queries: Sequence[str]) -> Workload:
        """Some queries."""
        return Workload(self.shape, [self.recodes(query) for query in queries])

    def recodes(self, query: str) -> list[Ints]:
        """The coarse category of each category of each attribute, in a query."""
        found = [np.zeros(size, np.int64) for size in self.shape]
        for name in self.plan.variables(query):
            variable = self.variables[name]
            found[variable.axis] = variable.codes
        return found

    def labels(self, query: str) -> list[str]:
        """The name of each answer of a query, in order; of the total, "total"."""
        named = sorted((self.variables[name] for name in self.plan.variables(query)), key=lambda v: v.axis)
        return (
            [", ".join(row) for row in product(*(variable.labels for variable in named))]
            if named
            else [query]
        )

    @cached_property
    def zeros(self) -> Flags:
        """Whether each cell is a structural zero; shape (cells,)."""
        found = np.zeros(self.shape, bool)
        for cells in self.plan.zeros:
            found |= self.mask(cells, "a structural zero")
        return found.ravel()

    def mask(self, cells: Cells, where: str) -> Flags:
        """Which cells of the histogram are among some cells; shape `shape`."""
        found = np.ones(self.shape, bool)
        for name, chosen in cells.items():
            variable = self.variables[name]
            codes = [_code(where, name, category, variable.labels) for category in chosen]
            along = np.isin(variable.codes, codes)
            found &= along.reshape([-1 if axis == variable.axis else 1 for axis in range(len(self.shape))])
        return found

    def answers_of(self, bound: Bound) -> Flags:
        """Which answers of its query a bound is on; shape (answers,)."""
        for name in bound.answer:
            if name not in self.plan.variables(bound.query):
                raise InputError(
                    f"the bound on {bound.level}:{bound.query} is on answers by {name!r}, which that query "
                    "does not count"
                )
        inside = self.mask(bound.answer, f"the bound on {bound.level}:{bound.query}").ravel()
        workload = self.workload_of([bound.query])
        found = np.zeros(workload.size, bool)
        found[workload.row[0][inside]] = True
        return found

    def invariants(self, root: str, bounded: bool) -> tuple[tuple[str, str], ...]:
        """The plan's invariants, and the root's total if neighbouring tables have the same number of persons.

        - root: the name of the root's level.
        """
        own, top = self.plan.invariants, (root, TOTAL)
        return own if not bounded or top in own else (top, *own)

    def are_public(self, query: str, level: int, levels: Sequence[str], bounded: bool) -> bool:
        """Whether the answers to a query on a level follow from an invariant on that level or below."""
        return any(
            levels.index(where) >= level and self.refines(fixed, query)
            for where, fixed in self.invariants(levels[0], bounded)
        )

    def refines(self, fine: str, coarse: str) -> bool:
        """Whether each answer of the coarse query is a sum of answers of the fine one."""
        rows = self.workload_of([fine, coarse]).row
        return len(np.unique(rows, axis=1).T) == len(np.unique(rows[0]))

    def _check_bound(self, bound: Bound) -> None:
        """Refuse a lower bound on a sum of structural zeros."""
        chosen = self.answers_of(bound)
        room = self.workload_of([bound.query]).answers(np.where(self.zeros, 0, 1)) > 0
        lowers = bound.lower.values() if isinstance(bound.lower, Mapping) else [end_of(bound.lower, None)]
        if any((low or 0) > 0 for low in lowers) and (chosen & ~room).any():
            answer = self.labels(bound.query)[int(np.argmax(chosen & ~room))]
            raise InputError(
                f"no table can keep the bound on {bound.level}:{bound.query}: all cells of {answer!r} are "
                "structural zeros, and its lower bound is not 0"
            )


def _code(where: str, name: str, category: str, labels: Sequence[str]) -> int:
    if category not in labels:
        raise InputError(
            f"{where}: category {category!r} is not one of attribute {name!r}, whose categories are "
            f"{listed(labels, most=30)}"
        )
    return labels.index(category)
