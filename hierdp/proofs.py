"""The post-processing problems of a release with their answers, in one file: what its certificates need.

Safe to publish: a model holds noisy counts and public facts, and no true count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from hierdp.record import Step, Steps
from models import Model
from models.certificate import Witness
from models.instances import Instance, UnknownModel, packed, unpacked

NAMES = "steps.json"

MOST_BYTES = 100 * Steps.MOST
"""Of one step with its data: four times what `Steps` reckons with."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A problem and its answer, as a release keeps them."""

    step: str
    model: Model
    x: NDArray[Any]
    witness: Witness | None = None
    """What the certificate takes beside the answer; None where the answer is enough."""
    witnessed: bool = True
    """False in releases made before witnesses were kept."""


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
            np.savez(member, allow_pickle=False, **packed(step.model, found.x, found.witness))
            file.writestr(_member(f"{len(names):06d}.npz"), member.getvalue())
            names.append(step.name)
        file.writestr(_member(NAMES), json.dumps(names, ensure_ascii=False))


def read(path: Path) -> Iterator[Kept]:
    """What `write` wrote, a problem at a time.

    Raises
    ------
    ValueError
        If the file is none of these, or is broken.
    """
    try:
        with ZipFile(path) as file:
            names = json.loads(file.read(_small(file.getinfo(NAMES))))
            members = [f"{at:06d}.npz" for at in range(len(names))]
            if sorted(file.namelist()) != sorted([*members, NAMES]):
                raise ValueError("it holds other files than its steps")
            for name, member in zip(names, members, strict=True):
                kept = _unpacked(file.read(_small(file.getinfo(member))))
                if kept.answer is None:
                    raise ValueError(f"{name} has no answer")
                yield Kept(str(name), kept.model, kept.answer, kept.witness, kept.witnessed)
    except UnknownModel:
        raise
    except ValueError as broken:
        raise ValueError(f"{path.name} is broken: {broken}") from None
    except Exception as broken:  # what a broken file makes its readers raise is anybody's guess
        raise ValueError(f"{path.name} is broken: {type(broken).__name__}") from None


def _unpacked(member: bytes) -> Instance:
    with ZipFile(io.BytesIO(member)) as inner:
        for info in inner.infolist():
            if info.compress_type != ZIP_STORED:  # as `write` stores them: what is in it is no larger than it
                raise ValueError(f"{info.filename} is compressed twice")
    with np.load(io.BytesIO(member), allow_pickle=False) as arrays:
        return unpacked(arrays)


def _small(member: ZipInfo) -> ZipInfo:
    """Refuse what says that it unpacks to more than any step: it would fill the memory."""
    if member.file_size > MOST_BYTES:
        raise ValueError(f"{member.filename} is too large for a step")
    return member


def _member(name: str) -> ZipInfo:
    made = ZipInfo(name)  # of 1980: the time would make files differ
    made.compress_type = ZIP_DEFLATED
    return made
