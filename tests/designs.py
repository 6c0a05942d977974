"""One catalogue of small releases: every mechanism, method and option that changes a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import hierdp
from hierdp import Dates, Hierarchy, Numbers, SimulatedNoise
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.registry import REPAIR

BINS = ("0:1", "0:3", "2:5", "1:5", "0:5")
"""Questions about bins."""


@dataclass(frozen=True, eq=False)
class Design:
    """A release of a small table, with simulated noise.

    - options: of the mechanism, for `hierdp.release`; of "repair", for `hierdp.repair`.
    - shape: what `hierdp.plan` needs to know in place of the table; an option that is None is left out.
    - questions: five, for `hierdp.query`.
    """

    name: str
    mechanism: str
    table: pd.DataFrame
    options: Mapping[str, Any]
    questions: tuple[str, ...]
    shape: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = 1.0
    seed: int = 1

    def release(self, **changes: Any) -> Any:
        """The release, with other options if some are given."""
        options: dict[str, Any] = {**self.options, **changes}
        if self.mechanism == REPAIR.name:
            return hierdp.repair(self.table, **options)
        options = {"epsilon": self.epsilon, "noise": SimulatedNoise(self.seed), **options}
        return hierdp.release(self.table, self.mechanism, **options)

    @property
    def planned(self) -> dict[str, Any]:
        """The options of `hierdp.plan` for the release."""
        taken = MECHANISMS[self.mechanism].planning_keywords
        options = {name: value for name, value in self.options.items() if name in taken}
        options |= {"epsilon": self.epsilon, **self.shape}
        return {name: value for name, value in options.items() if value is not None}


PLACES = Hierarchy.from_columns(
    {"state": ["B", "A", "B", "A", "C"], "town": ["u", "v", "w", "x", "y"]}, ["state", "town"]
)
ZONES = Hierarchy.flat("zone", ["k", "l", "m"])
TWO_TOWNS = Hierarchy.flat("town", ["u", "v"])
COUNTS = [40, 41, 2, 0, 39, 1, 1, 0, 7, 7, 8]
OF_PLACES = {"regions": PLACES, "region": "town"}


def _cells(sizes: tuple[int, ...], **names: Any) -> pd.DataFrame:
    """All cells of a table, the last column fastest."""
    at = np.indices(sizes).reshape(len(sizes), -1)
    return pd.DataFrame({name: np.array(of)[k] for (name, of), k in zip(names.items(), at, strict=True)})


TOWNS = list(PLACES.names[-1])
LINE = pd.DataFrame({"bin": range(11), "n": COUNTS})
SHORT = LINE[:5].assign(town=TOWNS)
PLANE = _cells((5, 2), a=range(5), b=range(2)).assign(n=np.outer(COUNTS[:5], [1, 2]).ravel())
GROUPS = np.array([[1, 2, 0], [0, 3, 1], [0, 0, 0], [4, 0, 1], [0, 1, 0]])
"""The number of groups of each size, by town."""

HOMES = _cells((5, 3), town=TOWNS, n=range(3)).loc[lambda homes: homes.index.repeat(GROUPS.ravel())]
HOMES = HOMES.assign(home=range(len(HOMES)))

_ALL = _cells((5, 3), town=TOWNS, zone=["k", "l", "m"])
TRIPS = _ALL[[(i + j) % 4 > 0 for i in range(5) for j in range(3)]]
TRIPS = TRIPS.assign(n=300 + 40 * np.arange(len(TRIPS)))
COMMUTERS = _cells((5, 5), town=TOWNS, work=TOWNS).query("town != work").assign(n=100 + np.arange(20))

_RANDOM = np.random.default_rng(1)
PEOPLE = (
    pd.DataFrame(
        {
            "town": [*_RANDOM.choice(TOWNS, 28), None, "u"],
            "home": [*_RANDOM.integers(0, 9, 29), None],
            "work": [*_RANDOM.choice(TOWNS, 29), None],
            "age": [*_RANDOM.integers(0, 8, 28), 9, -1],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(_RANDOM.integers(0, 6, 30), unit="D"),
            "sex": _RANDOM.choice(["f", "m"], 30),
            "who": range(30),
        }
    )
    .loc[np.repeat(np.arange(30), [1, 2, 3] * 10)]
    .reset_index(drop=True)
)
"""All rows of a person are equal, since it is random which two of three count."""

PEOPLE.insert(0, "state", PEOPLE["town"].map(dict(zip("uvwxy", "BABAC", strict=True))))
FROM_DATA = {"levels": ["state", "town"], "regions_from_data": True, "unknown": "elsewhere"}
A_PERSON = {"person": "who", "rows_per_person": 2}
MEMBERS = {"group": ["town", "home"], **FROM_DATA, "groups_from_data": True, **A_PERSON, "root": "land"}
CAPPED = {"most_per_row": 3, "entities": "n"}


def _each(mechanism: str, more: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options of a design by each method of a mechanism, and of further ones."""
    return {**{one.name: {} for one in MECHANISMS[mechanism].methods}, **more}


