"""`precision` of what TensorRT runs, as the accelerator or as a plan: what the release's TensorRT can do with it.

Sources: NVIDIA's release notes for TensorRT 10.0 (BF16 came after 8.6) and 11.0 (networks are strongly typed, builder flags for precision are gone);
onnxruntime_backend for precision_mode.
"""

from __future__ import annotations

from tritongen.known_issues import find_issue
from tritongen.releases import Release
from tritongen.render.findings import Findings
from tritongen.spec import ModelSpec

_WITHOUT_BF16_MODE = find_issue("no-bf16-precision")
_TYPED_SINCE = 11
_BF16_SINCE = 10


def judge_precision(model: ModelSpec, release: Release | None, findings: Findings) -> None:
    """Say where a model's reduced precision is not there, needs more than the spec gives, or is not looked at any more."""
    if model.precision == "fp32" or release is None or "tensorrt" not in (model.backend, model.accelerator):
        return
    if model.precision == "bf16":
        _judge_bf16(model, release, findings)
    if release.least_tensorrt_major >= _TYPED_SINCE:
        _say_typed(model, release, findings)
    elif model.precision == "int8" and (model.backend == "tensorrt" or model.onnxruntime.tensorrt.int8_calibration_table_name is None):
        table = ", or name a table: onnxruntime: {tensorrt: {int8_calibration_table_name: ...}}" if model.backend != "tensorrt" else ""
        findings.advice(
            "TG111",
            ("precision",),
            f"precision: int8 needs a model with Q/DQ nodes{', or a calibration table' if table else ''}",
            consequence="without scales TensorRT computes in FP32, or fails to build",
            hint=f"quantize the ONNX file (NVIDIA's ModelOpt does){table}",
        )


def _judge_bf16(model: ModelSpec, release: Release, findings: Findings) -> None:
    if model.backend == "tensorrt":
        if release.least_tensorrt_major < _BF16_SINCE:
            findings.error(
                "TG110",
                ("precision",),
                f"release {release.name} has TensorRT {release.tensorrt_text}, which has no BF16",
                consequence="the plan cannot be built",
                hint="use release 24.05 or newer, or precision: fp16",
            )
    elif _WITHOUT_BF16_MODE.holds_in(release):
        findings.error(
            "TG110",
            ("precision",),
            f"release {release.name} has no precision_mode BF16",
            consequence="Triton refuses to load the model",
            hint="use release 26.02 or newer, or precision: fp16",
        )


def _say_typed(model: ModelSpec, release: Release, findings: Findings) -> None:
    what = "the builder has no flags for it" if model.backend == "tensorrt" else "precision_mode is not known to do anything there"
    findings.warning(
        "TG112",
        ("precision",),
        f"release {release.name} has TensorRT {release.tensorrt_text}, which takes precision from the model's own types; {what}",
        consequence="the model most likely runs in the types of its file",
        hint=f"convert the ONNX file to {model.precision} and write precision: fp32, or use a release up to 26.05",
    )


def _runs_on_dla(model: ModelSpec, release: Release | None) -> bool:
    """Whether a deep learning accelerator, which computes in FP16 and INT8 only, can run anything of the model: from TensorRT 11 on its file decides."""
    return model.precision in ("fp16", "int8") or (release is not None and release.least_tensorrt_major >= _TYPED_SINCE)


def without_idle_dla(model: ModelSpec, release: Release | None, findings: Findings) -> ModelSpec:
    """The model whose plan asks for no deep learning accelerator where there is nothing that one could run; says so."""
    if model.backend != "tensorrt" or _runs_on_dla(model, release):
        return model
    idle = [index for index, group in enumerate(model.instances) if group.dla is not None]
    for index in idle:
        findings.idle(
            ("instances", index, "dla"),
            f"dla has no effect with precision: {model.precision}",
            consequence="a deep learning accelerator computes in FP16 and INT8 only: the plan is built for the GPU, or not at all",
            hint="write precision: fp16, or remove dla",
        )
    groups = tuple(group.model_copy(update={"dla": None}) for group in model.instances)
    return model.model_copy(update={"instances": groups}) if idle else model
