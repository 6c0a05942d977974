"""Stand-ins for the noise, which record their queries and are not random."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from hierdp.counts.hierarchy import Hierarchy
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.clustering import METHODS
from hierdp.privacy.budget import GAUSSIAN, Spend
from hierdp.privacy.noise import Drawn, SimulatedNoise
from hierdp.record import proofs
from hierdp.record.step import Step
from hierdp.tables import Flows, GroupSizes
from models.instances import packed_answer


@dataclass
class Double:
    """Noise by a plain function of the true counts; keeps the true and noisy counts of every draw."""

    make: Callable[[np.ndarray], np.ndarray] = lambda counts: counts.copy()
    true: list[np.ndarray] = field(default_factory=list)
    noisy: list[np.ndarray] = field(default_factory=list)
    spends: list[Spend] = field(default_factory=list)

    def draw(self, query, true):
        """See `hierdp.privacy.noise.Noise.draw`."""
        noisy = np.asarray(self.make(true), dtype=np.int64)
        self.true.append(true.copy())
        self.noisy.append(noisy.copy())
        self.spends.append(self.spend(query))
        return Drawn(noisy, self.spends[-1])

    def spend(self, query):
        """The record of a measurement, whose noise has no scale."""
        epsilon, rho = (None, query.loss) if query.noise == GAUSSIAN else (query.loss, None)
        return Spend(query.name, "double", query.sensitivity, 0.0, epsilon, rho, False)


class Undrawn(SimulatedNoise):
    """A source of noise that fails if it is used."""

    def __init__(self):
        super().__init__(0)

    def draw(self, *_):
        raise AssertionError("noise was drawn")


def added(seed: int, spread: int) -> Double:
    """Whole noise from -spread to spread."""
    rng = np.random.default_rng(seed)
    return Double(lambda counts: counts + rng.integers(-spread, spread + 1, counts.shape))


def unrelated(seed: int, spread: int) -> Double:
    """Answers that do not depend on the counts, as if noise compensated for any difference of neighbours."""
    rng = np.random.default_rng(seed)
    return Double(lambda counts: rng.integers(-spread, spread + 1, counts.shape))


def hierarchy(parents: list[list[int]], prefix: str = "") -> Hierarchy:
    """A hierarchy from the parents of each level, with names that sort as their positions do."""
    rows = [[i] for i in range(len(parents[-1]))]
    for level in reversed(parents):
        for row in rows:
            row.insert(0, level[row[0]])
    columns = {
        f"{prefix}level{k}": [f"{prefix}{k}-{row[k]:03d}" for row in rows] for k in range(1, len(parents) + 1)
    }
    return Hierarchy.from_columns(columns, list(columns), root="all")


@st.composite
def hierarchies(draw, prefix="", most=3, deepest=3):
    """Trees of any shape, including levels with only children."""
    parents, above = [], 1
    for _ in range(draw(st.integers(1, deepest))):
        children = draw(st.lists(st.integers(1, most), min_size=above, max_size=above))
        parents.append([i for i, n in enumerate(children) for _ in range(n)])
        above = len(parents[-1])
    return hierarchy(parents, prefix)


@st.composite
def group_sizes(draw, largest=6):
    """True counts of groups by size over a random hierarchy."""
    places = draw(hierarchies())
    sizes = draw(st.integers(2, 5))
    n = places.names[-1].size
    numbers = st.lists(st.integers(0, largest), min_size=n * sizes, max_size=n * sizes)
    leaves = np.array(draw(numbers), dtype=np.int64).reshape(n, sizes)
    return GroupSizes(places, places.tree.sum_up(leaves))


@st.composite
def flows(draw, most_axes=3, largest=9):
    """A sparse table over one to three axes of different depths; often empty."""
    axes = tuple(draw(hierarchies(prefix=name)) for name in "xyz"[: draw(st.integers(1, most_axes))])
    shape = [axis.names[-1].size for axis in axes]
    cells = draw(
        st.dictionaries(
            st.tuples(*(st.integers(0, n - 1) for n in shape)), st.integers(1, largest), max_size=8
        )
    )
    places = np.array(sorted(cells), dtype=np.int64).reshape(len(cells), len(axes))
    counts = np.array([cells[cell] for cell in sorted(cells)], dtype=np.int64)
    return Flows(axes, tuple(f"axis {i}" for i in range(len(axes))), places, counts)


def everything_in(folder) -> str:
    """The contents of a folder's files as one text: Parquet files as rows, others unchanged."""
    texts = []
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        if file.suffix == ".parquet":
            texts.append(pd.read_parquet(file).to_csv(index=False))
        elif file.suffix == ".zip":
            for kept in proofs.read(file):
                arrays = packed_answer(kept.x, kept.witness).values()
                texts.append(f"{kept.name} {[array.tolist() for array in arrays]}")
        elif file.suffix == ".json":
            texts.append(json.dumps(json.loads(file.read_text()), ensure_ascii=False))
        else:
            texts.append(file.read_bytes().decode("utf-8", errors="replace"))
    return "\n".join(texts)


def clustered(method, counts, epsilon, noise, **options):
    """What a method of `clustering` publishes of true counts, with the `spends` of its measurements."""
    counts = np.asarray(counts)
    measure = MeasureTruth(counts.ravel(), noise)
    made = METHODS[method].run(counts.shape, epsilon, measure, Step.solve, **options)
    return SimpleNamespace(**vars(made), spends=measure.measurements.spends)
