"""The memory that a graph needs while it runs: its weights, and the tensors that are alive at the same time.

An over-approximation on purpose: a tensor has memory of its own from the node that makes it to the last node that reads it. Views (Reshape, Squeeze) share that
of what they view; that runtimes compute many nodes in place, and fuse others so that their results never exist, is not counted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tritongen.dtypes import from_onnx
from tritongen.errors import ModelFileError
from tritongen.rewrite import Convert, convert_in_place
from tritongen.rewrite.document import graphs, problem, subgraphs
from tritongen.rewrite.facts import free_names
from tritongen.signature.folding import settled
from tritongen.signature.inference import without_weights
from tritongen.signature.wire import WireError

if TYPE_CHECKING:
    import onnx

_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
_FLOAT = 1
_NARROW: Mapping[int, float] = {17: 1, 18: 1, 19: 1, 20: 1, 21: 0.5, 22: 0.5, 23: 0.5, 24: 1, 25: 0.25, 26: 0.25, 27: 0.75, 28: 0.75}
"""Bytes of an element of the ONNX types that no Triton protocol has: of 8, 4, 2 and 6 bits."""


@dataclass(frozen=True)
class Footprint:
    """What a graph needs for inputs of certain sizes, in bytes.

    Attributes:
        weights: of its initializers, and of what follows from them alone.
        activations: the most that is alive at the same time, its inputs and outputs included.
        scratch: inputs and results of the largest node that computes: as much again may be taken by kernels to lay data out anew.
        peak: the node at which most is alive, described.
        unknown: nodes whose results have no size that is known, described, the first of each chain.
        missing: how many tensors have none.
    """

    weights: int
    activations: int
    scratch: int
    peak: str = ""
    unknown: tuple[str, ...] = ()
    missing: int = 0


@dataclass(frozen=True)
class Outline:
    """A model without its large weights, as it is served.

    Attributes:
        path: the file that it was read from.
        model: its graph; the bodies of its own functions are in the place of their calls.
        float_bytes: bytes of a number that the graph has in FP32.
    """

    path: Path
    model: onnx.ModelProto
    float_bytes: int = 4

    @property
    def weights(self) -> Footprint:
        """What the graph needs whatever it is given: its weights, and nothing else."""
        return Footprint(_Graph(self.model.graph, self.float_bytes).weights, 0, 0)

    def footprint(self, shapes: Mapping[str, Sequence[int]]) -> Footprint:
        """What the graph needs for inputs of these full shapes, by name.

        Raises:
            ModelFileError: TG165 where ONNX's shape inference cannot follow the graph, or the inputs do not fit it.
        """
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        try:
            for value in model.graph.input:
                if value.name in shapes:
                    value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, list(shapes[value.name])))
            del model.graph.value_info[:]  # sizes that were true of other inputs
            inferred = settled(model, data_prop=True)
        except (onnx.shape_inference.InferenceError, ValueError) as error:
            reason = " ".join(str(error).split())
            message = f"the sizes in the graph cannot be followed: {reason}"
            raise ModelFileError([problem("TG165", self.path, message, "give sizes that the model takes")]) from error
        graph = _Graph(inferred.graph, self.float_bytes, calls=frozenset((function.domain, function.name) for function in model.functions))
        peak, at = graph.peak()
        return Footprint(graph.weights, peak, graph.scratch, at, tuple(graph.unknown), graph.missing)


def read_outline(path: Path, *, convert: Convert | None = None, float_bytes: int = 4) -> Outline:
    """The graph of the ONNX file at `path`. Reads no weights: tensors above 4 KiB lose their values on the way.

    Args:
        path: the model.
        convert: the conversion that it is served after; None where it is served as it is.
        float_bytes: bytes of a number that the graph then has in FP32, in the precision that it is served in.

    Raises:
        ModelFileError: TG165 for a file that cannot be read, TG166 for a graph that cannot be converted.
    """
    import onnx
    from google.protobuf.message import DecodeError
    from onnx.inliner import inline_local_functions

    try:
        model = onnx.load_model_from_string(without_weights(path))
        if convert is not None:
            convert_in_place(path, model, convert)
        # A function that is written for another opset than the model stays where it is.
        model = inline_local_functions(model) if model.functions else model
    except (OSError, WireError, DecodeError, onnx.checker.ValidationError) as error:
        raise ModelFileError([problem("TG165", path, f"the graph cannot be read: {' '.join(str(error).split())}", "export the model again")]) from error
    for graph in graphs(model.graph):
        _make_dense(graph)
    return Outline(path, model, float_bytes)


def _make_dense(graph: onnx.GraphProto) -> None:
    """Put weights without values, which are not read here anyway, in the place of sparse ones, in place: runtimes without kernels for these make them dense."""
    for sparse in graph.sparse_initializer:
        graph.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    del graph.sparse_initializer[:]


class _Graph:
    """One graph whose shapes are inferred, and the memory of what is in it.

    `lost`: tensors around it whose size is not known; `calls`: domain and name of functions that are not looked into.
    """

    def __init__(self, graph: onnx.GraphProto, float_bytes: int, lost: frozenset[str] = frozenset(), calls: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._graph = graph
        self._float_bytes = float_bytes
        self._calls = calls
        self._lost = set(lost)
        self._read = {name for node in graph.node for name in (*node.input, *free_names(node))} | {value.name for value in graph.output}
        self._sizes = {value.name: self._value_bytes(value) for value in (*graph.input, *graph.value_info, *graph.output)}
        self._constant = {tensor.name for tensor in graph.initializer}
        self.weights = sum(self._dense_bytes(tensor.dims, tensor.data_type) for tensor in graph.initializer)
        self.scratch = 0
        self.unknown: list[str] = []
        self.missing = 0
        self._inner: dict[int, int] = {}
        self._look()

    def _look(self) -> None:
        """Weigh every node: what is constant, what has no size, what lies in its own graphs."""
        for index, node in enumerate(self._graph.node):
            read = [name for name in (*node.input, *free_names(node)) if name]
            made = [name for name in node.output if name in self._read]
            is_call = (node.domain, node.op_type) in self._calls
            if not is_call and all(name in self._constant for name in read) and not any(True for _ in subgraphs(node)):
                self._constant.update(node.output)
                self.weights += sum(self._sizes.get(name) or self._attribute_bytes(node) for name in made)
                continue
            sizeless = [name for name in made if self._sizes.get(name) is None or is_call]
            if sizeless and not self._lost.intersection(read):
                self.unknown.append(_described(node))
            self._enter(index, node)
            self._lost.update(sizeless)
            self.missing += len(sizeless)
            if node.op_type not in _VIEWS:
                self.scratch = max(self.scratch, sum(self._sizes.get(name) or 0 for name in {*read, *made} - self._constant))

    def _enter(self, index: int, node: onnx.NodeProto) -> None:
        """Weigh the graphs inside a node: of the branches of an If one runs."""
        most = 0
        for inner in subgraphs(node):
            graph = _Graph(inner, self._float_bytes, frozenset(self._lost), self._calls)
            most = max(most, graph.peak()[0])
            self.weights += graph.weights
            self.scratch = max(self.scratch, graph.scratch)
            self.unknown += [each for each in graph.unknown if _described(node) not in self.unknown]
            self.missing += graph.missing
        self._inner[index] = most

    def peak(self) -> tuple[int, str]:
        """The most bytes that are alive at once, and at which node."""
        nodes = list(self._graph.node)
        changes = [0] * (len(nodes) + 2)
        for first, last, size in self._spans():
            changes[first] += size
            changes[last + 1] -= size
        alive, most, where = 0, 0, ""
        for step, change in enumerate(changes[:-1]):
            alive += change
            now = alive + self._inner.get(step - 1, 0)
            if now > most:
                most, where = now, _described(nodes[step - 1]) if step else "its inputs"
        return most, where

    def _spans(self) -> Iterator[tuple[int, int, int]]:
        """For each buffer: the step that makes it, the last that needs it, and its size. Step 0 gives the inputs, step n the n-th node."""
        root: dict[str, str] = {}
        first: dict[str, int] = {value.name: 0 for value in self._graph.input if value.name not in self._constant}
        last = dict(first)
        for step, node in enumerate(self._graph.node, 1):
            for name in (*node.input, *free_names(node)):
                base = root.get(name, name)
                if base in first:
                    last[base] = step
            for position, name in enumerate(node.output):
                if not name or name in self._constant:
                    continue
                if node.op_type in _VIEWS and position == 0 and root.get(node.input[0], node.input[0]) in first:
                    root[name] = root.get(node.input[0], node.input[0])
                else:
                    first[name] = last[name] = step
        for value in self._graph.output:
            last[root.get(value.name, value.name)] = len(self._graph.node)
        yield from ((start, last[name], self._sizes.get(name) or 0) for name, start in first.items())

    def _value_bytes(self, value: onnx.ValueInfoProto) -> int | None:
        """Bytes of a tensor; None where a dimension is not known."""
        kind = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        if not kind.elem_type or not kind.HasField("shape") or None in dims:
            return None
        return math.ceil(math.prod(dim for dim in dims if dim is not None) * self._element(kind.elem_type))

    def _dense_bytes(self, dims: Iterable[int], elem_type: int) -> int:
        return math.ceil(math.prod(dims) * self._element(elem_type))

    def _attribute_bytes(self, node: onnx.NodeProto) -> int:
        dense = [(attribute.t.dims, attribute.t.data_type) for attribute in node.attribute if attribute.HasField("t")]
        sparse = [attribute.sparse_tensor for attribute in node.attribute if attribute.HasField("sparse_tensor")]
        return sum(self._dense_bytes(*each) for each in [*dense, *((tensor.dims, tensor.values.data_type) for tensor in sparse)])

    def _element(self, elem_type: int) -> float:
        """Bytes of one element; text is none of a GPU's business."""
        if elem_type == _FLOAT:
            return self._float_bytes
        dtype = from_onnx(elem_type)
        return _NARROW.get(elem_type, 0) if dtype is None else dtype.itemsize or 0


def _described(node: onnx.NodeProto) -> str:
    return f"{node.op_type} '{node.name or next(iter(node.output), '')}'"
