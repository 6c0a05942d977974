"""Probe a backend: is it installed, has it a licence, and does it solve a tiny problem?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models import Isotonic
from solvers import worker
from solvers.backends.table import Backend
from solvers.solve import solve

State = Literal["works", "not installed", "no GPU", "no licence", "fails"]

SECONDS = 30.0
"""Time limit of the tiny solve; the process of a backend that exceeds it is stopped."""


@dataclass(frozen=True)
class Probe:
    """The state of a backend on this machine.

    Attributes
    ----------
    backend : Backend
    state : str
        ``works``, ``not installed``, ``no GPU``, ``no licence`` or ``fails``.
    message : str
        How to install it, or why it does not work.
    """

    backend: Backend
    state: State
    message: str = ""


def probe(backend: Backend) -> Probe:
    """Solve a problem of three variables, in the backend's own process.

    A backend is not installed if loading its module raises, ends the process, or does not end. A backend that
    cannot solve the problem fails.

    Examples
    --------
    >>> from solvers.backends.table import find
    >>> probe(find("highs")).state
    'works'
    """
    if backend.lacks:
        return Probe(backend, "no GPU", f"{backend.lacks}; {backend.install}")
    why = backend.failure
    if backend.installed and backend.name != "fast":
        _, why = worker.available(backend)
    if why or not backend.installed:
        return Probe(backend, "not installed", f"{why}; {backend.install}" if why else backend.install)
    whole = backend.integers_only or backend.network_only
    model = Isotonic([3, 1, 4], p=2 if backend.quadratic else 1, integer=whole)
    found = solve(model, backend, SECONDS, stating_counts=True)
    if found.status == "optimal" and abs(float(found.objective or 0) - 2) <= 1e-6:
        return Probe(backend, "works")
    if found.status == "size_limit" or (found.status == "unsupported" and "licence" in found.message):
        return Probe(backend, "no licence", found.message)
    if "installed" in found.message:
        found_not = f"the package {backend.needs} is there, but {backend.package} does not find the solver"
        return Probe(backend, "fails", f"{found_not}: {found.message}")
    wrong = "no answer" if found.objective is None else f"an answer that costs {found.objective}, not 2"
    return Probe(backend, "fails", f"{found.status}: {found.message or wrong}")
