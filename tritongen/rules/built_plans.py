"""Rules: plans that were built, against the server that will load them and against what is asked for now. Part of the family TG35x.

What stands in a plan's first bytes is known of any plan; the rest only of those that tritongen built, by their manifests.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from tritongen.diagnostics import Location
from tritongen.manifest import Builder
from tritongen.recipe import SCRIPT
from tritongen.releases import same_version, tensorrt_major_of
from tritongen.repository import artifacts_beside
from tritongen.rules.context import BuiltPlan, ModelContext
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.signature.plan import TENSORRT, PlanHeader
from tritongen.staleness import LoadedBy, changed_options, not_loadable, other_tensorrt, runs_on


def build_hint(context: ModelContext) -> str:
    """How a plan of this model is built. Where nothing is known of its making, what a render left beside the repository did not come with it."""
    assert context.folder is not None
    root = context.folder.path.parent
    if root.name in ("", ".."):
        folder = "the folder that is named after the repository and ends with .artifacts"
        build = f"build it in the container that serves it, by build_plans.sh in {folder}"
    else:
        folder = str(artifacts_beside(root))
        build = f"build it in the container that serves it: sh {shlex.quote(str(artifacts_beside(root) / SCRIPT))}"
    return build if context.recipes else f"render the spec again, or bring {folder}, which a render wrote beside the repository; then {build}"


def plan_place(context: ModelContext, path: str) -> Location:
    """Where a file in the model's folder lies."""
    assert context.folder is not None
    return Location(str(context.folder.path / path))


def _another_tensorrt(context: ModelContext) -> Iterator[Finding]:
    for path, plan in context.plans.items():
        release = context.server.release.name if context.server.release else plan.recipe.release if plan.recipe is not None else ""
        version = plan.header.version if plan.header is not None and plan.header.kind == TENSORRT else ""
        # A manifest that names another version than the file itself is not about this file.
        told = plan.manifest if plan.manifest is not None and plan.manifest.builder.tensorrt == (version or plan.manifest.builder.tensorrt) else None
        version = version or (told.builder.tensorrt if told is not None and told.builder.kind == TENSORRT else "")
        later_too = told is not None and bool(told.options.get("version_compatible"))
        reason = other_tensorrt(version, LoadedBy(release), later_too=later_too, built_in=told.builder.release if told is not None else "")
        if not reason:
            continue
        unknown = told is None and int(version.split(".")[0]) == tensorrt_major_of(release)
        yield Finding(
            f"{path} {reason}",
            plan.key,
            _hint_for(context, plan, release),
            plan_place(context, path),
            consequence=Consequence.MISBEHAVES if unknown else None,
            follows="Triton refuses to load it, unless it was built for later versions, too (VERSION_COMPATIBLE), which cannot be seen" if unknown else "",
        )


def _hint_for(context: ModelContext, plan: BuiltPlan, release: str) -> str:
    """How a plan that a release loads is made: what lies beside the repository builds for the release that it was rendered for, and for no other."""
    if plan.recipe is None:
        return f"build it again in the container of release {release}"
    if plan.recipe.release != release:
        return f'write triton: {{release: "{release}"}} in the spec and render it; then {build_hint(context)}'
    return build_hint(context)


def _stale(context: ModelContext) -> Iterator[Finding]:
    for path, plan in context.plans.items():
        # Without a recipe there is nothing to build it by.
        hint = build_hint(context) if plan.recipe is not None else "render the spec again, so that its recipes and the config name the same plans"
        for reason, consequence in _reasons(plan):
            yield Finding(f"{path} {reason}", plan.key, hint, plan_place(context, path), consequence=consequence)
        yield from _named_for_others(context, path, plan)


def _named_for_others(context: ModelContext, path: str, plan: BuiltPlan) -> Iterator[Finding]:
    """GPUs for which the config names a plan of others: an edit, since a render names a plan of its own for each."""
    if plan.manifest is None:
        return
    built, hardware = plan.manifest.builder.compute_capability, str(plan.manifest.options.get("hardware_compatibility"))
    own = plan.file.compute_capability if plan.file is not None else ""
    for capability, name in sorted(context.config.cc_model_filenames.items()):
        is_named = posixpath.normpath(name) == posixpath.basename(path) and capability != own
        if is_named and not runs_on(built, capability, hardware) and plan.is_described():
            yield Finding(
                f"GPUs of compute capability {capability} would load {path}, which was built on one of {built}",
                ("cc_model_filenames", capability),
                f'add "{capability}" to compute_capabilities, in tensorrt: {{build: {{...}}}} of the spec, render it and build that plan; or remove this entry',
                consequence=Consequence.REFUSED,
            )


def _reasons(plan: BuiltPlan) -> Iterator[tuple[str, Consequence | None]]:
    """What speaks against a plan, as clauses about it, without what its TensorRT is: that is another rule's."""
    if plan.problem:
        yield f"may be stale: {plan.problem}", Consequence.FRAGILE
        return
    if plan.recipe is None or plan.file is None:
        return
    if plan.manifest is None:
        yield "has no manifest, so that nothing says whether it was built from this model", Consequence.FRAGILE
        return
    if not plan.is_described():
        yield "is not the file that was built: it was changed or replaced since", None
        return
    if reason := _contradiction(plan.header, plan.manifest.builder):
        yield reason, Consequence.FRAGILE
    for reason in changed_options(plan.manifest, plan.recipe):
        yield reason, None
    # What would load it is not named, and so the version of TensorRT is left out: library and GPU are compared.
    for reason in not_loadable(plan.manifest, plan.file, LoadedBy()):
        yield reason, Consequence.REFUSED


def _contradiction(header: PlanHeader | None, told: Builder) -> str:
    """What a plan's first bytes say otherwise than its manifest; empty where they agree, or say nothing."""
    if header is None or (header.kind == told.kind and (not header.version or same_version(header.version, told.tensorrt))):
        return ""
    own = f"{header.kind} {header.version}".rstrip()
    return f"is a plan of {own} by its first bytes, and its manifest says {told.kind} {told.tensorrt}: the manifest was edited"


_PLAN = 'platform: "tensorrt_plan"   # for release 25.08, which has TensorRT 10.13.2.6\n'
_FOLDER = frozenset({"folder"})

RULES: tuple[Rule, ...] = (
    Rule(
        "TG358",
        "plan-of-another-tensorrt",
        Consequence.REFUSED,
        "A plan was built by the TensorRT that loads it.",
        "TensorRT loads only what the same version wrote, unless the plan was built for later versions of the same major, too. The version stands in a plan's "
        "first bytes; it is compared with that of the release that --release names, or that the repository was rendered for.",
        _PLAN + "# m/1/model.plan begins with: ftrt, TensorRT 10.3.0.26",
        _PLAN + "# m/1/model.plan begins with: ftrt, TensorRT 10.13.2.6",
        _another_tensorrt,
        needs=_FOLDER,
    ),
    Rule(
        "TG359",
        "stale-plan",
        Consequence.MISBEHAVES,
        "A plan is the one that its recipe asks for.",
        "Triton loads a plan whatever model it was built from: one that is older than the config serves another model without a word. What a plan was built "
        "from stands in its manifest, what it should be built from in recipes.json; both lie in <repository>.artifacts.",
        _PLAN + "# the manifest says: precision fp32; recipes.json: fp16",
        _PLAN + "# both say: precision fp16",
        _stale,
        needs=_FOLDER,
    ),
)
