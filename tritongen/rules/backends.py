"""Rules: which backend runs a model, and what the model is called."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator

from tritongen.known_issues import issues_of
from tritongen.rules import autocomplete
from tritongen.rules.backend_names import BACKEND_OF_PLATFORM, NVIDIAS, meant_by, slip_of
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import backend_of_file, fully_seen, is_foreign, model_files, place
from tritongen.rules.resolve import KNOWN_BACKENDS
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.rules.vllm import ENGINE_ARGUMENTS

_PAIRED = {backend.name: backend.platforms for backend in KNOWN_BACKENDS if backend.platforms}
"""Backends whose platform core checks; all others may state any platform."""

_UNTOUCHED = re.compile(r"[A-Za-z0-9_.~-]+")
_IMPOSSIBLE = re.compile(r"[\s/?\x00-\x1f\x7f]")


def _unknown_platform(context: ModelContext) -> Iterator[Finding]:
    platform = context.config.platform
    if context.is_ensemble or not platform or context.resolved.backend:
        return
    backend = meant_by(platform)
    hint = (
        f'write `backend: "{backend}"` in place of the platform'
        if backend
        else 'write `backend: "<name of the backend>"`; an ensemble has `platform: "ensemble"`'
    )
    known = ", ".join(sorted(BACKEND_OF_PLATFORM))
    yield Finding(f"platform '{platform}' does not exist, and there is no backend; platforms are {known} and ensemble", ("platform",), hint)


def _mismatch(context: ModelContext) -> Iterator[Finding]:
    backend, platform = context.config.backend, context.config.platform
    if context.is_ensemble or not platform or backend not in _PAIRED or platform in _PAIRED[backend]:
        return
    owner = BACKEND_OF_PLATFORM.get(platform)
    hint = f'remove `platform: "{platform}"`' + (f', or write `backend: "{owner}"`' if owner else "")
    yield Finding(f"platform '{platform}' does not belong to backend '{backend}', whose platform is {' or '.join(_PAIRED[backend])}", ("platform",), hint)


def _wrong_backend(context: ModelContext) -> Iterator[Finding]:
    name = context.config.backend
    if context.is_ensemble or name in NVIDIAS or _brings_its_own(context, name):
        return
    bare = name.strip()
    if bare and bare != name:
        message = f"backend '{name}' begins or ends with a blank, which is part of the name, and no backend is called so"
        yield Finding(message, ("backend",), f'write `backend: "{meant_by(bare) or slip_of(bare) or bare}"`')
    elif meant := meant_by(name):
        what = "is the name of a platform" if name in BACKEND_OF_PLATFORM else "does not exist"
        yield Finding(f"backend '{name}' {what}; the backend is called '{meant}'", ("backend",), f'write `backend: "{meant}"`')
    elif meant := slip_of(name):
        hint = f'did you mean `backend: "{meant}"`? A backend of your own of that name: write `# tritongen: ignore[TG232]` above the line'
        yield Finding(f"backend '{name}' is none of NVIDIA's, and its name is that of '{meant}' misspelt", ("backend",), hint)


def _brings_its_own(context: ModelContext, backend: str) -> bool:
    """Whether the model's folder holds the backend's library, or may hold it: its runtime's name may be any, and a folder may be unknown."""
    library = context.config.runtime or f"libtriton_{backend}.so"
    if context.folder is None:
        return bool(context.config.runtime)
    return any(path.rsplit("/", 1)[-1] == posixpath.basename(library) for path in context.folder.entries)


def _undetermined(context: ModelContext) -> Iterator[Finding]:
    config, folder = context.config, context.folder
    if context.is_ensemble or context.resolved.backend or config.platform or not (context.has_config or context.server.auto_complete):
        return
    if config.default_model_filename:
        name = config.default_model_filename
        backend = backend_of_file(name) or ("python" if name.endswith(".py") else "")
        message = (
            f"no backend is given, and Triton does not know one by the file name '{name}' (it knows {', '.join(known.filename for known in KNOWN_BACKENDS)})"
        )
        yield Finding(message, ("default_model_filename",), f'write `backend: "{backend or "<name of the backend>"}"`')
    elif folder is not None and folder.subfolders and fully_seen(folder) and not is_foreign(context) and not folder.config_problem:
        yield _undetected(context)


