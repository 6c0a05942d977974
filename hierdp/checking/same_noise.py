"""Check that a release's measurements are those of the release that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.execution import seal
from hierdp.measurements.origin import SameNoise
from hierdp.record.files import MEASUREMENTS


def check_same_noise(folder: Path, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """One line, if the release was made from the measurements of another one."""
    entry = manifest.get("same_noise_as")
    if entry is None:
        return
    other, file = SameNoise(**entry), folder / MEASUREMENTS
    if not file.is_file() or seal.digest(file) != other.measurements:
        why = f"{MEASUREMENTS} is not that of the release named under 'same_noise_as'"
        yield CheckResult("same noise", FAILS, why)
    elif "account" in manifest:
        why = "it is charged to an account, although its measurements are those of another release"
        yield CheckResult("same noise", FAILS, why)
    else:
        why = f"the measurements of the release by {other.mechanism} with fingerprint {other.fingerprint}"
        yield CheckResult("same noise", HOLDS, f"{why}: no further budget")
