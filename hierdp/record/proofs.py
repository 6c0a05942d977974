"""The file `proofs.zip`: the answers to a release's post-processing problems, and their witnesses.

The problems are not in it: they follow from the measurements, so a check makes them again. It is safe to
publish, because the answers are functions of the measurements and of public facts.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hierdp.record.files import PROOFS
from hierdp.record.step import Step
from hierdp.record.written import LIMIT, TooLarge, json_bytes, parsed
from models.certificate import Witness
from models.instances import ABOUT, packed_answer, unpacked_answer

NAMES = "steps.json"

FORMAT = 1
"""The format of the file, which its `steps.json` has under "format"."""

MOST_BYTES, MOST_OF_A_VARIABLE = 100_000_000, 1_000
"""Limit on the bytes of a step's file: a constant, and a number for each variable. `Steps` assumes 25 bytes a
variable, but a witness that lists cases may be much larger."""

FASTEST = 1
"""The level of compression: higher ones take 3 times as long, for 5 % less."""

LARGE = 1_000_000
"""Bytes. Arrays of larger files are read in parts."""

ZIPPED_ARRAY = 128
"""The fewest bytes of an array in a step's file: those of its header."""


@dataclass(frozen=True, eq=False)
class SavedStep:
    """An answer, as a release keeps it."""

    name: str
    x: NDArray[Any]
    witness: Witness | None = None
    """What the certificate needs in addition to the answer; None if it needs nothing."""


class ProofsFile:
    """Writes the answers of steps, one at a time, to a zip file of `.npz` files, with their witnesses.

    The same steps give the same bytes.
    """

    def __init__(self, path: Path) -> None:
        self._file = ZipFile(path, "w", ZIP_DEFLATED)
        self._names: list[str] = []

    def add(self, step: Step) -> None:
        """Write a step, unless it has no answer."""
        found = step.solution
        if found.x is None:
            return
        member = _packed(packed_answer(found.x, found.witness))
        self._file.writestr(_member(f"{len(self._names):06d}.npz"), member, compresslevel=FASTEST)
        self._names.append(step.name)

    def close(self) -> None:
        """Write the names of the steps, and close the file, also if it cannot be written."""
        try:
            self._file.writestr(_member(NAMES), _about(self._names))
        finally:
            self._file.close()


def write(steps: Iterable[Step], path: Path) -> None:
    """Write all steps that have an answer; see `ProofsFile`."""
    with closing(ProofsFile(path)) as file:
        for step in steps:
            file.add(step)


