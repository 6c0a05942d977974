"""Run models with every integer operation done twice: in int64, and in Python integers.

Within `checking`, the modules of `models` see `CheckedNumPy` in place of NumPy. Its functions return
`Checked` arrays, whose operations compare the result in 64 bits with the same in Python integers; the
entries of such an array are `Whole` numbers, which do the same. A kernel runs in its Python form, once in 64
bits and once with Python integers, and must give the same results.
"""

import contextlib
import math
import numbers
import operator
import sys

import numpy as np

from models.arithmetic import kernels

COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
LOGICAL = {"logical_and", "logical_or", "logical_not", "logical_xor", "isfinite", "isinf", "isnan", "signbit"}
LEAST, MOST = -(2**63), 2**63 - 1


class WrappedError(AssertionError):
    """An integer operation gave another result than over the integers."""


class RoundedError(AssertionError):
    """A whole number was rounded to a float."""


class _State:
    mode = "off"  # in a kernel: "plain" or "objects"; outside: "checked"
    exact = False  # whether whole numbers must not be rounded
    allowed = frozenset()  # (module, function) that may round
    undecided = {}  # noqa: RUF012  # by kernel: whether its result says that it decided nothing


def plain(value):
    """The same without `Checked` arrays and `Whole` numbers."""
    if isinstance(value, Whole):
        return np.int64(int(value))
    if isinstance(value, Checked):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def checked(value):
    """The same with `Checked` arrays and `Whole` numbers."""
    if isinstance(value, np.ndarray):
        return value if isinstance(value, Checked) else value.view(Checked)
    if isinstance(value, np.integer) and LEAST <= int(value) <= MOST:
        return Whole(value)
    if type(value) in (tuple, list):
        return type(value)(map(checked, value))
    return value


def _objects(value):
    """Whole numbers as Python integers; arrays of them as arrays of objects."""
    if isinstance(value, np.ndarray):
        array = value.view(np.ndarray)
        if array.dtype == object:
            held = np.empty(array.shape, object)
            held.flat = [_objects(each) for each in array.ravel()] if array.size else 0
            return held
        return array.astype(object) if array.dtype.kind in "iub" else array
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    return value


def _pythons(value):
    """As `_objects`, and floats as Python floats, whose comparisons with integers are exact."""
    value = _objects(value)
    if isinstance(value, np.ndarray):
        return value.astype(object)
    return value.item() if isinstance(value, np.floating) else value


def _same(one, two):
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_same, one, two))
    one, two = np.asarray(one), np.asarray(two)
    if one.shape != two.shape:
        return False
    return all(
        a == b or (a != a and b != b) for a, b in zip(one.ravel().tolist(), two.ravel().tolist(), strict=True)
    )


def _has_integers(values):
    for value in values:
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "iub" or (
                value.dtype == object and any(isinstance(v, np.integer) for v in value.flat)
            ):
                return True
        elif isinstance(value, np.integer | int):
            return True
    return False


