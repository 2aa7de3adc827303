"""What callers give, checked before anything is done with it: every problem of a call in one error. Pure.

A request's arguments raise InvalidInput, those that a client is made with InputError; addresses, headers and TLS files are judged by `endpoint`, tensors by
`requests`, which know the model.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tritongen.client.endpoint import header_problems
from tritongen.client.policy import Deadline
from tritongen.client.requests import Cast
from tritongen.diagnostics import Diagnostic, shown
from tritongen.errors import InputError, InvalidInput

if TYPE_CHECKING:
    from tritongen.client.core import Settings
    from tritongen.client.options import Options

COMPRESSIONS = ("gzip", "deflate")
_RESERVED = frozenset({"sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output", "headers"})
"""Parameters that Triton's protocol keeps for itself, beside all that begin with `triton_` (facts, H2)."""
_FILE = re.compile(r"[0-9]+/[^\0]+")
_VERSION = re.compile("[0-9]{0,19}")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
_MOST = 2**63


def merged(inputs: Mapping[str, object] | None, tensors: Mapping[str, object]) -> Mapping[str, object]:
    """The inputs of a request from its two forms, the mapping and the keywords. Raises InvalidInput (TG061) for what is no mapping, and for a name in both."""
    if inputs is None:
        return tensors
    twice = [name for name in named(inputs) if name in tensors]
    if twice:
        hint = "give it in the mapping or as a keyword"
        raise InvalidInput([Diagnostic("TG061", f"the input {shown(name)} is given twice", hint=hint) for name in twice])
    return {**inputs, **tensors}


def named(inputs: object) -> Mapping[str, object]:
    """Inputs that have names. Raises InvalidInput (TG061) for others."""
    if not isinstance(inputs, Mapping):
        message = f"the inputs are given as {type(inputs).__name__}, without names"
        raise InvalidInput([Diagnostic("TG061", message, hint="give values by input name, such as {'x': array} or x=array")])
    return inputs


