"""Asking a Triton on this machine how it is, with the standard library alone: readiness, and the repository index."""

from __future__ import annotations

import http.client
import json
from typing import Any

_TIMEOUT_S = 5.0


def status(host: str, port: int, path: str) -> int | None:
    """The HTTP status of a GET, or None where nobody answers."""
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def post(host: str, port: int, path: str, body: object) -> Any:
    """The JSON answer to a POST of JSON, an error's too; None where nobody answers. No proxy is asked."""
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("POST", path, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return None
    finally:
        connection.close()


def index(host: str, port: int) -> dict[str, tuple[str, str]]:
    """State and reason of every model that the server knows; the worst state where versions differ. Empty where nobody answers."""
    rows = post(host, port, "/v2/repository/index", {})
    if not isinstance(rows, list):
        return {}
    states: dict[str, tuple[str, str]] = {}
    for row in rows:
        state, reason = row.get("state", "UNAVAILABLE"), row.get("reason", "")
        if reason == "unloaded" and row["name"] in states:
            continue
        if states.get(row["name"], ("READY", ""))[0] == "READY" or states[row["name"]][1] == "unloaded":
            states[row["name"]] = (state, reason)
    return states


def reachable(host: str) -> str:
    """The address to reach a server at that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - what was given, not what is bound here
