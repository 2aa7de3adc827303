"""The services of a deployment: valid compose files that say what the spec says."""

from __future__ import annotations

import ast
import dataclasses
import re
import shlex
import subprocess
from typing import Any

import compose
import pytest
from deployments import MODEL, PLACES, SPECS, VARIABLES, loaded, texts, without_gpu

from tritongen.render.deploy import CPU_FILE, DOCKERFILE, LEAD, SCENARIO

GPU = {"capabilities": ["gpu"], "driver": "nvidia"}


@pytest.mark.parametrize("name", SPECS)
def test_both_files_are_valid_and_ask_for_locusts_variables_alone(name, tmp_path):
    files = texts(loaded(tmp_path, SPECS[name]))
    for path in (LEAD, CPU_FILE):
        assert compose.faults(files[path]) == []
        assert compose.variables_of(files[path]) == VARIABLES
        read = compose.read(files[path])
        wanted = {name for service in read["services"].values() for name in service.get("depends_on", ())}
        assert wanted <= set(read["services"])
        volumes = {mount["source"] for service in read["services"].values() for mount in service.get("volumes", ()) if mount["type"] == "volume"}
        assert volumes == set(read.get("volumes", ()))
    ast.parse(files[SCENARIO])
    assert "'tritongen[load]==9.8.7'" in files[DOCKERFILE]


def test_variables_reach_the_builder_of_plans_and_gpus_have_the_numbers_of_nvidia_smi(services):
    found = services(f"deploy: {{environment: {{CUDA_MODULE_LOADING: LAZY}}}}\n{SPECS['several models']}")
    wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_MODULE_LOADING": "LAZY"}
    assert found["plan-builder"]["environment"] == found["tritonserver"]["environment"] == wanted
    assert "environment" not in services(SPECS["cpu"])["tritonserver"]


def reserved(service: dict[str, Any]) -> list[dict[str, Any]]:
    return service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("cpu", []),
        ("one gpu", [{**GPU, "device_ids": ["0"]}]),
        ("four gpus", [{**GPU, "device_ids": ["0", "1", "2", "3"]}]),
        ("mig", [{**GPU, "device_ids": ["MIG-8f7c6d1e-0000-1111-2222-333344445555"]}]),
        ("all gpus", [{**GPU, "count": "all"}]),
    ],
)
def test_the_server_gets_the_gpus_that_the_spec_names(services, name, devices):
    on_gpu, on_cpu = services(SPECS[name]), services(SPECS[name], cpu=True)
    assert reserved(on_gpu["tritonserver"]) == devices
    assert ("nvidia-gpu" in on_gpu) == bool(devices)
    assert reserved(on_cpu["tritonserver"]) == []
    assert "nvidia-gpu" not in on_cpu


def test_plans_are_built_before_the_server_starts_by_the_only_one_that_may_write(services):
    found = services(SPECS["several models"])
    builder, server = found["plan-builder"], found["tritonserver"]
    assert builder["command"] == ["sh", "/models.artifacts/build_plans.sh", "/models"]
    assert builder["image"] == server["image"] == "nvcr.io/nvidia/tritonserver:26.08-py3"
    assert reserved(builder) == reserved(server)
    assert server["depends_on"]["plan-builder"] == {"condition": "service_completed_successfully"}
    assert {mount["target"]: mount.get("read_only", False) for mount in builder["volumes"]} == {"/models": False, "/models.artifacts": False}
    writable = {mount["target"] for mount in server["volumes"] if not mount.get("read_only", False)}
    assert writable == {"/engine-cache"}
    assert "plan-builder" not in services(SPECS["several models"], cpu=True)
    assert "plan-builder" not in services(SPECS["cache"])


def test_nobody_is_root_but_who_gives_the_volume_its_owner(services):
    found = services(SPECS["several models"])
    assert {name for name, service in found.items() if service.get("user", "").startswith("0")} == {"engine-cache"}
    assert found["engine-cache"]["entrypoint"] == ["chown", "1000:1000", "/engine-cache"]
    assert found["tritonserver"]["user"] == "1000:1000"
    as_root = services(SPECS["plans as root"])
    assert "engine-cache" not in as_root
    assert (as_root["tritonserver"]["user"], as_root["grafana"]["user"]) == ("0:0", "472:0")
    assert "engine-cache" not in services(SPECS["plans as root"].replace("0:0", "00"))
    gaining = {name for name, service in found.items() if "no-new-privileges:true" not in service.get("security_opt", ())}
    assert gaining == {"nvidia-gpu", "engine-cache", "prometheus", "locust-master", "locust-worker"}


