"""Ragged inputs, optional inputs and the response cache: from the spec's keys to the config."""

from __future__ import annotations

import pytest

from tests.unit.render.compiling import compiled
from tritongen import dtypes
from tritongen.diagnostics import Severity
from tritongen.signature import Signature, TensorSpec

SHAPED = "shapes: {x: [3]}\n"
OFFSETS = "{names: [offsets], kind: batch_accumulated_element_count_with_zero, source: x}"
KEYS = f"ragged: {{inputs: [x], batch_inputs: [{OFFSETS}], batch_outputs: [{{names: [z], source: x}}]}}\n"


def tensor(name, shape, dtype="FP32"):
    return TensorSpec(name, dtypes.from_wire(dtype), shape)


def graph(*, x=("T",), offsets=("M",), y=("N", 1), z=("T",), dtype="INT32", more=()):
    return Signature((tensor("x", x), tensor("offsets", offsets, dtype), *more), (tensor("y", y), tensor("z", z)))


def test_a_ragged_model_is_described_by_one_request_and_by_what_the_backend_makes():
    outcome = compiled(SHAPED + KEYS, graph())
    assert outcome.codes == []
    config = outcome.config
    (x,) = config.input
    assert (x.name, list(x.dims), x.allow_ragged_batch, x.HasField("reshape")) == ("x", [-1], True, False)
    assert [(output.name, list(output.dims)) for output in config.output] == [("y", [1]), ("z", [-1])]
    (made,) = config.batch_input
    assert (list(made.target_name), made.kind, made.data_type, list(made.source_input)) == (["offsets"], 2, 8, ["x"])
    (cut,) = config.batch_output
    assert (list(cut.target_name), cut.kind, list(cut.source_input)) == (["z"], 0, ["x"])
    assert config.max_batch_size == 8
    assert [(sample.batch_size, list(sample.inputs)) for sample in config.model_warmup] == [(1, ["x"]), (8, ["x"])]


def test_each_name_has_an_entry_of_its_own():
    """NVIDIA's backend counts entries, and gives all outputs of one the shape of the first."""
    keys = "ragged: {inputs: [x], batch_inputs: [{names: [offsets, more], kind: batch_element_count, source: x}], batch_outputs: [{names: [y, z], source: x}]}"
    config = compiled(SHAPED + keys, graph(y=("T",), more=(tensor("more", ("M",), "FP32"),))).config
    assert [(list(entry.target_name), entry.data_type) for entry in config.batch_input] == [(["offsets"], 8), (["more"], 11)]
    assert [list(entry.target_name) for entry in config.batch_output] == [["y"], ["z"]]


def test_a_request_may_have_several_dimensions_and_a_cut_output_follows_them():
    keys = "shapes: {x: [3, 4]}\nragged: {inputs: {x: [-1, 4]}, batch_inputs: [{names: [offsets], kind: batch_item_shape, source: x, dtype: int32}],"
    config = compiled(keys + " batch_outputs: [{names: [z], source: x}]}", graph(offsets=("M", 2), z=("T", 5))).config
    assert list(config.input[0].dims) == [-1, 4]
    assert list(config.output[1].dims) == [-1, 4, 5]


def test_other_inputs_keep_their_rows():
    config = compiled(SHAPED + KEYS, graph(more=(tensor("id", ("N", 2), "INT64"),))).config
    assert [(found.name, list(found.dims), found.allow_ragged_batch) for found in config.input] == [("x", [-1], True), ("id", [2], False)]


@pytest.mark.parametrize(
    ("changes", "code", "place", "said"),
    [
        ({"x": ("N", "T")}, "TG400", "ragged.inputs.x", "a single variable dimension in the graph, and the model has x FP32 [N, T]"),
        ({"x": (7,)}, "TG400", "ragged.inputs.x", "x FP32 [7]"),
        ({"dtype": "INT64"}, "TG401", "ragged.batch_inputs.0.names.0", "offsets INT64 [M]; Triton makes INT32 or FP32"),
        ({"offsets": ("M", 2)}, "TG401", "ragged.batch_inputs.0.names.0", "has the shape [-1], and the model has offsets INT32 [M, 2]"),
        ({"offsets": (3,)}, "TG401", "ragged.batch_inputs.0.names.0", "offsets INT32 [3]"),
        ({"y": (1,)}, "TG402", "ragged", "the model cannot batch: output 'y' has the fixed first dimension 1"),
        ({"z": ("T", "K")}, "TG404", "ragged.batch_outputs.0.names.0", "z FP32 [T, K]"),
        ({"z": ()}, "TG404", "ragged.batch_outputs.0.names.0", "z FP32 []"),
    ],
)
def test_what_does_not_fit_the_graph_is_refused_at_its_key(changes, code, place, said):
    found = compiled(SHAPED + KEYS, graph(**changes)).only(code)
    assert found.severity is Severity.ERROR
    assert (str(found.location), said in found.message, bool(found.hint), bool(found.consequence)) == (place, True, True, True), found.message


