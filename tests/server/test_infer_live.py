"""`tritongen infer` and the client against a running Triton, over both protocols."""

import models
import numpy as np
import pytest
from onnx import helper

import tritongen as package

pytestmark = pytest.mark.server

PAIR = models.model(
    [helper.make_node("Mul", ["ids", "mask"], ["y"])],
    [models.value(name, models.INT64, ["N", "L"]) for name in ("ids", "mask")],
    [models.value("y", models.INT64, ["N", "L"])],
)
WARM = "".join(f'inputs {{ key: "{name}" value {{ data_type: TYPE_INT64 dims: [128] zero_data: true }} }} ' for name in ("ids", "mask"))
STRANGE = "x\ny\x1b[31m"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    extra = models.ONE_CPU + f'model_warmup [{{ name: "w" batch_size: 1 {WARM}}}]\n'
    models.put(repository, "pair", PAIR, models.config("ids INT64 [-1]; mask INT64 [-1]", "y INT64 [-1]", extra=extra))
    models.put(repository, "half", models.doubled(models.HALF), models.config("x FP16 [3]", "y FP16 [3]"))
    strange = models.model(
        [helper.make_node("Neg", [STRANGE], ["z"])], [models.value(STRANGE, models.FLOAT, ["N", 2])], [models.value("z", models.FLOAT, ["N", 2])]
    )
    models.put(repository, "strange", strange, models.config("NAME FP32 [2]", "z FP32 [2]").replace("NAME", r"x\ny\033[31m"))
    with package.serve(repository, http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as running:
        yield running


@pytest.fixture(params=["grpc_url", "http_url"])
def url(server, request):
    return getattr(server, request.param)


def test_what_is_made_up_follows_what_is_given_and_is_marked(tmp_path, tritongen, url):
    np.save(tmp_path / "ids.npy", np.ones((2, 3), np.int64))
    result = tritongen("infer", "pair", "-u", url, "--input", f"ids={tmp_path / 'ids.npy'}")
    assert result.code == 0, result.err
    lines = {line.split()[1]: line for line in result.out.splitlines()[1:]}
    assert "INT64 [2, 3]" in lines["ids"]
    assert "random" not in lines["ids"]
    assert "INT64 [2, 3]  random" in lines["mask"]
    assert "INT64 [2, 3]" in lines["y"]


def test_an_unknown_model_is_answered_with_those_that_there_are(tritongen, url):
    result = tritongen("infer", "pear", "-u", url)
    assert result.code == 3
    assert "'half', 'pair', 'strange'" in result.err
    assert "did you mean 'pair'" in result.err


def test_too_many_rows_are_refused_before_they_are_made(tritongen, url):
    result = tritongen("infer", "pair", "-u", url, "--batch", 1_000_000_000)
    assert result.code == 2
    assert "8 rows at most" in result.err


def test_what_half_precision_cannot_hold_is_refused(tritongen, url):
    refused = tritongen("infer", "half", "-u", url, "--input", "x=[1e30,0,1]")
    assert refused.code == 2
    assert "does not fit FP16: 1e+30" in refused.err
    assert tritongen("infer", "half", "-u", url, "--input", "x=[1.5,0,Infinity]").code == 0


def test_a_name_with_control_characters_is_shown_and_not_obeyed(tmp_path, tritongen, url):
    result = tritongen("infer", "strange", "-u", url, "-o", tmp_path / "out")
    assert result.code == 0, result.err
    assert r"x\ny\x1b[31m  FP32" in result.out
    assert "\x1b" not in result.out
    assert (tmp_path / "out/z.npy").is_file()


def test_the_ports_of_the_others_are_told_apart(server, tritongen):
    metrics = server.metrics_url.removesuffix("/metrics")
    for wrong in (server.grpc_url.replace("grpc", "http"), metrics):
        assert "no Triton HTTP endpoint" in tritongen("infer", "pair", "-u", wrong, "--timeout", 10).err
    for wrong in (server.http_url, metrics):
        assert "no Triton gRPC endpoint" in tritongen("infer", "pair", "-u", wrong.replace("http", "grpc"), "--timeout", 10).err


def test_the_client_takes_lists_and_says_what_triton_has(url):
    with package.Client(url) as client:
        assert client.infer("pair", {"ids": [[1, 2]], "mask": [[3, 4]]})["y"].tolist() == [[3, 8]]
        with pytest.raises(package.InferenceError, match="no version 7"):
            client.meta("pair", "7")
