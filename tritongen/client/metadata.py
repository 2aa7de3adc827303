"""A model as its server describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tritongen import dtypes
from tritongen.diagnostics import shown
from tritongen.dtypes import Dtype
from tritongen.samples import SAMPLES_PARAMETER

_NETWORKS = frozenset({"onnxruntime", "tensorrt", "pytorch", "tensorflow", "openvino"})
"""Backends whose models see no more of a request than its tensors."""


@dataclass(frozen=True)
class TensorMeta:
    """An input or output as the server states it; `shape` has the batch dimension, as -1, where the model batches.

    A shape tensor of TensorRT has none: its values are those of sizes, and one request has them once, whatever its rows (facts, on `is_shape_tensor`).
    """

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    is_shape_tensor: bool = False

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape fits."""
        if len(shape) != len(self.shape):
            return False
        for axis, size in self._fixed:  # noqa: SIM110 - runs for each input of each request, and a generator costs twice as much
            if shape[axis] != size:
                return False
        return True

    @cached_property
    def _fixed(self) -> tuple[tuple[int, int], ...]:
        """The axes whose size the model states, with it."""
        return tuple((axis, size) for axis, size in enumerate(self.shape) if size != -1)


@dataclass(frozen=True)
class QueuePolicy:
    """How long a request may wait in a model's queue.

    Attributes:
        max_size: how many requests may wait there; 0 for any number.
        timeout_us: the limit, in microseconds; 0 for none.
        rejects: a request that waited for so long is refused; else it is put behind all others.
        may_be_shortened: a request may state a shorter limit of its own.
    """

    max_size: int
    timeout_us: int
    rejects: bool
    may_be_shortened: bool


@dataclass(frozen=True)
class ModelMeta:
    """A model as the server states it. `max_batch_size` 0 means that the model does not batch; `config` is its whole ModelConfig, in Triton's field names."""

    name: str
    version: str
    inputs: tuple[TensorMeta, ...]
    outputs: tuple[TensorMeta, ...]
    max_batch_size: int
    config: Mapping[str, Any]

    @cached_property
    def inputs_by_name(self) -> Mapping[str, TensorMeta]:
        """The inputs, to look one up."""
        return {tensor.name: tensor for tensor in self.inputs}

    def has_rows(self, tensor: TensorMeta) -> bool:
        """Whether the first axis of an input is the batch."""
        return self.max_batch_size > 0 and not tensor.is_shape_tensor

    def item_shape(self, tensor: TensorMeta) -> tuple[int, ...]:
        """The shape of an input without the batch dimension."""
        return tensor.shape[1:] if self.has_rows(tensor) else tensor.shape

    @cached_property
    def required(self) -> frozenset[str]:
        """Names of the inputs that every request must have."""
        optional = {item["name"] for item in self.config.get("input", ()) if item.get("optional")}
        return frozenset(tensor.name for tensor in self.inputs if tensor.name not in optional)

    @cached_property
    def output_names(self) -> frozenset[str]:
        """Names of the outputs."""
        return frozenset(tensor.name for tensor in self.outputs)

    @cached_property
    def decoupled(self) -> bool:
        """Whether the model answers a request with any number of responses."""
        return bool(self.config.get("model_transaction_policy", {}).get("decoupled"))

    @cached_property
    def is_stateful(self) -> bool:
        """Whether each request must belong to a sequence."""
        return "sequence_batching" in self.config

    @cached_property
    def takes_plain_requests(self) -> bool:
        """Whether a request may be one of its own, and has one answer."""
        return not self.decoupled and not self.is_stateful

    @cached_property
    def may_know_sequences(self) -> bool:
        """Whether something may come of a request's place in a sequence. Only with `sequence_batching` do the backends of networks get to know it; an ensemble
        passes it on to its models, and code of one's own may read it.
        """
        name = str(self.config.get("backend") or self.config.get("platform") or "").partition("_")[0]
        return self.is_stateful or "ensemble_scheduling" in self.config or name not in _NETWORKS

    @cached_property
    def warmup_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The sizes of one item that the model's config warms up, by input name; empty where it has no warmup."""
        samples = self.config.get("model_warmup") or ()
        return {name: tuple(int(size) for size in value.get("dims", ())) for name, value in samples[0].get("inputs", {}).items()} if samples else {}

    @cached_property
    def samples(self) -> Mapping[str, object]:
        """The values that the model's spec gives for inputs that cannot be guessed; empty for a config that tritongen did not write."""
        text = self.config.get("parameters", {}).get(SAMPLES_PARAMETER, {}).get("string_value", "{}")
        try:
            values = json.loads(text)
        except json.JSONDecodeError:
            return {}
        return values if isinstance(values, dict) else {}

    @cached_property
    def queue_policies(self) -> Mapping[int, QueuePolicy]:
        """The queue policy of each priority level; that of level 0 counts where a request states none of the others."""
        batching = self.config.get("dynamic_batching") or {}
        default = int(batching.get("default_priority_level") or 0)
        own = {int(level): _queue_policy(policy) for level, policy in (batching.get("priority_queue_policy") or {}).items()}
        return {**own, 0: own.get(default) or _queue_policy(batching.get("default_queue_policy") or {})}


