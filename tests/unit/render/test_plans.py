"""`tensorrt:` → the config of a plan."""

import pytest

from tests.unit.render.compiling import FP32, compiled, signature
from tritongen.diagnostics import Severity
from tritongen.signature import Signature, TensorSpec

SHAPES = "shapes: {x: {min: [16], opt: [128], max: [512]}}"
TEXT = signature(("N", "S"))


def graphs(config):
    return [(spec.batch_size, {name: list(shape.dim) for name, shape in spec.input.items()}) for spec in config.optimization.cuda.graph_spec]


def bounds(config):
    return [
        (spec.graph_lower_bound.batch_size, {name: list(shape.dim) for name, shape in spec.graph_lower_bound.input.items()})
        for spec in config.optimization.cuda.graph_spec
    ]


def test_there_is_a_graph_for_each_size_that_is_warmed_up():
    outcome = compiled(f"backend: tensorrt\nbatching: {{max: 8, preferred: [4, 8]}}\n{SHAPES}\ntensorrt: {{cuda_graphs: true}}", TEXT)
    assert outcome.codes == []
    assert outcome.config.optimization.cuda.graphs
    assert graphs(outcome.config) == [(size, {"x": [128]}) for size in (1, 4, 8)]
    assert [sample.batch_size for sample in outcome.config.model_warmup] == [1, 4, 8]
    assert not any(spec.HasField("graph_lower_bound") for spec in outcome.config.optimization.cuda.graph_spec)


def test_with_lower_bounds_every_smaller_size_has_a_graph():
    config = compiled(f"backend: tensorrt\nbatching: {{max: 8, preferred: [4, 8]}}\n{SHAPES}\ntensorrt: {{cuda_graphs: {{lower_bounds: true}}}}", TEXT).config
    assert bounds(config) == [(1, {"x": [16]}), (2, {"x": [16]}), (5, {"x": [16]})]


SHORT, LONG = ("{shapes: {x: {min: [1], opt: [8], max: [16]}}}", "{shapes: {x: {min: [17], opt: [24], max: [32]}}}")


def test_each_profile_of_other_sizes_has_graphs_of_its_own():
    keys = f"backend: tensorrt\nbatching: {{max: 4, preferred: [4]}}\ntensorrt: {{cuda_graphs: {{lower_bounds: true}}, profiles: [{SHORT}, {LONG}]}}"
    config = compiled(keys, TEXT).config
    assert graphs(config) == [(size, {"x": [length]}) for length in (8, 24) for size in (1, 4)]
    assert bounds(config) == [(size, {"x": [length]}) for length in (1, 17) for size in (1, 2)]


def test_profiles_that_no_copy_uses_have_no_graphs():
    keys = "backend: tensorrt\nbatching: {max: 4, preferred: [4]}\nshapes: {x: {min: [1], opt: [8], max: [16]}}\ninstances: {kind: gpu, profiles: [0]}"
    config = compiled(f"{keys}\ntensorrt: {{cuda_graphs: true, profiles: [{SHORT}, {LONG}]}}", TEXT).config
    assert graphs(config) == [(1, {"x": [8]}), (4, {"x": [8]})]


def test_a_plan_without_batching_has_one_graph_of_batch_size_0():
    shapes = "shapes: {x: {min: [1, 16], opt: [1, 128], max: [1, 512]}}"
    config = compiled(f"backend: tensorrt\nbatching: none\n{shapes}\ntensorrt: {{cuda_graphs: {{lower_bounds: true}}}}", TEXT).config
    assert graphs(config) == [(0, {"x": [1, 128]})]
    assert bounds(config) == [(0, {"x": [1, 16]})]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("batching: {max: 1}\nshapes: {x: [128]}", True),
        ("batching: {max: 2}\nshapes: {x: [128]}", True),
        ("batching: {max: 1}\nshapes: {x: {min: [1], opt: [128], max: [128]}}", False),
        ("batching: {max: 8, preferred: none}\nshapes: {x: [128]}", False),
        ("batching: none\nshapes: {x: [1, 128]}", True),
    ],
)
def test_bounds_are_of_use_where_a_size_lies_between_two_graphs(keys, said):
    outcome = compiled(f"backend: tensorrt\ntensorrt: {{cuda_graphs: {{lower_bounds: true}}}}\n{keys}", TEXT)
    assert [str(found.location) for found in outcome.found] == (["tensorrt.cuda_graphs.lower_bounds"] if said else [])


