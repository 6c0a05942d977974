"""Run both checkers, hierdp's and the extracted one, over the same proofs, and compare every verdict.

    python docs/theorem/agree.py build/theorem/checker --random 100000 --sets small,medium RELEASE ...

The proofs are those of the benchmark's sets, of the steps of releases, and of random small programs. Each of
the first two is also changed in a price, the answer, the objective, and a bound. hierdp has two ways to judge
them: `models.lagrangian_bound`, and for programs of operators and costs `models.check.checker`. Exit status 1
if a verdict, cost or bound differs anywhere, or if one does not prove what a model's own certificate proves.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from models import Program, lagrangian_bound
from models.arithmetic.arrays import Array
from models.check.checker import check, cost_unit
from models.programs.costs import Absolute, Cost, Linear, Square, Table
from models.programs.operators import Sparse
from models.programs.terms import INFINITY, Block, Rows, Term
from models.witnesses.plain_text import FIRST_LINE, problem_lines
from models.witnesses.row_proofs import Proof, exact_proofs, general_proof

WORK = Path("build/theorem")


class Case(NamedTuple):
    """A proof, and what is expected of it: True if a model's own certificate proves it."""

    name: str
    proof: Proof
    proved: bool = False


# --- the sets --------------------------------------------------------------------------------------------


def of_model(name: str, model: Any, x: Any, witness: Any, left: Counter[str]) -> Iterator[Case]:
    """The proof of a model's answer, and changed ones; or a reason more why a proof was left out."""
    rng = np.random.default_rng(len(name))
    for part, found in exact_proofs(name, model, x, witness):
        if isinstance(found, str):
            left[found] += 1
            continue
        yield Case(part, found, True)
        if found[0].size:
            yield from changed(part, found, rng)


def of_set(which: str, left: Counter[str]) -> Iterator[Case]:
    """The benchmark's problems, solved by the fast paths."""
    from hierdp.bench.problems import problems
    from solvers import solve

    for problem in problems(which):
        found = solve(problem.model)
        if found.x is None:
            left["it has no fast answer"] += 1
        else:
            yield from of_model(problem.name, problem.model, found.x, found.witness, left)


def of_release(folder: Path, left: Counter[str]) -> Iterator[Case]:
    """The steps of a release."""
    from hierdp.checking.export import for_each_step

    steps: list[Any] = []
    for_each_step(folder, lambda *step: steps.append(step))
    for name, model, x, witness in steps:
        yield from of_model(f"{folder.name}: {name}", model, x, witness, left)


def releases() -> list[Path]:
    """The demo's releases, if `make demo` has written them; otherwise two small releases."""
    demo = sorted(path.parent for path in Path("hierdp-demo").glob("*/proofs.zip"))
    if demo:
        return demo
    import pandas as pd

    from hierdp import SimulatedNoise, release

    trips = pd.DataFrame({"state": ["A", "A", "B"] * 8, "town": ["A1", "A2", "B1"] * 8, "home": range(24)})
    public = {"regions_from_data": True, "epsilon": 1, "noise": SimulatedNoise(3)}
    sizes = {"levels": ["state", "town"], "group": ["town", "home"], "max_size": 3, "groups_from_data": True}
    flows = {"delta": 1e-6, "axes": {"from": ["state", "town"], "to": ["state"]}}
    options: dict[str, dict[str, Any]] = {"group-size": sizes, "top-down": flows}
    made = {name: release(trips, name, **public, **given) for name, given in options.items()}
    return [one.write(WORK / name, overwrite=True) for name, one in made.items()]


def changed(name: str, proof: Proof, rng: np.random.Generator) -> Iterator[Case]:
    """The proof with one number changed: a price, the answer, the objective, a bound, a side."""
    program, variables, prices = proof
    if prices.size:
        yield Case(f"{name}, other price", (program, variables, moved(prices, rng)))
    yield Case(f"{name}, other answer", (program, moved(variables, rng), prices))
    terms = list(program.objective)
    filled = [k for k, term in enumerate(terms) if np.size(term.index)]
    if filled:
        at = int(rng.choice(filled))
        terms[at] = other_term(terms[at], rng)
        yield Case(f"{name}, other objective", (replace(program, objective=terms), variables, prices))
    for side, sign in (("lower", 1), ("upper", -1)):
        blocks = list(program.blocks)
        at = int(rng.choice([k for k, block in enumerate(blocks) if block.size]))
        block = blocks[at]
        limit = np.array(np.broadcast_to(np.asarray(getattr(block, side)), block.shape))
        inner = limit.reshape(-1)
        inner[int(rng.integers(inner.size))] += sign
        blocks[at] = replace(block, **{side: limit})
        yield Case(f"{name}, other {side} bound", (replace(program, blocks=blocks), variables, prices))
    if prices.size:
        rows = list(program.rows)
        at = int(rng.choice([i for i, block in enumerate(rows) if block.matrix.shape[0]]))
        rows[at] = replace(rows[at], lower=moved(np.asarray(rows[at].lower), rng))
        yield Case(f"{name}, other side", (replace(program, rows=rows), variables, prices))


