"""`instances`, `cpu_threads` and `triton.cpus` → `instance_group` and the threads of each copy."""

import pytest

from tests.unit.render.compiling import compiled
from tritongen.diagnostics import Severity
from tritongen.modelconfig import parse_pbtxt

CORES = "triton: {cpus: 8}"


def groups(text):
    return list(parse_pbtxt(f"instance_group [ {text} ]").instance_group)


@pytest.mark.parametrize(
    ("keys", "text", "codes"),
    [
        ("instances: {kind: gpu, count: 2, gpus: [0, 2]}", "{ kind: KIND_GPU count: 2 gpus: [0, 2] }", []),
        ("backend: tensorrt\ninstances: {kind: gpu, profiles: [0, 2]}", '{ kind: KIND_GPU count: 1 profile: ["0", "2"] }', []),
        (
            "backend: tensorrt\ninstances: {kind: gpu, dla: 1}",
            "{ kind: KIND_GPU count: 1 secondary_devices: [ { kind: KIND_NVDLA device_id: 1 } ] }",
            [],
        ),
        ("instances: {kind: cpu, host_policy: numa_1}", '{ kind: KIND_CPU count: 1 host_policy: "numa_1" }', ["TG174"]),
        (
            "instances: {kind: cpu, rate_limiter: {resources: [{name: R1, count: 4}, {name: R2, global: true}], priority: 2}}",
            '{ kind: KIND_CPU count: 1 rate_limiter { resources: [ { name: "R1" count: 4 }, { name: "R2" global: true count: 1 } ] priority: 2 } }',
            ["TG174"],
        ),
    ],
)
def test_keys_become_fields(keys, text, codes):
    outcome = compiled(keys)
    assert list(outcome.config.instance_group) == groups(text)
    assert outcome.codes == codes


def test_a_key_that_needs_an_option_of_the_server_says_which():
    outcome = compiled("instances: [{kind: cpu}, {kind: cpu, host_policy: near, rate_limiter: {priority: 3}}]", top=CORES)
    found = [finding for finding in outcome.found if finding.code == "TG174"]
    assert [finding.location.path for finding in found] == ["instances.1.rate_limiter", "instances.1.host_policy"]
    assert "--rate-limit=execution_count" in found[0].message
    assert "--host-policy=near," in found[1].message
    assert {finding.severity for finding in found} == {Severity.ADVICE}


def test_an_accelerator_that_no_backend_asks_for_is_not_written():
    outcome = compiled("instances: {kind: gpu, dla: 0}")
    assert outcome.only("TG117").location.path == "instances.0.dla"
    assert not outcome.config.instance_group[0].secondary_devices


def threads(outcome):
    """The threads of a copy; None where ONNX Runtime decides."""
    parameters = outcome.config.parameters
    return int(parameters["intra_op_thread_count"].string_value) if "intra_op_thread_count" in parameters else None


@pytest.mark.parametrize(
    ("keys", "top", "want", "codes"),
    [
        ("instances: {kind: cpu}", CORES, None, []),
        ("instances: {kind: cpu, count: 2}", CORES, 4, []),
        ("instances: {kind: cpu, count: 3}", CORES, 2, []),
        ("instances: {kind: auto, count: 2}", CORES, 4, []),
        ("instances: [{kind: cpu}, {kind: auto}]", CORES, 4, []),
        ("instances: [{kind: cpu}, {kind: gpu, count: 4}]", CORES, None, []),
        ("instances: {kind: gpu, count: 4}", CORES, None, []),
        ("accelerator: cuda", CORES, None, []),
        ("instances: {kind: cpu, count: 9}", CORES, 1, ["TG175"]),
        ("instances: {kind: cpu, count: 2}", "", 1, ["TG173"]),
        ("instances: {kind: cpu, count: 2}\ncpu_threads: 3", "", 3, []),
        ("instances: {kind: cpu, count: 2}\ncpu_threads: 4", CORES, 4, []),
        ("instances: {kind: cpu, count: 2}\ncpu_threads: 5", CORES, 5, ["TG175"]),
        ("cpu_threads: 9", CORES, 9, ["TG175"]),
        ("instances: {kind: cpu, count: 2}\nconfig: {parameters: {intra_op_thread_count: {string_value: '7'}}}", "", 7, []),
        ("config: {instance_group: [{kind: KIND_CPU}]}", CORES, 4, []),
        ("config: {instance_group: [{kind: KIND_CPU, count: 1}]}", CORES, None, []),
        ("backend: tensorrt", CORES, None, []),
    ],
)
def test_copies_on_the_cpu_share_its_cores(keys, top, want, codes):
    outcome = compiled(keys, top=top)
    assert threads(outcome) == want
    assert outcome.codes == codes


def test_threads_for_a_plan_have_no_effect():
    outcome = compiled("backend: tensorrt\ncpu_threads: 2")
    assert outcome.only("TG117").location.path == "cpu_threads"
    assert threads(outcome) is None


def test_how_threads_were_derived_is_said_in_the_config():
    assert compiled("instances: {kind: cpu, count: 3}", top=CORES).remarks[-1] == (
        "2 threads for each of 3 copies on the CPU: the server has 8 cores (triton.cpus)."
    )
    unknown = compiled("instances: {kind: cpu, count: 2}")
    assert "triton.cpus" in unknown.remarks[-1]
    assert "triton: {cpus: 8}" in unknown.only("TG173").hint
    assert "cpu_threads" in unknown.only("TG173").hint


def test_too_many_threads_are_said_with_the_arithmetic():
    finding = compiled("instances: {kind: cpu, count: 2}\ncpu_threads: 5", top=CORES).only("TG175")
    assert "2 x 5 threads (copies on the CPU x threads of each) are 10, and triton.cpus is 8" in finding.message
    assert "write cpu_threads: 4, or lower the count of instances to 1" in finding.hint
    assert finding.location.path == "cpu_threads"
