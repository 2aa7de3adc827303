"""`spec.yaml` → the plan for its model repository."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from tritongen import __version__
from tritongen.batching import batch_blockers
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import InputError, ModelFileError, SpecError
from tritongen.proof import DEFAULT_LIMIT_BYTES, Proof, prove
from tritongen.releases import DEFAULT_RELEASE, find_release
from tritongen.render import Findings, ModelFiles, build_entry, compile_model, hash_model
from tritongen.render.judging import judge_entry
from tritongen.render.proving import judge_proof
from tritongen.repository import CopiedFile, Entry, Plan, make_plan, read_stamp
from tritongen.samples import Array, SampleError, as_array
from tritongen.signature import Signature
from tritongen.signature.inference import infer_missing_shapes
from tritongen.signature.onnx import read_onnx
from tritongen.spec import LoadedSpec, ModelSpec, load_spec
from tritongen.spec.paths import expand
from tritongen.workflow.releases import release_findings


@dataclass(frozen=True)
class Rendering:
    """What a spec makes of a repository, before anything is written.

    Attributes:
        loaded: the spec.
        plan: what would change on disk.
        findings: warnings and advice; errors are raised instead.
    """

    loaded: LoadedSpec
    plan: Plan
    findings: tuple[Diagnostic, ...]


def plan_render(spec_path: Path, *, output: Path | None = None, force: bool = False, prove_limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Rendering:
    """Read a spec and its models, compile them and compare with the repository. Writes nothing.

    Args:
        spec_path: the spec file.
        output: the repository's folder; by default the one that the spec names.
        force: plan to overwrite what was edited by hand.
        prove_limit_bytes: models above this size are not run in ONNX Runtime.

    Raises:
        InputError: with everything that is wrong in the spec and in all its models.
        RepositoryError: where the repository cannot be read.
    """
    loaded = load_spec(spec_path)
    root = output if output is not None else loaded.repository_path()
    entries: list[Entry] = []
    found = list(release_findings(loaded))
    for index, model in enumerate(loaded.spec.models):
        findings = _findings(loaded, index)
        try:
            entry = _render_model(loaded, index, root, prove_limit_bytes, findings)
        except InputError as error:
            findings.found += [_placed(diagnostic, model.name, loaded.locate(("models", index, "source"))) for diagnostic in error.diagnostics]
        else:
            entries.append(entry)
        found += findings.found
    errors = [diagnostic for diagnostic in found if diagnostic.severity is Severity.ERROR]
    if errors:
        raise InputError(found)
    return Rendering(loaded, make_plan(root, entries, force=force), tuple(found))


def _findings(loaded: LoadedSpec, index: int) -> Findings:
    """A collector for the model with this index."""
    prefix = ("models", index)
    return Findings(loaded.spec.models[index].name, lambda key: loaded.locate((*prefix, *key)), lambda key: loaded.is_inherited((*prefix, *key)))


def _placed(diagnostic: Diagnostic, model: str, source: Location) -> Diagnostic:
    """What is wrong with a model's file, at the place in the spec that names the file."""
    if diagnostic.location is None or diagnostic.location.path == source.path:
        return dataclasses.replace(diagnostic, model=model, location=diagnostic.location or source)
    return dataclasses.replace(diagnostic, model=model, location=source, message=f"{diagnostic.location}: {diagnostic.message}")


