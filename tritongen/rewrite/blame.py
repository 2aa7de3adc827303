"""Which node is to blame where a batch fails: the first that fails, or the first whose rows depend on each other.

The graph runs unoptimised, so that every node is there under its own name. Used only after a proof has failed; a model that does not run this way gets no
blame, and the failure stands without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from tritongen.proof import RuntimeErrors, text_array
from tritongen.rewrite.document import describe, real
from tritongen.rewrite.facts import Array, free_names, used_names
from tritongen.rewrite.running import Rows, allowed, deviation, largest

if TYPE_CHECKING:
    import onnxruntime

_AT_ONCE = 128  # bounds the memory that intermediate results take
Feed = Mapping[str, Array]


@dataclass(frozen=True)
class Suspect:
    """One tensor that a node computes; `shape_only`: from shapes alone, so that it may well depend on the size of the batch."""

    tensor: str
    node: onnx.NodeProto
    shape_only: bool


def session_of(model: onnx.ModelProto, folder: Path, *, optimised: bool = False) -> onnxruntime.InferenceSession:
    """A session for a changed model whose external data lies in `folder`, every node as it is unless `optimised`. Raises one of `RuntimeErrors()`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", real(folder))
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def ask(session: onnxruntime.InferenceSession, names: Sequence[str], feed: Feed) -> dict[str, Array]:
    """The values of some tensors. Raises one of `RuntimeErrors()`."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    wanted = {value.name for value in session.get_inputs()}
    fed = {name: text_array(array) for name, array in feed.items() if name in wanted}
    return dict(zip(names, session.run(list(names), fed, options), strict=True))


def _suspects(graph: onnx.GraphProto) -> list[Suspect]:
    """The tensors that nodes compute, in order, each with whether it follows from shapes alone."""
    constant = {tensor.name for tensor in graph.initializer}
    from_shapes: set[str] = set()
    found = []
    for node in graph.node:
        inputs = {name for name in (*node.input, *free_names(node)) if name} - constant
        shape_only = node.op_type in ("Shape", "Size") or inputs <= from_shapes
        for name in filter(None, node.output):
            if shape_only:
                from_shapes.add(name)
            found.append(Suspect(name, node, shape_only))
    return found


def failing_node(path: Path, feed: Feed) -> str:
    """The first node that fails with this feed, described; "" where it cannot be told.

    The graph up to a node fails exactly when it holds the failing one, so that the node is found in a logarithmic number of runs.
    """
    model = onnx.load(str(path), load_external_data=False)
    first, last = 0, len(model.graph.node)
    while first < last:
        middle = (first + last) // 2
        if _runs(_beginning(model, middle + 1), path.parent, feed):
            first = middle + 1
        else:
            last = middle
    return describe(model.graph.node[first]) if first < len(model.graph.node) else ""


def _beginning(model: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """The model that ends with its first `count` nodes."""
    part = onnx.ModelProto(ir_version=model.ir_version)
    part.opset_import.extend(model.opset_import)
    part.functions.extend(model.functions)
    part.graph.name = model.graph.name
    part.graph.node.extend(model.graph.node[:count])
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in part.graph.node[-1].output if name)
    used = used_names(part.graph)
    part.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in used)
    part.graph.sparse_initializer.extend(tensor for tensor in model.graph.sparse_initializer if tensor.values.name in used)
    part.graph.input.extend(value for value in model.graph.input if value.name in used)
    return part


def _runs(model: onnx.ModelProto, folder: Path, feed: Feed) -> bool:
    try:
        session = session_of(model, folder)
        ask(session, [value.name for value in session.get_outputs()], feed)
    except RuntimeErrors():
        return False
    return True


def mixing_node(path: Path, rows: Rows, size: int, tolerance: float) -> onnx.NodeProto | None:
    """The first node whose result for a batch of `size` is not that of its rows one by one; None where it cannot be told."""
    model = onnx.load(str(path), load_external_data=False)
    suspects = [suspect for suspect in _suspects(model.graph) if not suspect.shape_only]
    listed = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=suspect.tensor) for suspect in suspects if suspect.tensor not in listed)
    count = min(size, rows.count)
    try:
        session = session_of(model, path.parent)
        for start in range(0, len(suspects), _AT_ONCE):
            part = suspects[start : start + _AT_ONCE]
            names = [suspect.tensor for suspect in part]
            whole = ask(session, names, rows.batch(size))
            singles = [ask(session, names, rows.single(row)) for row in range(count)]
            for suspect in part:
                if not _rowwise(whole[suspect.tensor], [single[suspect.tensor] for single in singles], size, tolerance):
                    return suspect.node
    except RuntimeErrors():
        return None
    return None


def _rowwise(whole: object, singles: Sequence[object], size: int, tolerance: float) -> bool:
    """Whether a tensor of a batch consists of what its rows give on their own, along one axis; sequences and maps are taken to."""
    if not isinstance(whole, np.ndarray) or not all(isinstance(single, np.ndarray) for single in singles):
        return True
    parts = [np.asarray(single) for single in singles]
    first = parts[0]
    if whole.ndim != first.ndim:
        return False
    grown = [axis for axis in range(whole.ndim) if whole.shape[axis] != first.shape[axis]]
    if not grown:
        return all(_close(part, whole, tolerance) for part in parts)
    if len(grown) > 1 or whole.shape[grown[0]] != size * first.shape[grown[0]]:
        return False
    # A batch that left axis 0 for an axis of more than rows was folded into its neighbours.
    if grown[0] > 0 and first.shape[0] == 1 and first.shape[grown[0]] > 1:
        return False
    blocks = np.split(whole, size, axis=grown[0])
    return all(_close(parts[row % len(parts)], block, tolerance) for row, block in enumerate(blocks))


def _close(want: Array, got: Array, tolerance: float) -> bool:
    return deviation(want, got, largest(want)) <= allowed(tolerance, want)
