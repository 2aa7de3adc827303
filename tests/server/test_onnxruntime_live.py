"""Settings of ONNX Runtime, from the spec to a running server: what a CPU can have is loaded and answers alike; what cannot work does not load, or fails."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tritonclient.utils import InferenceServerException

from tests.server import models
from tritongen.repository import apply_plan
from tritongen.server import start
from tritongen.workflow.rendering import plan_render

pytestmark = pytest.mark.server

ROWS = models.weights(3, 64, seed=7)
SETTINGS = {
    "plain": "",
    "basic": "onnxruntime: {graph_optimization: basic}",
    "extended": "onnxruntime: {graph_optimization: extended}",
    "unoptimised": "onnxruntime: {graph_optimization: 'off'}",
    "parallel": "onnxruntime: {execution_mode: parallel, inter_op_threads: 2}, cpu_threads: 1",
    "sequential": "onnxruntime: {execution_mode: sequential, enable_mem_pattern: false}",
    "unpooled": "onnxruntime: {enable_mem_arena: false}",
    "shrinking": "onnxruntime: {arena_shrinkage: ['cpu:0']}",
    "outside": "onnxruntime: {use_device_allocator_for_initializers: true}",
    "library": "op_libraries: [/nowhere/libmine.so], warmup: none",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spec")
    onnx.save(models.linear(), folder / "m.onnx")
    entries = "".join(f"- {{name: {name}, source: m.onnx, instances: {{kind: cpu}}{', ' if keys else ''}{keys}}}\n" for name, keys in SETTINGS.items())
    (folder / "spec.yaml").write_text(f"version: 1\nmodels:\n{entries}")
    with plan_render(folder / "spec.yaml") as rendering:
        assert [finding.code for finding in rendering.findings] == []
        apply_plan(rendering.plan)
    # What render refuses (TG181, TG015), written by hand: the server shows why.
    for name, parameters in {
        "foreign": {"memory.enable_memory_arena_shrinkage": "gpu:0"},
        "gone": {"memory.enable_memory_arena_shrinkage": "cpu:0", "enable_mem_arena": "0"},
    }.items():
        text = "".join(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in parameters.items())
        models.put(folder / "model_repository", name, models.linear(), models.LINEAR + text)
    return folder / "model_repository"


@pytest.fixture(scope="module")
def server(repository, options):
    with start(repository, options(exit_on_error=False)) as running:
        yield running


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "library"])
def test_a_model_with_the_setting_answers_as_without(server, ask, name):
    answer = ask(server, name, {"x": ROWS})["y"]
    np.testing.assert_allclose(answer, ask(server, "plain", {"x": ROWS})["y"], rtol=1e-5, atol=1e-6)


def test_a_library_that_is_not_there_is_refused_by_name(server, ask):
    with pytest.raises(InferenceServerException, match="library"):
        ask(server, "library", {"x": ROWS})
    assert "/nowhere/libmine.so" in server.log()


@pytest.mark.parametrize("name", ["foreign", "gone"])
def test_an_arena_that_the_session_does_not_have_fails_every_request(server, ask, name):
    for _ in range(2):
        with pytest.raises(InferenceServerException, match="arena"):
            ask(server, name, {"x": ROWS})
