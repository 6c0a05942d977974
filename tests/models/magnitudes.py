"""Instances of every model at every magnitude, with answers and witnesses that fit them more or less."""

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np

from models import Tree, Workload, lagrangian_bound
from solvers import fast

SCALES = (1, 2**10, 2**26, 2**31, 2**40, 2**50, 2**53, 2**56, 2**58, 2**59, 2**60, 2**61, 2**62)
EDGES = (2**53, 2**53 + 1, -(2**53) - 1, 2**61, 2**61 + 5, 2**62 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63))
KEPT = {"tree", "workload", "rules", "offsets", "p", "integer", "clusters", "zeros"}
"""Fields that are no data."""
LEAST, MOST = -(2**63), 2**63 - 1


def _number(value):
    return isinstance(value, int | float | Fraction | np.number) and not isinstance(value, bool)


def _each(value, change):
    """A field with each of its numbers changed."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iufO":
            return value
        found = np.empty(value.shape, object)
        for place, one in enumerate(value.ravel().tolist()):
            found.flat[place] = change(one)
        return _narrow(found, value.dtype)
    if isinstance(value, tuple | list):
        return type(value)(_each(part, change) for part in value)
    return change(value.item() if isinstance(value, np.generic) else value) if _number(value) else value


def _narrow(found, dtype):
    plain = found.ravel().tolist()
    if dtype.kind == "f":
        return found.astype(float)
    if all(isinstance(v, int) and LEAST <= v <= MOST for v in plain):
        return found.astype(np.int64)
    return found


def _clipped(value):
    return min(max(value, LEAST), MOST) if isinstance(value, int) else value


def grown(model, rng):
    """The instance with larger data, and the factor; None if the model refuses it."""
    scale = int(rng.choice(np.array(SCALES, object)))
    names = [f.name for f in fields(model) if f.init and f.name not in KEPT]
    kind = rng.integers(0, 6)
    shift = int(rng.choice(np.array([0, 0, 1, -1, 2**53, -(2**60), 2**62], object)))
    chosen = names if kind < 4 or not names else [names[int(rng.integers(len(names)))]]

    def change(value):
        if isinstance(value, float) and not np.isfinite(value):
            return value
        if kind == 5:
            return int(rng.choice(np.array(EDGES, object))) if rng.random() < 0.5 else value
        moved = value * scale
        if kind in (1, 4) and isinstance(value, int):
            moved += int(rng.integers(-1, 2))
        if kind == 2:
            moved += shift
        if kind == 3 and rng.random() < 0.4:
            moved = int(rng.choice(np.array(EDGES, object)))
        return _clipped(moved)

    changed = {name: _each(getattr(model, name), change) for name in chosen}
    kinds = rng.integers(0, 8)
    if kinds == 0:
        changed = {k: _as(v, Fraction) for k, v in changed.items()}
    elif kinds == 1:
        changed = {k: _as(v, float) for k, v in changed.items()}
    return lambda: replace(model, **changed), scale


NUMBERS = {"noisy", "values", "parent", "lower", "upper", "last", "noise_scale", "estimates", "epsilon"}


def far(model, rng):
    """The instance with floats for data, times powers of 2 whose squares floats may not hold.

    Returns a function that makes it, and the two exponents: of numbers and of weights.
    """
    a, b = (int(rng.integers(-560, 561)) * int(rng.integers(0, 4) > 0) for _ in range(2))
    exponents = dict.fromkeys(NUMBERS, a) | {"weights": b, "variance": -b, "price": 2 * a, "workload": a}
    names = [f.name for f in fields(model) if f.init and f.name in exponents]
    changed = {name: times(getattr(model, name), exponents[name]) for name in names}
    if hasattr(model, "total"):  # a whole number: 0 if it would be a fraction
        changed["total"] = _each(model.total, lambda v: v * 2**a if a >= 0 else 0)
    return lambda: replace(model, **changed), a, b


def times(value, exponent):
    """Numbers times a power of 2, as floats; anything else as it is."""
    if isinstance(value, tuple | list):
        return type(value)(times(part, exponent) for part in value)
    if not (_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "iufO")):
        return value
    with np.errstate(all="ignore"):
        found = np.ldexp(np.asarray(value).astype(float), exponent)
    return found if isinstance(value, np.ndarray) else float(found)


def _as(value, kind):
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iO":
        return value
    try:
        found = np.array([*(kind(v) for v in value.ravel().tolist()), None], object)[:-1].reshape(value.shape)
    except (TypeError, OverflowError):
        return value
    return found.astype(float) if kind is float else found


def answers(model, x, scale, rng):
    """Answers of the shape of x: scaled, shaken, of other types, at the edges of 64 bits."""
    given, x = x, np.asarray(x)
    if x.dtype.kind not in "iufO" or not all(_number(v) for v in x.ravel()):
        yield given
        for name in x.dtype.names or ():
            for edge in (1, 2**62, 2**63 - 1, -(2**63)):
                moved = x.copy()
                moved[name] = moved[name] * edge
                yield moved
        return
    large = _each(x.astype(object) if x.dtype.kind in "iu" else x, lambda v: v * scale)
    yield large
    if large.size > 1 and large.dtype.kind != "f":
        moved = large.astype(object)
        i, j = rng.choice(large.size, 2, replace=False)
        moved.flat[int(i)] += 1
        moved.flat[int(j)] -= 1
        yield _narrow(moved, np.dtype(np.int64))
    edges = rng.choice(np.array([0, 1, *EDGES], object), x.shape)
    yield _narrow(np.asarray(edges, object).reshape(x.shape), np.dtype(np.int64))
    tree = getattr(model, "tree", None)
    if isinstance(tree, Tree) and x.shape[:1] == (tree.size,):
        summed = np.zeros(x.shape, object)
        summed[tree.leaves] = edges[tree.leaves] if rng.random() < 0.5 else large[tree.leaves]
        for node in range(tree.size - 1, 0, -1):
            summed[tree.parent[node]] = summed[tree.parent[node]] + summed[node]
        yield _narrow(summed, np.dtype(np.int64))
    noisy = getattr(model, "noisy", None)
    if noisy is not None and np.shape(noisy) == x.shape:
        yield np.asarray(noisy)
    kind = rng.integers(0, 4)
    if kind == 0:
        yield np.full(x.shape, 2**64 - 1, np.uint64)
        yield (
            np.abs(np.asarray(large, object)).clip(0, 2**64 - 1).astype(np.uint64)
            if large.dtype != float
            else large
        )
    elif kind == 1:
        with np.errstate(all="ignore"):
            yield np.asarray(large, float)
        yield np.full(x.shape, float(2**63))
    elif kind == 2:
        yield np.array([*(Fraction(v) for v in large.ravel().tolist()), None], object)[:-1].reshape(x.shape)
    else:
        yield np.array([*map(float, large.ravel().tolist()), None], object)[:-1].reshape(x.shape)


def witnesses(witness, scale, rng):
    """None, the witness, the witness scaled, and one at the edges."""
    yield None
    if not witness:
        return
    yield witness
    yield {name: _each(value, lambda v: v * scale) for name, value in witness.items()}
    edge = int(
        rng.choice(np.array([2**53 + 1, 2**60, 2**61 - 1, -(2**61) + 1, 2**62, 2**63 - 1, -(2**63)], object))
    )
    yield {name: _each(value, lambda _: edge) for name, value in witness.items()}
    yield {
        name: _each(value, lambda _: int(rng.choice(np.array([0, 1, -1, edge, -edge], object))))
        for name, value in witness.items()
    }


def found(model):
    """A small instance's answer and witness."""
    try:
        return fast.answer(model)
    except fast.NoFastPath:
        return None, None


