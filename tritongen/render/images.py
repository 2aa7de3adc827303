"""The server's image: its name, and whether that agrees with the release."""

from __future__ import annotations

import re

from tritongen.releases import DEFAULT_RELEASE
from tritongen.render.findings import Findings
from tritongen.spec import Spec

_TAG = re.compile(r":(?P<release>[0-9]{2}\.(?:0[1-9]|1[0-2]))(?:-[A-Za-z0-9_.-]*)?(?:@|\Z)")
"""A release, as NVIDIA's tags have it."""


_VARIANT = re.compile(r":[0-9]{2}\.[0-9]{2}-(?:[A-Za-z0-9_.]+-)*(?P<variant>sdk|min|igpu|vllm|trtllm|pyt)(?:-[A-Za-z0-9_.]+)*(?:@|\Z)")
"""What a tag of NVIDIA's says of the image beside its release; of several words the last."""

_UNFIT = {"sdk": "has clients and no tritonserver", "min": "is what images are made from, without backends"}
_PARTIAL = {
    "igpu": ("is for Jetson and its like", "it does not start on another machine"),
    **dict.fromkeys(
        ("vllm", "trtllm", "pyt"), ("has few backends, and neither ONNX Runtime's nor TensorRT's", "Triton refuses to load a model without its backend")
    ),
}


def server_image(spec: Spec) -> str:
    """The image that serves the models, and builds their plans."""
    return spec.deploy.image or f"nvcr.io/nvidia/tritonserver:{spec.triton.release_name}-py3"


def judge_image(spec: Spec, findings: Findings) -> None:
    """An image whose tag names another release than the spec, or one that does not serve these models (TG446). `findings`: for keys of the whole spec."""
    _judge_variant(spec, findings)
    tagged = _TAG.search(spec.deploy.image or "")
    if tagged is None or tagged["release"] == spec.triton.release_name:
        return
    stated = f"triton.release is {spec.triton.release}" if spec.triton.release else f"no triton.release is given, which means {DEFAULT_RELEASE.name}"
    findings.warning(
        "TG446",
        ("deploy", "image"),
        f"the image is of release {tagged['release']}, and {stated}",
        consequence="another Triton than the one that options, configs and plans are made for: it may refuse them",
        hint=f'write triton: {{release: "{tagged["release"]}"}}, or an image of {spec.triton.release_name}',
    )


def _judge_variant(spec: Spec, findings: Findings) -> None:
    found = _VARIANT.search(spec.deploy.image or "")
    if found is None:
        return
    variant, hint = found["variant"], f"write an image of {spec.triton.release_name}-py3, or leave image out"
    if variant in _UNFIT:
        findings.error("TG446", ("deploy", "image"), f"a -{variant} image {_UNFIT[variant]}", consequence="the container does not start", hint=hint)
    else:
        what, consequence = _PARTIAL[variant]
        findings.warning("TG446", ("deploy", "image"), f"a -{variant} image {what}", consequence=consequence, hint=hint)
