"""PrivTree: its decisions cost no more than they say, for every table, neighbour and outcome."""

import itertools
import math

import numpy as np
import pytest

from hierdp.measurements.measuring import MeasureTruth
from hierdp.measurements.query import splits
from hierdp.mechanisms.clustering import METHODS
from hierdp.mechanisms.clustering.boxes import Boxes
from hierdp.mechanisms.clustering.priv_tree import SPLITS
from hierdp.privacy.decaying_threshold import Decay, decay_of, decided, loss_of, step_of
from hierdp.privacy.noise import SimulatedNoise
from models import Tree

BINARY, QUAD = Tree([[0, 0], [0, 0, 1, 1]]), Tree([[0] * 4])


def chances(biased, scale):
    """P(biased + noise > 0) and P(≤ 0), for double-geometric noise: from its definition, in closed form."""
    a = math.exp(-1 / scale)
    tail = a ** (1 - biased if biased <= 0 else biased) / (1 + a)
    return (tail, 1 - tail) if biased <= 0 else (1 - tail, tail)


def outcomes(tree, counts, decay):
    """The probability of each outcome: a decision for each node with children, and 0 below one that is 0."""
    found, above = {}, tree.parent.tolist()
    counts = tree.sum_up(np.asarray(counts)).tolist()
    for split in itertools.product((0, 1), repeat=tree.internal.size):
        p = 1.0
        for v, yes in enumerate(split):  # the nodes with children come first
            queried = v == 0 or split[above[v]]
            there = chances(max(counts[v] - tree.level[v] * decay.step, -decay.step), decay.scale)
            p *= there[0 if yes else 1] if queried else float(not yes)
        found[split] = p
    return found


def worst(tree, most, decay, step=1):
    """The largest |ln| of the ratio of an outcome's probabilities, over all small tables and neighbours."""
    loss = 0.0
    for counts in itertools.product(range(0, most + 1, step), repeat=tree.leaves.size):
        here = outcomes(tree, counts, decay)
        for i in range(tree.leaves.size):
            there = outcomes(tree, np.add(counts, np.arange(tree.leaves.size) == i), decay)
            loss = max(loss, *(abs(math.log(here[o] / there[o])) for o in here if here[o] > 0))
    return loss


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
@pytest.mark.parametrize(("tree", "most", "step"), [(BINARY, 20, 5), (QUAD, 6, 2)])
def test_no_neighbour_changes_an_outcome_by_more_than_epsilon(epsilon, tree, most, step):
    decay = decay_of(epsilon, tree.most_children)
    assert loss_of(*decay) <= epsilon
    assert worst(tree, most, decay, step) <= epsilon


def path_loss(counts, decay):
    """ln of P(all are split but the last) for counts along a path, over that of a person less."""

    def log(values):
        biased = [max(c - d * decay.step, -decay.step) for d, c in enumerate(values)]
        split = sum(math.log(chances(b, decay.scale)[0]) for b in biased[:-1])
        return split + math.log(chances(biased[-1], decay.scale)[1])

    return log(counts) - log([c - 1 for c in counts])


def test_deep_paths_cost_no_more_and_less_noise_would_not_do():
    rng, losses = np.random.default_rng(0), {}
    for epsilon in (0.5, 2.0):
        decay = decay_of(epsilon, 2)
        half = Decay(decay.scale / 2, max(1, decay.step // 2))
        paths = [[count] * depth for depth in (1, 2, 9, 40) for count in range(1, 400)]
        paths += [np.sort(rng.integers(1, 300, rng.integers(1, 30)))[::-1].tolist() for _ in range(100)]
        losses[epsilon] = [max(abs(path_loss(path, one)) for path in paths) for one in (decay, half)]
    for epsilon, (stated, less) in losses.items():
        assert 0.6 * epsilon < stated <= epsilon < less


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5, 1.0, 20.0, 300.0])
@pytest.mark.parametrize("children", [2, 4, 8])
def test_the_scale_is_the_least_within_the_budget(epsilon, children):
    decay = decay_of(epsilon, children)
    assert loss_of(*decay) <= epsilon < loss_of(decay.scale * (1 - 1e-11), decay.step)
    assert decay.step >= decay.scale * math.log(children)
    assert decay.scale <= (2 * children - 1) / ((children - 1) * epsilon) * (1 + 1e-11)  # the paper's