def model_meta(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> ModelMeta:
    """The two answers of a server as one value. Raises ValueError, in a sentence, where they are not a Triton's."""
    versions = metadata.get("versions") or [""]
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        raise ValueError(f"versions is {shown(versions)}, not a list of texts")
    _check_config(config)
    shapes = {item["name"]: tuple(item.get("dims", ())) for item in _objects(config, "input") if item.get("is_shape_tensor")}
    inputs = tuple(_shape_tensor(tensor, shapes) if tensor.name in shapes else tensor for tensor in map(_tensor, _objects(metadata, "inputs")))
    outputs = tuple(map(_tensor, _objects(metadata, "outputs")))
    return ModelMeta(_text(metadata, "name"), versions[-1], inputs, outputs, _whole(config, "max_batch_size"), config)


def _shape_tensor(tensor: TensorMeta, shapes: Mapping[str, tuple[int, ...]]) -> TensorMeta:
    """A shape tensor with the shape of its config: the server's metadata puts the batch dimension in front of every input."""
    return replace(tensor, shape=shapes[tensor.name], is_shape_tensor=True)


def _queue_policy(policy: Mapping[str, Any]) -> QueuePolicy:
    """A `ModelQueuePolicy` of a config."""
    rejects = policy.get("timeout_action", "REJECT") in ("REJECT", 0)
    return QueuePolicy(
        int(policy.get("max_queue_size") or 0), int(policy.get("default_timeout_microseconds") or 0), rejects, bool(policy.get("allow_timeout_override"))
    )


def _check_config(config: Mapping[str, Any]) -> None:
    """Raise ValueError for a config whose parts are not those that requests are checked with."""
    for item in _objects(config, "input"):
        name, dims = _text(item, "name"), item.get("dims", [])
        if item.get("is_shape_tensor") and not (isinstance(dims, list) and all(isinstance(dim, int) and dim >= -1 for dim in dims)):
            raise ValueError(f"the input {shown(name)} has the dims {shown(dims)}, which are none")
    _object(config, "model_transaction_policy")
    batching = _object(config, "dynamic_batching")
    _whole(batching, "default_priority_level")
    levels = _object(batching, "priority_queue_policy")
    if not all(str(level).isdecimal() for level in levels):
        raise ValueError(f"priority_queue_policy has the levels {shown(list(levels))}, which are no numbers")
    for policy in (_object(batching, "default_queue_policy"), *(_object(levels, level) for level in levels)):
        _whole(policy, "default_timeout_microseconds")
        _whole(policy, "max_queue_size")


def _tensor(item: Mapping[str, Any]) -> TensorMeta:
    name, datatype, shape = _text(item, "name"), _text(item, "datatype"), item.get("shape", [])
    if datatype not in dtypes.WIRE_NAMES:
        raise ValueError(f"the tensor {shown(name)} has the datatype {shown(datatype)}, which is not known here")
    if not isinstance(shape, list) or not all(isinstance(dim, int) and dim >= -1 for dim in shape):
        raise ValueError(f"the tensor {shown(name)} has the shape {shown(shape)}, which is none")
    return TensorMeta(name, dtypes.from_wire(datatype), tuple(shape))


def _objects(found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    items = found.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ValueError(f"{key} is {shown(items)}, not a list of objects")
    return items


def _object(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    item = found.get(key, {})
    if not isinstance(item, Mapping):
        raise ValueError(f"{key} is {shown(item)}, not an object")
    return item


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {shown(value)}, not text")
    return value


def _whole(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key, 0)
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{key} is {shown(value)}, not a whole number")
    return value
