"""Other programs beside `tabulation`, at equal ρ: MST, AIM, GReM, Tumult Analytics, the Census's shares.

The other programs run in interpreters that are given; parts without theirs are left out.

- ``tables``: Vermont's persons by county, group and age (224 cells), and four attributes of Adult (education,
  marital status, race, sex: 1,120 cells). Wanted are all pairs of attributes: AIM's default workload, and
  what hierdp's plan is optimized for. ``--mbi``: a Python with mbi 2.0; ``--mechanisms``: a checkout of mbi's
  repository, whose mechanisms are in no package, with Adult in ``data``. ``--grem-python``, ``--grem``: one
  with torch, and a checkout of ``bcmullins/efficient-marginal-reconstruction``. Errors are half of the L1
  distance, divided by the persons: the mean over pairs, over single attributes, and of the cells.
- ``counts``: Vermont's persons by state, county and precinct; totals, groups, ages, and both. ``--tumult``: a
  Python with Tumult Analytics 0.21 and Java. Errors are mean absolute errors, in persons.
- ``census``: four states' precincts with the shares of the 2020 Census's redistricting data, ρ = 2.56. Of its
  levels there are the nation, states, counties, and precincts for block groups; of its queries those that
  these tables have. The rest of its shares is divided in proportion.

One person joins or leaves, in all parts but the last, where a person is replaced, as there.
CPU time is that of all processes, memory their largest sum (proportional set size), both seen every 0.1 s.
The other programs draw noise in floats, but for Tumult; hierdp's is exact, and its steps are proved.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks import child
from benchmarks.measuring import DATA, data_file
from benchmarks.tabulation import DELTA, LEVELS, QUERIES, Nation, errors
from benchmarks.which_wins.page import lines, shown
from hierdp import plan
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation.budget import person_unit
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables.tabulated import CrossTable

PEOPLE = "us-precincts-2020.parquet"
HERE = Path(__file__).parent
RESULTS = HERE.parent / "results/rivals.parquet"
ADULT = ("education-num", "marital-status", "race", "sex")
JOINS = person_unit(bounded=False)
SHARES = ("level_shares", "query_shares")

CENSUS_EPSILON = 17.14
"""With δ = 10⁻¹⁰, this is ρ = 2.56."""

CENSUS_LEVELS = {"root": "root", "state": "state", "county": "county", "precinct": "block_group"}
CENSUS_QUERIES = {"total": "total", "group": "hispanic*cenrace", "age": "votingage", "detailed": "detailed"}
"""Which of the Census's levels and queries stand for those of these tables."""


def run(
    *,
    parts: Annotated[tuple[str, ...], "tables, counts, census"] = ("tables", "counts", "census"),
    mbi: Annotated[Path | None, "a Python with mbi 2.0"] = None,
    mechanisms: Annotated[Path | None, "a checkout of mbi's repository"] = None,
    grem_python: Annotated[Path | None, "a Python with torch and linear-operator"] = None,
    grem: Annotated[Path | None, "a checkout of GReM's repository"] = None,
    tumult: Annotated[Path | None, "a Python with Tumult Analytics"] = None,
    data: Annotated[Path, f"a folder with {PEOPLE}"] = DATA,
    sets: Annotated[tuple[str, ...], "of tables"] = ("Vermont", "Adult"),
    only: Annotated[tuple[str, ...], "other programs' methods"] = ("MST", "AIM", "GReM-MLE", "GReM-LNN"),
    epsilons: Annotated[tuple[float, ...], "of tables"] = (0.1, 1.0, 10.0),
    runs: int = 3,
) -> Iterator[dict[str, Any]]:
    theirs: dict[str, tuple[Path, str, dict[str, Any]]] = {}
    if mbi and mechanisms:
        given = {"mechanisms": str((mechanisms / "mechanisms").resolve())}
        theirs |= dict.fromkeys(("MST", "AIM"), (mbi, "by_mbi.py", given))
    if grem_python and grem:
        given = {"grem": str(grem.resolve())}
        theirs |= dict.fromkeys(("GReM-MLE", "GReM-LNN"), (grem_python, "by_grem.py", given))
    if "tables" in parts:
        chosen = {name: theirs[name] for name in only if name in theirs}
        if "Vermont" in sets:
            yield from of_table("Vermont", vermont(data), epsilons, runs, chosen)
        if "Adult" in sets and mechanisms:
            yield from of_table("Adult", adult(mechanisms), epsilons, runs, chosen)
    if "counts" in parts:
        for number in range(runs):
            yield from of_counts(data, tumult, number)
    if "census" in parts:
        yield from of_census(data, runs)


