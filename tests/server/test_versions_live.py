"""Two versions of a model at once on a real Triton: each answers as its own file does."""

from __future__ import annotations

import networks
import numpy as np
import onnxruntime
import pytest

from tritongen.client import Client
from tritongen.errors import InferenceError
from tritongen.repository import apply_plan
from tritongen.server import start
from tritongen.workflow.rendering import plan_render

pytestmark = pytest.mark.server

X = np.random.default_rng(3).standard_normal((3, 8)).astype(np.float32)


def expected(path):
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]


def rendered(folder, keys):
    (folder / "spec.yaml").write_text(f"version: 1\nmodels:\n  - {{name: m, {keys}}}\n")
    with plan_render(folder / "spec.yaml") as rendering:
        apply_plan(rendering.plan)
        return rendering


def test_each_version_answers_as_its_own_file_and_the_newest_where_none_is_named(tmp_path, options):
    for seed, name in enumerate("ab"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)
    root = rendered(tmp_path, "sources: {1: a.onnx, 3: b.onnx}, versions: {policy: all}").plan.root
    with start(root, options()) as server, Client(server.grpc_url) as client:
        first, third, newest = (client.infer("m", {"x": X}, version=version)["y"] for version in ("1", "3", ""))
    np.testing.assert_allclose(first, expected(tmp_path / "a.onnx"), rtol=1e-5)
    np.testing.assert_allclose(third, expected(tmp_path / "b.onnx"), rtol=1e-5)
    np.testing.assert_array_equal(newest, third)
    assert np.abs(first - third).max() > 0.1


def test_the_sources_of_plans_are_served_where_there_is_no_gpu(tmp_path, options, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for seed, name in enumerate("ab"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)
    root = rendered(tmp_path, "sources: {1: a.onnx, 2: b.onnx}, versions: {policy: all}, backend: tensorrt, warmup: none").plan.root
    with start(root, options()) as server, Client(server.grpc_url) as client:
        for version, name in enumerate("ab", 1):
            np.testing.assert_allclose(client.infer("m", {"x": X}, version=str(version))["y"], expected(tmp_path / f"{name}.onnx"), rtol=1e-5)


def test_a_version_that_render_says_is_not_served_is_not(tmp_path, options):
    for seed, name in enumerate("ab"):
        networks.mlp(tmp_path / f"{name}.onnx", seed=seed)
    rendering = rendered(tmp_path, "sources: {1: a.onnx, 3: b.onnx}")
    assert [found.code for found in rendering.findings] == ["TG193"]
    with start(rendering.plan.root, options()) as server, Client(server.grpc_url) as client:
        np.testing.assert_allclose(client.infer("m", {"x": X})["y"], expected(tmp_path / "b.onnx"), rtol=1e-5)
        with pytest.raises(InferenceError, match="no version 1 that is ready"):
            client.infer("m", {"x": X}, version="1")
