"""`onnxruntime:` and `op_libraries:` → the config, as NVIDIA's backend reads it."""

import pytest

from tests.unit.render.compiling import compiled, signature
from tritongen.diagnostics import Severity
from tritongen.render.onnxruntime import ACCELERATOR_OPTIONS, COMPANIONS, CUDA_OPTIONS, CUDA_PARAMETERS, SESSION_PARAMETERS
from tritongen.rules.ortload import CUDA_KEYS, GPU_PARAMETERS, PARAMETERS, TENSORRT_KEYS, accelerator_problems, onnxruntime_reads, parameter_problems
from tritongen.spec.accelerator import TensorRTProvider
from tritongen.spec.onnxruntime import CudaProvider, OnnxRuntime

RELEASE = 'triton: {release: "25.08"}'
EVERYTHING = """
accelerator: tensorrt
precision: int8
op_libraries: [libmine.so, /opt/ops/libyours.so]
instances: [{kind: gpu, gpus: [0]}]
onnxruntime:
  graph_optimization: basic
  enable_mem_arena: true
  enable_mem_pattern: false
  arena_shrinkage: [cpu:0, gpu:0]
  use_device_allocator_for_initializers: true
  cuda:
    cudnn_conv_algo_search: heuristic
    gpu_mem_limit: 4GiB
    arena_extend_strategy: same_as_requested
    do_copy_in_default_stream: false
    cudnn_conv_use_max_workspace: false
    cudnn_conv1d_pad_to_nc1d: true
    enable_skip_layer_norm_strict_mode: true
    prefer_nhwc: true
    use_tf32: false
    use_ep_level_unified_stream: true
  tensorrt:
    max_workspace_size: 2GiB
    min_subgraph_size: 5
    max_partition_iterations: 20
    builder_optimization_level: 4
    auxiliary_streams: -1
    context_memory_sharing: true
    layer_norm_fp32_fallback: true
    sparsity: false
    force_sequential_engine_build: true
    detailed_build_log: true
    dump_subgraphs: true
    tactic_sources: {cudnn: false, cublas: true, jit_convolutions: false}
    extra_plugin_lib_paths: [/opt/a.so, libb.so]
    engine_cache_prefix: mine
    force_timing_cache: true
    int8_calibration_table_name: table.json
    int8_use_native_calibration_table: true
    dla_core: 1
    ep_context: {path: /contexts/m.onnx, embed: true}
"""


def parameters(config):
    return {name: value.string_value for name, value in config.parameters.items()}


def accelerators(config):
    return {accelerator.name: dict(accelerator.parameters) for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator}


def test_every_key_is_written_under_the_backends_own_name():
    outcome = compiled(EVERYTHING, top=RELEASE)
    assert outcome.codes == []
    assert outcome.config.optimization.graph.level == -1
    assert parameters(outcome.config) == {
        "enable_mem_arena": "1",
        "enable_mem_pattern": "0",
        "memory.enable_memory_arena_shrinkage": "cpu:0;gpu:0",
        "session.use_device_allocator_for_initializers": "1",
        "cudnn_conv_algo_search": "1",
        "gpu_mem_limit": "4294967296",
        "arena_extend_strategy": "1",
        "do_copy_in_default_stream": "0",
    }
    assert list(outcome.config.model_operations.op_library_filename) == ["libmine.so", "/opt/ops/libyours.so"]
    written = accelerators(outcome.config)
    assert list(written) == ["tensorrt", "cuda"]
    assert written["cuda"] == {
        "cudnn_conv_use_max_workspace": "0",
        "cudnn_conv1d_pad_to_nc1d": "1",
        "enable_skip_layer_norm_strict_mode": "1",
        "prefer_nhwc": "1",
        "use_tf32": "0",
        "use_ep_level_unified_stream": "1",
    }
    cache = written["tensorrt"].pop("trt_engine_cache_path")
    assert cache.startswith("/engine-cache/m-")
    assert written["tensorrt"].pop("trt_timing_cache_path") == cache
    assert written["tensorrt"] == {
        "precision_mode": "INT8",
        "max_workspace_size_bytes": "2147483648",
        "trt_min_subgraph_size": "5",
        "trt_max_partition_iterations": "20",
        "trt_builder_optimization_level": "4",
        "trt_auxiliary_streams": "-1",
        "trt_context_memory_sharing_enable": "1",
        "trt_layer_norm_fp32_fallback": "1",
        "trt_sparsity_enable": "0",
        "trt_force_sequential_engine_build": "1",
        "trt_detailed_build_log": "1",
        "trt_dump_subgraphs": "1",
        "trt_tactic_sources": "-CUDNN,+CUBLAS,-JIT_CONVOLUTIONS",
        "trt_extra_plugin_lib_paths": "/opt/a.so;libb.so",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_prefix": "mine",
        "trt_timing_cache_enable": "1",
        "trt_force_timing_cache": "1",
        "int8_calibration_table_name": "table.json",
        "int8_use_native_calibration_table": "1",
        "trt_dla_enable": "1",
        "trt_dla_core": "1",
        "trt_dump_ep_context_model": "1",
        "trt_ep_context_file_path": "/contexts/m.onnx",
        "trt_ep_context_embed_mode": "1",
        "trt_profile_min_shapes": "x:1x8",
        "trt_profile_opt_shapes": "x:8x8",
        "trt_profile_max_shapes": "x:8x8",
    }


