"""Senders of load tests: prepared requests over asyncio connections that cost little CPU.

The service client is `tritongen.client`; its codecs make the requests here too, and read an answer where that is asked for.
"""

from __future__ import annotations

from tritongen.client.endpoint import Access, Endpoint
from tritongen.errors import MissingExtra
from tritongen.load.wire.answer import Answer, Outcome, Prepared
from tritongen.load.wire.pool import Pool, Sender

__all__ = ["Answer", "Outcome", "Pool", "Prepared", "Sender", "open_pool"]


def open_pool(endpoint: Endpoint, access: Access | None = None, *, limit: int = 256) -> Pool:
    """What sends to a server over the protocol of its address, for use with `async with`.

    `limit`: connections at once. HTTP uses as many as there are requests under way; gRPC uses one, and more only where the server limits the requests on it.
    Raises InputError (TG069) where a TLS file cannot be used, and MissingExtra.
    """
    try:
        if endpoint.protocol == "http":
            from tritongen.load.wire.http1 import WIRE
        else:
            from tritongen.load.wire.http2 import WIRE
    except ModuleNotFoundError as error:
        raise MissingExtra("load", "sending a load test") from error
    return Pool(endpoint, access or Access(), WIRE, limit)
