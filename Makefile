# Every target sets itself up in .venv: Python 3.10 or newer and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
# Two workers: the suite is planned for a machine of two cores.
JOBS ?= 2

.PHONY: help install demo readme serve-demo test test-jit test-nojit test-bare test-dist coverage check format golden picture clean docs docs-site notebooks reproduce \
	test-spark test-spark-kill bench-spark bench-spark-state bench bench-quick bench-check bench-peers bench-files quality \
	quality-ablation committee events-bench bands watch-bench fuzz kill \
	serve-bench serve-fuzz serve-kill

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.base: pyproject.toml src/driftvote/_version.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

$(VENV)/.report: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[report]"
	@touch $@

$(VENV)/.plots: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[plots]"
	@touch $@

# 490 MB, so only the Spark targets ask for it.
$(VENV)/.spark: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[spark]"
	@touch $@

install: $(VENV)/.dev  ## a development environment in .venv

$(VENV)/.serve: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[serve]"
	@touch $@

serve-demo: $(VENV)/.serve  ## the service with its live page, on a simulated stream; Ctrl-C ends it
	rm -rf demo/serve
	$(BIN)/driftvote serve --demo --data demo/serve

demo: $(VENV)/.report  ## label a stream whose labelers swap half-way; ends with a report, demo/report.html
	$(BIN)/driftvote demo --out demo

test: test-jit test-nojit test-bare  ## every test

test-jit: $(VENV)/.dev  ## the tests as users run the package, compiled
	DRIFTVOTE_DATA=$(DATA) $(BIN)/python -m pytest -n $(JOBS) -q

# Lines of kernels can only be seen with the compiler off. The tests closest to the kernels are run, on small streams.
# Running sums wrap around on purpose, of which NumPy warns.
PLAIN_TESTS = tests/toy tests/test_small_streams.py tests/test_label_models.py tests/test_windows.py tests/test_detector.py
KERNELS_SEEN = 95
test-nojit: $(VENV)/.dev  ## the kernels with the compiler off, and which of their lines were executed
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=.coverage.nojit DRIFTVOTE_DATA=$(DATA) \
		$(BIN)/python -m pytest -n $(JOBS) -q -m "not slow" -W "ignore:overflow encountered:RuntimeWarning" \
		--cov --cov-report= --cov-fail-under=0 $(PLAIN_TESTS)
	$(BIN)/python tests/kernel_coverage.py .coverage.nojit $(KERNELS_SEEN)

# Counting lines slows the compiled tests down by a good part, so this is for whoever wants to know, not for every change.
coverage: $(VENV)/.dev  ## the lines that all tests together execute
	COVERAGE_FILE=.coverage.jit DRIFTVOTE_DATA=$(DATA) $(BIN)/python -m pytest -n $(JOBS) -q --cov --cov-report= --cov-fail-under=0
	$(MAKE) --no-print-directory test-nojit
	$(BIN)/coverage combine --quiet --keep .coverage.*jit
	$(BIN)/coverage report

test-bare:  ## a fresh environment with the base dependencies and nothing else
	$(PYTHON) tests/bare_install.py

test-dist:  ## before a release: wheel and sdist in empty environments, oldest dependencies, each installed Python; 15 minutes
	$(PYTHON) tests/dist_install.py

test-spark: $(VENV)/.dev  ## the Spark adapter on local[2]; says so and does nothing without Java 17
	@if $(BIN)/python tests/spark/java_here.py; then \
		$(MAKE) --no-print-directory $(VENV)/.spark && $(BIN)/python -m pytest -q -p no:xdist --no-header tests/spark; fi

test-spark-kill: $(VENV)/.spark  ## a streaming query killed at three random moments, compared with an undisturbed one; minutes
	DRIFTVOTE_KILLS=full $(BIN)/python -m pytest -q -s -p no:xdist --no-header tests/spark/test_streaming_kill.py

check: $(VENV)/.dev  ## style, types, structure, recipes of CONTRIBUTING.md
	$(BIN)/ruff format --check src tests benchmarks experiments website
	$(BIN)/ruff check src tests benchmarks experiments website
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_structure.py tests/test_recipes.py

format: $(VENV)/.dev  ## let ruff tidy up
	$(BIN)/ruff format src tests benchmarks experiments website
	$(BIN)/ruff check --fix src tests benchmarks experiments website

reproduce: $(VENV)/.plots  ## the paper's experiments, 20 minutes; writes docs/reproduction.md. Without DATA=folder: says where to get it
	$(BIN)/python -m experiments.paper all --data $(DATA) --out results --docs docs

quality: $(VENV)/.plots  ## label quality on real and simulated votes, against peers, about 8 minutes; writes docs/quality.md
	$(BIN)/python -m experiments.quality --data $(DATA) --out results/quality --docs docs --jobs $(JOBS)

