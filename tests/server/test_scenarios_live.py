"""A spec's scenarios against a real Triton: models mixed by weight, pictures as inputs, promises of the spec."""

import json

import models
import networks
import numpy as np
import onnx
import pytest
from PIL import Image

import tritongen as package

pytestmark = [pytest.mark.server, pytest.mark.system]

SPEC = """\
version: 1
models:
  - {name: mlp, source: mlp.onnx, batching: {max: 8}, slo: {p50: 8s, p99: 9s}}
  - name: pictures
    source: pictures.onnx
    samples: {x: {files: pictures, image: {range: [-1, 1]}}}
load:
  scenarios:
    mixed:
      models: {mlp: 3, pictures: {slo: {p50: 1us}}}
      rate: 120
      duration: 2s
      warmup: 200ms
      batch_mix: [1:50%, 4:50%]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spec")
    networks.mlp(folder / "mlp.onnx")
    x, y = (models.value(name, models.FLOAT, ["N", 3, 4, 4]) for name in "xy")
    onnx.save_model(models.model([onnx.helper.make_node("Neg", ["x"], ["y"])], [x], [y]), folder / "pictures.onnx")
    (folder / "pictures").mkdir()
    for number in range(3):
        Image.fromarray(np.full((8, 8, 3), 100 * number, np.uint8)).save(folder / f"pictures/{number}.png")
    (folder / "spec.yaml").write_text(SPEC)
    return folder / "spec.yaml"


@pytest.fixture(scope="module")
def server(spec):
    with package.serve(spec, http_port=0, grpc_port=0, metrics_port=0) as running:
        yield running


@pytest.fixture(scope="module")
def mixed(spec, server, tmp_path_factory):
    """The scenario's JSON, page and words, and its exit code."""
    from click.testing import CliRunner

    from tritongen.cli.load import command

    out = tmp_path_factory.mktemp("result")
    files = ["-o", str(out / "r.json"), "--html", str(out / "r.html")]
    done = CliRunner().invoke(command, [str(spec), "-u", server.grpc_url, "--metrics-url", server.metrics_url, *files], standalone_mode=False)
    return json.loads((out / "r.json").read_text()), (out / "r.html").read_text(), done.output, done.return_value


def test_requests_are_mixed_by_weight_and_results_are_by_model(mixed):
    data = mixed[0]
    mlp, pictures = data["models"]
    assert data["requests"]["ok"] == mlp["requests"]["ok"] + pictures["requests"]["ok"] == pytest.approx(240, abs=80)
    assert mlp["requests"]["ok"] / data["requests"]["ok"] == pytest.approx(0.75, abs=0.13)
    for part in (mlp, pictures):
        assert part["latency_ms"]["count"] == part["requests"]["ok"]
        assert part["server"]["inferences"] == pytest.approx(2.5 * part["requests"]["ok"], rel=0.35)


def test_the_promises_of_the_spec_are_the_verdict(mixed):
    data, page, words, code = mixed
    mlp, pictures = data["models"]
    assert (code, mlp["slo"]["kept"], pictures["slo"]["kept"], data["slo"]["kept"]) == (1, data["valid"], False, False)
    assert mlp["slo"]["missed"] == []
    assert mlp["slo"]["from"].startswith("slo of mlp (")
    assert mlp["slo"]["from"].endswith("spec.yaml:3:55)")
    assert pictures["slo"]["from"].startswith("scenario mixed (")
    assert "SLO MISSED: pictures: p50 is" in words
    assert "the SLO of mlp: p50 8000 ms, p99 9000 ms, from slo of mlp" in words
    assert "Executed batches of pictures" in page
    assert "What the server counted of mlp" in page


def test_the_settings_say_what_was_in_force(mixed):
    settings = mixed[0]["settings"]
    assert (settings["scenario"], settings["stages"][-1]["rate"]) == ("mixed", 120)
    assert [load["part"] for load in settings["models"]] == [3, 1]
    assert settings["models"][1]["samples"]["x"]["image"]["range"] == [-1, 1]


def test_options_win_and_a_model_can_be_sent_to_alone(spec, server, tritongen):
    arguments = ["-u", server.http_url, "--rate", 20, "--duration", "1s", "--warmup", "0", "--slo", "p50=8s", "--format", "json"]
    data = json.loads(tritongen("load", spec, "--model", "pictures", "--data", spec.parent / "pictures", *arguments).out)
    (part,) = data["models"]
    assert (part["model"], part["slo"]["from"], part["slo"]["kept"], data["error_rate"]) == ("pictures", "--slo", data["valid"], 0)


def test_files_that_do_not_fit_are_said_before_anything_is_sent(spec, server, tritongen, tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    done = tritongen("load", spec, "--model", "pictures", "-u", server.grpc_url, "--data", tmp_path)
    assert (done.code, "TG423" in done.err, "a.png: it is no picture" in done.err) == (2, True, True), done.err
