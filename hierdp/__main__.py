"""The command ``hierdp``, also as ``python -m hierdp``."""

from __future__ import annotations

import atexit
import codecs
import gc
import io
import os
import resource
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader

from hierdp import leaving

ADDRESSES = 2_000_000 * 1024
"""Bytes of address space (``ulimit -v``) that the libraries and a small release need."""

LATER = (
    *(f"numpy.{name}" for name in ("char", "ctypeslib", "f2py", "polynomial", "rec", "strings", "testing")),
    *("asyncio", "pydoc", "tomllib"),
)
"""Modules that libraries import and a small command does not use: each is loaded when one of its names is
read."""

NEW_OBJECTS = 250_000
"""How many new objects make Python search for garbage. Libraries make that many at once, and no garbage."""


def run() -> None:
    """Run the command line; Ctrl-C ends it with a message even before a command has started.

    If the caller ignores Ctrl-C (a background job, ``nohup``), it stays ignored.
    """
    gc.set_threshold(NEW_OBJECTS)
    sys.meta_path.insert(0, _Later)
    try:
        leaving.at_once()
        _require_addresses()
        _speak_plainly()
        from hierdp.cli import main

        leaving.as_usual()
        main()
    except KeyboardInterrupt:
        print(leaving.INTERRUPTED, file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    finally:  # all output is written; an interrupt may end the process at once
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def command() -> None:
    """`run`, as a process of its own, which ends without taking the libraries apart.

    That takes Python up to a third of a second.
    """
    code = 1  # of an error that was not foreseen

    def end() -> None:
        try:
            for stream in (sys.stdout, sys.stderr):
                stream and stream.flush()
        except (OSError, ValueError):  # Python tries again, and reports it
            return
        os._exit(code)

    atexit.register(end)  # what is registered first is called last
    try:
        run()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            code = ended.code or 0
        raise


class _Later:
    """Finds the modules `LATER`, and delays their code."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in LATER else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _speak_plainly() -> None:
    """Write ``epsilon`` for ε where standard output has no such letter (``LC_ALL=C`` without UTF-8)."""
    codecs.register_error("hierdp", in_ascii)
    codecs.register(_plain_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "utf" not in stream.encoding.lower():
            ascii_only = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=PLAIN if ascii_only else stream.encoding, errors="hierdp")


PLAIN = "hierdp_ascii"
"""ASCII by another name: click writes UTF-8 to streams whose encoding is called ASCII."""


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    """The codec `PLAIN`."""
    if name != PLAIN:
        return None
    usual = codecs.lookup("ascii")
    return codecs.CodecInfo(
        usual.encode, usual.decode, usual.streamreader, usual.streamwriter, usual.incrementalencoder,
        usual.incrementaldecoder, PLAIN,
    )  # fmt: skip


WRITTEN = {
    "ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "α": "alpha", "λ": "lambda", "μ": "mu",
    "–": "-", "−": "-", "—": "-", "…": "...", "±": "+-", "×": "x", "·": "*", "→": "->", "≤": "<=", "≥": ">=",
    "≈": "~", "≠": "!=", "∞": "infinity", "√": "sqrt", "²": "^2", "³": "^3", "½": "1/2", "’": "'", "µ": "u",
}  # fmt: skip
"""Characters of our messages and tables, and what stands for them in ASCII."""


def in_ascii(failure: UnicodeError) -> tuple[str, int]:
    """An error handler for encoding: other characters are escaped, as ``\\u00fc``."""
    if not isinstance(failure, UnicodeEncodeError):
        raise failure
    text = failure.object[failure.start : failure.end]
    return "".join(WRITTEN.get(one, ascii(one)[1:-1]) for one in text), failure.end


def _require_addresses() -> None:
    """Exit before the libraries are loaded if the limit on address space is too low for them.

    OpenBLAS waits forever for memory that it cannot get. It allocates memory per thread, so under a limit it
    gets one thread.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    if limit < ADDRESSES:
        sys.exit(
            f"Error: the limit on this process's memory (ulimit -v {limit // 1024}) is too low: hierdp needs "
            f"at least {ADDRESSES // 1024}. Nothing was read or written"
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    command()
