"""A zero diagonal, as in a table of journeys between places without those within one (not in the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hierdp.execution.resume import Row
from hierdp.experiments.papers.boninsegna2025.experiments import as_published, errors_of, measured_of
from hierdp.experiments.papers.boninsegna2025.settings import Settings
from hierdp.experiments.run import all_rows, crossed, noise_for
from hierdp.experiments.study import Part
from hierdp.mechanisms.top_down import true_table
from hierdp.tables import Flows

if TYPE_CHECKING:
    from pandas import DataFrame

METHODS = ("InfTDA", "TDA_L2")
WHAT = ("max_error", "false_discovery_rate", "false_negative_rate", "trips_on_the_diagonal", "noisy_counts")


def without_diagonal(data: Flows) -> Flows:
    """The flows between different finest places."""
    apart = data.cells[:, 0] != data.cells[:, 1]
    return Flows(data.axes, data.axis_names, data.cells[apart], data.counts[apart])


def rows(sets: Mapping[str, Flows], settings: Settings, seed: int) -> DataFrame:
    """Errors at the finest level with and without the declaration that the diagonal is 0."""
    cases = crossed(
        data=sets, method=METHODS, epsilon=settings.sparse_epsilons, run=range(settings.sparse_runs)
    )
    apart = {name: without_diagonal(data) for name, data in sets.items()}
    return all_rows(_rows, cases, "a zero diagonal", (apart, settings, seed))


def _rows(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, method: str, epsilon: float, run: int
) -> list[Row]:
    data, found = sets[name], []
    truth, (one, other) = true_table(data), data.axis_names
    for zeros in (None, f"{one}={other}"):
        noise = noise_for(seed, "diagonal", name, epsilon, run)
        made = as_published(data, epsilon, settings.delta, noise, method, zeros=zeros)
        finest = made.table[made.table.level == made.table.level.max()]
        inside = int(finest[finest[one] == finest[other]]["count"].sum())
        cells = sum(measured_of(made))
        row: Row = {"declared": zeros is not None, WHAT[3]: inside, WHAT[4]: cells}
        found.append(row | errors_of(truth, made)[-1])
    return found


def part(found: DataFrame) -> Part:
    """Means over runs, side by side."""
    by = ["data", "method", "epsilon", "declared"]
    table = found.groupby(by, sort=False)[list(WHAT)].mean().reset_index()
    table.insert(4, "runs", found.groupby(by, sort=False).size().to_numpy())
    texts = [
        "Data without the flows within a finest place. Declared: `--zero origin=destination` says so. The "
        "same seed for both; finest level."
    ]
    return Part("diagonal", "A zero diagonal (not in the paper)", texts, {"diagonal": table})
