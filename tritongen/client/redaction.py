"""A client's own secrets in what comes back: a proxy or a model may quote the request's headers, and libraries keep them in their errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tritongen.client.calls import CallFailed

_IN_PLACE = "[not shown]"
_SHORTEST = 3
"""A shorter value is no secret: every message holds a `2`, and many hold an `on`."""

_LONG = 8
"""A value of so many characters is taken out wherever it stands; a shorter one only where it is a word."""


def cleanse(failure: CallFailed, *headers: Mapping[str, str]) -> None:
    """Take the values of these headers out of what a failure says, and cut errors off that it came from where they show one."""
    secrets = secrets_of(*headers)
    if not secrets:
        return
    failure.said = redacted(failure.said, secrets)
    failure.args = (failure.said,)
    if any(secret in text for link in _chain(failure) for text in (repr(link), str(link), repr(vars(link))) for secret in secrets):
        failure.__cause__ = failure.__context__ = None


def secrets_of(*headers: Mapping[str, str]) -> Sequence[str]:
    """What must not be shown of headers, the longest first: their values, and tokens without the word before them."""
    values = {part for each in headers for value in each.values() for part in (value, value.partition(" ")[2])}
    return sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A text without them."""
    for secret in secrets:
        pattern = re.escape(secret)
        text = re.sub(pattern if len(secret) >= _LONG else rf"(?<![\w-]){pattern}(?![\w-])", _IN_PLACE, text)
        # Long bodies are quoted from their beginning only, which may end in the midst of a secret.
        bare = text.rstrip("'\"")
        cut = next((size for size in range(len(secret) - 1, _LONG - 1, -1) if bare.endswith(secret[:size])), 0)
        text = f"{bare[:-cut]}{_IN_PLACE}" if cut else text
    return text


def _chain(failure: CallFailed) -> Iterator[BaseException]:
    """The errors that a failure came from."""
    seen: set[int] = set()
    links: list[BaseException | None] = [failure.__cause__, failure.__context__]
    while links:
        link = links.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            links += [link.__cause__, link.__context__]
