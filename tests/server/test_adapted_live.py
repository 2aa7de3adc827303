"""Models for a GPU on a machine without one, and what auto-complete makes of models without a config."""

from __future__ import annotations

import json
import urllib.request

import networks
import numpy as np
import onnxruntime
import pytest

from tests.server import models
from tritongen.diagnostics import Severity
from tritongen.errors import RepositoryError
from tritongen.server import gpu, start
from tritongen.workflow import render
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

ACCELERATED = (
    "instance_group [{ kind: KIND_GPU count: 2 gpus: [0] }]\n"
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" parameters { key: "precision_mode" value: "FP16" } }] } '
    "cuda { graphs: true } }\n"
)
X = models.weights(3, 64, seed=5)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu.count() == 0


@pytest.fixture
def repository(tmp_path):
    """One model for the CPU, one for a GPU, and a plan whose source ONNX, with its weights in a file of their own, lies in the artifacts folder."""
    root = tmp_path / "repository"
    models.put(root, "plain", models.linear(), models.LINEAR)
    models.put(root, "accelerated", models.linear(), models.config("x FP32 [64]", "y FP32 [16]", extra=ACCELERATED))
    plan = models.config("x FP32 [64]", "y FP32 [16]", extra='instance_group [{ kind: KIND_GPU profile: ["0"] }]\n').replace(
        "onnxruntime_onnx", "tensorrt_plan"
    )
    (models.put(root, "plan", None, plan) / "1" / "model.plan").write_bytes(b"made on another machine")
    source = models.put(tmp_path / "scratch", "plan", models.linear(), None, save_as_external_data=True, location="weights.bin", size_threshold=16) / "1"
    (tmp_path / "repository.artifacts").mkdir()
    source.rename(tmp_path / "repository.artifacts" / "plan")
    return root


def get(server, path):
    with urllib.request.urlopen(f"{server.http_url}/v2/{path}") as answer:
        return json.load(answer)


def snapshot(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_gpu_repository_is_served_on_the_cpu_with_one_warning_for_each_model(no_gpu, repository, options, ask):
    before = snapshot(repository.parent)
    expected = onnxruntime.InferenceSession(models.linear().SerializeToString()).run(None, {"x": X})[0]
    with start(repository, options()) as server:
        for model in ("plain", "accelerated", "plan"):
            np.testing.assert_allclose(ask(server, model, {"x": X})["y"], expected, rtol=1e-5)
        accelerated, plan = server.warnings
        assert accelerated.startswith(
            "model accelerated: its GPU instances run on the CPU, as this machine has no GPU; the GPU accelerator tensorrt is left out"
        )
        assert plan.startswith("model plan: its source ONNX is served by onnxruntime in place of the TensorRT plan; its GPU instances run on the CPU")
        served = get(server, "models/accelerated/config")
        assert [(group["kind"], group["count"], group["gpus"]) for group in served["instance_group"]] == [("KIND_CPU", 2, [])]
        assert served["max_batch_size"] == 8
        assert "cuda" not in served["optimization"]
        copy = server._attempt.runtime.repository
        assert (copy / "0" / "plain").is_symlink()
        assert (copy / "0" / "accelerated" / "1").is_symlink()
        assert str(copy) not in server.log()
    assert snapshot(repository.parent) == before


def test_a_converted_file_without_a_gpu_is_served_with_what_would_serve_its_source(no_gpu, tmp_path, options):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text("""\
version: 1
models:
  - {name: half, source: m.onnx, precision: fp16}
  - {name: whole, source: m.onnx}
""")
    with serving(tmp_path / "spec.yaml", options()) as served:
        (told,) = (finding for finding in served.findings if finding.code == "TG439")
        assert (told.model, told.location.line, told.severity) == ("half", 3, Severity.ADVICE)
        assert "tritongen render --cpu" in told.hint
    render(tmp_path / "spec.yaml", cpu=True)
    with serving(tmp_path / "model_repository.cpu", options()) as served:
        assert served.findings == ()
        assert served.server.warnings == ()


def test_strict_refuses_and_names_every_model(no_gpu, repository, options):
    with pytest.raises(RepositoryError) as caught:
        start(repository, options(strict=True))
    assert [(found.code, found.model) for found in caught.value.diagnostics] == [("TG903", "accelerated"), ("TG903", "plan")]


def test_a_plan_without_its_source_is_refused_with_the_place_where_it_belongs(no_gpu, repository, options):
    source = repository.parent / "repository.artifacts" / "plan" / "model.onnx"
    source.unlink()
    with pytest.raises(RepositoryError) as caught:
        start(repository, options())
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.model) == ("TG904", "plan")
    assert str(source) in finding.message


def test_models_without_a_config_are_completed_as_nvidias_backend_does(tmp_path, options, ask):
    models.put(tmp_path, "batches", models.linear(), None)
    models.put(tmp_path, "fixed", models.linear(batch=1), None)
    models.put(tmp_path, "scalar", models.scaled_by_scalar(), None)
    with start(tmp_path, options(disable_auto_complete=False)) as server:
        batches, fixed, scalar = (get(server, f"models/{name}/config") for name in ("batches", "fixed", "scalar"))
        assert ask(server, "batches", {"x": X})["y"].shape == (3, 16)
        assert any("autofilled max_batch_size to 4" in warning for warning in server.warnings)
    assert (batches["max_batch_size"], batches["input"][0]["dims"], batches["output"][0]["dims"]) == (4, [64], [16])
    assert batches["dynamic_batching"]["preferred_batch_size"] == [4]
    assert [(group["kind"], group["count"]) for group in batches["instance_group"]] == [("KIND_CPU", 2)]
    assert (fixed["max_batch_size"], fixed["input"][0]["dims"], fixed["output"][0]["dims"]) == (0, [1, 64], [1, 16])
    assert "dynamic_batching" not in fixed
    assert scalar["max_batch_size"] == 0
    assert {tensor["name"]: tensor["dims"] for tensor in scalar["input"]} == {"t": [1], "x": [-1]}