def test_decisions_have_their_law():
    counts, decay, draws = np.array([9, 0, 3, 1]), Decay(3.0, 3), 4000
    noise, seen = SimulatedNoise(5), {}
    for _ in range(draws):
        split, _ = decided(BINARY, BINARY.sum_up(counts), "q", noise, decay)
        one = tuple(split[BINARY.internal].tolist())
        seen[one] = seen.get(one, 0) + 1
    for outcome, p in outcomes(BINARY, counts, decay).items():
        deviation = math.sqrt(draws * p * (1 - p))
        assert abs(seen.get(outcome, 0) - draws * p) <= 5 * deviation  # once in 10⁶


def test_the_record_of_the_decisions():
    query = splits("q", 0.5, BINARY)
    made = MeasureTruth(np.array([90, 0, 0, 0]), SimulatedNoise(0))(query)
    assert made.answers.tolist() == [1, 1, 0]
    assert step_of(made.spend.noise) == step_of(query.noise) == decay_of(0.5, 2).step
    assert made.spend.epsilon == pytest.approx(0.5, rel=1e-11)
    assert made.spend.epsilon <= 0.5
    known = [query.allowed(np.array(split)) for split in itertools.product((0, 1), repeat=3)]
    assert known == [True, False, False, False, True, True, True, True]
    assert not query.allowed(np.array([2, 1, 1]))
    assert not query.allowed(np.array([1, -1, 1]))


def test_boxes_are_halved_where_people_are():
    line = np.zeros(64, np.int64)
    line[40] = 10**6
    made = METHODS["PrivTree"].publish(line, 1.0, SimulatedNoise(0))
    alone = made.clusters == made.clusters[40]
    assert alone.sum() == 1
    assert abs(made.counts[40] - 10**6) < 50
    assert made.counts.sum() == pytest.approx(10**6, abs=200)
    plane = np.zeros((8, 5), np.int64)
    plane[6, 4] = 10**6
    made = METHODS["PrivTree"].publish(plane, 1.0, SimulatedNoise(0))
    clusters = made.clusters.reshape(8, 5)
    assert (clusters == clusters[6, 4]).sum() == 1
    assert len(set(clusters[:4, :4].ravel().tolist())) == 1  # a quarter without anybody, in one piece
    assert METHODS["PrivTree"].publish(np.array([4]), 50.0, SimulatedNoise(0)).clusters.tolist() == [0]


@pytest.mark.parametrize("shape", [(1,), (5,), (8,), (3, 4), (2, 3, 5)])
def test_bins_of_a_box_follow_each_other_in_depth_first_order(shape):
    boxes = Boxes(shape)
    tree = boxes.tree
    assert sorted(boxes.first[tree.leaves].tolist()) == list(range(math.prod(shape)))
    for v in range(tree.size):
        below = [leaf for leaf in tree.leaves.tolist() if v in ancestors(tree, leaf)]
        first = boxes.first[v]
        assert sorted(boxes.first[below].tolist()) == list(range(first, first + boxes.sizes[v]))
    one = np.array([0])
    assert boxes.clusters(one).tolist() == [0] * math.prod(shape)
    assert sorted(boxes.clusters(tree.leaves).tolist()) == list(range(math.prod(shape)))


def ancestors(tree, node):
    while node >= 0:
        yield node
        node = int(tree.parent[node])


def test_the_query_of_decisions_has_its_name():
    made = []
    METHODS["PrivTree"].run((4,), 1.0, lambda query: made.append(query) or queried(query), None)
    assert [query.name for query in made] == [SPLITS, "sums of clusters"]
    assert [query.loss for query in made] == [0.5, 0.5]


def queried(query):
    return MeasureTruth(np.array([3, 1, 0, 2]), SimulatedNoise(1))(query)
