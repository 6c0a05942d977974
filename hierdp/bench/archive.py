"""A test set as one archive, the same bytes whenever it is written, and a check of what it states."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hierdp.bench import manifest
from hierdp.errors import InputError
from hierdp.execution import folder as folders
from hierdp.execution import progress
from models.instances import load_instance

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
        names; ``wrong``: the manifest's optimum or proof is refuted.
    message : str
    """

    problem: str
    verdict: str
    message: str = ""


def verify(test_set: Path) -> list[Verified]:
    """Compare each file of a test set with its hash, and prove each optimum again.

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
    known = load_instance(folder / f"{name}.npz")
    model: Any = known.model
    proof = None if known.answer is None else model.certificate(known.answer, known.witness)
    if (proof is not None and proof.optimal) != entry["proved"]:
        reason = "there is no answer" if proof is None else proof.reason
        return Verified(name, "wrong", f"the manifest says proved: {entry['proved']}. {reason}".strip())
    found = None if proof is None else manifest.exactly(proof.objective)
    if found != entry["optimum"]:
        return Verified(name, "wrong", f"the manifest says {entry['optimum']}, the answer costs {found}")
    return Verified(name, "proved" if entry["proved"] else "not proved")
