"""The published errors on the taxis against their own number of groups, G = 13,282.

Two tables of counts ≥ 0 that both add up to G differ by at most 2G in L1: ‖x − y‖₁ ≤ ‖x‖₁ + ‖y‖₁. At
every level the true counts add up to G, if every group is in one region of the level, as the paper's
condition 4 (faithfulness) has it. So do the answers of the exact methods, by conditions 2 to 4.

A rounded relaxation may miss G. A count moves by at most ½, so M_H^r adds up to at most G + RN/2 at a level
of R regions and N sizes. Rounded cumulative counts remain monotone; their last entries, one a region, add up
to at most G + R/2, so M_c^r does. At the root they are G itself. This holds if the program was solved: its
answer before rounding satisfies (H2) to (H4), or (C2) to (C5).
"""

from __future__ import annotations

import math

from hierdp.reproduce.fioretto2019.published import SIZES, TABLE_1, TAXI_GROUPS, TAXI_REGIONS
from hierdp.reproduce.fioretto2019.settings import SCALABLE
from hierdp.reproduce.study import Part


def bounds(method: str) -> tuple[int, ...]:
    """The largest L1 error of each level; errors are whole."""
    extra = {"M_H^r": SIZES["taxi"] / 2, "M_c^r": 1 / 2}.get(method, 0.0)
    rounded = [0.0 if method == "M_c^r" and regions == 1 else extra * regions for regions in TAXI_REGIONS]
    return tuple(2 * TAXI_GROUPS + math.floor(more) for more in rounded)


def taxi_bound() -> Part:
    """Each published error of the taxis, its bound, and whether it is within."""
    import pandas as pd

    rows = [
        {
            "epsilon": epsilon, "method": method, "level": level, "published": printed, "bound": limit,
            "verdict": "above the bound" if printed > limit else "within",
        }
        for (name, epsilon), table in TABLE_1.items()
        if name == "taxi"
        for method, errors in zip(SCALABLE, table, strict=True)
        for level, (printed, limit) in enumerate(zip(errors, bounds(method), strict=False), start=1)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    above = int((frame.verdict != "within").sum())
    least = math.ceil(float(frame.published[frame.method.str.endswith("dp")].max()) / 2)
    texts = [
        f"{above} of {len(frame)} published errors are above their bound, of the exact methods 2G = "
        f"{2 * TAXI_GROUPS:,} (with 3,973 leaves; with the 263 zones of the paper's text the bounds are "
        f"lower). If a group were a taxi in a zone, none would be above 2G from {least:,} groups on."
    ]
    return Part("taxi-bound", "The taxis' errors against their own G", texts, {"taxi_bound": frame})
