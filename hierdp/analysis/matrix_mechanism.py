"""The matrix mechanism for few bins: ask other queries, and compute the workload's answers from theirs.

For a strategy A (a row a query, a column a bin) and Laplace noise, the mean variance of a workload of Gram
matrix WᵀW is 2/ε² · Δ² · tr((AᵀA)⁻¹ WᵀW) over the number of queries, Δ the largest L1 norm of A's columns
(Li, Hay, Rastogi, Miklau & McGregor 2010; Qardaji, Yang & Li 2013, §4.1). What differs is how A is chosen:

- `lower_bound`: the semidefinite program with L2 norms in place of L1 norms, solved by
  `models.StrategySDP`. No L1 norm is under its L2 norm, so no strategy at all is better than this.
- `eigen`: the eigenvectors of WᵀW, weighted (Li & Miklau 2012). Their weights are the best for Gaussian
  noise; for Laplace noise the same program has |A| in place of A∘A. Both are here.
- `low_rank`: W = B L with the columns of L in the L1 ball and the squares of B least (Yuan et al. 2012).
- `p_identity`: single bins and a few more queries (McKenna, Miklau, Hay & Machanavajjhala 2018), not in the
  paper.

All need O(bins³) and more: some hundred bins at most.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy

from hierdp.errors import InputError
from models import StrategySDP
from models.arithmetic.arrays import Floats
from models.certificate import Certificate

MOST_BINS = 512
"""As in Table 3."""


def mean_variance(strategy: Floats, gram: Floats, queries: int, epsilon: float = 1.0) -> float:
    """Mean variance of a workload answered from a strategy with Laplace noise.

    Examples
    --------
    >>> from hierdp.analysis.workload import RANGE
    >>> round(mean_variance(np.eye(16), RANGE.gram(16), 136), 6)
    12.0
    """
    sensitivity = float(np.abs(strategy).sum(axis=0).max())
    r = np.asarray(np.linalg.qr(strategy, mode="r"))
    half = np.linalg.solve(r.T, _root(gram))
    return 2 / epsilon**2 * sensitivity**2 * float(np.sum(half * half)) / queries


def lower_bound(gram: Floats, queries: int, epsilon: float = 1.0) -> tuple[float, Certificate]:
    """What no strategy's mean variance is under: the bound that the certificate proves."""
    from solvers import solve

    proof = solve(StrategySDP(_root(_checked(gram)).T)).certificate
    assert proof is not None, "the fast path has one for every workload"
    return 2 / epsilon**2 * float(proof.bound or 0) / queries, proof


def eigen(gram: Floats, norm: int = 1) -> Floats:
    """Eigen-select: the eigenvectors of WᵀW with the weights that are best for the L1 or the L2 sensitivity.

    Parameters
    ----------
    gram : array, shape (bins, bins)
    norm : 1 or 2
        2 is the program of Li & Miklau 2012: minimize Σ σ_i/u_i where (Q∘Q)ᵀu ≤ 1, the weights being √u.
        1 is its sibling for ε-differential privacy: minimize Σ σ_i/u_i² where |Q|ᵀu ≤ 1, the weights being u.
    """
    import cvxpy as cp

    values, vectors = np.linalg.eigh(_checked(gram))
    if values[0] <= 0:
        raise InputError("the workload does not tell all bins apart: merge those that no query tells apart")
    load = np.abs(vectors) if norm == 1 else vectors**2
    # In units of the answer expected, so that solvers meet numbers near 1.
    unit = np.cbrt(values) if norm == 1 else np.sqrt(values)
    unit = unit / (load @ unit).max()
    weight: Any = cp.Variable(values.size, pos=True)
    cost = values / unit ** (2 if norm == 1 else 1)
    program = cp.Problem(
        cp.Minimize((cost / cost.sum()) @ cp.power(weight, -2 if norm == 1 else -1)),
        [(load * unit) @ weight <= 1],
    )
    with warnings.catch_warnings():  # weights that are not quite the best are a strategy, too
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL)
    found = np.asarray(weight.value) * unit
    return np.asarray((found if norm == 1 else np.sqrt(found))[:, None] * vectors.T)


def low_rank(gram: Floats, steps: int = 1000, excess: float = 1.2) -> Floats:
    """The low-rank mechanism's program, W = B L with little B: a local optimum L, reached from an SVD of W.

    For given L the best B is that of least squares; what is left, tr((LᵀL)⁻¹ WᵀW) over L whose columns have
    the L1 norm 1, is descended by L-BFGS. (Yuan et al. alternate between B and L under a penalty for W − B
    L.)

    Parameters
    ----------
    gram : array, shape (bins, bins)
    steps : int
        At most.
    excess : float
        Rows of L, in multiples of the number of bins; 1.2 as in the paper.
    """
    _, vectors = np.linalg.eigh(_checked(gram))
    more = int(np.ceil(excess * len(gram))) - len(gram)
    start = np.vstack([vectors.T, 1e-3 * np.random.default_rng(0).normal(size=(more, len(gram)))])
    return _descended(start, gram, steps, signs=True)


def p_identity(gram: Floats, steps: int = 1000) -> Floats:
    """All single bins and some more queries, weights not negative: OPT₀ of McKenna et al. 2018.

    The best of the strategies that random starts of 1, n/16, n/8 and n/4 more queries lead to, and of asking
    single bins only.
    """
    n = len(_checked(gram))
    rng = np.random.default_rng(0)
    found = [np.eye(n)]
    for more in sorted({1, n // 16, n // 8, n // 4} - {0}):
        start = np.vstack([np.eye(n), rng.random((more, n))])
        found.append(_descended(start, gram, steps, signs=False))
    return min(found, key=lambda strategy: mean_variance(strategy, gram, 1))


def _descended(start: Floats, gram: Floats, steps: int, signs: bool) -> Floats:
    """A strategy of unit L1 columns, by L-BFGS from a start; its entries may be negative or not."""
    n = start.shape[1]

    def cost(entries: Floats) -> tuple[float, Floats]:
        raw = entries.reshape(-1, n)
        size = np.abs(raw).sum(axis=0)
        strategy = raw / size
        try:
            inverse = np.linalg.inv(strategy.T @ strategy)
        except np.linalg.LinAlgError:
            return 1e300, np.zeros_like(entries)
        weighed = gram @ inverse
        slope = -2 * strategy @ (inverse @ weighed)
        slope = (slope - (slope * strategy).sum(axis=0) * np.sign(raw)) / size
        return float(np.trace(weighed)) / unit, (slope / unit).ravel()

    unit = float(np.trace(gram))  # what asking single bins costs
    bounds = None if signs else [(0, None)] * start.size
    limits = {"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-8}
    done = scipy.optimize.minimize(
        cost, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=limits
    )
    raw = done.x.reshape(-1, n)
    return np.asarray(raw / np.abs(raw).sum(axis=0))


def _root(gram: Floats) -> Floats:
    """R of shape (bins, bins) with R Rᵀ = gram."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def _checked(gram: Floats) -> Floats:
    if len(gram) > MOST_BINS:
        raise InputError(f"the matrix mechanism is for {MOST_BINS} bins at most, these are {len(gram)}")
    return gram
