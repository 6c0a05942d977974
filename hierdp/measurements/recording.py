"""The measurements of a release, while it is made."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hierdp.measurements.file import MeasurementsFile, Writer
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.rows import Measurement


class Recording:
    """Collects measurements: in memory, or all of them in a temporary file when they have many answers.

    The file is in a folder of its own in the system's folder for temporary files (``TMPDIR``). It contains
    noisy answers, but no true counts.
    """

    MOST = 1_000_000
    """Largest number of answers in memory."""

    def __init__(self) -> None:
        self._held: list[Measurement] = []
        self._answers = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._file: Writer | None = None

    def add(self, measurement: Measurement) -> None:
        """Keep a measurement; in memory as it is, so that it must not be changed."""
        self._answers += measurement.answers.size
        if self._file is None and self._answers > self.MOST:
            self._folder = TemporaryDirectory(prefix="hierdp-")
            self._file = Writer(Path(self._folder.name) / "measurements.parquet")
            held, self._held = self._held, []
            for one in held:
                self._file.add(one)
        if self._file is None:
            self._held.append(measurement)
        else:
            self._file.add(measurement)

    @property
    def measurements(self) -> Measurements:
        """All of them. If they are in a file, nothing can be added afterwards."""
        if self._file is None or self._folder is None:
            return Measurements(tuple(self._held))
        self._file.close()
        return Measurements(MeasurementsFile(self._file.path, self._folder))
