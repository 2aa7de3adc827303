"""What the rules say about batches and queues, at the key of the spec that it comes from."""

import networks
import pytest
from onnx import TensorProto, helper

from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.workflow.rendering import plan_render


def spec(folder, keys, release="25.08"):
    lines = "".join(f"    {line}\n" for line in keys.splitlines())
    (folder / "spec.yaml").write_text(f'version: 1\ntriton: {{release: "{release}"}}\nmodels:\n  - name: m\n    source: m.onnx\n{lines}')
    return folder / "spec.yaml"


def line_of(finding):
    return finding.location.text[finding.location.column - 1 :]


@pytest.mark.parametrize(
    ("keys", "code", "at", "hint"),
    [
        ("batching: {max_queue_delay: 50us}", "TG370", "max_queue_delay: 50us", "such as max_queue_delay: 2ms"),
        ("batching: {max_queue_delay: 500ms}", "TG371", "max_queue_delay: 500ms", "such as max_queue_delay: 2ms"),
        ("batching: {max: 8, preferred: [4]}", "TG373", "preferred: [4]", "add max to preferred, or write preferred: none"),
        ("config: {dynamic_batching: {max_queue_delay_microseconds: 50}}", "TG370", "max_queue_delay_microseconds: 50", "write 50000 for 50 ms"),
    ],
)
def test_advice_about_batches_is_given_when_a_spec_is_rendered(tmp_path, keys, code, at, hint):
    networks.mlp(tmp_path / "m.onnx")
    (finding,) = [finding for finding in plan_render(spec(tmp_path, keys)).findings if finding.code == code]
    assert finding.severity is Severity.ADVICE
    assert line_of(finding).startswith(at)
    assert hint in finding.hint


def test_a_cap_of_batches_holds_for_plans_too(tmp_path):
    shape = ["N", 8]
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])
    keys = "backend: tensorrt\nbatching: {max: 16, preferred: [4, 8]}\ntensorrt: {cuda_graphs: true}"
    (finding,) = [finding for finding in plan_render(spec(tmp_path, keys)).findings if finding.code == "TG373"]
    assert "under load, batches stop at 8" in finding.message


def test_requests_of_different_lengths_are_said_not_to_batch(tmp_path):
    shape = ["N", "L"]
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])
    rendering = plan_render(spec(tmp_path, "shapes: {x: {min: [1], opt: [8], max: [64]}}"))
    (finding,) = [finding for finding in rendering.findings if finding.code == "TG372"]
    assert (finding.severity, finding.model) == (Severity.ADVICE, "m")
    assert "fixed lengths" in finding.hint
    for other in ("batching: none\nshapes: {x: [1, 8]}", "shapes: {x: [8]}"):
        assert "TG372" not in {finding.code for finding in plan_render(spec(tmp_path, other)).findings}


def test_an_order_that_the_release_does_not_keep_is_said_at_the_key(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (finding,) = plan_render(spec(tmp_path, "queue: {preserve_ordering: true}", release="25.10")).findings
    assert (finding.code, finding.severity) == ("TG273", Severity.WARNING)
    assert line_of(finding).startswith("preserve_ordering")


def test_profiles_of_an_onnx_model_are_refused_at_their_place(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    with pytest.raises(InputError) as caught:
        plan_render(spec(tmp_path, "instances:\n  - {kind: cpu}\n  - {kind: gpu, profiles: [1]}"))
    (finding,) = [finding for finding in caught.value.diagnostics if finding.severity is Severity.ERROR]
    assert finding.code == "TG283"
    assert line_of(finding).startswith("profiles: [1]}")
    assert finding.hint.startswith("remove profiles")


def test_a_second_render_with_every_key_changes_nothing(tmp_path, tritongen):
    networks.mlp(tmp_path / "m.onnx")
    keys = (
        "slo: {p50: 10ms, p99: 40ms}\nqueue: {overload: reject, priority_levels: 2, default_priority_level: 1, allow_timeout_override: true,"
        " priority_queue_policy: {2: {max_queue_size: 3}}}\nbatching: {max: 8, preferred: [4, 8], max_queue_delay: 1ms, eager: true,"
        " pinned_memory: {input: false}, gather_kernel_buffer_threshold: 4}\ninstances: {count: 2, host_policy: near, rate_limiter: {priority: 2}}"
    )
    path = spec(tmp_path, keys)
    assert tritongen("render", path).code == 0
    again = tritongen("render", path, "--check")
    assert again.code == 0, again.out
    assert tritongen("check", tmp_path / "model_repository", "--release", "25.08", "--strict").code == 0