def test_texts_cannot_be_cut():
    signature = Signature((tensor("x", ("T",)), tensor("offsets", ("M",), "INT32")), (tensor("z", ("T",), "BYTES"),))
    assert "holds texts" in compiled(SHAPED + KEYS, signature).only("TG404").message


def test_a_stated_type_is_checked_against_the_graph():
    keys = KEYS.replace("source: x}]", "source: x, dtype: fp32}]", 1)
    found = compiled(SHAPED + keys, graph()).only("TG401")
    assert "dtype: fp32 is stated" in found.message
    assert found.hint == "write dtype: int32"


def test_every_unknown_name_is_said_where_it_stands():
    made, cut = "{names: [ofsets], kind: batch_element_count, source: x}", "{names: [q], source: nowhere}"
    keys = f"ragged: {{inputs: [x, w], batch_inputs: [{made}], batch_outputs: [{cut}]}}"
    outcome = compiled(SHAPED + keys, graph())
    places = [str(found.location) for found in outcome.found if found.code == "TG103"]
    assert places == ["ragged.inputs.w", "ragged.batch_inputs.0.names.0", "ragged.batch_outputs.0.names.0", "ragged.batch_outputs.0.source"]


def test_a_batch_input_is_no_source():
    keys = "ragged: {inputs: [x], batch_inputs: [{names: [offsets], kind: batch_element_count, source: offsets}]}"
    assert "the model has no input that requests send: 'offsets'" in compiled(SHAPED + keys, graph()).only("TG103").message


@pytest.mark.parametrize("key", ["backend", "accelerator"])
def test_tensorrt_is_refused_by_the_key_that_asks_for_it(key):
    found = compiled(SHAPED + KEYS + f"{key}: tensorrt", graph()).only("TG403")
    assert f"{key}: tensorrt" in found.message


def test_a_graph_that_cannot_know_where_requests_end_is_warned_of():
    signature = Signature((tensor("x", ("T",)),), (tensor("y", ("N", 1)),))
    found = compiled(SHAPED + "ragged: {inputs: [x]}", signature).only("TG405")
    assert found.severity is Severity.WARNING
    elementwise = Signature((tensor("x", ("T",)),), (tensor("y", ("T",)),))
    assert compiled(SHAPED + "ragged: {inputs: [x], batch_outputs: [{names: [y], source: x}]}", elementwise).codes == []


def with_default(shape=(1,)):
    return Signature((tensor("x", ("N", 8)),), (tensor("y", ("N", 8)),), optional_inputs=(tensor("s", shape),))


def test_an_optional_input_is_declared_and_turns_batching_off():
    outcome = compiled("optional_inputs: [s]\nshapes: {x: [4, 8]}", with_default())
    assert outcome.codes == []
    assert outcome.config.max_batch_size == 0
    assert [(found.name, list(found.dims), found.optional) for found in outcome.config.input] == [("x", [-1, 8], False), ("s", [1], True)]
    assert [list(sample.inputs) for sample in outcome.config.model_warmup] == [["x"]]
    assert any("optional inputs ('s')" in remark for remark in outcome.remarks)


def test_a_scalar_default_has_dims_of_one():
    assert list(compiled("optional_inputs: [s]", with_default(())).config.input[1].dims) == [1]


def test_defaults_are_not_served_unless_named():
    assert [found.name for found in compiled("", with_default()).config.input] == ["x"]


def test_optional_and_batches_contradict_each_other_unless_the_batches_are_everybodys():
    keys = "batching: {max: 4}\noptional_inputs: [s]"
    found = compiled(keys, with_default()).only("TG407")
    assert "batching, at batching, asks for batches" in found.message
    assert compiled(keys, with_default(), inherited=("batching",)).config.max_batch_size == 0


@pytest.mark.parametrize(("name", "said"), [("x", "input 'x' has no default value in the model file"), ("nowhere", "no input 'nowhere' with a default value")])
def test_an_input_without_a_default_cannot_be_optional(name, said):
    found = compiled(f"optional_inputs: [{name}]", with_default()).only("TG406")
    assert said in found.message
    assert "'s'" in found.hint


def test_a_plan_has_no_optional_inputs():
    assert "TensorRT plan" in compiled("optional_inputs: [s]\nbackend: tensorrt\nshapes: {x: [4, 8]}", with_default()).only("TG406").message


def test_the_response_cache_is_enabled_and_needs_a_server_with_one():
    outcome = compiled("response_cache: true")
    assert outcome.config.response_cache.enable
    assert outcome.only("TG409").severity is Severity.ADVICE
    assert not compiled("").config.HasField("response_cache")


@pytest.mark.parametrize(
    ("overlay", "name"),
    [("sequence_batching: {max_sequence_idle_microseconds: 60000000}", "sequence_batching"), ("model_transaction_policy: {decoupled: true}", "decoupled")],
)
def test_what_depends_on_more_than_the_request_is_not_cached(overlay, name):
    keys = f"response_cache: true\nconfig: {{{overlay}}}"
    found = compiled(keys).only("TG408")
    assert name in found.message
    assert "at config." in found.message
    outcome = compiled(keys, inherited=("response_cache",))
    assert outcome.only("TG117").severity is Severity.ADVICE
    assert not outcome.config.response_cache.enable
