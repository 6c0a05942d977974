# Two commands do all the set-up on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode of the packages, as pip writes it where it copies them: every process starts the faster for it.
COMPILE := $(BIN)/python -m compileall -q models solvers hierdp

.PHONY: demo test test-all test-attack test-spark test-notebooks notebooks theorem lint docs bench instances clean

demo: $(VENV)/.installed
	$(BIN)/hierdp demo --overwrite

# To take under 4 minutes on two quiet cores in a fresh clone: CONTRIBUTING.md. Tests of a file share a process, and
# so what it has loaded and compiled.
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow and not attack and not notebooks and not spark'

# The quick tests, then the slow ones, then the attacks.
test-all: test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'slow and not attack and not notebooks and not spark'
	$(MAKE) test-attack

# Kills, hostile tables and releases, limits; prints its figures. One process, and all on this machine.
test-attack: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m attack tests

# In their quick settings, two at a time; `make notebooks` runs them in full and keeps their outputs.
test-notebooks: $(VENV)/.installed-test $(VENV)/.installed-notebooks
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/test_notebooks.py -m notebooks

notebooks: $(VENV)/.installed-notebooks
	$(BIN)/python notebooks/run.py

# Heavy: Spark is 400 MB, and needs Java 17 or 21.
test-spark: $(VENV)/.installed-test $(VENV)/.installed-spark
	@command -v java > /dev/null || { echo "Spark needs Java: apt-get install openjdk-17-jre-headless"; exit 1; }
	$(BIN)/python -m pytest tests/hierdp/test_spark.py -m spark

# Needs Debian's coq, libzarith-ocaml-dev and ocaml-findlib. Compiles the proofs, then holds the extracted checker
# against hierdp's: over the benchmark's sets, the demo's releases (a small one if there is no demo), random programs.
theorem: THEOREM_RANDOM ?= 100000
theorem: THEOREM_SETS ?= small,medium
theorem: $(VENV)/.installed
	docs/theorem/build.sh
	$(BIN)/python docs/theorem/agree.py build/theorem/checker --random $(THEOREM_RANDOM) --sets $(THEOREM_SETS)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The guide and the reference, as site/index.html; its code runs in the tests.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.fast_paths

# The release of the benchmark's instances: build/hierdp-instances-SET.tar.gz, each file and proof verified, and
# compared with the committed hashes. (Those of .npz files and of the manifest are of zlib 1.2.13.)
instances: SET ?= small
instances: $(VENV)/.installed
	$(BIN)/hierdp bench write build/instances-$(SET) --set $(SET) --data /nonexistent \
		--archive build/hierdp-instances-$(SET).tar.gz
	$(BIN)/hierdp bench verify build/hierdp-instances-$(SET).tar.gz
	cd build/instances-$(SET) && if [ $(SET) = small ]; then sha256sum --check --quiet $(CURDIR)/benchmarks/results/instances.sha256; fi

clean:
	rm -rf $(VENV) build site *.egg-info hierdp-demo

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("hierdp needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	$(COMPILE)
	touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	$(COMPILE)
	touch $@
