"""Rules: symbolic links in a repository that lead out of it, or nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place
from tritongen.rules.rule import Consequence, Finding, Rule

_FOLDER = frozenset({"folder"})
_OUT = "Triton follows it if it can, and in a container or another checkout it often cannot"


def _nowhere(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if folder.link == "nowhere":
        yield Finding(
            f"'{context.name}' is a link that leads nowhere; over it Triton loads no model of the repository",
            hint=f"remove it (rm {folder.at()}), or put what it leads to where the server runs",
            location=place(context),
            follows="Triton cannot list the repository: with --model-control-mode=none (the default) and poll it loads none of its models and, by default, "
            "ends; with explicit, models load by name and listing the repository fails",
        )
    for path, facts in sorted(folder.entries.items()):
        if facts.kind == "nowhere" and "/" not in path and not folder.config_problem:
            yield Finding(
                f"'{path}' in the model's folder is a link that leads nowhere",
                hint=f"remove it (rm {folder.at(path)}), or put what it leads to where the server runs",
                location=place(context, path),
            )


def _out(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    for path, facts in sorted(folder.entries.items()):
        if facts.kind not in ("link", "nowhere") or path.count("/") > 1 or (facts.kind == "nowhere" and "/" not in path):
            continue
        at = folder.at(path)
        leads = f"leads out of the repository; {_OUT}" if facts.kind == "link" else "leads nowhere; Triton's log complains of it"
        yield Finding(
            f"'{path}' is a link that {leads}",
            hint=f'put the file itself there: cp --remove-destination "$(readlink -f {at})" {at}' if facts.kind == "link" else f"rm {at}",
            location=place(context, path),
        )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG223",
        "link-to-nowhere",
        Consequence.REFUSED,
        "Every link in a repository's folder, and in a model's, leads somewhere.",
        "Triton looks at every entry of both folders and gives up at the first that it cannot: 'failed to poll model repository', 'failed to stat file' for a "
        "link in the repository's folder, and then none of its models is loaded; 'Poll failed for model directory' for one in a model's folder, which loses "
        "that model (core/src/model_repository_manager.cc; tried on 24.10). Deeper ones only fill the log.",
        "model_repository/old -> /mnt/gone/old\nmodel_repository/resnet/config.pbtxt",
        "model_repository/resnet/config.pbtxt",
        check=_nowhere,
        needs=_FOLDER,
    ),
    Rule(
        "TG228",
        "link-out-of-the-repository",
        Consequence.FRAGILE,
        "A repository holds its files itself.",
        "Triton follows symbolic links, and one that leads out of the repository breaks when the repository is mounted into a container, copied or "
        "pushed to an object store. "
        "`check` does not follow it, so it says nothing about what lies there.",
        "resnet/1/model.onnx -> /home/me/exports/model.onnx",
        "resnet/1/model.onnx",
        check=_out,
        needs=_FOLDER,
    ),
)
