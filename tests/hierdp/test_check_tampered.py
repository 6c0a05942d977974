"""Releases changed by somebody who knows the files: each change fails a check, without a traceback."""

import io
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from changing import (
    budget,
    cell,
    change_manifest,
    claim,
    entry,
    file,
    in_proofs,
    in_table,
    manifest,
    setting,
    spend,
)
from steps import save, solved_in
from test_check import FLOWS, HIDDEN, PEOPLE, SIZES, change_answer, failed, line_of, released, verdicts

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.execution import seal
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import deviation_of, threshold
from hierdp.privacy.threshold import Changes
from hierdp.record import files, proofs
from hierdp.record.properties import holds
from tests.marks import quick


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two releases of each kind, of the same table with different noise."""
    place = tmp_path_factory.mktemp("tampered")
    kinds = {
        "group-size": {**SIZES, "max_size": 4},
        "top-down": {**FLOWS, "delta": 1e-6},
        "count-of-counts": {**SIZES, "max_size": 9},
    }
    return {
        (kind, seed): released(kind, place / f"{kind}{seed}", SimulatedNoise(seed), **options)
        for kind, options in kinds.items()
        for seed in (5, 6)
    }


# --- one change at a time, with matching digests ---------------------------------------------------------


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def npz(save, **arrays):
    kept = io.BytesIO()
    save(kept, **arrays)
    return kept.getvalue()


def listing(number=1, names=b"[]"):
    return {proofs.NAMES: b'{"format": %d, "steps": %s}' % (number, names)}


def names_of(members):
    return json.dumps(json.loads(members[proofs.NAMES])["steps"]).encode()


def in_about(**changes):
    """Change how the first step's file describes its answer and witness."""

    def change(members):
        with np.load(io.BytesIO(members["000000.npz"])) as arrays:
            held = dict(arrays)
        held["about.json"] = np.array(json.dumps({**json.loads(str(held["about.json"])), **changes}))
        members["000000.npz"] = npz(np.savez, **held)

    return in_proofs(change)


def compress_twice(members):
    with np.load(io.BytesIO(members["000000.npz"])) as arrays:
        members["000000.npz"] = npz(np.savez_compressed, **arrays)


def a_bit(folder):
    path = folder / files.PROOFS
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def another_answer(folder):
    """Replace the last answer by the other release's, which is feasible but not optimal."""
    steps, other = solved_in(folder), solved_in(folder.parent / "other")[-1]
    assert not steps[-1].model.violations(other.x)
    save([*steps[:-1], replace(steps[-1], x=other.x, witness=None)], folder)


def proofs_of_another(folder):
    """Replace the answers by another release's, with the manifest's lines about them."""
    other = folder.parent / "other"
    shutil.copy(other / files.PROOFS, folder)
    lines = json.loads((other / files.MANIFEST).read_text())["solved"]
    change_manifest(folder, lambda manifest: manifest.update(solved=lines))


def table_of_another(folder):
    for name in ("released", "finest"):
        for suffix in ("parquet", "csv"):
            shutil.copy(folder.parent / "other" / f"{name}.{suffix}", folder)


def regions_without(folder, name="02b"):
    path = folder / files.REGIONS
    path.write_text("".join(line for line in path.read_text().splitlines(True) if name not in line))


