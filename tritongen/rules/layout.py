"""Rules: what lies where in a repository. Model files are in `model_files`, version folders' names in `versions`."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.repository.scan import CONFIG_NAME
from tritongen.rules import access, links, model_files
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import fully_seen, is_foreign, looks_like_a_version, misplaced_configs, nested_models, place
from tritongen.rules.folders import model_files as files_of
from tritongen.rules.rule import Consequence, Finding, Rule

_FOLDER = frozenset({"folder"})
_OVER_A_FOREIGN_FOLDER = (
    "tritonserver ends at its start over a model that does not load; with --exit-on-error=false the real models load, and with "
    "--model-control-mode=explicit those that are named"
)


def _foreign(context: ModelContext) -> Iterator[Finding]:
    if not is_foreign(context):
        return
    assert context.folder is not None
    nested = nested_models(context.folder)
    if nested:
        message = (
            f"'{context.name}' is no model but a folder of models ({', '.join(nested[:3])}{', ...' if len(nested) > 3 else ''}); Triton does not look deeper"
        )
        hint = f"start tritonserver with --model-repository={context.folder.at()}"
    else:
        message = (
            f"'{context.name}' is no model: it has no {CONFIG_NAME}, no version folder and no model file; Triton takes every folder of a repository for one"
        )
        models = context.folder.path.parent / "models"
        hint = (
            f"put the models into a folder of their own and start tritonserver with --model-repository={models}"
            if context.name.startswith(".git")
            else "move the folder out of the repository, or point --model-repository at a folder that holds models only"
        )
    yield Finding(message, hint=hint, location=place(context), follows=_OVER_A_FOREIGN_FOLDER)


def _missing_config(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if context.has_config or context.server.auto_complete or folder.config_problem or is_foreign(context) or misplaced_configs(folder):
        return
    if any(name.startswith("configs/") for name in folder.entries):  # those of --model-config-name, which a server may have been started with
        return
    yield Finding(
        f"there is no {CONFIG_NAME}, and the server completes none (--disable-auto-complete-config)",
        hint=f"write {folder.at(CONFIG_NAME)}, or start tritonserver without --disable-auto-complete-config",
        location=place(context),
    )


def _misplaced_config(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if folder.config_problem:
        return
    for path in misplaced_configs(folder):
        inside = "/" in path
        if context.has_config and not inside:  # a backup or a template beside the real one
            continue
        where = "lies in a version's folder" if inside else f"is not named {CONFIG_NAME}"
        refused = not context.has_config and not context.server.auto_complete
        yield Finding(
            f"'{path}' {where}; Triton reads {context.name}/{CONFIG_NAME} alone" + ("" if context.has_config else ", and there is none"),
            hint=f"delete it; a config holds for all versions of a model (mv {folder.at(path)} {folder.at(CONFIG_NAME)} to use it)"
            if context.has_config
            else f"mv {folder.at(path)} {folder.at(CONFIG_NAME)}",
            location=place(context, path),
            consequence=Consequence.REFUSED if refused else Consequence.IGNORED,
        )


def _no_version(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if context.versions.available or is_foreign(context) or folder.config_problem or not fully_seen(folder):
        return
    if any(looks_like_a_version(folder, name) or "64 bits" in why for name, why in context.versions.ignored.items()):  # the rules about version names say it
        return
    stray = files_of(folder)
    if stray and context.name.isdigit() and not context.has_config:
        message = f"'{context.name}' is a version folder, not a model: the repository's folder is itself a model ({stray[0]} lies in {context.name}/)"
        yield Finding(message, hint=f"point --model-repository at the folder above {folder.path.absolute().parent}", location=place(context))
    elif stray:
        message = f"{stray[0]} lies in the model's folder; it belongs in a version folder, of which there is none"
        yield Finding(message, hint=f"mkdir {folder.at('1')} && mv {folder.at(stray[0])} {folder.at('1')}", location=place(context, stray[0]))
    elif context.is_ensemble:
        message = "the ensemble has no version folder; an ensemble needs one too, though nothing is in it"
        hint = f"mkdir {folder.at('1')} (with a file such as .gitkeep in it, as git and object stores drop empty folders)"
        yield Finding(message, hint=hint, location=place(context))
    else:
        others = (
            f"; {', '.join(sorted(context.versions.ignored))} {'is' if len(context.versions.ignored) == 1 else 'are'} no version"
            if context.versions.ignored
            else ""
        )
        message = f"there is no version folder: a folder whose name is a whole number{others}"
        yield Finding(message, hint=f"mkdir {folder.at('1')}, and put {context.resolved.filename or 'the model file'} into it", location=place(context))


RULES: tuple[Rule, ...] = (
    Rule(
        "TG220",
        "foreign-folder",
        Consequence.REFUSED,
        "Every folder of a repository is a model.",
        "In the modes none and poll Triton takes every sub-folder of a repository for a model, hidden ones such as .git and .ipynb_checkpoints too. Such a "
        "one does not load ('Could not determine backend', 'at least one version must be available'), and by default the server then ends; with "
        "--exit-on-error=false the other models are served and the folder stays in the index as UNAVAILABLE. In explicit mode nothing is loaded that is not "
        "named (core/src/model_repository_manager.cc, Poll; tried on 24.10).",
        "model_repository/.ipynb_checkpoints/\nmodel_repository/resnet/config.pbtxt",
        "model_repository/resnet/config.pbtxt",
        check=_foreign,
        needs=_FOLDER,
    ),
    Rule(
        "TG221",
        "missing-config",
        Consequence.REFUSED,
        "A server that completes no configs needs a config.pbtxt for every model.",
        "With --disable-auto-complete-config Triton fails with 'failed to open text file for read'; without it, it completes what the backend can tell "
        "(core/src/model_repository_manager.cc, InitializeModelInfo).",
        "# tritonserver --disable-auto-complete-config\nresnet/1/model.onnx",
        "resnet/config.pbtxt\nresnet/1/model.onnx",
        check=_missing_config,
        needs=_FOLDER,
    ),
    Rule(
        "TG222",
        "misplaced-config",
        Consequence.IGNORED,
        "A model's config is named config.pbtxt and lies in the model's folder.",
        "Triton opens <model>/config.pbtxt and nothing else (with --model-config-name=X also <model>/configs/X.pbtxt). Without one it completes a "
        "config by itself, or refuses "
        "the model with --disable-auto-complete-config (core/src/model_repository_manager.cc).",
        "resnet/config.pbtxt.txt\nresnet/1/model.onnx",
        "resnet/config.pbtxt\nresnet/1/model.onnx",
        check=_misplaced_config,
        needs=_FOLDER,
    ),
    Rule(
        "TG224",
        "no-version-folder",
        Consequence.REFUSED,
        "A model has at least one version folder, and its model file lies in there; an ensemble's is empty.",
        "Without one Triton fails with 'at least one version must be available under the version policy' (core/src/model_lifecycle.cc, "
        "VersionsToLoad; tried on 24.10). Folders "
        "named warmup, initial_state and configs never count.",
        "resnet/config.pbtxt\nresnet/model.onnx",
        "resnet/config.pbtxt\nresnet/1/model.onnx",
        check=_no_version,
        needs=_FOLDER,
    ),
    *links.RULES,
    *access.RULES,
    *model_files.RULES,
)
