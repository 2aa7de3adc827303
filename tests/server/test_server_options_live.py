"""The options that a spec's `server` becomes, on a real tritonserver: as a deployment has them, and as `tritongen serve` does."""

from __future__ import annotations

import dataclasses
import time
import urllib.request
from pathlib import Path

import compose
import networks
import numpy as np
import pytest
from counted import statistics

from tritongen.errors import ServerStartError
from tritongen.server import embedded, ports, runtime, served_copy
from tritongen.server import environment as environments
from tritongen.server.attempt import Attempt
from tritongen.server.options import ServerOptions
from tritongen.workflow import render
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

SPEC = """\
version: 1
triton: {release: "24.10"}
server:
  listen: {http: %(http)d}
  model_control: explicit
  load_models: [kept]
  cache: {size: 1MiB}
  rate_limit: {resources: [{name: slot, count: 2}, {name: licence, count: 1}]}
  metrics:
    gpu: false
    cpu: true
    interval: 500ms
    counter_latencies: true
    summary_latencies: true
    summary_quantiles: [{quantile: 0.5, error: 0.05}, {quantile: 0.999, error: 0.0001}]
  log: {verbose: 0, warning: true, format: ISO8601}
  http: {threads: 4}
  grpc:
    allocation_pool: 4
    compression: low
    max_connection_age: 1h
    max_connection_age_grace: 1m
    keepalive:
      {time: 30s, timeout: 10s, permit_without_calls: true, max_pings_without_data: 0, min_recv_ping_interval: 10s, max_ping_strikes: 0}
  memory: {pinned: 16MiB, gpus: [{gpu: 0, pool: 1MiB, load_limit: 0.9}]}
  host_policies: {socket_0: {numa_node: 0, cpu_cores: 0-0}}
  backend_config: {onnxruntime: {"odd key": "a=b,c $HOME"}}
  loading: {threads: 2, retries: 1}
  exit_on_error: false
  strict_readiness: true
  exit_timeout: 5s
models:
  - name: kept
    source: m.onnx
    response_cache: true
    instances: [{kind: cpu, rate_limiter: {resources: [{name: slot}, {name: licence, global: true}]}}]
  - {name: other, source: m.onnx, instances: [{kind: cpu}]}
"""


@dataclasses.dataclass(frozen=True)
class Rendered(Attempt):
    """A start with the command line of a compose file, whose folder of models, backends and ports are those of this machine."""

    command: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        (repository,) = self.served.repositories
        places = [
            argument
            for argument in super().arguments()
            if argument.startswith(("--backend-directory", "--cache-directory", "--http-", "--grpc-port", "--metrics-port"))
        ]
        shm = [argument for argument in super().arguments() if argument.startswith("--backend-config=python")]
        return [str(self.environment.server), *(word.replace("/models", str(repository)) for word in self.command[1:]), *places, *shm]


@pytest.fixture
def spec(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC % {"http": ports._any_free("127.0.0.1", set())})
    return path


def start_rendered(folder: Path, file: str, extra: tuple[str, ...] = ()):
    command = tuple(compose.read((folder / file).read_text())["services"]["tritonserver"]["command"])
    assert command[0] == "tritonserver"
    environment = environments.choose()
    options = ServerOptions(http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True, exit_on_error=False)
    private = runtime.create(environment)
    served = served_copy.prepare([folder / "model_repository.cpu"], private.repository, served_copy.this_machine(), options)
    attempt = Rendered(options, environment, ports.choose(options, avoid=frozenset()), private, served, command=(*command, *extra))
    try:
        return embedded._started(attempt, time.perf_counter())
    except BaseException:
        private.remove()
        raise


def test_a_rendered_command_line_starts_the_server(spec, ask):
    render(spec, cpu=True, deploy=True)
    with start_rendered(spec.parent, "docker-compose.yml") as server:
        assert {name for name, state in server.models.items() if state == "READY"} == {"kept"}
        x = np.ones((1, 8), np.float32)
        ask(server, "kept", {"x": x})
        statistics(server.http_url, "kept", inferences=1)
        with urllib.request.urlopen(f"{server.metrics_url}/metrics") as answer:
            metrics = answer.read().decode()
        assert 'nv_inference_queue_summary_us{model="kept",version="1",quantile="0.999"}' in metrics
        assert 'quantile="0.9"}' not in metrics


def test_an_option_that_tritonserver_does_not_know_is_seen(spec):
    render(spec, cpu=True, deploy=True)
    with pytest.raises(ServerStartError, match="ended with status 1"):
        start_rendered(spec.parent, "docker-compose.cpu.yml", ("--grpc-keepalive-tiem=1",))


def test_serve_follows_the_spec(spec, ask):
    text = spec.read_text().replace('"24.10"', '"25.08"').replace("http: {threads: 4}", "http: {threads: 4, max_input_size: 1MiB}")
    spec.write_text(text.replace("log: {verbose: 0,", "log: {info: false,"))
    with serving(spec, ServerOptions(grpc_port=0, metrics_port=0)) as served:
        server = served.server
        assert f":{text.partition('listen: {http: ')[2].partition('}')[0]}" in server.http_url
        assert server.models["kept"] == "READY"
        ask(server, "kept", {"x": np.ones((1, 8), np.float32)})
        with urllib.request.urlopen(f"{server.metrics_url}/metrics") as answer:
            assert 'quantile="0.999"' in answer.read().decode()
        told = {finding.message.partition(":")[0] for finding in served.findings if finding.code == "TG436"}
        assert told == {
            "server.http.max_input_size has no effect in the embedded server",
            "server.log.info has no effect in the embedded server",
        }


def test_a_setting_of_the_command_wins_over_the_spec(spec):
    taken = ports._any_free("127.0.0.1", set())
    with serving(spec, ServerOptions(http_port=taken, grpc_port=0, metrics_port=0, load_models=("other",), model_control="explicit")) as served:
        assert served.server.http_url == f"http://127.0.0.1:{taken}"
        assert served.server.models["other"] == "READY"
