"""hierdp solvers, hierdp mechanisms: what there is."""

from __future__ import annotations

import click

from hierdp.cli.common import console, grid


@click.command()
def solvers() -> None:
    """The backends: which are installed, what each takes natively, how to get the others."""

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
    screen.print("And cvxpy:<solver>, pyomo:<solver> for all that they find (gurobi, cplex, mosek, cbc, …).")


@click.command()
def mechanisms() -> None:
    """The mechanisms: what each releases, and what it protects."""
    from hierdp.mechanisms import MECHANISMS

    heads = ("name", "hierdp release …", "releases", "guarantee", "neighbouring tables", "models", "paper")
    table = grid("Mechanisms", *heads)
    for m in MECHANISMS:
        table.add_row(m.name, m.command, m.releases, m.guarantee, m.neighbours, m.models, m.paper)
    console().print(table)
