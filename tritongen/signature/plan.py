"""What a serialized TensorRT plan says in its first bytes. All else in it only the TensorRT that wrote it can read.

Sources: NVIDIA's trtexec, which prints the version of a plan (TensorRT/samples/common/sampleEngines.cpp, `printPlanVersion`, which knows the tag `ftrt` and
serialization version 0); for TensorRT-RTX, plans that its version 1.7 wrote, which have the tag `vtrt` and the version at the same place.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

TENSORRT = "tensorrt"
TENSORRT_RTX = "tensorrt-rtx"
_KINDS = {b"ftrt": TENSORRT, b"vtrt": TENSORRT_RTX}
"""The first four bytes of a plan → the library that made it."""

_TAG_AND_FORMAT = struct.Struct("<4sI")
_VERSION_AT = 24
HEADER_BYTES = _VERSION_AT + 4


@dataclass(frozen=True)
class PlanHeader:
    """Who made a plan.

    Attributes:
        kind: `tensorrt` or `tensorrt-rtx`; neither loads a plan of the other.
        version: the version of that library, four numbers with dots; empty where the header has a layout that is not known.
    """

    kind: str
    version: str


def read_plan_header(head: bytes) -> PlanHeader | None:
    """The header in the first bytes of a file (`HEADER_BYTES` are enough); None where the file is no plan of a kind that is known."""
    if len(head) < HEADER_BYTES:
        return None
    tag, layout = _TAG_AND_FORMAT.unpack_from(head)
    if tag not in _KINDS:
        return None
    return PlanHeader(_KINDS[tag], ".".join(map(str, head[_VERSION_AT:HEADER_BYTES])) if layout == 0 else "")
