"""Dependencies between packages: hierdp → solvers → models only; no cycles of modules or rooms."""

import ast
from functools import cache
from pathlib import Path

import pytest

import hierdp
import models

ROOT = Path(__file__).parents[1]


def imported(path):
    """Every module that a file imports, at the top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize(("package", "above"), [("models", ["solvers", "hierdp"]), ("solvers", ["hierdp"])])
def test_no_package_imports_one_above_it(package, above):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        wrong = {name for name in imported(path) if name.split(".")[0] in above}
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_the_walk_sees_every_kind_of_import(tmp_path):
    code = "import a.b\nfrom c import d\ndef f():\n    import e as g\n    from h.i import j\n"
    (tmp_path / "some.py").write_text(code, encoding="utf-8")
    assert set(imported(tmp_path / "some.py")) == {"a.b", "c", "c.d", "e", "h.i", "h.i.j"}


def modules(*packages):
    """The files of these packages by their modules' dotted names."""
    found = {}
    for path in sorted(path for package in packages for path in (ROOT / package).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def used(code, known):
    """The known modules that a module uses.

    This counts imports anywhere, also inside functions and for type checking only, and dotted strings
    that name a module to be loaded later, such as ``"solvers.fast.budget:solve_budget"``.
    ``from package import module`` uses the module; it uses the package itself only if it imports something
    else from it.
    """
    for node in ast.walk(ast.parse(code)):
        names = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{name.name}" for name in node.names]
            names = [one if one in known else node.module for one in inside]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names = [node.value.partition(":")[0]]
        yield from (name for name in names if name in known)


@cache
def graph_of(*packages):
    """The modules of these packages that each of them uses."""
    known = modules(*packages)
    return {name: set(used(path.read_text(encoding="utf-8"), known)) - {name} for name, path in known.items()}


def circles(graph):
    """The strongly connected components of more than one module, each in order."""

    def reached(start):
        seen, left = set(), [start]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
        return seen

    reach = {name: reached(name) for name in graph}
    found = {tuple(sorted(one for one in reach[name] if name in reach[one])) for name in graph}
    return sorted(circle for circle in found if len(circle) > 1)


@pytest.mark.parametrize("package", ["models", "solvers", "hierdp"])
def test_no_modules_import_each_other_in_a_circle(package):
    found = circles(graph_of(package))
    assert not found, "\n".join(" ↔ ".join(circle) for circle in found)


def by_room(graph):
    """The rooms that each room uses. A room is a package or a module directly below `models`, `solvers` or
    `hierdp`, such as `models.arithmetic` or a model's file.
    """
    found = {}
    for name, uses in graph.items():
        room = ".".join(name.split(".")[:2])
        found.setdefault(room, set()).update({".".join(one.split(".")[:2]) for one in uses} - {room})
    return found


@pytest.mark.parametrize("package", ["models", "solvers", "hierdp"])
def test_no_rooms_import_each_other_in_a_circle(package):
    found = circles(by_room(graph_of(package)))
    assert not found, "\n".join(" ↔ ".join(circle) for circle in found)


def test_a_circle_of_rooms_is_found_between_other_modules():
    graph = {
        "h.a.one": {"h.b.one"},
        "h.b.one": set(),
        "h.b.two": {"h.a.two"},
        "h.a.two": {"h.c"},
        "h.c": set(),
    }
    assert circles(graph) == []
    assert circles(by_room(graph)) == [("h.a", "h.b")]


@pytest.mark.parametrize("package", [models, hierdp])
def test_names_loaded_on_first_use_are_those_that_type_checkers_see(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    block, _ = (node for node in tree.body if isinstance(node, ast.If))
    seen = {name.asname: one.module for one in block.body for name in one.names if name.asname == name.name}
    assert seen == package._WHERE
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_a_circle_is_found_however_it_is_closed():
    code = {
        "a": "",
        "a.top": "import a.lazy",
        "a.lazy": "def f():\n    from a.typed import g",
        "a.typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import named",
        "a.named": "PATHS = {'x': 'a.top:f'}",
        "a.outside": "from a import top",
        "a.alone": '"""Words about a.top."""',
    }
    graph = {name: set(used(text, code)) - {name} for name, text in code.items()}
    assert circles(graph) == [("a.lazy", "a.named", "a.top", "a.typed")]
    assert graph["a.alone"] == set()
    assert graph["a.outside"] == {"a.top"}