# --- one table -------------------------------------------------------------------------------------------


def vermont(data: Path) -> np.ndarray:
    """Persons by county, group and age."""
    people = pd.read_parquet(data_file(data, PEOPLE)).query("state == 'VT'")
    codes = [pd.Categorical(people[name].astype(str)).codes for name in ("county", "group", "age")]
    counts = np.zeros([code.max() + 1 for code in codes], np.int64)
    np.add.at(counts, tuple(codes), people.persons)
    return counts


def adult(checkout: Path) -> np.ndarray:
    """Persons by the four attributes, with all categories of its domain."""
    sizes = json.loads((checkout / "data/adult-domain.json").read_text())
    rows = pd.read_csv(checkout / "data/adult.csv")
    counts = np.zeros([sizes[name] for name in ADULT], np.int64)
    np.add.at(counts, tuple(rows[name] for name in ADULT), 1)
    return counts


def by_hierdp(table: str, jobs: Sequence[Mapping[str, Any]], with_cells: bool) -> dict[str, Any]:
    """For each job a release by a plan whose errors of pairs, and of cells, are least."""
    counts = np.load(table)
    names = [f"a{axis}" for axis in range(counts.ndim)]
    attributes = {name: [str(k) for k in range(n)] for name, n in zip(names, counts.shape, strict=True)}
    whole = Hierarchy.from_columns({"all": ["all"]}, ["all"])
    people = CrossTable(whole, attributes, counts.reshape(1, -1))
    pairs = ["*".join(pair) for pair in combinations(names, 2)]
    design: dict[str, Any] = {"attributes": attributes, "queries": [*pairs, "detailed"]}
    wanted = [f"all:{query}" for query in (design["queries"] if with_cells else pairs)]
    spent = []
    for job in jobs:
        epsilon, began = job["epsilon"], time.process_time()
        best = plan("tabulation", plan=design, regions=whole, epsilon=epsilon, delta=DELTA, bounded=False,
                    optimize=wanted).plan  # fmt: skip
        given = plan_of({**design, **{key: best[key] for key in SHARES}})
        made = tabulate(people, given, epsilon, DELTA, None, "TopDown", JOINS).table
        spent.append(time.process_time() - began)
        last = made[made.level == 1]
        cells = np.zeros(counts.shape, np.int64)
        cells[tuple(last[name].to_numpy().astype(int) for name in names)] = last["count"]
        np.savez(job["out"], cells=cells)
    return {"cpu of the job": spent}