ANY = {
    "proofs of another release": (proofs_of_another, "certificates"),
    "the table of another release": (table_of_another, "table from steps"),
    "no list of regions": (lambda folder: (folder / files.REGIONS).unlink(), "shape"),
    "a list of no regions": (file(files.REGIONS, b"axis,level,level_name,region,parent\n"), "shape"),
    "a region less in the list": (regions_without, "tables"),
    "a list of regions of noise": (file(files.REGIONS, bytes(range(256))), "readable"),
    "a mechanism of another name": (entry(mechanism="M_x"), "shape"),
    "no name of the mechanism": (entry(mechanism=[1]), "shape"),
    "a column more": (in_table(lambda table: table.assign(more=1)), "shape"),
    "counts as text": (
        in_table(lambda t: t.astype({"groups" if "groups" in t else "count": str})), "manifest"
    ),
    "no rows": (in_table(lambda table: table[:0]), None),
    "the last level left out": (in_table(lambda t: t[t.level < t.level.max()]), None),
    "a level left out": (in_table(lambda t: t[t.level != 1].reset_index(drop=True)), "consistent"),
    "the root left out": (in_table(lambda t: t[t.level > 0].reset_index(drop=True)), "total"),
    "an endless budget": (budget(epsilon=float("inf")), "readable"),
    "no budget": (budget(epsilon=0), "budget: sum"),
    "a budget in words": (budget(epsilon="one"), "budget: sum"),
    "a budget that is a list": (manifest(lambda m: m.update(budget=[])), "budget"),
    "no spends": (budget(spends=[]), "manifest"),
    "a claim in words": (claim(whole="yes"), "manifest"),
    "settings of nothing": (manifest(lambda m: m.update(settings={})), None),
    "other levels": (setting(order=["o"] * 50, levels=["a"], axes={"o": ["a"]}), "shape"),
    "a manifest of depth": (file(files.MANIFEST, b"[" * 100_000), "readable"),
    "a manifest in Latin 1": (file(files.MANIFEST, b"\xff{}"), "readable"),
    "a number beyond all": (file(files.MANIFEST, b'{"a": ' + b"9" * 5000 + b"}"), "readable"),
    "no steps kept": (in_proofs(lambda m: m.clear() or m.update(listing())), "certificates"),
    "names alone": (in_proofs(lambda m: m.update({proofs.NAMES: names_of(m)})), "certificates"),
    "another format": (in_proofs(lambda m: m.update(listing(7, names_of(m)))), "certificates"),
    "no format": (in_proofs(lambda m: m.update({proofs.NAMES: b'{"steps": []}'})), "certificates"),
    "steps without names": (in_proofs(lambda m: m.update(listing(1, b"7"))), "certificates"),
    "names that are numbers": (in_proofs(lambda m: m.update(listing(1, b"[1]"))), "certificates"),
    "steps that are none": (in_proofs(lambda m: m.update({proofs.NAMES: b"7"})), "certificates"),
    "steps of depth": (in_proofs(lambda m: m.update({proofs.NAMES: b"[" * 100_000})), "certificates"),
    "a way out of the folder": (in_proofs(lambda m: m.update({"../../x.npz": b""})), "certificates"),
    "a pickle": (
        in_proofs(lambda m: m.update({"000000.npz": npz(np.savez, a=np.array([Evil()], object))})),
        "certificates",
    ),
    "compressed twice": (in_proofs(compress_twice), "certificates"),
    "an answer that is a number": (in_about(answer=["plain", 3]), "certificates"),
    "an answer that is a fraction": (in_about(answer=["fraction", [1, 0]]), "certificates"),
    "an answer that is a list": (in_about(answer=["tuple", [["plain", 3]]]), "certificates"),
    "an answer of nothing": (in_about(answer=None), "certificates"),
    "an answer of another kind": (in_about(answer=["tree", [["plain", 3]]]), "certificates"),
    "a witness that is a list": (in_about(witness=[1]), "certificates"),
    "a witness without its arrays": (in_about(witness={"prices": ["array", None]}), "certificates"),
    "a step of nothing": (in_proofs(lambda m: m.update({"000000.npz": b""})), "certificates"),
    "a bit": (a_bit, "certificates"),
}  # fmt: skip


@pytest.mark.parametrize("kind", quick(["top-down", "group-size", "count-of-counts"]))
@pytest.mark.parametrize("name", quick(ANY, every=3))
def test_a_change_is_caught_and_named(made, tmp_path, monkeypatch, kind, name):
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(made[kind, 5], tmp_path / "out")
    shutil.copytree(made[kind, 6], tmp_path / "other")
    assert FAILS not in verdicts(folder).values()
    change, caught_by = ANY[name]
    change(folder)
    seal.seal(folder)
    found = failed(folder)
    assert found
    assert caught_by is None or caught_by in found, (found, caught_by)
    assert not os.path.exists("pwned")


