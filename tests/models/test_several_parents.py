"""Problems of several parents side by side: what holds of each alone holds of all together."""

from fractions import Fraction

import numpy as np
import pytest

from models import Workload, WorkloadLeastSquares, WorkloadRounding, lagrangian_certificate
from models.instances import load, save
from models.testing import check_model
from solvers import fast, solve
from tests.marks import quick


def divided(kind, rng, size):
    """A random problem, whose children are divided among one to three parents."""
    while True:
        model = kind.random(rng, size)
        if model.parent is None:
            continue
        try:
            x = np.asarray(fast.answer(model)[0])
        except fast.NoFastPath:
            continue
        if x.dtype == object or x.dtype.kind not in "iuf":
            continue
        cuts = np.unique([0, *rng.integers(0, model.children, 2), model.children])
        whole = x if kind is WorkloadRounding else np.ceil(x).astype(np.int64)
        parent = np.add.reduceat(whole, cuts[:-1], axis=0)
        rows = {name: getattr(model, name) for name in (*model.each_child, "weights")}
        if kind is WorkloadLeastSquares and model.rules is not None:
            rows |= {"lower": None, "upper": None}
        rules = None if rows["lower"] is None else model.rules
        return kind(model.workload, **rows, parent=parent, rules=rules, offsets=cuts)


KINDS = pytest.mark.parametrize("kind", [WorkloadRounding, WorkloadLeastSquares])


@pytest.mark.slow
def test_certificates_keep_their_promises():
    """Every feasible answer of tiny roundings, and bad answers and witnesses."""
    rng = np.random.default_rng(1)
    tiny = [divided(WorkloadRounding, rng, 5) for _ in range(12)]
    assert any(model.problems > 1 for model in tiny)
    made = check_model(
        lambda rng, size: divided(WorkloadRounding, rng, size),
        fast=fast.answer,
        tiny=tiny,
        random=[divided(WorkloadRounding, rng, 30) for _ in range(3)],
        exact_gap=False,
        complete=False,
    )
    assert made > 1000


def changed(rng, witness):
    """A witness with random changes of some prices."""
    size = rng.choice([0.0, 1e-9, 1e-3, 1.0])
    return {
        name: np.asarray(part, float)
        + size * rng.normal(size=np.shape(part)) * (rng.random(np.shape(part)) < 0.3)
        for name, part in witness.items()
    }


@KINDS
@pytest.mark.parametrize("seed", quick(range(40), first=6))
def test_proved_together_if_and_only_if_each_is(kind, seed):
    """For optimal and other answers, right and wrong prices: verdicts, costs and bounds."""
    rng = np.random.default_rng(seed)
    model = divided(kind, rng, 60)
    try:
        x, witness = fast.answer(model)
    except fast.NoFastPath:
        pytest.skip("its queries do not nest")
    for _ in range(8):
        y, w = np.array(x), changed(rng, witness)
        if rng.random() < 0.3:
            y[tuple(rng.integers(0, y.shape))] += rng.choice([1, -1]) * (
                1 if kind is WorkloadRounding else 1e-3
            )
        proof = model.certificate(y, w)
        parts = []
        for k in range(model.problems):
            part, here = model.part(k)
            parts.append(part.certificate(y[here], model.witness_of(w, k)))
        assert bool(proof) == all(parts)
        if any(part.bound is None for part in parts):
            assert proof.bound is None
            continue
        objective, bound = (sum(Fraction(getattr(p, name)) for p in parts) for name in ("objective", "bound"))
        # Sums of floats in two orders; costs and bounds are exact to 10⁻¹⁰.
        assert float(proof.objective) == pytest.approx(float(objective), rel=1e-9, abs=1e-12)
        assert float(proof.bound) == pytest.approx(float(bound), rel=1e-7, abs=1e-7)
        if not proof:
            assert proof.unproved == next(k for k, part in enumerate(parts) if not part)


@KINDS
@pytest.mark.parametrize("seed", quick(range(12), first=2))
def test_another_solver_finds_no_better_answer_and_row_prices_prove_it(kind, seed):
    rng = np.random.default_rng(100 + seed)
    model = divided(kind, rng, 40)
    found = solve(model)
    if found.status == "unsupported":
        pytest.skip("its queries do not nest")
    assert found.status == "optimal"
    if kind is WorkloadRounding:
        other = solve(model, "highs")
        assert other.status == "optimal"
        assert Fraction(other.objective) == found.objective
        prices = model.row_prices(found.certificate.witness)
        general = lagrangian_certificate(model.program(), model.variables(found.x), prices)
        assert general.optimal
        assert general.objective == found.objective
    else:
        other = solve(model, "clarabel")
        # Clarabel's relative accuracy is 1e-8.
        assert float(other.objective) == pytest.approx(float(found.objective), rel=1e-6, abs=1e-6)


def two_parents(shift):
    """Counts near 10⁹ of one parent, and near 1 of another, whose answers are shifted by so much."""
    workload = Workload.marginals((2,), [(), (0,)])
    noisy = np.array([[2e9, 1e9, 1e9], [2e9 + 7000, 1e9, 1e9], [2.0, 1.5, 1.0], [2.0, 1.0, 1.0]])
    parent = [[2 * 10**9, 2 * 10**9], [2, 2]]
    model = WorkloadLeastSquares(workload, noisy, [1, 1], parent, offsets=[0, 2, 4])
    x, witness = fast.answer(model)
    return model, x + shift, witness


@pytest.mark.parametrize(
    "shift", [[[0, 0], [0, 0], [1e-5, 0], [0, 0]], [[0, 0], [0, 0], [1e-3, 0], [-1e-3, 0]]]
)
def test_a_large_parent_lends_a_small_one_no_tolerance(shift):
    """A wrong sum, or too costly an answer, that is next to nothing beside counts of 10⁹."""
    assert two_parents(0.0)[0].certificate(*two_parents(0.0)[1:])
    model, x, witness = two_parents(np.array(shift))
    proof = model.certificate(x, witness)
    assert not proof
    assert proof.unproved == 1


def test_files_hold_the_parents_if_there_are_several(tmp_path):
    rng = np.random.default_rng(3)
    model = divided(WorkloadRounding, rng, 30)
    again = load(save(model, tmp_path / "all.npz"))
    assert np.array_equal(again.offsets, model.offsets)
    with np.load(save(model.part(0)[0], tmp_path / "one.npz")) as arrays:
        assert "offsets" not in str(arrays["about"] if "about" in arrays else [*arrays.items()])


@pytest.mark.parametrize(
    ("offsets", "parent", "why"),
    [
        ([0, 2], [[1, 1], [1, 1]], "parent"),
        ([0, 1, 3], [[1, 1], [1, 1]], "number of children"),
        ([1, 2], [[1, 1]], "number of children"),
        ([0, 0, 2], [[1, 1], [1, 1]], "has children"),
        ([0, 1.5, 2], [[1, 1], [1, 1]], "number of children"),
        ([0, 1, 2], None, "row of `parent`"),
        ([0, 1, 2], [[1, 1], [0, 2]], "parent 1, cell 0: the children round to sums of 1 … 1"),
    ],
)
@KINDS
def test_wrong_offsets_are_refused(kind, offsets, parent, why):
    workload = Workload.marginals((2,), [(0,)])
    if kind is WorkloadLeastSquares and "round to" in why:
        pytest.skip("least squares takes any sums")
    more = {"weights": [1]} if kind is WorkloadLeastSquares else {}
    with pytest.raises(ValueError, match=why):
        kind(workload, [[1, 1], [1, 1]], parent=parent, offsets=offsets, **more)
