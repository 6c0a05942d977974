"""The plan of a count-of-counts release: methods by level, bounds, parts of the budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hierdp.errors import InputError, listed, unknown_name
from hierdp.mechanisms.count_of_counts.estimates import METHODS, CountOfCountsMethod, Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.private import MOST_SIZES
from hierdp.mechanisms.description import BOTTOM_UP
from hierdp.privacy.budget import check_epsilon, rest_of, split
from hierdp.privacy.rounding import below
from models import Tree
from models.arithmetic.arrays import Ints

MAX_SIZE = 100_000
"""The paper's conservative K."""


AT_ONCE = "at once"
MERGES = ("weighted", "plain", AT_ONCE)

MOST_AT_ONCE = 50_000_000
"""Limit on regions × sizes for matching all levels at once, which takes some gigabytes."""

CELLS_A_STEP = 200_000
"""Noisy numbers of the regions that share a step. A region with more has its own."""

BATCHED_FROM = 1_000
"""From this number of measured regions on, regions share steps."""


@dataclass(frozen=True)
class CountOfCountsPlan:
    """What is measured at each level, and how it is made consistent.

    - methods: one for each level, from the root; with `bottom_up`, only the last level's.
    - bottom_up: whether the last level has the whole budget, and the others are its sums.
    - merge: how two estimates of a group's size are merged, level by level: "weighted", by inverse variance,
      or by their "plain" average (Kuo et al. 2018, §5.3). Or, with three levels, all "at once": the
      consistent sizes nearest to all estimates together; see `models.TreeMatching`.
    - max_size: K, if it is public (`size_budget` is None): larger groups are counted in this size.
    - smallest: 1 if it is public that no group is empty: then no size 0 is released.
    - size_budget, group_budget: parts of ε, or of ρ, for a private K, and for private numbers of groups.
    - shares: the relative parts of the levels in the rest, from the root; default: equal parts.

    Raises `InputError` if there is no such merge, or a number is out of range.
    """

    methods: tuple[CountOfCountsMethod, ...]
    bottom_up: bool = False
    merge: str = MERGES[0]
    max_size: int = MAX_SIZE
    smallest: int = 0
    size_budget: float | None = None
    group_budget: float | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.merge not in MERGES:
            raise InputError(unknown_name(self.merge, MERGES, "`merge`: there is no"))
        if self.smallest not in (0, 1):
            raise InputError(f"`smallest` is {self.smallest!r}: it must be 0, or 1 if no group is empty")
        most, least = self.max_size, self.smallest + 1
        whole = isinstance(most, int | np.integer) and not isinstance(most, bool)
        if not whole or not least <= most <= MOST_SIZES:
            raise InputError(
                f"`max_size` must be a whole number from {least} to {MOST_SIZES:,}, got {most!r}"
            )
        object.__setattr__(self, "max_size", int(most))

    @property
    def name(self) -> str:
        """``Hc × Hg``, ``bottom-up Hc``."""
        names = " × ".join(method.name for method in self.methods)
        return f"{BOTTOM_UP} {names}" if self.bottom_up else names

    def in_parts_of(self, loss: float, epsilon: float) -> CountOfCountsPlan:
        """The same plan, whose parts of `epsilon` are as large parts of a loss: ρ, or the ε of one row."""

        def part(given: float | None) -> float | None:
            return None if given is None else below(Fraction(loss) * Fraction(given) / Fraction(epsilon))

        return replace(self, size_budget=part(self.size_budget), group_budget=part(self.group_budget))

    def method_of(self, level: int) -> CountOfCountsMethod:
        """The method of a level that is measured."""
        return self.methods[0 if self.bottom_up else level]


