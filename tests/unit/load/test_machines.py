"""Load tests over several machines: a master and its workers, each a command of its own; here they are all on this one."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from known_server import MODEL, ROOT, known_server

from tritongen.load.arrivals import Stage, schedule
from tritongen.load.crew import GO, LEAD_S, SHARE, STOP, Crew, boot_id, instant_of
from tritongen.load.engine import Machines, free_port
from tritongen.load.follow import Follower
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Recorder
from tritongen.load.run import run_load

SOON_S = 120
"""Within which processes start and end on a machine that does other things too."""


class Command:
    """`tritongen load` in a process of its own."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "tritongen", "load", *map(str, arguments)]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = ""

    def until(self, words):
        """Read what it says to people until the words are there; the line with them."""
        for line in self.process.stderr:
            self.said += line
            if words in line:
                return line
        raise AssertionError(f"it ended without {words!r}: {self.said}")

    def end(self):
        """Its exit code, what it printed, what it said."""
        out, err = self.process.communicate(timeout=SOON_S)
        return self.process.returncode, out, self.said + err


@pytest.fixture
def load():
    started = []

    def start(*arguments):
        started.append(Command(*arguments))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.communicate()


@pytest.mark.system
def test_one_worker_comes_late_one_is_killed_and_one_comes_too_late(load, tmp_path):
    port, seconds = free_port(), 20  # in which a worker that comes too late has started, on a slow machine too
    with known_server(tmp_path, service_s=0.0) as server:
        lead = ["--master", "--expect-workers", 2, "--master-bind-host", "127.0.0.1", "--master-bind-port", port]
        master = load(MODEL, "-u", server.urls["http"], "--rate", 100, "--duration", f"{seconds}s", "--warmup", 0, "--format", "json", *lead)
        follow = ["--worker", "--master-host", "127.0.0.1", "--master-port", port]
        first = load(*follow)
        master.until("(1 of 2)")
        second = load(*follow)
        killed = int(master.until("(2 of 2)").split()[2])
        second.until("the run begins")
        begun = time.monotonic()
        third = load(*follow)
        time.sleep(0.6)
        os.kill(killed, signal.SIGKILL)
        lost = master.until("is lost: its worker does not answer")
        assert time.monotonic() - begun < seconds
        code, out, _ = master.end()
        ends = [worker.end() for worker in (first, second, third)]
    data = json.loads(out)
    name = lost.removeprefix("sender ").split(" is lost")[0]
    assert (code, data["complete"], data["valid"]) == (1, False, False)
    assert [reason for reason in data["invalid"] if f"sender {name} was lost" in reason]
    # The other's share is whole, and of the lost one's there is what it had reported.
    stages = (Stage(seconds, 100, 100, ""),)
    whole, half = (sum(1 for _ in schedule(stages, "poisson", shares=2, share=share)) for share in (0, 1))
    assert whole <= data["requests"]["ok"] < whole + half
    assert {sender["name"] for sender in data["senders"]} > {name}
    assert [code for code, _, _ in ends] == [0, 3, 3]
    assert "the run is over here" in ends[0][2]
    assert "Locust ended with status -9" in ends[1][2]
    assert "the run has begun, and its schedule is shared out among 2" in ends[2][2]


@pytest.mark.system
def test_who_waits_for_others_does_so_for_a_limited_time(load, tmp_path):
    with known_server(tmp_path, service_s=0.0) as server:
        wait = ["--expect-workers-max-wait", "1s"]
        master = load(MODEL, "-u", server.urls["http"], "--master", "--expect-workers", 3, "--master-bind-port", free_port(), *wait)
        worker = load("--worker", "--master-port", free_port(), *wait)
        (code, _, said), (other_code, _, other_said) = master.end(), worker.end()
    assert (code, other_code) == (3, 3)
    assert "0 of 3 workers came within 1 s" in said
    assert "tritongen load --worker --master-host HOST --master-port" in said
    assert "no master answers at 127.0.0.1" in other_said
    assert "Traceback" not in said + other_said


