"""Write the proofs of a release as text, for checkers that are written in other languages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hierdp.checking.rerun import Rerun
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.registry import released_by
from hierdp.record import written
from hierdp.record.files import PROOFS
from hierdp.record.proofs import SavedStep, read
from hierdp.record.replay import Replay
from models import Model
from models.certificate import Certificate, Witness
from models.witnesses.plain_text import ProofsText
from models.witnesses.vipr import SKIPPED, ViprFiles

EXPORTED = "proofs.txt"
VIPR = "*.vipr"

Use = Callable[[str, Model, Any, Witness | None], object]
"""Takes a step's name, model, answer and witness."""


def export(
    release: str | Path, folder: str | Path, limit: int | None = None, form: str = "text"
) -> tuple[int, int]:
    """Write each step of a release, with its answer and prices, to a folder.

    - folder: created if it does not exist. No file is replaced.
    - limit: limit on the memory for reading the release, in bytes. Default: what its size justifies.
    - form ({"text", "vipr"}): one file ``proofs.txt`` for the checker of docs/theorem, or a VIPR 1.1
      certificate for each problem.

    Returns: how many problems were written, and how many were left out; a line gives the reason for each of
    the latter (of VIPR in ``skipped.txt``).

    Raises `InputError` if the release has no proofs, they cannot be read, or files exist.
    """
    release, folder = Path(release), Path(folder)
    if not (release / PROOFS).is_file():
        raise InputError(
            f"{release / PROOFS} does not exist: the release was written without proofs, so none can be "
            "exported"
        )
    patterns = [VIPR, SKIPPED] if form == "vipr" else [EXPORTED]
    for before in (path for pattern in patterns for path in folder.glob(pattern)):
        raise InputError(f"{before} exists; choose another folder for --export, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if form == "vipr":
            files = ViprFiles(folder)
            for_each_step(release, files.add, limit)
            return files.written, files.skipped
        with (folder / EXPORTED).open("w", encoding="utf-8", newline="\n") as out:
            text = ProofsText(out)
            for_each_step(release, text.add, limit)
        return text.written, text.skipped
    except BaseException as error:
        for half in [path for pattern in patterns for path in folder.glob(pattern)]:
            half.unlink()
        if isinstance(error, InputError) or not isinstance(error, Exception):
            raise
        raise InputError(f"the proofs cannot be exported: {error}") from None


def for_each_step(release: Path, use: Use, limit: int | None = None) -> None:
    """Repeat a release's post-processing, and call a function with each of its steps.

    The answers are the saved ones, whatever their certificates say. If a step is missing, or is not the
    mechanism's, those before it are taken.

    Raises `InputError` if a file is broken, or this version does not know the mechanism; `ValueError` if the
    file of proofs is broken.
    """
    limit = written.limit_for(release, limit)
    found = written.read(release, limit)
    mechanism = released_by(found.manifest["mechanism"])
    if mechanism is None:
        raise InputError(f"this version does not know the mechanism {found.manifest['mechanism']!r}")
    saved = read(release / PROOFS, found.manifest["solved"], limit)

    def prove(step: SavedStep, model: Model, _: Sequence[str]) -> Certificate:
        progress.watch_compiler()
        use(step.name, model, step.x, step.witness)
        return model.certificate(step.x, step.witness)

    with suppress(Differs):
        Rerun(mechanism.checking, found)(Replay(saved, prove))
