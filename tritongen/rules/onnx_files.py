"""Rules: ONNX files by themselves, their names, and the release's ONNX Runtime. Part of the family TG34x."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritongen.diagnostics import Diagnostic, Location
from tritongen.known_issues import find_issue
from tritongen.releases import RELEASES, Release
from tritongen.rules.context import ModelContext
from tritongen.rules.ortload import Problem, limits_of, too_new
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.signature.external import BESIDE, outside_files
from tritongen.signature.onnx import UNSEEN

_RECORDED = "recorded by running NVIDIA's backend of release 24.10"
_CONFINED = find_issue("no-external-data-outside")
_GENERATED = re.compile(r"\d+|onnx::\w+|(input|output|x|y)\.\d+")


def _files(context: ModelContext) -> Iterator[Finding]:
    if context.is_onnx:
        yield from _outside(context)
        said: dict[Diagnostic, None] = {problem: None for file in context.models.values() for problem in file.problems}
        for problem in said:
            seen = problem.consequence != UNSEEN
            yield Finding(
                f"{problem.message} ({problem.code})",
                ("default_model_filename",),
                problem.hint,
                problem.location,
                consequence=None if seen else Consequence.FRAGILE,
                follows="" if seen else UNSEEN,
            )


def _outside(context: ModelContext) -> Iterator[Finding]:
    """External data where only some releases read it."""
    release = context.server.release
    refused = release is not None and _CONFINED.holds_in(release)
    where = f"in release {release.name}" if release is not None and refused else f"from release {_CONFINED.first} on"
    said: dict[str, None] = {}
    for file in context.models.values():
        for message in outside_files(file.signature.external_data).values() if file.signature is not None else ():
            said[message] = None
    for message in said:
        text = f"{message}; {where} {_CONFINED.text} (TG033)"
        yield Finding(text, ("default_model_filename",), BESIDE, consequence=None if refused else Consequence.FRAGILE)


def _generated_names(context: ModelContext) -> Iterator[Finding]:
    for role in ("input", "output"):
        for index, tensor in enumerate(getattr(context.config, role)):
            if _GENERATED.fullmatch(tensor.name) and context.is_onnx:
                message = f"{role} '{tensor.name}' has a name that the exporter made up; the next export may number it otherwise"
                hint = "name inputs and outputs when exporting (torch.onnx.export: input_names=, output_names=)"
                yield Finding(message, (role, index, "name"), hint)


def _too_new(context: ModelContext) -> Iterator[Finding]:
    release = context.server.release
    assert release is not None, "the rule needs a release"
    limits = limits_of(release.onnxruntime or "")
    if not context.is_onnx or limits is None:
        return
    for number, file in context.models.items():
        if file.signature is None or context.folder is None:
            continue
        for problem in too_new(file.signature.opsets, file.signature.ir_version, limits):
            stamped = f"version {number} of the model is stamped with {problem.name} {problem.found}"
            message = f"{stamped}, and ONNX Runtime {release.onnxruntime} of release {release.name} opens up to {problem.expected}"
            path = context.folder.path / context.versions.loaded[number] / context.resolved.filename
            yield Finding(message, hint=_downgrade(problem), location=Location(str(path)))


def _downgrade(problem: Problem) -> str:
    newer = _first_release(problem)
    other = f"use release {newer.name} or newer" if newer is not None else "use a newer release"
    if problem.name == "IR version":
        return (
            f"set model.ir_version = {problem.expected} and save it again (it is only the container's version; ONNX's checker says whether it fits), or {other}"
        )
    return f"export the model with opset {problem.expected} (onnx.version_converter converts some), or {other}"


def _first_release(problem: Problem) -> Release | None:
    """The first release that opens what a problem is about."""
    attribute = {"IR version": "ir", "operator set of ai.onnx": "opset"}.get(problem.name, "ml")
    for release in RELEASES:
        limits = limits_of(release.onnxruntime or "")
        if limits is not None and getattr(limits, attribute) >= int(problem.found):
            return release
    return None


RULES: tuple[Rule, ...] = (
    Rule(
        "TG340",
        "unusable-model-file",
        Consequence.REFUSED,
        "The model file of every loaded version is an ONNX model that ONNX Runtime can open.",
        f"ONNX Runtime refuses the file, and one version that does not load fails the whole model ({_RECORDED}). The code in brackets explains the fault.",
        "model/1/model.onnx   # a Git LFS pointer, an empty file, half a file, a value that is no tensor",
        "model/1/model.onnx   # the whole file",
        _files,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG348",
        "generated-tensor-name",
        Consequence.FRAGILE,
        "Inputs and outputs have names that somebody chose.",
        "Exporters number what nobody names ('307', 'input.79', 'onnx::Shape_261'), and the next export counts otherwise: config, clients and "
        "ensembles then name what is no more.",
        'output [ { name: "307" data_type: TYPE_FP32 dims: [ 16 ] } ]',
        'output [ { name: "logits" data_type: TYPE_FP32 dims: [ 16 ] } ]',
        _generated_names,
    ),
    Rule(
        "TG349",
        "model-newer-than-the-release",
        Consequence.REFUSED,
        "The model's IR version and operator sets are not newer than the ONNX Runtime of the release.",
        "ONNX Runtime refuses a newer stamp whatever the model uses ('Opset 26 is under development', 'Unsupported model IR version'; "
        f"{_RECORDED}). The limits of each "
        "version were measured with its published package.",
        "# model.onnx has opset 26, and the release is 24.10 (ONNX Runtime 1.19.2: up to opset 21, IR version 10)",
        "# model.onnx has opset 21 and IR version 10",
        _too_new,
        needs=frozenset({"release", "signature"}),
    ),
)
