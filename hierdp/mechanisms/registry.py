"""The registry of mechanisms: what each releases and protects, its methods, and the module that makes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.words import ENTITY, PERSON, TRIP
from hierdp.privacy.loss import Loss

if TYPE_CHECKING:
    from hierdp.mechanisms.checking import Checking
    from hierdp.record.case import Case


@dataclass(frozen=True)
class Method:
    """A method of a mechanism: its name, the models that it solves, and its source."""

    name: str
    models: str
    source: str
    guarantee: str | None = None
    """Where it is another than the mechanism's."""


@dataclass(frozen=True)
class Mechanism:
    """A kind of release.

    Attributes
    ----------
    name : str
        As `hierdp release` and `hierdp.release` take it.
    module : str
        Its ``from_table(source, *, epsilon, noise, …)`` makes the release; loaded when it is asked for.
    releases, guarantee, neighbours : str
        What it publishes, what it promises, and which tables count as neighbouring.
    methods : tuple of Method
    replay : str, optional
        The module whose ``CHECKING`` is what `hierdp check` asks of its releases; loaded for these only.
        None: their budgets and tables are not checked against the mechanism.
    released_as : str, optional
        A regular expression of the names that its releases carry. Default: the names of its methods.
    audit : str, optional
        The module whose ``CASES`` `hierdp audit` runs.
    """

    name: str
    module: str
    releases: str
    guarantee: str
    neighbours: str
    methods: tuple[Method, ...]
    replay: str | None = None
    released_as: str | None = None
    audit: str | None = None

    @property
    def checking(self) -> Checking | None:
        """What `hierdp check` asks of its releases, if it says."""
        if self.replay is None:
            return None
        found: Checking = import_module(self.replay).CHECKING
        return found

    @property
    def cases(self) -> tuple[Case, ...]:
        """What `hierdp audit` runs."""
        found: tuple[Case, ...] = () if self.audit is None else import_module(self.audit).CASES
        return found

    def released(self, name: str) -> bool:
        """Whether its releases may carry that name."""
        if self.released_as is not None:
            return re.fullmatch(self.released_as, name) is not None
        return any(name == method.name for method in self.methods)

    @property
    def from_table(self) -> Callable[..., Any]:
        """The function that makes the release."""
        function: Callable[..., Any] = import_module(self.module).from_table
        return function

    def loss(self, epsilon: float, options: Mapping[str, Any]) -> Loss:
        """The most that a release with these options costs; ε where the module has no ``loss_of``."""
        own = getattr(import_module(self.module), "loss_of", None)
        return Loss(epsilon) if own is None else own(epsilon=epsilon, **options)


FIORETTO, KUO = "Fioretto & Van Hentenryck 2019", "Kuo et al. 2018"
BONINSEGNA, QARDAJI = "Boninsegna & Silvestri 2025", "Qardaji, Yang & Li 2013"
ZHANG, XU = "Zhang et al. 2014", "Xu et al. 2012"

_INFERENCE = "ConstrainedInference or NonNegativeInference"
_COVER = "none: sums of noisy counts"

