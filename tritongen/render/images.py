"""The server's image: its name, and whether that agrees with the release."""

from __future__ import annotations

import re

from tritongen.releases import DEFAULT_RELEASE
from tritongen.render.findings import Findings
from tritongen.spec import Spec

_TAG = re.compile(r":(?P<release>[0-9]{2}\.(?:0[1-9]|1[0-2]))(?:-[A-Za-z0-9_.-]*)?(?:@|\Z)")
"""A release, as NVIDIA's tags have it."""


_VARIANT = re.compile(r":(?P<tag>[0-9]{2}\.[0-9]{2}-(?:py3-(?:igpu-)?(?P<form>sdk|min|igpu)|(?P<backend>vllm|trtllm|pyt|tf2)-python-py3))(?:@|\Z)")
"""The tags of NVIDIA's images that are not the whole server for ONNX files and plans. Images of one's own that contain such a word have what they have."""

_NVIDIAS = "nvcr.io/nvidia/tritonserver"

_UNFIT = {
    "sdk": "has tools for clients (sdk), and no tritonserver",
    "min": "is the bare one that images of one's own are built on (min), and has no tritonserver",
}
_NO_BACKEND = "Triton loads no model whose backend is not there"
_PARTIAL = {
    "igpu": ("is for the integrated GPUs of Jetson (igpu)", "it does not run on other machines"),
    "vllm": ("serves vLLM and Python (vllm): it has no backend onnxruntime or tensorrt", _NO_BACKEND),
    "trtllm": ("serves TensorRT-LLM and Python (trtllm): it has no backend onnxruntime or tensorrt", _NO_BACKEND),
    "pyt": ("serves PyTorch and Python (pyt): it has no backend onnxruntime or tensorrt", _NO_BACKEND),
    "tf2": ("serves TensorFlow and Python (tf2): it has no backend onnxruntime or tensorrt", _NO_BACKEND),
}


def server_image(spec: Spec) -> str:
    """The image that serves the models, and builds their plans."""
    return spec.deploy.image or f"{_NVIDIAS}:{spec.triton.release_name}-py3"


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
    """An image that NVIDIA's tag says to be another one; an error only where it is NVIDIA's own for sure, and no copy or build of somebody's."""
    image = spec.deploy.image or ""
    found = _VARIANT.search(image)
    if found is None:
        return
    variant, subject = found["form"] or found["backend"], f"going by its tag, the image {found['tag']}"
    hint = f"write image: {image[: found.start()]}:{spec.triton.release_name}-py3, or leave image out"
    if variant in _UNFIT:
        say = findings.error if image.startswith(f"{_NVIDIAS}:") else findings.warning
        say("TG446", ("deploy", "image"), f"{subject} {_UNFIT[variant]}", consequence="the container does not start", hint=hint)
    else:
        what, consequence = _PARTIAL[variant]
        findings.warning("TG446", ("deploy", "image"), f"{subject} {what}", consequence=consequence, hint=hint)
