"""Rules: the libraries that a config makes the server load, its backend's (`runtime`) and repository agents."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tritongen.releases import order_of
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import fully_seen
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_LIBRARIES = {
    "python": ("libtriton_python.so",),
    "onnxruntime": ("libtriton_onnxruntime.so", "model.py"),
    "tensorrt": ("libtriton_tensorrt.so", "model.py"),
    "pytorch": ("libtriton_pytorch.so", "model.py"),
}
"""What may be named as runtime: what NVIDIA's containers hold in the folder of a backend, and the model.py of one that is written in Python. The folder of
the python backend has none."""

_AGENTS: Key = ("model_repository_agents",)


def _in_backend_folder(context: ModelContext) -> str:
    """The runtime as a path in the folder of the backend, to which Triton joins it, an absolute one too; with .. at its start where it leads out of it."""
    backend = context.resolved.backend
    path = posixpath.normpath(f"{backend}/{context.config.runtime}")
    return posixpath.relpath(path, backend) if backend else path


def _path(context: ModelContext) -> Iterator[Finding]:
    name = context.config.runtime
    if context.is_ensemble or not name or (not name.startswith("/") and ".." not in name.split("/")):
        return
    release = context.server.release
    found = _in_backend_folder(context) in _LIBRARIES.get(context.resolved.backend, ())
    kind = Consequence.FRAGILE if found and (release is None or release.order <= order_of("24.10")) else None
    yield Finding(
        f"runtime '{name}' is a path; Triton looks for a file of that name in the version folder, the model's folder and the backend's folder only",
        ("runtime",),
        "remove `runtime` (the library is found by the backend's name), or write the bare file name",
        consequence=kind,
        follows="Triton 24.10 finds it, and later releases refuse it" if kind else "",
    )


def _unknown(context: ModelContext) -> Iterator[Finding]:
    name, backend, folder = context.config.runtime, context.resolved.backend, context.folder
    if context.is_ensemble or not name or backend not in _LIBRARIES or name.startswith("/") or ".." in name.split("/"):
        return
    path = posixpath.normpath(name)
    if path in _LIBRARIES[backend] or folder is None or not fully_seen(folder) or "/" in path:
        return
    holds = path in folder.entries or any(f"{version}/{path}" in folder.entries for version in context.versions.folders.values())
    # What is called model.py is looked for in the backend's folder alone.
    if holds and path != "model.py":
        return
    library = _LIBRARIES[backend][0]
    message = f"runtime '{name}' is the name of a library, and neither the model's folder nor the folder of backend '{backend}' has one of that name"
    yield Finding(message, ("runtime",), f'remove `runtime` (it is then "{library}"); the file of the model is `default_model_filename`')


def _agents(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    if not config.HasField("model_repository_agents"):
        return
    agents = config.model_repository_agents.agents
    if not agents:
        yield Finding(
            "model_repository_agents names no agent",
            _AGENTS,
            "remove it",
            follows="Triton 24.10 dies when it loads the model, and takes all other models with it",
        )
    for index, agent in enumerate(agents):
        if not agent.name:
            message = f"agent number {index + 1} has no name, and Triton looks for 'libtritonrepoagent_.so'"
            yield Finding(message, (*_AGENTS, "agents", index), 'write `name: "checksum"`, or the name of your own agent')


RULES: tuple[Rule, ...] = (
    Rule(
        "TG381",
        "runtime-is-a-path",
        Consequence.REFUSED,
        "The runtime is a file name without a path out of the folders that are searched.",
        "'unable to find backend library'; an absolute path is joined to the searched folders. Release 24.10 finds what a path out of them and back leads to; "
        "later releases refuse one that leaves them by name (core/src/backend_model.cc, ResolveBackendPaths; tried on 24.10).",
        'backend: "python"\nruntime: "/opt/libs/libtriton_python.so"',
        'backend: "python"\nruntime: "libtriton_python.so"',
        check=_path,
    ),
    Rule(
        "TG382",
        "unnamed-repository-agent",
        Consequence.REFUSED,
        "model_repository_agents names at least one agent, and each by its name.",
        "Without an agent, Triton dies when it loads the model; without a name, 'unable to find libtritonrepoagent_.so for repo agent' (tried on 24.10).",
        "model_repository_agents { agents [ { } ] }",
        'model_repository_agents { agents [ { name: "checksum" parameters { key: "MD5:config.pbtxt" value: "d41d8cd98f00b204e9800998ecf8427e" } } ] }',
        check=_agents,
    ),
    Rule(
        "TG383",
        "unknown-runtime",
        Consequence.REFUSED,
        "The runtime is a library that the model's folder or the backend's has.",
        "'unable to find backend library', 'unable to load shared library' (core/src/backend_model.cc, ResolveBackendPaths; tried on 24.10). Where it is not "
        "given, it is libtriton_<backend>.so. What is called model.py is taken from the backend's folder alone.",
        'backend: "python"\nruntime: "model.py"',
        'backend: "python"\nruntime: "libtriton_python.so"',
        check=_unknown,
        needs=frozenset({"config", "folder"}),
    ),
)
