"""`tritongen render --deploy compose` as a user runs it, and the deployment at the top of this checkout."""

from __future__ import annotations

import re
from pathlib import Path

import compose
import pytest

from tritongen.check.codes import find_code
from tritongen.repository import Action
from tritongen.spec import load_spec
from tritongen.workflow.deploying import Deploying

CHECKOUT = Path(__file__).parents[3]
FILES = {"docker-compose.yml", "docker-compose.cpu.yml", "loadtests/Dockerfile", "loadtests/scenario.py"}


def test_the_deployment_of_this_checkout_is_that_of_the_quickstart():
    """`tritongen render examples/quickstart/spec.yaml --deploy compose` writes it anew."""
    plan = Deploying(load_spec(CHECKOUT / "examples/quickstart/spec.yaml"), None, cpu=False).plan(force=False)
    assert plan.root == CHECKOUT
    assert {change.name for change in plan.changes} > FILES
    assert {change.name: change.action for change in plan.changes if change.action is not Action.KEEP} == {}
    services = compose.read((CHECKOUT / "docker-compose.yml").read_text())["services"]
    assert services["tritonserver"]["volumes"][0]["source"] == "./model_repository"


def test_the_guide_names_what_is_rendered():
    guide = (CHECKOUT / "docs/deploy.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`([a-z-]+)`", "".join(line.split("|")[1] for line in guide.splitlines() if line.startswith("| `"))))
    template = (CHECKOUT / "templates/docker-compose.yml.j2").read_text(encoding="utf-8")
    assert set(re.findall(r"^  ([a-z]+-?[a-z]*):$", template, re.MULTILINE)) - {"prometheus-data", "grafana-data", "grafana-admin"} == described
    assert [code for code in re.findall(r"TG\d{3}", guide) if find_code(code) is None] == []
    flags = set(re.findall(r"tritongen render[^`\n]*?(--[a-z-]+)", guide))
    assert flags == {"--deploy", "--cpu"}


def test_nothing_is_written_before_it_is_asked_for(project, tritongen):
    for flags, code in ((("--dry-run",), 0), (("--check",), 1)):
        result = tritongen("render", project / "spec.yaml", "--deploy", "compose", *flags)
        assert result.code == code
        assert "create    docker-compose.yml" in result.out
    assert sorted(path.name for path in project.iterdir()) == ["mlp.onnx", "spec.yaml"]


def test_a_second_render_changes_nothing_and_check_agrees(project, tritongen):
    first = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert first.code == 0
    assert "created   docker-compose.yml" in first.out
    assert {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()} > FILES
    assert "created" not in tritongen("render", project / "spec.yaml", "--deploy", "compose").out
    assert tritongen("render", project / "spec.yaml", "--deploy", "compose", "--check").code == 0


@pytest.mark.parametrize("edited", ["docker-compose.yml", "loadtests/scenario.py", "model_repository/mlp/config.pbtxt"])
def test_a_hand_edit_anywhere_keeps_everything_as_it_is(project, tritongen, edited):
    tritongen("render", project / "spec.yaml", "--deploy", "compose")
    (project / edited).write_text((project / edited).read_text() + "# mine\n")
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("max: 8", "max: 16") + "server: {exit_timeout: 5s}\n")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert (result.code, result.out) == (2, "")
    assert "TG043" in result.err
    assert str(project / edited).removesuffix("/config.pbtxt") in result.err
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    assert tritongen("render", project / "spec.yaml", "--deploy", "compose", "--dry-run").code == 1
    # An edit that the spec does not contradict is one all the same, until it is given up.
    assert tritongen("render", project / "spec.yaml", "--deploy", "compose", "--force").code == 0


def test_what_is_wrong_with_the_deployment_is_said_with_what_is_wrong_with_the_models(project, tritongen):
    text = (project / "spec.yaml").read_text().replace('release: "25.08"', 'release: "25.08", engine_cache: /models')
    (project / "spec.yaml").write_text(f"{text}    accelerator: tensorrt\n    warmup: [16]\nserver: {{model_control: explicit, load_models: [other]}}\n")
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert result.code == 2
    assert "TG015" in result.err
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text().replace("    warmup: [16]\n", "    instances: [{kind: cpu}]\n"))
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert [code for code in ("TG107", "TG431", "TG435") if f"error {code}" not in result.err] == []
    assert not (project / "docker-compose.yml").exists()


def test_output_moves_the_repository_that_is_rendered(project, tritongen):
    tritongen("render", project / "spec.yaml", "--deploy", "compose", "-o", project / "elsewhere")
    read = {name: compose.read((project / name).read_text())["services"]["tritonserver"]["volumes"][0]["source"] for name in FILES if name.endswith(".yml")}
    assert read == {"docker-compose.yml": str(project / "elsewhere"), "docker-compose.cpu.yml": "./model_repository.cpu"}


def test_python_does_the_same(project):
    import tritongen

    rendering = tritongen.render(project / "spec.yaml", cpu=True, deploy=True)
    assert rendering.plan.root == project / "model_repository.cpu"
    assert (project / "docker-compose.yml").exists()
