"""The rival of `benchmarks.intervals` is the Census Bureau's method, to the digit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.intervals import amc

REPLICATES = Path("../shared/data/amc/queries.csv")
PUBLISHED = {
    "H0040001: Total": (1371, 1387), "H0040002: Owned mortgage": (101, 111),
    "H0040003: Owned no mortgage": (10, 29), "H0040004: Rented": (373, 393),
    "PCT0080001: Total NonVoting": (664985, 665065), "PCT0080002: NonVoting Household": (663722, 663824),
    "PCT0080003: Nonvoting Householder, spouse": (577, 807), "PCT0080021: Nonvoting Institutional": (1, 25),
    "PCT0080029: Nonvoting Non-Institutional": (0, 0), "H0010001: Total": (1313, 1313),
    "H0010002: Occupied": (1209, 1231), "H0010003: Vacant": (82, 104), "P0010003: White alone": (3513, 3559),
    "P0010004: Black alone": (174, 200), "P0010005: AIAN alone": (1, 15),
}  # fmt: skip
"""The intervals of the notebook of github.com/uscensusbureau/AMC_Confidence_Intervals, at 90 %."""


@pytest.mark.skipif(not REPLICATES.exists(), reason="needs the replicates of the Census Bureau")
def test_the_published_intervals_are_reproduced():
    rows = pd.read_csv(REPLICATES)
    found = {}
    for query, here in rows.groupby(rows["QUERY"].str.strip()):
        counts = here.sort_values("ITERATION")["COUNT"].to_numpy(float)
        low, high = amc(counts[:1], counts[1:, None], 0.9)
        found[query] = (int(low[0]), int(high[0]))
    assert found == PUBLISHED


def test_a_count_is_corrected_only_if_its_bias_is_plain():
    replicates = np.array([[30.0, 4.0, 20.0], [32.0, 6.0, 22.0]])
    low, high = amc(np.array([40.0, 3.0, 10.0]), replicates, 0.9)
    assert (low[0] + high[0]) / 2 == 49  # off by −9, so 49
    assert (low[1] + high[1]) / 2 >= 3  # too small to correct
    assert high[2] - 10 > 10 - low[2]  # raised, but not 25: not corrected, and cut at 0
