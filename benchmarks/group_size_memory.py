"""The memory and time of each stage of a large group-size release and of its check.

The regions are shaped like a census by block: of 8,330,000, 52 are states, 3,200 counties, 85,000 tracts and
242,000 block groups; each block has one to a few homes, of 0 to 49 people. Tables and blocks of sizes begin
to be large at a fifth of the counts at most, so that a small run has several parts and blocks; with
``--whole`` blocks never are. Noise is drawn from tables. A stage's peak is that of the whole process while it
runs (Linux only). Bytes a count are above what the libraries take, so that they are comparable across sizes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.child import MB, peak, resident

MAX_SIZE = 49
CENSUS = {"state": 52, "county": 3_200, "tract": 85_000, "bg": 242_000}
REGIONS = 8_330_000


def write_homes(regions: int, path: Path) -> int:
    """Write homes in this number of regions, counting those of all levels; returns the number."""
    rng = np.random.default_rng(1)
    above = [max(2, int(size * regions / REGIONS)) for size in CENSUS.values()]
    blocks = regions - 1 - sum(above)
    at = np.sort(np.concatenate([np.arange(above[-1]), rng.integers(0, above[-1], blocks - above[-1])]))
    home = np.repeat(np.arange(blocks), 1 + rng.poisson(2, blocks))
    columns = {"block": home}
    place = at[home]
    for level, (name, size) in reversed(list(enumerate(zip(CENSUS, above, strict=True)))):
        columns[name] = place
        place = place * (above[level - 1] if level else 1) // size
    people = np.minimum(rng.geometric(0.3, home.size), 200)
    pq.write_table(pa.table({**columns, "home": np.arange(home.size), "people": people}), path)
    return regions


class Stages:
    """The peak memory and the CPU time of each stage."""

    def __init__(self, counts: int) -> None:
        self.counts, self.libraries = counts, resident()
        self._restart()

    def _restart(self) -> None:
        peak(reset=True)
        self._began = time.process_time()

    def end(self, name: str) -> dict[str, Any]:
        """The cost of the stage that ends here."""
        most, seconds = peak(), time.process_time() - self._began
        row = {"stage": name, "peak MB": most, "bytes a count": (most - self.libraries) * MB / self.counts,
               "after, MB": resident(), "CPU": seconds}  # fmt: skip
        self._restart()
        return row


def run(
    *,
    regions: int = 83_300,
    method: str = "M_c^dp",
    whole: Annotated[bool, "without parts and blocks"] = False,
    shares: Annotated[tuple[float, ...] | None, "of the six levels; all sizes are then one block"] = None,
) -> Iterator[dict[str, Any]]:
    counts = regions * (MAX_SIZE + 1)

    from hierdp.checking import check
    from hierdp.counts import size_table
    from hierdp.measurements import file
    from hierdp.measurements.measuring import Measuring, Recording
    from hierdp.mechanisms.group_size import mechanism, post_processing
    from hierdp.mechanisms.solver_options import SolverOptions
    from hierdp.privacy.budget import Allowed, Ledger
    from hierdp.privacy.tabulated import TabulatedNoise
    from hierdp.record.files import ALONE
    from hierdp.record.release import Release
    from hierdp.record.spool import Steps
    from hierdp.tables import group_sizes

    large = counts + 1 if whole else counts // 5
    size_table.PART = min(size_table.PART, large // 4)
    post_processing.CELLS_A_BLOCK = large if whole else min(post_processing.CELLS_A_BLOCK, large)
    Steps.MOST, Recording.MOST, file.ROWS = large // 2, large // 20, large // 20
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "homes.parquet", Path(folder) / "released"
        write_homes(regions, source)
        small = Path(folder) / "small.parquet"
        pq.write_table(pq.read_table(source).slice(0, 1_000), small)
        where = {"levels": [*CENSUS, "block"], "group": ["home"], "entities": "people", "max_size": MAX_SIZE}
        steps_of, noise = post_processing.METHODS[method], TabulatedNoise()
        warm = mechanism.group_size(group_sizes(small, **where), 1.0, noise, method)
        check(warm.write(Path(folder) / "warm"), limit=10**12)
        del warm
        stages = Stages(counts)
        data = group_sizes(source, **where)
        yield stages.end("read and count")
        measuring, steps = Measuring(data.counts, noise), Steps(steps_of.solving(SolverOptions()))
        places, groups = data.hierarchy, data.groups
        del data
        given = places, groups, MAX_SIZE + 1, Allowed(1.0), measuring, steps_of
        noisy, scales = mechanism.noisy_sizes(*given, shares)
        yield stages.end("draw noise")
        weights = mechanism.weights_of(scales, noisy, groups, None)
        counts = post_processing.post_process(
            noisy, places, groups, steps_of, steps, overwrite=True, weights=weights
        )
        del noisy
        yield stages.end("post-process and prove")
        made = Release(
            method,
            size_table.SizeTable(places, counts),
            Ledger(1.0, 0.0, mechanism.ENTITY, measuring.measurements.spends),
            steps.kept,
            mechanism.settings_of(places, counts, groups, steps_of, None, shares),
            regions={ALONE: places},
            measurements=measuring.measurements,
        )
        yield stages.end("make the table")
        made.write(out)
        yield stages.end("write")
        del made, counts, steps, measuring, places
        failures = [line for line in check(out, limit=10**12) if line.verdict == "FAILS"]
        yield stages.end("check")
        sizes = {path.name: path.stat().st_size for path in out.rglob("*") if path.is_file()}
        for name in ("proofs.zip", "measurements.parquet"):
            yield {"file": name, "MB": sizes[name] / MB}
        yield {"file": "all", "MB": sum(sizes.values()) / MB}
        assert not failures, failures
