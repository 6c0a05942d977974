"""A cross-verification of models × sizes × backends, and the instances on which it fails."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import models as floor
from hierdp.verification.table import Verification
from models import Model
from models.instances import load, save

SIZES = (1, 6, 30, 300, 10_000, 1_000_000)
"""Cells of an instance, from tiny to huge."""

EXACT_UP_TO = 300
"""Instances with more cells are checked by certificates only: most exact backends would reach their time
limits."""

Named = list[tuple[str, Any]]


def kinds() -> dict[str, Any]:
    """The models, by name."""
    made = {name: getattr(floor, name) for name in floor.__all__}
    return {name: kind for name, kind in made.items() if hasattr(kind, "certificate") and kind is not Model}


def instances(names: Sequence[str], sizes: Sequence[int], number: int, seed: int) -> Named:
    """Random instances of the named models, or of all; each name says how to draw the instance.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    known = kinds()
    for name in names:
        if name not in known:
            lower = {one.lower(): one for one in known}
            near = difflib.get_close_matches(name.lower(), lower, 1)
            hint = f" Did you mean {lower[near[0]]}?" if near else ""
            raise ValueError(f"no model {name}.{hint} The models are {', '.join(known)}")
    drawn: Named = []
    for name in names or known:
        most = getattr(known[name], "random_up_to", max(sizes, default=0))
        for size in sorted({min(size, most) for size in sizes}):
            for i in range(number):
                rng = np.random.default_rng([seed, size, i])
                drawn.append((f"seed {seed}, size {size}, {i}", known[name].random(rng, size)))
    return drawn


def saved(paths: Sequence[Path]) -> Named:
    """Read instances from files.

    Raises
    ------
    ValueError
        If a file does not contain an instance.
    """
    for path in paths:
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
    return [(path.name, load(path)) for path in paths]


def keep_disagreements(found: Verification, named: Named, folder: Path) -> list[Path]:
    """Save every instance with a wrong answer, or one that is not proved; return the files."""
    wrong = {(row.step, row.model.removesuffix(" (relaxed)")) for row in found.disagreements}
    kept = []
    for name, model in named:
        if (name, type(model).__name__) in wrong:
            folder.mkdir(parents=True, exist_ok=True)
            plain = "".join(c if c.isalnum() else "-" for c in name.removesuffix(".npz")).replace("--", "-")
            kept.append(save(model, folder / f"{type(model).__name__}-{plain}.npz"))
    return kept
