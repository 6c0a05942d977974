"""The solved steps of a release: in memory, or, of a large one, in a temporary file."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, overload

from hierdp import execution
from hierdp.errors import InputError
from hierdp.record.files import PROOFS
from hierdp.record.proofs import ProofsFile, SavedStep, read, write
from hierdp.record.step import Proved, Solving, Step, keeping_steps
from models import Model

T = TypeVar("T")

NO_LIMIT = 1 << 62
"""For a file of our own."""


class Spool(Sequence[Step]):
    """Steps in memory; once they have many variables, they are saved instead, as soon as they are solved.

    Only answers are saved, not problems. The file is the `proofs.zip` of the release, in a folder of its own
    under ``TMPDIR``, which is deleted with this object. It contains noisy counts, but no true ones.

    - most: the largest number of variables of the steps in memory.
    - proved: the steps' lines in the manifest.
    """

    def __init__(self, steps: Iterable[Step] = (), most: float = math.inf) -> None:
        self.proved: list[Proved] = []
        self._held: list[Step] = []
        self._room = most
        self._folder: TemporaryDirectory[str] | None = None
        self._file: ProofsFile | None = None
        for step in steps:
            self.append(step)

    @property
    def in_memory(self) -> bool:
        """Whether the steps have their problems."""
        return self._folder is None

    def append(self, step: Step) -> None:
        """Keep a step."""
        assert self.in_memory or self._file is not None, "the file is complete"
        self.proved.append(step.proved)
        self._room -= step.proved.variables
        self._held.append(step)
        if self._room < 0 and self._folder is None:
            self._folder = TemporaryDirectory(prefix="hierdp-")
            self._file = ProofsFile(self._path)
        while self._file is not None and self._held:
            self._file.add(self._held.pop(0))

    @property
    def _path(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / PROOFS

    def _close(self) -> None:
        """Complete the file: no further step is saved."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, path: Path) -> None:
        """Write the answers, as `hierdp.record.proofs.write`."""
        if self.in_memory:
            write(self._held, path)
        else:
            self._close()
            shutil.copyfile(self._path, path)

    def saved(self) -> Iterator[SavedStep]:
        """The answers of saved steps, one at a time; the file is complete then."""
        self._close()
        return read(self._path, limit=NO_LIMIT)

    def __len__(self) -> int:
        return len(self.proved)

    @overload
    def __getitem__(self, at: int) -> Step: ...

    @overload
    def __getitem__(self, at: slice) -> list[Step]: ...

    def __getitem__(self, at: int | slice) -> Step | list[Step]:
        """One or some of the steps in memory.

        Raises `InputError` if they were saved: their problems are not kept.
        """
        if self.in_memory:
            return self._held[at]
        raise InputError(
            "the steps of a large release are saved without their problems; use `Release.proved` for their "
            "results, or `hierdp.verify` to solve a sample of them again"
        )


class Steps:
    """Solves steps and collects them in a `Spool`.

    - most: the largest number of variables of the steps in memory. Default: `MOST`.
    """

    MOST = 10_000_000
    """Largest number of variables of the steps in memory: about 250 MB with data, answers and prices."""

    def __init__(self, solving: Solving = Step.solve, most: int | None = None) -> None:
        self.kept = Spool(most=self.MOST if most is None else most)
        self._solving = solving

    def __call__(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """Solve a step, and keep it."""
        step = self._solving(name, model, problems)
        self.kept.append(step)
        return step

    def solve_all(self, work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], what: str) -> Iterator[T]:
        """`hierdp.record.step.solve_all`; every step is kept."""
        for result, steps in execution.each(keeping_steps, tasks, what, (work, self._solving)):
            for step in steps:
                self.kept.append(step)
            yield result
