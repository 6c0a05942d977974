"""How the packages may use each other: hierdp → solvers → models, and never the other way round."""

import ast
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("package", "above"), [("models", ["solvers", "hierdp"])])
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
