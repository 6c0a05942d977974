"""The ladder of `hierdp bench write`: CPU time and memory to make, solve and prove each rung.

Run as ``python -m benchmarks.ladder [--up-to 10000000]``; it prints a Markdown table. Each rung has a process
of its own, with 8 GB of memory, which compiles the kernels on a small instance first. *MB*: the peak of
resident memory, of which Python and its libraries hold 160. *certificate*: the proof as `hierdp bench verify`
repeats it, from the stored answer and witness, on a model without cached results.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measuring
from benchmarks.measuring import seconds_in_words
from hierdp.bench.ladder import RUNGS, SIZES

GIGABYTES = 8.0
SECONDS = 600.0


def alone(name: str, size: int) -> dict[str, Any]:
    """One rung, in this process."""
    from models.instances import load_instance, save
    from solvers import solve

    measuring.guarded(GIGABYTES)
    model, options, form = RUNGS[name]
    small = solve(model.typical(np.random.default_rng(0), 1_000, **options))
    model.typical(np.random.default_rng(0), 1_000, **options).certificate(small.x, small.witness)
    making, made = _cpu(lambda: model.typical(np.random.default_rng(size), size, **options))
    found = solve(made)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rung.npz"
        saving, _ = _cpu(lambda: save(made, path, found.x, found.witness))
        megabytes = path.stat().st_size / 1e6
        stored: Any = load_instance(path)
    proving, proof = _cpu(lambda: stored.model.certificate(stored.answer, stored.witness))
    return {
        "variables": stored.answer.size, "form": form, "made": making, "solved": found.cpu_seconds,
        "saved": saving, "certificate": proving, "proved": proof.optimal, "optimum": float(proof.objective),
        "file": megabytes, "MB": measuring.peak(),
    }  # fmt: skip


def _cpu(job: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    done = job()
    return time.process_time() - started, done


def main() -> None:
    """Measure all rungs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--up-to", type=int, default=SIZES[-1], help="the most variables")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(alone(given.alone[0], int(given.alone[1]))))
        return
    print("| model | form | variables | optimum | made | solved | certificate | saved | file, MB | MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in RUNGS:
        for size in (size for size in SIZES if size <= given.up_to):
            row = measuring.apart("benchmarks.ladder", [name, str(size)], SECONDS)
            if row["failed"]:
                print(f"| {name} | | {size:,} | {row['failed']} |", flush=True)
                continue
            optimum = f"{row['optimum']:,.10g}" if row["proved"] else "not proved"
            times = (seconds_in_words(row[part]) for part in ("made", "solved", "certificate", "saved"))
            print(f"| {name} | {row['form']} | {row['variables']:,} | {optimum} | {' | '.join(times)} "
                  f"| {row['file']:,.3g} | {row['MB']:,.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
