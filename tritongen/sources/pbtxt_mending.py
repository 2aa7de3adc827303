"""What is settled among the tokens of a broken protobuf text before it is parsed: comments of other languages, merge conflicts, quotes.

Each of these would otherwise look like a dozen mistakes to the parser.
"""

from __future__ import annotations

import re
import unicodedata

from tritongen.sources.pbtxt_marks import without_marks
from tritongen.sources.pbtxt_tokens import COMMENT, CURLY_QUOTES, CURLY_STR, ID, MARKER, NUL_STR, OPEN_STR, OTHER, STR, Token, tokenize
from tritongen.sources.pbtxt_tree import Edit, Fault, FaultKind

MAX_REREADS = 200
"""How often the rest of a line is read again behind a string that lacks a quote."""


# A string without its closing quote ends before what most likely follows it: punctuation, a comment, the next field, the end of the line.
_OPEN_CONTENT = re.compile(
    r"[\"'](.*?)(?=[ \t]{0,8}(?:[,;{}\[\]#]|[A-Za-z_][A-Za-z0-9_]{0,60}[ \t]{0,8}[:{\[]|$)|[\u201c\u201d\u201e\u201f\u00bb\u2033\u2018\u2019])", re.MULTILINE
)
_AT_LINE_END = re.compile(r"[ \t\r]*$", re.MULTILINE)
_BLANKS = re.compile(r"[\s\u200b-\u200f\u2028\u2029\u2060\ufeff\u00ad]")


