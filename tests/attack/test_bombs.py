"""Releases made to fill the memory of whoever reads them: refused within a gigabyte.

Memory is counted beyond that of the same command on an honest release: the interpreter and its libraries.
"""

import os
import shutil
import subprocess
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attacked import GIGABYTE, assert_no_traceback, counted, hierdp, largest, measured, releasing

from hierdp.execution import seal
from hierdp.record import files, proofs

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Two releases, and the peak memory of their check."""
    folder = tmp_path_factory.mktemp("honest")
    where = os.getcwd()
    os.chdir(folder)
    try:
        (folder / "in.csv").write_text(
            "town,home,n\n" + "".join(f"t{i % 3},{i},{i % 7}\n" for i in range(30))
        )
        for mechanism in ("group-size",):
            command = hierdp(*releasing(mechanism, mechanism, 1))
            subprocess.run(command, check=True, capture_output=True)
        code, said, peak = measured("check", "group-size")
        assert code == 0, said
    finally:
        os.chdir(where)
    return folder, peak


def zipped(path, members, level=9):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        for name, content in members:
            file.writestr(name, content)


def manifest_of_many_items(folder):
    (folder / files.MANIFEST).write_bytes(b"[" + b"[]," * 30_000_000 + b"[]]")


def manifest_that_is_deep(folder):
    (folder / files.MANIFEST).write_bytes(b'{"a":' * 10_000_000)


def tall_table(folder):
    """Two hundred million rows."""
    part = pa.table({"level": pa.array(np.zeros(1_000_000, np.int64))})
    with pq.ParquetWriter(folder / "released.parquet", part.schema) as writer:
        for _ in range(200):
            writer.write_table(part)


def wide_table(folder):
    pq.write_table(pa.table({f"c{i}": [1] for i in range(20_000)}), folder / "released.parquet")


def long_texts(folder):
    names = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"region": names}), folder / "released.parquet")


def regions_of_commas(folder):
    with (folder / files.REGIONS).open("a") as file:
        file.writelines("," * 1_000_000 for _ in range(50))


def steps_of_many_items(folder):
    """As found: 30 million empty lists."""
    zipped(folder / files.PROOFS, [(proofs.NAMES, b"[" + b"[]," * 30_000_000 + b"[]]")])


BOMBS = [
    manifest_of_many_items, manifest_that_is_deep, tall_table, wide_table, long_texts, regions_of_commas,
    steps_of_many_items,
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_release_that_is_a_bomb(honest, place, bomb):
    folder, usual = honest
    shutil.copytree(folder / "group-size", place / "bomb")
    bomb(place / "bomb")
    seal.seal(place / "bomb")
    code, said, peak = measured("check", "bomb")
    counted("hostile releases")
    largest("megabytes of the largest refusal, beyond those of an honest check", (peak - usual) // 1_000_000)
    assert_no_traceback(said)
    assert code in (1, 2), said
    assert peak - usual < GIGABYTE
