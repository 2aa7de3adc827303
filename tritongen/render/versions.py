"""Versions of one model: which are served, and whether they have one interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tritongen.render.findings import Findings
from tritongen.repository.stamp import MAX_VERSION
from tritongen.signature import Signature, TensorSpec
from tritongen.spec import ModelSpec


def add_versions(config: Any, model: ModelSpec, written: Sequence[int], findings: Findings) -> None:
    """Write `version_policy`, and say which versions it leaves out. `written`: the version folders that the repository gets, ascending."""
    versions = model.versions
    if versions.policy == "all":
        config.version_policy.all.SetInParent()
    elif versions.policy == "specific":
        config.version_policy.specific.versions.extend(versions.versions)
    elif versions.count != 1:
        config.version_policy.latest.num_versions = versions.count
    if model.sources:
        _check_sources(model, written, findings)
    elif versions.policy == "specific" and written[-1] not in versions.versions:
        findings.error(
            "TG109",
            ("versions",),
            f"version {written[-1]} is written, and versions lists {list(versions.versions)}",
            consequence="Triton would not serve the version that is written",
            hint=f"add {written[-1]} to the list",
        )


def served_versions(model: ModelSpec, written: Sequence[int]) -> list[int]:
    """The versions that Triton loads of those that are there. `written`: ascending."""
    versions = model.versions
    if versions.policy == "specific":
        return [number for number in written if number in versions.versions]
    return list(written) if versions.policy == "all" else list(written[-versions.count :])


def check_foreign(model: ModelSpec, written: Sequence[int], foreign: Sequence[int], beyond: Sequence[str], findings: Findings) -> None:
    """Say where version folders that no render made keep Triton from what is written.

    `written`, `foreign`: their numbers, ascending; `beyond`: names of folders that are higher numbers than Triton can read.
    """
    for name in beyond:
        findings.error(
            "TG242",
            ("sources",) if model.sources else ("version",),
            f"the model's folder holds '{name}', which tritongen did not make, and which is a number beyond 64 bits",
            consequence="the whole server crashes when it looks at this model",
            hint=f"move {name} away, or give it a number of at most {MAX_VERSION}",
        )
    if written[-1] > MAX_VERSION:
        findings.error(
            "TG242",
            ("version",),
            f"version: auto counts on from {foreign[-1]}, a version folder that tritongen did not make, and there is no higher number",
            hint=f"move {foreign[-1]} away, or give it a smaller number",
        )
    higher = [number for number in foreign if number > written[-1]]
    if written[-1] in served_versions(model, sorted({*written, *higher})) or model.versions.policy != "latest":
        return
    findings.warning(
        "TG197",
        ("sources",) if model.sources else ("version",),
        f"version {written[-1]} is written, and the model's folder holds version {higher[-1]}, which tritongen did not make",
        consequence="Triton takes the highest number, and so that one instead; where that has no model file, it refuses the model",
        hint=f"move {higher[-1]} away, write a higher number than that, or say which are served: versions: {{policy: specific, versions: [{written[-1]}]}}",
    )


def _check_sources(model: ModelSpec, written: Sequence[int], findings: Findings) -> None:
    versions = model.versions
    if findings.is_inherited(("version",)):
        findings.idle(("version",), f"version has no effect: sources ({findings.locate(('sources',))}) numbers the files itself")
    elif "version" in model.model_fields_set:
        findings.error(
            "TG194",
            ("version",),
            f"version says {model.version}, and sources ({findings.locate(('sources',))}) numbers the files itself",
            hint="remove version, or write source: for a single file",
        )
    if versions.policy == "specific":
        for index, number in enumerate(versions.versions):
            if number not in written:
                findings.error(
                    "TG109",
                    ("versions", "versions", index),
                    f"versions lists {number}, and sources ({findings.locate(('sources',))}) has no such version",
                    consequence="Triton leaves it out with a line in its log, and requests for it fail",
                    hint=f"the versions are {', '.join(map(str, written))}",
                )
    served = served_versions(model, written)
    left = [number for number in written if number not in served]
    if left:
        one = len(left) == 1
        findings.advice(
            "TG193",
            ("versions",),
            f"version{'s' * (not one)} {', '.join(map(str, left))} {'is' if one else 'are'} written and not served: the policy is {_described(model)}",
            hint=f"write versions: {{policy: all}}, or remove {'it' if one else 'them'} from sources",
        )


def _described(model: ModelSpec) -> str:
    versions = model.versions
    return f"latest, count {versions.count}" if versions.policy == "latest" else f"specific, {list(versions.versions)}"


def check_interfaces(files: Mapping[int, tuple[Path, Signature]], findings: Findings) -> None:
    """Refuse versions whose inputs or outputs are not those of the newest one: there is one config for all. `files`: by version, file and signature."""
    newest = max(files)
    path, signature = files[newest]
    for version in sorted(files):
        other, theirs = files[version]
        for difference in _differences(signature, theirs) if version != newest else ():
            findings.error(
                "TG192",
                ("sources", str(version)),
                f"{other} (version {version}) differs from {path} (version {newest}): {difference}",
                consequence="the versions share one config.pbtxt, and Triton refuses the whole model where one version does not fit it",
                hint="export both with the same inputs and outputs, or serve them as two models",
            )


def _differences(newest: Signature, other: Signature) -> Iterator[str]:
    """What differs between two interfaces, one sentence for each tensor."""
    for kind, wanted, found in (("input", newest.inputs, other.inputs), ("output", newest.outputs, other.outputs)):
        mine, theirs = ({tensor.name: tensor for tensor in side} for side in (wanted, found))
        for name in (*mine, *(name for name in theirs if name not in mine)):
            if name not in theirs:
                yield f"it has no {kind} '{name}'"
            elif name not in mine:
                yield f"it has the {kind} '{name}', which the newest has not"
            elif _interface(mine[name]) != _interface(theirs[name]):
                yield f"{kind} {theirs[name].describe()}, and in the newest {mine[name].describe()}"


def _interface(tensor: TensorSpec) -> tuple[object, ...]:
    """What Triton's config says of a tensor: names of variable dimensions are no part of it."""
    return tensor.dtype, None if tensor.shape is None else tensor.dims
