"""The same spec without a GPU: `tritongen render --cpu`."""

from __future__ import annotations

import networks
import pytest
from onnx import TensorProto, helper

from tritongen.modelconfig import parse_pbtxt

MODELS = """\
version: 1
triton: {release: "25.08", engine_cache: /elsewhere}
server: {memory: {gpus: [{gpu: 0, pool: 1MiB}]}}
deploy: {gpus: [0]}
defaults:
  onnxruntime: {cuda: {use_tf32: false}}
models:
  - {name: accelerated, source: mlp.onnx, accelerator: tensorrt, precision: fp16, batching: {max: 8}, onnxruntime: {tensorrt: {timing_cache: true}}}
  - {name: plan, source: mlp.onnx, backend: tensorrt, precision: fp16, instances: [{kind: gpu, count: 2, gpus: [0]}]}
  - {name: spread, source: mlp.onnx, accelerator: cuda, instances: [{kind: gpu, count: 4, gpus: [0]}, {kind: gpu, gpus: [0]}]}
  - {name: both, source: mlp.onnx, cpu_threads: 1, instances: [{kind: gpu}, {kind: cpu, count: 2}]}
  - {name: any, source: mlp.onnx, cpu_threads: 2}
"""


def config(folder, model):
    return parse_pbtxt((folder / "model_repository.cpu" / model / "config.pbtxt").read_text())


def test_every_model_runs_on_the_cpu_and_nothing_is_said_of_what_is_meant(project, tritongen):
    (project / "spec.yaml").write_text(MODELS)
    result = tritongen("render", project / "spec.yaml", "--cpu", "--strict")
    assert (result.code, result.err) == (0, "")
    assert not (project / "model_repository").exists()
    copies = {
        name: [(group.kind, group.count, list(group.gpus)) for group in config(project, name).instance_group] for name in ("plan", "spread", "both", "any")
    }
    on_cpu = 2
    assert copies == {"plan": [(on_cpu, 1, [])], "spread": [(on_cpu, 1, [])], "both": [(on_cpu, 2, [])], "any": [(on_cpu, 1, [])]}
    for name in ("accelerated", "plan", "spread"):
        assert config(project, name).platform == "onnxruntime_onnx"
        assert not config(project, name).optimization.HasField("execution_accelerators")
    assert config(project, "accelerated").max_batch_size == 8
    assert (project / "model_repository.cpu/plan/1/model.onnx").read_bytes() == (project / "mlp.onnx").read_bytes()
    assert tritongen("render", project / "spec.yaml", "--cpu", "--check").code == 0


@pytest.mark.parametrize("how", ["instances: [{kind: gpu}]", "backend: tensorrt, instances: [{kind: gpu}]", "instances: [{kind: cpu}]"])
def test_clients_send_and_take_the_same_types_on_every_device(project, tritongen, how):
    spec = project / "spec.yaml"
    spec.write_text(f"version: 1\nmodels: [{{name: m, source: mlp.onnx, precision: fp16, conversion: {{keep_io_types: false}}, {how}}}]\n")
    assert tritongen("render", spec).code == 0
    assert tritongen("render", spec, "--cpu").code == 0
    on_gpu = parse_pbtxt((project / "model_repository/m/config.pbtxt").read_text())
    on_cpu = config(project, "m")
    half = 10
    assert {tensor.data_type for tensor in (*on_cpu.input, *on_cpu.output)} == {half}
    assert [(tensor.name, tensor.data_type) for tensor in (*on_gpu.input, *on_gpu.output)] == [
        (tensor.name, tensor.data_type) for tensor in (*on_cpu.input, *on_cpu.output)
    ]
    assert (project / "model_repository.cpu/m/1/model.onnx").read_bytes() != (project / "mlp.onnx").read_bytes()


@pytest.mark.parametrize(
    ("overlay", "place"),
    [
        ("instance_group: [{kind: KIND_GPU}]", "instance_group"),
        ("instance_group: [{count: 1, gpus: [0]}]", "instance_group"),
        ("optimization: {cuda: {graphs: true}}", "optimization.cuda"),
        ("optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: cuda}]}}", "gpu_execution_accelerator"),
    ],
)
def test_what_cannot_run_on_the_cpu_is_refused(project, tritongen, overlay, place):
    spec = project / "spec.yaml"
    spec.write_text(f"version: 1\nmodels:\n  - name: m\n    source: mlp.onnx\n    config: {{{overlay}}}\n")
    result = tritongen("render", spec, "--cpu")
    assert result.code == 2
    assert "TG434 (model m)" in result.err
    assert place in result.err
    assert f"{spec}:5:" in result.err
    assert not (project / "model_repository.cpu").exists()


def test_sizes_that_only_the_profiles_of_the_plan_say_are_warmed_up_on_the_cpu_too(project, tritongen):
    networks.save(project / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], *([(name, TensorProto.FLOAT, ["N", "S"])] for name in "xy"), [])
    sizes = "tensorrt: {profiles: [{shapes: {x: {min: [1], opt: [4], max: [8]}}}]}"
    (project / "spec.yaml").write_text(f"version: 1\nmodels:\n  - {{name: m, source: m.onnx, backend: tensorrt, {sizes}}}\n")
    assert tritongen("render", project / "spec.yaml", "--cpu").code == 0
    assert [list(sample.inputs["x"].dims) for sample in config(project, "m").model_warmup][:1] == [[4]]


def test_an_overlay_for_the_cpu_stays(project, tritongen):
    (project / "spec.yaml").write_text(
        "version: 1\nmodels: [{name: m, source: mlp.onnx, cpu_threads: 1, config: {instance_group: [{kind: KIND_CPU, count: 3}]}}]\n"
    )
    assert tritongen("render", project / "spec.yaml", "--cpu").code == 0
    assert config(project, "m").instance_group[0].count == 3


def test_cores_of_the_other_machine_are_asked_for_nowhere(project, tritongen):
    """Triton binds the threads of copies by them, and loads no model whose cores are all missing."""
    (project / "spec.yaml").write_text(
        "version: 1\nserver: {host_policies: {far: {cpu_cores: 32-63}}}\n"
        "models: [{name: m, source: mlp.onnx, cpu_threads: 1, instances: [{kind: cpu, host_policy: far}]}]\n"
    )
    result = tritongen("render", project / "spec.yaml", "--cpu", "--strict")
    assert (result.code, result.err) == (0, "")
    assert config(project, "m").instance_group[0].host_policy == ""


def test_the_other_repository_and_the_deployment_do_not_depend_on_it(project, tritongen):
    (project / "spec.yaml").write_text(MODELS)
    assert tritongen("render", project / "spec.yaml", "--deploy", "compose").code == 0
    result = tritongen("render", project / "spec.yaml", "--cpu", "--deploy", "compose")
    assert result.code == 0
    assert "replaced" not in result.out
