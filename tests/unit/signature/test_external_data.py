"""References to data files beside the model: found everywhere, checked against the files, held to ONNX Runtime's rules."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tritongen.errors import ModelFileError
from tritongen.signature import ExternalData, read_onnx

Save = Callable[..., Path]
Problems = Callable[[Path], dict[str, str]]
FOUR_FLOATS = np.arange(4, dtype=np.float32).tobytes()


def external(name: str = "w", location: str | None = "w.bin", offset: object = None, length: object = None, dims=(2,), data_type=1) -> TensorProto:
    tensor = TensorProto(name=name, data_type=data_type, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, entry in (("location", location), ("offset", offset), ("length", length)):
        if entry is not None:
            tensor.external_data.add(key=key, value=str(entry))
    return tensor


@pytest.fixture
def put(model, save: Save) -> Callable[..., Path]:
    """Saves the model with its weight in another file."""

    def write(tensor: TensorProto, name: str = "model.onnx") -> Path:
        model.graph.initializer[0].CopyFrom(tensor)
        return save(model, name)

    return write


def loads(path: Path) -> bool:
    """ONNX Runtime's verdict."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001 - its exceptions have no common base
        return False
    return True


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({}, ExternalData("w.bin", 0, None, "w")),
        ({"offset": 4, "length": 8}, ExternalData("w.bin", 4, 8, "w")),
        ({"length": 0}, ExternalData("w.bin", 0, None, "w")),
        ({"location": "./w.bin", "offset": 8}, ExternalData("./w.bin", 8, None, "w")),
        ({"location": "sub/../w.bin"}, ExternalData("sub/../w.bin", 0, None, "w")),
        ({"location": "..w.bin"}, ExternalData("..w.bin", 0, None, "w")),
    ],
)
def test_references_that_hold(reference, expected, put, save: Save, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    save(FOUR_FLOATS, "w.bin")
    save(FOUR_FLOATS, "..w.bin")
    path = put(external(**reference))
    assert loads(path)
    assert read_onnx(path).external_data == (expected,)


@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ({"location": "nope.bin"}, "TG034", "'nope.bin' is missing; it holds 'w'"),
        ({"location": "sub"}, "TG034", "should be a file with external data of model.onnx"),
        ({"location": r"data\w.bin"}, "TG034", "saved on Windows"),
        ({"location": "w" * 300}, "TG034", "cannot be read: File name too long"),
        ({"location": "/etc/hostname"}, "TG033", "an absolute path"),
        ({"location": "../outside.bin"}, "TG033", "leads out of the model's folder"),
        ({"location": "link.bin"}, "TG033", "leads out of the model's folder"),
        ({"location": None}, "TG036", "it names no location"),
        ({"location": ""}, "TG036", "it names no location"),
        ({"location": "a\0b"}, "TG036", "is not a file name"),
        ({"offset": "abc"}, "TG036", "its offset 'abc' is not a whole number of bytes"),
        ({"offset": -4}, "TG036", "its offset '-4' is not a whole number"),
        ({"offset": ""}, "TG036", "its offset '' is not a whole number"),
        ({"length": 4}, "TG036", "states 4 bytes, but the tensor's shape and type need 8"),
        ({"length": 12}, "TG036", "states 12 bytes, but the tensor's shape and type need 8"),
        ({"offset": 12}, "TG035", "has 16 bytes, but 'w' ends at byte 20"),
        ({"offset": 10**9, "length": 8}, "TG035", "ends at byte 1,000,000,008"),
    ],
)
def test_references_that_do_not_hold(reference, code, said, put, save: Save, problems: Problems, tmp_path: Path) -> None:
    save(FOUR_FLOATS, "models/w.bin")
    save(FOUR_FLOATS, "outside.bin")
    (tmp_path / "models" / "sub").mkdir()
    (tmp_path / "models" / "link.bin").symlink_to("../outside.bin")
    path = put(external(**reference), "models/model.onnx")
    assert not loads(path)
    found = problems(path)
    assert set(found) == {code}
    assert said in found[code]


def test_a_location_that_leaves_the_folder_and_comes_back(put, save: Save, problems: Problems) -> None:
    """ONNX Runtime loads it where it is, but a copy in a model repository has another folder name."""
    save(FOUR_FLOATS, "models/w.bin")
    path = put(external(location="../models/w.bin"), "models/model.onnx")
    assert loads(path)
    assert set(problems(path)) == {"TG033"}


