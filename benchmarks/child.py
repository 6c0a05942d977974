"""The command of a child process, which imports what this process imports and never a user's files first."""

from __future__ import annotations

import os
import sys
from typing import Any


def python(*arguments: str) -> dict[str, Any]:
    """The arguments ``args`` and ``env`` of `subprocess.run` for Python with a safe import path."""
    from solvers.process import import_path  # a child that measures its memory loads no solvers

    first, last = import_path()
    path = os.pathsep.join(first + last)
    return {"args": [sys.executable, "-P", *arguments], "env": {**os.environ, "PYTHONPATH": path}}
