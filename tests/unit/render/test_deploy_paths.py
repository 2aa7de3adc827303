"""Paths and ports of a deployment: how they are stated, and which are refused."""

from __future__ import annotations

import dataclasses

import compose
import pytest
from deployments import MODEL, PLACES, SPECS, loaded

from tritongen.render.deploy import CPU_FILE, LEAD, judge_deployment
from tritongen.workflow.deploying import Deploying


@pytest.mark.parametrize("cache", ["/models", "/models/engines", "/models.artifacts", "/opt", "/opt/tritonserver/backends"])
def test_a_cache_that_would_hide_the_models_is_refused(tmp_path, cache):
    spec = loaded(tmp_path, f"triton: {{engine_cache: {cache}}}\nmodels: [{{name: m, source: m.onnx, accelerator: tensorrt}}]")
    (finding,) = judge_deployment(spec, PLACES).found
    assert finding.code == "TG435"
    assert finding.location.line == 2
    assert judge_deployment(loaded(tmp_path, "models: [{name: m, source: m.onnx, accelerator: tensorrt}]"), PLACES).found == []


def test_a_path_that_is_no_text_is_refused(tmp_path):
    found = judge_deployment(loaded(tmp_path, SPECS["cache"]), dataclasses.replace(PLACES, repository="./\udcff")).found
    assert [finding.code for finding in found] == ["TG435"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("server: {listen: {http: 3000}}", ["TG438"]),
        ("server: {listen: {address: 0.0.0.0, http: 9090, metrics: 8089}}", ["TG438", "TG438"]),
        ("deploy: {load: {port: 9090}, monitoring: {address: '::'}}", ["TG438"]),
        ("server: {listen: {address: 192.0.2.1, http: 3000}}", []),
        ("server: {metrics: {enabled: false}, listen: {http: 3000, grpc: 9090, metrics: 8089}}", []),
        ("server: {metrics: {enabled: false}, listen: {http: 8089}}", ["TG438"]),
    ],
)
def test_two_services_with_one_port_are_refused(tmp_path, text, found):
    assert [finding.code for finding in judge_deployment(loaded(tmp_path, f"{text}\nmodels: [{MODEL}]"), PLACES).found] == found


@pytest.mark.parametrize(
    ("written", "folder", "repository", "cpu_repository"),
    [
        ("model_repository", ".", "./model_repository", "./model_repository.cpu"),
        ("../shared/models", ".", "../shared/models", "../shared/models.cpu"),
        ("/srv/models", ".", "/srv/models", "/srv/models.cpu"),
        ("a/b", "..", "./here/a/b", "./here/a/b.cpu"),
        (".", "x", "..", "../../here.cpu"),
    ],
)
def test_paths_are_relative_to_the_deployment_unless_they_were_absolute(tmp_path, written, folder, repository, cpu_repository):
    here = tmp_path / "here"
    here.mkdir()
    spec = loaded(here, f"repository: {written}\ndeploy: {{folder: {folder}}}\nmodels: [{{name: m, source: m.onnx}}]")
    plan = Deploying(spec, None, cpu=False).plan(force=False)
    read = {path: compose.read(plan.contents[path].decode())["services"]["tritonserver"]["volumes"][0]["source"] for path in (LEAD, CPU_FILE)}
    assert plan.root == (here / folder).resolve()
    assert read == {LEAD: repository, CPU_FILE: cpu_repository}


def test_artifacts_lie_beside_the_repository_itself(tmp_path):
    """A repository that is a link: what Triton must not see is where the render puts it."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "model_repository").symlink_to(tmp_path / "disk")
    spec = loaded(tmp_path, SPECS["several models"])
    for repository, artifacts in (("model_repository", f"{tmp_path}/disk.artifacts"), ("disk", "./disk.artifacts")):
        changed = dataclasses.replace(spec, spec=spec.spec.model_copy(update={"repository": repository}))
        read = compose.read(Deploying(changed, None, cpu=False).plan(force=False).contents[LEAD].decode())
        assert [mount["source"] for mount in read["services"]["plan-builder"]["volumes"]] == [f"./{repository}", artifacts]


def test_a_port_that_is_another_ones_default_is_said_where_it_was_written(tmp_path):
    """The other key stands nowhere in the spec."""
    spec = loaded(tmp_path, f"server:\n  listen:\n    http: 3000\nmodels: [{MODEL}]")
    (finding,) = judge_deployment(spec, PLACES).found
    assert finding.location.line == 4
    assert "deploy.monitoring.grafana_port is too by default" in finding.message
