"""The load-time rules on graphs and configs beyond the record of NVIDIA's backend (tests/probes.py), from the backend's code."""

from __future__ import annotations

import pytest

from tritongen.rules.ortload import Graph, GraphTensor, Kind, accelerator_problems, complete, is_needed, judge, limits_of, onnxruntime_reads, too_new


def graph(inputs: dict[str, list[int]], outputs: dict[str, list[int]], *, dtype: str = "TYPE_FP32", initializers: dict[str, list[int]] | None = None) -> Graph:
    def tensors(named):
        return {name: GraphTensor(name, dtype, tuple(dims)) for name, dims in named.items()}

    return Graph(tensors(inputs), tensors(outputs), tensors(initializers or {}))


MLP = graph({"x": [-1, 64]}, {"y": [-1, 16]})
WIDE = graph({"x": [-1, -1]}, {"y": [-1, -1]})
TWO_INPUTS = graph({"x": [-1, 64], "b": [64]}, {"y": [-1, 16]})
FIXED = graph({"x": [1, 64]}, {"y": [1, 16]})
SCALAR_OUT = graph({"x": [-1, 64]}, {"y": []})
TWO_OUTPUTS = graph({"x": [-1, 64]}, {"y": [-1, 16], "z": [-1, 16]})


def tensor(name, dims, dtype="TYPE_FP32", **more):
    return {"name": name, "data_type": dtype, "dims": dims, **more}


def config(batch=8, inputs=None, outputs=None, **more):
    return {
        "name": "m",
        "max_batch_size": batch,
        "input": [tensor("x", [64])] if inputs is None else inputs,
        "output": [tensor("y", [16])] if outputs is None else outputs,
        **more,
    }


LOADS = {
    "reshape: the shape counts, not the dims": (MLP, config(inputs=[tensor("x", [8, 8], reshape={"shape": [64]})])),
    "an optional input that the graph has a default for": (
        graph({"x": [-1, 64]}, {"y": [-1, 16]}, initializers={"s": [1]}),
        config(0, [tensor("x", [-1, 64]), tensor("s", [1], optional=True)], [tensor("y", [-1, 16])]),
    ),
    "controls of the sequence batcher count as inputs": (
        graph({"x": [-1, 64], "start": [-1, 1]}, {"y": [-1, 16]}),
        config(sequence_batching={"control_input": [{"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_START", "fp32_false_true": [0, 1]}]}]}),
    ),
    "what batch_output splits may have another shape": (
        graph({"x": [-1]}, {"y": [-1]}),
        config(inputs=[tensor("x", [-1], allow_ragged_batch=True)], outputs=[tensor("y", [3])], batch_output=[{"target_name": ["y"]}]),
    ),
    "a batch_input counts once, however many tensors it makes": (
        graph({"x": [-1, 64], "counts": [-1, 1]}, {"y": [-1, 16]}),
        config(batch_input=[{"target_name": ["counts"], "source_input": ["x"]}]),
    ),
}

START = {"control_input": [{"name": "start", "control": [{"kind": "CONTROL_SEQUENCE_START", "int32_false_true": [0, 1]}]}]}

REFUSED = {
    "a ragged input needs a graph input of one free dimension": (
        MLP,
        config(inputs=[tensor("x", [64], allow_ragged_batch=True)]),
        "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'x', model provides [-1,64]",
    ),
    "controls come before the count": (
        MLP,
        config(sequence_batching=START),
        "configuration specified sequence control 'start', but model does not provide that input",
    ),
    "a control has one element a row": (
        graph({"x": [-1, 64], "start": [-1, 2]}, {"y": [-1, 16]}),
        config(sequence_batching=START),
        "unable to load model 'm', sequence control 'start' in model has dims [2] but dims [1] is expected",
    ),
    "a control has the model's type": (
        graph({"x": [-1, 64], "start": [-1, 1]}, {"y": [-1, 16]}),
        config(sequence_batching=START),
        "unable to load model 'm', sequence control 'start', the model expects data-type FP32 but the model configuration specifies data-type TYPE_INT32",
    ),
    "a default that is required": (
        graph({"x": [-1, 64]}, {"y": [-1, 16]}, initializers={"s": [1]}),
        config(0, [tensor("x", [-1, 64]), tensor("s", [1])], [tensor("y", [-1, 16])]),
        "unable to load model 'm', configuration expects 2 inputs, model provides 1",
    ),
}


@pytest.mark.parametrize("case", LOADS)
def test_loads(case):
    interface, given = LOADS[case]
    assert list(judge(given, interface)) == []


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_backends_reason_first(case):
    interface, given, reason = REFUSED[case]
    assert next(problem for problem in judge(given, interface) if problem.refused).message == reason


def test_every_problem_is_found():
    given = config(inputs=[tensor("x", [63], "TYPE_INT64")], outputs=[tensor("yy", [16]), tensor("y", [-1])])
    assert [problem.kind for problem in judge(given, MLP)] == [Kind.DTYPE, Kind.DIMS, Kind.UNKNOWN_OUTPUT, Kind.DIMS]


