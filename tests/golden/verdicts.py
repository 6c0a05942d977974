"""What certificates say of seeded instances of every kind of problem, as text that two versions can compare.

The kinds are those of `tests.models.test_brute_force_proofs`: instances so small that all answers are listed,
and the least cost is known without a certificate. A line names the instance and the answer. Two verdicts
follow, without a witness and with the fast path's (or else the one read off the best answer): whether the
answer is proved, its objective, its bound; or the class of the exception. Numbers in floats begin with ``~``.
A mark says that a verdict is wrong: FALSE, a proof of an answer that is not optimal; HIGH, a bound above the
least cost. UNREAD marks proofs from what is not plainly numbers (masked, durations): nothing is known there.

    python -m tests.golden.verdicts write FILE [--instances N] [--seed S] [--kinds NAME …]
    python -m tests.golden.verdicts compare OLD NEW
"""

import argparse
import math
import sys
import warnings
from collections import defaultdict
from contextlib import suppress
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models import Program
from models.certificate import FLOAT_TOLERANCE
from models.claim import Claim
from solvers import fast, prove
from tests.models import magnitudes
from tests.models.hostile import LINEAR, exactly, judged
from tests.models.test_brute_force_proofs import PROBLEMS, near

PARTS = ("right", "worse", "infeasible", "huge", "hostile", "data")
NUMBERS = [sign * (2**power + more) for power in (53, 62, 63, 64) for more in (-1, 0, 1) for sign in (1, -1)]
QUICK = LINEAR - {
    "WorkloadLeastSquares"
}  # compiled, its fast path divides by zero where Python's has infinity
UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError)


class Case(NamedTuple):
    """An instance (also in exact numbers), a best answer, others and costs, what the fast path found."""

    model: Any
    exact: Any
    best: Any
    others: list
    least: Any
    found: Any = None
    witness: Any = None

    def line(self, name, x, cost=None, witness=None, bounds=True):
        """The verdicts on an answer; `cost` if it is known to be feasible."""
        ways = (None, self.witness if witness is None else witness)
        return "\t".join([name, *(self.verdict(x, cost, way, bounds) for way in ways)])

    def verdict(self, x, cost, witness, bounds):
        try:
            proof = Claim(self.model, x, witness).certificate()
        except Exception as refusal:
            return type(refusal).__name__
        least = proof.objective if self.least == math.inf else self.least
        shown = [proof.objective, proof.bound, least, *np.ravel(np.asarray(x, object))]
        floats = any(isinstance(each, float | np.floating) for each in shown)
        slack = FLOAT_TOLERANCE * max(1, abs(proof.objective), abs(least)) if floats else 0
        real = floats and getattr(self.model, "integer", False) is not True
        said = ["proved" if proof.optimal else "open"]
        said += [number(value, proof.objective) for value in shown[: 1 + bounds]]
        said += ["HIGH"] if proof.bound is not None and proof.bound > self.least + slack else []
        try:
            said += [] if not proof.optimal or self.optimal(x, cost, slack, real) else ["FALSE"]
        except UNREADABLE:
            said.append("UNREAD")
        return " ".join(said)

    def optimal(self, x, cost, slack, real):
        """Whether no known answer costs less. Answers in floats over the reals may break rows by a little."""
        plain, best = (y if np.asarray(y).dtype.names else by_value(y) for y in (x, self.best))
        if plain.shape == best.shape and (plain == best).all():
            return True
        if isinstance(self.exact, Program):  # an answer that costs less is not feasible
            return abs(self.exact.value(plain) - self.least) <= slack
        cost, feasible = (cost, True) if cost is not None else judged(self.exact, plain)
        return cost <= self.least + slack and (feasible or real)


