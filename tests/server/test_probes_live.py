"""The embedded server gives the recorded verdicts of NVIDIA's C++ onnxruntime backend, for the recorded reasons.

That it agrees with `check` proves nothing about section B of the rules, which both share: the record (tests/probes.py) is the evidence, and this holds the
server to it. The warmup that crashes the server (c21a; 14 of 20 fresh servers died) is loaded in a server of its own: there a crash counts as the recorded
outcome.
"""

from __future__ import annotations

import pytest
from agreement import DIED, ask_triton

from tests.probes import LOADS, PROBES
from tritongen.server import gpu, start

pytestmark = pytest.mark.server

SAFE = [probe for probe in PROBES if not probe.crashes]
SERVED_HERE = ["c09d_openvino", "c11a_kindgpu", "c31e_opset26"]
NUMBER_OF_RELEASE = "24.10"


@pytest.fixture(scope="module", autouse=True)
def no_gpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert gpu.count() == 0
        yield


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    for probe in PROBES:
        probe.write(root)
    return root


@pytest.fixture(scope="module", params=["default", "strict"])
def verdicts(request, repository):
    """By model, why it was not loaded (nothing where it was), with `serve --strict`; and the mode of auto-complete."""
    auto_complete = request.param == "default"
    verdicts = ask_triton(repository, [probe.name for probe in SAFE], auto_complete=auto_complete, strict=True)
    return auto_complete, {name: verdict.reasons[0] if verdict.reasons else "" for name, verdict in verdicts.items()}


@pytest.mark.parametrize("probe", SAFE, ids=lambda probe: probe.name)
def test_the_verdict_is_nvidias_for_the_same_reason(probe, verdicts):
    auto_complete, reasons = verdicts
    expected = probe.outcome(auto_complete=auto_complete).replace("{name}", probe.name)
    if expected == LOADS:
        assert reasons[probe.name] == ""
    else:
        assert expected in reasons[probe.name]


@pytest.mark.parametrize("name", SERVED_HERE)
def test_what_differs_by_the_machine_alone_is_served_with_a_warning(name, options, tmp_path):
    """Newer stamps than 24.10's onnxruntime opens, an accelerator that a build may lack, and a missing GPU."""
    next(probe for probe in PROBES if probe.name == name).write(tmp_path)
    with start(tmp_path, options()) as server:
        assert server.models[name] == "READY"
        (warning,) = server.warnings
    assert warning.startswith(f"model {name}: ")
    assert "would refuse it" in warning
    assert f"release {NUMBER_OF_RELEASE}" in warning


def test_a_newer_release_has_nothing_to_say_about_the_operator_set(options, tmp_path):
    next(probe for probe in PROBES if probe.name == "c31e_opset26").write(tmp_path)
    with start(tmp_path, options(release="26.08", strict=True)) as server:
        assert server.warnings == ()


def test_the_warmup_that_fails_is_refused_or_takes_the_server_down(tmp_path):
    (probe,) = [probe for probe in PROBES if probe.crashes]
    probe.write(tmp_path)
    verdict = ask_triton(tmp_path, [probe.name], auto_complete=False, strict=True)[probe.name]
    assert not verdict.loads
    assert verdict.reasons[0] == DIED or "batch size 16" in verdict.reasons[0] or "failed to run warmup sample 'w'" in verdict.reasons[0]
