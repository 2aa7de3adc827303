"""Rules: several repositories that one server is given together."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.diagnostics import Location
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Rule


def _same_name(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    by_name: dict[str, list[ModelContext]] = {}
    for context in contexts:
        if context.folder is not None:
            by_name.setdefault(context.name, []).append(context)
    for name, owners in by_name.items():
        for owner in owners if len(owners) > 1 else ():
            others = ", ".join(str(other.folder.path) for other in owners if other is not owner and other.folder is not None)
            message = f"model '{name}' is in {len(owners)} of the repositories: also in {others}"
            hint = "rename all folders of that name but one (and the `name` in their configs), or start tritonserver with --model-namespacing=true"
            yield Finding(message, hint=hint, location=_place(owner), model=name)


def _place(context: ModelContext) -> Location:
    assert context.folder is not None
    return context.locate(("name",)) if context.has_config else Location(str(context.folder.path))


RULES: tuple[Rule, ...] = (
    Rule(
        "TG229",
        "name-in-two-repositories",
        Consequence.REFUSED,
        "A model's name is unique in all repositories that one server is given.",
        "Triton loads none of the models that share a name, neither at the start nor on request, and logs 'not unique across all model repositories' "
        "(core/src/model_repository_manager.cc). With --model-namespacing=true a repository is part of a model's identity.",
        "# tritonserver --model-repository=a --model-repository=b\na/resnet/config.pbtxt\nb/resnet/config.pbtxt",
        "a/resnet/config.pbtxt\nb/resnet_v2/config.pbtxt",
        check_all=_same_name,
        needs=frozenset({"folder"}),
    ),
)
