"""Keys that have no effect in their combination: said once, at the key, and not written."""

import pytest

from tests.unit.render.compiling import FP32, compiled, signature
from tritongen import dtypes
from tritongen.diagnostics import Location, Severity
from tritongen.render.effects import EFFECTS, idle_target
from tritongen.signature import Signature, TensorSpec
from tritongen.spec.models import Spec

OLD, LAST_10, NEWEST = ('triton: {release: "24.03"}', 'triton: {release: "25.08"}', 'triton: {release: "26.08"}')
TENSORRT = "accelerator: tensorrt\n"

CORES = "triton: {cpus: 8}"
SIZED = "backend: tensorrt\nbatching: none\ntensorrt: {cuda_graphs: true, shape_tensors: {size: {min: [1], opt: [2], max: [4]}}}"
MODELS = {SIZED: Signature((TensorSpec("size", dtypes.from_wire("INT64"), (1,)),), (TensorSpec("y", FP32, (None,)),))}
"""The models of keys that not any model has a use for."""
CASES = [
    ("backend: tensorrt\naccelerator: cuda", "accelerator", "backend: tensorrt", ""),
    ("precision: fp16\ninstances: {kind: cpu}", "precision", "instances of kind cpu only", ""),
    ("precision: fp16\naccelerator: openvino", "precision", "accelerator: openvino", ""),
    ("precision: tf32", "precision", "accelerator: none", ""),
    ("conversion: {cosine: 0.9}", "conversion", "precision: fp32", ""),
    ("accelerator: tensorrt\nprecision: tf32\nconversion: {keep_io_types: false}", "conversion", "precision: tf32", LAST_10),
    ("precision: int8\naccelerator: cuda", "precision", "accelerator: cuda", ""),
    ("backend: tensorrt\ncpu_threads: 2", "cpu_threads", "backend: tensorrt", ""),
    ("backend: tensorrt\nonnxruntime: {execution_mode: parallel, cuda: {use_tf32: false}}", "onnxruntime", "backend: tensorrt", ""),
    ("backend: tensorrt\nop_libraries: [libmine.so]", "op_libraries", "backend: tensorrt", ""),
    ("tensorrt: {cuda_graphs: true, stream_priority: max}", "tensorrt", "backend: onnxruntime", ""),
    (SIZED, "tensorrt.cuda_graphs", "shape_tensors", ""),
    ("onnxruntime: {tensorrt: {sparsity: true}}", "onnxruntime.tensorrt", "accelerator: none", ""),
    ("onnxruntime: {tensorrt: {engine_cache: false}}", "onnxruntime.tensorrt", "accelerator: none", ""),
    ("instances: {kind: cpu}\nonnxruntime: {cuda: {gpu_mem_limit: 1GiB}}", "onnxruntime.cuda", "instances of kind cpu only", ""),
    ("instances: {kind: model}\nonnxruntime: {cuda: {use_tf32: true}}", "onnxruntime.cuda", "kind model only", ""),
    ("instances: {kind: gpu}\nonnxruntime: {execution_mode: parallel}", "onnxruntime.execution_mode", "instances of kind gpu only", ""),
    ("accelerator: cuda\nonnxruntime: {execution_mode: parallel}", "onnxruntime.execution_mode", "instances of kind gpu only", ""),
    ("onnxruntime: {execution_mode: parallel, enable_mem_pattern: true}", "onnxruntime.enable_mem_pattern", "execution_mode: parallel", CORES),
    ("onnxruntime: {inter_op_threads: 2}", "onnxruntime.inter_op_threads", "execution_mode: sequential", ""),
    (
        f"{TENSORRT}onnxruntime: {{tensorrt: {{engine_cache: false, engine_cache_prefix: a}}}}",
        "onnxruntime.tensorrt.engine_cache_prefix",
        "engine_cache: false",
        "",
    ),
    (
        f"{TENSORRT}onnxruntime: {{tensorrt: {{timing_cache: false, force_timing_cache: true}}}}",
        "onnxruntime.tensorrt.force_timing_cache",
        "timing_cache: false",
        "",
    ),
    (f"{TENSORRT}onnxruntime: {{tensorrt: {{dla_core: 0}}}}", "onnxruntime.tensorrt.dla_core", "precision: fp32", ""),
    (
        f"{TENSORRT}precision: fp16\nonnxruntime: {{tensorrt: {{int8_calibration_table_name: t}}}}",
        "onnxruntime.tensorrt.int8_calibration_table_name",
        "precision: fp16",
        LAST_10,
    ),
    (
        f"{TENSORRT}onnxruntime: {{tensorrt: {{int8_use_native_calibration_table: true}}}}",
        "onnxruntime.tensorrt.int8_use_native_calibration_table",
        "no int8_calibration_table_name",
        "",
    ),
    (f"{TENSORRT}onnxruntime: {{tensorrt: {{build_heuristics: true}}}}", "onnxruntime.tensorrt.build_heuristics", "TensorRT 10.13.2.6", LAST_10),
    (
        f"{TENSORRT}onnxruntime: {{tensorrt: {{tactic_sources: {{cudnn: false, jit_convolutions: true}}}}}}",
        "onnxruntime.tensorrt.tactic_sources.cudnn",
        "TensorRT 11.2.1 of release 26.08",
        NEWEST,
    ),
    ("versions: {policy: all, count: 3}", "versions.count", "versions.policy: all", ""),
    ("backend: tensorrt\ntensorrt: {build: {gpu_fallback: false}}", "tensorrt.build.gpu_fallback", "no dla in instances", ""),
]


