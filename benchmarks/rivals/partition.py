"""Stage 1 of DAWA (Li, Hay & Miklau 2014): cut a histogram privately into runs of nearly equal counts.

A run C costs Σ|x_j − C̄| + 1/ε₂, its deviation and the expected error of one noisy sum. Runs have lengths 1,
2, 4, …, at any place. Each cost is perturbed, and the cut of least total cost is taken: a shortest path. It
is found by dynamic programming, and proved by its potentials: d[j] − d[i] ≤ w(i, j) for every run, and d[n]
is the cost of the cut (weak duality, as in `models.Segmentation`). `program_of` states the path as a
`Program`.

One person in bin i changes the deviation of a run of m bins that contains i by at most Δ(m) = 2(1 − 1/m), and
that of no other run. Which noise makes the cut private? There are three answers here:

- `PROGRAM`, that of the authors' program, which DPBench runs: Laplace noise of scale (2 − 1/m − 1/n)/ε₁ on
  runs of m ≥ 2 bins at any place, none on single bins; costs below 1/ε₂ are raised to 1/ε₂. This is **not
  ε₁-DP**: `loss_of_program` is the exact loss of one event, which exceeds ε₁ on three bins and grows with
  their number.
- `PROVED`: scale (Δ(m) + Δ(n))/ε₁ on all runs, single bins included. Take a cut that contains the run C, with
  i in C. On the neighbour, lower the noise of C by Δ(|C|) + Δ(n): this cut then costs at least Δ(n) less than
  before, the cost of any other cut with C changes by as much, and no cut without C becomes cheaper by more
  than Δ(n). So it is still the best, and the density of the noise of C changes by a factor of at most e^ε₁.
- `DYADIC`: only runs whose first bin is a multiple of their length. A bin is in one run of each length, so
  Laplace noise of scale Σ Δ(2^k)/ε₁ makes *all* costs together ε₁-DP, and the cut follows from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from models import Program
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel
from models.programs.terms import Block, Rows, Term

PROGRAM, PROVED, DYADIC = "program", "proved", "dyadic"
"""The noise of the authors' program, and the two for which there is a proof."""

UNITS = 1 << 10
"""Noisy costs are rounded to this part of a person, so that the cut is proved in whole numbers."""

NEVER = 1 << 50
"""The cost of a run that is not allowed."""

Floats = NDArray[np.float64]


def change(length: int) -> float:
    """The largest change of a run's deviation by one person: 2(1 − 1/m) for m bins.

    The person's bin moves by 1 and the mean by 1/m. The bin's distance from the mean changes by at most
    1 − 1/m, the other m − 1 distances by at most 1/m each.
    """
    return 2 * (1 - 1 / length)


def scale(length: int, bins: int, epsilon: float, noise: str = PROVED) -> float:
    """The scale of the Laplace noise on the cost of a run of this length; 0 for none."""
    if noise == DYADIC:
        lengths = [1 << k for k in range(1, bins.bit_length())]
        return sum(map(change, lengths)) / epsilon if length > 1 else 0.0
    if noise == PROVED:
        return (change(length) + change(bins)) / epsilon
    return (2 - 1 / length - 1 / bins) / epsilon if length > 1 else 0.0


def loss_of_program(bins: int, epsilon: float, price: float) -> float:
    """ln of P(all runs are single bins), equal counts, over that if one person joins a bin in the middle.

    Under `PROGRAM`. Single bins have no noise, so they are the best cut exactly if each longer run costs more
    than its bins, and these costs have independent noise. Runs without the person have the same
    probability before and after.
    """
    loss, length, place = 0.0, 2, bins // 2
    while length <= bins:
        over = (length - 1) * price  # what the deviation and the noise together must exceed
        spread = scale(length, bins, epsilon, PROGRAM)
        before, after = (_above((over - dev) / spread) for dev in (0.0, change(length)))
        runs = sum(i <= place < i + length for i in range(bins - length + 1))
        loss += runs * math.log(after / before)
        length *= 2
    return loss


def _above(x: float) -> float:
    """P(Z > x) for Laplace noise of scale 1."""
    return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)


@dataclass(frozen=True, eq=False)
class Partition:
    """A cut into runs, with its proof.

    Attributes
    ----------
    starts : int64 array, shape (runs,)
        The first bin of each run.
    costs : int64 array, shape (lengths, n)
        ``costs[k, i]``: the noisy cost of the run of 2^k bins from bin i, in `UNITS` of a person.
    potentials : int64 array, shape (n + 1,)
        The least cost of the first j bins.
    """

    starts: Ints
    costs: Ints
    potentials: Ints

    @property
    def optimal(self) -> bool:
        """Whether the potentials satisfy all inequalities, and the cost of the cut is their bound."""
        d, n = self.potentials, self.potentials.size - 1
        ends = np.append(self.starts[1:], n)
        spent = self.costs[np.log2(ends - self.starts).astype(np.int64), self.starts].sum()
        steps = (
            d[1 << k :] - d[: n + 1 - (1 << k)] <= w[: n + 1 - (1 << k)] for k, w in enumerate(self.costs)
        )
        return all(step.all() for step in steps) and bool(spent == d[n] - d[0])


