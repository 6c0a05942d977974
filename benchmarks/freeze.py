"""Freeze a test set: the last edition's problems as they are, and those that this version adds.

Run as ``python benchmarks/freeze.py SET FILE.tar.gz``; then name the file in `hierdp.bench.problems.FROZEN`.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from hierdp.bench import manifest
from hierdp.bench.archive import pack
from hierdp.bench.files import write
from hierdp.bench.problems import INDEX, with_no_optimum
from models.instances import packed


def freeze(which: str, archive: Path, folder: Path) -> None:
    """Write the archive; the folder is for files on the way."""
    found = with_no_optimum(which, folder)  # which has no data
    write(found, folder, which)
    said = {one["name"]: one for one in manifest.read(folder)["problems"]}
    index = []
    for one in found:
        entry = {"name": one.name, "origin": one.origin}
        if one.none is not None:
            numbers = json.loads((folder / f"{one.name}.proof.json").read_text(encoding="ascii"))
            entry |= {"status": numbers.pop("status"), "numbers": numbers}
            np.savez(folder / f"{one.name}.npz", **packed(one.model))
        elif not said[one.name]["proved"]:
            entry["best"] = said[one.name]["optimum"]
        index.append(entry)
    (folder / INDEX).write_text(json.dumps(index, indent=1), encoding="ascii")
    pack([folder / INDEX, *(folder / f"{one.name}.npz" for one in found)], archive)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        freeze(sys.argv[1], Path(sys.argv[2]), Path(made))
