"""The walk itself: node by node, into the graphs of If and Loop, with the repairs applied and the facts of each result learned."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from tritongen.rewrite.document import describe
from tritongen.rewrite.facts import Fact, Shape, State, combine, of_type
from tritongen.rewrite.operands import align, give_rows
from tritongen.rewrite.pins import repair
from tritongen.rewrite.walk import Walk

Declared = Mapping[str, Shape]

_LOOP_OWN_INPUTS = 2  # trip count and condition


def walk_graph(walk: Walk, graph: onnx.GraphProto, declared: Declared, folder: Path) -> None:
    """Walk the nodes of a graph in order; the repaired nodes are in `walk.out` afterwards."""
    for original in graph.node:
        node = copy.deepcopy(original)
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            walk.constants[node.output[0]] = node.attribute[0].t
        before = len(walk.pins)
        if node.op_type == "If":
            _branches(walk, node, declared, folder)
        elif node.op_type == "Loop":
            _loop(walk, node, declared, folder)
        else:
            repair(walk, node)
            align(walk, node, folder)
            _learn(walk, node, declared, pinned=len(walk.pins) > before)
        walk.out.append(node)
        walk.producers.update(dict.fromkeys(node.output, node))


def _blame(walk: Walk, node: onnx.NodeProto, carrying: list[str], reason: str) -> None:
    """Record what fixes the batch where a node does not take another one: the node that folded the batch into other numbers, else the node itself."""
    for tensor in carrying:
        folding = _folding(walk, tensor)
        if folding is not None:
            axis, rows = max(walk.axes(folding.output[0]).items(), key=lambda found: found[1])
            reason = f"it puts the batch on axis {axis} with {rows} numbers of each row, and {describe(node)} takes as many as there are"
            walk.pin(folding, folding.input[0], reason)
            return
    walk.pin(node, next((name for name in node.input if name and name not in carrying), carrying[0]), reason)


def _folding(walk: Walk, tensor: str) -> onnx.NodeProto | None:
    """The node on the way to a tensor that put the batch and other numbers of a row on one axis; None where the batch has an axis of its own."""
    seen: set[str] = set()
    while tensor not in seen and max(walk.axes(tensor).values(), default=1) > 1:
        seen.add(tensor)
        node = walk.producers.get(tensor)
        if node is None or not node.input:
            return None
        source = next((name for name in node.input if walk.axes(name)), "")
        if max(walk.axes(source).values(), default=1) < max(walk.axes(tensor).values()):
            return node
        tensor = source
    return None


def _learn(walk: Walk, node: onnx.NodeProto, declared: Declared, *, pinned: bool) -> None:
    """Infer the facts of a node's outputs. Where it fails at the new size only, the node pins the batch."""
    try:
        old = walk.inference.infer(node, walk.facts, new=False)
    except onnx.shape_inference.InferenceError:
        old = {name: (0, State()) for name in node.output if name}  # wrong before any change of ours: nothing can be concluded from it
    try:
        new = walk.inference.infer(node, walk.facts, new=True)
    except onnx.shape_inference.InferenceError as error:
        new = {}
        carrying = [name for name in node.input if walk.axes(name)]
        if carrying and not pinned and any(state.shape is not None for _, state in old.values()):
            _blame(walk, node, carrying, _reason(error))
            pinned = True
    facts = combine(node, walk.facts, old, new, walk.sizes)
    for name, fact in facts.items():
        walk.facts[name] = replace(fact, new=State(), lost=None) if pinned else _completed(walk, node, name, fact, declared)


def _completed(walk: Walk, node: onnx.NodeProto, name: str, fact: Fact, declared: Declared) -> Fact:
    """A fact of which inference knows no shape, from the shape that the file declares: rows on axis 0 are taken for the batch where an input has it there."""
    shape = declared.get(name)
    if fact.old.shape is not None or not shape or walk.symbolic:
        return fact
    scaled = fact.varies and shape[0] == walk.sizes[0] and any(0 in walk.axes(each) for each in node.input)
    return replace(fact, old=State(shape), new=State((walk.sizes[1], *shape[1:]) if scaled else shape if not fact.varies else None))


def _reason(error: Exception) -> str:
    """ONNX's own words for what does not fit, on one line."""
    text = " ".join(str(error).split()).replace("[ShapeInferenceError] ", "")
    return f"with another batch size its inputs do not fit each other ({text.rpartition('): ')[2] or text})"


def _inner(walk: Walk, node: onnx.NodeProto, graph: onnx.GraphProto, declared: Declared, folder: Path) -> None:
    """Walk a graph inside `node`, and replace its nodes by the repaired ones."""
    outer, around = walk.out, walk.inside
    walk.out, walk.inside = [], (describe(node), *around)
    walk.store(graph, folder)
    inner_declared = {**declared, **{value.name: shape for value in (*graph.value_info, *graph.output) if (shape := of_type(value)[1]) is not None}}
    walk_graph(walk, graph, inner_declared, folder)
    del graph.node[:]
    graph.node.extend(walk.out)
    walk.out, walk.inside = outer, around
    for value in (*graph.input, *graph.output, *graph.value_info):
        _loosen(value, walk.fact(value.name), walk.sizes)