def _group_sizes() -> Iterator[Design]:
    sizes = {"group": ["home"], "groups": HOMES[["town", "home"]], **OF_PLACES, "entities": "n"}
    persons = {**MEMBERS, "max_size": 4, "method": "M_c^r"}
    cases = _each("group-size", {
        "M_dp^OP": {"backend": "fast", "window": 60},
        "M_H^dp, shares": {"delta": 1e-6, "shares": [1, 2, 3], **CAPPED, "method": "M_H^dp"},
    })  # fmt: skip
    asked = ("state=A; size=1", "state=B|C; size=1:2", "town=v", "size=0", "town=u|w|y; size=2")
    for name, more in cases.items():
        options = {**sizes, "max_size": 2, "method": name, **more}
        yield Design(name, "group-size", HOMES, options, asked)
    yield Design(
        "M_c^r of persons", "group-size", PEOPLE, persons, asked, {"levels": None, "regions": PLACES}
    )


def _counts_of_counts() -> Iterator[Design]:
    secret = {"group_budget": 0.2, "size_budget": 0.3, "max_size": None, "groups": None}
    cases = _each("count-of-counts", {
        "Hg x Hc x naive": {},
        "Hc2, all levels at once": {"method": "Hc2", "merge": "at once"},
        "Hc, everything secret": {"method": "Hc", **secret},
        "Hg x naive x Hg1, everything secret": {"method": "Hg x naive x Hg1", "shares": [2, 1, 1], **secret},
        "Hg, capped": {"method": "Hg", "delta": 1e-6, **CAPPED, "merge": "plain"},
        "Hc of persons": {**MEMBERS, "method": "Hc", "max_size": 4, "smallest": 1},
    })  # fmt: skip
    sizes = {"group": ["home"], "groups": HOMES[["town", "home"]], **OF_PLACES, "entities": "n"}
    asked = ("state=A; size=1", "state=B|C; size=1:2", "town=v", "size=0:1", "town=u|w|y; size=2")
    for name, more in cases.items():
        persons = "person" in more
        options = {"max_size": 3, "method": name, **({} if persons else sizes), **more}
        options = {key: value for key, value in options.items() if value is not None}
        shape = {"levels": None, "regions": PLACES, "groups": None if "secret" in name else len(HOMES)}
        yield Design(name, "count-of-counts", PEOPLE if persons else HOMES, options, asked, shape)


def _top_down() -> Iterator[Design]:
    axes = {"from": (PLACES, "town"), "to": (ZONES, "zone")}
    secret = {"trips": 2, "bounded": False, "distinct": True}
    cases = _each("top-down", {
        "InfTDA, a secret total": secret,
        "InfTDA, shares": {"shares": [1, 2, 4], "first": "from"},
        "TDA_L2 by a solver": {"method": "TDA_L2", "backend": "clarabel"},
        "SH, persons": {"method": "SH", **secret},
        "InfTDA, capped": {"most_per_row": 500, "bounded": False},
    })  # fmt: skip
    asked = ("", "from=u|w", "to=k|l", "from.state=A; to=m", "from=v|y; to=k")
    for name, more in cases.items():
        options = {"axes": axes, "count": "n", "delta": 1e-6, "method": name.split(",")[0], **more}
        yield Design(name, "top-down", TRIPS, options, asked, {"count": None})
    axes = {"from": (PLACES, "town"), "to": (PLACES, "work")}
    asked = ("", "from=u|w", "to.state=A", "from.state=A; to=w", "from=v|y; to=u")
    options = {"axes": axes, "count": "n", "delta": 1e-6, "method": "TDA", "zeros": "from=to"}
    yield Design("TDA, structural zeros", "top-down", COMMUTERS, options, asked, {"count": None})
    axes = {"from": ["state", "town"], "to": ["work"]}
    options = {"axes": axes, "delta": 1e-6, "regions_from_data": True, "unknown": "?", **A_PERSON}
    options |= {"bounded": False, "distinct": True}
    shape = {"axes": {"from": {"state": 3, "town": 5}, "to": {"work": 5}}}
    yield Design("InfTDA of persons", "top-down", PEOPLE, options, asked[:2] + asked[3:] + ("to=w",), shape)