@pytest.mark.parametrize(
    ("change", "caught_by"),
    [
        (another_answer, "certificates"),
        (in_table(lambda table: table.assign(level_name="x")), "shape"),
        (in_table(lambda table: table.assign(parent=table.parent.replace("01", "02"))), "shape"),
    ],
)
def test_a_changed_table_of_sizes(made, tmp_path, change, caught_by):
    folder = shutil.copytree(made["group-size", 5], tmp_path / "out")
    shutil.copytree(made["group-size", 6], tmp_path / "other")
    change(folder)
    seal.seal(folder)
    assert caught_by in failed(folder)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (in_table(lambda t: t.assign(o_level="s")), "has o at another level than"),
        (
            in_table(lambda t: t.assign(d=t.d.where(t.level > 0, "elsewhere"))),
            "level 0: there is no d 'elsewhere'",
        ),
        (setting(order=["d", "o"]), "does not go down to the last level of o"),
        (setting(axes={"o": ["root", "s", "x"], "d": ["root", "c"]}), "has other levels of o"),
        (setting(axes={"d": ["root", "c"], "o": ["root", "s", "c"]}), "not ['level', 'd_level'"),
    ],
)
def test_a_changed_table_of_cells(made, tmp_path, change, why):
    folder = shutil.copytree(made["top-down", 5], tmp_path / "out")
    change(folder)
    line = line_of(folder, "shape")
    assert (line.verdict, why in line.why) == (FAILS, True)


def test_a_step_that_unpacks_to_too_much_is_refused(made, monkeypatch):
    monkeypatch.setattr(proofs, "MOST_BYTES", 0)
    monkeypatch.setattr(proofs, "MOST_OF_A_VARIABLE", 1)
    line = line_of(made["group-size", 5], "certificates")
    assert (line.verdict, "is too large for a step of" in line.why) == (FAILS, True)


# --- the table and its steps: all files changed alike, with matching digests ------------------------------

TIE = "table from steps"
BINS = {"axes": [("s", ["s"]), ("c", ["c"])], "regions_from_data": True}
TREE = {"axes": [("c", ["s", "c"])], "regions_from_data": True, "method": "H_tree^c", "repair": "whole"}


def moved_below(table):
    """Move one from a leaf to a sibling; all sums are unchanged."""
    leaves = table[(table.level == table.level.max()) & (table["count"] > 0)]
    for (_, from_), (_, to) in itertools.permutations(leaves.iterrows(), 2):
        if table.region[from_.name][:2] == table.region[to.name][:2]:
            table.loc[[from_.name, to.name], "count"] += [-1, 1]
            return table
    raise AssertionError("another seed: no two sisters")


def another_cluster(table):
    """Exchange two bins of different clusters, including their means."""
    row, other = 0, int(np.flatnonzero(table.cluster != table.cluster[0])[0])
    for name in ("cluster", "count"):
        table.loc[[row, other], name] = table.loc[[other, row], name].to_numpy()
    return table


def larger_groups(table):
    """Make a group of each region one entity larger; all sums are unchanged."""
    largest = table.groupby(["level", "region"])["size"].idxmax()
    table.loc[largest, "size"] += 1
    return table


TIED = {
    "ranges, a count moved to a sister": ("range-query", TREE, in_table(moved_below)),
    "ranges, a variance": ("range-query", TREE, cell(1, 0.5, "noise_variance")),
    "ranges, an error": ("range-query", {**TREE, "repair": None}, cell(1, 0.5, "standard_error")),
    "ranges, another repair": ("range-query", TREE, setting(repair="non-negative")),
    "ranges without repair": ("range-query", {**TREE, "method": "H_tree", "repair": None}, cell(2)),
    "a wavelet's error": ("range-query", {**BINS, "method": "Wavelet"}, cell(0, 1, "standard_error")),
    **{
        f"{method}, {what}": ("clustering", {**BINS, "method": method}, change)
        for method in ("AHP", "AHP-empirical", "AHP-greedy", "AHP-by-place", "NF", "GS", "SF", "PHP")
        for what, change in (("mean", cell(0, 0.25, "count")), ("bin's cluster", in_table(another_cluster)))
        if (method, what) != ("PHP", "bin's cluster")
    },
    "AHP, a noisy count": ("clustering", {**BINS, "method": "AHP"}, cell(0, -40, "noisy")),
    "AHP, its threshold": ("clustering", {**BINS, "method": "AHP"}, setting(eta=40.0)),
    "NF, a noisy count": ("clustering", {**BINS, "method": "NF"}, cell(0, 3, "noisy")),
    "Laplace, an error": ("clustering", {**BINS, "method": "Laplace"}, cell(0, 1, "standard_error")),
    **{
        f"groups {method} {merge}, {what}": ("count-of-counts", {**SIZES, "max_size": 9, **options}, change)
        for method, merge in (("bottom-up", None), ("Hc", "weighted"), ("Hg", "plain"), ("Hc", "at once"))
        for options in (
            {"method": method, **HIDDEN, "group_budget": 0.3, **({"merge": merge} if merge else {})},
        )
        for what, change in (
            ("larger groups", in_table(larger_groups)),
            ("K", setting(max_size=8)),
            ("the part for numbers", setting(group_budget=None)),
        )
    },
    "groups, the merging": ("count-of-counts", {**SIZES, "max_size": 9}, setting(merge="plain")),
    "sizes, the shares": (
        "group-size", {**SIZES, "max_size": 4, "shares": [1, 2, 3]}, setting(shares=[3.0, 2.0, 1.0])
    ),
    "groups, the shares": ("count-of-counts", {**SIZES, "max_size": 9}, setting(shares=[1.0, 2.0, 3.0])),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(TIED, every=6))
