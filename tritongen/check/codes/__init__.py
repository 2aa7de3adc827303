"""Every code that any part of tritongen can emit, with what there is to say about it.

Rules speak for themselves; the other parts (spec, model files, rendering, commands, the reader of configs) have a table each. A test compares this with the
codes in the source.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from tritongen.check.codes import (
    backends,
    building,
    deploy,
    load,
    model_files,
    monitoring,
    proving,
    reading,
    releases,
    rendering,
    requests,
    rewriting,
    scheduling,
    spec,
    tool,
)
from tritongen.check.codes.entry import CodeEntry
from tritongen.rules import RULES, Rule

__all__ = ["CodeEntry", "closest_code", "codes", "find_code"]


@cache
def codes() -> Mapping[str, CodeEntry]:
    """Every code, in order, with its entry."""
    tables = (spec, model_files, tool, rendering, proving, scheduling, backends, rewriting, requests, releases, building, load, deploy, monitoring, reading)
    entries = [entry for module in tables for entry in module.ENTRIES]
    entries += [_of_rule(rule) for rule in RULES]
    return MappingProxyType({entry.code: entry for entry in sorted(entries, key=lambda entry: entry.code)})


def find_code(word: str) -> CodeEntry | None:
    """The entry of a code or a name, whatever its case; None where there is none."""
    entry = codes().get(word.upper())
    return entry or next((entry for entry in codes().values() if entry.name == word.lower()), None)


def closest_code(word: str) -> str:
    """The code or name that was probably meant, or "" where nothing is close."""
    names = [*codes(), *(entry.name for entry in codes().values())]
    shape = word.upper() if word[:2].upper() == "TG" else word.lower()
    close = difflib.get_close_matches(shape, names, n=1)
    return close[0] if close else ""


def _of_rule(rule: Rule) -> CodeEntry:
    fix = (
        "`tritongen check --fix` mends it."
        if rule.fixable
        else "There is no automatic fix, since only you know what was meant: write it as in the good example."
    )
    return CodeEntry(rule.code, rule.name, rule.consequence, rule.summary, rule.why, fix, rule.bad, rule.good, rule.fixable)