def test_what_is_written_is_what_the_backend_and_onnxruntime_read():
    config = compiled(EVERYTHING, top=RELEASE).config
    form = {
        "parameters": {name: {"string_value": text} for name, text in parameters(config).items()},
        "optimization": {
            "execution_accelerators": {
                "gpu_execution_accelerator": [{"name": name, "parameters": given} for name, given in accelerators(config).items()],
            }
        },
    }
    assert list(parameter_problems(form, gpu=True)) == []
    assert list(accelerator_problems(form, gpu=True)) == []
    for name, text in accelerators(config)["tensorrt"].items():
        assert onnxruntime_reads(TENSORRT_KEYS[name][0], text), name


def test_every_parameter_of_the_backend_has_a_key():
    own = {"intra_op_thread_count", "share_session_between_instances"}
    assert {*SESSION_PARAMETERS.values(), *CUDA_PARAMETERS.values()} == PARAMETERS.keys() - own
    assert set(CUDA_PARAMETERS.values()) == set(GPU_PARAMETERS)
    derived = {"precision_mode", "trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"}
    companions = {name for names in COMPANIONS.values() for name in names}
    assert {*ACCELERATOR_OPTIONS.values(), *companions} == TENSORRT_KEYS.keys() - derived
    assert set(CUDA_OPTIONS.values()) <= CUDA_KEYS


def test_every_key_has_a_name_in_the_config():
    assert OnnxRuntime.model_fields.keys() == SESSION_PARAMETERS.keys() | {"graph_optimization", "cuda", "tensorrt"}
    assert CudaProvider.model_fields.keys() == CUDA_PARAMETERS.keys() | CUDA_OPTIONS.keys()
    assert TensorRTProvider.model_fields.keys() == ACCELERATOR_OPTIONS.keys()


@pytest.mark.parametrize(("word", "level"), [("extended", 1), ("off", 2), ("basic", -1)])
def test_graph_levels_are_the_backends_numbers(word, level):
    assert compiled(f"onnxruntime: {{graph_optimization: {word}}}").config.optimization.graph.level == level


def test_all_optimisations_need_no_level():
    assert not compiled("onnxruntime: {graph_optimization: all}").config.HasField("optimization")


def test_what_is_left_out_is_not_written():
    config = compiled("onnxruntime: {execution_mode: sequential}").config
    assert parameters(config) == {"execution_mode": "0"}
    assert not config.HasField("optimization")
    assert not config.HasField("model_operations")


def test_a_word_is_a_number_only_where_the_backend_wants_one():
    config = compiled("accelerator: tensorrt\nonnxruntime: {tensorrt: {engine_cache_prefix: default}}").config
    assert accelerators(config)["tensorrt"]["trt_engine_cache_prefix"] == "default"


def test_caches_can_be_switched_off():
    written = accelerators(compiled("accelerator: tensorrt\nonnxruntime: {tensorrt: {engine_cache: false, timing_cache: false}}").config)["tensorrt"]
    assert not [name for name in written if "cache" in name]


def test_an_onnxruntime_without_a_path_for_timings_is_given_none():
    old, new = (accelerators(compiled("accelerator: tensorrt", top=f'triton: {{release: "{release}"}}').config)["tensorrt"] for release in ("24.01", "24.03"))
    assert old.keys() == new.keys() - {"trt_timing_cache_path"}


