"""Importing hierdp is fast, loads little, and names modules that shadow its own."""

import os
import shutil
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pandas as pd
import pytest

from hierdp import Numbers, SimulatedNoise, release

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HEAVY = {"cvxpy", "ortools", "highspy", "pyomo", "opendp", "duckdb", "ibis", "matplotlib", "pandas"}


def python(code, folder=None, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
    )


@pytest.mark.parametrize(
    "module", ["hierdp", "hierdp.cli", "hierdp.counts.hierarchy", "hierdp.privacy.budget"]
)
def test_import_is_light(tmp_path, module):
    done = python(f"import sys, {module}; print(*sorted({HEAVY} & set(sys.modules)))", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_no_mechanism_loads_a_solver(tmp_path):
    """For a check, which proves without any."""
    code = (
        "import sys\nfrom hierdp.mechanisms import MECHANISMS\n"
        "for info in MECHANISMS.values():\n    info.checking, info.kind and info.intervals\n"
        "print(*sorted(name for name in sys.modules if name.startswith('solvers.')))"
    )
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_public_names(tmp_path):
    code = (
        "import hierdp\n"
        "from hierdp import *\n"
        "print(*sorted(hierdp.__all__))\n"
        "assert all(getattr(hierdp, name) is globals()[name] for name in hierdp.__all__)\n"
        "hierdp.relese"
    )
    done = python(code, tmp_path)
    assert done.stdout.split() == [
        "Account", "Dates", "Hierarchy", "InputError", "Measurements", "Names", "Numbers", "PublishedRelease",
        "Release", "SimulatedNoise", "TabulatedNoise", "check", "compare", "evaluate", "open", "plan",
        "query", "release", "repair", "verify",
    ]  # fmt: skip
    assert "module 'hierdp' has no attribute 'relese'" in done.stderr


@pytest.mark.parametrize("package", ["hierdp", "models", "solvers"])
def test_dir_lists_the_public_names_and_loads_none(tmp_path, package):
    listed = f"print(*sorted([*{package}.__all__, '__version__']), *dir({package}), {package}.__version__)"
    done = python(f"import {package}, sys\n{listed}\nassert not {HEAVY} & set(sys.modules)", tmp_path)
    assert done.returncode == 0, done.stderr
    *words, version = done.stdout.split()
    names, shown = words[: len(words) // 2], words[len(words) // 2 :]
    assert shown == names
    assert version == metadata.version("hierdp")


def test_without_an_installation_there_is_no_version(tmp_path):
    code = (
        "from importlib import metadata\ndef version(name):\n    raise metadata.PackageNotFoundError\n"
        "metadata.version = version\nimport hierdp, models\nassert not hasattr(models, '__version__')\n"
        "hierdp.__version__"
    )
    done = python(code, tmp_path)
    assert "AttributeError: hierdp has no version, since hierdp is not installed" in done.stderr


def test_type_checkers_know_the_public_names_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    names = {package: import_module(package).__all__ for package in ("hierdp", "models", "solvers")}
    right = [f"from {package} import {', '.join(names[package])}, __version__" for package in names]
    wrong = [f"from {package} import nonsense" for package in names]
    (tmp_path / "mine.py").write_text("\n".join([*right, *wrong]))
    command = "mypy --strict --ignore-missing-imports --follow-imports silent --cache-dir cache mine.py"
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert found == [
        f'mine.py:{row}: error: Module "{package}" has no attribute "nonsense"  [attr-defined]'
        for row, package in enumerate(names, start=4)
    ], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("shadow", "package"),
    [
        ("models.py", "models"),
        ("models/__init__.py", "models"),
        ("solvers.py", "solvers"),
        ("solvers/__init__.py", "solvers"),
    ],
)
@pytest.mark.parametrize("way", ["the current folder", "PYTHONPATH"])
def test_shadows_are_named(tmp_path, shadow, package, way):
    file = tmp_path / "mine" / shadow
    file.parent.mkdir(parents=True)
    file.write_text("class Model: ...\n")
    if way == "PYTHONPATH":
        done = python("import hierdp", folder=tmp_path, PYTHONPATH=str(tmp_path / "mine"))
    else:
        done = python("import hierdp", folder=tmp_path / "mine", PYTHONPATH="")
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith(f"ImportError: hierdp includes a package called {package!r}, but Python finds ")
    assert str(file) in message
    assert "Rename that file or folder, or take its folder off the import path" in message


def test_a_folder_without_code(tmp_path):
    """A data folder called models: hierdp's package is still found, or (if hierdp is installed in
    editable mode) the message names the folder."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "weights.bin").write_bytes(b"")
    done = python("import hierdp, models; print(models.__file__)", folder=tmp_path)
    if done.returncode == 0:
        assert done.stdout.strip().endswith("__init__.py")
    else:
        assert f"Python finds {tmp_path / 'models'} under that name" in done.stderr


@pytest.mark.parametrize("package", ["models", "solvers"])
@pytest.mark.parametrize("init", ["class Model: ...\n", None])
@pytest.mark.parametrize("other", ["their-models", None])
def test_a_distribution_that_overwrites_our_package_is_noticed(tmp_path, package, init, other):
    """Both are installed into one folder. The later one overwrites files, and removes them when it goes."""
    for ours in ("models", "solvers", "hierdp"):
        shutil.copytree(ROOT / ours, tmp_path / ours, ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / package / "__init__.py"
    file.unlink() if init is None else file.write_text(init)
    if other is not None:
        about = tmp_path / "their_models-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {other}\nVersion: 1.0\n")
        (about / "RECORD").write_text(f"{package}/__init__.py,,\n")
    done = python("import hierdp", folder=tmp_path / "models", PYTHONPATH=str(tmp_path))
    message = done.stderr.strip().splitlines()[-1]
    culprit = other or "another distribution"
    assert message.startswith(
        f"ImportError: hierdp includes a package called {package!r}, but {culprit} has changed or removed "
        f"files in {tmp_path / package}: its __init__.py is not hierdp's. Install hierdp into an environment "
        "of its own: python -m venv hierdp-env"
    )
    assert ("pip uninstall their-models" in message) == (other is not None)
    assert "pip install --force-reinstall --no-deps hierdp" in message


def loaded(tmp_path, code):
    done = python(f"import sys\n{code}\nprint(*sorted(sys.modules))", tmp_path)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_command_loads_without_the_others(tmp_path):
    found = loaded(tmp_path, "from hierdp.cli import main\nmain(['query', '--help'], standalone_mode=False)")
    assert {one for one in found if one.startswith("hierdp.cli.")} == {
        "hierdp.cli.app",
        "hierdp.cli.commands",
        "hierdp.cli.common",
        "hierdp.cli.query",
    }


def test_what_libraries_import_in_vain_is_loaded_on_first_use(tmp_path):
    code = (
        "from hierdp.__main__ import run\nsys.argv = ['hierdp', '--version']\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "import scipy.sparse, numpy as np\n"
        "assert not {'numpy.testing._private.utils', 'numpy.f2py.crackfortran'} & set(sys.modules)\n"
        "np.testing.assert_array_equal([1], [1])\n"
        "import importlib, hierdp.__main__ as m\n"
        "assert all(len(dir(importlib.import_module(name))) > 10 for name in m.LATER)"
    )
    assert "numpy.testing._private.utils" in loaded(tmp_path, code)


def test_an_error_in_a_table_prints_one_line(tmp_path):
    """DuckDB complains if its objects, which the error's traceback holds, are not freed at the end."""
    words = "release range-query none.csv --numbers age=0:7 --epsilon 1 --out out"
    code = f"import sys\nfrom hierdp.__main__ import run\nsys.argv = ['hierdp', *{words.split()}]\nrun()"
    assert python(code, tmp_path).stderr == "Error: no file 'none.csv'\n"


AT_THE_END = """
import atexit, sys, tempfile, weakref
from hierdp import __main__ as main
folder = []
def run():
    print("x" * 100_000)
    folder.append(tempfile.TemporaryDirectory(dir="."))
    atexit.register(print, "last")
    sys.exit(eval(sys.argv[1]))
main.run = run
main.command()
"""


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("None", 0), ("7", 7), ("'why'", 1), ("1 / 0", 1)])
def test_a_command_that_ends_at_once_leaves_nothing_behind(tmp_path, code, status):
    (tmp_path / "end.py").write_text(AT_THE_END)
    done = subprocess.run(
        [sys.executable, "end.py", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (status, "x" * 100_000 + "\nlast\n")
    assert ("why" in done.stderr, "ZeroDivisionError" in done.stderr) == ("why" in code, "/" in code)
    assert [path.name for path in tmp_path.iterdir()] == ["end.py"]


def test_intervals_of_few_rows_do_not_load_scipys_functions(tmp_path):
    code = (
        "import numpy as np\nfrom hierdp.mechanisms.intervals import down_if_shown\n"
        "down_if_shown(np.array([9.0, 99.0]), np.array([5.0, 5.0]), 25.0, 0.1)"
    )
    assert "scipy.special" not in loaded(tmp_path, code)


def test_a_model_loads_without_the_others(tmp_path):
    found = loaded(tmp_path, "from models import Chebyshev")
    assert "models.chebyshev" in found
    assert not found & {"models.clustering", "models.isotonic", "models.tree_matching", "scipy.sparse"}


def test_a_tree_needs_no_kernels(tmp_path):
    assert "numba" not in loaded(tmp_path, "from models import Tree")


def test_exact_noise_loads_opendp_without_its_extras(tmp_path):
    code = (
        "import numpy as np\nfrom hierdp.privacy.noise import ExactNoise, geometric\n"
        "ExactNoise().draw(geometric('q', 1, 1.0), np.ones(3, int))"
    )
    assert not loaded(tmp_path, code) & {"sklearn", "scipy.stats", "polars", "opendp.prelude"}


def test_planning_range_queries_loads_no_optimizer(tmp_path):
    assert "scipy.optimize" not in loaded(tmp_path, "import hierdp.mechanisms.range_query.mechanism")


UNKEPT = """
import os, sys
os.environ.pop("NUMBA_CACHE_DIR", None)
import numba.core.caching as caching
class Nowhere(caching._CacheLocator):
    @classmethod
    def from_function(cls, py_func, py_file):
        return None
caching.CacheImpl._locator_classes = [Nowhere]
caching.CompileResultCacheImpl._locator_classes = [Nowhere]
from models.arithmetic import kernels
kernels.SMALL = -1
from hierdp.cli import main
main(sys.argv[1:])
"""


def test_code_that_cannot_be_kept_is_compiled_anew(tmp_path):
    """A read-only installation and a user without a home, as in a container, cause one line, no traceback."""
    (tmp_path / "in.csv").write_text("town,home\na,1\na,1\nb,2\n")
    options = ["--levels", "town", "--group", "home", "--max-size", "3", "--epsilon", "1", "--out",
        "out", "--regions-from-data", "--groups-from-data"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", UNKEPT, "release", "group-size", "in.csv", *options],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "manifest.json").exists()


def test_answers_are_read_without_what_made_the_release(tmp_path):
    found = loaded(
        tmp_path, "import hierdp.mechanisms.range_query.answers, hierdp.mechanisms.range_query.table"
    )
    assert not found & {
        "solvers",
        "hierdp.record.release",
        "opendp",
        "hierdp.mechanisms.range_query.mechanism",
    }


def test_listing_the_solvers_loads_none(tmp_path):
    code = (
        "from solvers import backends, worker\nprint(*[b.name for b in backends() if b.installed])\n"
        "assert not worker._workers"
    )
    assert not loaded(tmp_path, code) & {"cvxpy", "pyomo", "highspy", "ortools"}


HOMES = {"town": ["a", "a", "b"], "home": [1, 1, 2]}
TRIPS = {"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [9, 2, 5]}
SIZES = {"levels": ["town"], "group": "home", "max_size": 3, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip
RELEASES = {
    "top-down": (
        TRIPS,
        {"delta": 1e-8, "axes": {"from": ["o"], "to": ["d"]}, "count": "n", "regions_from_data": True},
    ),
    "group-size": (HOMES, SIZES),
    "count-of-counts": (HOMES, SIZES),
    "range-query": ({"age": [3, 4, 4]}, {"axes": [Numbers("age", 0, 8)]}),
    "clustering": ({"age": [3, 4, 4]}, {"axes": [Numbers("age", 0, 8)]}),
    "tabulation": (
        {"town": ["a", "a", "b"], "age": ["old", "young", "old"]},
        {"delta": 1e-8, "levels": ["town"], "attributes": ["age=old,young"], "regions_from_data": True},
    ),
}
MECHANISMS = {name: f"hierdp.mechanisms.{name.replace('-', '_')}" for name in RELEASES}


@pytest.mark.parametrize("mechanism", RELEASES)
def test_a_check_loads_the_mechanism_of_its_release_alone(tmp_path, mechanism):
    table, options = RELEASES[mechanism]
    made = release(pd.DataFrame(table), mechanism, epsilon=1, noise=SimulatedNoise(seed=1), **options)
    made.write(tmp_path / "out")
    code = "from hierdp.cli import main\nmain(['check', 'out'], standalone_mode=False)"
    done = python(
        f"import atexit, sys\natexit.register(lambda: print('loaded', *sys.modules))\n{code}", tmp_path
    )
    assert "All checks hold" in done.stdout, done.stderr
    found = set(done.stdout.splitlines()[-1].split())
    inside = {one.rpartition(".")[0] for one in found}  # descriptions of mechanisms are loaded for the list
    own = {mechanism} | ({"range-query"} if mechanism == "clustering" else set())  # whose trees DAWA uses
    assert {name for name, package in MECHANISMS.items() if package in inside} == own
    assert not found & {"solvers", "scipy.linalg", "ibis"}


def test_a_record_is_read_without_mechanisms_and_checks(tmp_path):
    found = loaded(tmp_path, "import hierdp.record.release, hierdp.record.properties, hierdp.reports.release")
    assert not found & {"hierdp.checking", "solvers", "ibis", *MECHANISMS.values()}


def test_solving_loads_no_search_for_proofs_of_programs(tmp_path):
    code = "from models import Chebyshev\nfrom solvers import solve\nassert solve(Chebyshev([5, 3, -2], 4))"
    assert "solvers.prove_program" not in loaded(tmp_path, code)


ALGEBRA = """
import sys
import numpy as np
from models.arithmetic import exact, kernels
kernels.SMALL = -1
assert exact.dot(np.arange(5), np.ones(5, np.int64)) == 10
assert "numba.np.arraymath" in sys.modules and "scipy.linalg" not in sys.modules
import numba
ones = np.ones(3)
assert numba.njit(lambda a: np.convolve(a, a))(ones).tolist() == [1, 2, 3, 2, 1]  # of somebody else
assert numba.njit(lambda a: np.dot(a, a))(ones) == 3
assert "scipy.linalg" in sys.modules
"""


def test_kernels_load_numba_without_linear_algebra_and_leave_it_to_others(tmp_path):
    loaded(tmp_path, ALGEBRA)


DIALECTS = """
from hierdp.tables.databases import COMPILERS, embedded
embedded()
assert not {name for name in sys.modules if name.startswith("sqlglot.dialects.p")}
import ibis
from ibis.backends.sql.compilers import MySQLCompiler
compilers = sys.modules[COMPILERS]
assert compilers.postgres.compiler and MySQLCompiler is compilers.mysql.MySQLCompiler
assert "`a` > 3" in ibis.to_sql(ibis.table({"a": "int"}, "t").filter(ibis._.a > 3), "bigquery")
assert not hasattr(compilers, "nothing")
"""


def test_only_the_dialects_of_sql_in_use_are_loaded(tmp_path):
    loaded(tmp_path, DIALECTS)


MIDDLING = "".join(f"{17 * k % 2000}\n" for k in range(3000))


def test_a_histogram_of_2000_bins_is_released_and_checked_without_a_compiler(tmp_path):
    """Its kernels take linear time, and Python runs them before Numba would be loaded."""
    (tmp_path / "in.csv").write_text(f"age\n{MIDDLING}")
    made = "release range-query in.csv --numbers age=0:2000 --epsilon 1 --out out"
    for words in (made.split(), ["check", "out"], ["query", "out", "--range", "18:360"]):
        code = f"from hierdp.cli import main\nmain({words}, standalone_mode=False)"
        listing = "import atexit, sys\natexit.register(lambda: print('loaded', *sys.modules))\n"
        done = python(listing + code, tmp_path)
        assert not {"numba", "scipy.linalg"} & set(done.stdout.splitlines()[-1].split()), words


def test_a_small_release_loads_no_compiler_and_no_solver(tmp_path):
    """Its kernels are run by Python, its fast paths solve it, and its noise is OpenDP's."""
    (tmp_path / "in.csv").write_text("town,home\na,1\na,1\nb,2\n")
    options = "--levels town --group home --max-size 3 --epsilon 1 --regions-from-data --groups-from-data"
    command = ["release", "group-size", "in.csv", *options.split(), "--out", "out"]
    code = f"from hierdp.cli import main\nmain({command}, standalone_mode=False)"
    done = python(f"{code}\nimport sys\nprint('loaded', *sys.modules)", tmp_path)
    found = set(done.stdout.splitlines()[-1].split())
    assert "ibis" in found, done.stderr
    unused = HEAVY - {"opendp", "duckdb", "ibis", "pandas"}
    unused |= {"numba", "scipy.linalg", "scipy.optimize", "sklearn", "polars", "flint", "cryptography"}
    assert not found & unused
    inside = {one.rpartition(".")[0] for one in found}
    assert {name for name, package in MECHANISMS.items() if package in inside} == {"group-size"}
