"""Instances as files: a model's exact data in one `.npz` that NumPy alone can read."""

from __future__ import annotations

import json
import sys
from dataclasses import Field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import scipy

from models.arithmetic.arrays import Array
from models.certificate import Witness
from models.model import Model
from models.programs.terms import Block, Rows, Term
from models.tree import Tree
from models.workload import Workload

ABOUT = "about.json"
ANSWER = "answer of the model"
WITNESS = "witness of the answer"
"""Names under which an answer and its witness are stored. No field of a model has spaces in its name."""

PAIRS = 8
"""From this number of pairs of vectors on (a node's children's runs, for example), three arrays hold all of
them: NumPy takes a tenth of a millisecond or more to read an array."""


_PARTS: dict[str, Any] = {part.__name__: part for part in (Block, Rows, Term)}


class Instance(NamedTuple):
    """A stored model, with its answer and the witness that proves it if they were stored.

    - witness: None if the answer needs none.
    """

    model: Model
    answer: Array | None
    witness: Witness | None


_BROKEN = (KeyError, IndexError, AttributeError, TypeError, EOFError, BadZipFile, ZeroDivisionError,
           OverflowError, json.JSONDecodeError)  # fmt: skip
"""What reading a file raises that `save` did not write, beside ValueError."""


class UnknownModel(ValueError):
    """The model is not in the package `models`. (A file must not choose which code runs.)"""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no model {name!r} in the package models")
        self.name = name


def save(model: Model, path: str | Path, answer: Any = None, witness: Witness | None = None) -> Path:
    """Write a model's data to a `.npz` file; `load` gives the same model back, to the last bit.

    With an answer and its witness, the file holds them, too; `load_instance` reads all three.

    Raises
    ------
    ValueError
        If the suffix is not `.npz`, or the model holds something that is not data.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"an instance is a .npz file, not {path.name}")
    np.savez_compressed(path, **packed(model, answer, witness))
    return path


def packed(model: Model, answer: Any = None, witness: Witness | None = None) -> dict[str, Any]:
    """A model's data, an answer and its witness as arrays by name, which NumPy saves without pickling.

    Integers of a witness are stored in the narrowest type that holds them all.

    Raises `ValueError` if the model or the witness holds something that is not data.
    """
    shapes: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    data: Any = model
    for field in fields(data):
        if field.init and not _is_later(field, data):  # the others are computed from these
            shapes[field.name] = _put(getattr(model, field.name), field.name, arrays)
    about: dict[str, Any] = {"model": type(model).__name__, "fields": shapes}
    if answer is not None:
        about |= _put_answer(np.asarray(answer), witness, arrays)
    arrays[ABOUT] = np.array(json.dumps(about))
    return arrays


def _is_later(field: Field[Any], held: Any) -> bool:
    """Whether files do not have a field, as it is None."""
    return "later" in field.metadata and getattr(held, field.name) is None


def packed_answer(answer: Any, witness: Witness | None = None) -> dict[str, Any]:
    """An answer and its witness as arrays by name, without the model; see `packed`.

    Integers of the answer are narrowed, too. (In `packed` that would change the files of released instances.)

    Raises `ValueError` if the witness holds something that is not data.
    """
    arrays: dict[str, Any] = {}
    arrays[ABOUT] = np.array(json.dumps(_put_answer(_narrowed(np.asarray(answer)), witness, arrays)))
    return arrays


def _put_answer(answer: Array, witness: Witness | None, arrays: dict[str, Any]) -> dict[str, Any]:
    parts = {name: _narrowed(part) for name, part in (witness or {}).items()}
    return {
        "answer": _put(answer, ANSWER, arrays),
        "witness": {name: _put(part, f"{WITNESS}.{name}", arrays) for name, part in parts.items()},
    }


def _narrowed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_narrowed(part) for part in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or not value.size:
        return value
    low, high = int(value.min()), int(value.max())
    sign = "i" if low < 0 else "u"
    sizes = (np.dtype(f"{sign}{size}") for size in (1, 2, 4))
    fit = (kind for kind in sizes if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    smallest = next(fit, value.dtype)  # not unsigned with 64 bits: `_widened` could not tell what it was
    return value.astype(smallest, copy=False)


def _widened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_widened(part) for part in value)
    narrow = isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype != np.uint64
    return value.astype(np.int64, copy=False) if narrow else value


def load(path: str | Path) -> Model:
    """The model that `save` wrote.

    Raises
    ------
    ValueError
        If `save` did not write the file.
    """
    return load_instance(path).model


def load_instance(path: str | Path) -> Instance:
    """The model that `save` wrote, with its answer and witness if the file holds them.

    Raises `ValueError` if `save` did not write the file.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return unpacked(arrays)
    except (TypeError, EOFError, BadZipFile, ValueError) as failure:
        raise ValueError(f"{path} holds no instance of a model of this version: {failure}") from None


def unpacked(arrays: Any) -> Instance:
    """The inverse of `packed`.

    Raises `ValueError` if `packed` did not make these arrays.
    """
    import models

    try:
        about = json.loads(str(arrays[ABOUT]))
        values = {name: _get(shape, name, arrays) for name, shape in about["fields"].items()}
        if about["model"] not in models.__all__:
            raise UnknownModel(about["model"])
        made: Model = getattr(models, about["model"])(**values)
        return Instance(made, *_answer_of(about, arrays))
    except _BROKEN as failure:
        raise ValueError(f"no instance of a model of this version: {failure}") from None


