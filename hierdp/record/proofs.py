"""The file `proofs.zip`: the post-processing problems of a release, their answers and their witnesses.

It is safe to publish, because a model holds noisy counts and public facts, but no true count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from hierdp.record import zips
from hierdp.record.files import PROOFS
from hierdp.record.step import Step
from hierdp.record.written import LIMIT, TooLarge, json_bytes, parsed
from models import Model
from models.certificate import Witness
from models.instances import Instance, UnknownModel, packed, unpacked

NAMES = "steps.json"

MOST_BYTES, MOST_OF_A_VARIABLE = 100_000_000, 1_000
"""Limit on the bytes of a step's file: a constant, and a number for each variable. `Steps` assumes 25 bytes a
variable, but a witness that lists cases may be much larger."""

ZIPPED_ARRAY = 128
"""The fewest bytes of an array in a step's file: those of its header."""

ABOUT = "about.json"

PROBLEMS = "names of the problems"
"""The entry that names a step's problems, if it has many side by side: a JSON list in UTF-8, as bytes."""


@dataclass(frozen=True, eq=False)
class SavedStep:
    """A problem and its answer, as a release keeps them."""

    step: str
    model: Model
    x: NDArray[Any]
    witness: Witness | None = None
    """What the certificate needs in addition to the answer; None if it needs nothing."""
    witnessed: bool = True
    """False in releases made before witnesses were kept."""
    problems: tuple[str, ...] = ()
    """Names of the problems, as in `Step`."""


class ProofsFile:
    """Writes steps one at a time to a zip file of `.npz` files, with their witnesses.

    The same steps give the same bytes.
    """

    def __init__(self, path: Path) -> None:
        self._file = ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1)
        self._names: list[str] = []

    def add(self, step: Step) -> None:
        """Write a step, unless it has no answer."""
        found = step.solution
        if found.x is None:
            return
        member = io.BytesIO()
        arrays = packed(step.model, found.x, found.witness)
        if step.problems:
            arrays[PROBLEMS] = np.frombuffer(_json(step.problems).encode(), np.uint8)
        np.savez(member, allow_pickle=False, **arrays)
        self._file.writestr(_member(f"{len(self._names):06d}.npz"), member.getbuffer())
        self._names.append(step.name)

    def close(self) -> None:
        """Write the names of the steps, and close the file, also if it cannot be written."""
        try:
            self._file.writestr(_member(NAMES), _json(self._names))
        finally:
            self._file.close()


def write(steps: Iterable[Step], path: Path) -> None:
    """Write all steps that have an answer; see `ProofsFile`."""
    with closing(ProofsFile(path)) as file:
        for step in steps:
            file.add(step)


def read(
    path: Path,
    lines: Sequence[Mapping[str, Any]] | None = None,
    limit: int = LIMIT,
    one_by_one: bool = False,
) -> Iterator[SavedStep]:
    """Read the file that `write` wrote, one step at a time.

    Parameters
    ----------
    path : Path
    lines : sequence of mapping, optional
        The manifest's line for each step, with its name (`step`) and number of `variables`. They bound the
        size of the file's contents; without them, only `limit` does.
    limit : int
        Limit on the memory for reading it, in bytes.
    one_by_one : bool
        Whether the caller holds one step at a time. By default all steps have to fit the limit together.

    Raises
    ------
    ValueError
        If the file is broken, or is not a file of proofs.
    TooLarge
        If it may need more memory.
    """
    try:
        with path.open("rb") as whole:
            zips.check_entries(whole, limit // 1_000 if lines is None else len(lines) + 1)
            with ZipFile(whole) as file:
                yield from _steps(file, lines, limit, one_by_one)
    except (UnknownModel, TooLarge):
        raise
    except ValueError as broken:
        raise ValueError(f"{path.name} is broken: {broken}") from None
    except Exception as broken:  # readers raise many types for broken files
        raise ValueError(f"{path.name} is broken: {type(broken).__name__}") from None


def _steps(
    file: ZipFile, lines: Sequence[Mapping[str, Any]] | None, limit: int, one_by_one: bool
) -> Iterator[SavedStep]:
    sizes = [info.file_size for info in file.infolist()]
    # The step that is being read is in memory three times.
    if (needed := (max(sizes) if one_by_one else sum(sizes)) + 2 * max(sizes)) > limit:
        raise TooLarge(PROOFS, needed, limit)
    listed = file.getinfo(NAMES)
    if lines is not None and listed.file_size > 2 + sum(
        len(_json(line["step"]).encode()) + 2 for line in lines
    ):
        raise ValueError(f"{NAMES} is longer than the names of the manifest's steps")
    names = parsed(zips.contents(file, listed), f"{NAMES} in {PROOFS}", limit)
    members = [f"{at:06d}.npz" for at in range(len(names))]
    if sorted(file.namelist()) != sorted([*members, NAMES]):
        raise ValueError("it contains files that are not steps")
    if lines is not None and len(names) > len(lines):
        raise ValueError("it has more steps than the manifest")
    for at, (name, member) in enumerate(zip(names, members, strict=True)):
        info = file.getinfo(member)
        if lines is not None and info.file_size > _most_bytes(int(lines[at]["variables"])):
            raise ValueError(f"{member} is too large for a step of {int(lines[at]['variables']):,} variables")
        kept, problems = _unpacked(zips.contents(file, info), limit)
        if kept.answer is None:
            raise ValueError(f"{name} has no answer")
        yield SavedStep(str(name), kept.model, kept.answer, kept.witness, kept.witnessed, problems)
        del kept  # it may be large


def _unpacked(member: bytes, limit: int) -> tuple[Instance, tuple[str, ...]]:
    zips.check_entries(io.BytesIO(member), len(member) // ZIPPED_ARRAY)
    with ZipFile(io.BytesIO(member)) as inner:
        infos = inner.infolist()
    for info in infos:
        if info.compress_type != ZIP_STORED:  # `write` stores them uncompressed, which bounds their size
            raise ValueError(f"{info.filename} is compressed twice")
    if sum(info.file_size for info in infos) > len(member):
        raise ValueError("files within it overlap")
    with np.load(io.BytesIO(member), allow_pickle=False) as arrays:
        if (needed := json_bytes(str(arrays[ABOUT]).encode())) > limit:
            raise TooLarge(PROOFS, needed, limit)
        if PROBLEMS not in arrays:
            return unpacked(arrays), ()
        names = parsed(arrays[PROBLEMS].astype(np.uint8).tobytes(), PROBLEMS, limit)
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"the {PROBLEMS} are not a list of text")
        return unpacked(arrays), tuple(names)


def _most_bytes(variables: int) -> int:
    return MOST_BYTES + MOST_OF_A_VARIABLE * variables


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _member(name: str) -> ZipInfo:
    made = ZipInfo(name)  # dated 1980, so that equal contents give equal files
    made.compress_type = ZIP_DEFLATED
    return made
