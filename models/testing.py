"""The contract of a model as a test, which can be run on any model.

Nothing here trusts a certificate: the least cost is found by trying every feasible answer of tiny
instances.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.exact import Number
from models.certificate import FLOAT_TOLERANCE, Certificate, Witness
from models.model import ByProgram
from models.programs.program import Program
from models.programs.terms import INFINITY

Found = tuple[Any, Witness | None]
"""An answer, and the witness that proves it; None if the certificate reads it off the answer."""

MOST_CANDIDATES = 100_000
"""Most points of a tiny instance's box that are tried to find its feasible answers."""

MOST_ANSWERS = 200
"""Most feasible answers of a tiny instance; instances with more are left out."""


def check_model(
    kind: Any,
    *,
    fast: Callable[[Any], Found] | None = None,
    tiny: Iterable[Any] | None = None,
    random: Iterable[Any] | None = None,
    answers: Callable[[Any], Iterable[Any]] | None = None,
    exact_gap: bool = True,
    complete: bool = True,
    witnesses: int | None = 100,
    arithmetic: Iterable[str] = (),
    seed: int = 0,
) -> int:
    """Check a model's certificate against every feasible answer of tiny instances, and against bad witnesses.

    1. For every feasible answer of every tiny instance: the certificate's objective is that of `objective`;
       an answer that it calls optimal has the least cost; the gap is at least the answer's distance from the
       least cost. With the witness that `fast` finds (or, without it, the one that the certificate reads off
       the best answer), every answer of least cost is called optimal and, if `exact_gap`, every gap equals
       that distance. If `fast` finds no witness, an answer of least cost is called optimal without one, too.
    2. For any witness (random, off by one, of another instance, of a wrong shape or type, not finite, huge,
       with entries missing or too many) the bound is at most the least cost, no worse answer is called
       optimal, and no exception other than ValueError is raised. A gap below 0 is never optimal.
    3. The same holds for answers that are not feasible, beyond 64 bits, or no numbers at all (`bad_answers`);
       `objective` and `violations` raise no other exception for them, either. An answer that breaks a
       constraint is not called optimal.
    4. The witness that a certificate returns proves the same again.
    5. `fast` and the certificate run no function in common; see `shared_functions`.

    Parameters
    ----------
    kind : class with ``random(rng, size)``, or a function of these
        Makes the instances.
    fast : function of a model, optional
        The model's fast path: returns an answer and its witness; None for the answer if the model is
        infeasible.
    tiny : iterable of models, optional
        Instances with few feasible answers. Default: random ones of up to four variables.
    random : iterable of models, optional
        Larger instances, for bad witnesses. Default: three random ones of about 30 variables.
    answers : function of a model, optional
        All feasible answers of a tiny instance, or at least some that are worse than the best. Default: the
        whole numbers in the bounds of the program's first block.
    exact_gap : bool
        Whether the certificate promises the exact gap of any answer, not an upper bound on it.
    complete : bool
        Whether the certificate promises to prove every optimal answer.
    witnesses : int, optional
        How many bad witnesses to try on each of up to three answers of an instance, drawn at random from
        some hundreds. None: all. As many bad answers are tried; on the first instance, all of them.
    arithmetic : iterable of str
        What `fast` and the certificate may share beyond `ARITHMETIC`; see `shared_functions`.
    seed : int

    Returns
    -------
    int
        How many certificates were checked.

    Raises
    ------
    AssertionError
        At the first broken promise; the message names the instance, the answer and the witness. Also if no
        instance has an answer worse than the best, as then nothing could have failed.

    Examples
    --------
    >>> from models import FixedSum
    >>> check_model(FixedSum, tiny=[FixedSum([3, -1, 0], total=3)]) > 100
    True

    A certificate that calls everything optimal fails the test:

    >>> class Stamp(FixedSum):
    ...     def certificate(self, x, witness=None):
    ...         cost = self.objective(x)
    ...         return Certificate(True, cost, cost, 0)
    >>> check_model(Stamp, tiny=[Stamp([3, -1, 0], total=3)])
    Traceback (most recent call last):
    AssertionError: Stamp(noisy=array([ 3, -1,  0]), total=array([3]), ...
    """
    make = getattr(kind, "random", kind)
    rng = np.random.default_rng(seed)
    small = _few(make, rng, answers or whole_answers) if tiny is None else list(tiny)
    large = [make(rng, 30) for _ in range(3)] if random is None else list(random)
    cases = [_case(model, fast, answers or whole_answers) for model in small]
    cases += [_case(model, fast, None) for model in large]
    cases = [case for case in cases if case.answers]
    worse = [case for case in cases if any(cost > case.least for cost in case.costs)]
    if not worse:
        raise AssertionError(
            f"no instance of {kind!r} has an answer worse than its best: give others as `tiny`"
        )
    done = 0
    for case in cases:
        done += _check_answers(case, exact_gap, complete)
    foreign = [witness for case in cases if (witness := case.genuine())]
    for case in cases:
        done += _check_witnesses(case, rng, foreign, witnesses)
        done += _check_bad_answers(case, rng, None if case is cases[0] else witnesses)
        if fast is not None:
            common = shared_functions(case.model, fast, arithmetic)
            if common:
                raise case.broken(f"the fast path and its certificate both run {', '.join(sorted(common))}")
    return done