def test_an_input_that_is_only_the_batch_has_no_dims():
    model = Signature((TensorSpec("x", FP32, ("N", 8)), TensorSpec("t", FP32, ("N",))), (TensorSpec("y", FP32, ("N", 8)),))
    config = compiled("backend: tensorrt\nbatching: {max: 1}\ntensorrt: {cuda_graphs: true}", model).config
    assert graphs(config) == [(1, {"x": [8], "t": []})]


def test_unknown_sizes_are_one_error_with_graphs_too():
    assert compiled("backend: tensorrt\nwarmup: none\ntensorrt: {cuda_graphs: true}", TEXT).codes == ["TG108"]


@pytest.mark.parametrize(
    ("setting", "field", "value"),
    [("busy_wait_events: true", "busy_wait_events", True), ("output_copy_stream: true", "output_copy_stream", True), ("cuda_graphs: true", "graphs", True)],
)
def test_switches_of_cuda(setting, field, value):
    assert getattr(compiled(f"backend: tensorrt\ntensorrt: {{{setting}}}").config.optimization.cuda, field) is value


def test_streams_and_contexts():
    config = compiled("backend: tensorrt\ntensorrt: {stream_priority: max, execution_context_allocation_strategy: on_profile_change}").config
    assert config.optimization.priority == config.optimization.PRIORITY_MAX
    assert config.parameters["execution_context_allocation_strategy"].string_value == "ON_PROFILE_CHANGE"
    assert compiled("backend: tensorrt\ntensorrt: {stream_priority: min}").config.optimization.priority == config.optimization.PRIORITY_MIN


@pytest.mark.parametrize("keys", ["", "tensorrt: {cuda_graphs: false, busy_wait_events: false}"])
def test_nothing_is_written_where_nothing_is_asked(keys):
    assert not compiled(f"backend: tensorrt\n{keys}").config.HasField("optimization")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("batching: {max: 8, preferred: none}\ntensorrt: {cuda_graphs: true}", "batches of 2 to 7 are formed, too"),
        ("batching: {max: 3, preferred: none}\ntensorrt: {cuda_graphs: true}", "batches of 2 are formed, too"),
        ("batching: {max: 8}\ntensorrt: {cuda_graphs: true}", ""),
        ("batching: {max: 2, preferred: none}\ntensorrt: {cuda_graphs: true}", ""),
        ("batching: {max: 8, preferred: none}\ntensorrt: {cuda_graphs: {lower_bounds: true}}", ""),
        ("batching: {max: 8, preferred: none}", ""),
    ],
)
def test_batches_without_a_graph_are_said(keys, words):
    outcome = compiled(f"backend: tensorrt\n{keys}")
    assert outcome.codes == (["TG183"] if words else [])
    if words:
        assert words in outcome.only("TG183").message
        assert [spec.batch_size for spec in outcome.config.optimization.cuda.graph_spec] == [1, outcome.config.max_batch_size]


