"""Requests from greenlets: gRPC is told of gevent, and it is shown that requests wait side by side before any of them is timed.

gRPC waits in C. Unless it was told of gevent, one request under way stops every greenlet of the process: users queue up inside the load generator, and what is
measured is that queue. Likewise for HTTP where sockets were patched after tritongen's HTTP client had been imported.
"""

from __future__ import annotations

import gc
import socket

import gevent

from tritongen.client import Client
from tritongen.errors import EnvironmentProblem

_ASKED = 4
_PATIENCE_S = 0.2
_THREADS = 1000
"""Most threads of gevent's pool, which begins them as they are needed. Each request of gRPC's that waits has one, for 0.2 s at a time; with gevent's own 10,
the eleventh user would wait for the end of somebody's 0.2 s, and that would be measured as the server's."""


def set_up_grpc() -> None:
    """Tell gRPC of gevent, unless that was done. To be called before a process makes its first channel: gRPC's own rule.

    Raises EnvironmentProblem where channels are open that were made before.
    """
    import grpc
    import grpc.experimental.gevent
    from grpc._cython import cygrpc  # nothing public says whether it was told already

    if cygrpc.g_gevent_activated:
        return
    early = sum(issubclass(type(thing), grpc.Channel) for thing in gc.get_objects())
    if early:
        raise EnvironmentProblem(
            f"{early} gRPC channel{'s were' if early > 1 else ' was'} made before gRPC was told of gevent: a request on it stops all users of the process",
            hint="make gRPC clients in on_start, or call grpc.experimental.gevent.init_gevent() at the top of the locustfile, before the first of them",
        )
    grpc.experimental.gevent.init_gevent()
    pool = gevent.get_hub().threadpool
    pool.maxsize = max(pool.maxsize, _THREADS)


def check_side_by_side(protocol: str) -> None:
    """Send some requests over a protocol (`grpc` or `http`) to a socket of this process that never answers, and see that they wait at the same time.

    Takes 0.2 s; 0.8 s where they do not. Raises EnvironmentProblem then.
    """
    under_way = most = 0

    def ask(client: Client) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        client.live(deadline_s=_PATIENCE_S)
        under_way -= 1

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with Client(f"{protocol}://127.0.0.1:{silent.getsockname()[1]}") as client:
            gevent.joinall([gevent.spawn(ask, client) for _ in range(_ASKED)], raise_error=True)
    if most == 1:
        raise EnvironmentProblem(
            f"requests block the event loop: of {_ASKED} that should have waited side by side each waited for the one before it; this process would send one "
            "request at a time, whatever the number of users",
            hint=_ADVICE[protocol],
        )


_ADVICE = {
    "grpc": "call grpc.experimental.gevent.init_gevent() at the top of the locustfile, before anything makes a gRPC channel",
    "http": "import locust before anything else, so that sockets are patched first, and leave LOCUST_SKIP_MONKEY_PATCH unset",
}
