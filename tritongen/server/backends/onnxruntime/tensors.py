"""Tensors between Triton's form and onnxruntime's.

Two things need work: element types that numpy cannot carry as they are, and shapes that the config declares otherwise than the graph.
Strings: Triton has bytes, onnxruntime's Python binding has `str`, so elements must be UTF-8. BF16: numpy has no such type; the values travel as `uint16` inside
and through DLPack at the edge.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _state

from .errors import RefusedError
from .verdicts import ortload

Array: TypeAlias = "np.ndarray[Any, Any]"

_ONNX_BF16 = 16
_CPU = _state.OrtDevice(_state.OrtDevice.cpu(), _state.OrtDevice.default_memory(), 0)


@dataclass(frozen=True)
class Reshape:
    """The two shapes of one tensor, without the batch dimension: the client's (`dims`) and the graph's (`shape`).

    The n-th -1 of one is the n-th -1 of the other (Triton checks that at load).
    """

    dims: tuple[int, ...]
    shape: tuple[int, ...]
    batching: bool

    def to_graph(self, array: Array) -> Array:
        """The client's array in the shape that the graph takes."""
        return self._moved(array, self.dims, self.shape)

    def to_client(self, array: Array) -> Array:
        """The graph's array in the shape that the config promises."""
        return self._moved(array, self.shape, self.dims)

    def _moved(self, array: Array, source: Sequence[int], target: Sequence[int]) -> Array:
        lead = 1 if self.batching else 0
        free = iter([size for size, dim in zip(array.shape[lead:], source, strict=False) if dim == -1])
        return array.reshape((*array.shape[:lead], *(next(free) if dim == -1 else dim for dim in target)))


@dataclass(frozen=True)
class Port:
    """One input or output with all that its transfer needs.

    Attributes:
        name: the tensor's name.
        data_type: Triton's `TYPE_*` name.
        scalar: the graph's tensor has rank 0, the client's has shape `[1]`.
        reshape: where the config has a `reshape`.
    """

    name: str
    data_type: str
    scalar: bool
    reshape: Reshape | None

    @property
    def is_plain(self) -> bool:
        """Whether the array can go through untouched."""
        return not self.scalar and self.reshape is None and self.data_type not in ("TYPE_STRING", "TYPE_BF16")

    def read(self, tensor: Any) -> Array:
        """A request's tensor as the array that onnxruntime takes. Raises ValueError for a string that is not UTF-8, and for a scalar with several elements."""
        if self.data_type == "TYPE_BF16":
            array = _bf16_array(_state.OrtValue.from_dlpack(tensor.to_dlpack()))
        elif self.data_type == "TYPE_STRING":
            array = _decoded(self.name, tensor.as_numpy())
        else:
            array = tensor.as_numpy()
        if self.scalar:
            if array.size != 1:
                raise ValueError(f"input '{self.name}' is a scalar in the model; it takes one element, not shape [{','.join(map(str, array.shape))}]")
            return array.reshape(())
        return array if self.reshape is None else self.reshape.to_graph(array)

    def write(self, array: Array, make: Any) -> Any:
        """The array as a tensor for the response; `make` is Triton's `Tensor` class."""
        if self.scalar:
            array = array.reshape((1,))
        elif self.reshape is not None:
            array = self.reshape.to_client(array)
        if self.data_type == "TYPE_BF16":
            return make.from_dlpack(self.name, _bf16_value(array).to_dlpack())
        return make(self.name, array)


def ports(entries: Sequence[Mapping[str, Any]], known: Mapping[str, ortload.GraphTensor], *, batching: bool) -> dict[str, Port]:
    """The ports of the config's inputs or outputs, in its order."""
    found = {}
    for entry in entries:
        dims = tuple(int(dim) for dim in entry.get("dims", []))
        reshape = Reshape(dims, tuple(int(dim) for dim in entry["reshape"].get("shape", [])), batching) if "reshape" in entry else None
        found[entry["name"]] = Port(entry["name"], entry["data_type"], not known[entry["name"]].dims, reshape)
    return found


Run: TypeAlias = Callable[[Sequence[str], "dict[str, Array]", Any], "list[Array]"]
"""Output names, arrays by input name, run options → arrays."""


def runner(session: Any, inputs: Mapping[str, Port], outputs: Mapping[str, Port]) -> Run:
    """The shortest way to run a session: onnxruntime's own `run` without the checks of its Python layer, or one by `OrtValue` where BF16 is involved.

    Raises RefusedError where this onnxruntime is too old for BF16.
    """
    native = session._sess
    bf16 = frozenset(name for name, port in (*inputs.items(), *outputs.items()) if port.data_type == "TYPE_BF16")
    if not bf16:
        run: Run = native.run
        return run
    if not hasattr(_state.OrtValue, "ortvalue_from_shape_and_onnx_type"):
        raise RefusedError(f"onnxruntime {onnxruntime.__version__} cannot be given BF16 tensors ({', '.join(sorted(bf16))}) from Python; 1.23 and later can")

    def run_values(names: Sequence[str], feed: dict[str, Array], options: Any) -> list[Array]:
        values = {name: _bf16_value(array) if name in bf16 else _state.OrtValue.ortvalue_from_numpy(array, _CPU) for name, array in feed.items()}
        results = native.run_with_ort_values(values, list(names), options)
        return [_bf16_array(value) if name in bf16 else value.numpy() for name, value in zip(names, results, strict=True)]

    return run_values


def _bf16_array(value: Any) -> Array:
    """The bits of a BF16 tensor as `uint16`; a copy, so that it does not depend on the tensor's life."""
    shape = tuple(value.shape())
    size = 2 * math.prod(shape)
    bits = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(bits, np.uint16).reshape(shape)


def _bf16_value(array: Array) -> Any:
    """A BF16 tensor, with memory of its own, from the bits in a `uint16` array."""
    value = _state.OrtValue.ortvalue_from_shape_and_onnx_type(list(array.shape), _ONNX_BF16, _CPU)
    if array.size:
        ctypes.memmove(value.data_ptr(), np.ascontiguousarray(array).ctypes.data, array.nbytes)
    return value


def _decoded(name: str, array: Array) -> Array:
    """Bytes as text, element by element."""
    decoded = np.empty(array.shape, dtype=object)
    try:
        decoded.reshape(-1)[:] = [element.decode() if isinstance(element, bytes) else str(element) for element in array.reshape(-1)]
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise ValueError(f"input '{name}' has an element that is not UTF-8 text ({where}); the embedded backend carries only text") from error
    return decoded
