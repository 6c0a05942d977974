"""DAWA: its costs are exact, their noise is enough, and its cut is the best of all."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hierdp.errors import InputError
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.clustering import METHODS, clustering
from hierdp.mechanisms.clustering.boxes import Boxes
from hierdp.mechanisms.clustering.dawa import MOST_PEOPLE, UNITS, cluster_deviation, deviations, hierarchy
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.spool import Steps
from hierdp.tables.binning import Histogram
from models import ConstrainedInference, MinCostFlow
from tests.marks import quick

SHAPES = [(2,), (5,), (8,), (3, 4), (4, 4), (2, 3, 3)]


def cuts(tree, node=0):
    """All sets of nodes that contain each leaf once."""
    yield (node,)
    start, child = tree.children
    below = child[start[node] : start[node + 1]].tolist()
    if below:
        for parts in itertools.product(*(list(cuts(tree, one)) for one in below)):
            yield tuple(itertools.chain(*parts))


def bins_of(boxes, node):
    place = boxes.first[boxes.tree.leaves]
    first = boxes.first[node]
    return np.flatnonzero((place >= first) & (place < first + boxes.sizes[node]))


def deviation(values):
    mean = Fraction(int(values.sum()), values.size)
    return sum(abs(int(x) - mean) for x in values)


@pytest.mark.parametrize("shape", SHAPES)
def test_deviations_are_those_of_every_box_rounded_down(shape):
    boxes, rng = Boxes(shape), np.random.default_rng(1)
    for most in (5, 10**7):
        counts = rng.integers(0, most, math.prod(shape))
        for level in range(boxes.tree.depth):
            nodes = range(*boxes.tree.nodes_of(level).indices(boxes.tree.size))
            wanted = [math.floor(UNITS * deviation(counts[bins_of(boxes, v)])) for v in nodes]
            assert deviations(counts, boxes, level).tolist() == wanted


def test_costs_of_huge_counts_stay_within_64_bits():
    boxes = Boxes((4,))
    counts = np.array([2**62, 0, 2**62, 5])
    most = MOST_PEOPLE // 4
    capped = np.array([most, 0, most, 5])
    assert deviations(counts, boxes, 0).tolist() == [math.floor(UNITS * deviation(capped))]


@pytest.mark.parametrize("bins", quick([3, 4, 5]))
def test_a_person_changes_a_box_of_each_level_by_the_stated_amount_at_most(bins):
    boxes, losses = Boxes((bins,)), []
    for counts in itertools.product(range(5), repeat=bins):
        for i in range(bins):
            more = np.array(counts) + (np.arange(bins) == i)
            loss = 0.0
            for level in range(boxes.tree.depth):
                most = int(boxes.sizes[boxes.tree.nodes_of(level)].max())
                away = np.abs(deviations(more, boxes, level) - deviations(np.array(counts), boxes, level))
                assert away.sum() <= 2 * UNITS - 2 * UNITS // most
                loss += away.sum()
            losses.append(loss)
    sizes = [int(boxes.sizes[boxes.tree.nodes_of(level)].max()) for level in range(boxes.tree.depth)]
    assert max(losses) >= 0.85 * sum(2 * UNITS * (1 - 1 / m) for m in sizes)


def released(counts, epsilon, seed, **options):
    measure, steps = MeasureTruth(counts.ravel(), SimulatedNoise(seed)), Steps()
    made = METHODS["DAWA"].run(counts.shape, epsilon, measure, steps, **options)
    return made, measure.measurements, steps.kept


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cut_is_the_best_of_all_cuts(shape):
    boxes, rng = Boxes(shape), np.random.default_rng(3)
    for seed in range(6):
        counts = rng.integers(0, 12, shape)
        made, measured, steps = released(counts, 2.0, seed)
        assert [type(step.model) for step in steps] == [MinCostFlow, ConstrainedInference]
        assert all(step.solution.certificate.optimal for step in steps)
        costs = np.full(boxes.tree.size, round(UNITS / 1.5))
        for level, one in enumerate(list(measured)[: boxes.tree.depth]):
            costs[boxes.tree.nodes_of(level)] += np.maximum(one.answers, 0)
        best = min(sum(costs[v] for v in cut) for cut in cuts(boxes.tree))
        assert steps[0].solution.objective == best
        sizes = np.bincount(made.clusters)
        pieces = {tuple(np.flatnonzero(made.clusters == c).tolist()) for c in range(sizes.size)}
        assert any(
            pieces == {tuple(bins_of(boxes, v).tolist()) for v in cut}
            for cut in cuts(boxes.tree)
            if sum(costs[v] for v in cut) == best
        )


def test_the_budget_of_every_measurement():
    made, measured, _ = released(np.arange(8), 2.0, 0, workload="bins")
    spends = [(one.spend.query, one.spend.sensitivity, one.spend.epsilon) for one in measured]
    changes = [2 * UNITS - 2 * UNITS // m for m in (8, 4, 2)]
    assert spends == [
        *((f"deviations of boxes of {m} bins", c, pytest.approx(0.5 * c / sum(changes), rel=1e-12))
          for m, c in zip((8, 4, 2), changes, strict=True)),
        ("sums of clusters", 1, 1.5),
    ]  # fmt: skip
    assert made.settings == {"share": 0.25, "workload": "bins", "clusters": int(made.clusters.max()) + 1}
    _, measured, _ = released(np.array([7]), 2.0, 0)
    assert [one.spend.epsilon for one in measured] == [2.0]  # nothing to cut


@pytest.mark.parametrize("workload", ["ranges", "bins"])
def test_steps_are_found_if_epsilon_is_large(workload):
    counts = np.repeat([50, 0, 7, 90], [512, 1024, 256, 256])
    made, *_ = released(counts, 1e4, 0, workload=workload)
    assert np.abs(made.counts - counts).max() < 0.1  # no cluster has bins of two steps
    assert made.clusters[-1] < 100


def test_ranges_are_better_by_a_hierarchy_and_bins_without():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 10_000, 256)  # every bin is a cluster
    errors = {}
    for workload in ("ranges", "bins"):
        found = []
        for seed in range(8):
            made, *_ = released(counts, 0.5, seed, workload=workload)
            off = np.cumsum(made.counts - counts)
            found.append((np.mean((made.counts - counts) ** 2), np.mean(off**2)))
        errors[workload] = np.mean(found, axis=0)
    assert errors["bins"][0] < errors["ranges"][0]
    assert errors["bins"][1] > 2 * errors["ranges"][1]
    planned = cluster_deviation(256, 0.375, "ranges") ** 2
    assert errors["ranges"][0] == pytest.approx(planned, rel=0.2)  # 2,048 bins, whose noise is correlated
    assert hierarchy(256).leaves.size == 256


@pytest.mark.parametrize(
    ("options", "message"),
    [({"workload": "boxes"}, "no 'boxes'"), ({"share": 1.0}, "must lie between"), ({"eta": 1}, "takes no")],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        clustering(Histogram.of([1, 2, 3]), 1.0, SimulatedNoise(0), "DAWA", **options)


def loss_of_the_program(bins, epsilon, price):
    """ln of P(all runs are single bins) for equal counts, over that if one person joins a bin in the middle.

    The authors' program adds Laplace noise of scale (2 − 1/m − 1/n)/ε to runs of m = 2, 4, 8, … bins at any
    place, and none to single bins. So these are the best cut exactly if each longer run costs more than its
    bins, and these costs have independent noise; runs without the person are as likely before and after.
    """

    def above(x):
        return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)

    loss, m, place = 0.0, 2, bins // 2
    while m <= bins:
        scale = (2 - 1 / m - 1 / bins) / epsilon
        before, after = (above(((m - 1) * price - dev) / scale) for dev in (0.0, 2 * (1 - 1 / m)))
        runs = sum(i <= place < i + m for i in range(bins - m + 1))
        loss += runs * math.log(after / before)
        m *= 2
    return loss


def test_the_program_of_the_authors_spends_more_than_it_says():
    assert loss_of_the_program(2, 1.0, 1.0) <= 1
    assert loss_of_the_program(3, 1.0, 1.0) == pytest.approx(2 / (7 / 6))
    assert loss_of_the_program(8, 1.0, 3.0) > 6
