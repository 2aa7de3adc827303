"""A request checked against its model before it is sent. Pure: arrays in, arrays or findings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tritongen.client.metadata import ModelMeta, TensorMeta
from tritongen.diagnostics import Diagnostic, shown
from tritongen.errors import InvalidInput
from tritongen.samples import Array, SampleError, as_array

MAX_REQUEST_BYTES = 2**31 - 2**16
"""What one gRPC message may hold: INT32_MAX bytes on both sides, less 64 KiB for the names and shapes around the tensors."""

Cast = Literal["exact", "safe"]

_PLAIN = {bool, int, float, str, bytes}


@dataclass(slots=True)
class Prepared:
    """A request that its model takes.

    Attributes:
        inputs: the model's inputs that the request has, each with its array, in the model's dtypes and shapes, native byte order.
        rows: size of the batch; None for a model that does not batch.
        nbytes: what the tensors take in a message.
    """

    inputs: tuple[tuple[TensorMeta, Array], ...]
    rows: int | None
    nbytes: int

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays by input name."""
        return {tensor.name: array for tensor, array in self.inputs}


Layout = tuple[tuple[str, Any, tuple[int, ...]], ...]
"""Of each input that a request has, in their order: name, numpy dtype and shape."""


class Fit(NamedTuple):
    """What the plain requests of a layout that fits their model have in common.

    Attributes:
        layout: of each input its name, Triton's datatype and shape, as `Infer` has it.
        queue_timeout_s: how long they may wait in the model's queue, in seconds; 0.0 for any time.
    """

    layout: tuple[tuple[str, str, tuple[int, ...]], ...]
    queue_timeout_s: float


def layout_of(values: Mapping[str, object]) -> Layout | None:
    """The layout of a request that has nothing but arrays of numbers: whether it fits its model depends on nothing else. None for any other."""
    layout = []
    for name, value in values.items():
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return None
        layout.append((name, value.dtype, value.shape))
    return tuple(layout)


def prepare(
    meta: ModelMeta, values: Mapping[str, object], *, outputs: Sequence[str] | None = None, cast: Cast = "exact", add_batch_axis: bool = False
) -> Prepared:
    """The values of a request as arrays that the model takes; the arguments are those of `Client.infer`.

    Arrays of numbers (and what converts itself to one, such as a tensor of PyTorch) keep their dtype, which must be the model's; with `cast="safe"` they may be
    of one that numpy converts without loss. Plain numbers, text and nested lists take the model's dtype where they can without being changed. A batch may have
    more rows than the model takes at once. Raises InvalidInput (TG061) with everything that does not fit.
    """
    known, problems = meta.inputs_by_name, []
    inputs: list[tuple[TensorMeta, Array]] = []
    size = 0
    for name, value in values.items():
        tensor = known.get(name)
        if tensor is None:
            continue
        try:
            array = _array(value, tensor, cast, add_batch_axis and meta.has_rows(tensor))
        except SampleError as error:
            problems.append(f"input '{name}': {error}")
        else:
            inputs.append((tensor, array))
            size += array_bytes(array) if tensor.dtype.itemsize is None else array.nbytes
    if not len(values) == len(inputs) == len(known) or outputs is not None:
        problems = _name_problems(meta, values, outputs) + problems
    rows, row_problems = _rows(meta, inputs)
    problems += row_problems
    if problems:
        raise InvalidInput([Diagnostic("TG061", problem, consequence="Triton refuses the request", model=meta.name) for problem in problems])
    return Prepared(tuple(inputs), rows, size)


def _name_problems(meta: ModelMeta, values: Mapping[str, object], outputs: Sequence[str] | None) -> list[str]:
    known, problems = meta.inputs_by_name, []
    if not (known.keys() >= values.keys() >= meta.required):
        have = ", ".join(repr(name) for name in known) or "none"
        problems += [f"the model has no input {shown(name)}; its inputs are {have}" for name in values if name not in known]
        problems += [f"input '{tensor.name}' is missing" for tensor in meta.inputs if tensor.name in meta.required and tensor.name not in values]
    if outputs is not None:
        have = ", ".join(repr(tensor.name) for tensor in meta.outputs)
        problems += [f"the model has no output {shown(name)}; its outputs are {have}" for name in outputs if name not in meta.output_names]
        problems += [f"output {shown(name)} is asked for twice" for name, count in Counter(outputs).items() if count > 1]
    if not values and meta.inputs and not problems:
        problems.append("it has no input at all: each of the model's is optional, and Triton takes no request without one")
    return problems


