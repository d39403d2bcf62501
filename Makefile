# The developer's commands. `make` alone lists the targets.
#
# PYTHON=...  the interpreter that .venv is made with (default: the first Python >= 3.11 found)
# JOBS=...    number of processes for the tests (default: the number of processors)

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS  ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
LIT    = $(BIN)/lit -j $(JOBS) $(if $(CI),-v,-sv) tests/lit

# Tests start hundreds of commands: without cached bytecode each of them compiles all of TLX, which doubles its start time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Tests of what the tensor language and operations on tensors mean, which run on a GPU, too.
ON_NVIDIA := tests/semantics/frontends/tensor_language tests/semantics/graph/test_operations.py

.PHONY: help env demo test test-long test-all test-amx test-nvidia sanitize-nvidia check format coverage bench plot docs site dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(STAMP) ## create .venv with TLX and its development tools in it

# The stamp is older than pyproject.toml when the dependencies may have changed.
$(STAMP): pyproject.toml
	@PYTHON='$(PYTHON)' VENV='$(VENV)' sh tools/make-env
	@touch $@

demo: $(STAMP) ## run the examples: lower, compile, execute, compare with numpy
	@$(BIN)/python examples/demo.py

test: $(STAMP) ## run all tests: pytest, then lit
	$(BIN)/python -m pytest -q -n $(JOBS) --dist=worksteal
	$(LIT)

test-long: $(STAMP) ## run the random tests that `make test` leaves out
	$(BIN)/python -m pytest -q -n $(JOBS) --dist=worksteal -m long

# One run collects the tests, imports libraries and fills caches of the processes once, and has one end at which few work.
test-all: $(STAMP) ## run the tests of `make test` and `make test-long` together
	$(BIN)/python -m pytest -q -n $(JOBS) --dist=worksteal -m "not amx_hardware and not nvidia"
	$(LIT)

test-amx: $(STAMP) ## run the tests that need a CPU with AMX
	$(BIN)/python -m pytest -q -m amx_hardware tests/semantics

test-nvidia: $(STAMP) ## run the tests that need an NVIDIA GPU
	$(BIN)/python -m pytest -q -n $(JOBS) -m nvidia tests/nvidia
	$(BIN)/python -m pytest -q -n $(JOBS) -p tests.nvidia.on_device $(ON_NVIDIA)

# compute-sanitizer of the CUDA toolkit; a test takes some ten times as long under it
SANITIZER ?= $(or $(shell command -v compute-sanitizer),/usr/local/cuda/bin/compute-sanitizer)
SANITIZED  = $(BIN)/python -m pytest -q -m nvidia $(addprefix tests/nvidia/,$(addsuffix .py,kernels/test_maps \
	kernels/test_products kernels/test_convolutions runtime/test_host test_tensor_language))

sanitize-nvidia: $(STAMP) ## run a sample of these tests under compute-sanitizer
	$(SANITIZER) --tool=memcheck --leak-check=no --error-exitcode=9 $(SANITIZED)
	$(SANITIZER) --tool=racecheck --error-exitcode=9 $(SANITIZED)

check: $(STAMP) ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(STAMP) ## format the code and apply the linter's fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

coverage: $(STAMP) ## run pytest and show the lines it misses
	$(BIN)/python -m pytest -q -n $(JOBS) --cov --cov-report=term

bench: $(STAMP) ## measure the speed of the generated code, and of TLX itself
	$(BIN)/tlx bench
	$(BIN)/python -m tests.bench tensor_language
	$(BIN)/python -m tests.bench parse
	$(BIN)/python -m tests.bench compile

plot: $(STAMP) ## measure and draw the plot of the README
	$(BIN)/tlx bench gemm --types=f32,bf16,s8 --variants=plain --sizes=16,32,64,128,256,512,1024 --json docs/images/gemm.json
	$(BIN)/tlx bench --from docs/images/gemm.json --plot docs/images/gemm.svg

docs: $(STAMP) ## generate the reference and manual pages, and tlx.h, from the tables and commands in the code
	$(BIN)/python -m tlx.intrinsics.reference docs/ir/intrinsics
	$(BIN)/python -m tlx.frontends.c_header.header
	$(BIN)/python -m tlx.frontends.jax.reference docs/front_ends/jax_operations.md
	$(BIN)/python -m tlx.frontends.tensor_language.builder.reference docs/front_ends/tensor_language/builder.md
	$(BIN)/python -m tlx.frontends.onnx.reference docs/front_ends/onnx_operators.md
	$(BIN)/python tools/make_manual.py docs/man

site: $(STAMP) ## build the documentation as a site in build/site
	$(BIN)/sphinx-build -W --keep-going -q -c docs/site . build/site
	@echo build/site/index.html

dist: $(STAMP) ## build the wheel and the source distribution of HEAD in dist/
	$(BIN)/python tools/make_dist.py

clean: ## remove the environment, caches and build outputs
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name .git -prune -o -type d \( -name __pycache__ -o -name Output \) -prune -exec rm -rf {} +
	find . -name .lit_test_times.txt -delete