def _site():
    """The function of `models` that is running, as ``(module, name)``."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] == "models":
            return module, frame.f_code.co_qualname, frame.f_lineno
        frame = frame.f_back
    return "?", "?", 0


def _wraps(what, *shown):
    module, name, line = _site()
    raise WrappedError(f"{module}:{line} {name}: {what} {' '.join(f'{value!r:.200}' for value in shown)}")


def _rounds(what, *given):
    """Raise if one of the whole numbers is not a float."""
    if not _State.exact:
        return
    for value in given:
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            lost = [v for v in value.ravel().tolist() if abs(v) > 2**53 and int(float(v)) != v]
        elif isinstance(value, np.integer | int) and not isinstance(value, bool):
            v = int(value)
            lost = [v] if abs(v) > 2**53 and (abs(v) > 2**1023 or int(float(v)) != v) else []
        else:
            continue
        if lost:
            module, name, line = _site()
            if (module, name) not in _State.allowed:
                raise RoundedError(f"{module}:{line} {name}: {what} rounds {lost[0]}")


def _is_float(value):
    return isinstance(value, float | np.floating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def _check_cast(source, result, what):
    """A conversion from `source` to `result`, elementwise."""
    if result.dtype.kind == "f":
        if isinstance(source, np.ndarray):
            _rounds(what, source)
            if source.dtype == object:
                for v in source.ravel():
                    _rounds(what, v)
        return
    if result.dtype.kind not in "iu" or source.dtype.kind not in "iufO":
        return
    if result.dtype == source.dtype:
        return
    for a, b in zip(source.ravel().tolist(), result.ravel().tolist(), strict=True):
        if isinstance(a, float) and not math.isfinite(a):
            _wraps(f"{what} of {source.dtype} to {result.dtype}:", a, b)
        if int(a) != b:
            _wraps(f"{what} of {source.dtype} to {result.dtype}:", a, b)


def _twice(call, given, what, comparing=False):
    """Run ``call(convert)`` plainly and with Python integers, and compare."""
    result = call(plain)
    if not _has_integers(given):
        return result
    kinds = [
        part.dtype.kind
        for part in (result if isinstance(result, tuple) else (result,))
        if hasattr(part, "dtype")
    ]
    if comparing or any(kind in "iuO" for kind in kinds):
        try:
            with np.errstate(all="ignore"):
                exact = call(_pythons)
        except ZeroDivisionError:
            return result
        except OverflowError as wrong:
            _wraps(f"{what}: {wrong}", *given)
        if not _same(result, exact):
            _wraps(
                f"{what}: {np.asarray(result).tolist()!r:.200}, not {np.asarray(exact).tolist()!r:.200}, of",
                *given,
            )
    elif any(kind == "f" for kind in kinds):
        _rounds(what, *given)
    return result


class Checked(np.ndarray):
    """An array whose integer operations are done twice."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **more):
        name = f"{ufunc.__name__}.{method}".removesuffix(".__call__")
        into = tuple(plain(part) for part in out) if out else None
        if method == "at":
            array, index, *values = inputs
            before = _pythons(array) if array.dtype.kind in "iuO" else None
            getattr(ufunc, method)(plain(array), plain(index), *map(plain, values), **more)
            if before is not None:
                ufunc.at(before, plain(index), *map(_pythons, values))
                if not _same(array, before):
                    _wraps(f"{name}:", *values)
            else:
                _rounds(name, *values)
            return None
        where = {k: plain(v) for k, v in more.items() if k != "dtype" and not (k == "where" and v is True)}
        narrow = {"dtype": more["dtype"]} if more.get("dtype") is not None else {}
        first = inputs[:1] if method == "reduceat" else inputs
        rest = tuple(map(plain, inputs[1:])) if method == "reduceat" else ()

        def call(convert):
            args = tuple(map(convert, first))
            if convert is plain:
                target = {"out": into if len(into) > 1 or method == "__call__" else into[0]} if into else {}
                return getattr(ufunc, method)(*args, *rest, **where, **narrow, **target)
            if "where" in where:  # elsewhere the result is not defined
                chosen = {k: v for k, v in where.items() if k != "where"}
                held = getattr(ufunc, method)(*args, *rest, **chosen) if method == "__call__" else None
                kept = where["where"]
                return np.where(kept, held, plain(into[0])) if held is not None and into else None
            return getattr(ufunc, method)(*args, *rest, **where)

        if "where" in where and not (into and method == "__call__"):
            return checked(call(plain))
        if ufunc.__name__ in LOGICAL or (ufunc.__name__ == "invert" and inputs[0].dtype == bool):
            return checked(call(plain))
        if into:  # an input may be the output
            first = tuple(v.copy() if isinstance(v, np.ndarray) else v for v in first)
        bitwise = ufunc.__name__.startswith("bitwise") and all(
            isinstance(v, bool) or getattr(v, "dtype", None) == np.bool_ for v in first
        )
        if bitwise:
            return checked(call(plain))
        result = _twice(call, first, name, comparing=ufunc.__name__ in COMPARISONS)
        if into:
            return out[0] if len(out) == 1 else out
        return checked(result)

    def __array_function__(self, function, types, args, kwargs):
        return _function(function, args, kwargs)

    def __getitem__(self, index):
        return checked(super().__getitem__(plain(index)))

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __setitem__(self, index, value):
        index, given = plain(index), plain(value)
        here = self.view(np.ndarray)
        try:
            here[index] = given
        except OverflowError:
            _wraps("stores:", given)
        if self.dtype.kind in "iu":
            source = np.asarray(given)
            if source.dtype.kind in "iufO":
                found = here[index]
                target = np.broadcast_to(source, np.shape(found))
                if not _same(np.asarray(found), target):
                    _wraps("stores:", given)
        elif self.dtype.kind == "f":
            _rounds("stores", given)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return checked(array[()] if return_scalar else array)

    def astype(self, dtype, *args, **more):
        result = self.view(np.ndarray).astype(dtype, *args, **more)
        _check_cast(self.view(np.ndarray), result, "astype")
        return checked(result)

    def dot(self, other, out=None):
        return _function(np.dot, (self, other), {} if out is None else {"out": out})

    def trace(self, *args, **more):
        return _function(np.trace, (self, *args), more)

    def item(self, *args):
        return self.view(np.ndarray).item(*args)

    @property
    def flat(self):
        return self.view(np.ndarray).flat

    @flat.setter
    def flat(self, value):
        self.view(np.ndarray).flat = plain(value)


