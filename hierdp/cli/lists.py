"""hierdp solvers, hierdp mechanisms: lists of what is available."""

from __future__ import annotations

import click

from hierdp.cli.common import console, grid


@click.command()
def solvers() -> None:
    """List the backends: which are installed, what each supports, and how to install the others."""

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
    screen.print("Also cvxpy:<solver> and pyomo:<solver> for all solvers that they find (gurobi, cplex, …).")


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
