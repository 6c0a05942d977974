"""Post-processing of one level: makes noisy counts whole, non-negative and consistent with the level above.

`noisy` are the counts of all children of the nodes above, node j's in ``offsets[j]:offsets[j + 1]``; `totals`
are the sums of each node's children. Only noisy counts and public facts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hierdp import execution
from hierdp.errors import InputError
from hierdp.mechanisms.solver_options import Deadline, SolverOptions
from hierdp.record.step import NotProved, NotSolved, Solving, Step, require_proved
from models import Chebyshev, FixedSum, Model
from models.arithmetic.arrays import Floats, Ints
from models.segments import by_segment

if TYPE_CHECKING:
    from solvers import Solution


INTEGER = "highs"
"""Default solver of the integer programs of TDA_inf."""

MOST_WHOLE = 1_000
MOST_REAL = 50_000
"""Counts in one program for a solver, with and without integrality; siblings stay together."""

FLOATS = 1e-6
"""Allowed error of a solver's real answer, relative to the largest noisy count."""

DIGITS = 6
"""Digits after the point of a solver's real answer; equal parts may differ beyond these."""


def _fast(_: SolverOptions) -> Solving:
    """InfTDA: the counts with the least largest change, lowering small ones first (Algorithm 2)."""
    return Step.solve


def _by_size(_: SolverOptions) -> Solving:
    """The counts with the least largest change, lowering large ones first (§4.2, "an inverse approach")."""
    return _large_first


def _large_first(name: str, model: Model, _: Sequence[str] = ()) -> Step:
    assert isinstance(model, Chebyshev)
    x = large_first(*model.data, model.least_distance())
    return require_proved(name, model, _judged(name, model, x, "fast"))


def _by_solver(solver: SolverOptions) -> Solving:
    """TDA_∞: any counts with the least largest change, as found by a MIP solver; HiGHS by default."""
    return partial(_nearest, solver)


def _nearest(solver: SolverOptions, name: str, model: Model, _: Sequence[str] = ()) -> Step:
    assert isinstance(model, Chebyshev)
    backend = solver.backend or INTEGER
    deadline = Deadline.of(name, solver.time_limit)
    tasks = [(deadline, Chebyshev(*part), backend) for part in _batches(*model.data, MOST_WHOLE)]
    found = list(execution.each(Deadline.solve, tasks, f"solving: {name}"))
    x = np.concatenate([np.zeros(0, np.int64), *(np.asarray(part.x) for part in found)])
    build, spent = sum(part.build_seconds for part in found), sum(part.solve_seconds for part in found)
    claimed = replace(_judged(name, model, x, backend), build_seconds=build, solve_seconds=spent)
    return require_proved(name, model, claimed, deadline.fast)


def _rounding(rule: Callable[..., Ints], solver: SolverOptions) -> Solving:
    """The nearest reals, exact or by a solver, rounded by a rule."""
    return partial(_rounded, rule, solver)


def _rounded(
    rule: Callable[..., Ints], solver: SolverOptions, name: str, model: Model, _: Sequence[str] = ()
) -> Step:
    assert isinstance(model, FixedSum)
    x = rule(*_nearest_real(name, *model.data, solver), *model.data)
    return Step(name, model, _judged(name, model, x, solver.backend or "fast"))


@dataclass(frozen=True)
class TopDownMethod:
    """One of the mechanisms that Boninsegna & Silvestri 2025 (§5) compare.

    - model: makes the model of a level from ``(noisy, totals, offsets)``. None if only the finest counts are
      measured and added up, without post-processing.
    - solving: makes the function that solves it, from `SolverOptions`.
    - takes: the `SolverOptions` that it supports.
    - rounding: makes the whole answer from the nearest real one, as ``(⌊v⌋, v − ⌊v⌋)``, and the model's data.
      None if the answer is optimal among whole counts.
    - choosing: the answer that the method takes of several optimal ones, from the model's data and the least
      distances. None if it is not prescribed.
    """

    name: str
    model: Callable[[Ints, Ints, Ints], Model] | None = None
    solving: Callable[[SolverOptions], Solving] = _fast
    takes: tuple[str, ...] = ()
    rounding: Callable[[Ints, Floats, Ints, Ints, Ints], Ints] | None = None
    choosing: Callable[[Ints, Ints, Ints, Ints], Ints] | None = None

    def refuse(self, shares: Sequence[float] | None, zeros: str | None) -> None:
        """Raises `InputError` if the method takes none of these."""
        if self.model is None and zeros is not None:
            raise InputError(f"{self.name} takes no `zeros`: it does not go level by level")
        if self.model is None and shares is not None:
            raise InputError(f"{self.name} takes no `shares`: it measures only the finest counts")

    def answer(self, step: Step, by_solver: bool) -> Ints:
        """A step's answer, which is the one that the method takes.

        - by_solver: whether a solver gave the nearest reals: its floats may order equal fractional parts
          differently.

        Raises `NotProved` if it is another one.
        """
        x, model = np.asarray(step.solution.x), step.model
        if self.choosing is not None:
            assert isinstance(model, Chebyshev)
            if not np.array_equal(x, self.choosing(*model.data, model.least_distance())):
                raise NotProved(f"step {step.name!r} does not lower the largest counts first")
        if self.rounding is not None:
            assert isinstance(model, FixedSum)
            floor, part = nearest_fractions(*model.data)
            nearest = self.rounding(floor, part, *model.data)
            same = np.array_equal(x, nearest)
            if not same and not (by_solver and _as_near(x, nearest, floor + part, model.data[0])):
                raise NotProved(f"step {step.name!r} does not have the rounded nearest real answer")
        return x


