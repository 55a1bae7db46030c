# `make` alone lists the targets that newcomers need (##), `make help-all` the others as well (#-).
# Every target sets up what it needs (scripts/setup.sh).

VENV   ?= .venv
PY     := $(VENV)/bin/python
JOBS   ?= 2
COVERED = tests/unit tests/golden tests/ops
PYTEST  = $(PY) -m pytest -n $(JOBS) $(PYTEST_ARGS)
BASE   ?= main

export VENV
export PYTHONDONTWRITEBYTECODE :=  # commands that tests start would compile 600 modules each

.DEFAULT_GOAL := help

.PHONY: help help-all
help:
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

help-all:  ## list every target
	@awk -F ':.*#[#-] ' '/^[a-z0-9-]+:.*#[#-] / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup setup-demo setup-quick
setup:  ## install what is missing: Debian packages and .venv
	@scripts/setup.sh test

setup-demo:
	@scripts/setup.sh demo

setup-quick:
	@scripts/setup.sh quick

.PHONY: demo
demo: setup-demo  ## compile a digit reader to C and run it on an emulated Cortex-M4
	@$(PY) examples/digits/demo.py

.PHONY: demo-wake-word
demo-wake-word: setup  #- hear "okay nabu" and "hey jarvis" on emulated boards
	@$(PY) examples/wake-word/demo.py

.PHONY: test
test: setup  ## everything: lint, types and all tests; a missing tool is a failure
	@$(MAKE) --no-print-directory -j $(JOBS) lint types
	GLOWC_REQUIRE_TOOLS=1 $(PYTEST) --dist loadfile --no-loadscope-reorder tests  # tests of a file share what they compile

.PHONY: test-quick test-kernels test-e2e
test-quick: setup-quick  ## what needs no cross compiler: unit, golden and operator tests
	$(PYTEST) tests/unit tests/golden tests/ops

test-kernels: setup  ## every kernel variant on every machine, against numpy: LEVELS=-Os, SAMPLE=1 (all cases everywhere)
	$(if $(LEVELS),GLOWC_LEVELS="$(LEVELS)") $(if $(SAMPLE),GLOWC_SAMPLE=$(SAMPLE)) GLOWC_REQUIRE_TOOLS=1 $(PYTEST) tests/kernels

test-e2e: setup  ## models x boards under QEMU
	GLOWC_REQUIRE_TOOLS=1 $(PYTEST) tests/e2e

.PHONY: test-cpu
test-cpu: setup  #- CPU seconds of tests by function and folder: ARGS="tests/e2e", ARGS="--cache-clear tests" compiles all C again
	GLOWC_REQUIRE_TOOLS=1 $(PYTEST) -p tests.cpu $(or $(ARGS),tests)

.PHONY: test-real
test-real: setup  #- pretrained models that Python packages ship, compiled and compared with onnxruntime (10 minutes)
	$(PY) scripts/real_models.py

.PHONY: test-report
test-report: setup-quick  #- the page of `glowc report` in a browser, and when it first paints
	@command -v chromium >/dev/null || scripts/setup.sh browser
	GLOWC_REQUIRE_BROWSER=1 $(PY) -m pytest -q tests/unit/test_report_page.py tests/unit/test_matrix.py -k "page or picture"
	$(PY) scripts/report_paint.py

.PHONY: report-picture
report-picture: setup  #- draw docs/report.png again, after a change of the page of `glowc report`
	@command -v chromium >/dev/null || scripts/setup.sh browser
	$(PY) scripts/report_picture.py

.PHONY: test-torch load-bench
TORCH ?= torch==2.13.0
test-torch: setup  #- PyTorch and Keras through glowc, with both installed: TORCH=a pip requirement (5 minutes)
	$(PY) -m pip install -q $(TORCH) onnxscript torchao keras
	KERAS_BACKEND=torch GLOWC_REQUIRE_TOOLS=1 $(PYTEST) tests/unit/test_torch_module.py tests/unit/test_torch_program.py \
	  tests/unit/test_keras_models.py

load-bench: setup  #- what a call of glowc.load's costs besides the inference
	$(PY) scripts/bench_load.py

.PHONY: trees-bench
trees-bench: setup  #- forests of int8 features on a Cortex-M4 next to emlearn and m2cgen: ARGS="--data digits --opt=-Os"
	$(PY) -m pip install -q emlearn m2cgen
	$(PY) scripts/bench_trees.py $(ARGS)

.PHONY: fuzz fuzz-ways fuzz-quantize fuzz-import fuzz-bytes
fuzz: setup  #- new random networks against onnxruntime: SECONDS=600, SEED=the first one, BOARD=also run there
	$(PY) scripts/fuzz.py --seconds $(or $(SECONDS),600) $(if $(SEED),--first $(SEED)) $(if $(BOARD),--board $(BOARD))