MECHANISMS = {
    "group-size": Mechanism(
        "group-size",
        "hierdp.mechanisms.group_size",
        "how many groups have each size, in every region",
        "ε-DP",
        ENTITY,
        (
            Method("M_c^dp", "Isotonic, HierarchyQIP", f"{FIORETTO}, Alg. 1"),
            Method("M_c", "CumulativeQIP", f"{FIORETTO}, Fig. 7"),
            Method("M_c^r", "CumulativeQIP, relaxed and rounded", f"{FIORETTO}, §9"),
            Method("M_H^dp", "HierarchyQIP", f"{FIORETTO}, §7"),
            Method("M_H", "HierarchyQIP", f"{FIORETTO}, Fig. 3"),
            Method("M_H^r", "HierarchyQIP, relaxed and rounded", f"{FIORETTO}, §5"),
            Method("M_dp^OP", "CostTable, HierarchyQIP", f"{FIORETTO}, §6"),
        ),
        replay="hierdp.mechanisms.group_size.replay",
        audit="hierdp.mechanisms.group_size.audit",
    ),
    "count-of-counts": Mechanism(
        "count-of-counts",
        "hierdp.mechanisms.count_of_counts",
        "how many groups have each size, sizes to 100,000 and beyond, in every region",
        "ε-DP",
        f"{ENTITY}; or --group-budget",
        (
            Method("Hc", "Isotonic (L1), GroupMatching, Merging", f"{KUO}, §4.3, Alg. 1"),
            Method("Hc2", "Isotonic (L2), GroupMatching, Merging", f"{KUO}, §4.3, Alg. 1"),
            Method("Hg", "Isotonic (L2), GroupMatching, Merging", f"{KUO}, §4.2, Alg. 1"),
            Method("Hg1", "Isotonic (L1), GroupMatching, Merging", f"{KUO}, §4.2, Alg. 1"),
            Method("Hc x Hg x Hc", "one method a level", f"{KUO}, §6.2"),
            Method("bottom-up", "Isotonic (L1)", f"{KUO}, §6.2.2"),
            Method("naive", "FixedSum in squares, GroupMatching, Merging", f"{KUO}, §4.1"),
        ),
        replay="hierdp.mechanisms.count_of_counts.replay",
        audit="hierdp.mechanisms.count_of_counts.audit",
        released_as="(bottom-up )?(naive|Hc2?|Hg1?)( × (naive|Hc2?|Hg1?))*",
    ),
    "top-down": Mechanism(
        "top-down",
        "hierdp.mechanisms.top_down",
        "origin/destination counts, or any counts along hierarchies",
        "(ε, δ)-DP by zCDP",
        f"{TRIP}; or --trips, --unbounded",
        (
            Method("InfTDA", "Chebyshev", f"{BONINSEGNA}, Alg. 1"),
            Method("TDA_inf", "Chebyshev, by a solver", f"{BONINSEGNA}, §5"),
            Method("TDA_L2", "FixedSum in squares: relaxed, rounded", f"{BONINSEGNA}, §5"),
            Method("TDA", "FixedSum in squares: relaxed, controlled rounding", f"{BONINSEGNA}, footnote 7"),
            Method("VanillaGauss", "none: noise on all possible cells", f"{BONINSEGNA}, Theorem 6"),
            Method(
                "SH", "none: noisy positive counts over a threshold", f"{BONINSEGNA}, Theorem 8", "(ε, δ)-DP"
            ),
        ),
        replay="hierdp.mechanisms.top_down.replay",
        audit="hierdp.mechanisms.top_down.audit",
    ),
    "clustering": Mechanism(
        "clustering",
        "hierdp.mechanisms.clustering",
        "a histogram, of one or more dimensions, by clusters of bins",
        "ε-DP",
        PERSON,
        (
            Method("AHP", "Clustering", f"{ZHANG}, §4.2"),
            Method("AHP-empirical", "Clustering into so many", f"{ZHANG}, Alg. 2"),
            Method("AHP-greedy", "none: the greedy rule", f"{ZHANG}, Alg. 3"),
            Method("NF", "Segmentation", f"{XU}, NoiseFirst"),
            Method("SF", "none: boundaries by private choices", f"{XU}, StructureFirst"),
            Method("PHP", "none: cuts by private choices", "Acs, Castelluccia & Chen 2012"),
            Method("GS", "none: clusters of one size", "Kellaris & Papadopoulos 2013"),
            Method("Laplace", "none: noise on every bin", "Dwork et al. 2006"),
        ),
        replay="hierdp.mechanisms.clustering.replay",
        audit="hierdp.mechanisms.clustering.audit",
    ),
    "range-query": Mechanism(
        "range-query",
        "hierdp.mechanisms.range_query",
        "a histogram, of one or more dimensions, that answers ranges, with standard errors",
        "ε-DP",
        PERSON,
        (
            Method("H_b^c", _INFERENCE, QARDAJI),
            Method("H_2^c", _INFERENCE, "Hay et al. 2010"),
            Method("H_tree^c", _INFERENCE, QARDAJI),
            Method("Quadtree", _INFERENCE, "Cormode et al. 2012"),
            Method("H_b", _COVER, QARDAJI),
            Method("H_2", _COVER, QARDAJI),
            Method("H_tree", _COVER, QARDAJI),
            Method("Flat", _COVER, QARDAJI),
            Method("Wavelet", "none: noise on Haar coefficients", "Xiao, Wang & Gehrke 2011 (Privelet)"),
        ),
        replay="hierdp.mechanisms.range_query.replay",
        audit="hierdp.mechanisms.range_query.audit",
    ),
}
"""By the name that `hierdp release` takes."""


def released_by(name: object) -> Mechanism | None:
    """The mechanism whose releases carry a name, as manifests have it; None if there is none."""
    return next((mechanism for mechanism in MECHANISMS.values() if mechanism.released(str(name))), None)
