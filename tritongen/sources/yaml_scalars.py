"""YAML scalars → values, by YAML 1.2's core schema: `yes` and `on` are texts, `010` is ten, and nothing becomes a date."""

from __future__ import annotations

import re

from tritongen.sources.tree import Scalar

TAG_PREFIX = "tag:yaml.org,2002:"

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class LargeNumberError(ValueError):
    """A number that no field of Triton can hold."""


def is_date(text: str) -> bool:
    """True for a plain scalar that YAML 1.1 reads as a date, so that two readers of one file would differ."""
    return _DATE.fullmatch(text) is not None


def join_surrogates(text: str) -> str:
    """Makes one character of each pair of surrogates, as JSON writes what is beyond U+FFFF. Raises UnicodeDecodeError where a half stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le") if _SURROGATE.search(text) else text


def is_scalar_tag(tag: str) -> bool:
    """True for tags that only say what kind of scalar it is."""
    return tag == "!" or tag in {TAG_PREFIX + name for name in ("str", "int", "float", "bool", "null")}


def scalar_value(text: str, tag: str | None, *, plain: bool) -> Scalar:
    """The value of a scalar in YAML 1.2's core schema. Raises ValueError where the text is not of its tag's kind, LargeNumberError for more than 64 bits."""
    if tag is not None:
        kind = tag.removeprefix(TAG_PREFIX)
        if tag == TAG_PREFIX + kind and kind in ("int", "float", "bool", "null"):
            value = scalar_value(text, None, plain=True)
            if kind == "float" and type(value) is int:
                return float(value)
            if type(value) is not {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]:
                raise ValueError(text)
            return value
        return text
    if not plain:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return _int(text)
    return _float(text) if _FLOAT.fullmatch(text) else text


def _int(text: str) -> int:
    """An int of at most 64 bits; the length is looked at first, since Python refuses to convert thousands of digits. Raises LargeNumberError."""
    digits = text.lstrip("+-").lstrip("0") if text[:2] not in ("0o", "0x") else text[2:].lstrip("0")
    if len(digits) > 22:
        raise LargeNumberError
    value = int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if not -(2**63) <= value < 2**64:
        raise LargeNumberError
    return value


def _float(text: str) -> float:
    """A float; one that is not infinite by its spelling must not become so. Raises LargeNumberError."""
    word = text.lower().replace(".inf", "inf").replace(".nan", "nan")
    value = float(word)
    if value in (float("inf"), float("-inf")) and "inf" not in word:
        raise LargeNumberError
    return value
