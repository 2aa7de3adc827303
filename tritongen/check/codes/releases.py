"""TG410 to TG412: what a spec's release means for its models."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

ENTRIES = (
    CodeEntry(
        "TG410",
        "release-with-known-holes",
        Consequence.FRAGILE,
        "A server that strangers can reach is of a release without published holes.",
        "Releases up to 25.06 have those that NVIDIA published in August 2025, for some of which programs that use them are public.",
        "Use 25.07 or newer, or let nobody reach the server but clients that you trust.",
        'triton: {release: "25.05"}',
        'triton: {release: "25.08"}',
    ),
    CodeEntry(
        "TG411",
        "plan-for-one-image",
        Consequence.REFUSED,
        "A TensorRT plan is served in the image that it was built in.",
        "The -trtllm-python-py3 image of a release has another, older TensorRT than the -py3 image, and a plan loads only in the TensorRT that built it. "
        "This is advice: tritongen cannot see which image you run.",
        "Build and serve the plan in the same image.",
    ),
    CodeEntry(
        "TG412",
        "release-not-fully-known",
        Consequence.FRAGILE,
        "The versions in a release's image that a model depends on are known.",
        "Some pages of NVIDIA's do not state them, and tritongen does not guess: what depends on them was not checked.",
        "Try the model in that image, or use a release for which `tritongen releases` shows the version.",
    ),
)
