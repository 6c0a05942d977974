"""What a result depends on besides its input: the source of hierdp and its libraries."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

LIBRARIES = (
    "hierdp",
    "opendp",
    "python-flint",
    "cryptography",
    "numpy",
    "scipy",
    "numba",
    "duckdb",
    "ibis-framework",
    "highspy",
    "ortools",
    "cvxpy",
    "clarabel",
    "osqp",
    "scs",
    "pyomo",
)


def versions() -> Iterator[tuple[str, str]]:
    """The libraries that can affect a release, with their versions."""
    for library in LIBRARIES:
        yield library, version_of(library)


@cache
def version_of(library: str) -> str:
    """Its version; reading it takes some milliseconds, once in a process."""
    from importlib import metadata  # with Python's parser of mails

    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


@cache
def fingerprint() -> str:
    """A hexadecimal digest of the three packages' source and of all versions; equal for equal code."""
    digest = hashlib.sha256(repr((platform.python_version(), sorted(versions()))).encode())
    for package in ("models", "solvers", "hierdp"):
        home = Path(str(import_module(package).__file__)).parent
        for file in sorted(home.rglob("*.py")):
            digest.update(str(file.relative_to(home)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
