"""Which error the naive method has (§4.1): ties of its rounding, negative counts, p = 1 in place of p = 2.

Kuo et al. print 208,977,518 (Taxi), 4,027,891,692 (Hawaiian) and 4,462,728,374 (Synthetic). The whole-number
optimum of the program that they print has other errors by an order of magnitude.

- *Ties.* The noisy counts are whole, so all positive x = y − λ have the same fractional part, and the
  rounding may raise any r of them. Its errors lie between those of raising the smallest and the largest
  sizes.
- *Negative counts set to 0, and nothing else.* The counts then add up to more than G.
- *p = 1.* If the positive counts exceed G by D, every x with 0 ≤ x ≤ max(y, 0) and Σ x = G is optimal: all
  lose D in all. The error depends on where a solver takes D away, which nothing in the program decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.size_runs import Runs
from hierdp.execution.resume import Row
from hierdp.experiments.papers.kuo2018.settings import Settings
from hierdp.experiments.run import all_rows, crossed, seed_for
from hierdp.privacy.noise import SimulatedNoise, geometric
from models import FixedSum
from models.arithmetic.arrays import Ints
from solvers import solve

if TYPE_CHECKING:
    from pandas import DataFrame

EPSILON = 1.0


def rows(sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int) -> DataFrame:
    """The errors of the root's answers at ε = 1, for each run; the solvers' vertices for the first run."""
    cases = crossed(data=sets, run=range(settings.runs))
    return all_rows(_rows, cases, "naive answers", (sets, settings, seed))


def _rows(sets: dict[str, tuple[Runs, int]], settings: Settings, seed: int, name: str, run: int) -> list[Row]:
    true, smallest = sets[name]
    truth = dense(true, settings.max_size, smallest)
    noise = SimulatedNoise(seed_for(seed, "naive face", name, run))
    noisy = noise.draw(geometric("sizes", 2, EPSILON), truth).answers
    answers = answers_of(noisy, int(truth.sum()))
    if settings.vertices and run == 0:
        answers |= {f"p = 1, HiGHS, {way}": vertex(noisy, int(truth.sum()), way) for way in HIGHS}
    return [{"answer": what, "emd": distance(truth, x)} for what, x in answers.items()]


def dense(true: Runs, max_size: int, smallest: int) -> Ints:
    """The root's groups of each size from `smallest` to K."""
    sizes, counts = true.capped(max_size).of(0)
    cells = np.zeros(max_size + 1 - smallest, np.int64)
    cells[sizes - smallest] = counts
    return cells


def distance(true: Ints, found: Any) -> float:
    """Earth mover's distance by Lemma 1, also if the totals differ."""
    return float(np.abs(np.cumsum(true) - np.cumsum(found)).sum())


def answers_of(noisy: Ints, groups: int) -> dict[str, Any]:
    """Answers that §4.1 allows, or might have meant."""
    positive = np.maximum(noisy, 0)
    return {
        "p = 2, whole-number optimum": np.asarray(solve(FixedSum(noisy, groups, p=2)).x),
        "p = 2, rounded up at the smallest sizes": rounded(noisy, groups, last=False),
        "p = 2, rounded up at the largest sizes": rounded(noisy, groups, last=True),
        "negative counts set to 0, nothing else": positive,
        "p = 1, fast path": np.asarray(solve(FixedSum(noisy, groups, p=1)).x),
        "p = 1, reduced at the largest sizes": reduced(positive, groups, np.arange(noisy.size)[::-1]),
        "p = 1, reduced at the smallest sizes": reduced(positive, groups, np.arange(noisy.size)),
        "p = 1, reduced in proportion": positive * (groups / max(1, int(positive.sum()))),
    }


def rounded(noisy: Ints, groups: int, last: bool) -> Ints:
    """The real optimum max(y − λ, 0), rounded down, and up in the first or the last of the positive cells."""
    ordered = np.sort(noisy)[::-1]
    excess = np.cumsum(ordered) - groups
    used = int(np.flatnonzero(ordered * np.arange(1, noisy.size + 1) > excess)[-1]) + 1
    whole, part = divmod(-int(excess[used - 1]), used)  # −λ = whole + part/used
    x = np.maximum(noisy + whole, 0)
    up = np.flatnonzero(noisy * used + whole * used + part > 0)
    x[up[up.size - part :] if last else up[:part]] += 1
    return np.asarray(x)


def reduced(positive: Ints, groups: int, order: Ints) -> Ints:
    """Take the excess over `groups` away from the cells in this order, each down to 0."""
    kept = positive[order]
    before = np.cumsum(kept) - kept
    x = np.empty_like(positive)
    x[order] = kept - np.clip(int(positive.sum()) - groups - before, 0, kept)
    return x


HIGHS = {"interior point": "highs-ipm", "dual simplex": "highs-ds"}


def vertex(noisy: Ints, groups: int, way: str) -> Any:
    """The answer of HiGHS to the linear program of p = 1: minimize Σ (u + v), x − u + v = y, Σ x = G."""
    import scipy

    n, one = noisy.size, scipy.sparse.identity(noisy.size, format="csr")
    total = scipy.sparse.hstack([np.ones((1, n)), scipy.sparse.csr_matrix((1, 2 * n))])
    matrix = scipy.sparse.vstack([scipy.sparse.hstack([one, -one, one]), total]).tocsc()
    cost = np.concatenate([np.zeros(n), np.ones(2 * n)])
    linprog: Callable[..., Any] = scipy.optimize.linprog
    found = linprog(cost, A_eq=matrix, b_eq=np.append(noisy, groups), method=HIGHS[way])
    return found.x[:n]
