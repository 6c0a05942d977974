"""Settings of ProxQP that cvxpy and qpsolvers do not hand on, such as its tolerances of infeasibility.

cvxpy hands on four of ProxQP's settings, and qpsolvers those that its function ``solve`` takes. All settings
are attributes of the solver object that both make, so they are set where it is made.
"""

from __future__ import annotations

from functools import cache
from typing import Any


def hand_on(options: dict[str, Any]) -> None:
    """Set these options in every solver of ProxQP that this process makes from now on."""
    for form, make in _forms():

        def made(*sizes: Any, _make: Any = make) -> Any:
            solver = _make(*sizes)
            _set(solver, options)
            return solver

        def solve(*given: Any, _made: Any = made, **more: Any) -> Any:
            quadratic, linear, equal, _, rows, *_ = given
            solver = _made(linear.size, *(0 if part is None else part.shape[0] for part in (equal, rows)))
            _set(solver, more)
            solver.init(quadratic, linear, *given[2:])
            solver.solve()
            return solver.results

        form.QP, form.solve = made, solve


@cache
def _forms() -> list[tuple[Any, Any]]:
    """ProxQP's dense and sparse modules, and the class of solvers of each."""
    from importlib import import_module

    proxqp = import_module("proxsuite").proxqp
    return [(form, form.QP) for form in (proxqp.dense, proxqp.sparse)]


def _set(solver: Any, options: dict[str, Any]) -> None:
    for name, value in options.items():
        setattr(solver.settings, name, value)
