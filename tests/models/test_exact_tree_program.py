"""Exact sums, trees, programs and their files."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Chebyshev, HierarchyQIP, Isotonic, Program, Tree
from models.arithmetic import door, exact
from models.programs.reformulate import Piecewise, without_absolutes
from models.programs.terms import Block, Term, rows_of

int64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, 2**32, -(2**31), 2**24, -1, 0, 1]),
    st.integers(-5, 5),
)
pairs = st.lists(st.tuples(int64, int64), max_size=40)


@given(pairs)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_dot_total_and_squares_are_those_of_python(rows):
    a = np.array([r[0] for r in rows], dtype=np.int64)
    b = np.array([r[1] for r in rows], dtype=np.int64)
    assert exact.dot(a, b) == sum(x * y for x, y in rows)
    assert exact.total(a) == sum(x for x, _ in rows)
    assert exact.weighted_squares(a, b) == sum(x * y * y for x, y in rows)
    assert exact.difference(a, b).tolist() == [x - y for x, y in rows]
    assert exact.reach(a) == max((abs(x) for x, _ in rows), default=0)


@pytest.mark.parametrize("bits", [20, 24, 31, 40, 62])
def test_long_sums_at_every_width(bits):
    rng = np.random.default_rng(bits)
    a = rng.integers(2**bits - 5, 2**bits, 100_003)
    b = np.where(rng.random(a.size) < 0.9, a, -a)
    assert exact.dot(a, b) == sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert exact.total(a) == sum(a.tolist())


def test_totals_must_be_whole():
    for wrong in (1.0, "1", None, True, np.float64(3)):
        with pytest.raises(ValueError, match="G must be an integer, got"):
            door.total("G", wrong)
    assert door.total("G", np.int32(7)) == 7
    assert door.total("G", 2**62 - 1) == 2**62 - 1
    with pytest.raises(ValueError, match="beyond 62 bits"):
        door.total("G", 2**62)


def test_unsigned_data_are_kept():
    for kept in ([2**63 - 1], [1, 2**63]):
        assert door.data("y", np.array(kept, dtype=np.uint64)).tolist() == kept


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [[0], []],
            r"level 2 must be a non-empty one-dimensional array of parent positions, got shape \(0,\)",
        ),
        ([[[0]]], r"level 1 must be a non-empty .* got shape \(1, 1\)"),
        ([[0.0]], "level 1: parent positions must be integers, got float64"),
        ([[0, 1]], "level 1, node 1: parent position 1 is not in 0 … 0, the nodes of level 0"),
        ([[0, 0], [0, 2]], "level 2, node 1: parent position 2 is not in 0 … 1, the nodes of level 1"),
        ([[0], [-1]], "level 2, node 0: parent position -1 is not in"),
    ],
)
def test_malformed_trees_are_named(levels, message):
    with pytest.raises(ValueError, match=message):
        Tree(levels)


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 5), st.booleans())
@settings(max_examples=35, deadline=None, derandomize=True)
def test_trees_against_lists(seed, depth, branching, ragged):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, depth, branching, ragged)
    parent, level, names = [-1], [0], [[0]]
    for number, row in enumerate(tree.levels, start=1):
        names.append([])
        for p in np.asarray(row).tolist():
            names[-1].append(len(parent))
            parent.append(names[number - 1][p])
            level.append(number)
    children = [[c for c in range(len(parent)) if parent[c] == r] for r in range(len(parent))]
    assert tree.size == len(parent)
    assert tree.depth == depth
    assert tree.parent.tolist() == parent
    assert tree.level.tolist() == level
    assert tree.level_sizes.tolist() == [len(row) for row in names]
    for number, row in enumerate(names):
        assert list(range(tree.size))[tree.nodes_of(number)] == row
    start, child = tree.children
    assert [child[start[r] : start[r + 1]].tolist() for r in range(tree.size)] == children
    assert tree.leaves.tolist() == [r for r in range(tree.size) if not children[r]]
    assert tree.internal.tolist() == [r for r in range(tree.size) if children[r]]
    held = rng.integers(-5, 10, (tree.leaves.size, 2))
    counts = tree.sum_up(held)

    def below(r: int) -> np.ndarray:
        return sum(map(below, children[r])) if children[r] else held[tree.leaves.tolist().index(r)]

    if tree.size < 60:
        assert counts.tolist() == [below(r).tolist() for r in range(tree.size)]
    if tree.internal.size:
        assert np.array_equal(tree.child_sums(counts), counts[tree.internal])
    assert repr(tree) == f"Tree(nodes per level: {', '.join(str(len(row)) for row in names)})"


MODELS = [
    Chebyshev([3, -1, 2], [4, 0], [0, 2, 3]),
    Isotonic([3, 1, 2], p=1, weights=[1, 2, 3], lower=0, last=5, integer=True),
    Isotonic([3, 1, 2], weights=[1, 2, 3]),
    Isotonic([3, 1, 2], integer=True),
    HierarchyQIP(Tree([[0, 0]]), [[3, 1], [2, 0], [2, -1]], total=5),
    HierarchyQIP(Tree([[0, 0]]), [[3.0, 1.0], [2.0, 0.5], [2.0, -1.0]], total=5, integer=False),
]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", [Chebyshev, Isotonic, HierarchyQIP])
def test_a_program_has_its_models_objective_and_constraints(kind, seed):
    rng = np.random.default_rng(seed)
    model = kind.random(rng, 12)
    program = model.program()
    shape = program.blocks[0].shape
    for _ in range(5):
        x = rng.integers(-3, 8, shape)
        variables = x.ravel()
        if kind is Chebyshev:
            away, cuts = np.abs(x - model.data[0]), model.data[2]
            far = [away[a:b].max(initial=0) for a, b in pairwise(cuts.tolist())]
            variables = np.concatenate([variables, np.array(far, dtype=np.int64)])
        assert program.value(variables) == model.objective(x)
        assert type(program.value(variables)) is int
        lower, upper = program.bounds
        row_lower, row_upper = program.row_bounds
        at = program.matrix @ variables
        fits = bool(
            np.all(variables >= lower)
            and np.all(variables <= upper)
            and np.all(at >= row_lower)
            and np.all(at <= row_upper)
        )
        if fits:
            assert model.violations(x) == []
        elif kind is HierarchyQIP:
            assert model.violations(x)


def test_printing_isotonic():
    assert str(MODELS[1].program()).splitlines() == [
        "Isotonic L1: 3 variables (3 integer), 2 rows",
        "minimize",
        "  |x_0 - 3| + 2 |x_1 - 1| + 3 |x_2 - 2|",
        "subject to",
        "  increasing:",
        "    -x_0 + x_1 >= 0",
        "    -x_1 + x_2 >= 0",
        "with",
        "  x (3): (0 … 5) <= x <= 5, integer",
    ]
    assert "  (x_0 - 3)^2 + 2 (x_1 - 1)^2 + 3 (x_2 - 2)^2" in str(MODELS[2].program())
    assert "  x (3): x free" in str(MODELS[2].program())


def test_printing_hierarchy():
    assert str(MODELS[4].program()).splitlines() == [
        "HierarchyQIP: 6 variables (6 integer), 3 rows",
        "minimize",
        "  (x_0_0 - 3)^2 + (x_0_1 - 1)^2 + (x_1_0 - 2)^2 + (x_1_1)^2 + (x_2_0 - 2)^2 + (x_2_1 + 1)^2",
        "subject to",
        "  H2 total:",
        "    x_0_0 + x_0_1 = 5",
        "  H3 consistency:",
        "    x_0_0 - x_1_0 - x_2_0 = 0",
        "    x_0_1 - x_1_1 - x_2_1 = 0",
        "with",
        "  x (3 x 2): 0 <= x <= 5, integer",
    ]


def test_printing_chebyshev_and_long_programs():
    text = str(MODELS[0].program())
    assert text.startswith(
        "Chebyshev: 5 variables (5 integer), 8 rows\nminimize\n  distance_0 + distance_1\n"
    )
    assert "  total:\n    x_0 + x_1 = 4\n    x_2 = 0\n" in text
    long = str(Isotonic(range(30)).program())
    assert "… (30 terms)" in long
    assert "… (29 rows)" in long
    assert len(long.splitlines()) < 20
    bare = Program(
        "bare",
        [Block("v", (2,), -1, 2)],
        [rows_of("box", (2, 2), ([0, 0, 1], [0, 1, 1], [2.5, -1, 1]), [-1, -np.inf], [4, np.inf])],
        [Term("linear", np.arange(2), [0.5, -1])],
    )
    assert "0.5 v_0 - v_1" in str(bare)
    assert "-1 <= 2.5 v_0 - v_1 <= 4" in str(bare)
    assert "v_1 free" in str(bare)


@pytest.mark.parametrize("suffix", [".mps", ".lp", ".nl"])
@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_every_model_writes_every_kind_of_file(model, suffix, tmp_path):
    path = model.program().write(tmp_path / f"model{suffix}")
    assert path.stat().st_size > 0
    assert [p.name for p in tmp_path.iterdir()] == [f"model{suffix}"]
    text = path.read_text()
    assert text.startswith({".mps": "NAME", ".lp": "\\", ".nl": "g3"}[suffix])
    if suffix == ".mps":
        assert ("INTORG" in text) == bool(model.program().integer.any())


def test_failed_writes_leave_nothing(tmp_path):
    program = MODELS[0].program()
    for name in ("model.txt", "model", "model.MPS"):
        with pytest.raises(ValueError, match=r"the suffix must be \.mps, \.lp or \.nl"):
            program.write(tmp_path / name)
    for name in ("model.mps", "model.lp", "model.nl"):
        with pytest.raises(OSError):  # noqa: PT011
            program.write(tmp_path / "nowhere" / name)
        target = tmp_path / name
        target.mkdir()  # a folder is in the way: the rename fails, and the temporary file is removed
        with pytest.raises(OSError):  # noqa: PT011
            program.write(target)
        assert list(target.iterdir()) == []
        target.rmdir()
    assert os.listdir(tmp_path) == []


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(1, 9), st.integers(-9, 3), st.integers(0, 12)),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_lines_equal_the_quadratic_at_integers_and_stay_under_it(cells):
    center, weight, low, width = (np.array(c) for c in zip(*cells, strict=True))
    n = len(cells)
    program = Program(
        "q", [Block("x", (n,), low, low + width, True)], [], [Term("quadratic", np.arange(n), weight, center)]
    )
    lines = Piecewise(program)
    rows = lines.lines_near(lines.center, reach=100)
    for step in range(13):
        at = np.minimum(low + step, low + width)
        true = weight * (at - center) ** 2
        assert np.array_equal(lines.value(at.astype(float)), true)
        assert np.allclose(lines.value(at + 0.5), (true + weight * (at + 1 - center) ** 2) / 2)
        # The least cost that the rows allow at these x.
        need = rows.lower - rows.matrix[:, :n] @ at
        owner = (
            rows.matrix[:, n:].argmax(axis=1).A1
            if hasattr(rows.matrix[:, n:].argmax(axis=1), "A1")
            else np.asarray(rows.matrix[:, n:].argmax(axis=1)).ravel()
        )
        least = np.full(n, -np.inf)
        np.maximum.at(least, owner, need)
        assert np.array_equal(least, true)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 5), st.integers(-9, 9)), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_epigraph_equals_the_absolute_values(cells):
    center, weight, at = (np.array(c) for c in zip(*cells, strict=True))
    n = len(cells)
    wide = without_absolutes(
        Program("a", [Block("x", (n,), -99, 99)], [], [Term("absolute", np.arange(n), weight, center)])
    )
    t = np.abs(at - center)
    both = np.concatenate([at, t])
    assert wide.value(both) == (weight * t).sum()
    assert np.all(wide.matrix @ both >= wide.row_bounds[0])
    less = wide.matrix @ np.concatenate([at, t - 1]) - wide.row_bounds[0]
    assert np.all(less.reshape(2, n).min(axis=0) < 0)


def test_terms_stay_exact_beyond_64_bits():
    term = Term("quadratic", np.arange(2), np.array([10**6, 10**6]), np.array([10**13, -(10**13)]))
    assert term.value(np.array([0, 0])) == 2 * 10**32


def test_blocks_are_taken_by_name_and_tables_cost_whole_numbers():
    tables = [np.array([2**60 + 1, 2**61 + 1]), np.array([7, 2**60 + 1])]
    cost = Term("table", np.array([4, 1]), center=np.array([-1, 2]), tables=tables)
    program = Program("p", [Block("x", (2, 2)), Block("t", (3,))], [], [cost])
    values = np.array([5, 3, 2, 6, 0, 8, 9])
    assert program.value(values) == 2**61 + 1 + 2**60 + 1
    assert program.take(values).tolist() == [[5, 3], [2, 6]]
    assert program.take(values, "t").tolist() == [0, 8, 9]
