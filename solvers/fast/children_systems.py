"""Newton systems of a parent's children: a small system for each child, and one for the parent's prices.

A child's matrix is a diagonal plus the squares of coarse queries and rules. So a child needs a system of
the size of these sums alone (Woodbury's identity), or of its cells, if these are fewer. The prices of the
parent's cells solve a system whose matrix is the sum of the children's inverses. It is formed where it is
small or the inverses are known; otherwise it is applied child by child in the method of conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from models.arithmetic.arrays import Flags, Floats
from solvers.fast.no_path import NoFastPath

MOST_DENSE = 100
"""The most cells for which the matrix of the parent's prices is formed."""

SMALL = 50
"""Up to this number of sums, systems of sums are solved even if the cells are fewer."""

STEPS = 400
"""The most steps of conjugate gradients; some tens are needed."""

EQUAL = 1e10
"""The weight that stands for an equation, in units of its cells' ease; rounds of correction make it hold."""


@dataclass(frozen=True, eq=False)
class Sums:
    """0/1 sums of cells, of which each child weighs some."""

    matrix: Any
    """scipy csr_matrix, shape (sums, cells)."""

    @cached_property
    def transposed(self) -> Any:
        """Shape (cells, sums)."""
        return self.matrix.T.tocsr()

    @cached_property
    def pairs(self) -> Any:
        """For each pair of sums, the cells that both count; a csr_matrix of shape (sums², cells)."""
        count, cells = self.matrix.shape
        by_cell = self.transposed
        rows, columns = [], []
        for j in range(cells):
            these = by_cell.indices[by_cell.indptr[j] : by_cell.indptr[j + 1]]
            rows.append((these[:, None].astype(np.int64) * count + these).ravel())
            columns.append(np.full(these.size**2, j))
        where = (np.concatenate([*rows, np.zeros(0, int)]), np.concatenate([*columns, np.zeros(0, int)]))
        return scipy.sparse.csr_matrix((np.ones(where[0].size), where), shape=(count * count, cells))

    def of(self, x: Floats) -> Floats:
        """The sums of each child; shape (children, cells) → (children, sums)."""
        return np.asarray((self.matrix @ x.T).T)

    def spread(self, y: Floats) -> Floats:
        """The transpose: in each cell, the sum of the entries of all sums that count it."""
        return np.asarray((self.transposed @ y.T).T)