def test_whatever_makes_engines_others_gives_them_another_folder():
    def folder(keys="", top=RELEASE, shape=("N", "L")):
        shapes = "" if "shapes" in keys else "shapes: {x: {min: [4], opt: [8], max: [8]}}\n"
        return accelerators(compiled(f"accelerator: tensorrt\n{shapes}{keys}", signature(shape), top=top).config)["tensorrt"]["trt_engine_cache_path"]

    different = [
        folder(),
        folder(top='triton: {release: "25.09"}'),
        folder("precision: bf16", top='triton: {release: "26.02"}'),
        folder("precision: tf32"),
        folder("precision: int8"),
        folder("batching: {max: 16}"),
        folder("batching: {max: 8, preferred: [4]}"),
        folder("shapes: {x: {min: [4], opt: [8], max: [16]}}"),
        folder("shapes: {x: {min: [4], opt: [6], max: [8]}}"),
        folder("onnxruntime: {tensorrt: {builder_optimization_level: 5}}"),
        folder("onnxruntime: {tensorrt: {sparsity: true}}"),
    ]
    assert len(set(different)) == len(different)
    assert folder() == folder("onnxruntime: {tensorrt: {engine_cache: true}}") == folder("warmup: none\nbatching: {max: 8}")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("", "the first client of a server whose engine cache is empty waits"),
        ("onnxruntime: {tensorrt: {engine_cache: false}}", "the first client after every start waits"),
    ],
)
def test_without_a_warmup_a_client_waits_for_the_engine(keys, words):
    found = compiled(f"accelerator: tensorrt\nbatching: {{max: 8}}\nwarmup: none\n{keys}").only("TG187")
    assert (str(found.location), found.severity) == ("warmup", Severity.ADVICE)
    assert words in found.consequence
    assert "TG187" not in compiled(f"accelerator: tensorrt\nbatching: {{max: 8}}\n{keys}").codes


@pytest.mark.parametrize(
    ("instances", "devices", "words"),
    [
        ("{kind: cpu}", "[gpu:0]", "copies of kind cpu"),
        ("{kind: gpu, gpus: [0, 1]}", "[cpu:0, gpu:0]", "copies on the GPUs 0, 1"),
        ("{kind: gpu, gpus: [1]}", "[gpu:0]", "copies on the GPUs 1"),
        ("[{kind: gpu, gpus: [0]}, {kind: model}]", "[gpu:0]", "the group at instances.1 has copies of kind model"),
    ],
)
def test_an_arena_that_a_copy_does_not_have_is_refused(instances, devices, words):
    found = compiled(f"instances: {instances}\nonnxruntime: {{arena_shrinkage: {devices}}}").only("TG181")
    assert words in found.message
    assert found.severity is Severity.ERROR
    assert str(found.location) == "onnxruntime.arena_shrinkage"


@pytest.mark.parametrize(("instances", "words"), [("{kind: gpu}", "on every GPU of the server, each"), ("{kind: auto}", "or on the CPU where it has none")])
def test_an_arena_that_a_copy_may_not_have_is_a_warning(instances, words):
    found = compiled(f"instances: {instances}\nonnxruntime: {{arena_shrinkage: [gpu:0]}}").only("TG181")
    assert found.severity is Severity.WARNING
    assert words in found.message
    assert "gpus: [0]" in found.hint


def test_no_copy_has_the_arenas_of_two_gpus():
    assert compiled("instances: {kind: gpu}\nonnxruntime: {arena_shrinkage: [gpu:0, gpu:1]}").only("TG181").severity is Severity.ERROR


@pytest.mark.parametrize(
    "keys", ["onnxruntime: {arena_shrinkage: [cpu:0]}", "instances: {kind: gpu, gpus: [2]}\nonnxruntime: {arena_shrinkage: [cpu:0, gpu:2]}"]
)
def test_arenas_that_every_copy_has_are_fine(keys):
    assert compiled(keys).codes == []


@pytest.mark.parametrize("keys", ["onnxruntime: {cuda: {enable_cuda_graph: true}}", "accelerator: tensorrt\nonnxruntime: {tensorrt: {cuda_graph: true}}"])
def test_a_cuda_graph_of_onnxruntime_is_a_risk(keys):
    assert "addresses" in compiled(keys).only("TG182").message


def test_a_calibration_table_answers_the_question_for_scales():
    assert "int8_calibration_table_name" in compiled("accelerator: tensorrt\nprecision: int8", top=RELEASE).only("TG111").hint
    table = "accelerator: tensorrt\nprecision: int8\nonnxruntime: {tensorrt: {int8_calibration_table_name: t.json}}"
    assert compiled(table, top=RELEASE).codes == []


def test_a_model_without_batching_has_profiles_of_its_own_shape():
    written = accelerators(compiled("accelerator: tensorrt\nbatching: none\nshapes: {x: [4, 8]}", signature(("N", 8))).config)["tensorrt"]
    assert written["trt_profile_max_shapes"] == "x:4x8"
