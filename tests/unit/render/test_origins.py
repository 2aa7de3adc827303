"""A field of the config → the key of the spec that it comes from; fields that a key and the overlay both set."""

import networks
import pytest

from tests.unit.render.compiling import compiled
from tritongen.errors import InputError
from tritongen.render.origins import origin
from tritongen.spec.models import ModelSpec
from tritongen.workflow.rendering import plan_render

GPU = ("optimization", "execution_accelerators", "gpu_execution_accelerator")
MODEL = ModelSpec.model_validate(
    {
        "name": "m",
        "source": "m.onnx",
        "accelerator": "tensorrt",
        "precision": "fp16",
        "instances": [{"kind": "gpu"}, {"kind": "gpu", "count": 2}],
        "onnxruntime": {"arena_shrinkage": ["gpu:0"], "cuda": {"use_tf32": False, "gpu_mem_limit": "1GiB"}, "tensorrt": {"dla_core": 0}},
        "config": {"output": [{"name": "y", "label_filename": "l.txt"}], "response_cache": {"enable": True}},
    }
)


@pytest.mark.parametrize(
    ("field", "key"),
    [
        (("parameters", "memory.enable_memory_arena_shrinkage"), ("onnxruntime", "arena_shrinkage")),
        (("parameters", "gpu_mem_limit"), ("onnxruntime", "cuda", "gpu_mem_limit")),
        ((*GPU, 1, "parameters", "use_tf32"), ("onnxruntime", "cuda", "use_tf32")),
        ((*GPU, 0, "parameters", "trt_dla_enable"), ("onnxruntime", "tensorrt", "dla_core")),
        ((*GPU, 0, "parameters", "precision_mode"), ("precision",)),
        ((*GPU, 0, "parameters", "trt_engine_cache_path"), ("accelerator",)),
        ((*GPU, 0, "name"), ("accelerator",)),
        (("instance_group", 1, "count"), ("instances", 1)),
        (("instance_group",), ("instances",)),
        (("output", 0, "label_filename"), ("config", "output", 0, "label_filename")),
        (("response_cache", "enable"), ("config", "response_cache", "enable")),
        (("dynamic_batching",), ()),
        (("parameters", "anything"), ()),
        ((), ()),
    ],
)
def test_where_a_field_comes_from(field, key):
    assert origin(field, MODEL) == key


@pytest.mark.parametrize(
    ("keys", "overlay", "place", "key"),
    [
        ("cpu_threads: 2", "parameters: {intra_op_thread_count: {string_value: '1'}}", "config.parameters.intra_op_thread_count", "cpu_threads"),
        (
            "onnxruntime: {execution_mode: parallel}",
            "parameters: {execution_mode: {string_value: '0'}}",
            "config.parameters.execution_mode",
            "onnxruntime.execution_mode",
        ),
        ("onnxruntime: {graph_optimization: 'off'}", "optimization: {graph: {level: 1}}", "config.optimization.graph", "onnxruntime.graph_optimization"),
        (
            "accelerator: tensorrt\nonnxruntime: {tensorrt: {sparsity: true}}",
            "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: tensorrt}]}}",
            "config.optimization.execution_accelerators.gpu_execution_accelerator",
            "onnxruntime.tensorrt.sparsity",
        ),
        (
            "onnxruntime: {cuda: {use_tf32: false}}",
            "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: cuda}]}}",
            "config.optimization.execution_accelerators.gpu_execution_accelerator",
            "onnxruntime.cuda.use_tf32",
        ),
        (
            "accelerator: tensorrt\nprecision: fp16",
            "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: cuda}]}}",
            "config.optimization.execution_accelerators.gpu_execution_accelerator",
            "accelerator at accelerator and precision",
        ),
        (
            "accelerator: openvino",
            "optimization: {execution_accelerators: {cpu_execution_accelerator: []}}",
            "config.optimization.execution_accelerators.cpu_execution_accelerator",
            "accelerator",
        ),
        (
            "onnxruntime: {execution_mode: sequential}",
            "parameters: {execution_mode: {string_value: '1'}}",
            "config.parameters.execution_mode",
            "onnxruntime.execution_mode",
        ),
        ("op_libraries: [liba.so]", "model_operations: {op_library_filename: [libb.so]}", "config.model_operations", "op_libraries"),
        (
            "backend: tensorrt\ntensorrt: {stream_priority: max}",
            "optimization: {priority: PRIORITY_MIN}",
            "config.optimization.priority",
            "tensorrt.stream_priority",
        ),
        (
            "backend: tensorrt\ntensorrt: {busy_wait_events: true}",
            "optimization: {cuda: {busy_wait_events: false}}",
            "config.optimization.cuda.busy_wait_events",
            "tensorrt.busy_wait_events",
        ),
    ],
)
def test_a_key_and_the_overlay_of_its_field_are_refused_with_both_places(keys, overlay, place, key):
    found = compiled(f"{keys}\nconfig: {{{overlay}}}").only("TG180")
    assert str(found.location) == place
    assert key in found.message
    assert key.split(" ")[0] in found.hint


