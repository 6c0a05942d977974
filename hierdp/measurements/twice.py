"""Which recorded answers measure the same sums twice: their differences are pure noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np

from hierdp.measurements.query import Query, sums_by
from hierdp.measurements.rows import Measurement
from hierdp.privacy.twice import CountNoise, Twice
from models import Tree
from models.arithmetic.arrays import Ints

Asked = Sequence[tuple[Query, Measurement]]


def measured_twice(asked: Asked) -> Iterator[Twice]:
    """Levels of a tree that follow each other; all counts, then sums that were chosen by their noise."""
    sums = [(query.groups, found) for query, found in asked if query.groups is not None]
    for groups, found in sums[1:]:
        every, first = sums[0]
        if np.array_equal(every, np.arange(groups.size)):
            off = sums_by(first.answers, groups) - found.answers
            yield _twice(found.spend.query, off, first, found, np.ones(off.size, np.int64), chosen_of=0)
    levels = {
        (id(query.level[0]), query.level[1]): found for query, found in asked if query.level is not None
    }
    for query, found in asked:
        if query.level is not None:
            tree, level = query.level
            if (above := levels.get((id(tree), level - 1))) is not None:
                yield _of_level(tree, level, above, found)


def _of_level(tree: Tree, level: int, above: Measurement, found: Measurement) -> Twice:
    """Parents with the sums of their children."""
    parents = np.asarray(tree.levels[level - 1])
    there, children = np.unique(parents, return_counts=True)
    sums = sums_by(found.answers.reshape(parents.size, -1), parents)[there]
    off = above.answers.reshape(-1, sums.shape[1])[there] - sums
    counts = np.broadcast_to(children[:, np.newaxis], off.shape)
    return _twice(f"counts of levels {level - 1} and {level}", off, above, found, counts)


def _twice(
    what: str, off: Ints, own: Measurement, parts: Measurement, counts: Ints, chosen_of: int | None = None
) -> Twice:
    laws = [CountNoise.of(asdict(one.spend)) for one in (parts, own)]
    return Twice(what, off.ravel().astype(np.float64), laws[0], counts.ravel(), laws[1], chosen_of)
