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

    Parameters
    ----------
    folder : path
        A folder that contains ``NAME.npy``.
    name : str
        ADULTFRANK, HEPTH, INCOME, NETTRACE, SEARCHLOGS or GOWALLA-2D.

    Returns
    -------
    int64 array with one axis per dimension

    Raises
    ------
    InputError
        If the file does not exist, or contains anything but whole numbers of at least 0.
    """
    path = Path(folder) / f"{name}.npy"
    if not path.is_file():
        here = f" (it has {listed(names(folder), most=30)})" if names(folder) else ""
        raise InputError(
            f"{path} does not exist{here}; get datafiles/ of the repository dpcomp-org/dpcomp_core"
        )
    raw = np.load(path)
    counts: NDArray[np.int64] = raw.astype(np.int64)  # GOWALLA-2D is stored in floats
    if (counts != raw).any() or (counts < 0).any():
        raise InputError(f"{path} does not contain counts; expected whole numbers of at least 0")
    return counts
