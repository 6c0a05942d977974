"""The solved steps of a large release, in a temporary file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, overload

from hierdp import execution
from hierdp.errors import InputError
from hierdp.record.files import PROOFS
from hierdp.record.proofs import ProofsFile, SavedStep, read
from hierdp.record.step import Proved, Solving, Step, run_task
from models import Model

T = TypeVar("T")

NO_LIMIT = 1 << 62
"""For a file of our own."""


class Spool(Sequence[Step]):
    """Steps that are saved as soon as they are solved, so that only one of them is in memory.

    Their problems are not kept: only their answers are, and their number and results are known. The file is
    the `proofs.zip` of the release. It is in a folder of its own in the system's folder for temporary files
    (``TMPDIR``), which is deleted with this object. It contains noisy counts, but no true ones.

    - proved: the steps' lines in the manifest.
    """

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="hierdp-")
        self._path = Path(self._folder.name) / PROOFS
        self._file: ProofsFile | None = ProofsFile(self._path)
        self.proved: list[Proved] = []

    def append(self, step: Step) -> None:
        """Save a step."""
        assert self._file is not None, "the file is complete"
        self._file.add(step)
        self.proved.append(step.proved)

    def close(self) -> None:
        """Complete the file: no further step is saved."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, path: Path) -> None:
        """Copy the file, with the bytes that `hierdp.record.proofs.write` gives for the same steps."""
        self.close()
        shutil.copyfile(self._path, path)

    def saved(self) -> Iterator[SavedStep]:
        """The answers, one at a time; the file is complete then."""
        self.close()
        return read(self._path, limit=NO_LIMIT)

    def __len__(self) -> int:
        return len(self.proved)

    @overload
    def __getitem__(self, at: int) -> Step: ...

    @overload
    def __getitem__(self, at: slice) -> list[Step]: ...

    def __getitem__(self, at: int | slice) -> Step | list[Step]:
        """Refuse: the problems are not kept.

        Raises `InputError` in any case.
        """
        raise InputError(
            "the steps of a large release are saved without their problems; use `Release.proved` for their "
            "results, or `hierdp.verify` to solve a sample of them again"
        )


class Steps:
    """Solves steps and collects them: in memory, or all of them in a `Spool` when they have many variables.

    - most: the largest number of variables of the steps in memory. Default: `MOST`.
    """

    MOST = 10_000_000
    """Largest number of variables of the steps in memory: about 250 MB with data, answers and prices."""

    def __init__(self, solving: Solving = Step.solve, most: int | None = None) -> None:
        self.kept: list[Step] | Spool = []
        self._solving, self._room = solving, self.MOST if most is None else most

    def __call__(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """Solve a step, and keep it."""
        step = self._solving(name, model, problems)
        self.add(step)
        return step

    def run_each(self, work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[T]:
        """`hierdp.record.step.run_each`; every step is kept."""
        for found, steps in execution.each(run_task, tasks, what, (work, self._solving)):
            for step in steps:
                self.add(step)
            yield found

    def add(self, step: Step) -> None:
        """Keep a step."""
        self._room -= step.proved.variables
        if self._room < 0 and isinstance(self.kept, list):
            held, self.kept = self.kept, Spool()
            while held:
                self.kept.append(held.pop(0))
        self.kept.append(step)
