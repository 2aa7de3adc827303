"""A model as its server describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tritongen import dtypes
from tritongen.dtypes import Dtype
from tritongen.samples import SAMPLES_PARAMETER


@dataclass(frozen=True)
class TensorMeta:
    """An input or output as the server states it; `shape` has the batch dimension, as -1, where the model batches."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]


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
    def queue_policies(self) -> Mapping[int, Mapping[str, Any]]:
        """The queue policy of each priority level; that of level 0 counts where a request states none of the others."""
        batching = self.config.get("dynamic_batching") or {}
        default = int(batching.get("default_priority_level") or 0)
        own = {int(level): policy for level, policy in (batching.get("priority_queue_policy") or {}).items()}
        general = batching.get("default_queue_policy") or {}
        return {**own, 0: own.get(default, general)}


def model_meta(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> ModelMeta:
    """The two answers of a server as one value."""
    inputs, outputs = (
        tuple(TensorMeta(item["name"], dtypes.from_wire(item["datatype"]), tuple(int(dim) for dim in item.get("shape", ()))) for item in metadata.get(kind, ()))
        for kind in ("inputs", "outputs")
    )
    versions = metadata.get("versions") or [""]
    return ModelMeta(metadata["name"], versions[-1], inputs, outputs, int(config.get("max_batch_size", 0)), config)
