"""The memory and time of each stage of a large group-size release and of its check.

Run as ``python -m benchmarks.group_size_memory [--regions 83300] [--method "M_c^dp"] [--whole]``. The regions
are shaped like a census by block: of 8,330,000, 52 are states, 3,200 counties, 85,000 tracts and 242,000
block groups; each block has one to a few homes, of 0 to 49 people. Tables and blocks of sizes begin to be
large at a fifth of the counts, so that a small run has the parts and blocks of one of 8.33 million regions;
with ``--whole`` they never are. Noise is drawn from tables. A stage's peak is that of the whole process while
it runs (Linux only). Bytes a count are above what the libraries take, so that they are comparable across
sizes. Seconds are of the processor, user and system.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
    """Prints the peak memory and the time of each stage."""

    def __init__(self, counts: int) -> None:
        self.counts, self.libraries = counts, 0.0
        self._restart()
        print(f"{'stage':<28} {'peak MB':>9} {'bytes a count':>14} {'after, MB':>10} {'CPU s':>8}")

    def _restart(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._began = time.process_time()

    def end(self, name: str) -> None:
        """Print the cost of the stage that ends here."""
        status = Path("/proc/self/status").read_text()
        peak, now = (int(re.findall(rf"{key}:\s+(\d+)", status)[0]) * 1024 for key in ("VmHWM", "VmRSS"))
        self.libraries = self.libraries or now
        each = (peak - self.libraries) / self.counts
        seconds = time.process_time() - self._began
        print(f"{name:<28} {peak / 1e6:9,.0f} {each:14,.0f} {now / 1e6:10,.0f} {seconds:8.1f}", flush=True)
        self._restart()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--regions", type=int, default=83_300)
    parser.add_argument("--method", default="M_c^dp")
    parser.add_argument("--whole", action="store_true", help="without parts and blocks")
    given = parser.parse_args()
    counts = given.regions * (MAX_SIZE + 1)

    from hierdp.check import check
    from hierdp.counts import size_table
    from hierdp.measurements import file
    from hierdp.measurements.measuring import Measuring
    from hierdp.measurements.recording import Recording
    from hierdp.mechanisms.group_size import mechanism, post_processing
    from hierdp.mechanisms.solver_options import SolverOptions
    from hierdp.privacy.budget import Ledger
    from hierdp.privacy.tabulated import TabulatedNoise
    from hierdp.record.files import ALONE
    from hierdp.record.release import Release
    from hierdp.record.spool import ALL, Steps
    from hierdp.tables import group_sizes

    large = counts + 1 if given.whole else counts // 5
    size_table.LARGE, size_table.PART, post_processing.CELLS_A_BLOCK = large, large // 4, large
    Steps.MOST, Recording.MOST, file.ROWS = large // 2, large // 20, large // 20
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "homes.parquet", Path(folder) / "released"
        write_homes(given.regions, source)
        small = Path(folder) / "small.parquet"
        pq.write_table(pq.read_table(source).slice(0, 1_000), small)
        where = {"levels": [*CENSUS, "block"], "group": ["home"], "entities": "people", "max_size": MAX_SIZE}
        method, noise = post_processing.METHODS[given.method], TabulatedNoise()
        warm = mechanism.group_size(group_sizes(small, **where), 1.0, noise, given.method)
        check(warm.write(Path(folder) / "warm"), limit=10**12)
        del warm
        stages = Stages(counts)
        stages.end("libraries")
        data = group_sizes(source, **where)
        stages.end("read and count")
        door, steps = Measuring(data.counts, noise), Steps(method.solving(SolverOptions()), ALL)
        places, groups = data.hierarchy, data.groups
        del data
        noisy, _ = mechanism.noisy_sizes(places, groups, MAX_SIZE + 1, 1.0, door, method)
        stages.end("draw noise")
        counts = post_processing.post_process(noisy, places, groups, method, steps, overwrite=True)
        del noisy
        stages.end("post-process and prove")
        made = Release(
            given.method,
            mechanism.table_of(places, counts),
            Ledger(1.0, 0.0, mechanism.ENTITY, door.measurements.spends),
            steps.kept,
            mechanism.settings_of(places, counts, groups, method, None),
            regions={ALONE: places},
            measurements=door.measurements,
        )
        stages.end("make the table")
        made.write(out)
        stages.end("write")
        del made, counts, steps, door, places
        failures = [line for line in check(out, limit=10**12) if line.verdict == "FAILS"]
        stages.end("check")
        sizes = {path.name: path.stat().st_size for path in out.rglob("*") if path.is_file()}
        parts = (f"{sizes[name] / 1e6:,.0f} MB in {name}" for name in ("proofs.zip", "measurements.parquet"))
        print(f"{sum(sizes.values()) / 1e6:,.0f} MB written; {', '.join(parts)}")
        assert not failures, failures


if __name__ == "__main__":
    main()
