"""A spec with one model `m`, rendered; what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import networks
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.modelconfig import parse_pbtxt
from tritongen.repository import apply_plan
from tritongen.workflow.rendering import plan_render

ROOT = "model_repository"


@dataclass
class Outcome:
    """What a render said and planned. `errors`: it was refused."""

    findings: tuple
    action: str = ""
    reasons: tuple = ()
    text: str = ""

    @property
    def config(self):
        return parse_pbtxt(self.text)

    @property
    def errors(self):
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    def one(self, code):
        (found,) = (finding for finding in self.findings if finding.code == code)
        return found

    @property
    def codes(self):
        return sorted(finding.code for finding in self.findings)


def render(folder: Path, model: str, *, top: str = 'triton: {release: "25.08"}', apply: bool = True, **options) -> Outcome:
    """Render a spec of one model into `folder`; with `apply`, write the repository."""
    lines = "\n".join("    " + line for line in model.strip().splitlines())
    spec = folder / "spec.yaml"
    spec.write_text(f"version: 1\n{top}\nmodels:\n  - name: m\n{lines}\n")
    try:
        with plan_render(spec, **options) as rendering:
            if apply:
                apply_plan(rendering.plan)
            (change,) = rendering.plan.changes
            text = next(file for path, file in change.entry.files.items() if path.name == "config.pbtxt").content.decode()
            return Outcome(rendering.findings, change.action.value, change.reasons, text)
    except InputError as error:
        return Outcome(tuple(error.diagnostics))


def left_beside(folder: Path) -> list[str]:
    """What a render left beside the repository and must not."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def served(folder: Path, version: int = 1) -> Path:
    return folder / ROOT / "m" / str(version) / "model.onnx"


def answers(path: Path, **feed) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"]).run(None, feed)


def flattening(path: Path, *, batch: str | int = 1) -> Path:
    """`x: float32[batch, 3, 4] → y: float32[batch, 4]`, with a batch of 1 in the target of its Reshape 'flat'."""
    stored = [
        numpy_helper.from_array(np.array([1, 12]), "s"),
        numpy_helper.from_array(np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32), "w"),
    ]
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"], name="flat"), helper.make_node("MatMul", ["r", "w"], ["y"])]
    return networks.save(path, nodes, [("x", TensorProto.FLOAT, [batch, 3, 4])], [("y", TensorProto.FLOAT, [batch, 4])], stored)


def sequence(path: Path) -> Path:
    """`x: float32[N, S, 6] → y: float32[N, S, 4]`."""
    stored = [numpy_helper.from_array(np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32), "w")]
    return networks.save(
        path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, ["N", "S", 6])], [("y", TensorProto.FLOAT, ["N", "S", 4])], stored
    )


def centred(path: Path) -> Path:
    """`x: float32[N, 6] → y: float32[N, 6]`, minus the mean over the batch: its batch axis is a lie."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[0], name="mean"), helper.make_node("Sub", ["x", "m"], ["y"])]
    return networks.save(path, nodes, [("x", TensorProto.FLOAT, ["N", 6])], [("y", TensorProto.FLOAT, ["N", 6])])
