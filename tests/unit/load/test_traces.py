"""Traces of arrivals: which are read, and what is refused before anything is sent."""

import os
from pathlib import Path

import pytest

from tritongen.errors import InputError
from tritongen.load.plan import LoadPlan, ModelLoad, arrivals_of, beyond, traced


def plan_of(path):
    return LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=traced(10.0, 0.0), arrivals="trace", trace=str(path))


def refused(path):
    with pytest.raises(InputError) as caught:
        beyond(plan_of(path))
    (found,) = caught.value.diagnostics
    return found


def test_a_byte_order_mark_is_no_part_of_a_trace(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_bytes(b"\xef\xbb\xbf0.5\r\n1.5\r\n20\r\n")
    assert [arrival.due_s for arrival in arrivals_of(plan_of(path))] == [0.5, 1.5]
    assert beyond(plan_of(path)) == 1


def test_a_device_or_a_pipe_is_no_trace_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        found = refused(path)
        assert (found.code, "pipe or a device" in found.message) == ("TG001", True)


@pytest.mark.parametrize(("text", "words"), [("# nothing\n", "holds no time"), ("1700000000.1\n1700000000.2\n", "all 2 requests")])
def test_a_trace_of_which_nothing_would_be_sent_is_refused(text, words, tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    found = refused(path)
    assert found.code == "TG420"
    assert words in found.message
