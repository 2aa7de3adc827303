"""What Triton and the backend refuse, and that the reason reaches the user. The expected texts are those of NVIDIA's C++ backend, as recorded by running it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.server import models
from tritongen.diagnostics import Location
from tritongen.errors import RepositoryError, ServerStartError
from tritongen.server import start

pytestmark = pytest.mark.server

INPUT, OUTPUT = "x FP32 [64]", "y FP32 [16]"


def parameter(key, text):
    return f'parameters {{ key: "{key}" value {{ string_value: "{text}" }} }}\n'


REFUSED = {
    "in_name": (models.config("xx FP32 [64]", OUTPUT), "unexpected inference input 'xx', allowed inputs are: x"),
    "in_dtype": (
        models.config("x INT64 [64]", OUTPUT),
        "unable to load model 'in_dtype', configuration expects datatype TYPE_INT64 for input 'x', model provides TYPE_FP32",
    ),
    "out_free": (
        models.config(INPUT, "y FP32 [-1]"),
        (
            "model 'out_free', tensor 'y': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 2 dimensions "
            "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,-1])"
        ),
    ),
    "threads": (models.LINEAR + parameter("intra_op_thread_count", "abc"), "failed to convert 'abc' to integral number"),
    "no_config": (None, "failed to open text file for read"),
    "text": (models.LINEAR + "max_batchsize: 8\n", 'config.pbtxt:6:14: Message type "inference.ModelConfig" has no field named "max_batchsize"'),
    "preferred": (
        models.LINEAR + "dynamic_batching { preferred_batch_size: [16] }\n",
        "dynamic batching preferred size must be <= max batch size for preferred",
    ),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    models.put(root, "good", models.linear(), models.LINEAR)
    for name, (config, _) in REFUSED.items():
        models.put(root, name, models.linear(), config)
    (models.put(root, "garbage", None, models.LINEAR) / "1" / "model.onnx").write_text("no protobuf")
    models.put(root, "missing", None, models.LINEAR)
    models.put(root, "unversioned", models.linear(), models.LINEAR, version="v1")
    return root


@pytest.fixture(scope="module")
def server(repository, options):
    with start(repository, options(exit_on_error=False)) as running:
        yield running


def test_the_good_model_is_served_beside_the_refused_ones(server, ask):
    assert ask(server, "good", {"x": np.ones((1, 64), np.float32)})["y"].shape == (1, 16)
    assert server.models.pop("good") == "READY"
    assert {name: state for name, state in server.models.items() if name != "good"} == dict.fromkeys(
        [*sorted([*REFUSED, "garbage", "missing", "unversioned"])], "UNAVAILABLE"
    )


@pytest.mark.parametrize("name", list(REFUSED))
def test_the_reason_is_nvidias(server, name):
    assert REFUSED[name][1] in server.reasons[name]
    assert "At:" not in server.reasons[name]
    assert "TritonModelException" not in server.reasons[name]


def test_reasons_that_name_files(server, repository):
    assert server.reasons["garbage"] == f"Internal: onnx runtime error 7: Load model from {repository}/garbage/1/model.onnx failed:Protobuf parsing failed."
    assert server.reasons["missing"] == f"Internal: failed to stat file {repository}/missing/1/model.onnx"
    assert server.reasons["unversioned"] == "at least one version must be available under the version policy of model 'unversioned'"


def test_by_default_a_refused_model_is_an_error_with_every_reason(tmp_path, options):
    models.put(tmp_path, "good", models.linear(), models.LINEAR)
    models.put(tmp_path, "first", models.linear(), REFUSED["in_name"][0])
    models.put(tmp_path, "second", models.linear(), "nonsense")
    with pytest.raises(ServerStartError) as caught:
        start(tmp_path, options())
    assert set(caught.value.reasons) == {"first", "second"}
    assert "unexpected inference input 'xx'" in str(caught.value)
    assert "config.pbtxt:1:" in caught.value.reasons["second"]
    assert caught.value.log_tail


def test_a_model_that_hangs_while_loading_is_named_when_the_time_is_up(tmp_path, options):
    folder = models.put(
        tmp_path,
        "slow",
        None,
        'backend: "python"\ninput [{ name: "x" data_type: TYPE_FP32 dims: [1] }]\noutput [{ name: "y" data_type: TYPE_FP32 dims: [1] }]\n',
    )
    (folder / "1" / "model.py").write_text("import time\nclass TritonPythonModel:\n    def initialize(self, args):\n        time.sleep(600)\n")
    for seconds in (2, 8, 32):  # until then the server itself has begun, on a slow machine too
        with pytest.raises(ServerStartError) as caught:
            start(tmp_path, options(start_timeout_s=seconds))
        if "LOADING" in str(caught.value):
            break
    assert f"not ready after {seconds} s; the models:\n  slow: LOADING" in str(caught.value)
    assert "longer start timeout" in caught.value.hint


def test_a_repository_that_is_none_is_bad_input(tmp_path, options):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RepositoryError) as caught:
        start([tmp_path / "absent", file], options())
    assert [(found.code, found.location) for found in caught.value.diagnostics] == [
        ("TG902", Location(str(tmp_path / "absent"))),
        ("TG902", Location(str(file))),
    ]


def test_explicit_control_loads_what_is_named(tmp_path, options):
    for name in ("wanted", "other"):
        models.put(tmp_path, name, models.linear(), models.LINEAR)
    with start(tmp_path, options(model_control="explicit", load_models=("wanted",))) as server:
        assert server.models["wanted"] == "READY"
        assert server.models.get("other") != "READY"
    assert server.wait() == 0
    assert server.models["wanted"] == "READY", "the states seen last stay known"


@pytest.mark.parametrize(("release", "explained"), [("24.10", True), ("26.02", False)])
def test_external_data_that_the_release_would_read_is_refused_with_that_said(release, explained, tmp_path, options):
    """The onnxruntime here is newer than that of the release that the server stands for."""
    folder = models.put(tmp_path, "outside", None, models.LINEAR)
    path = folder / "1/model.onnx"
    onnx.save(models.linear(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (folder / "1/w.bin").rename(folder / "w.bin")
    graph = onnx.load(path, load_external_data=False)
    for tensor in graph.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = "../w.bin"
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(ServerStartError) as caught:
        start(tmp_path, options(release=release))
    reason = caught.value.reasons["outside"]
    assert "External data path" in reason
    assert (f"release {release} would load it" in reason) is explained
