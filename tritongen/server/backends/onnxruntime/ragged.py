"""Putting the arrays of several requests together, and taking the network's answers apart: by rows, or as the config says of ragged batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .tensors import Array
from .verdicts import ortload

Feeds = Sequence[Mapping[str, Array]]
"""The arrays of each request by input name, in the request's own shapes."""

_TYPES = {"TYPE_INT32": np.int32, "TYPE_FP32": np.float32}


class SplitError(ValueError):
    """An output that does not fit the requests, so that none can be given its own part."""


@dataclass(frozen=True)
class BatchInput:
    """One tensor that the backend makes: `kind` as in `BatchInput.Kind`, from the shapes of `source`, as `dtype` for the graph's input `target`."""

    target: str
    kind: str
    source: str
    dtype: type[Any]


@dataclass(frozen=True)
class Assembly:
    """How an execution's tensors follow from its requests'.

    Attributes:
        ragged: inputs whose elements are strung together into one dimension.
        made: the tensors that the backend adds.
        scattered: by output that is split by the shape of an input, that input and the output's dims (see `ortload.scatters`).
        batching: whether the first dimension is the batch.
    """

    ragged: frozenset[str]
    made: tuple[BatchInput, ...]
    scattered: Mapping[str, tuple[str, tuple[int, ...]]]
    batching: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Assembly:
        """The one that a config asks for."""
        made = tuple(
            BatchInput(target, entry.get("kind", "BATCH_ELEMENT_COUNT"), entry["source_input"][0], _TYPES[entry["data_type"]])
            for entry in config.get("batch_input", [])
            for target in entry.get("target_name", [])
        )
        ragged = frozenset(tensor["name"] for tensor in config.get("input", []) if tensor.get("allow_ragged_batch"))
        return cls(ragged, made, ortload.scatters(config), config.get("max_batch_size", 0) > 0)

    @property
    def is_plain(self) -> bool:
        """Whether a single request goes through as it is."""
        return not (self.ragged or self.made or self.scattered)

    def join(self, feeds: Feeds) -> dict[str, Array]:
        """One feed for all requests. Raises ValueError where their shapes cannot be put together."""
        joined = {name: self._joined(name, [feed[name] for feed in feeds]) for name in feeds[0]}
        for tensor in self.made:
            made = ortload.batch_tensor(tensor.kind, _shapes(tensor.source, feeds))
            joined[tensor.target] = np.array(made.values, np.int64).astype(tensor.dtype).reshape(made.shape)
        return joined

    def _joined(self, name: str, arrays: Sequence[Array]) -> Array:
        if name in self.ragged:
            return np.concatenate([array.reshape(-1) for array in arrays])
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def split(self, names: Sequence[str], arrays: Sequence[Array], feeds: Feeds) -> list[dict[str, Array]]:
        """Each request's part of each output. Raises SplitError where an output has other rows, or other elements, than the requests together."""
        parts: list[dict[str, Array]] = [{} for _ in feeds]
        for name, array in zip(names, arrays, strict=True):
            pieces = self._scattered(name, array, feeds) if name in self.scattered else self._rows(name, array, feeds)
            for part, piece in zip(parts, pieces, strict=True):
                part[name] = piece
        return parts

    def _scattered(self, name: str, array: Array, feeds: Feeds) -> list[Array]:
        source, dims = self.scattered[name]
        given = _shapes(source, feeds)
        try:
            shapes = [ortload.scattered_shape(dims, shape) for shape in given]
        except IndexError:
            rank = len(given[0])
            raise SplitError(
                f"failed to scatter the output tensor '{name}': it has {len(dims)} dimensions, the batch among them, and '{source}' has {rank}; "
                "NVIDIA's backend would read past the shape's end; give the output no -1 where the input has no dimension"
            ) from None
        ends = np.cumsum([prod(shape) for shape in shapes])
        if array.size != ends[-1]:
            raise SplitError(
                f"failed to scatter the output tensor '{name}' in responses: by the shapes of '{source}' the requests are due {ends[-1]} elements, and "
                f"the model made {array.size}; NVIDIA's backend would hand out other memory without a word; correct batch_output or the model"
            )
        return [piece.reshape(shape) for piece, shape in zip(np.split(array.reshape(-1), ends[:-1]), shapes, strict=True)]

    def _rows(self, name: str, array: Array, feeds: Feeds) -> list[Array]:
        if not (self.batching and feeds[0]):
            return [array]
        ends = np.cumsum([rows_of(feed) for feed in feeds])
        check_rows(name, array, int(ends[-1]))
        return [array] if len(feeds) == 1 else np.split(array, ends[:-1])


def _shapes(source: str, feeds: Feeds) -> list[tuple[int, ...]]:
    """An input's shape in each request. Raises ValueError where a request has left it out."""
    if any(source not in feed for feed in feeds):
        raise ValueError(f"input '{source}' is left out, and batch_input or batch_output takes its shape")
    return [feed[source].shape for feed in feeds]


def rows_of(feed: Mapping[str, Array]) -> int:
    """Batch size of a request: the first dimension of any input (Triton has checked that all agree)."""
    for array in feed.values():
        return array.shape[0] if array.ndim else 1
    return 0


def check_rows(name: str, array: Array, rows: int) -> None:
    """Refuse an output that has not one row for each of the batch; a scalar is one row. Raises SplitError.

    Too few are refused in the words of NVIDIA's backend. Too many it cuts off behind the batch and says nothing, so that requests get rows of others; here that
    is an error, for a single request too: it must not first show when two come together.
    """
    found = array.shape[0] if array.ndim else 1
    if found < rows:
        raise SplitError(f"failed to split the output tensor '{name}' in responses: expected batch size of at least {rows} in model output, got {found}")
    if found > rows:
        raise SplitError(
            f"failed to split the output tensor '{name}' in responses: expected {rows} rows in model output, one for each of the batch, got {found}; "
            "the model's axis 0 is not a batch axis, and NVIDIA's backend would hand out wrong rows without a word; serve the model without batching "
            "(max_batch_size: 0 in config.pbtxt, `batching: none` in a spec)"
        )
