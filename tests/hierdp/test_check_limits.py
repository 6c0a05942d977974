"""What `hierdp check` lets pass, and nothing beyond it."""

from contextlib import suppress
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from hierdp.checking.noise import check_noise
from hierdp.checking.proofs import _gap_too_large, _Proofs
from hierdp.checking.result import FAILS, HOLDS, OPEN
from hierdp.measurements.measuring import Differs
from hierdp.measurements.redundant_sums import CountNoise, RedundantSums
from hierdp.record.proofs import SavedStep
from models import Certificate, CumulativeQIP, HierarchyQIP, JointTables, Tree, Workload

ONE = Workload.marginals((1,), [()])
JOINT = JointTables(Tree([]), ONE, [[2]], [[1]], None, ONE, 0, [[9]])
WHOLE, RELAXED = (CumulativeQIP(Tree([]), [[1, 2]], 3, integer) for integer in (True, False))


@pytest.mark.parametrize(
    ("model", "objective", "gap", "too_large"),
    [
        (WHOLE, 10, 3, False),  # its bounds need not reach the optimum
        (WHOLE, 10.0, 3.0, False),
        (RELAXED, 10, Fraction(1, 10**9), True),
        (RELAXED, 10.0, 1.0, True),
        (RELAXED, 10.0, 1e-9, False),
        (HierarchyQIP(Tree([]), [[1, 2]], 3), 10, 1, True),
        (JOINT, 10, 3, False),
        (RELAXED, 10.0, None, True),
        (RELAXED, 10.0, float("inf"), True),
        (RELAXED, 10.0, float("nan"), True),
    ],
)
def test_only_whole_cumulative_counts_and_joint_tables_may_leave_a_gap(model, objective, gap, too_large):
    bound = None if gap is None else objective - gap
    proof = Certificate(False, objective, bound, gap)
    assert _gap_too_large(model, proof) == too_large


def checked(proof, claimed):
    """What the check says of one step."""
    model = SimpleNamespace(certificate=lambda *_: proof)
    line = {"step": "all", "model": "SimpleNamespace", "variables": 1, "proved_optimal": claimed}
    line |= {"objective": str(proof.objective), "bound": str(proof.bound), "problems": 1}
    return proved(SavedStep("all", np.zeros(1)), model, line, optimal=False)


def proved(saved, model, line, optimal):
    """What is wrong with a step, and the line of the certificates if nothing is."""
    proofs = _Proofs(iter([saved]), [line], optimal)
    next(iter(proofs))
    with suppress(Differs):
        proofs.prove(saved, model, ())
    return proofs.wrong, proofs.result()


def test_a_step_is_proved_if_and_only_if_the_manifest_says_so():
    (wrong,), _ = checked(Certificate(False, 10, 8, 2, reason="the witness leaves a gap"), True)
    assert "the witness leaves a gap, but the manifest says proved_optimal is True" in wrong
    (wrong,), _ = checked(Certificate(False, 10, None, None, reason="not feasible"), True)
    assert "not feasible" in wrong
    none, line = checked(Certificate(True, 10, 10, 0), True)
    assert (none, line.verdict) == ([], HOLDS)
    (wrong,), _ = checked(Certificate(True, 10, 10, 0), False)
    assert "proved_optimal is False" in wrong


def test_the_limit_is_once_in_a_million_releases():
    """Ever more differences of 0: the first number that fails has evidence of little more than 10⁶."""
    for n in range(1, 100):
        ones = np.ones(n, dtype=np.int64)
        (line,) = check_noise([RedundantSums("sums", np.zeros(n), CountNoise(False, 10.0), ones, None)])
        if line.verdict == FAILS:
            assert "at most once in 10^6 releases" in line.why
            return
    raise AssertionError("no number of differences failed")


@pytest.mark.parametrize(("best", "verdict"), [(True, None), (False, "step 'all' is not proved")])
def test_a_joint_table_with_a_gap_is_named(best, verdict, monkeypatch):
    proof = Certificate(best, 10, 10 if best else 7, 0 if best else 3)
    line = {"step": "all", "model": "JointTables", "variables": 1, "proved_optimal": best}
    line |= {"objective": "10", "bound": str(proof.bound), "problems": 1}
    monkeypatch.setattr(JointTables, "certificate", lambda *_: proof)
    wrong, found = proved(SavedStep("all", np.zeros(1)), JOINT, line, optimal=True)
    assert not wrong
    assert found.verdict == (HOLDS if best else OPEN)
    assert best or found.why.partition(",")[0] == verdict
