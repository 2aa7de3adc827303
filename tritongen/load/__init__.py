"""Load tests with true tails: an open loop on Locust's engine, with latencies from the scheduled instant in HDR histograms.

`TritonGrpcUser` and `TritonHttpUser` are users for locustfiles of one's own; `ModelLoad` says what they send where they mix, and
`random_throughput` when.
"""

from __future__ import annotations

from tritongen.load.pacing import random_throughput
from tritongen.load.plan import ModelLoad

__all__ = ["ModelLoad", "TritonGrpcUser", "TritonHttpUser", "random_throughput"]


def __getattr__(name: str) -> object:
    """The users are imported where they are first used: Locust patches the process when it is imported."""
    if name in __all__:
        try:
            from tritongen.load import user
        except ModuleNotFoundError as error:
            from tritongen.errors import MissingExtra

            raise MissingExtra("load", "Locust's users") from error
        return getattr(user, name)
    raise AttributeError(name)
