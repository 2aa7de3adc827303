"""What `read_onnx` says about shapes, types, inputs with defaults, domains and opsets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.dtypes import DTYPES
from tritongen.signature import read_onnx

Save = Callable[..., Path]
Problems = Callable[[Path], dict[str, str]]


def value(name: str, elem_type: int, shape: list[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_that_triton_has(dtype, model, save: Save) -> None:
    model.graph.input.append(value("z", dtype.onnx, [1]))
    assert read_onnx(save(model)).input("z").dtype is dtype


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        ({"dim_param": "batch"}, "batch"),
        ({"dim_param": "p2o.DynamicDimension.0"}, "p2o.DynamicDimension.0"),
        ({"dim_param": "?"}, "?"),
        ({"dim_param": "-1"}, "-1"),
        ({"dim_param": "unk__214"}, "unk__214"),
        ({"dim_param": "floor(height/2 - 1/2) + 1"}, "floor(height/2 - 1/2) + 1"),
        ({"dim_param": ""}, None),
        ({"dim_value": -1}, None),
        ({"dim_value": -7}, None),
        ({}, None),
        ({"dim_value": 0}, 0),
        ({"dim_value": 224}, 224),
        ({"dim_value": 1 << 40}, 1 << 40),
    ],
)
def test_dimensions_as_exporters_write_them(dim, expected, model, save: Save) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].CopyFrom(TensorProtoDim(**dim))
    assert read_onnx(save(model)).input("x").shape == (expected, 2)


TensorProtoDim = onnx.TensorShapeProto.Dimension


def test_no_shape_is_not_a_scalar(model, save: Save) -> None:
    model.graph.input.extend([value("scalar", TensorProto.INT64, []), value("unknown", TensorProto.INT64, None)])
    signature = read_onnx(save(model))
    assert signature.input("scalar").shape == ()
    assert signature.input("unknown").shape is None


def test_graph_inputs_with_an_initializer_follow_onnx_runtime(model, save: Save) -> None:
    """From IR version 4 on such an input is a default that can be replaced; before, it is a constant. ONNX Runtime is asked for its view."""
    model.graph.input.append(value("w", TensorProto.FLOAT, [2]))
    for ir_version, optional in ((3, []), (4, ["w"]), (8, ["w"])):
        model.ir_version = ir_version
        path = save(model)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        signature = read_onnx(path)
        assert [spec.name for spec in signature.optional_inputs] == [entry.name for entry in session.get_overridable_initializers()] == optional
        assert [spec.name for spec in signature.inputs] == [entry.name for entry in session.get_inputs()] == ["x"]


def test_a_sparse_initializer_is_no_input_either(model, save: Save) -> None:
    values = numpy_helper.from_array(np.array([1.0], np.float32), "s")
    indices = numpy_helper.from_array(np.array([0], np.int64), "s_idx")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    model.graph.input.append(value("s", TensorProto.FLOAT, [2]))
    signature = read_onnx(save(model))
    assert [spec.name for spec in signature.inputs] == ["x"]
    assert [spec.name for spec in signature.optional_inputs] == ["s"]


def test_an_optional_input_of_a_type_that_triton_lacks_is_left_to_its_default(model, save: Save) -> None:
    model.graph.initializer.append(helper.make_tensor("q", TensorProto.INT4, [2], [1, 2]))
    model.graph.input.append(value("q", TensorProto.INT4, [2]))
    assert read_onnx(save(model)).optional_inputs == ()


def test_custom_domains_are_found_wherever_nodes_are(model, save: Save) -> None:
    def graph(name: str, domain: str) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node("Op", ["x"], [name], domain=domain)], name, [], [value(name, TensorProto.FLOAT, None)])

    branches = helper.make_node("If", ["c"], ["b"], then_branch=graph("t", "in.then"), else_branch=graph("e", "com.microsoft"))
    outer = helper.make_graph([branches], "outer", [], [value("b", TensorProto.FLOAT, None)])
    model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=outer, else_branch=graph("f", "ai.onnx.ml")))
    model.graph.node.append(helper.make_node("Scale", ["x"], ["h"], domain="local"))
    body = [helper.make_node("Op", ["X"], ["Y"], domain="in.function")]
    model.functions.append(helper.make_function("local", "Scale", ["X"], ["Y"], body, [helper.make_opsetid("in.function", 1)]))
    model.graph.node.append(helper.make_node("Other", ["x"], ["k"], domain="partly.local"))
    model.functions.append(helper.make_function("partly.local", "Scale", ["X"], ["Y"], [helper.make_node("Relu", ["X"], ["Y"])], [helper.make_opsetid("", 17)]))
    assert read_onnx(save(model)).custom_domains == {"in.then", "in.function", "partly.local"}


def test_opsets_use_one_name_for_the_default_domain(model, save: Save) -> None:
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("ai.onnx", 17), helper.make_opsetid("com.microsoft", 1)])
    assert read_onnx(save(model)).opsets == {"": 17, "com.microsoft": 1}


@pytest.mark.parametrize(
    ("type_proto", "kind"),
    [
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])), "sequence"),
        (helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [2])), "map"),
        (helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])), "optional"),
        (helper.make_sparse_tensor_type_proto(1, [2]), "sparse tensor"),
    ],
)
def test_values_that_are_no_tensors(type_proto, kind, model, save: Save, problems: Problems) -> None:
    model.graph.input.append(helper.make_value_info("z", type_proto))
    assert f"input 'z' is a {kind} value; Triton has only tensors" in problems(save(model))["TG031"]


@pytest.mark.parametrize("name", ["COMPLEX64", "COMPLEX128", "FLOAT8E4M3FN", "FLOAT8E5M2FNUZ", "INT4", "UINT4", "FLOAT4E2M1"])
def test_types_that_triton_lacks(name, model, save: Save, problems: Problems) -> None:
    model.graph.output.append(value("z", getattr(TensorProto, name), [1]))
    message = problems(save(model))["TG030"]
    assert f"output 'z' has the ONNX type {name}, which Triton does not have" in message
    assert "FP32" in message


def test_a_type_number_from_the_future(model, save: Save, problems: Problems) -> None:
    model.graph.input[0].type.tensor_type.elem_type = 99
    assert "of the unknown number 99" in problems(save(model))["TG030"]


def test_all_problems_of_a_file_at_once(model, save: Save, problems: Problems) -> None:
    graph = model.graph
    graph.input.extend([value("x", TensorProto.FLOAT, [1]), value("", TensorProto.FLOAT, [1]), value("c", TensorProto.COMPLEX64, [1])])
    graph.output.extend([graph.output[0], helper.make_value_info("untyped", onnx.TypeProto())])
    model.ClearField("ir_version")
    del model.opset_import[:]
    found = problems(save(model))
    assert set(found) == {"TG028", "TG029", "TG030", "TG032"}
    assert "2 inputs of the model have the same name 'x'" in found["TG029"]
    assert "2 outputs of the model have the same name 'y'" in found["TG029"]
    assert "an input of the model has no name" in found["TG029"]
    assert "no IR version" in found["TG028"]
    assert "no operator set" in found["TG028"]
    assert "no data type for output 'untyped'" in found["TG032"]
    assert "infer_shapes" in found["TG032"]


def test_a_name_that_is_not_utf8(model, save: Save, problems: Problems) -> None:
    model.graph.input.append(value("zzzz", TensorProto.FLOAT, [1]))
    path = save(model.SerializeToString().replace(b"zzzz", b"z\xff\xfez"))
    assert r"the name of input 'z\xff\xfez' is not valid UTF-8" in problems(path)["TG029"]


def test_no_outputs(model, save: Save, problems: Problems) -> None:
    del model.graph.output[:]
    assert "has no outputs" in problems(save(model))["TG028"]


def test_fields_given_in_parts_merge_as_protobuf_says(model, save: Save) -> None:
    """A message written twice is one message: protobuf's parsers join repeated fields and let the last scalar win."""
    second = onnx.ModelProto(ir_version=9)
    second.graph.input.append(value("second", TensorProto.INT64, ["M"]))
    joined = model.SerializeToString() + second.SerializeToString()
    expected = onnx.load_model_from_string(joined)
    signature = read_onnx(save(joined))
    assert [spec.name for spec in signature.inputs] == [entry.name for entry in expected.graph.input] == ["x", "second"]
    assert signature.ir_version == expected.ir_version == 9
