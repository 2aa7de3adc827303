"""Runs that go wrong: each ends within its limits, with a verdict and what was measured until then."""

import asyncio
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from known_server import MODEL, PAGES, ROOT, known_server, page

from tritongen.load.arrivals import Stage
from tritongen.load.engine import last_words
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.run import run_load
from tritongen.spec.traffic import Promises

SOON_S = 120
"""Within which processes start and end on a machine that does other things too."""


@pytest.fixture
def load(tmp_path):
    """Starts `tritongen load` in a process of its own, with a folder of its own for everything; its result is `out.json` there."""
    started = []

    def start(name, url, *arguments):
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-m", "tritongen", "load", MODEL, "-u", url, "--warmup", "0", "-o", folder / "out.json", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        started.append(subprocess.Popen([*map(str, command)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1], folder

    yield start
    for process in started:
        process.kill()
        process.communicate()


def begun(run):
    """Wait until it has measured something."""
    process, folder = run
    end = time.monotonic() + SOON_S
    while not any('\\"ok\\"' in file.read_text() for file in folder.glob("tritongen-load-*/reports.jsonl")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    return run


def ended(run):
    """Exit code, what was printed, the result."""
    process, folder = run
    said = "".join(process.communicate(timeout=SOON_S))
    assert "Traceback" not in said
    assert not list(folder.glob("tritongen-load-*"))
    return process.returncode, said, json.loads((folder / "out.json").read_text())


@pytest.mark.system
def test_ctrl_c_a_server_that_dies_and_a_rate_that_cannot_be_made(load, tmp_path):
    (tmp_path / "dies").mkdir()
    (tmp_path / "stays").mkdir()
    with known_server(tmp_path / "stays", service_s=0.0) as stays:
        with known_server(tmp_path / "dies", service_s=0.0) as dies:
            stopped = load("stopped", stays.urls["http"], "--rate", 50, "--duration", "60s", "--processes", 2)
            search = load("search", stays.urls["grpc"], "--find-max", "--rate", 50, "--duration", "60s", "--slo", "p99=5s")
            left = load("left", dies.urls["grpc"], "--rate", 50, "--duration", "8s", "--deadline", "1s")
            begun(left)
        for process, _ in map(begun, (stopped, search)):
            process.send_signal(signal.SIGINT)
        stopped, left, searched = map(ended, (stopped, left, search))
        too_much = ended(load("too much", stays.urls["http"], "--rate", 200_000, "--duration", "300ms", "--deadline", "2s"))
    code, said, data = stopped
    assert (code, data["complete"]) == (130, False)
    assert "BROKEN OFF before its end" in said
    assert data["requests"]["ok"] > 0
    assert data["rate"] == pytest.approx(50, rel=0.9)  # of the seconds that it ran, and not of the sixty that it should have
    code, said, data = left
    assert code == 1
    assert data["complete"]
    assert data["requests"]["ok"] > 0
    assert data["requests"]["connection"] > 0
    # Without a promise, too: a server that went away is no server that was measured.
    assert "NOT VALID: no good answer came after" in said
    code, said, data = searched
    assert (code, data["complete"], data["rate"], data["result"]) == (130, False, 0, None)
    assert data["probes"][0]["reasons"] == ["it was broken off before its end"]
    assert "The search was broken off after 1 run: until then no rate had kept the SLO" in said
    assert "5 %" not in said
    code, said, data = too_much
    assert (code, data["valid"]) == (1, False)
    assert "NOT VALID" in said
    assert data["missed"] > 0


RIGHT = page(200, {"model_name": "right", "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [0.0]}]})
FAULTS = {
    "right": RIGHT,
    "gone": page(404, {"error": "Request for unknown model: 'gone' has no available versions"}),
    "hollow": page(200, {}),
    "empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"garbage\r\n\r\n",
    "cut": RIGHT[:-1],
    "silent": b"",
}
"""Models by what is answered to a request to them; where it is no whole answer, the connection ends with it, or stays open where it is nothing at all."""


async def _faulty(reader, writer):
    """A server of all of them over HTTP."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := (await reader.readuntil(b"\r\n\r\n")).decode().lower():
            path = head.split(" ", 2)[1]
            await reader.readexactly(int(head.partition("\r\ncontent-length: ")[2].partition("\r\n")[0] or 0))
            model = next((name for name in FAULTS if f"/models/{name}" in path), "")
            if path.endswith("/infer"):
                writer.write(FAULTS[model])
                if model in ("garbage", "cut"):
                    break
            else:
                writer.write(page(200, PAGES.get(path.replace(model, MODEL), {}) if model else PAGES["/v2"]))
    writer.close()


@contextlib.contextmanager
def faulty_server():
    """Its address, while the block runs."""
    ready: queue.Queue[tuple[int, Callable[[], object]]] = queue.Queue()

    async def serve():
        over = asyncio.Event()
        async with await asyncio.start_server(_faulty, "127.0.0.1", 0) as server:
            loop = asyncio.get_running_loop()
            ready.put((server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    port, end = ready.get(timeout=SOON_S)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        end()
        thread.join()


@pytest.mark.system
def test_settings_for_other_load_tests_of_locusts_do_not_reach_ours(tmp_path):
    """Locust reads them from the current folder, from the user's, and from variables; paths that people give are still those of the current folder."""
    for place, text in (("locust.conf", "run-time = 1ms\ntags = other\n"), ("home/.locust.conf", "csv = home\nprocesses = 3\n"), ("data.txt", "0.1\n0.2\n")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.locust]\nusers = 5\nexclude-tags = ['all']\nlocustfile = 'none.py'\n")
    foreign = {"LOCUST_RUN_TIME": "1ms", "LOCUST_CSV": "csv", "LOCUST_MODE_WORKER": "true", "LOCUST_NO_SUCH": "x", "HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "tritongen", "load", MODEL, "--arrivals", "trace:data.txt", "--duration", "300ms", "--format", "json", "-u"]
    with known_server(tmp_path, service_s=0.0) as server:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **foreign}
        done = subprocess.run([*command, server.urls["http"]], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SOON_S, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1 on a machine that is too busy to be believed
    assert json.loads(done.stdout)["requests"] == {"ok": 2}
    assert not list(tmp_path.glob("**/*.csv"))


@pytest.mark.system
def test_a_rate_that_no_machine_makes_ends_on_time_with_what_could_be_sent(tmp_path):
    with known_server(tmp_path, service_s=0.0) as server:
        stages = (Stage(3, 1_000_000, 1_000_000, "too much"),)
        result = run_load(LoadPlan((ModelLoad(MODEL),), server.urls["http"], stages=stages, deadline_s=2, pool=2))
    assert (result.complete, result.trouble) == (True, ())
    assert result.counts["ok"] > 0
    assert result.due == pytest.approx(3_000_000, rel=0.05)
    assert "of the requests that were due were sent, which is less than 95%" in " ".join(result.invalid)


@pytest.mark.system
def test_a_current_folder_that_was_removed_is_in_nobodys_way(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    with known_server(tmp_path, service_s=0.0) as server:
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        stages = (Stage(0.2, 20, 20, "20/s"),)
        assert run_load(LoadPlan((ModelLoad(MODEL),), server.urls["http"], stages=stages, arrivals="constant", pool=1)).counts == {"ok": 4}


@pytest.mark.system
def test_what_is_killed_takes_its_senders_and_its_folder_along(load, tmp_path):
    with known_server(tmp_path, service_s=0.0) as server:
        process, folder = begun(load("killed", server.urls["http"], "--rate", 50, "--duration", "600s"))
        process.kill()
        process.wait()
        end = time.monotonic() + SOON_S
        while of_run(folder) or list(folder.iterdir()):
            assert time.monotonic() < end, (of_run(folder), list(folder.iterdir()))
            time.sleep(0.05)


def of_run(folder):
    """The processes of a run whose folder for temporary files is this one."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


def test_each_way_to_answer_wrongly_is_an_error_of_its_kind_and_breaks_the_promise():
    with faulty_server() as url:
        loads = tuple(ModelLoad(name, slo=Promises({"p50": 900.0})) for name in FAULTS)
        result = run_load(LoadPlan(loads, url, stages=(Stage(1, 120, 120, "120/s"),), deadline_s=1, pool=1))
    kinds = {part.load.model: set(part.counts) for part in result.models}
    assert kinds == {
        "right": {"ok"},
        "gone": {"gone"},
        "hollow": {"hollow"},
        "empty": {"hollow"},
        "garbage": {"connection"},
        "cut": {"connection"},
        "silent": {"deadline"},
    }
    for part in result.models[1:]:
        assert part.missed_slo() == (f"p50: {part.due} of {part.due} requests got no good answer, and 900 ms were promised",)
    assert result.models[0].missed_slo() == ()


def test_a_trace_is_no_rate_that_can_be_searched(tritongen, tmp_path):
    (tmp_path / "trace.txt").write_text("0.25\n0.5\n")
    (tmp_path / "m.onnx").touch()
    (tmp_path / "spec.yaml").write_text(SPEC)
    options = ("--find-max", "--slo", "p99=1s")
    for done in (
        tritongen("load", MODEL, "-u", "http://127.0.0.1:1", "--arrivals", f"trace:{tmp_path / 'trace.txt'}", *options),
        tritongen("load", tmp_path / "spec.yaml", "-u", "http://127.0.0.1:1", *options),
    ):
        assert done.code == 2, done.err
        assert "a trace has its own" in done.err


SPEC = """version: 1
triton: {release: "24.10"}
models: [{name: m, source: m.onnx}]
load: {scenarios: {again: {arrivals: "trace:trace.txt", duration: 2s}}}
"""


def test_a_trace_that_is_none_is_refused_before_the_clock_starts(tritongen, tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text("0.5\n0.25\n")
    with known_server(tmp_path, service_s=0.0) as server:
        done = tritongen("load", MODEL, "-u", server.urls["http"], "--arrivals", f"trace:{trace}", "--duration", "2s")
    assert done.code == 2
    assert "line 2 is 0.25, and the times of a trace ascend from 0" in done.err


@pytest.mark.system
def test_a_search_says_how_long_it_may_take_and_that_nothing_was_due(tritongen, tmp_path):
    with known_server(tmp_path, service_s=0.0) as server:
        done = tritongen("load", MODEL, "-u", server.urls["http"], "--find-max", "--rate", 1, "--duration", "100ms", "--warmup", "0", "--slo", "p99=1s")
    assert done.code == 1, done.err
    assert "Searching from 1 requests/s on, in runs of 0.1 s: 1 s for 6 runs" in done.err
    assert "The search ended after 1 run, since at 1 requests/s nothing was due in 0.1 s: until then no rate had kept the SLO" in done.out


def test_locusts_empty_statistics_are_no_last_words(tmp_path):
    (tmp_path / "locust.log").write_text(
        "[2026-01-01] host/ERROR/locust: it is a reason\n"
        "Type     Name      # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s\n"
        "--------|--------|-------|-------------|-------|-------|-------|-------|--------|-----------\n"
        "         Aggregated       0     0(0.00%) |      0       0      0      0 |    0.00        0.00\n\n"
        "Response time percentiles (approximated)\n"
        "Type     Name                  50%    66%    75%\n"
        "--------|--------|------|------|------\n\n"
    )
    assert last_words(tmp_path) == "[2026-01-01] host/ERROR/locust: it is a reason"


@pytest.mark.system
def test_a_trace_that_no_machine_can_send_ends_on_time_too(tmp_path):
    """A sender that is behind for a second counts what has passed."""
    (tmp_path / "trace").write_text("".join(f"{number / 600_000:.6f}\n" for number in range(600_000)))
    with known_server(tmp_path, service_s=0.0) as server:
        stages = (Stage(1, 0, 0, "trace"),)
        plan = LoadPlan((ModelLoad(MODEL),), server.urls["http"], stages=stages, arrivals="trace", trace=str(tmp_path / "trace"), deadline_s=2, pool=2)
        result = run_load(plan)
    assert (result.complete, result.trouble, result.due) == (True, (), 600_000)
    assert result.counts["ok"] > 0
    assert result.recorder.missed_in() > 0