def _clusters() -> Iterator[Design]:
    cases = _each("clustering", {
        "SF": {"clusters": 4},
        "SF, largest": {"clusters": 4, "largest": 50},
        "AHP, shares": {"share": 0.6, "eta": 0.5},
        "GS, wide": {"width": 2, "most_per_row": 20},
        "DAWA, bins": {"workload": "bins"},
    })  # fmt: skip
    for name, more in cases.items():
        options = {"axes": [Numbers("bin", 0, 11)], "count": "n", "method": name.split(",")[0], **more}
        yield Design(name, "clustering", LINE, options, BINS, {"bins": 11})
    ages = {"axes": [Numbers("age", 0, 8, 4), ("work", ["work"])], "clip": True, "unknown": "?", **A_PERSON}
    ages |= {"regions_from_data": True}
    asked = ("age=0:4", "work=u:w", "age=2:6,work=v:y", "age=0:2,work=u:u", "age=0:8")
    yield Design("AHP of persons", "clustering", PEOPLE, ages, asked, {"bins": 24})


def _ranges() -> Iterator[Design]:
    cases = _each("range-query", {
        "H_2^c, a level left out": {"budget": [0, 2, 3], "repair": "whole"},
        "H_tree^c, non-negative": {"budget": [1, 2], "repair": "non-negative"},
        "H_b^c, optimized": {"branching": 2, "budget": "optimized", "repair": "whole, free total"},
        "H_2^c, geometric": {"budget": "geometric", "repair": "non-negative, free total", "most_per_row": 20},
        "H_b^c, shares of a quadtree": {"budget": "quadtree", "branching": 2},
        "matrix of no default": {"method": "matrix", "strategy": "optimal"},
        "matrix, eigen-select": {"strategy": "eigen-select"},
    })  # fmt: skip
    for name, more in cases.items():
        axes: list[Any] = [Numbers("bin", 0, 5)]
        table, asked, shape = SHORT, BINS, {"bins": 5}
        if name.startswith("H_tree"):
            axes, asked = [("town", (PLACES, "town"))], ("u:u", "u:w", "v:v", "x:y", "v:x")
        if name in ("Quadtree", "Wavelet"):
            axes, table, shape = [Numbers("a", 0, 5), Numbers("b", 0, 2)], PLANE, {"bins": 5, "dimensions": 2}
            asked = ("a=0:1", "a=0:3,b=0:1", "a=1:5,b=1:2", "b=0:1", "a=2:3")
        options = {"axes": axes, "count": "n", "method": name.split(",")[0], **more}
        yield Design(name, "range-query", table, options, asked, shape)
    square: dict[str, Any] = {"axes": [Numbers("age", 0, 8, 4), ("work", ["work"])], "clip": True, **A_PERSON}
    square |= {"regions_from_data": True, "unknown": "?", "method": "Quadtree"}
    asked = ("age=0:4", "work=u:w", "age=2:6,work=v:y", "age=0:2,work=u:u", "age=0:8")
    yield Design("Quadtree of persons", "range-query", PEOPLE, square, asked, {"bins": 4, "dimensions": 2})
    days = {"axes": [Dates("day", "2020-01-01", "2020-01-09", 4)], "method": "H_b", "budget": "equal"}
    asked = ("2020-01-01:2020-01-03", "2020-01-03:2020-01-09", ":2020-01-05", "2020-01-07:", ":")
    yield Design("H_b of days", "range-query", PEOPLE, days, asked, {"bins": 4})


TABLES = {
    "attributes": {"sex": ["f", "m"], "age": ["old", "young"]},
    "queries": ["total", "sex", "detailed"],
    "bounds": ["town:sex:0..90"],
    "zeros": ["sex=m,age=old"],
}
RECODED = {
    "attributes": {"age": ["old", "adult", "young"]},
    "recodes": {"grown": {"attribute": "age", "categories": {"yes": ["old", "adult"], "no": ["young"]}}},
    "queries": ["total", "grown", "detailed"],
    "passes": [["total"], ["grown"], ["detailed"]],
    "query_shares": {"state": {"total": "1/2", "grown": 0, "detailed": "1/2"}},
}


