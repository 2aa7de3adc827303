"""How many connections one sender may need, and whether this machine lets it have them."""

from __future__ import annotations

import resource

from tritongen.client.endpoint import parse_url
from tritongen.load.plan import LoadPlan, problem

_OTHER_FILES = 64
"""What a sender has open beside its connections."""


def most_connections(plan: LoadPlan, users: int) -> int:
    """Connections at once of a sender with so many users; in an open loop, of one with `most_under_way` requests under way."""
    return max(users, 1) if plan.users else plan.most_under_way


def allow_connections(plan: LoadPlan, users: int) -> None:
    """Let this process open as many files as its connections need: HTTP has one for each request under way, gRPC one for many.

    Raises InputError (TG420) where so many users cannot have a connection each: they would wait for one another, and be fewer than they are said to be.
    """
    if parse_url(plan.url).protocol != "http":
        return
    wanted = most_connections(plan, users) + _OTHER_FILES
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = most == resource.RLIM_INFINITY
    if plan.users and not unlimited and wanted > most:
        raise problem(
            f"{users} users in one process need as many connections over HTTP, and this machine lets a process open {most} files",
            "share them out with --processes, raise the limit (ulimit -Hn), or send over gRPC, where one connection carries many requests",
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if unlimited else min(wanted, most), most))
