"""The newest ONNX files that each ONNX Runtime opens.

Measured: identity models of every operator set and IR version, opened with the published wheel of each version named here (the newest patch of a minor
version; patches of one minor version carry the same ONNX). ONNX Runtime refuses a model whose stamp is newer, whatever operators it uses. Models of the oldest
operator sets and IR versions still open in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .problem import Kind, Problem


@dataclass(frozen=True)
class Limits:
    """The highest versions that one ONNX Runtime opens: operator sets of `ai.onnx` and `ai.onnx.ml`, and the file format (IR)."""

    opset: int
    ml: int
    ir: int


LIMITS: Mapping[str, Limits] = {
    "1.16": Limits(19, 3, 9),
    "1.17": Limits(20, 4, 9),
    "1.18": Limits(21, 5, 10),
    "1.19": Limits(21, 5, 10),
    "1.20": Limits(21, 5, 10),
    "1.21": Limits(22, 5, 10),
    "1.22": Limits(22, 5, 10),
    "1.23": Limits(23, 5, 11),
    "1.24": Limits(25, 5, 13),
    "1.27": Limits(26, 5, 13),
    "1.28": Limits(26, 5, 13),
}
"""By minor version of ONNX Runtime, measured with 1.16.3, 1.17.3, 1.18.1, 1.19.2, 1.20.1, 1.21.0, 1.22.0, 1.23.2, 1.24.4, 1.27.0 and 1.28.0."""


def limits_of(version: str) -> Limits | None:
    """The limits of an ONNX Runtime version such as `1.19.2`; None for one that was not measured."""
    match = re.match(r"\d+\.\d+", version)
    return LIMITS.get(match[0]) if match else None


def too_new(opsets: Mapping[str, int], ir: int, limits: Limits) -> Iterator[Problem]:
    """What of a model's stamps is above `limits`, in ONNX Runtime's order and the gist of its words. `opsets` is by domain; ONNX's own is `""` or `ai.onnx`."""
    if ir > limits.ir:
        message = f"Unsupported model IR version: {ir}, max supported IR version: {limits.ir}"
        yield Problem(Kind.TOO_NEW, message, name="IR version", found=str(ir), expected=str(limits.ir))
    for domain, highest in (("ai.onnx", limits.opset), ("ai.onnx.ml", limits.ml)):
        version = opsets.get(domain, opsets.get("", 0) if domain == "ai.onnx" else 0)
        if version > highest:
            message = (
                "ONNX Runtime only *guarantees* support for models stamped with official released onnx opset versions. "
                f"Opset {version} is under development and support for this is limited. "
                f"Current official support for domain {domain} is till opset {highest}."
            )
            yield Problem(Kind.TOO_NEW, message, name=f"operator set of {domain}", found=str(version), expected=str(highest))
