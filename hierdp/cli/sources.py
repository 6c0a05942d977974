"""Options for a command's tables (files, a database, a query) and regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import columns

FILES = (".parquet", ".csv")


class Input(click.Path):
    """The type of an option that names what a command reads: usually a file, kept even with --overwrite."""


TABLE = Input(readable=False)
"""The type of options that name tables: files, or tables of the database."""


def from_tables(command: Callable[..., Any], called: str = "TABLE") -> Callable[..., Any]:
    """Add TABLE, --database and --query; `table` and all options of type `TABLE` are passed on as sources.

    - called: what help calls the table.
    """

    @click.argument("table", required=False, type=TABLE, metavar=f"[{called}]")
    @click.option("--database", type=Input(readable=False), metavar="URL",
                  envvar="HIERDP_DATABASE", show_envvar=True,
                  help="Database of the tables named, but for those that end in .parquet or .csv: a DuckDB "
                       "file, or postgresql://user@host/name. Keep a password out of it: PostgreSQL reads "
                       "PGPASSWORD or ~/.pgpass.")  # fmt: skip
    @click.option("--sql", "--query", "query", metavar="SQL",
                  help=f"In place of {called}: the rows of this SELECT, run by the database, else by DuckDB "
                      "over files: \"SELECT * FROM 'trips/*.parquet' WHERE y = 2013\".")  # fmt: skip
    @wraps(command)
    def sourced(table: str | None, database: str | None, query: str | None, **given: Any) -> Any:
        from hierdp.tables import Database

        if (table is None) == (query is None):
            raise click.UsageError(f"no table: give {called}, the name of a file or table, or --sql SQL")
        if query is not None:
            source: Any = Database(database or "", query=query)
        else:
            source = _named(str(table), database)
        for option in click.get_current_context().command.params:
            name = str(option.name)
            if option.type is TABLE and given.get(name) is not None:
                given[name] = _named(given[name], database)
        return command(table=source, **given)

    return sourced


PUBLIC = click.Option(["--public"], metavar="REASON", help="Read tables although an account lies beside "
                      "them, without charging it: why they are public.")  # fmt: skip
"""The option of every command that reads tables without charging an account."""


def with_public(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `PUBLIC`."""
    return click.option("--public", metavar=PUBLIC.metavar, help=PUBLIC.help)(command)


def refuse_tables(context: click.Context, given: Mapping[str, Any]) -> None:
    """Refuse tables that have an account, of all options that name tables, unless --public says why."""
    from hierdp.privacy.account import refuse_protected

    for one in context.command.get_params(context):
        if one.type is TABLE and isinstance(one, click.Option) and not one.hidden:
            refuse_protected(given.get(str(one.name)), given["public"])


def files_read(context: click.Context) -> list[Path]:
    """The files that a command was given to read: a folder that holds one is not replaced."""
    inputs = (one.name for one in context.command.params if isinstance(one.type, Input))
    named = [context.params.get(str(name)) for name in inputs]
    return [Path(name) for name in named if name and "://" not in str(name) and Path(name).exists()]


def _named(name: str, database: str | None) -> Any:
    """A file, or a table of the database."""
    if "://" in name:
        raise click.UsageError("give the database's URL with --database, and the table's name as TABLE")
    if database is None or name.lower().endswith(FILES):
        return Path(name)
    from hierdp.tables import Database

    return Database(database, table=name)


def region_flags() -> list[click.Option]:
    """The options for a table of all regions, in one of several forms."""
    from hierdp.mechanisms.shared_options import ALL_REGIONS

    return [
        click.Option(["--regions"], type=TABLE, metavar="TABLE",
                     help=f"{ALL_REGIONS} One of the next three flags says how to read TABLE; an .hrc file "
                          "(of τ-ARGUS) needs none. Without a list, give --regions-from-data."),
        click.Option(["--region-levels"], metavar="COLUMNS",
                     help="With --regions: a column for each level, from coarse to fine, such as "
                          "state,county."),
        click.Option(["--region-parents"], metavar="CHILD,PARENT[,LEVEL]",
                     help="With --regions: columns of a table with one row per region: its name, its parent "
                         "(empty at the top), and optionally the name of its level."),
        click.Option(["--region-codes"], metavar="COLUMN",
                     help="With --regions and --prefixes: the column of codes of the finest regions."),
        click.Option(["--prefixes"], metavar="NAME=LENGTH,…",
                     help="Levels by prefixes of a code, from coarse to fine: state=2,county=5 for codes "
                          "such as 06037. Without --regions, for the codes in the data."),
    ]  # fmt: skip


def regions(given: Mapping[str, Any], root: str) -> Any:
    """Read the hierarchy in the table --regions."""
    from hierdp.tables import read_hrc, read_parents, read_regions

    ways = [name for name in ("region_levels", "region_parents", "region_codes") if given[name]]
    if not ways and str(given["regions"]).lower().endswith(".hrc"):
        return read_hrc(given["regions"], root)
    if len(ways) != 1:
        raise click.UsageError(
            "with --regions, name its columns by --region-levels, --region-parents or --region-codes"
        )
    if given["prefixes"] and not given["region_codes"]:
        raise click.UsageError("with --regions, --prefixes needs --region-codes")
    if given["region_levels"]:
        return read_regions(given["regions"], columns(given["region_levels"]), root)
    if given["region_codes"]:
        if not given["prefixes"]:
            raise click.UsageError("--region-codes needs --prefixes, such as state=2,county=5")
        return read_regions(given["regions"], levels_of(given, [given["region_codes"]]), root)
    named = columns(given["region_parents"])
    if len(named) not in (2, 3):
        raise click.UsageError(
            "--region-parents needs two or three columns: CHILD,PARENT or CHILD,PARENT,LEVEL"
        )
    child, parent, level = (*named, None)[:3]
    return read_parents(given["regions"], str(child), str(parent), level, root=root)


def levels_of(given: Mapping[str, Any], named: Sequence[str]) -> Sequence[str]:
    """The levels in the data: one column for each, or, with --prefixes, one column of codes."""
    from hierdp.tables import Prefixes

    if not given["prefixes"]:
        return named
    if len(named) != 1:
        raise click.UsageError("with --prefixes, name one column, with the codes of the finest regions")
    lengths: dict[str, int] = {}
    for part in columns(given["prefixes"]):
        name, _, length = part.partition("=")
        if not name or not length.isdigit() or name in lengths:
            raise click.UsageError(
                f"--prefixes {given['prefixes']}: write NAME=LENGTH, such as state=2,county=5"
            )
        lengths[name] = int(length)
    return Prefixes(named[0], lengths)


def hierarchy_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The regions of a table with one hierarchy, from its own columns or from --regions."""
    if given["levels"] is None:
        raise click.UsageError("no regions: name their columns by --levels, from coarse to fine")
    named = columns(given["levels"])
    if given["regions"] is None:
        for option in ("region_levels", "region_parents", "region_codes"):
            if given[option]:
                raise click.UsageError(
                    f"--{option.replace('_', '-')} says how to read --regions; give --regions as well"
                )
        levels = levels_of(given, named)
        return {"levels": levels, "regions": None, "region": None, "root": given["root"]}
    if len(named) != 1:
        raise click.UsageError(
            f"--levels {given['levels']}: with --regions, name one column, of the finest regions"
        )
    return {"levels": None, "regions": regions(given, given["root"]), "region": named[0], "root": None}
