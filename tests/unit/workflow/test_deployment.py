"""`tritongen render --deploy compose` as a user runs it, and the deployment at the top of this checkout."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from pathlib import Path

import compose
import pytest

from tritongen.check.codes import find_code
from tritongen.repository import Action
from tritongen.spec import load_spec
from tritongen.workflow.deploying import Deploying
from tritongen.workflow.rendering import plan_render
from tritongen.workflow.writing import apply_rendering

CHECKOUT = Path(__file__).parents[3]
FILES = {"docker-compose.yml", "docker-compose.cpu.yml", "loadtests/Dockerfile", "loadtests/scenario.py", "loadtests/grpc_user.py"}


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
        assert re.search(r"^  action    file *$", result.out, re.MULTILINE)
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


def test_a_locustfile_that_somebody_put_there_is_kept_or_a_conflict(project, tritongen):
    (project / "loadtests").mkdir()
    there = project / "loadtests/grpc_user.py"
    there.write_text((CHECKOUT / "loadtests/grpc_user.py").read_text() + "# mine\n")
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert (result.code, result.out) == (2, "")
    assert f"{there}: error TG043" in result.err
    assert f"{project / 'docker-compose.yml'}, which would know it, is not there" in result.err
    assert there.read_text().endswith("# mine\n")
    there.write_text((CHECKOUT / "loadtests/grpc_user.py").read_text())
    assert "unchanged loadtests/grpc_user.py" in tritongen("render", project / "spec.yaml", "--deploy", "compose").out


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_compose_file_of_somebody_elses_stays_and_the_remedy_gives_both_a_place(project, tritongen, as_folder):
    theirs = project / "docker-compose.yml"
    theirs.mkdir() if as_folder else theirs.write_text("services: {}\n")
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert (result.code, result.err.count("TG043"), "deploy.folder gives" in result.err) == (2, 1, True)
    (project / "spec.yaml").write_text((project / "spec.yaml").read_text() + "deploy: {folder: here}\n")
    assert tritongen("render", project / "spec.yaml", "--deploy", "compose").code == 0
    assert (project / "here/docker-compose.yml").is_file()
    assert as_folder or theirs.read_text() == "services: {}\n"


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


GPU_MODEL = "  - {name: accelerated, source: mlp.onnx, batching: {max: 8}, instances: [{kind: gpu}]}\n"


def test_a_model_that_is_refused_keeps_the_deployment(project, tritongen):
    spec = project / "spec.yaml"
    spec.write_text(spec.read_text() + GPU_MODEL)
    assert tritongen("render", spec, "--deploy", "compose").code == 0
    before = {path: path.read_bytes() for path in project.glob("docker-compose*.yml")}
    spec.write_text(spec.read_text().replace("batching: {max: 8}, instances", "bathcing: {max: 8}, instances"))
    result = tritongen("render", spec, "--deploy", "compose", "--keep-going")
    assert result.code == 2
    assert "warning TG441: the deployment was left as it is, since something is wrong with model 'accelerated'" in result.err
    assert "docker-compose.yml" not in result.out
    assert {path: path.read_bytes() for path in project.glob("docker-compose*.yml")} == before


def test_a_model_that_is_a_conflict_keeps_the_deployment(project, tritongen):
    spec = project / "spec.yaml"
    spec.write_text(spec.read_text() + GPU_MODEL)
    assert tritongen("render", spec, "--deploy", "compose").code == 0
    before = {path: path.read_bytes() for path in project.glob("docker-compose*.yml")}
    config = project / "model_repository/accelerated/config.pbtxt"
    config.write_text(config.read_text() + "# mine\n")
    spec.write_text(spec.read_text().replace("max: 8}, instances: [{kind: gpu}]", "max: 4}, instances: [{kind: cpu}]") + "server: {exit_timeout: 5s}\n")
    for options in (["--dry-run"], []):
        result = tritongen("render", spec, "--deploy", "compose", "--keep-going", *options)
        assert result.code == (1 if options else 2)
        assert "warning TG441: the deployment was left as it is, since something is wrong with model 'accelerated'" in result.err
        assert "docker-compose.yml" not in result.out
        assert {path: path.read_bytes() for path in project.glob("docker-compose*.yml")} == before


def planned(project, most, **options):
    """A render of a spec of this moment, whose queue and server follow from one number."""
    spec = project / "spec.yaml"
    text = re.sub(r"max: \d+", f"max: {most}", spec.read_text().partition("server:")[0])
    spec.write_text(f"{text}server: {{exit_timeout: {most}s}}\n")
    return plan_render(spec, deploy=True, **options)


@pytest.mark.parametrize("asked", [8, 16])
def test_of_two_renders_at_once_one_has_the_last_word_on_both(project, asked):
    """Also where the repository, or the deployment, needed nothing when the plan was made."""
    with planned(project, 8) as rendering:
        apply_rendering(rendering)
    with planned(project, asked) as late, planned(project, 32) as early:
        apply_rendering(early)
        apply_rendering(late)
    with planned(project, asked) as rendering:
        assert not any(plan.would_change for plan in rendering.plans)


def test_a_conflict_that_turns_up_once_all_is_held_keeps_the_deployment(project):
    with planned(project, 8) as rendering:
        apply_rendering(rendering)
    before = (project / "docker-compose.yml").read_bytes()
    with planned(project, 16, keep_going=True) as rendering:
        config = project / "model_repository/mlp/config.pbtxt"
        config.write_text(config.read_text() + "# mine\n")
        written = apply_rendering(rendering, skip_conflicts=True)
    assert [finding.code for finding in written.left] == ["TG043", "TG441"]
    assert written.deployment is None
    assert (project / "docker-compose.yml").read_bytes() == before


def test_a_model_that_left_the_spec_and_not_the_repository_is_said(project, tritongen):
    spec = project / "spec.yaml"
    text = spec.read_text()
    spec.write_text(text + GPU_MODEL)
    tritongen("render", spec, "--deploy", "compose")
    spec.write_text(text)
    assert "warning TG441: model 'accelerated' is still in the repository" in tritongen("render", spec, "--deploy", "compose", "--dry-run").err
    assert "TG441" not in tritongen("render", spec, "--deploy", "compose", "--prune").err
    assert tritongen("render", spec, "--deploy", "compose", "--check").err == ""


@pytest.mark.parametrize("folder", ["model_repository", "model_repository/deploy", "model_repository.cpu", "model_repository.artifacts/x", "link"])
def test_a_deployment_inside_a_repository_is_refused(project, tritongen, folder):
    spec = project / "spec.yaml"
    (project / "link").symlink_to("model_repository")
    spec.write_text(f"{spec.read_text()}deploy: {{folder: {folder}}}\n")
    result = tritongen("render", spec, "--deploy", "compose")
    assert (result.code, result.out) == (2, "")
    assert f"{spec}:{len(spec.read_text().splitlines())}:10: error TG435: the deployment's docker-compose.yml would lie in " in result.err
    assert tritongen("render", spec).code == 0


def test_the_builder_of_plans_must_be_the_owner(project, tritongen):
    spec = project / "spec.yaml"
    text = spec.read_text() + "    backend: tensorrt\n    instances: [{kind: gpu}]\n"
    spec.write_text(f'{text}deploy: {{user: "{os.geteuid() + 1}"}}\n')
    result = tritongen("render", spec, "--deploy", "compose")
    assert result.code == 0
    assert f'write deploy: {{user: "{os.geteuid()}:{os.getegid()}"}}' in result.err
    assert "TG442" in result.err
    spec.write_text(f'{text}deploy: {{user: "{os.geteuid()}"}}\n')
    assert "TG442" not in tritongen("render", spec, "--deploy", "compose").err


@pytest.mark.parametrize(
    ("instances", "numbers"),
    [
        ("{kind: gpu, gpus: [3, 1]}", "1 3"),
        ("[{kind: gpu, gpus: [2]}, {kind: gpu}]", ""),
        ("{kind: gpu}", ""),
        ("[{kind: gpu, gpus: [0]}, {kind: gpu, gpus: [2]}]", "0 2"),
    ],
)
def test_the_script_that_builds_plans_knows_the_gpus_that_load_them(project, tritongen, instances, numbers):
    spec = project / "spec.yaml"
    spec.write_text(f"{spec.read_text()}    backend: tensorrt\n    instances: {instances}\n")
    assert tritongen("render", spec).code == 0
    begun = [
        line.split("version 1' ")[1]
        for line in (project / "model_repository.artifacts/build_plans.sh").read_text().splitlines()
        if line.startswith("    begin ")
    ]
    assert [text.strip("'") for text in begun] == [numbers]


def test_a_folder_that_takes_no_deployment_is_found_before_the_repository_is_written(project, tritongen):
    spec = project / "spec.yaml"
    (project / "file").write_text("")
    spec.write_text(f"{spec.read_text()}deploy: {{folder: file}}\n")
    for flags in ((), ("--dry-run",), ("--check",)):
        result = tritongen("render", spec, "--deploy", "compose", *flags)
        assert (result.code, result.out) == (2, "")
        assert f"{project / 'file'}: error TG041" in result.err
    assert not (project / "model_repository").exists()
    spec.write_text(spec.read_text().replace("folder: file", "folder: /proc/deployment"))
    result = tritongen("render", spec, "--deploy", "compose")
    assert "/proc/deployment: error TG044: cannot write the deployment" in result.err
    assert not (project / "model_repository").exists()


def test_what_was_written_before_a_deployment_found_no_place_is_said(project, tritongen, monkeypatch):
    """Such as where docker-compose.yml is a mount of its own: the kernel refuses its rename (EBUSY) once the models are in place."""
    replace = Path.replace

    def refuse(path, target):
        if target == project / "docker-compose.yml":
            raise OSError(errno.EBUSY, "Device or resource busy", str(path), None, str(target))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    result = tritongen("render", project / "spec.yaml", "--deploy", "compose")
    assert result.code == 2
    assert f"{project / 'docker-compose.yml'}: error TG044: cannot write the deployment: Device or resource busy" in result.err
    assert "the deployment is as it was; the model repository was written before (mlp)" in result.err
    assert sorted(path.name for path in project.iterdir()) == ["mlp.onnx", "model_repository", "spec.yaml"]
    assert "written before" not in tritongen("render", project / "spec.yaml", "--deploy", "compose").err, "it was written by the first"


def test_files_that_are_written_no_more_are_removed_by_prune(project, tritongen):
    spec = project / "spec.yaml"
    tritongen("render", spec, "--deploy", "compose")
    spec.write_text(f"{spec.read_text()}server: {{metrics: {{enabled: false}}}}\n")
    for _ in range(2):
        assert "orphan    deploy/monitoring/prometheus/prometheus.yml" in tritongen("render", spec, "--deploy", "compose").out
    result = tritongen("render", spec, "--deploy", "compose", "--prune")
    assert "removed   deploy/monitoring/prometheus/prometheus.yml" in result.out
    assert not (project / "deploy").exists()
    assert tritongen("render", spec, "--deploy", "compose", "--check").code == 0


def test_models_for_gpus_alone_have_no_file_for_the_cpu(project, tritongen):
    spec = project / "spec.yaml"
    tritongen("render", spec, "--deploy", "compose")
    spec.write_text(f"{spec.read_text()}    config: {{instance_group: [{{kind: KIND_GPU}}]}}\n")
    result = tritongen("render", spec, "--deploy", "compose", "--prune")
    assert result.code == 0
    assert "removed   docker-compose.cpu.yml" in result.out
    assert "advice TG434 (model mlp): no docker-compose.cpu.yml is written: config: instance_group is for GPUs" in result.err
    text = (project / "docker-compose.yml").read_text()
    assert "cpu.yml" not in text
    assert "cannot be served without one" in text


def test_a_repository_that_the_server_may_not_read_is_said(project, tritongen):
    spec = project / "spec.yaml"
    spec.write_text(f'{spec.read_text()}deploy: {{user: "{os.geteuid() + 1}:{os.getegid() + 1}"}}\n')
    assert tritongen("render", spec, "--deploy", "compose").code == 0
    config = project / "model_repository/mlp/config.pbtxt"
    for path, mode in ((config, 0o640), (project / "model_repository/mlp", 0o750), (project / "model_repository", 0o700)):
        usual = path.stat().st_mode
        path.chmod(mode)
        result = tritongen("render", spec, "--deploy", "compose")
        assert (result.code, f"who may not read {path}\n" in result.err, "TG449" in result.err) == (0, True, True)
        assert "TG449" in tritongen("render", spec, "--deploy", "compose", "--check").err
        path.chmod(usual)
    (project / "model_repository").chmod(0o700)
    assert "TG449" not in tritongen("render", spec).err
    spec.write_text(spec.read_text().replace(f"{os.geteuid() + 1}:", f"{os.geteuid()}:"))
    assert "TG449" not in tritongen("render", spec, "--deploy", "compose").err


def test_a_deployment_of_another_spec_is_not_replaced(project, tritongen):
    tritongen("render", project / "spec.yaml", "--deploy", "compose")
    before = (project / "docker-compose.yml").read_bytes()
    (project / "other.yaml").write_text((project / "spec.yaml").read_text() + "server: {exit_timeout: 5s}\n")
    result = tritongen("render", project / "other.yaml", "--deploy", "compose")
    assert (result.code, (project / "docker-compose.yml").read_bytes()) == (2, before)
    assert "docker-compose.yml was made from another spec, spec.yaml, whose deployment it is" in result.err
    (project / "spec.yaml").unlink()
    assert tritongen("render", project / "other.yaml", "--deploy", "compose").code == 0
    assert "other.yaml" in (project / "docker-compose.yml").read_text()


def test_output_moves_the_repository_that_is_rendered(project, tritongen):
    tritongen("render", project / "spec.yaml", "--deploy", "compose", "-o", project / "elsewhere")
    read = {name: compose.read((project / name).read_text())["services"]["tritonserver"]["volumes"][0]["source"] for name in FILES if name.endswith(".yml")}
    assert read == {"docker-compose.yml": str(project / "elsewhere"), "docker-compose.cpu.yml": "./model_repository.cpu"}


def test_python_does_the_same(project):
    import tritongen

    rendering = tritongen.render(project / "spec.yaml", cpu=True, deploy=True)
    assert rendering.plan.root == project / "model_repository.cpu"
    assert (project / "docker-compose.yml").exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_is_said_of_a_password_that_is_not_there_makes_it(project, tritongen, is_folder):
    path = project / "se crets/pass.txt"
    if is_folder:
        path.mkdir(parents=True)
    spec = project / "spec.yaml"
    spec.write_text(f"{spec.read_text()}deploy: {{monitoring: {{admin_password: se crets/pass.txt}}}}\n")
    said = tritongen("render", spec, "--deploy", "compose").err
    ((command, password),) = re.findall(r"write the password into it: (.*printf %s (\w+) .*), as the user", said)
    subprocess.run(["sh", "-c", command], check=True, timeout=60)
    assert path.read_text() == password
    assert "write the password into it" not in tritongen("render", spec, "--deploy", "compose").err


def test_a_password_that_is_not_there_is_said_at_its_key(project, tritongen):
    spec = project / "spec.yaml"
    spec.write_text(f"{spec.read_text()}deploy: {{monitoring: {{admin_password: secret.txt}}}}\n")
    line = len(spec.read_text().splitlines())
    said = tritongen("render", spec, "--deploy", "compose").err
    assert f"spec.yaml:{line}:" in said
    assert "TG448" in said
    assert "secret.txt, is not there" in said
    (project / "secret.txt").mkdir()
    assert "secret.txt, is no file" in tritongen("render", spec, "--deploy", "compose").err
    (project / "secret.txt").rmdir()
    (project / "secret.txt").write_text(" \n")
    result = tritongen("render", spec, "--deploy", "compose")
    assert (result.code, "error TG448" in result.err, "secret.txt, is empty" in result.err) == (2, True, True)
    (project / "secret.txt").write_text("a word")
    (project / "secret.txt").chmod(0o600)
    said = tritongen("render", spec, "--deploy", "compose").err
    assert f"Grafana runs as user 1000:1000, who may not read the file with its password, {project / 'secret.txt'}" in said
    (project / "secret.txt").chmod(0o644)
    assert "TG448" not in tritongen("render", spec, "--deploy", "compose").err


def test_the_builder_of_plans_speaks_of_the_image_that_runs_it(project, tritongen):
    spec = project / "spec.yaml"
    spec.write_text(f"{spec.read_text()}deploy: {{image: 'r.example/mine:1'}}\ndefaults: {{backend: tensorrt}}\n")
    assert tritongen("render", spec).code == 0
    assert "\nIMAGE=r.example/mine:1\n" in (project / "model_repository.artifacts/build_plans.sh").read_text()