def bound_to(version: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a request whose version is settled: of a model object, of a sequence. Raises InvalidInput (TG061) for those that say one themselves."""
    if "version" in options:
        hint = "give it to client.model() or client.sequence(); an input of that name goes into the mapping of inputs"
        raise InvalidInput([Diagnostic("TG061", "the version is settled already, and is given once more", hint=hint)])
    return {**options, "version": version}


def check_requests(requests: object, *kinds: type) -> None:
    """Raise InvalidInput (TG061) where a series of requests is none of these kinds of iterable."""
    if isinstance(requests, str | bytes | Mapping) or not isinstance(requests, kinds):
        hint = "give a list or a generator of mappings, such as [{'x': first}, {'x': second}]"
        raise InvalidInput([Diagnostic("TG061", f"the requests are given as {type(requests).__name__}, not as a series of mappings", hint=hint)])


def check_options(model: str, options: Options) -> Options:
    """The options of a request in their plain form: the version a text, outputs a tuple, numbers of numpy Python's own, names of headers in lower case.

    Raises InvalidInput (TG061) with everything that no request can have; what depends on the model is checked by `requests`.
    """
    problems = [*_model_problems(model), *_version_problems(options.version), *_output_problems(options.outputs)]
    problems += _number_problem("priority", options.priority) if options.priority is not None else []
    problems += _request_id_problems(options.request_id)
    problems += _parameter_problems(options.parameters) if options.parameters is not None else []
    problems += header_problems(options.headers) if options.headers is not None else []
    if not (isinstance(options.cast, str) and options.cast in get_args(Cast)):
        problems.append(f"cast is {shown(options.cast)}, and can be {' or '.join(map(repr, get_args(Cast)))}")
    problems += _flag_problems(add_batch_axis=options.add_batch_axis)
    problems += _flag_problems(idempotent=options.idempotent) if options.idempotent is not None else []
    findings = _findings(problems, model)
    if options.deadline_s is not None:
        findings += _limit_findings(options.deadline_s)
    if findings:
        raise InvalidInput(findings)
    return replace(
        options,
        version=str(options.version),
        outputs=None if options.outputs is None else tuple(options.outputs),
        priority=None if options.priority is None else int(options.priority),
        parameters=None if options.parameters is None else {name: _plain(value) for name, value in options.parameters.items()},
        headers=None if options.headers is None else {name.lower(): value for name, value in options.headers.items()},
    )


def check_model(model: str, version: str | int = "", *, may_be_empty: bool = False) -> tuple[str, str]:
    """The name and version that a question is about, the version as text. Raises InvalidInput (TG061); an empty name may mean the whole server."""
    is_server = may_be_empty and isinstance(model, str) and not model
    problems = [] if is_server else _model_problems(model)
    problems += _version_problems(version)
    if is_server and not problems and str(version):
        problems.append(f"version {version} is asked for without a model")
    if problems:
        raise InvalidInput(_findings(problems, model))
    return model, str(version)


def check_flag(name: str, value: bool, model: object = "") -> bool:
    """A flag as Python's own. Raises InvalidInput (TG061) for what is neither True nor False."""
    problems = _flag_problems(**{name: value})
    if problems:
        raise InvalidInput(_findings(problems, model))
    return bool(value)


def check_sequence_id(sequence_id: int | str, model: str) -> int | str:
    """The id of a sequence, a number of numpy as Python's own. Raises InvalidInput (TG061) for one that Triton does not take: 0 and "" mean none."""
    is_number = isinstance(sequence_id, int | np.integer) and not isinstance(sequence_id, bool) and 0 < sequence_id < _MOST
    if is_number:
        return int(sequence_id)
    if isinstance(sequence_id, str) and sequence_id and _is_unicode(sequence_id):
        return sequence_id
    hint = "give a number from 1 to 2**63 - 1, a text, or none for a new one"
    raise InvalidInput([Diagnostic("TG061", f"{shown(sequence_id)} cannot be the id of a sequence", hint=hint, model=model)])


def check_load(model: str, config: str | Mapping[str, Any], files: Mapping[str, bytes | str] | None) -> tuple[str, dict[str, bytes]]:
    """What a model is loaded with: its config as JSON (empty: its own), its files as bytes; text is encoded as UTF-8.

    Raises InvalidInput (TG061) for names that are not `<version>/<name>`, contents that are none, and a config that is no JSON object.
    """
    text, problems = _config_text(config)
    files = {} if files is None else files
    if isinstance(files, Mapping):
        problems += [f"the file {shown(name)} is not named <version>/<name>" for name in files if not _is_file(name)]
        problems += [
            f"the content of the file {shown(name)} is {type(content).__name__}, not bytes or text that is valid Unicode"
            for name, content in files.items()
            if not isinstance(content, bytes | bytearray | memoryview) and not _is_unicode(content)
        ]
        problems += ["files replace the model's folder, and a config must come with them"] if files and isinstance(config, str) and not config else []
    else:
        problems.append(f"files are given as {type(files).__name__}, not as a mapping of contents by <version>/<name>")
    if problems:
        raise InvalidInput(_findings(problems, model))
    return text, {name: content.encode() if isinstance(content, str) else bytes(content) for name, content in files.items()}


def check_window(window: int) -> int:
    """The number of requests under way at once. Raises InputError (TG080)."""
    problems = _number_problem("window", window, least=1)
    if problems:
        raise InputError([Diagnostic("TG080", problem) for problem in problems])
    return int(window)


def check_settings(settings: Settings) -> None:
    """Raise InputError (TG067, TG080) with everything that a client cannot be made with."""
    problems = [*_number_problem("window", settings.window, least=1), *_number_problem("retries", settings.retries)]
    problems += _flag_problems(idempotent=settings.idempotent)
    if settings.compression is not None and settings.compression not in COMPRESSIONS:
        problems.append(f"compression is {shown(settings.compression)}, and can be {', '.join(map(repr, COMPRESSIONS))} or None")
    findings = [*_limit_findings(settings.deadline_s), *(Diagnostic("TG080", problem) for problem in problems)]
    if findings:
        raise InputError(findings)


def _findings(problems: Iterable[str], model: object) -> list[Diagnostic]:
    name = model if isinstance(model, str) and _is_unicode(model) else ""
    return [Diagnostic("TG061", problem, consequence="no request can say it", model=name) for problem in problems]


def _limit_findings(seconds: float) -> list[Diagnostic]:
    try:
        Deadline(seconds)
    except InputError as error:
        return list(error.diagnostics)
    return []


def _is_unicode(value: object) -> bool:
    """Whether it is a text without halves of surrogate pairs, which UTF-8 has no bytes for."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_problems(what: str, value: object) -> list[str]:
    if not isinstance(value, str):
        return [f"{what} is {shown(value)}, not text"]
    return [] if _is_unicode(value) else [f"{what} {shown(value)} is not valid Unicode"]


def _model_problems(model: object) -> list[str]:
    if isinstance(model, str) and model in ("", ".", ".."):
        return [f"the model's name is {shown(model)}, which no folder of a repository has" if model else "the model's name is empty"]
    return _text_problems("the model's name", model)


def _version_problems(version: object) -> list[str]:
    is_number = isinstance(version, int | np.integer) and not isinstance(version, bool) and 0 <= version < _MOST
    problems = [] if is_number else _text_problems("version", version)
    if problems or is_number or _VERSION.fullmatch(str(version)):
        return problems
    return [f"version is {shown(version)}, and versions are whole numbers, such as '3'"]


def _request_id_problems(request_id: object) -> list[str]:
    problems = _text_problems("request_id", request_id)
    if not problems and _CONTROL.search(str(request_id)):
        problems.append(f"request_id {shown(request_id)} holds control characters, which would break the server's log")
    return problems


def _output_problems(outputs: object) -> list[str]:
    if outputs is None:
        return []
    if isinstance(outputs, str | bytes) or not isinstance(outputs, Sequence | Set):
        return [f"outputs is {shown(outputs)}; write a list, such as ['scores']"]
    if not outputs:
        return ["outputs names no output; leave it out for all of them"]
    return [problem for name in outputs for problem in _text_problems("an output's name", name)]


def _number_problem(what: str, value: object, *, least: int = 0) -> list[str]:
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value < _MOST
    return [] if is_number else [f"{what} is {shown(value)}, not a whole number from {least}"]


def _flag_problems(**flags: object) -> list[str]:
    return [f"{name} is {shown(value)}, not True or False" for name, value in flags.items() if not isinstance(value, bool | np.bool_)]


def _parameter_problems(parameters: object) -> list[str]:
    if not isinstance(parameters, Mapping):
        return [f"parameters are given as {type(parameters).__name__}, not as a mapping of values by name"]
    problems = []
    for name, value in parameters.items():
        problems += _text_problems("a parameter's name", name)
        if isinstance(name, str) and (name in _RESERVED or name.startswith("triton_")):
            problems.append(f"the parameter {shown(name)} belongs to the protocol; priority= and sequence() set their own")
        if not _is_parameter(_plain(value)):
            problems.append(f"the parameter {shown(name)} is {shown(value)}, not text, true or false, or a finite number (whole ones of 64 bits)")
    return problems


def _is_parameter(value: object) -> bool:
    if isinstance(value, bool | str):
        return isinstance(value, bool) or _is_unicode(value)
    if isinstance(value, int):
        return -_MOST <= value < _MOST
    return isinstance(value, float) and math.isfinite(value)


def _plain(value: Any) -> Any:
    """A scalar of numpy as Python's own."""
    return value.item() if isinstance(value, np.bool_ | np.integer | np.floating) else value


def _config_text(config: object) -> tuple[str, list[str]]:
    """A config as JSON, and what is wrong with it."""
    if isinstance(config, str) and not config:
        return "", []
    if not isinstance(config, str | Mapping):
        return "", [f"config is {shown(config)}, not a ModelConfig as JSON or as a mapping"]
    try:
        text = config if isinstance(config, str) else json.dumps(dict(config))
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        return "", [f"config is no JSON: {error}"]
    if not isinstance(found, Mapping) or not _is_unicode(text):
        return "", ["config is JSON, and no ModelConfig, which is an object of valid Unicode"]
    return text, []


def _is_file(name: object) -> bool:
    return isinstance(name, str) and _is_unicode(name) and _FILE.fullmatch(name) is not None and ".." not in name.split("/")
