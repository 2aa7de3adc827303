"""Small ONNX models, made with the onnx package, that the tests of this folder change to their needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.errors import ModelFileError
from tritongen.signature import read_onnx


def add_model() -> onnx.ModelProto:
    """x [N, 2] + w [2] -> y [N, 2]; w is an initializer."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "add",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [numpy_helper.from_array(np.array([1, 2], np.float32), "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)], producer_name="tests", producer_version="1")


@pytest.fixture
def model() -> onnx.ModelProto:
    return add_model()


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a model, or bytes, to a file and gives its path."""

    def write(content: onnx.ModelProto | bytes, name: str = "model.onnx") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
        return path

    return write


@pytest.fixture
def problems() -> Callable[[Path], dict[str, str]]:
    """What a user is told about a bad file: the message by code. Each finding must say where it is and what to do."""

    def read(path: Path) -> dict[str, str]:
        with pytest.raises(ModelFileError) as caught:
            read_onnx(path)
        assert caught.value.exit_code == 2
        found: dict[str, str] = {}
        for diagnostic in caught.value.diagnostics:
            assert diagnostic.location is not None
            assert diagnostic.hint
            assert diagnostic.consequence
            found[diagnostic.code] = f"{found.get(diagnostic.code, '')}{diagnostic}\n{diagnostic.hint}\n"
        return found

    return read
