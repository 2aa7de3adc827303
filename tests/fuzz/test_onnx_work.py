"""How much work the ONNX reader does: crafted bytes are given up within two seconds, and the largest real graphs are read. `make fuzz` runs it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tritongen.errors import ModelFileError
from tritongen.signature import Signature, read_onnx

LIMIT_S = 2.0
SIZE = 40_000_000
NODES, WEIGHT_BYTES = 100_000, 20_000


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def within(tags: bytes, content: bytes) -> bytes:
    """The content in messages within messages; the outermost tag comes first."""
    for tag in reversed(tags):
        content = bytes((tag,)) + varint(len(content)) + content
    return content


def many(piece: bytes) -> bytes:
    return piece * (SIZE // len(piece))


def numbered(size: int) -> list[bytes]:
    return [b"%08d" % index for index in range(SIZE // size)]


GRAPH, NODE, WEIGHT, INPUT = b"\x3a", b"\x3a\x0a", b"\x3a\x2a", b"\x3a\x5a"
ATTRIBUTE, TYPE = NODE + b"\x2a", INPUT + b"\x12"
HOSTILE = {
    "empty nodes": lambda: within(GRAPH, many(b"\x0a\0")),
    "convolutions": lambda: within(GRAPH, many(within(b"\x0a\x22", b"Conv"))),
    "domains": lambda: within(GRAPH, b"".join(within(b"\x0a\x3a", name) for name in numbered(12))),
    "inputs and outputs in turns": lambda: within(NODE, many(b"\x0a\0\x12\0")),
    "empty attributes": lambda: within(NODE, many(b"\x2a\0")),
    "numbers": lambda: within(ATTRIBUTE, many(b"\x40" + b"\xff" * 9 + b"\x01")),
    "empty strings": lambda: within(ATTRIBUTE, many(b"\x4a\0")),
    "parts of a tensor": lambda: within(ATTRIBUTE, many(b"\x2a\0")),
    "parts of a graph": lambda: within(ATTRIBUTE, many(b"\x32\0")),
    "graphs in attributes": lambda: within(GRAPH, many(within(b"\x0a\x2a", b"\x5a\0" * 40))),
    "graphs": lambda: many(b"\x3a\0"),
    "functions": lambda: many(b"\xca\x01\0"),
    "opsets": lambda: many(b"\x42\0"),
    "empty weights": lambda: within(GRAPH, many(b"\x2a\0")),
    "names of weights": lambda: within(GRAPH, b"".join(within(b"\x2a\x42", name) for name in numbered(12))),
    "long names": lambda: within(GRAPH, b"".join(within(b"\x2a\x42", name + bytes(900_000)) for name in numbered(900_000))),
    "dims": lambda: within(WEIGHT, many(b"\x08\x01")),
    "packed dims": lambda: within(GRAPH, many(within(b"\x2a\x0a", b"\x01" * 1_000_000))),
    "sparse weights": lambda: within(GRAPH, many(b"\x7a\0")),
    "records of external data": lambda: within(WEIGHT, b"\x70\x01" + many(b"\x6a\x04\x0a\0\x12\0")),
    "external weights": lambda: within(GRAPH, many(within(b"\x2a", b"\x70\x01" + within(b"\x6a", b"\x0a\x08location\x12\x01w")))),
    "inputs": lambda: within(GRAPH, b"".join(within(b"\x5a\x0a", name) for name in numbered(12))),
    "types of inputs": lambda: within(GRAPH, many(within(b"\x5a\x12\x0a", b"\x12\0"))),
    "parts of a type": lambda: within(TYPE, many(b"\x0a\0")),
    "parts of a shape": lambda: within(TYPE + b"\x0a", many(b"\x12\0")),
    "a shape": lambda: within(TYPE + b"\x0a\x12", many(b"\x0a\x02\x08\x01")),
    "groups": lambda: many(b"\x0b\x0c"),
    "groups in groups": lambda: many(b"\x0b" * 90 + b"\x0c" * 90),
    "unknown fields": lambda: within(GRAPH, many(b"\x08\0")),
    "long tags": lambda: within(GRAPH, many(b"\xf8\xff\x03" + b"\x80" * 9 + b"\x01")),
}


def read(path: Path) -> tuple[Signature | None, list[str], float]:
    """The signature, or the codes of what is wrong; and the CPU seconds that took."""
    begin = time.process_time()
    try:
        signature, codes = read_onnx(path), []
    except ModelFileError as error:
        signature, codes = None, sorted({finding.code for finding in error.diagnostics})
    return signature, codes, time.process_time() - begin


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", list(HOSTILE))
def test_crafted_bytes_are_answered_within_two_seconds(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08" + HOSTILE[kind]())
    signature, codes, seconds = read(path)
    assert signature is None
    assert codes
    assert min(seconds, read(path)[2] if seconds > LIMIT_S else seconds) < LIMIT_S


def write_a_large_model(path: Path) -> None:
    """Two gigabytes, most of them holes: 100,000 nodes with attributes, as many weights of 20 kB, and a shape for each tensor between them."""
    names = [f"/model/layers.{index // 40}/t_{index}" for index in range(NODES + 1)]
    weights = [f"model.layers.{index // 40}.weight_{index}" for index in range(NODES)]
    nodes, shapes, heads = bytearray(), bytearray(), []
    for index in range(NODES):
        node = helper.make_node("Add", [names[index], weights[index]], [names[index + 1]], f"/model/layers.{index // 40}/Add_{index}", axis=index % 2)
        nodes += within(b"\x0a", node.SerializeToString())
        shapes += within(b"\x6a", helper.make_tensor_value_info(names[index], TensorProto.FLOAT, ["N", WEIGHT_BYTES // 4]).SerializeToString())
        head = TensorProto(dims=[WEIGHT_BYTES // 4], data_type=TensorProto.FLOAT, name=weights[index]).SerializeToString() + b"\x4a" + varint(WEIGHT_BYTES)
        heads.append(b"\x2a" + varint(len(head) + WEIGHT_BYTES) + head)
    border = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WEIGHT_BYTES // 4]).SerializeToString() for name in (names[0], names[-1])]
    rest = within(b"\x5a", border[0]) + within(b"\x62", border[1]) + bytes(shapes)
    with path.open("wb") as file:
        graph = len(nodes) + sum(map(len, heads)) + NODES * WEIGHT_BYTES + len(rest)
        file.write(b"\x08\x08\x42\x02\x10\x11\x3a" + varint(graph) + nodes)
        for head in heads:
            file.write(head)
            file.seek(WEIGHT_BYTES, os.SEEK_CUR)
        file.write(rest)


@pytest.mark.fuzz
def test_a_model_of_two_gigabytes_and_a_hundred_thousand_nodes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    write_a_large_model(path)
    assert 2_000_000_000 < path.stat().st_size < 1 << 31
    signature, codes, _ = read(path)
    assert signature is not None, codes
    assert [tensor.describe() for tensor in (*signature.inputs, *signature.outputs)] == [
        "/model/layers.0/t_0 FP32 [N, 5000]",
        "/model/layers.2500/t_100000 FP32 [N, 5000]",
    ]


def test_a_graph_over_the_limit_is_said_to_be_a_limit_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(within(GRAPH, b"\x2a\0" * 800_000))
    with pytest.raises(ModelFileError, match=r"more than 3,000,000 steps") as caught:
        read_onnx(path)
    (finding,) = caught.value.diagnostics
    assert (finding.code, "Triton may load it" in finding.consequence) == ("TG038", True)