@pytest.mark.parametrize(("keys", "key", "against", "top"), CASES)
def test_a_key_without_effect_is_said_at_its_place_with_what_stands_against_it(keys, key, against, top):
    outcome = compiled(keys, MODELS.get(keys), top=top)
    (found,) = (found for found in outcome.found if found.code == "TG117")
    assert str(found.location) == key
    assert found.message.startswith(key)
    assert against in found.message
    assert found.consequence
    assert found.hint
    assert found.severity is Severity.WARNING
    assert outcome.codes == ["TG117"]


@pytest.mark.parametrize(("keys", "key", "against", "top"), CASES)
def test_it_is_advice_where_it_was_written_for_all_models(keys, key, against, top):
    assert compiled(keys, MODELS.get(keys), top=top, inherited=(key.split(".")[0],)).only("TG117").severity is Severity.ADVICE


@pytest.mark.parametrize(("keys", "key", "against", "top"), CASES)
def test_it_is_not_written(keys, key, against, top):
    config = compiled(keys, MODELS.get(keys), top=top).config
    derived = {"inter_op_thread_count", "intra_op_thread_count"} if top == CORES else set()
    assert set(config.parameters) <= derived | {"execution_mode", "execution_context_allocation_strategy"}
    assert not config.optimization.cuda.graphs
    assert "libmine.so" not in config.model_operations.op_library_filename
    written = {name for each in config.optimization.execution_accelerators.gpu_execution_accelerator for name in each.parameters}
    gone = ("use_tf32", "trt_engine_cache_prefix", "trt_force_timing_cache", "trt_dla_enable", "int8_calibration_table_name", "trt_build_heuristics_enable")
    assert not written & set(gone)


@pytest.mark.parametrize(
    ("keys", "top"),
    [
        ("backend: tensorrt\naccelerator: none\nprecision: fp16\ntensorrt: {busy_wait_events: true}", LAST_10),
        ("onnxruntime: {execution_mode: parallel, inter_op_threads: 2}", ""),
        ("instances: {kind: gpu}\nonnxruntime: {execution_mode: sequential, cuda: {use_tf32: false}}", ""),
        ("instances: [{kind: cpu}, {kind: gpu}]\ncpu_threads: 1\nonnxruntime: {execution_mode: parallel, cuda: {use_tf32: false}}", CORES),
        (f"{TENSORRT}precision: fp16\nonnxruntime: {{tensorrt: {{dla_core: 0, tactic_sources: {{cudnn: false}}}}}}", LAST_10),
        (f"{TENSORRT}onnxruntime: {{tensorrt: {{build_heuristics: true}}}}", OLD),
        (f"{TENSORRT}onnxruntime: {{tensorrt: {{tactic_sources: {{jit_convolutions: true}}}}}}", NEWEST),
        ("version: auto\nversions: {policy: all, count: 3}", ""),
        ("precision: fp32\nversions: {policy: all, count: 1}", ""),
        ("precision: fp16\nconversion: {keep_io_types: false}", ""),
        ("precision: fp16\naccelerator: cuda", ""),
        ("precision: fp16\nbackend: tensorrt\ninstances: {kind: gpu}", LAST_10),
        ("precision: tf32\naccelerator: tensorrt", LAST_10),
        ("precision: tf32\nbackend: tensorrt", NEWEST),
    ],
)
def test_what_has_an_effect_or_says_the_default_is_fine(keys, top):
    assert compiled(keys, top=top).codes == []


def test_a_mixed_list_of_tactic_sources_keeps_what_tensorrt_11_has():
    keys = f"{TENSORRT}onnxruntime: {{tensorrt: {{tactic_sources: {{cudnn: false, cublas: false, jit_convolutions: true}}}}}}"
    outcome = compiled(keys, top=NEWEST)
    assert [str(found.location).rpartition(".")[2] for found in outcome.found] == ["cudnn", "cublas"]
    (accelerator,) = outcome.config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.parameters["trt_tactic_sources"] == "+JIT_CONVOLUTIONS"


def test_int8_tables_are_of_no_use_to_tensorrt_11():
    keys = f"{TENSORRT}precision: int8\nonnxruntime: {{tensorrt: {{int8_calibration_table_name: t}}}}"
    assert "TensorRT 11" in compiled(keys, top=NEWEST).only("TG117").message