def test_a_table_that_differs_from_its_steps_is_detected(tmp_path, name):
    mechanism, options, change = TIED[name]
    options = {key: value for key, value in options.items() if value is not None}
    folder = released(mechanism, tmp_path / "out", SimulatedNoise(7), **options)
    assert verdicts(folder)[TIE] == HOLDS
    change(folder)
    seal.seal(folder)
    assert TIE in failed(folder), [line for line in check(folder) if line.verdict == FAILS]


# --- proofs of another answer, problem, mechanism or measurement -----------------------------------------


def other_steps(change):
    """Change the saved steps and the manifest's lines about them."""

    def changed(folder):
        lines = json.loads((folder / files.MANIFEST).read_text())["solved"]
        steps, lines = change(solved_in(folder), lines)
        save(steps, folder)
        proved = all(line["proved_optimal"] for line in lines)
        change_manifest(folder, lambda m: m.update(solved=lines, all_proved_optimal=proved))

    return changed


def worse_answer(steps, lines):
    """Move a unit in the last step's answer, which stays feasible; claim no proof."""
    kept = steps[-1]
    for places in itertools.permutations(range(kept.x.size), 2):
        x = np.array(kept.x)
        x.ravel()[list(places)] += [1, -1]
        proof = kept.model.certificate(x)
        if proof.bound is not None and not proof:
            break
    else:
        raise AssertionError("another seed: no other answer is feasible")
    stated = {"objective": str(proof.objective), "bound": str(proof.bound), "proved_optimal": False}
    return [*steps[:-1], replace(kept, x=x, witness=None)], [*lines[:-1], {**lines[-1], **stated}]


def lying_answer(steps, lines):
    """Do the same, and claim a proof."""
    steps, lines = worse_answer(steps, lines)
    return steps, [*lines[:-1], {**lines[-1], "proved_optimal": True}]


def without_step(at):
    """Leave a step out of the proofs, and change nothing in the manifest."""

    def changed(folder):
        steps = solved_in(folder)
        del steps[at]
        save(steps, folder)

    return changed


def move_a_unit(folder):
    """Move a unit from a cell of the last level to its sibling, in the table and in its step's answer."""
    steps = solved_in(folder)
    kept = steps[-1]
    x = np.array(kept.x)
    offsets = np.asarray(kept.model.offsets)
    family = next(i for i in range(offsets.size - 1) if (x[offsets[i] : offsets[i + 1]] > 1).sum() > 1)
    here = np.flatnonzero(x[offsets[family] : offsets[family + 1]] > 1) + offsets[family]
    x[here[:2]] += [1, -1]
    save([*steps[:-1], replace(kept, x=x, witness=None)], folder)
    proof = kept.model.certificate(x)
    stated = {"objective": str(proof.objective), "proved_optimal": bool(proof)}
    change_manifest(folder, lambda m: m["solved"][-1].update(stated))
    change_manifest(folder, lambda m: m.update(all_proved_optimal=bool(proof)))
    table = pd.read_parquet(folder / "released.parquet")
    rows = table.index[table["level"] == table["level"].max()]
    at = np.searchsorted(np.flatnonzero(x), here[:2])  # no count has appeared or vanished
    table.loc[rows[at], "count"] += [1, -1]
    in_table(lambda _: table)(folder)


