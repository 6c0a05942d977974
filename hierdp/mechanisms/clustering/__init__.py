"""Clustered histograms: AHP (Zhang et al. 2014), and the methods that the paper compares it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo, MethodInfo, member
from hierdp.mechanisms.relations import PERSON

if TYPE_CHECKING:
    from hierdp.mechanisms.clustering.mechanism import METHODS, Clustering, clustering

__all__ = ["MECHANISM", "METHODS", "Clustering", "clustering"]

ZHANG, XU = "Zhang et al. 2014", "Xu et al. 2012"

HELP = """\
Release a histogram in which similar bins share their cluster's mean (ε-DP; AHP).

TABLE is a Parquet or CSV file with one row per person, or with counts. Neighbouring tables differ by one
person in one bin; with --person, in several. The bins are public: choose them, and the options below, without
looking at the data. It suits data with many similar bins, especially empty ones; PrivTree and DAWA, if
neighbouring bins are alike. For sums over ranges of bins, see `hierdp release range-query`.

Ages in years:
  hierdp release clustering people.csv --numbers age=0:120 --epsilon 1 --out ages

Check-ins on a map of 256 × 256 cells:
  hierdp release clustering checkins.parquet --numbers x=-180:180:256 --numbers y=-90:90:256 \\
      --epsilon 0.1 --out places

Searches by word, with a public list of all words:
  hierdp release clustering searches.csv --names word --regions words.csv --region-levels word \\
      --count searches --epsilon 0.5 --out words
"""

MECHANISM = MechanismInfo(
    name="clustering",
    module=__name__,
    releases="a histogram, of one or more dimensions, by clusters of bins",
    guarantee="ε-DP",
    neighbours=PERSON,
    methods=(
        MethodInfo("AHP", "Clustering", f"{ZHANG}, §4.2"),
        MethodInfo("AHP-empirical", "Clustering into so many", f"{ZHANG}, Alg. 2"),
        MethodInfo("AHP-greedy", "none: the greedy rule", f"{ZHANG}, Alg. 3"),
        MethodInfo("AHP-by-place", "Clustering, zeros cut by place", "beyond the paper"),
        MethodInfo("PrivTree", "none: boxes by private choices", "Zhang, Xiao & Xie 2016"),
        MethodInfo("DAWA", "MinCostFlow, ConstrainedInference", "Li, Hay & Miklau 2014"),
        MethodInfo("NF", "Segmentation", f"{XU}, NoiseFirst"),
        MethodInfo("SF", "none: boundaries by private choices", f"{XU}, StructureFirst"),
        MethodInfo("PHP", "none: cuts by private choices", "Acs, Castelluccia & Chen 2012"),
        MethodInfo("GS", "none: clusters of one size", "Kellaris & Papadopoulos 2013"),
        MethodInfo("Laplace", "none: noise on every bin", "Dwork et al. 2006"),
    ),
    value="Clustering",
    truth="hierdp.mechanisms.range_query.truth",
    help=HELP,
)


def __getattr__(name: str) -> Any:
    return member(__name__, name)