fuzz-ways: setup  #- random networks and layers, in steps, by cores, with limits and other options on 16 targets, each the same codes: SECONDS=600, SEED=the first one
	$(PY) scripts/fuzz_ways.py --seconds $(or $(SECONDS),600) $(if $(SEED),--first $(SEED))

fuzz-quantize: setup  #- random float networks and data of every kind through `glowc quantize`: SECONDS=600, SEED=the first one
	$(PY) scripts/fuzz_quantize.py --seconds $(or $(SECONDS),600) $(if $(SEED),--first $(SEED))

fuzz-import: setup  #- mutated models through the compiler: SECONDS=600, SEED=the first one
	$(PY) scripts/fuzz_import.py --seconds $(or $(SECONDS),600) $(if $(SEED),--first $(SEED))

fuzz-bytes: setup  #- bytes as models, guided by coverage (atheris): SECONDS=600
	$(PY) -m pip install -q atheris
	$(PY) scripts/fuzz_bytes.py -max_total_time=$(or $(SECONDS),600) -timeout=10 -rss_limit_mb=1500

.PHONY: sweep
sweep: setup  #- models x CPUs x option values: the C compiles without a warning and lacks nothing: COUNT=all, SEED=0
	$(PY) scripts/sweep.py $(if $(COUNT),--count $(COUNT)) --seed $(or $(SEED),0)

.PHONY: tune-bench
tune-bench: setup  #- what `glowc tune` and --opt speed gain over the default on models that no cost was measured on (20 minutes): BOARDS=, MODELS=
	$(PY) scripts/tune_bench.py --layers $(if $(BOARDS),--boards $(BOARDS)) $(if $(MODELS),--models $(MODELS))

.PHONY: tflite-cases tflite-mutants tflite-fields tflite-models
tflite-cases: setup  #- TensorFlow Lite models of one operator against the TFLM runtime, or LiteRT (LITERT=a Python that has it): EACH=20 of each, SEED=0 (2 minutes)
	$(PY) scripts/tflite_cases.py --each $(or $(EACH),20) --seed $(or $(SEED),0) $(if $(LITERT),--litert $(LITERT))

tflite-mutants: setup  #- damaged TensorFlow Lite files through the compiler: COUNT=2000, SEED=0
	$(PY) scripts/tflite_mutants.py --count $(or $(COUNT),2000) --seed $(or $(SEED),0)

tflite-fields: setup  #- TensorFlow Lite files with cleared, moved and widened fields against the TFLM runtime: COUNT=2000, SEED=0
	$(PY) scripts/tflite_fields.py --count $(or $(COUNT),2000) --seed $(or $(SEED),0)

tflite-models: setup  #- models of ../shared/tflite on four boards, every call against the runtime's answers: BOARDS=, MODELS=
	$(PY) scripts/tflite_models.py $(if $(BOARDS),--boards $(BOARDS)) $(if $(MODELS),--models $(MODELS))

.PHONY: matrix-proof
matrix-proof: setup  #- models of ../shared/models on four boards: the same table from two processes and two Dask workers (20 minutes)
	$(PY) scripts/matrix_proof.py $(if $(BOARDS),--boards $(BOARDS)) $(if $(RESUME),--resume)

.PHONY: wire-soak
wire-soak: setup  #- inferences over a bad serial line on a board that is reset at random: COUNT=10000, SEED= (8 minutes)
	$(PY) scripts/wire_soak.py --inferences $(or $(COUNT),10000) $(if $(SEED),--seed $(SEED))

.PHONY: mutants
mutants: setup  #- break proofs, packings and planners one by one; tests must notice: ONLY=text (14 minutes)
	$(PY) scripts/mutants.py --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)")

.PHONY: onnx-backend
onnx-backend: setup  #- ONNX's own node tests: counts, wrong answers, what is not supported
	$(PY) scripts/onnx_backend.py --show reasons

