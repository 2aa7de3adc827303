"""One model's keys and a made-up signature → what `compile_model` makes of them, without any file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Any

from tritongen import dtypes
from tritongen.diagnostics import Diagnostic, Location
from tritongen.recipe import Profile
from tritongen.render import Findings, compile_model
from tritongen.signature import Signature, TensorSpec
from tritongen.sources import SourceText, parse_yaml
from tritongen.spec import Spec

FP32 = dtypes.from_wire("FP32")


def signature(shape: tuple[str | int, ...] = ("N", 8), **changes: Any) -> Signature:
    """`x → y`, both FP32 and of this shape."""
    return Signature((TensorSpec("x", FP32, shape),), (TensorSpec("y", FP32, shape),), **changes)


@dataclass(frozen=True)
class Outcome:
    """What came out: the config, the sentences of its header, the findings, each at the key path of the model that it names, and the plan's profiles."""

    config: Any
    remarks: tuple[str, ...]
    found: list[Diagnostic] = field(default_factory=list)
    profiles: tuple[Profile, ...] = ()

    @property
    def codes(self) -> list[str]:
        return [diagnostic.code for diagnostic in self.found]

    def only(self, code: str) -> Diagnostic:
        (diagnostic,) = [diagnostic for diagnostic in self.found if diagnostic.code == code]
        return diagnostic


def compiled(keys: str, model: Signature | None = None, *, top: str = "", inherited: tuple[str, ...] = (), versions: tuple[int, ...] = (1,)) -> Outcome:
    """Compile one model whose keys (besides name and source) are given as YAML; `inherited` are those that are taken to come from `defaults`."""
    text = f"version: 1\n{top}\nmodels:\n- name: m\n  source: m.onnx\n{textwrap.indent(textwrap.dedent(keys).strip(), '  ')}\n"
    parsed = parse_yaml(SourceText("spec.yaml", text))
    assert parsed.root is not None
    assert not parsed.problems
    spec = Spec.model_validate(parsed.root.plain())
    findings = Findings("m", lambda key: Location(".".join(map(str, key))), lambda key: str(key[0]) in inherited)
    made = compile_model(spec.models[0], model or signature(), spec.triton, digest="0" * 64, versions=versions, samples={}, findings=findings)
    return Outcome(made.config, made.remarks, findings.found, made.profiles)
