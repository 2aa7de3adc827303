"""What a model looks like from outside, whatever its file format: `TensorSpec` and `Signature`.

Pure values. The readers beside this module (`onnx.py`, later `plan.py`) make them; everything above works on them and never opens a model file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tritongen.dtypes import Dtype

Dim = int | str | None
"""A dimension: a fixed size, the name of a symbolic one, or None where the file says nothing about it."""

_ANONYMOUS = re.compile(r"[-?\d]*|None|unknown|unk__\d+")
"""What exporters write for want of a name: numbers and marks, Python's word for nothing, and what tf2onnx and ONNX's symbolic shape inference make up."""


def symbol_of(dim: Dim) -> str:
    """The name of a symbolic dimension, which has the same size wherever it occurs; empty for others, and for what exporters write for want of a name."""
    return dim if isinstance(dim, str) and not _ANONYMOUS.fullmatch(dim) else ""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model.

    Attributes:
        name: the tensor's name in the model file, verbatim.
        dtype: its element type.
        shape: its dimensions; `()` is a scalar (rank 0), None means that the file states no shape at all.
    """

    name: str
    dtype: Dtype
    shape: tuple[Dim, ...] | None

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape as Triton writes it: -1 for every dimension that is not fixed.

        Raises ValueError where the file states no shape.
        """
        if self.shape is None:
            raise ValueError(f"tensor {self.name!r} has no shape in the model file")
        return tuple(dim if isinstance(dim, int) else -1 for dim in self.shape)

    def describe(self) -> str:
        """For messages: `x FP32 [N, 3, ?, 224]`; `?` stands for a dimension without a name."""
        if self.shape is None:
            return f"{self.name} {self.dtype} (no shape)"
        return f"{self.name} {self.dtype} [{', '.join('?' if dim is None or dim == '' else str(dim) for dim in self.shape)}]"


@dataclass(frozen=True)
class ExternalData:
    """A tensor whose bytes lie in a file beside the model.

    Attributes:
        location: POSIX path relative to the model file, verbatim.
        offset: first byte in that file.
        length: number of bytes, or None where the model file does not say (then: to the end of the file).
        tensor: the initializer's name.
        outside: how the file lies outside the model's folder, links resolved, in words; empty where it lies inside.
    """

    location: str
    offset: int
    length: int | None
    tensor: str
    outside: str = ""


@dataclass(frozen=True)
class Signature:
    """A model's interface, and what its file says about the runtime it needs.

    Attributes:
        inputs: what a request must give, in the file's order. Graph inputs that only name an initializer are not here.
        outputs: what the model answers with, in the file's order.
        optional_inputs: graph inputs that have an initializer as default; a request may leave them out.
        opsets: operator-set version by domain; the default domain is `""`.
        custom_domains: domains of nodes that are neither ONNX's nor ONNX Runtime's own.
        external_data: tensors stored outside the file.
        convolves: whether a node of it, in sub-graphs and functions too, is a convolution.
        ir_version: version of the ONNX container format.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    optional_inputs: tuple[TensorSpec, ...] = ()
    opsets: Mapping[str, int] = field(default_factory=dict)
    custom_domains: frozenset[str] = frozenset()
    external_data: tuple[ExternalData, ...] = ()
    ir_version: int = 0
    producer: str = ""
    convolves: bool = False

    def input(self, name: str) -> TensorSpec:
        """The required input of this name. Raises KeyError where there is none."""
        return _named(self.inputs, name)

    def output(self, name: str) -> TensorSpec:
        """The output of this name. Raises KeyError where there is none."""
        return _named(self.outputs, name)


def _named(tensors: tuple[TensorSpec, ...], name: str) -> TensorSpec:
    """The tensor of this name. Raises KeyError where there is none."""
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise KeyError(name)
