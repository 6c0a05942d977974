"""Read programs from files: MPS and LP, plain or packed by gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import zlib
from pathlib import Path

from models.programs.file_program import FileProgram
from models.programs.read_lp import read_lp
from models.programs.read_mps import read_mps

READERS = {".mps": read_mps, ".qps": read_mps, ".lp": read_lp}
"""By the ending of the name, in upper or lower case; ``.gz`` or ``.bz2`` may follow."""

PACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress}

MOST_BYTES = 2 * 10**9
"""Larger files are not read."""


def read_program(path: str | Path) -> FileProgram:
    """The program that a file states, in its own numbers: decimals become fractions.

    Parameters
    ----------
    path : path
        Ends in ``.mps``, ``.qps`` or ``.lp``, in upper or lower case; ``.gz`` or ``.bz2`` may follow.

    Raises
    ------
    ValueError
        If the ending is another one, the file is not of that format, or it states something that is not
        supported; the message names the line.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.lp"
    ...     _ = path.write_text("max x + y\\nst\\n cap: 0.1 x + 0.2 y <= 0.3\\nbinary\\n x y\\nend\\n")
    ...     program = read_program(path)
    >>> program.columns, program.most, program.maximize
    (['x', 'y'], [Fraction(3, 10)], True)
    """
    path = Path(path)
    kind, text = read_text(path)
    return READERS[kind](text)


def read_text(path: Path) -> tuple[str, str]:
    """``(ending, text)`` of a file, unpacked.

    Raises
    ------
    ValueError
        If the ending is not known, or the file is not text.
    """
    endings = [ending.lower() for ending in path.suffixes]
    packed = endings.pop() if endings and endings[-1] in PACKED else ""
    kind = endings[-1] if endings else ""
    if kind not in READERS:
        known = ", ".join(READERS)
        raise ValueError(f"the name must end in {known}, also with .gz or .bz2, not in {path.suffix!r}")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    data = path.read_bytes()
    try:
        text = (PACKED[packed](data) if packed else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, ValueError) as wrong:
        raise ValueError(
            f"it is not text{f' packed as {packed}' if packed else ' in UTF-8'}: {wrong}"
        ) from None
    return kind, text.replace("\r\n", "\n").replace("\r", "\n")