quality-ablation: $(VENV)/.base  ## the default model with one choice changed at a time; writes docs/ablation.md
	$(BIN)/python -m experiments.quality.ablation --data $(DATA) --limit 3000 --docs docs --jobs $(JOBS)

bench: $(VENV)/.dev bench-peers  ## measure, about ten minutes; writes docs/performance.md and docs/startup.md
	$(BIN)/python -m benchmarks

bench-quick: $(VENV)/.dev bench-peers  ## the same at small sizes; writes build/bench-quick/
	$(BIN)/python -m benchmarks --plan quick

committee: $(VENV)/.dev  ## committees on the paper's streams, and their times; writes the tables of docs/committee.md
	$(BIN)/python -m benchmarks.committee --data $(DATA)

events-bench: $(VENV)/.dev  ## drift events on streams with known changes, some minutes; tables of docs/events.md
	$(BIN)/pip install --quiet --disable-pip-version-check river==0.26.1
	$(BIN)/python -m benchmarks.events --data $(DATA)

bands: $(VENV)/.dev  ## calibrate the bands of the accuracies, a few minutes; writes src/driftvote/drift/bands.py, docs/events.md
	$(BIN)/python -m benchmarks.bands

bench-check: $(VENV)/.dev  ## fails if the default model is slower than benchmarks/marks.json, or than the checkout AGAINST=path
	$(BIN)/python -m benchmarks.check $(if $(AGAINST),--against $(AGAINST))

bench-files: $(VENV)/.dev  ## files compared with memory, a few minutes; writes docs/files.md
	$(BIN)/python -m benchmarks.files

fuzz: $(VENV)/.dev  ## damaged and hostile input against everything that reads, MINUTES=5; what broke is kept in build/fuzz
	$(BIN)/python tests/fuzz.py --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED))

kill: $(VENV)/.dev  ## label --state and watch killed at KILLS=200 random moments each; no row is lost, duplicated or different
	$(BIN)/python tests/kill.py --kills $(or $(KILLS),200) $(if $(SEED),--seed $(SEED))

serve-bench: $(VENV)/.dev  ## the service under load, some minutes; writes the table of docs/serve.md
	$(BIN)/python -m benchmarks.serve

serve-fuzz: $(VENV)/.dev  ## hostile requests to the service, REQUESTS=5000
	PYTHONPATH=tests $(BIN)/python tests/serve_fuzz.py --requests $(or $(REQUESTS),5000) $(if $(SEED),--seed $(SEED))

serve-kill: $(VENV)/.dev  ## the service killed KILLS=50 times under load; no answered row is lost, duplicated or different
	PYTHONPATH=tests $(BIN)/python tests/serve_kill.py --kills $(or $(KILLS),50) $(if $(SEED),--seed $(SEED))

watch-bench: $(VENV)/.dev  ## latency, memory and kills of driftvote watch, some minutes; writes the tables of docs/watch.md
	$(BIN)/python -m benchmarks.watch

bench-spark-state: $(VENV)/.spark  ## size of the state of a stream, and what a micro-batch writes; writes docs/spark-streaming.md
	$(BIN)/python -m benchmarks.spark_state

bench-spark: $(VENV)/.spark  ## labeling on Spark against copying, about ten minutes; writes the table of docs/spark.md
	$(BIN)/python -m benchmarks.spark

# Each peer has its own environment; one that cannot be installed is reported and left out.
bench-peers: $(VENV)/.dev  ## the libraries that are compared with, below .bench-envs/
	$(BIN)/python -m benchmarks.peers

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

# The variable silences an announcement of the theme's makers.
docs-site: $(VENV)/.docs  ## build the documentation as a static site: build/site/index.html; opens without a server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: $(VENV)/.dev  ## run the notebooks of the documentation and store their outputs
	$(BIN)/python website/notebooks.py

docs: $(VENV)/.dev  ## run every example of the documentation and follow its links
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_site.py tests/test_notebooks.py

readme: $(VENV)/.plots  ## write the figures in README.md again, from the tables in docs/
	$(BIN)/python -m experiments.readme

picture: $(VENV)/.dev  ## the picture of the README, and screenshots of the demo's report and of the live page (needs Chromium)
	$(BIN)/python -m experiments.drift --docs docs
	PYTHONPATH=tests $(BIN)/python tests/make_report_picture.py

golden: $(VENV)/.dev  ## write the golden files again (only when results are meant to change)
	$(BIN)/python tests/make_golden.py

clean:  ## remove what the targets made
	rm -rf $(VENV) .bench-envs demo results build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
	find src tests benchmarks experiments -name __pycache__ -type d -exec rm -rf {} +
