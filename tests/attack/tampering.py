"""Changes of a release by somebody who knows its files; SHA256SUMS is written anew after each."""

import io
import json
import shutil
from zipfile import ZipFile

import numpy as np
import pandas as pd

from hierdp.record import files, proofs
from hierdp.reports.release import release_report
from tests.hierdp.changing import cell, in_proofs, in_table, manifest


def edit_text(name, old, new):
    """Replace the first occurrence in a file."""

    def changed(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return changed


def two_rows_in_turn(table):
    """Exchange two different counts of one level."""
    name = "groups" if "groups" in table else "count"
    level = table["level"] if "level" in table else pd.Series(0, table.index)
    rows = table.index[level == level.max()]
    other = next(row for row in rows if table[name][row] != table[name][rows[0]])
    values = table.loc[[rows[0], other], name].to_numpy()[::-1].copy()
    table.loc[[rows[0], other], name] = values
    return table


def one_array(part, by=1, entries=None):
    """Change the middle entry, or `entries`, of the first array like `part` in the last step with one."""

    def change(members):
        for name in sorted(members, reverse=True):
            if not name.endswith(".npz"):
                continue
            with np.load(io.BytesIO(members[name])) as kept:
                arrays = dict(kept)
            for key, array in arrays.items():
                if part in key and array.size and array.dtype.kind in "iuf":
                    again = array.astype(np.int64 if array.dtype.kind in "iu" else array.dtype)
                    again.flat[again.size // 2 if entries is None else entries] += by
                    arrays[key] = again
                    stream = io.BytesIO()
                    np.savez(stream, **arrays)
                    members[name] = stream.getvalue()
                    return
        raise AssertionError(f"no step has an array {part!r}")

    return in_proofs(change)


def steps_in_turn(members):
    """Exchange the first two steps."""
    one, other = "000000.npz", "000001.npz"
    members[one], members[other] = members[other], members[one]


def names_in_turn(members):
    about = json.loads(members[proofs.NAMES])
    names = about["steps"]
    names[0], names[1] = names[1], names[0]
    members[proofs.NAMES] = json.dumps(about, ensure_ascii=False).encode()


def of_the_other(*names):
    """Replace files by those of another release of the same table by the same mechanism."""

    def changed(folder):
        for name in names:
            shutil.copy(folder.parent / "other" / name, folder / name)

    return changed


def swapped(one, other):
    """Exchange the names of two files."""

    def changed(folder):
        (folder / one).rename(folder / "aside")
        (folder / other).rename(folder / one)
        (folder / "aside").rename(folder / other)

    return changed


def removed(name):
    return lambda folder: (folder / name).unlink()


def added(name):
    return lambda folder: (folder / name).write_text("See also https://example.org\n")


def flipped(name, part):
    """Change a bit of a file."""

    def changed(folder):
        content = bytearray((folder / name).read_bytes())
        content[int(len(content) * part)] ^= 1
        (folder / name).write_bytes(content)

    return changed


def a_bit_of_the_proofs(folder):
    """Change a bit in the contents of a step; other bits of the file, such as times, have no meaning."""
    path = folder / files.PROOFS
    with ZipFile(path) as zipped:
        step = max(zipped.infolist(), key=lambda entry: entry.compress_size)
    content = bytearray(path.read_bytes())
    start = step.header_offset + 30 + len(step.filename)  # after the local header and the name
    content[start + step.compress_size // 2] ^= 1
    path.write_bytes(content)


def spends(change):
    return manifest(lambda manifest: change(manifest["budget"]["spends"]))


TABLES = ("released.parquet", "released.csv")

CHANGES = {
    "a count, larger": cell(0),
    "a count, smaller": cell(-1, -1),
    "two counts, each in the other's place": in_table(two_rows_in_turn),
    "two rows, each in the other's place": in_table(
        lambda table: table.iloc[[1, 0, *range(2, len(table))]].reset_index(drop=True)
    ),
    "a row left out": in_table(lambda table: table.drop(index=1).reset_index(drop=True)),
    "a row twice": in_table(lambda table: pd.concat([table, table[-1:]], ignore_index=True)),
    "a column more": in_table(lambda table: table.assign(checked=1)),
    "counts as floats": in_table(
        lambda t: t.astype({n: "float32" for n in ("groups", "count") if n in t})
    ),
    "the table of another release": of_the_other(*TABLES),
    "the Parquet file of another release": of_the_other("released.parquet"),
    "the CSV file of another release": of_the_other("released.csv"),
    "a digit of the CSV file": edit_text("released.csv", "1", "2"),
    "Parquet and CSV under each other's name": swapped(*TABLES),
    "no CSV file": removed("released.csv"),
    "no table": removed("released.parquet"),
    "the report's title": lambda folder: (
        edit_text("report.html", "<title>", "<title>Final ")(folder)
    ),
    "a script in the report": edit_text("report.html", "</body>", "<script>alert(1)</script></body>"),
    "the report of another release": of_the_other("report.html"),
    "the proofs of another release": of_the_other(files.PROOFS),
    "proofs and manifest of another release": of_the_other(files.PROOFS, files.MANIFEST),
    "the manifest of another release": of_the_other(files.MANIFEST),
    "no report": removed(files.REPORT),
    "a bit of the proofs": a_bit_of_the_proofs,
    "a bit of the CSV file": flipped("released.csv", 0.6),
    "no proofs, and the manifest as it was": lambda folder: in_proofs(
        lambda members: [members.pop(name) for name in list(members)[:-1]]
    )(folder),
    "an answer": one_array("answer of the model"),
    "a step without its file": in_proofs(lambda members: members.pop("000000.npz")),
    "a step more": in_proofs(lambda members: members.update({"more.npz": members["000000.npz"]})),
    "a step of another name": in_proofs(
        lambda m: m.update({proofs.NAMES: m[proofs.NAMES].replace(b'["', b'["x', 1)})
    ),
    "a file more": added("errata.txt"),
    "a hidden file": added(".htaccess"),
    "a list of regions more": added("regions.old.csv"),
    "a key more": manifest(lambda m: m.update(certified_by="the office")),
    "a key twice": edit_text(files.MANIFEST, '"budget": {', '"budget": {"epsilon": 9}, "budget": {'),
    "a key of the budget twice": edit_text(files.MANIFEST, '"epsilon": ', '"epsilon": 0.1, "epsilon": '),
    "a key less": manifest(lambda m: m.pop("warning")),
    "another mechanism": manifest(lambda m: m.update(mechanism="M_c^xx")),
    "ε smaller": manifest(lambda m: m["budget"].update(epsilon=m["budget"]["epsilon"] / 2)),
    "ε larger": manifest(lambda m: m["budget"].update(epsilon=m["budget"]["epsilon"] * 2)),
    "a scale": spends(lambda lines: lines[0].update(scale=lines[0]["scale"] * 2)),
    "a sensitivity": spends(lambda lines: lines[0].update(sensitivity=lines[0]["sensitivity"] * 2)),
    "a scale and its sensitivity": spends(
        lambda s: s[0].update(scale=s[0]["scale"] * 2, sensitivity=s[0]["sensitivity"] * 2)
    ),
    "a measurement less": spends(lambda lines: lines.pop()),
    "a measurement twice": spends(lambda lines: lines.append(lines[0])),
    "a measurement of another name": spends(lambda lines: lines[0].update(query="nothing")),
    "the relation": manifest(lambda m: m["budget"].update(neighbours="differ in nothing")),
    "the warning": manifest(lambda m: m.update(warning=None)),
    "a claim": manifest(lambda m: m["holds"].update(whole=not m["holds"]["whole"])),
    "the title": manifest(lambda m: m.update(title="Official")),
    "NaN": manifest(lambda m: m["budget"].update(epsilon=float("nan"))),
    "an endless ε": manifest(lambda m: m["budget"].update(epsilon=1e400)),
    "another kind of list": manifest(lambda m: m.update(solved={})),
    "the settings of nothing": manifest(lambda m: m.update(settings={})),
}  # fmt: skip
"""Changes for every mechanism."""


def with_report(change):
    """Change the manifest, and write the report that belongs to it."""

    def changed(folder):
        manifest(change)(folder)
        edited = json.loads((folder / files.MANIFEST).read_text())
        table = pd.read_parquet(folder / "released.parquet")
        (folder / files.REPORT).write_text(release_report(table, edited))

    return changed


def another_whole_release(folder):
    for path in folder.iterdir():
        path.unlink()
    shutil.copytree(folder.parent / "other", folder, dirs_exist_ok=True)


def left_out(name):
    """Remove a file, and say in the manifest and in the report that it was left out."""

    def changed(folder):
        with_report(lambda m: m.update(left_out=[name]))(folder)
        (folder / name).unlink()

    return changed


BY_FINGERPRINT = {
    "another whole release": another_whole_release,
    "another title, and its report": with_report(lambda m: m.update(title="Official")),
    "the version of a library, and the report": with_report(lambda m: m["versions"].update(numpy="0.1")),
    "proofs left out, as the manifest says": left_out(files.PROOFS),
    "report left out, as the manifest says": left_out(files.REPORT),
}
"""Consistent changes: only the fingerprint shows that the release is not the published one."""

PROVED = {
    "steps in another order": in_proofs(steps_in_turn),
    "names of steps in another order": in_proofs(names_in_turn),
    "an objective": manifest(lambda m: m["solved"][-1].update(objective="0.5")),
    "a bound": manifest(lambda m: m["solved"][-1].update(bound="-1")),
    "a proof disclaimed": manifest(lambda m: m["solved"][-1].update(proved_optimal=False)),
    "steps of the manifest in another order": manifest(lambda m: m["solved"].reverse()),
    "a step of the manifest less": manifest(lambda m: m["solved"].pop()),
    "a witness": one_array("witness of the answer", 10**6, slice(None)),
    "proofs left out": removed(files.PROOFS),
}
"""Changes for mechanisms that solve problems, if they have the part. Every price of a witness is
changed: one alone, the reader may bring back to what its weight allows; it proves the answer then."""

WITH_REGIONS = {
    "a region of another name": edit_text(files.REGIONS, "town1", "town9"),
    "a region less": edit_text(files.REGIONS, "town1", "town2"),
    "no regions": removed(files.REGIONS),
    "a level of another name": edit_text(files.REGIONS, "town,", "city,"),
    "the last level of another release": of_the_other("finest.parquet", "finest.csv"),
}
