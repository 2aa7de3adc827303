"""A small evaluator of JSON Schema: the keywords that our own schemas use."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
ANNOTATIONS = {"$schema", "$defs", "title", "description", "default", "examples", "x-triton", "x-why"}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def accepts(schema, value, root=None):  # noqa: C901 - one line for each keyword
    """Whether a value is valid; an unknown keyword is an error, so that nothing passes unseen."""
    root = schema if root is None else root

    def fits(part, item):
        return accepts(part, item, root)

    for keyword, expected in schema.items():
        if keyword in ANNOTATIONS or keyword in ("properties", "additionalProperties"):
            continue
        if keyword == "$ref":
            ok = fits(root["$defs"][expected.removeprefix("#/$defs/")], value)
        elif keyword == "type":
            ok = any(is_type(value, name) for name in ([expected] if isinstance(expected, str) else expected))
        elif keyword == "allOf":  # how pydantic before 2.9 puts a description beside a reference
            ok = all(fits(option, value) for option in expected)
        elif keyword == "anyOf":
            ok = any(fits(option, value) for option in expected)
        elif keyword in ("enum", "const"):
            ok = any(value == option and type(value) is type(option) for option in (expected if keyword == "enum" else [expected]))
        elif keyword == "required":
            ok = not isinstance(value, dict) or set(expected) <= set(value)
        elif keyword == "items":
            ok = not isinstance(value, list) or all(fits(expected, item) for item in value)
        elif keyword == "prefixItems":
            ok = not isinstance(value, list) or all(fits(part, item) for part, item in zip(expected, value, strict=False))
        elif keyword in ("minItems", "maxItems"):
            ok = not isinstance(value, list) or (len(value) >= expected if keyword == "minItems" else len(value) <= expected)
        elif keyword == "maxLength":
            ok = not isinstance(value, str) or len(value) <= expected
        elif keyword == "pattern":
            ok = not isinstance(value, str) or re.search(expected, value)
        elif keyword == "propertyNames":
            ok = not isinstance(value, dict) or all(fits(expected, key) for key in value)
        elif keyword == "exclusiveMinimum":
            ok = not is_type(value, "number") or value > expected
        elif keyword == "minProperties":
            ok = not isinstance(value, dict) or len(value) >= expected
        elif keyword in ("minimum", "maximum"):
            ok = not is_type(value, "number") or (value >= expected if keyword == "minimum" else value <= expected)
        else:
            raise AssertionError(f"keyword {keyword!r} is not evaluated")
        if not ok:
            return False
    if isinstance(value, dict):
        properties, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(fits(properties[key], item) if key in properties else other is True or (other and fits(other, item)) for key, item in value.items())
    return True