class Systems:
    """The children's matrices ``diag(d) + Bᵀ diag(w) B`` on their free cells, ready to be solved.

    Parameters
    ----------
    sums : Sums
        B.
    diagonal : array, shape (children, cells)
        d > 0.
    weight : array, shape (children, sums)
        w ≥ 0.
    free : bool array, shape (children, cells)
        Other cells stay 0.
    held : bool array, shape (children, sums)
        The sums that are equations instead.
    """

    def __init__(self, sums: Sums, diagonal: Floats, weight: Floats, free: Flags, held: Flags) -> None:
        self.sums, self.free, self.held = sums, free, held
        self.diagonal, self.weight = diagonal, np.where(held, 0.0, weight)
        self._ease = np.where(free, 1 / diagonal, 0.0)
        reach = sums.of(self._ease)
        equal = np.where(reach > 0, EQUAL / np.where(reach > 0, reach, 1.0), 0.0)
        self._root = np.sqrt(np.where(held, equal, weight))
        self._inner: Any = None
        self._inverse: Any = None
        try:
            if sums.matrix.shape[0] <= max(SMALL, free.shape[1]):
                self._inner = self._inverses_of_sums()
            else:
                self._inverse = self._inverses_of_cells()
        except np.linalg.LinAlgError:
            raise NoFastPath("a Newton system is singular; take another backend") from None

    def _inverses_of_sums(self) -> Floats:
        """The inverse of each child's system of sums; shape (children, sums, sums)."""
        count = self.sums.matrix.shape[0]
        inner = np.asarray((self.sums.pairs @ self._ease.T).T).reshape(len(self.free), count, count)
        inner *= self._root[:, :, None] * self._root[:, None, :]
        at = np.arange(count)
        inner[:, at, at] += 1.0
        return np.asarray(np.linalg.inv(inner))

    def _inverses_of_cells(self) -> Floats:
        """The inverse of each child's matrix, 0 beside its free cells; shape (children, cells, cells)."""
        squares = [
            (self.sums.transposed.multiply(root * root) @ self.sums.matrix).toarray() for root in self._root
        ]
        both = self.free[:, :, None] & self.free[:, None, :]
        full = np.where(both, squares, 0.0)
        at = np.arange(self.free.shape[1])
        full[:, at, at] = np.where(self.free, full[:, at, at] + self.diagonal, 1.0)
        return np.where(both, np.linalg.inv(full), 0.0)

    def solve(self, right: Floats, missing: Floats, short: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Solve for x, the prices of the parent's cells, and the multipliers of sums that are held.

        diag(d) x + Bᵀ diag(w) B x − price − Bᵀ charge = right    on free cells, x = 0 on others
        B x = missing                                            for sums that are held, charge = 0 for others
        Σ_c x_c = short                                          unless it is None: then price = 0
        """
        x, charge = np.zeros(self.free.shape), np.zeros(self.held.shape)
        price = np.zeros(self.free.shape[1])
        for _ in range(3):  # the last two rounds correct for rounding, and make equations hold
            pulls = self.sums.spread(charge - self.weight * self.sums.of(x))
            left = np.where(self.free, right - self.diagonal * x + price + pulls, 0.0)
            off = np.where(self.held, missing - self.sums.of(x), 0.0)
            dx, dc = self._children(left, off)
            if short is not None:
                more = self._prices(short - (x + dx).sum(axis=0))
                price += more
                px, pc = self._children(np.where(self.free, more, 0.0), np.zeros(off.shape))
                dx, dc = dx + px, dc + pc
            x, charge = x + dx, charge + dc
        return x, price, charge

    def _children(self, right: Floats, missing: Floats) -> tuple[Floats, Floats]:
        """Each child's x and charges, with a large weight in place of equations."""
        root = self._root
        if self._inverse is not None:
            weighed = np.where(self.held, root * root, 0.0)
            x = np.matmul(self._inverse, (right + self.sums.spread(weighed * missing))[..., None])[..., 0]
            return x, weighed * (missing - self.sums.of(x))
        first = self._ease * right
        found = root * np.matmul(self._inner, (root * (self.sums.of(first) - missing))[..., None])[..., 0]
        return first - self._ease * self.sums.spread(found), np.where(self.held, -found, 0.0)

    def _prices(self, short: Floats) -> Floats:
        """The prices whose steps of x add up to what is short."""
        ease = self._ease.sum(axis=0)
        short = np.where(ease > 0, short, 0.0)
        if self._inverse is not None:
            gain = self._inverse.sum(axis=0) + np.diag(np.where(ease > 0, 0.0, 1.0))
        elif short.size > MOST_DENSE:
            return self._by_gradients(short, ease)
        else:
            pulls = self.sums.matrix.toarray() * self._ease[:, None, :] * self._root[:, :, None]
            gain = np.diag(np.where(ease > 0, ease, 1.0))
            gain -= np.einsum("cri,crj->ij", pulls, np.matmul(self._inner, pulls), optimize=True)
        gain += 1e-10 * max(float(np.abs(gain).max(initial=0.0)), 1e-300) * np.eye(short.size)
        try:
            return np.asarray(np.linalg.solve(gain, short))
        except np.linalg.LinAlgError:
            raise NoFastPath("a Newton system is singular; take another backend") from None

    def _by_gradients(self, short: Floats, ease: Floats) -> Floats:
        """The same by conjugate gradients; exact if the children's diagonals are alike."""
        inverse = np.where(ease > 0, 1 / np.where(ease > 0, ease, 1.0), 0.0)
        weights = self._root**2
        together = np.where((weights > 0).all(axis=0), 1 / (1 / np.maximum(weights, 1e-300)).sum(axis=0), 0.0)

        def applied(price: Floats) -> Floats:
            x, _ = self._children(np.where(self.free, price, 0.0), np.zeros(self.held.shape))
            return np.asarray(x.sum(axis=0))

        def eased(left: Floats) -> Floats:
            return np.asarray(inverse * left + self.sums.spread(together * self.sums.of(left[None]))[0])

        size = short.size
        operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=applied, dtype=float)
        helper = scipy.sparse.linalg.LinearOperator((size, size), matvec=eased, dtype=float)
        price, _ = scipy.sparse.linalg.cg(operator, short, rtol=1e-13, maxiter=STEPS, M=helper)
        return np.asarray(price)
