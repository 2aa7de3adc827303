"""Every request that was due is in the result, and every second: of runs that were broken off, and of senders that died, stood still, or had nothing to do."""

import collections
import dataclasses
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import load_results
import pytest
from known_server import MODEL, known_server

from tritongen.errors import InputError
from tritongen.load.arrivals import Stage
from tritongen.load.connections import allow_connections
from tritongen.load.engine import Machines, end
from tritongen.load.errors_seen import MOST_KINDS, OTHERS, ErrorsSeen
from tritongen.load.plan import LoadPlan, ModelLoad, arrivals_of
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.load.run import run_load
from tritongen.load.unsent import accounted, due_between, unsent
from tritongen.patience import Patience

PLAN = LoadPlan((ModelLoad("a", part=2), ModelLoad("b")), "grpc://h:1", stages=(Stage(1, 50, 50, "warmup", measured=False), Stage(4, 100, 100, "100/s")))


def test_what_a_lost_sender_had_still_to_send_was_due():
    told = collections.Counter({("a", 1): 40, ("b", 1): 7})
    owed = list(unsent(PLAN, 1, 2, told, PLAN.length_s))
    assert counted(owed) == {"a": 133 - 40, "b": 67 - 7}  # half of the 400 that are due on average, two parts to one
    assert [second for _, _, second, _ in owed] == sorted(second for _, _, second, _ in owed)
    assert {stage for _, stage, _, _ in owed} == {1}
    assert counted(unsent(PLAN, 1, 2, told, 3.0)) == {"a": 67 - 40, "b": 33 - 7}
    assert counted(due_between(PLAN, 0, 1, 1.5, 3.0)) == {"a": 100, "b": 50}


@pytest.mark.parametrize("kind", ["poisson", "constant"])
def test_what_was_due_is_the_same_counted_as_drawn(kind):
    plan = dataclasses.replace(PLAN, arrivals=kind, models=(ModelLoad("a"),), stages=(Stage(2, 0, 400, "up"), Stage(1.5, 400, 100, "down")))
    for share in (0, 1, 2):
        drawn = [arrival.due_s for arrival in arrivals_of(plan, share, 3, begin_s=0.7)]
        assert len(drawn) == pytest.approx(counted(due_between(plan, share, 3, 0.7, plan.length_s))["a"], abs=1 if kind == "constant" else 40)
        assert (min(drawn) >= 0.7, drawn) == (True, sorted(drawn))
        if kind == "constant":
            assert drawn == [arrival.due_s for arrival in arrivals_of(plan, share, 3) if arrival.due_s >= 0.7]


def test_what_was_due_of_a_trace_is_what_it_says(tmp_path):
    (tmp_path / "trace").write_text("0.5\n0.6\n1.5\n1.6\n1.7\n")
    plan = LoadPlan((ModelLoad("a"),), "grpc://h:1", stages=(Stage(3, 0, 0, "trace"),), arrivals="trace", trace=str(tmp_path / "trace"))
    assert list(unsent(plan, 0, 1, {("a", 0): 1}, 1.65)) == [("a", 0, 0, 1), ("a", 0, 1, 2)]


def counted(found):
    total = collections.Counter()
    for model, _, _, count in found:
        total[model] += count
    return total


def test_a_sender_has_told_of_what_it_sent_and_of_what_it_missed():
    recorder = Recorder()
    recorder.add(Key("a", "grpc", 1, "ok"), 1.5, 0.01, 0.0)
    recorder.add(Key("a", "grpc", 1, "rejected"), 1.6, 0.01, 0.0, "full")
    recorder.miss("b", 1, 1.7)
    assert accounted(recorder) == {("a", 1): 2, ("b", 1): 1}


def test_rates_of_a_run_that_was_broken_off_are_of_the_time_that_it_had():
    whole = load_results.make("50:4s,100:4s", errors=0)
    cut = dataclasses.replace(whole, complete=False, lasted_s=4.0)
    assert (whole.measured_s, cut.measured_s) == (8, 3)
    assert cut.rate == pytest.approx(sum(whole.counts.values()) / 3)
    assert [cut.stage_seconds(index) for index in range(3)] == [1, 3, 0]
    assert dataclasses.replace(whole, complete=False, lasted_s=0.5).measured_s == 0


