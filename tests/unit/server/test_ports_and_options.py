from __future__ import annotations

import os
import socket

import pytest

from tritongen.errors import EnvironmentProblem, InputError
from tritongen.server import ServerOptions, ports


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.fixture
def defaults(monkeypatch):
    """Stand-ins for 8000 to 8002, which are free for sure."""
    chosen = {name: ports._any_free("127.0.0.1", set()) for name in ("http", "grpc", "metrics")}
    monkeypatch.setattr(ports, "DEFAULTS", chosen)
    return chosen


def test_tritons_own_ports_where_they_are_free(defaults):
    found = ports.choose(ServerOptions())
    assert (found.http, found.grpc, found.metrics) == tuple(defaults.values())
    assert found.chosen_freely == {"http", "grpc", "metrics"}


def test_a_taken_default_is_replaced(defaults, listener, monkeypatch):
    monkeypatch.setattr(ports, "DEFAULTS", defaults | {"grpc": listener})
    found = ports.choose(ServerOptions(http_port=0))
    assert found.grpc != listener
    assert found.http != defaults["http"]
    assert found.metrics == defaults["metrics"]


def test_only_a_default_that_was_meant_and_is_taken_is_warned_of(defaults, listener, monkeypatch):
    assert ports.choose(ServerOptions()).warnings() == ()
    monkeypatch.setattr(ports, "DEFAULTS", defaults | {"grpc": listener})
    assert ports.choose(ServerOptions(grpc_port=0)).warnings() == ()
    found = ports.choose(ServerOptions())
    assert found.warnings() == (
        f"of Triton's default ports, another program has {listener} (grpc) and answers there; this server listens on {found.grpc} (grpc) instead",
    )


@pytest.mark.parametrize("release", ["99.99", "25.00", "25.13", "25.8", "2508", "25.08 "])
def test_what_is_no_release_is_refused(release):
    with pytest.raises(InputError, match="the release is"):
        ServerOptions(release=release)


def test_a_release_that_is_well_formed_and_not_known_is_a_warning():
    assert ServerOptions(release="25.08").warnings() == ()
    assert ServerOptions().warnings() == ()
    (told,) = ServerOptions(release="31.12").warnings()
    assert "release 31.12 is not known" in told


def test_a_number_means_this_port(defaults):
    wanted = ports._any_free("127.0.0.1", set(defaults.values()))
    found = ports.choose(ServerOptions(http_port=wanted))
    assert found.http == wanted
    assert "http" not in found.chosen_freely


def test_a_number_never_collides_with_a_default(defaults):
    found = ports.choose(ServerOptions(http_port=defaults["grpc"]))
    assert len({found.http, found.grpc, found.metrics}) == 3


def test_every_taken_number_is_named(listener):
    with socket.create_server(("127.0.0.1", 0)) as other:
        second = other.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=rf"{listener} \(http\), {second} \(metrics\)"):
            ports.choose(ServerOptions(http_port=listener, metrics_port=second))


@pytest.mark.parametrize(
    ("host", "message"), [("no-such-host.invalid", "cannot be listened on"), ("192.0.2.1", r"192\.0\.2\.1 is not an address of this machine")]
)
@pytest.mark.parametrize("port", [None, 0, 12345])
def test_a_host_of_another_machine(host, message, port):
    with pytest.raises(EnvironmentProblem, match=message):
        ports.choose(ServerOptions(host=host, http_port=port))


def test_free_ports_lie_below_those_of_outgoing_connections():
    assert all(ports._any_free("127.0.0.1", set()) < 32768 for _ in range(20))


def test_whether_a_process_listens_itself(listener):
    assert ports.listens(os.getpid(), listener)
    assert not ports.listens(os.getppid(), listener)
    assert not ports.listens(os.getpid(), ports._any_free("127.0.0.1", set()))


def test_every_bad_option_is_told_at_once():
    with pytest.raises(InputError) as caught:
        ServerOptions(
            http_port=70000, grpc_port=9, metrics_port=9, model_control="sometimes", load_models=("m",), poll_interval_s=0, release="25.8", start_timeout_s=0,
            extra_args=("log-verbose", "--http-port=1", "--log-verbose=1"),
        )  # fmt: skip
    messages = [found.message for found in caught.value.diagnostics]
    assert [found.code for found in caught.value.diagnostics] == ["TG901"] * len(messages)
    for part in (
        "the http port is 70000",
        "port 9 is given for both grpc and metrics",
        "the model control mode is 'sometimes'",
        "models to load are named (m)",
        "the poll interval is 0 s",
        "'log-verbose' is no tritonserver option",
        "'--http-port=1' is set by tritongen",
        "the release is '25.8'",
        "the start timeout is 0 s",
    ):
        assert any(part in message for message in messages), part
    assert len(messages) == 9
