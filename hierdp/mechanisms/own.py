"""A user's own mechanism: a class in a file, or of an installed package, loaded by a name that is typed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import cleandoc, getsourcefile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError, listed, unknown_name
from hierdp.mechanisms.description import MechanismInfo, MethodInfo
from hierdp.mechanisms.option import keywords_of
from hierdp.mechanisms.registry import MECHANISMS, released_by

if TYPE_CHECKING:
    from hierdp.mechanisms.mechanism import Mechanism

GROUP = "hierdp.mechanisms"
"""The entry points by which an installed package names its mechanisms."""

FORM = "FILE.py:CLASS, such as ./survey.py:Survey"


def load(name: str) -> MechanismInfo:
    """The description of a mechanism by a name that is typed; from then on, all that runs here knows it.

    Parameters
    ----------
    name : str
        ``FILE.py:CLASS``, or an entry point of an installed package.

    Raises
    ------
    InputError
        If there is none, its code fails while it is loaded, or its name is taken.
    """
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(".py"):
        return describe(_in_file(Path(path), attribute))
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        known = unknown_name(name, installed, "no mechanism") if installed else f"no mechanism {name!r}"
        raise InputError(f"{known}; give {FORM}")
    return describe(_class(installed[name].load, name))


def is_own(name: str) -> bool:
    """Whether a name is that of a mechanism outside of hierdp, by its form or as an entry point."""
    return ".py:" in name or any(point.name == name for point in entry_points(group=GROUP))


def _in_file(path: Path, attribute: str) -> type[Mechanism[Any]]:
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; name the mechanism as {FORM}")
    return _class(lambda: _loaded(path, attribute), f"{path}:{attribute}")


def attribute_of(path: Path, attribute: str) -> Any:
    """What a user's own file has of a name; from then on, other processes can import its module.

    Raises `InputError` if there is no file, its code fails while it is loaded, or its name is taken.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    return _loading(lambda: _loaded(path, attribute), f"{path}:{attribute}")


def _loaded(path: Path, attribute: str) -> Any:
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path.resolve()):
        return getattr(known, attribute)
    if known is not None:
        raise InputError(f"a module called {path.stem!r} is loaded already: rename {str(path)!r}")
    if not path.stem.isidentifier():
        raise InputError(f"{path.name!r} is no name of a module: rename it, such as to survey.py")
    other = find_spec(path.stem)  # a folder of that name has no origin, and hides no file
    if other is not None and other.origin is not None and Path(other.origin).resolve() != path.resolve():
        raise InputError(f"there is a module called {path.stem!r} already: rename {str(path)!r}")
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # last: for other processes, which import the class by its module
    spec = spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return getattr(module, attribute)


def _loading(loading: Any, name: str) -> Any:
    try:
        return loading()
    except InputError:
        raise
    except Exception as wrong:
        raise InputError(f"{name} cannot be loaded: {type(wrong).__name__}: {wrong}") from wrong


def _class(loading: Any, name: str) -> type[Mechanism[Any]]:
    from hierdp.mechanisms.mechanism import Mechanism

    kind = _loading(loading, name)
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        raise InputError(f"{name} is no class of hierdp.mechanisms.Mechanism")
    own: type[Mechanism[Any]] = kind
    return own


def describe(kind: type[Mechanism[Any]]) -> MechanismInfo:
    """The description of a class: that of the registry, or one made from the class, which then joins it.

    Raises
    ------
    InputError
        If another mechanism has its name, or the name of one of its methods.
    """
    known = MECHANISMS.get(kind.NAME)
    if known is not None and known.kind is kind:
        return known
    names = list(kind.METHODS) or [kind.NAME]
    replaced = known is not None and known.own is not None and known.own["class"] == origin_of(kind)["class"]
    taken = [name for name in names if not replaced and released_by(name) is not None]
    if taken or (known is not None and not replaced):
        called = listed(taken or [kind.NAME])
        raise InputError(f"another mechanism is called {called}: rename that of {kind.__qualname__}")
    text = cleandoc(kind.__doc__ or "")
    first = text.partition("\n")[0].rstrip(".")
    MECHANISMS[kind.NAME] = info = MechanismInfo(
        kind.NAME,
        kind.__module__,
        first[:1].lower() + first[1:],
        "ε-DP, or (ε, δ)-DP by zCDP" if "delta" in keywords_of(kind) else "ε-DP",
        kind.RELATION or "",
        tuple(MethodInfo(name, "", str(origin_of(kind)["class"])) for name in names),
        value=kind,
        help=text,
        own=origin_of(kind),
    )
    return info


def parts_of(mechanism: Mechanism[Any]) -> tuple[MechanismInfo, float, dict[str, Any]]:
    """What a value is made of: its description, its ε, and its other options.

    Raises `InputError` if it is no mechanism.
    """
    from hierdp.mechanisms.mechanism import Mechanism

    if not isinstance(mechanism, Mechanism):
        raise InputError(unknown_name(mechanism, MECHANISMS, "no mechanism"))
    info = describe(type(mechanism))
    return info, mechanism.epsilon, {name: getattr(mechanism, name) for name in info.keywords}


def origin_of(kind: type[Mechanism[Any]]) -> Mapping[str, str | None]:
    """Whose word the sensitivities are, for a manifest: the class, and the digest of its file, if any."""
    try:
        file = getsourcefile(kind)
    except (TypeError, OSError):
        file = None
    if file is None or not Path(file).is_file():
        return {"class": kind.__qualname__, "sha256": None}
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return {"class": f"{Path(file).name}:{kind.__qualname__}", "sha256": digest}
