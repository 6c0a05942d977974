"""Each operator is one matrix: its definition, products, shapes, largest sums and entries agree."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from models import Tree, Workload
from models.programs import operators
from models.programs.operators import Operator

RNG = np.random.default_rng
Definition = Callable[[Any], list[Any]]


def _cuts(rng: Any, parts: int) -> Any:
    """Segments of 0 to 4 entries."""
    return np.concatenate([[0], np.cumsum(rng.integers(0, 5, parts))])


def _tree(rng: Any) -> Tree:
    levels = [[0] * int(rng.integers(1, 4))] if rng.random() < 0.9 else []
    for _ in range(int(rng.integers(0, 3)) if levels else 0):
        levels.append(np.sort(rng.integers(0, len(levels[-1]), rng.integers(1, 6))).tolist())
    return Tree(levels)


def steps(rng: Any) -> tuple[Operator, Definition]:
    size = int(rng.integers(0, 9))
    starts = np.flatnonzero(np.r_[True, rng.random(max(size - 1, 0)) < 0.3])[:size]
    after = [i for i in range(size) if i not in starts]
    return operators.Steps(size, starts if size else (0,)), lambda v: [v[i] - v[i - 1] for i in after]


def sums(rng: Any) -> tuple[Operator, Definition]:
    cuts, width = _cuts(rng, int(rng.integers(0, 5))), tuple(rng.integers(1, 4, rng.integers(0, 2)).tolist())

    def defined(v: Any) -> list[Any]:
        columns = v.reshape(len(v), int(np.prod(width))).T.tolist()
        return [sum(column[a:b]) for a, b in pairwise(cuts) for column in columns]

    return operators.Sums(cuts, width), defined


def answers(rng: Any) -> tuple[Operator, Definition]:
    workload, histograms = Workload.random(rng, int(rng.choice([1, 4, 16]))), int(rng.integers(1, 4))
    chosen = np.flatnonzero(rng.random(histograms * workload.size) < 0.6) if rng.random() < 0.5 else None
    matrix = workload.matrix.toarray().astype(int)

    def defined(v: Any) -> list[Any]:
        found = [sum(int(a) * b for a, b in zip(row, one, strict=True)) for one in v for row in matrix]
        return found if chosen is None else [found[i] for i in chosen]

    return operators.Answers(workload, histograms, chosen), defined


def spread(rng: Any) -> tuple[Operator, Definition]:
    cuts, sign = _cuts(rng, int(rng.integers(0, 5))), int(rng.choice([-1, 1]))
    return operators.Spread(cuts, sign), lambda v: [
        sign * v[j] for j in range(cuts.size - 1) for _ in range(cuts[j], cuts[j + 1])
    ]


def each(rng: Any) -> tuple[Operator, Definition]:
    shape, sign = tuple(rng.integers(0, 4, rng.integers(1, 3)).tolist()), int(rng.choice([-1, 1]))
    return operators.Each(shape, sign), lambda v: [sign * value for value in v.ravel()]


def children(rng: Any) -> tuple[Operator, Definition]:
    tree, more = _tree(rng), tuple(rng.integers(1, 4, rng.integers(0, 2)).tolist())

    def defined(v: Any) -> list[Any]:
        rows = [v[i] - sum(v[j] for j in np.flatnonzero(tree.parent == i) if j) for i in tree.internal]
        return [value for row in rows for value in np.ravel(row)]

    return operators.Children(tree, (tree.size, *more)), defined


def root_total(rng: Any) -> tuple[Operator, Definition]:
    shape = tuple(rng.integers(1, 5, 2).tolist())
    return operators.RootTotal(shape), lambda v: [sum(v[0].tolist())]


def rises(rng: Any) -> tuple[Operator, Definition]:
    shape = tuple(rng.integers(1, 5, 2).tolist())
    chosen = np.flatnonzero(rng.random(shape[0]) < 0.6)
    return operators.Rises(chosen, shape), lambda v: [
        v[r, k + 1] - v[r, k] for r in chosen for k in range(shape[1] - 1)
    ]


def incidence(rng: Any) -> tuple[Operator, Definition]:
    nodes, arcs = int(rng.integers(1, 5)), int(rng.integers(0, 7))
    tail, head = rng.integers(0, nodes, (2, arcs))

    def defined(v: Any) -> list[Any]:
        return [sum(v[tail == k].tolist()) - sum(v[head == k].tolist()) for k in range(nodes)]

    return operators.Incidence(tail, head, nodes), defined


def sparse(rng: Any) -> tuple[Operator, Definition]:
    matrix = rng.integers(-3, 4, rng.integers(0, 5, 2)) * int(rng.choice([1, 2**20]))
    return operators.Sparse(matrix), lambda v: [
        sum(int(a) * b for a, b in zip(row, v, strict=True)) for row in matrix
    ]


MAKERS: dict[str, Callable[[Any], tuple[Operator, Definition]]] = {
    "Steps": steps,
    "Sums": sums,
    "Answers": answers,
    "Spread": spread,
    "Each": each,
    "Children": children,
    "RootTotal": root_total,
    "Rises": rises,
    "Incidence": incidence,
    "Sparse": sparse,
}


def _numbers(rng: Any, shape: tuple[int, ...], kind: str) -> Any:
    """Numbers whose sums are exact: int64, floats, or Python's numbers of any size."""
    values = rng.integers(-9, 10, shape)
    if kind == "object":
        big = [int(value) * 2**70 + Fraction(int(value), 3) for value in values.ravel()]
        values = np.array([*big, None], object)[:-1].reshape(shape)
    return values.astype({"int64": np.int64, "float": float, "object": object}[kind])


