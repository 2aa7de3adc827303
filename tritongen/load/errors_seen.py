"""What requests failed of, in a bounded number of kinds: messages that differ by numbers or ids alone are one kind. Adds up over processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MOST_KINDS = 20
"""Kinds of messages about one model; what comes beyond them is counted together."""

OTHERS = "other messages"
_LONGEST = 300
_COMPARED = 200
"""Less than is shown, so that messages of one kind are also cut alike where their numbers are of different lengths."""
_CHANGING = re.compile(r"\b\w*[0-9]\w*(?:[-.:]\w+)*")
"""Words with digits, and what hangs on them: numbers, ids, UUIDs, addresses."""


def pattern(message: str) -> str:
    """What is the same in messages that differ by numbers or ids alone."""
    return _CHANGING.sub("#", message)


class ErrorsSeen:
    """Messages by model and outcome. A kind has its message as it came for as long as all of them were equal, and then their pattern."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._by_model: Counter[str] = Counter()

    def add(self, model: str, outcome: str, message: str, count: int = 1) -> None:
        """So many requests failed of this."""
        text = message[:_LONGEST]
        key = (model, outcome, pattern(text)[:_COMPARED])
        if key not in self._kinds:
            if self._by_model[model] >= MOST_KINDS:
                key, text = (model, outcome, OTHERS), OTHERS
            else:
                self._by_model[model] += 1
        had, before = self._kinds.get(key, (text, 0))
        self._kinds[key] = (text if had == text else key[2], before + count)

    def merge(self, other: ErrorsSeen) -> None:
        """What another one has, too."""
        for entry in other:
            self.add(*entry)

    def __iter__(self) -> Iterator[tuple[str, str, str, int]]:
        """Model, outcome, message or pattern, and how often."""
        for (model, outcome, _), (text, count) in self._kinds.items():
            yield model, outcome, text, count

    @property
    def count(self) -> int:
        """How many requests failed."""
        return sum(count for _, count in self._kinds.values())

    def messages(self) -> Counter[tuple[str, str, str]]:
        """How often by model, outcome and message or pattern."""
        return Counter({(model, outcome, text): count for model, outcome, text, count in self})
