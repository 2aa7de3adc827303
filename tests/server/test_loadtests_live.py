"""`loadtests/` and the users that they are built on, run by plain Locust against a real Triton, as a user runs them."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import contract
import models
import pytest
from known_server import known_server
from locust_runs import LONGEST_S, ROOT, SOON_S

import tritongen

pytestmark = pytest.mark.server
FIVE = 'parameters { key: "tritongen.samples" value { string_value: "{\\"count\\": [5]}" } }\nmodel_transaction_policy { decoupled: true }\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    models.put(repository, "linear", models.linear(), models.LINEAR + "dynamic_batching {}\n")
    models.put(repository, "scaled", models.scaled_by_scalar(), models.config("t INT64 [1]; x FP32 [-1]", "y FP32 [-1]; square INT64 [1]", batch=0))
    contract.python_model(repository, "counting", contract.COUNTING, "count INT32 [1]", "number INT32 [1]", batch=0, extra=FIVE)
    contract.python_model(repository, "summing", contract.SUMMING, "x INT32 [1]", "sum INT32 [1]; open INT32 [1]", batch=1, extra=contract.SEQUENCE)
    with tritongen.serve(repository, http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as running:
        yield running


@pytest.mark.parametrize(("file", "kind"), [("grpc_user.py", "grpc"), ("http_user.py", "http")])
def test_one_model_over_either_protocol(server, locust, file, kind):
    url = getattr(server, f"{kind}_url")
    ran = locust(ROOT / "loadtests" / file, "-u", 4, "-r", 4, "--host", url, MODEL="linear", ROWS="3", enough=30).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    count, failed = ran.requests(kind, "linear")
    assert count > 10
    assert failed == 0
    assert ran.size(kind, "linear") == 3 * 16 * 4
    assert 0 < ran.rows[kind, "linear"]["min_response_time"] < 1000
    assert "Traceback" not in ran.said


@pytest.mark.system
def test_both_protocols_at_once(server, locust):
    ran = locust(ROOT / "loadtests/mixed.py", "-u", 4, "-r", 4, MODEL="linear", GRPC_URL=server.grpc_url, HTTP_URL=server.http_url, enough=20, rows=2).wait(
        LONGEST_S + SOON_S
    )
    assert ran.code == 0, ran.said
    for kind, name, size in (("grpc", "linear", 64), ("http", "batch", 256)):
        count, failed = ran.requests(kind, name)
        assert count > 10
        assert failed == 0
        assert ran.size(kind, name) == size


MIXED = """
from locust import task

from tritongen.load import ModelLoad, TritonGrpcUser


class Mixed(TritonGrpcUser):
    models = (ModelLoad("linear", part=3.0, batch_mix=((2, 1.0),)), ModelLoad("scaled", shape_mix=(({"x": (5,)}, 1.0),)))

    @task
    def ask(self):
        self.infer()
"""


@pytest.mark.system
def test_one_class_of_users_mixes_models_by_their_parts(server, locust):
    ran = locust(MIXED, "-u", 4, "-r", 4, "--host", server.grpc_url, enough=100, rows=2).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    (linear, failed_linear), (scaled, failed_scaled) = (ran.requests("grpc", name) for name in ("linear", "scaled"))
    assert (failed_linear, failed_scaled) == (0, 0)
    assert 0.6 < linear / (linear + scaled) < 0.9
    assert ran.size("grpc", "linear") == 2 * 16 * 4
    assert ran.size("grpc", "scaled") == 5 * 4 + 8


SEQUENCES = """
from locust import task

from tritongen.load import TritonGrpcUser


class Talker(TritonGrpcUser):
    model = "summing"

    @task
    def talk(self):
        with self.client.sequence(self.model) as sequence:
            for number in (1, 2, 3):
                answer = self.infer({"x": [[5]]}, sequence=sequence, end=number == 3, name=f"request {number}")
                if answer is not None and answer["sum"].sum() != 5 * number:
                    raise ValueError(f"the sum is {answer['sum']} after {number} requests")
