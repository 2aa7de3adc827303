"""What a caller asks for, and the request that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tritongen.client.arguments import check_options, merged
from tritongen.client.core import Core
from tritongen.client.flow import NO_HEADERS, Headers
from tritongen.client.policy import Deadline
from tritongen.client.requests import Cast
from tritongen.client.tracing import Span, joined_headers

if TYPE_CHECKING:
    from tritongen.client.sequence import Step


@dataclass(slots=True)
class Options:
    """The arguments of one `Client.infer` beside model and inputs."""

    version: str = ""
    outputs: Sequence[str] | None = None
    priority: int | None = None
    deadline_s: float | None = None
    request_id: str = ""
    parameters: Mapping[str, str | int | float | bool] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    cast: Cast = "exact"
    add_batch_axis: bool = False
    idempotent: bool | None = None


_OPTIONS = frozenset(item.name for item in fields(Options))


@dataclass(slots=True)
class Request:
    """One call of `infer` on its way.

    Attributes:
        model: the model's name.
        inputs: what the caller gave.
        options: likewise.
        deadline: when it must be over.
        headers: of this request: the caller's, and those of its span.
        span: what is told to whom the request goes; None where nobody traces.
        sequence: what it is in its sequence; None for a request that belongs to none.
        window: how many of its parts may be under way at once, where it is cut.
        is_plain: it asks for nothing beside its model and inputs: every option has its default, and it belongs to no sequence.
        idempotent: it may be executed twice.
    """

    model: str
    inputs: Mapping[str, object]
    options: Options
    deadline: Deadline
    headers: Headers
    span: Span | None = None
    sequence: Step | None = None
    window: int = 1
    is_plain: bool = False
    idempotent: bool = False


def split_options(inputs: Mapping[str, object] | None, given: Mapping[str, Any]) -> tuple[Options, Mapping[str, object]]:
    """The keywords of an `infer` as its options and all its inputs. Raises InvalidInput (TG061) as `merged` does."""
    options = Options(**{name: value for name, value in given.items() if name in _OPTIONS})
    return options, merged(inputs, {name: value for name, value in given.items() if name not in _OPTIONS})


def common_options(model: str, given: Mapping[str, Any]) -> tuple[Options, Mapping[str, object]]:
    """The keywords of an `infer_many`: the options of each of its requests, and the inputs that each has. Raises InvalidInput (TG061, TG067)."""
    options, tensors = split_options(None, given)
    return check_options(model, options), tensors


def make_request(
    core: Core,
    model: str,
    inputs: Mapping[str, object],
    options: Options,
    span: Span | None,
    sequence: Step | None = None,
    window: int | None = None,
) -> Request:
    """A request, its deadline running; `window` None is the client's. Raises InvalidInput with everything that no request can have."""
    # By identity and type: what a caller gives may compare in ways of its own, as arrays do.
    is_plain = (
        sequence is None
        and options.outputs is None
        and options.priority is None
        and options.deadline_s is None
        and options.parameters is None
        and options.headers is None
        and options.idempotent is None
        and options.add_batch_axis is False
        and type(options.version) is type(options.request_id) is type(options.cast) is str
        and not options.version
        and not options.request_id
        and options.cast == "exact"
    )
    if not (is_plain and type(model) is str and (model, "") in core.models):
        options = check_options(model, options)
    headers = joined_headers(options.headers, span) if options.headers or span is not None else NO_HEADERS
    deadline = Deadline(core.settings.deadline_s if options.deadline_s is None else options.deadline_s)
    idempotent = core.settings.idempotent if options.idempotent is None else options.idempotent
    return Request(model, inputs, options, deadline, headers, span, sequence, window or core.settings.window, is_plain, idempotent)