def move_loss(from_, to, part=0.1):
    """Move loss from one measurement to another, with scales to match: each loss and the sum stay valid."""

    def change(manifest):
        spends = manifest["budget"]["spends"]
        kind = "rho" if spends[from_]["rho"] is not None else "epsilon"
        moved = part * spends[from_][kind]
        for at, by in ((from_, -moved), (to, moved)):
            line = spends[at]
            line[kind] += by
            ratio = math.sqrt(2 * line[kind]) if kind == "rho" else line[kind]
            line["scale"] = line["sensitivity"] / ratio
            spend = Spend(**{name: value for name, value in line.items() if name != "standard_deviation"})
            line["standard_deviation"] = deviation_of(spend)

    return manifest(change)


def without(steps, lines):
    """Keep only the last step."""
    return steps[-1:], lines[-1:]


def too_large(steps, lines):
    """Leave the last step out, as if it were too large to save."""
    return steps[:-1], [*lines[:-1], {**lines[-1], "variables": 10**8}]


def answer_to_others(folder):
    """Replace the first answer and its line by the optimum for other noisy counts."""
    change_answer(folder, 0, both=True)


def half_sensitivity(manifest):
    """Halve the sensitivity, and so the loss of the same noise."""
    stated = manifest["budget"]
    stated["epsilon"] /= 2
    stated["spent"] /= 2
    for line in stated["spends"]:
        line["sensitivity"] /= 2
        line["epsilon"] /= 2


def a_line_less(manifest):
    stated = manifest["budget"]
    stated["spent"] -= stated["spends"].pop()["epsilon"]


def own_delta(manifest, delta):
    """Set the δ of the only measurement, and so of the sum."""
    manifest["budget"]["spends"][0]["delta"] = manifest["budget"]["spent_delta"] = delta


def least_of(manifest):
    """Write the threshold for a budget's δ into its line."""
    (line,) = manifest["budget"]["spends"]
    least = threshold(Changes(2, 2, 1, 1), manifest["budget"]["epsilon"], manifest["budget"]["delta"])
    line["noise"] = f"double-geometric, under {least} dropped"


def smaller_delta(manifest):
    """Lower the δ of the budget and its only line, and rename the threshold."""
    manifest["budget"]["delta"] = 1e-12
    manifest["budget"]["spent_delta"] = manifest["budget"]["spends"][0]["delta"] = 5e-13
    least_of(manifest)


def no_delta(manifest):
    """Remove the δ, as for a measurement under zCDP."""
    (line,) = manifest["budget"]["spends"]
    line["delta"] = None


def small_cell(folder, by):
    """Change the first count of the last level, and the counts that contain it."""
    table = pd.read_parquet(folder / "released.parquet")
    row = table.index[table["level"] == 3][0]
    change = by - table["count"][row]
    for level in table["level"].unique():
        here = table[table["level"] == level]
        inside = here[(here.o_level == "root") | (here.o == table.o[row][:2]) | (here.o == table.o[row])]
        inside = inside[(inside.d_level == "root") | (inside.d == table.d[row])]
        assert len(inside) == 1
        table.loc[inside.index, "count"] += change
    in_table(lambda _: table)(folder)


def claims_that_fit(folder):
    table = pd.read_parquet(folder / "released.parquet")
    places = files.read_regions_of(folder / files.REGIONS)
    change_manifest(folder, lambda m: m.update(holds=holds(table, m["settings"], places)))


def no_axes(folder):
    change_manifest(folder, lambda m: m["settings"].pop("axes"))
    claims_that_fit(folder)


def no_public_total(folder):
    change_manifest(folder, lambda m: m["settings"].pop("total"))
    claims_that_fit(folder)


G = {**SIZES, "max_size": 4}
C = {**SIZES, "max_size": 9}
T = {**FLOWS, "delta": 1e-6}
QUERIES = "budget: queries"
SH = {**FLOWS, "delta": 1e-3, "method": "SH"}
UNKNOWN = {**T, "trips": 2, "distinct": True, "unknown": "elsewhere"}
LABELS = {"axes": [Numbers("x", 0, 7)]}


def without_unknown(folder):
    change_manifest(folder, lambda manifest: manifest["settings"].pop("unknown"))


