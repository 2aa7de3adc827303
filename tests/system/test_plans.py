"""Plans of all nine light networks, in full size, by TensorRT-RTX on the CPU: as they are, and in batches, with profiles.

Their weights are the constants that the wheel's files have: what TensorRT takes of a network does not depend on them. That a rebatched network answers as the
original does is proved elsewhere, here for one of them on its way through the command line.
"""

from __future__ import annotations

import json
import shutil

import networks
import pytest

from tritongen.recipe import read_recipes
from tritongen.rewrite import rebatch

pytestmark = pytest.mark.system

SLOW = frozenset({"densenet121", "inception_v2", "resnet50"})
"""Networks of many different layers, each of which is compiled for each profile: these get one."""
ONE_GPU = ("--with", "tensorrt-rtx", "--compute-capability", "8.6", "--format", "json")
SPEC = """version: 1
models:
- {{name: static, source: {source}, backend: tensorrt, batching: none}}
- {{name: batched, source: {batched}, backend: tensorrt, batching: {{max: 8, preferred: {preferred}}}{more}}}
"""


def states(result) -> dict[str, str]:
    return {plan["model"]: plan["state"] for plan in json.loads(result.out)["plans"]}


def tuned_for(folder) -> list[int]:
    """The batch that each profile of the second model is tuned for."""
    (recipe,) = read_recipes((folder / "model_repository.artifacts/batched/recipes.json").read_text())
    return [(*profile.shapes.values(),)[0].optimum[0] for profile in recipe.profiles]


@pytest.mark.parametrize("name", networks.LIGHT)
def test_a_network_is_built_as_it_is_and_in_batches(name, tmp_path, tritongen):
    shutil.copy(networks.packaged(f"onnx/backend/test/data/light/light_{name}.onnx"), tmp_path / "fixed.onnx")
    rebatch(tmp_path / "fixed.onnx", tmp_path / "batched.onnx")
    preferred = [8] if name in SLOW else [4, 8]
    (tmp_path / "spec.yaml").write_text(SPEC.format(source="fixed.onnx", batched="batched.onnx", preferred=preferred, more=""))
    result = tritongen("build", tmp_path / "spec.yaml", *ONE_GPU, "--prove-limit", "0")
    assert result.code == 0, result.err
    assert states(result) == {"static": "built", "batched": "built"}
    assert tuned_for(tmp_path) == preferred


def test_a_network_with_weights_is_rebatched_proved_and_built_once(tmp_path, tritongen):
    weights = networks.light("squeezenet", tmp_path).stat().st_size
    (tmp_path / "spec.yaml").write_text(SPEC.format(source="squeezenet.onnx", batched="squeezenet.onnx", preferred=[4, 8], more=", rebatch: true"))
    result = tritongen("build", tmp_path / "spec.yaml", *ONE_GPU)
    assert result.code == 0, result.err
    assert states(result) == {"static": "built", "batched": "built"}
    assert all(plan["bytes"] > weights / 2 for plan in json.loads(result.out)["plans"])
    assert tuned_for(tmp_path) == [4, 8]
    assert states(tritongen("build", tmp_path / "model_repository", *ONE_GPU)) == {"static": "good", "batched": "good"}
