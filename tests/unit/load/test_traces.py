"""Traces of arrivals: which are read, and what is refused before anything is sent."""

import os
from pathlib import Path

import pytest

from tritongen.errors import InputError
from tritongen.load.plan import LoadPlan, ModelLoad, arrivals_of, beyond, shortened, traced


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


@pytest.mark.parametrize(
    ("text", "warmup_s", "seconds"),
    [
        ("0\n1\n2.95\n", 0.0, 3.0),  # over before the run's ten seconds: the rate is of three
        ("0\n3\n", 0.0, 4.0),
        ("0\n3\n", 2.5, 1.0),  # the warmup has its part of the trace
        ("0\n3\n", 5.0, 10.0),  # all of it: no request is measured, which the report says
        ("0\n9.5\n", 0.0, 10.0),
        ("0\n3\n20\n", 0.0, 10.0),  # it goes on: a pause of users is a part of what was measured
    ],
)
def test_a_run_lasts_no_longer_than_its_trace(text, warmup_s, seconds, tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=traced(10.0, warmup_s), arrivals="trace", trace=str(path))
    assert shortened(plan).length_s == warmup_s + seconds
    assert list(arrivals_of(shortened(plan))) == list(arrivals_of(plan))
    assert beyond(shortened(plan)) == beyond(plan)
