"""`precision`: which models are converted for it and how near their answers stay, and what a release's TensorRT can do with the others.

Sources: NVIDIA's release notes for TensorRT 10.0 (BF16 came after 8.6) and 11.0 (networks are strongly typed, builder flags for precision are gone);
onnxruntime_backend for precision_mode.
"""

from __future__ import annotations

from decimal import Decimal

from tritongen.known_issues import find_issue
from tritongen.recipe import TYPED_ALWAYS
from tritongen.releases import Release, find_release, tensorrt_major_of, tensorrt_text_of
from tritongen.render.findings import Findings, Key
from tritongen.render.placement import placed_groups
from tritongen.rewrite import PRECISIONS, Agreement, Comparison
from tritongen.spec import ModelSpec

_WITHOUT_BF16_MODE = find_issue("no-bf16-precision")
_FOLD = "write optimize: offline, which folds batch normalizations, whose variances FP16 has few bits for, into convolutions; or "
_BF16_SINCE = 10
_UNSEEN = "whether its answers are good enough shows only where it is served"
_BY_YOURSELF = "or write conversion: {compare: false}, and compare by yourself"


def is_converted(model: ModelSpec) -> bool:
    """Whether the model's file is converted to its precision: one that is a property of files, for a model that may run on a GPU, or whose clients see it.

    At every release: TensorRT 11 takes precision from a file's types and from nothing else, the builder flags of TensorRT 10 are on their way out since 10.12
    (its release notes), and what runs is then what was compared. A CPU computes FP16 in FP32, with casts: there the file is converted only where clients send
    and take the precision's own types.
    """
    if model.precision not in PRECISIONS:
        return False
    on_gpu = any(group.kind in ("gpu", "auto") for group in placed_groups(model))
    return model.backend == "tensorrt" or (model.accelerator != "openvino" and (on_gpu or not model.conversion.keep_io_types))


def heeds_precision_mode(release: str) -> bool:
    """Whether the TensorRT of the release with this tag takes a precision from its caller at all, as a builder's flag or as precision_mode."""
    return tensorrt_major_of(release) < TYPED_ALWAYS


def narrows_floats(model: ModelSpec, release: str) -> bool:
    """Whether TensorRT itself computes what the model's file has in FP32 in two bytes, in the release of this tag: from 11 on it keeps to the file's types."""
    return model.precision in ("fp16", "bf16") and not is_converted(model) and heeds_precision_mode(release)


def judge_precision(model: ModelSpec, release: str, findings: Findings) -> None:
    """Say where a model's reduced precision is not there, needs more than the spec gives, or is not looked at any more in the release of this tag."""
    _say_idle_dla(model, release, findings)
    if model.precision in ("fp32", "tf32") or is_converted(model) or "tensorrt" not in (model.backend, model.accelerator):
        return
    known = find_release(release)
    if model.precision == "bf16" and known is not None:
        _judge_bf16(model, known, findings)
    if not heeds_precision_mode(release):
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


def _say_typed(model: ModelSpec, release: str, findings: Findings) -> None:
    what = "the builder has no flags for it" if model.backend == "tensorrt" else "precision_mode is not known to do anything there"
    findings.warning(
        "TG112",
        ("precision",),
        f"release {release} has TensorRT {tensorrt_text_of(release)}, which takes precision from the model's own types; {what}",
        consequence="the model most likely runs in the types of its file",
        hint=f"convert the ONNX file to {model.precision} and write precision: fp32, or use a release up to 26.05",
    )


def _say_idle_dla(model: ModelSpec, release: str, findings: Findings) -> None:
    """Say that the file decides whether an accelerator computes anything, where the spec does not convert it and the release has no flags to do so."""
    if model.backend != "tensorrt" or model.precision not in ("fp32", "tf32") or heeds_precision_mode(release):
        return
    for group in placed_groups(model):
        if group.dla is not None:
            findings.advice(
                "TG112",
                group.dla_key,
                f"release {release} has TensorRT {tensorrt_text_of(release)}, which takes precision from the model's own types, and a deep learning "
                "accelerator computes in FP16 and INT8 only",
                consequence="what is FP32 in the file runs on the GPU, or the build fails",
                hint="write precision: fp16, or bring a file that is FP16 or quantized already",
            )


