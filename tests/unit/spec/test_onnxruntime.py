"""The sections of backends: what they hold, and what is said about what they do not."""

import pytest

from tritongen.spec import spec_schema


def test_the_defaults_say_nothing(folder):
    model = folder.model("")
    assert model.onnxruntime.graph_optimization == "all"
    assert model.onnxruntime.tensorrt.engine_cache
    assert model.onnxruntime.tensorrt.timing_cache
    assert {value for _, value in model.onnxruntime.cuda} == {None}
    assert not model.tensorrt.model_fields_set
    assert model.op_libraries == ()


def test_values_are_what_they_say(folder):
    settings = folder.model(
        "onnxruntime: {execution_mode: parallel, arena_shrinkage: [cpu:0, gpu:12], cuda: {gpu_mem_limit: 4GiB, use_tf32: false},"
        " tensorrt: {max_workspace_size: 1.5GB, auxiliary_streams: -1, tactic_sources: {cudnn: false}, ep_context: {path: /cache/m.onnx}}}"
    ).onnxruntime
    assert (settings.execution_mode, settings.arena_shrinkage) == ("parallel", ("cpu:0", "gpu:12"))
    assert (settings.cuda.gpu_mem_limit, settings.cuda.use_tf32) == (4 * 2**30, False)
    assert (settings.tensorrt.max_workspace_size, settings.tensorrt.auxiliary_streams) == (1_500_000_000, -1)
    assert settings.tensorrt.tactic_sources.cudnn is False
    assert settings.tensorrt.ep_context.embed is False


@pytest.mark.parametrize(("text", "graphs"), [("true", False), ("{}", False), ("{lower_bounds: true}", True)])
def test_cuda_graphs_have_a_short_form(folder, text, graphs):
    assert folder.model(f"backend: tensorrt, tensorrt: {{cuda_graphs: {text}}}").tensorrt.cuda_graphs.lower_bounds is graphs


def test_cuda_graphs_can_be_switched_off(folder):
    assert folder.model("backend: tensorrt, tensorrt: {cuda_graphs: false}").tensorrt.cuda_graphs is None


@pytest.mark.parametrize("path", ["/opt/ops/libmine.so", "libmine.so", "/a"])
def test_libraries_are_absolute_paths_or_plain_names(folder, path):
    assert folder.model(f"op_libraries: [{path}]").op_libraries == (path,)


@pytest.mark.parametrize(
    ("keys", "code", "words"),
    [
        ("onnxruntime: 3", "TG010", "onnxruntime: expected a mapping"),
        ("onnxruntime: {graph_optimization: none}", "TG011", "expected one of all, extended, basic, off"),
        ("onnxruntime: {enable_mem_arena: 1}", "TG010", "expected true or false, got the number 1"),
        ("onnxruntime: {inter_op_threads: 0}", "TG011", "must be at least 1"),
        ("onnxruntime: {arena_shrinkage: ['cuda:0']}", "TG011", "'cuda:0' is not a device of ONNX Runtime"),
        ("onnxruntime: {arena_shrinkage: ['cpu:1']}", "TG011", "'cpu:1' is not a device of ONNX Runtime"),
        ("onnxruntime: {cuda: {gpu_mem_limit: 4}}", "TG012", "4 has no unit"),
        ("onnxruntime: {cuda: {gpu_mem_limit: 0B}}", "TG012", "a size of 0 is no memory at all"),
        ("onnxruntime: {cuda: {cudnn_conv_algo_search: 1}}", "TG010", "expected one of exhaustive, heuristic, default"),
        ("onnxruntime: {tensorrt: {builder_optimization_level: 6}}", "TG011", "must be at most 5, and it is 6"),
        ("onnxruntime: {tensorrt: {auxiliary_streams: -2}}", "TG011", "must be at least -1"),
        ("onnxruntime: {tensorrt: {engine_cache_prefix: a/b}}", "TG011", "'a/b' cannot begin a file's name"),
        ("onnxruntime: {tensorrt: {extra_plugin_lib_paths: ['/a;b']}}", "TG011", "holds a ';'"),
        ("onnxruntime: {tensorrt: {extra_plugin_lib_paths: [lib/x.so]}}", "TG011", "neither an absolute path nor a plain file name"),
        ("onnxruntime: {tensorrt: {ep_context: {}}}", "TG009", "'path' is missing"),
        ("onnxruntime: {tensorrt: {ep_context: {path: m.onnx}}}", "TG011", "is not an absolute path"),
        ("onnxruntime: {tensorrt: {tactic_sources: [cudnn]}}", "TG010", "expected a mapping"),
        ("tensorrt: {cuda_graphs: 3}", "TG010", "expected true, false or a mapping with lower_bounds"),
        ("tensorrt: {stream_priority: high}", "TG011", "expected one of max, min"),
        ("tensorrt: {execution_context_allocation_strategy: STATIC}", "TG011", "expected one of static, on_profile_change"),
        ("op_libraries: [ops/libmine.so]", "TG011", "neither an absolute path nor a plain file name"),
        ("op_libraries: [..]", "TG011", "neither an absolute path nor a plain file name"),
        ("op_libraries: [/a/../b.so]", "TG011", "neither an absolute path nor a plain file name"),
        ("op_libraries: ['']", "TG011", "the path is empty"),
        ("op_libraries: libmine.so", "TG010", "expected a list"),
    ],
)
def test_what_is_wrong_is_one_finding(folder, keys, code, words):
    finding = folder.model_finding(keys)
    assert finding.code == code
    assert words in finding.message
    assert finding.hint


