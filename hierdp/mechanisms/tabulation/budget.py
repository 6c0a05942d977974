"""What is measured of a table, with its sensitivity and its exact share of ρ.

*Sensitivity.* Every query counts each cell in exactly one of its answers, and the regions of a level divide
the table. So on each level, each row of a person is counted in exactly one answer of a query in one region.

- One person is replaced by another: one answer falls by 1 and one rises by 1, or none changes. Δ₂² = 2. The
  total of the whole table does not change; it is public.
- A person with at most m rows joins or leaves: the answers with their rows change by k₁ + k₂ + … ≤ m in all,
  so Σ kᵢ² ≤ m², reached if all rows share an answer. Δ₂² = m².

The measurements of different levels and queries are of the same persons, so their ρ add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.unit import PrivacyUnit

REPLACED = "one person is replaced by another; regions, categories and the total are public"
JOINS = "one person joins or leaves; regions and categories are public"
WITH_ROWS = "a person with up to {rows} rows joins or leaves; regions and categories are public"
EXCEPT = "; the guarantee does not cover the invariants, which are published as they are: {invariants}"


def person_unit(bounded: bool = True, rows: int = 1) -> PrivacyUnit:
    """A person who is replaced by another (`bounded`), or who joins or leaves with at most so many rows.

    Raises `InputError` if a person with several rows is to be replaced.
    """
    if bounded and rows > 1:
        raise InputError(
            "with person, the total must be noisy, because a person who joins or leaves changes it; give "
            "`bounded=False`"
        )
    return PrivacyUnit(rows=rows, replaced=bounded, distinct=False, by_row=False)


ONE_PERSON = person_unit()
"""A person is replaced by another."""


def relation_of(unit: PrivacyUnit, invariants: Sequence[tuple[str, str]]) -> str:
    """The neighbouring relation in words, with the plan's invariants."""
    joins = JOINS if unit.rows == 1 else WITH_ROWS.format(rows=unit.rows)
    named = ", ".join(":".join(pair) for pair in invariants)
    return (REPLACED if unit.replaced else joins) + (EXCEPT.format(invariants=named) if named else "")


class Share(NamedTuple):
    """A query that is measured on a level, with its share of ρ."""

    level: int
    query: int
    part: Fraction


def shares(queries: Queries, levels: Sequence[str], unit: PrivacyUnit) -> list[Share]:
    """What is measured, level by level from the root.

    By default, a query is not measured where invariants fix its answers; levels, and the queries of a level,
    have equal shares.

    Raises
    ------
    InputError
        If a level with a share measures nothing, or nothing is measured at all.
    """
    plan = queries.plan
    by_level = [_query_shares(queries, levels, unit.replaced, level) for level in range(len(levels))]
    found = []
    measured = [any(parts) for parts in by_level]
    for level, (name, parts) in enumerate(zip(levels, by_level, strict=True)):
        if plan.level_shares is None:
            own = Fraction(int(measured[level]), max(1, sum(measured)))
        else:
            own = plan.level_shares[name]
            if own and not measured[level]:
                raise InputError(f"level {name!r} has a share of the budget, and none of its queries has one")
        found += [Share(level, at, own * part) for at, part in enumerate(parts) if own * part]
    if not found:
        raise InputError("nothing is measured: invariants fix every query, or the shares are 0; add a query")
    return found


def _query_shares(queries: Queries, levels: Sequence[str], bounded: bool, level: int) -> list[Fraction]:
    """The queries' shares of the level's ρ."""
    plan = queries.plan
    given = plan.query_shares.get(levels[level])
    given = plan.shares_of_every_level if not given or isinstance(given, Fraction) else given
    if given:
        return [given[query] for query in plan.queries]
    measured = [not queries.are_public(query, level, levels, bounded) for query in plan.queries]
    return [Fraction(int(one), sum(measured)) if one else Fraction(0) for one in measured]
