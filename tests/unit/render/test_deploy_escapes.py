"""Nothing in a spec breaks out of the files of its deployment, whatever its names, paths and values are."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import compose
import pytest
from deployments import SPECS, VARIABLES, loaded, loads_of, texts, without_gpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tritongen.load import ModelLoad
from tritongen.render.deploy import CPU_FILE, LEAD, SCENARIO, Places
from tritongen.spec import Spec
from tritongen.templating import comment

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.sampled_from(
    [
        "$",
        "$$",
        "${X}",
        "$X",
        "{{ x }}",
        "{% raw %}",
        '"',
        "'",
        "\\",
        "\n",
        "- a: b",
        "#",
        "no",
        "0",
        "null",
        "~",
        "\u2028",
        "\x85",
        "\x7f",
        "&a",
        "*a",
        "!!x",
        "${",
    ]
)
NAME = TEXT.filter(lambda text: text.strip() and not any(ord(char) < 32 or ord(char) == 127 for char in text))


PARTS = st.fixed_dictionaries(
    {
        "repository": NAME,
        "password": NAME,
        "spec": TEXT,
        "variables": st.dictionaries(st.sampled_from(["A", "B_1", "yes"]), TEXT, max_size=2),
        "backend": NAME.map(lambda text: text.replace(",", "").replace("=", "")).filter(bool),
        "value": NAME,
        "policy": NAME.map(lambda text: text.replace(",", "")).filter(bool),
        "resource": NAME.map(lambda text: text.replace(":", "")).filter(bool),
        "model": st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]{0,12}\Z"),
        "tensor": TEXT.filter(bool),
        "scenario": TEXT.filter(bool),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PARTS)
def test_nothing_in_a_spec_breaks_out(tmp_path, parts):
    check_parts(tmp_path, parts)


@pytest.mark.fuzz
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PARTS)
def test_nothing_in_a_spec_breaks_out_for_long(tmp_path, parts):
    check_parts(tmp_path, parts)


def check_parts(folder, parts: dict[str, Any]) -> None:
    """Render a spec that holds the parts, read the files back, and compare."""
    backend, policy, resource = parts["backend"], parts["policy"], parts["resource"]
    data = {
        "version": 1,
        "server": {
            "backend_config": {backend: {backend: parts["value"]}},
            "host_policies": {policy: {"numa_node": 1}},
            "rate_limit": {"resources": [{"name": resource, "count": 3}]},
        },
        "deploy": {"environment": parts["variables"], "load": {"scenario": parts["scenario"]}},
        "load": {"scenarios": {parts["scenario"]: {"rate": 20}}},
        "models": [{"name": parts["model"], "source": "m.onnx", "shapes": {parts["tensor"]: [1, 2]}}],
    }
    spec = dataclasses.replace(loaded(folder, SPECS["cache"]), spec=Spec.model_validate(data))
    places = Places(parts["spec"], *(f"./{parts['repository']}{end}" for end in ("", ".artifacts", ".cpu")), f"./{parts['password']}")
    files = texts(spec, places)
    for path, root in ((LEAD, places.repository), (CPU_FILE, places.cpu_repository)):
        read = compose.read(files[path])
        server = read["services"]["tritonserver"]
        assert server["volumes"][0]["source"] == root
        assert server.get("environment", {}) == {**({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if path == LEAD else {}), **parts["variables"]}
        assert server["command"] == [
            "tritonserver",
            "--model-repository=/models",
            "--disable-auto-complete-config",
            "--rate-limit=execution_count",
            f"--rate-limit-resource={resource}:3",
            *([f"--host-policy={policy},numa-node=1"] if path == LEAD else []),
            f"--backend-config={backend},{backend}={parts['value']}",
        ]
        assert read["secrets"]["grafana-admin-password"]["file"] == places.password_file
        assert compose.variables_of(files[path]) == {*VARIABLES, "LOCUST_RUN_TIME"}
    assert compose.faults(files[LEAD]) == []
    run = without_gpu(compose.read(files[LEAD])["services"]["nvidia-gpu"])
    assert run.returncode == 3
    assert f"render --cpu {comment(shlex.quote(parts['spec']))}, then" in run.stderr
    (load,) = loads_of(files[SCENARIO])
    assert load == ModelLoad(parts["model"], shape_mix=(({parts["tensor"]: (1, 2)}, 1.0),))
