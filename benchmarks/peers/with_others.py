"""The models in established programs that solve them, or seem to: SciPy, scikit-learn, OpenDP, ruptures, …"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.shared import marks


def scikit_isotonic(model: Any) -> Any:
    from sklearn.isotonic import isotonic_regression

    return isotonic_regression(np.asarray(model.noisy, float))


def scipy_isotonic(model: Any) -> Any:
    from scipy.optimize import isotonic_regression

    return isotonic_regression(np.asarray(model.noisy, float)).x


def kmeans1d(model: Any) -> Any:
    """Runs of sorted values with the least squared error: k-means on a line."""
    from kmeans1d import cluster

    labels = np.asarray(cluster(np.asarray(model.values, float), model.clusters).clusters)
    return marks(np.flatnonzero(np.diff(labels, prepend=-1)), labels.size)


def scikit_kmeans(model: Any) -> Any:
    """The best of ten random starts, as usual."""
    from sklearn.cluster import KMeans

    values = np.asarray(model.values, float)
    labels = KMeans(model.clusters, n_init=10, random_state=0).fit_predict(values[:, None])
    return marks(np.flatnonzero(np.diff(labels, prepend=-1)), values.size)


def ruptures_pelt(model: Any) -> Any:
    import ruptures

    search = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(np.asarray(model.values, float))
    ends = search.predict(pen=float(model.price))
    return marks([0, *ends[:-1]], ends[-1])


def ruptures_dynamic(model: Any) -> Any:
    import ruptures

    search = ruptures.Dynp(model="l2", min_size=1, jump=1).fit(np.asarray(model.values, float))
    ends = search.predict(n_bkps=model.clusters - 1)
    return marks([0, *ends[:-1]], ends[-1])


def numpy_merging(model: Any) -> Any:
    return np.rint(np.average(np.asarray(model.estimates, float), axis=0, weights=model.weights))


def scipy_assignment(model: Any) -> Any:
    """Group by group, each with its own row and column."""
    from scipy.optimize import linear_sum_assignment

    (sizes, counts), (below, child_counts, _) = model.parent, model.children
    row, column = np.repeat(np.arange(sizes.size), counts), np.repeat(np.arange(below.size), child_counts)
    i, j = linear_sum_assignment(np.abs(np.subtract.outer(sizes[row], below[column])))
    x = np.zeros(model.shape, np.int64)
    np.add.at(x, (row[i], column[j]), 1)
    return x


def scipy_transport(model: Any) -> Any:
    """As a linear program of runs."""
    from scipy.optimize import linprog
    from scipy.sparse import identity, kron, vstack

    (sizes, counts), (below, child_counts, _) = model.parent, model.children
    p, c = model.shape
    rows = vstack([kron(identity(p), np.ones((1, c))), kron(np.ones((1, p)), identity(c))])
    cost = np.abs(np.subtract.outer(sizes, below)).ravel()
    found = linprog(cost, A_eq=rows, b_eq=np.concatenate([counts, child_counts]))
    return None if found.x is None else found.x.reshape(p, c)


def inf_tda(model: Any) -> Any:
    """IntOpt, as published by the authors of InfTDA."""
    from InfTDA.optimization import int_opt

    return int_opt(np.asarray(model.noisy), int(np.sum(model.total)))


def numpy_rounding(model: Any) -> Any:
    return np.rint(np.asarray(model.values, float))


def opendp_inference(model: Any) -> Any:
    """OpenDP returns only the leaves, truncated to whole numbers; the counts above are their sums."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    consistent = dp.t.make_consistent_b_ary_tree(2, TIA="i64")
    leaves = np.asarray(consistent(np.array(model.noisy)), float)
    return model.tree.sum_up(leaves)


def scipy_nnls(model: Any) -> Any:
    """Non-negative least squares for the leaves; every node's equation is a row."""
    from scipy.optimize import nnls

    tree, w = model.tree, np.sqrt(np.asarray(model.weights, float))
    unit = np.asarray(tree.sum_up(np.eye(tree.leaves.size)))
    leaves, _ = nnls(unit * w[:, None], np.asarray(model.noisy, float) * w)
    return unit @ leaves


def scipy_budget(model: Any) -> Any:
    from scipy.optimize import minimize

    a, epsilon = np.asarray(model.weights, float), float(model.epsilon)
    found = minimize(
        lambda e: float(np.sum(a / e**2)),
        np.full(a.size, epsilon / a.size),
        bounds=[(1e-9, None)] * a.size,
        constraints={"type": "eq", "fun": lambda e: e.sum() - epsilon},
    )
    return found.x if found.success else None
