"""Print what pyproject.toml declares, for pip and uv.

``--build-system`` prints the requirements of the build; ``--oldest`` prints constraints: the oldest version
that is allowed of each requirement of the build, of hierdp and of its extras. Otherwise nothing is printed.
"""

import re
import sys
import tomllib
from pathlib import Path

declared = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))
build, project = declared["build-system"]["requires"], declared["project"]
if "--build-system" in sys.argv:
    print(*build, sep="\n")
if "--oldest" in sys.argv:
    extras = project["optional-dependencies"].values()
    for one in sorted({*build, *project["dependencies"], *(one for extra in extras for one in extra)}):
        if not one.startswith("hierdp["):
            # `mkdocs>=1.6,<2` and `ibis-framework[duckdb]>=9.5; python_version < "3.13"`, for example.
            print(re.sub(r"^([\w.-]+)(?:\[\w+\])?>=([\w.]+)(?:,[^;]*)?", r"\1==\2", one))
