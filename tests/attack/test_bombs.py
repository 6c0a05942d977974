"""Releases and tables made to exhaust their readers' memory are refused within a gigabyte.

Each release goes through `hierdp check` and `hierdp query`, each table through `hierdp release`. The memory
of the same command on an honest release (the interpreter and its libraries) is not counted.
"""

import io
import json
import os
import shutil
import struct
import zipfile
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attacked import GIGABYTE, TABLE, assert_no_traceback, counted, largest, releasing

from hierdp.execution import seal
from hierdp.record import files, proofs

pytestmark = pytest.mark.attack


ASKED = {"check": ["check", "bomb"], "query": ["query", "bomb", "--range", "1:2"]}

CPU_SECONDS = 300
"""Ends processes that hang; refusals take far less time on any machine."""

LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))"


@pytest.fixture(scope="module")
def honest(zygote, tmp_path_factory):
    """Two releases, and the peak memory of each command on them."""
    folder = tmp_path_factory.mktemp("honest")
    where = os.getcwd()
    os.chdir(folder)
    peaks = {}
    try:
        (folder / "in.csv").write_text(TABLE)
        for mechanism, command in (("group-size", "check"), ("range-query", "query")):
            status, said, peaks["release"] = zygote.run(releasing(mechanism, "bomb", 1))
            assert status == 0, said
            status, said, peaks[command] = zygote.run(ASKED[command])
            assert status == 0, said
            (folder / "bomb").rename(mechanism)
    finally:
        os.chdir(where)
    return folder, peaks


def zipped(path, members, level=9):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        for name, content in members:
            file.writestr(name, content)


ONE_STEP = b'{"format": 1, "steps": ["a"]}'


def manifest_of_many_items(folder):
    (folder / files.MANIFEST).write_bytes(b"[" + b"[]," * 30_000_000 + b"[]]")


def manifest_that_is_deep(folder):
    (folder / files.MANIFEST).write_bytes(b'{"a":' * 10_000_000)


def manifest_of_a_hundred_megabytes(folder):
    """A single text in well-formed JSON."""
    manifest = json.loads((folder / files.MANIFEST).read_text())
    manifest["note"] = "x" * 100_000_000
    (folder / files.MANIFEST).write_text(json.dumps(manifest))


@cache
def tall(millions=1000):
    """A thousand million rows in a few megabytes."""
    path = io.BytesIO()
    part = pa.table({"n": pa.array(np.zeros(50_000_000, np.int8))})
    with pq.ParquetWriter(path, part.schema, compression="zstd") as writer:
        for _ in range(millions // 50):
            writer.write_table(part, row_group_size=50_000_000)
    return path.getvalue()


def tall_table(folder):
    (folder / "released.parquet").write_bytes(tall())


@cache
def wide(columns=100_000):
    path = io.BytesIO()
    pq.write_table(pa.table([pa.array([1])] * columns, [f"c{i}" for i in range(columns)]), path)
    return path.getvalue()


def wide_table(folder):
    (folder / "released.parquet").write_bytes(wide())


def rows_that_are_claimed(folder):
    """Metadata that claim 2^40 rows where there are thirty."""
    path = folder / "released.parquet"
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[-8:-4], "little")
    content[-8 - size : -8] = bytes(
        b ^ 0x40 if i % 37 == 5 else b for i, b in enumerate(content[-8 - size : -8])
    )
    path.write_bytes(content)


def long_texts(folder):
    names = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"region": names}), folder / "released.parquet")


def regions_of_commas(folder):
    with (folder / files.REGIONS).open("a") as file:
        file.writelines("," * 1_000_000 for _ in range(50))


def steps_of_many_items(folder):
    """30 million empty lists, as once found."""
    lists = b"[" + b"[]," * 30_000_000 + b"[]]"
    zipped(folder / files.PROOFS, [(proofs.NAMES, b'{"format": 1, "steps": %s}' % lists)])


def one_line_of_regions(folder):
    """Five hundred million bytes without an end of line."""
    with (folder / files.REGIONS).open("ab") as file:
        for _ in range(500):
            file.write(b"x" * 1_000_000)


