"""Warnings about a release whose numbers promise little, made from what is public of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.privacy.budget import Ledger

if TYPE_CHECKING:
    from pandas import DataFrame

LARGE = 20.0
"""An ε beyond which a guarantee says next to nothing: e²⁰ is half a billion."""


def cautions(table: DataFrame, ledger: Ledger, settings: Mapping[str, Any]) -> list[str]:
    """What a publisher and a reader should know; for the manifest.

    Parameters
    ----------
    table : DataFrame
        The released counts.
    ledger : Ledger
    settings : mapping
        The mechanism's public parameters.
    """
    return [*_of_epsilon(ledger), *_of_delta(table, ledger, settings), *_of_trips(settings)]


def _of_epsilon(ledger: Ledger) -> list[str]:
    if ledger.epsilon <= LARGE:
        return []
    return [
        f"ε = {ledger.epsilon:g} is so large that the guarantee says next to nothing: one person may change "
        f"the odds of what is published by a factor of e^{ledger.epsilon:g}"
    ]


def _of_delta(table: DataFrame, ledger: Ledger, settings: Mapping[str, Any]) -> list[str]:
    if not ledger.delta or not len(table) or "count" not in table:
        return []
    public = "total" in settings
    rows = int(settings["total"] if public else table["count"].iloc[0])
    if ledger.delta * rows < 1:
        return []
    which = "public" if public else "released"
    return [
        f"δ = {ledger.delta:g} is too large for {rows:,} counted rows (the {which} total): publishing some "
        f"of them as they are would keep such a promise. Choose δ far below {1 / rows:.1g}"
    ]


def _of_trips(settings: Mapping[str, Any]) -> list[str]:
    trips, total = settings.get("trips_a_person", 1), settings.get("total")
    if total is None or total % trips == 0:
        return []
    return [
        f"the total of {total:,} is not a multiple of {trips} trips a person, so not everybody has that "
        "number; a person with another number is not protected. With --unbounded it is the largest number"
    ]
