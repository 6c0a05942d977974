# Two commands do all the set-up on a fresh machine: make demo, make test.
PYTHON ?= python3
# locked: the versions of requirements/; latest: the newest of everything; oldest: what pyproject.toml allows.
VERSIONS ?= locked
VENV := .venv$(if $(filter-out locked,$(VERSIONS)),-$(VERSIONS))
BIN := $(VENV)/bin
# By uv if it is there, else by pip. `make UV=` uses pip.
UV := $(shell command -v uv)
CREATE = $(if $(UV),$(UV) venv --quiet --python $(PYTHON),$(PYTHON) -m venv) $(VENV)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)
# Bytecode of the packages, as pip writes it where it copies them: every process starts the faster for it.
COMPILE := $(BIN)/python -m compileall -q models solvers hierdp

.PHONY: demo test test-latest test-oldest test-solvers lock test-all test-attack test-spark test-notebooks notebooks theorem lint docs bench findings instances edition clean

demo: $(VENV)/.installed
	$(BIN)/hierdp demo --overwrite

# To take under 4 minutes on two quiet cores in a fresh clone: CONTRIBUTING.md. Tests of a file share a process, and
# so what it has loaded and compiled. PART=2/3 runs the second of three parts.
test: PART ?= 1/1
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --share $(PART) -m 'not slow and not attack and not notebooks and not spark'

# The quick tests with other versions than the locked ones, each in an environment of its own.
test-latest:
	rm -f .venv-latest/constraints.txt
	$(MAKE) test VERSIONS=latest

test-oldest:
	$(MAKE) test VERSIONS=oldest

# The tests of solvers, and which of these work: with the newest version of every solver that needs no licence, added to
# .venv-latest.
test-solvers:
	$(MAKE) .venv-latest/.installed-test .venv-latest/.installed-open VERSIONS=latest
	.venv-latest/bin/python -m pytest -n 2 --dist worksteal tests/solvers
	.venv-latest/bin/hierdp solvers --probe

# The quick tests, then the slow ones and the attacks, or a share of them such as 2/3.
test-all: SHARE ?= 1/1
test-all: test
	$(BIN)/python -m pytest -n 2 --dist worksteal --share $(SHARE) -m 'slow and not attack and not notebooks and not spark'
	$(MAKE) test-attack SHARE=$(SHARE)

# Kills, hostile tables and releases, limits; prints its figures. One process, and all on this machine.
test-attack: SHARE ?= 1/1
test-attack: $(VENV)/.installed-test
	$(BIN)/python -m pytest --share $(SHARE) -m attack tests

# In their quick settings, two at a time; `make notebooks` runs them in full and keeps their outputs.
test-notebooks: $(VENV)/.installed-test $(VENV)/.installed-develop
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/test_notebooks.py -m notebooks

notebooks: $(VENV)/.installed-develop
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

lint: $(VENV)/.installed-develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The guide and the reference, as site/index.html; its code runs in the tests.
docs: $(VENV)/.installed-develop
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks guard

# The newest version of every solver, in .venv-latest; CPLEX and COPT with the licences in their packages.
.PHONY: solvers
solvers:
	rm -f .venv-latest/constraints.txt
	$(MAKE) .venv-latest/.installed-solvers VERSIONS=latest
	$(MAKE) .venv-latest/.newest VERSIONS=latest

$(VENV)/.newest: $(VENV)/.installed-solvers
	$(INSTALL) --upgrade qoco cplex coptpy
	touch $@

# Every finding of docs/solver-findings.md again, with the newest solvers; prints the table.
findings: solvers
	.venv-latest/bin/python -m benchmarks findings --save benchmarks/results/findings.csv --reports build/reports
	.venv-latest/bin/python -m benchmarks tables --into docs/solver-findings.md

