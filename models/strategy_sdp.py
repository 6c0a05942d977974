"""The strategy of the matrix mechanism with the least total variance (Qardaji, Yang & Li 2013, §4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.arrays import Floats
from models.arithmetic.rounding import UNIT, Rounding
from models.certificate import FLOAT_TOLERANCE, Certificate, Witness, infeasible, judge

SMALLEST = 2.0**-800
"""Smaller costs are not proved: the squares that they are sums of may be below 2⁻¹⁰²², with fewer digits."""


@dataclass(frozen=True, eq=False)
class StrategySDP:
    """The strategy that answers a workload W of linear queries at the least total variance.

        minimize    tr(W X⁻¹ Wᵀ)                           Qardaji, Yang & Li 2013, §4.1
        subject to  X_jj ≤ 1 for every bin j,  X ≻ 0       (Li et al.'s semidefinite program)

    X = AᵀA stands for the strategy A, from whose noisy answers those of the workload are computed. Their
    total variance is the noise variance times Δ_A²·tr((AᵀA)⁻¹WᵀW), and X_jj is the squared L2 norm of A's
    column j, so that Δ_A ≤ 1. This is the sensitivity for Gaussian noise. The paper's Laplace noise has the
    L1 sensitivity, which X does not determine. But an L1 norm is at least the L2 norm, so 2/ε² times this
    optimum is a lower bound on the total variance of every ε-private matrix mechanism.

    The model is not a `Program`; `cvxpy` states it for conic solvers. It takes floats and O(bins³) time: up
    to some hundred bins.

    Parameters
    ----------
    workload : array, shape (queries, bins)
        W, of full column rank: the queries together distinguish all bins.

    Raises
    ------
    ValueError
        If the workload is empty or its rank is less than the number of bins.

    Examples
    --------
    >>> model = StrategySDP([[1, 0], [0, 1], [1, 1]])
    >>> model.objective([[1, 0], [0, 1]])
    4.0
    >>> print(model.certificate([[1, 0], [0, 1]]).reason)
    the duality gap is 0.267949
    """

    workload: ArrayLike
    random_up_to: ClassVar[int] = 8  # matrices are dense

    def __post_init__(self) -> None:
        workload = door.data("workload", self.workload, ndim=2)
        if 0 in workload.shape:
            raise ValueError(f"workload has shape {workload.shape}: there is nothing to answer")
        unused = np.flatnonzero(~np.any(workload != 0, axis=0))
        if unused.size:
            raise ValueError(f"no query of the workload asks for bin {unused[0]}: leave it out")
        rank = int(np.linalg.matrix_rank(workload.astype(float)))
        if rank < workload.shape[1]:
            raise ValueError(
                f"the workload has rank {rank} for {workload.shape[1]} bins: merge bins that no query tells "
                "apart, or ask more"
            )
        object.__setattr__(self, "workload", workload)

    @cached_property
    def root(self) -> Floats:
        """R with RᵀR = WᵀW; the problem depends on W only through it. Shape (bins, bins)."""
        return np.asarray(np.linalg.qr(np.asarray(self.workload).astype(float), mode="r"))

    @property
    def gram(self) -> Floats:
        """WᵀW; shape (bins, bins)."""
        return np.asarray(self.root.T @ self.root)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(np.shape(self.workload)[1])

    def program(self) -> NoReturn:
        """Not available: a `Program` has no matrix variables.

        Raises
        ------
        NotImplementedError
            Always; it names `cvxpy`.
        """
        raise NotImplementedError(
            "StrategySDP is not a separable QP or MIP but a semidefinite program; see cvxpy()"
        )

    def cvxpy(self) -> tuple[Any, Any]:
        """The model as a ``cvxpy.Problem``, and the variable that holds the answer.

        Costs are relative to those of the strategy that measures each bin alone.
        """
        import cvxpy as cp

        x = cp.Variable(self.root.shape, PSD=True)
        root = self.root / np.linalg.norm(self.root)
        return cp.Problem(cp.Minimize(cp.matrix_frac(root.T, x)), [cp.diag(x) <= 1]), x

    def objective(self, x: Any) -> float:
        """tr(W X⁻¹ Wᵀ) of the symmetric part of X; infinite where that is not positive definite."""
        return self._cost(self._factor(x))

    def _cost(self, lower: Floats | None) -> float:
        """The objective from X's Cholesky factor."""
        if lower is None:
            return float("inf")
        half = scipy.linalg.solve_triangular(lower, self.root.T, lower=True)
        with np.errstate(over="ignore"):
            return float(np.sum(half * half))

    def violations(self, x: Any) -> list[str]:
        """Diagonal entries above 1, asymmetry (floats: beyond 1e-6), and no positive definiteness."""
        return self._broken(x, self._factor(x))

    def _broken(self, x: Any, lower: Floats | None) -> list[str]:
        """The violations, given X's Cholesky factor."""
        x = exact.widened(door.answer(x, (self.bins, self.bins), integer=False), 2)
        slack = 0 if exact.is_exact(x) else FEASIBILITY_TOLERANCE
        found = [f"sensitivity: X[{j}, {j}] = {x[j, j]} > 1" for j in np.flatnonzero(np.diag(x) > 1 + slack)]
        for i, j in np.argwhere(np.triu(np.abs(x - x.T) > slack)):
            found.append(f"symmetry: X[{i}, {j}] = {x[i, j]}, X[{j}, {i}] = {x[j, i]}")
        if lower is None:
            least = scipy.linalg.eigvalsh((x + x.T).astype(float) / 2)[0]
            found.append(f"positive definite: X has the eigenvalue {least}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices μ ≥ 0 of the diagonal; O(bins³), in floats.

        With D = diag(μ), the Lagrangian dual is

            bound  =  min over X of ( tr(WᵀW X⁻¹) + tr(D X) )  −  Σμ  =  ``2‖W D^½‖_*``  −  Σμ,

        where the nuclear norm is the sum of the singular values. It holds for any prices, and is largest for
        prices scaled to ``Σμ = ‖W D^½‖_*``; the bound is then ``‖W D^½‖_*² / Σμ`` of the unscaled prices. The
        diagonal of X⁻¹WᵀWX⁻¹ for an optimal X reaches the optimum (strong duality holds, as X = I/2 is
        strictly feasible: Boyd & Vandenberghe 2004, §5.9). Without a witness, this diagonal is computed
        from x; if x is not optimal, the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (bins, bins)
            Its symmetric part is meant, scaled if a diagonal entry is above 1 by a tolerance.
        witness : mapping, optional
            ``prices``, shape (bins,): μ; a negative one counts as 0.
        """
        lower = self._factor(x)
        broken = self._broken(x, lower)
        if lower is None or broken:
            return infeasible(self._cost(lower), broken)
        # The feasible answer that x stands for: its symmetric part, scaled to a diagonal of at most 1.
        lower = lower / math.sqrt(max(1.0, float(np.diag(np.asarray(x, float)).max())))
        objective = self._cost(lower)
        if not SMALLEST <= objective < math.inf:
            reason = "the cost is too small or too large for floats: scale the workload"
            return Certificate(False, objective, 0.0, objective, {}, reason)
        price = door.real_array(witness, "prices", (self.bins,))
        if price is None:
            half = scipy.linalg.cho_solve((lower, True), self.root.T)
            with np.errstate(all="ignore"):
                half /= np.abs(half).max()  # only the ratios of prices matter
                price = np.nan_to_num(np.sum(half * half, axis=1))
        price = np.maximum(price, 0)
        price = price / (price.max() or 1.0)
        norm = self.nuclear_norm(price)
        bound = norm * norm / (float(price.sum()) or 1.0)
        price = price * (norm / (float(price.sum()) or 1.0)) ** 2
        gap = objective - bound
        reason = f"the duality gap is {gap:.6g}"
        # No absolute tolerance. Singular values are computed within a small multiple of bins² units in the
        # last place of the largest (Higham 2002).
        rounded = Rounding(64 * self.bins**2 * UNIT * bound, unit=0.0)
        proof = judge(objective, gap, False, {"prices": price}, reason, rounded)
        if not _cost_error(lower) <= FLOAT_TOLERANCE:
            return replace(
                proof, optimal=False, reason="X is nearly singular: its cost is not known in floats"
            )
        return proof

    def nuclear_norm(self, price: Floats) -> float:
        """``‖W D^½‖_*`` for D = diag(price) ≥ 0."""
        return float(np.linalg.svd(self.root * np.sqrt(price), compute_uv=False).sum())

    def _factor(self, x: Any) -> Floats | None:
        """The Cholesky factor of X's symmetric part; None if it has none."""
        x = door.answer(x, (self.bins, self.bins), integer=False).astype(float)
        try:
            return np.asarray(np.linalg.cholesky((x + x.T) / 2))
        except np.linalg.LinAlgError:
            return None

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """All ranges, all prefixes, or random queries and each bin with a small or large weight."""
        n = max(1, min(int(np.sqrt(max(size, 1))), 40))
        ends = np.triu_indices(n)
        ranges = (ends[0][:, None] <= np.arange(n)) & (np.arange(n) <= ends[1][:, None])
        kinds: list[Any] = [
            ranges.astype(np.int64),
            np.tril(np.ones((n, n), np.int64)),
            np.vstack([np.eye(n) * rng.choice([0.01, 1.0, 30.0]), rng.integers(-2, 3, (n + 2, n))]),
            np.diag(np.exp(rng.normal(0, 3, n))),
        ]
        return cls(kinds[rng.integers(0, 4)])

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:  # noqa: ARG003
        """All prefixes of √size bins."""
        bins = max(2, int(size**0.5))
        return cls(np.tril(np.ones((bins, bins))), **options)


def _cost_error(lower: Floats) -> float:
    """A bound on the relative rounding error of a cost that is computed with this Cholesky factor L.

    L is the factor of a matrix that differs from X by at most (n + 1) units of ``|L| |Lᵀ|``, and triangular
    systems are solved for a matrix that differs from L by at most n units of ``|L|`` (Higham 2002, Theorems
    10.3 and 8.5). Multiplied by ``L⁻¹`` and its transpose, the first is at most (n + 1) units of b² with b
    the Frobenius norm of ``|L⁻¹| |L|``, and the second n units of b. Twice that also covers its own rounding.
    """
    inverse, _ = scipy.linalg.lapack.dtrtri(lower, lower=1)
    with np.errstate(over="ignore", invalid="ignore"):
        b = float(np.linalg.norm(np.abs(inverse) @ np.abs(lower)))
    return 2 * (len(lower) + 2) * UNIT * b * (b + 2)
