"""Golden configs, and every way to break one thing in them.

A golden config loads. A mutation drops, empties, doubles, renames, retypes or moves by one exactly one of its fields, or adds one; whether the result loads is
for Triton to say. Together the golden configs have nearly every field of ModelConfig.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor

from tritongen.modelconfig import parse_pbtxt, print_pbtxt

PYTHON_MODEL = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""

_IO = """\
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [8] }
input { name: "i" data_type: TYPE_INT32 dims: [2, -1] reshape { shape: [2, -1] } }
output { name: "y" data_type: TYPE_FP32 dims: [4] }
"""

GOLDEN = {
    "plain": 'backend: "python"\n' + _IO + "instance_group { count: 1 kind: KIND_CPU }\nversion_policy { latest { num_versions: 1 } }\n",
    "queued": 'backend: "python"\n'
    + _IO
    + """\
dynamic_batching {
  preferred_batch_size: [4, 8]
  max_queue_delay_microseconds: 500
  priority_levels: 2
  default_priority_level: 1
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 100000 allow_timeout_override: true max_queue_size: 16 }
  priority_queue_policy { key: 2 value { timeout_action: DELAY default_timeout_microseconds: 1000 } }
}
""",
    "ordered": 'backend: "python"\n' + _IO + "dynamic_batching { preserve_ordering: true default_queue_policy { default_timeout_microseconds: 1000 } }\n"
    "response_cache { enable: true }\n",
    "sequence": 'backend: "python"\n'
    + _IO
    + """\
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  oldest { max_candidate_sequences: 4 preferred_batch_size: [4] max_queue_delay_microseconds: 100 }
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [0, 1] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [false, true] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
}
""",
    "direct": 'backend: "python"\n' + _IO + "sequence_batching { direct { max_queue_delay_microseconds: 10 minimum_slot_utilization: 0.5 } }\n",
    "iterative": 'backend: "python"\n'
    + _IO
    + """\
version_policy { all { } }
model_transaction_policy { decoupled: true }
sequence_batching {
  iterative_sequence: true
  oldest { max_candidate_sequences: 2 preserve_ordering: true }
  state {
    input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: [2] use_same_buffer_for_input_output: true
    initial_state { name: "start" data_type: TYPE_FP32 dims: [2] data_file: "start" }
  }
}
""",
    "tuned": 'backend: "python"\nruntime: "libtriton_python.so"\ndefault_model_filename: "model.py"\n'
    + _IO
    + """\
cc_model_filenames { key: "8.6" value: "model.py" }
version_policy { specific { versions: [1] } }
optimization {
  graph { level: 1 }
  priority: PRIORITY_MAX
  cuda {
    graphs: true busy_wait_events: true output_copy_stream: true
    graph_spec {
      batch_size: 2 input { key: "x" value { dim: [8] } }
      graph_lower_bound { batch_size: 1 input { key: "x" value { dim: [8] } } }
    }
  }
  execution_accelerators {
    gpu_execution_accelerator { name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }
    cpu_execution_accelerator { name: "openvino" }
  }
  input_pinned_memory { enable: true } output_pinned_memory { enable: true }
  gather_kernel_buffer_threshold: 8 eager_batching: true
}
instance_group {
  name: "busy" count: 1 kind: KIND_CPU host_policy: "cpu"
  rate_limiter { resources { name: "shared" global: true count: 1 } resources { name: "own" count: 2 } priority: 2 }
  secondary_devices { kind: KIND_NVDLA device_id: 0 }
}
model_operations { op_library_filename: "ops.so" }
model_warmup { name: "w" batch_size: 1 count: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [8] input_data_file: "x" } }
  inputs { key: "i" value { data_type: TYPE_INT32 dims: [2, 3] zero_data: true } }
}
""",
    "stateful": 'backend: "python"\n'
    + _IO
    + """\
sequence_batching {
  state { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: [3] initial_state { name: "zero" data_type: TYPE_FP32 dims: [3] zero_data: true } }
}
""",
    "ragged": 'backend: "python"\n'
    """\
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true }
output { name: "y" data_type: TYPE_FP32 dims: [-1] }
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "INDEX" data_type: TYPE_FP32 source_input: "x" }
batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }
""",
    "image": 'backend: "python"\n'
    """\
max_batch_size: 0
input { name: "x" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [4, 4, 3] }
input { name: "o" data_type: TYPE_STRING dims: [1] optional: true }
output { name: "y" data_type: TYPE_FP32 dims: [2, 3] reshape { shape: [6] } label_filename: "labels.txt" }
parameters { key: "k" value { string_value: "v" } }
metric_tags { key: "a" value: "b" }
""",
    "warm": 'backend: "python"\n'
    + _IO
    + """\
model_warmup { name: "w" batch_size: 2 count: 1
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [8] zero_data: true } }
  inputs { key: "i" value { data_type: TYPE_INT32 dims: [2, 3] random_data: true } }
}
""",
    "onnx": 'platform: "onnxruntime_onnx"\nbackend: "onnxruntime"\ndefault_model_filename: "model.onnx"\n'
    """\
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [8] }
output { name: "y" data_type: TYPE_FP32 dims: [4] }
optimization { graph { level: -1 } input_pinned_memory { enable: true } }
dynamic_batching { preferred_batch_size: [2] }
instance_group { count: 1 kind: KIND_CPU }
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
parameters { key: "execution_mode" value { string_value: "0" } }
model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [8] zero_data: true } } }
""",
    "ensemble": 'platform: "ensemble"\n'
    """\