def test_all_that_has_no_effect_is_said_at_once_and_inner_keys_with_their_section():
    keys = "precision: fp16\ninstances: {kind: cpu}\nonnxruntime: {inter_op_threads: 2, cuda: {use_tf32: false}, tensorrt: {dla_core: 0}}"
    places = [str(found.location) for found in compiled(keys).found]
    assert places == ["precision", "onnxruntime.tensorrt", "onnxruntime.cuda", "onnxruntime.inter_op_threads"]


@pytest.mark.parametrize(("wire", "said"), [("FP16", True), ("BYTES", True), ("BOOL", True), ("FP32", False), ("INT64", False)])
def test_labels_are_for_outputs_that_can_be_classified(wire, said):
    model = Signature((TensorSpec("x", FP32, ("N", 8)),), (TensorSpec("y", dtypes.from_wire(wire), ("N", 8)),))
    outcome = compiled("labels: {y: names.txt}", model)
    assert [str(found.location) for found in outcome.found] == (["labels.y"] if said else [])
    assert outcome.config.output[0].label_filename == "labels.txt"


@pytest.mark.parametrize(
    ("cache", "model", "said"),
    [
        ("/cache", {}, True),
        ("/cache", {"backend": "tensorrt"}, True),
        ("/cache", {"accelerator": "tensorrt"}, False),
        ("/engine-cache", {}, True),
        (None, {}, False),
        ("/cache", {"accelerator": "tensorrt", "onnxruntime": {"tensorrt": {"engine_cache": False}}}, False),
        ("/cache", {"accelerator": "tensorrt", "onnxruntime": {"tensorrt": {"engine_cache": False, "timing_cache": False}}}, True),
    ],
)
def test_a_folder_for_engines_is_for_models_that_have_some(cache, model, said):
    triton = {"engine_cache": cache} if cache else {}
    spec = Spec.model_validate({"version": 1, "triton": triton, "models": [{"name": "m", "source": "m.onnx", **model}]})
    found = idle_target(spec, lambda key: Location(".".join(map(str, key))))
    assert [(finding.code, str(finding.location)) for finding in found] == ([("TG117", "triton.engine_cache")] if said else [])


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("queue: {}", "queue"),
        ("queue: {priority_levels: 2, priority_queue_policy: {}}", "queue.priority_queue_policy"),
        ("onnxruntime: {}", "onnxruntime"),
        ("onnxruntime: {cuda: {}}", "onnxruntime.cuda"),
        ("accelerator: tensorrt\nonnxruntime: {tensorrt: {tactic_sources: {}}}", "onnxruntime.tensorrt.tactic_sources"),
        ("backend: tensorrt\ntensorrt: {}", "tensorrt"),
        ("batching: {pinned_memory: {}}", "batching.pinned_memory"),
        ("versions: {}", "versions"),
        ("shapes: {}", "shapes"),
        ("samples: {}", "samples"),
        ("labels: {}", "labels"),
        ("config: {}", "config"),
    ],
)
def test_a_mapping_that_is_left_empty_is_said(keys, place):
    found = compiled(keys).only("TG117")
    assert str(found.location) == place
    assert "it is empty" in found.message


@pytest.mark.parametrize("keys", ["batching: auto", "batching: {}", "backend: tensorrt\ntensorrt: {cuda_graphs: true}", "warmup: none", "instances: [{}]"])
def test_what_is_empty_and_means_something_is_not_mentioned(keys):
    assert compiled(keys).codes == []


def test_every_row_of_the_table_is_tried():
    tried = {key for _, key, _, _ in CASES} | {f"onnxruntime.tensorrt.tactic_sources.{name}" for name in ("cublas", "cublas_lt")}
    assert {".".join(map(str, effect.key)) for effect in EFFECTS} == tried


def test_a_model_that_says_nothing_has_no_idle_key():
    assert compiled("", signature()).codes == []


@pytest.mark.parametrize(
    ("keys", "release", "parent", "child"),
    [
        (
            "accelerator: tensorrt\nprecision: int8\nonnxruntime:\n  tensorrt: {int8_calibration_table_name: t, int8_use_native_calibration_table: true}",
            "26.08",
            "onnxruntime.tensorrt.int8_calibration_table_name",
            "onnxruntime.tensorrt.int8_use_native_calibration_table",
        ),
        (
            "instances: {kind: gpu}\nonnxruntime: {execution_mode: parallel, inter_op_threads: 2}",
            "25.08",
            "onnxruntime.execution_mode",
            "onnxruntime.inter_op_threads",
        ),
    ],
)
def test_what_belongs_to_a_key_without_effect_is_not_told_that_the_key_is_missing(keys, release, parent, child):
    outcome = compiled(keys, top=f'triton: {{release: "{release}"}}')
    first, second = (found for found in outcome.found if found.code == "TG117")
    assert (first.location.path, second.location.path) == (parent, child)
    assert second.message == f"{child} has no effect with {parent} ({parent}), which has none itself"