def read(
    path: Path, lines: Sequence[Mapping[str, Any]] | None = None, limit: int = LIMIT
) -> Iterator[SavedStep]:
    """Read the file that `write` wrote, one step at a time.

    - lines: the manifest's line for each step, with its name (`step`) and number of `variables`. They bound
      the size of the file's contents; without them, only `limit` does.
    - limit: limit on the memory for reading a step, in bytes.

    Raises `ValueError` if the file is broken, or is not a file of proofs; `TooLarge` if a step may need more
    memory.
    """
    try:
        with path.open("rb") as whole:
            check_entries(whole, limit // 1_000 if lines is None else len(lines) + 1)
            with ZipFile(whole) as file:
                for at, name in enumerate(_names(file, lines, limit)):
                    info = file.getinfo(f"{at:06d}.npz")
                    variables = 0 if lines is None else int(lines[at]["variables"])
                    most = MOST_BYTES + MOST_OF_A_VARIABLE * variables
                    if lines is not None and info.file_size > most:
                        raise ValueError(
                            f"{info.filename} is too large for a step of {variables:,} variables"
                        )
                    yield _saved_step(name, contents(file, info), limit)
    except TooLarge:
        raise
    except ValueError as broken:
        raise ValueError(f"{path.name} is broken: {broken}") from None
    except Exception as broken:  # readers raise many types for broken files
        raise ValueError(f"{path.name} is broken: {type(broken).__name__}") from None


def _names(file: ZipFile, lines: Sequence[Mapping[str, Any]] | None, limit: int) -> list[str]:
    """The names of the steps; the file has these, and nothing else."""
    largest = max(info.file_size for info in file.infolist())
    if (needed := 3 * largest) > limit:  # the step that is being read is in memory three times
        raise TooLarge(PROOFS, needed, limit)
    listed = file.getinfo(NAMES)
    if lines is not None and listed.file_size > len(_about([])) + sum(
        len(_json(line["step"]).encode()) + 2 for line in lines
    ):
        raise ValueError(f"{NAMES} is longer than the names of the manifest's steps")
    about = parsed(contents(file, listed), f"{NAMES} in {PROOFS}", limit)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{NAMES} does not say that the file has the format {FORMAT}")
    names = about.get("steps")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{NAMES} has no list of names")
    members = [f"{at:06d}.npz" for at in range(len(names))]
    if sorted(file.namelist()) != sorted([*members, NAMES]):
        raise ValueError("it contains files that are not steps")
    if lines is not None and len(names) > len(lines):
        raise ValueError("it has more steps than the manifest")
    return names


def _saved_step(name: str, member: bytes, limit: int) -> SavedStep:
    check_entries(io.BytesIO(member), len(member) // ZIPPED_ARRAY)
    with ZipFile(io.BytesIO(member)) as inner:
        infos = inner.infolist()
        for info in infos:
            if info.compress_type != ZIP_STORED:  # `write` stores them uncompressed, which bounds their size
                raise ValueError(f"{info.filename} is compressed twice")
        if sum(info.file_size for info in infos) > len(member):
            raise ValueError("files within it overlap")
        arrays = _Arrays(inner)
        if (needed := json_bytes(str(arrays[ABOUT]).encode())) > limit:
            raise TooLarge(PROOFS, needed, limit)
        x, witness = unpacked_answer(arrays)
        if not isinstance(x, np.ndarray):
            raise ValueError(f"step {name!r} has no answer")
        return SavedStep(name, x, witness)


def _packed(arrays: Mapping[str, Any]) -> memoryview:
    """The arrays as a `.npz` file; small ones without `numpy.savez`, which takes twice as long."""
    member = io.BytesIO()
    if sum(array.nbytes for array in arrays.values()) > LARGE:
        np.savez(member, allow_pickle=False, **arrays)
        return member.getbuffer()
    with ZipFile(member, "w", ZIP_STORED) as inner:
        for name, array in arrays.items():
            inner.writestr(ZipInfo(f"{name}.npy"), _start(array.dtype, array.shape) + array.tobytes())
    return member.getbuffer()


@lru_cache(maxsize=1_000)
def _start(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The start of the file of an array in C order."""
    if dtype.hasobject:
        raise ValueError("objects are not saved")
    file, kind = io.BytesIO(), npy.dtype_to_descr(dtype)
    npy.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


class _Arrays:
    """The arrays of an `.npz` file by name, as `numpy.load` gives them.

    NumPy parses the header of each array as Python code, which takes longer than reading a small array.
    """

    def __init__(self, file: ZipFile) -> None:
        self._file = file

    def __getitem__(self, name: str) -> NDArray[Any]:
        info = self._file.getinfo(f"{name}.npy")
        if info.file_size > LARGE:
            with self._file.open(info) as large:
                return np.asarray(npy.read_array(large, allow_pickle=False))
        data = self._file.read(info)
        start = 10 + int.from_bytes(data[8:10], "little")
        shape, by_columns, dtype = _header(data[:start])
        found = np.frombuffer(data, dtype, offset=start)
        return found.reshape(shape, order="F" if by_columns else "C").copy()


@lru_cache(maxsize=1_000)
def _header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array from the start of its file, which is of version 1.0."""
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("an array has another format")
    return npy.read_array_header_1_0(file)


def _about(names: list[str]) -> str:
    return _json({"format": FORMAT, "steps": names})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _member(name: str) -> ZipInfo:
    made = ZipInfo(name)  # dated 1980, so that equal contents give equal files
    made.compress_type = ZIP_DEFLATED
    return made


_END, _END_64, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENTRY = 128
"""Upper bound on the bytes of a directory entry: 46, a name of 10, and the fields for files above 4 GB."""


def check_entries(file: IO[bytes], most: int) -> None:
    """Refuse a file whose directory has more than `most` entries, before it is parsed.

    Raises `ValueError` if there are more, or the file is not a zip file without a comment, as Python writes
    it.
    """
    size = _directory(file)
    if size > _ENTRY * most:
        raise ValueError(f"its directory takes {size:,} bytes, and {most} files are expected")


def _directory(file: IO[bytes]) -> int:
    length = file.seek(0, 2)
    file.seek(max(0, length - 98))  # the last record, and the two before it in a large file
    end = file.read()
    if end[-22:-18] != _END or end[-2:] != b"\0\0":
        raise ValueError("it is not a zip file")
    size: int
    if end[-42:-38] != _LOCATOR_64:
        (size,) = struct.unpack("<L", end[-10:-6])
        return size
    (where,) = struct.unpack("<Q", end[-34:-26])
    if end[-98:-94] != _END_64 or where != length - 98:
        raise ValueError("its directory is not where it should be")
    (size,) = struct.unpack("<Q", end[-58:-50])
    return size


def contents(file: ZipFile, member: ZipInfo) -> bytes:
    """The contents of a compressed member, which must unpack to the size in its entry.

    `ZipFile.read` would unpack everything before it compares sizes.

    Raises `ValueError`, `BadZipFile` if the sizes differ.
    """
    if member.compress_type != ZIP_DEFLATED:
        raise ValueError(f"{member.filename} is compressed in another way")
    with file.open(member) as opened:
        found = opened.read(member.file_size)
    if len(found) != member.file_size:
        raise ValueError(f"{member.filename} is shorter than it says")
    return found
