"""Rows of programs over trees."""

from __future__ import annotations

import numpy as np
import scipy

from models.programs.terms import Rows
from models.tree import Tree


def children_sums(name: str, tree: Tree, columns: int = 1, others: int = 0) -> Rows:
    """Rows that make each inner node the sum of its children, column by column.

    The variables are ``x[node, column]``, flat, followed by `others` variables that these rows do not have.
    """
    start, child = tree.children
    inner = tree.internal
    family = np.repeat(np.arange(inner.size), np.diff(start)[inner])
    below = scipy.sparse.csr_matrix((-np.ones(child.size), (family, child)), (inner.size, tree.size))
    above = scipy.sparse.csr_matrix((np.ones(inner.size), (np.arange(inner.size), inner)), below.shape)
    rows = scipy.sparse.kron(above + below, scipy.sparse.identity(columns), format="csr")
    rows.resize((rows.shape[0], tree.size * columns + others))
    return Rows(name, rows, np.zeros(rows.shape[0]), np.zeros(rows.shape[0]))