def partition(
    counts: Ints, epsilon: float, price: float, rng: np.random.Generator, noise: str = PROVED
) -> Partition:
    """The least costly cut by noisy costs.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts.
    epsilon : float
        ε₁.
    price : float
        1/ε₂, the price of a run.
    rng : Generator
        Simulated noise: not private.
    noise : str
        `PROGRAM`, `PROVED` or `DYADIC`.
    """
    n = counts.size
    exact = deviations(counts)
    costs = np.zeros(exact.shape, np.int64)
    for k, row in enumerate(exact):
        at = scale(1 << k, n, epsilon, noise)
        noisy = row + price + (rng.laplace(0, at, n) if at else 0.0)
        if noise != PROVED:
            noisy = np.maximum(noisy, price)
        costs[k] = np.rint(noisy * UNITS)
        if noise == DYADIC:
            costs[k, np.arange(n) % (1 << k) > 0] = NEVER
    starts, potentials = cheapest(costs)
    return Partition(starts, costs, potentials)


def deviations(counts: Ints) -> Floats:
    """Σ|x_j − mean| of every run of 2^k bins; shape (lengths, n), 0 for runs that would pass the end."""
    n = counts.size
    values, ranks = np.unique(counts, return_inverse=True)
    found = np.zeros((n.bit_length(), n))
    for k in range(1, found.shape[0]):
        _of_windows(counts, values, ranks.astype(np.int64), 1 << k, found[k])
    return found


@kernel()
def _of_windows(counts: Any, values: Any, ranks: Any, size: int, found: Any) -> None:
    """Σ|x_j − mean| of every window: twice what is over the mean, from partial sums over ranks (Fenwick)."""
    many, held, total = np.zeros(values.size + 1, np.int64), np.zeros(values.size + 1, np.int64), 0
    for end in range(counts.size):
        for change in (1, -1):
            j = end if change == 1 else end - size
            if j < 0:
                continue
            total += change * counts[j]
            k = ranks[j] + 1
            while k < many.size:
                many[k] += change
                held[k] += change * counts[j]
                k += k & -k
        if end >= size - 1:
            k = np.searchsorted(values, total // size, side="right")
            above, over = size, total
            while k > 0:
                above -= many[k]
                over -= held[k]
                k -= k & -k
            found[end - size + 1] = 2.0 * (over * size - above * total) / size


def cheapest(costs: Ints) -> tuple[Ints, Ints]:
    """Where the runs of a cheapest cut begin, and the least costs of the first j bins."""
    potentials, begins = _path(costs)
    starts, end = [], costs.shape[1]
    while end > 0:
        end = int(begins[end])
        starts.append(end)
    return np.array(starts[::-1], np.int64), potentials


@kernel()
def _path(costs: Any) -> Any:
    n = costs.shape[1]
    least, begins = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for j in range(1, n + 1):
        k, length = 0, 1
        while length <= j and k < costs.shape[0]:
            cost = least[j - length] + costs[k, j - length]
            if k == 0 or cost < least[j]:
                least[j] = cost
                begins[j] = j - length
            k += 1
            length *= 2
    return least, begins


def program_of(costs: Ints) -> tuple[Program, Ints, Ints]:
    """The cut as a program: minimize Σ w·run, one run ends where the next begins.

    ``run[k]`` is 1 if a run is chosen; row j balances the runs that begin and end between bins j − 1 and j.

    Returns
    -------
    program : Program
    first, length : int64 arrays, shape (runs,)
        The runs in the order of the variables.
    """
    n = costs.shape[1]
    runs = [(i, 1 << k) for k in range(costs.shape[0]) for i in range(n + 1 - (1 << k))]
    first, length = np.array(runs, np.int64).T
    at, ones = np.arange(first.size), np.ones(first.size)
    shape = (n + 1, first.size)
    ends = scipy.sparse.csr_matrix((ones, (first + length, at)), shape=shape)
    matrix = ends - scipy.sparse.csr_matrix((ones, (first, at)), shape=shape)
    balance = np.zeros(n + 1)
    balance[0], balance[n] = -1, 1
    price = costs[np.log2(length).astype(np.int64), first].astype(np.float64)
    block = Block("run", (first.size,), 0, 1, True)
    rows = Rows("path", scipy.sparse.csr_matrix(matrix), balance, balance)
    return Program("partition", [block], [rows], [Term("linear", at, price)]), first, length
