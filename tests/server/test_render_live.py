"""Rendering into the folder of a server that polls it, while requests flow: none fails, every change arrives, and the server has nothing to complain of."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from tritongen.repository import apply_plan
from tritongen.server import start
from tritongen.workflow.rendering import plan_render

pytestmark = pytest.mark.server

X = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
ROWS = 2
FIRST, SECOND = 4, 8
"""The largest batch of the model whose config changes, before and after."""

SEEN_S = 120.0
COMPLAINTS = re.compile(r"^E\d{4} .*|.*(failed to load|failed to poll|Poll failed).*", re.MULTILINE | re.IGNORECASE)


class Project:
    """A spec whose weights, config and list of models change from one render to the next, and what the server should say then."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.seed, self.most, self.extra = 0, FIRST, True
        self.extra_may_fail = False
        self.answers: list[np.ndarray] = []
        networks.mlp(folder / "fixed.onnx", seed=999)
        self.fixed = self.answer(folder / "fixed.onnx")
        self.render()
        ahead_s = time.time() + 86_400
        for path in (folder / "model_repository").rglob("*"):
            os.utime(path, (ahead_s, ahead_s))  # as by a machine whose clock was ahead: what is newer by the clock would not be seen

    def answer(self, path) -> np.ndarray:
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]

    def render(self):
        # Weights in a file of their own: both must change in one step.
        model = onnx.load(networks.mlp(self.folder / "whole.onnx", seed=self.seed))
        (self.folder / "weights.bin").unlink(missing_ok=True)  # onnx appends
        onnx.save(model, self.folder / "weights.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
        self.answers.append(self.answer(self.folder / "weights.onnx"))
        lines = ["name: weights, source: weights.onnx, batching: {max: 8}, version: auto, versions: {count: 2}"]
        lines += [f"name: config, source: fixed.onnx, batching: {{max: {self.most}}}"]
        lines += ["name: extra, source: fixed.onnx, batching: {max: 8}"] if self.extra else []
        text = "version: 1\ndefaults: {prove: false, instances: {kind: cpu}, warmup: none}\nmodels:\n" + "".join(f"  - {{{line}}}\n" for line in lines)
        (self.folder / "spec.yaml").write_text(text)
        with plan_render(self.folder / "spec.yaml", prune=True, settle=True) as rendering:
            return apply_plan(rendering.plan)

    def change(self, number: int) -> None:
        """Weights, then config, then the list of models, and so on."""
        if number % 3 == 0:
            self.seed += 1
        elif number % 3 == 1:
            self.most = SECOND if self.most == FIRST else FIRST
        else:
            self.extra = not self.extra
            self.extra_may_fail = True  # until it was seen to answer again
        applied = self.render()
        assert len([*applied.written, *applied.pruned]) == 1
        assert applied.notes == ()


class Flow(threading.Thread):
    """Asks one model without pause and judges each answer; `failures` says what was wrong."""

    def __init__(self, url: str, model: str, project: Project) -> None:
        super().__init__()
        self.url, self.model, self.project = url, model, project
        self.failures: list[str] = []
        self.asked = 0
        self.over = threading.Event()

    def run(self) -> None:
        with grpcclient.InferenceServerClient(self.url) as client:
            while not self.over.is_set():
                may_fail = self.project.extra_may_fail
                try:
                    found = ask(client, self.model, ROWS)
                except InferenceServerException as error:
                    if self.model != "extra" or not (may_fail or self.project.extra_may_fail):
                        self.failures.append(f"{self.model}: {error}")
                else:
                    right = [self.project.fixed] if self.model != "weights" else self.project.answers[-3:]
                    if not any(np.allclose(found, answer[:ROWS], rtol=1e-4, atol=1e-5) for answer in right):
                        self.failures.append(f"an answer of no weights that were there: {found[0]}")
                self.asked += 1
                self.over.wait(0.005)


def ask(client, model: str, rows: int) -> np.ndarray:
    tensor = grpcclient.InferInput("x", [rows, 8], "FP32")
    tensor.set_data_from_numpy(X[:rows])
    return client.infer(model, [tensor], client_timeout=30).as_numpy("y")


def seen(client, project: Project) -> bool:
    """Whether the server answers as the last render says."""
    if not np.allclose(ask(client, "weights", ROWS), project.answers[-1][:ROWS], rtol=1e-4, atol=1e-5):
        return False
    if answers(client, "config", SECOND) != (project.most == SECOND):
        return False
    return answers(client, "extra", ROWS) == project.extra


def answers(client, model: str, rows: int) -> bool:
    try:
        ask(client, model, rows)
    except InferenceServerException:
        return False
    return True


def campaign(folder, options, count: int) -> Counter:
    """Change the repository `count` times; requests by model."""
    project = Project(folder)
    settings = options(model_control="poll", poll_interval_s=1)
    with start(folder / "model_repository", settings) as server:
        url = server.grpc_url.removeprefix("grpc://")
        started = len(server.log())
        flows = [Flow(url, model, project) for model in ("weights", "config", "extra")]
        for flow in flows:
            flow.start()
        try:
            with grpcclient.InferenceServerClient(url) as client:
                for number in range(count):
                    project.change(number)
                    deadline = time.monotonic() + SEEN_S
                    while not seen(client, project):
                        assert time.monotonic() < deadline, f"change {number} did not reach the answers:\n{server.log()[-3000:]}"
                        time.sleep(0.05)
                    project.extra_may_fail = not project.extra
        finally:
            for flow in flows:
                flow.over.set()
            for flow in flows:
                flow.join()
        assert [failure for flow in flows for failure in flow.failures] == []
        assert [match.group() for match in COMPLAINTS.finditer(server.log()[started:])] == []
    return Counter({flow.model: flow.asked for flow in flows})


def test_a_polling_server_follows_every_kind_of_change_without_a_failed_request(tmp_path, options):
    asked = campaign(tmp_path, options, 4)
    assert all(asked[model] > 10 for model in ("weights", "config", "extra"))


@pytest.mark.soak
def test_three_hundred_changes_under_a_polling_server(tmp_path, options):
    asked = campaign(tmp_path, options, 300)
    print(dict(asked))
    assert asked["weights"] > 3000
