"""Who sends in a run: the master's list of workers, their shares of the schedule, and when they begin. Pure: it is told what happens, and tells others.

A worker says hello and gets the plan and a share of it; when all shares are ready, the master gives the instant of the first request. Shares are fixed before
that: a worker that comes later is turned away, and one that is lost takes the rest of its share with it, which the result says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HELLO, SHARE, LINE, GO, STOP = (f"tritongen-{word}" for word in ("hello", "share", "line", "go", "stop"))
"""Messages: a worker is there; its share, or why it gets none; a line of what it sends; the instant to begin; end early."""

RUN_VARIABLE = "TRITONGEN_LOAD_RUN"
"""Names the run's folder."""

SHARES_VARIABLE = "TRITONGEN_LOAD_SHARES"
"""How many workers the master waits for; not set for the workers of another machine."""

HERE_VARIABLE = "TRITONGEN_LOAD_HERE"
"""The folder in which `tritongen load` was started: a sender reads relative paths from there."""

VERSION_VARIABLE = "TRITONGEN_LOAD_VERSION"
"""The version of tritongen, which master and workers must have in common."""

LEAD_S = 0.5
"""Seconds between the master's word and the first request: it has to reach every worker."""


def boot_id() -> str:
    """What names this machine's clock: processes with the same one share `time.perf_counter`. Empty where Linux does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def instant_of(go: Mapping[str, Any]) -> float:
    """When the first request is due, by this process's own clock.

    Clocks of machines differ, and only this one's is asked: elsewhere the lead counts from the master's word, which is late by one trip over the network.
    """
    now = time.perf_counter()
    instant = float(go["instant"])
    # Containers of one machine may have clocks with different zeros.
    shared = go["boot"] == boot_id() != "" and abs(instant - now) < 10 * LEAD_S
    return instant if shared else now + LEAD_S


@dataclass
class _Member:
    """A worker with a share. Its name is for people: containers of one image may all have the same host name and the same process id."""

    name: str
    share: int
    ready: bool = False
    over: bool = False
    lost: bool = False


@dataclass
class Crew:
    """The workers of a run.

    Attributes:
        plan: the plan as JSON.
        shares: how many workers the run has.
        version: tritongen's own, which must be that of all workers.
        tell: sends a message to a worker, by its id.
        write: notes what the parent process has to know.
    """

    plan: str
    shares: int
    version: str
    tell: Callable[[str, str, Mapping[str, Any]], None]
    write: Callable[[Mapping[str, Any]], None]
    _members: dict[str, _Member] = field(default_factory=dict)
    _begun: bool = False
    _stopped: bool = False

    @property
    def done(self) -> bool:
        """Nothing more will come."""
        members = self._members.values()
        full = self._begun or len(members) == self.shares or self._stopped
        return full and all(member.over or member.lost for member in members)

    def hello(self, worker: str, said: Mapping[str, Any]) -> None:
        """A worker is there."""
        name, reason = said["name"], ""
        if said["version"] != self.version:
            reason = f"it runs tritongen {said['version']}, and the master {self.version}: their reports would not fit"
        elif self._begun:
            reason = f"the run has begun, and its schedule is shared out among {self.shares}"
        elif len(self._members) == self.shares:
            reason = f"the run has all of its {self.shares} workers (--expect-workers)"
        if reason:
            self.write({"refused": name, "reason": reason})
            self.tell(worker, SHARE, {"refused": reason})
            return
        taken = {member.share for member in self._members.values()}
        share = next(number for number in range(self.shares) if number not in taken)
        self._members[worker] = _Member(name, share)
        self.write({"hello": name, "have": len(self._members)})
        self.tell(worker, SHARE, {"plan": self.plan, "share": share, "shares": self.shares})

    def line(self, worker: str, text: str) -> None:
        """What a sender wrote, or what its worker says about it."""
        member = self._members.get(worker)
        if member is None:
            return
        said = json.loads(text)
        if said.get("ready"):
            member.ready = True
            self._begin()
            return
        member.over = member.over or "over" in said
        self.write({**said, "sender": worker, "name": member.name})
        if not self._begun and ("error" in said or member.over):
            self.stop()  # without one share there is no run

    def look(self, present: Mapping[str, bool]) -> None:
        """Which workers answer: of those that are not there, the shares are lost; before the beginning others may take them."""
        for worker, member in list(self._members.items()):
            lost = not present.get(worker, False) and not member.over
            if lost and not self._begun:
                del self._members[worker]
                self.write({"gone": member.name, "have": len(self._members)})
            elif lost != member.lost:
                member.lost = lost
                self.write({"sender": worker, "name": member.name, "lost": lost})

    def stop(self) -> None:
        """End early: every sender makes its last report."""
        if not self._stopped:
            self._stopped = True
            for worker in self._members:
                self.tell(worker, STOP, {})

    def _begin(self) -> None:
        if self._begun or len(self._members) < self.shares or not all(member.ready for member in self._members.values()):
            return
        self._begun = True
        go = {"instant": time.perf_counter() + LEAD_S, "boot": boot_id()}
        self.write({"start": go["instant"], "senders": {worker: [member.name, member.share] for worker, member in self._members.items()}})
        for worker in self._members:
            self.tell(worker, GO, go)