def _loosen(value: onnx.ValueInfoProto, fact: Fact, sizes: tuple[int, int]) -> None:
    """Take the fixed size off declared axes that carry the batch."""
    dims = value.type.tensor_type.shape.dim
    for axis in fact.axes(sizes):
        if axis < len(dims) and dims[axis].HasField("dim_value"):
            dims[axis].CopyFrom(onnx.TensorShapeProto.Dimension())


def _graph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    """A graph of a node. Raises KeyError where it is missing."""
    return {attribute.name: attribute.g for attribute in node.attribute}[name]


def _branches(walk: Walk, node: onnx.NodeProto, declared: Declared, folder: Path) -> None:
    """Both branches of an If; they must agree on where the batch is."""
    results: list[list[Fact]] = []
    before = len(walk.pins)
    for name in ("then_branch", "else_branch"):
        graph = _graph(node, name)
        _inner(walk, node, graph, declared, folder)
        results.append([walk.fact(value.name) for value in graph.output])
    for name, first, second in zip(node.output, *results, strict=False):
        axes = [fact.axes(walk.sizes) for fact in (first, second)]
        known = all(fact.new.shape is not None for fact in (first, second))
        if known and axes[0] != axes[1] and len(walk.pins) == before:
            fixed = "then" if not axes[0] else "else"
            walk.pin(node, "", f"'{name}' carries the batch from one branch only; its {fixed} branch gives a fixed number of rows")
        agreed = first if known and axes[0] == axes[1] else second if not known and second.new.shape is not None else first
        varies = first.varies or second.varies or walk.fact(node.input[0]).varies
        value_free = replace(agreed, old=State(agreed.old.shape), new=State(agreed.new.shape), varies=varies)
        walk.facts[name] = value_free if known and axes[0] == axes[1] else replace(value_free, new=State())


def _loop(walk: Walk, node: onnx.NodeProto, declared: Declared, folder: Path) -> None:
    """The body of a Loop. A state that starts without the batch and comes out with it gets its rows before the loop."""
    body = _graph(node, "body")
    _bind(walk, node, body)
    grown = _grown_states(walk, node, body, declared, folder)
    for index, axis, per_item in grown:
        give_rows(walk, node, index, axis, per_item, folder)
    _bind(walk, node, body)
    _inner(walk, node, body, declared, folder)
    states = len(node.input) - _LOOP_OWN_INPUTS
    for position, (name, value) in enumerate(zip(node.output, list(body.output)[1:], strict=False)):
        fact = walk.fact(value.name)
        if position >= states:
            fact = replace(fact, old=_stacked(fact.old), new=_stacked(fact.new))
        walk.facts[name] = replace(fact, old=State(fact.old.shape), new=State(fact.new.shape), varies=True)


def _bind(walk: Walk, node: onnx.NodeProto, body: onnx.GraphProto) -> None:
    """Give the body's inputs the facts of what the loop is given; their values change from turn to turn."""
    for value, name in zip(list(body.input)[_LOOP_OWN_INPUTS:], list(node.input)[_LOOP_OWN_INPUTS:], strict=False):
        fact = walk.fact(name)
        walk.facts[value.name] = replace(fact, old=State(fact.old.shape), new=State(fact.new.shape), varies=True)
    for value, elem_type in zip(body.input, (onnx.TensorProto.INT64, onnx.TensorProto.BOOL), strict=False):
        walk.facts[value.name] = Fact(elem_type, State(()), State(()), varies=False)


def _grown_states(walk: Walk, node: onnx.NodeProto, body: onnx.GraphProto, declared: Declared, folder: Path) -> list[tuple[int, int, int]]:
    """The states that carry the batch after one turn but not before, as (input of the loop, axis, rows per item). Walks a copy and forgets what it changed."""
    trial = copy.copy(walk)
    trial.facts, trial.constants, trial.producers = dict(walk.facts), dict(walk.constants), dict(walk.producers)
    trial.stored, trial.pins, trial.notes, trial.out = dict(walk.stored), [], [], []
    duplicate = copy.deepcopy(body)
    _inner(trial, node, duplicate, declared, folder)
    # What was put at the start of the outermost graph stays there.
    walk.facts.update({name: trial.facts[name] for each in walk.prelude for name in each.output})
    grown = []
    for position, (given, value) in enumerate(zip(list(node.input)[_LOOP_OWN_INPUTS:], list(duplicate.output)[1:], strict=False)):
        for axis, per_item in trial.fact(value.name).axes(walk.sizes).items():
            if axis not in walk.fact(given).axes(walk.sizes):
                grown.append((position + _LOOP_OWN_INPUTS, axis, per_item))
    return grown


def _stacked(state: State) -> State:
    return State((None, *state.shape)) if state.shape is not None else state
