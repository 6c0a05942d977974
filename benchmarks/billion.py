"""A release from a billion rows in files, counted by DuckDB or by Spark, and its check.

The rows are made up: the household (of 4 · 10⁸) and the places of home and work, each one of 1,000 by Zipf's
law; the digits of their codes are levels. DuckDB has 1 GB of memory and writes no temporary files. Spark has
two executors, processes of their own with 1 GB each; they spill to disk what they cannot hold, such as the
households of `group-size`. Files (6.5 bytes a row) are made in the folder unless they are there, and stay.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from benchmarks.child import MB, apart, hierdp
from benchmarks.measuring import timed

IN_FILE = 100_000_000
CODES = {"hundred": 1, "ten": 2, "place": 3}
SPARK = {
    "driver.memory": "1g", "driver.bindAddress": "127.0.0.1", "ui.enabled": "false",
    "ui.showConsoleProgress": "false", "eventLog.enabled": "true", "eventLog.compress": "false",
    "eventLog.rolling.enabled": "false",
}  # fmt: skip


def make(path: Path, first: int, rows: int) -> None:
    """A file of rows `first` to `first + rows`."""
    import duckdb

    place = "printf('%03d', floor(1001 ** ({} / 18446744073709551616.0) - 1)::INT * 617 % 1000)"
    home, work = place.format("hash(household)"), place.format("hash(row + 1)")
    duckdb.sql("SET preserve_insertion_order = false")
    duckdb.sql(
        f"COPY (SELECT household, {home} AS home, {work} AS work FROM (SELECT range AS row, "
        f"(hash(range) % 400_000_000)::INT AS household FROM range({first}, {first + rows}))) "
        f"TO '{path}.part' (FORMAT parquet, ROW_GROUP_SIZE 1_000_000)"
    )
    Path(f"{path}.part").rename(path)


class Children:
    """Peak memory and CPU time of the executors, read twice a second while they run."""

    def __enter__(self) -> Children:
        self.peaks: dict[int, float] = {}
        self.cpu: dict[int, float] = {}
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._read, daemon=True)
        self._watch.start()
        return self

    def _read(self) -> None:
        psutil: Any = import_module("psutil")  # comes with Dask
        while not self._ended.wait(0.5):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "CoarseGrainedExecutorBackend" in " ".join(child.cmdline()):
                        used = child.cpu_times()
                        self.cpu[child.pid] = used.user + used.system
                        held = child.memory_info().rss / MB
                        self.peaks[child.pid] = max(held, self.peaks.get(child.pid, 0.0))
                except psutil.Error:
                    continue

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()


def moved(log: Path) -> dict[str, float]:
    """What Spark's tasks shuffled and spilled to disk, in MB, from its event log."""
    found = {"shuffle_mb": 0.0, "spill_mb": 0.0}
    for line in log.read_text().splitlines():
        task = json.loads(line).get("Task Metrics") or {}
        found["spill_mb"] += task.get("Disk Bytes Spilled", 0) / MB
        written = task.get("Shuffle Write Metrics", {})
        found["shuffle_mb"] += written.get("Shuffle Bytes Written", 0) / MB
    return found


def released(engine: str, mechanism: str, paths: str, folder: str) -> dict[str, Any]:
    """The release, in this process."""
    from hierdp import TabulatedNoise, release
    from hierdp.tables import Prefixes
    from hierdp.tables.databases import embedded

    files = json.loads(paths)
    row: dict[str, Any] = {}
    home, work = (Prefixes(name, CODES) for name in ("home", "work"))
    options: dict[str, dict[str, Any]] = {
        "top-down": {"axes": {"home": home, "work": work}, "delta": 1e-8},
        "group-size": {"levels": home, "group": ["household"], "groups_from_data": True, "max_size": 20},
    }

    def write(table: Any) -> None:
        public: dict[str, Any] = {"epsilon": 1, "regions_from_data": True, **options[mechanism]}
        made = release(table, mechanism, noise=TabulatedNoise(), **public)
        row["cells"] = len(made.table)
        made.write(Path(folder) / "out", report=False)

    if engine == "duckdb":
        connection = embedded()
        connection.con.execute("SET memory_limit = '1GB'; SET preserve_insertion_order = false")
        row["seconds"], _ = timed(lambda: write(connection.read_parquet(files)), 1)
        return row
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in {**SPARK, "eventLog.dir": folder}.items():
        session = session.config(f"spark.{name}", value)
    began = time.perf_counter()
    spark = session.getOrCreate()
    row["start_seconds"] = time.perf_counter() - began
    with Children() as executors:
        row["seconds"], _ = timed(lambda: write(spark.read.parquet(*files)), 1)
    spark.stop()
    row["executors_cpu"] = sum(executors.cpu.values())
    row["executor_mb"] = max(executors.peaks.values(), default=0.0)
    return row | moved(next(path for path in Path(folder).iterdir() if path.is_file()))


def run(
    *,
    folder: Annotated[Path, "of the files"] = Path("build/billion"),
    rows: Annotated[int, "in files of 10⁸"] = 1_000_000_000,
    engine: Annotated[str, "duckdb or spark"] = "duckdb",
    mechanism: Annotated[str, "top-down or group-size"] = "top-down",
) -> Iterator[dict[str, Any]]:
    import tempfile

    paths = [folder / f"people-{at:02}.parquet" for at in range(-(-rows // IN_FILE))]
    folder.mkdir(parents=True, exist_ok=True)
    for at, path in enumerate(paths):
        if not path.exists():
            make(path, at * IN_FILE, IN_FILE)
    with tempfile.TemporaryDirectory() as out:
        known = {"engine": engine, "mechanism": mechanism, "rows": len(paths) * IN_FILE}
        yield (
            known
            | {"what": "release"}
            | apart(released, engine, mechanism, json.dumps([str(p) for p in paths]), out)
        )
        yield known | {"what": "check"} | apart(hierdp, "check", f"{out}/out")
