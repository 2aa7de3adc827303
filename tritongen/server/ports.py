"""Which ports a server listens on.

Triton binds its ports itself, after the models are loaded; between the choice here and that moment another program can take a port. `EmbeddedServer` then
starts again with others, as far as they were not given by the user. Free ports are taken from below the range that the kernel hands out to outgoing
connections, so that this stays rare.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from dataclasses import dataclass
from pathlib import Path

from tritongen.errors import EnvironmentProblem
from tritongen.server.options import ServerOptions

DEFAULTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
"""Triton's own port numbers."""

_LOWEST_FREE = 10000
_ATTEMPTS = 200
_HOST_HINT = "use 127.0.0.1, 0.0.0.0 or an address of this machine"


@dataclass(frozen=True)
class Ports:
    """The three ports of one server, which of them were not the user's choice, and which of Triton's defaults were taken (by name) where they were meant."""

    http: int
    grpc: int
    metrics: int
    chosen_freely: frozenset[str]
    missed: frozenset[str] = frozenset()

    def warnings(self) -> tuple[str, ...]:
        """What people who use Triton's default ports must know: another program answers there, and it may well be another Triton."""
        if not self.missed:
            return ()
        names = [name for name in DEFAULTS if name in self.missed]
        taken = ", ".join(f"{DEFAULTS[name]} ({name})" for name in names)
        instead = ", ".join(f"{getattr(self, name)} ({name})" for name in names)
        return (f"of Triton's default ports, another program has {taken} and answers there; this server listens on {instead} instead",)


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen on this port now. Connections of an earlier server that still linger do not count as taken.

    Raises EnvironmentProblem where no port of this host, or this port for this user, can be listened on at all.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise EnvironmentProblem(f"the host {host!r} cannot be listened on: {error.strerror}", hint=_HOST_HINT) from error
    with socket.socket(family, socket.SOCK_STREAM) as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(address)
            candidate.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise EnvironmentProblem(f"{host} is not an address of this machine", hint=_HOST_HINT) from error
            if error.errno == errno.EACCES:
                raise EnvironmentProblem(f"this user may not listen on port {port}", hint="use a port above 1023") from error
            return False
    return True


def choose(options: ServerOptions, *, avoid: frozenset[int] = frozenset()) -> Ports:
    """Ports for these options; `avoid` holds numbers that were tried and turned out to be taken.

    Raises EnvironmentProblem naming every port that was asked for by number and is taken, or a host that is not of this machine.
    """
    asked = {"http": options.http_port, "grpc": options.grpc_port, "metrics": options.metrics_port}
    taken = {name: port for name, port in asked.items() if port and not is_free(options.host, port)}
    if taken:
        listed = ", ".join(f"{port} ({name})" for name, port in taken.items())
        raise EnvironmentProblem(f"already in use on {options.host}: port {listed}", hint="end what listens there, or give port 0 for any free one")
    used = {port for port in asked.values() if port} | avoid
    chosen: dict[str, int] = {}
    for name, port in asked.items():
        if port:
            chosen[name] = port
            continue
        default = DEFAULTS[name]
        chosen[name] = default if port is None and default not in used and is_free(options.host, default) else _any_free(options.host, used)
        used.add(chosen[name])
    own = set(chosen.values())
    missed = frozenset(name for name, port in asked.items() if port is None and chosen[name] != DEFAULTS[name] and DEFAULTS[name] not in own)
    return Ports(**chosen, chosen_freely=frozenset(name for name, port in asked.items() if not port), missed=missed)


def _any_free(host: str, used: frozenset[int] | set[int]) -> int:
    """A port nobody listens on, outside the range for outgoing connections."""
    generator = random.SystemRandom()
    highest = _lowest_ephemeral() - 1
    for _ in range(_ATTEMPTS):
        port = generator.randint(_LOWEST_FREE, highest)
        if port not in used and is_free(host, port):
            return port
    raise EnvironmentProblem(f"no free port found on {host} after {_ATTEMPTS} attempts", hint="give the ports by number")


def _lowest_ephemeral() -> int:
    """First port that the kernel gives to outgoing connections (Linux: net.ipv4.ip_local_port_range; 32768 unless changed)."""
    lowest = 32768
    with contextlib.suppress(OSError, ValueError):
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    return lowest if lowest > _LOWEST_FREE + _ATTEMPTS else 60999


def listens(pid: int, port: int) -> bool:
    """Whether process `pid` itself listens on `port`. True where /proc does not tell."""
    listening = "0A"  # TCP_LISTEN
    sockets = set()
    try:
        for table in ("tcp", "tcp6"):
            if (path := Path(f"/proc/{pid}/net/{table}")).exists():
                rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()[1:]]
                sockets |= {f"socket:[{row[9]}]" for row in rows if row[3] == listening and int(row[1].rpartition(":")[2], 16) == port}
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return True
    return any(_target(descriptor) in sockets for descriptor in descriptors) if sockets else False


def _target(link: Path) -> str:
    """Where a link points; empty where it is gone (descriptors come and go while they are listed)."""
    try:
        return str(link.readlink())
    except OSError:
        return ""