def large_first(noisy: Ints, totals: Ints, offsets: Ints, distances: Ints) -> Ints:
    """IntOpt's answer if the largest counts are lowered first, so that fewer small ones are lost.

    All passes of Algorithm 2 but the last lower every count as far as their limit allows. So if the first
    limit is below the least distance d, the last pass lowers counts from max(0, y − d + 1) to max(0, y − d);
    otherwise, from the first guess. Here it goes from large to small counts, the first of equal ones first.

    - noisy, totals, offsets (int64 arrays): as in `models.Chebyshev`.
    - distances, int64 array, shape (segments,): the least distances.
    """
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(sizes.size), sizes)
    short = totals - by_segment(np.add, noisy, offsets, empty=0)
    step = -(-short // np.maximum(sizes, 1))
    least, most = (by_segment(extreme, noisy, offsets, empty=0) for extreme in (np.minimum, np.maximum))
    first = np.maximum(np.abs(np.maximum(step, -least)), np.abs(np.maximum(step, -most)))
    start = np.where(distances > first, 1 - distances, step)
    high = np.maximum(0, noisy + start[owner])
    room = high - np.maximum(0, noisy - distances[owner])
    along = np.lexsort((-noisy, owner))
    fallen = np.cumsum(room[along]) - room[along]  # by all counts before
    fallen -= np.append(fallen, 0)[offsets[:-1]][owner] if noisy.size else 0
    excess = by_segment(np.add, high, offsets, empty=0) - totals
    x = high.copy()
    x[along] -= np.clip(excess[owner] - fallen, 0, room[along])
    return x


def rounded_from(floor: Ints, part: Floats, noisy: Ints, totals: Ints, offsets: Ints) -> Ints:
    """TDA_L2, the paper's simple method: least squares over the reals, rounded, then corrected to the total.

    If rounding gives too much, the smallest positive counts lose one each; if too little, the largest gain
    one each. This is the authors' program, except that all halves are rounded up, and ties are broken by the
    noisy counts. The real answer is exact by default; a `backend` such as "clarabel", the paper's, gives it
    in floats.
    """
    x = floor + (part >= 0.5)
    missing = totals - by_segment(np.add, x, offsets, empty=0)
    x = x + _chosen(-noisy, np.maximum(missing, 0), offsets)
    least: Ints = x - _chosen(
        np.where(x > 0, noisy, np.iinfo(np.int64).max), np.maximum(-missing, 0), offsets
    )
    return least


def handed_out(floor: Ints, part: Floats, _: Ints, totals: Ints, offsets: Ints) -> Ints:
    """TDA of the Census Bureau: weighted least squares over x ≥ 0, then controlled rounding.

    The weights are the inverse variances, which are equal among siblings. Controlled rounding minimizes Σ|x −
    v| over whole neighbours of v with the right sum, so it rounds the largest fractional parts up, and the
    first of equal ones. With equal weights all positive v have the same fractional part, so this method
    differs from `rounded_from` only in the choice among equals.
    """
    missing = totals - by_segment(np.add, floor, offsets, empty=0)
    return np.asarray(floor + _chosen(-part, missing, offsets))


def squares(noisy: Ints, totals: Ints, offsets: Ints) -> FixedSum:
    """The model of the nearest counts in squares."""
    return FixedSum(noisy, totals, 2, offsets)


_SOLVER = ("backend", "time_limit")

METHODS = {
    method.name: method
    for method in (
        TopDownMethod("InfTDA", Chebyshev),
        TopDownMethod("InfTDA_large", Chebyshev, _by_size, choosing=large_first),
        TopDownMethod("TDA_inf", Chebyshev, _by_solver, _SOLVER),
        TopDownMethod("TDA_L2", squares, partial(_rounding, rounded_from), _SOLVER, rounded_from),
        TopDownMethod("TDA", squares, partial(_rounding, handed_out), _SOLVER, handed_out),
        TopDownMethod("VanillaGauss"),
        TopDownMethod("SH"),
    )
}
"""The methods, by their names in the paper (§5); "TDA" is that of its footnote 7."""


def _nearest_real(
    name: str, noisy: Ints, totals: Ints, offsets: Ints, solver: SolverOptions
) -> tuple[Ints, Floats]:
    """The nearest non-negative reals v in squares, as ``(⌊v⌋, v − ⌊v⌋)``."""
    if solver.backend is None or solver.backend == "fast":
        return nearest_fractions(noisy, totals, offsets)
    parts = _batches(noisy, totals, offsets, MOST_REAL)
    deadline = Deadline.of(name, solver.time_limit)
    tasks = [(deadline, FixedSum(y, c, 2, cuts), solver.backend) for y, c, cuts in parts]
    v = np.concatenate([np.zeros(0), *execution.each(_real_of_some, tasks, f"solving: {name}")])
    near: Floats = np.round(np.maximum(v, 0), DIGITS).astype(np.float64)
    return np.floor(near).astype(np.int64), near - np.floor(near)


def _real_of_some(deadline: Deadline, model: FixedSum, backend: str) -> Floats:
    return np.asarray(deadline.solve(model.program().relaxed(), backend).x)


def nearest_fractions(noisy: Ints, totals: Ints, offsets: Ints) -> tuple[Ints, Floats]:
    """The closed form, max(0, y + λ) with λ = (c − Σ of the k largest)/k.

    k is the largest number for which these stay positive. Siblings share λ, so the fractional parts of the
    positive ones are the same float.
    """
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(sizes.size), sizes)
    along = np.lexsort((-noisy, owner))
    y = noisy[along]
    held = np.cumsum(y)
    before = np.concatenate([[0], held])[offsets[:-1]]
    within = held - before[owner]
    rank = np.arange(y.size) - offsets[owner] + 1
    inside = rank * y + totals[owner] - within > 0
    many = by_segment(np.add, inside.astype(np.int64), offsets, empty=0)
    last = np.minimum(offsets[:-1] + many, y.size) - 1
    short = totals - np.where(many > 0, within[last] if y.size else 0, 0)
    shift, rest = np.divmod(short, np.maximum(many, 1))
    floor, part = np.zeros(y.size, dtype=np.int64), np.zeros(y.size)
    floor[along] = np.where(inside, y + shift[owner], 0)
    part[along] = np.where(inside, (rest / np.maximum(many, 1))[owner], 0.0)
    return floor, part


