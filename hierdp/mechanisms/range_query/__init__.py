"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member
from hierdp.mechanisms.relations import PERSON

if TYPE_CHECKING:
    from hierdp.mechanisms.range_query.mechanism import RangeQuery, RangeRelease, range_query
    from hierdp.mechanisms.range_query.plan import METHODS

__all__ = ["MECHANISM", "METHODS", "RangeQuery", "RangeRelease", "range_query"]

QARDAJI = "Qardaji, Yang & Li 2013"
INFERENCE = "ConstrainedInference or NonNegativeInference"
COVER = "none: sums of noisy counts"

HELP = """\
Release a histogram that answers range queries, with standard errors if known (ε-DP; H_b^c).

TABLE is a Parquet or CSV file with one row per person, or with counts. Neighbouring tables differ by
one person in one bin; with --person, in several. The bins are public: choose them without looking at
the data, and give a list of names. Query the release with `hierdp query`. If nearly all bins are empty, or
ε is small, `hierdp release clustering --method DAWA` has smaller errors.

Ages in years, and a query:
  hierdp release range-query people.csv --numbers age=0:120 --epsilon 1 --out ages
  hierdp query ages --range 18:65

Check-ins by place, with a quadtree:
  hierdp release range-query checkins.parquet --numbers x=-180:180:256 --numbers y=-90:90:256 \\
      --method Quadtree --epsilon 0.5 --out places

People by county, measured along the hierarchy of states and counties, in whole numbers:
  hierdp release range-query people.csv --names county --regions counties.csv \\
      --region-levels state,county --method "H_tree^c" --repair whole --epsilon 1 --out counties
"""

MECHANISM = MechanismInfo(
    name="range-query",
    module=__name__,
    releases="a histogram, of one or more dimensions, that answers ranges, with standard errors",
    guarantee="ε-DP",
    neighbours=PERSON,
    methods=(
        MethodInfo("H_b^c", INFERENCE, QARDAJI),
        MethodInfo("H_2^c", INFERENCE, "Hay et al. 2010"),
        MethodInfo("H_tree^c", INFERENCE, QARDAJI),
        MethodInfo("Quadtree", INFERENCE, "Cormode et al. 2012"),
        MethodInfo("H_b", COVER, QARDAJI),
        MethodInfo("H_2", COVER, QARDAJI),
        MethodInfo("H_tree", COVER, QARDAJI),
        MethodInfo("Flat", COVER, QARDAJI),
        MethodInfo("Wavelet", "none: noise on Haar coefficients", "Xiao, Wang & Gehrke 2011 (Privelet)"),
        MethodInfo("matrix", "none: least squares", "Li et al. 2010, McKenna et al. 2018 (HDMM)"),
    ),
    value="RangeQuery",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
