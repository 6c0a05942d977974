"""A count-of-counts release as it is asked for: methods by level, bounds, parts of the budget."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hierdp.errors import InputError, listed
from hierdp.mechanisms.count_of_counts.estimates import METHODS, Method
from hierdp.mechanisms.count_of_counts.private import MOST_SIZES
from hierdp.mechanisms.words import BOTTOM_UP
from hierdp.privacy.budget import check_epsilon, rest_of, split

MAX_SIZE = 100_000
"""The paper's conservative K."""


AT_ONCE = "at once"
MERGES = ("weighted", "plain", AT_ONCE)

MOST_AT_ONCE = 50_000_000
"""Regions × sizes up to which all levels are matched at once: some gigabytes."""


@dataclass(frozen=True)
class Plan:
    """What is measured where, and how it is made consistent.

    Attributes
    ----------
    methods : tuple of Method
        One a level, the root's first; with `bottom_up`, the last level's alone.
    bottom_up : bool
        Whether the last level has the whole budget, and the others are its sums.
    merge : str
        Of `MERGES`: how the levels' estimates become one.
    max_size : int
        K, where it is public.
    smallest : int
        1 where it is public that no group is empty.
    size_budget, group_budget : float, optional
        Parts of ε for a private K, and for private numbers of groups.
    shares : tuple of float, optional
        The rest of ε by level, in proportion; default: even.
    """

    methods: tuple[Method, ...]
    bottom_up: bool = False
    merge: str = MERGES[0]
    max_size: int = MAX_SIZE
    smallest: int = 0
    size_budget: float | None = None
    group_budget: float | None = None
    shares: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """``Hc × Hg``, ``bottom-up Hc``."""
        names = " × ".join(method.name for method in self.methods)
        return f"{BOTTOM_UP} {names}" if self.bottom_up else names


def plan_of(
    method: str,
    levels: Sequence[str],
    *,
    merge: str = "weighted",
    max_size: int = MAX_SIZE,
    smallest: int = 0,
    size_budget: float | None = None,
    group_budget: float | None = None,
    shares: Sequence[float] | None = None,
) -> Plan:
    """A plan from names.

    Parameters
    ----------
    method : str
        Of `METHODS`, for all levels, or one a level: ``"Hc x Hg x Hc"``. ``"bottom-up"``, or with another
        than Hc ``"bottom-up Hg"``, measures the last level alone.
    levels : sequence of str
        The levels' names, the root's first.
    merge : "weighted", "plain" or "at once"
        How two estimates of a group's size become one: by inverse variance, or by their average, level by
        level (Kuo et al. 2018, §5.3). Or, on three levels, all at once: the consistent sizes nearest to all
        estimates together, see `models.TreeMatching`.
    max_size : int
        K: larger groups count as of this size. Not used where `size_budget` is given.
    smallest : int
        1 where it is public that no group is empty: no size 0 is released then.
    size_budget : float, optional
        The part of ε that chooses K from the data.
    group_budget : float, optional
        The part of ε for the numbers of groups, where they are not public.
    shares : sequence of float, optional
        What of the rest of ε each level has, in proportion, from the root. Default: even.

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
            known = listed([*METHODS, BOTTOM_UP], most=len(METHODS) + 1)
            raise InputError(
                f"no method {name!r}; there are {known}, one for all levels or one a level: 'Hc x Hg x Hc'"
            )
    if alone and len(names) > 1:
        raise InputError(f"{BOTTOM_UP} measures the last level alone: name one method, not {len(names)}")
    if not alone and len(names) not in (1, len(levels)):
        raise InputError(
            f"{len(names)} methods for {len(levels)} levels ({listed(levels)}): one, or one a level"
        )
    if merge not in MERGES:
        raise InputError(f"no merge {merge!r}; there are {listed(MERGES)}")
    if smallest not in (0, 1):
        raise InputError(
            f"smallest is {smallest!r}: a group has 0 entities or more, or where none is empty 1"
        )
    whole = isinstance(max_size, int | np.integer) and not isinstance(max_size, bool)
    if not whole or not smallest < max_size <= MOST_SIZES:
        raise InputError(
            f"max_size must be a whole number from {smallest + 1} to {MOST_SIZES:,}, got {max_size!r}"
        )
    if shares is not None:
        if alone:
            raise InputError(f"{BOTTOM_UP} takes no shares: the last level has the whole budget")
        split(1.0, len(levels), shares)
    methods = tuple(METHODS[name] for name in names)
    return Plan(
        methods if alone or len(methods) > 1 else methods * len(levels),
        alone,
        merge,
        int(max_size),
        smallest,
        size_budget,
        group_budget,
        None if shares is None else tuple(float(share) for share in shares),
    )


def check_at_once(levels: Sequence[str], regions: int, plan: Plan) -> None:
    """Refuse to match all levels at once where that cannot be done, or not in memory.

    Raises
    ------
    InputError
        For other than three levels, a K that is not public, or too many regions and sizes.
    """
    name, instead = f"merge {AT_ONCE!r}", "; merge 'weighted' can"
    if len(levels) != 3:
        raise InputError(f"{name} takes three levels, not {len(levels)} ({listed(levels)}){instead}")
    if plan.size_budget is not None:
        raise InputError(f"{name} cannot do with an estimated largest size (size_budget){instead}")
    if regions * (plan.max_size + 1) > MOST_AT_ONCE:
        raise InputError(
            f"{name} cannot do with {regions:,} regions and sizes up to {plan.max_size:,}: that is more than "
            f"{MOST_AT_ONCE:,} of both{instead}, and so can a lower max_size"
        )


def budgets_of(plan: Plan, epsilon: float) -> list[float]:
    """The levels' parts of ε, after those for K and for the numbers of groups.

    Raises
    ------
    InputError
        If nothing is left for the sizes, or a part is no budget.
    """
    parts = {"size_budget": plan.size_budget, "group_budget": plan.group_budget}
    rest = check_epsilon(epsilon)
    for name, part in parts.items():
        if part is not None:
            if not (isinstance(part, int | float) and 0 < part < rest):
                raise InputError(f"{name} is {part!r}: it must be a part of epsilon ({epsilon}), more than 0")
            rest = rest_of(rest, part)
    if plan.bottom_up:
        return [rest]
    return split(rest, len(plan.methods), plan.shares)
