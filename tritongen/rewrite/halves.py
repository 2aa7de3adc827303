"""A graph of FP32 made into one of FP16, by onnxconverter-common, with what that needs before and after.

Before: every node has a name of its own, constants are initializers, those that a node in FP32 shares with others are given to each, casts and other nodes that
state FP32 state FP16, and the sizes that a graph computes from shapes stay in FP32 (FP16 counts to 2048). After: inputs and outputs get their types back by
casts, and two casts that cancel each other are gone.
"""

from __future__ import annotations

import graphlib
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tritongen.rewrite.document import graphs, subgraphs, tensors
from tritongen.rewrite.elementtypes import FLOATS, infer_types
from tritongen.rewrite.facts import free_names
from tritongen.rewrite.recipe import Convert

_MOST = float(np.finfo(np.float16).max)
_LEAST = float(np.finfo(np.float16).smallest_subnormal)
_OWN_DOMAINS = ("", "ai.onnx", "com.microsoft")
_STATES_TYPE = {"Cast": "to"} | dict.fromkeys(
    ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "EyeLike", "Bernoulli", "SequenceEmpty"), "dtype"
)
"""Operators that state what they make → the attribute."""

NARROW = "/fp16"
"""End of the name of the FP16 tensor behind an input or before an output of FP32."""

_FIRST_IR_WITHOUT_LISTED = 4  # before it every initializer had to be listed as an input


def to_fp16(model: onnx.ModelProto, how: Convert) -> list[str]:
    """Converts the model, whose weights are loaded, in place, and says what was done; nothing where there is no FP32 in it."""
    from onnx.inliner import inline_local_functions
    from onnxconverter_common import float16

    if model.functions:
        model.CopyFrom(inline_local_functions(model))
    if not _has_fp32(model):
        return []
    kept = _prepare(model, how, {*float16.DEFAULT_OP_BLOCK_LIST, *how.fp32_operators})
    own = {node.name for graph in graphs(model.graph) for node in graph.node}
    wide = [value.name for side in (model.graph.input, model.graph.output) for value in side if value.type.tensor_type.elem_type == TensorProto.FLOAT]
    before = sum(_nbytes(tensor) for tensor in tensors(model.graph))
    with warnings.catch_warnings(record=True) as clipped:
        warnings.simplefilter("always")
        float16.convert_float_to_float16(
            model,
            min_positive_val=_LEAST,
            max_finite_val=_MOST,
            keep_io_types=False,
            disable_shape_infer=True,
            op_block_list=[],
            node_block_list=sorted(kept),
            check_fp16_ready=False,
        )
    for graph in graphs(model.graph):
        del graph.value_info[:]  # what was inferred for the converter; its names of sizes are made up
    for graph in reversed(list(graphs(model.graph))):  # a node that is put elsewhere takes copies of its graphs along
        _sort(graph)
    _follow_initializers(model.graph)
    if how.keep_io_types:
        _widen(model.graph, wide)
    _cancel(model.graph, own)
    return list(_notes(model, kept, before, len(clipped)))


def node_label(node: onnx.NodeProto) -> str:
    """What a node is called in a spec: its name, or that of the first tensor that it computes where it has none."""
    return node.name or next(iter(node.output), "")


def _has_fp32(model: onnx.ModelProto) -> bool:
    values = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    return any(value.type.tensor_type.elem_type == TensorProto.FLOAT for value in values) or any(
        tensor.data_type == TensorProto.FLOAT for tensor in tensors(model.graph)
    )