M_H, TDA = {**G, "method": "M_H^dp"}, {**T, "method": "TDA"}
FLAT, LAPLACE = ({**BINS, "method": name} for name in ("Flat", "Laplace"))
STEPS = {
    "a worse answer": (other_steps(worse_answer), "certificates"),
    "a step too large": (other_steps(too_large), "certificates"),
}
UNPROVED = {**STEPS, "a worse answer": (other_steps(worse_answer), TIE)}
LIE = {"an answer said to be proved": (other_steps(lying_answer), "certificates")}
PARTS = {
    **{f"step {at} not in proofs.zip": (without_step(at), "certificates") for at in (0, 1, -1)},
    **{
        f"loss moved from {from_} to {to}": (move_loss(from_, to, part), QUERIES)
        for from_, to, part in ((0, 1, 0.1), (1, 0, 0.1), (0, 2, 1e-6))
    },
}
UNKNOWN_REGION = {
    "an unknown region kept quiet": (without_unknown, QUERIES),
    "an unknown region that is none": (setting(unknown="nowhere"), TIE),
}
OTHERS = [
    ("group-size", {**G, "method": "M_c^dp"}, STEPS | LIE),
    ("group-size", M_H, {**STEPS, "a solver's method": (entry(mechanism="M_H^r"), TIE)}),
    ("group-size", G, {
        **PARTS,
        "no fits": (other_steps(without), TIE),
        "K": (setting(max_size=5), TIE),
        "half the sensitivity": (manifest(half_sensitivity), QUERIES),
        "a measurement less": (manifest(a_line_less), QUERIES),
    }),
    ("count-of-counts", C, {
        **PARTS,
        "another method": (entry(mechanism="Hg"), TIE),
        "rows turned": (in_table(lambda t: t[::-1].reset_index(drop=True)), TIE),
        "what K is": (setting(max_size_is="estimated: see the budget"), TIE),
        "half the sensitivity": (manifest(half_sensitivity), QUERIES),
    }),
    ("count-of-counts", {**C, **HIDDEN, "group_budget": 0.3}, {
        "the answer to other numbers": (answer_to_others, "certificates"),
    }),
    ("top-down", T, {
        **STEPS,
        **LIE,
        **PARTS,
        "a unit moved with its answer": (move_a_unit, "certificates"),
        "the warning erased": (entry(warning=None), "manifest"),
        "nothing repaired": (entry(mechanism="SH"), TIE),
        "a row at no level": (in_table(lambda t: pd.concat([t, t[-1:].assign(level=9)])), TIE),
        "no axes": (no_axes, "shape"),
        "no public total": (no_public_total, QUERIES),
        "one solver's": (setting(backend="highs"), TIE),
    }),
    ("top-down", TDA, UNPROVED | LIE),
    ("top-down", {**T, "method": "TDA_L2"}, UNPROVED),
    ("top-down", {**TDA, "backend": "clarabel"}, UNPROVED),
    ("top-down", {**T, "method": "VanillaGauss"}, {"an error": (cell(1, 1, "standard_error"), TIE)}),
    *(("top-down", UNKNOWN | {"method": name}, UNKNOWN_REGION) for name in ("InfTDA", "VanillaGauss")),
    ("top-down", SH, {
        "no δ to speak of": (spend(delta=1e-300), QUERIES),
        "no δ and a sum that fits": (manifest(lambda m: own_delta(m, 1e-300)), QUERIES),
        "half the δ": (manifest(lambda m: own_delta(m, 2e-4)), QUERIES),
        "none under zCDP": (manifest(no_delta), "budget: sum"),
        "a smaller δ": (manifest(smaller_delta), TIE),
        "a cell of 1": (lambda folder: small_cell(folder, 1), TIE),
        "a cell just under": (lambda folder: small_cell(folder, 13), TIE),
        "no rule": (manifest(lambda m: m["budget"].pop("threshold")), "manifest"),
        "a rule of one's own": (budget(threshold="mine"), "budget: sum"),
        "a lower threshold": (spend(noise="double-geometric, under 13 dropped"), QUERIES),
    }),
    ("range-query", {**LABELS, "branching": 2}, {"loss moved": (move_loss(0, 1), TIE)}),
    ("range-query", TREE, {
        "the answer to other counts": (answer_to_others, "certificates"),
        "another mechanism": (entry(mechanism="M_x"), "shape"),
        "another method": (entry(mechanism="H_b^c"), TIE),
        "a region's name": (in_table(lambda t: t.assign(region=t.region[::-1].to_numpy())), TIE),
        "a repair that is none": (setting(repair="wholesome"), TIE),
        "a hierarchy more": (setting(hierarchies={"c": ["root", "s", "c"], "x": []}), TIE),
        "a column more": (in_table(lambda t: t.assign(more=1)), TIE),
        "half the sensitivity": (manifest(half_sensitivity), QUERIES),
    }),
    ("range-query", FLAT, {"flat by another number": (setting(branching=50), TIE)}),
    ("range-query", {**BINS, "method": "Wavelet"}, {"a wavelet's count": (cell(0, 0.3, "count"), TIE)}),
    ("clustering", {**LABELS, "method": "NF"}, {
        "the answer to other counts": (answer_to_others, "certificates"),
        "a bin's label": (in_table(lambda t: t.assign(x=t.x[::-1].to_numpy())), TIE),
    }),
    ("clustering", {**LABELS, "method": "GS"}, {"a bin less": (in_table(lambda t: t[:-1]), TIE)}),
    ("clustering", LAPLACE, {"no errors": (in_table(lambda t: t.drop(columns="standard_error")), TIE)}),
    ("clustering", {**BINS, "method": "SF", "clusters": 3}, {"clusters": (setting(clusters=4), TIE)}),
    ("clustering", {**BINS, "method": "SF", "clusters": 4}, {"a boundary less": (spend(times=2), QUERIES)}),
]  # fmt: skip
"""Mechanisms, options, and by name what is changed and what has to fail."""
CASES = {
    f"{kind} {options.get('method', '')} {at}, {name}": (kind, options, *changes[name])
    for at, (kind, options, changes) in enumerate(OTHERS)
    for name in changes
}


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(CASES, every=6))
def test_proofs_of_another_release_are_detected(tmp_path, name):
    mechanism, options, change, caught_by = CASES[name]
    people = PEOPLE
    if options.get("axes") == LABELS["axes"]:
        people = pd.DataFrame({"x": [0, 0, 0, 1, 2, 5, 5, 6]})
    people = pd.concat([people] * 3) if options is SH else people
    made = release(people, mechanism, epsilon=1, noise=SimulatedNoise(7), **options)
    folder = made.write(tmp_path / "out", report=False)
    assert FAILS not in verdicts(folder).values()
    change(folder)
    seal.seal(folder)
    assert caught_by in failed(folder), [line for line in check(folder) if line.verdict != HOLDS]


