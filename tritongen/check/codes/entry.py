"""What the catalogue says about one code: enough for `--explain`, the rules page, JSON and SARIF."""

from __future__ import annotations

from dataclasses import dataclass

from tritongen.rules.rule import Consequence


@dataclass(frozen=True)
class CodeEntry:
    """One code that some part of tritongen can emit.

    Attributes:
        code: `TGnnn`.
        name: kebab-case; reads after the word "allow".
        consequence: what Triton does; None for findings that are about tritongen's own input and never reach Triton.
        summary: one sentence.
        why: what happens and how it is known.
        fix: how to mend it, in words.
        bad: a short text that raises it; may be empty where no text can show it (a missing file).
        good: the same, mended.
        fixable: whether `tritongen check --fix` can mend it.
    """

    code: str
    name: str
    consequence: Consequence | None
    summary: str
    why: str
    fix: str
    bad: str = ""
    good: str = ""
    fixable: bool = False