def npy(shape, kind="<i8"):
    """The header of an array of this shape, followed by a few bytes instead of its entries."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(64)


def inner(changed):
    """Replace arrays of the first step, stored as NumPy stores them."""

    def bomb(folder):
        with zipfile.ZipFile(folder / files.PROOFS) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(io.BytesIO(members["000000.npz"])) as file:
            arrays = {name: file.read(name) for name in file.namelist()}
        kept = io.BytesIO()
        with zipfile.ZipFile(kept, "w", zipfile.ZIP_STORED) as file:
            for name, content in changed(arrays).items():
                file.writestr(name, content)
        members["000000.npz"] = kept.getvalue()
        zipped(folder / files.PROOFS, members.items(), level=1)

    return bomb


def arrays_of_huge_shapes(folder):
    inner(
        lambda arrays: {
            name: kept if name == "about.json.npy" else npy("(1000000000000,)")
            for name, kept in arrays.items()
        }
    )(folder)


def arrays_of_huge_texts(folder):
    """An array whose header claims one text of 2^31 characters."""
    inner(lambda arrays: {**arrays, "about.json.npy": npy("()", "<U2000000000")})(folder)


def step_of_deep_json(folder):
    deep = io.BytesIO()
    np.save(deep, np.array("[" * 1_000_000))
    inner(lambda arrays: {**arrays, "about.json.npy": deep.getvalue()})(folder)


def many_members(folder):
    zipped(folder / files.PROOFS, ((f"{i:06d}.npz", b"") for i in range(200_000)), level=1)


def steps_that_are_deep(folder):
    zipped(folder / files.PROOFS, [(proofs.NAMES, b"[" * 50_000_000)])


def member_of_zeros(folder):
    zipped(folder / files.PROOFS, [("000000.npz", bytes(1_500_000_000)), (proofs.NAMES, ONE_STEP)], level=1)


def edit_directory(folder, at, code, value):
    """Change a field of the first entry in the directory of proofs.zip."""
    path = folder / files.PROOFS
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    struct.pack_into(code, content, start + at, value)
    path.write_bytes(content)


def size_that_is_claimed(folder):
    edit_directory(folder, 24, "<L", 4_000_000_000)


def size_that_is_less(folder):
    zipped(folder / files.PROOFS, [("000000.npz", bytes(1_000_000_000)), (proofs.NAMES, ONE_STEP)], level=1)
    edit_directory(folder, 24, "<L", 1_000)


def members_that_overlap(folder):
    """All entries of the directory point to the same large member, as in Fifield's bomb."""
    path = folder / files.PROOFS
    zipped(path, [("000000.npz", bytes(90_000_000)), *((f"{i:06d}.npz", b"") for i in range(1, 30))])
    content = bytearray(path.read_bytes())
    first = content.index(b"PK\x01\x02")
    about, at = content[first + 16 : first + 28], first
    while (at := content.find(b"PK\x01\x02", at + 4)) > 0:
        content[at + 16 : at + 28] = about
        content[at + 42 : at + 46] = bytes(4)
    path.write_bytes(content)


def directory_of_zip64(folder):
    """Final records that claim 2^60 files in 2^60 bytes."""
    path = folder / files.PROOFS
    content = path.read_bytes()
    at = content.rindex(b"PK\x05\x06")
    record = b"PK\x06\x06" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, 2**60, 2**60, 2**60, 0)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, at, 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
    path.write_bytes(content[:at] + record + locator + end)


def many_settings(folder):
    """A manifest that claims a histogram of 10^12 bins."""
    text = (folder / files.MANIFEST).read_text().replace('"bins": 8', '"bins": 1000000000000')
    (folder / files.MANIFEST).write_text(text)


BOMBS = [
    manifest_of_many_items, manifest_that_is_deep, manifest_of_a_hundred_megabytes, tall_table, wide_table,
    rows_that_are_claimed, long_texts, regions_of_commas, one_line_of_regions, steps_of_many_items,
    steps_that_are_deep, many_members, member_of_zeros, size_that_is_claimed, size_that_is_less,
    members_that_overlap, directory_of_zip64, arrays_of_huge_shapes, arrays_of_huge_texts, step_of_deep_json,
]  # fmt: skip


def refused(zygote, command, arguments, usual):
    status, said, peak = zygote.run(arguments, before=LIMITED)
    assert_no_traceback(said)
    assert status in (1, 2), said
    counted(f"hostile files that hierdp {command} refused")
    largest("megabytes of the largest refusal, beyond those of an honest run", (peak - usual) // 1_000_000)
    assert peak - usual < GIGABYTE
    return said


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_release_that_is_a_bomb(zygote, honest, place, bomb):
    folder, usual = honest
    shutil.copytree(folder / "group-size", place / "bomb")
    bomb(place / "bomb")
    seal.seal(place / "bomb")
    refused(zygote, "check", ASKED["check"], usual["check"])


@pytest.mark.parametrize("bomb", [
    manifest_of_many_items, manifest_that_is_deep, tall_table, wide_table, rows_that_are_claimed, long_texts,
    many_settings,
], ids=lambda bomb: bomb.__name__)  # fmt: skip
def test_a_histogram_that_is_a_bomb(zygote, honest, place, bomb):
    """`query` reads only the manifest and the table."""
    folder, usual = honest
    shutil.copytree(folder / "range-query", place / "bomb")
    bomb(place / "bomb")
    seal.seal(place / "bomb")
    refused(zygote, "query", ASKED["query"], usual["query"])
    refused(zygote, "check", ASKED["check"], usual["check"])