max_batch_size: 8
input { name: "in" data_type: TYPE_FP32 dims: [8] }
output { name: "out" data_type: TYPE_FP32 dims: [4] }
ensemble_scheduling {
  step { model_name: "STEP_one" model_version: -1 input_map { key: "x" value: "in" } output_map { key: "y" value: "mid" } }
  step { model_name: "STEP_two" model_version: -1 input_map { key: "x" value: "mid" } output_map { key: "y" value: "out" } }
}
""",
}
"""Loads as it is, every one. `STEP_one` (x[8] → y[4]) and `STEP_two` (x[4] → y[4]) are there for the ensemble."""


@dataclass(frozen=True)
class Mutation:
    """One broken config: what was done to which field, and the text."""

    golden: str
    what: str
    text: str


def mutations(golden: str) -> Iterator[Mutation]:
    """Every mutation of a golden config: those of its message, and those of its text that no message can hold."""
    text = GOLDEN[golden]
    config = parse_pbtxt(text)
    for path, change in _changes(config, ()):
        mutated = parse_pbtxt(text)
        change(mutated)
        yield Mutation(golden, path, print_pbtxt(mutated))
    for match in re.finditer(r"(\w+)(?=\s*[:{])", text):
        if match.start() and text[match.start() - 1] in "\"'":
            continue
        yield Mutation(golden, f"{match.group()} renamed", f"{text[: match.start()]}{match.group()}s{text[match.end() :]}")
    for match in re.finditer(r'(\w+): ("[^"]*"|-?\d+|TYPE_\w+|true|false)(?=[\s\]}])', text):
        value = match.group(2)
        retyped = value.strip('"') if value.startswith('"') else f'"{value}"'
        yield Mutation(golden, f"{match.group(1)} retyped", f"{text[: match.start(2)]}{retyped}{text[match.end(2) :]}")
        yield Mutation(golden, f"{match.group(1)} doubled", f"{text[: match.end()]} {match.group()}{text[match.end() :]}")


def _changes(message, path):
    """Every single change of one field of a message, as (description, function on the whole config)."""
    yield from _additions(message, path)
    for field, value in message.ListFields():
        here = (*path, field.name)
        if _is_map(field):
            for key in sorted(value):
                yield f"{'.'.join(map(str, here))}[{key}] dropped", _at(path, lambda target, name=field.name, key=key: getattr(target, name).pop(key))
                if field.message_type.fields_by_name["value"].message_type is not None:
                    yield from _changes(value[key], (*here, ("map", key)))
            continue
        yield f"{'.'.join(map(str, here))} dropped", _at(path, lambda target, name=field.name: target.ClearField(name))
        if field.is_repeated:
            yield f"{'.'.join(map(str, here))} doubled", _at(path, lambda target, name=field.name: getattr(target, name).MergeFrom(list(getattr(target, name))))
            for index, item in enumerate(value):
                if field.message_type is not None:
                    yield from _changes(item, (*here, index))
                else:
                    for label, changed in _values(field, item):
                        yield (
                            f"{'.'.join(map(str, here))}[{index}] {label}",
                            _at(path, lambda target, name=field.name, index=index, changed=changed: getattr(target, name).__setitem__(index, changed)),
                        )
        elif field.message_type is not None:
            yield from _changes(value, here)
        else:
            for label, changed in _values(field, value):
                yield f"{'.'.join(map(str, here))} {label}", _at(path, lambda target, name=field.name, changed=changed: setattr(target, name, changed))


def _additions(message, path):
    """Every field that a message has not, added with the smallest value that says something; a message is added empty."""
    present = {field.name for field, _ in message.ListFields()}
    for field in message.DESCRIPTOR.fields:
        if field.name not in present and not _is_map(field):
            yield f"{'.'.join(map(str, (*path, field.name)))} added", _at(path, lambda target, field=field: _add(target, field))


def _add(target, field):
    if field.message_type is not None:
        getattr(target, field.name).add() if field.is_repeated else getattr(target, field.name).SetInParent()
    elif field.is_repeated:
        getattr(target, field.name).append(_SMALLEST[field.cpp_type])
    else:
        setattr(target, field.name, _SMALLEST[field.cpp_type])


_SMALLEST = {
    FieldDescriptor.CPPTYPE_BOOL: True,
    FieldDescriptor.CPPTYPE_STRING: "x",
    FieldDescriptor.CPPTYPE_FLOAT: 1.0,
    **dict.fromkeys(
        (
            FieldDescriptor.CPPTYPE_ENUM,
            FieldDescriptor.CPPTYPE_INT32,
            FieldDescriptor.CPPTYPE_INT64,
            FieldDescriptor.CPPTYPE_UINT32,
            FieldDescriptor.CPPTYPE_UINT64,
        ),
        1,
    ),
}


def _is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _values(field, value):
    if field.enum_type is not None:
        for other in field.enum_type.values:
            if other.number != value:
                yield f"= {other.name}", other.number
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        yield f"= {not value}", not value
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        yield "emptied", ""
        yield "renamed", f"{value}_"
        yield "in upper case", value.upper() if value.upper() != value else value.lower()
    elif field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        yield "= 2", 2.0
        yield "= -1", -1.0
    else:
        yield "+ 1", value + 1
        if value > 0 or field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64):
            yield "- 1", value - 1
            yield "= 0", 0
        if field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64):
            yield "negated", -value


def _at(path, change):
    """`change` applied to the message at `path` of a whole config."""

    def apply(config):
        target = config
        for part in path:
            if isinstance(part, tuple):
                target = target[part[1]]
            elif isinstance(part, int):
                target = target[part]
            else:
                target = getattr(target, part)
        change(target)

    return apply
