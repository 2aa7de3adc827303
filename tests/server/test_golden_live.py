"""Each golden tree that a CPU can serve loads on the embedded Triton, with auto-complete off: all in one server."""

from __future__ import annotations

import shutil

import goldens
import pytest
from agreement import ask_triton

from tritongen.modelconfig import ModelConfig, parse_pbtxt
from tritongen.repository import apply_plan
from tritongen.workflow.rendering import plan_render

pytestmark = pytest.mark.server

LEAST = 15


def not_served(name: str, config: ModelConfig) -> str:
    """Why the embedded server cannot serve a model; nothing where it can."""
    if reason := goldens.settings(name).get("not_live"):
        return reason
    if config.backend == "tensorrt":
        return "a TensorRT plan, which is built where it is served"
    if any(group.kind == group.KIND_GPU for group in config.instance_group):
        return "instances on a GPU"
    return ""


def test_goldens_load(tmp_path):
    repository = tmp_path / "repository"
    asked, left_out = [], {}
    for name in goldens.NAMES:
        folder = tmp_path / name
        folder.mkdir()
        with plan_render(goldens.build(name, folder)) as rendering:
            apply_plan(rendering.plan)
        for model in sorted(rendering.root.iterdir()):
            reason = not_served(name, parse_pbtxt((model / "config.pbtxt").read_text()))
            if reason:
                left_out[model.name] = reason
            else:
                shutil.copytree(model, repository / model.name)
                asked.append(model.name)
    verdicts = ask_triton(repository, asked, auto_complete=False)
    assert {name: verdict.reasons for name, verdict in verdicts.items() if not verdict.loads} == {}
    print(f"{len(asked)} models of {len(goldens.NAMES)} goldens loaded; judged by the rules alone: {left_out}")
    assert len(asked) >= LEAST