def of_table(
    name: str, counts: np.ndarray, epsilons: Sequence[float], runs: int, theirs: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row for each method, ε and run; a process for each method."""
    with TemporaryDirectory() as folder:
        table = str(Path(folder, "table.npy"))
        np.save(table, counts)
        jobs = [
            {"epsilon": epsilon, "rho": rho_of(epsilon, DELTA), "seed": number,
             "out": str(Path(folder, f"{epsilon}-{number}.npz"))}
            for epsilon, number in product(epsilons, range(runs))
        ]  # fmt: skip
        commands = {
            "hierdp, for pairs": ours(by_hierdp, table, jobs, False),
            "hierdp, for pairs and cells": ours(by_hierdp, table, jobs, True),
        }
        for method, (interpreter, script, given) in theirs.items():
            task = {"method": method, "table": table, "jobs": jobs, **given}
            commands[method] = other(interpreter, script, task, Path(folder, f"{method}.json"))
        for method, command in commands.items():
            found = watched(**command)
            for job, spent in zip(jobs, found.pop("cpu of the job"), strict=True):
                made = np.load(job["out"])
                about = {"part": "tables", "data": name, "epsilon": job["epsilon"], "run": job["seed"]}
                yield {**about, "method": method, **distances(counts, made), "cpu of the job": spent,
                       "mb": found["mb"]}  # fmt: skip


def distances(true: np.ndarray, made: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Of pairs, single attributes and cells: half the L1 distance over the persons.

    - made: all cells; or the marginals of the pairs, by name, which need not agree on single attributes.
    """
    axes = range(true.ndim)

    def away(*kept: int) -> float:
        others = tuple(set(axes) - set(kept))
        here = made["cells"].sum(axis=others) if "cells" in made else made[",".join(map(str, kept))]
        return float(np.abs(here - true.sum(axis=others)).sum() / 2 / true.sum())

    found = {"pairs": float(np.mean([away(*pair) for pair in combinations(axes, 2)]))}
    if "cells" in made:
        found |= {"singles": float(np.mean([away(axis) for axis in axes])), "cells": away(*axes)}
    whole = all((each >= 0).all() and (each == np.rint(each)).all() for each in made.values())
    return {**found, "whole, not negative": whole}


# --- counts of a hierarchy -------------------------------------------------------------------------------


def one_state(data: Path) -> Nation:
    """Vermont's precincts, with the state as the root."""
    states = Nation.read(data, ["VT"])
    _, _, counties, precincts = states.regions.names
    above = counties[np.asarray(states.regions.tree.levels[-1])]
    regions = Hierarchy.from_columns({"county": above, "precinct": precincts}, list(LEVELS[1:]))
    leaves = np.zeros_like(states.leaves)
    leaves[regions.positions(precincts)] = states.leaves
    return Nation(regions, states.shape, leaves)


def attributes_of(nation: Nation) -> dict[str, list[str]]:
    """The categories, as numbers."""
    return dict(zip(("group", "age"), ([str(k) for k in range(n)] for n in nation.shape), strict=True))


def by_level(data: str, out: str, epsilon: float, method: str) -> dict[str, Any]:
    """A release of Vermont's precincts with equal shares."""
    nation = one_state(Path(data))
    attributes = attributes_of(nation)
    design = {"attributes": attributes, "queries": ["total", "group", "age", "detailed"]}
    began = time.perf_counter()
    people = CrossTable(nation.regions, attributes, nation.leaves)
    made = tabulate(people, plan_of(design), epsilon, DELTA, None, method, JOINS).table
    seconds = time.perf_counter() - began
    np.save(out, leaves_of(nation, made))
    return {"seconds of the job": seconds}


def leaves_of(nation: Nation, made: pd.DataFrame) -> np.ndarray:
    """The tables of the last level's regions."""
    last = made[made.level == made.level.max()]
    leaves = np.zeros_like(nation.leaves)
    cells = last.group.astype(int) * nation.shape[1] + last.age.astype(int)
    leaves[nation.regions.positions(last.region.to_numpy(object)), cells] = last["count"]
    return leaves


def by_query(nation: Nation, leaves: np.ndarray) -> dict[str, float]:
    """The mean absolute errors of each query from the states down."""
    found = errors(nation, nation.added_up(leaves))[-len(LEVELS) :]
    return {
        f"{level}:{query}": float(value)
        for level, row in zip(LEVELS, found, strict=True)
        for query, value in zip(QUERIES, row, strict=True)
    }


def of_counts(data: Path, tumult: Path | None, number: int) -> Iterator[dict[str, Any]]:
    """A row for each method: the errors of a level's queries as columns."""
    epsilon = 1.0
    nation = one_state(data)
    with TemporaryDirectory() as folder:
        for method in ("TopDown", "BlueDown"):
            out = str(Path(folder, "leaves.npy"))
            found = watched(**ours(by_level, data.resolve(), out, epsilon, method))
            named = by_query(nation, np.load(out))
            yield {"part": "counts", "data": "Vermont", "epsilon": epsilon, "run": number,
                   "method": f"hierdp {method}", "whole, not negative": True, **named, **found}  # fmt: skip
        if tumult:
            yield of_tumult(data, tumult, epsilon, number, Path(folder))


def of_tumult(data: Path, tumult: Path, epsilon: float, number: int, folder: Path) -> dict[str, Any]:
    people = pd.read_parquet(data_file(data, PEOPLE)).query("state == 'VT'")
    people = people.astype(dict.fromkeys((*LEVELS, "group", "age"), str))
    attributes = ["group", "age"]
    each = people.loc[people.index.repeat(people.persons), [*LEVELS, *attributes]]
    each.to_parquet(folder / "people.parquet", index=False)
    queries, wanted = [], {}
    for level, query in product(LEVELS, QUERIES):
        columns = [level, *(name for name in attributes if name in query)]
        keys = pd.MultiIndex.from_product([sorted(set(people[column])) for column in columns], names=columns)
        files = {what: str(folder / f"{len(queries)}-{what}.parquet") for what in ("keys", "out")}
        keys.to_frame(index=False).to_parquet(files["keys"])
        queries.append({"columns": columns, **files})
        wanted[f"{level}:{query}"] = people.groupby(columns).persons.sum().reindex(keys, fill_value=0), files
    task = {"rho": rho_of(epsilon, DELTA), "people": str(folder / "people.parquet"), "queries": queries,
            "folder": str(folder)}  # fmt: skip
    found = watched(**other(tumult, "by_tumult.py", task, folder / "task.json"))
    named, whole = {}, True
    for name, (true, files) in wanted.items():
        made = pd.read_parquet(files["out"]).set_index(true.index.names)["count"].reindex(true.index)
        whole = whole and bool((made >= 0).all())
        named[name] = float((made - true).abs().mean())
    return {"part": "counts", "data": "Vermont", "epsilon": epsilon, "run": number,
            "method": "Tumult Analytics", "whole, not negative": whole, **named, **found}  # fmt: skip


# --- the Census's shares ---------------------------------------------------------------------------------


def of_census(data: Path, runs: int) -> Iterator[dict[str, Any]]:
    """A row for each plan, method and run, with simulated noise."""
    nation = Nation.read(data, ["DE", "NH", "RI", "VT"])
    attributes = attributes_of(nation)
    design: dict[str, Any] = {"attributes": attributes, "queries": ["total", "group", "age", "detailed"],
                              "invariants": ["state:total"]}  # fmt: skip
    people = CrossTable(nation.regions, attributes, nation.leaves)
    for method in ("TopDown", "BlueDown"):
        named = [f"{level}:{query}" for level in ("county", "precinct") for query in ("total", "detailed")]
        best = plan("tabulation", plan=design, method=method, optimize=named, regions=nation.regions,
                    epsilon=CENSUS_EPSILON, delta=DELTA).plan  # fmt: skip
        plans = {"equal shares": {}, "the Census's shares": census_shares(),
                 "optimal shares": {key: best[key] for key in SHARES}}  # fmt: skip
        for (name, shares), number in product(plans.items(), range(runs)):
            began = time.process_time()
            made = tabulate(people, plan_of({**design, **shares}), CENSUS_EPSILON, DELTA,
                            SimulatedNoise(number), method).table  # fmt: skip
            spent = time.process_time() - began
            each = by_query(nation, leaves_of(nation, made))
            yield {"part": "census", "data": "four states", "epsilon": CENSUS_EPSILON, "run": number,
                   "method": f"{method}, {name}", **each, "cpu of the job": spent}  # fmt: skip


def census_shares() -> dict[str, Any]:
    """The Census's shares of what these tables have, divided so that they add up to 1.

    States' totals are fixed, so that none is spent on them.
    """
    given = plan_of("redistricting-2020")
    levels = {ours: given.level_shares[theirs] for ours, theirs in CENSUS_LEVELS.items()}
    queries = {}
    for level, theirs in CENSUS_LEVELS.items():
        shares = given.query_shares[theirs]
        parts = {query: shares[other] for query, other in CENSUS_QUERIES.items()}
        if level == "state":
            parts["total"] = Fraction(0)
        queries[level] = {query: str(part / sum(parts.values())) for query, part in parts.items()}
    whole = sum(levels.values())
    return {"level_shares": {name: str(one / whole) for name, one in levels.items()}, "query_shares": queries}


# --- processes -------------------------------------------------------------------------------------------


def ours(function: Any, *arguments: Any) -> dict[str, Any]:
    """The command that runs a function of this module in a process of its own."""
    task = json.dumps([function.__module__, function.__name__, arguments], default=str)
    return child.python("-m", "benchmarks.child", task)


def other(interpreter: Path, script: str, task: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The command of another program, with its task in a file."""
    file.write_text(json.dumps(task))
    python, folder = str(interpreter.absolute()), str(file.parent)
    return {"args": [python, str(HERE / script), str(file)], "cwd": folder,
            "env": {"PATH": "/usr/bin:/bin", "PYSPARK_PYTHON": python, "HOME": folder}}  # fmt: skip


def watched(args: Sequence[str], **options: Any) -> dict[str, Any]:
    """What a command prints in its last line, its CPU seconds and peak memory, with its descendants.

    Raises `RuntimeError` with the last line of its errors if it fails.
    """
    import psutil

    used: dict[int, float] = {}
    most, began = 0.0, time.perf_counter()
    with TemporaryDirectory() as folder:
        out, faults = Path(folder, "out"), Path(folder, "faults")
        with out.open("w") as to, faults.open("w") as fault:
            process = subprocess.Popen(args, stdout=to, stderr=fault, **options)
            root = psutil.Process(process.pid)
            while process.poll() is None:
                memory = 0.0
                for one in chain([root], root.children(recursive=True)):
                    try:
                        times = one.cpu_times()
                        used[one.pid] = times.user + times.system
                        memory += one.memory_full_info().pss
                    except psutil.Error:  # it has just ended
                        continue
                most = max(most, memory)
                time.sleep(0.1)
        if process.returncode:
            raise RuntimeError((faults.read_text().strip().splitlines() or ["no message"])[-1])
        row = json.loads(out.read_text().strip().splitlines()[-1])
    row = {name: value for name, value in row.items() if name.endswith("of the job")}
    return {**row, "seconds": time.perf_counter() - began, "cpu": sum(used.values()), "mb": most / 1e6}


def summary(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = {}
    for part, here in rows.groupby("part", sort=False):
        kept = here.drop(columns=["part", "run", "python", "versions", "machine", "load"], errors="ignore")
        means = kept.groupby(["data", "epsilon", "method"], sort=False).mean(numeric_only=False)
        found[str(part)] = means.dropna(axis=1, how="all").astype(float).reset_index()
    return found


def page_table(rows: pd.DataFrame) -> str:
    """The errors of one table in docs/tabulation.md, in persons of ten thousand; the means over the runs."""
    here = rows[rows.part == "tables"]
    means = here.groupby(["data", "epsilon", "method"], sort=False)[["pairs", "cells"]].mean() * 10_000
    methods = list(dict.fromkeys(here.method))
    table = []
    for data, epsilon in dict.fromkeys(zip(here.data, here.epsilon, strict=True)):
        cells = [means.loc[key] if (key := (data, epsilon, one)) in means.index else [] for one in methods]
        both = ["; ".join(shown(error) for error in one if not np.isnan(error)) for one in cells]
        table.append([f"{data}, {epsilon:g}", *both])
    return lines(["data, ε", *methods], table)