PRODUCTS = {np.dot, np.inner, np.vdot, np.tensordot, np.convolve, np.trace, np.einsum, np.correlate}
"""Functions that multiply and add without ufuncs."""
if hasattr(np, "cross"):
    PRODUCTS.add(np.cross)


def _flat(values):
    for value in values:
        if type(value) in (tuple, list):
            yield from _flat(value)
        else:
            yield value


def _function(function, args, kwargs):
    if function in PRODUCTS:
        given = list(_flat((*args, *kwargs.values())))

        def call(convert):
            return function(*map(convert, args), **kwargs)

        return checked(_twice(call, given, function.__name__))
    # Functions made of ufuncs get `Checked` arrays; those in C only move data, or take plain arrays.
    if function in (np.bincount, np.searchsorted):
        _rounds_mixed(function, args, kwargs)
        return checked(function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()}))
    inner = getattr(function, "_implementation", None)
    if inner is None:
        result = function(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
    else:
        try:
            result = inner(*args, **kwargs)
        except TypeError:
            result = inner(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
    if _is_float(result):
        _rounds(function.__name__, *_flat((*args, *kwargs.values())))
    return checked(result)


def _rounds_mixed(function, args, kwargs):
    given = list(_flat((*args, *kwargs.values())))
    if any(map(_is_float, given)):
        _rounds(function.__name__, *given)


def _through(operation):
    def method(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, np.bool_ | np.integer):
            other = other.item()
        if isinstance(other, float | np.floating):
            _rounds(operation.__name__, self)
        result = operation(int(self), other)
        return _kept(result, operation.__name__, self, other)

    def reverse(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, np.bool_ | np.integer):
            other = other.item()
        if isinstance(other, float | np.floating):
            _rounds(operation.__name__, self)
        return _kept(operation(other, int(self)), operation.__name__, other, self)

    return method, reverse


def _kept(result, what, *given):
    if isinstance(result, bool) or not isinstance(result, int):
        return np.float64(result) if isinstance(result, float) else result
    if not LEAST <= result <= MOST:
        _wraps(what, *given)
    return Whole(result)


class Whole(np.int64):
    """An int64 whose operations raise where they leave 64 bits."""

    def __neg__(self):
        return _kept(-int(self), "negative", self)

    def __abs__(self):
        return _kept(abs(int(self)), "abs", self)

    def __pos__(self):
        return self

    def __invert__(self):
        return Whole(~int(self))

    def __divmod__(self, other):
        return self // other, self % other

    def __pow__(self, other, modulo=None):
        return (
            _kept(int(self) ** int(other), "pow", self, other)
            if isinstance(other, numbers.Integral)
            else np.float64(self) ** other
        )

    def __rpow__(self, other):
        return _kept(other ** int(self), "pow", other, self)

    def __float__(self):
        _rounds("float", int(self))
        return float(int(self))

    def __hash__(self):
        return hash(int(self))

    def __repr__(self):
        return repr(int(self))

    def __reduce__(self):
        return np.int64, (int(self),)

    @property
    def numerator(self):
        return self

    def astype(self, dtype, *args, **more):
        return checked(np.asarray(np.int64(int(self))).view(Checked).astype(dtype, *args, **more)[()])


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "lshift", "rshift", "and_", "or_", "xor"):
    _method, _reverse = _through(getattr(operator, _name))
    _plain_name = _name.removesuffix("_")
    setattr(Whole, f"__{_plain_name}__", _method)
    setattr(Whole, f"__r{_plain_name}__", _reverse)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Whole, f"__{_name}__", _through(getattr(operator, _name))[0])


