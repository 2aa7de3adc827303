"""`cpu_threads`, `triton.cpus` and the copies of a model → the threads of each copy."""

import json
import re

import pytest

from tests.unit.render.compiling import compiled
from tritongen.render.threads import Pools

CORES = "triton: {cpus: 8}"


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


def pools(outcome):
    parameters = outcome.config.parameters
    return tuple(int(parameters[name].string_value) if name in parameters else None for name in ("intra_op_thread_count", "inter_op_thread_count"))


PARALLEL = "onnxruntime: {execution_mode: parallel}"


@pytest.mark.parametrize(
    ("keys", "top", "want", "codes"),
    [
        (PARALLEL, CORES, (5, 4), []),
        (PARALLEL, "triton: {cpus: 2}", (1, 2), []),
        (PARALLEL, "triton: {cpus: 1}", (1, 1), []),
        (PARALLEL, "", (None, None), ["TG173"]),
        (f"{PARALLEL}\ncpu_threads: 6", CORES, (6, 3), []),
        (f"{PARALLEL}\ncpu_threads: 6", "", (6, None), ["TG173"]),
        ("onnxruntime: {execution_mode: parallel, inter_op_threads: 6}", CORES, (3, 6), []),
        ("onnxruntime: {execution_mode: parallel, inter_op_threads: 2}", "", (None, 2), []),
        (f"{PARALLEL}\ninstances: {{kind: cpu, count: 3}}", CORES, (1, 2), []),
        (f"{PARALLEL}\ninstances: {{kind: cpu, count: 3}}", "", (1, 1), ["TG173"]),
        ("cpu_threads: 2\nonnxruntime: {execution_mode: parallel, inter_op_threads: 8}\ninstances: {kind: cpu, count: 2}", CORES, (2, 8), ["TG175"]),
        ("config: {parameters: {execution_mode: {string_value: '1'}}}", CORES, (5, 4), []),
    ],
)
def test_both_pools_of_a_copy_fit_into_its_share(keys, top, want, codes):
    outcome = compiled(keys, top=top)
    assert pools(outcome) == want
    assert outcome.codes == codes


def test_the_arithmetic_of_both_pools_is_said():
    keys = "cpu_threads: 2\nonnxruntime: {execution_mode: parallel, inter_op_threads: 8}\ninstances: {kind: cpu, count: 2}"
    found = compiled(keys, top=CORES).only("TG175")
    assert "2 x 9 threads (copies on the CPU x threads of each: 2 inside an operator + 8 for operators side by side - 1) are 18" in found.message
    assert str(found.location) == "onnxruntime.inter_op_threads"
    assert compiled(f"{PARALLEL}\ninstances: {{kind: cpu, count: 2}}", top=CORES).remarks[-1] == (
        "3 threads inside an operator and 2 threads for operators side by side for each of 2 copies on the CPU: the server has 8 cores (triton.cpus)."
    )


@pytest.mark.parametrize("cores", range(1, 9))
@pytest.mark.parametrize("parallel", [False, True])
def test_derived_pools_take_all_cores_and_no_more(cores, parallel):
    assert Pools.within(cores, parallel=parallel).threads == cores
    for given in range(1, cores + 1):
        assert Pools.within(cores, parallel=parallel, intra=given).threads == (cores if parallel else given)
        assert Pools.within(cores, parallel=True, inter=given).threads == cores


@pytest.mark.parametrize("cpus", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 3, 9])
@pytest.mark.parametrize("inter", [None, 2, 8])
def test_each_remedy_for_too_many_threads_mends_it(cpus, count, threads, inter):
    keys = {"instances": {"kind": "cpu", "count": count}, "cpu_threads": threads}
    if inter:
        keys["onnxruntime"] = {"execution_mode": "parallel", "inter_op_threads": inter}
    top = f"triton: {{cpus: {cpus}}}"
    found = [finding for finding in compiled(written(keys), top=top).found if finding.code == "TG175"]
    assert bool(found) == (count * (threads + (inter or 1) - 1) > cpus)
    for remedy in (remedy for finding in found for remedy in finding.hint.split(", or ")):
        mended = followed(keys, remedy)
        assert mended != keys, remedy
        assert compiled(written(mended), top=top).codes == [], remedy


def written(keys):
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in keys.items())


def followed(keys, remedy):
    """The keys after one remedy was followed to the letter."""
    keys = {**keys, "instances": dict(keys["instances"])}
    if match := re.search(r"count of instances to (\d+)", remedy):
        keys["instances"]["count"] = int(match[1])
    if match := re.search(r"cpu_threads: (\d+)", remedy):
        keys["cpu_threads"] = int(match[1])
    if match := re.search(r"inter_op_threads: (\d+)", remedy):
        keys["onnxruntime"] = {"execution_mode": "parallel", "inter_op_threads": int(match[1])}
    if "remove execution_mode" in remedy:
        del keys["onnxruntime"]
    return keys
