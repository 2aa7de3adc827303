"""Ragged batches: what requests send of a model that takes its items strung together, what its backend makes, and whether the spec's account fits the graph.

Sources: `ValidateInputs` and `SetInputTensors` (onnxruntime_backend/src/onnxruntime.cc), `ProcessBatchOutput` (backend/src/backend_output_responder.cc).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tritongen import dtypes
from tritongen.batching import Batching
from tritongen.proof import Proof
from tritongen.render.findings import Findings, Key
from tritongen.rules.ortload import batch_tensor
from tritongen.samples import Array, Feed
from tritongen.signature import Signature
from tritongen.signature.tensors import Dim
from tritongen.spec import ModelSpec
from tritongen.spec.ragged import BatchInput, Ragged

_MADE = ("INT32", "FP32")
"""What Triton makes batch inputs of (`ValidateBatchIO`, core/src/model_config_utils.cc)."""


def as_requested(model: ModelSpec, signature: Signature) -> Signature:
    """The interface that requests see, with a batch axis everywhere: a ragged input is an item of its dims, a cut output has those of its source, and what the
    backend makes is not there.

    The signature itself for a model without ragged inputs. Names that the graph lacks are left out; `check_ragged` says so.
    """
    ragged = model.ragged
    if ragged is None:
        return signature
    made = _made(ragged)
    inputs = [
        dataclasses.replace(tensor, shape=(None, *_as_shape(ragged.inputs[tensor.name]))) if tensor.name in ragged.inputs else tensor
        for tensor in signature.inputs
        if tensor.name not in made
    ]
    items = {tensor.name: tensor.shape[1:] for tensor in inputs if tensor.shape}
    sources = {name: entry.source for entry in ragged.batch_outputs for name in entry.names}
    outputs = [
        dataclasses.replace(tensor, shape=(None, *items[sources[tensor.name]], *tensor.shape[1:]))
        if sources.get(tensor.name) in items and tensor.shape
        else tensor
        for tensor in signature.outputs
    ]
    return dataclasses.replace(signature, inputs=tuple(inputs), outputs=tuple(outputs))


def _as_shape(dims: tuple[int, ...]) -> tuple[Dim, ...]:
    return tuple(None if dim == -1 else dim for dim in dims)


def _made(ragged: Ragged) -> Mapping[str, BatchInput]:
    return {name: entry for entry in ragged.batch_inputs for name in entry.names}


def add_ragged(config: Any, model: ModelSpec, signature: Signature, batching: Batching, findings: Findings) -> None:
    """Write `allow_ragged_batch`, `batch_input` and `batch_output`, and say what of them does not fit the graph (`signature` is the file's own).

    Each name gets an entry of its own: NVIDIA's backend counts the entries, and gives every output of an entry the shape of the first.
    """
    ragged = model.ragged
    if ragged is None:
        return
    for tensor in config.input:
        tensor.allow_ragged_batch = tensor.name in ragged.inputs
    types = {tensor.name: tensor.dtype for tensor in signature.inputs}
    for name, entry in _made(ragged).items():
        dtype = dtypes.from_wire(entry.dtype.upper()) if entry.dtype else types.get(name)
        kind = config.DESCRIPTOR.fields_by_name["batch_input"].message_type.enum_types_by_name["Kind"].values_by_name[entry.kind.upper()].number
        config.batch_input.add(target_name=[name], kind=kind, source_input=[entry.source], data_type=dtype.config_value if dtype else 0)
    for output in ragged.batch_outputs:
        for name in output.names:
            config.batch_output.add(target_name=[name], source_input=[output.source])
    _Check(model, ragged, signature, batching, findings).run()


@dataclasses.dataclass(frozen=True)
class _Check:
    """The spec's account of ragged inputs against the graph."""

    model: ModelSpec
    ragged: Ragged
    signature: Signature
    batching: Batching
    findings: Findings

    def run(self) -> None:
        self._names()
        for tensor in self.signature.inputs:
            if tensor.name in self.ragged.inputs and (tensor.shape is None or tensor.dims != (-1,)):
                self.findings.error(
                    "TG400",
                    ("ragged", "inputs", tensor.name),
                    f"a ragged input is a single variable dimension in the graph, and the model has {tensor.describe()}",
                    consequence="Triton refuses to load the model",
                    hint="export the model for items that are strung together, or remove it from ragged: padding is the client's part",
                )
        for number, entry in enumerate(self.ragged.batch_inputs):
            for index, name in enumerate(entry.names):
                self._batch_input(entry, name, ("ragged", "batch_inputs", number, "names", index))
        for number, output in enumerate(self.ragged.batch_outputs):
            for index, name in enumerate(output.names):
                self._batch_output(name, ("ragged", "batch_outputs", number, "names", index))
        self._combination()

    def _names(self) -> None:
        inputs = [tensor.name for tensor in self.signature.inputs]
        sent = [name for name in inputs if name not in _made(self.ragged)]
        for name in self.ragged.inputs:
            self._known(name, inputs, "input", ("ragged", "inputs", name))
        for number, entry in enumerate(self.ragged.batch_inputs):
            self._entry(entry.names, inputs, "input", entry.source, sent, ("ragged", "batch_inputs", number))
        outputs = [tensor.name for tensor in self.signature.outputs]
        for number, output in enumerate(self.ragged.batch_outputs):
            self._entry(output.names, outputs, "output", output.source, sent, ("ragged", "batch_outputs", number))

    def _entry(self, names: Sequence[str], known: Sequence[str], what: str, source: str, sent: Sequence[str], key: Key) -> None:
        for index, name in enumerate(names):
            self._known(name, known, what, (*key, "names", index))
        self._known(source, sent, "input that requests send:", (*key, "source"))

    def _known(self, name: str, names: Sequence[str], what: str, key: Key) -> None:
        if name not in names:
            listed = ", ".join(f"'{known}'" for known in names) or "none"
            self.findings.error("TG103", key, f"the model has no {what} '{name}'", hint=f"there {'is' if len(names) == 1 else 'are'} {listed}")

    def _batch_input(self, entry: BatchInput, name: str, key: Key) -> None:
        tensor = next((tensor for tensor in self.signature.inputs if tensor.name == name), None)
        if tensor is None:
            return
        wire = tensor.dtype.wire
        stated = f", and dtype: {entry.dtype} is stated" if entry.dtype and entry.dtype.upper() != wire else ""
        if wire not in _MADE or stated:
            self.findings.error(
                "TG401",
                key,
                f"the model has {tensor.describe()}{stated}; Triton makes INT32 or FP32",
                consequence="every request fails: ONNX Runtime takes no other type than the graph's",
                hint=f"write dtype: {wire.lower()}" if wire in _MADE else "export the model with INT32 there, and a Cast behind it",
            )
        rank = len(self.ragged.inputs.get(entry.source, ())) or None
        wanted: tuple[int | None, ...] = (-1, rank) if entry.kind == "batch_item_shape" else (-1,)
        dims = None if tensor.shape is None else tensor.dims
        if dims is not None and (len(dims) != len(wanted) or any(have not in (-1, want) and want is not None for have, want in zip(dims, wanted, strict=True))):
            shape = f"[-1, {rank or 'R'}], R being the dimensions of an item" if entry.kind == "batch_item_shape" else "[-1]"
            self.findings.error(
                "TG401",
                key,
                f"{entry.kind} has the shape {shape}, and the model has {tensor.describe()}",
                consequence="requests fail, or are answered with other requests' parts",
                hint="take the kind that the graph was written for, or export it with that shape",
            )

    def _batch_output(self, name: str, key: Key) -> None:
        tensor = next((tensor for tensor in self.signature.outputs if tensor.name == name), None)
        if tensor is None:
            return
        if tensor.dtype.wire == "BYTES":
            consequence = "NVIDIA's backend would hand out the pointers to the texts in their place"
            self.findings.error("TG404", key, f"output '{name}' holds texts, which cannot be cut", consequence=consequence, hint="export it as numbers")
        if not tensor.shape or tensor.dims[0] != -1 or -1 in tensor.dims[1:]:
            self.findings.error(
                "TG404",
                key,
                f"a cut output has a variable first axis and no other one, and the model has {tensor.describe()}",
                consequence="Triton takes the size of each variable dimension from the input's at the same place, and reads other memory where there is none",
                hint="export it so, or remove it from batch_outputs",
            )

    def _combination(self) -> None:
        blockers = "; ".join(self.batching.blockers)
        if blockers:
            message = f"ragged puts requests into one batch, and the model cannot batch: {blockers}"
            consequence = "no two requests would ever share a batch"
            hint = "name inputs that the backend makes in batch_inputs, and outputs that are cut in batch_outputs; all others need a variable first axis"
            self.findings.error("TG402", ("ragged",), message, consequence=consequence, hint=hint)
        key = "backend" if self.model.backend == "tensorrt" else "accelerator" if self.model.accelerator == "tensorrt" else ""
        if key:
            self.findings.error(
                "TG403",
                ("ragged",),
                f"ragged does not go together with {key}: tensorrt",
                consequence="TensorRT needs a profile for lengths that are sums over requests, and tritongen derives none",
                hint=f"remove {key}, or ragged",
            )
        plain = [tensor.name for tensor in self.signature.inputs if tensor.name not in self.ragged.inputs]
        cut = {name for output in self.ragged.batch_outputs for name in output.names}
        if not plain and any(tensor.name not in cut for tensor in self.signature.outputs):
            self.findings.warning(
                "TG405",
                ("ragged",),
                "nothing tells the graph where one request ends and the next begins: all its inputs are ragged, and batch_inputs is empty",
                consequence="an answer with one row for each request can be right for single requests only",
                hint="name the graph's input for offsets or lengths in batch_inputs, and outputs with a value for each element in batch_outputs",
            )


def ragged_feeds(feeds: Mapping[int, Feed], model: ModelSpec, signature: Signature) -> dict[int, Feed]:
    """Feeds for a run in ONNX Runtime as the backend would make them: batches of equal requests, strung together, with the batch inputs of that batch.

    Only for what `add_ragged` has found no fault with; `signature` is the file's own.
    """
    ragged = model.ragged
    if ragged is None:
        return dict(feeds)
    made = {}
    for size, feed in feeds.items():
        items = {name: shape for name, (_, shape) in feed.zeros.items()} | {name: value.shape for name, value in feed.values.items()}
        made[size] = dataclasses.replace(feed, strung=frozenset(ragged.inputs), whole=batch_arrays(ragged, signature, items, size))
    return made


def batch_arrays(ragged: Ragged, signature: Signature, items: Mapping[str, tuple[int, ...]], size: int) -> dict[str, Array]:
    """The batch inputs of `size` requests whose inputs have the shapes `items`; those that the spec names wrongly are left out."""
    types = {tensor.name: tensor.dtype for tensor in signature.inputs}
    arrays = {}
    for name, entry in _made(ragged).items():
        if name in types and entry.source in items:
            made = batch_tensor(entry.kind.upper(), [(1, *items[entry.source])] * size)
            arrays[name] = np.array(made.values, np.int64).astype(types[name].numpy).reshape(made.shape)
    return arrays


def strung(model: ModelSpec) -> frozenset[str]:
    """Inputs and outputs whose shape in the graph is not that of a batch of items."""
    ragged = model.ragged
    return frozenset() if ragged is None else frozenset((*ragged.inputs, *(name for entry in ragged.batch_outputs for name in entry.names)))


def wrong_cuts(model: ModelSpec, config: Any, proof: Proof) -> Iterator[tuple[Key, str]]:
    """For every output that is to be cut by an input's lengths and came out otherwise in the proof: the key that says so, and a sentence.

    One for each output, at the first batch size where it shows.
    """
    if model.ragged is None or not config.model_warmup:
        return
    items = {name: prod(sample.dims) for name, sample in config.model_warmup[0].inputs.items()}
    for number, entry in enumerate(model.ragged.batch_outputs):
        for index, name in enumerate(entry.names):
            wrong = [(size, rows[name]) for size, rows in sorted(proof.rows.items()) if name in rows and rows[name] != size * items[entry.source]]
            for size, found in wrong[:1]:
                due = f"whose '{entry.source}' has {size * items[entry.source]} elements together"
                yield ("ragged", "batch_outputs", number, "names", index), f"output '{name}' is {found} long for {size} request{'s' * (size > 1)} {due}"