"""


@pytest.mark.system
def test_the_requests_of_a_sequence_are_counted(server, locust):
    ran = locust(SEQUENCES, "-u", 2, "-r", 2, "--host", server.grpc_url, enough=5, rows=3).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    assert "the sum is" not in ran.said
    for number in (1, 2, 3):
        requests, failed = ran.requests("grpc", f"request {number}")
        assert (requests >= 5, failed) == (True, 0)


def test_streams_are_timed_to_the_first_response_and_to_the_last(server, locust):
    ran = locust(ROOT / "loadtests/streaming.py", "-u", 3, "-r", 3, "--host", server.grpc_url, MODEL="counting", enough=10, rows=2).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    first, failed_first = ran.requests("grpc", "counting (first response)")
    whole, failed = ran.requests("grpc", "counting")
    assert first >= whole > 5
    assert (failed_first, failed) == (0, 0)
    assert ran.size("grpc", "counting") == 5 * 4
    assert ran.size("grpc", "counting (first response)") == 4


@pytest.mark.system
def test_several_processes_of_locusts_send_together(server, locust):
    ran = locust(ROOT / "loadtests/grpc_user.py", "-u", 4, "-r", 4, "-t", "3s", "--processes", 2, "--host", server.grpc_url, MODEL="linear").wait(6 + SOON_S)
    assert ran.code == 0, ran.said
    count, failed = ran.requests("grpc", "linear")
    assert count > 10
    assert failed == 0


SLOW = """
from locust import task
from tritongen.load import {user}

class Slow({user}):
    deadline_s, model = 30, "known"

    @task
    def wait(self):
        print("under way", flush=True)
        self.infer()
"""


@pytest.mark.system
@pytest.mark.parametrize(
    ("protocol", "user", "end"),
    [
        ("grpc", "TritonGrpcUser", signal.SIGTERM),
        ("grpc", "TritonGrpcUser", signal.SIGINT),
        ("grpc", "TritonGrpcUser", None),
        ("http", "TritonHttpUser", signal.SIGTERM),
    ],
)
def test_the_process_ends_though_requests_are_under_way(locust, tmp_path, protocol, user, end):
    with known_server(tmp_path, service_s=60) as silent:
        run = locust(SLOW.format(user=user), "-u", 4, "-r", 4, "--host", silent.urls[protocol], *([] if end else ["-t", "2s"]))
        if end:
            begun = itertools.islice((line for line in run.process.stdout if "under way" in line), 4)
            assert len(list(begun)) == 4
            run.process.send_signal(end)
        ran = run.wait(SOON_S)
    assert ran.code == 0, ran.said
    # Python raises Ctrl-C in whichever greenlet is running, and gevent prints where that was.
    assert end is signal.SIGINT or "Traceback" not in ran.said


LEAVING = """
import gevent
from locust import task
from tritongen.load import TritonGrpcUser

class Leaving(TritonGrpcUser):
    deadline_s, model = 30, "known"

    @task
    def wait(self):
        gevent.spawn(self.environment.runner.quit)
        self.infer()
"""


@pytest.mark.system
def test_answers_that_are_under_way_at_the_end_are_waited_for(locust, tmp_path):
    with known_server(tmp_path, service_s=0.3) as slow:
        ran = locust(LEAVING, "-u", 1, "-t", f"{LONGEST_S}s", "--stop-timeout", LONGEST_S, "--host", slow.urls["grpc"]).wait(LONGEST_S + SOON_S)
        assert ran.requests("grpc", "known") == (1, 0), ran.said
        # Without the option there are two seconds, which a busy machine may need more than: the number is looked at.
        ran = locust(
            LEAVING.replace("self.infer()", "print('for', self.environment.stop_timeout, 'seconds')"),
            "-u",
            1,
            "-t",
            f"{LONGEST_S}s",
            "--host",
            slow.urls["grpc"],
        )
        assert "for 2.0 seconds" in ran.wait(LONGEST_S + SOON_S).said


QUICK = """
import numpy as np
from locust import task
from tritongen.load import TritonGrpcUser, TritonHttpUser
{before}
class Quick({user}):
    model = "linear"
    {body}

    @task
    def ask(self):
        self.infer()
"""


@pytest.mark.system
def test_payloads_of_ones_own_are_made_before_the_first_request(server, locust):
    body = 'inputs = lambda self: print("made") or {"x": np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)}; pool = 3'
    ran = locust(QUICK.format(before="", user="TritonGrpcUser", body=body), "-u", 3, "-r", 3, "--host", server.grpc_url, enough=30).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    assert ran.said.count("made") == 3
    assert ran.size("grpc", "linear") == 2 * 16 * 4


def test_requests_that_fail_are_counted_by_what_went_wrong_and_not_sent_again(server, locust):
    before = """
from locust import events

@events.request.add_listener
def say(exception, **others):
    print(type(exception).__name__, exception)
"""
    file = QUICK.format(before=before, user="TritonHttpUser", body="").replace("self.infer()", 'self.infer({"x": np.zeros((1, 63), np.float32)})')
    ran = locust(file, "-u", 2, "-r", 2, "--host", server.http_url, enough=30).wait(LONGEST_S + SOON_S)
    count, failed = ran.requests("http", "linear")
    assert count == failed > 0
    assert ran.code == 1
    assert "InvalidInput TG061 input 'x': it must have the shape [-1, 64] (-1: any size), got [1, 63]" in ran.said


OWN = """
import numpy as np
from locust import task
from tritongen.load import TritonGrpcUser