def _as_near(answer: Ints, nearest: Ints, real: Floats, noisy: Ints) -> bool:
    """Whether an answer rounds equally well."""
    slack = FLOATS * noisy.size * float(np.abs(noisy).max(initial=0))
    return bool(np.abs(answer - real).sum() <= np.abs(nearest - real).sum() + slack)


def _chosen(key: NDArray[np.generic], many: Ints, offsets: Ints) -> NDArray[np.bool_]:
    """The `many` entries of each segment with the least keys; the first of equal ones."""
    owner = np.repeat(np.arange(many.size), np.diff(offsets))
    along = np.lexsort((key, owner))
    chosen = np.zeros(key.size, dtype=bool)
    chosen[along] = np.arange(key.size) - offsets[owner] < many[owner]
    return chosen


def _batches(noisy: Ints, totals: Ints, offsets: Ints, most: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Batches of `noisy`, `totals` and `offsets`, with up to `most` counts each, or one node."""
    first = 0
    while first < totals.size:
        end = max(first + 1, int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1)
        cells = slice(offsets[first], offsets[end])
        yield noisy[cells], totals[first:end], offsets[first : end + 1] - offsets[first]
        first = end


def _judged(name: str, model: Model, x: Ints, backend: str) -> Solution:
    """An answer with its proof of optimality, or a bound on its excess cost."""
    from solvers import Solution, prove
    from solvers.backends.table import find

    proof = prove(model, x)
    if proof.bound is None:  # a solver's floats were too inaccurate to be rounded to the right total
        raise NotSolved("numerical", f"{name}: {backend}: numerical; {proof.reason}")
    return Solution(
        backend,
        find(backend).version,
        "optimal" if proof.optimal else "feasible",
        x,
        proof.objective,
        proof.bound,
        message="" if proof.optimal else proof.reason,
        certificate=proof,
    )
