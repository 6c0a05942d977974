"""Whose measurements a release was made from, if they were made for another one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hierdp.measurements.file import NAME


@dataclass(frozen=True)
class SameNoise:
    """The release whose measurements another one was made from.

    - sums: its `SHA256SUMS`, whose digest is its fingerprint, and which has the digest of its measurements.
    - account: its entry in the account that it was charged to.
    """

    mechanism: str
    sums: str
    account: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any], sums: str) -> SameNoise:
        """From a release's manifest and `SHA256SUMS`; the first one, if it was itself made from another's."""
        first = manifest.get("same_noise_as")
        return cls(manifest["mechanism"], sums, manifest.get("account")) if first is None else cls(**first)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the release."""
        return hashlib.sha256(self.sums.encode()).hexdigest()

    @property
    def measurements(self) -> str | None:
        """The digest of its measurements; None if it has none."""
        found = (line.partition("  ") for line in self.sums.splitlines())
        return next((digest for digest, _, name in found if name == NAME), None)
