"""Commuting between the municipalities of Italy in 2011: the data of Boninsegna & Silvestri 2025.

The data are not included. ISTAT publishes them by census section, as
``matrici-pendolarismo-sezione-censimento-2011.zip``. They are read as the authors' program reads them
(`preprocess_data/preprocess_ISTAT_data.py` of the repository aidaLabDEI/TDA_hierarchical).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Flows, flows

if TYPE_CHECKING:
    from pandas import DataFrame

LEVELS = ("region", "province", "municipality")

LEFT_OUT = {
    "NOMEASC", "REGIONE", "PROVINCIA", "COMUNE", "CODLOC", "LOCALITA", "CODASC", "CODCOM", "ACE", "NSEZ",
}  # fmt: skip
"""Columns of names and of finer areas, each with _ORIG and _DEST. Those of `LEVELS` remain."""


def italy(path: Path) -> Flows:
    """Commuters by municipality of residence (axis ``origin``) and of work or study (``destination``).

    - path: ISTAT's archive, with an archive of one CSV file for each region. The municipalities that occur at
      either end are taken as public.

    Raises `InputError` if it is no such archive, or its tables have other columns.
    """
    import pandas as pd

    regions = list(_regions(path))
    if not regions:
        raise InputError(f"{path} is not ISTAT's archive of commuting by census section: no archive is in it")
    every = pd.concat(regions)
    names = [f"{end}_{level}" for end in ("origin", "destination") for level in LEVELS]
    table = every.groupby(names)[["commuters"]].sum().reset_index()
    both = {
        level: np.concatenate([table[f"{end}_{level}"] for end in ("origin", "destination")])
        for level in LEVELS
    }
    places = Hierarchy.from_columns(both, LEVELS, "Italy", "nation")
    axes = {end: (places, f"{end}_municipality") for end in ("origin", "destination")}
    return flows(table, axes=axes, count="commuters")


def _regions(path: Path) -> Iterator[DataFrame]:
    """The tables in the archive, by region, province and municipality of both ends."""
    import pandas as pd

    try:
        with zipfile.ZipFile(path) as outer:
            for name in outer.namelist():
                if name.endswith(".zip"):
                    with zipfile.ZipFile(io.BytesIO(outer.read(name))) as inner:
                        (csv,) = [one for one in inner.namelist() if one.endswith(".csv")]
                        with inner.open(csv) as file:
                            table = pd.read_csv(file, sep=";", encoding="ISO-8859-1", low_memory=False)
                    yield _named(table, f"{path}: {name}")
    except InputError:
        raise
    except (zipfile.BadZipFile, ValueError) as error:
        raise InputError(f"{path} is not ISTAT's archive of commuting by census section: {error}") from None


def _named(table: DataFrame, where: str) -> DataFrame:
    """The seven columns of the authors: three codes of each end, in the file's order, and the commuters."""
    columns = [str(column) for column in table.columns]
    ends = {
        end: [c for c in columns if c.endswith(f"_{code}") and c.removesuffix(f"_{code}") not in LEFT_OUT]
        for end, code in (("origin", "ORIG"), ("destination", "DEST"))
    }
    parts = ("TOTALE_STUDENTI", "TOTALE_LAVORATORI")
    totals = [c for c in columns if not c.endswith(("_ORIG", "_DEST")) and c not in parts]
    if [len(found) for found in (*ends.values(), totals)] != [3, 3, 1]:
        raise InputError(
            f"{where} has the columns {', '.join(columns)}; expected three codes that end in _ORIG, "
            "three that end in _DEST, and a total"
        )
    codes = {
        f"{end}_{level}": table[column].astype(str)
        for end, found in ends.items()
        for level, column in zip(LEVELS, found, strict=True)
    }
    return table.assign(**codes, commuters=table[totals[0]].astype("int64"))[[*codes, "commuters"]]
