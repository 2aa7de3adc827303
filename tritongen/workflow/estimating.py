"""How much memory of a GPU the models of a spec are estimated to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import InputError, ModelFileError, SpecError
from tritongen.memory import Estimate, Footprint, ModelEstimate, Outline, Placement, estimate_memory, read_outline
from tritongen.render import Compiled, Findings, compile_model
from tritongen.render.placement import placed_groups
from tritongen.render.precision import narrows_floats
from tritongen.render.rewriting import conversion_of
from tritongen.render.versions import served_versions
from tritongen.repository import repository_root
from tritongen.rewrite import Convert
from tritongen.signature import Signature
from tritongen.spec import LoadedSpec, read_spec
from tritongen.spec.units import about_size
from tritongen.workflow.preparing import reshaped
from tritongen.workflow.specified import findings_of, placed_at, release_of, samples_of
from tritongen.workflow.workspace import Workspace


@dataclass(frozen=True)
class Estimation:
    """A spec, and what its models take. `findings`: what else there is to say of the spec."""

    loaded: LoadedSpec
    estimate: Estimate
    findings: tuple[Diagnostic, ...]


def estimate_spec(spec_path: Path, *, memory: int | None = None) -> Estimation:
    """Estimate what the models of a spec take of each GPU. Nothing is run or written; weights are read only where `freeze` or `rebatch` is asked for.

    Args:
        spec_path: the spec file.
        memory: bytes of a GPU; by default what the spec says.

    Raises:
        InputError: with everything that is wrong in the spec and in all its models.
    """
    reading = read_spec(spec_path)
    loaded = reading.loaded
    if loaded is None or reading.problems:
        raise SpecError(reading.problems)
    models: list[ModelEstimate] = []
    collectors = [findings_of(loaded, index) for index in range(len(loaded.spec.models))]
    workspace = Workspace(repository_root(loaded.repository_path()))
    try:
        for index, findings in enumerate(collectors):
            try:
                models += _model(loaded, index, workspace, findings)
            except InputError as error:
                name = loaded.spec.models[index].name
                findings.found += [placed_at(diagnostic, name, loaded.locate(("models", index))) for diagnostic in error.diagnostics]
        found = tuple(finding for findings in collectors for finding in findings.found)
        if any(finding.severity is Severity.ERROR for finding in found):
            raise InputError(found)
        estimate = estimate_memory(models, loaded.spec.triton.gpu_memory if memory is None else memory)
    finally:
        workspace.close()
    return Estimation(loaded, estimate, found)


def _model(loaded: LoadedSpec, index: int, workspace: Workspace, findings: Findings) -> list[ModelEstimate]:
    """One model's served versions. Raises InputError for a file that cannot be used."""
    model = loaded.spec.models[index]
    files = {}
    for placed in model.placed:
        source = loaded.source_path(index, placed.version)
        files[placed.version or 1] = reshaped(model, placed, source, release=release_of(loaded), workspace=workspace, findings=findings)
    _, signature, stated = files[max(files)]
    compiled = compile_model(
        model,
        signature,
        loaded.spec.triton,
        digest="",
        versions=sorted(files),
        samples=samples_of(loaded, index, signature, findings),
        findings=findings,
        stated=stated,
    )
    if findings.has_errors:
        return []
    files_by_version = {version: (path, signature) for version, (path, signature, _) in files.items()}
    return estimate_files(compiled, files_by_version, loaded.spec.triton.release_name, convert=conversion_of(compiled.model))


def estimate_files(compiled: Compiled, files: Mapping[int, tuple[Path, Signature]], release: str, *, convert: Convert | None = None) -> list[ModelEstimate]:
    """What each version of a compiled model takes that Triton loads. `files`: by version, with their signatures; the rest as for `estimate_model`."""
    model = compiled.model
    served = served_versions(model, sorted(files)) if model.sources else list(files)
    return [estimate_model(compiled, *files[version], release, version=version if len(served) > 1 else None, convert=convert) for version in served]


