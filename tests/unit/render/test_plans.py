"""`tensorrt:` → the config of a plan."""

import pytest

from tests.unit.render.compiling import FP32, compiled, signature
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