.PHONY: lint types fmt
lint: setup-quick  ## ruff (rules and format) and shell syntax
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	for script in scripts/*.sh .ci/run; do bash -n $$script || exit 1; done

types: setup-quick  ## mypy, strict, as on Linux, Windows and macOS
	printf '%s\n' linux win32 darwin | xargs -P $(JOBS) -I {} $(PY) -m mypy --platform {} --cache-dir .mypy_cache/{}

fmt: setup-quick  ## format the Python code and fix what ruff can fix
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

.PHONY: golden budgets docs
golden: setup-quick  ## rewrite the golden files, then test against them
	GLOWC_UPDATE_GOLDEN=1 $(PY) -m pytest -q tests/golden
	$(PYTEST) tests/golden

budgets: setup  #- record better sizes and instruction counts in tests/budgets.toml
	GLOWC_UPDATE_BUDGETS=1 GLOWC_REQUIRE_TOOLS=1 $(PY) -m pytest -q tests/e2e/test_budgets.py

docs: setup-quick  ## rewrite the generated tables of docs/
	$(PY) scripts/make_docs.py

.PHONY: site
site: setup-quick  #- the documentation as a website: build/site
	$(PY) -m pip install -q --no-build-isolation -e '.[site]'
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

.PHONY: bench bench-blocks bench-cores bench-host bench-kernels bench-large bench-llama bench-memory bench-opponents bench-products bench-slices bench-small bench-wide quant-bench quant-few sixteen-bench narrow-bench tflite-bench constants ref-layers cliffs costs costs-check schedules code-costs stack-costs flips stack house twice codegen-diff disasm-diff quant-states
bench: setup  #- measure the sample models on the boards
	$(PY) scripts/bench.py

bench-kernels: setup  #- instructions per multiply-accumulate of single layers, beside other engines
	$(PY) scripts/bench_kernels.py

bench-large: setup  #- seconds and memory of models with 25 MB and 54 MB of weights, and of 4,000 layers: MODELS=, WEIGHTS=
	$(PY) scripts/bench_large.py $(MODELS) $(if $(WEIGHTS),--weights $(WEIGHTS))

bench-small: setup  #- cycles of small networks of many kinds on three chips, layers far from their bound: NETS=, CHIPS=, AGAINST=a checkout
	$(PY) scripts/bench_small.py $(NETS) $(if $(CHIPS),--chips $(CHIPS)) $(if $(AGAINST),--against $(AGAINST))

bench-cores: setup  #- cycles of two and of four cores that share the layers of sample models and known networks
	for board in virt-a53 mps2-an505; do $(PY) scripts/bench_cores.py --board $$board \
	  ../shared/models/mlperf_ic_resnet8/model.onnx ../shared/models/mlperf_vww_mobilenetv1/model.onnx \
	  mobilenet_v2 bert_mini || exit 1; done
	$(PY) scripts/bench_cores.py --board rpi-pico2 ../shared/tflite3/spelling_cnn_mel_int8/model.tflite --cores 2

bench-slices: setup  #- steps of 1 ms on STM32L4R5 and of 0.25 ms on STM32H7A3, of sample models and MobileNetV2
	for on in "--board mps2-an386 --chip stm32l4r5 --slice 1ms" "--board mps2-an500 --chip stm32h7a3 --slice 0.25ms"; do \
	  $(PY) scripts/bench_cores.py $$on $(addprefix ../shared/models/,$(addsuffix /model.onnx,mlperf_ic_resnet8 \
	    mlperf_vww_mobilenetv1 torch_tinybert_qdq torch_gru_kws_fp32)) mobilenet_v2 || exit 1; done

bench-host: setup  #- time on this machine, compared with onnxruntime
	$(PY) scripts/bench_host.py $(foreach m,mlperf_ic_resnet8 mlperf_kws_dscnn mlperf_vww_mobilenetv1 \
	  mlperf_ad_autoencoder torch_tinybert_qdq mlperf_ic_resnet8_fp32 mlperf_kws_dscnn_fp32 \
	  mlperf_vww_mobilenetv1_fp32 torch_tinybert_fp32,../shared/models/$(m)/model.onnx) mobilenet_v2 resnet50 bert_mini \
	  squeezenet efficientnet_lite0 mobilenet_v2_fp32 resnet50_fp32 bert_mini_fp32 \
	  squeezenet_fp32 efficientnet_lite0_fp32

bench-blocks: setup  #- layers with codes of 4 bits by blocks: instructions on A64, time on this machine
	$(PY) scripts/bench_blocks.py
	$(PY) scripts/bench_host.py blocks blocks_4 blocks_32

bench-llama: setup  #- tokens a second of the example's language model on RP2350 and Alif E7
	$(PY) scripts/bench_llama.py

bench-opponents: setup  #- known networks: time on this machine with 1 and 2 threads, instructions on Cortex-A (docs/OPPONENTS.md)
	$(PY) scripts/bench_opponents.py

bench-wide: setup  #- instructions with SVE2 of 128, 256 and 512 bits, compared with dot products
	$(PY) scripts/bench_wide.py resnet50

bench-products: setup  #- public networks for microcontrollers, next to figures of others: docs/PRODUCTS.md: ONLY=text
	$(PY) scripts/products.py $(if $(ONLY),--only "$(ONLY)",--write)

bench-memory: setup-quick  #- arena of the sample models under every memory plan
	$(PY) scripts/bench_memory.py

flips: setup  #- flip 10,000 bits in arena and constants of two models, under the address sanitizer
	GLOWC_FLIPS=10000 $(PY) -m pytest -q tests/e2e/test_bit_flips.py

stack: setup  #- compare the computed worst case of the stack with the painted mark, all sample models
	$(PY) scripts/stack.py

tflite-bench: setup  #- the MLPerf Tiny .tflite files beside their ONNX twins: instructions, arena
	$(PY) scripts/tflite_bench.py

sixteen-bench: setup  #- int16 beside int8 activations: errors, instructions, arena
	$(PY) scripts/sixteen_bench.py

quant-bench: setup  #- int8 files of our quantiser beside onnxruntime's: errors, arena, instructions
	$(PY) scripts/quant_bench.py $(if $(NNCF_PYTHON),--other nncf --other-python $(NNCF_PYTHON))

quant-few: setup  #- networks drawn from seeds, quantized on few samples, compared with onnxruntime: FIRST=30000, COUNT=140, SAMPLES=6 (8 minutes)
	$(PY) scripts/quant_few.py --first $(or $(FIRST),30000) --count $(or $(COUNT),140) --samples $(or $(SAMPLES),6)

quant-states: setup  #- streaming LSTM and GRU networks drawn from seeds: error after many calls, instructions before and after: FIRST=1000, COUNT=24
	$(PY) scripts/quant_states.py --first $(or $(FIRST),1000) --count $(or $(COUNT),24)

narrow-bench: setup  #- weights of 4 and 2 bits and palettes beside 8 bits: constants, arena, instructions, error; fails over its limits
	$(PY) scripts/narrow_bench.py

constants: setup-quick  #- constants of the sample models on every CPU beside their bound; as they are and mutated
	$(PY) scripts/constants.py
	$(PY) scripts/constants.py --mutate least
	$(PY) scripts/constants.py --mutate large

ref-layers: setup-quick  #- layers of the sample models that matter and run on reference kernels
	$(PY) scripts/ref_layers.py

costs: setup  #- measure single layers and fit what kernels cost: boards/_costs
	$(PY) scripts/fit_costs.py

schedules: setup  #- find the orders of instructions of loops and endings of kernels: boards/_schedules
	$(PY) scripts/schedules.py

costs-check: setup  #- compare predicted with counted cycles of the sample models; kernels without a fit
	$(PY) scripts/check_costs.py --keys
	$(PY) scripts/check_costs.py --code
	$(PY) scripts/check_costs.py

cliffs: setup  #- random layers that take far more than others of their kind, or than their price: SEED=0, COUNT=40, CHIPS= (5 minutes)
	$(PY) scripts/cliffs.py $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(CHIPS),--chips $(CHIPS))

code-costs: setup  #- compile layers and fit the bytes of code of kernels and of the runtime: boards/_costs (an hour)
	$(PY) scripts/fit_code.py

stack-costs: setup  #- measure the stack of kernels: boards/_costs (40 minutes)
	$(PY) scripts/fit_stack.py

house: setup-quick  #- count what keeps the code from being one way through the rooms
	$(PY) scripts/house.py

twice: setup  #- machine code that stands twice in bundles of the sample models: BOARDS=, MODELS= (10 minutes)
	$(PY) scripts/twice.py $(if $(BOARDS),--boards $(BOARDS)) $(if $(MODELS),--models $(MODELS))

codegen-diff: setup-quick  ## show how the generated C differs from BASE=main (CPUS=, MODELS=: some)
	scripts/codegen_diff.sh $(BASE)

disasm-diff: setup  #- the same of the machine code that gcc -O2 makes of it
	COMPARE=code scripts/codegen_diff.sh $(BASE)

.PHONY: lock pythons coverage
lock: setup-quick  #- refresh requirements.lock: versions and hashes of what the tests run with
	$(PY) -m venv build/uv
	build/uv/bin/python -m pip install -q --disable-pip-version-check uv
	build/uv/bin/uv pip compile pyproject.toml --extra test --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -q --upgrade -o build/uv/requirements.lock
	(head -1 requirements.lock; cat build/uv/requirements.lock) > build/uv/new.lock && mv build/uv/new.lock requirements.lock

pythons: setup-quick  #- source archive, wheel, tests: on every Python from 3.11 on that is installed
	scripts/pythons.sh

coverage: setup-quick  #- lines of glowc/ that unit, golden and operator tests run; below 92 % is a failure
	$(PY) -m pytest -q -n $(JOBS) --cov=glowc --cov-report=term:skip-covered --cov-fail-under=92 $(COVERED)

.PHONY: analyze
analyze:  #- gcc -fanalyzer, clang --analyze and cppcheck with MISRA over generated code: docs/MISRA.md
	@scripts/setup.sh analyze
	$(PY) scripts/analyze.py

.PHONY: wheel clean
wheel: setup-quick  #- build the wheel and the source archive into dist/
	$(PY) -m hatchling build -d dist

clean:  #- remove what was built; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