class _Ufunc:
    """A ufunc that takes its operands as `Checked` arrays."""

    def __init__(self, ufunc):
        self._ufunc = ufunc

    def __call__(self, *args, **more):
        return self._run("__call__", args, more)

    def __getattr__(self, name):
        if name in ("reduce", "accumulate", "reduceat", "outer", "at"):
            return lambda *args, **more: self._run(name, args, more)
        return getattr(self._ufunc, name)

    def _run(self, method, args, more):
        if _State.mode != "checked":
            return getattr(self._ufunc, method)(*args, **more)
        if method == "at":
            if not isinstance(args[0], Checked):
                args = (args[0].view(Checked), *args[1:])
        else:
            args = tuple(
                _array(v) if isinstance(v, np.ndarray | np.generic | list | tuple) else v for v in args
            )
        if not any(isinstance(v, Checked) for v in args) and args:
            number = args[0]
            if isinstance(number, int) and not isinstance(number, bool):
                args = (np.asarray(number).view(Checked), *args[1:])
        return checked(getattr(self._ufunc, method)(*args, **more))


def _array(value):
    array = np.asanyarray(plain(value) if type(value) in (list, tuple) else value)
    return array.view(Checked) if type(array) is np.ndarray else array


MADE = {"zeros", "empty", "ones", "full"}


TAKES_PLAIN = {
    *("arange", "zeros", "ones", "empty", "eye", "indices", "fromiter", "shape", "ndim", "size", "vectorize"),
    *("issubdtype", "result_type", "finfo", "iinfo", "isscalar", "broadcast_shapes", "can_cast", "load"),
    *("promote_types", "savez_compressed"),
}
"""Functions that compute nothing with the entries of their arguments."""


class CheckedNumPy:
    """NumPy with `Checked` arrays."""

    def __getattr__(self, name):
        value = getattr(np, name)
        if isinstance(value, np.ufunc):
            return _Ufunc(value)
        if isinstance(value, type) or not callable(value) or name in ("errstate", "r_", "dtype"):
            return value

        def function(*args, **more):
            if _State.mode == "objects" and name in MADE:
                made = value(*args, **more)
                return made.astype(object) if made.dtype.kind in "iu" else made
            if _State.mode != "checked":
                return value(*args, **more)
            return self._call(name, value, args, more)

        function.__name__ = name
        return function

    def _call(self, name, value, args, more):
        if name in ("asarray", "array", "ascontiguousarray", "asanyarray"):
            source = args[0]
            result = value(*(plain(a) for a in args), **more)
            _check_made(source, result, name)
            return checked(result)
        if name in ("full", "full_like"):
            result = value(*map(plain, args), **{k: plain(v) for k, v in more.items()})
            filled = args[1] if len(args) > 1 else more["fill_value"]
            if np.asarray(plain(filled)).dtype.kind in "iuf" and result.dtype.kind in "iu":
                target = np.broadcast_to(np.asarray(plain(filled)), result.shape)
                if not _same(result, target):
                    _wraps(f"{name}:", filled)
            elif result.dtype.kind == "f":
                _rounds(name, filled)
            return checked(result)
        if name in TAKES_PLAIN:
            return checked(value(*map(plain, args), **more))
        args = tuple(checked(list(a) if type(a) is list else a) for a in args)
        if not any(isinstance(v, Checked) for v in _flat((*args, *more.values()))):
            args = tuple(
                _array(a)
                if k == 0
                and isinstance(a, list | tuple | int | float)
                and name not in ("broadcast_to",)
                and _numeric(a)
                else a
                for k, a in enumerate(args)
            )
        given = list(_flat((*args, *more.values())))
        result = value(*args, **more)
        if _is_float(result) and name not in ("mean", "linalg"):
            _rounds(name, *given)
        return checked(result)


