"""What of a spec's `server` this machine cannot follow: host policies of another one, and what tritongen decides itself."""

from __future__ import annotations

from tritongen.server.options import ServerOptions, with_server
from tritongen.server.policies import Host, this_host
from tritongen.spec.server import Server

LAPTOP = Host(cores=range(8), nodes={0})


def test_policies_whose_cores_or_node_are_elsewhere_are_left_out_and_named():
    policies = {
        "here": {"cpu_cores": "0-3", "numa_node": 0},
        "partly": {"cpu_cores": "16-31,7-15"},
        "far": {"cpu_cores": "8-15,32-63"},
        "gpu_0": {"numa_node": 1},
        "both": {"cpu_cores": "8-8", "numa_node": 2},
    }
    options, left_out = with_server(ServerOptions(), Server.model_validate({"host_policies": policies}), LAPTOP)
    assert [argument.partition("=")[2] for argument in options.extra_args] == ["here,numa-node=0", "here,cpu-cores=0-3", "partly,cpu-cores=16-31,7-15"]
    assert {one.key: one.reason for one in left_out} == {
        ("host_policies", "far"): "this machine has none of the cores 8-15,32-63",
        ("host_policies", "gpu_0"): "this machine has no NUMA node 1",
        ("host_policies", "both"): "this machine has no NUMA node 2 and none of the cores 8-8",
    }


def test_a_name_for_shared_memory_is_said_to_be_tritongens():
    server = Server.model_validate({"backend_config": {"python": {"shm-region-prefix-name": "mine", "stub-timeout-seconds": 5}}})
    _, left_out = with_server(ServerOptions(), server, LAPTOP)
    assert [one.key for one in left_out] == [("backend_config", "python", "shm-region-prefix-name")]


def test_ports_of_metrics_that_nobody_wants_are_left_to_others():
    """The embedded server shows metrics all the same, to tritongen itself."""
    server = Server.model_validate({"metrics": {"enabled": False}, "listen": {"http": 9000, "metrics": 9000}})
    assert [with_server(given, server, LAPTOP)[0].metrics_port for given in (ServerOptions(), ServerOptions(metrics_port=9100))] == [0, 9100]


def test_this_machine_has_a_core():
    assert this_host().cores