def mend(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """The tokens without comments and markers, and with strings that end; what was wrong is added to `faults`."""
    tokens = without_marks(text, tokens, faults)
    tokens = _as_braces(text, _without_blanks(text, _close_strings(text, tokens, faults), faults), faults)
    return _without_comments(text, _without_conflicts(text, tokens, faults), faults)


def _without_blanks(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """Takes blanks that protobuf does not know, which come with text copied from web pages, for blanks; one fault for all of one kind."""
    odd: dict[str, list[int]] = {}
    kept: list[Token] = []
    for token in tokens:
        if token.kind == OTHER and _BLANKS.match(text, token.start):
            odd.setdefault(text[token.start], []).append(token.start)
        else:
            kept.append(token)
    for char, places in odd.items():
        count = "" if len(places) == 1 else f", here and in {len(places) - 1} more places"
        name = unicodedata.name(char, "a control character").lower()
        message = f"the blank character U+{ord(char):04X} ({name}) stands in the text{count}"
        edits = (Edit(place, place + 1, " ") for place in places)
        faults.append(Fault(FaultKind.UNEXPECTED, places[0], message, "write plain blanks; only those of ASCII separate words", tuple(edits)))
    return kept


def _as_braces(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """Takes parentheses for braces where as many are opened as closed; one fault for all of them."""
    places = [index for index, token in enumerate(tokens) if token.kind == OTHER and text[token.start] in "()"]
    opened = sum(text[tokens[index].start] == "(" for index in places)
    if not places or opened * 2 != len(places):
        return tokens
    edits = []
    for index in places:
        _, start, end = tokens[index]
        brace = "{" if text[start] == "(" else "}"
        tokens[index] = Token(brace, start, end)
        edits.append(Edit(start, end, brace))
    faults.append(Fault(FaultKind.PUNCTUATION, tokens[places[0]].start, "parentheses stand where braces should", "write { and }", tuple(edits)))
    return tokens


def _without_conflicts(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """Keeps the first side of each merge conflict."""
    kept: list[Token] = []
    side = ""
    for token in tokens:
        if token.kind == MARKER:
            marker = text[token.start]
            if marker == "<" or not side:
                hint = "decide which side is right and delete the lines that start with <<<<<<<, ======= and >>>>>>>"
                faults.append(Fault(FaultKind.CONFLICT, token.start, "the file holds an unresolved merge conflict", hint))
            side = "" if marker == ">" else marker
        elif side in ("", "<") or token is tokens[-1]:
            kept.append(token)
    return kept


def _without_comments(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    kept: list[Token] = []
    for token in tokens:
        if token.kind != COMMENT:
            kept.append(token)
            continue
        content = text[token.start : token.end]
        edits: tuple[Edit, ...] = ()
        to_line_end = content.startswith(("//", "--"))
        if "\0" not in content and to_line_end:  # a NUL ends the comment for protobuf
            edits = (Edit(token.start, token.start + 2, "#"),)
        elif "\0" not in content and content.endswith("*/") and _AT_LINE_END.match(text, token.end):
            body = content[2:-2].rstrip()
            edits = (Edit(token.start, token.end, "#" + body.replace("\n", "\n#")),)
        closed = to_line_end or content.endswith("*/")
        message = f"'{content[:2]}' starts no comment here" if closed else "'/*' starts no comment here, and is not ended either"
        faults.append(Fault(FaultKind.COMMENT, token.start, message, "comments start with # and go to the end of the line", edits))
    return kept


def _close_strings(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """Lets each string that lacks a quote end where it most likely should, and reads the rest of its line again."""
    result: list[Token] = []
    pending = tokens[::-1]
    rereads = 0
    while pending:
        token = pending.pop()
        if token.kind == NUL_STR:
            place = text.index("\0", token.start)
            faults.append(
                Fault(FaultKind.QUOTE, place, "the string holds a NUL character, which ends it for protobuf", "remove it; write \\000 where it is meant")
            )
            result.append(token._replace(kind=STR))
        elif token.kind == CURLY_STR:
            _curly(text, token, faults)
            result.append(token)
        elif token.kind == OPEN_STR and rereads < MAX_REREADS:
            rereads += 1
            start = _mispaired(text, result, token)
            line_end = token.end
            while result and result[-1].start >= start:
                result.pop()
            match = _OPEN_CONTENT.match(text, start, line_end)
            assert match is not None
            end = match.end()
            curly_end = text[end : end + 1] in CURLY_QUOTES and end < line_end
            word_before = bool(result) and result[-1].kind == ID and result[-1].end == start and not match.group(1)
            _open(text, Token(OPEN_STR, start, end), curly_end, word_before, faults)
            result.append(Token(OPEN_STR, start, end + curly_end))
            pending.extend(reversed(tokenize(text, end + curly_end, line_end)[:-1]))
        else:
            result.append(token)
    return result


def _mispaired(text: str, before: list[Token], open_string: Token) -> int:
    """Where the string without a closing quote begins: in `"a, "b"` the open one is found behind the b, and is meant to be the first."""
    line_start = text.rfind("\n", 0, open_string.start) + 1
    for index in range(len(before) - 1, 0, -1):
        if before[index].start < line_start:
            break
        if (
            before[index - 1].kind == STR
            and before[index].kind == ID
            and before[index - 1].end == before[index].start
            and before[index].end == open_string.start
        ):
            return before[index - 1].start
    return open_string.start


def _open(text: str, token: Token, curly_end: bool, word_before: bool, faults: list[Fault]) -> None:
    quote = text[token.start]
    if curly_end:
        edits = (Edit(token.end, token.end + 1, quote),)
        faults.append(Fault(FaultKind.QUOTE, token.end, f"the string ends with a typographic quote {text[token.end]}", f"end it with {quote}", edits))
    elif word_before:
        faults.append(Fault(FaultKind.QUOTE, token.start, "the string has a closing quote and no opening one", f"begin it with {quote}"))
    else:
        hint = f"end it with {quote}; a string cannot go over the end of a line, but several strings in a row are joined"
        faults.append(Fault(FaultKind.QUOTE, token.start, "the string has no closing quote", hint))


def _curly(text: str, token: Token, faults: list[Fault]) -> None:
    first, last = text[token.start], text[token.end - 1]
    content = text[token.start + 1 : token.end - 1]
    edits = (Edit(token.start, token.start + 1, '"'), Edit(token.end - 1, token.end, '"')) if "\\" not in content else ()
    message = f"the string is in typographic quotes {first} {last}, as word processors and web pages make them"
    faults.append(Fault(FaultKind.QUOTE, token.start, message, f'write "{content}" with straight quotes', edits))
