"""What NVIDIA's backends read of `--backend-config`: the names of their settings, and the values that they take.

Sources: onnxruntime_backend/src/onnxruntime.cc and onnxruntime_loader.cc, tensorrt_backend/src/tensorrt.cc, python_backend/src/python_be.cc, and for flags and
the memory tracker backend_common.cc and device_memory_tracker.h of the repository `backend`. No release in `releases` is known to lack one of these settings
(those of the python backend are in 24.10's library); what a release may lack is the backend itself, which `known_issues` has.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tritongen.known_issues import issues_of
from tritongen.releases import Release
from tritongen.render.findings import Findings, Key
from tritongen.rules.backend_names import NVIDIAS, meant_by, slip_of
from tritongen.spec import Spec
from tritongen.spec.values import INT32_MAX

_INT64_MAX = 2**63 - 1
_LEAST_ALIKE = 0.6
"""How alike two names must be (see difflib) for one to be meant by the other."""


@dataclass(frozen=True)
class Form:
    """What the value of a setting looks like.

    Attributes:
        expected: the values, in words.
        fits: whether a value is one of them.
        otherwise: what the backend does with any other.
    """

    expected: str
    fits: Callable[[str], bool]
    otherwise: str = "the backend does not start, and Triton loads none of its models"


def _number(least: int, most: int = _INT64_MAX, *, of: str = "") -> Form:
    """A whole number, which std::stoi and std::stol read as far as there are digits."""
    return Form(
        f"a whole number{of} from {least} to {most}",
        lambda text: re.fullmatch(r"[0-9]{1,19}", text) is not None and least <= int(text) <= most,
        "the backend reads the digits at the beginning alone; where they are no number that it can hold it does not start, and Triton loads none of its models",
    )


FLAG = Form("true or false", lambda text: text.lower() in ("true", "on", "1", "false", "off", "0"))
TRACKER_FLAG = dataclasses.replace(FLAG, otherwise="it has no effect: the log alone says so")
TEXT = Form("a text", bool)
THREADS = _number(0, INT32_MAX)
POLICY = Form("DEVICE_BLOCKING or BLOCKING", lambda text: text in ("DEVICE_BLOCKING", "BLOCKING"), "it has no effect: the backend's default is DEVICE_BLOCKING")
POOL, THREADS_OF_POOL = "enable-global-threadpool", ("intra_op_thread_count", "inter_op_thread_count")
TRACKER, BATCH_SIZE = "triton-backend-memory-tracker", "default-max-batch-size"

OPTIONS: Mapping[str, Mapping[str, Form]] = {
    "onnxruntime": {POOL: FLAG, **dict.fromkeys(THREADS_OF_POOL, THREADS), TRACKER: TRACKER_FLAG},
    "tensorrt": {"coalesce-request-input": FLAG, "execution-policy": POLICY, "plugins": TEXT, "version-compatible": FLAG, TRACKER: TRACKER_FLAG},
    "python": {
        "shm-default-byte-size": _number(1 << 20, of=" of bytes"),
        "shm-growth-byte-size": _number(1, of=" of bytes"),
        "shm-region-prefix-name": TEXT,
        "shm_message_queue_size": _number(1),
        "stub-timeout-seconds": _number(1, of=" of seconds"),
        "thread-pool-size": _number(1),
    },
}
"""By backend and setting."""

_OF_CORE = ("backend-directory", "min-compute-capability")
"""What core hands to every backend."""


def judge_backend_options(spec: Spec, release: Release | None, findings: Findings, *, whole: bool) -> None:
    """Settings in `server.backend_config` that nothing reads (TG444, TG117), and values that no backend takes (TG445).

    Args:
        spec: the spec.
        release: what it is for; None where that is not known.
        findings: for keys of the whole spec.
        whole: whether the spec holds all of its models.
    """
    for backend, settings in spec.server.backend_config.items():
        place: Key = ("server", "backend_config", backend)
        if backend not in NVIDIAS:
            _judge_name(backend, place, findings, is_own_image=spec.deploy.image is not None)
        elif release is not None and spec.deploy.image is None:
            _judge_presence(backend, release, place, findings)
        for name, value in settings.items():
            if name == BATCH_SIZE:
                message = f"{BATCH_SIZE} has no effect: rendered configs state their max_batch_size, and the server completes none"
                findings.idle((*place, name), message, hint="remove it, and write batching: {max: ...} for each model")
            elif backend in OPTIONS:
                _judge_setting(backend, name, value, (*place, name), findings)
        if whole:
            _judge_idle(backend, settings, spec, place, findings)


def _judge_name(backend: str, place: Key, findings: Findings, *, is_own_image: bool) -> None:
    """A backend that is none of NVIDIA's. An image of one's own may have any."""
    meant = meant_by(backend) or slip_of(backend)
    if meant or not is_own_image:
        findings.warning(
            "TG444",
            place,
            f"there is no backend '{backend[:60]}' in NVIDIA's images",
            consequence="Triton takes settings of any name, and nobody reads these",
            hint=f"did you mean '{meant}'?" if meant else "remove it; a backend of your own comes with an image of your own, which deploy.image names",
        )


def _judge_presence(backend: str, release: Release, place: Key, findings: Findings) -> None:
    for issue in issues_of(release):
        if issue.backend == backend:
            message = f"in release {release.name} {issue.text}"
            findings.warning("TG444", place, message, consequence="nobody reads its settings", hint=f"remove them, or {issue.advice}")


def _judge_setting(backend: str, name: str, value: str, place: Key, findings: Findings) -> None:
    known = OPTIONS[backend]
    if name in _OF_CORE:
        return
    if name not in known:
        findings.warning(
            "TG444",
            place,
            f"the {backend} backend reads no setting '{name[:60]}'",
            consequence="it has no effect",
            hint=next((f"did you mean {close}?" for close in _closest(backend, name)), f"its settings are {', '.join(known)}"),
        )
    elif not known[name].fits(value):
        form = known[name]
        message = f"{name} is {value[:60]!r}, and the {backend} backend takes {form.expected}"
        findings.error("TG445", place, message, consequence=form.otherwise, hint=f"write {form.expected}")


def _closest(backend: str, name: str) -> Iterator[str]:
    """Settings that may be meant: of this backend, whose names mix `-` and `_`, else of another one."""
    plain = name.lower().replace("_", "-")
    spelled = {option.replace("_", "-"): option for option in OPTIONS[backend]}
    yield from (f"'{spelled[close]}'" for close in difflib.get_close_matches(plain, spelled, n=1, cutoff=_LEAST_ALIKE))
    yield from (f"{other}: {{{option}: ...}}" for other, options in OPTIONS.items() for option in options if option.replace("_", "-") == plain)


def _judge_idle(backend: str, settings: Mapping[str, str], spec: Spec, place: Key, findings: Findings) -> None:
    """Settings that the spec's own models, or other settings, make idle. Those of onnxruntime never are: without a GPU it serves the sources of plans."""
    if backend == "tensorrt" and all(model.backend != backend for model in spec.models):
        what = "; accelerator: tensorrt is a part of onnxruntime" if any(model.accelerator == backend for model in spec.models) else ""
        findings.idle(place, f"server.backend_config.{backend} has no effect: no model has backend: {backend}{what}", hint="remove it")
    elif backend == "onnxruntime":
        _judge_pool(settings, spec, place, findings)


def _judge_pool(settings: Mapping[str, str], spec: Spec, place: Key, findings: Findings) -> None:
    """Counts of threads for a pool that all models share where there is none, and for models of their own where there is one."""
    if settings.get(POOL, "false").lower() in ("false", "off", "0"):
        for name in [name for name in THREADS_OF_POOL if name in settings]:
            message = f"{name} has no effect: it is the size of the pool that all models share, and there is none without {POOL}: true"
            findings.idle((*place, name), message, hint=f"write {POOL}: true beside it, or cpu_threads for each model")
        return
    for index, model in enumerate(spec.models):
        if model.cpu_threads is not None:
            message = f"cpu_threads of model '{model.name}' has no effect: all models share one pool ({POOL}, {findings.locate((*place, POOL))})"
            findings.idle(("models", index, "cpu_threads"), message, hint=f"remove it, or {POOL}; {THREADS_OF_POOL[0]} beside that is the size of the pool")
