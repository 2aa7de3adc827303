"""A model whose instances are all passive: what `check` says of it, and what it does to the embedded Triton."""

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from tests.server import models
from tritongen.check.evaluate import evaluate_path
from tritongen.rules import ServerFacts
from tritongen.server import start

pytestmark = pytest.mark.server

PASSIVE, ACTIVE = "{ kind: KIND_CPU count: 1 passive: true }", "{ kind: KIND_CPU count: 1 }"


@pytest.mark.parametrize(("groups", "is_fatal"), [(PASSIVE, True), (f"{PASSIVE}, {ACTIVE}", False)])
def test_a_request_that_only_passive_instances_could_answer_ends_the_server(tmp_path, options, groups, is_fatal):
    models.put(tmp_path, "m", models.linear(), models.LINEAR.replace(models.ONE_CPU, f"instance_group [ {groups} ]\n"))
    assert ("TG289" in {diagnostic.code for diagnostic in evaluate_path(tmp_path, ServerFacts())}) is is_fatal
    tensor = grpcclient.InferInput("x", [1, 64], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 64), np.float32))
    with start(tmp_path, options()) as running, grpcclient.InferenceServerClient(running.grpc_url.removeprefix("grpc://")) as client:
        assert running.models["m"] == "READY"
        if not is_fatal:
            assert client.infer("m", [tensor], client_timeout=30).as_numpy("y").shape == (1, 16)
            return
        with pytest.raises(InferenceServerException):
            client.infer("m", [tensor], client_timeout=30)
        assert running.wait(30) not in (None, 0)
