"""Hostile answers and witnesses at every magnitude, judged by the costs of feasible answers.

The least cost of a tiny instance comes from trying every answer; of a scaled one, from the answers scaled
with it and those of the fast path. Costs and feasibility are computed in Fractions, or with every integer
operation checked (`tests.models.wraps`), not by the code under test in 64 bits.
"""

import contextlib
import math
from collections import Counter
from dataclasses import fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice

import numpy as np

from models import Certificate
from models.certificate import FLOAT_TOLERANCE
from models.testing import bad_answers, bad_witnesses, whole_answers
from solvers import fast
from tests.models import magnitudes
from tests.models.families import CONTRACTS
from tests.models.wraps import WrappedError, checking

CLOSE = 2.0**-32
"""What rounding may add to a bound in floats, as a share of Σ w·(|x| + |y|)^p. A certificate rounds each term
of an instance of at most 20 numbers a few times, each time by 2⁻⁵³ of it; and a tolerance that is relative to
the data's magnitude may round each entry to 47 digits."""


def exactly(model, chosen=lambda _: True):
    """The model with its data, or the chosen fields of them, as Fractions; itself if it takes none."""
    changed = {}
    for field in fields(model):
        value = getattr(model, field.name)
        if not chosen(field.name):
            continue
        if field.init and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            changed[field.name] = magnitudes._each(value.astype(object), _fraction)
        elif field.init and isinstance(value, float) and math.isfinite(value):
            changed[field.name] = Fraction(value)
        elif isinstance(value, tuple) and any(
            isinstance(v, np.ndarray) and v.dtype.kind == "f" for v in value
        ):
            changed[field.name] = tuple(magnitudes._each(v.astype(object), _fraction) for v in value)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return replace(model, **changed) if changed else model
    return model


def _finite(value):
    return isinstance(value, int | Fraction) or (isinstance(value, float) and math.isfinite(value))


def _fraction(value):
    return Fraction(value) if _finite(value) else value


def judged(model, x):
    """The exact cost of an answer, and whether it is feasible; None for the cost if it cannot be computed."""
    try:
        array = np.asarray(x)
    except ValueError:
        return None, False
    if array.dtype.kind == "u" or array.dtype.kind == "i":
        array = array.astype(object)
    elif array.dtype.kind == "f":
        if not np.isfinite(array).all():
            return None, False
        array = np.array([*map(Fraction, array.ravel().tolist()), None], object)[:-1].reshape(array.shape)
    elif array.dtype.kind == "O" and array.size:
        if not all(map(_finite, array.flat)):
            return None, False
        array = np.array([*(Fraction(v) for v in array.ravel().tolist()), None], object)[:-1].reshape(
            array.shape
        )
    if array.dtype == object:
        array = magnitudes._each(array, lambda v: int(v) if v == int(v) else v)
    for given in (array, x):
        with (
            contextlib.suppress(ValueError, TypeError, OverflowError, AttributeError, WrappedError),
            checking(),
        ):
            return model.objective(given), not model.violations(given)
    return None, False


def magnitude(model):
    """Σ w·(2·|y|)^2 and more, roughly: what the costs of the data's own size are."""
    reach, weight = 1.0, 1.0
    for field in fields(model):
        value = getattr(model, field.name)
        if not field.init or field.name in magnitudes.KEPT or value is None:
            continue
        for part in value if isinstance(value, tuple | list) else [value]:
            array = np.asarray(part)
            if array.dtype.kind in "iufO" and array.size:
                with contextlib.suppress(TypeError, OverflowError, ValueError):
                    sizes = np.abs(array.astype(float))
                    largest = float(sizes[np.isfinite(sizes)].max(initial=0))
                    if field.name == "weights":
                        weight = max(weight, largest)
                    else:
                        reach = max(reach, largest)
    return weight * reach * reach


def strategy(model, x):
    """The exact cost of an answer to `StrategySDP`, and whether it is feasible; None if it has no cost."""
    w, x = (np.array([*map(Fraction, np.ravel(part)), None], object)[:-1] for part in (model.workload, x))
    w, x = w.reshape(-1, model.bins), x.reshape(model.bins, model.bins)
    left, right = x.copy(), w.T.copy()
    for k in range(model.bins):  # Gaussian elimination: all pivots of a positive definite matrix are above 0
        if left[k, k] <= 0:
            return None, False
        for i in {*range(model.bins)} - {k}:
            share = left[i, k] / left[k, k]
            left[i] -= share * left[k]
            right[i] -= share * right[k]
    feasible = (x == x.T).all() and (np.diag(x) <= 1).all()
    return (w.T * right / np.diag(left)[:, None]).sum(), bool(feasible)


def program_cost(model, x):
    """The cost of an answer in Fractions, from the costs of the model's program."""
    (answer, *others), _ = model.program().structure
    if any(block.cost for block in others):
        return model.objective(x)
    center, weight = (in_fractions(np.broadcast_to(part, x.shape)) for part in answer.cost.exactly)
    return (weight * abs(x - center) ** answer.cost.power).sum()


