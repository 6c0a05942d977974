"""The matrix mechanism for few bins: measure other queries, and derive the workload's answers from them.

For a strategy A (one row per query, one column per bin) and Laplace noise, the mean variance of a workload
with Gram matrix WᵀW is 2/ε² · Δ² · tr((AᵀA)⁻¹ WᵀW) divided by the number of queries, where Δ is the largest
L1 norm of A's columns (Li, Hay, Rastogi, Miklau & McGregor 2010; Qardaji, Yang & Li 2013, §4.1). The
functions differ in how they choose A:

- `lower_bound`: the semidefinite program with L2 norms in place of L1 norms, solved by
  `models.StrategySDP`. An L1 norm is at least the L2 norm, so this bounds every strategy from below.
- `eigen`: weighted eigenvectors of WᵀW (Li & Miklau 2012). Their weights are optimal for Gaussian noise; for
  Laplace noise the same program has |A| in place of A∘A. Both are available.
- `low_rank`: W = B L, with the columns of L in the L1 ball and the least ‖B‖² (Yuan et al. 2012).
- `p_identity`: single bins and a few more queries (McKenna, Miklau, Hay & Machanavajjhala 2018), with the
  gradient of their §5; not in the paper.

All take at least O(bins³) time: use them for a few hundred bins at most.
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

ROWS = 1.2
"""Rows of a low-rank strategy for each bin, as in the paper."""


def mean_variance(strategy: Floats, gram: Floats, queries: int, epsilon: float = 1.0) -> float:
    """Mean variance of a workload that is answered from a strategy with Laplace noise.

    >>> from hierdp.analysis.workload import RANGE
    >>> round(mean_variance(np.eye(16), RANGE.gram(16), 136), 6)
    12.0
    """
    sensitivity = float(np.abs(strategy).sum(axis=0).max())
    r = np.asarray(np.linalg.qr(strategy, mode="r"))
    half = np.linalg.solve(r.T, _root(gram))
    return 2 / epsilon**2 * sensitivity**2 * float(np.sum(half * half)) / queries


def lower_bound(gram: Floats, queries: int, epsilon: float = 1.0) -> tuple[float, Certificate]:
    """A proved lower bound on the mean variance of every strategy, with its certificate."""
    from solvers import solve

    proof = solve(StrategySDP(_root(_checked(gram)).T)).certificate
    assert proof is not None, "the fast path gives a certificate for every workload"
    return 2 / epsilon**2 * float(proof.bound or 0) / queries, proof


def eigen(gram: Floats, norm: int = 1) -> Floats:
    """Eigen-select: the eigenvectors of WᵀW, with weights that are optimal for the L1 or the L2 sensitivity.

    - gram, shape (bins, bins)
    - norm: 2 is the program of Li & Miklau 2012: minimize Σ σ_i/u_i subject to (Q∘Q)ᵀu ≤ 1; the weights are
      √u. 1 is its analogue for ε-differential privacy: minimize Σ σ_i/u_i² subject to |Q|ᵀu ≤ 1; the weights
      are u.
    """
    import cvxpy as cp

    values, vectors = np.linalg.eigh(_checked(gram))
    if values[0] <= 0:
        raise InputError("some bins occur in exactly the same queries; merge these bins into one")
    load = np.abs(vectors) if norm == 1 else vectors**2
    # Scaled by the expected answer, so that the solver sees numbers near 1.
    unit = np.cbrt(values) if norm == 1 else np.sqrt(values)
    unit = unit / (load @ unit).max()
    weight: Any = cp.Variable(values.size, pos=True)
    cost = values / unit ** (2 if norm == 1 else 1)
    program = cp.Problem(
        cp.Minimize((cost / cost.sum()) @ cp.power(weight, -2 if norm == 1 else -1)),
        [(load * unit) @ weight <= 1],
    )
    with warnings.catch_warnings():  # slightly suboptimal weights are still a valid strategy
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL)
    found = np.asarray(weight.value) * unit
    return np.asarray((found if norm == 1 else np.sqrt(found))[:, None] * vectors.T)


def low_rank(gram: Floats, steps: int = 1000, start: Floats | None = None) -> Floats:
    """The low-rank mechanism's program, W = B L with small ‖B‖: a local optimum L, from a start.

    For given L the best B is the least-squares solution. The remaining problem is to minimize tr((LᵀL)⁻¹ WᵀW)
    over L whose columns have L1 norm 1; L-BFGS does this. (Yuan et al. alternate between B and L under a
    penalty for W − B L.)

    - gram, shape (bins, bins)
    - steps: maximum number of L-BFGS iterations.
    - start, shape (bins, bins): the first rows of L before the descent; default: those of an SVD of W. L has
      `ROWS` times as many rows as there are bins; the further ones start near 0.
    """
    first = np.linalg.eigh(_checked(gram))[1].T if start is None else start
    more = int(np.ceil(ROWS * len(gram))) - len(gram)
    rows = np.vstack([first, 1e-3 * np.random.default_rng(0).normal(size=(more, len(gram)))])
    return _descended(rows, gram, steps)


def p_identity(gram: Floats, steps: int = 1000) -> Floats:
    """All single bins and p more queries, with non-negative weights: OPT₀ of McKenna et al. 2018.

    A(Θ) = [I; Θ] D, where D scales the columns to L1 norm 1 and Θ ≥ 0 has p rows. L-BFGS finds a local
    optimum Θ from a random start. A step costs O(p·bins²), because (I + ΘᵀΘ)⁻¹ = I − Θᵀ(I + ΘΘᵀ)⁻¹Θ. The
    result is the best for p = 1, n/16 and n/8, or single bins alone if none is better.
    """
    n = len(_checked(gram))
    rng = np.random.default_rng(0)
    found = [np.eye(n)]
    for more in sorted({1, n // 16, n // 8} - {0}):
        found.append(_more_queries(rng.random((more, n)), gram, steps))
    return min(found, key=lambda strategy: mean_variance(strategy, gram, 1))


def _more_queries(start: Floats, gram: Floats, steps: int) -> Floats:
    """The p-identity strategy of a local optimum Θ."""
    one = np.eye(gram.shape[0])

    def cost(entries: Floats) -> tuple[float, Floats]:
        more = entries.reshape(start.shape)
        size = 1 + more.sum(axis=0)
        inverse = one - more.T @ np.linalg.solve(np.eye(len(more)) + more @ more.T, more)
        along = (gram * inverse) @ size
        slope = 2 * along - 2 * (more @ inverse @ (size[:, None] * gram * size)) @ inverse
        return float(size @ along) / unit, (slope / unit).ravel()

    unit = float(np.trace(gram))  # the cost of measuring single bins
    limits = {"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    bounds = [(0, None)] * start.size
    done = scipy.optimize.minimize(
        cost, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=limits
    )
    raw = np.vstack([one, done.x.reshape(start.shape)])
    return np.asarray(raw / raw.sum(axis=0))


def _descended(start: Floats, gram: Floats, steps: int) -> Floats:
    """A strategy with columns of L1 norm 1, by L-BFGS from a start."""
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

    unit = float(np.trace(gram))  # the cost of measuring single bins
    limits = {"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-8}
    done = scipy.optimize.minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options=limits)
    raw = done.x.reshape(-1, n)
    return np.asarray(raw / np.abs(raw).sum(axis=0))


def _root(gram: Floats) -> Floats:
    """R of shape (bins, bins) with R Rᵀ = gram."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def _checked(gram: Floats) -> Floats:
    if len(gram) > MOST_BINS:
        raise InputError(f"the matrix mechanism takes at most {MOST_BINS} bins, got {len(gram)}; use fewer")
    return gram