def test_what_several_processes_send_is_what_one_would(tmp_path):
    stages = (Stage(1.2, 80, 80, "even"),)
    with known_server(tmp_path, service_s=0.0) as server:
        plan = LoadPlan((ModelLoad(MODEL),), server.urls["http"], stages=stages, arrivals="constant", pool=2)
        result = run_load(plan, machines=Machines(2))
    due = [arrival.due_s for arrival in schedule(stages, "constant")]
    assert result.counts == {"ok": len(due)}
    assert {number: second.due for number, second in result.recorder.seconds.items()} == {second: sum(int(one) == second for one in due) for second in (0, 1)}
    assert (len(result.senders), result.complete, result.trouble) == (2, True, ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--worker", "--rate", 5, "--html", "x.html"], "a worker is told by its master what to do: leave out --html, --rate"),
        (["--worker", MODEL], "leave out SPEC|MODEL"),
        ([MODEL, "--master-host", "there"], "add --worker"),
        ([MODEL, "--expect-workers", 2], "add --master"),
        ([MODEL, "--master", "--processes", 2], "leave out --processes here"),
        ([MODEL, "--processes", 0], "-1 for one a core"),
        ([MODEL, "--master", "--expect-workers-max-wait", "5"], "has no unit"),
        ([], "Missing argument 'SPEC|MODEL'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tritongen, arguments, words):
    done = tritongen("load", *arguments)
    assert (done.code, words in done.err) == (2, True), done.err


class Told:
    """A crew, and what it told workers and noted."""

    def __init__(self, shares=2):
        self.messages, self.notes = [], []
        self.crew = Crew("PLAN", shares, "1.0", lambda *message: self.messages.append(message), self.notes.append)

    def hello(self, worker, version="1.0"):
        self.crew.hello(worker, {"name": worker.upper(), "version": version})
        return self.messages[-1]

    def line(self, worker, **said):
        self.crew.line(worker, json.dumps(said))

    def kinds(self, kind):
        return [worker for worker, found, _ in self.messages if found == kind]


def test_shares_are_given_out_once_and_the_run_begins_when_all_are_ready():
    told = Told()
    assert told.hello("a") == ("a", SHARE, {"plan": "PLAN", "share": 0, "shares": 2})
    told.line("a", ready=True)
    assert not told.kinds(GO)
    # One that goes before the beginning leaves its share to the next.
    told.crew.look({"a": False})
    assert told.notes[-1] == {"gone": "A", "have": 0}
    assert told.hello("b")[2]["share"] == 0
    assert told.hello("c")[2]["share"] == 1
    assert "all of its 2 workers" in told.hello("d")[2]["refused"]
    for worker in "bc":
        told.line(worker, ready=True)
    assert told.kinds(GO) == ["b", "c"]
    assert told.notes[-1]["senders"] == {"b": ["B", 0], "c": ["C", 1]}
    assert "the run has begun" in told.hello("e")[2]["refused"]
    assert not told.crew.done
    told.line("b", over=True)
    told.crew.look({"b": False, "c": False})
    assert told.notes[-1] == {"sender": "c", "name": "C", "lost": True}
    assert told.crew.done
    told.crew.look({"c": True})
    assert told.notes[-1] == {"sender": "c", "name": "C", "lost": False}
    assert not told.crew.done


def test_a_worker_of_another_version_is_turned_away():
    assert "runs tritongen 0.9, and the master 1.0" in Told().hello("a", "0.9")[2]["refused"]


def test_without_one_share_there_is_no_run():
    told = Told()
    for worker in "ab":
        told.hello(worker)
    told.line("a", error="the data is not there")
    assert told.kinds(STOP) == ["a", "b"]
    assert told.notes[-1] == {"sender": "a", "name": "A", "error": "the data is not there"}
    for worker in "ab":
        told.line(worker, over=True)
    assert told.crew.done
    assert not told.kinds(GO)


def test_workers_of_one_name_are_not_taken_for_one(tmp_path):
    told = Told()
    for worker in "ab":
        told.crew.hello(worker, {"name": "box 1", "version": "1.0"})
    for worker in "ab":
        told.line(worker, ready=True)
    for worker, cpu_s in (("a", 0.1), ("b", 0.2)):
        told.line(worker, recorder=Recorder().to_json(), cpu_s=cpu_s, wall_s=1.0, under_way=0, lasted_s=1.0)
    told.line("a", over=True)
    follower = Follower(tmp_path / "reports.jsonl")
    follower.reports.write_text("".join(f"{json.dumps(note)}\n" for note in told.notes))
    follower.read()
    assert [(sender.name, sender.share, sender.cpu_s, sender.over) for sender in follower.senders.values()] == [
        ("box 1", 0, 0.1, True),
        ("box 1", 1, 0.2, False),
    ]
    assert not follower.over
    (lost,) = follower.lost()
    assert lost.startswith("sender box 1 was lost")


def test_clocks_of_machines_are_not_compared():
    now = time.perf_counter()
    here = instant_of({"instant": now + LEAD_S, "boot": boot_id()})
    assert here == now + LEAD_S
    for go in ({"instant": now + LEAD_S, "boot": "another"}, {"instant": now + 10_000, "boot": boot_id()}, {"instant": 5.0, "boot": ""}):
        assert 0 < instant_of(go) - now < 2 * LEAD_S + 1


def test_a_run_that_cannot_begin_says_how_many_of_its_workers_are_there(tmp_path):
    (tmp_path / "reports.jsonl").write_text('{"hello": "a 1", "have": 1}\n{"hello": "b 2", "have": 2}\n{"gone": "a 1", "have": 1}\n')
    led, alone = Follower(tmp_path / "reports.jsonl", 2), Follower(tmp_path / "reports.jsonl")
    led.read()
    assert led.not_ready(90) == "not everything was ready within 90 s: 1 of 2 workers are there"
    assert alone.not_ready(31.2) == "not everything was ready within 31 s"
