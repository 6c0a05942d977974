"""County-to-county commuting in the United States: real origin/destination data of a whole country.

The data are not included. They are Table 1 of the American Community Survey 2009–2013 (Census Bureau).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import Flows, flows

FILE = "us-commuting-2009-2013.parquet"

STATES = {
    "23": "ME", "33": "NH", "50": "VT", "25": "MA", "44": "RI", "09": "CT",  # New England
    "36": "NY", "34": "NJ", "42": "PA",  # Middle Atlantic
    "39": "OH", "18": "IN", "17": "IL", "26": "MI", "55": "WI",  # East North Central
    "27": "MN", "19": "IA", "29": "MO", "38": "ND", "46": "SD", "31": "NE", "20": "KS",  # West North Central
    "10": "DE", "24": "MD", "11": "DC", "51": "VA", "54": "WV", "37": "NC", "45": "SC", "13": "GA",
    "12": "FL",  # South Atlantic
    "21": "KY", "47": "TN", "01": "AL", "28": "MS",  # East South Central
    "05": "AR", "22": "LA", "40": "OK", "48": "TX",  # West South Central
    "30": "MT", "16": "ID", "56": "WY", "08": "CO", "35": "NM", "04": "AZ", "49": "UT", "32": "NV",
    "53": "WA", "41": "OR", "06": "CA", "02": "AK", "15": "HI", "72": "PR",  # Mountain, Pacific; Puerto Rico
}  # fmt: skip
"""Postal codes of the states by FIPS code, as used in the file; neighbouring states are near each other."""


def commuting(path: Path) -> Flows:
    """Workers by county of residence (axis ``origin``) and of work (``destination``), both within states.

    - path: a Parquet file with the columns ``origin_state``, ``origin_county``, ``dest_state``,
      ``dest_county``, ``workers``. The counties that occur at either end are taken as public.

    Raises `InputError` if the file does not exist or cannot be read; see `hierdp.tables.flows`.
    """
    import pandas as pd

    if not path.exists():
        raise InputError(
            f"{path} does not exist; get Table 1 of the American Community Survey's commuting flows"
        )
    columns = ("state", "county")
    ends = [pd.read_parquet(path, columns=[f"{end}_{c}" for c in columns]) for end in ("origin", "dest")]
    both = {c: np.concatenate([end.iloc[:, i] for end in ends]) for i, c in enumerate(columns)}
    counties = Hierarchy.from_columns(both, columns, "US", "nation")
    axes = {"origin": (counties, "origin_county"), "destination": (counties, "dest_county")}
    return flows(path, axes=axes, count="workers")