def other_term(term: Term, rng: np.random.Generator) -> Term:
    """A term with another weight, center, or cost in a table."""
    if term.kind == "table":
        tables = list(term.tables)
        k = int(rng.integers(len(tables)))
        tables[k] = moved(np.asarray(tables[k]), rng)
        return replace(term, tables=tables)
    name = "weight" if term.kind == "linear" or rng.random() < 0.3 else "center"
    return replace(term, **{name: moved(np.broadcast_to(getattr(term, name), term.index.shape), rng)})


def moved(array: Array, rng: np.random.Generator) -> Array:
    """A copy with one entry changed by 1."""
    found = np.array(array, copy=True)
    found.reshape(-1)[int(rng.integers(found.size))] += int(rng.choice([-1, 1]))
    return found


# --- random programs -------------------------------------------------------------------------------------


def fraction(rng: np.random.Generator, reach: int = 6) -> Fraction:
    """A small number: mostly whole."""
    return Fraction(int(rng.integers(-reach, reach + 1)), int(rng.choice([1, 1, 1, 2, 3])))


def objects(values: list[Any]) -> Array:
    """An array of Python numbers."""
    return np.array([*values, None], dtype=object)[:-1]


def random_case(rng: np.random.Generator, number: int) -> Case:
    """Up to four variables and three rows, every kind of piece; half of the answers are likely to be best."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    whole = rng.random(n) < 0.6
    matrix = np.array([[fraction(rng, 2) for _ in range(n)] for _ in range(m)], float).reshape(m, n)
    prices = [Fraction(0) if rng.random() < 0.2 else fraction(rng, 3) for _ in range(m)]
    exact = [[Fraction(float(a)) for a in row] for row in matrix]
    planted = bool(rng.random() < 0.7)
    blocks, terms, answer = [], [], []
    for j in range(n):
        charge = sum((prices[i] * exact[i][j] for i in range(m)), Fraction(0))
        low: Any = -INFINITY if rng.random() < 0.2 else fraction(rng)
        high: Any = (
            INFINITY
            if rng.random() < 0.2
            else (fraction(rng) if low == -INFINITY else low + abs(fraction(rng)))
        )
        pieces = []
        for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
            kind = str(rng.choice(["linear", "quadratic", "quadratic", "absolute", "absolute", "table"]))
            if kind == "table" and whole[j]:
                length = int(rng.integers(1, 7))
                table = objects([fraction(rng) for _ in range(length)])
                first = math.ceil(low) if low > -INFINITY and rng.random() < 0.8 else int(rng.integers(-4, 3))
                pieces.append(Term("table", np.array([j]), 1, np.array([first]), [table]))
            elif kind != "table":
                weight = fraction(rng, 3) if rng.random() < 0.3 else abs(fraction(rng, 3))
                pieces.append(Term(kind, np.array([j]), objects([weight]), objects([fraction(rng)])))  # type: ignore[arg-type]
        blocks.append(Block(f"v{j}", (1,), objects([low]), objects([high]), bool(whole[j])))
        terms += pieces
        tries = [Fraction(k) for k in range(-7, 8)]
        tries += [limit for limit in (low, high) if abs(limit) < INFINITY]
        if not whole[j]:
            tries += [Fraction(term.center[0]) for term in pieces]  # type: ignore[index]
            bend = sum((t.weight[0] for t in pieces if t.kind == "quadratic"), Fraction(0))  # type: ignore[index]
            if bend:
                slope = sum((t.weight[0] * t.center[0] * 2 for t in pieces if t.kind == "quadratic"), charge)  # type: ignore[index]
                slope -= sum((t.weight[0] for t in pieces if t.kind == "linear"), Fraction(0))  # type: ignore[index]
                slopes = [t.weight[0] for t in pieces if t.kind == "absolute"]  # type: ignore[index]
                tries += [(slope + sign * sum(slopes, Fraction(0))) / (2 * bend) for sign in (-1, 1)]
        allowed = [v for v in tries if low <= v <= high and (v.denominator == 1 or not whole[j])]
        allowed = [v for v in allowed if all(in_table(t, v) for t in pieces)]
        if not allowed:
            allowed = [Fraction(int(rng.integers(-3, 4)))]
            answer.append(allowed[0])
        elif planted:
            answer.append(min(allowed, key=lambda v: cost(pieces, v) - charge * v))
        else:
            answer.append(allowed[int(rng.integers(len(allowed)))])
    lower, upper = [], []
    for i in range(m):
        held = sum((a * v for a, v in zip(exact[i], answer, strict=True)), Fraction(0))
        slack = [Fraction(0) if planted else abs(fraction(rng)) * int(rng.random() < 0.5) for _ in range(2)]
        if rng.random() < 0.05:
            slack[0] = Fraction(-1)
        lower.append(-INFINITY if prices[i] <= 0 and rng.random() < 0.4 else held - slack[0])
        upper.append(INFINITY if prices[i] >= 0 and rng.random() < 0.4 else held + slack[1])
    rows = [Rows("row", scipy.sparse.csr_matrix(matrix), objects(lower), objects(upper))] if m else []
    program = Program(f"random {number}", blocks, rows, terms)
    return Case(program.name, (program, objects(answer), objects(prices)))


def random_structure(rng: np.random.Generator, number: int) -> Case:
    """A program of costs and operators, of whole numbers or fractions; most variables are at their best."""
    whole, n, m = bool(rng.random() < 0.5), int(rng.integers(1, 5)), int(rng.integers(1, 4))

    def some(size: int, reach: int = 5) -> Array:
        found = [fraction(rng, reach) for _ in range(size)]
        return narrow(objects([Fraction(round(v)) for v in found] if whole else found))

    matrix, prices = rng.integers(-1, 2, (m, n)), some(m, 6)
    charges = (matrix.astype(object).T @ fractions(prices)).tolist()
    blocks, answer = [], []
    for j, charge in enumerate(charges):
        kind = str(rng.choice(["square", "absolute", "linear", "table", "none"]))
        integer = whole or kind == "table" or bool(rng.random() < 0.5)
        center, weight, table, first = some(1), abs(some(1, 3)), some(6), int(rng.integers(-4, 3))
        low, high = Fraction(int(rng.integers(-5, 1))), Fraction(int(rng.integers(1, 6)))
        costs: dict[str, Cost] = {"square": Square(center, weight), "absolute": Absolute(center, weight)}
        costs |= {"linear": Linear(center), "table": Table([table], [first])}
        cost = costs.get(kind)
        tries = [Fraction(k, 1 if integer else 2) for k in range(-10, 11)]
        if kind == "square" and not integer and weight[0]:
            tries.append(fractions(center)[0] + charge / (2 * fractions(weight)[0]))
        tries = [v for v in tries if low <= v <= high and (kind != "table" or first <= v < first + 6)]
        charged = {v: (cost.value(objects([v])) if cost else 0) - charge * v for v in tries}
        best = rng.random() < 0.7 and tries
        answer.append(min(tries, key=charged.__getitem__) if best else Fraction(int(rng.integers(-4, 5))))
        lower = narrow(objects([low])) if rng.random() < 0.8 else -INFINITY
        upper = narrow(objects([high])) if rng.random() < 0.8 else INFINITY
        blocks.append(Block(f"v{j}", (1,), lower, upper, integer, cost))
    held = matrix.astype(object) @ objects(answer)
    slack = objects([Fraction(int(rng.integers(-1, 3)) if rng.random() < 0.1 else 0) for _ in range(m)])
    operators = {f"v{j}": Sparse(scipy.sparse.csr_matrix(matrix[:, [j]])) for j in range(n)}
    rows = Rows("row", operators, narrow(held - slack), narrow(held + slack))
    program = Program(f"random structure {number}", blocks, [rows])
    return Case(program.name, (program, objects(answer), prices))


def narrow(numbers: Array) -> Array:
    """Whole numbers as int64, others as they are."""
    if all(Fraction(v).denominator == 1 and abs(v) < 2**62 for v in numbers.flat):
        return np.array([int(v) for v in numbers.flat], np.int64).reshape(numbers.shape)
    return numbers


def in_table(term: Term, v: Fraction) -> bool:
    """Whether a table has a cost for this value."""
    if term.kind != "table":
        return True
    place = v - int(np.ravel(term.center)[0])
    return place.denominator == 1 and 0 <= place < len(term.tables[0])


def cost(pieces: list[Term], v: Fraction) -> Fraction:
    """The pieces' cost at v."""
    found = Fraction(0)
    for term in pieces:
        weight, center = Fraction(np.ravel(term.weight)[0]), Fraction(0 + np.ravel(term.center)[0])
        if term.kind == "linear":
            found += weight * v
        elif term.kind == "table":
            found += term.tables[0][int(v - center)]
        else:
            found += weight * (abs(v - center) if term.kind == "absolute" else (v - center) ** 2)
    return found


