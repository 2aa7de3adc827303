"""Keys that contradict each other: the finding names both places."""

import pytest

from tritongen.errors import SpecError
from tritongen.spec import load_spec

CASES = [
    ("batching: {max: 4,\npreferred: [8]}", "max is at"),
    ("batching: {max: 0,\npreferred: [8]}", "max is at"),
    ("batching: {max: 4},\nwarmup: [8]", "batching.max is at"),
    ("batching: none,\nwarmup: [8]", "batching is at"),
    ("slo: {p50: 9ms,\np99: 5ms}", "p50 is at"),
    ("queue: {priority_levels: 2,\ndefault_priority_level: 3}", "priority_levels is at"),
    ("queue: {priority_levels: 2,\npriority_queue_policy: {3: {}}}", "priority_levels is at"),
    ("queue: {priority_levels: 2,\npreserve_ordering: true}", "priority_levels is at"),
    ("queue: {default_timeout: 1s, timeout_action: delay,\npreserve_ordering: true}", "timeout_action is at"),
    (
        "queue: {preserve_ordering: true,\npriority_levels: 1, priority_queue_policy: {1: {default_timeout: 1s, timeout_action: delay}}}",
        "preserve_ordering is at",
    ),
    ("queue: {timeout_action: delay,\noverload: reject}", "timeout_action is at"),
    ("queue: {overload: reject,\npriority_levels: 1, priority_queue_policy: {1: {timeout_action: delay}}}", "overload is at"),
    ("instances: {kind: cpu,\ngpus: [0]}", "kind is at"),
    ("versions: {policy: all,\nversions: [1]}", "policy is at"),
    ("shapes: {x: {min: [4],\nopt: [2], max: [8]}}", "min is at"),
    ("sources: {1: m.onnx},\nsource: m.onnx", "sources is at"),
    ("batching: {max: 0},\nragged: {inputs: [x]}", "batching.max is at"),
    ("ragged: {inputs: [x]},\noptional_inputs: [y]", "ragged is at"),
    ("onnxruntime: {enable_mem_arena: false,\narena_shrinkage: ['cpu:0']}", "enable_mem_arena is at"),
]


@pytest.mark.parametrize(("keys", "words"), CASES)
def test_both_places_are_said(folder, keys, words):
    source = "" if "source:" in keys else "source: m.onnx, "
    lines = f"version: 1\nmodels:\n - {{name: m, {source}{keys}}}\n".replace("\n", "\n   ").replace("\n   models", "\nmodels")
    file = folder.write(lines)
    with pytest.raises(SpecError) as caught:
        load_spec(file)
    (finding,) = caught.value.diagnostics
    assert finding.code == "TG015"
    assert f"{words} {file}:3:" in finding.message
    assert finding.location.line == 4


def test_a_place_under_the_defaults_is_found(folder):
    finding = folder.finding("version: 1\ndefaults:\n  batching: {max: 4}\nmodels:\n  - {name: m, source: m.onnx, warmup: [8]}\n")
    assert "batching.max is at" in finding.message
    assert "spec.yaml:3:" in finding.message


def test_a_default_that_is_not_written_has_no_place(folder):
    finding = folder.model_finding("instances: {gpus: [0]}")
    assert finding.code == "TG015"
    assert "is at" not in finding.message
