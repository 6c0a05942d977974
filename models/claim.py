"""An answer that is claimed to be optimal, with what proves it; also as a file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np

from models import instances
from models.arithmetic.arrays import Array
from models.certificate import Certificate, Witness
from models.programs.program import Program
from models.witnesses.plain_text import FIRST_LINE, problem_lines
from models.witnesses.program_certificate import lagrangian_certificate
from models.witnesses.row_proofs import exact_proofs
from models.witnesses.vipr import write_vipr

FORMAT = "hierdp claim 1"
"""Changes whenever another version could not read the file."""

HEAD = "claim.json"


class Claim(NamedTuple):
    """A model, an answer that is claimed to be optimal, and what may prove it.

    Attributes
    ----------
    model : Model or Program
    x : array
        The answer in the model's shape; for a program, all its variables.
    witness : mapping, optional
        For a program ``prices``, one for each row.

    Examples
    --------
    >>> from models import Isotonic
    >>> import tempfile
    >>> claim = Claim(Isotonic([3, 1, 4], integer=True), np.array([2, 2, 4]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = claim.save(Path(folder) / "claim.json")
    ...     Claim.load(path).certificate().optimal
    True
    """

    model: Any
    x: Array
    witness: Witness | None = None

    def certificate(self) -> Certificate:
        """Check the answer and the witness; nothing is searched."""
        if not isinstance(self.model, Program):
            proof: Certificate = self.model.certificate(self.x, self.witness)
            return proof
        return lagrangian_certificate(self.model, self.x, self._prices())

    def save(self, path: str | Path, by_hash: bool = False) -> Path:
        """Write model, answer and witness to a `.json` or `.npz` file, which holds every number exactly.

        A file claims, and does not prove: `load` reads it, and `certificate` checks it again. Files for other
        checkers are `.vipr` (`models.witnesses.vipr`) and `.txt` (`models.witnesses.plain_text`, for that of
        docs/theorem); `load` does not read them.

        Parameters
        ----------
        by_hash : bool
            Leave out the model's data, and write their SHA-256 (`digest`) only.

        Raises
        ------
        ValueError
            If the suffix is another one, the model or the witness holds something that is not data, or (for
            `.vipr` and `.txt`) the proof does not read as row prices.
        """
        path = Path(path)
        if path.suffix in (".vipr", ".txt"):
            return self._save_text(path)
        arrays = instances.packed(self.model, self.x, self.witness)
        head = {"format": FORMAT, "model": type(self.model).__name__, "sha256": digest(self.model)}
        if by_hash:
            arrays = instances.packed_answer(self.x, self.witness)
        if path.suffix == ".npz":
            arrays[HEAD] = np.array(json.dumps(head))
            np.savez_compressed(path, **arrays)
        elif path.suffix == ".json":
            parts = {name: _written(name, array) for name, array in arrays.items() if name != instances.ABOUT}
            text = {**head, "about": json.loads(str(arrays[instances.ABOUT])), "arrays": parts}
            path.write_text(json.dumps(text) + "\n", encoding="utf-8")
        else:
            raise ValueError(f"a claim is a .json, .npz, .txt or .vipr file, not {path.name}")
        return path

    def _save_text(self, path: Path) -> Path:
        """Write the proof by row prices, for programs of other makes."""
        name, proof = type(self.model).__name__, (self.model, self.x, self._prices())
        if not isinstance(self.model, Program):
            (name, found), *more = exact_proofs(name, self.model, self.x, self.witness)
            if isinstance(found, str):
                raise ValueError(f"the claim cannot be written as {path.name}: {found}")
            if more:
                raise ValueError(f"the claim is {1 + len(more)} problems, and {path.suffix} holds one")
            proof = found
        if path.suffix == ".vipr":
            write_vipr(path, name, *proof)
        else:
            lines = [FIRST_LINE, *problem_lines(name, *proof), ""]
            path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
        return path

    def _prices(self) -> Any:
        none = np.zeros(self.model.matrix.shape[0] if isinstance(self.model, Program) else 0, np.int64)
        return (self.witness or {}).get("prices", none)

    @classmethod
    def load(cls, path: str | Path, model: Any = None) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        model : Model or Program, optional
            The model, if the file has only its hash. If the file has its data, too, both must agree.

        Raises
        ------
        ValueError
            If `save` of this format did not write the file, it has no model and none is given, or the model
            given is another one.
        """
        head, arrays = _read(Path(path))
        if head.get("format") != FORMAT:
            raise ValueError(f"{path} has the format {head.get('format')!r}, not {FORMAT!r}")
        if model is not None and digest(model) != head["sha256"]:
            raise ValueError(f"{path} is a claim about another model than the one given")
        answer, witness = instances.unpacked_answer(arrays)
        if answer is None:
            raise ValueError(f"{path} holds no answer")
        if model is None:
            if "fields" not in json.loads(str(arrays[instances.ABOUT])):
                raise ValueError(f"{path} has only the hash of its model: give the model, too")
            model = instances.unpacked(arrays).model
            if digest(model) != head["sha256"]:
                raise ValueError(f"{path}: the model's data do not have the hash that the file states")
        return cls(model, answer, witness)


def digest(model: Any) -> str:
    """The SHA-256 of a model's data: names, types, shapes and bytes of its arrays, by name."""
    arrays = instances.packed(model)
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        little = array.dtype.newbyteorder("<") if array.dtype.kind in "iuf" else array.dtype
        held = str(array) if array.dtype.kind == "U" else array.astype(little, copy=False).tobytes()
        found.update(json.dumps([name, little.str.lstrip("<|="), list(array.shape)]).encode())
        found.update(held.encode() if isinstance(held, str) else held)
    return found.hexdigest()


def _written(name: str, array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} holds {array.dtype}, which JSON does not: save it as .npz")
    values = array.ravel().tolist()
    if array.dtype.kind == "f":  # infinities, too
        values = [value if np.isfinite(value) else str(value) for value in values]
    return {"dtype": array.dtype.str.lstrip("<>|="), "shape": list(array.shape), "values": values}


def _array(name: str, values: Any, kind: np.dtype[Any]) -> Any:
    """An array of this dtype from a file's values, none of which the dtype may change."""
    if kind.kind == "f":
        values = [*map(float, values)]
    array = np.array(values, kind)
    if kind.kind not in "iufb" or any(
        type(a) is not type(b) or a != b for a, b in zip(array.tolist(), values, strict=True)
    ):
        raise ValueError(f"{name} has values that are not of the type {kind}")
    return array


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The head of a file, and its arrays by name."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as held:
                arrays = {name: held[name] for name in held.files}
            return json.loads(str(arrays.pop(HEAD))), arrays
        text = json.loads(path.read_text(encoding="utf-8"))
        arrays = {
            name: _array(name, part["values"], np.dtype(part["dtype"])).reshape(part["shape"])
            for name, part in text["arrays"].items()
        }
        arrays[instances.ABOUT] = np.array(json.dumps(text["about"]))
        return text, arrays
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, EOFError, BadZipFile) as wrong:
        raise ValueError(f"{path} is no claim: {wrong}") from None