LINEAR = {
    *("BlockInference", "Chebyshev", "ConstrainedInference", "ControlledRounding", "FixedSum", "Isotonic"),
    *("Merging", "NonNegativeInference", "SimplexQP", "TreeAbsolute", "WorkloadLeastSquares"),
}
"""Models whose fast path takes no longer for larger counts."""


class FalseProofError(AssertionError):
    """A certificate claimed what is not true."""


class Trial:
    """An instance with answers, their exact costs, and the least cost of a feasible one."""

    def __init__(self, name, model, known, witnesses):
        self.name, self.model, self.witnesses = name, model, witnesses
        self.exact = exactly(model)
        self.answers = [self.judged(x) for x in known]
        self.least = min(
            (cost for _, cost, feasible in self.answers if feasible and cost is not None and cost == cost),
            default=math.inf,
        )

    def judged(self, x):
        """An answer with its exact cost, and whether it is feasible."""
        return x, *judged(self.exact, x)

    def slack(self, proof, x):
        """0 for exact numbers; see `CLOSE`."""
        shown = (proof.objective, proof.bound, proof.gap)
        if not any(isinstance(v, float) for v in shown) and not isinstance(self.least, float):
            return 0
        return CLOSE * self.scale(x)

    def tolerance(self, proof, x, cost):
        """How far above the least cost an answer may be that counts as optimal."""
        in_floats = any(isinstance(v, float) for v in (proof.objective, proof.bound, cost))
        return self.slack(proof, x) + (FLOAT_TOLERANCE * max(1, abs(cost)) if in_floats else 0)

    def scale(self, x):
        """The magnitude of an answer's costs."""
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return self.magnitude + float(np.abs(np.asarray(x).astype(float)).max(initial=0)) ** 2
        return self.magnitude

    @cached_property
    def magnitude(self):
        """That of the model."""
        return magnitude(self.model)

    def check(self, x, cost, feasible, witness, tally):
        """One try."""
        tally["tries"] += 1
        try:
            proof = self.model.certificate(x, witness)
        except ValueError:
            tally["refused"] += 1
            return
        except Exception as wrong:
            raise self.wrong(x, witness, f"{type(wrong).__name__}: {wrong}") from wrong
        if not isinstance(proof, Certificate):
            raise self.wrong(x, witness, f"{proof!r} is not a Certificate")
        if proof.bound is not None:
            tally["bounds"] += 1
            slack = self.slack(proof, x)
            if not proof.bound <= self.least + slack:
                raise self.wrong(
                    x, witness, f"bound {proof.bound}, but an answer costs {self.least}: {proof}"
                )
            if not proof.gap == proof.gap or (proof.gap < 0 and proof.optimal):
                raise self.wrong(x, witness, f"a gap of {proof.gap}: {proof}")
        if proof.optimal:
            tally["optimal"] += 1
            if cost is None or proof.bound is None:
                raise self.wrong(x, witness, f"optimal, and costs {cost}: {proof}")
            if not cost <= self.least + self.tolerance(proof, x, cost):
                raise self.wrong(x, witness, f"optimal at {cost}, but an answer costs {self.least}: {proof}")
            if not feasible and not _in_floats(x):
                raise self.wrong(x, witness, f"optimal, and not feasible: {proof}")

    def wrong(self, x, witness, how):
        call = f"{magnitudes.code(self.model)}.certificate({magnitudes.code(x)}, {magnitudes.code(witness)})"
        return FalseProofError(f"{how}\n    {call:.1500}")


REAL = {
    *("BlockInference", "BudgetSplit", "Clustering", "ConstrainedInference", "CumulativeQIP, relaxed"),
    *("HierarchyQIP", "Isotonic", "Merging", "NonNegativeInference", "Segmentation", "SimplexQP"),
    *("StrategySDP", "WorkloadLeastSquares"),
}
"""Models that take floats."""

UNSCALED = {"Clustering", "Segmentation", "StrategySDP"}
"""Models whose answers do not grow with the data."""


class FarTrial(Trial):
    """Floats whose squares may overflow or underflow: rounding lifts no bound, and tolerances are relative.

    `scale` is the magnitude of costs: a number of the data squared, times a weight.
    """

    def __init__(self, name, model, known, witnesses, scale):
        self.size = scale
        super().__init__(name, model, known, witnesses)

    def judged(self, x):
        """In Fractions."""
        if self.name == "StrategySDP":
            return x, *strategy(self.model, x)
        fractions = in_fractions(x)
        cost = self.exact.objective(fractions)
        if isinstance(cost, float):  # the model takes no Fractions, and small costs may be 0 in floats
            cost = program_cost(self.model, fractions)
        return x, cost, not self.exact.violations(fractions)

    def slack(self, proof, x):  # noqa: ARG002
        """Certificates know their rounding errors."""
        return 0

    def tolerance(self, proof, x, cost):  # noqa: ARG002
        """Relative to the cost, or to the data if they are small; and what rounding to 47 digits changes."""
        if not any(isinstance(v, float) for v in (proof.objective, proof.bound)):
            return 0
        if self.name in ("BudgetSplit", "StrategySDP"):
            return Fraction(FLOAT_TOLERANCE) * cost
        return Fraction(FLOAT_TOLERANCE) * max(min(1, self.size), cost) + self.size / 2**80


