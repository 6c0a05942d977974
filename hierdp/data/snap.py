"""Histograms from files of the Stanford Network Analysis Project, as Qardaji, Yang & Li 2013 made them.

The files are not included; https://snap.stanford.edu/data has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.data.dpbench import read_counts
from hierdp.errors import InputError

CHECK_IN_BINS = 2**16
"""Of the longitudes, from −180 to 180 degrees."""


def histogram(path: Path) -> NDArray[np.int64]:
    """The histogram of a file.

    ========================================  ==============================================
    ``cit-HepTh.txt``                         bin x: the papers that are cited x times, x ≥ 1
    ``loc-gowalla_totalCheckins.txt``         check-ins by longitude, in 2¹⁶ bins
    any other                                 counts by bin: see `hierdp.data.dpbench.read_counts`
    ========================================  ==============================================

    The first two may be compressed (``.txt.gz``).

    Raises `InputError` if the file's content is something else.
    """
    if path.name.startswith("cit-HepTh"):
        cited = np.unique(_column(path, 1, np.int64), return_counts=True)[1]
        return np.asarray(np.bincount(cited)[1:], dtype=np.int64)
    if path.name.startswith("loc-gowalla"):
        longitudes = _column(path, 3, np.float64)
        return np.histogram(longitudes, CHECK_IN_BINS, (-180, 180))[0].astype(np.int64)
    return read_counts(path)


def _column(path: Path, number: int, dtype: Any) -> NDArray[Any]:
    """A column of a table with tabs and comments."""
    import pandas as pd

    try:
        table = pd.read_csv(path, sep="\t", comment="#", header=None, usecols=[number], dtype={number: dtype})
    except ValueError as error:
        raise InputError(f"{path}: column {number + 1} is not as in SNAP's file: {error}") from None
    return table[number].to_numpy()
