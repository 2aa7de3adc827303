"""Plans of all nine light networks, in full size, by TensorRT-RTX on the CPU: as they are, and rebatched, with profiles."""

from __future__ import annotations

import json
import shutil

import networks
import pytest

from tritongen.recipe import read_recipes

pytestmark = pytest.mark.system

SPEC = """version: 1
models:
- {{name: static, source: {name}.onnx, backend: tensorrt, batching: none}}
- {{name: batched, source: {name}.onnx, backend: tensorrt, rebatch: true, batching: {{max: 8, preferred: [4, 8]}}}}
"""


@pytest.mark.parametrize("name", networks.LIGHT)
def test_a_network_is_built_as_it_is_and_in_batches(name, tmp_path, tritongen):
    networks.light(name, tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC.format(name=name))
    result = tritongen("build", tmp_path / "spec.yaml", "--with", "tensorrt-rtx", "--format", "json")
    assert result.code == 0, result.err
    plans = {plan["model"]: plan for plan in json.loads(result.out)["plans"]}
    assert {name: plan["state"] for name, plan in plans.items()} == {"static": "built", "batched": "built"}
    weights = (tmp_path / f"{name}.onnx").stat().st_size
    assert all(plan["bytes"] > weights / 2 for plan in plans.values())
    (recipe,) = read_recipes((tmp_path / "model_repository.artifacts/batched/recipes.json").read_text())
    assert [(*profile.shapes.values(),)[0].optimum[0] for profile in recipe.profiles] == [4, 8]
    second = tritongen("build", tmp_path / "model_repository", "--with", "tensorrt-rtx", "--format", "json")
    assert {plan["state"] for plan in json.loads(second.out)["plans"]} == {"good"}
    shutil.rmtree(tmp_path)  # gigabytes, which pytest would keep
