# Each target does its own set-up in .venv and needs nothing but Python 3.10-3.12 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Carriers of really trained ONNX files, and the types of TensorRT 10. Their own dependencies are not wanted, or not on PyPI.
ALONE := rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3 tensorrt-stubs==10.13.0.35.1

.PHONY: demo test test-system fuzz soak docs golden lint clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve,test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(ALONE)
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/quickstart/demo.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two processes, and each file whole in one of them, in the order of the folders: those with a server first, whose files take longest, so that none is the last.
TOGETHER := -n 2 --dist loadfile --no-loadscope-reorder

test: lint
	$(BIN)/python -m pytest $(TOGETHER) -m "not system and not fuzz and not soak"

# Campaigns may take their hours, but not for ever.
PATIENT := -o timeout=10800 -o faulthandler_timeout=10700

# Long runs with random and hostile input.
fuzz: $(STAMP)
	$(BIN)/python -m pytest -m fuzz --hypothesis-profile=random $(PATIENT)

# Ten minutes of requests over both protocols, blocking and for asyncio; 300 changes under a polling server; hundreds of killed renders; 2,000 pairs of specs.
soak: $(STAMP)
	$(BIN)/python -m pytest -m soak $(PATIENT)

# Rewrites what is generated from the catalogue of rules and from the keys of the spec.
docs: $(STAMP)
	$(BIN)/python docs/generate.py

# Renders the specs in tests/golden and tests/monitoring anew; look at the difference before you commit it.
golden: $(STAMP)
	$(BIN)/python tests/goldens.py
	$(BIN)/python tests/monitoring_cases.py

test-system: $(STAMP)
	sh tests/system/install.sh
	$(BIN)/python -m pytest $(TOGETHER) -m system

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
