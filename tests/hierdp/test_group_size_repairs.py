"""The seven mechanisms of Fioretto & Van Hentenryck 2019 side by side."""

from types import SimpleNamespace

import numpy as np
import pytest
from doubles import Undrawn, hierarchy

from hierdp.counts.size_runs import cumulative
from hierdp.errors import InputError
from hierdp.mechanisms.group_size import group_size, measure, post_process
from hierdp.mechanisms.group_size.post_processing import METHODS, paper_window
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.metrics import group_sizes as metrics
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.spool import Steps
from hierdp.record.step import NotSolved
from hierdp.tables import GroupSizes
from models import CumulativeQIP, HierarchyQIP


def data(seed, sizes=3):
    rng = np.random.default_rng(seed)
    places = hierarchy([[0, 0], [0, 0, 1]])
    return GroupSizes(places, places.tree.sum_up(rng.integers(0, 9, (3, sizes))))


def noisy_and_repaired(sizes, seed, *methods, solver=None, epsilon=1.0):
    """The results of methods for the same noise (for their own kind of query)."""
    found = []
    for name in methods:
        noisy, _ = measure(sizes, epsilon, SimulatedNoise(seed), METHODS[name])
        found.append((noisy, repaired(noisy, sizes.hierarchy, sizes.groups, name, solver)))
    return found


def repaired(noisy, places, groups, name, solver=None):
    solver = solver or SolverOptions()
    steps = Steps(METHODS[name].solving(solver))
    counts = post_process(noisy, places, groups, METHODS[name], steps, solver.window)
    return SimpleNamespace(counts=counts, steps=steps.kept)


@pytest.mark.parametrize("name", METHODS)
def test_each_is_a_release_of_whole_counts_of_the_right_total(name):
    sizes = data(1, sizes=2)
    solver = {"window": 12} if name == "M_dp^OP" else {}
    made = group_size(sizes, 3.0, SimulatedNoise(1), name, **solver)
    counts = made.table["groups"].to_numpy().reshape(sizes.counts.shape)
    assert made.mechanism == name
    assert counts.dtype == np.int64
    assert {spend.sensitivity for spend in made.ledger.spends} == {1 if METHODS[name].cumulative else 2}
    broken = metrics.constraint_violations(sizes.hierarchy.tree, counts)
    if METHODS[name].consistent:
        assert broken == 0
        assert (counts >= 0).all()
        assert counts[0].sum() == sizes.groups
    else:
        assert made.settings["constraint_violations"] == broken


@pytest.mark.parametrize("seed", range(6))
def test_m_h_by_a_solver_is_m_h_dp(seed):
    sizes = data(seed)
    (noisy, slow), (_, fast) = noisy_and_repaired(sizes, seed, "M_H", "M_H^dp")
    model = HierarchyQIP(sizes.hierarchy.tree, noisy, sizes.groups)
    assert model.objective(slow.counts) == model.objective(fast.counts)
    assert slow.steps[0].solution.backend == "highs"
    assert slow.steps[0].solution.certificate.optimal


@pytest.mark.parametrize("seed", range(3))
def test_m_dp_op_is_m_h_dp_in_the_same_window(seed):
    sizes = data(seed, sizes=2)
    found = noisy_and_repaired(sizes, seed, "M_dp^OP", "M_H^dp", solver=SolverOptions(window=4), epsilon=10)
    (noisy, slow), (_, fast) = found
    model = HierarchyQIP(sizes.hierarchy.tree, noisy, sizes.groups, window=4)
    assert model.objective(slow.counts) == model.objective(fast.counts)


@pytest.mark.parametrize("seed", range(4))
def test_no_answer_beats_m_c_in_its_own_objective(seed):
    sizes = data(seed)
    (noisy, joint), (_, local), (_, relaxed) = noisy_and_repaired(sizes, seed, "M_c", "M_c^dp", "M_c^r")
    model = CumulativeQIP(sizes.hierarchy.tree, noisy, sizes.groups)
    best, other = (model.objective(cumulative(one.counts)) for one in (joint, local))
    assert model.violations(cumulative(local.counts)) == []
    assert relaxed.steps[0].solution.bound <= best + 1e-6
    assert best <= other


def test_the_relaxation_breaks_sums():
    places = hierarchy([[0, 0]])
    made = repaired(np.array([[3], [1], [1]]), places, 3, "M_H^r")
    assert made.steps[0].solution.x[:, 0].tolist() == pytest.approx([3, 1.5, 1.5])
    assert metrics.constraint_violations(places.tree, made.counts) == 1


def test_the_relaxation_takes_windows():
    places = hierarchy([[0, 0]])
    made = repaired(np.array([[9], [1], [1]]), places, 4, "M_H^r", SolverOptions(window=5))
    assert made.counts.ravel().tolist() == [4, 2, 2]
    assert made.steps[0].solution.certificate.optimal


def test_the_paper_s_window():
    assert paper_window(6.0) == 216  # L = 3, ε = 1, sensitivity 2
    assert paper_window(1.1) == 9
    made = group_size(data(0, sizes=1), 30.0, SimulatedNoise(0), "M_dp^OP")
    assert made.settings["window"] == paper_window(made.ledger.spends[0].scale)


@pytest.mark.parametrize(
    ("method", "solver", "said"),
    [
        ("M_X", {}, "no method 'M_X'; did you mean 'M_c' or 'M_H'? There are 'M_H'"),
        ("M_c^dp", {"backend": "cp-sat"}, "M_c^dp takes no backend; it takes window"),
        ("M_c", {"window": 3}, "M_c takes no window"),
        ("M_H", {"window": -1}, "window is -1"),
        ("M_H", {"time_limit": 0.0}, "time_limit is 0.0"),
        ("M_H", {"backend": "cplex-2"}, "cplex-2"),
    ],
)
def test_bad_options_are_refused_before_any_noise(method, solver, said):
    with pytest.raises(InputError) as refused:
        group_size(data(0), 1.0, Undrawn(), method, **solver)
    assert said in str(refused.value)


def test_a_solver_that_does_not_finish_is_reported():
    rng = np.random.default_rng(0)
    places = hierarchy([[0] * 30])
    sizes = GroupSizes(places, places.tree.sum_up(rng.integers(0, 99, (30, 60))))
    with pytest.raises(NotSolved, match=r"highs: (time_limit|feasible); (\w.*; )?give it more time \("):
        group_size(sizes, 0.1, SimulatedNoise(0), "M_c", time_limit=0.01)


def test_a_window_without_an_answer_is_the_window_s_fault():
    """It was once reported as a bug of hierdp ("please report this")."""
    noise = SimulatedNoise(1)
    with pytest.raises(NotSolved, match=r"has no answer: .* choose a wider window than 1, or none") as none:
        group_size(data(1), 0.01, noise, "M_H^dp", window=1)
    assert none.value.status == "infeasible"