@pytest.mark.parametrize(
    ("location", "outside"),
    [("w.bin", ""), ("../{folder}/w.bin", ""), ("../w.bin", "a path that leads out of the model's folder"), ("/nowhere/w.bin", "an absolute path")],
)
def test_a_model_that_stays_where_it_is_may_have_its_data_anywhere(location, outside, put, save: Save, tmp_path: Path) -> None:
    save(FOUR_FLOATS, "w.bin")
    (tmp_path.parent / "w.bin").write_bytes(FOUR_FLOATS)
    path = put(external(location=location.format(folder=tmp_path.name)))
    (found,) = read_onnx(path, confined=False).external_data
    assert found.outside == outside


def test_data_outside_that_is_missing_is_missing(put, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as raised:
        read_onnx(put(external(location="../nowhere.bin")), confined=False)
    assert [finding.code for finding in raised.value.diagnostics] == ["TG034"]


def test_a_location_that_is_not_utf8(model, save: Save, problems: Problems) -> None:
    model.graph.initializer[0].CopyFrom(external(location="zzzz"))
    path = save(model.SerializeToString().replace(b"zzzz", b"z\xff\xfez"))
    assert "is not a file name in UTF-8" in problems(path)["TG036"]


def test_a_linked_model_cache_works_as_in_onnx_runtime(put, save: Save, tmp_path: Path) -> None:
    """Model hubs keep a snapshot folder of links into one store: the links leave the folder, but stay beside the real model."""
    save(FOUR_FLOATS, "blobs/data")
    put(external(), "blobs/model")
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "w.bin").symlink_to("../blobs/data")
    path = tmp_path / "snapshot" / "model.onnx"
    path.symlink_to("../blobs/model")
    assert loads(path)
    assert read_onnx(path).external_data == (ExternalData("w.bin", 0, None, "w"),)


def test_a_data_file_that_is_a_git_lfs_pointer(put, save: Save, problems: Problems) -> None:
    save(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4000\n", "w.bin")
    found = problems(put(external(dims=(1000,))))
    assert set(found) == {"TG024"}
    assert "w.bin" in found["TG024"]
    assert "git lfs pull" in found["TG024"]


def test_one_finding_per_data_file(model, save: Save, problems: Problems) -> None:
    model.graph.initializer.extend(external(f"w{index}", "gone.data", offset=8 * index) for index in range(100))
    found = problems(save(model))["TG034"]
    assert found.count("TG034") == 1
    assert "'w0', 'w1' and 98 more" in found


def test_references_are_found_wherever_tensors_are(model, save: Save) -> None:
    save(FOUR_FLOATS, "w.bin")

    def constant(name: str, output: str) -> onnx.NodeProto:
        return helper.make_node("Constant", [], [output], value=external(name))

    float_output = helper.make_tensor_value_info("b", 1, [2])
    inner = helper.make_graph([constant("in_constant", "b")], "then", [], [float_output], [external("in_subgraph")])
    sparse = onnx.SparseTensorProto(values=external("in_sparse"), indices=external("in_indices", data_type=7, dims=(1,)), dims=[4])
    listed = helper.make_node("Op", ["x"], ["l"], domain="d")
    listed.attribute.append(onnx.AttributeProto(name="t", type=onnx.AttributeProto.TENSORS, tensors=[external("in_list")]))
    listed.attribute.append(onnx.AttributeProto(name="g", type=onnx.AttributeProto.GRAPHS, graphs=[inner]))
    function = helper.make_function("d", "Op", ["X"], ["Y"], [constant("in_function", "Y")], [helper.make_opsetid("", 17)])
    function.attribute_proto.append(helper.make_attribute("a", external("in_default")))
    model.graph.node.extend([listed, constant("in_node", "c")])
    model.graph.initializer.append(external("in_graph"))
    model.graph.sparse_initializer.append(sparse)
    model.functions.append(function)
    names = {entry.tensor for entry in read_onnx(save(model)).external_data}
    assert names == {
        "in_graph", "in_sparse", "in_indices", "in_list", "in_node", "in_function", "in_default", "in_subgraph", "in_constant",
    }  # fmt: skip


def test_external_entries_count_only_where_the_tensor_says_external(model, save: Save) -> None:
    model.graph.initializer[0].external_data.add(key="location", value="leftover.bin")
    assert read_onnx(save(model)).external_data == ()


def test_what_onnx_saves_with_external_data(model, save: Save, tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.data", size_threshold=0)
    assert read_onnx(path).external_data == (ExternalData("weights.data", 0, 8, "w"),)
