"""What the first bytes of a plan say."""

import pytest

from tritongen.signature.plan import HEADER_BYTES, PlanHeader, read_plan_header


def header(tag=b"ftrt", layout=0, version=(10, 13, 2, 6)):
    return tag + layout.to_bytes(4, "little") + bytes(16) + bytes(version) + bytes(100)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (header(), PlanHeader("tensorrt", "10.13.2.6")),
        (header()[:HEADER_BYTES], PlanHeader("tensorrt", "10.13.2.6")),
        (header(b"vtrt", version=(1, 7, 1, 116)), PlanHeader("tensorrt-rtx", "1.7.1.116")),
        (header(layout=1), PlanHeader("tensorrt", "")),
        (header(b"ptrt"), None),
        (header()[: HEADER_BYTES - 1], None),
        (b"", None),
        (b"\x08\x09\x12\x07pytorch" + bytes(50), None),
    ],
)
def test_the_header_of_a_plan(head, found):
    assert read_plan_header(head) == found
