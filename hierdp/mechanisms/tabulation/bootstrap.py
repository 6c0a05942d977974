"""A release's tables taken as the truth and released again: post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import Regions
from hierdp.mechanisms.tabulation.checking import queries_of, unit_of
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.table import counts_in
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import Noise
from hierdp.tables.tabulated import CrossTable

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_SIMULATED = 10_000
"""The most rows of a release whose errors its report simulates, by releasing it five times again."""


def bootstrap(table: DataFrame, manifest: Mapping[str, Any], regions: Regions, noise: Noise) -> DataFrame:
    """The table of a second release, whose true counts are the released ones.

    It has the method, the plan, the budget and the noise of the first; only released counts are used.
    """
    settings, budget = manifest["settings"], Ledger.from_dict(manifest["budget"])
    (places,) = regions.values()
    queries = queries_of(settings)
    categories = {name: queries.variables[name].labels for name in queries.plan.attributes}
    data = CrossTable(places, categories, counts_in(table, queries, places)[-1])
    unit, method = unit_of(settings), manifest["mechanism"]
    found: DataFrame = tabulate(data, queries.plan, budget.epsilon, budget.delta, noise, method, unit).table
    return found