def _numeric(value):
    if type(value) in (list, tuple):
        return all(isinstance(v, int | float | np.generic) for v in value)
    return True


def _check_made(source, result, name):
    if isinstance(source, np.ndarray):
        _check_cast(source.view(np.ndarray), result, name)
        return
    if result.dtype.kind not in "iuf" or isinstance(source, str | bytes):
        return
    held = np.empty(0, object)
    with contextlib.suppress(ValueError, TypeError):
        held = np.array(plain(source), object)
    if held.shape == result.shape:
        for a, b in zip(held.ravel(), result.ravel().tolist(), strict=True):
            if result.dtype.kind == "f":
                _rounds(name, a)
            elif (
                isinstance(a, numbers.Real)
                and not isinstance(a, bool | np.bool_)
                and math.isfinite(a)
                and int(a) != b
            ):
                _wraps(f"{name}:", a, b)


def _kernel(kernel, *args):
    """Run a kernel as Python in 64 bits and with Python integers, and compare."""
    if _State.mode in ("plain", "objects"):
        return kernel.py_func(*args)
    name = f"{kernel.py_func.__module__}:{kernel.py_func.__qualname__}"
    first = tuple(_machine(a) for a in args)
    second = tuple(_exactly(a) for a in args)
    outer = _State.mode
    try:
        with np.errstate(all="ignore"):
            _State.mode = "plain"
            result = kernel.py_func(*first)
            undecided = _State.undecided.get(name)
            if undecided is None or not undecided(result):
                _State.mode = "objects"
                try:
                    exact = kernel.py_func(*second)
                except OverflowError as wrong:
                    _wraps(f"kernel {name}: {wrong}", *args)
                except ZeroDivisionError as wrong:
                    _wraps(f"kernel {name}: {wrong}", *args)
                if not _same_result(result, exact):
                    _wraps(f"kernel {name}: {result!r:.200}, not {exact!r:.200}, of", *args)
                for one, two in zip(first, second, strict=True):
                    if isinstance(one, np.ndarray) and not _same(one, two):
                        _wraps(f"kernel {name}: wrote {one!r:.200}, not {two!r:.200}, of", *args)
    finally:
        _State.mode = outer
    return checked(kernels._plain(result))


def _same_result(one, two):
    if isinstance(one, tuple):
        return isinstance(two, tuple) and all(map(_same_result, one, two))
    if one is None or two is None:
        return one is two
    return _same(one, two)


def _machine(value):
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return tuple(map(_machine, value))
    if isinstance(value, bool | np.bool_):
        return value
    if isinstance(value, int | np.integer):
        return np.int64(int(value))
    return np.float64(value) if isinstance(value, float) else value


def _exactly(value):
    if isinstance(value, np.ndarray):
        array = value.view(np.ndarray)
        return array.astype(object) if array.dtype.kind in "iu" else array.copy()
    if isinstance(value, tuple):
        return tuple(map(_exactly, value))
    if isinstance(value, bool | np.bool_):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    return np.float64(value) if isinstance(value, float) else value


@contextlib.contextmanager
def checking(*, exact=False, allowed=(), undecided=None):
    """Check every integer operation of `models`.

    Parameters
    ----------
    exact : bool
        Whether a whole number that is rounded to a float is an error, too.
    allowed : iterable of (str, str)
        Modules and functions that may round.
    undecided : dict, optional
        For kernels that report that they decided nothing: by ``module:function``, whether a result says so.
        Such a result is not compared.
    """
    shim = CheckedNumPy()
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "models"
        and getattr(module, "np", None) is np
        and name != kernels.__name__
    ]
    before = _State.mode, _State.exact, _State.allowed, _State.undecided
    call = kernels.Kernel.__call__
    try:
        for module in modules:
            module.np = shim
        kernels.Kernel.__call__ = _kernel
        _State.mode, _State.exact = "checked", exact
        _State.allowed, _State.undecided = frozenset(allowed), undecided or {}
        yield shim
    finally:
        _State.mode, _State.exact, _State.allowed, _State.undecided = before
        kernels.Kernel.__call__ = call
        for module in modules:
            module.np = np
