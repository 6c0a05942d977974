"""Warnings about weak guarantees, and about what is published exactly; they follow from public facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hierdp.counts.rows import laid_out
from hierdp.privacy.budget import Ledger

FROM_DATA = {
    "regions_from_data": (
        "the regions are those that occur in the data, not a public list: that a region is in the release "
        "reveals that somebody is there, whatever ε is"
    ),
    "groups_from_data": (
        "the groups are those that occur in the data, not a public list: their number is exact, and changes "
        "by one with the only person of a group, whatever ε is"
    ),
    "attributes_from_data": (
        "the categories of attributes are those that occur in the data, not public lists: that a category is "
        "in the release reveals that somebody has it, whatever ε is"
    ),
}
"""The warnings about lists that are published exactly, by the setting that says so."""

LARGE = 20.0
"""Beyond this ε, a guarantee says next to nothing: e²⁰ is half a billion."""


def cautions(table: Any, ledger: Ledger, settings: Mapping[str, Any]) -> list[str]:
    """Warnings for the publisher and the readers; the manifest lists them."""
    of_data = [words for name, words in FROM_DATA.items() if settings.get(name)]
    of_budget = [*_of_epsilon(ledger), *_of_delta(table, ledger, settings)]
    return [*of_data, *_of_invariants(settings), *of_budget, *_of_trips(settings)]


def _of_invariants(settings: Mapping[str, Any]) -> list[str]:
    plan = settings.get("plan")
    invariants = plan.get("invariants") if isinstance(plan, Mapping) else None
    if not invariants:
        return []
    return [
        f"the invariants {', '.join(invariants)} are the true counts: ε and δ do not cover what they reveal, "
        "by themselves or together with the other counts"
    ]


def _of_epsilon(ledger: Ledger) -> list[str]:
    if ledger.epsilon <= LARGE:
        return []
    return [
        f"ε = {ledger.epsilon:g} is so large that the guarantee says next to nothing: one person may change "
        f"the odds of what is published by a factor of e^{ledger.epsilon:g}"
    ]


def _of_delta(table: Any, ledger: Ledger, settings: Mapping[str, Any]) -> list[str]:
    if not ledger.delta or not len(table):
        return []
    public = "total" in settings
    rows = int(settings["total"] if public else _root_count(table))
    if ledger.delta * rows < 1:
        return []
    which = "public" if public else "released"
    return [
        f"δ = {ledger.delta:g} is too large for {rows:,} counted rows (the {which} total): publishing some "
        f"of them unchanged would satisfy this guarantee. Choose δ far below {1 / rows:.1g}"
    ]


def _root_count(table: Any) -> float:
    if "groups" in table:
        sizes, groups, _ = laid_out(table).of_root()
        return float(sizes @ groups)
    counts = table["count"]
    return float(counts[table["level"] == 0].sum() if "level" in table else counts.iloc[0])


def _of_trips(settings: Mapping[str, Any]) -> list[str]:
    trips, total = settings.get("trips", 1), settings.get("total")
    if total is None or total % trips == 0:
        return []
    return [
        f"the total of {total:,} is not a multiple of {trips} trips a person, so not everybody has that "
        "number; a person with another number is not protected. With --unbounded it is the largest number"
    ]