def estimate_model(
    compiled: Compiled, path: Path, signature: Signature, release: str, *, version: int | None = None, convert: Convert | None = None
) -> ModelEstimate:
    """What one model file takes, as its compiled model is served.

    Args:
        compiled: the model.
        path: the file.
        signature: what it says.
        release: the tag of the release that serves it.
        version: its number, where several are served.
        convert: the conversion of the file that is still to come; None for one that is served as it is.

    Raises:
        ModelFileError: TG165 for a file that cannot be read, TG166 for one that cannot be converted.
    """
    model, most = compiled.model, compiled.batching.max_batch_size
    outline = read_outline(path, convert=convert, float_bytes=2 if narrows_floats(model, release) else 4)
    at = _measure(compiled, outline, signature)
    unknown: list[str] = []
    found: Footprint | None = None
    missing = [f"'{tensor.name}'" for tensor in signature.inputs if tensor.name not in compiled.sizes]
    if model.ragged is not None:
        unknown.append("what is strung together in a ragged input has no size that is known")
    elif missing:
        unknown.append(f"the sizes of {', '.join(missing)} are not known: give them in shapes")
    else:
        try:
            found = at(most)
        except ModelFileError as error:
            unknown += [diagnostic.message for diagnostic in error.diagnostics]
    if found is not None and found.missing:
        first = ", ".join(found.unknown[:3]) + (" and others" if len(found.unknown) > 3 else "")
        unknown.append(f"the sizes of {found.missing} tensors are not known, from {first} on: they depend on values or on operators unknown to ONNX")
    engine = model.backend == "tensorrt"
    return ModelEstimate(
        model.name if version is None else f"{model.name} (version {version})",
        most,
        _placements(compiled),
        found or outline.weights,
        at if found is not None else None,
        tuple(unknown),
        shares_weights=engine and not compiled.profiles,
        slack=1 if engine or model.onnxruntime.cuda.arena_extend_strategy == "same_as_requested" else 2,
        workspace=model.tensorrt.build.max_workspace_size if engine else model.onnxruntime.tensorrt.max_workspace_size,
    )


def _measure(compiled: Compiled, outline: Outline, signature: Signature) -> Callable[[int], Footprint]:
    batched = compiled.batching.max_batch_size > 0

    def at(batch: int) -> Footprint:
        shapes = {}
        for tensor in signature.inputs:
            item = compiled.sizes[tensor.name].maximum
            shapes[tensor.name] = (batch, *item) if batched else item
        return outline.footprint(shapes)

    return at


def _placements(compiled: Compiled) -> tuple[Placement, ...]:
    """Where the copies are; those of kind auto are on GPUs, as the server has some."""
    groups = placed_groups(compiled.model)
    written = compiled.config.instance_group
    profiles = [len(group.profile) for group in written] if len(written) == len(groups) else [0] * len(groups)
    return tuple(
        Placement(group.gpus, group.count, max(1, used)) for group, used in zip(groups, profiles, strict=True) if group.kind in ("gpu", "auto") and group.count
    )


def judge_memory(loaded: LoadedSpec, models: Sequence[ModelEstimate]) -> list[Diagnostic]:
    """Say where the models of a spec are estimated to need more than the memory that it names."""
    findings = Findings("", loaded.locate, lambda key: False)
    estimate = estimate_memory(models, loaded.spec.triton.gpu_memory)
    for gpu in () if estimate.fits else estimate.gpus:
        assert estimate.memory is not None
        if gpu.total > estimate.memory:
            where = estimate.name_of(gpu)
            least = {model.name: "at least " for model in estimate.models if model.unknown}
            needs = ", ".join(f"{name} {least.get(name, '')}{about_size(share.total)}" for name, share in gpu.shares.items())
            total = f"{'at least ' if least.keys() & gpu.shares.keys() else ''}{about_size(gpu.total)}"
            sizes = "; ".join(f"{name}: {batch}" if batch else f"{name}: none" for name, batch in estimate.largest.items() if name in gpu.shares)
            findings.warning(
                "TG185",
                ("triton", "gpu_memory"),
                f"the models are estimated to take {total} of {about_size(estimate.memory)} ({where}): {needs}",
                consequence="a server that runs out of memory fails to load a model, or fails requests under load",
                hint=f"lower batching.max{f' (the largest that fit, the others as they are: {sizes})' if sizes else ''}, the counts of instances, or the max"
                " sizes of shapes; `tritongen estimate` shows the parts",
            )
    return findings.found
