"""The mechanisms, a package a paper."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mechanism:
    """A line of `hierdp mechanisms`."""

    name: str
    command: str
    releases: str
    guarantee: str
    neighbours: str
    models: str
    paper: str


FRONTS = {
    "group-size": "hierdp.mechanisms.group_size",
    "count-of-counts": "hierdp.mechanisms.count_of_counts",
    "top-down": "hierdp.mechanisms.top_down",
    "range-query": "hierdp.mechanisms.range_query",
    "clustering": "hierdp.mechanisms.clustering",
}
"""What `hierdp release` takes, and the module whose `from_table` does it."""

ENTITY = "one entity joins or leaves a group; regions and groups are public"
PERSON = "one person joins or leaves, in one bin; the bins are public"
TRIP = "one trip is replaced by another; regions and the total are public"


def _group_size(name: str, models: str, where: str) -> Mechanism:
    what = "how many groups have each size, in every region"
    command = f'group-size --method "{name}"'
    return Mechanism(name, command, what, "ε-DP", ENTITY, models, f"Fioretto & Van Hentenryck 2019, {where}")


def _count_of_counts(name: str, models: str, where: str) -> Mechanism:
    what = "how many groups have each size, sizes to 100,000 and beyond, in every region"
    neighbours = f"{ENTITY}; or --group-budget"
    paper = f"Kuo et al. 2018, {where}"
    return Mechanism(name, f'count-of-counts --method "{name}"', what, "ε-DP", neighbours, models, paper)


def _clustering(name: str, models: str, paper: str) -> Mechanism:
    what = "a histogram, of one or more dimensions, by clusters of bins"
    return Mechanism(name, f"clustering --method {name}", what, "ε-DP", PERSON, models, paper)


def _top_down(name: str, models: str, where: str, guarantee: str = "(ε, δ)-DP by zCDP") -> Mechanism:
    what = "origin/destination counts, or any counts along hierarchies"
    neighbours = f"{TRIP}; or --trips, --unbounded"
    paper = f"Boninsegna & Silvestri 2025, {where}"
    return Mechanism(name, f"top-down --method {name}", what, guarantee, neighbours, models, paper)


_INFERENCE = "ConstrainedInference or NonNegativeInference"
_COVER = "none: sums of noisy counts"


def _range_query(name: str, models: str, paper: str = "Qardaji, Yang & Li 2013") -> Mechanism:
    what = "a histogram, of one or more dimensions, that answers ranges, with standard errors"
    return Mechanism(name, f'range-query --method "{name}"', what, "ε-DP", PERSON, models, paper)


MECHANISMS = (
    _group_size("M_c^dp", "Isotonic, HierarchyQIP", "Alg. 1"),
    _group_size("M_c", "CumulativeQIP", "Fig. 7"),
    _group_size("M_c^r", "CumulativeQIP, relaxed and rounded", "§9"),
    _group_size("M_H^dp", "HierarchyQIP", "§7"),
    _group_size("M_H", "HierarchyQIP", "Fig. 3"),
    _group_size("M_H^r", "HierarchyQIP, relaxed and rounded", "§5"),
    _group_size("M_dp^OP", "CostTable, HierarchyQIP", "§6"),
    _count_of_counts("Hc", "Isotonic (L1), GroupMatching, Merging", "§4.3, Alg. 1"),
    _count_of_counts("Hc2", "Isotonic (L2), GroupMatching, Merging", "§4.3, Alg. 1"),
    _count_of_counts("Hg", "Isotonic (L2), GroupMatching, Merging", "§4.2, Alg. 1"),
    _count_of_counts("Hg1", "Isotonic (L1), GroupMatching, Merging", "§4.2, Alg. 1"),
    _count_of_counts("Hc x Hg x Hc", "one method a level", "§6.2"),
    _count_of_counts("bottom-up", "Isotonic (L1)", "§6.2.2"),
    _count_of_counts("naive", "FixedSum in squares, GroupMatching, Merging", "§4.1"),
    _top_down("InfTDA", "Chebyshev", "Alg. 1"),
    _top_down("TDA_inf", "Chebyshev, by a solver", "§5"),
    _top_down("TDA_L2", "FixedSum in squares: relaxed, rounded", "§5"),
    _top_down("TDA", "FixedSum in squares: relaxed, controlled rounding", "footnote 7"),
    _top_down("VanillaGauss", "none: noise on all possible cells", "Theorem 6"),
    _top_down("SH", "none: noisy positive counts over a threshold", "Theorem 8", "(ε, δ)-DP"),
    _clustering("AHP", "Clustering", "Zhang et al. 2014, §4.2"),
    _clustering("AHP-empirical", "Clustering into so many", "Zhang et al. 2014, Alg. 2"),
    _clustering("AHP-greedy", "none: the greedy rule", "Zhang et al. 2014, Alg. 3"),
    _clustering("NF", "Segmentation", "Xu et al. 2012, NoiseFirst"),
    _clustering("SF", "none: boundaries by private choices", "Xu et al. 2012, StructureFirst"),
    _clustering("PHP", "none: cuts by private choices", "Acs, Castelluccia & Chen 2012"),
    _clustering("GS", "none: clusters of one size", "Kellaris & Papadopoulos 2013"),
    _clustering("Laplace", "none: noise on every bin", "Dwork et al. 2006"),
    _range_query("H_b^c", _INFERENCE),
    _range_query("H_2^c", _INFERENCE, "Hay et al. 2010"),
    _range_query("H_tree^c", _INFERENCE),
    _range_query("Quadtree", _INFERENCE, "Cormode et al. 2012"),
    _range_query("H_b", _COVER),
    _range_query("H_2", _COVER),
    _range_query("H_tree", _COVER),
    _range_query("Flat", _COVER),
    _range_query("Wavelet", "none: noise on Haar coefficients", "Xiao, Wang & Gehrke 2011 (Privelet)"),
)