def _far(name, base, known, witness, rng):
    """A trial with answers times a power of 2, as the data are; None if the model refuses them."""
    make, a, b = magnitudes.far(base, rng)
    try:
        model = make()
    except ValueError:
        return None
    answers = [magnitudes.times(np.asarray(x), 0 if name in UNSCALED else a) for x in known]
    witnesses = [None]
    if hasattr(model, "total"):
        answers.append(np.zeros_like(answers[0]))
    if name in LINEAR | UNSCALED:
        with contextlib.suppress(Exception):  # a failure of a fast path is another test's matter
            answers.append(fast.answer(model)[0])
    with contextlib.suppress(ValueError):
        witnesses.append(dict(model.certificate(answers[-1]).witness))
    for exponent in {0, 2 * a, b, a + b, b - 3 * a}:
        witnesses.append({key: magnitudes.times(value, exponent) for key, value in witness.items()})
        shaken = 1 + rng.choice([1e-15, 1e-9, 0.1, 1])
        witnesses.append({key: _times(value, shaken) for key, value in witnesses[-1].items()})
    if hasattr(model, "total"):  # its counts are not small: sums may be off by a tolerance for units
        a = max(a, 0)
    if rng.random() < 0.4:  # exact data with answers in floats, exact answers to floats, and both
        if rng.random() < 0.7:
            with contextlib.suppress(ValueError):
                model = exactly(model, lambda _: rng.random() < 0.6)
        answers += [in_fractions(x) for x in answers]
    size = Fraction(2) ** (b + getattr(base, "p", 2) * a) * 2**10
    return FarTrial(name, model, answers, witnesses, size)


def in_fractions(x):
    """The answer without rounding."""
    return magnitudes._each(np.asarray(x).astype(object), Fraction)


def _times(value, factor):
    return value * factor if isinstance(value, np.ndarray | float) else value


def _in_floats(x):
    """Whether sums may be off by a tolerance."""
    array = np.asarray(x, None if isinstance(x, np.ndarray) else object)
    return array.dtype.kind == "f" or (
        array.dtype == object and any(isinstance(v, float) for v in array.flat)
    )


def trials(name, seed):
    """Endless instances of a model's family."""
    rng = np.random.default_rng([seed, len(name)])
    family = list(CONTRACTS[name].tiny())
    everything = CONTRACTS[name].promises.get("answers", whole_answers)
    foreign = []

    @lru_cache(maxsize=100)
    def answers_to(base):
        """Some answers; the fast path's and its witness, or the best of them."""
        known = list(islice(everything(base), 300))
        costs = [base.objective(x) for x in known]
        best = min(range(len(costs)), key=costs.__getitem__, default=0)
        with contextlib.suppress(ValueError, fast.NoFastPath):
            found, witness = fast.answer(base)
            return known, found, dict(base.certificate(found, witness).witness)
        return known, known[best] if known else None, {}

    while True:
        base = family[int(rng.integers(len(family)))]
        known, best, genuine = answers_to(base)
        if not known:
            continue
        some = [known[int(k)] for k in rng.permutation(len(known))[:3]]
        if name in REAL and rng.random() < 0.3:
            trial = _far(name, base, [best, *some], genuine, rng)
            if trial is not None:
                yield trial
            continue
        model, scale = base, 1
        if rng.random() < 0.7:
            make, scale = magnitudes.grown(base, rng)
            try:
                model = make()
            except ValueError:
                continue
        near = [best]
        if model is base:
            near += known
        elif isinstance(best, np.ndarray):
            for x in (best, *some):
                near += list(islice(magnitudes.answers(model, x, scale, rng), 12))
            if name.partition(",")[0] in LINEAR:
                with contextlib.suppress(
                    Exception
                ):  # the fast path may fail at such a size: another test's matter
                    near.append(fast.answer(model)[0])
        tried = [0, len(near) - 1, *rng.permutation(len(near))[:6].tolist()]
        damaged = list(bad_answers(best, rng))
        damaged = [damaged[int(k)] for k in rng.permutation(len(damaged))[:2]]
        witnesses = list(magnitudes.witnesses(genuine, scale, rng))
        bad = list(bad_witnesses(genuine, rng, foreign[-3:]))
        witnesses += [bad[int(k)] for k in rng.permutation(len(bad))[:25]]
        with contextlib.suppress(ValueError):
            witnesses.append(dict(model.certificate(near[0]).witness))
        foreign.append(genuine)
        trial = Trial(name, model, near, witnesses)
        trial.answers = [trial.answers[k] for k in tried] + [trial.judged(x) for x in damaged]
        yield trial


def attack(name, tries, seed=0):
    """Try hostile answers and witnesses on a model; returns the tally, or raises at the first false claim."""
    tally = Counter()
    for trial in trials(name, seed):
        for x, cost, feasible in trial.answers:
            for witness in trial.witnesses:
                trial.check(x, cost, feasible, witness, tally)
                if tally["tries"] >= tries:
                    return tally
    return tally
