"""The server's image: its name, and whether that agrees with the release."""

from __future__ import annotations

import re

from tritongen.releases import DEFAULT_RELEASE
from tritongen.render.findings import Findings
from tritongen.spec import Spec

_TAG = re.compile(r":(?P<release>[0-9]{2}\.(?:0[1-9]|1[0-2]))(?:-[A-Za-z0-9_.-]*)?(?:@|\Z)")
"""A release, as NVIDIA's tags have it."""


def server_image(spec: Spec) -> str:
    """The image that serves the models, and builds their plans."""
    return spec.deploy.image or f"nvcr.io/nvidia/tritonserver:{spec.triton.release_name}-py3"


def judge_image(spec: Spec, findings: Findings) -> None:
    """An image whose tag names another release than the spec (TG446). `findings`: for keys of the whole spec."""
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