class Mixin:
    def on_start(self):
        print("begun", self.client.meta("linear").name)

class Own(Mixin, TritonGrpcUser):
    model = "linear"

    def on_stop(self):
        print("stopped", self.client.live())

    @task
    def ask(self):
        self.infer()
"""


@pytest.mark.system
def test_on_start_and_on_stop_may_be_overridden_without_super(server, locust):
    ran = locust(OWN, "-u", 2, "-r", 2, "--host", server.grpc_url, enough=30).wait(LONGEST_S + SOON_S)
    assert ran.code == 0, ran.said
    assert (ran.said.count("begun linear"), ran.said.count("stopped True")) == (2, 2), ran.said
    count, failed = ran.requests("grpc", "linear")
    assert count > 5
    assert failed == 0
    assert "Traceback" not in ran.said


EARLY = """
import grpc
channel = grpc.insecure_channel("localhost:1")
"""


@pytest.mark.parametrize(
    ("before", "body", "code", "words"),
    [(EARLY, "", 3, "1 gRPC channel was made before gRPC was told of gevent"), ("", "model = 'nothing'", 3, "no model 'nothing'")],
)
def test_what_cannot_be_run_is_refused_at_once(server, locust, before, body, code, words):
    ran = locust(QUICK.format(before=before, user="TritonGrpcUser", body=body), "-u", 3, "-r", 3, "-t", "60s", "--host", server.grpc_url).wait(3 * SOON_S)
    assert ran.code == code, ran.said
    assert ran.said.count("the test cannot be run:") == 1
    assert words in ran.said
    assert "Traceback" not in ran.said
    assert not ran.rows


@pytest.mark.system
def test_a_worker_that_refuses_ends_the_run(server, locust):
    file = QUICK.format(before="", user="TritonGrpcUser", body="model = 'nothing'")
    ran = locust(file, "-u", 2, "-r", 2, "-t", "60s", "--processes", 2, "--host", server.grpc_url).wait(4 * SOON_S)
    assert ran.code != 0
    assert "no model 'nothing'" in ran.said


def library(script: str, tmp_path: Path, *arguments: str) -> str:
    """What a script says that uses Locust as a library."""
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, tmp_path / "script.py", *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


REFUSALS = """
import json, logging, sys
import locust
from locust import task
from locust.env import Environment
from locust.event import Events
import numpy as np
from tritongen.load import TritonGrpcUser, TritonHttpUser

said = []
logging.getLogger("tritongen.load").addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())

def run(kind, host, values):
    said.clear()
    names = {"grpc": TritonGrpcUser, "http": TritonHttpUser}
    Quick = type("Quick", (names[kind],), {"model": "linear", **values, "host": host, "tasks": [lambda user: user.infer()]})
    environment = Environment(user_classes=[Quick], events=Events())
    runner = environment.create_local_runner()
    runner.start(2, 2)
    runner.greenlet.join(timeout=60)
    return environment.process_exit_code, list(said), environment.stats.num_requests

for kind, host, values in json.loads(sys.argv[1]):
    if "inputs" in values:
        values["inputs"] = {"x": np.zeros(values["inputs"], np.float32)}
    print(json.dumps(run(kind, host, values)))
