"""What requests carry to be let in, on its way from the command line to senders: in a variable of the environment, which only this user can read.

It is no part of the plan, which stands in results and travels to workers on other machines.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tritongen.client.endpoint import Access, Tls

ACCESS_VARIABLE = "TRITONGEN_LOAD_ACCESS"
"""Holds the text of `written`."""


def for_client(access: Access) -> dict[str, Any]:
    """The arguments `headers` and `tls` of a client."""
    return {"headers": access.headers or None, "tls": access.tls if access.wants_tls else None}


def written(access: Access) -> str:
    """It as text; its files are found from any folder."""
    files = [None if path is None else str(Path(path).absolute()) for path in (access.tls.ca, access.tls.cert, access.tls.key)]
    return json.dumps({"headers": dict(access.headers), "tls": files, "wants_tls": access.wants_tls})


def given() -> Access:
    """What the process that started this one has written; nothing where it has not."""
    data = json.loads(os.environ.get(ACCESS_VARIABLE) or written(Access()))
    return Access(Tls(*data["tls"]), data["headers"], data["wants_tls"])
