"""A test set as one archive, the same bytes whenever it is written, and a check of what it states."""

from __future__ import annotations

import gzip
import json
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from hierdp.bench import cbf, manifest
from hierdp.bench.no_optimum import refutation
from hierdp.bench.point import cost
from hierdp.bench.reading import difference, readers
from hierdp.errors import InputError
from hierdp.execution import folder as folders
from hierdp.execution import progress
from models.arithmetic.exact import Number
from models.instances import load_instance
from models.programs.read import read_program
from models.programs.texts import Stated, stated

SUFFIX = ".tar.gz"


def pack(files: Iterable[Path], archive: Path) -> Path:
    """Write files into an archive, in a folder of its name: sorted, without times and owners.

    Raises
    ------
    InputError
        If the archive's name does not end in ``.tar.gz``.
    """
    if not archive.name.endswith(SUFFIX):
        raise InputError(f"the archive is to be a {SUFFIX} file, not {archive.name}")
    top = archive.name.removesuffix(SUFFIX)
    with (
        folders.file_appearing(archive) as aside,
        aside.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(mode="w", fileobj=packed) as tar,
    ):
        for path in sorted(files, key=lambda path: path.name):
            entry = tarfile.TarInfo(f"{top}/{path.name}")  # its time is 1970, its owner nobody
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return archive


@contextmanager
def opened(test_set: Path) -> Iterator[Path]:
    """The folder of a test set, which may be an archive: then a temporary one.

    Raises
    ------
    InputError
        If it is neither a folder nor an archive of one folder.
    """
    if test_set.is_dir():
        yield test_set
        return
    with tempfile.TemporaryDirectory() as made:
        try:
            with tarfile.open(test_set) as tar:
                tar.extractall(made, filter="data")
        except (OSError, tarfile.TarError, EOFError) as failure:
            raise InputError(f"{test_set} is neither a folder nor an archive: {failure}") from None
        inside = list(Path(made).iterdir())
        if len(inside) != 1:
            raise InputError(f"{test_set} is not an archive of a test set, which has a single folder")
        yield inside[0]


class Verified(NamedTuple):
    """What is found about a problem of a test set.

    Attributes
    ----------
    problem : str
    verdict : str
        ``proved``; ``not proved``, as the manifest says; ``changed``: a file is not the one that the manifest
        names; ``misread``: a reader finds another program in a text than the model states; ``wrong``: the
        manifest's optimum or proof is refuted.
    message : str
    """

    problem: str
    verdict: str
    message: str = ""


def verify(test_set: Path) -> list[Verified]:
    """Compare each file of a test set with its hash, read each text again, and prove each optimum again.

    Every `.mps` and `.lp` is read by all of `hierdp.bench.reading.readers`. Columns, rows, sides, bounds,
    integrality and costs are to be those of the model, to the last bit, and the objective at the stored point
    the optimum.

    Parameters
    ----------
    test_set : path
        A folder, or an archive.

    Raises
    ------
    InputError
        If it has no manifest.
    """
    with opened(test_set) as folder:
        entries = manifest.read(folder)["problems"]
        return [_verified(one, folder) for one in progress.steps(entries, "problems", len(entries))]


def _verified(entry: dict[str, Any], folder: Path) -> Verified:
    name = str(entry["name"])
    for file, digest in entry["files"].items():
        path = folder / Path(file).name
        if not path.is_file() or manifest.digest(path) != digest:
            return Verified(name, "changed", f"{file} is missing, or not the file that the manifest names")
    texts = [folder / file for file in entry["files"] if file.endswith((".mps", ".lp"))]
    if entry["status"] in ("infeasible", "unbounded") and not (folder / f"{name}.npz").is_file():
        return _without_optimum(entry, folder, texts)
    known = load_instance(folder / f"{name}.npz")
    model: Any = known.model
    proof = None if known.answer is None else model.certificate(known.answer, known.witness)
    if (proof is not None and proof.optimal) != entry["proved"]:
        reason = "there is no answer" if proof is None else proof.reason
        return Verified(name, "wrong", f"the manifest says proved: {entry['proved']}. {reason}".strip())
    if proof is not None and not _same(proof.objective, entry["optimum"]):
        return Verified(
            name, "wrong", f"the manifest says {entry['optimum']}, the answer costs {proof.objective}"
        )
    misread = _misread(stated(model.program()), texts) if texts else ""
    if misread:
        return Verified(name, "misread", misread)
    at = folder / f"{name}.sol"
    if at.is_file():
        words = [line.split() for line in at.read_text(encoding="ascii").splitlines()[1:]]
        values = [float(value) for _, value in words]
        if texts:
            made = read_program(folder / f"{name}.mps").stated()
            if [word for word, _ in words] != made.columns:
                return Verified(name, "wrong", f"{at.name} does not list the columns of the .mps")
            found = cost(made, [Fraction(value) for value in values])
        else:
            found = cbf.cost(folder / f"{name}.cbf", values)
        if not _same(float(found), entry["optimum"]):
            return Verified(
                name, "wrong", f"the point in {at.name} costs {float(found)!r}, not {entry['optimum']}"
            )
    return Verified(name, "proved" if entry["proved"] else "not proved")


def _without_optimum(entry: dict[str, Any], folder: Path, texts: list[Path]) -> Verified:
    """Check the proof that there is no optimum against the text itself."""
    name = str(entry["name"])
    made = read_program(folder / f"{name}.mps").stated()
    misread = _misread(made, texts)
    if misread:
        return Verified(name, "misread", misread)
    numbers = json.loads((folder / f"{name}.proof.json").read_text(encoding="ascii"))
    status = numbers.pop("status")
    why = refutation(made, status, numbers) if status == entry["status"] else f"the proof is of {status}"
    return Verified(name, "wrong" if why else "proved", why)


def _misread(made: Stated, texts: list[Path]) -> str:
    """The first difference between a program and what a reader finds in one of its texts."""
    for path in texts:
        for name, read in readers().items():
            try:
                other = difference(made, read(path))
            except ValueError as refused:
                other = str(refused)
            if other:
                return f"{path.name} by {name}: {other}"
    return ""


NEAR = 1e-9
"""Relative difference up to which two costs in floats are the same."""


def _same(found: Number, written: str | None) -> bool:
    """Whether a cost is the manifest's: exactly, unless one of them is a float."""
    if written is None:
        return False
    if isinstance(found, float):
        there = float(Fraction(written))
        return abs(found - there) <= NEAR * max(1.0, abs(there))
    return Fraction(found) == Fraction(written)
