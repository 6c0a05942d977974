"""`check_model` detects every way to break the contract that we could think of."""

import numpy as np
import pytest

from models import Certificate, FixedSum
from models.certificate import judge
from models.testing import bad_answers, bad_witnesses, check_model, shared_functions
from solvers import fast

TINY = [([3, -1, 0], 3), ([2, 2], 1), ([0, 1, 1], 4)]


BOUND = f"{__name__}:Honest.bound"
"""Certificate and fast path share the formula of the bound here, but not the search for a price."""


class Honest(FixedSum):
    """A model whose certificate checks its witness, a price per segment."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x)
        if witness is None or proof.bound is None:
            return proof
        try:
            (price,) = np.ravel(witness["total"]).tolist()
            price = int(price)
        except (KeyError, IndexError, TypeError, OverflowError) as wrong:
            raise ValueError(f"no price: {wrong}") from wrong
        return judge(proof.objective, proof.objective - self.bound(price), True, {"total": price}, "")

    def bound(self, price):
        """The least cost of each count separately, with a reward for each unit."""
        y, total = self.noisy.tolist(), int(self.data[1][0])
        return sum(min(abs(z - v) ** self.p - price * z for z in range(total + 1)) for v in y) + price * total


def prices(model):
    """A fast path for it: the answer, and a price that proves it."""
    x, _ = fast.answer(FixedSum(model.noisy, int(model.total[0]), model.p))
    return x, {"total": max(range(-20, 20), key=model.bound)}


def check(kind, fast=prices, **more):
    instances = [kind(noisy, total, p) for noisy, total in TINY for p in (1, 2)]
    return check_model(
        kind, fast=fast, tiny=instances, random=[], arithmetic=[BOUND], **{"witnesses": None, **more}
    )


def test_a_correct_model_passes():
    assert check(Honest) > 1000
    assert check(FixedSum, fast=None) > 1000


class Stamp(Honest):
    """Calls every answer optimal."""

    def certificate(self, x, witness=None):  # noqa: ARG002
        cost = self.objective(x)
        return Certificate(True, cost, cost, 0)


class StampsWitnesses(Honest):
    """Is correct without a witness, and calls every answer optimal with one."""

    def certificate(self, x, witness=None):
        return super().certificate(x) if witness is None else Stamp.certificate(self, x)


class StampsForeignWitnesses(Honest):
    """Accepts any witness that it cannot read."""

    def certificate(self, x, witness=None):
        try:
            return super().certificate(x, witness)
        except ValueError:
            return Stamp.certificate(self, x)


class StampsFeasibleOnes(Honest):
    """Calls nearly optimal answers optimal."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return Certificate(bool(proof.gap <= 2), proof.objective, proof.bound, proof.gap, proof.witness)


class OneTooHigh(Honest):
    """Gives a bound that is one too high."""

    def bound(self, price):
        return super().bound(price) + 1


class OneTooHighForSomePrices(Honest):
    """Gives wrong bounds for prices that no fast path returns."""

    def bound(self, price):
        return super().bound(price) + (10 * price if price > 4 and self.p == 1 else 0)


class BelievesTheBound(Honest):
    """Accepts the bound that the witness claims."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        claimed = (witness or {}).get("bound", proof.bound)
        return Certificate(
            bool(claimed >= proof.objective),
            proof.objective,
            claimed,
            proof.objective - claimed,
            {"bound": claimed, **proof.witness},
        )


class RaisesTypeError(Honest):
    """Computes with a witness without checking its type."""

    def certificate(self, x, witness=None):
        return super().certificate(x, None if witness is None else {"total": witness["total"] + 0})


class RaisesKeyError(Honest):
    def certificate(self, x, witness=None):
        return super().certificate(x, None if witness is None else {"total": witness["total"]})


class NeverProves(Honest):
    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return Certificate(False, proof.objective, proof.bound, proof.gap, proof.witness)


class LooseGap(Honest):
    """Proves optima, but reports too large gaps for other answers."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return proof if not proof.gap else judge(proof.objective, proof.gap + 1, True, proof.witness, "")


class WrongCost(Honest):
    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return Certificate(proof.optimal, proof.objective + 1, proof.bound, proof.gap, proof.witness)


class ForgetsItsWitness(Honest):
    """Returns a witness that does not prove the answer when it is checked."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return Certificate(proof.optimal, proof.objective, proof.bound, proof.gap, {"total": -99})


class NotANumber(Honest):
    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return proof if proof.optimal else Certificate(False, proof.objective, float("nan"), 0.0)


BROKEN = [
    Stamp,
    StampsWitnesses,
    StampsForeignWitnesses,
    StampsFeasibleOnes,
    OneTooHigh,
    OneTooHighForSomePrices,
    BelievesTheBound,
    RaisesTypeError,
    RaisesKeyError,
    NeverProves,
    LooseGap,
    WrongCost,
    ForgetsItsWitness,
    NotANumber,
]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_certificate_is_detected(kind):
    with pytest.raises(AssertionError, match=kind.__name__):
        check(kind)


@pytest.mark.slow
def test_properties_that_are_not_declared_are_not_tested():
    assert check(NeverProves, complete=False) > 1000
    assert check(LooseGap, exact_gap=False) > 1000


def test_a_fast_path_whose_answer_is_not_feasible_is_found_out():
    with pytest.raises(AssertionError, match="is not feasible"):
        check(Honest, fast=lambda model: (np.full(len(model.noisy), 7), None))


class OnlyByWitness(Honest):
    """Proves nothing without a witness."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        if witness is not None or proof.bound is None:
            return proof
        return judge(proof.objective, proof.objective - proof.bound + 1, True, proof.witness, "")


