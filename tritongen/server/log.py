"""Triton's log, read for what it alone says: why a model did not load, which port was taken, what the backend remarked.

Text in, values out. The forms are those of Triton core 2.51.0 in its default log format and in ISO8601.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

REMARK = "tritongen-remark: "
"""Start of lines that our backend writes for the user; the rest is JSON with `model` and `text`."""

_HEAD = r"(?:[EWIV]\d{4} \S+ \d+ |\d{4}-\d\d-\d\dT\S+ [EWIV] \d+ )\S+:\d+\] "
_MESSAGE = re.compile(rf'^\s*(?:{_HEAD})"(?P<text>(?:[^"\\]|\\.)*)"\s*$')
_POLL = re.compile(r"Poll failed for model directory '(?P<model>.*?)': (?P<reason>.*)", re.DOTALL)
_LOAD = re.compile(r"failed to load (?:model )?'(?P<model>.*?)'(?: version (?P<version>-?\d+))?: (?P<reason>.*)", re.DOTALL)
_TEXT_PROTO = re.compile(r"Error parsing text-format inference\.ModelConfig: (?P<line>\d+):(?P<column>\d+): (?P<reason>.*)")
_LOADING = re.compile(r"loading: (?P<model>.+):(?P<version>-?\d+)$")
_LOADED = re.compile(r"successfully loaded '(?P<model>.+)'$")
_ENDING = "Waiting for in-flight requests to complete."
_SOCKET = re.compile(r"failed to start (?P<service>\w+) service: .*?Socket '(?P<address>.*):(?P<port>\d+)' already in use")
_STUB = re.compile(r"^Failed to run python backend stub\. Errno = (?P<errno>\d+)$")
_FATAL = re.compile(r"^error: (?P<reason>.+)$")
_TRACE = re.compile(r"\s*\n\s*At:\n.*", re.DOTALL)


@dataclass(frozen=True)
class Findings:
    """What the log of one server says.

    Attributes:
        reasons: by model, why it did not load, in Triton's words (without the backend's Python stack).
        states: by model, `LOADING`, `READY` or `UNAVAILABLE`, as far as the log tells.
        taken_ports: ports that Triton could not bind.
        ending: whether tritonserver has begun to end.
        fatal: the line with which tritonserver gave up, if any.
        stub_error: the error number with which the process that runs a model could not be executed, or None. Triton does not notice that itself and waits.
        remarks: what the backend has to say about a model that does load: (model, text), each once.
    """

    reasons: dict[str, str]
    states: dict[str, str]
    taken_ports: frozenset[int]
    ending: bool
    fatal: str
    stub_error: int | None
    remarks: tuple[tuple[str, str], ...]


def read(text: str) -> Findings:
    """Find the reasons in a log."""
    reasons: dict[str, str] = {}
    states: dict[str, str] = {}
    ports: set[int] = set()
    fatal = ""
    stub_error: int | None = None
    ending = False
    remarks: dict[tuple[str, str], None] = {}
    text_proto = ""
    for line in text.splitlines():
        if remark := _remark(line):
            remarks[remark] = None
        elif match := _TEXT_PROTO.search(line):
            text_proto = f"config.pbtxt:{match['line']}:{match['column']}: {match['reason']}"
        elif match := _STUB.match(line):
            stub_error = int(match["errno"])
        elif match := _FATAL.match(line):
            fatal = match["reason"]
        elif match := _MESSAGE.match(line):
            message = _unquoted(match["text"])
            if match := _SOCKET.search(message):
                ports.add(int(match["port"]))
            elif failure := _failure(message, text_proto):
                model, reason = failure
                reasons.setdefault(model, reason)
                states[model] = "UNAVAILABLE"
                text_proto = ""
            elif message == _ENDING:
                ending = True
            elif match := _LOADING.match(message):
                states[match["model"]] = "LOADING"
            elif match := _LOADED.match(message):
                states[match["model"]] = "READY"
    return Findings(reasons, states, frozenset(ports), ending, fatal, stub_error, tuple(remarks))


def _remark(line: str) -> tuple[str, str] | None:
    """A backend's remark as (model, text); None for any other line, and for one that another process wrote into."""
    _, found, text = line.partition(REMARK)
    if not found:
        return None
    try:
        remark = json.loads(text)
        return str(remark["model"]), str(remark["text"])
    except (json.JSONDecodeError, KeyError, TypeError):
        return None


def _failure(message: str, text_proto: str) -> tuple[str, str] | None:
    """The model and the reason, where a message says that a model failed. The protobuf parser writes its reason on a line of its own, before Triton's."""
    if match := _POLL.match(message):
        reason = f"{match['reason']}: {text_proto}" if text_proto and "text proto" in match["reason"] else match["reason"]
        return match["model"], reason
    if match := _LOAD.match(message):
        return match["model"], _TRACE.sub("", match["reason"]).replace("TritonModelException: ", "").strip().rstrip(";")
    return None


def _unquoted(text: str) -> str:
    """The message without the escapes of Triton's log writer, which are those of a JSON string."""
    try:
        unquoted = json.loads(f'"{text}"')
    except json.JSONDecodeError:
        return text
    return str(unquoted)


def tail(text: str, lines: int = 30) -> str:
    """The end of a log, without Triton's tables."""
    kept = [line for line in text.splitlines() if line.strip() and not line.startswith(("|", "+-"))]
    return "\n".join(kept[-lines:])