@pytest.mark.parametrize(
    ("release", "capabilities", "words"),
    [
        ("25.08", '["7.0", "8.6"]', "which knows GPUs of compute capability from 7.5 on, and not 7.0"),
        ("24.09", '["7.0"]', ""),
        ("24.04", '["5.2"]', "which knows GPUs of compute capability from 6.0 on, and not 5.2"),
        ("24.10", '["7.5", "12.0"]', "which knows GPUs of compute capability below 10.0, and not 12.0"),
        ("25.01", '["7.5", "12.0"]', ""),
        ("25.07", '["7.5", "10.0"]', ""),
        ("99.01", '["5.2"]', ""),
    ],
)
def test_gpus_that_the_release_does_not_know_are_refused(release, capabilities, words):
    keys = f"backend: tensorrt\ntensorrt: {{build: {{compute_capabilities: {capabilities}}}}}"
    outcome = compiled(keys, top=f'triton: {{release: "{release}"}}')
    assert ("TG127" in outcome.codes) == bool(words)
    if words:
        found = outcome.only("TG127")
        assert (found.severity, words in found.message) == (Severity.ERROR, True)


@pytest.mark.parametrize(("release", "known"), [("24.04", False), ("25.02", False), ("25.03", True), ("25.07", True), ("27.01", True)])
def test_hardware_compatibility_is_one_that_the_release_has(release, known):
    keys = "backend: tensorrt\ntensorrt: {build: {hardware_compatibility: same_compute_capability}}"
    found = [each for each in compiled(keys, top=f'triton: {{release: "{release}"}}').found if each.code == "TG127"]
    assert [(str(each.location), each.severity) for each in found] == ([] if known else [("tensorrt.build.hardware_compatibility", Severity.ERROR)])


def test_hardware_compatibility_is_for_gpus_that_have_it():
    build = '{build: {compute_capabilities: ["7.5", "8.6"], hardware_compatibility: ampere_plus}}'
    found = compiled(f"backend: tensorrt\ntensorrt: {build}").only("TG127")
    assert found.location.path == "tensorrt.build.compute_capabilities.0"
    assert "is for compute capabilities from 8.0 on, and not 7.5" in found.message


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("backend: tensorrt\nprecision: fp16\ninstances: [{kind: gpu, dla: 99}]", "instances.0.dla"),
        ("accelerator: tensorrt\nprecision: fp16\nonnxruntime: {tensorrt: {dla_core: 2}}", "onnxruntime.tensorrt.dla_core"),
    ],
)
def test_an_accelerator_that_no_device_has(keys, place):
    found = compiled(keys).only("TG127")
    assert (found.severity, found.location.path) == (Severity.WARNING, place)
    assert "TG127" not in compiled(keys.replace("99", "1").replace("core: 2", "core: 0")).codes


def test_a_profile_that_is_there_already_is_said():
    found = compiled("backend: tensorrt\nbatching: {max: 8}\ntensorrt: {profiles: [{batch: 4}, {batch: 8}, {batch: 4}]}").only("TG128")
    assert (found.location.path, found.message) == ("tensorrt.profiles.2", "profile 2 is the same as profile 0")


class TestEnginesOfSeveralVersions:
    KEYS = "accelerator: tensorrt\nversions: {policy: all}"

    def parameters(self, outcome):
        return outcome.config.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters

    def test_they_have_no_cache(self):
        outcome = compiled(self.KEYS, versions=(1, 2))
        assert "trt_engine_cache_enable" not in self.parameters(outcome)
        found = outcome.only("TG129")
        assert (found.severity, found.location.path) == (Severity.WARNING, "versions")
        assert found.message.startswith("there is no engine cache: versions 1, 2 are served")

    def test_whoever_asked_for_one_is_told(self):
        outcome = compiled(f"{self.KEYS}\nonnxruntime: {{tensorrt: {{engine_cache: true}}}}", versions=(1, 2))
        assert outcome.only("TG117").message.startswith("engine_cache has no effect: versions 1, 2 are served")

    @pytest.mark.parametrize("keys", ["accelerator: tensorrt", f"{KEYS}\nonnxruntime: {{tensorrt: {{engine_cache: false}}}}"])
    def test_nothing_is_said_where_one_is_served_or_none_is_kept(self, keys):
        assert not {"TG129", "TG117"} & {*compiled(keys, versions=(1, 2)).codes}