# The benchmark's edition, about half an hour on a core that nothing else uses: the small set three times, the medium set once,
# each solver by one library, with its newest version. The same command continues where it was stopped. Then the pages
# that follow from its file. Solvers whose licences forbid publishing results are left out: docs/benchmark.md.
# For a trial of a few problems: make edition EDITION=/tmp/trial.parquet ONLY='--models Merging'
EDITION ?= hierdp/bench/edition-2026.2.parquet
SOLVERS := fast,highs,highs:pdlp,highs:hipdlp,cp-sat,scip,min-cost-flow,glop,pdlp,clarabel,osqp,scs,glpk_mi,cvxpy:cplex,cvxpy:piqp,cvxpy:qoco
SOLVERS := $(SOLVERS),cvxpy:ecos,qpsolvers:proxqp,qpsolvers:qpalm,qpsolvers:daqp,qpsolvers:quadprog
RUN = .venv-latest/bin/hierdp bench run --backends $(SOLVERS) --time-limit 10 --memory 8 --data none --out $(EDITION) $(ONLY)
edition: solvers
	$(RUN) --set small --repeats 3
	$(RUN) --set medium
	mkdir -p build
	.venv-latest/bin/hierdp bench report $(EDITION) --out build/edition --overwrite
	.venv-latest/bin/hierdp bench page $(EDITION) --out build/leaderboard.html
	.venv-latest/bin/python -m benchmarks tables --into docs/benchmark.md,docs/solver-findings.md

# The release of the benchmark's instances: build/hierdp-instances-2026.2-SET.tar.gz, each file and proof verified, each text
# read back, and all compared with the committed hashes.
instances: SET ?= small
instances: $(VENV)/.installed
	rm -rf build/instances-$(SET)
	$(BIN)/hierdp bench write build/instances-$(SET) --set $(SET) --data /nonexistent \
		--archive build/hierdp-instances-2026.2-$(SET).tar.gz
	$(BIN)/hierdp bench verify build/hierdp-instances-2026.2-$(SET).tar.gz
	if [ $(SET) = small ]; then \
		(cd build/instances-small && sha256sum .zenodo.json *) | LC_ALL=C sort -k 2 | diff benchmarks/results/instances.sha256 -; fi

# The newest versions that go together on Python 3.11 and newer, with hashes for all platforms: what the other commands
# install. demo.txt includes what builds hierdp; the others list what they need in addition to it. Needs uv.
LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-header --no-annotate pyproject.toml build/build-system.txt

lock:
	mkdir -p build
	$(PYTHON) requirements/declared.py --build-system > build/build-system.txt
	$(LOCK) --extra test --extra develop --extra bench --extra spark --output-file build/all.txt
	$(LOCK) --constraints build/all.txt --output-file requirements/demo.txt
	for extra in test develop bench spark; do \
		$(LOCK) --constraints build/all.txt --extra $$extra --output-file requirements/$$extra.txt \
			$$(sed -n 's/==.*//p' requirements/demo.txt | sed 's/^/--no-emit-package /') || exit 1; \
	done

clean:
	rm -rf .venv .venv-* build site *.egg-info hierdp-demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("hierdp needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(CREATE)

ifeq ($(VERSIONS),locked)

$(VENV)/.installed: pyproject.toml requirements/demo.txt | $(BIN)/python
	$(INSTALL) --no-deps --require-hashes --requirement requirements/demo.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	$(COMPILE)
	touch $@

$(VENV)/.installed-%: requirements/%.txt $(VENV)/.installed
	$(INSTALL) --no-deps --no-build-isolation --require-hashes --requirement $<
	touch $@

else

# With the oldest versions, hierdp is built by the oldest setuptools, too.
$(VENV)/constraints.txt: pyproject.toml requirements/declared.py | $(BIN)/python
	$(BIN)/python requirements/declared.py $(if $(filter oldest,$(VERSIONS)),--oldest) > $@
	$(BIN)/python requirements/declared.py --build-system > $(VENV)/build-system.txt
	$(INSTALL) --upgrade --constraint $@ --requirement $(VENV)/build-system.txt

$(VENV)/.installed: $(VENV)/constraints.txt
	$(INSTALL) --upgrade --no-build-isolation --constraint $< --editable .
	$(COMPILE)
	touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(INSTALL) --upgrade --no-build-isolation --constraint $(VENV)/constraints.txt --editable '.[$*]'
	touch $@

endif
