"""What callers give, checked."""

from __future__ import annotations

from collections.abc import Mapping

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InvalidInput


def merged(inputs: Mapping[str, object] | None, tensors: Mapping[str, object]) -> Mapping[str, object]:
    """The inputs of a request from both of its forms. Raises InvalidInput (TG061)."""
    if inputs is None:
        return tensors
    if not isinstance(inputs, Mapping):
        message = f"the inputs are given as {type(inputs).__name__}, without names"
        raise InvalidInput([Diagnostic("TG061", message, hint="give values by input name, such as {'x': array} or x=array")])
    return {**inputs, **tensors}
