"""The catalogue's rules, asked about a model before it is written: `render` writes nothing that `check` would find wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritongen.diagnostics import Severity
from tritongen.modelconfig import read_config
from tritongen.proof import Proof
from tritongen.releases import Release
from tritongen.render.findings import Findings, Key
from tritongen.render.origins import origin
from tritongen.repository import CONFIG, CopiedFile, Entry, TextFile
from tritongen.repository.copying import source_size
from tritongen.repository.scan import FileFacts, ModelFolder
from tritongen.rules import RULES, ModelContext, ModelFile, ServerFacts
from tritongen.rules.rule import Finding, Rule
from tritongen.signature import Signature
from tritongen.signature.inference import refine_outputs
from tritongen.spec import ModelSpec

_VARIABLE = "TG372"
_TOLD = {
    "TG370": "write a longer one, such as max_queue_delay: 2ms, or leave it out: requests that wait anyway are combined without it",
    "TG371": "write a delay well below the model's own latency, such as max_queue_delay: 2ms",
    _VARIABLE: "",
    "TG373": "add max to preferred, or write preferred: none",
}
"""Advice that follows from the spec alone, and what to write there in place of the rule's hint for a config; nothing where that fits both."""

_LATER = frozenset({"TG351"})
"""Rules about what is made after the render, on the machine that serves."""

_MEANT: Mapping[str, Key] = {"TG304": ("onnxruntime", "graph_optimization")}
"""Rules about numbers that mean something else than they seem to → the key of the spec that has words for them: whoever wrote the word meant it."""


@dataclass(frozen=True)
class ProvenFile:
    """One version's model file: what it says, where it is, and what came of running it."""

    signature: Signature
    path: Path
    proof: Proof

    def as_loaded(self) -> Signature:
        """The signature as ONNX Runtime sees it: with the shapes that it reported itself, or with those that shape inference finds."""
        return _as_proven(self.signature, self.proof) or refine_outputs(self.path, self.signature)


def judge_entry(entry: Entry, model: ModelSpec, files: Mapping[int, ProvenFile], *, release: Release | None, findings: Findings) -> None:
    """Ask every rule about single models. What is refused, fails, is ignored or misbehaves becomes a finding at the key of the spec that it comes from.

    Other advice than that about batches is left to `tritongen check`: how many GPUs there are, for one, is not known here.
    """
    context = _context(entry, files, release)
    for rule in RULES:
        if rule.check is None or rule.code in _LATER:
            continue
        if rule.needs <= context.known and (rule.code != _VARIABLE or _vary(context.config, model)):
            for finding in rule.check(context):
                _add(rule, finding, model, findings)


def _vary(config: Any, model: ModelSpec) -> bool:
    """Whether requests of different shapes are to be expected: an input has a -1, and `shapes` states no single size for it."""
    variable = [tensor.name for tensor in config.input if -1 in tensor.dims]
    return any(name not in model.known_shapes or not model.known_shapes[name].fixed for name in variable)


def _context(entry: Entry, files: Mapping[int, ProvenFile], release: Release | None) -> ModelContext:
    text = entry.files[CONFIG]
    assert isinstance(text, TextFile)
    read = read_config(text.content, str(CONFIG))
    facts: dict[str, FileFacts] = {}
    for path, file in entry.files.items():
        facts |= {parent.as_posix(): FileFacts("folder") for parent in path.parents if parent.name}
        size = len(file.content) if isinstance(file, TextFile) else source_size(file) if isinstance(file, CopiedFile) else None
        if size is not None:
            facts[path.as_posix()] = FileFacts("file", size)
    folder = ModelFolder(entry.name, Path(entry.name), facts, text.content)
    is_onnx = read.config.backend == "onnxruntime"
    served = {version: ModelFile(file.signature, refine=file.as_loaded) for version, file in files.items()} if is_onnx else {}
    server = ServerFacts(release, auto_complete=False)
    return ModelContext(entry.name, read.config, True, server, read.locate, folder, served, text.content, recipes=entry.recipes)


def _as_proven(signature: Signature, proof: Proof) -> Signature | None:
    """The signature with the output shapes that ONNX Runtime itself reported; None where it was not asked."""
    if proof.output_dims is None:
        return None
    shapes = {name: tuple(dim if dim >= 0 else None for dim in dims) for name, dims in proof.output_dims.items()}
    return dataclasses.replace(
        signature, outputs=tuple(dataclasses.replace(tensor, shape=shapes.get(tensor.name, tensor.shape)) for tensor in signature.outputs)
    )


def _add(rule: Rule, finding: Finding, model: ModelSpec, findings: Findings) -> None:
    consequence = finding.consequence or rule.consequence
    if consequence.severity is Severity.ADVICE and rule.code not in _TOLD:
        return
    key = origin(finding.key, model)
    if _MEANT.get(rule.code) == key:
        return
    add = {Severity.ERROR: findings.error, Severity.WARNING: findings.warning, Severity.ADVICE: findings.advice}[consequence.severity]
    hint = finding.hint if key[:1] == ("config",) else _TOLD.get(rule.code) or finding.hint
    add(rule.code, key, finding.message, consequence=finding.follows or consequence.words, hint=hint)
