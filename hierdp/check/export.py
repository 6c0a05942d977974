"""Write the proofs of a release as plain text, for checkers that are written in other languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.record.files import PROOFS
from hierdp.record.proofs import read
from hierdp.record.written import LIMIT
from models.certificate import Witness
from models.witnesses.plain_text import write_proofs

EXPORTED = "proofs.txt"


def export(release: str | Path, folder: str | Path, limit: int = LIMIT) -> tuple[int, int]:
    """Write each step of a release, with its answer and prices, to ``folder/proofs.txt``.

    Parameters
    ----------
    release : path
        The release's folder.
    folder : path
        Created if it does not exist. An existing file is not replaced.
    limit : int
        Limit on the memory for reading the release, in bytes.

    Returns
    -------
    tuple of int
        How many problems were written, and how many were left out; the file has a line with the reason for
        each of the latter.

    Raises
    ------
    InputError
        If the release has no proofs, they cannot be read, or the file exists.
    """
    saved, folder = Path(release) / PROOFS, Path(folder)
    if not saved.is_file():
        raise InputError(
            f"{saved} does not exist: the release was written without proofs, so none can be exported"
        )
    target = folder / EXPORTED
    if target.exists():
        raise InputError(f"{target} exists; choose another folder for --export, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return write_proofs(target, _steps(saved, limit))
    except BaseException as error:
        target.unlink()
        if isinstance(error, InputError) or not isinstance(error, ValueError):
            raise
        raise InputError(f"the proofs cannot be exported: {error}") from None


def _steps(saved: Path, limit: int) -> Iterator[tuple[str, Any, Any, Witness | None]]:
    for step in read(saved, limit=limit):
        progress.watch_compiler()
        yield step.step, step.model, step.x, step.witness