def plan_of(method: str, levels: Sequence[str], **options: Any) -> CountOfCountsPlan:
    """Make a plan from names.

    Parameters
    ----------
    method : str
        One of `METHODS` for all levels, or one for each level: ``"Hc x Hg x Hc"``. ``"bottom-up"``, or
        ``"bottom-up Hg"`` for a method other than Hc, measures only the last level.
    levels : sequence of str
        The names of the levels, from the root.
    **options
        The other fields of the plan.

    Raises
    ------
    InputError
        If there is no such method or merge, methods or shares do not fit the levels, or a number is out of
        range.
    """
    text = method.strip()
    alone = text.startswith(BOTTOM_UP)
    text = text.removeprefix(BOTTOM_UP).strip() or "Hc" if alone else text
    names = re.split(r"\s+x\s+|\s*[×,]\s*", text)
    for name in names:
        if name not in METHODS:
            known = unknown_name(name, [*METHODS, BOTTOM_UP], "no method")
            raise InputError(f"{known}, one for all levels, or one per level: 'Hc x Hg x Hc'")
    if alone and len(names) > 1:
        raise InputError(f"{BOTTOM_UP} measures only the last level: name one method, not {len(names)}")
    if not alone and len(names) not in (1, len(levels)):
        raise InputError(
            f"{len(names)} methods for {len(levels)} levels ({listed(levels)}): give one, or one per level"
        )
    if (shares := options.get("shares")) is not None:
        if alone:
            raise InputError(f"{BOTTOM_UP} takes no `shares`: the last level has the whole budget")
        split(1.0, len(levels), shares)  # checks them
        options["shares"] = tuple(map(float, shares))
    methods = tuple(METHODS[name] for name in names)
    return CountOfCountsPlan(
        methods if alone or len(methods) > 1 else methods * len(levels), alone, **options
    )


def check_at_once(levels: Sequence[str], regions: int, plan: CountOfCountsPlan) -> None:
    """Refuse to match all levels at once if that is impossible, or would exceed the memory.

    Raises `InputError` if there are not three levels, K is not public, or there are too many regions and
    sizes.
    """
    name, instead = f"merge {AT_ONCE!r}", "; use merge 'weighted'"
    if len(levels) != 3:
        raise InputError(f"{name} needs three levels, not {len(levels)} ({listed(levels)}){instead}")
    if plan.size_budget is not None:
        raise InputError(f"{name} needs a public largest size, without `size_budget`{instead}")
    if regions * (plan.max_size + 1) > MOST_AT_ONCE:
        raise InputError(
            f"{name} needs too much memory for {regions:,} regions and sizes up to {plan.max_size:,}: their "
            f"product exceeds {MOST_AT_ONCE:,}{instead}, or a lower `max_size`"
        )


def budgets_of(plan: CountOfCountsPlan, epsilon: float) -> list[float]:
    """The parts of ε, or of ρ, for the levels, after those for K and for the numbers of groups.

    Raises `InputError` if nothing is left for the sizes, or a part is not a valid budget.
    """
    parts = {"size_budget": plan.size_budget, "group_budget": plan.group_budget}
    rest = check_epsilon(epsilon)
    for name, part in parts.items():
        if part is not None:
            if not (isinstance(part, int | float) and 0 < part < rest):
                raise InputError(f"`{name}` is {part!r}: it must be a part of `epsilon` ({epsilon}), above 0")
            rest = rest_of(rest, part)
    if plan.bottom_up:
        return [rest]
    return split(rest, len(plan.methods), plan.shares)


def measured_regions(tree: Tree, groups: Ints, plan: CountOfCountsPlan) -> Ints:
    """The regions to measure, in level order: those with groups; bottom-up, of the last level only."""
    return np.flatnonzero(groups * (tree.level == tree.depth) if plan.bottom_up else groups)


def steps_of(
    regions: Ints,
    level: Ints,
    groups: Ints,
    plan: CountOfCountsPlan,
    domain: Sizes,
    several: bool | None = None,
) -> list[Ints]:
    """The regions of each step.

    - regions: the regions to measure, in level order.
    - level, groups, shape (all regions,)
    - several: whether regions share steps. Default: from `BATCHED_FROM` regions on.
    """
    several = regions.size >= BATCHED_FROM if several is None else several
    steps = list[Ints]()
    for here in np.split(regions, np.flatnonzero(np.diff(level[regions])) + 1) if regions.size else ():
        method = plan.method_of(int(level[here[0]]))
        if not several or method.form == "H":
            steps += np.split(here, here.size)
            continue
        each = groups[here] if method.form == "Hg" else np.full(here.size, numbers_of(1, method, domain))
        until, at = np.cumsum(each), 0
        while at < here.size:
            room = until[at] - each[at] + CELLS_A_STEP
            end = max(at + 1, int(np.searchsorted(until, room, side="right")))
            steps.append(here[at:end])
            at = end
    return steps