def _array(value: object, tensor: TensorMeta, cast: Cast, add_batch_axis: bool) -> Array:
    """One input. Raises SampleError with what does not fit."""
    if type(value) is np.ndarray and value.dtype == tensor.dtype.numpy and tensor.dtype.itemsize is not None:
        array: Array = value
    else:
        array = _converted(value, tensor, cast, add_batch_axis)
    if add_batch_axis and array.ndim == len(tensor.shape) - 1:
        array = array[np.newaxis]
    if not tensor.takes(array.shape):
        if array.ndim or any(size not in (1, -1) for size in tensor.shape):
            raise SampleError(f"it must have the shape {list(tensor.shape)} (-1: any size), got {list(array.shape)}")
        array = array.reshape((1,) * len(tensor.shape))  # a single value, as a plain number is
    return array


def _converted(value: object, tensor: TensorMeta, cast: Cast, add_batch_axis: bool) -> Array:
    """What is not yet an array of the model's dtype, as one. Raises SampleError."""
    try:
        if _is_array(value):
            return _typed(_asarray(value), tensor, cast)
        plain = _with_arrays(value, tensor, cast)
        shape = tensor.shape[1:] if add_batch_axis and np.ndim(plain) == len(tensor.shape) - 1 else tensor.shape  # type: ignore[arg-type]
        return as_array(plain, tensor.dtype, shape)
    except (SampleError, MemoryError):
        raise
    except Exception as error:  # objects of other libraries convert themselves, and raise whatever they like: all of it is about the value
        raise SampleError(f"it cannot be made an array: {type(error).__name__}: {error!s:.200}") from error


def _is_array(value: object) -> bool:
    """Whether it says itself what its dtype is. A scalar of numpy is taken for a plain number."""
    return hasattr(value, "__array__") and not isinstance(value, np.generic)


def _asarray(value: object) -> Array:
    """What is an array, or converts itself to one. Raises SampleError where a mask would be lost, and what the value itself raises."""
    if isinstance(value, np.ma.MaskedArray) and (hidden := int(np.ma.getmaskarray(value).sum())):  # type: ignore[no-untyped-call]
        raise SampleError(f"its mask hides {hidden} elements, and a request carries no mask; .filled(value) says what stands there")
    return np.asarray(value)


def _with_arrays(value: object, tensor: TensorMeta, cast: Cast) -> object:
    """Nested lists whose arrays have the model's dtype: an array keeps its own wherever it stands, and only plain numbers take the model's."""
    if not isinstance(value, list | tuple) or set(map(type, value)) <= _PLAIN:
        return value
    return [_typed(_asarray(item), tensor, cast) if _is_array(item) else _with_arrays(item, tensor, cast) for item in value]


def _typed(array: Array, tensor: TensorMeta, cast: Cast) -> Array:
    """An array in the model's dtype."""
    wanted = tensor.dtype.numpy
    if array.dtype == wanted:
        return array if tensor.dtype.itemsize is not None else as_array(array, tensor.dtype, None)
    if array.dtype.kind in "OSU":
        return as_array(array, tensor.dtype, None)
    if array.dtype.newbyteorder("=") == wanted:
        return array.astype(wanted)
    if cast == "safe" and tensor.dtype.itemsize is not None and np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted)
    hint = "; cast='safe' converts it" if tensor.dtype.itemsize is not None and np.can_cast(array.dtype, wanted, "safe") else ""
    raise SampleError(f"it must be {tensor.dtype} ({wanted}), got {array.dtype}{hint}")


def _rows(meta: ModelMeta, inputs: Sequence[tuple[TensorMeta, Array]]) -> tuple[int | None, list[str]]:
    """The batch that the arrays make, and what is wrong with it."""
    if not meta.max_batch_size:
        return None, []
    rows = None
    for tensor, array in inputs:
        if tensor.is_shape_tensor:
            continue
        if rows is not None and array.shape[0] != rows:
            have = ", ".join(f"'{tensor.name}' has {array.shape[0]}" for tensor, array in inputs if not tensor.is_shape_tensor)
            return None, [f"the inputs have different numbers of rows: {have}"]
        rows = array.shape[0]
    return rows, ["the batch has no rows"] if rows == 0 else []


def array_bytes(array: Array) -> int:
    """The array's size in a request, in bytes; a string has 4 for its length."""
    return sum(4 + len(item) for item in array.ravel().tolist()) if array.dtype == object else array.nbytes


def check_size(size: int, model: str, what: str = "tensors", hint: str = "send fewer rows or smaller inputs") -> None:
    """Raise InvalidInput (TG066) for a request whose contents (`what`) take `size` bytes and do not fit one gRPC message."""
    if size > MAX_REQUEST_BYTES:
        message = f"the request would hold {size} bytes ({size / 2**30:.1f} GiB) of {what}, and the limit is {MAX_REQUEST_BYTES} (2 GiB)"
        raise InvalidInput([Diagnostic("TG066", message, consequence="gRPC carries no larger message", hint=hint, model=model)])
