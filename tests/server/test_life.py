"""The server's life is tied to its owner's, however that ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.server import models
from tritongen.errors import EnvironmentProblem, ServerStartError
from tritongen.server import ports, runtime, start

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]

CHILD = """
import json, os, sys, time
from pathlib import Path
from tritongen.server import ServerOptions, start
from tritongen.server.signals import run_until_stopped, stop_on_signals
try:
    with stop_on_signals():
        print("starting", flush=True)
        with start(Path(sys.argv[1]), ServerOptions(http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True)) as server:
            if "fork" in sys.argv and os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            print(json.dumps({"server": server.pid, "http": server.http_url, "models": server.models}), flush=True)
            status = run_until_stopped(server)
            print("stopped", status, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

ENDED = ("stopped None\n", "interrupted\n")
"""What the script says in the end; which of the two depends on whether it had begun to wait when the signal came."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    models.put(root, "linear", models.linear(), models.LINEAR)
    return root


@pytest.fixture(scope="module")
def neighbour(repository, options):
    """Another server, which must not notice what happens to those of the tests. The thread that starts it ends at once."""
    started = []
    thread = threading.Thread(target=lambda: started.append(start(repository, options())))
    thread.start()
    thread.join()
    with started[0] as running:
        yield running


@pytest.fixture
def hostile(tmp_path):
    """A working directory full of modules that must not be imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("model", "numpy", "onnxruntime", "triton_python_backend_utils", "tritongen_backend", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('a module of the working directory was imported')\n")
    return folder


class Owner:
    """A process that starts a server and waits."""

    def __init__(self, repository, cwd, *arguments):
        script = cwd.parent / "owner.py"
        script.write_text(CHILD)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(repository), *arguments],
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.made = []
        assert self.process.stdout.readline() == "starting\n"

    def ready(self):
        line = self.process.stdout.readline()
        assert line.startswith("{"), line + self.process.stderr.read()
        self.told = json.loads(line)
        self.server = self.told["server"]
        self.supervisor = parent(self.server)
        self.family = {self.server, self.supervisor, *children(self.server)}
        assert len(self.family) == 3
        (folder,) = runtime.base_folder().glob(f"tritongen-{self.process.pid}-*")
        self.made = made_in_tmp(folder)
        return self

    def traces(self):
        """Folders and shared-memory regions with this owner's name on them, and what its server made in /tmp."""
        prefix = f"tritongen-{self.process.pid}-"
        named = [path for folder in (runtime.base_folder(), runtime.SHM) for path in folder.iterdir() if path.name.startswith(prefix)]
        return named + [path for path in self.made if path.exists()]

    def end(self):
        out, errors = self.process.communicate(timeout=120)
        return self.process.returncode, out, errors


def made_in_tmp(folder):
    """What the server of this private folder made in /tmp, once its supervisor knows; it is there, and empty."""
    eventually(lambda: (folder / "made").is_file() and (folder / "made").read_text().endswith("\n"))
    made = [Path(line) for line in (folder / "made").read_text().splitlines()]
    assert [list(path.iterdir()) for path in made] == [[]]
    return made


@pytest.fixture
def owner(repository, hostile):
    started = Owner(repository, hostile)
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()


def stat(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def parent(pid):
    return int(stat(pid)[1])


def children(pid):
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and (fields := stat(path.name)) and int(fields[1]) == pid}


def alive(pid):
    fields = stat(pid)
    return fields is not None and fields[0] != "Z"


def eventually(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def answers(server, ask):
    return ask(server, "linear", {"x": np.ones((1, 64), np.float32)})["y"].shape == (1, 16)


def test_a_killed_owner_leaves_nothing(owner, neighbour, ask):
    owner.ready()
    assert owner.told["models"] == {"linear": "READY"}
    assert len(owner.traces()) == 3
    owner.process.kill()
    eventually(lambda: not any(map(alive, owner.family)) and not owner.traces())
    assert answers(neighbour, ask)


def test_a_killed_owner_leaves_nothing_even_where_a_fork_of_it_lives_on(repository, hostile):
    owner = Owner(repository, hostile, "fork").ready()
    owner.process.kill()
    eventually(lambda: not any(map(alive, owner.family)) and not owner.traces())
    os.killpg(owner.process.pid, signal.SIGKILL)
    owner.process.wait()
    owner.process.stdout.close()
    owner.process.stderr.close()


def test_what_remains_when_everything_is_killed_is_removed_at_the_next_start(owner, neighbour, ask):
    owner.ready()
    os.kill(owner.supervisor, signal.SIGSTOP)
    owner.process.kill()
    owner.process.wait()
    os.kill(owner.supervisor, signal.SIGKILL)
    eventually(lambda: not any(map(alive, owner.family)))
    left = owner.traces()
    assert len(left) == 3
    assert set(left) - set(owner.made) <= set(runtime.leftovers())
    assert set(left) <= set(runtime.sweep())
    assert owner.traces() == []
    assert answers(neighbour, ask)


def test_sigterm_stops_server_and_stubs(owner):
    owner.ready()
    owner.process.send_signal(signal.SIGTERM)
    code, out, errors = owner.end()
    assert (code, errors) == (0, "")
    assert out in ENDED
    assert not any(map(alive, owner.family))
    assert owner.traces() == []


def test_ctrl_c_in_a_terminal_goes_to_the_whole_group_and_stops_cleanly(owner):
    owner.ready()
    os.killpg(owner.process.pid, signal.SIGINT)
    code, out, errors = owner.end()
    assert (code, errors) == (0, "")
    assert out in ENDED
    assert not any(map(alive, owner.family))
    assert owner.traces() == []


def test_a_signal_while_the_server_starts(owner):
    eventually(lambda: len(owner.traces()) >= 1)
    owner.process.send_signal(signal.SIGTERM)
    code, out, errors = owner.end()
    assert (code, errors) == (0, "")
    assert out in ENDED or out.startswith("{")  # a machine that was busy with other things let it start first
    assert out.endswith(ENDED)
    assert owner.traces() == []


def test_a_server_that_dies_takes_its_stubs_along(repository, options):
    server = start(repository, options())
    stubs = children(server.pid)
    (made,) = made_in_tmp(server._attempt.runtime.folder)
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait(timeout_s=60) == 128 + signal.SIGKILL
    assert not any(map(alive, stubs))
    assert [path for path in runtime.SHM.iterdir() if path.name.startswith(server._attempt.runtime.shm_prefix)] == []
    assert not made.exists()
    server.stop()
    server.stop()
    assert not server._attempt.runtime.folder.exists()
    assert "successfully loaded 'linear'" in server.log()


def test_a_server_outlives_the_thread_that_started_it(neighbour, ask):
    time.sleep(0.2)
    assert neighbour.wait(timeout_s=0) is None
    assert answers(neighbour, ask)


def test_a_forgotten_server_is_stopped(repository, options):
    server = start(repository, options())
    pid, folder = server.pid, server._attempt.runtime.folder
    del server
    eventually(lambda: not alive(pid) and not folder.exists())


def test_nothing_of_a_stopped_server_is_left_in_tmp_and_nothing_of_others_goes(repository, options, neighbour):
    others = made_in_tmp(neighbour._attempt.runtime.folder)
    with start(repository, options()) as server:
        (made,) = made_in_tmp(server._attempt.runtime.folder)
    assert not made.exists()
    assert all(path.is_dir() for path in others)


def test_a_start_without_path(repository, options, ask, monkeypatch):
    monkeypatch.delenv("PATH")
    with start(repository, options()) as server:
        assert answers(server, ask)


def test_a_stub_that_cannot_be_started_is_told_at_once_with_the_reason(repository, options, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    began = time.monotonic()
    with pytest.raises(ServerStartError, match="bash, through which Triton starts the processes that run models, is not on PATH") as caught:
        start(repository, options(start_timeout_s=600))
    assert time.monotonic() - began < 300
    assert "install bash" in caught.value.hint


def test_taken_default_ports_are_told_and_strict_does_not_mind(repository, options, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "DEFAULTS", ports.DEFAULTS | {"grpc": port})
        with start(repository, options(grpc_port=None, strict=True, release="31.12")) as server:
            told, unknown = server.warnings
            assert f"another program has {port} (grpc)" in told
            assert f"this server listens on {server.grpc_url.rpartition(':')[2]} (grpc)" in told
            assert "release 31.12 is not known" in unknown
            assert server.differences == ()


def test_a_port_asked_for_by_number_must_be_free(repository, options):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=rf"already in use on 127\.0\.0\.1: port {port} \(grpc\)") as caught:
            start(repository, options(grpc_port=port))
    assert "port 0" in caught.value.hint


def test_a_port_that_is_lost_between_choice_and_start_is_replaced(repository, options, ask, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        lost = taken.getsockname()[1]
        free = ports._any_free
        monkeypatch.setattr(ports, "_any_free", lambda host, used: free(host, used) if lost in used else lost)
        with start(repository, options()) as server:
            assert str(lost) not in server.http_url
            assert answers(server, ask)


def test_a_port_by_number_that_is_lost_is_an_error_that_says_so(repository, options, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        lost = taken.getsockname()[1]
        monkeypatch.setattr(ports, "is_free", lambda _host, _port: True)
        with pytest.raises(ServerStartError, match=f"another program took port {lost} on 127.0.0.1"):
            start(repository, options(http_port=lost))
