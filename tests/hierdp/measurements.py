"""Small releases by every mechanism and method, and the noisy counts that each is computed from."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from hierdp import release
from hierdp.checking.rerun import Rerun
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.redundant_sums import RedundantSums
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.registry import released_by
from hierdp.privacy.budget import CHOICE, spends_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.proofs import SavedStep
from hierdp.record.replay import Replay
from hierdp.record.written import ReleaseFolder

LEAVES = [("A", "a"), ("A", "b"), ("B", "c"), ("B", "d")]
PLACES = Hierarchy.from_columns({"state": list("AABB"), "town": list("abcd")}, ["state", "town"])
HOMES = pd.DataFrame([(*LEAVES[i % 4], i) for i in range(12)], columns=["state", "town", "home"])


def people(seed, rows=60):
    """A table whose public facts do not depend on the seed: places, homes, categories and the total."""
    rng = np.random.default_rng(seed)
    table = HOMES.iloc[rng.integers(0, 9, rows)].reset_index(drop=True)  # three homes are empty
    table["age"] = np.minimum(rng.geometric(0.3, rows) - 1, 7)
    table["sex"] = rng.choice(["f", "m"], rows, p=[0.8, 0.2])
    table["group"] = rng.choice(["g", "h", "i"], rows, p=[0.7, 0.3, 0.0])
    table["work"] = rng.choice([town for _, town in LEAVES], rows)
    table["who"] = rng.integers(0, 40, rows)
    table["many"] = 1000
    return table


TOWNS = {"regions": PLACES, "region": "town"}
SIZES = {"groups": HOMES, "group": ["town", "home"], "levels": ["state", "town"], "max_size": 5}
OPEN_SIZES = {
    **{k: v for k, v in SIZES.items() if k not in ("groups", "max_size")},
    "regions_from_data": True,
}
LINE = {"axes": [Numbers("age", 0, 8)]}
TRIPS = {"axes": {"home": (PLACES, "town"), "work": (PLACES, "work")}, "delta": 1e-6}
ONLY_F = {"attributes": {"sex": ["f", "m"], "group": ["g", "h", "i"]}, **TOWNS, "delta": 1e-6}
QUERIES = {"queries": ["total", "sex", "group", "detailed"]}
A_PERSON = {"person": "who", "rows_per_person": 2}


def _cases():
    """Mechanism and options, by name."""
    for method in MECHANISMS["group-size"].methods:
        extra = {"backend": "fast"} if method.name == "M_dp^OP" else {}
        yield method.name, "group-size", {**SIZES, "method": method.name, **extra}
    yield "M_c^dp of persons", "group-size", {**SIZES, **A_PERSON}
    for method in MECHANISMS["count-of-counts"].methods:
        name = method.name
        yield name, "count-of-counts", {**SIZES, "method": name}
        if name == "bottom-up":
            continue
        private = {**OPEN_SIZES, "method": name, "group_budget": 0.2, "size_budget": 0.1}
        yield f"{name} of secret groups", "count-of-counts", private
    yield "Hc of persons", "count-of-counts", {**SIZES, **A_PERSON}
    for method in MECHANISMS["top-down"].methods:
        options = {**TRIPS, "method": method.name, **({"count": "many"} if method.name == "SH" else {})}
        yield method.name, "top-down", options
        yield f"{method.name} unbounded", "top-down", {**options, "bounded": False}
        person = {**TRIPS, "method": method.name, "bounded": False, **A_PERSON}
        yield f"{method.name} of persons", "top-down", person
    for method in MECHANISMS["clustering"].methods:
        given = {"largest": 9, "clusters": 3} if method.name == "SF" else {}
        yield method.name, "clustering", {**LINE, "method": method.name, **given}
    yield "SF with a noisy largest", "clustering", {**LINE, "method": "SF", "clusters": 3}
    yield "AHP of persons", "clustering", {**LINE, **A_PERSON}
    for method in MECHANISMS["range-query"].methods:
        if method.name.startswith("H_tree"):
            yield method.name, "range-query", {"axes": [("town", (PLACES, "town"))], "method": method.name}
        elif method.name == "Quadtree":
            square = {"axes": [Numbers("age", 0, 8, bins=4), Numbers("who", 0, 40, bins=4)]}
            yield method.name, "range-query", {**square, "method": method.name}
        else:
            yield method.name, "range-query", {**LINE, "method": method.name}
    yield "H_2^c whole", "range-query", {**LINE, "method": "H_2^c", "repair": "whole"}
    square = {"axes": [Numbers("age", 0, 8, bins=3), Numbers("who", 0, 40, bins=5)]}
    yield "Wavelet of a plane", "range-query", {**square, "method": "Wavelet"}
    for method in MECHANISMS["tabulation"].methods:
        options = {**ONLY_F, **QUERIES, "method": method.name}
        yield method.name, "tabulation", options
        yield f"{method.name} unbounded", "tabulation", {**options, "bounded": False}
        yield f"{method.name} of persons", "tabulation", {**options, "bounded": False, **A_PERSON}
    fixed = {**ONLY_F, **QUERIES, "invariants": ["state:total"]}
    yield "TopDown with an invariant", "tabulation", fixed


CASES = {name: (mechanism, options) for name, mechanism, options in _cases()}


def made(name, noise, seed=1, rows=60, epsilon=1.0):
    """The release of a case."""
    mechanism, options = CASES[name]
    return release(people(seed, rows), mechanism, epsilon=epsilon, noise=noise, **options)


def recovered(made):
    """The noisy counts of each query that the release is computed from, as `hierdp check` finds them."""
    made = replace(made, simulating=None)  # no second releases, for errors that a manifest states
    return together((one.query, one.noisy) for one in replayed(made, made.manifest()).recovered)


def replayed(made, manifest):
    """What `hierdp check` finds in the steps of a release whose files all agree with a manifest."""
    steps = (SavedStep(step.name, step.solution.x, step.solution.witness) for step in made.steps)
    checking = released_by(manifest["mechanism"]).checking
    each = zip(made.measurements, spends_of(manifest["budget"]), strict=True)
    parts = tuple(replace(found, spend=spend) for found, spend in each)
    written = ReleaseFolder(manifest, made.counts, made.regions, Measurements(parts))
    rerun = Rerun(checking, written)
    rerun(Replay(iter(steps)))
    return rerun.recorded


def together(parts):
    """Numbers by query; a query may be measured in parts."""
    found = defaultdict(list)
    for query, numbers in parts:
        found[query].append(np.asarray(numbers).ravel())
    return {query: np.concatenate(each) for query, each in found.items()}


class Watched:
    """A source of noise that records true counts, draws and measurements, by query."""

    def __init__(self, noise):
        self.noise, self.true, self.noisy, self.spends = noise, [], [], {}

    def draw(self, query, true):
        drawn = self.noise.draw(query, true)
        if query.noise != CHOICE:
            counts = true if drawn.positions is None else true[drawn.positions]
            self.true.append((query.name, np.array(counts)))
            self.noisy.append((query.name, np.array(drawn.answers)))
            self.spends[query.name] = drawn.spend
        return drawn


class Counting(SimulatedNoise):
    """Adds `first` to the first count, one more to the next one, and so on: no two draws are equal."""

    def __init__(self, first=1001):
        super().__init__(0)
        self.first, self.drawn = first, 0

    def _noisy(self, query, counts):
        drawn, first = super()._noisy(query, counts), self.drawn
        self.drawn += counts.size
        draws = self.first + first + np.arange(counts.size).reshape(counts.shape)
        return replace(drawn, answers=counts + draws)


class Repeating(SimulatedNoise):
    """Gives the answers that another source gave, whatever the counts are."""

    def __init__(self, answers, choices):
        super().__init__(0)
        self.answers, self.choices = list(answers), list(choices)

    def draw(self, query, true):
        drawn = super().draw(query, true)
        if query.noise == CHOICE:
            return replace(drawn, answers=self.choices.pop(0))
        noisy = self.answers.pop(0)
        assert noisy.shape == true.shape, "what is measured depends on more than public facts and answers"
        return replace(drawn, answers=noisy.copy())


class Recording(SimulatedNoise):
    """Simulated noise that keeps its answers, for `Repeating`."""

    def __init__(self, seed):
        super().__init__(seed)
        self.answers, self.choices = [], []

    def draw(self, query, true):
        drawn = super().draw(query, true)
        (self.choices if query.noise == CHOICE else self.answers).append(drawn.answers.copy())
        return drawn


def of_tree(tree, noisy, laws, what):
    """How nodes differ from the sums of their children, between two levels with noise of these laws."""
    own, sums = noisy[tree.internal], tree.child_sums(noisy)
    each = tree.child_sums(np.ones(tree.size, dtype=np.int64))
    depth = tree.level[tree.internal]
    for level, (above, law) in enumerate(pairwise(laws)):
        if above is None or law is None:
            continue
        here = depth == level
        off = (own[here] - sums[here]).astype(np.float64)
        times = np.broadcast_to(each[here].reshape(-1, *[1] * (own.ndim - 1)), off.shape)
        yield RedundantSums(
            f"{what} of levels {level} and {level + 1}", off.ravel(), law, times.ravel(), above
        )