def test_a_certificate_that_needs_a_witness_is_found_out_if_the_fast_path_has_none():
    assert check(OnlyByWitness) > 1000
    with pytest.raises(AssertionError, match="is not proved"):
        check(OnlyByWitness, fast=lambda model: (prices(model)[0], None))


def test_a_fast_path_whose_witness_is_refused_is_found_out():
    with pytest.raises(AssertionError, match="refuses the fast path's witness"):
        check(Honest, fast=lambda model: (prices(model)[0], {"total": None}))


def test_an_instance_without_answers_to_refuse_is_not_a_test():
    with pytest.raises(AssertionError, match="no instance"):
        check_model(FixedSum, tiny=[FixedSum([1], total=1)], random=[])


def cheapest(model):
    """A search that a fast path and a certificate may not share."""
    return max(range(-20, 20), key=model.bound)


class Circular(Honest):
    def certificate(self, x, witness=None):
        return super().certificate(
            x, {"total": cheapest(self)} if isinstance(witness, dict | None) else witness
        )


def test_a_shared_search_is_detected():
    def searching(model):
        return prices(model)[0], {"total": cheapest(model)}

    model = Circular([3, -1, 0], total=3)
    name = f"{__name__}:cheapest"
    assert name in shared_functions(model, searching)
    assert shared_functions(model, searching, [name, BOUND]) == set()
    assert name not in shared_functions(model, lambda model: (prices(model)[0], {"total": 1}))
    with pytest.raises(AssertionError, match=r"both run .*cheapest"):
        check(Circular, fast=searching)


def test_bad_witnesses_are_of_many_kinds():
    rng = np.random.default_rng(0)
    found = list(bad_witnesses({"prices": np.array([1, 2, 3]), "bound": 7}, rng))
    assert len(found) > 200
    values = [w["prices"] for w in found if isinstance(w, dict) and "prices" in w]
    assert any(isinstance(v, str) for v in values)
    assert any(isinstance(v, np.ndarray) and v.shape == (2,) for v in values)
    assert any(
        isinstance(v, np.ndarray) and v.shape == (3,) and v.dtype == float and np.isnan(v).any()
        for v in values
    )
    moved = [v for v in values if isinstance(v, np.ndarray) and v.shape == (3,) and v.dtype == np.int64]
    assert {1, -1} <= {int(v.sum() - 6) for v in moved if np.count_nonzero(v - [1, 2, 3]) == 1}
    assert any(isinstance(w, dict) and "prices" not in w for w in found)


class TakesAnyAnswer(Honest):
    """Reads answers by their first digits, as int64 would."""

    def certificate(self, x, witness=None):
        return super().certificate(np.asarray(x, object).astype(float).astype(np.int64), witness)


class CrashesOnObjects(Honest):
    def certificate(self, x, witness=None):
        return super().certificate(np.rint(np.asarray(x)), witness)


class SavesMoreThanNothing(Honest):
    """Calls an answer optimal whose gap is below 0."""

    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return Certificate(True, proof.objective, proof.bound, -1) if proof.optimal else proof


class CallsInfeasibleOnesOptimal(Honest):
    def certificate(self, x, witness=None):
        proof = super().certificate(x, witness)
        return proof if proof.bound is not None else Certificate(True, proof.objective, 0, proof.objective)


@pytest.mark.parametrize(
    "kind", [TakesAnyAnswer, CrashesOnObjects, SavesMoreThanNothing, CallsInfeasibleOnesOptimal]
)
def test_a_certificate_that_bad_answers_break_is_detected(kind):
    with pytest.raises(AssertionError, match=kind.__name__):
        check(kind, witnesses=5)


def test_bad_answers_are_of_many_kinds():
    found = list(bad_answers(np.array([1, 2, 3]), np.random.default_rng(0)))
    assert len(found) > 60
    arrays = [x for x in found if isinstance(x, np.ndarray) and x.shape == (3,)]
    assert {"c", "f", "i", "u", "O", "b"} <= {x.dtype.kind for x in arrays}
    values = [v for x in arrays if x.dtype == object for v in x.tolist()]
    assert {10**30, 2**63 - 1, 2**64 - 1, None, "1", 1e290} <= {v for v in values if v == v}
    assert any(
        sum(x.tolist()) == 6 and max(x.tolist()) > 2**62
        for x in arrays
        if x.dtype == object and None not in x and "1" not in x and "a" not in x
    )