def instances(kind: Any, max_size: int = 30) -> Any:
    """A Hypothesis strategy for instances of a model, the ugly ones included; it needs Hypothesis.

    Examples
    --------
    >>> from hypothesis import given
    >>> from models import Isotonic
    >>> @given(instances(Isotonic))
    ... def test_lengths(model):
    ...     assert 1 <= model.noisy.size <= 30
    >>> test_lengths()
    """
    from hypothesis import strategies

    return strategies.builds(
        lambda seed, size: kind.random(np.random.default_rng(seed), size),
        strategies.integers(0, 2**32 - 1),
        strategies.integers(1, max_size),
    )


@dataclass(frozen=True, eq=False)
class _Case:
    """An instance, feasible answers with their costs, and the least cost known."""

    model: Any
    answers: list[Any]
    costs: list[Number]
    least: Number
    found: Found
    sought: Callable[[Any], Found] | None

    def broken(self, how: str) -> AssertionError:
        """An error that says what is wrong, and with which instance."""
        return AssertionError(f"{self.model!r}: {how}")

    def slack(self, *seen: Number | None) -> Any:
        """The tolerance: relative for floats, 0 for whole numbers and fractions."""
        in_floats = any(isinstance(number, float) for number in (self.least, *seen))
        return FLOAT_TOLERANCE * max(1.0, abs(float(self.least))) if in_floats else 0

    def stands_for_another(self, x: Any) -> bool:
        """Whether the certificate judges the feasible answer beside this one, of floats over the reals."""
        floats = isinstance(self.model, ByProgram) and np.asarray(x).dtype.kind == "f"
        return floats and not self.model.program().blocks[0].integer

    def genuine(self) -> dict[str, Any]:
        """The entries of the witness that proves the best answer, as given and as returned."""
        best = self.answers[min(range(len(self.costs)), key=self.costs.__getitem__)]
        given = self.found[1] or {}
        try:
            return {**self.model.certificate(best, self.found[1]).witness, **given}
        except ValueError:
            return dict(given)


def _case(
    model: Any, fast: Callable[[Any], Found] | None, answers: Callable[[Any], Iterable[Any]] | None
) -> _Case:
    found = (None, None) if fast is None else fast(model)
    known = [] if answers is None else list(answers(model))
    known += [] if found[0] is None else [found[0]]
    costs = [model.objective(x) for x in known]
    return _Case(model, known, costs, min(costs, default=0), found, fast)


