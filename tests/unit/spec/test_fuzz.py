"""Whatever a file holds: a spec, or findings with places. Never another exception, never long."""

import json
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tritongen.errors import SpecError
from tritongen.spec import LoadedSpec, load_spec

VALID = """\
version: 1
triton: {release: "25.08", engine_cache: /engine-cache}
repository: model_repository
defaults:
  instances: [{kind: gpu, count: 2, gpus: [0]}]
models:
  - &first
    name: resnet50
    source: resnet50.onnx  # a comment
    accelerator: tensorrt
    precision: fp16
    batching: {max: 16, preferred: [4, 8, 16], max_queue_delay: 2ms}
    shapes: {input_ids: {min: [16], opt: [128], max: [512]}, other: [3, 48]}
    warmup: auto
    samples: {"sr": 16000, 'x': [[1.5, 2], [3, 4]]}
    versions: {policy: latest, count: 1}
    config:
      response_cache: {enable: true}
  - <<: *first
    name: other
    source: {package: pydantic, path: main.py}
"""
LINES = VALID.splitlines(keepends=True)
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["auto", "none", "tensorrt", "fp16", "2ms", "x.npy", "~", "../x", "latest", "specific", "gpu"]),
)
KEYS = """
    version triton release engine_cache repository defaults models name source package path backend accelerator precision batching max preferred
    max_queue_delay eager pinned_memory queue overload slo p50 p99 priority_levels default_priority_level priority_queue_policy max_queue_size default_timeout
    preserve_ordering 1 profiles dla host_policy rate_limiter resources priority global cpus shapes min opt instances kind count gpus cpu_threads warmup samples
    labels versions policy config
"""
keys = st.one_of(st.text(max_size=6), st.sampled_from(KEYS.split()))
anything = st.recursive(scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=5)), max_leaves=20)


def check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_bytes(data)
        started = time.thread_time()
        try:
            assert isinstance(load_spec(file), LoadedSpec)
        except SpecError as error:
            findings = error.diagnostics
            assert findings
            for finding in findings:
                assert finding.code.startswith("TG0")
                assert finding.message
                assert finding.hint
                assert finding.location.path == str(file)
                str(finding).encode()  # printable: no half characters
                if finding.location.line is not None:
                    assert 1 <= finding.location.column <= len(finding.location.text) + 1
        assert time.thread_time() - started < 1  # processor time: other work on the machine does not count


@FUZZ
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\x00")
@example(b'"\\UFFFFFFFF"')
def test_random_bytes(data):
    check(data)


@FUZZ
@given(st.text(max_size=200))
@example("%YAML 9.9\n--- x")
@example("? ? ? ?")
@example("[" * 150)
@example("- " * 150)
@example("{a: " * 80)
def test_random_text(text):
    check(text.encode(errors="replace"))


@FUZZ
@given(st.text(alphabet="abc:-?[]{}&*!|>'\"%@#, \n\t<~01.\\", max_size=60))
@example("&a [*a]")
@example("<<: [{a: 1}, 2]")
@example("!<")
def test_text_of_yaml_characters(text):
    check(text.encode())
    check(("version: 1\nmodels:\n  - name: m\n    source: m.onnx\n    config: " + text).encode())


@FUZZ
@given(st.integers(0, len(VALID) - 1), st.integers(0, 30), st.text(max_size=3))
def test_valid_spec_with_a_part_replaced(start, length, replacement):
    check((VALID[:start] + replacement + VALID[start + length :]).encode(errors="replace"))


@FUZZ
@given(st.lists(st.tuples(st.integers(0, len(VALID) - 1), st.characters(codec="utf-8")), max_size=4))
def test_valid_spec_with_characters_changed(changes):
    text = list(VALID)
    for index, character in changes:
        text[index] = character
    check("".join(text).encode())


@FUZZ
@given(st.permutations(range(len(LINES))), st.integers(1, len(LINES)))
def test_lines_swapped_or_lost(order, kept):
    check("".join(LINES[index] for index in order[:kept]).encode())


@FUZZ
@given(anything)
def test_any_structure(data):
    check(json.dumps(data).encode())


@FUZZ
@given(st.dictionaries(keys, anything, max_size=8), st.dictionaries(keys, anything, max_size=5))
def test_any_values_under_known_keys(model, defaults):
    check(json.dumps({"version": 1, "defaults": defaults, "models": [{"name": "m", "source": "m.onnx", **model}, model]}).encode())


def test_the_valid_spec_is_valid(tmp_path):
    (tmp_path / "spec.yaml").write_text(VALID)
    (tmp_path / "resnet50.onnx").write_bytes(b"x")
    assert len(load_spec(tmp_path / "spec.yaml").spec.models) == 2
