"""What a server says about itself and its models is the same over both protocols, field for field and type for type."""

import json

import contract
import counted
import models
import pytest

import tritongen

RICH = """
dynamic_batching {
  priority_levels: 2 default_priority_level: 1
  priority_queue_policy { key: 1 value { default_timeout_microseconds: 7000000 } }
}
version_policy { specific { versions: [1] } }
model_warmup [{ name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] zero_data: true } } }]
parameters { key: "a" value { string_value: "b" } }
response_cache { enable: false }
metric_tags { key: "dims" value: "5" }
"""
STATEFUL = """
sequence_batching {
  direct { minimum_slot_utilization: 0.1 max_queue_delay_microseconds: 100 }
  control_input [
    { name: "START" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 0.1] }] },
    { name: "END" control [{ kind: CONTROL_SEQUENCE_END bool_false_true: [false, true] }] },
    { name: "CORRID" control [{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }] }
  ]
  state [{
    input_name: "si" output_name: "so" data_type: TYPE_INT32 dims: [1]
    initial_state { name: "s" data_type: TYPE_INT32 dims: [1] zero_data: true }
  }]
}
"""


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """A client over gRPC and one over HTTP, of one server whose models have seen requests."""
    repository = tmp_path_factory.mktemp("described")
    models.put(repository, "rich", models.linear(), models.config("x FP32 [64]", "y FP32 [16]", batch=8, extra=contract.CPU + RICH))
    contract.python_model(repository, "stateful", contract.SUMMING, "x INT32 [1]", "sum INT32 [1]; open INT32 [1]", batch=1, extra=STATEFUL)
    with contract.serve(repository) as server, tritongen.Client(server.grpc_url) as grpc, tritongen.Client(server.http_url) as http:
        grpc.infer("rich", x=contract.rows(3))
        # The warmup's row is counted too.
        counted.statistics(server.http_url, "rich", inferences=4)
        yield grpc, http


def typed(found):
    """The answer as text in which 1, 1.0 and "1" differ."""
    return json.dumps(found, sort_keys=True, indent=1)


@pytest.mark.server
@pytest.mark.parametrize("model", ["rich", "stateful"])
def test_configs_and_statistics_are_equal(clients, model):
    grpc, http = clients
    assert typed(grpc.statistics(model)) == typed(http.statistics(model))
    assert grpc.config(model) == http.config(model)
    assert grpc.meta(model) == http.meta(model)


@pytest.mark.server
def test_numbers_are_numbers(clients):
    for client in clients:
        (statistics,) = client.statistics("rich")
        assert statistics["inference_count"] == 4
        assert statistics["inference_stats"]["fail"] == {"count": 0, "ns": 0}
        assert client.config("rich")["input"][0]["dims"] == [64]
        assert client.config("stateful")["sequence_batching"]["state"][0]["initial_state"][0]["dims"] == [1]


@pytest.mark.server
def test_the_server_and_its_index_are_equal(clients):
    grpc, http = clients
    assert typed(grpc.metadata()) == typed(http.metadata())
    assert typed(grpc.repository_index()) == typed(http.repository_index())


@pytest.mark.server
def test_a_config_that_was_told_may_be_given_back(clients):
    """As a mapping: over either protocol the model is loaded with it."""
    for client in clients:
        config = {**client.config("rich"), "parameters": {"a": {"string_value": "c"}}}
        client.load("rich", config=config, files={"1/model.onnx": models.linear().SerializeToString()})
        client.wait_ready("rich", deadline_s=10)
        assert client.config("rich")["parameters"] == config["parameters"]
        client.load("rich")
        client.wait_ready("rich", deadline_s=10)
