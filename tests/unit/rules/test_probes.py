"""Every recorded verdict of NVIDIA's C++ onnxruntime backend is predicted, in both modes and with its cause.

The record (tests/probes.py) is the evidence for what that backend refuses: the embedded backend shares its rules with `check`, so that the two agreeing proves
nothing.
"""

from __future__ import annotations

import pytest

from tests.probes import LOADS, MODELS, PROBES
from tests.rules.building import build_onnx
from tritongen.check.contexts import load_model
from tritongen.check.evaluate import evaluate_models
from tritongen.modelconfig import parse_pbtxt
from tritongen.releases import find_release
from tritongen.repository.scan import scan_repository
from tritongen.rules import ServerFacts, ortload
from tritongen.rules.graphs import graph_of, json_form
from tritongen.signature import read_onnx

MODES = {"default": True, "strict": False}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    for probe in PROBES:
        probe.write(root)
    return root


@pytest.fixture(scope="module", params=MODES)
def findings(request, repository):
    """By model, what `check --release 24.10 --gpus 0` finds; and the mode."""
    facts = ServerFacts(find_release("24.10"), gpus=0, auto_complete=MODES[request.param])
    found = {folder.name: evaluate_models([load_model(folder, facts)]) for folder in scan_repository(repository).models}
    return MODES[request.param], found


def codes(found, consequence):
    return frozenset(finding.diagnostic.code for finding in found if finding.consequence == consequence)


def test_the_record_is_whole():
    assert len(PROBES) == 92
    assert len({probe.name for probe in PROBES}) == 92


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_the_verdict_and_its_cause_are_predicted(probe, findings):
    auto_complete, found = findings
    refused = codes(found[probe.name], "misbehaves" if probe.of_the_build else "refused")
    assert (not refused) == (probe.outcome(auto_complete=auto_complete) == LOADS)
    assert refused == probe.causes(auto_complete=auto_complete)


@pytest.mark.parametrize("probe", [probe for probe in PROBES if any(probe.fails) or probe.says], ids=lambda probe: probe.name)
def test_what_loads_and_does_not_work_is_told(probe, findings):
    """c05c without auto-complete and c28a load without a word and fail requests; others load and leave out what they were told."""
    auto_complete, found = findings
    assert codes(found[probe.name], "fails") == probe.fails[0 if auto_complete else 1]
    assert codes(found[probe.name], "ignored") | codes(found[probe.name], "misbehaves") >= probe.says


def test_controls_are_clean(findings):
    _, found = findings
    for name in ("c00_control", "c00b_control_backend", "c04b_mbs0_ok", "c23c_fixed_mbs0", "c26b_twonb_mbs0", "c29a_string_ok"):
        assert found[name] == []


def test_the_warmup_that_can_crash_the_server_says_so(findings):
    """In 20 fresh servers, 14 died with SIGSEGV and 6 refused the model."""
    _, found = findings
    (finding,) = found["c21a_wu_batch16"]
    assert "crash" in finding.diagnostic.message


BY_BACKEND = [
    probe
    for probe in PROBES
    if probe.config and probe.model in MODELS and any(probe.codes | (probe.strict_codes or frozenset()) & {f"TG34{number}" for number in range(1, 8)})
]
"""Cases that the backend's comparison with the graph refuses."""


@pytest.mark.parametrize(
    "probe",
    [probe for probe in BY_BACKEND if probe.codes | (probe.strict_codes or frozenset()) <= {f"TG34{n}" for n in range(1, 8)}],
    ids=lambda probe: probe.name,
)
def test_the_first_problem_is_said_in_the_words_of_nvidias_backend(probe, tmp_path):
    (tmp_path / "model.onnx").write_bytes(build_onnx(MODELS[probe.model]))
    config = json_form(parse_pbtxt(probe.text))
    release_24_10 = {"bf16": False}
    problems = ortload.judge(config, graph_of(read_onnx(tmp_path / "model.onnx")), **release_24_10)
    first = next(problem for problem in problems if problem.refused)
    assert first.message == probe.outcome(auto_complete=False).replace("{name}", probe.name)


@pytest.mark.parametrize("name", ["c07b_param_nan", "c07e_param_execmode", "c08a_acc_cpu_unknown"])
def test_parameters_and_accelerators_are_refused_in_the_words_of_nvidias_backend(name):
    probe = next(probe for probe in PROBES if probe.name == name)
    config = json_form(parse_pbtxt(probe.text))
    problems = [*ortload.parameter_problems(config, gpu=False), *ortload.accelerator_problems(config, gpu=False)]
    assert [problem.message for problem in problems] == [probe.default]
