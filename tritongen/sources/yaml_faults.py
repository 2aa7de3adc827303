"""Why a text is not YAML, in people's words and at the place where it should be mended.

The YAML library reports where its scanner gave up, which is often a line later than the mistake. Its errors have no codes, only wording: the wording selects an
explanation here and nothing else, and an unknown one is shown as it is.
"""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from tritongen.diagnostics import Diagnostic
from tritongen.sources.text import SourceText


def explain(source: SourceText, error: Exception, marked: MarkedYAMLError | None, position: int) -> Diagnostic:
    """The finding (TG002 or TG004) for an error of the YAML library. `position` is how far it had read, for errors that carry no place."""
    if isinstance(error, ReaderError):
        message = f"the text holds the control character U+{ord(source.text[error.position]):04X}, which YAML does not allow"
        return Diagnostic("TG002", message, source.location(error.position), hint="remove it; a binary file or a damaged download has many of them")
    if marked is None or marked.problem_mark is None:
        return _finding(
            source,
            position,
            "an escape or a directive after this place is not valid YAML",
            r"check \x, \u and \U escapes in double quotes, and lines that start with %",
        )
    problem, context = str(marked.problem or ""), str(marked.context or "")
    at = marked.problem_mark.index
    opened = marked.context_mark.index if marked.context_mark is not None else at
    line = source.lines[source.line_index(at)] if at < len(source.text) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] and "\\t" in problem:
        return _finding(source, at, "a tab in the indentation; YAML allows only spaces there", "replace each tab by spaces (two are usual)")
    if "quoted scalar" in context and "unexpected end" in problem:
        return _finding(
            source,
            opened,
            f"the quote {source.text[opened]} that opens here is never closed",
            "close it, or put it in the other kind of quotes if it belongs to the text",
        )
    if "flow" in context:
        return _unclosed_bracket(source, at, opened)
    if "mapping values are not allowed" in problem:
        return _stray_colon(source, at)
    if "could not find expected ':'" in problem:
        return _finding(source, opened, "a key without a ':' after it", "write key: value, with a space after the colon")
    if "expected <block end>" in problem:
        return _wrong_level(source, at, opened, problem)
    return _other(source, at, problem, context)


def _finding(source: SourceText, at: int, message: str, hint: str) -> Diagnostic:
    return Diagnostic("TG004", message, source.location(at), hint=hint)


def _unclosed_bracket(source: SourceText, at: int, opened: int) -> Diagnostic:
    """A [ or { whose list is not continued or closed."""
    bracket = source.text[opened : opened + 1]
    closing = {"[": "]", "{": "}"}.get(bracket)
    if closing is None:
        return _finding(
            source,
            at,
            f"a value is expected before {f'this {bracket}' if bracket else 'the end of the text'}",
            "write the value, or remove the bracket or comma that is too much",
        )
    if at >= len(source.text):
        return _finding(source, opened, f"the {bracket} that opens here is never closed", f"add the {closing}")
    if source.line_index(at) == source.line_index(opened):
        return _finding(source, at, f"expected , or {closing} here", f"separate entries by commas, and close the {bracket} with {closing}")
    return _finding(
        source,
        opened,
        f"the {bracket} that opens here is not closed: line {source.line_index(at) + 1} goes on without , or {closing}",
        f"add the {closing} or the comma",
    )


def _stray_colon(source: SourceText, at: int) -> Diagnostic:
    """A `key: value` where none can stand: a second colon in the line, a line that is indented too far, or a line above without its colon."""
    index = source.line_index(at)
    line = source.lines[index]
    column = source.location(at).column or 1
    if re.search(r":\s", line[: column - 1]):
        return _finding(source, at, "a second ':' in one line", "put the value in quotes if the colon belongs to it, or start a new line")
    above = next((number for number in range(index - 1, -1, -1) if source.lines[number].strip() and not source.lines[number].lstrip().startswith("#")), None)
    if above is not None:
        text = source.lines[above]
        if ":" not in text:
            offset = source.line_start(above) + len(text) - len(text.lstrip())
            return _finding(source, offset, "this line has no ':' after its key", "write key: value, with a space after the colon")
        if len(line) - len(line.lstrip()) > len(text) - len(text.lstrip()):
            return _finding(source, at, "this line is indented further than the one above, which already has a value", "align it with the line above")
    return _finding(source, at, "a ':' where no key can stand", "put the text in quotes if the colon belongs to it")


def _wrong_level(source: SourceText, at: int, opened: int, problem: str) -> Diagnostic:
    """Something in a block that does not belong to it: a stray bracket, text after a value, or a line at an indentation that no line above has."""
    found = source.text[at : at + 1]
    if found in ("]", "}", ","):
        return _finding(source, at, f"a {found} that nothing opened", "remove it, or put the text in quotes if it belongs to it")
    place, block = source.location(at), source.location(opened)
    line = source.lines[(place.line or 1) - 1]
    if line[: (place.column or 1) - 1].strip():
        return _finding(source, at, "text after a value that was already complete", "put the whole value into one pair of quotes")
    message = f"this line starts at column {place.column}, where nothing above does; the block around it started at column {block.column} in line {block.line}"
    if place.column == block.column:
        message = f"this line does not continue the block that started in line {block.line}"
        return _finding(source, at, message, "entries of a list start with '- ', entries of a mapping are key: value; one block holds one kind")
    return _finding(source, at, message, "indent it like the entries that it belongs to")


def _other(source: SourceText, at: int, problem: str, context: str) -> Diagnostic:
    """Single characters that mean something in YAML, and whatever else the library says."""
    found = source.text[at : at + 1]
    if found == "\t":
        return _finding(source, at, "a tab where only a space can stand", "replace the tab by a space")
    if "cannot start any token" in problem:
        return _finding(source, at, f"a value cannot start with {found!r}", "put the value in quotes")
    if "unknown escape" in problem:
        return _finding(source, at, f"\\{found} is no escape in double quotes", "use single quotes, in which \\ is a plain character, or write \\\\")
    where = f", {context}" if context else ""
    problem = problem.replace(repr("\0"), "the end of the text")  # the library marks the end by a NUL
    return _finding(source, at, f"this is not valid YAML: {problem}{where}", "put values with special characters in quotes, and check indentation and brackets")
