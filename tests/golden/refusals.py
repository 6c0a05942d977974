"""The first lines of refusals: of wrong options, tables, questions, repairs, plans and commands."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import hierdp
from hierdp.cli import main
from tests.designs import DESIGNS, PEOPLE
from tests.golden.canonical import line
from tests.golden.record import Entries

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "M_H": [
        {"max_size": -1}, {"max_size": 2**31}, {"window": -1}, {"backend": "hihgs"}, {"time_limit": 0},
        {"method": "M_x"}, {"group": ["hom"]}, {"entities": "town"}, {"region": "county"}, {"epsilon": 0},
        {"shares": [1, 2]}, {"shares": [1, -1, 1]}, {"delta": 1}, {"noise": 5}, {"regions": None},
        {"unknown": "u"}, {"person": "who"}, {"most_per_row": 0}, {"branching": 2}, {"confidence": 2},
    ],
    "Hc": [
        {"method": "Hc x Hc"}, {"method": "Hx"}, {"size_budget": 0.1}, {"smallest": 2},
        {"merge": "best"}, {"max_size": 0}, {"shares": [1]}, {"group": 5},
    ],
    "InfTDA": [
        {"delta": 0}, {"epsilon": "one"}, {"epsilon": True}, {"axes": ["town"]},
        {"axes": {"level": ["town"]}}, {"first": "form"}, {"trips": 1.5}, {"trips": 0}, {"zeros": "from=to"},
        {"backend": "highs"}, {"method": "SH", "shares": [1]}, {"count": "m"}, {"bounded": "no"},
        {"without_account": ""},
    ],
    "AHP": [
        {"share": 1.5}, {"eta": -1}, {"method": "sf"}, {"method": "SF", "clusters": 99}, {"clusters": 3},
        {"method": "GS", "width": 0}, {"method": "DAWA", "workload": "boxes"}, {"axes": []},
        {"axes": ["bin"]},
    ],
    "H_b^c": [
        {"branching": 1}, {"budget": "all"}, {"budget": [1, 1]}, {"repair": "best"}, {"method": "H_9"},
        {"method": "H_tree"}, {"method": "matrix", "strategy": "none"}, {"axes": [("bin", 5)]}, {"clip": 1},
    ],
    "TopDown": [
        {"attributes": {"sex": ["f"]}}, {"attributes": ["sex"]}, {"queries": ["home"]}, {"zeros": ["sex=f"]},
        {"invariants": ["state:detailed", "city:total"]}, {"bounds": ["town:sex:9"]}, {"method": "GLS"},
        {"level_shares": ["state=1/2"]}, {"query_shares": ["total=1"]}, {"passes": ["total"]},
        {"plan": "none"},
    ],
    "repair whole": [
        {"method": "best"}, {"levels": ["town", "state"]}, {"count": "m"}, {"fixed": ["root"]}, {"window": 1},
        {"standard_error": "n"}, {"by": ["date"]},
    ],
}  # fmt: skip
"""Wrong options, by the design that has right ones."""

CELLS = {
    "M_H": [("n", -1), ("n", "x"), ("n", 1.5), ("home", None)],
    "InfTDA": [("n", 2**63), ("town", "z"), ("town", " u"), ("zone", None)],
    "AHP": [("bin", 11), ("bin", "many")],
    "TopDown": [("sex", "z"), ("age", None)],
    "repair whole": [("n", 0.5), ("se", 0)],
}
"""Wrong values in the third row of a table."""

QUESTIONS = {
    "Hc": ["town=z", "size=9:1", "city=u", "town", "town=v; town=u", "size=x"],
    "InfTDA": ["from=z", "from.city=A"],
    "Wavelet": ["0:1", "a=1", "c=0:1", "a=3:1", "a=0:9", "a=0:1,a=0:1"],
    "TopDown": ["sex=x", "sex"],
}

REPAIRS: list[tuple[str, str, dict[str, Any]]] = [
    *(("H_b^c", "Wavelet", {}), ("H_b^c", "H_b^c", {"repair": "best"}), ("H_b^c", "H_b", {"width": 1})),
    *(("Hc", "Hg", {}), ("TopDown", "GLS", {}), ("repair whole", "non-negative", {})),
]  # fmt: skip

PLANS: list[tuple[str, dict[str, Any]]] = [
    ("top-down", {}), ("groups", {"epsilon": 1}), ("clustering", {"bins": 9}),
    ("group-size", {"epsilon": 1, "max_size": 3, "levels": ["a"]}),
    ("clustering", {"bins": 9, "standard_error": -1}), ("range-query", {"bins": 9, "epsilon": 0}),
    ("range-query", {"bins": 9, "standard_error": 1, "at": "H_9"}),
]  # fmt: skip

COMMANDS = (
    *("release top-down people.csv --out out", "check nowhere"),
    "release range-query people.csv --numbers age --epsilon 1 --out out",
    "release range-query people.csv --numbers age=0:4 --epsilon 1 --out out",
    "release clustering gone.csv --numbers age=0:4 --epsilon 1 --out out",
    *(
        "query nowhere --range 1:2",
        "query people.csv --where a=b",
        "analyze abc --epsilon 1",
        "explain nowhere",
    ),
    *("analyze 10 --epsilon 1 --range 3:11", "analyze 10 --epsilon nan", "verify Isotone", "audit nonsense"),
    *("reproduce smith1999", "account none.account", "account open a.account --epsilon much --data x.csv"),
    *("export nowhere --out x.csv", "repair people.csv --levels state --out out", "compare people.csv"),
    *("evaluate nowhere people.csv", "plan top-down --epsilon 1", "prove gone.mps gone.sol"),
)


def entries() -> Entries:
    """An entry for each kind of mistake, with a part for each refusal."""
    return {
        **{f"wrong options of {name}": partial(_options, name) for name in OPTIONS},
        **{f"wrong cells of {name}": partial(_cells, name) for name in CELLS},
        **{f"wrong questions to {name}": partial(_questions, name) for name in QUESTIONS},
        **{"wrong repairs": _repairs, "wrong plans": _plans, "wrong commands": _commands},
    }


def _options(name: str) -> dict[str, str]:
    return _refusals((_words(wrong), partial(DESIGNS[name].release, **wrong)) for wrong in OPTIONS[name])


def _cells(name: str) -> dict[str, str]:
    def release(column: str, value: Any) -> None:
        table = DESIGNS[name].table.reset_index(drop=True).astype({column: object})
        table.loc[2, column] = value
        replace(DESIGNS[name], table=table).release()

    return _refusals(
        (_words({column: value}), partial(release, column, value)) for column, value in CELLS[name]
    )


def _questions(name: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        opened = hierdp.open(DESIGNS[name].release().write(Path(folder, "release")))
        return _refusals((text, partial(opened.query, text)) for text in QUESTIONS[name])


def _repairs() -> dict[str, str]:
    def repair(name: str, method: str, options: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            release = DESIGNS[name].release().write(Path(folder, "release"), report=False)
            try:
                hierdp.open(release).repair(method, **options)
            except ValueError as refused:
                raise ValueError(str(refused).replace(folder, "FOLDER")) from None

    return _refusals(
        (f"{name} by {method} {_words(of)}", partial(repair, name, method, of))
        for name, method, of in REPAIRS
    )


def _plans() -> dict[str, str]:
    return _refusals((f"{name} {_words(of)}", partial(hierdp.plan, name, **of)) for name, of in PLANS)


def _commands() -> dict[str, str]:
    def run(command: str) -> None:
        done = runner.invoke(main, shlex.split(command), prog_name="hierdp")
        if done.exit_code == 2:
            raise ValueError(done.output.partition("Error: ")[2])

    runner = CliRunner()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        PEOPLE.to_csv("people.csv", index=False)
        return _refusals((command, partial(run, command)) for command in COMMANDS)


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _refusals(mistakes: Iterable[tuple[str, Callable[[], Any]]]) -> dict[str, str]:
    """The first line of each refusal, by the mistake; without blanks, as it is the name of a part."""
    lines = {}
    for mistake, make in mistakes:
        try:
            make()
        except ValueError as refused:  # an `InputError`, or one of a model
            lines["-".join(mistake.split())] = line(str(refused).splitlines()[0])
        else:
            raise AssertionError(f"{mistake} is not refused")
    return lines
