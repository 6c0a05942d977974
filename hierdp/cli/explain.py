"""hierdp explain."""

from __future__ import annotations

from pathlib import Path

import click

from hierdp.cli.common import printing, visible, with_limit, with_mechanism


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@with_limit
@with_mechanism
def explain(release: Path, limit: int | None) -> None:
    """Say on one page, for the person who signs, what RELEASE promises.

    Who is protected, and against whom; what an attacker can conclude at most; what is outside the promise
    (invariants, public lists, thresholds); what was spent, and on which account; and what was not checked. It
    reads the manifest in RELEASE only, and also explains what `hierdp repair` wrote. Exit status 1 if the
    ledger contradicts its budget. To check a release, see `hierdp check`.

    \b
    hierdp explain released
    """
    from hierdp.publication.explanation import explain as explained

    found = explained(release, limit)
    with printing():
        click.echo(visible(str(found)))
    if not found.sound:
        raise click.exceptions.Exit(1)
