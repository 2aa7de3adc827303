"""The catalogue's rules, asked about a model before it is written: `render` writes nothing that `check` would find wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Severity
from tritongen.modelconfig import read_config
from tritongen.proof import Proof
from tritongen.releases import Release
from tritongen.render.findings import Findings
from tritongen.repository import CopiedFile, Entry, TextFile
from tritongen.repository.scan import FileFacts, ModelFolder
from tritongen.rules import RULES, ModelContext, ModelFile, ServerFacts
from tritongen.rules.rule import Finding, Key, Rule
from tritongen.signature import Signature
from tritongen.signature.inference import refine_outputs
from tritongen.spec import ModelSpec

CONFIG = PurePosixPath("config.pbtxt")


def judge_entry(
    entry: Entry, model: ModelSpec, signature: Signature, source: Path, proof: Proof, *, version: int, release: Release | None, findings: Findings
) -> None:
    """Ask every rule about single models. What is refused, fails, is ignored or misbehaves becomes a finding at the key of the spec that it comes from.

    Advice is left to `tritongen check`: how many GPUs there are, for one, is not known here.
    """
    context = _context(entry, signature, source, proof, version, release)
    for rule in RULES:
        if rule.check is not None and rule.needs <= context.known:
            for finding in rule.check(context):
                _add(rule, finding, model, findings)


def _context(entry: Entry, signature: Signature, source: Path, proof: Proof, version: int, release: Release | None) -> ModelContext:
    text = entry.files[CONFIG]
    assert isinstance(text, TextFile)
    read = read_config(text.content, str(CONFIG))
    facts: dict[str, FileFacts] = {}
    for path, file in entry.files.items():
        facts |= {parent.as_posix(): FileFacts("folder") for parent in path.parents if parent.name}
        size = len(file.content) if isinstance(file, TextFile) else file.source.stat().st_size if isinstance(file, CopiedFile) else None
        if size is not None:
            facts[path.as_posix()] = FileFacts("file", size)
    folder = ModelFolder(entry.name, Path(entry.name), facts, text.content)
    served = (
        {version: ModelFile(signature, refine=lambda: _as_proven(signature, proof) or refine_outputs(source, signature))}
        if read.config.backend == "onnxruntime"
        else {}
    )
    return ModelContext(entry.name, read.config, True, ServerFacts(release, auto_complete=False), read.locate, folder, served, text.content)


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
    if consequence.severity is Severity.ADVICE:
        return
    add = findings.error if consequence.severity is Severity.ERROR else findings.warning
    add(rule.code, _spec_key(finding.key, model), finding.message, consequence=consequence.words, hint=finding.hint)


def _spec_key(key: Key, model: ModelSpec) -> Key:
    """Where in the model's part of the spec a field of the config comes from: its overlay, where that has the field, else the model as a whole."""
    return ("config", *key) if key and key[0] in model.config else ()