def test_every_operator_is_tried() -> None:
    assert {kind.__name__ for kind in Operator.__subclasses__()} == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["int64", "float", "object"])
def test_products_shapes_sums_and_entries_are_those_of_one_matrix(name: str, kind: str) -> None:
    for seed in range(60):
        rng = RNG(seed)
        operator, defined = MAKERS[name](rng)
        size, case = int(np.prod(operator.columns)), f"{name}, seed {seed}"
        matrix = np.zeros((operator.height, size), object)
        row, column, entry = operator.entries()
        np.add.at(matrix, (row, column), entry.astype(object))
        absolute = np.zeros_like(matrix)
        np.add.at(absolute, (row, column), abs(entry.astype(object)))
        assert operator.csr().toarray().tolist() == matrix.tolist(), case
        assert operator.wide >= max(absolute.sum(axis=1), default=0), case
        assert operator.tall >= max(absolute.sum(axis=0), default=0), case
        v, y = _numbers(rng, operator.columns, kind), _numbers(rng, operator.rows, kind)
        for result, shape, flat in (
            (operator.apply(v), operator.rows, matrix.dot(v.ravel().astype(object))),
            (operator.transpose(y), operator.columns, matrix.T.dot(y.ravel().astype(object))),
            (operator.spread(abs(v)), operator.rows, absolute.dot(abs(v).ravel().astype(object))),
        ):
            assert (result.shape, result.dtype) == (shape, v.dtype), case
            assert result.ravel().tolist() == flat.tolist(), case
        assert operator.apply(v).ravel().tolist() == defined(v), case
        assert all(operator.named(place) for place in np.ndindex(operator.rows)), case


def test_a_matrix_whose_entries_are_not_all_whole_is_exact_too() -> None:
    for seed in range(60):
        rng = RNG(seed)
        entries = rng.integers(-9, 10, rng.integers(1, 5, 2)) * rng.choice([0.5, 2.0**-70, 2.0**64])
        operator = operators.Sparse(entries)
        exactly, counts = np.vectorize(Fraction, [object])(entries), (entries != 0).sum
        assert operator.whole == (np.abs(entries).max() < 2**62 and (entries % 1 == 0).all())
        assert operator.wide >= max([*abs(exactly).sum(axis=1), *counts(axis=1)])
        assert operator.tall >= max([*abs(exactly).sum(axis=0), *counts(axis=0)])
        for kind in ("int64", "float", "object"):
            v, y = _numbers(rng, operator.columns, kind), _numbers(rng, operator.rows, kind)
            for result, true in (
                (operator.apply(v), exactly.dot(v.astype(object))),
                (operator.transpose(y), exactly.T.dot(y.astype(object))),
                (operator.spread(abs(v)), abs(exactly).dot(abs(v).astype(object))),
            ):
                assert result.tolist() == true.tolist(), f"seed {seed}"


@pytest.mark.parametrize("entry", [2**64 + 1, Fraction(1, 3)])
def test_entries_that_neither_int64_nor_floats_hold_are_refused(entry: Any) -> None:
    with pytest.raises(ValueError, match="neither int64 nor float64"):
        operators.Sparse(np.array([[entry]], object))
