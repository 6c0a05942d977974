"""The demo: two releases of real data, the flights that left New York in 2013, checked by every solver."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp import tables
from hierdp.counts.hierarchy import Hierarchy
from hierdp.data import AIRPORTS, FLIGHTS
from hierdp.execution import folder
from hierdp.mechanisms.group_size import m_c_dp
from hierdp.mechanisms.top_down import inf_tda, true_table
from hierdp.metrics import group_sizes as metrics
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release
from hierdp.reports import page as report
from hierdp.tables import Flows, GroupSizes
from hierdp.verification import sections as verification
from hierdp.verification.table import Verification
from hierdp.verification.verify import verify

if TYPE_CHECKING:
    from pandas import DataFrame

EPSILON = 1.0
DELTA = 1e-8
MAX_SIZE = 100
"""Largest number of flights of an aircraft to an airport (top-coded). Public, not chosen from the data."""
UNKNOWN = "unknown"
RELEASES = {
    "group-sizes": "Aircraft from New York by their flights to each airport, 2013",
    "origin-destination": "Flights from New York by origin and destination, 2013",
}
"""Folders and titles of the releases."""

TIMETABLE = "a public list: the airports of the year's timetable"
AIRCRAFT = "a public list: the aircraft on the year's timetable, and the airports that they fly to"
SAMPLE = 4
"""Number of the many small models that every backend solves again."""

SECONDS = 2.0
"""Default time limit of each exact solve; a dozen backends then take a minute or two."""


@dataclass(frozen=True, eq=False)
class Demo:
    """Both releases, their verification by the backends, and their errors (the flights are public)."""

    sizes: Release
    flows: Release
    found: Verification
    size_errors: DataFrame
    flow_errors: DataFrame


def read() -> tuple[GroupSizes, Flows]:
    """The flights as counts of groups by size, and as flows from origin to destination.

    The hierarchy is nation → time zone → airport. The year's timetable is taken as a public list of
    destinations, of origins (New York's three airports), and of the aircraft that fly to each destination;
    it is read from the same flights, which are public. Airports that are not in the airports' table, and
    missing aircraft, are called "unknown".
    """
    import pandas as pd

    airports = pd.read_parquet(AIRPORTS)
    places = {}
    for column in ("origin", "destination"):
        served = airports[airports.airport.isin(pd.read_parquet(FLIGHTS, columns=[column])[column])]
        places[column] = Hierarchy.from_columns(served, ["zone", "airport"], "USA", "nation")
    sizes = tables.group_sizes(
        FLIGHTS,
        regions=places["destination"],
        region="destination",
        group=["aircraft", "destination"],
        entities="flights",
        max_size=MAX_SIZE,
        unknown=UNKNOWN,
    )
    axes = {name: (place, name) for name, place in places.items()}
    return sizes, tables.flows(FLIGHTS, axes=axes, count="flights", unknown=UNKNOWN)


def run(noise: Noise | None = None, time_limit: float = SECONDS) -> Demo:
    """Make both releases, verify them with every installed backend, and measure the errors."""
    true_sizes, true_flows = read()
    sizes = m_c_dp(true_sizes, EPSILON, noise).taking_as_public(regions=TIMETABLE, which_groups=AIRCRAFT)
    flows = inf_tda(true_flows, EPSILON, DELTA, noise).taking_as_public(regions=TIMETABLE)
    checks = [verify(release, time_limit=time_limit, sample=SAMPLE) for release in (sizes, flows)]
    found = Verification(
        tuple(row for check in checks for row in check.rows), "; ".join(c.note for c in checks)
    )
    hierarchy = true_sizes.hierarchy
    released: Any = sizes.steps[-1].solution.x
    size_errors = metrics.group_size_errors(hierarchy.tree, hierarchy.levels, true_sizes.counts, released)
    flow_errors = metrics.top_down_errors(true_table(true_flows), flows.table)
    return Demo(sizes, flows, found, size_errors, flow_errors)


def write(demo: Demo, path: Path, overwrite: bool) -> None:
    """Write both releases, the verification and the report."""
    with folder.appearing(path, overwrite) as aside:
        for release, (name, title) in zip((demo.sizes, demo.flows), RELEASES.items(), strict=True):
            (aside / name).mkdir()
            release.fill(aside / name, title=title)
        demo.found.frame().to_parquet(aside / "verification.parquet", index=False)
        (aside / "report.html").write_text(page(demo), encoding="utf-8")


def page(demo: Demo) -> str:
    """The report as an HTML page."""
    public = report.Section(
        "What is taken as public",
        [f"Regions: {TIMETABLE}. Groups: {AIRCRAFT}. Other counts of flights are protected."],
    )
    sizes, flows = (errors.drop(columns="level") for errors in (demo.size_errors, demo.flow_errors))
    of_sizes = f"Group sizes, M_c^dp, ε = {EPSILON:g}: mean L1 error of a region, in groups"
    of_flows = f"Origin/destination, InfTDA, ε = {EPSILON:g}, δ = {DELTA:g}: largest error, in flights"
    errors = report.Section(
        "Error by level",
        ["True counts are public here, so the errors can be shown; a report on private data has none."],
        pictures=[
            report.Bars(of_sizes, sizes, "l1_per_region"),
            report.Bars(of_flows, flows, "max_error"),
        ],
    )
    manifests = [release.manifest() for release in (demo.sizes, demo.flows)]
    warnings = [text for manifest in manifests if (text := manifest["warning"])]
    sections = [
        public,
        verification.verification_section(demo.found),
        errors,
        *(report.budget_section(manifest) for manifest in manifests),
        *(report.steps_section(manifest) for manifest in manifests),
        verification.solves_section(demo.found),
    ]
    return report.page("hierdp: the flights from New York, 2013", sections, warnings[:1])
