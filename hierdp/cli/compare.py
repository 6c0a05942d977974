"""hierdp compare: its options are those of the mechanisms whose methods are named."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import (
    OVERWRITE,
    SEED,
    columns,
    console,
    named_mechanism,
    number,
    print_frame,
    with_mechanism,
)
from hierdp.cli.engine import spread
from hierdp.cli.forms import arguments_of, flags_of
from hierdp.cli.release import without
from hierdp.cli.sources import Input, files_read, from_tables, refuse_tables, with_public
from hierdp.mechanisms import MECHANISMS, MechanismInfo
from hierdp.mechanisms.option import Keyword

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN = "hierdp.compare"
"""Where the context has the arguments, the mechanisms and their options."""


class CompareCommand(click.Command):
    """A command whose further options depend on --methods."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the methods first."""
        ctx.meta[OWN] = list(args), _mechanisms(args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options of every comparison, then those of the mechanisms."""
        _, mechanisms = ctx.meta.get(OWN, ([], []))
        own: dict[str, click.Option] = {}
        for mechanism in mechanisms:
            for flag in flags_of(_keywords(mechanism)):
                own.setdefault(str(flag.name), flag)
        taken = {text for flag in own.values() for text in flag.opts}
        shared = [without(one, taken) for one in super().get_params(ctx)]
        return [*(one for one in shared if one.opts or one.name not in own), *own.values()]


def _mechanisms(args: Sequence[str]) -> list[MechanismInfo]:
    """The mechanisms of the methods that are named in these arguments."""
    from hierdp.experiments.compare import mechanism_of

    if (own := _value_of("--mechanism", args)) is not None:
        named_mechanism(own)
    if (named := _value_of("--methods", args)) is None:
        return []
    mechanisms = map(mechanism_of, columns(named))
    return list({mechanism.name: mechanism for mechanism in mechanisms}.values())


def _value_of(flag: str, args: Sequence[str]) -> str | None:
    """The last value of a flag."""
    value = None
    for at, text in enumerate(args):
        if text == flag and at + 1 < len(args):
            value = args[at + 1]
        elif text.startswith(f"{flag}="):
            value = text.partition("=")[2]
    return value


def _keywords(mechanism: MechanismInfo) -> Mapping[str, Keyword]:
    """The options of a mechanism but its method."""
    return {name: one for name, one in mechanism.keywords.items() if name != "method"}


METHODS = "\b\nMethods, by mechanism:\n" + "\n".join(
    f"  {name + ':':17}{', '.join(method.name for method in mechanism.methods)}"
    for name, mechanism in MECHANISMS.items()
)


@click.command(cls=CompareCommand, epilog=METHODS)
@partial(from_tables, called="DATA")
@partial(spread, there="All runs and their noise are made there: the data are public.")
@click.option("--methods", required=True, metavar="NAMES",
              help="Comma-separated methods, see below; also of several mechanisms that release the same "
                   "cells. The further options are those of `hierdp release`: --methods InfTDA,SH --help "
                   "lists them.")  # fmt: skip
@click.option("--epsilon", default="1", show_default=True, metavar="NUMBERS",
              help="Comma-separated privacy budgets: 0.1,1,10.")  # fmt: skip
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True,
              help="Runs of each method and ε.")  # fmt: skip
@SEED
@click.option("--account", type=Input(path_type=Path), metavar="FILE",
              help="The account of DATA (see `hierdp account`), if it is not beside DATA.")  # fmt: skip
@with_public
@with_mechanism
@click.option("--metric", "metrics", multiple=True, metavar="FILE.py:FUNCTION",
              help="Your own metric, a function of (released, true, public), in addition to the usual ones "
                   "(see docs/guide/evaluate.md); or by_size. Its code is run. Repeat it for "
                   "several.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("comparison"), show_default=True,
              help="Folder to create, for the report, the plot and the tables.")  # fmt: skip
@OVERWRITE
@click.option("--resume", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for finished runs until all are finished; the same command continues from there. "
                   "Default: a folder beside --out.")  # fmt: skip
@click.pass_context
def compare(
    context: click.Context, /, table: Any, *, methods: str, epsilon: str, runs: int, seed: int,
    account: Path | None, public: str | None, metrics: tuple[str, ...], out: Path, overwrite: bool,
    resume: Path | None, **given: Any,
) -> None:  # fmt: skip
    """Compare methods on DATA, which are public, with simulated noise: errors by level, and time.

    Each run is a release by the method's own code, with noise from a seed, compared with DATA. In each run,
    methods that measure the same start from the same noisy answers. Do not give the table that you are going
    to release: what you choose by its results reveals something about it that no budget covers. Data with an
    account (see `hierdp account`) are refused.

    \b
    hierdp compare commuting.parquet --methods InfTDA,TDA_L2,SH --epsilon 0.1,1,10 --runs 10 --delta 1e-8 \\
        --axis origin=o_state,o_county --axis destination=d_state,d_county --regions-from-data --count workers
    hierdp compare ages.csv --methods "H_b^c,Flat,AHP" --numbers age=0:120
    """
    from hierdp.cli.engine import report_interruption
    from hierdp.execution import folder
    from hierdp.experiments.compare import compare as compared
    from hierdp.experiments.run import metric_of
    from hierdp.privacy.budget import check_epsilon

    own = {key: metric for name in metrics for key, metric in metric_of(name).items()}
    folder.check(out, overwrite, files_read(context))
    refuse_tables(context, {**given, "public": public})
    args, mechanisms = context.meta[OWN]
    options: dict[str, Any] = {}
    for mechanism in mechanisms:
        options |= arguments_of(_keywords(mechanism), given, context.get_parameter_source)
    saved = resume or out.absolute().with_name(f".{out.absolute().name}.runs")
    started = time.monotonic()
    with report_interruption(saved):
        found = compared(
            table,
            methods=columns(methods),
            epsilon=[check_epsilon(number(text)) for text in columns(epsilon)],
            runs=runs,
            seed=seed,
            account=account,
            public=public,
            metrics=own,
            resume=saved,
            command=shlex.join(["hierdp", "compare", *args]),
            **options,
        )
    found.write(out, overwrite)
    screen = console()
    screen.print(f"Errors by level: means over {runs} runs; ± is half the 95% interval of L1")
    for level in found.levels:
        print_frame(screen, level, found.shown(level))
    print_frame(screen, "Time of noise and post-processing: medians", found.seconds)
    screen.print(f"Written to {out}/ in {time.monotonic() - started:.0f} s; open {out}/report.html.")
