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
        (
            "backend: tensorrt\nbatching: {max: 8, preferred: [2, 4, 8]}\ninstances: {kind: gpu, profiles: [0, 2]}",
            '{ kind: KIND_GPU count: 1 profile: ["0", "2"] }',
            [],
        ),
        (
            "backend: tensorrt\nprecision: fp16\ninstances: {kind: gpu, dla: 1}",
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


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        ("accelerator: tensorrt\ninstances: [{kind: gpu}, {kind: cpu}]", "instances.1", "accelerator: tensorrt (accelerator) needs instances of kind gpu"),
        ("accelerator: cuda\nconfig: {instance_group: [{kind: KIND_CPU}]}", "config.instance_group.0", "accelerator: cuda (accelerator) needs instances"),
        ("backend: tensorrt\nconfig: {instance_group: [{kind: KIND_MODEL}]}", "config.instance_group.0", "backend: tensorrt (backend) needs instances"),
        (
            "accelerator: openvino\nconfig: {instance_group: [{kind: KIND_GPU}]}",
            "config.instance_group.0",
            "accelerator: openvino (accelerator) runs on",
        ),
    ],
)
def test_a_group_where_its_backend_does_not_run_is_refused_with_both_places(keys, place, words):
    found = compiled(keys).only("TG107")
    assert str(found.location) == place
    assert words in found.message
    assert found.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ("instances: {kind: gpu, gpus: [0, 1]}", "{count: 3}"),
        ("instances: {kind: cpu, count: 1}", "{passive: true}"),
        ("instances: {kind: auto}", "{count: 2}"),
        ("instances: {kind: cpu, rate_limiter: {priority: 2}}", "{kind: KIND_CPU, count: 1}"),
    ],
)
def test_instances_and_the_overlay_of_their_groups_are_refused_with_both_places(keys, field):
    found = compiled(f"{keys}\nconfig: {{instance_group: [{field}]}}").only("TG180")
    assert str(found.location) == "config.instance_group"
    assert "instances at instances sets this field, too" in found.message


def test_shared_instances_give_way_to_a_models_own_groups():
    keys = "instances: {kind: gpu, rate_limiter: {priority: 2}}\nconfig: {instance_group: [{kind: KIND_CPU, count: 3, host_policy: near}]}"
    outcome = compiled(keys, top=CORES, inherited=("instances",))
    assert list(outcome.config.instance_group) == groups('{ kind: KIND_CPU count: 3 host_policy: "near" }')
    assert str(outcome.only("TG174").location) == "config.instance_group.0.host_policy"
    assert outcome.remarks[-1].startswith("2 threads for each of 3 copies")


@pytest.mark.parametrize(
    ("keys", "overlay", "effect"),
    [
        ("onnxruntime: {cuda: {use_tf32: false}}", "KIND_CPU", "onnxruntime.cuda"),
        ("onnxruntime: {execution_mode: parallel}", "KIND_GPU", "onnxruntime.execution_mode"),
        ("batching: {pinned_memory: {input: false}}", "KIND_CPU", "batching.pinned_memory"),
    ],
)
def test_what_has_an_effect_on_a_device_is_judged_by_the_overlaid_groups(keys, overlay, effect):
    found = compiled(f"{keys}\nconfig: {{instance_group: [{{kind: {overlay}, count: 1}}]}}", top=CORES).only("TG117")
    assert str(found.location) == effect