"""


@pytest.mark.system
def test_each_kind_of_refusal_says_what_is_wrong_and_what_to_do(server, tmp_path):
    grpc, http = server.grpc_url, server.http_url
    cases = [
        ("grpc", http, {}, 2, "Quick sends over grpc, and its host is http://", "give --host grpc://"),
        ("http", grpc, {}, 2, "Quick sends over http, and its host is grpc://", "give each its own `host`"),
        ("grpc", "localhost:8001", {}, 2, "does not say which protocol", "write grpc://host:8001"),
        ("grpc", "", {}, 2, "does not say which protocol", "write grpc://host:8001"),
        ("grpc", "grpc://127.0.0.1:1", {}, 3, "127.0.0.1:1", ""),
        ("http", "http://127.0.0.1:1", {}, 3, "127.0.0.1:1", ""),
        ("http", http, {"model": ""}, 2, "the server has 4 that are ready: counting, linear, scaled, summing", "set `model`"),
        ("http", http, {"model": "counting"}, 3, "HTTP carries no streams", "use TritonGrpcUser and its stream()"),
        ("http", http, {"model": "scaled"}, 2, "the size of input 'x' [-1] is not known", "as `shapes` of a Locust user"),
        ("http", http, {"rows": "many"}, 2, "'many' is no number of rows", "from 1 on"),
        ("http", http, {"rows": 0}, 2, "'0' is no number of rows", "from 1 on"),
        ("http", http, {"shapes": "x=3xx4"}, 2, "'3xx4' is no shape", "such as 3x48x320"),
        ("http", http, {"rows": 9}, 2, "a batch of 9 rows is more than the model takes (8)", "fewer `rows`"),
        ("http", http, {"inputs": [1, 2]}, 2, "it must have the shape [-1, 64]", ""),
        ("http", http, {"deadline_s": 0}, 2, "a time limit of 0 s cannot be kept", "above 0"),
    ]
    lines = library(REFUSALS, tmp_path, json.dumps([case[:3] for case in cases])).splitlines()
    for (kind, host, values, code, words, hint), line in zip(cases, lines, strict=True):
        found, said, requests = json.loads(line)
        assert (found, len(said), requests) == (code, 1, 0), (kind, host, values, said)
        assert words in said[0]
        assert hint in said[0]


AGAIN = """
import sys
import locust
import gevent
from locust import task
from locust.env import Environment
from tritongen.load import TritonGrpcUser

class Quick(TritonGrpcUser):
    model, host = "linear", sys.argv[1]

    @task
    def ask(self):
        self.infer()

environment = Environment(user_classes=[Quick])
runner = environment.create_local_runner()
for _ in range(2):
    runner.start(3, 3)
    with gevent.Timeout(60):
        while environment.stats.num_requests <= 20:
            gevent.sleep(0.05)
    runner.stop()
    print(environment.stats.num_requests > 20, environment.stats.num_failures, environment.process_exit_code)
"""


@pytest.mark.system
def test_a_test_can_be_stopped_and_started_again_as_the_web_page_does(server, tmp_path):
    assert library(AGAIN, tmp_path, server.grpc_url).splitlines() == ["True 0 None"] * 2


BLOCKED = {"grpc": "import locust\n", "http": "import os\nos.environ['LOCUST_SKIP_MONKEY_PATCH'] = '1'\nimport locust\n"}
CHECK = """
import sys
from tritongen.errors import EnvironmentProblem
from tritongen.load.greenlets import check_side_by_side, set_up_grpc

try:
    check_side_by_side(sys.argv[1])
except EnvironmentProblem as error:
    print(error, error.hint)
else:
    print("side by side")
"""


@pytest.mark.system
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_requests_that_would_wait_for_one_another_are_found(tmp_path, protocol):
    said = library(BLOCKED[protocol] + CHECK, tmp_path, protocol)
    assert said.startswith("requests block the event loop")
    assert {"grpc": "init_gevent()", "http": "import locust before anything else"}[protocol] in said
    right = CHECK.replace("\ntry:", "\nset_up_grpc()\ntry:")
    assert library("import locust\n" + right, tmp_path, protocol) == "side by side\n"


WAITING = """
import os
import socket
import time
import gevent
from tritongen.client import Client
from tritongen.load.greenlets import set_up_grpc

set_up_grpc()
with socket.socket() as silent:
    silent.bind(("127.0.0.1", 0))
    silent.listen()
    clients = [Client(f"grpc://127.0.0.1:{silent.getsockname()[1]}") for _ in range(40)]
    waiting = [gevent.spawn(client.live, deadline_s=60) for client in clients]
    until = time.monotonic() + 60
    while gevent.get_hub().threadpool.size < 40 and time.monotonic() < until:
        gevent.sleep(0.01)
    print(gevent.get_hub().threadpool.size >= 40, flush=True)
    os._exit(0)  # without the answers, for which the threads would wait
"""


IMPORTED = """
import time
import gevent
from locust import events
from tritongen.load import TritonGrpcUser

until = time.monotonic() + 1
while time.monotonic() < until:
    pass
events.init.fire(environment=None, runner=None, web_ui=None)
begin = time.monotonic()
gevent.spawn_later(0.5, lambda: None).join()
print(time.monotonic() - begin > 0.4)
"""


@pytest.mark.system
def test_the_run_time_has_nothing_of_the_import_of_locustfiles_in_it(tmp_path):
    """Locust sets the timer of --run-time when it has imported them, and on a busy machine that takes longer than a short run."""
    assert library("import locust\n" + IMPORTED, tmp_path) == "True\n"


def test_each_of_many_users_has_a_thread_that_waits_for_its_answer(tmp_path):
    """One that has none waits for another's, and the time would be measured as the server's."""
    assert library("import locust\n" + WAITING, tmp_path) == "True\n"
