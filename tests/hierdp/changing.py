"""Changes of a release's files by somebody who knows them. SHA256SUMS is as before: see `seal.seal`."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd

from hierdp.counts.rows import Rows
from hierdp.record import files


def change_manifest(folder, change):
    path = folder / files.MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def manifest(change):
    return lambda folder: change_manifest(folder, change)


def entry(**changes):
    return manifest(lambda it: it.update(changes))


def budget(**changes):
    return manifest(lambda it: it["budget"].update(changes))


def spend(**changes):
    return manifest(lambda it: it["budget"]["spends"][0].update(changes))


def setting(**changes):
    return manifest(lambda it: it["settings"].update(changes))


def claim(**changes):
    return manifest(lambda it: it["holds"].update(changes))


def file(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def in_table(change):
    """Change the table in Parquet, CSV and the finest level's files alike."""

    def changed(folder):
        table = change(pd.read_parquet(folder / "released.parquet"))
        files.write_parts([table], folder, files.TABLE)
        if regions := files.read_regions_of(folder / files.REGIONS):
            files.write_parts(Rows(table).finest(regions), folder, files.FINEST)

    return changed


def cell(row=-1, by=1, column=None):
    """Change an entry of the table, a count if no column is given."""

    def change(table):
        table.loc[table.index[row], column or ("groups" if "groups" in table else "count")] += by
        return table

    return in_table(change)


def in_proofs(change):
    """Change the members of the zip file, given as bytes by name."""

    def changed(folder):
        path = folder / files.PROOFS
        with ZipFile(path) as old:
            members = {name: old.read(name) for name in old.namelist()}
        change(members)
        with ZipFile(path, "w", ZIP_DEFLATED) as new:
            for name, content in members.items():
                new.writestr(name, content)

    return changed
