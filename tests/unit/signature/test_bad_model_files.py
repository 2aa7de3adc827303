"""What a user is told when the file is missing, is something else, or is damaged. Never a traceback, never a wait."""

import contextlib
import gzip
import io
import json
import os
import pickle
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.signature import read_onnx

Save = Callable[..., Path]
Problems = Callable[[Path], dict[str, str]]


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """As a user without special rights, whoever runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"weights")
    return buffer.getvalue()


def saved_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


SAFETENSORS = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
ULTRALYTICS = b'{"names": {"0": "person"}}'


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", "TG023", "empty (0 bytes)"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102442450\n", "TG024", "git lfs pull"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "TG025", "HTML page"),
        (b"\r\n  <HTML>\n<title>404</title>", "TG025", "HTML page"),
        (b"ftrt" + bytes(64), "TG025", "a TensorRT plan"),
        (b"vtrt" + bytes(64), "TG025", "a plan of TensorRT-RTX"),
        (len(ULTRALYTICS).to_bytes(4, "little") + ULTRALYTICS + b"ftrt", "TG025", "Ultralytics"),
        (zipped(), "TG025", "torch.onnx.export"),
        (pickle.dumps({"w": 1}), "TG025", "a Python pickle"),
        (b"\x1c\0\0\0TFL3" + bytes(32), "TG025", "TensorFlow Lite"),
        (b"\x1c\0\0\0ORTM" + bytes(32), "TG025", ".ort model"),
        (len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS, "TG025", "safetensors"),
        (gzip.compress(b"model"), "TG025", "gunzip"),
        (saved_array(), "TG025", "a numpy array"),
        (b'\n{"error": "not found"}', "TG025", "JSON"),
        (b'<?xml version="1.0"?><net name="m">', "TG025", "OpenVINO"),
        (b"name: resnet\nbackend: onnxruntime\n", "TG025", "begins with 'name: resnet"),
        ("modèle".encode() * 200, "TG025", "the file is text"),
        (b"\xff" * 100, "TG027", "a number of more than ten bytes"),
        (b"\x0f" + bytes(100), "TG027", "unknown wire type 7"),
        (b"\x08\x08\x00\x00", "TG027", "impossible tag 0"),
        (b"\x08\x08\x3c", "TG027", "end of a group that never began"),
        (b"\x08\x08", "TG028", "no ONNX graph"),
        (TensorProto(name="t", data_type=1, dims=[1], float_data=[1.0]).SerializeToString(), "TG027", "not an ONNX model"),
        (onnx.GraphProto(name="graph").SerializeToString(), "TG028", "no ONNX graph"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_kind_of_file(content, code, said, save: Save, problems: Problems) -> None:
    found = problems(save(content))
    assert said in found[code]


def test_missing_file_names_its_neighbours(save: Save, problems: Problems, tmp_path: Path) -> None:
    save(b"x", "resnet50.onnx")
    found = problems(tmp_path / "resnet5O.onnx")
    assert set(found) == {"TG020"}
    assert f"did you mean {tmp_path / 'resnet50.onnx'}?" in found["TG020"]


def test_missing_folder_is_named(problems: Problems, tmp_path: Path) -> None:
    assert f"the folder {tmp_path / 'no'} does not exist" in problems(tmp_path / "no" / "such" / "model.onnx")["TG020"]


def test_a_link_to_nothing(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to("gone.onnx")
    assert "points to gone.onnx, which does not exist" in problems(tmp_path / "model.onnx")["TG020"]


def test_links_in_a_circle(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to("model.onnx")
    assert "Too many levels of symbolic links" in problems(tmp_path / "model.onnx")["TG022"]


@pytest.mark.parametrize("name", ["a\0b.onnx", "\ud800.onnx"])
def test_a_path_that_no_file_can_have(name: str, problems: Problems) -> None:
    assert set(problems(Path(name))) == {"TG020"}


def test_a_name_that_is_too_long(problems: Problems, tmp_path: Path) -> None:
    assert "File name too long" in problems(tmp_path / ("m" * 300))["TG022"]


def test_a_directory_names_the_model_in_it(model, save: Save, problems: Problems, tmp_path: Path) -> None:
    path = save(model, "model.onnx/model.onnx")
    assert str(path) in problems(path.parent)["TG021"]
    save(model, "model.onnx/second.onnx")
    assert "model.onnx, second.onnx" in problems(path.parent)["TG021"]


def test_a_fifo_is_refused_at_once(problems: Problems, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    assert "FIFO" in problems(tmp_path / "model.onnx")["TG021"]


def test_devices_and_sockets(problems: Problems, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "character device" in problems(Path("/dev/zero"))["TG021"]
    monkeypatch.chdir(tmp_path)  # a socket's path has room for some hundred bytes only
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind("model.onnx")
        assert "a socket" in problems(Path("model.onnx"))["TG021"]


def test_no_permission(model, save: Save, problems: Problems) -> None:
    path = save(model)
    path.chmod(0)
    with unprivileged():
        found = problems(path)
    assert "Permission denied" in found["TG022"]
    assert "chmod" in found["TG022"]


def test_every_cut_of_a_real_file(model, save: Save, problems: Problems) -> None:
    """Wherever a copy stopped, the user learns that the file is not whole."""
    content = model.SerializeToString()
    for length in range(1, len(content)):
        found = problems(save(content[:length]))
        assert set(found) <= {"TG026", "TG027", "TG028", "TG025"}, length
        if length > 40:
            assert "cut short" in found.get("TG026", "") or "a file cut exactly behind its graph" in found["TG028"], length


def nested_bytes(levels: int) -> bytes:
    """The same by hand, for more levels than the onnx package lets anyone build."""
    graph = b""
    for _ in range(levels):
        attribute = b"\x32" + varint(len(graph)) + graph
        node = b"\x2a" + varint(len(attribute)) + attribute
        graph = b"\x0a" + varint(len(node)) + node
    return b"\x08\x08\x3a" + varint(len(graph)) + graph


def test_a_cut_inside_a_weight(model, save: Save, problems: Problems) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(100_000, np.float32), "big"))
    content = model.SerializeToString()
    found = problems(save(content[: len(content) // 2]))
    assert set(found) == {"TG026"}
    assert f"it has {len(content) // 2:,}" in found["TG026"]


def nested(levels: int) -> onnx.ModelProto:
    """A model whose If nodes hold graphs in graphs, so many levels deep."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], domain="deepest")], "g", [], [helper.make_tensor_value_info("y", 1, [1])])
    for _ in range(levels):
        graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=graph)], "g", [], [helper.make_tensor_value_info("y", 1, [1])])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def test_graphs_nested_as_deep_as_protobuf_allows(save: Save) -> None:
    assert read_onnx(save(nested(30))).custom_domains == {"deepest"}


