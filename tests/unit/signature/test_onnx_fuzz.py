"""Damaged and random bytes: `read_onnx` gives a signature or a ModelFileError, and never disagrees with the onnx package."""

import re
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tritongen.errors import ModelFileError
from tritongen.signature import Signature, read_onnx


def rich_model() -> bytes:
    """A small model that has everything the reader walks: defaults, a sub-graph, a function, external data, all kinds of dimensions."""
    weight = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    branch = helper.make_graph([helper.make_node("Scale", ["x"], ["t"], domain="d")], "t", [], [helper.make_tensor_value_info("t", 1, None)], [weight])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch), helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0, 3.0])]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", None, 3, -1]), helper.make_tensor_value_info("c", 9, []), helper.make_tensor_value_info("d", 1, [1])]
    outputs = [helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("k", 1, ["?"])]
    default = helper.make_tensor("d", 1, [1], [0.5])
    graph = helper.make_graph(nodes, "g", inputs, outputs, [default])
    function = helper.make_function("d", "Scale", ["X"], ["Y"], [helper.make_node("Relu", ["X"], ["Y"])], [helper.make_opsetid("", 17)])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("d", 1)], functions=[function])
    return model.SerializeToString()


SEED = rich_model()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "w.bin").write_bytes(bytes(8))
    return folder / "model.onnx"


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """The model with flipped bits, overwritten bytes, a cut, or a piece moved, doubled or removed."""
    content = bytearray(SEED)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["flip", "set", "cut", "splice", "remove"]))
        at = draw(st.integers(0, len(content) - 1))
        if kind == "flip":
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set":
            content[at] = draw(st.integers(0, 255))
        elif kind == "cut" and at > len(content) // 2:
            del content[at:]
        elif kind == "splice":
            start = draw(st.integers(0, len(content) - 1))
            content[at:at] = content[start : start + draw(st.integers(1, 40))]
        elif kind == "remove" and len(content) > 60:
            del content[at : at + draw(st.integers(1, 8))]
    return bytes(content)


def read(path: Path, content: bytes) -> Signature | None:
    path.write_bytes(content)
    try:
        return read_onnx(path)
    except ModelFileError as error:
        findings = error.diagnostics
    assert findings
    assert all(re.fullmatch("TG0[23][0-9]", finding.code) and finding.message and finding.hint for finding in findings)
    return None


def border(values: list[onnx.ValueInfoProto]) -> list[tuple[str, int, tuple[object, ...] | None]]:
    """Names, types and dimensions as the onnx package reads them."""
    found = []
    for value in values:
        tensor = value.type.tensor_type
        dims = [getattr(dim, dim.WhichOneof("value") or "", None) for dim in tensor.shape.dim]
        shape = tuple(None if dim == "" or (isinstance(dim, int) and dim < 0) else as_text(dim) for dim in dims)
        found.append((value.name, tensor.elem_type, shape if tensor.HasField("shape") else None))
    return found


def as_text(dim: object) -> object:
    """protobuf gives a string that is not UTF-8 as bytes."""
    return dim.decode("utf-8", "backslashreplace") if isinstance(dim, bytes) else dim


def compare(signature: Signature, content: bytes) -> None:
    """Where the onnx package accepts the file too, both must see the same model."""
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError:
        return  # it parses what we skip: the inside of names, payloads and metadata
    weights = {tensor.name for tensor in model.graph.initializer} | {sparse.values.name for sparse in model.graph.sparse_initializer}
    required = [value for value in model.graph.input if value.name not in weights]
    assert [(spec.name, spec.dtype.onnx, spec.shape) for spec in signature.inputs] == border(required)
    assert [(spec.name, spec.dtype.onnx, spec.shape) for spec in signature.outputs] == border(list(model.graph.output))
    assert signature.ir_version == model.ir_version


SETTINGS = settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def test_the_seed_itself_is_read(target: Path) -> None:
    signature = read(target, SEED)
    assert signature is not None
    assert signature.input("x").shape == ("N", None, 3, None)
    assert [spec.name for spec in signature.optional_inputs] == ["d"]
    assert [entry.location for entry in signature.external_data] == ["w.bin"]
    compare(signature, SEED)


@SETTINGS
@given(content=mutated())
def test_mutated_models(target: Path, content: bytes) -> None:
    signature = read(target, content)
    if signature is not None:
        compare(signature, content)


@SETTINGS
@given(content=st.binary(min_size=1, max_size=200))
def test_random_bytes(target: Path, content: bytes) -> None:
    assert read(target, content) is None


@settings(SETTINGS, max_examples=300)
@given(data=st.data())
def test_a_mutated_border(target: Path, data: st.DataObject) -> None:
    """Bytes changed inside the list of graph inputs must be refused, or be read as the onnx package reads them."""
    start = SEED.index(b"\x5a")
    content = bytearray(SEED)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(start, len(SEED) - 1))] = data.draw(st.integers(0, 255))
    signature = read(target, bytes(content))
    if signature is not None:
        compare(signature, bytes(content))
