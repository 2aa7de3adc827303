"""The backend's load-time judgement against the verdicts that NVIDIA's C++ backend (24.10) gave on the same configs, recorded by running it."""

from __future__ import annotations

import pytest

from tritongen.server.backends.onnxruntime import checks, complete
from tritongen.server.backends.onnxruntime.errors import RefusedError
from tritongen.server.backends.onnxruntime.graph import Graph, GraphTensor


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
    "c00_control": (MLP, config()),
    "c01g_fix_dyn_ok: an input may be narrower than the graph": (WIDE, config(outputs=[tensor("y", [-1])])),
    "c04b_mbs0_ok": (MLP, config(0, [tensor("x", [-1, 64])], [tensor("y", [-1, 16])])),
    "c04e_mbs0_fixN": (MLP, config(0, [tensor("x", [4, 64])], [tensor("y", [-1, 16])])),
    "c05c_no_output": (MLP, config(outputs=[])),
    "c22b_dup_out": (MLP, config(outputs=[tensor("y", [16]), tensor("y", [16])])),
    "c23c_fixed_mbs0": (FIXED, config(0, [tensor("x", [1, 64])], [tensor("y", [1, 16])])),
    "c26b_twonb_mbs0": (TWO_INPUTS, config(0, [tensor("x", [-1, 64]), tensor("b", [64])], [tensor("y", [-1, 16])])),
    "c28a_scalar_mbs8": (SCALAR_OUT, config(outputs=[tensor("y", [1])])),
    "c30a_out2_omit": (TWO_OUTPUTS, config()),
    "reshape: the shape counts, not the dims": (MLP, config(inputs=[tensor("x", [8, 8], reshape={"shape": [64]})])),
    "an optional input that the graph has a default for": (
        graph({"x": [-1, 64]}, {"y": [-1, 16]}, initializers={"s": [1]}),
        config(0, [tensor("x", [-1, 64]), tensor("s", [1], optional=True)], [tensor("y", [-1, 16])]),
    ),
    "controls of the sequence batcher count as inputs": (
        graph({"x": [-1, 64], "start": [-1, 1]}, {"y": [-1, 16]}),
        config(sequence_batching={"control_input": [{"name": "start", "control": []}]}),
    ),
}

CONFIGURED = "but the model configuration specifies"
BATCHED = "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape {})"
FIRST = "for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is {}"

REFUSED = {
    "c01c_in_rank": (
        MLP,
        config(inputs=[tensor("x", [64, 1])]),
        f"model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,64]) {CONFIGURED} 3 dimensions {BATCHED.format('[-1,64,1]')}",
    ),
    "c01d_in_wild": (
        MLP,
        config(inputs=[tensor("x", [-1])]),
        f"model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,64]) {CONFIGURED} 2 dimensions {BATCHED.format('[-1,-1]')}",
    ),
    "c01e_out_wild": (
        MLP,
        config(outputs=[tensor("y", [-1])]),
        f"model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,16]) {CONFIGURED} 2 dimensions {BATCHED.format('[-1,-1]')}",
    ),
    "c01f_fix_dyn": (
        WIDE,
        config(outputs=[tensor("y", [64])]),
        f"model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,-1]) {CONFIGURED} 2 dimensions {BATCHED.format('[-1,64]')}",
    ),
    "c02a_in_dtype": (
        MLP,
        config(inputs=[tensor("x", [64], "TYPE_INT64")]),
        "unable to load model 'm', configuration expects datatype TYPE_INT64 for input 'x', model provides TYPE_FP32",
    ),
    "c04a_mbs0_nobatch": (
        MLP,
        config(0),
        "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,64]) but the model configuration specifies 1 dimensions (shape [64])",
    ),
    "c05a_no_input": (MLP, config(inputs=[]), "unable to load model 'm', configuration expects 0 inputs, model provides 1"),
    "c05b_one_of_two": (TWO_INPUTS, config(), "unable to load model 'm', configuration expects 1 inputs, model provides 2"),
    "c06b_extra_output": (MLP, config(outputs=[tensor("y", [16]), tensor("q", [16])]), "unexpected inference output 'q', allowed outputs are: y"),
    "c06c_extra_opt": (
        MLP,
        config(inputs=[tensor("x", [64]), tensor("q", [64], optional=True)]),
        "unable to load model 'm', optional input 'q' is not supported for models that support batching",
    ),
    "c19_out_typo": (MLP, config(outputs=[tensor("yy", [16])]), "unexpected inference output 'yy', allowed outputs are: y"),
    "c19b_in_typo": (MLP, config(inputs=[tensor("xx", [64])]), "unexpected inference input 'xx', allowed inputs are: x"),
    "c19c_case": (MLP, config(inputs=[tensor("X", [64])]), "unexpected inference input 'X', allowed inputs are: x"),
    "c22a_dup_in": (MLP, config(inputs=[tensor("x", [64])] * 2), "unable to load model 'm', configuration expects 2 inputs, model provides 1"),
    "c23a_fixed_mbs8": (FIXED, config(), f"model 'm', tensor 'x': {FIRST.format('[1,64]')}"),
    "c23b_fixed_mbs1": (FIXED, config(1), f"model 'm', tensor 'x': {FIRST.format('[1,64]')}"),
    "c26a_twonb_mbs8": (TWO_INPUTS, config(inputs=[tensor("x", [64]), tensor("b", [64])]), f"model 'm', tensor 'b': {FIRST.format('[64]')}"),
    "c27a_fp16_as32": (
        graph({"x": [-1, 64]}, {"y": [-1, 16]}, dtype="TYPE_FP16"),
        config(),
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model provides TYPE_FP16",
    ),
    "c28e_scalar_mbs0_2": (
        SCALAR_OUT,
        config(0, [tensor("x", [-1, 64])], [tensor("y", [2])]),
        "unable to load model 'm', scalar tensor 'y', should only provide 1 in the model configuration. Model configuration provided: [2].",
    ),
    "c29c_string_uint8": (
        graph({"x": [-1, 64]}, {"y": [-1, 16]}, dtype="TYPE_STRING"),
        config(inputs=[tensor("x", [64], "TYPE_UINT8")]),
        "unable to load model 'm', configuration expects datatype TYPE_UINT8 for input 'x', model provides TYPE_BYTES",
    ),
    "a ragged input needs a graph input of one free dimension": (
        MLP,
        config(inputs=[tensor("x", [64], allow_ragged_batch=True)]),
        "unable to load model 'm', configuration expects model provides input 'x' with shape [-1] for ragged input, model provides [-1,64]",
    ),
}


