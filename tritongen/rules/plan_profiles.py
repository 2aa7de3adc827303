"""Rules: a plan's config, held against the profiles that the plan is built with. Part of the family of plans.

A render writes both from one decision; this finds what an overlay asks for besides, and what was edited since. Profiles stand in the recipes beside the
repository, so that nothing is known of plans that tritongen did not build; of inputs without a variable dimension, only what the config states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tritongen.recipe import Profile
from tritongen.rules.context import ModelContext
from tritongen.rules.plan_ranges import (
    REFUSED_SAMPLE,
    UNCAPTURED,
    Ranges,
    dims_outside,
    plan_dims,
    range_of,
    row_ranges,
    samples_outside,
    uncaptured_graphs,
    unknown_profiles,
    used_profiles,
)
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_SOURCE = "tensorrt_backend/src"
_NEEDS = frozenset({"folder", "config"})
_AGAIN = "change the spec, render it and build the plan again"


_Judge = Callable[[ModelContext, Sequence[Profile]], Iterable[Finding]]
"""What a config asks for of a plan with these profiles and has not."""


def _of_each(judge: _Judge) -> Callable[[ModelContext], Iterable[Finding]]:
    """The same of the plan of each version, once where they have the same profiles."""

    def check(context: ModelContext) -> Iterable[Finding]:
        return dict.fromkeys(finding for recipe in context.recipes for finding in judge(context, recipe.profiles))

    return check


def _outside(context: ModelContext, profiles: Sequence[Profile]) -> Iterator[Finding]:
    config = context.config
    for index, message in unknown_profiles(config, max(len(profiles), 1)):
        yield Finding(message, ("instance_group", index, "profile"), f"remove it here; or describe it in tensorrt: {{profiles: [...]}}: {_AGAIN}")
    if not profiles:
        if config.max_batch_size > 0:
            message = f"max_batch_size is {config.max_batch_size}, and no input of the plan has a variable size, that of the batch neither"
            yield Finding(message, ("max_batch_size",), f"write max_batch_size: 0 with full dims; or {_AGAIN}")
        return
    used = [profiles[number] for number in used_profiles(config, len(profiles))]
    yield from _unlisted(config, profiles)
    if config.max_batch_size > 0:
        yield from _batch(context, used)
    taken = _taken(config, used)
    for index, message in dims_outside(config, taken):
        yield Finding(message, ("input", index, "dims"), f"write dims that the plan takes; or {_AGAIN}")
    for field, message in samples_outside(config, taken):
        yield Finding(message, field, f"give it sizes that the plan takes; or {_AGAIN}", follows=REFUSED_SAMPLE)


def _unlisted(config: Any, profiles: Sequence[Profile]) -> Iterator[Finding]:
    """Groups that list no profile of a plan with several, of which they use the first alone."""
    if len(profiles) == 1:
        return
    within = all(_lies_within(profile, profiles[0]) for profile in profiles)
    listed = ", ".join(f'"{number}"' for number in range(len(profiles)))
    for index, group in enumerate(config.instance_group):
        if not group.profile:
            message = f"instance group {index + 1} lists no profile, and of the {len(profiles)} profiles of the plan it then uses number 0 alone"
            follows = "every batch runs by the kernels of profile 0" if within else "requests of sizes that only another profile takes fail"
            key: Key = ("instance_group", index)
            yield Finding(message, key, f"write `profile: [{listed}]`", consequence=Consequence.SLOW if within else Consequence.FAILS, follows=follows)


def _lies_within(profile: Profile, other: Profile) -> bool:
    return all(
        least <= low and high <= most
        for name, span in profile.shapes.items()
        for (low, high), (least, most) in zip(range_of(span), range_of(other.shapes[name]), strict=True)
    )


def _batch(context: ModelContext, used: Sequence[Profile]) -> Iterator[Finding]:
    """A batch that is larger than every profile takes; the smallest maximum of its inputs is a profile's."""
    size, most = context.config.max_batch_size, max(min((span.maximum[0] for span in profile.shapes.values() if span.maximum), default=0) for profile in used)
    if size > most > 0:
        consequence, follows = None, ""
        if not context.server.auto_complete:
            consequence, follows = Consequence.IGNORED, f"Triton takes {most} in its place"
        message = f"max_batch_size is {size}, and the plan takes batches of at most {most}"
        yield Finding(message, ("max_batch_size",), f"write max_batch_size: {most}; or, for more, {_AGAIN}", consequence=consequence, follows=follows)


def _taken(config: Any, used: Sequence[Profile]) -> list[Mapping[str, Ranges]]:
    """What each profile takes of every input that has a variable dimension, as a config has its dims."""
    return [{name: row_ranges(range_of(span), batched=config.max_batch_size > 0) for name, span in profile.shapes.items()} for profile in used]


def _graphs(context: ModelContext, profiles: Sequence[Profile]) -> Iterator[Finding]:
    """CUDA graphs that cannot be captured. Batches are another rule's."""
    config = context.config
    fixed = {tensor.name: [(dim, dim) for dim in dims] for tensor in config.input if -1 not in (dims := plan_dims(tensor))}
    used = [profiles[number] for number in used_profiles(config, len(profiles))] if profiles else [Profile({})]
    values = sorted({name for profile in profiles for name in profile.values})
    by_profile = [dict(sorted({**fixed, **taken}.items())) for taken in _taken(config, used)]
    for field, message in uncaptured_graphs(config.optimization.cuda, by_profile, values):
        hint = f"write sizes of every input that the plan takes, or leave input out; or {_AGAIN}" if field[0] == "graph_spec" else "remove cuda"
        yield Finding(message, ("optimization", "cuda", *field), hint, follows=UNCAPTURED)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG365",
        "config-beyond-the-profiles",
        Consequence.REFUSED,
        "A plan's config keeps within the profiles that the plan is built with.",
        f"Profiles are built into a plan, and no config changes them: Triton refuses profile numbers, dims and batches that the plan has not ({_SOURCE}/"
        "instance_state.cc and model_state.cc), and uses profile 0 alone where a group lists none. The profiles stand in recipes.json, in "
        "<repository>.artifacts, where a render left them.",
        'platform: "tensorrt_plan"\nmax_batch_size: 16   # recipes.json: x 1x64 to 8x64',
        'platform: "tensorrt_plan"\nmax_batch_size: 8   # recipes.json: x 1x64 to 8x64',
        _of_each(_outside),
        needs=_NEEDS,
    ),
    Rule(
        "TG366",
        "cuda-graph-beyond-the-profiles",
        Consequence.IGNORED,
        "CUDA graphs of a plan have sizes of every input that one of its profiles takes, and the plan has no shape tensors.",
        f"Triton captures a graph while it loads the model, with a profile that takes its sizes, and logs where it cannot ({_SOURCE}/instance_state.cc, "
        "SetCudaGraphShape); it captures none of a plan with shape tensors. The profiles stand in recipes.json, as of TG365.",
        'platform: "tensorrt_plan"\noptimization { cuda { graphs: true graph_spec { batch_size: 8 input { key: "x" value { dim: [ 65 ] } } } } }'
        "   # recipes.json: x 1x1 to 8x64",
        'platform: "tensorrt_plan"\noptimization { cuda { graphs: true graph_spec { batch_size: 8 input { key: "x" value { dim: [ 64 ] } } } } }'
        "   # recipes.json: x 1x1 to 8x64",
        _of_each(_graphs),
        needs=_NEEDS,
    ),
)