def test_graphs_nested_deeper(save: Save, problems: Problems) -> None:
    assert "nested more than 100 protobuf levels" in problems(save(nested_bytes(2000)))["TG027"]


def test_more_than_protobuf_can_hold(model, save: Save, problems: Problems) -> None:
    """A sparse file: 2 GiB of zeros in one weight, which take no room on the disk."""
    head = model.SerializeToString() + b"\x72" + varint(1 << 31)  # metadata_props, which is skipped by its length
    path = save(head)
    os.truncate(path, len(head) + (1 << 31))
    found = problems(path)
    assert set(found) == {"TG037"}
    assert "save_as_external_data=True" in found["TG037"]


def varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def test_millions_of_values_written_one_by_one_do_not_hang(save: Save) -> None:
    """Old exporters write `float_data` unpacked, tree ensembles a field for each of their numbers and strings."""
    floats = b"\x25\0\0\x80\x3f" * 4_000_000
    whole = b"\x40\xac\x02" * 1_000_000
    words = b"\x4a\x09BRANCH_EQ" * 300_000
    tensor = b"\x08\x02\x10\x01" + floats + b"\x42\x01w"
    attribute = b"\x0a\x01n" + whole + words + b"\xa0\x01\x07"
    node = b"\x2a" + varint(len(attribute)) + attribute
    graph = b"\x0a" + varint(len(node)) + node + b"\x2a" + varint(len(tensor)) + tensor
    border = onnx.GraphProto(input=[helper.make_tensor_value_info("x", 1, ["N"])], output=[helper.make_tensor_value_info("y", 1, ["N"])])
    graph += border.SerializeToString()
    content = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]).SerializeToString() + b"\x3a" + varint(len(graph)) + graph
    path = save(content)
    begin = time.perf_counter()
    signature = read_onnx(path)
    assert time.perf_counter() - begin < 20
    assert signature.input("x").shape == ("N",)