def code(value):
    """Python text that makes the value again."""
    if isinstance(value, Tree):
        return f"Tree({[np.asarray(level).tolist() for level in value.levels]})"
    if isinstance(value, Workload):
        return f"Workload({value.shape}, {code(value.queries)})"
    if isinstance(value, np.ndarray):
        kind = {"i": "", "f": "", "b": "", "u": ", np.uint64", "O": ", object"}.get(
            value.dtype.kind, f", {value.dtype.str!r}"
        )
        return f"np.array({value.tolist()!r}{kind})" if kind else repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {code(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(code, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)" if value else "()"
    if hasattr(value, "__dataclass_fields__") and hasattr(value, "certificate"):
        inside = ", ".join(
            f"{f.name}={code(getattr(value, f.name))}"
            for f in fields(value)
            if f.init and getattr(value, f.name) is not f.default
        )
        return f"{type(value).__name__}({inside})"
    return repr(value)


def whole(model):
    """Whether all data are integers, so that nothing may be rounded."""
    numbers = []
    for field in fields(model):
        value = getattr(model, field.name)
        if field.init and field.name not in KEPT and value is not None:
            parts = value if isinstance(value, tuple | list) else [value]
            numbers += [np.asarray(part) for part in parts]
    return getattr(model, "integer", True) and all(part.dtype.kind in "iu" for part in numbers)


def attempts(kind, seed, most=None):
    """Calls on a random instance of a seed: ``(call, text, exact)``; none if the model refuses the instance.

    Parameters
    ----------
    kind : class of models
    seed : int
    most : int, optional
        The number of witnesses of each answer; by default, all are tried.

    Yields
    ------
    call : function without arguments
    text : function without arguments
        Gives the call as Python text.
    exact : bool
        Whether the call must not round whole numbers: data, answer and witness are integers.
    """
    rng = np.random.default_rng([seed, 5])
    base = kind.random(rng, int(rng.integers(1, 7)))
    x, witness = found(base)
    if x is None:
        x = np.zeros(base.program().blocks[0].shape, np.int64)
    make, scale = grown(base, rng)
    try:
        model = make()
    except ValueError:
        return
    try:
        witness = dict(base.certificate(x, witness).witness)
    except ValueError:
        witness = dict(witness or {})
    exact = whole(model)

    def text(method, *given):
        return lambda: f"{code(model)}.{method}({', '.join(map(code, given))})"

    yield lambda: make().program(), text("program"), exact
    for k, answer in enumerate(answers(model, x, scale, rng)):
        right = exact and (not isinstance(answer, np.ndarray) or answer.dtype.kind in "iuV")
        yield lambda a=answer: make().objective(a), text("objective", answer), right
        yield lambda a=answer: make().violations(a), text("violations", answer), right
        tried = list(witnesses(witness, scale, rng))
        for each in tried if most is None else (tried[k:] + tried[:k])[:most]:
            yield lambda a=answer, w=each: make().certificate(a, w), text("certificate", answer, each), right
    if hasattr(model, "row_prices"):
        for each in list(witnesses(witness, scale, rng))[1:]:

            def bound(each=each):
                own = make()
                return lagrangian_bound(own.program(), own.row_prices(each))

            yield bound, text("row_prices", each), exact
