"""What the manifest of a test set says about each of its problems."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.bench.problems import INSTANCES, Problem
from hierdp.errors import InputError
from hierdp.execution import folder as folders
from models.arithmetic.exact import Number
from models.programs.program import Program
from models.programs.terms import Formulation

MANIFEST = "manifest.json"

FORMAT = "hierdp test set 1"

EDITION = "2026.1"
"""Changes whenever the same command writes other problems."""

KUO, FIORETTO = "Kuo et al. 2018", "Fioretto & Van Hentenryck 2019"
QARDAJI, BONINSEGNA = "Qardaji, Yang & Li 2013", "Boninsegna & Silvestri 2025"
ABOWD, BEYOND = "Abowd et al. 2022", "beyond the papers"

STEPS: dict[str, tuple[str, str, str]] = {
    "BlockInference": ("Cumings-Menon & Zhuravlev 2024", "tables of all nodes over the reals", "laminar"),
    "BudgetSplit": (QARDAJI, "§3.5, Eq. 5, the split of the budget", "conic: second-order cones"),
    "Chebyshev": (BONINSEGNA, "Eq. 6, a family's counts in InfTDA", "one sum, Chebyshev norm"),
    "Clustering": ("Zhang et al. 2014", "Theorem 4.2, the clusters of AHP", "paths in a network"),
    "ConstrainedInference": (QARDAJI, "§3.3, constrained inference", "laminar"),
    "ControlledRounding": (BONINSEGNA, "stage 2 of TopDown, the rounding", "one sum, binaries"),
    "CostTable": (FIORETTO, "Fig. 5, an entry of a cost table", "one sum, tables; Monge where convex"),
    "CumulativeQIP": (FIORETTO, "Fig. 7, M_c", "chains over a tree"),
    "FixedSum": (BONINSEGNA, "what Eq. 6 is compared with: other norms", "one sum"),
    "GroupMatching": (KUO, "§5.2, the matching of groups", "Monge assignment"),
    "HierarchyQIP": (FIORETTO, "Fig. 3, M_H", "laminar: a network"),
    "Isotonic": (KUO, "§4.2 and §4.3, Hg and Hc", "chain"),
    "JointTables": (ABOWD, "TopDown's levels in one problem", "general rows"),
    "Merging": (KUO, "§5.3, Eq. 5, the average of two estimates", "separable"),
    "NonNegativeInference": (QARDAJI, "§3.3 with counts of at least 0", "laminar: a network"),
    "Segmentation": ("Jagadish et al. 1998", "v-optimal histograms", "paths in a network"),
    "SimplexQP": (KUO, "§4.1, the naive histogram", "one sum"),
    "SparsestChebyshev": (BEYOND, "§4.2 of Boninsegna & Silvestri 2025, exactly", "one sum, binaries"),
    "StrategySDP": (QARDAJI, "§4.1, the matrix mechanism's strategy", "conic: a semidefinite matrix"),
    "TreeAbsolute": (BEYOND, "least absolute changes over a tree", "laminar, absolute values"),
    "TreeChebyshev": (BEYOND, "InfTDA of a whole tree", "laminar, Chebyshev norm"),
    "TreeMatching": (BEYOND, "the matchings of a whole tree", "laminar, Monge"),
    "WorkloadLeastSquares": (ABOWD, "step 1 of TopDown, histograms", "general rows"),
    "WorkloadRounding": (ABOWD, "step 2 of TopDown, controlled rounding", "general rows"),
}
"""By model: the paper, its step, and the structure. Other models have their first line as the step."""

SHOWN = 5
"""How many of a problem's rounded numbers the manifest names."""


def about(problem: Problem, which: str, form: str, variables: int) -> dict[str, Any]:
    """A problem's source, form, size and structure."""
    name = type(problem.model).__name__
    first = (type(problem.model).__doc__ or "").partition("\n")[0]
    paper, step, structure = STEPS.get(name, ("", first, ""))
    if problem.origin == "real":
        data = f"{problem.name.partition(f'-{name}')[0]}, with simulated noise"
    elif problem.origin == "ladder":
        data = f"random, by {name}.typical; one of each size"
    else:
        data = f"random, by {name}.random; at most {INSTANCES} of each size"
    return {
        "name": problem.name,
        "model": problem.kind,
        "set": which,
        "source": {"paper": paper, "step": step, "data": data},
        "form": form,
        "structure": structure,
        "variables": variables,
    }


def size_of(program: Program) -> dict[str, int]:
    """The numbers of variables, rows and entries."""
    return {
        "variables": program.size,
        "whole variables": int(program.integer.sum()),
        "rows": int(program.matrix.shape[0]),
        "entries": int(program.matrix.nnz),
    }


def rounded(program: Formulation) -> list[str]:
    """The numbers of a written program that 15 significant digits do not hold, by place.

    Files of linear programs have 15 digits; readers of those files get the numbers after ``=``.
    """
    bend, slope, constant = program.expanded()
    names, rows = program.variable_names(), program.row_names()
    entry = program.matrix.tocoo()
    lower, upper = program.bounds
    row_lower, row_upper = program.row_bounds
    places: list[tuple[Any, Any]] = [
        (2 * bend, lambda i: f"the square of {names[i]}"),
        (slope, lambda i: f"the cost of {names[i]}"),
        (np.array([constant]), lambda _: "the constant"),
        (lower, lambda i: f"the lower bound of {names[i]}"),
        (upper, lambda i: f"the upper bound of {names[i]}"),
        (row_lower, lambda i: f"the lower side of {rows[i]}"),
        (row_upper, lambda i: f"the upper side of {rows[i]}"),
        (entry.data, lambda k: f"{rows[entry.row[k]]} at {names[entry.col[k]]}"),
    ]
    found = []
    for values, place in places:
        many = np.asarray(values, float)
        for i in np.flatnonzero(
            np.isfinite(many) & (many != np.rint(many)) | (np.abs(many) >= 1e15)
        ).tolist():
            value = float(many[i])
            if np.isfinite(value) and float(f"{value:.15g}") != value:
                found.append(f"{place(i)}: {value!r} = {value:.15g}")
    return found


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def exactly(value: Number | None) -> str | None:
    """A number as text: a whole number or fraction in full, a float with all its digits."""
    if value is None:
        return None
    return repr(value) if isinstance(value, float) else str(Fraction(value))


def write(folder: Path, which: str, problems: Iterable[dict[str, Any]]) -> Path:
    """Write the manifest of a set."""
    from importlib import metadata

    text = {
        "format": FORMAT,
        "edition": EDITION,
        "set": which,
        "hierdp": metadata.version("hierdp"),
        "problems": list(problems),
    }
    with folders.file_appearing(folder / MANIFEST) as aside:
        aside.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder / MANIFEST


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a written set.

    Raises
    ------
    InputError
        If there is none, or it is not one of a test set.
    """
    path = folder / MANIFEST
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} has no {MANIFEST}: write a test set there first, by `hierdp bench write`"
        ) from None
    except (OSError, ValueError) as failure:
        raise InputError(f"{path} cannot be read: {failure}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path} is not the manifest of a test set of this version ({FORMAT})")
    return found