def _prepare(model: onnx.ModelProto, how: Convert, operators: set[str]) -> set[str]:
    """Makes the graph one that the converter can take; the names of the nodes that stay in FP32. `operators`: types that do."""
    if model.ir_version < _FIRST_IR_WITHOUT_LISTED:
        stored = {tensor.name for tensor in model.graph.initializer}
        required = [value for value in model.graph.input if value.name not in stored]
        del model.graph.input[:]
        model.graph.input.extend(required)
        model.ir_version = _FIRST_IR_WITHOUT_LISTED
    chosen = {name for graph in graphs(model.graph) for node in graph.node if node_label(node) in how.fp32_nodes for name in node.output}
    _name_nodes(model.graph)
    for graph in graphs(model.graph):
        _store_constants(graph)
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)
    kept = {node.name for graph in graphs(model.graph) for node in graph.node if chosen.intersection(node.output)}
    for graph, known in zip(graphs(model.graph), infer_types(model), strict=True):
        stored = {tensor.name for tensor in graph.initializer}
        declared = {value.name for value in (*graph.input, *graph.output)}
        del graph.value_info[:]
        graph.value_info.extend(value for name, value in known.items() if name not in stored | declared)
        kept |= {node.name for node in graph.node if node.op_type in operators or node.domain not in _OWN_DOMAINS or not _takes_fp16(node, opset)}
        kept |= set(_sizing(graph, known))
        _part_initializers(graph, kept)
        for node in graph.node:
            _restate(node, kept)
    return kept


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a name that no other has; the first of a name keeps it."""
    seen = Counter(node.name for inner in graphs(graph) for node in inner.node)
    first: set[str] = {""}
    for index, node in enumerate(node for inner in graphs(graph) for node in inner.node):
        name = node.name
        if name in first:
            name = f"{name or node.op_type}/{index}"
            while name in seen:
                name += "_"
        first.add(name)
        seen[name] += 1
        node.name = name


def _store_constants(graph: onnx.GraphProto) -> None:
    """Make initializers out of Constant nodes, and say what ConstantOfShape fills in where it does not."""
    outputs = {value.name for value in graph.output}
    for node in list(graph.node):
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float32))))
        elif node.op_type == "Constant" and node.output[0] not in outputs and (tensor := _constant(node.attribute[0])) is not None:
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
            graph.node.remove(node)


def _constant(attribute: onnx.AttributeProto) -> onnx.TensorProto | None:
    """What a Constant node holds; None for text and sparse tensors, which no precision is about."""
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return onnx.TensorProto.FromString(value.SerializeToString())
    kind = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}.get(attribute.name)
    return None if kind is None else numpy_helper.from_array(np.array(value, kind))


def _takes_fp16(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ONNX lets an operator of its own have FP16 wherever it has FP32: quantizing ones do since opset 19 only."""
    if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type, opset, ""):
        return True
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    used = [place for places, names in ((schema.inputs, node.input), (schema.outputs, node.output)) for place, name in zip(places, names, strict=False) if name]
    return not any("tensor(float)" in place.types and "tensor(float16)" not in place.types for place in used)


def _sizing(graph: onnx.GraphProto, known: Mapping[str, onnx.ValueInfoProto]) -> Iterator[str]:
    """Nodes with floats that follow from shapes and constants alone: sizes in the making."""
    constant = {tensor.name for tensor in graph.initializer}
    sizes: set[str] = set()
    for node in graph.node:
        inputs = {name for name in (*node.input, *free_names(node)) if name} - constant
        if node.op_type in ("Shape", "Size") or (inputs and inputs <= sizes and not any(subgraphs(node))):
            sizes.update(node.output)
            if node.op_type not in ("Shape", "Size") and any(
                known[name].type.tensor_type.elem_type in FLOATS for name in (*node.input, *node.output) if name in known
            ):
                yield node.name
        elif not inputs and node.input:
            constant.update(node.output)


def _part_initializers(graph: onnx.GraphProto, kept: set[str]) -> None:
    """Give nodes that stay in FP32 initializers of their own where others read them, too: the converter would leave those for all in FP32."""
    stored = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}
    shared = {name for node in graph.node if node.name not in kept for name in node.input if name in stored}
    shared |= {name for node in graph.node for inner in subgraphs(node) for name in _read_inside(inner) if name in stored}
    for node in graph.node:
        for index, name in enumerate(node.input) if node.name in kept else ():
            if name in shared:
                copy = graph.initializer.add()
                copy.CopyFrom(stored[name])
                copy.name = node.input[index] = f"{name}/fp32/{node.name}/{index}"


def _read_inside(graph: onnx.GraphProto) -> set[str]:
    return {name for inner in graphs(graph) for node in inner.node for name in node.input}


def _restate(node: onnx.NodeProto, kept: set[str]) -> None:
    """Let a node that states to make FP32 make FP16."""
    named = _STATES_TYPE.get(node.op_type)
    for attribute in node.attribute:
        if named == attribute.name and attribute.i == TensorProto.FLOAT and node.name not in kept:
            attribute.i = TensorProto.FLOAT16
    if (
        node.op_type in ("RandomNormal", "RandomUniform", "SequenceEmpty")
        and node.name not in kept
        and not any(attribute.name == "dtype" for attribute in node.attribute)
    ):
        node.attribute.append(helper.make_attribute("dtype", TensorProto.FLOAT16))