def test_a_key_from_the_defaults_gives_way_to_the_models_overlay():
    keys = "onnxruntime: {execution_mode: parallel}\nconfig: {parameters: {execution_mode: {string_value: '0'}}}"
    outcome = compiled(keys, inherited=("onnxruntime",))
    assert outcome.codes == []
    assert outcome.config.parameters["execution_mode"].string_value == "0"


def test_a_key_that_has_no_effect_is_no_rival_of_the_overlay():
    keys = "instances: {kind: gpu}\nonnxruntime: {execution_mode: parallel}\nconfig: {parameters: {execution_mode: {string_value: '0'}}}"
    assert compiled(keys).codes == ["TG117"]


def test_what_the_cuda_accelerator_is_given_may_come_from_the_overlay():
    overlay = "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: cuda, parameters: {use_tf32: '0'}}]}}"
    outcome = compiled(f"accelerator: cuda\nconfig: {{{overlay}}}")
    assert outcome.codes == []
    assert outcome.config.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["use_tf32"] == "0"


def test_other_fields_can_be_laid_over():
    overlay = "config: {parameters: {note: {string_value: a}}, optimization: {cuda: {busy_wait_events: true}}}"
    outcome = compiled(f"backend: tensorrt\ntensorrt: {{stream_priority: max}}\n{overlay}")
    assert outcome.codes == []
    assert outcome.config.optimization.priority == outcome.config.optimization.PRIORITY_MAX
    assert outcome.config.optimization.cuda.busy_wait_events


def test_a_rule_about_the_config_points_at_the_key(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    spec = tmp_path / "spec.yaml"
    settings = "instances: {kind: gpu}\n    onnxruntime:\n      cuda:\n        use_tf32: false\n"
    spec.write_text(f'version: 1\ntriton: {{release: "24.03"}}\nmodels:\n  - name: m\n    source: m.onnx\n    {settings}')
    with pytest.raises(InputError) as error:
        plan_render(spec)
    found = next(diagnostic for diagnostic in error.value.diagnostics if diagnostic.code == "TG292")
    assert found.location.line == 9
    assert "ONNX Runtime 1.17.2" in found.message


@pytest.mark.parametrize(("keys", "said"), [("onnxruntime: {graph_optimization: basic}", False), ("config: {optimization: {graph: {level: -1}}}", True)])
def test_a_level_that_is_asked_for_by_its_word_is_meant(tmp_path, keys, said):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text(f"version: 1\nmodels:\n  - name: m\n    source: m.onnx\n    {keys}\n")
    with plan_render(tmp_path / "spec.yaml") as rendering:
        assert ("TG304" in [finding.code for finding in rendering.findings]) is said