def test_a_sender_without_work_is_no_bottleneck():
    assert SenderUse("here 0", 0.02, 0.02).share == 0
    assert SenderUse("here 0", 0.98, 1.0).share == pytest.approx(0.98)


def test_a_closed_loop_whose_sender_wakes_up_late_is_not_valid():
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", users=4, seconds=2.0)
    recorder = Recorder()
    recorder.add(Key("m", "grpc", 1, "ok"), 0.5, 0.004, 0.0)
    for lag in [0.0005] * 95 + [0.02] * 5:
        recorder.lag.record(lag)
    (reason,) = LoadResult(plan, Recorder.from_json(recorder.to_json())).invalid
    assert reason.startswith("senders woke up more than 5 ms late 5 of 100 times, up to 20.0 ms")


def test_errors_are_of_a_bounded_number_of_kinds():
    seen = ErrorsSeen()
    for number in range(100):
        seen.add("m", "failed", f"request {number} of 7f3a-{number}e: {'x' * 1000}")
        seen.add("m", "invalid", "input 'x' has 3 rows")
        seen.add("m", "failed", "".join(chr(97 + int(digit)) for digit in str(number)))
    seen.add("other", "failed", "alone")
    kinds = seen.messages()
    assert seen.count == sum(kinds.values()) == 301
    assert kinds["m", "invalid", "input 'x' has 3 rows"] == 100
    assert [count for (_, _, text), count in kinds.items() if text.startswith("request # of #: xxx")] == [100]
    assert kinds["m", "failed", OTHERS] == 100 - (MOST_KINDS - 2)
    assert len(kinds) == MOST_KINDS + 2
    again = ErrorsSeen()
    again.merge(seen)
    again.merge(seen)
    assert again.messages() == {key: 2 * count for key, count in kinds.items()}


def test_more_users_than_connections_can_be_had_are_refused(monkeypatch):
    limits, given = {"now": (1024, 4096)}, []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda which, wanted: given.append(wanted))
    many = LoadPlan((ModelLoad("m"),), "http://h:1", users=20_000, seconds=1)
    with pytest.raises(InputError, match="20000 users in one process need as many connections over HTTP, and this machine lets a process open 4096 files"):
        allow_connections(many, 20_000)
    allow_connections(many, 2_000)
    allow_connections(dataclasses.replace(many, url="grpc://h:1"), 20_000)
    assert given == [(2064, 4096)]


def test_signals_while_a_run_is_put_away_are_noted_and_raise_nothing():
    with Patience() as patience:
        assert not patience.hurry()
        signal.raise_signal(signal.SIGINT)
        assert patience.hurry()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_nobody_of_the_group_is_left_behind_not_even_who_stands_still():
    code = "import os, subprocess, sys; child = subprocess.Popen(['sleep', '60']); os.kill(child.pid, 19); print(child.pid, flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    with process:
        child = int(process.stdout.readline())
        process.stdin.close()
        process.wait(60)  # it ends well, and leaves its child
        end(process)
    limit = time.monotonic() + 60
    while alive(child):
        assert time.monotonic() < limit
        time.sleep(0.02)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def senders(folder):
    """The processes that send in a run that was started with this folder for its files."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if b"tritongen.load.sender" in (place / "cmdline").read_bytes() and str(folder).encode() in (place / "environ").read_bytes():
                yield int(place.name)
        except OSError:
            continue


@pytest.mark.system
def test_the_share_of_a_sender_that_is_killed_was_due(tmp_path, monkeypatch):
    killed = []

    def kill_one(progress):
        if progress.elapsed_s > 1 and not killed and (found := [*senders(tmp_path)]):
            killed.append(found[0])
            os.kill(found[0], signal.SIGKILL)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with known_server(tmp_path, service_s=0.0) as server:
        plan = LoadPlan((ModelLoad(MODEL),), server.urls["http"], stages=(Stage(6, 60, 60, "60/s"),), arrivals="constant", pool=2)
        result = run_load(plan, machines=Machines(2), progress=kill_one)
    assert sum(result.counts.values()) + result.recorder.missed_in() == 360
    assert result.target_rate == 60
    assert result.recorder.missed_in() > 20
    assert not result.complete
    assert "ended with status -9" in " ".join(result.trouble)
