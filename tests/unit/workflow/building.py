"""A spec whose model is a plan, for tests of `tritongen build`."""

from __future__ import annotations

import json
from pathlib import Path

import networks

SPEC = """version: 1
triton: {{release: "25.08"}}
models:
- {{name: m, source: m.onnx, backend: tensorrt, batching: {{max: 16}}{more}}}
{others}"""
RTX = ("--with", "tensorrt-rtx")


class Case:
    """A folder with a spec whose model `m` is a plan, and the command line."""

    def __init__(self, folder: Path, tritongen) -> None:
        self.folder, self.call = folder, tritongen
        self.root = folder / "model_repository"
        self.artifacts = folder / "model_repository.artifacts" / "m"
        self.rtx = self.artifacts / "1" / "model.rtx.plan"
        networks.mlp(folder / "m.onnx")
        self.spec()

    def spec(self, more: str = "", others: str = "") -> None:
        (self.folder / "spec.yaml").write_text(SPEC.format(more=more, others=others))

    def build(self, *options: object, target: str = "spec.yaml"):
        return self.call("build", self.folder / target, *options)

    def states(self, *options: object, **more: str) -> list[tuple[str, list[str]]]:
        result = self.build(*options, "--format", "json", **more)
        return [(plan["state"], plan["reasons"]) for plan in json.loads(result.out)["plans"]]