# --- special files, and other versions -----------------------------------------------------------------


@pytest.mark.parametrize("what", quick(["pipe", "folder", "device", "nothing"]))
def test_special_files_are_not_read(made, tmp_path, what):
    folder = shutil.copytree(made["group-size", 5], tmp_path / "out")
    path = folder / "released.csv"
    path.unlink()
    makes = {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda p: os.symlink("/dev/zero", p)}
    makes.get(what, lambda p: os.symlink(tmp_path / "gone", p))(path)
    code = "import sys; from hierdp.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", str(folder)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1
    assert "'released.csv': a release contains regular files only" in done.stdout


def test_another_version_is_reported(made, tmp_path):
    folder = shutil.copytree(made["group-size", 5], tmp_path / "out")
    change_manifest(folder, lambda manifest: manifest["versions"].update(hierdp="0.0.1"))
    seal.seal(folder)
    line = line_of(folder, "version")
    assert (line.verdict, line.why.split(",")[0]) == (OPEN, "made by hierdp 0.0.1")
    change_manifest(folder, lambda manifest: manifest.pop("versions"))
    assert "version" in verdicts(folder)


# --- no false alarms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", quick(["weighted", "plain", "at once"], every=3))
@pytest.mark.parametrize("seed", range(3))
def test_a_release_without_any_group_holds(tmp_path, merge, seed):
    """If numbers of groups are noisy, there may be no groups."""
    options = {"levels": ["s", "c"], "group": ["g"], "max_size": 3, "group_budget": 0.01, "merge": merge}
    options["regions_from_data"] = True
    one = pd.DataFrame({"s": ["a"], "c": ["aa"], "g": ["b"]})
    for turn in range(40):
        noise = SimulatedNoise(100 * seed + turn)
        made = release(one, "count-of-counts", epsilon=1, noise=noise, **options)
        if made.table.empty:
            break
    else:
        raise AssertionError("another seed: none is empty")
    found = verdicts(made.write(tmp_path / "out", report=False))
    assert FAILS not in found.values()
    assert found["table from steps"] == HOLDS


def test_the_status_and_the_words(made, tmp_path):
    from click.testing import CliRunner

    folder = shutil.copytree(made["group-size", 5], tmp_path / "out")
    in_table(lambda table: table.assign(more=1))(folder)
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 1
    assert "its columns are ['level'" in done.output
