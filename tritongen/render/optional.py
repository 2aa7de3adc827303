"""Inputs that a request may leave out. Source: `ValidateInputs` (onnxruntime_backend/src/onnxruntime.cc)."""

from __future__ import annotations

import dataclasses
from typing import Any

from tritongen.batching import Batching
from tritongen.render.backends import Backend
from tritongen.render.findings import Findings
from tritongen.signature import Signature
from tritongen.spec import ModelSpec


def unbatched(model: ModelSpec, batching: Batching, findings: Findings) -> Batching:
    """The batching decision for a model with optional inputs: none. An error where the model asks for batches, too."""
    if not model.optional_inputs or not batching.max_batch_size:
        return batching
    names = ", ".join(f"'{name}'" for name in model.optional_inputs)
    asked = model.batching
    if not findings.is_inherited(("batching",)) and (asked.max or asked.preferred or asked.max_queue_delay_us):
        findings.error(
            "TG407",
            ("optional_inputs",),
            f"the inputs {names} are to be optional, and batching, at {findings.locate(('batching',))}, asks for batches",
            consequence="Triton refuses an optional input of an ONNX model with max_batch_size above 0",
            hint="remove batching or write batching: none, or remove optional_inputs",
        )
    return dataclasses.replace(Batching(max_batch_size=0), blockers=(f"it has optional inputs ({names})",))


def add_optional_inputs(config: Any, model: ModelSpec, signature: Signature, backend: Backend, findings: Findings) -> None:
    """Write the inputs that have a default value in the file and are to be served. An error for a name that has none."""
    known = {tensor.name: tensor for tensor in signature.optional_inputs}
    for index, name in enumerate(model.optional_inputs):
        key = ("optional_inputs", index)
        tensor = known.get(name)
        if tensor is None:
            required = any(tensor.name == name for tensor in signature.inputs)
            listed = ", ".join(repr(other) for other in known)
            findings.error(
                "TG406",
                key,
                f"input '{name}' has no default value in the model file" if required else f"the model has no input '{name}' with a default value",
                consequence="Triton refuses to load the model",
                hint=f"those that have one are {listed}" if listed else "no input of this model has one: give it an initializer in the ONNX file",
            )
        elif backend.name != "onnxruntime":
            hint = "use backend: onnxruntime, or remove it"
            findings.error("TG406", key, f"a TensorRT plan has no optional inputs, and '{name}' is to be one", consequence="Triton refuses it", hint=hint)
        else:
            added = config.input.add(name=name, data_type=tensor.dtype.config_value, optional=True)
            added.dims.extend(tensor.dims or (1,) if tensor.shape is not None else (1,))