def _sort(graph: onnx.GraphProto) -> None:
    """Put every node behind those that it reads from. The converter's own order forgets what graphs inside a node read."""
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output}
    needs = {index: {makers[name] for name in (*node.input, *free_names(node)) if name in makers} for index, node in enumerate(graph.node)}
    nodes = [graph.node[index] for index in graphlib.TopologicalSorter(needs).static_order()]
    ordered = onnx.GraphProto(node=nodes)
    del graph.node[:]
    graph.node.extend(ordered.node)


def _follow_initializers(graph: onnx.GraphProto) -> None:
    """Give optional inputs the type that their default has now."""
    stored = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in graph.input:
        if value.name in stored:
            value.type.tensor_type.elem_type = stored[value.name]


def _widen(graph: onnx.GraphProto, names: list[str]) -> None:
    """Give inputs and outputs FP32 back, with a cast behind or before each."""
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name in names and value.name not in stored]
    outputs = [value for value in graph.output if value.name in names]
    for value in (*inputs, *outputs):
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    passed = {value.name: value.name + NARROW for value in (*inputs, *outputs)}
    _rename(graph, passed, written={value.name for value in outputs})
    given = {value.name for value in inputs}
    front = [_cast(name, passed[name], TensorProto.FLOAT16) for name in sorted(given)]
    back = [_cast(passed[value.name], value.name, TensorProto.FLOAT) for value in outputs if value.name not in given]
    nodes = [*front, *graph.node, *back]
    del graph.node[:]
    graph.node.extend(nodes)


def _cast(source: str, target: str, kind: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [source], [target], name=f"cast to {target}", to=kind)


def _rename(graph: onnx.GraphProto, names: Mapping[str, str], *, written: set[str]) -> None:
    """Let nodes, those in inner graphs too, read other tensors, and write those in `written` under the other name."""
    for inner in graphs(graph):
        for node in inner.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            if inner is graph:
                node.output[:] = [names[name] if name in written else name for name in node.output]


def _cancel(graph: onnx.GraphProto, own: set[str]) -> None:
    """Take out FP32 → FP16 → FP32, where neither cast is one of the model's `own` nodes, and casts that nobody reads."""
    made = {node.output[0]: node for node in graph.node if node.op_type == "Cast" and node.name not in own}
    outputs = {value.name for value in graph.output}
    direct = {}
    for node in graph.node:
        first = made.get(node.input[0]) if node.op_type == "Cast" and node.name not in own and _kind(node) == TensorProto.FLOAT else None
        if first is not None and _kind(first) == TensorProto.FLOAT16:
            direct[node.output[0]] = first.input[0]
    for node in graph.node:
        if node.op_type == "Cast" and node.output[0] in direct.keys() & outputs:
            node.CopyFrom(helper.make_node("Identity", [direct[node.output[0]]], list(node.output), name=node.name))
    _rename(graph, {name: source for name, source in direct.items() if name not in outputs}, written=set())
    read = {value.name for inner in graphs(graph) for value in inner.output}
    nodes = []
    for node in reversed(graph.node):
        if node.name in own or node.op_type != "Cast" or node.output[0] in read:
            read.update((*node.input, *free_names(node)))
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(reversed(nodes))


def _kind(cast: onnx.NodeProto) -> int:
    return next(attribute.i for attribute in cast.attribute if attribute.name == "to")


def _nbytes(tensor: onnx.TensorProto) -> int:
    return len(tensor.raw_data) + 4 * len(tensor.float_data) + 4 * len(tensor.int32_data) + 8 * len(tensor.int64_data)


def _notes(model: onnx.ModelProto, kept: set[str], before: int, clipped: int) -> Iterator[str]:
    after = sum(_nbytes(tensor) for tensor in tensors(model.graph))
    yield f"FP16: the weights have {after:,} bytes of {before:,}"
    stay = Counter(node.op_type for graph in graphs(model.graph) for node in graph.node if node.name in kept)
    if stay:
        yield f"in FP32 as before: {', '.join(f'{count} {name}' for name, count in sorted(stay.items()))}"
    if clipped:
        yield f"{clipped} times a weight had values that FP16 does not hold; they became its largest ({_MOST:.0f}) or smallest ({_LEAST:.1g}) number"
