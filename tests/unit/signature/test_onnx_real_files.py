"""`read_onnx` against the onnx package, on files that real exporters wrote."""

import importlib.util
import os
import sys
from pathlib import Path
from subprocess import run

import onnx
import onnxruntime
import pytest

from tritongen.errors import ModelFileError
from tritongen.signature import TensorSpec, read_onnx


def package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"the test extra installs {name}"
    assert spec.origin is not None
    return Path(spec.origin).parent


FILES = sorted(
    [
        *package("onnx").glob("backend/test/data/light/*.onnx"),
        *package("onnx").glob("backend/test/data/pytorch-*/*/model.onnx"),
        *package("onnxruntime").glob("datasets/*.onnx"),
        *package("rapidocr_onnxruntime").rglob("*.onnx"),
        *package("silero_vad").rglob("*.onnx"),
    ]
)


def stated(value: onnx.ValueInfoProto) -> tuple[str, int, tuple[object, ...] | None]:
    """A value as the onnx package reads it: name, element type, dimensions."""
    tensor = value.type.tensor_type
    dims = [getattr(dim, dim.WhichOneof("value") or "", None) for dim in tensor.shape.dim]
    shape = tuple(None if dim == "" or (isinstance(dim, int) and dim < 0) else dim for dim in dims)
    return value.name, tensor.elem_type, shape if tensor.HasField("shape") else None


def read(spec: TensorSpec) -> tuple[str, int, tuple[object, ...] | None]:
    return spec.name, spec.dtype.onnx, spec.shape


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_agrees_with_the_onnx_package(path: Path) -> None:
    model = onnx.load(path)
    if any(not value.type.HasField("tensor_type") for value in model.graph.output):
        with pytest.raises(ModelFileError, match="sequence value; Triton has only tensors"):
            read_onnx(path)
        return
    signature = read_onnx(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    assert [read(spec) for spec in signature.inputs] == [stated(value) for value in model.graph.input if value.name not in weights]
    assert [read(spec) for spec in signature.outputs] == [stated(value) for value in model.graph.output]
    assert signature.opsets == {opset.domain: opset.version for opset in model.opset_import}
    assert signature.ir_version == model.ir_version
    assert signature.producer == f"{model.producer_name} {model.producer_version}".strip()
    assert signature.custom_domains == set()
    assert signature.external_data == ()


def test_the_files_are_there() -> None:
    names = {path.name for path in FILES}
    assert {"light_resnet50.onnx", "logreg_iris.onnx", "mul_1.onnx", "silero_vad.onnx", "ch_PP-OCRv4_rec_infer.onnx"} <= names


@pytest.mark.parametrize("name", ["mul_1.onnx", "sigmoid.onnx"])
def test_agrees_with_onnx_runtime(name: str) -> None:
    path = package("onnxruntime") / "datasets" / name
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [(spec.name, list(spec.shape or ())) for spec in read_onnx(path).inputs] == [(value.name, value.shape) for value in session.get_inputs()]


def test_sequence_output_says_what_to_change() -> None:
    path = package("onnxruntime") / "datasets" / "logreg_iris.onnx"
    with pytest.raises(ModelFileError) as caught:
        read_onnx(path)
    (finding,) = caught.value.diagnostics
    assert finding.code == "TG031"
    assert "'probabilities'" in finding.message
    assert "zipmap=False" in finding.hint


def test_importing_the_reader_imports_no_heavy_package() -> None:
    """Start-up time: `tritongen --help` must not pay for onnx or numpy."""
    code = "import sys, tritongen.signature; print(sorted({'onnx', 'numpy', 'onnxruntime', 'google.protobuf'} & set(sys.modules)))"
    root = Path(read_onnx.__code__.co_filename).parents[2]
    result = run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(root)})
    assert result.stdout.strip() == "[]"