def _few(make: Any, rng: Any, answers: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Random instances with at least one and at most `MOST_ANSWERS` answers."""
    found: list[Any] = []
    for turn in range(400):
        model = make(rng, 1 + turn % 4)
        count = sum(1 for _ in itertools.islice(answers(model), MOST_ANSWERS + 1))
        if 1 <= count <= MOST_ANSWERS:
            found.append(model)
        if len(found) == 20:
            break
    return found


def whole_answers(model: Any) -> Iterator[Any]:
    """All feasible answers in whole numbers within the bounds of the program's first block.

    None at all if a bound is infinite, if there are more than `MOST_CANDIDATES` points, or if the model
    has no `Program`.
    """
    try:
        program: Program = model.program()
    except NotImplementedError:
        return
    block = program.blocks[0]
    lower, upper = (side[: block.size] for side in program.bounds)
    if not np.isfinite(lower).all() or not np.isfinite(upper).all():
        return
    low, high = np.ceil(lower).astype(np.int64), np.floor(upper).astype(np.int64)
    if np.any(low > high) or np.prod(high - low + 1, dtype=float) > MOST_CANDIDATES:
        return
    free = np.flatnonzero(high > low)  # NumPy allows at most 64 axes
    many = high[free] - low[free] + 1
    points = np.tile(low, (int(np.prod(many)), 1))
    points[:, free] += np.indices(tuple(many)).reshape(free.size, len(points)).T
    own = np.diff(program.matrix[:, block.size :].indptr) == 0  # rows of this block alone
    held = program.matrix[own][:, : block.size] @ points.T
    least, most = (side[own][:, None] for side in program.row_bounds)
    for point in points[np.all((held >= least) & (held <= most), axis=0)]:
        x = point.reshape(block.shape)
        if not model.violations(x):
            yield x


def _short(value: Any) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 500 else f"{shown[:500]} ..."


def _check_answers(case: _Case, exact_gap: bool, complete: bool) -> int:
    """Check each answer's certificate, with the witness found and without one."""
    x, good = case.found
    if x is not None:
        broken = case.model.violations(x)
        if broken:
            raise case.broken(f"the fast path's answer {_short(x)} is not feasible: {broken}")
    promised = case.sought is None or x is not None
    reads = good is None  # off the answer
    if reads and complete and promised:
        good = case.genuine()
    for x, cost in zip(case.answers, case.costs, strict=True):
        own = _sound(case, x, cost, None, read=True)
        proof = own if good is None else _sound(case, x, cost, good)
        if own is None or proof is None:
            raise case.broken(f"the certificate refuses the fast path's witness {_short(good)}")
        misses: Any = cost - case.least
        slack = case.slack(cost, proof.bound)
        optimal = proof.optimal and (own.optimal or not reads)
        if complete and promised and misses <= slack and not optimal:
            raise case.broken(f"{_short(x)} has the least cost {cost}, and is not proved: {own}, {proof}")
        if exact_gap and promised and proof.gap is not None:
            off = abs(proof.gap - misses)
            if not off <= slack:
                raise case.broken(f"{_short(x)} misses by {misses}, and its gap is {proof.gap}")
        for first in (own, proof):
            bound: Any = first.bound
            if bound is not None and abs(bound) < INFINITY:
                again = _sound(case, x, cost, first.witness)
                same = again is not None and again.bound is not None and again.bound >= bound - slack
                if not same:
                    raise case.broken(f"{_short(x)}: {first} proves less by its own witness: {again}")
    return 4 * len(case.answers)


def _sound(case: _Case, x: Any, cost: Number, witness: Any, read: bool = False) -> Certificate | None:
    """The certificate, after a check that its claims are true; None if it refuses the witness."""

    def broken(how: str) -> AssertionError:
        return case.broken(f"answer {_short(x)}{'' if read else f', witness {_short(witness)}'}: {how}")

    try:
        proof: Certificate = case.model.certificate(x) if read else case.model.certificate(x, witness)
    except ValueError as refusal:
        if read:
            raise broken(str(refusal)) from refusal
        return None
    except Exception as wrong:
        raise broken(f"{type(wrong).__name__}: {wrong}") from wrong
    if not isinstance(proof, Certificate):
        raise broken(f"{proof!r} is not a Certificate")
    slack = case.slack(cost, proof.bound)
    same = proof.objective == cost or abs(proof.objective - cost) <= case.slack(cost, proof.objective)
    if not same:
        raise broken(f"the objective is {cost}, not {proof.objective}")
    if proof.bound is not None:
        below = proof.bound <= case.least + slack
        if not below:
            raise broken(f"the bound is {proof.bound}, and an answer costs {case.least}")
        misses: Any = cost - case.least
        least_gap = proof.gap is not None and proof.gap >= misses - slack
        if not least_gap:
            raise broken(f"the gap is {proof.gap}, not {misses} or more")
    if proof.optimal:
        if proof.gap is None or not proof.gap >= 0:
            raise broken(f"optimal, with a gap of {proof.gap}")
        if not cost <= case.least + slack:
            raise broken(f"optimal at {cost}; another costs {case.least}")
        if proof.bound is None:
            raise broken("optimal, with no bound")
    return proof


def _check_witnesses(case: _Case, rng: Any, foreign: Iterable[Witness], most: int | None) -> int:
    """Check that no witness leads to a false claim for the best answer, the worst, and one between."""
    order = sorted(range(len(case.answers)), key=case.costs.__getitem__)
    done = 0
    genuine = case.genuine()
    for place in dict.fromkeys([order[0], order[len(order) // 2], order[-1]]):
        tried = list(bad_witnesses(genuine, rng, foreign))
        if most is not None and len(tried) > most:
            tried = [tried[k] for k in rng.choice(len(tried), most, replace=False)]
        for witness in tried:
            _sound(case, case.answers[place], case.costs[place], witness)
        done += len(tried)
    return done


def _check_bad_answers(case: _Case, rng: Any, most: int | None) -> int:
    """Check that bad answers are refused, or judged by the truth; with and without a genuine witness."""
    best = case.answers[min(range(len(case.costs)), key=case.costs.__getitem__)]
    done, genuine = 0, case.genuine()
    tried = list(bad_answers(best, rng))
    if most is not None and len(tried) > most:
        tried = [tried[k] for k in rng.choice(len(tried), most, replace=False)]
    for x in tried:
        known = []
        for method in (case.model.objective, case.model.violations):
            try:
                known.append(method(x))
            except ValueError:
                pass
            except Exception as wrong:
                said = f"{type(wrong).__name__}: {wrong}"
                raise case.broken(f"{method.__name__} of the answer {_short(x)}: {said}") from wrong
        for witness in (None, genuine):
            done += 1
            try:
                proof: Certificate = case.model.certificate(x, witness)
            except ValueError:
                continue
            except Exception as wrong:
                raise case.broken(f"answer {_short(x)}: {type(wrong).__name__}: {wrong}") from wrong
            if len(known) < 2:
                raise case.broken(f"answer {_short(x)} has a certificate, but no objective or violations")
            cost, violations = known
            slack = case.slack(proof.bound, proof.objective)
            if proof.bound is not None and not proof.bound <= case.least + slack:
                raise case.broken(
                    f"answer {_short(x)}: the bound is {proof.bound}, and an answer costs {case.least}"
                )
            if proof.optimal and case.stands_for_another(x):
                cost = case.model.objective(case.model.repaired(np.asarray(x)))
            if proof.optimal and (violations or not cost <= case.least + slack):
                raise case.broken(f"answer {_short(x)} is called optimal at {cost}: {violations}")
    return done


def bad_answers(x: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Bad answers: this one with damaged entries, of other types and shapes, huge, and nonsense.

    Some are feasible, and a few may even be optimal.
    """
    yield from _damaged(x, rng)
    array = np.asarray(x)
    if array.dtype.kind not in "iuf":
        return
    for number in (1e290, 2**53 + 1, 2**63 - 1, 2**64 - 1, 10**30, np.nan, complex(0, 1), None, "1"):
        moved = array.astype(object)
        if moved.size:
            moved.flat[int(rng.integers(moved.size))] = number
        yield moved
    yield array.astype(complex) + 1j
    yield array.astype(float).astype(object)
    if array.size > 1:  # the same sum
        moved = array.astype(object)
        i, j = (int(k) for k in rng.choice(array.size, 2, replace=False))
        for step in (1, 2**62, 2**63):
            moved.flat[i] += step
            moved.flat[j] -= step
            yield moved.copy()


def bad_witnesses(witness: Witness, rng: np.random.Generator, foreign: Iterable[Any] = ()) -> Iterator[Any]:
    """Bad witnesses: this one with damaged entries, those of other instances, and nonsense.

    Parameters
    ----------
    witness : mapping
        A genuine one; each of its entries is damaged in turn.
    rng : numpy.random.Generator
    foreign : iterable
        Further witnesses, those of other instances for example.
    """
    yield from foreign
    yield from ({}, [], "prices", 3, np.zeros(2), {"no such entry": [1, 2]}, {0: 1}, {None: None})
    yield {**witness, "one more": "entry"}
    for name, value in witness.items():
        yield {key: kept for key, kept in witness.items() if key != name}
        for damaged in _damaged(value, rng):
            yield {**witness, name: damaged}
    damage = {name: list(_damaged(value, rng)) for name, value in witness.items()}
    for turn in range(max(map(len, damage.values()), default=0)):  # all entries at once
        yield {name: values[turn % len(values)] for name, values in damage.items()}


def _damaged(value: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Wrong values for one entry of a witness."""
    huge: list[Any] = [2**62, 2**63 - 1, -(2**63), 2**70, 10**30, 10**400]
    huge += [1e290, -1e290, 1e308, -1e308, Fraction(10**30, 7)]
    yield from (None, "text", b"bytes", True, float("nan"), float("inf"), -float("inf"), 1j, 0, -1, *huge)
    yield from (
        [],
        {},
        [[]],
        [None],
        ["a"],
        [[1], [1, 2]],
        np.zeros((0, 3)),
        np.array("x"),
        object(),
        Fraction,
    )
    if isinstance(value, Mapping):
        for name, inner in value.items():
            for damaged in _damaged(inner, rng):
                yield {**value, name: damaged}
        return
    try:
        array = np.asarray(value)
    except ValueError:
        return
    if array.dtype.kind not in "biufO":
        return
    if array.dtype.kind in "bui":
        array = array.astype(np.int64)  # narrower types cannot hold the values tried below
    shape = array.shape
    reach = 1 + max((abs(float(v)) for v in array.ravel()[:1000].tolist() if v is not None), default=0.0)
    for number in (0, 1, -1, float("nan"), float("inf"), -float("inf"), *huge, None, "a", Fraction(1, 3), 1j):
        yield np.full(shape, number, dtype=None if isinstance(number, float | complex) else object)
    yield np.full(shape, 2**62 - 1)
    yield np.full(shape, -(2**63))
    yield np.full(shape, 2**64 - 1, np.uint64)
    yield np.zeros(shape, bool)
    yield np.zeros(shape, "datetime64[s]")
    for scale in (1.0, reach, 1e3 * reach):
        yield rng.normal(0, scale, shape)
        yield np.rint(rng.normal(0, scale, shape)).clip(-(2.0**62), 2.0**62).astype(np.int64)
    if array.dtype.kind != "O":
        yield from (array.astype(np.float32), array.astype(object), array.tolist())
        yield array.astype(float).astype(object)
    yield from (array[..., None], array[None], array.ravel()[:-1], np.append(array.ravel(), 0), array.T)
    with np.errstate(all="ignore"):
        for step in (1, -1, 0.5, 1e-9):
            yield array + step
        yield from (-array, 2 * array, array * 1.0000001)
        for place in range(min(array.size, 8)):
            at = np.unravel_index(int(rng.integers(array.size)) if array.size > 8 else place, shape)
            for step in (1, -1, float("nan"), 10**18):
                moved = array.astype(float if isinstance(step, float) else array.dtype)
                moved[at] = step if isinstance(step, float) else moved[at] + np.asarray(step, moved.dtype)
                yield moved
    if array.size > 1:
        yield rng.permutation(array.ravel()).reshape(shape)


ARITHMETIC = (
    "models.arithmetic.arrays",  # read-only views
    "models.arithmetic.door",  # reads numbers by value
    "models.arithmetic.kernels",  # runs kernels; each kernel counts as its own module's
    "models.arithmetic.exact",
    "models.arithmetic.distance",
    "models.segments",
    "models.tree",
    "models.witnesses.tree_sums",
    "models.arithmetic.places",
    "models.arithmetic.run_costs",
    "models.arithmetic.whole_sums",
    "models.programs.layout",
    "models.programs.operators",
    "models.arithmetic.answers",
    "models.programs.terms",
    "models.certificate",
    "models.witnesses.scaled",
    "models.workload",
    "models.arithmetic.effects",
)
"""Modules whose functions a fast path and a certificate may share: they add, reorder and read, and make no
decisions."""


def shared_functions(model: Any, fast: Callable[[Any], Found], arithmetic: Iterable[str] = ()) -> set[str]:
    """Functions that both the fast path and the certificate of its answer run, except for plain arithmetic.

    A certificate that shares a search with the fast path proves nothing: if the search is wrong, both are.
    Counted are functions of the packages `models` and `solvers`, and of those that define `model` and `fast`.
    Not counted are those of the modules in `ARITHMETIC`, the model's properties, its `objective` and
    `violations` with all that these run, and what Python calls by itself (``__init__`` and the like).
    Kernels that Numba has compiled are seen only if the environment sets ``NUMBA_DISABLE_JIT=1`` before.

    Parameters
    ----------
    model : Model
        Should be new: what it has cached is not run again.
    fast : function of a model
        Returns an answer and its witness.
    arithmetic : iterable of str
        Further modules, or functions as ``module:function``, that the two may share.

    Returns
    -------
    set of str
        ``module:function`` each.
    """
    kind, plain = type(model), {*ARITHMETIC, *arithmetic}
    packages = {name.partition(".")[0] for name in ("models", "solvers", kind.__module__, fast.__module__)}
    found, searching = functions_run(lambda: fast(model), packages)
    if found is None or found[0] is None:
        return set()
    _, proving = functions_run(lambda: model.certificate(*found), packages)
    _, reading = functions_run(lambda: (model.objective(found[0]), model.violations(found[0])), packages)
    accessors = {name for name in dir(kind) if not callable(getattr(kind, name)) or name.startswith("__")}
    common = {
        f"{module}:{function}"
        for module, function in (searching & proving) - reading
        if module not in plain and function.rpartition(".")[2] not in accessors
    }
    return common - plain


def functions_run(call: Callable[[], Any], packages: Iterable[str]) -> tuple[Any, set[tuple[str, str]]]:
    """What a call returns, and the Python functions of some packages that it ran: ``(module, name)``."""
    seen: set[tuple[str, str]] = set()
    ours = set(packages)

    def note(frame: Any, event: str, _: Any) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event == "call" and module != __name__ and module.partition(".")[0] in ours:
            seen.add((module, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, {(module, name) for module, name in seen if "<" not in name.rpartition(".")[2]}
