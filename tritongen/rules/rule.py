"""What a rule is: its words, what Triton does when it is broken, and a pure function that finds where it is.

A rule is metadata plus a function over one model (`ModelContext`) or over all models together. It reads no file and asks no server.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tritongen.diagnostics import Location, Severity

if TYPE_CHECKING:
    from tritongen.rules.context import ModelContext

Key = tuple[str | int, ...]
"""A field path in a config, such as `("input", 0, "dims")`; map entries by their key."""


class Consequence(enum.Enum):
    """What Triton does, which decides how severe a finding is."""

    REFUSED = "refused"
    FAILS = "fails"
    IGNORED = "ignored"
    MISBEHAVES = "misbehaves"
    SLOW = "slow"
    FRAGILE = "fragile"

    @property
    def severity(self) -> Severity:
        """Error for what does not load or fails requests, warning for what does not do what it says, advice for what is slow or fragile."""
        if self in (Consequence.REFUSED, Consequence.FAILS):
            return Severity.ERROR
        return Severity.WARNING if self in (Consequence.IGNORED, Consequence.MISBEHAVES) else Severity.ADVICE

    @property
    def words(self) -> str:
        """For people."""
        return {
            Consequence.REFUSED: "Triton refuses to load the model",
            Consequence.FAILS: "the model loads, and requests to it fail",
            Consequence.IGNORED: "Triton ignores it without a word",
            Consequence.MISBEHAVES: "Triton does something else than it says",
            Consequence.SLOW: "it works, and is slower than it could be",
            Consequence.FRAGILE: "it works, and breaks easily",
        }[self]


@dataclass(frozen=True)
class Edit:
    """A change of a config's text: bytes `start` to `end` become `replacement`."""

    start: int
    end: int
    replacement: bytes


@dataclass(frozen=True)
class Finding:
    """One place where a rule is broken.

    Attributes:
        message: what is wrong, with the expected and the found value.
        key: the field of the config it is about; the location is looked up from it.
        hint: what to write instead, as concretely as is known.
        location: where it is, if not in the config (a file's path).
        edits: a fix that cannot change the meaning, for rules whose `fix` is safe.
        consequence: where one place is worse or better than the rule in general.
        follows: what Triton does, where the words of the consequence do not say it.
        model: the model it belongs to, for rules that look at several.
    """

    message: str
    key: Key = ()
    hint: str = ""
    location: Location | None = None
    edits: tuple[Edit, ...] = ()
    consequence: Consequence | None = None
    model: str = ""
    follows: str = ""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        code: `TG2xx` or `TG3xx`, by family; never reused.
        name: kebab-case; reads after the word "allow".
        consequence: what Triton does with it.
        summary: one sentence that states the rule.
        why: what happens, in which release where it matters, and the source of the rule (file of Triton's sources, or documentation).
        bad: a config (or a tree) that breaks it, short.
        good: the same, mended.
        check: finds it in one model.
        check_all: finds it across models; exactly one of the two is set.
        fixable: whether `--fix` can mend it without changing the meaning.
        needs: what must be known for the rule to say anything: of `config`, `folder`, `signature`, `gpus`, `release`.
    """

    code: str
    name: str
    consequence: Consequence
    summary: str
    why: str
    bad: str
    good: str
    check: Callable[[ModelContext], Iterable[Finding]] | None = None
    check_all: Callable[[tuple[ModelContext, ...]], Iterable[Finding]] | None = None
    fixable: bool = False
    needs: frozenset[str] = field(default_factory=lambda: frozenset({"config"}))
