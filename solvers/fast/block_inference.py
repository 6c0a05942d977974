"""Least squares over a tree of histograms: a transform of each node, then two passes for each coefficient.

Marginals scale each effect of a histogram (`models.arithmetic.effects`). So in coordinates that separate the
effects (along each attribute, the mean and the deviations of all categories but the first), the problem
splits into one `ConstrainedInference` for each coordinate, whose variances depend only on level and effect.
Weighted averaging goes up the tree, mean consistency down (Hay et al. 2010; Qardaji, Yang & Li 2013,
§3.3; as blocks: Cumings-Menon & Zhuravlev 2024, Ghazi et al. 2026). The time is linear in nodes and cells.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models import BlockInference
from models.arithmetic import effects
from models.arithmetic.arrays import Array, Ints


def solve_block_inference(model: BlockInference) -> tuple[Array, None]:
    """The optimum; Fractions for noisy answers given as objects, else floats.

    In floats, what large weights of large answers round off may move the others'; then the same is done once
    more for what is left of the answers.
    """
    noisy, weights = model.data
    x = _solved(model, noisy)
    if noisy.dtype == object:
        return x, None
    used = weights[weights > 0].astype(float)
    rounded = float(np.abs(noisy).max()) * float(used.max()) / float(used.min()) * np.finfo(float).eps
    if rounded > 1e-6:
        x = np.asarray(model.tree.sum_up(x[model.tree.leaves]))
        x += _solved(model, noisy - model.workload.answers(x))
    return x, None


def _solved(model: BlockInference, noisy: Array) -> Array:
    tree, workload, weights = model.tree, model.workload, model.data[1]
    exactly = noisy.dtype == object
    number: Any = Fraction if exactly else float
    effect = _effect_of(workload.shape)
    estimate = np.empty(model.shape, object if exactly else float)
    # Each level's variances by effect; for a ragged tree they differ between the nodes of a level.
    width = 1 << len(workload.shape)
    variance, spread = (np.zeros((tree.size, width), estimate.dtype) for _ in range(2))
    below = np.zeros_like(estimate)
    start, child = tree.children
    known = effects.exists(workload.shape)
    for k in range(tree.depth, -1, -1):
        nodes = tree.nodes_of(k)
        weight = workload.by_answer(_numbers(weights[k], number))
        held = _transformed(workload.spread(weight * noisy[nodes]), workload.shape)
        own = np.broadcast_to(_numbers(model.information[k], number), (held.shape[0], width)).copy()
        own[:, ~known] = number(1)
        each = np.arange(nodes.start, nodes.stop)
        inner = each[start[each + 1] > start[each]]
        if inner.size:
            family, first = child[start[inner[0]] : start[inner[-1] + 1]], start[inner] - start[inner[0]]
            below[inner] = np.add.reduceat(estimate[family], first, axis=0)
            spread[inner] = np.add.reduceat(variance[family], first, axis=0)
            own[inner - nodes.start] += 1 / spread[inner]
            held[inner - nodes.start] += below[inner] / spread[inner][:, effect]
        variance[nodes] = 1 / own
        estimate[nodes] = held / own[:, effect]
    for k in range(1, tree.depth + 1):
        nodes = tree.nodes_of(k)
        parent = tree.parent[nodes]
        share = (variance[nodes] / spread[parent])[:, effect]
        estimate[nodes] += share * (estimate[parent] - below[parent])
    return _restored(estimate, workload.shape)


def _numbers(values: Array, number: Any) -> Array:
    return np.array([number(v) for v in values.tolist()], object if number is Fraction else float)


def _effect_of(shape: tuple[int, ...]) -> Ints:
    """The effect that each coefficient belongs to; shape (cells,)."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.asarray(((places > 0) << np.arange(len(shape))[:, None]).sum(axis=0), np.int64)


def _transformed(x: Array, shape: tuple[int, ...]) -> Array:
    """Along each attribute, replace the first entry by the mean, and the others by deviations from it."""
    held = x.reshape(-1, *shape).copy()
    for a, n in enumerate(shape, start=1):
        along = np.moveaxis(held, a, 0)
        mean = along.sum(axis=0) / n
        along -= mean
        along[0] = mean
    return held.reshape(x.shape)


def _restored(x: Array, shape: tuple[int, ...]) -> Array:
    """The inverse of `_transformed`."""
    held = x.reshape(-1, *shape).copy()
    for a in range(1, len(shape) + 1):
        along = np.moveaxis(held, a, 0)
        mean = along[0].copy()
        along[0] = -along[1:].sum(axis=0)
        along += mean
    return held.reshape(x.shape)