def test_a_name_given_twice_hides_a_missing_one_until_a_request_comes():
    two = graph({"x": [-1, 64], "b": [-1, 64]}, {"y": [-1, 16]})
    (problem,) = judge(config(inputs=[tensor("x", [64])] * 2), two)
    assert (problem.kind, problem.name, problem.refused) == (Kind.MISSING_INPUT, "b", False)


def test_a_state_that_the_graph_lacks_fails_requests():
    recurrent = graph({"x": [-1, 64], "h": [-1, 8]}, {"y": [-1, 16]})
    problems = list(judge(config(sequence_batching={"state": [{"input_name": "h", "output_name": "h_out"}]}), recurrent))
    assert [(problem.kind, problem.name, problem.refused) for problem in problems] == [(Kind.STATE_NAME, "h_out", False)]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("trt_fp16_enable", "1", "unknown parameter 'trt_fp16_enable' is provided for TensorRT Execution Accelerator"),
        ("precision_mode", "fp16", "unsupported precision mode 'fp16' is requested"),
        ("trt_engine_cache_enable", "yes", "failed to convert 'yes' to boolean"),
        ("max_workspace_size_bytes", "lots", "failed to convert 'lots' to unsigned long long integral number"),
        ("trt_min_subgraph_size", "few", "failed to convert 'few' to integral number"),
        ("trt_engine_cache_enable", "ON", None),
        ("max_workspace_size_bytes", "1073741824", None),
    ],
)
def test_parameters_of_the_tensorrt_accelerator(key, value, message):
    accelerators = {"gpu_execution_accelerator": [{"name": "tensorrt", "parameters": {key: value}}]}
    given = config(optimization={"execution_accelerators": accelerators})
    assert [problem.message for problem in accelerator_problems(given, gpu=True)] == ([message] if message else [])
    assert list(accelerator_problems(given, gpu=False)) == [], "a CPU instance does not read the list"


def test_what_onnxruntime_reads_is_less_than_what_the_backend_takes():
    assert [text for text in ("1", "0", "true", "False", "on", "TRUE") if onnxruntime_reads("switch", text)] == ["1", "0", "true", "False"]
    assert [text for text in ("5", "-1", "5x", "+5", " 5") if onnxruntime_reads("number", text)] == ["5", "-1"]


def test_limits_of_onnxruntime_1_19():
    limits = limits_of("1.19.2")
    assert list(too_new({"": 21}, 10, limits)) == []
    assert next(too_new({"": 22}, 11, limits)).message == "Unsupported model IR version: 11, max supported IR version: 10"
    assert [(problem.found, problem.expected) for problem in too_new({"": 22, "ai.onnx.ml": 6}, 10, limits)] == [("22", "21"), ("6", "5")]
    assert limits_of("1.99") is None


def empty(batch=0, **more):
    return {"name": "m", "max_batch_size": batch, "input": [], "output": [], **more}


def test_completion_of_a_batching_model():
    """c24_nocfg, c05e_no_io_mbs0: batch size 4 and dynamic batching appear."""
    given = empty()
    assert is_needed(given)
    assert complete(given, MLP, 4) is None
    assert given == {**empty(4), "input": [tensor("x", [64])], "output": [tensor("y", [16])], "dynamic_batching": {}}


def test_completion_keeps_a_batch_size_and_a_scheduler():
    given = empty(8, sequence_batching={})
    assert complete(given, MLP, 4) is None
    assert given["max_batch_size"] == 8
    assert "dynamic_batching" not in given


def test_completion_of_a_model_that_cannot_batch():
    """c23d_fixed_nocfg, c28d_scalar_nocfg: full dims, and [1] for a scalar."""
    fixed, scalar = empty(), empty()
    complete(fixed, FIXED, 4)
    complete(scalar, SCALAR_OUT, 4)
    assert (fixed["max_batch_size"], fixed["input"][0]["dims"]) == (0, [1, 64])
    assert (scalar["max_batch_size"], scalar["output"][0]) == (0, tensor("y", [1]))


def test_completion_of_what_has_only_a_batch_dimension():
    given = empty()
    complete(given, graph({"x": [-1]}, {"y": [-1]}), 4)
    assert given["input"] == [tensor("x", [1], reshape={"shape": []})]


def test_completion_refuses_a_batch_size_that_the_graph_cannot_have():
    problem = complete(empty(8), FIXED, 4)
    assert problem.message == "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"


def test_completion_fills_in_only_what_is_missing():
    """c05a_no_input: the outputs stay as written."""
    given = {**empty(8), "output": [tensor("y", [16], label_filename="labels.txt")]}
    assert is_needed(given)
    complete(given, MLP, 4)
    assert given["input"] == [tensor("x", [64])]
    assert given["output"] == [tensor("y", [16], label_filename="labels.txt")]
    assert not is_needed(given)