def test_an_arena_that_is_switched_off_cannot_be_shrunk(folder):
    finding = folder.model_finding("onnxruntime: {enable_mem_arena: false, arena_shrinkage: ['cpu:0']}")
    assert (finding.code, finding.location.text[finding.location.column - 1 :][:9]) == ("TG015", "['cpu:0']")
    assert "enable_mem_arena: false" in finding.message
    assert "refuses every request" in finding.consequence
    assert folder.model("onnxruntime: {enable_mem_arena: false, arena_shrinkage: ['gpu:0']}")


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ("gpu_mem_limit: 4GiB", "onnxruntime: {cuda: {gpu_mem_limit: ...}}"),
        ("execution_mode: parallel", "onnxruntime: {execution_mode: ...}"),
        ("trt_sparsity_enable: true", "onnxruntime: {tensorrt: {sparsity: ...}}"),
        ("busy_wait_events: true", "tensorrt: {busy_wait_events: ...}"),
        ("trt_int8_enable: true", "precision: int8"),
        ("inter_op_thread_count: 2", "onnxruntime: {execution_mode: parallel, inter_op_threads: 2}"),
        ("graph_spec: []", "tensorrt: {cuda_graphs: true}"),
        ("model_operations: {}", "op_libraries: ["),
        ("onnxruntime: {use_tf32: false}", "onnxruntime: {cuda: {use_tf32: ...}}"),
        ("onnxruntime: {inter_op_thread_count: 2}", "'inter_op_threads'"),
        ("onnxruntime: {tensorrt: {trt_sparsity_enable: true}}", "'sparsity'"),
        ("onnxruntime: {tensorrt: {trt_fp16_enable: true}}", "precision: fp16"),
        ("onnxruntime: {cuda: {nonsense: 1}}", "the keys here are: cudnn_conv_algo_search"),
    ],
)
def test_names_of_triton_and_onnxruntime_lead_to_the_key(folder, keys, hint):
    finding = folder.model_finding(keys)
    assert finding.code == "TG008"
    assert hint in finding.hint


def test_all_that_is_wrong_in_a_section_is_said_at_once(folder):
    keys = "onnxruntime: {execution_mode: fast, cuda: {use_tf32: 'no'}, tensorrt: {dla_core: -1, sparsity: yes}}"
    assert [finding.code for finding in folder.findings(f"version: 1\nmodels:\n  - {{name: m, source: m.onnx, {keys}}}\n")] == [
        "TG011",
        "TG010",
        "TG011",
        "TG010",
    ]


def test_every_key_says_what_it_sets():
    definitions = spec_schema()["$defs"]
    for name in ("OnnxRuntime", "CudaProvider", "TensorRTProvider", "TacticSources", "EngineContext", "TensorRT", "CudaGraphs"):
        for key, schema in definitions[name]["properties"].items():
            assert schema.get("x-triton"), (name, key)
