"""Hints for values of the spec: each is what one would write."""

from __future__ import annotations

import pytest

from tritongen.errors import SpecError
from tritongen.spec import load_spec

TEXT = "version: 1\nmodels:\n  - name: m\n    source: m.onnx\n    {}\n"


def refused(folder, text):
    spec = folder / "spec.yaml"
    (folder / "m.onnx").write_bytes(b"x")
    spec.write_text(TEXT.format(text))
    with pytest.raises(SpecError) as error:
        load_spec(spec)
    (found,) = error.value.diagnostics
    return found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("versions: all", "write versions: {policy: all}"),
        ("versions: latest", "write versions: {policy: latest}"),
        ("versions: [1, 3]", "write versions: {policy: specific, versions: [1, 3]}"),
        ("versions: 3", "write versions: {policy: specific, versions: [3]}"),
        ("versions: newest", "write versions: {policy: latest, count: 2}, say"),
        ("slo: 20ms", "write slo: {p50: 8ms, p99: 20ms, error_rate: 0.1%}, say"),
        ("queue: reject", "write queue: {max_queue_size: 64, default_timeout: 10ms, priority_levels: 2}, say"),
        ("onnxruntime: {cuda: [1]}", "write cuda: {cudnn_conv_algo_search: heuristic, gpu_mem_limit: 4GiB}, say"),
        ("shapes: [3]", "write {key: value}, or one key: value a line, indented"),
        ("queue: {max_queue_size: 99999999999}", "write a number that is at most 4294967295"),
        ("batching: {max_queue_delay: 0.0001us}", "write 1us"),
        ("batching: {max_queue_delay: 1.0006ms}", "write 1001us"),
        ("batching: {max_queue_delay: 2}", "write the number and its unit together"),
        ("batching: {max_queue_delay: -2ms}", "write it without a sign"),
        ("batching: {max_queue_delay: 2 days}", "write one of us, ms, s, m, h"),
        ("onnxruntime: {cuda: {gpu_mem_limit: 0.1KiB}}", "write 102B"),
    ],
)
def test_the_hint_is_what_one_would_write(tmp_path, text, hint):
    assert refused(tmp_path, text).hint == hint