@pytest.mark.parametrize(
    ("spec", "stated", "name"),
    [
        ("spec.yaml", "", "a-model.v2"),
        ("x/spec.yaml", "", "a-model.v2"),
        ("deploy/OCR prod.yaml", "", "ocr-prod"),
        ("ocr_.yaml", "", "ocr_"),
        ("../__.yaml", "", "tritongen-9911f4d2"),
        (f"{'n' * 200}.yaml", "", f"{'n' * 54}-1be63cc0"),
        ("ocr.yaml", "deploy: {name: mine}", "mine"),
    ],
)
def test_the_project_is_called_by_the_spec(tmp_path, spec, stated, name):
    made = loaded(tmp_path, f"{stated}\nmodels: [{{name: A-model.v2, source: m.onnx}}]")
    files = texts(made, dataclasses.replace(PLACES, spec=spec))
    assert {compose.read(files[path])["name"] for path in (LEAD, CPU_FILE)} == {name.replace(".", "-")}


NAMES = ("模型", "检测", "模型1", "检测1", "modèle", "mod-le", f"{'n' * 63}", f"{'n' * 63}a", f"{'n' * 63}b", "-", "_")


def test_specs_of_two_names_are_two_projects(tmp_path):
    """Also where compose has no letter for what tells them apart, or no room."""
    made = loaded(tmp_path, "models: [{name: m, source: m.onnx}]")
    projects = [compose.read(texts(made, dataclasses.replace(PLACES, spec=f"{name}.yaml"))[LEAD])["name"] for name in NAMES]
    assert len(set(projects)) == len(NAMES)
    assert [name for name in projects if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,62}", name)] == []


def test_every_model_is_asked_for_and_engines_have_time(services):
    server = services(SPECS["several models"])["tritonserver"]
    asked = [word.removeprefix("http://localhost:8000") for word in server["healthcheck"]["test"] if word.startswith("http")]
    assert asked == ["/v2/health/ready", "/v2/models/a/ready", "/v2/models/b/ready", "/v2/models/c/ready"]
    assert server["healthcheck"]["start_period"] == "17m"
    assert services(SPECS["limits"])["tritonserver"]["healthcheck"]["start_period"] == "90s"
    assert services(SPECS["explicit"])["tritonserver"]["healthcheck"]["test"][-1].endswith("/v2/models/b/ready")
    assert services(SPECS["open to all"])["tritonserver"]["healthcheck"]["test"][-1].endswith("/v2/health/ready")


def test_only_models_that_are_loaded_at_the_start_build_engines_then(services):
    model = "{name: %s, source: m.onnx, accelerator: tensorrt}"
    loads = "server: {model_control: explicit, load_models: [a]}\nmodels: [" + ", ".join(model % name for name in "abc") + "]"
    assert services(loads)["tritonserver"]["healthcheck"]["start_period"] == "17m"


@pytest.mark.parametrize("password", ["", "deploy: {monitoring: {admin_password: p}}"])
def test_no_proxy_is_asked_for_what_is_inside(services, password):
    """Docker's own configuration may give one to every container, and `deploy.environment` to the server's."""
    found = services(f"{password}\nmodels: [{{name: m, source: m.onnx}}]")
    test = found["tritonserver"]["healthcheck"]["test"]
    assert test[test.index("--noproxy") + 1] == "*"
    assert found["grafana"]["environment"]["NO_PROXY"] == "prometheus"
    for name in ("locust-master", "locust-worker"):
        assert {found[name]["environment"][key] for key in ("NO_PROXY", "no_proxy")} == {"tritonserver"}


def test_the_engine_waits_longer_than_triton_does(services):
    assert services("models: [{name: m, source: m.onnx}]")["tritonserver"]["stop_grace_period"] == "40s"
    assert services("server: {exit_timeout: 5m}\nmodels: [{name: m, source: m.onnx}]")["tritonserver"]["stop_grace_period"] == "310s"


def test_ports_are_on_loopback_unless_asked(services):
    text = "models: [{name: m, source: m.onnx}]"
    published = [port for service in services(text).values() for port in service.get("ports", ())]
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert {port["published"] for port in published} == {"8000", "8001", "8002", "9090", "3000", "8089"}
    http = services(SPECS["open to all"])["tritonserver"]["ports"][0]
    assert http == {"target": 8000, "published": "80", "host_ip": "::", "protocol": "tcp"}


def test_a_cache_is_there_where_a_model_asks_for_one(services):
    assert "--cache-config=local,size=67108864" in services(SPECS["cache"])["tritonserver"]["command"]
    assert not any("cache" in word for word in services(SPECS["all gpus"])["tritonserver"]["command"])


