"""What the manifest of a test set says about each of its problems."""

from __future__ import annotations

import csv
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
from models.arithmetic.arrays import Floats
from models.arithmetic.exact import Number
from models.programs.terms import Formulation
from models.programs.texts import Stated

MANIFEST = "manifest.json"

FORMAT = "hierdp test set 2"

EDITION = "2026.2"
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

HARD = {
    "laminar": "degenerate: many rows are tight at once, and answers tie; over the reals, sums are long",
    "laminar: a network": "many answers tie; the relaxation in squares is not whole, that by lines is",
    "laminar, absolute values": "a large face of optima: many answers cost the same",
    "laminar, Chebyshev norm": "one variable bounds all; the relaxation is not whole",
    "laminar, Monge": "assignments of sorted runs: many ties, and large counts beside small costs",
    "one sum": "squares of whole numbers under one sum: branching on them is slow, lines are not",
    "one sum, Chebyshev norm": "a large face of optima; tight tolerances meet large counts",
    "one sum, binaries": "binaries that choose which counts become positive: a weak relaxation",
    "one sum, tables; Monge where convex": "costs as tables: a binary for each value",
    "chain": "long chains of ties: every pool of equal values is degenerate",
    "chains over a tree": "its relaxation has a gap: the rows are not a network",
    "separable": "no rows at all, which some interfaces refuse; ties at every half",
    "Monge assignment": "an assignment with large counts and many ties",
    "paths in a network": "a variable for each run of bins; costs of very different sizes",
    "general rows": "rows that are not a network, with equations that depend on each other",
    "tables of all nodes over the reals": "a variance of its own for every query; dense normal equations",
    "conic: second-order cones": "weights over many orders of magnitude",
    "conic: a semidefinite matrix": "a matrix inequality, with an optimum of low rank",
}
"""What makes a problem hard, by its structure."""

FACTS = Path(__file__).with_name("facts.csv")
"""Measured facts of the problems of the small set (`python -m benchmarks facts`): the gap of the relaxation,
the condition of the rows, and reference times with solvers and versions."""


def about(problem: Problem, which: str, form: str, variables: int) -> dict[str, Any]:
    """A problem's source, form, size and structure."""
    if problem.none is not None:
        step = {
            "infeasible": "two published sums that contradict a third",
            "unbounded": "changes whose sign was kept",
        }[problem.none.status]
        source = {"paper": "", "step": step, "data": "flights, with simulated noise"}
        return {
            "name": problem.name, "model": problem.kind, "set": which, "source": source, "real data": True,
            "form": form, "structure": "no optimum", "hard": step, "variables": variables,
        }  # fmt: skip
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
        "real data": problem.origin == "real",
        "form": form,
        "structure": structure,
        "hard": HARD.get(structure, ""),
        "variables": variables,
    }


def size_of(made: Stated) -> dict[str, Any]:
    """The sizes of the `.mps`, and the least and the largest of its numbers by kind, apart from zeros."""
    sides = np.concatenate([made.least, made.most])
    bounds = np.concatenate([made.lower, made.upper])
    costs = np.concatenate([made.cost, 2 * made.square])
    kinds = {"entries": made.matrix.data, "costs": costs, "sides": sides, "bounds": bounds}
    return {
        "variables": len(made.columns),
        "whole variables": int(made.integer.sum()),
        "squares": int(np.count_nonzero(made.square)),
        "rows": len(made.rows),
        "entries": int(made.matrix.nnz),
        "ranges": {name: found for name, values in kinds.items() if (found := _range(values))},
    }


def _range(values: Floats) -> list[float]:
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return [float(sizes.min()), float(sizes.max())] if sizes.size else []


def rounded(program: Formulation) -> int:
    """How many of a program's numbers are not doubles, so that its files have the nearest ones."""
    parts: list[Any] = [part for term in program.objective for part in (term.weight, term.center)]
    parts += [table for term in program.objective for table in term.tables]
    parts += [side for rows in program.rows for side in (rows.lower, rows.upper)]
    numbers = (one for part in parts for one in np.ravel(np.asarray(part, object)).tolist())
    return sum(isinstance(one, int | Fraction) and Fraction(float(one)) != one for one in numbers)


def facts() -> dict[str, dict[str, Any]]:
    """The measured facts, by problem."""
    if not FACTS.is_file():
        return {}
    with FACTS.open(newline="", encoding="utf-8") as table:
        return {row.pop("problem"): {name: value for name, value in row.items() if value}
                for row in csv.DictReader(table)}  # fmt: skip


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
