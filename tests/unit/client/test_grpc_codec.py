"""Messages of gRPC, said as Triton's HTTP endpoint says them in JSON."""

import grpc
import numpy as np
import pytest
from google.protobuf import text_format
from tritonclient.grpc import service_pb2 as pb

from tritongen.client.calls import CallFailed, Infer, RepositoryIndex, Status
from tritongen.client.grpc_codec import RPCS, failure, infer_reply, infer_request, plain
from tritongen.client.metadata import TensorMeta
from tritongen.dtypes import from_wire
from tritongen.modelconfig import pb as modelconfig


def test_numbers_are_numbers_and_defaults_are_said():
    statistics = pb.ModelStatistics(name="m", inference_count=2**60)
    statistics.inference_stats.success.ns = 5
    found = plain(statistics)
    assert found["inference_count"] == 2**60
    assert found["last_inference"] == 0
    assert found["inference_stats"] == {"success": {"count": 0, "ns": 5}}
    assert (found["batch_stats"], found["response_stats"]) == ([], {})


CONFIG = """
    input { name: "x" data_type: TYPE_FP32 dims: [-1, 3] }
    instance_group { kind: KIND_CPU }
    sequence_batching { direct { minimum_slot_utilization: 0.1 } }
    parameters { key: "a" value { string_value: "b" } }
"""


def test_a_config_has_names_of_its_values_and_only_what_was_chosen_of_a_oneof():
    found = plain(text_format.Parse(CONFIG, modelconfig.ModelConfig()))
    assert found["input"][0]["dims"] == [-1, 3]
    assert (found["input"][0]["data_type"], found["input"][0]["optional"]) == ("TYPE_FP32", False)
    assert found["instance_group"][0]["kind"] == "KIND_CPU"
    assert found["parameters"] == {"a": {"string_value": "b"}}
    assert found["sequence_batching"]["direct"]["minimum_slot_utilization"] == 0.1
    assert not {"dynamic_batching", "ensemble_scheduling", "optimization", "version_policy"} & found.keys()
    assert "oldest" not in found["sequence_batching"]


def test_levels_of_a_queue_are_text_as_json_has_them():
    text = "dynamic_batching { priority_queue_policy { key: 2 value { default_timeout_microseconds: 7 } } }"
    policies = plain(text_format.Parse(text, modelconfig.ModelConfig()))["dynamic_batching"]["priority_queue_policy"]
    assert policies == {"2": {"timeout_action": "REJECT", "default_timeout_microseconds": 7, "allow_timeout_override": False, "max_queue_size": 0}}


def test_an_enum_of_a_later_release_is_its_number():
    config = modelconfig.ModelConfig()
    config.input.add(name="x", data_type=99)
    assert plain(config)["input"][0]["data_type"] == 99


def test_the_index_leaves_out_what_is_not_known():
    response = pb.RepositoryIndexResponse()
    response.models.add(name="a")
    response.models.add(name="b", version="1", state="READY")
    assert RPCS[RepositoryIndex].answer(response) == [{"name": "a"}, {"name": "b", "version": "1", "state": "READY"}]


def _inputs(**arrays):
    kinds = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64", np.dtype(object): "BYTES"}
    return tuple((TensorMeta(name, from_wire(kinds[array.dtype]), (-1,) * array.ndim), array) for name, array in arrays.items())


ASKED = {"priority": 2, "timeout": 5, "a": "b", "c": True, "d": 0.5}


def test_a_request_is_the_message_that_protobuf_makes_of_it():
    sizes = [np.arange(count, dtype=np.float32) for count in (0, 1, 32, 4096, 600_000)]
    texts = np.array([b"", b"a\0", b"x" * 300], dtype=object)
    for array in sizes:
        call = Infer.of("m", "3", _inputs(x=array, size=np.array(7), t=texts), outputs=("y", "z"), request_id="r", parameters=ASKED)
        expected = pb.ModelInferRequest(model_name="m", model_version="3", id="r", raw_input_contents=[array.tobytes(), np.array(7).tobytes()])
        expected.raw_input_contents.append(b"\0\0\0\0\2\0\0\0a\0\x2c\1\0\0" + b"x" * 300)
        expected.inputs.add(name="x", datatype="FP32", shape=[len(array)])
        expected.inputs.add(name="size", datatype="INT64", shape=[])
        expected.inputs.add(name="t", datatype="BYTES", shape=[3])
        expected.outputs.add(name="y")
        expected.outputs.add(name="z")
        for key, value in {"priority": {"int64_param": 2}, "timeout": {"int64_param": 5}, "a": {"string_param": "b"}}.items():
            expected.parameters[key].MergeFrom(pb.InferParameter(**value))
        expected.parameters["c"].bool_param = True
        expected.parameters["d"].double_param = 0.5
        assert pb.ModelInferRequest.FromString(infer_request(call)) == expected


def test_requests_of_equal_shapes_differ_where_they_do():
    texts = [np.array([text], dtype=object) for text in (b"a", b"longer" * 40)]
    made = [pb.ModelInferRequest.FromString(infer_request(Infer.of("m", "", _inputs(t=text)))) for text in texts]
    assert [one.raw_input_contents[0][4:] for one in made] == [b"a", b"longer" * 40]
    other = pb.ModelInferRequest.FromString(infer_request(Infer.of("n", "", _inputs(u=texts[0]))))
    assert (other.model_name, other.inputs[0].name, list(other.parameters)) == ("n", "u", [])


@pytest.mark.parametrize(
    ("output", "data", "words"),
    [
        ({"name": "y", "datatype": "FP8", "shape": [1]}, b"\0", "the datatype 'FP8' is not known here"),
        ({"name": "y", "datatype": "FP32", "shape": [-1]}, b"\0" * 4, "[-1] is not the shape of an array"),
        ({"name": "y", "datatype": "FP32", "shape": [2]}, b"\0" * 4, "cannot be read"),
        ({"name": "y", "datatype": "BYTES", "shape": [1]}, b"\5\0\0\0a", "a string is cut off"),
        ({"name": "y", "datatype": "FP32", "shape": [2, 2]}, b"", "0 bytes are not those of FP32 in the shape [2, 2]"),
        ({"name": "y", "datatype": "FP32", "shape": [2**20, 2**24]}, b"", "0 bytes are not those"),
    ],
)
def test_an_answer_that_cannot_be_read_is_said_in_a_sentence(output, data, words):
    response = pb.ModelInferResponse()
    response.outputs.add(**output)
    response.raw_output_contents.append(data)
    with pytest.raises(CallFailed) as error:
        infer_reply(response, serialise_s=0, wait_s=0)
    assert error.value.status is Status.FAILED
    assert words in error.value.said


class Failed(grpc.RpcError):
    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def details(self):
        return "said"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Status.UNAVAILABLE),
        (grpc.StatusCode.UNAVAILABLE, Status.UNAVAILABLE),
        (grpc.StatusCode.INTERNAL, Status.FAILED),
        (grpc.StatusCode.UNAUTHENTICATED, Status.DENIED),
    ],
)
def test_a_status_means_the_same_everywhere(code, status):
    """RESOURCE_EXHAUSTED is what HTTP says as 429."""
    assert failure(Failed(code), connected=True, at=0.0).status is status