def test_plans_have_the_settings_of_the_backend_that_they_need(services):
    model = "{{name: {name}, source: m.onnx, backend: tensorrt, tensorrt: {{build: {{{build}}}}}}}"
    asked = model.format(name="a", build="version_compatible: true, plugins: [/opt/a.so]"), model.format(name="b", build="plugins: [/opt/a.so, b.so]")

    def settings_of(text, **how):
        return [word for word in services(text, **how)["tritonserver"]["command"] if word.startswith("--backend-config")]

    text = f"models: [{', '.join(asked)}]"
    assert settings_of(text) == ["--backend-config=tensorrt,version-compatible=true", "--backend-config=tensorrt,plugins=/opt/a.so;b.so"]
    assert settings_of(text, cpu=True) == []
    stated = f"server: {{backend_config: {{tensorrt: {{plugins: '/opt/a.so;b.so;c.so'}}}}}}\n{text}"
    assert settings_of(stated) == ["--backend-config=tensorrt,plugins=/opt/a.so;b.so;c.so", "--backend-config=tensorrt,version-compatible=true"]


def test_a_password_is_a_file_and_stands_nowhere(tmp_path):
    spec = loaded(tmp_path, SPECS["secrets by file"])
    text = texts(spec, dataclasses.replace(PLACES, password_file="./secrets/grafana.txt"))[LEAD]
    read = compose.read(text)
    assert compose.faults(text) == []
    assert read["secrets"] == {"grafana-admin-password": {"file": "./secrets/grafana.txt"}}
    told = {name: value for name, value in read["services"]["grafana"]["environment"].items() if name.startswith("GF_")}
    assert told == {"GF_SECURITY_ADMIN_PASSWORD__FILE": "/run/secrets/grafana-admin-password"}
    assert read["services"]["grafana"]["user"] == "1000:1000"
    check = read["services"]["grafana"]["entrypoint"][2]
    for content, code in (("", 3), (" \n", 3), ("a word", 0)):
        (tmp_path / "secret").write_text(content)
        ran = check.replace("/run/secrets/grafana-admin-password", shlex.quote(str(tmp_path / "secret"))).replace("exec /run.sh", "exit 0")
        assert subprocess.run(["sh", "-c", ran], capture_output=True, timeout=60, check=False).returncode == code
    # Without one, nobody can log in.
    open_ = compose.read(texts(spec)[LEAD])["services"]["grafana"]["environment"]
    assert open_["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert open_["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    # The volume belongs to the same user before there is a password.
    assert compose.read(texts(spec)[LEAD])["services"]["grafana"]["user"] == "1000:1000"


def test_who_may_look_at_prometheus_can_neither_end_it_nor_delete_what_it_knows(services):
    flags = services(f"deploy: {{monitoring: {{address: 0.0.0.0}}}}\nmodels: [{MODEL}]")["prometheus"]["command"]
    assert [flag.partition("=")[0] for flag in flags] == ["--config.file", "--storage.tsdb.path", "--storage.tsdb.retention.time"]


def test_without_metrics_nothing_looks_at_them(services):
    found = services(SPECS["no metrics"])
    assert {"prometheus", "grafana"}.isdisjoint(found)
    assert [port["target"] for port in found["tritonserver"]["ports"]] == [8000, 8001]


@pytest.mark.parametrize(("has_driver", "kernel", "code"), [(True, "Linux", 0), (False, "Linux", 3), (False, "Linux microsoft-standard-WSL2", 0)])
def test_a_machine_without_a_gpu_is_told_what_to_do(services, tmp_path, has_driver, kernel, code):
    driver, version = tmp_path / "driver", tmp_path / "version"
    version.write_text(kernel)
    if has_driver:
        driver.touch()
    run = without_gpu(services(SPECS["one gpu"])["nvidia-gpu"], driver, version)
    assert run.returncode == code
    assert ("docker compose -f docker-compose.cpu.yml up" in run.stderr) == (code != 0)
    assert ("tritongen render --cpu spec.yaml" in run.stderr) == (code != 0)


def test_the_server_without_gpus_is_told_nothing_of_them(services):
    text = """
server:
  rate_limit: {resources: [{name: slot, count: 2, gpu: 1}, {name: other, count: 3}]}
  host_policies: {gpu_0: {numa_node: 0}, cpu: {numa_node: 1}, mine: {cpu_cores: 32-63}}
  backend_config: {tensorrt: {coalesce-request-input: true}, onnxruntime: {a: b}}
triton: {cpus: 64}
models: [{name: m, source: m.onnx, instances: [{kind: gpu}]}]
"""
    said = services(text, cpu=True)["tritonserver"]["command"]
    assert [word for word in said if "limit-res" in word or "policy" in word or "backend" in word] == [
        "--rate-limit-resource=other:3",
        "--backend-config=onnxruntime,a=b",
    ]
    assert "deploy" not in services(text, cpu=True)["tritonserver"]
    assert services(text)["tritonserver"]["deploy"]["resources"]["limits"] == {"cpus": "64"}
    assert sum("gpu" in word or "slot" in word or "tensorrt" in word for word in services(text)["tritonserver"]["command"]) == 3
