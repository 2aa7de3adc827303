"""The keys about what requests may look like: ragged, optional_inputs, response_cache."""

import pytest

MADE = "batch_inputs: [{names: [o], kind: batch_element_count, source: x}]"
FINDINGS = [
    ("ragged: {}", "TG009", "ragged: no input is named"),
    ("ragged: {inputs: []}", "TG011", "ragged.inputs: no input is named"),
    ("ragged: {inputs: x}", "TG010", "ragged.inputs: expected a list of inputs, got the text 'x'"),
    ("ragged: {inputs: [1]}", "TG010", "ragged.inputs: expected the name of an input, got the number 1"),
    ("ragged: {inputs: [x, x]}", "TG011", "'x' is listed twice"),
    ("ragged: {inputs: {x: [0]}}", "TG011", "a dimension is a size of at least 1, or -1 for a size that varies; got 0"),
    ("ragged: {inputs: {x: [a]}}", "TG010", "expected a whole number, got the text 'a'"),
    ("ragged: {inputs: [x], batch_inputs: [{names: [o], kind: offsets, source: x}]}", "TG011", "expected one of batch_element_count"),
    ("ragged: {inputs: [x], batch_inputs: [{names: [o], kind: batch_element_count}]}", "TG009", "'source' is missing"),
    ("ragged: {inputs: [x], batch_inputs: [{names: [o], kind: batch_element_count, source: x, dtype: int64}]}", "TG011", "expected one of int32, fp32"),
    ("ragged: {inputs: [x, o], " + MADE + "}", "TG015", "'o' is among batch_inputs, which no request sends, and among ragged.inputs"),
    ("ragged: {inputs: [x], batch_inputs: [{names: [o, o], kind: batch_element_count, source: x}]}", "TG015", "'o' is named 2 times in batch_inputs"),
    ("ragged: {inputs: [x], batch_outputs: [{names: [y], source: x}, {names: [y], source: x}]}", "TG015", "'y' is named 2 times in batch_outputs"),
    ("ragged: {inputs: [x], batch_size: 3}", "TG008", "there is no key 'batch_size'"),
    ("batching: none, ragged: {inputs: [x]}", "TG015", "batching is off (batching.max: 0)"),
    ("ragged: {inputs: [x]}, optional_inputs: [s]", "TG015", "optional_inputs needs a model without batching, and ragged one with batches"),
    ("optional_inputs: [s, s]", "TG011", "optional_inputs: 's' is listed twice"),
    ("optional_inputs: s", "TG010", "optional_inputs: expected a list"),
    ("response_cache: {enable: true}", "TG010", "response_cache: expected true or false"),
    ("allow_ragged_batch: [x]", "TG008", "there is no key 'allow_ragged_batch'"),
    ("batch_input: []", "TG008", "there is no key 'batch_input'"),
]


@pytest.mark.parametrize(("text", "code", "words"), FINDINGS)
def test_one_finding_for_one_mistake(folder, text, code, words):
    finding = folder.model_finding(text)
    assert finding.code == code
    assert words in finding.message
    assert finding.hint
    assert finding.location.line == 3


def test_names_from_triton_lead_to_the_key(folder):
    assert "batch_inputs" in folder.model_finding("batch_input: []").hint
    assert "ragged: {inputs: [x]}" in folder.model_finding("allow_ragged_batch: true").hint
    assert "optional_inputs" in folder.model_finding("optional: true").hint


def test_the_sources_are_the_inputs_where_none_are_named(folder):
    (model,) = folder.load("version: 1\nmodels:\n  - {name: m, source: m.onnx, ragged: {" + MADE + "}}\n").spec.models
    assert dict(model.ragged.inputs) == {"x": (-1,)}
