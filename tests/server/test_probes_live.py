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
COMPLETED = [probe for probe in SAFE if probe.strict is not None or not probe.config or None in probe.fields.values()]
"""Those to which auto-complete makes a difference, or may: there is something to fill in. Each takes a second more, which Triton sleeps."""

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


def ask(repository, probes, *, auto_complete):
    """By model, why `serve --strict` does not load it; nothing where it does."""
    verdicts = ask_triton(repository, [probe.name for probe in probes], auto_complete=auto_complete, strict=True)
    return {name: verdict.reasons[0] if verdict.reasons else "" for name, verdict in verdicts.items()}


@pytest.fixture(scope="module")
def completed(repository):
    return ask(repository, COMPLETED, auto_complete=True)


@pytest.fixture(scope="module")
def as_written(repository):
    return ask(repository, SAFE, auto_complete=False)


def is_recorded(reason, probe, *, auto_complete):
    """Whether NVIDIA's backend gave the same verdict for the same reason."""
    expected = probe.outcome(auto_complete=auto_complete).replace("{name}", probe.name)
    return reason == "" if expected == LOADS else expected in reason


@pytest.mark.parametrize("probe", SAFE, ids=lambda probe: probe.name)
def test_the_verdict_is_nvidias_for_the_same_reason(probe, as_written):
    assert is_recorded(as_written[probe.name], probe, auto_complete=False), as_written[probe.name]


@pytest.mark.parametrize("probe", COMPLETED, ids=lambda probe: probe.name)
def test_the_verdict_on_a_config_that_is_completed_is_nvidias_for_the_same_reason(probe, completed):
    assert is_recorded(completed[probe.name], probe, auto_complete=True), completed[probe.name]


@pytest.mark.fuzz
def test_auto_complete_changes_no_other_verdict(repository):
    others = [probe for probe in SAFE if probe not in COMPLETED]
    reasons = ask(repository, others, auto_complete=True)
    assert {probe.name: reasons[probe.name] for probe in others if not is_recorded(reasons[probe.name], probe, auto_complete=True)} == {}


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