def _render_model(loaded: LoadedSpec, index: int, root: Path, prove_limit_bytes: int, findings: Findings) -> Entry:
    model = loaded.spec.models[index]
    path = loaded.source_path(index)
    signature = infer_missing_shapes(path, read_onnx(path))
    try:
        files = hash_model(path, signature, findings)
    except OSError as error:
        raise ModelFileError(
            [Diagnostic("TG022", f"the model cannot be read: {error.strerror}", Location(str(error.filename)), hint="check its permissions")]
        ) from error
    version, previous = _version(model, root, files)
    compiled = compile_model(
        model,
        signature,
        loaded.spec.triton,
        digest=files.digest,
        version=version,
        samples=_samples(loaded, index, signature, findings),
        findings=findings,
    )
    proof = Proof(skipped="there were errors before")
    if not findings.has_errors:
        external = [part.location for part in signature.external_data]
        proof = prove(path, compiled.feeds, limit_bytes=prove_limit_bytes, external=external)
        judge_proof(model, signature, compiled.config, compiled.batching, proof, findings)
    entry = build_entry(
        model, compiled, files, version=version, previous=previous, labels=_labels(loaded, model), spec_name=loaded.path.name, tritongen_version=__version__
    )
    if not findings.has_errors:
        release = find_release(loaded.spec.triton.release) if loaded.spec.triton.release else DEFAULT_RELEASE
        judge_entry(entry, model, signature, path, proof, version=version, release=release, findings=findings)
    return entry


def _samples(loaded: LoadedSpec, index: int, signature: Signature, findings: Findings) -> dict[str, Array]:
    """The spec's values for inputs, as arrays of one item each."""
    model = loaded.spec.models[index]
    batched = not batch_blockers(signature) and model.batching.max != 0
    arrays: dict[str, Array] = {}
    for name, value in model.samples.items():
        tensor = next((tensor for tensor in signature.inputs if tensor.name == name), None)
        if tensor is None:
            known = ", ".join(repr(tensor.name) for tensor in signature.inputs)
            findings.error("TG103", ("samples", name), f"the model has no input '{name}'", hint=f"its inputs are {known}")
            continue
        shape = None if tensor.shape is None else tensor.dims[1:] if batched else tensor.dims
        try:
            arrays[name] = as_array(_load_npy(loaded, value) if name in model.sample_files else value, tensor.dtype, shape)
        except SampleError as error:
            what = "without the batch dimension" if batched else "in the model's own shape"
            findings.error("TG116", ("samples", name), f"the value does not fit {tensor.describe()}: {error}", hint=f"give one item, {what}")
    return arrays


def _load_npy(loaded: LoadedSpec, value: object) -> object:
    path = expand(str(value), loaded.folder)
    assert isinstance(path, Path), "load_spec has checked the sample files"
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SampleError(f"{path.name} cannot be read as a .npy file: {error}") from error


def _labels(loaded: LoadedSpec, model: ModelSpec) -> dict[str, bytes]:
    contents = {}
    for output, text in model.labels.items():
        path = expand(text, loaded.folder)
        assert isinstance(path, Path), "load_spec has checked the label files"
        try:
            contents[output] = path.read_bytes()
        except OSError as error:
            raise SpecError(
                [Diagnostic("TG016", f"the label file cannot be read: {error.strerror}", Location(str(path)), hint="check its permissions")]
            ) from error
    return contents


def _version(model: ModelSpec, root: Path, files: ModelFiles) -> tuple[int, Mapping[PurePosixPath, CopiedFile]]:
    """The version folder to write, and the files of earlier ones that stay.

    With `version: auto`, the newest version that we wrote is kept where its weights are the same, and followed by the next number where they are not.
    """
    if model.version != "auto":
        return model.version, {}
    folder = root / model.name
    config = folder / "config.pbtxt"
    stamp = read_stamp(config.read_text(encoding="utf-8", errors="replace")) if config.is_file() else None
    written: dict[int, dict[PurePosixPath, str]] = {}
    for path, sha in (stamp.files if stamp else {}).items():
        if path.parts[0].isdigit():
            written.setdefault(int(path.parts[0]), {})[PurePosixPath(*path.parts[1:])] = sha
    for path in stamp.kept if stamp else ():
        written[int(path.parts[0])] = dict(stamp.artifacts) if stamp else {}
    newest = max(written, default=0)
    version = newest if newest and written[newest] == dict(files.hashes) else newest + 1
    kept = [] if model.backend == "tensorrt" else [number for number in sorted(written) if version - model.versions.count < number < version]
    return version, {
        PurePosixPath(str(number), inner): CopiedFile(folder / str(number) / inner, sha) for number in kept for inner, sha in written[number].items()
    }
