"""Rules: names of version folders, and what the version policy makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritongen.rules.context import ModelContext
from tritongen.rules.folders import fully_seen, looks_like_a_version, named_like_a_version, place
from tritongen.rules.rule import Consequence, Finding, Rule


def _known(context: ModelContext) -> bool:
    """Whether all sub-folders that could be versions were seen."""
    return context.folder is not None and fully_seen(context.folder) and not context.folder.config_problem


def _ignored(context: ModelContext) -> Iterator[Finding]:
    if not _known(context):
        return
    folder = context.folder
    assert folder is not None
    for name, why in sorted(context.versions.ignored.items()):
        # Beside a version that is loaded, a folder of another name may hold anything, model files too.
        meant = named_like_a_version(name) if context.versions.available else looks_like_a_version(folder, name)
        if "64 bits" in why or not meant:
            continue
        digits = re.search(r"\d+", name)
        wanted = str(int(digits.group())) if digits else "1"
        taken = wanted in folder.subfolders
        yield Finding(
            f"'{name}' is no version: {why}" + ("" if context.versions.available else "; no version is left"),
            hint=f"mv {folder.at(name)} {folder.at()}/<another whole number>; {wanted} is taken" if taken else f"mv {folder.at(name)} {folder.at(wanted)}",
            location=place(context, name),
            consequence=Consequence.IGNORED if context.versions.available else Consequence.REFUSED,
        )


def _misread(context: ModelContext) -> Iterator[Finding]:
    if not _known(context):
        return
    folder = context.folder
    assert folder is not None
    for number, name in sorted(context.versions.folders.items()):
        if name == str(number) and number >= 0:
            continue
        opened = str(number) if number >= 0 else str(number % 2**64)
        loaded = number in context.versions.loaded
        yield Finding(
            f"'{name}' is read as version {number}, which Triton then looks for in a folder '{opened}', and there is none"
            + ("" if loaded else "; the version policy does not pick it now"),
            hint=f"mv {folder.at(name)} {folder.at(str(abs(number)))}",
            location=place(context, name),
            consequence=Consequence.REFUSED if loaded else Consequence.FRAGILE,
        )


def _too_large(context: ModelContext) -> Iterator[Finding]:
    if not _known(context):
        return
    folder = context.folder
    assert folder is not None
    for name, why in sorted(context.versions.ignored.items()):
        if "64 bits" in why:
            yield Finding(
                f"the version folder '{name}' is a number beyond 64 bits; the whole server crashes when it looks at this model (tried on 24.10)",
                hint=f"mv {folder.at(name)} {folder.at()}/<a number below 2^63>",
                location=place(context, name),
            )


def _none_picked(context: ModelContext) -> Iterator[Finding]:
    policy = context.config.version_policy
    kind = policy.WhichOneof("policy_choice")
    if kind == "latest" and not policy.latest.num_versions:
        yield Finding(
            "version_policy picks the latest 0 versions, so none", ("version_policy", "latest"), "write `version_policy { latest { num_versions: 1 } }`"
        )
    elif kind == "specific" and not policy.specific.versions:
        yield Finding(
            "version_policy names no version",
            ("version_policy", "specific"),
            "write `version_policy { specific { versions: [1] } }`, or leave version_policy out",
        )
    elif kind == "specific" and _known(context) and context.versions.available and not context.versions.loaded:
        there = ", ".join(str(number) for number in context.versions.available)
        asked = ", ".join(str(number) for number in policy.specific.versions)
        yield Finding(
            f"version_policy picks version {asked}; there is only {there}",
            ("version_policy", "specific", "versions"),
            f"write `versions: [{there}]`, or leave version_policy out",
        )


def _absent_version(context: ModelContext) -> Iterator[Finding]:
    policy = context.config.version_policy
    if policy.WhichOneof("policy_choice") != "specific" or not _known(context) or not context.versions.loaded:
        return
    for index, number in enumerate(policy.specific.versions):
        if number not in context.versions.available:
            yield Finding(
                f"version_policy names version {number}, and there is no folder {number}; the other versions are loaded without it",
                ("version_policy", "specific", "versions", index),
                f"take {number} out of the list, or add the folder {number}",
            )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG240",
        "ignored-version-folder",
        Consequence.IGNORED,
        "A version folder's name is a whole number without leading zeros.",
        "Triton warns in its log ('ignore version directory') and goes on without it; where no other version is left, it refuses the model: 'at "
        "least one version must be available' "
        "(core/src/model_lifecycle.cc, VersionsToLoad; tried on 24.10). 0 itself is a version.",
        "resnet/v1/model.onnx",
        "resnet/1/model.onnx",
        check=_ignored,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG241",
        "misread-version-folder",
        Consequence.REFUSED,
        "A version folder's name is the number alone.",
        "Triton reads the number at the name's beginning, so that 1.0 and 1-old are version 1 and -1 is version 18446744073709551615, and opens the "
        "folder of that number: 'failed to "
        "stat file' (core/src/model_lifecycle.cc, VersionsToLoad; tried on 24.10). Where that folder exists too, the other one is passed over.",
        "resnet/1.0/model.onnx",
        "resnet/1/model.onnx",
        check=_misread,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG242",
        "version-beyond-64-bits",
        Consequence.REFUSED,
        "A version number fits into 64 bits.",
        "Triton 24.10 does not catch the overflow: the server ends, whatever else the repository holds (core/src/model_lifecycle.cc, VersionsToLoad; tried).",
        "resnet/20260115093000123456/model.onnx",
        "resnet/20260115/model.onnx",
        check=_too_large,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG243",
        "policy-that-picks-none",
        Consequence.REFUSED,
        "The version policy picks a version that is there.",
        "'at least one version must be available under the version policy' (core/src/model_lifecycle.cc, VersionsToLoad; tried on 24.10). `latest { "
        "}` means the latest 0.",
        "version_policy { specific { versions: [3] } }  # with only 1/",
        "version_policy { specific { versions: [1] } }",
        check=_none_picked,
    ),
    Rule(
        "TG244",
        "policy-with-absent-version",
        Consequence.IGNORED,
        "Every version that the version policy names is there.",
        "Triton writes 'the version directory is not present' to its log and loads the others; requests for the absent one fail "
        "(core/src/model_lifecycle.cc, VersionsToLoad; tried "
        "on 24.10).",
        "version_policy { specific { versions: [1, 2] } }  # with only 1/",
        "version_policy { specific { versions: [1] } }",
        check=_absent_version,
    ),
)