def _undetected(context: ModelContext) -> Finding:
    """Nothing in the config says what the model is, and nothing in the folder that Triton looks at."""
    folder = context.folder
    assert folder is not None
    first = folder.subfolders[0]
    other = next((name for name in folder.subfolders[1:] if any(file in model_files(folder, name) for file in _defaults())), None)
    found = model_files(folder, first)
    backend = backend_of_file(found[0]) if found else ""
    if other is not None:
        message = (
            f"no backend is given, and Triton looks for a model file in the first sub-folder alone, '{first}', which has none (that of "
            f"'{other}' it does not see)"
        )
        backend = next(known.name for known in KNOWN_BACKENDS if known.filename in model_files(folder, other))
        hint = f'write `backend: "{backend}"`, or remove the folder {folder.at(first)}'
    elif backend:
        default = next(known.filename for known in KNOWN_BACKENDS if known.name == backend)
        message = f"no backend is given, and {first}/{found[0]} has no name that Triton knows one by"
        hint = f'mv {folder.at(f"{first}/{found[0]}")} {folder.at(f"{first}/{default}")}, or write `backend: "{backend}" default_model_filename: "{found[0]}"`'
    else:
        message = f"no backend is given, and no file in {first}/ has a name that Triton knows one by ({', '.join(_defaults())})"
        hint = f'write `backend: "{"vllm" if ENGINE_ARGUMENTS in folder.files_in(first) else "<name of the backend>"}"`'
    return Finding(message, (), hint, None if context.has_config else place(context))


def _defaults() -> tuple[str, ...]:
    return tuple(known.filename for known in KNOWN_BACKENDS)


def _absent(context: ModelContext) -> Iterator[Finding]:
    release, backend = context.server.release, context.resolved.backend
    assert release is not None
    for issue in issues_of(release):
        if issue.backend and issue.backend == backend and not _brings_its_own(context, backend):
            key = ("backend",) if context.config.backend else ("platform",) if context.config.platform else ()
            yield Finding(f"in release {release.name} {issue.text}", key, issue.advice, None if context.has_config else place(context))


def _url_name(context: ModelContext) -> Iterator[Finding]:
    name = context.name
    if not name or _UNTOUCHED.fullmatch(name) or is_foreign(context):
        return
    wrong = sorted({character for character in name if not _UNTOUCHED.fullmatch(character)})
    listed = ", ".join(f"'{character}'" for character in wrong)
    hint = "use letters, digits, '_', '-' and '.' only: " + re.sub(r"[^A-Za-z0-9_.~-]+", "_", name)
    if _IMPOSSIBLE.search(name):
        message = (
            f"the model's name '{name}' has {listed}, which no URL can hold: Triton does not decode %20 and the like, so the model cannot be "
            f"asked over HTTP (over gRPC it can)"
        )
        yield Finding(message, ("name",) if context.has_config else (), hint, consequence=Consequence.FAILS)
    else:
        message = (
            f"the model's name '{name}' has {listed}; clients that encode it in a URL, as tritonclient.http does, ask for another name: Triton "
            f"does not decode it"
        )
        yield Finding(message, ("name",) if context.has_config else (), hint)


def _other_name(context: ModelContext) -> Iterator[Finding]:
    if context.folder is None or not context.is_misnamed:
        return
    message = f"the config's name is '{context.config.name}', its folder's '{context.folder.name}'; they must be equal"
    yield Finding(message, ("name",), f'write `name: "{context.folder.name}"`, or leave it out: Triton then takes the folder\'s')


