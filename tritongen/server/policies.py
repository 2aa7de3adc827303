"""Host policies of a spec that this machine cannot follow: made for the server that it is deployed on, they name cores and NUMA nodes of that one.

Triton binds the threads of a copy while it loads, and a model whose cores are all missing, or whose node is, fails to load (tried on 24.10).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritongen.spec.options import core_ranges
from tritongen.spec.server import HostPolicy, Server

_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Host:
    """What policies can be followed with.

    Attributes:
        cores: numbers of the processors that this process may use.
        nodes: numbers of the NUMA nodes.
    """

    cores: Collection[int]
    nodes: Collection[int]


def this_host() -> Host:
    """This machine. A kernel without NUMA has no nodes, and binds no memory to any."""
    return Host(os.sched_getaffinity(0), {int(path.name.removeprefix("node")) for path in _NODES.glob("node[0-9]*")})


def unfit(server: Server, host: Host) -> dict[str, str]:
    """The policies that would keep a model from loading, by name: what the machine lacks, as the end of a sentence."""
    lacking = {name: " and ".join(_lacking(policy, host)) for name, policy in server.host_policies.items()}
    return {name: f"this machine has {text}" for name, text in lacking.items() if text}


def _lacking(policy: HostPolicy, host: Host) -> Iterator[str]:
    if policy.numa_node is not None and policy.numa_node not in host.nodes:
        yield f"no NUMA node {policy.numa_node}"
    if policy.cpu_cores is not None and not any(first <= core <= last for first, last in core_ranges(policy.cpu_cores) for core in host.cores):
        yield f"none of the cores {policy.cpu_cores}"