def unpacked_answer(arrays: Any) -> tuple[Array | None, Witness | None]:
    """What `packed_answer` or `packed` stored: answer and witness, as in `Instance`.

    Raises `ValueError` if neither made these arrays.
    """
    try:
        return _answer_of(json.loads(str(arrays[ABOUT])), arrays)
    except _BROKEN as failure:
        raise ValueError(f"no answer of this version: {failure}") from None


def _answer_of(about: Any, arrays: Any) -> tuple[Array | None, Witness | None]:
    if "answer" not in about:
        return None, None
    if "witness" not in about:
        raise ValueError("the answer has no witness")
    shapes = dict(about["witness"])
    witness = {name: _widened(_get(shape, f"{WITNESS}.{name}", arrays)) for name, shape in shapes.items()}
    return _widened(_get(about["answer"], ANSWER, arrays)), witness or None


def _put(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Store a field's arrays; returns the description from which `_get` restores it."""
    if value is None or isinstance(value, bool | int | float | str):
        return ["plain", value]
    if isinstance(value, Fraction):
        return ["fraction", [value.numerator, value.denominator]]
    if isinstance(value, Tree):
        return [
            "tree",
            [_put(np.asarray(part), f"{name}.{k}", arrays) for k, part in enumerate(value.levels)],
        ]
    if isinstance(value, Workload):
        return [
            "workload",
            [_put(part, f"{name}.{k}", arrays) for k, part in enumerate((value.shape, value.queries))],
        ]
    if isinstance(value, Block | Rows | Term):
        held = {f.name: getattr(value, f.name) for f in fields(value) if f.init and not _is_later(f, value)}
        return [
            type(value).__name__,
            {part: _put(one, f"{name}.{part}", arrays) for part, one in held.items()},
        ]
    if "scipy.sparse" in sys.modules and scipy.sparse.issparse(value):  # it takes long to load
        matrix = scipy.sparse.csr_matrix(value)
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{part}"] = getattr(matrix, part)
        return ["sparse", list(matrix.shape)]
    if _are_pairs(value):
        arrays[f"{name}.lengths"] = np.array([first.size for first, _ in value])
        for k in range(2):
            arrays[f"{name}.{k}"] = np.concatenate([pair[k] for pair in value])
        return ["pairs", None]
    if isinstance(value, tuple | list):
        return ["tuple", [_put(part, f"{name}.{k}", arrays) for k, part in enumerate(value)]]
    if isinstance(value, np.ndarray) and value.dtype == object:
        parts = [[Fraction(v).numerator, Fraction(v).denominator] for v in value.ravel().tolist()]
        return ["fractions", [list(value.shape), [[str(a), str(b)] for a, b in parts]]]
    if isinstance(value, np.ndarray | np.generic):
        arrays[name] = np.asarray(value)
        return ["array", None]
    raise ValueError(f"{name} is a {type(value).__name__}: it cannot be saved as data")


def _get(shape: Any, name: str, arrays: Any) -> Any:
    kind, inside = shape
    if kind == "plain":
        return inside
    if kind == "fraction":
        return Fraction(*inside)
    if kind == "array":
        return arrays[name]
    if kind in _PARTS:
        return _PARTS[kind](**{part: _get(one, f"{name}.{part}", arrays) for part, one in inside.items()})
    if kind == "sparse":
        held = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_matrix(held, tuple(inside))
        matrix.check_format()  # in full: SciPy trusts its indices from then on
        return matrix
    if kind == "pairs":
        return _pairs(*(arrays[f"{name}.{part}"] for part in ("lengths", 0, 1)))
    if kind == "fractions":
        size, parts = inside
        values = [Fraction(int(a), int(b)) for a, b in parts]
        return np.array([v.numerator if v.denominator == 1 else v for v in values], dtype=object).reshape(
            size
        )
    parts = [_get(part, f"{name}.{k}", arrays) for k, part in enumerate(inside)]
    if kind == "workload":
        return Workload(*parts)
    return Tree(parts) if kind == "tree" else tuple(parts)


def _are_pairs(value: Any) -> bool:
    """Whether a value is some pairs of equally long vectors of int64: three arrays hold them all."""
    return (
        isinstance(value, tuple)
        and len(value) >= PAIRS
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
        and all(isinstance(part, np.ndarray) and part.dtype == np.int64 for pair in value for part in pair)
        and all(first.ndim == 1 and first.shape == second.shape for first, second in value)
    )


def _pairs(lengths: Any, first: Any, second: Any) -> tuple[tuple[Any, Any], ...]:
    ends = np.cumsum(lengths).tolist()
    whole = lengths.dtype == np.int64 and lengths.ndim == first.ndim == second.ndim == 1
    if not whole or not lengths.size or lengths.min() < 0 or not ends[-1] == first.size == second.size:
        raise ValueError("the lengths of pairs do not fit their arrays")
    return tuple((first[a:b], second[a:b]) for a, b in zip([0, *ends], ends, strict=False))
