"""TG400 to TG409: ragged inputs, optional inputs and the response cache of a spec."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_REFUSED, _FAILS, _MISBEHAVES, _FRAGILE = Consequence.REFUSED, Consequence.FAILS, Consequence.MISBEHAVES, Consequence.FRAGILE
_RAGGED = "ragged: {inputs: [x], batch_inputs: [{names: [offsets], kind: batch_accumulated_element_count_with_zero, source: x}]}"

ENTRIES = (
    CodeEntry(
        "TG400",
        "ragged-input-with-axes",
        _REFUSED,
        "A ragged input is a single variable dimension in the graph.",
        "The requests' elements are strung together, and NVIDIA's backend refuses any other shape (onnxruntime_backend/src/onnxruntime.cc, ValidateInputs). "
        "A graph with a batch axis is not made ragged by a setting.",
        "Export the model for items that are strung together; or pad on the client's side, and remove the input from `ragged`.",
    ),
    CodeEntry(
        "TG401",
        "batch-input-that-does-not-fit",
        _FAILS,
        "An input that the backend makes has the type and the shape that its kind gives.",
        "Triton makes INT32 or FP32, in one dimension, or in two for batch_item_shape; it does not compare them with the graph when it loads the model.",
        "Take the kind that the graph was written for, or export the graph with INT32 and a variable dimension there.",
    ),
    CodeEntry(
        "TG402",
        "ragged-without-batches",
        _MISBEHAVES,
        "A model with ragged inputs can batch.",
        "Ragged inputs are there to put requests of different lengths into one batch. Everything else of the model needs a batch axis for it.",
        "Name what the backend makes in `batch_inputs` and what is cut in `batch_outputs`; export the rest with a variable first axis.",
    ),
    CodeEntry(
        "TG403",
        "ragged-with-tensorrt",
        None,
        "Ragged inputs are not given to TensorRT.",
        "A TensorRT profile would have to bound the sum of lengths over all requests of a batch; tritongen derives none.",
        "Remove the accelerator or the backend, or `ragged`.",
        "accelerator: tensorrt\nragged: {inputs: [x]}",
        _RAGGED,
    ),
    CodeEntry(
        "TG404",
        "output-that-cannot-be-cut",
        _MISBEHAVES,
        "An output of `batch_outputs` is as long as all requests' elements together, and holds no texts.",
        "NVIDIA's backend cuts the output's memory by the lengths of the requests and compares nothing (backend/src/backend_output_responder.cc, "
        "ProcessBatchOutput).",
        "Remove the output from `batch_outputs`, or export it with one value (or row) for each element.",
    ),
    CodeEntry(
        "TG405",
        "ragged-without-ends",
        _MISBEHAVES,
        "Something tells the graph where one request ends and the next begins.",
        "Where all inputs are ragged and the backend makes none, the graph sees one long request.",
        "Name the graph's input for offsets or lengths in `batch_inputs`, or outputs with a value for each element in `batch_outputs`.",
        "ragged: {inputs: [x]}",
        _RAGGED,
    ),
    CodeEntry(
        "TG406",
        "optional-input-without-default",
        _REFUSED,
        "An optional input has a default value in the model file.",
        "NVIDIA's backend takes as optional only graph inputs that have an initializer (onnxruntime_backend/src/onnxruntime.cc, ValidateInputs).",
        "Name inputs that have one, or give it one in the ONNX file.",
    ),
    CodeEntry(
        "TG407",
        "optional-input-with-batches",
        _REFUSED,
        "A model with optional inputs does not batch.",
        "NVIDIA's backend refuses an optional input where max_batch_size is above 0.",
        "Remove `batching` or `optional_inputs`.",
        "batching: {max: 8}\noptional_inputs: [threshold]",
        "optional_inputs: [threshold]",
    ),
    CodeEntry(
        "TG408",
        "cached-answers-that-differ",
        _REFUSED,
        "The response cache is not used for sequences or decoupled responses.",
        "Their answers depend on more than the request (`ValidateModelConfig`, core/src/model_config_utils.cc).",
        "Remove `response_cache`, or the other setting.",
        "response_cache: true\nconfig: {sequence_batching: {}}",
        "config: {sequence_batching: {}}",
    ),
    CodeEntry(
        "TG409",
        "cache-of-the-server",
        _FRAGILE,
        "A server that serves a model with response_cache has a cache.",
        "Without `--cache-config` nothing is cached, and nothing is said (tried on 24.10).",
        "Start tritonserver with `--cache-config=local,size=BYTES`; `tritongen serve` does so by itself.",
    ),
)
