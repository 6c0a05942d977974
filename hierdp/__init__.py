"""Differentially private counts along a hierarchy, post-processed by exact optimization and proved optimal.

>>> from hierdp import Hierarchy, release, verify
"""

from __future__ import annotations

from hierdp import leaving

leaving.if_command()

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hierdp.api import release as release
    from hierdp.checking import check as check
    from hierdp.counts.axes import Dates as Dates
    from hierdp.counts.axes import Names as Names
    from hierdp.counts.axes import Numbers as Numbers
    from hierdp.counts.hierarchy import Hierarchy as Hierarchy
    from hierdp.errors import InputError as InputError
    from hierdp.experiments.compare import compare as compare
    from hierdp.experiments.evaluate import evaluate as evaluate
    from hierdp.measurements.measurement import Measurements as Measurements
    from hierdp.mechanisms.planning import plan as plan
    from hierdp.mechanisms.repair.mechanism import repair as repair
    from hierdp.privacy.account import Account as Account
    from hierdp.privacy.noise import SimulatedNoise as SimulatedNoise
    from hierdp.privacy.tabulated import TabulatedNoise as TabulatedNoise
    from hierdp.publication.published import PublishedRelease as PublishedRelease
    from hierdp.publication.published import open as open
    from hierdp.questions.query import query as query
    from hierdp.record.release import Release as Release
    from hierdp.verification.verify import verify as verify

# Twice: type checkers follow only imports, and an import here would load everything at run time.
_WHERE = {
    "Account": "hierdp.privacy.account",
    "Dates": "hierdp.counts.axes",
    "Hierarchy": "hierdp.counts.hierarchy",
    "InputError": "hierdp.errors",
    "Measurements": "hierdp.measurements.measurement",
    "Names": "hierdp.counts.axes",
    "Numbers": "hierdp.counts.axes",
    "PublishedRelease": "hierdp.publication.published",
    "Release": "hierdp.record.release",
    "SimulatedNoise": "hierdp.privacy.noise",
    "TabulatedNoise": "hierdp.privacy.tabulated",
    "check": "hierdp.checking",
    "plan": "hierdp.mechanisms.planning",
    "compare": "hierdp.experiments.compare",
    "evaluate": "hierdp.experiments.evaluate",
    "open": "hierdp.publication.published",
    "query": "hierdp.questions.query",
    "release": "hierdp.api",
    "repair": "hierdp.mechanisms.repair.mechanism",
    "verify": "hierdp.verification.verify",
}
__all__ = list(_WHERE)
__version__: str


def _refuse_others() -> None:
    """Raise if the packages `models` and `solvers`, whose names are common, are not hierdp's."""
    for package, ours in (("models", "certificate"), ("solvers", "residuals")):
        found = importlib.util.find_spec(package)
        inside = list(found.submodule_search_locations or ()) if found is not None else []
        here = next((folder for folder in inside if Path(folder, f"{ours}.py").exists()), None)
        if here is None:
            culprit = (found.origin or ", ".join(inside)) if found is not None else "nothing"
            raise ImportError(
                f"hierdp includes a package called {package!r}, but Python finds {culprit} under that name. "
                "Rename that file or folder, or take its folder off the import path (PYTHONPATH, sys.path). "
                "If hierdp's own package is missing, install it again: pip install --force-reinstall hierdp"
            )
        if not _marked(Path(here, "__init__.py")):
            raise ImportError(_overwritten(package, here))


def _marked(file: Path) -> bool:
    """Whether a package says that it is hierdp's. It is read, not run: it may be anybody's."""
    return file.exists() and b'\n__distribution__ = "hierdp"' in file.read_bytes()


def _overwritten(package: str, folder: str) -> str:
    """The message for a package of ours with another distribution's files in its folder."""
    from importlib import metadata

    file = f"{package}/__init__.py"
    others = {
        one.name
        for one in metadata.distributions()
        if one.name != "hierdp" and any(path.as_posix() == file for path in one.files or ())
    }
    names = " ".join(sorted(others))
    remove = f" Or remove that one (pip uninstall {names}), then run" if others else " Or run"
    return (
        f"hierdp includes a package called {package!r}, but {names or 'another distribution'} has changed or "
        f"removed files in {folder}: its __init__.py is not hierdp's. Install hierdp into an environment of "
        f"its own: python -m venv hierdp-env, then hierdp-env/bin/pip install hierdp.{remove} pip install "
        "--force-reinstall --no-deps hierdp"
    )


_refuse_others()


if not TYPE_CHECKING:
    from models.on_demand import on_demand

    __getattr__, __dir__ = on_demand(__name__, __all__, _WHERE)
