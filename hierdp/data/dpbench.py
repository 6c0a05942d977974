"""The histograms of DPBench (Hay et al. 2016), the usual benchmark for private histograms.

They are not included. The benchmark's authors publish them in their repository `dpcomp-org/dpcomp_core`,
folder ``datafiles``. One-dimensional histograms have 4,096 bins; GOWALLA-2D has 256 × 256.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError, listed


def names(folder: str | PathLike[str]) -> tuple[str, ...]:
    """The data sets in a folder, in alphabetical order; empty if the folder does not exist."""
    return tuple(sorted(path.stem for path in Path(folder).glob("*.npy")))


def dpbench(folder: str | PathLike[str], name: str) -> NDArray[np.int64]:
    """True counts by bin.

    - folder: a folder that contains ``NAME.npy``.
    - name: ADULTFRANK, HEPTH, INCOME, NETTRACE, SEARCHLOGS or GOWALLA-2D.

    Returns: int64 array with one axis per dimension.

    Raises `InputError` if the file does not exist, or contains anything but whole numbers of at least 0.
    """
    path = Path(folder) / f"{name}.npy"
    if not path.is_file():
        here = f" (it has {listed(names(folder), most=30)})" if names(folder) else ""
        raise InputError(
            f"{path} does not exist{here}; get datafiles/ of the repository dpcomp-org/dpcomp_core"
        )
    return read_counts(path)


def read_counts(path: Path) -> NDArray[np.int64]:
    """The counts of a histogram's bins: an array in a ``.npy`` file, or numbers in a text file.

    Raises `InputError` if the file contains anything but whole numbers of at least 0.
    """
    try:
        raw = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=1)
        counts: NDArray[np.int64] = raw.astype(np.int64)  # GOWALLA-2D is stored in floats
    except ValueError:
        raise InputError(f"{path} does not contain counts; expected whole numbers, one per bin") from None
    if (counts != raw).any() or (counts < 0).any():
        raise InputError(f"{path} does not contain counts; expected whole numbers of at least 0")
    return counts
