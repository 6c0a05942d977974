"""Instances as files: a model's data, exactly, in one `.npz` that any NumPy reads."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from models.model import Model
from models.tree import Tree


def save(model: Model, path: str | Path) -> Path:
    """Write a model's data to a `.npz` file; `load` gives the same model back, to the last bit.

    Raises
    ------
    ValueError
        If the suffix is another, or the model holds something that is no data.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"an instance is a .npz file, not {path.name}")
    shapes: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for field in fields(model):  # type: ignore[arg-type]
        if field.init:  # what a model works out for itself it will again
            shapes[field.name] = _put(getattr(model, field.name), field.name, arrays)
    about = json.dumps({"model": type(model).__name__, "fields": shapes})
    arrays["about.json"] = np.array(about)
    np.savez_compressed(path, **arrays)
    return path


def load(path: str | Path) -> Model:
    """The model that `save` wrote.

    Raises
    ------
    ValueError
        If the file is not one of `save`'s.
    """
    import models

    try:
        with np.load(path, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about.json"]))
            values = {name: _get(shape, name, arrays) for name, shape in about["fields"].items()}
            made: Model = getattr(models, about["model"])(**values)
    except (KeyError, AttributeError, TypeError, EOFError, BadZipFile, json.JSONDecodeError) as failure:
        raise ValueError(f"{path} holds no instance of a model of this version: {failure}") from None
    return made


def _put(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """Store a field's arrays; returns what is needed to put it together again."""
    if value is None or isinstance(value, bool | int | float | str):
        return ["plain", value]
    if isinstance(value, Fraction):
        return ["fraction", [value.numerator, value.denominator]]
    if isinstance(value, Tree):
        return [
            "tree",
            [_put(np.asarray(part), f"{name}.{k}", arrays) for k, part in enumerate(value.levels)],
        ]
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
    if kind == "fractions":
        size, parts = inside
        values = [Fraction(int(a), int(b)) for a, b in parts]
        return np.array([v.numerator if v.denominator == 1 else v for v in values], dtype=object).reshape(
            size
        )
    parts = [_get(part, f"{name}.{k}", arrays) for k, part in enumerate(inside)]
    return Tree(parts) if kind == "tree" else tuple(parts)