def number(value, beside):
    """Exact numbers; floats to nine digits of the largest of 1, the number and the objective beside it.

    A bound in floats is the objective less a gap: its rounding errors are the objective's.
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value) if len(str(value)) < 80 else f"{str(value)[:30]}…{str(value)[-30:]}"
    size = max(1, abs(value), abs(beside))
    return f"~{round(value, 8 - math.floor(math.log10(size))) + 0.0:.9g}" if size < math.inf else "~finite"


def by_value(x):
    """An answer as Python integers and Fractions; ValueError if it is no array of numbers."""
    if np.ma.is_masked(x):
        raise ValueError("masked")
    array = np.asarray(x, object)
    pairs = [(v.item() if isinstance(v, np.integer) else v).as_integer_ratio() for v in array.flat]
    numbers = [top if bottom == 1 else Fraction(top, bottom) for top, bottom in pairs]
    return np.array([*numbers, None], object)[:-1].reshape(array.shape)


def to(kind, change=lambda v: v, every=True):
    """What changes every number of an answer, or one, and its type (None: the answer's own)."""

    def changed(values, rng=None):
        found = np.array(values, object)
        for place in range(found.size) if every else rng.integers(found.size, size=1):
            found.flat[place] = change(found.flat[place])
        return found.astype(kind or values.dtype)

    return changed


def huge(values, rng, way, kind):
    """One number plus one around 2^53 or an end of 64 bits, another less it, or all the same number."""
    found, big = np.array(values, object), NUMBERS[int(rng.integers(len(NUMBERS)))]
    i, j = rng.integers(found.size, size=2).tolist()
    found.flat[i] += big
    found.flat[j] -= big * (way == "pair")
    found = found * 0 + big if way == "all" else found
    if "int" in kind:  # modulo 2^64, as arithmetic in 64 bits leaves them
        return to(np.uint64, lambda v: int(v) % 2**64)(found).view(kind)
    return found.astype(kind)


one = partial(to, every=False)
KINDS = ("bool", "int8", "uint64", "float16", "float32", "float64", "longdouble", "complex", ">i8")
TYPES = {kind: to(kind) for kind in KINDS} | {
    "floats as objects": to(object, float), "Fractions": to(object, Fraction), "strings": to(str, str),
    "Decimals": to(object, lambda v: Decimal(float(v))), "seconds": to("timedelta64[s]", int),
    "one string": one(object, str), "list": lambda v, _: v.tolist(), "no mask": lambda v, _: np.ma.array(v),
    "masked": lambda v, _: np.ma.masked_array(v, np.arange(v.size).reshape(v.shape) == 0),
    "mixed list": lambda v, _: [2**53 + 1, *v.ravel().tolist()[1:-1], 0.5][: v.size],
}  # fmt: skip
CHANGES = {
    "infeasible": {
        "one more": one(None, lambda v: v + 1), "one less": one(None, lambda v: v - 1),
        "a half more": one(float, lambda v: v + 0.5), "a little more": one(float, lambda v: v + 2**-30),
        "all less": to(None, lambda v: v - 1), "zeros": to(None, lambda v: 0 * v),
    },
    "huge": {f"{way}, {kind}": partial(huge, way=way, kind=kind)
             for kind in ("int64", "uint64", "object", "float64") for way in ("one", "pair", "all")},
    "hostile": TYPES | {
        **{str(v): one(float, lambda _, v=v: v) for v in (math.nan, math.inf, -math.inf, 1e308, 5e-324)},
        "None": one(object, lambda _: None), "nothing": lambda *_: np.zeros(0), "number": lambda *_: 0,
        "one axis more": lambda v, _: v[None], "one too few": lambda v, _: v.ravel()[:-1],
        "one too many": lambda v, _: np.append(v, 0), "text": lambda *_: "answer",
    },
}  # fmt: skip
PRICES = {
    "small": lambda rng: int(rng.integers(-3, 4)), "floats": lambda rng: float(4 * rng.random() - 2),
    "huge": lambda rng: NUMBERS[int(rng.integers(len(NUMBERS)))], "NaN": lambda _: math.nan,
}  # fmt: skip


def shaken(value, draw, rng):
    """A witness of the same entries and shapes, with other numbers."""
    if isinstance(value, dict):
        return {name: shaken(part, draw, rng) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return tuple(shaken(part, draw, rng) for part in value)
    drawn = [draw(rng) for _ in range(np.size(value))]
    kind = float if isinstance(drawn[0] if drawn else 0, float) else object
    return np.array(drawn, kind).reshape(np.shape(value)) if np.ndim(value) else drawn[0]


def proved_fast(model):
    """The fast path's answer and witness; None if it has none."""
    with suppress(fast.NoFastPath):
        return fast.answer(model)
    return None, None


def case_of(problem, seed, k):
    """The k-th instance, or None. Of several best answers the last listed: the fast path's comes first.

    Floats are rounded, so that answers made from them do not depend on the last digits that were found.
    """
    answers = list(problem(np.random.default_rng([seed, k])))
    if not answers:
        return None
    least, slack = min(cost for _, cost in answers), max(near(cost) for _, cost in answers)
    claim = [claim for claim, cost in answers if cost <= least + slack][-1]
    others = sorted(((c.x, cost) for c, cost in answers if cost > least + slack), key=lambda pair: pair[1])
    model, (found, witness) = claim.model, proved_fast(claim.model)
    if not witness:
        proof = prove(model, claim.x) if found is None else model.certificate(found)
        witness = claim.witness or dict(proof.witness)
    exact = model if isinstance(model, Program) else exactly(model)
    best = np.round(claim.x, 9) if claim.x.dtype.kind == "f" else claim.x
    return Case(model, exact, best, others, least, claim.x if found is None else found, witness)


def lines(case, part, k, rng):
    """The lines of one part."""
    if part == "right":
        yield case.line("found", case.found)
        yield case.line("best", case.best)
    elif part == "worse" and case.others:
        for place in sorted({0, int(rng.integers(len(case.others)))}):
            yield case.line(f"other {place}", *case.others[place])
        with suppress(*UNREADABLE):  # pairs of sizes do not blend
            low, high, power = by_value(case.best), by_value(case.others[0][0]), (1, 3, 20, 40)[k % 4]
            x = low + (high - low) * Fraction(1, 2**power)
            yield case.line(f"blend 2^-{power}", x.astype(float) if k % 8 < 4 else x)
    elif part == "data" and not isinstance(case.model, Program):
        yield from data_lines(case, rng)
    elif part in CHANGES:
        x = case.others[0][0] if case.others and rng.random() < 0.3 else case.best
        name = list(CHANGES[part])[k // 4 % len(CHANGES[part])]
        with suppress(*UNREADABLE):  # the type does not hold these numbers
            changed = CHANGES[part][name](x["count"] if x.dtype.names else x, rng)
            if x.dtype.names and np.shape(changed) == x.shape and changed.dtype.kind in "iu":
                changed, counts = x.copy(), changed
                changed["count"] = counts
            yield case.line(name, changed)
        if part == "hostile":
            name = list(PRICES)[k // 4 % len(PRICES)]
            yield case.line(f"prices: {name}", x, None, shaken(case.witness, PRICES[name], rng), False)


def data_lines(case, rng):
    """Data of any magnitude, one field of them of another type; the answers are as many times larger."""
    make, scale = magnitudes.grown(case.model, rng)
    kind = list(TYPES)[int(rng.integers(len(TYPES)))]
    try:
        model = make()
        held = {f.name: getattr(model, f.name) for f in fields(model) if f.name not in magnitudes.KEPT}
        names = [name for name, field in held.items() if isinstance(field, np.ndarray) and field.size]
        name = names[int(rng.integers(len(names)))]
        given = TYPES[kind](held[name], rng)
        hostile = replace(model, **{name: given})
    except Exception as refusal:
        yield "\t".join([f"data as {kind}", *[type(refusal).__name__] * 2])
        return
    known, exact, costs = [to(object, lambda v: v * scale)(case.best)], None, []
    with suppress(*UNREADABLE):
        same = np.array_equal(by_value(given), by_value(held[name]))
        exact = exactly(model if same else replace(model, **{name: by_value(given)}))
        known += [proved_fast(model)[0]] if type(model).__name__ in QUICK else []
        costs = [judged(exact, by_value(x)) for x in known]
    least = min((cost for cost, feasible in costs if feasible and cost is not None), default=math.inf)
    for place, x in enumerate(known):
        yield Case(hostile, exact, (), [], least).line(f"{name} as {kind}: {place}", x)


def streamed(problem, seed, instances):
    """Part and line, instance by instance: right and worse answers of each, and one other part in turn."""
    done = 0
    for k in range(9 * instances):
        case = case_of(problem, seed, k) if done < instances else None
        done += case is not None
        for part in (*PARTS[:2], PARTS[2 + k % 4]) if case else ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # hostile numbers overflow
                for line in lines(case, part, k, np.random.default_rng([seed, k, 1])):
                    yield part, f"{k}\t{line}\n"


def texts(problem):
    """The lines of each part, of instances enough for a record that tests compare in a minute."""
    found = dict.fromkeys(PARTS, "")
    for part, line in streamed(problem, 0, 60):
        found[part] += line
    return found


def entries():
    """By name of an entry, one for each kind of problem, what writes its parts."""
    return {f"verdicts of {problem.__name__}": partial(texts, problem) for problem in PROBLEMS}


def change(old, new):
    """How two verdicts differ, in words; empty if they do not."""
    if old == new or None in (old, new):
        return "" if old == new else "line added" if old is None else "LOST line"
    was, now = old.split(), new.split()
    for mark in ("FALSE", "HIGH", "UNREAD"):
        if (mark in was) != (mark in now):
            return f"{mark} gone" if mark in was else f"LOST truth: {mark}"
    kinds = [words[0] if words[0] in ("proved", "open") else "exception" for words in (was, now)]
    if kinds[0] != kinds[1]:
        return f"{'LOST: ' * (kinds[0] == 'proved')}{kinds[0]} to {kinds[1]}"
    return ("another exception", "another objective", "another bound")[
        [*map(str.__eq__, was, now)].index(False)
    ]


def compare(old, new):
    """Print how two files differ, by kind, with an example each; return whether nothing was lost."""
    kept = True
    with old.open(encoding="utf-8") as before, new.open(encoding="utf-8") as after:
        files = [groupby(file, lambda line: line.partition("\t")[0]) for file in (before, after)]
        for (kind, ours), (_, theirs) in zip(*files, strict=True):
            tables, differing = [{}, {}], defaultdict(list)
            for table, side in zip(tables, (ours, theirs), strict=True):
                table |= {
                    tuple(words[:-2]): words[-2:] for words in (line.strip().split("\t") for line in side)
                }
            for key in tables[0] | tables[1]:
                for was, now in zip_longest(*(table.get(key, ()) for table in tables)):
                    if how := change(was, now):
                        differing[how].append(f"{', '.join(key[1:])}: {was} | {now}")
            for how, cases in sorted(differing.items()):
                kept &= "LOST" not in how
                print(f"{kind}: {how}: {len(cases):,}, such as {cases[0]}")
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden.verdicts", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("files", nargs="+", type=Path, help="the file to write, or two files to compare")
    parser.add_argument("--instances", type=int, default=300, help="of each kind of problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", help="only these kinds of problems")
    given = parser.parse_args()
    if given.command == "compare":
        sys.exit(not compare(*given.files))
    with given.files[0].open("w", encoding="utf-8") as file:
        for problem in PROBLEMS:
            if not given.kinds or problem.__name__ in given.kinds:
                for part, line in streamed(problem, given.seed, given.instances):
                    file.write(f"{problem.__name__}\t{part}\t{line}")
