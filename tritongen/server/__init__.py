"""A running Triton on this machine, from PyPI alone, and what it needs."""

from tritongen.server.embedded import EmbeddedServer, start
from tritongen.server.handle import ServerHandle
from tritongen.server.options import ServerOptions

__all__ = ["EmbeddedServer", "ServerHandle", "ServerOptions", "start"]
