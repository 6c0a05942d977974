"""The split of a privacy budget over measurements with the least variance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.arrays import Floats
from models.arithmetic.exact import Number
from models.arithmetic.rounding import UNIT, Rounding
from models.certificate import Certificate, Witness, infeasible, judge

SINGULAR = 1e-12
"""Eigenvalues below this part of a matrix's largest count as 0."""

SMALLEST = 2.0**-1000
"""No smaller floats are used in a proof: those below 2⁻¹⁰²² have fewer digits, or are rounded to 0."""


@dataclass(frozen=True, eq=False)
class BudgetSplit:
    """The split of a budget ε that makes the average error variance least.

        minimize    Σ_i a_i / ε_i²                         Qardaji, Yang & Li 2013, §3.5, Eq. 5
        subject to  Σ_i ε_i = ε,  ε_i > 0

    a_i is the weight of level i: for H_b without constrained inference, the number of its nodes used by
    all queries, up to a constant. The optimum has ε_i in proportion to a_i^{1/3} and the value
    (Σ a_i^{1/3})³/ε². It is irrational, so answers are judged in floats.

    With `information`, the budget is ρ of Gaussian noise, whose variance is in proportion to 1/ρ, and all
    measurements are combined by least squares. In a basis in which that is diagonal, ρ_i of a measurement
    adds C_ji·ρ_i to the information about part j. An error is a weighted sum of the parts' variances:

        minimize    max_t Σ_j a_tj / (Cρ)_j                Xiao et al. 2023 (ResidualPlanner), §5;
        subject to  Σ_i ρ_i = ρ,  ρ_i ≥ 0                  McKenna et al. 2018, §5

    For marginals whose residuals are measured by themselves, C is diagonal; for marginals of all regions of a
    tree, its parts are the effects of the attributes between the siblings of a level. Where no basis makes
    all measurements diagonal (an attribute's coarser categories are of unequal sizes), a part is a symmetric
    matrix M_j = Σ_i ρ_i C_ji, and so are its weights: the error is Σ_j tr(a_tj M_j⁻¹).

    A `Program` has no such costs; `cvxpy` states the model for conic solvers instead.

    Parameters
    ----------
    weights : array, shape (levels,); with `information` (parts,) or (errors, parts), or (errors, parts, n, n)
        The weights a > 0. (Leave out a level of weight 0: no query uses it.) With `information` a ≥ 0, a row
        for each error of which the largest counts, and none of them all 0.
    epsilon : number
        The whole budget ε > 0, or ρ.
    information : array, shape (parts, measurements), (parts,) or (parts, measurements, n, n), optional
        C ≥ 0; of one dimension, its diagonal. Every part of some weight is measured. Matrices are positive
        semidefinite within rounding, and all of a part together positive definite.

    Raises
    ------
    ValueError
        If there are no weights, a weight or the budget is not positive and finite, or the information does
        not fit.

    Examples
    --------
    >>> model = BudgetSplit([1, 8], epsilon=3)
    >>> model.objective([1, 2])
    Fraction(3, 1)
    >>> model.certificate([1, 2]).optimal
    True

    The total and two counts are measured. The larger of their two errors is least where they are equal:

    >>> total, counts = [0.5, 0], [0.25, 0.25]  # parts: the mean of the counts, and their difference
    >>> model = BudgetSplit([[4 * 0.5, 0], counts], 1, information=[[2, 1], [0, 1]])
    >>> model.objective([0.75, 0.25]) == 2 / 1.75
    True
    >>> model.certificate([0.75, 0.25], {"errors": [6, 1]}).optimal
    True
    """

    weights: ArrayLike
    epsilon: Number
    information: ArrayLike | None = None
    random_up_to: ClassVar[int] = 10_000

    def __post_init__(self) -> None:
        if self.information is not None:
            self._check_information()
            return
        weights = door.data("weights", self.weights)
        if weights.size == 0:
            raise ValueError("weights is empty: there is no level to give a budget to")
        wrong = np.flatnonzero(weights <= 0)
        if wrong.size:
            raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "epsilon", self._budget())

    def _budget(self) -> Number:
        epsilon = door.scalar("epsilon", self.epsilon)
        if not (epsilon > 0 and exact.as_float(epsilon) < float("inf")):
            raise ValueError(f"epsilon is {epsilon}: it must be positive and finite")
        return epsilon

    def _check_information(self) -> None:
        weights, matrix = (door.in_floats(name, getattr(self, name)) for name in ("weights", "information"))
        weights = np.atleast_2d(weights)
        square = matrix.ndim == 4
        weights = weights[None] if square and weights.ndim == 3 else weights
        fits = (
            matrix.shape[2:] == weights.shape[2:] and matrix.shape[2] == matrix.shape[3]
            if square
            else weights.ndim == 2 and matrix.ndim in (1, 2)
        )
        if not (fits and matrix.size and len(matrix) == weights.shape[1]):
            raise ValueError(
                f"information has shape {matrix.shape}, weights {weights.shape}: a row for each part"
            )
        for name, array in (("weights", weights), ("information", matrix)):
            if not (np.isfinite(array).all() and (_is_semidefinite(array) if square else (array >= 0).all())):
                raise ValueError(f"{name} must be finite, and at least 0{' (semidefinite)' * square}")
        if not weights.any(axis=tuple(range(1, weights.ndim))).all():
            raise ValueError("an error has no weights above 0")
        if square:
            together = np.linalg.eigvalsh(matrix.sum(axis=1))
            lost: Any = together[:, 0] <= SINGULAR * together[:, -1]
        else:
            lost = weights.any(axis=0) & ~(matrix > 0).reshape(len(matrix), -1).any(axis=1)
        if lost.any():
            raise ValueError("a part with a weight is not measured")
        if square:  # exactly symmetric
            weights, matrix = ((a + a.swapaxes(-1, -2)) / 2 for a in (weights, matrix))
        for name, value in (("weights", weights), ("information", matrix), ("epsilon", self._budget())):
            object.__setattr__(self, name, value)

    @property
    def shares(self) -> int:
        """The number of shares of an answer."""
        matrix = self.information
        return np.size(self.weights) if matrix is None else np.shape(matrix)[min(np.ndim(matrix), 2) - 1]

    @property
    def square(self) -> bool:
        """Whether the parts are matrices."""
        return self.information is not None and np.ndim(self.information) == 4

    def informed(self, x: Any) -> Floats:
        """Cρ, shape (parts,) or (parts, n, n), with `information`."""
        matrix = np.asarray(self.information)
        if self.square:
            return np.asarray(np.tensordot(matrix, x, (1, 0)))
        return np.asarray(matrix * x if matrix.ndim == 1 else matrix @ x)

    def slope(self, parts: Floats) -> Floats:
        """Cᵀ times something of the parts; shape (shares,)."""
        matrix = np.asarray(self.information)
        if self.square:
            return np.asarray(np.einsum("pij,pnij->n", parts, matrix))
        return np.asarray(matrix * parts if matrix.ndim == 1 else parts @ matrix)

    @property
    def data(self) -> tuple[Floats, float]:
        """``(weights, epsilon)`` as floats."""
        return np.asarray(self.weights).astype(float), float(self.epsilon)

    def program(self) -> NoReturn:
        """Not available: a `Program` has no costs of the form 1/ε².

        Raises
        ------
        NotImplementedError
            Always; it names `cvxpy`.
        """
        raise NotImplementedError("BudgetSplit is not a separable QP or MIP: its costs are a/ε²; see cvxpy()")

    def cvxpy(self) -> tuple[Any, Any]:
        """The model as a ``cvxpy.Problem``, and the expression that holds the answer.

        It uses variables y, where ε_i is proportional to y_i·a_i^{1/3}, and scales the costs: the same
        problem, with numbers near 1. (In the printed form, Clarabel loses all digits if weights differ by
        orders of magnitude.)
        """
        import cvxpy as cp

        weights, epsilon = self.data
        if self.information is not None:
            share = cp.Variable(self.shares, nonneg=True)
            matrix = np.asarray(self.information)
            if self.square:
                errors = [
                    sum(
                        cp.matrix_frac(_root(part), sum(share[i] * one for i, one in enumerate(informed)))
                        for part, informed in zip(error / weights.max(), matrix, strict=True)
                        if part.any()
                    )
                    for error in weights
                ]
                most = cp.Minimize(cp.max(cp.hstack(errors)))
                return cp.Problem(most, [cp.sum(share) == 1]), epsilon * share
            parts = cp.multiply(matrix, share) if matrix.ndim == 1 else matrix @ share
            used = np.flatnonzero(weights.any(axis=0))
            errors = (weights[:, used] / weights.max()) @ cp.inv_pos(parts[used])
            return cp.Problem(cp.Minimize(cp.max(errors)), [cp.sum(share) == 1]), epsilon * share
        roots = np.cbrt(weights) / np.cbrt(weights).sum()
        y = cp.Variable(weights.size)
        return cp.Problem(cp.Minimize(roots @ cp.power(y, -2)), [roots @ y == 1]), cp.multiply(
            epsilon * roots, y
        )

    def objective(self, x: Any) -> Number:
        """Σ a/x²; a `Fraction` where weights and answer are exact; infinite where a share is 0."""
        weights = np.asarray(self.weights)
        x = door.answer(x, (self.shares,), integer=False)
        if self.information is not None:
            return float(self._errors(x.astype(float))[0].max())
        if np.any(x == 0):
            return float("inf")
        if exact.is_exact(x) and exact.is_exact(weights):
            pairs = zip(weights.tolist(), x.tolist(), strict=True)
            return sum((Fraction(a) / Fraction(b) ** 2 for a, b in pairs), Fraction(0))
        with np.errstate(all="ignore"):
            return float(np.sum(weights.astype(float) / x.astype(float) ** 2))

    def _errors(self, x: Floats) -> tuple[Floats, Floats]:
        """With `information`: each error, and (Cρ)⁻¹ with 0 where it is infinite."""
        weights, informed = np.asarray(self.weights), self.informed(x)
        with np.errstate(all="ignore"):
            if not self.square:
                inverse = np.where(informed > 0, 1 / informed, 0.0)
                return np.where(weights > 0, weights / informed, 0.0).sum(axis=1), inverse
            values, vectors = np.linalg.eigh(informed)
            kept = values > SINGULAR * values[:, -1:]
            turned = vectors.swapaxes(1, 2)
            inverse = (vectors * np.where(kept, 1 / values, 0.0)[:, None]) @ turned
            found = np.einsum("epij,pij->e", weights, inverse)
            lost = np.einsum("epij,pij->ep", weights, (vectors * ~kept[:, None]) @ turned)
            whole = np.einsum("epii->ep", weights)
            return np.where((lost > SINGULAR * whole).any(axis=1), np.inf, found), inverse

    def violations(self, x: Any) -> list[str]:
        """Shares that are not positive, and a wrong sum (floats: up to a relative 1e-6)."""
        x = door.answer(x, (self.shares,), integer=False)
        low = x <= 0 if self.information is None else x < 0
        found = [f"epsilon > 0: x[{i}] = {x[i]}" for i in np.flatnonzero(low)]
        exactly = exact.is_exact(x)
        slack = 0 if exactly else FEASIBILITY_TOLERANCE * float(self.epsilon)
        total: Any = exact.total(x)
        if abs(total - (Fraction(self.epsilon) if exactly else float(self.epsilon))) > slack:
            found.append(f"total: the shares add up to {total}, not {self.epsilon}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """One price λ ≥ 0 for the budget; linear time, in floats.

            bound  =  Σ_i min over t > 0 of ( a_i/t² + λ t )  −  λ ε  =  3 (λ/2)^{2/3} Σ a^{1/3}  −  λ ε.

        It holds for any λ (Lagrangian duality). At λ = 2 (Σ a^{1/3})³/ε³ it is the optimum. This λ is
        computed from the data, so no witness is needed. An answer is optimal if it is within a relative 1e-7
        of the bound, however small or large the weights are.

        Parameters
        ----------
        x : array, shape (levels,)
            In floats, it stands for the shares scaled to ε: the objective is theirs.
        witness : mapping, optional
            ``price``: another λ. With `information`, ``errors`` and ``scales``; see below.

        Notes
        -----
        With `information`, the largest of some errors is at least their mean by any weights w ≥ 0, `errors`.
        Let a be the mean of the weights a_t. Since 1/z ≥ 2s − s²z for any s > 0, and by the best multiple of
        the scales s ≥ 0, every split costs at least

            (Σ_j a_j s_j)² / (ρ · max_i (Cᵀ(a s²))_i).

        At an optimum, s = 1/(Cρ) and the multipliers of the errors leave no gap: they are the optimality
        conditions. Without a witness, s is that, and w is 1 for the largest error. Of matrices, any S takes
        the place of s, since tr(a M⁻¹) ≥ 2 tr(S a) − tr(M S a Sᵀ):

            (Σ_j tr(S_j a_j))² / (ρ · max_i Σ_j tr(C_ji S_j a_j S_jᵀ)).
        """
        x = door.answer(x, (self.shares,), integer=False)
        broken = self.violations(x)
        if broken:
            return infeasible(self.objective(x), broken)
        weights, epsilon = self.data
        if not exact.is_exact(x):
            x = x * (epsilon / x.sum())  # the feasible answer that it stands for
        objective = self.objective(x)
        if self.information is not None:
            return self._informed(x.astype(float), float(objective), witness)
        roots = float(np.cbrt(weights).sum())
        given = door.number(witness, "price")
        shares = x.astype(float)
        with np.errstate(all="ignore"):
            price = (
                float(2 * np.power(roots / np.float64(epsilon), 3))
                if given is None
                else max(float(given), 0.0)
            )
            slope = 2 * weights / shares**3
            worst = int(np.argmax(np.abs(slope - price)))
            light, least, most = weights.min(), shares.min(), shares.max()
            smallest = min(light, light / most / most, least * least, price or 1.0)
        root = float(np.cbrt(price / 2))
        parts = 3 * root * root * roots, price * epsilon
        cost = exact.as_float(objective)
        gap = cost - (parts[0] - parts[1]) if np.isfinite(parts).all() else float("inf")
        reason = f"level {worst} would pay {slope[worst]:.6g} for more budget, the price is {price:.6g}"
        # No absolute tolerance; the bound has some 64 roundings beside one for each level.
        error = (64 + x.size) * UNIT * sum(parts)
        if smallest < SMALLEST:  # floats may have lost digits
            error = float("inf")
        return judge(objective, gap, False, {"price": price}, reason, Rounding(error, unit=0.0))

    def _informed(self, x: Floats, cost: float, witness: Witness | None) -> Certificate:
        """The certificate with `information`."""
        weights, rho = self.data
        errors = door.real_array(witness, "errors", weights.shape[:1])
        scales = door.real_array(witness, "scales", weights.shape[1:])
        with np.errstate(all="ignore"):
            each, inverse = self._errors(x)
            mixed = np.maximum((each >= each.max()) * 1.0 if errors is None else errors, 0.0)
            scale = inverse if scales is None else scales if self.square else np.maximum(scales, 0.0)
            scale = scale / np.abs(scale).max()
            mean = np.tensordot(mixed, weights, 1) / mixed.sum()
            if self.square:
                spent = np.einsum("pij,pji->", scale, mean)
                squares = scale @ mean @ scale.swapaxes(1, 2)
            else:
                spent, squares = (mean * scale).sum(), mean * scale * scale
            steepest = self.slope(squares).max()
            bound = float(spent**2 / (rho * steepest))
        bound = bound if np.isfinite(bound) else 0.0
        # Sums and products of numbers above 0, whose smallest may be lost: that lowers the first sum, or is
        # far below the rounding of the largest slope.
        error = (64 + sum(weights.shape) + x.size) * UNIT * (4 * bound + cost)
        if self.square:  # of either sign: sums of their absolute values, and the inverse's condition
            error *= self._cancelled(scale, mean, spent, steepest, x)
        if self._underflows(scale, mean):
            error = float("inf")
        proof = {"errors": mixed, "scales": scale}
        return judge(
            cost, cost - bound, False, proof, "another split may cost less", Rounding(error, unit=0.0)
        )

    def _underflows(self, scale: Floats, mean: Floats) -> bool:
        """Whether a product of scales, weights and information may have lost all digits."""
        axes = tuple(range(1, scale.ndim))
        sizes = [np.abs(part).max(axis=axes) if axes else np.abs(part) for part in (scale, mean)]
        used = (sizes[0] > 0) & (sizes[1] > 0)
        matrix = np.abs(np.asarray(self.information))
        information = np.where(matrix > 0, matrix, np.inf).reshape(len(matrix), -1).min(axis=1)
        with np.errstate(all="ignore"):
            least = (2 * np.log2(sizes[0]) + np.log2(sizes[1]) + np.minimum(np.log2(information), 0))[used]
        return bool(least.size) and not least.min() > -1000

    def _cancelled(self, scale: Floats, mean: Floats, spent: Any, steepest: Any, x: Floats) -> float:
        """By how much rounding errors of matrices may be larger than of numbers above 0."""
        sizes, inner = np.abs(scale), np.abs(mean)
        sums = float(np.einsum("pij,pji->", sizes, inner))
        slopes = np.einsum(
            "pij,pnij->n", sizes @ inner @ sizes.swapaxes(1, 2), np.abs(np.asarray(self.information))
        )
        values = np.linalg.eigvalsh(self.informed(x))
        least = np.where(values > SINGULAR * values[:, -1:], values, np.inf).min(axis=1)
        with np.errstate(all="ignore"):
            found = sums / np.abs(spent) + slopes.max() / steepest + (values[:, -1] / least).max()
        return float(found) if np.isfinite(found) else float("inf")

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Weights that are equal, grow geometrically, or lie orders of magnitude apart."""
        n = max(1, size)
        kinds: list[Any] = [
            np.full(n, rng.integers(1, 9)),
            float(rng.integers(2, 17)) ** (np.arange(n) % 12),
            np.exp(rng.normal(0, 4, n)),
            rng.integers(1, 1000, n),
        ]
        return cls(kinds[rng.integers(0, 4)], float(rng.choice([0.01, 0.1, 1.0, 3.0])))

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Weights of six orders of magnitude."""
        return cls(rng.uniform(1, 1e6, size), 1.0, **options)


def _is_semidefinite(matrices: Floats) -> bool:
    """Whether matrices are symmetric, and have no eigenvalue below 0, within rounding."""
    close = SINGULAR * np.abs(matrices).max(axis=(-1, -2))
    apart = np.abs(matrices - matrices.swapaxes(-1, -2)).max(axis=(-1, -2))
    return bool((apart <= close).all() and (np.linalg.eigvalsh(matrices)[..., 0] >= -close).all())


def _root(matrix: Floats) -> Floats:
    """R with RRᵀ = the matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