def judge_agreement(model: ModelSpec, found: Comparison, findings: Findings, *, waived: bool = False) -> None:
    """Say how near a converted file's answers are to the original's: an error for those that are too far off, advice with the figures for the others.

    An error, too, where nothing was compared, of the model or of one of its outputs, unless the user has `waived` it.
    """
    key: Key = ("precision",)
    if not found.agreements:
        reason = found.skipped or "; ".join(found.not_run.values())
        message = f"the model in {model.precision} was not compared with the original: {reason}"
        if waived:
            findings.advice("TG169", key, message, consequence=_UNSEEN)
        else:
            lacking = "give shapes and samples with which the original runs, install onnxruntime, or raise --prove-limit, whichever it lacks"
            findings.error("TG169", key, message, consequence=f"{_UNSEEN}, so that nothing is written", hint=f"{lacking}; {_BY_YOURSELF}")
        return
    for size, reason in found.not_run.items():
        findings.advice("TG169", key, f"the model in {model.precision} was not compared at a batch of {size}: {reason}", consequence=_UNSEEN)
    for output, reason in found.unseen.items():
        findings.error(
            "TG169",
            key,
            f"output '{output}' of the model in {model.precision} was not compared with the original's: {reason}",
            consequence=f"{_UNSEEN}, so that nothing is written",
            hint=f"give samples: with values for which the original gives numbers; {_BY_YOURSELF}",
        )
    _judge_figures(model, found, findings)


def _judge_figures(model: ModelSpec, found: Comparison, findings: Findings) -> None:
    key: Key = ("precision",)
    asked = model.conversion
    wrong = [each for each in found.agreements if not each.is_within(cosine=asked.cosine, top1=asked.top1)]
    if wrong:
        cause = f"; {found.blame}" if found.blame else ""
        places = "; ".join(f"output '{each.output}'{_at(each)}: {each.numbers}" for each in wrong)
        least = Decimal(str(asked.cosine)).normalize()  # as the spec has it, whatever its digits
        wanted = f"cosine {least:f}{' and the same top-1' if asked.top1 else ''}"
        if any(each.values for each in wrong):
            wanted += f", of whole numbers, truth values and text {(100 * least).normalize():f} % equal"
        findings.error(
            "TG168",
            key,
            f"in {model.precision} the model does not answer as the original does ({places}; wanted: {wanted}){cause}",
            consequence="clients would get other answers",
            hint=f"{_FOLD if found.foldable and model.optimize is None else ''}keep what loses too much in FP32, conversion: {{fp32_operators: [...]}} or"
            " {fp32_nodes: [...]}, or write precision: fp32; samples: with real values are a fairer comparison than made-up ones",
        )
    elif found.worst:
        sizes = [str(size) for size in dict.fromkeys(each.size for each in found.agreements if not each.empty) if size]
        at = f", at batches of {', '.join(sizes)}{', at worst with' if len(sizes) > 1 else ''}" if sizes else ""
        figures = "; ".join(f"output '{each.output}': {each.numbers}" for each in found.worst)
        findings.advice("TG167", key, f"in {model.precision} the model answers as the original does{at}: {figures}")


def _at(agreement: Agreement) -> str:
    return f" at a batch of {agreement.size}" if agreement.size else ""


def _runs_on_dla(model: ModelSpec, release: str) -> bool:
    """Whether a deep learning accelerator, which computes in FP16 and INT8 only, can run anything of the model: from TensorRT 11 on its file decides."""
    return model.precision in ("fp16", "int8") or not heeds_precision_mode(release)


def without_idle_dla(model: ModelSpec, release: str, findings: Findings) -> ModelSpec:
    """The model whose `instances` ask for no deep learning accelerator where there is nothing that one could run; says so, of an overlay too."""
    if model.backend != "tensorrt" or _runs_on_dla(model, release):
        return model
    idle = [group for group in placed_groups(model) if group.dla is not None]
    for group in idle:
        what = group.dla_key[-1]
        findings.idle(
            group.dla_key,
            f"{what} has no effect with precision: {model.precision}",
            consequence="a deep learning accelerator computes in FP16 and INT8 only: the plan is built for the GPU, or not at all",
            hint=f"write precision: fp16, or remove {what}",
        )
    groups = tuple(each.model_copy(update={"dla": None}) for each in model.instances)
    return model.model_copy(update={"instances": groups}) if idle else model