# --- the comparison --------------------------------------------------------------------------------------


def ours(case: Case) -> tuple[str, str, str]:
    """hierdp's verdict, as the other checker prints it: verdict, cost, bound."""
    program, variables, prices = case.proof
    exactly = fractions(variables)
    found = general_proof(program, exactly, prices)
    if found.bound is None:
        return "not feasible", "", ""
    verdict = "proved" if found.objective <= found.bound < INFINITY else "not proved"
    return verdict, str(found.objective), str(lagrangian_bound(program, prices))


def agrees(case: Case, verdict: str, price: str, bound: str) -> bool:
    """Whether `models.check.checker`, if the program is one of operators and costs, says the same.

    It rounds bounds up to a multiple of any unit. It has a block's own bounds, the other checker those for
    solvers. Where these are tighter, it may prove less.
    """
    program, variables, prices = case.proof
    if program.structure is None or any(block.part is not None for block in program.structure[0]):
        return True
    blocks, rows = program.structure
    values, given = {}, {}
    for part in blocks:
        start = program.offsets[part.name]
        values[part.name] = narrow(fractions(variables[start : start + part.size])).reshape(part.shape)
    start = 0
    for rows_ in rows:
        shape = next(iter(rows_.operators.values())).rows
        given[rows_.name] = narrow(fractions(prices[start : start + rows_.count])).reshape(shape)
        start += rows_.count
    found = check((blocks, rows), values, given)
    if verdict == "not feasible" or found.bound is None:
        return verdict == "not feasible" and found.bound is None
    if found.objective != Fraction(price):
        return False
    if bound == "-inf":  # a price that is paid for an infinite side counts as 0 there
        return True
    gap, unit = Fraction(price) - Fraction(bound), cost_unit(blocks)
    if unit:
        gap = Fraction(math.floor(gap * unit), unit)
    if any(block.box is not None for block in blocks):
        return found.bound <= Fraction(price) - gap and (found.optimal or not case.proved)
    return bool(found.bound == Fraction(price) - gap and found.optimal == (gap == 0))