def _tables() -> Iterator[Design]:
    states = {**TABLES, "invariants": ["state:total"]}
    unbiased = {"bounds": None, "zeros": None}
    shares = {"level_shares": ["root=1/4", "state=1/4", "town=1/2"], "passes": ["total,sex", "detailed"]}
    shares |= {"query_shares": ["total=1/4", "sex=1/4", "detailed=1/2"], "rounding": ["sex", "detailed"]}
    cases = _each("tabulation", {
        "GLS": unbiased,
        "TopDown, totals of states": states,
        "GLS, totals of states": {**states, **unbiased},
        "GLS by clarabel": {"method": "GLS", **unbiased, "backend": "clarabel"},
        "TopDown, shares": shares,
        "BlueDown, capped": {"bounded": False, "most_per_row": 40},
    })  # fmt: skip
    given = {**OF_PLACES, "count": "n", "delta": 1e-6}
    by = _cells((5, 2, 2), town=TOWNS, sex=["f", "m"], age=["old", "young"])
    by["n"] = np.outer(COUNTS[:5], [1, 2, 0, 1]).ravel()
    asked = ("", "state=A", "sex=f", "town=u|w; age=old", "state=B|C; sex=m; age=young")
    listed: dict[str, Any] = {"attributes": ["sex=2", "age=2"]}
    for name, more in cases.items():
        options = {**given, **TABLES, "method": name.split(",")[0], **more}
        options = {key: value for key, value in options.items() if value is not None}
        yield Design(name, "tabulation", by, options, asked, listed, 4.0)
    grown = _cells((5, 3), town=TOWNS, age=["old", "adult", "young"])
    grown["n"] = np.outer(COUNTS[:5], [1, 2, 1]).ravel()
    options = {**given, "plan": RECODED, "bounded": False, "most_per_row": 2}
    asked = ("", "state=A", "age=old|adult", "town=u|w; age=old", "state=B|C; age=young")
    yield Design("TopDown, recoded", "tabulation", grown, options, asked, epsilon=4.0)
    two = _cells((2, 2), town=["u", "v"], sex=["f", "m"])
    two["n"] = np.outer(COUNTS[:2], [1, 2]).ravel()
    options = {**given, "attributes": {"sex": ["f", "m"]}, "regions": TWO_TOWNS}
    asked = ("", "town=u", "sex=f", "town=v; sex=f", "town=u|v; sex=m")
    yield Design("TopDown of two towns", "tabulation", two, options, asked, {"attributes": ["sex=2"]}, 4.0)
    options = {**FROM_DATA, "root": "land", "delta": 1e-6, "bounded": False, **A_PERSON}
    options |= {"attributes": ["sex"], "attributes_from_data": True}
    asked = ("", "state=A", "sex=f", "town=u|w; sex=f", "state=B|C; sex=m")
    shape = {"attributes": ["sex=2"], "levels": None, "regions": PLACES}
    yield Design("TopDown of persons", "tabulation", PEOPLE, options, asked, shape)


def _repairs() -> Iterator[Design]:
    cases = {
        **{f"repair {one.name}": {"method": one.name} for one in REPAIR.methods},
        "repair with a fixed root": {"fixed": ["root"], "window": 9, "method": "hierarchy-qip"},
        "repair of several days": {"by": ["day"], "method": "whole", "root": "land", "root_level": "country"},
        "repair by a law": {
            "standard_error": None,
            "scale": "se",
            "law": "Laplace",
            "method": "least-squares",
        },
    }
    named = {"levels": ["state", "town"], "count": "n", "standard_error": "se"}
    for name, more in cases.items():
        asked = ("", "state=A", "state=A|B", "town=v", "town=u|w")
        if "by" in more:
            asked = ("", "day=Monday", "state=Monday/A", "town=Monday/A/v", "town=Monday/B/u|Monday/B/w")
        yield Design(name, "repair", NOISY, {**named, **more}, asked)


_NOISY = {"state": [*"AABBAB", None], "town": ["v", "x", "u", "w", None, None, None]}
NOISY = pd.DataFrame(
    {**_NOISY, "n": [4, -1, -3, 9, 5, 4, 12], "se": [1.0, 1, 2, 1, 2, 1, 3], "day": "Monday"}
)
"""Noisy counts of regions, from elsewhere."""

DESIGNS = {
    design.name: design
    for designs in (_group_sizes, _counts_of_counts, _top_down, _clusters, _ranges, _tables, _repairs)
    for design in designs()
}
