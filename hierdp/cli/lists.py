"""hierdp solvers, hierdp mechanisms: lists of what is available."""

from __future__ import annotations

import click

from hierdp.cli.common import console, grid


@click.command()
@click.option("--probe", "probing", is_flag=True,
              help="Solve a tiny problem with each, also through cvxpy, Pyomo and qpsolvers.")  # fmt: skip
def solvers(probing: bool) -> None:
    """List the backends: which are installed, what each supports, and how to install the others.

    With --probe: which of them work here, and which lack a licence. Each runs in a process of its own, so one
    that dies or hangs is listed with the cause.
    """
    if probing:
        _probe()
        return
    from solvers import backends
    from solvers.backends.table import LEGEND

    table = grid("Backends", "name", "library", "version", "licence", *backends()[0].takes, "note")
    for backend in backends():
        note = "hierdp's own, proved by certificates" if backend.name == "fast" else ""
        if not backend.installed:
            note = f"not installed: {backend.install}"
        table.add_row(backend.name, backend.library, backend.version or "-", backend.licence,
                      *backend.takes.values(), note)  # fmt: skip
    screen = console()
    screen.print(table)
    screen.print(LEGEND)
    screen.print(
        "Also cvxpy:<solver>, pyomo:<solver> and qpsolvers:<solver> for all solvers that they find (gurobi, "
        "cplex, piqp, …); hierdp solvers --probe lists those that work."
    )


def _probe() -> None:
    from solvers.backends.table import reachable
    from solvers.probe import probe

    table = grid("Backends on this machine", "name", "version", "solver", "state", "message")
    counted: dict[str, int] = {}
    for backend in reachable():
        found = probe(backend)
        counted[found.state] = counted.get(found.state, 0) + 1
        table.add_row(backend.name, backend.version or "-", backend.behind or "-", found.state, found.message)
    screen = console()
    screen.print(table)
    screen.print(", ".join(f"{number} {state}" for state, number in counted.items()))


@click.command()
def mechanisms() -> None:
    """List the mechanisms: what each releases, what it protects, and its methods."""
    from hierdp.mechanisms import MECHANISMS

    screen = console()
    for mechanism in MECHANISMS.values():
        screen.print(f"hierdp release {mechanism.name}: {mechanism.releases}", style="bold")
        screen.print(f"{mechanism.guarantee}. Neighbouring tables: {mechanism.neighbours}.")
        table = grid("", "--method", "models", "source")
        table.title = None
        for method in mechanism.methods:
            other = f"; {method.guarantee}" if method.guarantee else ""
            table.add_row(method.name, method.models + other, method.source)
        screen.print(table)
        screen.print()