def _case_twins(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    names: dict[str, set[str]] = defaultdict(set)
    for context in contexts:
        if context.folder is not None:
            names[context.name.casefold()].add(context.name)
    for twins in names.values():
        for name in sorted(twins)[1:]:
            yield Finding(
                f"'{name}' and '{min(twins)}' differ by case only; on a file system that ignores case they are one folder",
                hint="rename one of them",
                model=name,
            )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG230",
        "unknown-platform",
        Consequence.REFUSED,
        "A platform is one that Triton knows, or there is a backend.",
        "'unexpected platform type', in the server's log alone (core/src/model_config_utils.cc, ValidateModelConfig; tried on 24.10). A backend's "
        "name is no platform.",
        'platform: "onnxruntime"',
        'backend: "onnxruntime"',
        check=_unknown_platform,
    ),
    Rule(
        "TG231",
        "platform-of-another-backend",
        Consequence.REFUSED,
        "The platform is one of the backend's own.",
        "'unexpected platform and backend pair', in the log alone. Core checks it for tensorflow, tensorrt, onnxruntime and pytorch; other backends "
        "may state any platform "
        "(core/src/model_config_utils.cc, ValidateModelConfig; tried on 24.10).",
        'backend: "onnxruntime"\nplatform: "tensorrt_plan"',
        'backend: "onnxruntime"',
        check=_mismatch,
    ),
    Rule(
        "TG232",
        "misspelt-backend",
        Consequence.REFUSED,
        "The backend is called by its own name.",
        "'unable to find backend library for backend ..., try specifying runtime': the advice misleads, the name is wrong, be it by a "
        "blank at either end (core/src/backend_model.cc; tried on 24.10). "
        "A name that resembles none of NVIDIA's is taken for a custom backend, and so is one whose library "
        "lies in the model's folder.",
        'backend: "onnxruntime_onnx"',
        'backend: "onnxruntime"',
        check=_wrong_backend,
    ),
    Rule(
        "TG233",
        "undetermined-backend",
        Consequence.REFUSED,
        "The config names the backend, or the model file's name tells it.",
        "Without backend and platform, Triton knows a backend by default_model_filename, or by the files in the first sub-folder of the model in "
        "plain sorting order, where .cache "
        "comes before 1 and 10 before 2. Otherwise: 'Could not determine backend', or 'unexpected platform type' with an empty name "
        "(core/src/model_config_utils.cc, AutoCompleteBackendFields; tried on 24.10).",
        'default_model_filename: "resnet.onnx"',
        'backend: "onnxruntime"\ndefault_model_filename: "resnet.onnx"',
        check=_undetermined,
        needs=frozenset(),
    ),
    Rule(
        "TG235",
        "backend-not-in-release",
        Consequence.REFUSED,
        "NVIDIA's image of the release has the backend.",
        "'unable to find backend library'. The image of 24.02 came without the onnxruntime backend (triton-inference-server/server 6988, 6991); "
        "since 25.03 there is no tensorflow "
        "backend (server 8204). An image that somebody added one to is not NVIDIA's; ignore the rule there.",
        'backend: "tensorflow"  # --release 25.08',
        'backend: "onnxruntime"  # with the model exported to ONNX',
        check=_absent,
        needs=frozenset({"release"}),
    ),
    Rule(
        "TG237",
        "name-not-fit-for-urls",
        Consequence.FRAGILE,
        "A model's name has only letters, digits, '_', '-', '.' and '~'.",
        "Triton matches the name in a URL as it stands and decodes nothing, while clients encode every other character, so that they ask for a model "
        "that does not exist (tried on "
        "24.10: 'a:b' is found as a:b and not as a%3Ab; a blank, '?' and '/' cannot be written at all). gRPC takes every name.",
        'name: "res net"',
        'name: "res_net"',
        check=_url_name,
        needs=frozenset(),
    ),
    Rule(
        "TG238",
        "name-of-another-folder",
        Consequence.REFUSED,
        "The config's name is that of its folder.",
        "'unexpected directory name ..., directory name must equal model name', in the log alone; clients see 'failed to poll' "
        "(core/src/model_repository_manager.cc; tried on 24.10).",
        'resnet/config.pbtxt:\nname: "resnet50"',
        'resnet/config.pbtxt:\nname: "resnet"',
        check=_other_name,
        needs=frozenset({"config", "folder"}),
    ),
    Rule(
        "TG239",
        "names-that-differ-by-case",
        Consequence.FRAGILE,
        "No two models have names that differ by case only.",
        "Triton loads both. A checkout on macOS or Windows keeps one of the two folders.",
        "resnet/config.pbtxt\nResNet/config.pbtxt",
        "resnet/config.pbtxt\nresnet_v2/config.pbtxt",
        check_all=_case_twins,
    ),
    *autocomplete.RULES,
)