@pytest.mark.parametrize("case", LOADS)
def test_loads(case):
    interface, given = LOADS[case]
    checks.check(given, interface)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_same_reason(case):
    interface, given, reason = REFUSED[case]
    with pytest.raises(RefusedError) as caught:
        checks.check(given, interface)
    assert str(caught.value) == reason


def empty(batch=0, **more):
    return {"name": "m", "max_batch_size": batch, "input": [], "output": [], **more}


def test_completion_of_a_batching_model():
    """c24_nocfg, c05e_no_io_mbs0: batch size 4 and dynamic batching appear."""
    given = empty()
    assert complete.is_needed(given)
    assert "autofilled max_batch_size to 4" in complete.complete(given, MLP, 4)
    assert given == {**empty(4), "input": [tensor("x", [64])], "output": [tensor("y", [16])], "dynamic_batching": {}}


def test_completion_keeps_a_batch_size_and_a_scheduler():
    given = empty(8, sequence_batching={})
    assert complete.complete(given, MLP, 4) == ""
    assert given["max_batch_size"] == 8
    assert "dynamic_batching" not in given


def test_completion_of_a_model_that_cannot_batch():
    """c23d_fixed_nocfg, c28d_scalar_nocfg: full dims, and [1] for a scalar."""
    fixed, scalar = empty(), empty()
    complete.complete(fixed, FIXED, 4)
    complete.complete(scalar, SCALAR_OUT, 4)
    assert (fixed["max_batch_size"], fixed["input"][0]["dims"]) == (0, [1, 64])
    assert (scalar["max_batch_size"], scalar["output"][0]) == (0, tensor("y", [1]))


def test_completion_of_what_has_only_a_batch_dimension():
    given = empty()
    complete.complete(given, graph({"x": [-1]}, {"y": [-1]}), 4)
    assert given["input"] == [tensor("x", [1], reshape={"shape": []})]


def test_completion_refuses_a_batch_size_that_the_graph_cannot_have():
    with pytest.raises(RefusedError, match="model does not support batching while non-zero max_batch_size 8"):
        complete.complete(empty(8), FIXED, 4)


def test_completion_fills_in_only_what_is_missing():
    """c05a_no_input: the outputs stay as written."""
    given = {**empty(8), "output": [tensor("y", [16], label_filename="labels.txt")]}
    assert complete.is_needed(given)
    complete.complete(given, MLP, 4)
    assert given["input"] == [tensor("x", [64])]
    assert given["output"] == [tensor("y", [16], label_filename="labels.txt")]
    assert not complete.is_needed(given)
