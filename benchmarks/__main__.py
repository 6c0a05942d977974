"""Run a benchmark: ``python -m benchmarks NAME [options]``; without a name, list them.

A benchmark is a module with a function `run` that yields rows, which are printed, or tables of many rows,
which are not. Its parameters are the options. The module may also have

- ``summary(rows)``: what the rows show, as a table or as tables by title, printed at the end;
- ``draw(rows, folder)``: pictures of the rows;
- ``KEY``: the columns that identify a row. The table grows: `run` gets the ``known`` rows, and adds others.

Nothing is written but to files and folders that an option names.

Every row of a file has the machine, its load, and the versions of Python and of the packages. Memory is in MB
(10⁶ bytes), time in seconds, by the clock or of the processor (CPU, user and system).
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from benchmarks.measuring import header, place

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Each benchmark's name, and the first line of its module's docstring."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(part, ast.FunctionDef) and part.name == "run" for part in module.body):
            parts = path.relative_to(FOLDER).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            found[name] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found


def options(name: str, module: Any) -> argparse.ArgumentParser:
    """A parser of a benchmark's options, made from the parameters of its `run`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for one in inspect.signature(module.run, eval_str=True).parameters.values():
        if one.name != "known":
            kind, words = _annotated(one.annotation)
            _add(parser, f"--{one.name.replace('_', '-')}", kind, one.default, words)
    parser.add_argument(
        "--out", type=Path, help="a Parquet file for the rows, which are only printed otherwise"
    )
    parser.add_argument("--minutes", type=float, help="begin no row after so many")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="summarize a file's rows, measure nothing"
    )
    if hasattr(module, "draw"):
        parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the rows")
    return parser


def _annotated(annotation: Any) -> tuple[Any, str]:
    """A parameter's type, without None, and its help."""
    words = ""
    if hasattr(annotation, "__metadata__"):
        annotation, words = annotation.__origin__, annotation.__metadata__[0]
    if type(None) in get_args(annotation):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    return annotation, words


def _add(parser: argparse.ArgumentParser, option: str, kind: Any, default: Any, words: str) -> None:
    if kind is bool:
        parser.add_argument(option, action="store_true", help=words)
        return
    needed = default is inspect.Parameter.empty
    if get_origin(kind) is tuple:
        (each, _), shown = get_args(kind), "" if needed or default is None else ",".join(map(str, default))

        def parse(text: str) -> Any:
            return tuple(each(part.strip()) for part in text.split(",") if part.strip())

        parse.__name__ = "list, separated by commas"
    else:
        shown, parse = "" if needed or default is None else f"{default}", kind
    words += f" (default: {shown})" * bool(shown)
    more = {"required": True} if needed else {"default": default}
    parser.add_argument(option, type=parse, help=words.replace("%", "%%"), metavar="X", **more)


class Screen:
    """Prints rows as a table in Markdown, with new heads whenever the columns change."""

    def __init__(self) -> None:
        self._heads: list[str] = []
        self._widths: list[int] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Print a row."""
        cells = [shown(value) for value in row.values()]
        if list(row) != self._heads:
            print() if self._heads else print(f"{header()}\n")
            self._heads = list(row)
            self._widths = [max(len(head), len(cell), 8) for head, cell in zip(row, cells, strict=True)]
            self._print(self._heads)
            print("|" + "|".join("-" * (width + 2) for width in self._widths) + "|")
        self._print(cells)

    def _print(self, cells: Sequence[str]) -> None:
        padded = (cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True))
        print("| " + " | ".join(padded) + " |", flush=True)


def shown(value: Any) -> str:
    """A value as a cell: four digits of a float, nothing for a missing value."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def measured(module: Any, given: Mapping[str, Any], out: Path | None, minutes: float | None) -> DataFrame:
    """Run a benchmark, print its rows, and keep them in a file; returns all rows, those kept before first."""
    import pandas as pd

    from hierdp.execution import store

    key, screen, rows = getattr(module, "KEY", None), Screen(), []
    growing = store.growing(out, key, key) if key and out else nullcontext()
    with growing as kept:
        known = kept.known if kept else pd.DataFrame(columns=key)
        more = {"known": known} if key else {}
        for found in within(module.run(**given, **more), minutes):
            if isinstance(found, dict):
                screen.add(found)
            for row in [found] if isinstance(found, dict) else found.to_dict("records"):
                rows.append({**row, **place()})
                if kept:
                    kept.add(rows[-1])
    new = pd.DataFrame(rows)
    if key:
        return new if known.empty else pd.concat([known, new], ignore_index=True)
    if out:
        new.to_parquet(out, index=False)
    return new


def within(rows: Iterator[Any], minutes: float | None) -> Iterator[Any]:
    """Rows until the time is up."""
    until = None if minutes is None else time.monotonic() + 60 * minutes
    for row in rows:
        yield row
        if until is not None and time.monotonic() > until:
            print(f"stopped after {minutes:g} minutes")
            return


def summarize(module: Any, rows: DataFrame) -> None:
    """Print what the rows show; of a benchmark without a summary, the rows."""
    from hierdp.experiments.study import table_lines

    found = module.summary(rows) if hasattr(module, "summary") else rows
    for title, table in found.items() if isinstance(found, dict) else [("", found)]:
        print(f"\n{title}\n" if title else "")
        print(table if isinstance(table, str) else "\n".join(table_lines(table)))


def main(arguments: Sequence[str]) -> None:
    """Run what the arguments say."""
    listed = benchmarks()
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, listed))
        print("python -m benchmarks NAME [options]; --help after a name lists its options\n")
        print("\n".join(f"{name:<{width}}  {line}" for name, line in listed.items()))
        return
    name, *rest = arguments
    if name not in listed:
        near = difflib.get_close_matches(name, listed, 1)
        meant = f"Did you mean {near[0]}?" if near else "python -m benchmarks lists all."
        raise SystemExit(f"There is no benchmark {name!r}. {meant}")

    from hierdp.errors import InputError

    try:
        perform(name, rest)
    except InputError as failure:
        raise SystemExit(f"Error: {failure}") from None
    except ModuleNotFoundError as failure:
        raise SystemExit(f"Error: {failure}; python -m benchmarks {name} --help says what it needs") from None


def perform(name: str, arguments: Sequence[str]) -> None:
    """Run a benchmark, or report its rows."""
    from hierdp.errors import InputError

    module = import_module(f"benchmarks.{name}")
    given = vars(options(name, module).parse_args(arguments))
    out, minutes, report, plots = (given.pop(one, None) for one in ("out", "minutes", "report", "plots"))
    if report:
        import pandas as pd

        if not report.is_file():
            raise InputError(f"there is no file {report}: give one that --out has written")
        rows = pd.read_parquet(report)
    else:
        rows = measured(module, given, out, minutes)
    if len(rows) and (report or hasattr(module, "summary")):
        summarize(module, rows)
    if len(rows) and plots:
        module.draw(rows, plots)


if __name__ == "__main__":
    main(sys.argv[1:])
