"""A repository whose plans were built, by trtexec's script and by TensorRT-RTX: the embedded server serves the sources of the plans all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "trtexec"))

import networks
from running import Site, shells

from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

SPEC = """version: 1
triton: {release: "25.08"}
repository: model repository
models:
- {name: one, source: a.onnx, backend: tensorrt, batching: {max: 4}}
- {name: two, sources: {1: a.onnx, 2: b.onnx}, backend: tensorrt, batching: {max: 4}, versions: {policy: all}}
"""
X = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)


@pytest.fixture
def site(tmp_path, tritongen, monkeypatch):
    """The repository, with all its plans and their manifests."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    networks.mlp(tmp_path / "a.onnx", seed=1)
    networks.mlp(tmp_path / "b.onnx", seed=2)
    (tmp_path / "spec.yaml").write_text(SPEC)
    built = tritongen("build", tmp_path / "spec.yaml", "--with", "tensorrt-rtx")
    assert built.code == 0, built.err
    site = Site(tmp_path, dict(shells())["dash"])
    run = site.run()
    assert run.stdout.endswith("3 built, 0 failed\n"), run.stderr
    return site


def test_the_sources_of_built_plans_are_served_and_what_is_stale_is_said(site, options, ask):
    answers = [onnxruntime.InferenceSession(site.root / name).run(None, {"x": X})[0] for name in ("a.onnx", "b.onnx")]
    assert not np.allclose(*answers)
    plan = site.plan("one")
    plan.write_bytes(plan.read_bytes() + b"!")
    with serving(site.repository, options()) as served:
        (stale,) = served.findings
        assert (stale.code, stale.model, stale.severity.value) == ("TG359", "one", "warning")
        assert "is not the file that was built" in stale.message
        np.testing.assert_allclose(ask(served.server, "one", {"x": X})["y"], answers[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(ask(served.server, "two", {"x": X})["y"], answers[1], rtol=1e-4, atol=1e-6)
    assert site.run().stdout.endswith("1 built, 0 failed\n")
    with serving(site.repository, options()) as served:
        assert served.findings == ()
