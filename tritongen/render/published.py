"""Ports of this machine that the services of a deployment publish: each has its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from tritongen.render.findings import Findings, Key
from tritongen.render.keys import key_text
from tritongen.spec import Spec


def judge_ports(spec: Spec, served: Iterable[str], findings: Findings, *, monitored: bool) -> None:
    """One port that two services publish (TG438); addresses are different ones of this machine, or every one of them.

    Args:
        spec: the spec.
        served: the keys of `server.listen` that are published ports.
        findings: for keys of the whole spec.
        monitored: whether the deployment has Prometheus and Grafana.
    """
    listen, monitoring, load = spec.server.listen, spec.deploy.monitoring, spec.deploy.load
    published: dict[Key, tuple[str, int]] = {("server", "listen", name): (listen.address, getattr(listen, name)) for name in served}
    for name in ("prometheus_port", "grafana_port") if monitored else ():
        published[("deploy", "monitoring", name)] = (monitoring.address, getattr(monitoring, name))
    published[("deploy", "load", "port")] = (load.address, load.port)
    owners: dict[int, list[tuple[Key, str]]] = {}
    for key, (address, port) in published.items():
        others = owners.setdefault(port, [])
        twin = next(
            (
                other
                for other, where in others
                if where == address or ipaddress.ip_address(where).is_unspecified or ipaddress.ip_address(address).is_unspecified
            ),
            None,
        )
        others.append((key, address))
        # The server's own are compared where they are read.
        if twin is not None and (twin[:2], key[:2]) != (("server", "listen"), ("server", "listen")):
            at, other = (key, twin) if _is_written(spec, key) else (twin, key)
            where = f" ({findings.locate(other)})" if _is_written(spec, other) else " by default"
            findings.error(
                "TG438",
                at,
                f"{key_text(at)} is {port}, and {key_text(other)} is too{where}",
                consequence="the second of the two containers does not start",
                hint="give each a port of its own",
            )


def _is_written(spec: Spec, key: Key) -> bool:
    """Whether a key of the spec was written, and is not its default."""
    at: Any = spec
    for part in key:
        if part not in at.model_fields_set:
            return False
        at = getattr(at, str(part))
    return True
