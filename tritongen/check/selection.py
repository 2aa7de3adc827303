"""Which codes a run reports: `--select`, `--ignore` and suppressions name them by code, by the beginning of a code, or by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from tritongen.check.codes import closest_code, codes, find_code
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError

_PREFIX = re.compile(r"TG\d{0,3}", re.IGNORECASE)


@dataclass(frozen=True)
class Selection:
    """Codes to report: those selected (None means all), less those ignored."""

    selected: frozenset[str] | None = None
    ignored: frozenset[str] = frozenset()

    def __contains__(self, code: object) -> bool:
        return (self.selected is None or code in self.selected) and code not in self.ignored


def make_selection(select: Iterable[str], ignore: Iterable[str]) -> Selection:
    """The selection that words stand for; no word in `select` means all.

    Raises InputError (TG071) with every word that stands for nothing.
    """
    problems: list[Diagnostic] = []
    chosen = [_codes_of(list(words), option, problems) for option, words in (("--select", select), ("--ignore", ignore))]
    if problems:
        raise InputError(problems)
    return Selection(chosen[0] or None, chosen[1])


def _codes_of(words: list[str], option: str, problems: list[Diagnostic]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for word in words:
        matching = matching_codes(word)
        found |= matching
        if not matching:
            problems.append(unknown_code(word, f"{option} names"))
    return found


@cache
def matching_codes(word: str) -> frozenset[str]:
    """The codes that a code, the beginning of one, or a name stands for; empty where it stands for none."""
    word = word.strip()
    if _PREFIX.fullmatch(word):
        return frozenset(code for code in codes() if code.startswith(word.upper()))
    entry = find_code(word)
    return frozenset({entry.code}) if entry else frozenset()


def unknown_code(word: str, where: str, location: Location | None = None) -> Diagnostic:
    """The finding for a word that stands for no code; `where` begins the sentence."""
    close = closest_code(word)
    hint = f"did you mean {close}?" if close else "write a code (TG262), the beginning of one (TG26), or a name; the rules page lists them"
    return Diagnostic("TG071", f"{where} {word[:60]!r}, which is no code, no beginning of one and no name of a rule", location, hint=hint)