def fractions(numbers: Any) -> Array:
    """Numbers of any type by value."""
    return objects([Fraction(v) for v in np.ravel(numbers).tolist()])


def compare(checker: Path, cases: Iterator[Case], title: str) -> bool:
    """Write the cases, run both checkers, and print how many agree; whether all do."""
    file, begun = WORK / "cases.txt", time.perf_counter()
    expected: list[tuple[Case, tuple[str, str, str]]] = []
    with file.open("w") as out:
        print(FIRST_LINE, file=out)
        for case in cases:
            out.writelines(f"{line}\n" for line in problem_lines(case.name, *case.proof))
            expected.append((case, ours(case)))
    middle = time.perf_counter()
    done = subprocess.run([str(checker), str(file)], capture_output=True, text=True, check=False)
    after = time.perf_counter()
    if done.returncode not in (0, 1):
        print(f"{title}: the checker stopped: {done.stderr}")
        return False
    lines = done.stdout.splitlines()[:-1]
    wrong, structured, verdicts = 0, 0, Counter[str]()
    for (case, (verdict, price, bound)), line in zip(expected, lines, strict=True):
        theirs, their_cost, their_bound, _ = line.split("\t")
        same = theirs == verdict and (
            verdict == "not feasible" or (their_cost, their_bound) == (price, bound)
        )
        verdicts[theirs] += 1
        structured += case.proof[0].structure is not None
        same = same and agrees(case, theirs, their_cost, their_bound)
        if not same or (case.proved and theirs != "proved"):
            wrong += 1
            if wrong <= 5:
                print(f"  DIFFERS {case.name}: hierdp {verdict} {price} {bound}; the other {line}")
    counted = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(
        f"{title}: {len(lines):,} proofs ({counted}), {structured:,} of them by operators; {wrong:,} differ; "
        f"written and checked by hierdp in {middle - begun:.0f} s, by the other in {after - middle:.0f} s",
        flush=True,
    )
    return wrong == 0


def main() -> int:
    """Read the command line, compare, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checker", type=Path)
    parser.add_argument("--random", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=26, help="of the random programs")
    parser.add_argument("--sets", default="small", help="comma-separated")
    parser.add_argument("releases", nargs="*", type=Path)
    args = parser.parse_intermixed_args()
    good, left = True, Counter[str]()
    for which in filter(None, args.sets.split(",")):
        good &= compare(args.checker, of_set(which, left), f"the {which} set")
    for folder in args.releases or (releases() if args.sets else []):
        good &= compare(args.checker, of_release(folder, left), f"the release {folder.name}")
    if args.random:
        rng = np.random.default_rng(args.seed)
        makers = random_case, random_structure
        cases = (makers[k % 2](rng, k) for k in range(args.random))
        good &= compare(args.checker, cases, "random programs")
    for reason, count in left.most_common():
        print(f"left out: {count:,}: {reason}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
