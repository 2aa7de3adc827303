"""What a spec's release means for the models in it: said at `triton.release`, once for the whole spec.

What a release makes of a single field is a rule's affair (`tritongen.rules`), which has the field's place.
"""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.known_issues import issues_of
from tritongen.releases import RELEASES, Release, find_release, same_version, tensorrt_text_of
from tritongen.spec import LoadedSpec, ModelSpec


def release_findings(loaded: LoadedSpec) -> Iterator[Diagnostic]:
    """A warning for a release that is not known; advice for what its images are known for, and for what is not known about them."""
    name = loaded.spec.triton.release
    if name is None:
        return
    release, place = find_release(name), loaded.locate(("triton", "release"))
    if release is None:
        yield Diagnostic(
            "TG115",
            f"release {name} is not known to this version of tritongen; its TensorRT is taken to be {tensorrt_text_of(name)},"
            " and nothing else about it was checked",
            place,
            hint=f"the releases from {RELEASES[0].name} to {RELEASES[-1].name} are known; check the number",
            severity=Severity.WARNING,
        )
        return
    for issue in issues_of(release):
        if issue.is_security:
            yield _advice("TG410", f"release {name} has {issue.text}", place, hint=issue.advice)
    yield from _plans(release, loaded.spec.models, place)
    yield from _unknown(release, loaded.spec.models, place)


def _plans(release: Release, models: tuple[ModelSpec, ...], place: Location) -> Iterator[Diagnostic]:
    plans = [f"'{model.name}'" for model in models if model.backend == "tensorrt"]
    other = release.trtllm_tensorrt
    if not plans or other is None or same_version(other, release.least_tensorrt):
        return
    yield _advice(
        "TG411",
        f"the plan{'s' * (len(plans) > 1)} of {', '.join(plans)} must be built and served in the image {release.name}-py3: the image"
        f" {release.name}-trtllm-python-py3 has TensorRT {other}, not {release.tensorrt_text}",
        place,
        consequence="Triton refuses to load a plan of another TensorRT",
        hint=f"build them in nvcr.io/nvidia/tritonserver:{release.name}-py3",
    )


def _unknown(release: Release, models: tuple[ModelSpec, ...], place: Location) -> Iterator[Diagnostic]:
    """Facts that a model's settings depend on and that no source states for this release."""
    used = {
        "TensorRT": (release.tensorrt, f" ({release.tensorrt_text})", [model for model in models if "tensorrt" in (model.backend, model.accelerator)]),
        "ONNX Runtime": (release.onnxruntime, "", [model for model in models if model.backend == "onnxruntime"]),
    }
    for what, (version, known, users) in used.items():
        if version is None and users:
            names = ", ".join(f"'{model.name}'" for model in users)
            yield _advice(
                "TG412",
                f"which {what} release {release.name} has{known} is not known to this version of tritongen;"
                f" what depends on {'the exact version' if known else 'it'} was not checked for {names}",
                place,
                hint="`tritongen releases` shows what is known; try the models in that image before you rely on it",
            )


def _advice(code: str, message: str, place: Location, *, consequence: str = "", hint: str) -> Diagnostic:
    return Diagnostic(code, message, place, consequence, hint, severity=Severity.ADVICE)
