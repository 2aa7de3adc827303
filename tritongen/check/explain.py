"""The page of one code, and the page of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tritongen.check.codes import CodeEntry, closest_code, codes
from tritongen.check.selection import matching_codes
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.rules.rule import Consequence

_FAMILIES = (
    ("TG0", "Files, specs and commands"),
    ("TG15", "Rewriting models"),
    ("TG16", "Rewriting models"),
    ("TG19", "Rewriting and versions in a spec"),
    ("TG1", "Rendering a spec"),
    ("TG20", "Parsing config.pbtxt"),
    ("TG21", "Parsing config.pbtxt"),
    ("TG22", "Layout of a repository"),
    ("TG23", "Backends and names"),
    ("TG24", "Versions"),
    ("TG25", "Tensors"),
    ("TG26", "Batching"),
    ("TG27", "Queues and caches"),
    ("TG28", "Instances"),
    ("TG29", "Accelerators"),
    ("TG30", "Parameters"),
    ("TG31", "Warmup"),
    ("TG32", "Ensembles"),
    ("TG33", "Sequences"),
    ("TG34", "ONNX models"),
    ("TG35", "TensorRT plans"),
    ("TG365", "Profiles of TensorRT plans"),
    ("TG366", "Profiles of TensorRT plans"),
    ("TG36", "Releases"),
    ("TG37", "Performance"),
    ("TG38", "Security"),
    ("TG39", "Python and vLLM models"),
    ("TG40", "What requests may look like"),
    ("TG41", "The release of a spec"),
    ("TG42", "Load tests"),
    ("TG43", "Servers and deployments"),
    ("TG44", "Servers and deployments"),
    ("TG9", "The embedded server"),
)

_HEAD = """\
# Codes

Everything tritongen can report, generated from its catalogue (`make docs`). `tritongen check --explain CODE` prints one of these pages.

A finding's severity follows from what Triton does: **refused** and **fails** are errors, **ignored** and **misbehaves** are warnings, **slow** and
**fragile** are advice. Codes without such a word are about what tritongen itself was given.
"""


def explain(word: str) -> str:
    """The page of a code or a name, as text; for the beginning of codes (`TG22`) a line for each. Raises InputError (TG071) where there is no such code."""
    found = [codes()[code] for code in sorted(matching_codes(word))]
    if not found:
        close = closest_code(word)
        hint = f"did you mean {close}?" if close else "docs/rules.md lists all codes"
        raise InputError([Diagnostic("TG071", f"there is no code, no beginning of one and no rule {word[:60]!r}", hint=hint)])
    return "\n".join(_page(found[0]) if len(found) == 1 else _list(found)) + "\n"


def _list(entries: Sequence[CodeEntry]) -> Iterator[str]:
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        yield f"{entry.code}  {entry.name:<{width}}  {entry.summary}"


def _page(entry: CodeEntry) -> Iterator[str]:
    yield f"{entry.code} {entry.name}"
    yield ""
    yield entry.summary
    yield ""
    yield f"What follows: {_consequence(entry)}"
    yield f"Why: {entry.why}"
    yield f"What to do: {entry.fix}"
    for title, text in (("Bad", entry.bad), ("Good", entry.good)):
        if text:
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"    {line}".rstrip() for line in text.strip("\n").splitlines())


def _consequence(entry: CodeEntry) -> str:
    if entry.consequence is None:
        return "the command ends, or goes on without it; Triton never sees it"
    return f"{entry.consequence.words} ({entry.consequence.value}, {entry.consequence.severity.value})"


def rules_page() -> str:
    """docs/rules.md: a table of all codes, then the page of each, by family."""
    lines = [_HEAD, "| code | name | what Triton does | in short | `--fix` |", "|---|---|---|---|---|"]
    lines += [_row(entry) for entry in codes().values()]
    title = ""
    for entry in codes().values():
        family = next(name for prefix, name in _FAMILIES if entry.code.startswith(prefix))
        if family != title:
            title = family
            lines += ["", f"## {title}"]
        lines += ["", *_section(entry)]
    return "\n".join(lines) + "\n"


def _row(entry: CodeEntry) -> str:
    word = entry.consequence.value if entry.consequence else ""
    cells = (f"[{entry.code}](#{entry.code.lower()})", entry.name, word, _cell(entry.summary), "yes" if entry.fixable else "")
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(entry: CodeEntry) -> Iterator[str]:
    yield f'### <a id="{entry.code.lower()}"></a>{entry.code} {entry.name}'
    yield ""
    yield _prose(entry.summary)
    yield ""
    if isinstance(entry.consequence, Consequence):
        yield f"**What follows:** {_consequence(entry)}. "
    yield f"**Why:** {_prose(entry.why)} "
    yield f"**What to do:** {entry.fix}"
    for title, text in (("Bad", entry.bad), ("Good", entry.good)):
        if text:
            yield from ("", f"{title}:", "", "```", *text.strip("\n").splitlines(), "```")


def _prose(text: str) -> str:
    """Angle brackets would be read as HTML."""
    return text.replace("<", "&lt;")
