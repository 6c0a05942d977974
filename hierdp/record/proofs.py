"""The post-processing problems of a release with their answers, in one file: what its certificates need.

Safe to publish: a model holds noisy counts and public facts, and no true count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Of one step with its data and witness, and for each of its variables in addition; `Steps` reckons with 25
bytes a variable, and witnesses that list cases have no such measure."""

ZIPPED_ARRAY = 128
"""Bytes of an array in a step's file, no fewer: its header alone has as many."""

ABOUT = "about.json"

PROBLEMS = "names of the problems"
"""A JSON list in UTF-8, as bytes: of a step that has many problems side by side."""


@dataclass(frozen=True, eq=False)
class SavedStep:
    """A problem and its answer, as a release keeps them."""

    step: str
    model: Model
    x: NDArray[Any]
    witness: Witness | None = None
    """What the certificate takes beside the answer; None where the answer is enough."""
    witnessed: bool = True
    """False in releases made before witnesses were kept."""
    problems: tuple[str, ...] = ()
    """As of a `Step`."""


def write(steps: Iterable[Step], path: Path) -> None:
    """All steps that have an answer, with their witnesses, as a zip file of `.npz` files.

    The same steps give the same bytes.
    """
    names: list[str] = []
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as file:
        for step in steps:
            found = step.solution
            if found.x is None:
                continue
            member = io.BytesIO()
            arrays = packed(step.model, found.x, found.witness)
            if step.problems:
                arrays[PROBLEMS] = np.frombuffer(_json(step.problems).encode(), np.uint8)
            np.savez(member, allow_pickle=False, **arrays)
            file.writestr(_member(f"{len(names):06d}.npz"), member.getvalue())
            names.append(step.name)
        file.writestr(_member(NAMES), _json(names))


def read(
    path: Path, told: Sequence[Mapping[str, Any]] | None = None, limit: int = LIMIT
) -> Iterator[SavedStep]:
    """What `write` wrote, a problem at a time.

    Parameters
    ----------
    path : Path
    told : sequence of mapping, optional
        What the manifest says of each step: its name (`step`) and number of `variables`. It limits what the
        file may hold; without it, only `limit` does.
    limit : int
        Bytes of memory that reading it may take.

    Raises
    ------
    ValueError
        If the file is none of these, or is broken.
    TooLarge
        If it may take more memory than that.
    """
    try:
        with path.open("rb") as whole:
            zips.check_entries(whole, limit // 1_000 if told is None else len(told) + 1)
            with ZipFile(whole) as file:
                yield from _steps(file, told, limit)
    except (UnknownModel, TooLarge):
        raise
    except ValueError as broken:
        raise ValueError(f"{path.name} is broken: {broken}") from None
    except Exception as broken:  # what a broken file makes its readers raise is anybody's guess
        raise ValueError(f"{path.name} is broken: {type(broken).__name__}") from None


def _steps(file: ZipFile, told: Sequence[Mapping[str, Any]] | None, limit: int) -> Iterator[SavedStep]:
    sizes = [info.file_size for info in file.infolist()]
    # The table is made of the steps, so that many are held; the one being read is there three times.
    if (needed := sum(sizes) + 2 * max(sizes)) > limit:
        raise TooLarge(PROOFS, needed, limit)
    listed = file.getinfo(NAMES)
    if told is not None and listed.file_size > 2 + sum(
        len(_json(line["step"]).encode()) + 2 for line in told
    ):
        raise ValueError(f"{NAMES} is longer than the names of the manifest's steps")
    names = parsed(zips.contents(file, listed), f"{NAMES} in {PROOFS}", limit)
    members = [f"{at:06d}.npz" for at in range(len(names))]
    if sorted(file.namelist()) != sorted([*members, NAMES]):
        raise ValueError("it holds other files than its steps")
    if told is not None and len(names) > len(told):
        raise ValueError("it has more steps than the manifest")
    for at, (name, member) in enumerate(zip(names, members, strict=True)):
        info = file.getinfo(member)
        if told is not None and info.file_size > _most_bytes(int(told[at]["variables"])):
            raise ValueError(f"{member} is too large for a step of {int(told[at]['variables']):,} variables")
        kept, problems = _unpacked(zips.contents(file, info), limit)
        if kept.answer is None:
            raise ValueError(f"{name} has no answer")
        yield SavedStep(str(name), kept.model, kept.answer, kept.witness, kept.witnessed, problems)


def _unpacked(member: bytes, limit: int) -> tuple[Instance, tuple[str, ...]]:
    zips.check_entries(io.BytesIO(member), len(member) // ZIPPED_ARRAY)
    with ZipFile(io.BytesIO(member)) as inner:
        infos = inner.infolist()
    for info in infos:
        if info.compress_type != ZIP_STORED:  # as `write` stores them: what is in it is no larger than it
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
            raise ValueError(f"the {PROBLEMS} are not names")
        return unpacked(arrays), tuple(names)


def _most_bytes(variables: int) -> int:
    return MOST_BYTES + MOST_OF_A_VARIABLE * variables


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _member(name: str) -> ZipInfo:
    made = ZipInfo(name)  # of 1980: the time would make files differ
    made.compress_type = ZIP_DEFLATED
    return made
