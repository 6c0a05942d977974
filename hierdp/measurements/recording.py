"""The measurements of a release, while it is made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hierdp.measurements.file import MeasurementsFile, Writer
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.rows import Measurement


class Recording:
    """Collects measurements: in memory, or all of them in a temporary file when they have many answers.

    The file is in a folder of its own in the system's folder for temporary files (``TMPDIR``). It contains
    noisy answers, but no true counts.
    """

    MOST = 4_000_000
    """Largest number of answers in memory."""

    def __init__(self) -> None:
        self._held: list[tuple[Measurement, int]] = []
        self._answers = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._file: Writer | None = None

    def add(self, measurement: Measurement, position: int = 0) -> None:
        """Keep a measurement or, from a position on, a further part of the last one.

        In memory it is kept as it is, so that it must not be changed.
        """
        self._answers += measurement.answers.size
        if self._file is None and self._answers > self.MOST:
            self._folder = TemporaryDirectory(prefix="hierdp-")
            self._file = Writer(Path(self._folder.name) / "measurements.parquet")
            held, self._held = self._held, []
            for one in held:
                self._file.add(*one)
        if self._file is None:
            self._held.append((measurement, position))
        else:
            self._file.add(measurement, position)

    @property
    def measurements(self) -> Measurements:
        """All of them. If they are in a file, nothing can be added afterwards."""
        if self._file is None or self._folder is None:
            return Measurements(tuple(self._whole()))
        self._file.close()
        return Measurements(MeasurementsFile(self._file.path, self._folder))

    def _whole(self) -> Iterator[Measurement]:
        starts = [at for at, (_, position) in enumerate(self._held) if not position]
        for start, end in pairwise([*starts, len(self._held)]):
            parts = [part for part, _ in self._held[start:end]]
            if len(parts) == 1:
                yield parts[0]
            else:
                yield Measurement(parts[0].spend, np.concatenate([one.answers for one in parts]))
