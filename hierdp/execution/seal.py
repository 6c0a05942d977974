"""Digests of all files of a folder; they show that hierdp wrote it and that it is unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

SUMS = "SHA256SUMS"

SIGNATURE = "SHA256SUMS.sig"
"""The signature of the digests, which is optional; see `hierdp.record.signature`."""

MARKS = ("manifest.json", "report.html")
"""Every folder that hierdp sealed contains at least one of these files."""


def seal(folder: Path) -> str:
    """Write the digests of all files, in the format of `sha256sum --check`.

    Returns: the fingerprint: the digest of the digests, in hexadecimal.
    """
    sealed = sorted(set(_names(folder)) - {SUMS, SIGNATURE})
    files = [name for name in sealed if not (folder / name).is_dir()]
    lines = [f"{digest(folder / name)}  {name}\n" for name in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
    return digest(folder / SUMS)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def why_not_ours(folder: Path) -> str:
    """The reason why a folder is not an unchanged folder written by hierdp; empty if it is.

    Only unchanged folders written by hierdp may be replaced.
    """
    sums = folder / SUMS
    if sums.is_symlink() or not sums.is_file():
        return f"it has no {SUMS}"
    sealed = dict(_lines(sums))
    there = set(_names(folder))
    there -= {str(parent) for name in sealed for parent in PurePosixPath(name).parents}
    if not set(MARKS) & sealed.keys():
        return f"its {SUMS} lists no {' or '.join(MARKS)}"
    if SIGNATURE in there and not ((folder / SIGNATURE).is_symlink() or (folder / SIGNATURE).is_dir()):
        there -= {SIGNATURE}
    for name in sorted((there | sealed.keys()) - {SUMS}):
        if name not in sealed:
            return f"{name!r} in it was not written by hierdp"
        if name not in there:
            return f"{name!r} is missing from it"
        path = folder / name
        if path.is_symlink() or not path.is_file() or digest(path) != sealed[name]:
            return f"{name!r} in it has changed since it was written"
    return ""


def _lines(sums: Path) -> Iterator[tuple[str, str]]:
    for line in sums.read_text(encoding="utf-8", errors="replace").splitlines():
        value, _, name = line.partition("  ")
        yield name, value


def _names(folder: Path) -> Iterator[str]:
    """Relative paths of all files in a folder and its subfolders, and of all empty subfolders."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir() or not any(path.iterdir()):
            yield path.relative_to(folder).as_posix()
